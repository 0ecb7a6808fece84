"""Traces on two servers, written to directly, and read through a third whose partitions are those two (postgres_fdw).

The set-up is that of docs/scale.md: SQL that its owner runs, and `deploy/add-server.sql`.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from collector.cli import main
from collector.pipeline import import_trace
from collector.source import Source
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.store.server import TraceServer
from tests.build.imported import Imported
from tests.build.small_trace import KEY, small_folder
from tests.every_page import linked_paths
from tests.server.cluster import Cluster, programs
from tests.server.moving import move
from tests.server.test_same_answers import ACROSS, Both
from tests.test_query_plans import paths_of, statements

_ROLE = "dashboard"
_LAST = 9_999_999
_FOREIGN = re.compile(r"\b(one|two)\.[a-z_]+")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Traces are built in a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@dataclass(frozen=True)
class Servers:
    """The head, and what it is compared with."""

    head: Cluster
    one: Cluster
    two: Cluster
    folder: TraceFolder
    two_key: str

    @property
    def url(self) -> str:
        return self.head.url("traces", _ROLE)


@pytest.fixture(scope="module")
def servers(sample: Imported, project_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Trace KEY on server `one`, the sample on server `two`."""
    pytest.importorskip("psycopg")
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    folder = small_folder(tmp_path_factory.mktemp("several"))
    folder.trace_path(sample.report.key).write_bytes(sample.path.read_bytes())
    Catalog(folder).settle()
    with ExitStack() as stack:
        head, one, two = (stack.enter_context(closing(Cluster(found))) for _ in range(3))
        for each in (head, one, two):
            each.sql("CREATE DATABASE traces")
            each.sql(f"CREATE ROLE {_ROLE} LOGIN")
        if head.sql("SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'") == [["0"]]:
            pytest.skip("postgres_fdw is not installed")
        head.sql("CREATE EXTENSION postgres_fdw", "traces")
        for name, each, first, key in (("one", one, 1, KEY), ("two", two, _LAST + 1, sample.report.key)):
            server = TraceServer(each.url("traces"), building=tmp_path_factory.mktemp("building"))
            server.make()
            server.grant_to(_ROLE)
            last = first + _LAST - 1
            each.sql(f"ALTER SEQUENCE sockscope.trace_number MINVALUE {first} MAXVALUE {last} START {first} RESTART", "traces")
            move(folder, server, [key])
            server.close()
            head.sql(
                f"CREATE SERVER {name} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{each.folder}', port '5432', dbname 'traces', "
                "fetch_size '10000', use_remote_estimate 'true', options '-c jit=off');"
                f"CREATE USER MAPPING FOR PUBLIC SERVER {name} OPTIONS (user '{_ROLE}', password_required 'false')",
                "traces",
            )
            script = (project_root / "deploy" / "add-server.sql").read_text("utf-8")
            variables = [f"-v{variable}={value}" for variable, value in (("server", name), ("first", first), ("last", last))]
            head.program("psql", "-X", "-q", "-d", "traces", *variables, "-f", "-", given=script)
        with closing(TraceServer(head.url("traces"))) as server:
            server.grant_to(_ROLE)
        yield Servers(head, one, two, folder, sample.report.key)


@pytest.fixture(scope="module")
def both(servers: Servers) -> Iterator[Both]:
    clients = [
        TestClient(
            create_app(Settings(database=place, uploads=False, query_seconds=60)), base_url="http://127.0.0.1", follow_redirects=False
        )
        for place in (servers.folder.root, servers.url)
    ]
    with clients[0] as one, clients[1] as other:
        yield Both(one, other)


def test_the_pages_of_a_trace_are_the_same_through_the_head(both: Both, sample: Imported) -> None:
    small = linked_paths(both.folder, KEY)
    assert len(small) > 50
    assert both.differing([*small, *paths_of(sample).values()], "application/json") == []


def test_the_pages_over_all_traces_are_the_same_through_the_head(both: Both) -> None:
    assert both.differing(list(ACROSS), "application/json") == []


def test_a_page_touches_the_server_of_its_trace_alone(servers: Servers, both: Both, sample: Imported) -> None:
    paths = [path for name, path in paths_of(sample).items() if name != "/"]
    with closing(TraceServer(servers.url)) as server:
        for key, own in ((KEY, "one"), (sample.report.key, "two")):
            with statements() as asked:
                for path in paths:
                    both.server.get(path.replace(sample.report.key, key), headers={"Cache-Control": "no-store"})
            explained = [one for one in asked if "trace_id" in one[0]]
            assert len(explained) > 100
            with server.catalog().connect() as db:
                for statement, values in explained:
                    plan = "\n".join(db.exec_driver_sql(f"EXPLAIN (VERBOSE) {statement}", values).scalars())
                    assert set(_FOREIGN.findall(plan)) <= {own}, statement


def test_a_statement_that_names_no_trace_touches_both(servers: Servers) -> None:
    with closing(TraceServer(servers.url)) as server, server.catalog().connect() as db:
        plan = "\n".join(db.exec_driver_sql("EXPLAIN (VERBOSE) SELECT count(*) FROM socket").scalars())
    assert set(_FOREIGN.findall(plan)) == {"one", "two"}


def test_a_trace_that_a_server_stores_is_there_at_once(servers: Servers, both: Both, sample_file: Path, tmp_path: Path) -> None:
    path = f"/t/{servers.two_key}/sockets"
    with closing(TraceServer(servers.two.url("traces"), building=tmp_path / "building")) as server:
        before = server.number_of(servers.two_key)
        with Source.open(sample_file) as source:
            import_trace(source, server)
        assert server.number_of(servers.two_key) not in (None, before)

    assert both.differing([path], "application/json") == []


def test_verbs_that_read_and_labels_go_through_the_head(servers: Servers, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", KEY, "--database", servers.url, "-o", str(tmp_path / "one.db")]) == 0
    with closing(sqlite3.connect(tmp_path / "one.db")) as got, closing(sqlite3.connect(servers.folder.trace_path(KEY))) as wanted:
        for question in ("SELECT count(*) FROM v_operations", "SELECT socket FROM v_sockets ORDER BY 1"):
            assert got.execute(question).fetchall() == wanted.execute(question).fetchall()
    assert main(["label", KEY, "seen", "through", "the", "head", "--database", servers.url]) == 0
    capsys.readouterr()
    assert main(["list", "--json", "--database", servers.one.url("traces")]) == 0
    assert [entry["label"] for entry in json.loads(capsys.readouterr().out)] == ["seen through the head"]
    assert main(["label", KEY, "--clear", "--database", servers.url]) == 0


def test_nothing_is_collected_or_deleted_through_the_head(servers: Servers, sample_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for user in (_ROLE, "owner"):
        for words in (("collect", str(sample_file)), ("delete", KEY)):
            assert main([*words, "--database", servers.head.url("traces", user)]) == 1
            assert "this database only shows the traces of other servers. Collect and delete there." in capsys.readouterr().err
    assert servers.head.sql("SELECT count(*) FROM ONLY sockscope.trace_entry", "traces") == [["0"]]
