"""What the exact replay of a window does, one step after the other."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.model.heap_records import ALLOCATED, CREATED, DESTROYED, FREED, MOVED_TO, RESIZED, SNAPSHOTS, HeapRecords, Touches

__all__ = ["Alloc", "Create", "Destroy", "Exit", "Free", "ReAlloc", "Shown", "Sight", "Step", "block_steps", "heap_steps"]

Bools: TypeAlias = NDArray[np.bool_]
Int64s: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sight:
    """The first record of a heap handle that the trace did not see created."""

    row: int
    heap: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A snapshot of a heap that was there before."""

    row: int
    heap: int


@dataclass(frozen=True, slots=True)
class Create:
    """A heap was made."""

    row: int
    heap: int
    tid: int
    flags: int


@dataclass(frozen=True, slots=True)
class Destroy:
    """A heap is gone."""

    row: int
    heap: int
    tid: int


@dataclass(frozen=True, slots=True)
class Exit:
    """A process ended; `heaps` are its handles."""

    row: int
    process: int
    heaps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Alloc:
    """A block was handed out; `place` is an index of Places."""

    row: int
    heap: int
    tid: int
    place: int
    size: int
    source: int


@dataclass(frozen=True, slots=True)
class Free:
    """A block was given back."""

    row: int
    heap: int
    tid: int
    place: int


@dataclass(frozen=True, slots=True)
class ReAlloc:
    """A reallocation that worked; `old` is -1 where it had no old address, and equal to `new` in place."""

    row: int
    heap: int
    tid: int
    new: int
    old: int
    size: int
    told_size: int
    source: int


Step: TypeAlias = Sight | Shown | Create | Destroy | Exit | Alloc | Free | ReAlloc


def block_steps(touches: Touches, is_exact: Bools, records: HeapRecords) -> list[Step]:
    """Steps of the touches of exact groups, in no order; `is_exact` by group."""
    chosen = np.flatnonzero(is_exact[touches.group])
    if not chosen.size:
        return []
    steps: list[Step] = []

    def columns(kind: int) -> tuple[Int64s, ...]:
        these = chosen[touches.kind[chosen] == kind]
        record = touches.record[these]
        place = touches.places[touches.group[these]]
        return these, records.at[record], records.rows[record], records.heaps[record], records.tids[record], place

    _, at, *common = columns(ALLOCATED)
    if at.size:
        allocs = records.columns["HeapAlloc"]
        sizes, sources = allocs.numbers("alloc_size")[at], allocs.numbers("source_id")[at]
        steps += map(Alloc, *(column.tolist() for column in (*common, sizes, sources)))
    _, at, *common = columns(FREED)
    steps += map(Free, *(column.tolist() for column in common))
    for kind in (RESIZED, MOVED_TO):
        these, at, *common = columns(kind)
        if at.size:
            partner = touches.partner[these]
            old = np.where(partner >= 0, touches.places[touches.group[partner]], -1) if kind == MOVED_TO else common[-1]
            source = records.columns["HeapReAlloc"].numbers("source_id")[at]
            steps += map(ReAlloc, *(c.tolist() for c in (*common, old, touches.size[these], touches.told_size[these], source)))
    return steps


def heap_steps(records: HeapRecords) -> list[Step]:
    """First sights, snapshots, creations and destructions of heaps, in no order."""
    steps: list[Step] = [
        Sight(int(records.rows[record]), heap.index) for record, heap in records.new_heaps if records.kinds[record] != CREATED
    ]
    shown = np.flatnonzero(np.isin(records.kinds, SNAPSHOTS))
    steps += map(Shown, records.rows[shown].tolist(), records.heaps[shown].tolist())
    created, destroyed = records.of(CREATED), records.of(DESTROYED)
    if created.size:
        flags = records.columns["HeapCreate"].numbers("heap_flags")[records.at[created]]
        steps += map(Create, *(c.tolist() for c in (records.rows[created], records.heaps[created], records.tids[created], flags)))
    steps += map(Destroy, *(c.tolist() for c in (records.rows[destroyed], records.heaps[destroyed], records.tids[destroyed])))
    return steps
