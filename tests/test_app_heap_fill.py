"""Leak or fragmentation: held against committed memory, and the sentence that they make."""

import pytest

from app.explain_heap import fill_answer
from app.queries.heap_fill import FillPoint, fill_points
from app.queries.heap_timeline import HeapScope
from tests.build import Trace, heap, system
from tests.build.answers import as_json, text_of
from tests.build.imported import ImportTrace
from tests.build.served import served

MB = 1_000_000


def points(*amounts: tuple[int, int], free: int | None = None) -> list[FillPoint]:
    """Moments a second apart, of (committed, held) in MB."""
    return [FillPoint(second * 1_000_000_000, committed * MB, free, held * MB, held) for second, (committed, held) in enumerate(amounts)]


@pytest.mark.parametrize(
    ("amounts", "verdict", "words"),
    [
        ([(10, 2), (20, 11)], "held", "grew by 10.0 MB to 20.0 MB, held memory by 9.00 MB, 90 % of that."),
        ([(10, 2), (20, 4)], "fragmented", "grew by 10.0 MB to 20.0 MB, held memory by 2.00 MB, 20 % of that."),
        ([(10, 2), (20, 1)], "fragmented", "held memory fell by 1.00 MB."),
        ([(10, 2), (20, 2)], "fragmented", "held memory not at all."),
        ([(10, 2), (20, 7)], "both", "held memory by 5.00 MB, 50 % of that."),
        ([(10, 2), (10, 8)], "neither", "committed memory stays at 10.0 MB, of which the known blocks fill 80 %."),
        ([(100, 80), (101, 80)], "neither", "committed memory hardly grew, to 101 MB"),
        ([(10, 2), (5, 4)], "neither", "committed memory fell to 5.00 MB"),
        ([(10, 1), (10, 9), (10, 2)], "neither", "fill 20 %; they filled 90 % at +1.000 000 s, so it may be kept from that peak."),
        ([(10, 3)], "neither", "committed memory stays at 10.0 MB, of which the known blocks fill 30 %."),
        ([(1, 0), (1, 26), (1, 0)], "unknown", "at +1.000 000 s known blocks held 26.0 MB, more than the 1.00 MB that the allocator"),
        ([(1, 1), (1, 1)], "neither", "of which the known blocks fill 100 %."),
        ([], "unknown", "It cannot be said"),
    ],
)
def test_q25_one_sentence_says_leak_or_fragmentation(amounts: list[tuple[int, int]], verdict: str, words: str) -> None:
    found = fill_answer(points(*amounts), create_seen=True)

    assert found.verdict == verdict
    assert words in found.text.replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert "leaked" not in found.text


def test_the_answer_says_what_it_does_not_know() -> None:
    older, known = (fill_answer(points((10, 2), (20, 11)), create_seen=seen) for seen in (False, True))

    assert "blocks from before the trace are unknown" in older.doubt
    assert "blocks from before the trace" not in known.doubt
    assert older.doubt.startswith("Possible, not certain: ")
    assert "large blocks lie outside" in fill_answer(points((10, 2), (20, 30)), create_seen=True).doubt
    assert "reports 3.00 MB of free space" in fill_answer(points((10, 2), (20, 11), free=3 * MB), create_seen=True).text


def story() -> Trace:
    """A heap that grows from 1 to 8 MB of committed memory, of which blocks hold 1 MB; sizes are reported at 1, 50 and 80 ms."""
    sizes = [(1, 1), (50, 4), (80, 8)]
    return Trace().cpu(
        0,
        system.process_start(at_us=1),
        heap.create(at_us=100),
        *(heap.expand(at_us=ms * 1_000, committed=mb << 20, reserved=16 << 20, free_space=mb << 18) for ms, mb in sizes),
        heap.alloc(at_us=2_000, address=heap.HEAP + 0x1000, size=1 << 20),
        heap.alloc(at_us=60_000, address=heap.HEAP + 0x20_0000, size=4 << 20),
        heap.free(at_us=70_000, address=heap.HEAP + 0x20_0000),
        heap.destroy(at_us=100_000),
    )


def test_points_have_the_size_reported_last_and_the_blocks_of_that_moment(import_trace: ImportTrace) -> None:
    db = import_trace(story())
    ((n, process_n),) = db.rows("select n, process_n from heap")
    with db.folder.trace(db.report.key).connect() as connection:
        found = fill_points(connection, HeapScope("heap", n, process_n), 0, 65_000_000, most=3)
        before = fill_points(connection, HeapScope("heap", n, process_n), 0, 500_000, most=3)

    assert [(point.t_ns, point.committed >> 20, point.held_bytes >> 20, point.filled_percent) for point in found] == [
        (1_000_000, 1, 0, 0),
        (33_000_000, 1, 1, 100),
        (65_000_000, 4, 5, 125),
    ]
    assert [point.free_space for point in found] == [1 << 18, 1 << 18, 4 << 18]
    assert before == []


def test_the_pages_of_a_heap_and_its_process_answer(import_trace: ImportTrace) -> None:
    db = import_trace(story())
    process, handle = db.rows("select process, heap || '@' || coalesce(created_ns, first_ns) from v_heaps")[0]
    with served(db.folder) as client:
        path = f"/t/{db.report.key}/heap/{process}"
        one, whole = as_json(client, f"{path}/{handle}"), as_json(client, path)
        growing = as_json(client, f"{path}/{handle}?from=0&to=65 ms")
        table = text_of(client.get(path).text)
        unknown = text_of(client.get(f"{path}/{handle}?from=0&to=500 us").text)

    # Destroyed at 100 ms: what counts is what was there just before.
    assert one["fill"]["answer"]["verdict"] == "fragmented"
    assert "committed memory grew by 7.34 MB to 8.39 MB, held memory by 1.05 MB, 14 % of that" in one["fill"]["answer"]["text"]
    assert growing["fill"]["answer"]["verdict"] == "held"
    assert [(row["verdict"], row["more_committed"] >> 20, row["more_held"] >> 20) for row in whole["fills"]["rows"]] == [
        ("fragmentation, or a peak kept", 7, 1)
    ]
    assert [row["held_bytes"] for row in whole["fills"]["rows"]] == [1 << 20]
    assert "What it had last is what it had at the end of the range, or just before it was destroyed." in table
    assert "Committed, last Held, last" in table
    assert "It cannot be said" in unknown
