"""What is too heavy for a page says so, and leads to a narrower range."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.queries import heap_compare
from collector.errors import StoreSlow
from tests.build import Trace, heap, system
from tests.build.answers import text_of
from tests.build.database import built_database
from tests.build.events import PID
from tests.build.imported import ImportTrace
from tests.build.served import served
from tests.build.small_trace import KEY, small_folder

HEAP = f"/t/{KEY}/heap/4242@0"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with served(small_folder(tmp_path)) as made:
        yield made


def links_to(page: str, text: str) -> list[str]:
    """Where the links with a text lead."""
    return [unescape(href) for href in re.findall(rf'href="([^"]*)">{text}<', page)]


@pytest.mark.parametrize(
    ("module", "page", "text"),
    [
        ("app.views.heap", "", "the middle half of this one"),
        ("app.views.heap_flame", "/flame", "The middle half of this one"),
        ("app.views.heap_growth", "/growth", "the middle half of this one"),
    ],
)
def test_a_range_with_too_many_blocks_leads_to_a_narrower_one(
    import_trace: ImportTrace, monkeypatch: pytest.MonkeyPatch, module: str, page: str, text: str
) -> None:
    blocks = [heap.alloc(at_us=2_000 * n + 10, address=0x5000 + 0x100 * n, size=64) for n in range(40)]
    trace = import_trace(Trace().cpu(0, system.process_start(at_us=1, pid=PID), *blocks))
    ((process,),) = trace.rows("SELECT DISTINCT process FROM v_allocations")
    path = f"/t/{trace.report.key}/heap/{process}{page}"
    with served(trace.folder) as client:
        assert not links_to(client.get(path).text, text)
        monkeypatch.setattr(f"{module}.MAX_BLOCKS", 15)

        heavy = client.get(f"{path}?from=20000000&to=60000000", headers={"Cache-Control": "no-store"})

        assert heavy.status_code == 200
        assert "blocks began in this range" in heavy.text, text_of(heavy.text)
        (narrower,) = links_to(heavy.text, text)
        assert narrower == f"{path}?from=30000000&to=50000000"
        assert not links_to(client.get(narrower).text, text)


def test_a_comparison_that_takes_too_long_leads_to_lighter_ones(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_slow(*_: object, **__: object) -> object:
        raise StoreSlow("too slow")

    monkeypatch.setattr(heap_compare, "compare", too_slow)
    page = client.get(f"{HEAP}/compare?a=20s&b=40s").text
    assert "takes too long" in page
    assert links_to(page, "earlier moments") == [f"{HEAP}/compare?a=5000000000&b=10000000000"]
    (timeline,) = links_to(page, "the heap timeline of the first tenth between them")
    assert timeline == f"{HEAP}?from=20000000000&to=22000000000"
    assert client.get(timeline).status_code == 200


@pytest.mark.parametrize(
    ("query", "first", "second"),
    [
        ("sort=-sockets", (0, 30_000_000_000), (30_000_000_000, 60_000_000_000)),
        ("from=10s&to=20s", (10_000_000_000, 15_000_000_000), (15_000_000_000, 20_000_000_000)),
    ],
)
def test_a_question_that_takes_too_long_leads_to_parts_of_its_range(
    tmp_path: Path, query: str, first: tuple[int, int], second: tuple[int, int]
) -> None:
    rows = [{"pid": number, "image": f"p{number}.exe", "first_ns": number} for number in range(60_000)]
    path = f"/t/{KEY}/processes?name=nothing-like-this&{query}"
    with served(built_database(tmp_path, {"process": rows}), query_seconds=0.000_001) as client:
        answer = client.get(path)
        data = client.get(f"{path}&format=json").json()
    assert answer.status_code == 503
    kept = "&".join(part for part in path.split("&") if not part.startswith(("from=", "to=")))
    assert links_to(answer.text, "the first half of this range") == [f"{kept}&from={first[0]}&to={first[1]}"]
    assert links_to(answer.text, "its second half") == [f"{kept}&from={second[0]}&to={second[1]}"]
    assert [way["text"] for way in data["ways"]] == ["the first half of this range", "its second half", "its first tenth"]


def test_a_page_without_a_range_offers_none(tmp_path: Path) -> None:
    with served(small_folder(tmp_path), query_seconds=0.000_001) as client:
        answer = client.get(f"/t/{KEY}/stacks/ffffeeee")
    assert "half of this range" not in answer.text
