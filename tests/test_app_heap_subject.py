"""Heap pages of one heap of a process, what the allocator reports about it, and records that do not fit."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.queries.heap_gauges import MAX_EXACT, heap_gauges, heap_marks
from collector.store.engine import TraceFolder
from tests.build import Trace, heap, system
from tests.build.answers import as_json, text_of
from tests.build.database import BUILT_KEY, built_database
from tests.build.imported import Imported, ImportTrace, collect
from tests.build.served import served

MAIN, DRAW = 0x7FF6_A000_0100, 0x7FF6_A000_2240
OTHER = 0x2B_0000
SECOND = 1_000_000_000


def two_heaps() -> Trace:
    """One process with two heaps; the last record of the trace is an allocation. The first heap's handle has a second life."""
    return Trace().cpu(
        0,
        system.process_start(at_us=1),
        heap.create(at_us=100),
        heap.create(at_us=200, heap=OTHER),
        heap.alloc(at_us=1_000, address=heap.HEAP + 0x1000, size=100, stack=(MAIN,)),
        heap.alloc(at_us=2_000, address=OTHER + 0x1000, size=1_000, stack=(DRAW, MAIN), heap=OTHER),
        heap.alloc(at_us=3_000, address=OTHER + 0x2000, size=10, stack=(DRAW, MAIN), heap=OTHER),
        heap.free(at_us=4_000, address=OTHER + 0x2000, heap=OTHER),
        heap.create(at_us=5_000),
        heap.alloc(at_us=6_000, address=heap.HEAP + 0x1000, size=7),
        heap.alloc(at_us=7_000, address=heap.HEAP + 0x2000, size=5),
    )


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Imported, TestClient, str]:
    db = collect(two_heaps(), tmp_path_factory.mktemp("two"))
    process = db.one("select distinct process from v_allocations")
    return db, served(db.folder), f"/t/{db.report.key}/heap/{process}"


def test_pages_answer_for_one_heap_that_is_named(two: tuple[Imported, TestClient, str]) -> None:
    _, client, path = two
    of_other = f"heap={OTHER:#x}@200000"

    flame = as_json(client, f"{path}/flame?{of_other}")
    allocated = as_json(client, f"{path}/flame?what=allocated&{of_other}")
    moment = as_json(client, f"{path}/flame?at=3500 us&{of_other}")
    compared = as_json(client, f"{path}/compare?a=1500 us&b=3500 us&{of_other}")
    grown = as_json(client, f"{path}/growth?{of_other}")

    assert (flame["bytes"], flame["blocks"], flame["heap"]) == (1_000, 1, f"{OTHER:#x}@200000")
    assert (allocated["bytes"], allocated["blocks"]) == (1_010, 2)
    assert (moment["bytes"], moment["blocks"]) == (1_010, 2)
    assert (compared["bytes_a"], compared["bytes_b"], compared["blocks_b"]) == (0, 1_010, 2)
    assert [(row["held_bytes"], row["held"]) for row in grown["rows"]] == [(1_000, 1)]
    assert flame["title"].startswith("What heap 0x2b0000 of app.exe")


@pytest.mark.parametrize("page", ["flame", "compare", "growth"])
def test_links_keep_the_heap(two: tuple[Imported, TestClient, str], page: str) -> None:
    _, client, path = two
    html = client.get(f"{path}/{page}?heap={OTHER:#x}").text

    ways = [part.split('"')[0] for part in html.split('class="ways')[1].split("</p>")[0].split('href="')[1:]]
    assert ways
    assert all(f"{OTHER:#x}@200000" in way for way in ways)
    assert f'<option value="{OTHER:#x}@200000" selected>' in html
    assert client.get(f"{path}/{page}?heap=0x99").status_code == 404
    assert client.get(f"{path}/{page}?heap=first").status_code == 400


def test_a_heap_leads_to_its_pages_and_its_allocations(two: tuple[Imported, TestClient, str]) -> None:
    _, client, path = two
    html = client.get(f"{path}/{OTHER:#x}@200000").text
    ways = html.split('id="ways"')[1].split("</p>")[0]

    assert ways.count(f"heap={OTHER:#x}@200000") == 4
    assert f"heap={OTHER:#x}@200000&amp;from=0" in html


def test_a_life_whose_destruction_was_lost_ends_where_the_next_begins(two: tuple[Imported, TestClient, str]) -> None:
    db, client, _ = two
    lists = [as_json(client, f"/t/{db.report.key}/allocations?heap=0x1a0000@{ns}")["listing"]["rows"] for ns in (100_000, 5_000_000)]

    assert [[row["size"] for row in rows] for rows in lists] == [[100], [7, 5]]


def test_the_last_record_of_the_trace_is_part_of_the_whole(two: tuple[Imported, TestClient, str]) -> None:
    _, client, path = two
    page = as_json(client, path)
    classes = page["window"]["classes"]

    assert (classes["stayed"], classes["stayed_bytes"]) == (page["live_blocks"], page["live_bytes"]) == (3, 1_012)
    assert as_json(client, f"{path}/flame")["blocks"] == 3
    assert sum(row["held"] for row in as_json(client, f"{path}/growth")["rows"]) == 3


@pytest.mark.parametrize(
    ("link", "nearest"),
    [
        ("0x1a0000@50000", ["0x1a0000@100000", "0x1a0000@5000000"]),  # before its first life
        (f"{OTHER:#x}@50000", [f"{OTHER:#x}@200000"]),
        ("0xdead@4000000", ["0x1a0000@5000000", f"{OTHER:#x}@200000", "0x1a0000@100000"]),
    ],
)
def test_a_heap_that_is_not_there_leads_to_the_nearest(two: tuple[Imported, TestClient, str], link: str, nearest: list[str]) -> None:
    _, client, path = two
    answers = [client.get(f"{path}/{link}"), client.get(f"{path}/flame?heap={link}")]

    for answer in answers:
        assert answer.status_code == 404
        assert f"has no heap {link} in this trace. The nearest:" in text_of(answer.text)
        hrefs = re.findall(r'href="([^"]*)"', answer.text[answer.text.index("<main") :])
        assert [href for href in hrefs if href.startswith(path)] == [*(f"{path}/{one}" for one in nearest), path]


# ---------------------------------------------------------------------------------------------------- gauges


def gauges(tmp_path: Path, *rows: Mapping[str, object]) -> TraceFolder:
    return built_database(tmp_path, {"heap_gauge": [{"heap_n": 1, "what": "expand", **row} for row in rows]})


def test_few_reports_are_all_given_with_the_sizes_before_the_range(tmp_path: Path) -> None:
    folder = gauges(
        tmp_path,
        {"t_ns": 1, "committed": 10, "reserved": 90},
        {"t_ns": 2, "committed": 20},
        {"t_ns": 5, "committed": 30, "reserved": 95},
        {"t_ns": 6, "what": "lock"},
    )
    with folder.trace(BUILT_KEY).connect() as db:
        found = heap_gauges(db, 1, 4, 9)

    assert [(g.t_ns, g.what, g.committed, g.reserved) for g in found] == [(2, "before", 20, 90), (5, "expand", 30, 95)]


def test_of_many_reports_each_stretch_keeps_its_extremes(tmp_path: Path) -> None:
    many = [{"t_ns": i * 1_000, "committed": 1_000 + i % 7, "reserved": 5_000} for i in range(20_000)]
    many[777]["committed"], many[15_001]["committed"], many[19_990]["reserved"] = 99, 9_999, 7_000
    with gauges(tmp_path, *many).trace(BUILT_KEY).connect() as db:
        found = heap_gauges(db, 1, 0, 20_000_000)

    assert len(found) <= 2 * MAX_EXACT
    assert {777_000, 15_001_000, 19_990_000, 0, 19_999_000} <= {g.t_ns for g in found}
    assert [g.t_ns for g in found] == sorted(g.t_ns for g in found)
    for tenth in range(10):
        mine = [g.committed for g in found if tenth * 2_000_000 <= g.t_ns < (tenth + 1) * 2_000_000]
        assert len(mine) > 50, "reports are left out evenly"


def test_marks_say_how_many_there_are(tmp_path: Path) -> None:
    folder = gauges(tmp_path, *({"t_ns": i, "what": "lock"} for i in range(5)), {"t_ns": 9, "committed": 1})
    with folder.trace(BUILT_KEY).connect() as db:
        assert heap_marks(db, 1, 0, 9, limit=3) == ([(0, "lock"), (1, "lock"), (2, "lock")], 5)
        assert heap_marks(db, 1, 0, 9, limit=9)[1] == 5


# ---------------------------------------------------------------------------------------------------- anomalies


def test_an_error_is_shown_among_any_number_of_frees_of_older_blocks(import_trace: ImportTrace) -> None:
    older = [heap.free(at_us=10 + i, address=heap.HEAP + 0x10 * i) for i in range(300)]
    wrong = [heap.alloc(at_us=1_000), heap.free(at_us=1_001), heap.free(at_us=1_002)]
    db = import_trace(Trace().cpu(0, *older, *wrong))
    with served(db.folder) as client:
        path = f"/t/{db.report.key}/heap/{db.one('select process from v_heaps')}"
        page, words = as_json(client, path), text_of(client.get(path).text)

    assert [row["kind"] for row in page["anomalies"]["rows"]] == ["double_free"]
    assert page["anomaly_numbers"] == {"free_unknown": 300, "double_free": 1}
    assert "freed, from before the trace: 300; this is normal, and not listed" in words
    assert "freed a second time: 1" in words


# ---------------------------------------------------------------------------------------------------- stacks


def test_a_stack_says_what_it_did_besides_allocating(import_trace: ImportTrace) -> None:
    db = import_trace(
        Trace().cpu(
            0,
            heap.alloc(at_us=1_000, stack=(MAIN,)),
            heap.free(at_us=2_000, stack=(DRAW, MAIN)),
            heap.alloc(at_us=3_000, stack=(MAIN,)),
        )
    )
    owner, freer = db.rows("select distinct owner_stack, free_stack from v_allocations where free_stack is not null")[0]
    with served(db.folder) as client:
        made, freed = (client.get(f"/t/{db.report.key}/stacks/{stack}").text for stack in (owner, freer))
        page = as_json(client, f"/t/{db.report.key}/stacks/{freer}")
        listed = as_json(client, f"/t/{db.report.key}/allocations?freed_by={freer}")["listing"]["rows"]

    assert ("made by this stack" in made, "that it freed" in made) == (True, False)
    assert ("made by this stack" in freed, "that it freed" in freed) == (False, True)
    assert [(row["what"], row["times"], row["first_ns"]) for row in page["uses"]["rows"]] == [("blocks freed", 1, 2_000_000)]
    assert [row["first_ns"] for row in listed] == [1_000_000]
