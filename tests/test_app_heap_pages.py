"""The heap pages: timelines, windows, heaps and allocations of built traces, and of the reference story."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection

from app.queries.heap_timeline import MAX_STEPS, HeapScope, heap_timeline
from app.queries.heap_window import heap_window
from tests.build import EXIT, Trace, afd, heap, system
from tests.build.answers import as_json, figure_in, text_of
from tests.build.database import BUILT_KEY, built_database
from tests.build.imported import Imported, ImportTrace, collect
from tests.build.served import served

SECOND = 1_000_000_000
CACHE, PARSE = (0x7FF6_A000_1120,), (0x7FF6_A000_2044,)
A, B, C = (heap.HEAP + offset for offset in (0x1000, 0x2000, 0x3000))


def small_heap() -> Trace:
    """app.exe allocates three blocks: A is freed and its address used again, B is resized and stays, C is temporary."""
    return Trace().cpu(
        0,
        system.process_start(at_us=1, pid=4120),
        heap.create(at_us=900),
        heap.alloc(at_us=1_000, address=A, size=64, stack=CACHE),
        heap.alloc(at_us=2_000, address=B, size=256, stack=PARSE),
        heap.free(at_us=3_000, address=A),
        heap.alloc(at_us=4_000, address=A, size=32, stack=CACHE),
        heap.realloc(at_us=5_000, new=B, old=B, new_size=512, old_size=256),
        heap.alloc(at_us=6_000, address=C, size=1024, stack=PARSE),
        heap.free(at_us=6_500, address=C),
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[TestClient, str]:
    imported = collect(small_heap(), tmp_path_factory.mktemp("heap"))
    return served(imported.folder), f"/t/{imported.report.key}/heap"


def process_of(client: TestClient, path: str) -> str:
    """The link of the only process with a heap."""
    (row,) = as_json(client, path)["listing"]["rows"]
    link: str = row["process"]["link"]
    return link


# ---------------------------------------------------------------------------------------------------- processes


def test_q24_processes_show_what_they_hold_and_their_peak(small: tuple[TestClient, str]) -> None:
    client, path = small
    (row,) = as_json(client, path)["listing"]["rows"]

    assert (row["live_bytes"], row["live_blocks"], row["peak_bytes"]) == (544, 2, 1568)
    assert (row["allocs"], row["frees"], row["heaps"]) == (4, 2, 1)


def test_without_heap_records_the_page_says_how_to_record_them(tmp_path: Path) -> None:
    with served(built_database(tmp_path, {})) as client:
        answer = client.get(f"/t/{BUILT_KEY}/heap")

    assert answer.status_code == 200
    assert "xperf -start HeapSession" in answer.text


# ---------------------------------------------------------------------------------------------------- timeline


def test_few_changes_are_exact_steps_that_say_since_when_they_count(small: tuple[TestClient, str]) -> None:
    client, path = small
    figure = figure_in(client.get(f"{path}/{process_of(client, path)}").text, "heap-timeline")
    line = next(trace for trace in figure["data"] if trace["name"] == "live bytes")

    assert line["y"] == [0, 64, 320, 256, 288, 544, 1568, 544, 544]
    assert line["line"] == {"shape": "hv", "width": 1.5, "color": "var(--heap)"}
    assert figure["layout"]["yaxis"]["title"]["text"] == "change since<br>the trace began"
    peak = next(trace for trace in figure["data"] if trace["name"] == "peak")
    assert peak["y"] == [1568]


def test_a_late_range_begins_with_what_is_live_there(small: tuple[TestClient, str]) -> None:
    client, path = small
    figure = client.get(f"{path}/{process_of(client, path)}/timeline?from=4500000&to=5500000").json()["figure"]
    lines = {trace["name"]: trace["y"] for trace in figure["data"]}

    assert lines["live bytes"] == [288, 544, 544]
    assert lines["live blocks"] == [2, 2, 2]


# ---------------------------------------------------------------------------------------------------- windows


def test_q02_a_window_tells_what_came_what_stayed_and_who_holds_it(small: tuple[TestClient, str]) -> None:
    client, path = small
    window = as_json(client, f"{path}/{process_of(client, path)}?from=1500000&to=6600000")["window"]

    assert window["classes"] == {
        "stayed": 2,
        "stayed_bytes": 32 + 512,
        "passed": 1,
        "passed_bytes": 1024,
        "released": 1,
        "released_bytes": 64,
        "steady": 0,
        "steady_bytes": 0,
    }
    held = [(row["held_bytes"], row["held"], row["allocated"]) for row in window["stacks"]["rows"]]
    assert held == [(512, 1, 2), (32, 1, 1)]
    assert window["stacks"]["rows"][0]["stack"] != window["stacks"]["rows"][1]["stack"]


def test_sizes_are_as_of_the_windows_end(small: tuple[TestClient, str]) -> None:
    client, path = small
    before = as_json(client, f"{path}/{process_of(client, path)}?from=1500000&to=4500000")["window"]["classes"]
    after = as_json(client, f"{path}/{process_of(client, path)}?from=4500000&to=6600000")["window"]["classes"]

    assert (before["stayed"], before["stayed_bytes"]) == (2, 256 + 32)
    assert (after["steady"], after["steady_bytes"]) == (2, 512 + 32)


def test_held_is_never_called_leaked(small: tuple[TestClient, str]) -> None:
    client, path = small
    words = text_of(client.get(f"{path}/{process_of(client, path)}").text)

    assert "Held is not leaked" in words
    assert words.lower().count("leak") == 1


def test_q25_blocks_are_classed_by_size_and_lifetime(small: tuple[TestClient, str]) -> None:
    client, path = small
    window = as_json(client, f"{path}/{process_of(client, path)}")["window"]

    assert [(row["low"], row["high"], row["blocks"]) for row in window["sizes"]] == [
        (17, 32, 1),
        (33, 64, 1),
        (129, 256, 1),
        (513, 1024, 1),
    ]
    assert [(row["low"], row["high"], row["blocks"]) for row in window["lifetimes"]] == [
        (100_000, 1_000_000, 1),
        (1_000_000, 10_000_000, 1),
    ]


# ---------------------------------------------------------------------------------------------------- one heap


def test_one_heap_shows_its_blocks_beside_what_the_allocator_reports(import_trace: ImportTrace) -> None:
    trace = small_heap().cpu(0, heap.expand(at_us=7_000, committed=8192, reserved=65536))
    imported = import_trace(trace)
    process = imported.one("select process from v_heaps")
    with served(imported.folder) as client:
        bare = client.get(f"/t/{imported.report.key}/heap/{process}/0x1a0000")
        path = bare.headers["location"]
        page = as_json(client, path)
        words = text_of(client.get(path).text)
        figure = client.get(f"{path}/timeline").json()["figure"]

    assert (bare.status_code, "0x1a0000@" in path) == (307, True)
    assert page["heap"]["flags"] == "0x2: growable"
    assert (page["live_bytes"], page["heap"]["committed"]) == (544, 8192)
    assert "Blocks known to this trace fill 6 % of what is committed." in words
    assert next(t for t in figure["data"] if t.get("name") == "committed")["y"] == [8192, 8192]
    assert next(trace for trace in figure["data"] if trace["name"] == "live bytes")["y"][-1] == 544


# ---------------------------------------------------------------------------------------------------- one allocation


def test_an_allocation_tells_its_history(small: tuple[TestClient, str]) -> None:
    client, path = small
    block = f"{path}/{process_of(client, path)}/0x1a0000:{A:#x}"
    first, second = as_json(client, f"{block}@2000000"), as_json(client, f"{block}@4000000")

    assert first["sentence"] == "This block was allocated at +0.001\u202f000 s and was freed at +0.003\u202f000 s after 2.00 ms."
    assert second["sentence"] == "This block was allocated at +0.004\u202f000 s and is still held when the trace ends."
    assert [row["generation"] for row in second["generations"]["rows"]] == [1, 2]
    between = client.get(f"{block}@3500000")
    assert between.status_code == 404
    assert "What lived at this address:" in text_of(between.text)
    assert re.findall(r'<a href="([^"]*@\d+)">0x', between.text) == [f"{block}@4000000", f"{block}@1000000"], "the nearest first"
    resized = as_json(client, f"{path}/{process_of(client, path)}/0x1a0000:{B:#x}@2000000")
    assert [(row["old_size"], row["size"]) for row in resized["resizes"]["rows"]] == [(256, 512)]
    assert (resized["allocation"]["size_at_open"], resized["allocation"]["row"]["size"]) == (256, 512)


def test_q11_an_allocation_names_the_operations_that_used_it_and_their_conflict(import_trace: ImportTrace) -> None:
    trace = Trace().cpu(
        0,
        system.process_start(at_us=1),
        afd.opened(at_us=10),
        heap.alloc(at_us=100, address=A, size=4096, stack=CACHE),
        afd.receive(at_us=200, length_bytes=2048, buffer=A + 1024),
        heap.free(at_us=300, address=A),
        afd.receive(at_us=400, enter_exit=EXIT, length_bytes=10, buffer=A + 1024),
    )
    imported = import_trace(trace)
    process, block = imported.rows("select process, allocation from v_allocations")[0]
    with served(imported.folder) as client:
        (user,) = as_json(client, f"/t/{imported.report.key}/heap/{process}/{block}")["users"]["rows"]
        conflict = as_json(client, f"/t/{imported.report.key}/in-flight-frees/{user['socket']}/{user['operation']}")

    assert (user["operation_kind"], user["offset"], user["conflict"]) == ("recv", 1024, "freed_in_flight")
    assert conflict["conflicts"][0]["kind"] == "freed_in_flight"
    assert conflict["sentence"] == "The memory was given back while the operation was using it. Certain, at +0.000\u202f300 s."


def test_q10_an_overlap_has_a_page_of_its_own_with_a_picture(import_trace: ImportTrace) -> None:
    trace = Trace().cpu(
        0,
        system.process_start(at_us=1),
        afd.opened(at_us=10),
        afd.send(at_us=200, length_bytes=2048, buffer=0x1F_0000),
        afd.receive(at_us=300, length_bytes=2048, buffer=0x1F_0400),
        afd.receive(at_us=400, enter_exit=EXIT, length_bytes=10, buffer=0x1F_0400),
        afd.send(at_us=500, enter_exit=EXIT, length_bytes=2048, buffer=0x1F_0000),
    )
    imported = import_trace(trace)
    with served(imported.folder) as client:
        path = f"/t/{imported.report.key}/overlaps"
        assert "/send:0x1f0000@200000/" in client.get(path).text
        page = client.get(f"{path}/0xffff9a0c2a001010@10000/send:0x1f0000@200000/0xffff9a0c2a001010@10000/recv:0x1f0400@300000")
        none = client.get(f"{path}/0xffff9a0c2a001010@10000/recv:0x1f0400@300000/0xffff9a0c2a001010@10000/send:0x1f0000@200000")

    assert "A receive was posted over a send in flight: incoming data may overwrite bytes that are not sent yet." in text_of(page.text)
    shared = next(t for t in figure_in(page.text, "memory-chart")["data"] if "fillpattern" in t)
    assert shared["y"][2] - shared["y"][1] == 1024
    assert none.status_code == 404
    socket = f"/t/{imported.report.key}/sockets/0xffff9a0c2a001010@10000"
    main = none.text[none.text.index("<main") :]
    assert "One of them shares memory here:" in main
    assert [href for href in re.findall(r'href="([^"]*)"', main) if href.startswith("/t/")] == [
        *(f"{path}/0xffff9a0c2a001010@10000/send:0x1f0000@200000/0xffff9a0c2a001010@10000/recv:0x1f0400@300000",),
        *(f"{socket}/recv:0x1f0400@300000", f"{socket}/send:0x1f0000@200000", path),
    ]


# ---------------------------------------------------------------------------------------------------- size


def test_many_changes_become_buckets_with_their_extremes(tmp_path: Path) -> None:
    number = 2 * MAX_STEPS
    each = {"bytes_max": 900, "bytes_end": 10, "allocs": number, "frees": number, "count_end": 1, "count_max": 9}
    rows: dict[str, list[dict[str, object]]] = {
        "process": [{"pid": 7, "image": "app.exe"}],
        "heap": [{"process_n": 1, "handle": 16}],
        "heap_rollup": [
            {"scope": "process", "scope_n": 1, "level": level, "bucket": bucket} | each
            for level in (28, 32, 36)
            for bucket in range((60 * SECOND >> level) + 1)
        ],
    }
    with served(built_database(tmp_path, rows)) as client:
        answer = client.get(f"/t/{BUILT_KEY}/heap/7@0/timeline")

    names = {trace["name"]: trace for trace in answer.json()["figure"]["data"]}
    assert max(names["most"]["y"]) == 900
    assert names["most"]["fill"] == "tonexty"
    assert len(answer.content) < 500_000


# ---------------------------------------------------------------------------------------------------- the reference story


@pytest.fixture(scope="module")
def story(shared_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Imported:
    return collect(shared_dir / "traces" / "story-mixed.etl", tmp_path_factory.mktemp("story"))


@pytest.fixture(scope="module")
def story_db(story: Imported) -> Iterator[Connection]:
    with story.folder.trace(story.report.key).connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def expected(shared_dir: Path) -> dict[str, Any]:
    """What the heap of the story holds. Any: JSON."""
    found: dict[str, Any] = json.loads((shared_dir / "traces" / "story-mixed.expected.json").read_text(encoding="utf-8"))["heap"]
    return found


def scope_of(story: Imported, pid: int) -> HeapScope:
    n = story.one("select n from process where pid = ?", pid)
    return HeapScope("process", n, n)


@pytest.mark.shared
def test_windows_of_the_story_are_exact(story: Imported, story_db: Connection, expected: dict[str, Any]) -> None:
    for window in expected["windows"]:
        classes = heap_window(story_db, scope_of(story, window["pid"]), window["t0_ns"], window["t1_ns"], stacks=5).classes
        assert {
            "AIFO": (classes.stayed, classes.stayed_bytes),
            "AIFI": (classes.passed, classes.passed_bytes),
            "AOFI": (classes.released, classes.released_bytes),
            "AOFO": (classes.steady, classes.steady_bytes),
        } == {name: (window[name]["count"], window[name]["bytes"]) for name in ("AIFI", "AIFO", "AOFI", "AOFO")}, window


@pytest.mark.shared
def test_the_live_heap_of_the_story_is_exact_at_each_second(story: Imported, story_db: Connection, expected: dict[str, Any]) -> None:
    for pid, points in expected["timeline_by_second"].items():
        scope = scope_of(story, int(pid))
        for t_ns, size, count in points[::7]:
            seen = heap_timeline(story_db, scope, t_ns, t_ns + 1)
            assert (seen.bytes_before, seen.count_before) == (size, count) or any(
                (step.t_ns, step.bytes, step.count) == (t_ns, size, count) for step in seen.steps or ()
            ), (pid, t_ns)


@pytest.mark.shared
def test_classes_of_the_story_are_exact(story: Imported, story_db: Connection, expected: dict[str, Any]) -> None:
    sizes: dict[str, int] = {}
    lifetimes: dict[int, int] = {}
    for pid in expected["counters"]:
        window = heap_window(story_db, scope_of(story, int(pid)), 0, 61 * SECOND, stacks=5)
        for row in window.sizes:
            name = f"<={row.high}"
            sizes[name] = sizes.get(name, 0) + row.blocks
        for row in window.lifetimes:
            lifetimes[row.low] = lifetimes.get(row.low, 0) + row.blocks

    assert sizes == expected["size_classes"]
    lows = {"10-100us": 10_000, "10-100ms": 10_000_000, "100ms-1s": 100_000_000, "1-10s": SECOND, ">=10s": 10 * SECOND}
    assert lifetimes == {lows[name]: number for name, number in expected["lifetimes"].items()}
