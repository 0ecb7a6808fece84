"""In which order buffers are loaded, and what their sequence numbers tell.

Rules: etl-format S6. The buffers of one processor follow each other in time, and their sequence numbers rise; over all processors the
numbers have no gap unless a buffer was lost or never used.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collector.losses import END_OF_TIME
from collector.raw import Int64s
from collector.readers.etl_index import BufferIndex

__all__ = ["BufferOrder", "SequenceGap", "order_buffers", "sequence_gaps", "time_limits"]

_HUNDRED_YEARS_SECONDS = 3_155_760_000
_INT64 = np.iinfo(np.int64)
_GREATEST_GAP = 1 << 16  # a wider one is a damaged number


@dataclass(frozen=True, slots=True)
class BufferOrder:
    """When each buffer is needed; arrays int64 (buffers,), in file order."""

    start: Int64s
    """Time from which on its records may be wanted: that of its first record, or an earlier one where that is not known."""
    rank: Int64s
    """Place in (cpu, sequence, file) order, which decides among equal time stamps."""
    loading: Int64s
    """Buffer numbers in the order of (start, rank)."""
    following: Int64s
    """Start of the next buffer of the same processor, END_OF_TIME where there is none."""
    faults: Int64s
    """Buffers whose sequence number repeats or contradicts their time."""


@dataclass(frozen=True, slots=True)
class SequenceGap:
    """Missing sequence numbers between two buffers."""

    missing: int
    before: int
    """Buffer with the last number before the gap."""
    after: int
    first_ticks: int
    last_ticks: int | None
    """Until when a lost buffer of the gap may have been filled; None: until the end."""


def time_limits(index: BufferIndex, first_ticks: int, ticks_per_second: int) -> tuple[int, int, int]:
    """Time 0, and the first and last time stamp that can be right: a hundred years around it.

    Time 0 is the time stamp of the log file header unless most buffers begin more than a hundred years away from it; then it is
    the earliest believable one of theirs.
    """
    reach = _HUNDRED_YEARS_SECONDS * ticks_per_second
    timed = index.first_ticks[1:][index.has_ticks[1:]]
    zero = first_ticks
    if 2 * np.count_nonzero(_near(timed, first_ticks, reach)) < timed.size:
        zero = int(timed[_near(timed, int(np.sort(timed)[timed.size // 2]), reach)].min())
    return zero, max(zero - reach, _INT64.min), min(zero + reach, _INT64.max)


def _near(ticks: Int64s, middle: int, reach: int) -> NDArray[np.bool_]:
    return (ticks >= max(middle - reach, _INT64.min)) & (ticks <= min(middle + reach, _INT64.max))


def order_buffers(index: BufferIndex, *, low: int, high: int, fallback: int) -> BufferOrder:
    """Order the buffers of a file.

    Args:
        low, high: first and last time stamp that can be right; a buffer that begins with another counts as untimed.
        fallback: start of untimed buffers that no buffer of their processor precedes, when no buffer has a time.
    """
    n = len(index)
    by_rank = np.lexsort((np.arange(n), index.sequence, index.cpu))
    rank = np.empty(n, np.int64)
    rank[by_rank] = np.arange(n)
    cpu = index.cpu[by_rank]
    is_timed = (index.has_ticks & (index.first_ticks >= low) & (index.first_ticks <= high))[by_rank]
    ticks = index.first_ticks[by_rank]
    # An untimed buffer may hold timed records: it is needed as early as the buffer before it.
    is_first = np.concatenate(([True], cpu[1:] != cpu[:-1]))
    group_at = np.maximum.accumulate(np.where(is_first, np.arange(n), 0))
    source = np.maximum.accumulate(np.where(is_timed, np.arange(n), -1))
    earliest = int(ticks[is_timed].min()) if is_timed.any() else fallback
    start = np.where(source >= group_at, ticks[source], earliest)
    faults = _contradictions(start, cpu, by_rank)
    start = _without_late_ones(start, cpu)
    in_file_order = np.empty(n, np.int64)
    in_file_order[by_rank] = start
    following = np.empty(n, np.int64)
    following[by_rank] = np.where(np.append(is_first[1:], True), END_OF_TIME, np.append(start[1:], 0))
    loading = np.lexsort((rank, in_file_order))
    return BufferOrder(in_file_order, rank, loading, following, np.unique(np.append(faults, _repeated(index)), return_index=True)[0])


def _contradictions(start: Int64s, cpu: Int64s, by_rank: Int64s) -> Int64s:
    """Buffers that begin before the one with the sequence number before theirs, on the same processor.

    The header buffer stands first whatever its time: merging may add events from before the session.
    """
    falls = (start[1:] < start[:-1]) & (cpu[1:] == cpu[:-1]) & (by_rank[:-1] != 0) & (by_rank[1:] != 0)
    contradicting: Int64s = by_rank[1:][falls]
    return contradicting


def _repeated(index: BufferIndex) -> Int64s:
    """Buffers whose sequence number an earlier buffer of the file has already."""
    _, first = np.unique(index.sequence, return_index=True)
    is_repeated = np.ones(len(index), np.bool_)
    is_repeated[first] = False
    return np.flatnonzero(is_repeated)


def _without_late_ones(start: Int64s, cpu: Int64s) -> Int64s:
    """Pull back single buffers that seem to begin after their successor but not their predecessor: their first time stamp is damaged.

    Loading a buffer too early costs memory, loading it too late would put its records too late.
    """
    n = start.size
    if n < 2:
        return start
    same_next = np.concatenate((cpu[1:] == cpu[:-1], [False]))
    same_last = np.concatenate(([False], cpu[1:] == cpu[:-1]))
    following = np.where(same_next, np.roll(start, -1), start)
    preceding = np.where(same_last, np.roll(start, 1), _INT64.min)
    is_late = (start > following) & (following >= preceding)
    return np.where(is_late, np.where(same_last, preceding, following), start)


def sequence_gaps(index: BufferIndex, order: BufferOrder) -> list[SequenceGap]:
    """Missing sequence numbers, in their order; the header buffer, which has none, is left out.

    One pass from the highest number down, which keeps the start of each processor's next buffer.
    """
    numbers = np.arange(1, len(index))
    numbers = numbers[np.argsort(index.sequence[1:], kind="stable")]
    sequence = index.sequence[numbers]
    with np.errstate(over="ignore"):
        step = sequence[1:] - sequence[:-1]
    is_gap = (step > 1) & (step <= _GREATEST_GAP)
    if not is_gap.any():
        return []
    _, cpu = np.unique(index.cpu[numbers], return_inverse=True)
    following = np.full(int(cpu.max()) + 1, END_OF_TIME)
    gaps = []
    for at in range(numbers.size - 2, -1, -1):
        following[cpu[at + 1]] = order.start[numbers[at + 1]]
        if is_gap[at]:
            # Whose the lost buffers were nobody knows: the latest moment at which their processor can have gone on to its next buffer.
            latest = int(following.max())
            gaps.append(
                SequenceGap(
                    missing=int(step[at]) - 1,
                    before=int(numbers[at]),
                    after=int(numbers[at + 1]),
                    first_ticks=int(order.start[numbers[at]]),
                    last_ticks=None if latest == END_OF_TIME else latest,
                )
            )
    return gaps[::-1]
