"""Lists of a trace of some ten thousand rows by every order and by process, and pages of which any part takes too long: none is blank."""

import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, event

from bench.generate import write_trace
from bench.mixes import MIXES
from bench.pages import page_paths
from collector.errors import StoreSlow
from collector.store.engine import TraceFolder
from tests.build.answers import text_of
from tests.build.imported import Imported, collect
from tests.build.served import served
from tests.build.small_trace import KEY, small_folder
from tests.test_app_lists import LISTS, sorts_of

EVENTS = 40_000
LARGE = {"winsock": ("operations", "sockets", "events", "processes", "ports"), "heap": ("allocations", "stacks", "processes")}
"""What each mix has much of."""


@pytest.fixture(scope="module", params=list(LARGE))
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Imported]:
    folder = tmp_path_factory.mktemp(request.param)
    write_trace(folder / "large.etl", MIXES[request.param], EVENTS)
    return request.param, collect(folder / "large.etl", folder)


def test_every_list_has_rows_or_a_reason_in_every_order(large: tuple[str, Imported]) -> None:
    mix, imported = large
    base = f"/t/{imported.report.key}"
    with served(imported.folder) as client:
        for name, module in LISTS.items():
            for sort in ["", *(sign + one.key for one in sorts_of(module) for sign in ("", "-"))]:
                if (name, sort) == ("events", "-time"):
                    continue
                answer = client.get(f"{base}/{name}?format=json&limit=20&sort={sort}")
                assert answer.status_code == 200, (name, sort, answer.text[:300])
                page = answer.json()
                rows = page["listing"]["rows"]
                assert rows or page["empty"]["reason"], (name, sort)
                assert bool(rows) or name not in LARGE[mix], (name, sort)


def test_every_list_can_be_filtered_by_process(large: tuple[str, Imported]) -> None:
    mix, imported = large
    base = f"/t/{imported.report.key}"
    with served(imported.folder) as client:
        pid = client.get(f"{base}/processes?format=json&limit=1").json()["listing"]["rows"][0]["pid"]
        for name, module in LISTS.items():
            if "process" not in {one.key for one in module.FILTERS}:
                continue
            page = client.get(f"{base}/{name}?process={pid}", headers={"Accept": "text/html"})
            assert page.status_code == 200
            assert "<tbody" in page.text or 'class="empty"' in page.text, name
            assert "<tbody" in page.text or name not in LARGE[mix], name
            rows = client.get(f"{base}/{name}?process={pid}&format=json&limit=500").json()["listing"]["rows"]
            assert {row["process"]["pid"] for row in rows if row.get("process")} <= {pid}


def test_a_long_list_comes_in_pages(large: tuple[str, Imported]) -> None:
    mix, imported = large
    with served(imported.folder) as client:
        for name in {"operations", "events", "sockets", "allocations"} & set(LARGE[mix]):
            page = client.get(f"/t/{imported.report.key}/{name}?format=json").json()
            assert len(page["listing"]["rows"]) >= 100, name
            assert page["listing"]["next"], name


class Slow:
    """Lets one statement of a page run into the time limit: the `at`-th; `asked` counts them."""

    def __init__(self) -> None:
        self.at = -1
        self.asked = 0
        self.statement = ""

    def __call__(self, _connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "FROM trace_load" in statement:
            return  # which rows of a server are the trace's: what a page says does not hang on that
        self.asked += 1
        if self.asked == self.at:
            self.statement = statement
            raise StoreSlow("This question takes too long. Narrow the time range or filter by process, socket or heap.")


@pytest.fixture
def slow() -> Iterator[Slow]:
    made = Slow()
    event.listen(Engine, "before_cursor_execute", made)
    yield made
    event.remove(Engine, "before_cursor_execute", made)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> TraceFolder:
    return small_folder(tmp_path_factory.mktemp("small"))


def ask(client: TestClient, path: str, slow: Slow, at: int) -> tuple[int, str]:
    slow.at, slow.asked = at, 0
    answer = client.get(path, headers={"Accept": "text/html", "Cache-Control": "no-store"})
    return answer.status_code, answer.text


def test_any_part_of_any_page_that_takes_too_long_says_so(small: TraceFolder, slow: Slow) -> None:
    parts = 0
    with served(small) as client:
        for path in [*page_paths(small.root, KEY).values(), "/search?q=443", f"/t/{KEY}/heap/4242@0/compare"]:
            ask(client, path, slow, 0)  # what is asked once a folder
            ask(client, path, slow, 0)
            for at in range(1, slow.asked + 1):
                status, text = ask(client, path, slow, at)
                assert slow.asked >= at, path
                parts += 1
                said = text_of(text) if status == 200 else text
                assert status in (200, 503), (path, slow.statement)
                if status == 503:
                    assert "takes too long" in said, (path, slow.statement)
                    assert re.search(r"[Nn]arrow the time range", said), (path, slow.statement)
                else:
                    assert "too long" in said, (path, slow.statement)
    assert parts > 300


@pytest.mark.parametrize("name", ["operations", "sockets", "allocations", "aborts", "overlaps"])
def test_a_list_that_cannot_be_counted_shows_its_rows_and_says_so(small: TraceFolder, slow: Slow, name: str) -> None:
    with served(small) as client:
        path = f"/t/{KEY}/{name}?limit=1"
        ask(client, path, slow, 0)
        ask(client, path, slow, 0)
        found = [ask(client, path, slow, at) for at in range(1, slow.asked + 1)]
    counting = [text for status, text in found if status == 200 and "Which rows carry notes" not in text]
    assert len(counting) == 1
    assert "<tbody" in counting[0]
    assert "Counting them takes too long: narrow the time range" in text_of(counting[0])
