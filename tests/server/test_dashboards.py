"""Dashboards over a server: several see each other's notes at once, and a role that only reads suffices for them."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from fastapi import Request
from fastapi.testclient import TestClient

from app.cli import main
from app.deps import open_catalog, open_trace
from app.main import create_app
from app.settings import Settings
from collector.errors import StoreReadOnly
from collector.store.catalog import Catalog
from collector.store.server import TraceServer
from collector.store.tables import CATALOG
from tests.build.answers import as_json
from tests.build.imported import Imported
from tests.build.small_trace import CLIENT, KEY
from tests.every_page import linked_paths
from tests.server.cluster import Cluster
from tests.server.moving import move
from tests.test_app_workers import ask, children, listens, serving, wait_for
from tests.test_query_plans import statements

SOCKET = f"sockets/{CLIENT:#x}@10000000"


def dashboard(stack: ExitStack, url: str) -> TestClient:
    """A dashboard of its own, as another process would have it."""
    return stack.enter_context(TestClient(create_app(Settings(database=url)), base_url="http://127.0.0.1", follow_redirects=False))


def post(client: TestClient, path: str, **form: str) -> int:
    """Send a form of the overview; returns the status."""
    token = re.search(r'name="form_token" value="([0-9a-f]+)"', client.get(f"/t/{KEY}").text)
    assert token
    return client.post(f"/t/{KEY}/{path}", data={"form_token": token[1], **form}).status_code


def notes(client: TestClient, path: str) -> list[str]:
    return [row["text"] for row in as_json(client, f"/t/{KEY}/{path}")["notes"]["rows"]]


def test_two_dashboards_see_each_others_notes_and_labels_at_once(filled: TraceServer, server_url: str, stack: ExitStack) -> None:
    one, other = dashboard(stack, server_url), dashboard(stack, server_url)
    assert notes(one, SOCKET) == notes(other, SOCKET) == []
    assert post(one, "notes", object=SOCKET, text="The peer gave up first.") == 303
    assert notes(other, SOCKET) == ["The peer gave up first."]
    assert post(other, "notes", object=SOCKET, text="It did not.") == 303
    assert notes(one, SOCKET) == notes(one, "notes")[::-1] == ["The peer gave up first.", "It did not."]
    page = other.get(f"/t/{KEY}/notes").text
    number, created = (re.findall(rf'name="{name}" value="([^"]+)"', page)[-1] for name in ("note", "created_utc"))
    assert post(other, "notes/delete", note=number, created_utc=created) == 303
    assert notes(one, SOCKET) == ["It did not."]
    assert post(one, "label", label="the bad run") == 303
    assert "the bad run" in other.get(f"/t/{KEY}").text
    assert [row["label"] for row in as_json(other, "/")["listing"]["rows"]] == ["the bad run"]


def test_a_role_that_reads_suffices_for_all_pages_notes_and_labels(
    filled: TraceServer, cluster: Cluster, database_name: str, stack: ExitStack, sample: Imported
) -> None:
    cluster.sql(f"CREATE ROLE viewer_{database_name} LOGIN")
    filled.grant_to(f"viewer_{database_name}")
    move(sample.folder, filled)  # stored after the role was let in
    client = dashboard(stack, cluster.url(database_name, f"viewer_{database_name}"))
    for key in (KEY, sample.report.key):
        for path in linked_paths(client, key):
            assert client.get(path).status_code < 500, path
    for path in ("/", "/?group=program", "/findings", "/search?q=443", f"/compare?a={KEY}&b={sample.report.key}"):
        assert client.get(path).status_code == 200, path
    assert post(client, "notes", object=SOCKET, text="mine") == 303
    assert post(client, "label", label="mine") == 303
    assert notes(client, SOCKET) == ["mine"]


def test_a_role_that_reads_can_change_nothing_else(filled: TraceServer, cluster: Cluster, database_name: str, tmp_path: Path) -> None:
    role = f"viewer_{database_name}"
    cluster.sql(f"CREATE ROLE {role} LOGIN")
    filled.grant_to(role)
    with closing(TraceServer(cluster.url(database_name, role), building=tmp_path / "other")) as server:
        with pytest.raises(StoreReadOnly, match=f"the role {role} may not do this"):
            Catalog(server).remove(KEY)
        assert server.has_trace(KEY)
    for statement in (
        "DELETE FROM sockscope.trace_entry",
        "UPDATE sockscope.trace_entry SET state = 'interrupted'",
        "DELETE FROM sockscope.socket",
        "DROP SCHEMA sockscope CASCADE",
        "INSERT INTO sockscope.trace_load VALUES (9, 'x', true, 0)",
    ):
        with pytest.raises(RuntimeError, match=r"permission denied|must be owner"):
            cluster.sql(statement, database_name, role)


def test_a_dashboard_waits_for_its_server_and_goes_on_by_itself(
    filled: TraceServer, server_url: str, cluster: Cluster, stack: ExitStack
) -> None:
    client = dashboard(stack, server_url)
    before = client.get(f"/t/{KEY}/sockets?format=json").json()
    cluster.stop("immediate")
    for path in (f"/t/{KEY}/sockets", f"/t/{KEY}", "/", "/findings", "/search?q=443", "/t/ffffffffffff"):
        answer = client.get(path, headers={"Accept": "application/json"})
        assert answer.status_code == 503, path
        assert "the server cannot be reached" in answer.text or "the server ended the connection" in answer.text, path
    assert client.get("/healthz").status_code == 200
    cluster.restart()
    assert client.get(f"/t/{KEY}/sockets?format=json").json() == before


@pytest.mark.parametrize("open_one", [lambda request: open_trace(request, KEY), open_catalog], ids=["trace", "catalog"])
def test_a_server_that_ends_after_the_last_answer_is_no_fault_of_the_page(
    filled: TraceServer, cluster: Cluster, open_one: Callable[[Request], Iterator[object]]
) -> None:
    app = create_app(Settings(database=filled.address))
    try:
        with TestClient(app):
            opened = open_one(Request({"type": "http", "app": app, "headers": [], "query_string": b"", "path": "/"}))
            assert next(opened) is not None
            cluster.stop("immediate")
            assert next(opened, "over") == "over"
    finally:
        cluster.restart()


def test_the_list_of_traces_asks_no_more_for_many(filled: TraceServer, server_url: str, stack: ExitStack) -> None:
    client = dashboard(stack, server_url)
    client.get("/")
    with statements() as few:
        client.get("/")
    line = {"name": "gone.etl", "state": "complete", "collected_utc": "2025-03-05T08:00:00+00:00"}
    with filled.catalog(write=True).begin() as db:
        db.execute(CATALOG.tables["trace_entry"].insert(), [line | {"key": f"{number:012x}"} for number in range(50)])
    with statements() as many:
        page = as_json(client, "/")
    assert len(many) == len(few)
    assert sorted(page["missing"]) == [f"{number:012x}" for number in range(50)]


def test_browsers_send_no_traces_to_a_server(
    filled: TraceServer, server_url: str, stack: ExitStack, capsys: pytest.CaptureFixture[str]
) -> None:
    client = dashboard(stack, server_url)
    assert 'type="file"' not in client.get("/").text
    assert main(["serve", "--database", server_url, "--uploads"]) == 2
    assert "--uploads needs a folder" in capsys.readouterr().err


def test_numbers_of_a_server_are_those_of_its_catalog(filled: TraceServer, server_url: str) -> None:
    with TestClient(create_app(Settings(database=server_url, has_metrics=True)), base_url="http://127.0.0.1") as client:
        said = client.get("/metrics").text
    assert 'sockscope_traces{state="complete"} 1.0' in said
    size = re.search(r"^sockscope_database_size_bytes (\S+)$", said, re.MULTILINE)
    assert size
    assert float(size[1]) > 1_000_000


def test_several_processes_serve_a_server(filled: TraceServer, cluster: Cluster, database_name: str) -> None:
    role = f"viewer_{database_name}"
    cluster.sql(f"CREATE ROLE {role} LOGIN")
    filled.grant_to(role)
    with serving(cluster.url(database_name, role), 2, "--metrics") as (server, address):
        wait_for("two processes", lambda: all(listens(pid) for pid in children(server.pid)) and len(children(server.pid)) == 2)
        assert ask(address, "/healthz")[::2] == (200, "ok\n")
        pages = {ask(address, f"/t/{KEY}/sockets?format=json")[::2] for _ in range(8)}
        assert [status for status, _ in pages] == [200]  # whoever answers, it is the same
        assert "sockscope_requests_total" in ask(address, "/metrics")[2]
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        assert server.stderr is not None
        assert server.stderr.read() == ""


def test_a_report_of_a_trace_on_a_server(filled: TraceServer, server_url: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SOCKSCOPE_")}
    words = ["report", KEY, "--socket", f"{CLIENT:#x}@10000000", "--database", server_url]
    for more in ([], ["--mask"]):
        target = tmp_path / f"report{len(more)}.html"
        run = [sys.executable, "-m", "app.cli", *words, "-o", str(target), *more]
        done = subprocess.run(run, env=environment | {"XDG_CACHE_HOME": str(tmp_path)}, capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stderr) == (0, ""), more
        assert target.read_text("utf-8").startswith("<!doctype html>"), more
    assert b"client.exe" in (tmp_path / "report0.html").read_bytes()
    assert b"client.exe" not in (tmp_path / "report1.html").read_bytes()
