"""What a process holds or allocated, by calls: the numbers of a moment and of a window, and what the page says of its limits."""

import json
from pathlib import Path

import pytest

from app.queries.heap_flame import DEEPER, MAX_DEPTH, NO_STACK, CallNode, allocated_tree, call_tree, held_tree, tree_of
from app.queries.heap_timeline import HeapScope, live_before
from app.queries.stacks import is_allocator
from tests.build import Trace, heap, system
from tests.build.answers import as_json, figure_in, text_of
from tests.build.imported import Imported, ImportTrace
from tests.build.served import served

APP, NTDLL = 0x7FF6_A000_0000, 0x7FF8_B000_0000
BLOCK = heap.HEAP + 0x1000
MAIN, LOAD, DRAW = APP + 0x100, APP + 0x1120, APP + 0x2240


def story() -> Trace:
    """Blocks of 100, 300 and 7 bytes, the last without a stack; the second is freed at 5 ms, the first becomes 150 bytes at 8 ms."""
    return Trace().cpu(
        0,
        system.process_start(at_us=1),
        system.image("Load", at_us=2, base=APP, file="app.exe"),
        system.image("Load", at_us=3, base=NTDLL, size=0x20_0000, file="C:\\Windows\\System32\\ntdll.dll"),
        heap.alloc(at_us=1_000, address=BLOCK, size=100, stack=(NTDLL + 0x10, LOAD, MAIN)),
        heap.alloc(at_us=2_000, address=BLOCK + 0x1000, size=300, stack=(NTDLL + 0x10, DRAW, MAIN)),
        heap.alloc(at_us=3_000, address=BLOCK + 0x2000, size=7),
        heap.free(at_us=5_000, address=BLOCK + 0x1000),
        heap.realloc(at_us=8_000, new=BLOCK, old=BLOCK, new_size=150, old_size=100),
    )


def flame_path(db: Imported) -> str:
    return f"/t/{db.report.key}/heap/{db.one('select distinct process from v_allocations')}/flame"


def rows_of(page: dict[str, object]) -> list[tuple[int, str, int, int]]:
    rows = page["rows"]
    assert isinstance(rows, list)
    return [(row["depth"], row["frame"], row["bytes"], row["blocks"]) for row in rows]


def test_a_moment_has_all_that_is_held_then_with_its_size_then(import_trace: ImportTrace) -> None:
    db = import_trace(story())
    with served(db.folder) as client:
        early = as_json(client, f"{flame_path(db)}?at=4 ms")
        late = as_json(client, f"{flame_path(db)}?at=8 ms")

    assert rows_of(early) == [
        (1, "app.exe+0x100", 400, 2),
        (2, "app.exe+0x2240", 300, 1),
        (2, "app.exe+0x1120", 100, 1),
        (1, NO_STACK, 7, 1),
    ]
    assert rows_of(late) == [(1, "app.exe+0x100", 150, 1), (2, "app.exe+0x1120", 150, 1), (1, NO_STACK, 7, 1)]
    assert (early["at_ns"], early["bytes"], early["blocks"]) == (4_000_000, 407, 3)
    assert "held at +0.004" in early["sentence"]


def test_a_window_has_what_was_allocated_or_what_of_it_is_held_at_its_end(import_trace: ImportTrace) -> None:
    db = import_trace(story())
    with served(db.folder) as client:
        held = as_json(client, f"{flame_path(db)}?from=0&to=6000000")
        allocated = as_json(client, f"{flame_path(db)}?from=0&to=6000000&what=allocated&measure=count")
        figure = figure_in(client.get(f"{flame_path(db)}?from=0&to=6000000&what=allocated").text, "flame-chart")

    assert rows_of(held) == [(1, "app.exe+0x100", 100, 1), (2, "app.exe+0x1120", 100, 1), (1, NO_STACK, 7, 1)]
    assert rows_of(allocated)[0] == (1, "app.exe+0x100", 400, 2)
    assert (allocated["measure"], allocated["what"], allocated["rows"][0]["percent"]) == ("count", "allocated", 66.7)
    assert figure["data"][0]["values"] == [407, 400, 300, 100, 7]


def test_each_frame_leads_to_its_stack_and_its_allocations(import_trace: ImportTrace) -> None:
    db = import_trace(story())
    with served(db.folder) as client:
        page = as_json(client, f"{flame_path(db)}?from=0&to=6000000&what=allocated")
        text = client.get(f"{flame_path(db)}?from=0&to=6000000&what=allocated").text
        hrefs = [part.split('"')[0].replace("&amp;", "&") for part in text.split('href="') if "/allocations?process" in part.split('"')[0]]
        lists = [as_json(client, href)["listing"]["rows"] for href in hrefs]
        stacks = [client.get(f"/t/{db.report.key}/stacks/{row['stack']}").status_code for row in page["rows"] if row["stack"]]

    assert [(row["stacks"], row["stack"] is not None) for row in page["rows"]] == [(2, True), (1, True), (1, True), (1, False)]
    assert page["rows"][0]["stack"] == page["rows"][1]["stack"]  # of several the biggest
    assert [[row["size"] for row in rows] for rows in lists] == [[300], [150], [7]]
    assert stacks == [200, 200, 200]


def test_the_page_says_what_its_picture_leaves_out(import_trace: ImportTrace) -> None:
    deep = tuple(APP + 0x1000 + i for i in range(MAX_DEPTH + 60))
    small = [heap.alloc(at_us=3_000 + i, address=BLOCK + 0x2000 + 0x10 * i, size=1, stack=(DRAW + i, MAIN)) for i in range(9)]
    big = heap.alloc(at_us=2_000, address=BLOCK + 0x1000, size=9_000_000, stack=(LOAD, MAIN))
    many = [heap.alloc(at_us=20_000 + i, address=BLOCK + 0xA0_0000 + 0x10 * i, size=0, stack=(LOAD, MAIN)) for i in range(2_000)]
    recursive = heap.alloc(at_us=1_000, address=BLOCK, size=9_000_000, stack=deep)
    db = import_trace(Trace().cpu(0, system.process_start(at_us=1), recursive, big, *small, *many))
    with served(db.folder) as client:
        page = as_json(client, flame_path(db))
        text = text_of(client.get(flame_path(db)).text)

    assert page["facts"] == [
        "1 stack is deeper than 90 frames; their inner frames are one node, “(deeper frames)”. The stack's page has all.",
        "“…others” are calls too small to see: 9 B in all, counted in full.",
    ]
    assert page["facts"][1] in text
    assert sum(row["frame"] == DEEPER for row in page["rows"]) == 1
    assert page["bytes"] == sum(row["bytes"] for row in page["rows"] if row["depth"] == 1) == 18_000_009


def test_a_table_of_many_frames_shows_the_biggest_and_json_all(import_trace: ImportTrace) -> None:
    allocs = [heap.alloc(at_us=100 + i, address=BLOCK + 0x100 * i, size=100, stack=(LOAD + i, MAIN)) for i in range(400)]
    db = import_trace(Trace().cpu(0, system.process_start(at_us=1), *allocs))
    with served(db.folder) as client:
        page = as_json(client, flame_path(db))
        text = client.get(flame_path(db)).text

    assert (len(page["rows"]), page["rows_shown"]) == (401, 300)
    assert text.count('class="keep mono tree') == 300
    assert "JSON has all" in text


@pytest.mark.parametrize("query", ["measure=weight", "what=freed", "at=noon", "from=5&to=5"])
def test_questions_that_cannot_be_asked_are_refused(import_trace: ImportTrace, query: str) -> None:
    db = import_trace(story())
    with served(db.folder) as client:
        assert client.get(f"{flame_path(db)}?{query}").status_code == 400


@pytest.mark.parametrize(
    ("module", "symbol", "expected"),
    [
        ("C:\\Windows\\System32\\ntdll.dll", None, True),
        ("ntdll.dll", "RtlAllocateHeap+0x1c", True),
        ("ntdll.dll", "RtlpAllocateHeapInternal+0x5", True),
        ("ntdll.dll", "LdrpInitializeProcess+0x1c", False),
        ("ucrtbase.dll", "_malloc_base+0x36", True),
        ("ucrtbase.dll", "fopen_s+0x36", False),
        ("msvcrt.dll", None, True),
        ("app.exe", "operator new+0x1c [new.cpp:17]", True),
        ("app.exe", "operator new[]+0x1c", True),
        ("app.exe", "malloc", True),
        ("app.exe", "malloc_or_die+0x4", False),
        ("app.exe", "Heap::grow+0x4", False),
        ("app.exe", None, False),
        (None, None, False),
    ],
)
def test_frames_of_the_allocator(module: str | None, symbol: str | None, *, expected: bool) -> None:
    assert is_allocator(module, symbol) is expected


def test_the_biggest_among_siblings_comes_first_by_either_measure() -> None:
    root = tree_of([(["a"], 100, 1, 1), (["b"], 50, 9, 2)])

    def names(by: str) -> list[str]:
        return [node.name for _, node in root.walk(by=by)]

    assert names("bytes") == ["all", "a", "b"]
    assert names("blocks") == ["all", "b", "a"]


def holds(node: CallNode) -> dict[str, int]:
    return {"count": node.blocks, "bytes": node.bytes}


@pytest.mark.shared
@pytest.mark.parametrize(
    "name", ["worked/HT-01", "worked/HT-04", "worked/HT-05", "worked/HT-06", "worked/HT-07", "story-mixed", "story-32"]
)
def test_trees_have_the_sums_of_the_expected_windows(name: str, shared_dir: Path, import_trace: ImportTrace) -> None:
    document = json.loads((shared_dir / "traces" / f"{name}.expected.json").read_text())
    expected = document.get("heap") or document["expect"]
    db = import_trace(shared_dir / "traces" / f"{name}.etl")
    for window in expected.get("windows", ()):
        (n,) = {
            row[0] for row in db.rows("select process_n from allocation a join process p on p.n = process_n where pid = ?", window["pid"])
        }
        scope, t0, t1 = HeapScope("process", n, n), window["t0_ns"], window["t1_ns"]
        with db.folder.trace(db.report.key).connect() as connection:
            assert holds(call_tree(connection, scope, t0, t1)) == window["AIFO"]
            assert allocated_tree(connection, scope, t0, t1).blocks == window["AIFO"]["count"] + window["AIFI"]["count"]
            held = held_tree(connection, scope, t1 - 1)
            assert holds(held) == {key: window["AIFO"][key] + window["AOFO"][key] for key in ("count", "bytes")}
            assert (held.bytes, held.blocks) == live_before(connection, scope, t1)
