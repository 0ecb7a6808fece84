"""Which roll-up buckets a chart reads, so that it has as many points for a second as for a day."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["LEVELS", "LONG_NS", "Bucket", "joined", "level_for", "pieces"]

Point = TypeVar("Point")

LEVELS = (20, 24, 28, 32, 36)
"""The collector's roll-ups have buckets of 2^level ns."""

LONG_NS = 1 << 30
"""What lives longer than this is found by an index of its own (`collector.store.tables`)."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """The half-open time of a bucket."""

    from_ns: int
    to_ns: int


def level_for(from_ns: int, to_ns: int, *, most: int) -> int:
    """The finest level of which a range has at most `most` buckets; the coarsest where even that has more."""
    return next((level for level in LEVELS if ((to_ns - from_ns) >> level) + 1 <= most), LEVELS[-1])


def joined(
    points: Iterable[Point], from_ns: int, to_ns: int, *, most: int, at: Callable[[Point], int], join: Callable[[Point, Point], Point]
) -> list[Point]:
    """Points of buckets, in time order, so that there are no more than `most` and one, also where the coarsest level has more.

    `at` is a time in the bucket of a point, `join` makes one point of two that follow each other. A trace of a day needs it, and one
    whose times are damaged, which may span a century.
    """
    level = LEVELS[-1]
    while ((to_ns - from_ns) >> level) + 1 > most:
        level += 1
    if level == LEVELS[-1]:
        return list(points)
    found: list[Point] = []
    stretch: int | None = None
    for point in points:
        if at(point) >> level == stretch:
            found[-1] = join(found[-1], point)
        else:
            found.append(point)
            stretch = at(point) >> level
    return found


def pieces(from_ns: int, to_ns: int, levels: Sequence[int] = LEVELS) -> list[tuple[int, int, int]]:
    """A range as few buckets of several levels: (level, first bucket, end bucket), in time order.

    Sums over long ranges take the coarse buckets and only at their edges the finer ones. The range is cut to whole buckets of the
    finest level: its start rounds up, its end down.
    """
    finest = levels[0]
    first, end = -(-from_ns >> finest), to_ns >> finest
    if first >= end:
        return []
    before: list[tuple[int, int, int]] = []
    behind: list[tuple[int, int, int]] = []
    for level, coarser in zip(levels, [*levels[1:], None], strict=True):
        if coarser is None:
            if first < end:
                before.append((level, first, end))
            break
        shift = coarser - level
        up, down = -(-first >> shift), end >> shift
        if up >= down:
            before.append((level, first, end))
            break
        if first < up << shift:
            before.append((level, first, up << shift))
        if down << shift < end:
            behind.append((level, down << shift, end))
        first, end = up, down
    return before + behind[::-1]
