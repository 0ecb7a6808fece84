"""The part of the heap pages that answers: leak or fragmentation?"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.deps import OpenTrace
from app.explain_heap import FillAnswer, fill_answer
from app.format import Address
from app.listing import Column, Listing, plain_listing
from app.queries.heap_fill import FillPoint, fill_points
from app.queries.heap_pages import HeapRow
from app.queries.heap_timeline import HeapScope

__all__ = ["FillPart", "FillRow", "fill_part", "fill_table"]

POINTS_SHOWN = 9
HEAPS_SHOWN = 8

POINT_COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("committed", "Committed", "bytes", keeps=True, term="committed"),
    Column("held_bytes", "Held", "bytes", term="held"),
    Column("held_blocks", "Blocks held", "count"),
    Column("filled_percent", "Filled, %", "number"),
    Column("free_space", "Free space", "bytes", term="free space"),
)
HEAP_COLUMNS = (
    Column("handle", "Heap", "one_heap", keeps=True),
    Column("verdict", "What grew", "text", keeps=True),
    Column("more_committed", "Committed", "more_bytes", term="committed"),
    Column("more_held", "Held", "more_bytes", term="held"),
    Column("committed", "Committed, last", "bytes", term="committed"),
    Column("held_bytes", "Held, last", "bytes", term="held"),
    Column("filled_percent", "Filled, %", "number"),
)

_WORDS = {
    "held": "memory still held",
    "fragmented": "fragmentation, or a peak kept",
    "both": "some of both",
    "neither": "neither",
    "unknown": "cannot be said",
}


@dataclass(frozen=True, slots=True)
class FillPart:
    """The answer for one heap in a range, with the moments behind it."""

    answer: FillAnswer
    points: Listing


@dataclass(frozen=True, slots=True)
class FillRow:
    """The answer for one of a process's heaps. Changes are from the first moment of the range at which its size is known to its last.

    That is the end of the range, or just before the heap was destroyed.
    """

    heap: str
    process: str
    handle: Address
    life: int
    verdict: str
    more_committed: int
    more_held: int
    committed: int
    held_bytes: int
    filled_percent: int | None


def fill_part(trace: OpenTrace, heap: HeapRow, process_n: int, shown: tuple[int, int], path: str) -> FillPart:
    """Held against committed memory of one heap."""
    points = fill_points(trace.db, HeapScope("heap", heap.n, process_n), *_lived(heap, shown), most=POINTS_SHOWN)
    answer = fill_answer(points, create_seen=heap.created_ns is not None)
    return FillPart(answer, plain_listing("fill", path, POINT_COLUMNS, points, FillPoint))


def fill_table(trace: OpenTrace, heaps: Sequence[HeapRow], process_n: int, shown: tuple[int, int], path: str) -> Listing:
    """The same in a line for each of the heaps that have the most committed; those without a known size are left out."""
    biggest = sorted((heap for heap in heaps if heap.committed is not None), key=lambda heap: -(heap.committed or 0))[:HEAPS_SHOWN]
    rows = []
    for heap in biggest:
        points = fill_points(trace.db, HeapScope("heap", heap.n, process_n), *_lived(heap, shown), most=2)
        if points:
            first, last = points[0], points[-1]
            rows.append(
                FillRow(
                    heap=heap.heap,
                    process=heap.process,
                    handle=heap.handle,
                    life=heap.life,
                    verdict=_WORDS[fill_answer(points, create_seen=heap.created_ns is not None).verdict],
                    more_committed=last.committed - first.committed,
                    more_held=last.held_bytes - first.held_bytes,
                    committed=last.committed,
                    held_bytes=last.held_bytes,
                    filled_percent=last.filled_percent,
                )
            )
    return plain_listing("fills", path, HEAP_COLUMNS, rows, FillRow)


def _lived(heap: HeapRow, shown: tuple[int, int]) -> tuple[int, int]:
    """The range while the heap was there: just before its end all is still held."""
    until = shown[1] if heap.destroyed_ns is None else min(shown[1], heap.destroyed_ns - 1)
    return min(shown[0], until), until
