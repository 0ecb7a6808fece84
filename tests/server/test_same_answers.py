"""Every page says the same of traces in a folder and of the same traces on a server, as JSON, as CSV and in the browser."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.queries import all_findings, traces
from app.settings import Settings
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.store.server import TraceServer
from tests.build.database import built_database
from tests.build.imported import Imported
from tests.build.small_trace import KEY, SMALL, small_folder
from tests.every_page import linked_paths, list_paths
from tests.server.cluster import Cluster
from tests.server.moving import move
from tests.test_app_list_orders import VARIED
from tests.test_app_lists import CASES, LISTS

OTHER = "aaaa00000001"
NO_STORE = {"Cache-Control": "no-store"}
_TOKEN = re.compile(r'(name="form_token" value=)"[0-9a-f]+"')

ACROSS = (
    "/", "/?group=day", "/?group=machine", "/?group=program", "/?q=small", "/?q=SMALL", "/?state=complete", "/?findings=yes",
    "/?finding=abort", "/?error=10054", "/?reason=4", "/?losses=no", "/?from=2025-03-01", "/?to=2025-03-05", "/?day=2025-03-04",
    "/?day=unknown", "/?program=CLIENT", "/?machine=unknown", "/?min_size=1 kB", "/?max_size=1 kB", "/?limit=1", "/findings",
    "/findings?limit=1", "/search?q=443", "/search?q=10054", "/search?q=client", "/search?q=CLIENT.exe", "/search?q=198.51.100.7",
    "/search?q=abort 4", "/search?q=0x1f0100", "/search?q=4242", "/search?q=nothing%25_", "/search?q=ntdll", f"/compare?a={KEY}&b={OTHER}",
    f"/compare?a={OTHER}&b={KEY}&process=client", "/compare", "/t/ffffffffffff", "/t/aaaa00",
)  # fmt: skip
"""Pages over all traces."""


@dataclass(frozen=True)
class Both:
    """A client of the dashboard over a folder, and one of that over a server."""

    folder: TestClient
    server: TestClient

    def differing(self, paths: list[str], accept: str) -> list[str]:
        """Pages that are not the same; the token of their forms apart."""
        found = []
        for path in paths:
            one, other = (client.get(path, headers=NO_STORE | {"Accept": accept}) for client in (self.folder, self.server))
            assert one.status_code < 500, path
            same_head = one.status_code == other.status_code and one.headers.get("location") == other.headers.get("location")
            if not same_head or _TOKEN.sub(r"\1", one.text) != _TOKEN.sub(r"\1", other.text):
                found.append(path)
        return found


@pytest.fixture(scope="module")
def folder(sample: Imported, tmp_path_factory: pytest.TempPathFactory) -> TraceFolder:
    """The sample, and three traces made by hand, one of which is much like another."""
    folder = small_folder(tmp_path_factory.mktemp("answers"))
    rows = {table: list(lines) for table, lines in SMALL.items()}
    rows["abort"] = [*rows["abort"], rows["abort"][0]]
    rows["operation"] = [*rows["operation"], *[rows["operation"][3]] * 4]
    built_database(folder.root, rows, key=OTHER, name="Other.etl")
    built_database(folder.root, VARIED, key="cccc00000003", name="varied.etl")
    shutil.copyfile(sample.path, folder.trace_path(sample.report.key))
    Catalog(folder).settle()
    return folder


@pytest.fixture(scope="module")
def both(folder: TraceFolder, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    cluster.sql("CREATE DATABASE answers")
    server = TraceServer(cluster.url("answers"), building=tmp_path_factory.mktemp("building"))
    move(folder, server)
    server.close()
    clients = [
        TestClient(create_app(Settings(database=place, uploads=False)), base_url="http://127.0.0.1", follow_redirects=False)
        for place in (folder.root, cluster.url("answers"))
    ]
    with clients[0] as one, clients[1] as other:
        yield Both(one, other)


@pytest.mark.parametrize("name", LISTS)
def test_every_list_in_every_order(both: Both, sample: Imported, name: str) -> None:
    paths = [path for key in (sample.report.key, KEY, "cccc00000003") for path in list_paths(key) if f"/{name}?" in path]
    assert both.differing(paths, "application/json") == []


def test_every_filter(both: Both) -> None:
    paths = [f"/t/{KEY}/{name}?{quote(query, safe='=&')}" for name, query, *_ in CASES]
    assert both.differing(paths, "application/json") == []


def test_every_list_as_a_file(both: Both, sample: Imported) -> None:
    assert both.differing([f"/t/{key}/{name}" for key in (sample.report.key, KEY) for name in LISTS], "text/csv") == []


def test_every_page_that_links_lead_to(both: Both, folder: TraceFolder) -> None:
    for key in set(folder.trace_keys()) - {OTHER}:
        paths = linked_paths(both.folder, key)
        assert len(paths) > 50
        assert both.differing(paths, "text/html") == []  # with the figures, which a page as JSON is without
        assert both.differing([path for path in paths if "?" not in path], "application/json") == []


def test_every_page_over_all_traces(both: Both) -> None:
    orders = {"": traces.SORTS} | {f"group={name}&": grouping.sorts for name, grouping in traces.GROUPINGS.items()}
    sorts = [f"/?{group}sort={sign}{sort.key}" for group, some in orders.items() for sort in some for sign in ("", "-")]
    sorts += [f"/findings?sort={sign}{sort.key}" for sort in all_findings.SORTS for sign in ("", "-")]
    assert both.differing([*ACROSS, *sorts], "application/json") == []
    assert both.differing([*ACROSS], "text/html") == []


def test_the_next_pages_of_a_list(both: Both, sample: Imported) -> None:
    for name in LISTS:
        path: str | None = f"/t/{sample.report.key}/{name}?limit=7"
        for _ in range(4):
            if path is None:
                break
            assert both.differing([path], "application/json") == []
            path = both.folder.get(path, headers={"Accept": "application/json"}).json()["listing"]["next"]
