"""What the blocks of a process say about a stretch of time: held and freed, grown, by size and by lifetime.

All times are nanoseconds; a block lives in [start, end), a window is [t0, t1). "Held" says no more than that a block was not freed yet:
caches and singletons are held too.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.words import CERTAINTIES, END_REASONS

__all__ = [
    "LIFETIME_CLASSES",
    "NEVER",
    "SIZE_CLASSES",
    "UNKNOWN",
    "BlockColumns",
    "Candidate",
    "Held",
    "held_at",
    "held_candidates",
    "lifetime_classes",
    "size_classes",
    "sizes_at",
    "window_classes",
]

Bools: TypeAlias = NDArray[np.bool_]
Int64s: TypeAlias = NDArray[np.int64]

UNKNOWN = np.iinfo(np.int64).min
"""Start of a block from before the trace."""
NEVER = np.iinfo(np.int64).max
"""End of a block that is live at the end of the trace."""

_QUARTERS = 4
_SIZE_LIMITS = tuple(1 << power for power in range(4, 21))
SIZE_CLASSES = ("0", *(f"<={limit}" for limit in _SIZE_LIMITS), f">{_SIZE_LIMITS[-1]}")
"""Size 0, then the smallest power of two that fits, from 16 bytes to 1 MiB, then all above."""
_LIFETIME_LIMITS = tuple(10**power for power in (3, 4, 5, 6, 7, 8, 9, 10))
LIFETIME_CLASSES = ("<1us", "1-10us", "10-100us", "100us-1ms", "1-10ms", "10-100ms", "100ms-1s", "1-10s", ">=10s")
"""Lower bounds inclusive."""
_OVER = tuple(END_REASONS.index(reason) for reason in ("freed", "realloc_moved", "heap_destroyed"))


@dataclass(frozen=True, slots=True)
class BlockColumns:
    """Blocks as columns of length n, from the rows of table allocation, and their resizes as columns of length m."""

    start_ns: Int64s
    """UNKNOWN for blocks from before the trace."""
    first_ns: Int64s
    end_ns: Int64s
    """NEVER for live blocks."""
    end_reason: Int64s
    """words.END_REASONS; -1 for live blocks."""
    size_at_open: Int64s
    size: Int64s
    stack: Int64s
    """Owner stack, any number; -1 for none."""
    is_certain: Bools
    """Trust of a live block; true for ended ones."""
    resized: Int64s
    """Index of the block of each resize; resizes ascend in time."""
    resized_ns: Int64s
    resized_to: Int64s


@dataclass(frozen=True, slots=True)
class Held:
    """A number of blocks and their bytes."""

    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stack whose blocks of a window are still held at the end of the trace, with what speaks for and against a leak."""

    stack: int
    held: Held
    first_ns: int
    last_ns: int
    freed_share: float
    """Part of the stack's blocks of the window that were freed."""
    grows_steadily: bool
    """Whether the number of its live blocks is higher at the end of every quarter of the window than at its begin."""
    certainty: str


def sizes_at(blocks: BlockColumns, ns: int) -> Int64s:
    """Size of each block as of a time: all changes up to and including it; int64, shape (n,)."""
    sizes = blocks.size_at_open.copy()
    before = blocks.resized_ns <= ns
    sizes[blocks.resized[before]] = blocks.resized_to[before]  # the last of equal blocks stays
    return sizes


def window_classes(blocks: BlockColumns, t0: int, t1: int) -> dict[str, Held]:
    """Blocks that live at some time in [t0, t1), by where they begin and end.

    AIFI begin and end inside, AIFO begin inside and are held at its end, AOFI are older and end inside, AOFO are there all along.
    Bytes are the size at the end, or as of the last moment before t1 for blocks that are held then.
    """
    seen = (blocks.first_ns < t1) & (blocks.end_ns > t0)
    inside, over = blocks.start_ns >= t0, blocks.end_ns < t1
    sizes = np.where(over, blocks.size, sizes_at(blocks, t1 - 1))
    return {
        name: _held(sizes, seen & (inside == is_inside) & (over == is_over))
        for name, is_inside, is_over in (("AIFI", True, True), ("AIFO", True, False), ("AOFI", False, True), ("AOFO", False, False))
    }


def held_at(blocks: BlockColumns, ns: int) -> dict[int, Held]:
    """Blocks that live at a time, by owner stack: those begun at or before it that end after it."""
    live = (blocks.first_ns <= ns) & (blocks.end_ns > ns)
    return _by_stack(blocks.stack, sizes_at(blocks, ns), live)


def held_candidates(blocks: BlockColumns, t0: int, t1: int, *, end_ns: int, min_age_ns: int = 0) -> list[Candidate]:
    """Stacks whose blocks began in [t0, t1), are live at the end of the trace, and are at least that old then.

    Those that grew in every quarter of the window come first, then by bytes. A survivor proves nothing: caches survive too.

    Args:
        end_ns: end of the trace.
    """
    inside = (blocks.start_ns >= t0) & (blocks.start_ns < t1)
    held = inside & (blocks.end_ns == NEVER) & (end_ns - min_age_ns >= blocks.start_ns)
    freed = inside & np.isin(blocks.end_reason, _OVER)
    borders = [t0 + (t1 - t0) * i // _QUARTERS for i in range(_QUARTERS + 1)]
    levels = [held_at(blocks, border - 1) for border in borders]
    found = []
    for stack, amount in _by_stack(blocks.stack, blocks.size, held).items():
        own = held & (blocks.stack == stack)
        all_of_it = int(np.count_nonzero(inside & (blocks.stack == stack)))
        counts = [level[stack].count if stack in level else 0 for level in levels]
        found.append(
            Candidate(
                stack,
                amount,
                int(blocks.start_ns[own].min()),
                int(blocks.start_ns[own].max()),
                int(np.count_nonzero(freed & (blocks.stack == stack))) / all_of_it,
                all(later > sooner for sooner, later in pairwise(counts)),
                CERTAINTIES[0 if blocks.is_certain[own].all() else 1],
            )
        )
    return sorted(found, key=lambda c: (not c.grows_steadily, -c.held.bytes, -c.held.count, c.stack))


def size_classes(sizes: Int64s) -> dict[str, int]:
    """How many sizes fall into each class; empty classes are left out."""
    at = np.searchsorted(_SIZE_LIMITS, sizes, side="left") + 1
    at[sizes == 0] = 0
    return _named(at, SIZE_CLASSES)


def lifetime_classes(blocks: BlockColumns) -> dict[str, int]:
    """How long blocks lived that began in the trace and were freed, moved or destroyed; empty classes are left out."""
    over = np.isin(blocks.end_reason, _OVER) & (blocks.start_ns != UNKNOWN)
    return _named(np.searchsorted(_LIFETIME_LIMITS, (blocks.end_ns - blocks.start_ns)[over], side="right"), LIFETIME_CLASSES)


def _held(sizes: Int64s, chosen: Bools) -> Held:
    return Held(int(np.count_nonzero(chosen)), int(sizes[chosen].sum()))


def _by_stack(stacks: Int64s, sizes: Int64s, chosen: Bools) -> dict[int, Held]:
    own, which = np.unique(stacks[chosen], return_inverse=True)
    sums = np.zeros(own.size, dtype=np.int64)
    np.add.at(sums, which, sizes[chosen])
    counts = np.bincount(which, minlength=own.size)
    return {s: Held(c, b) for s, c, b in zip(own.tolist(), counts.tolist(), sums.tolist(), strict=True)}


def _named(at: Int64s, names: tuple[str, ...]) -> dict[str, int]:
    counts = np.bincount(at, minlength=len(names)).tolist()
    return {name: count for name, count in zip(names, counts, strict=True) if count}
