"""The heap records of one window as columns, and what each does to an address.

An allocation or a free touches one address, a reallocation one or two. All touches of a window, sorted by place and then by time, are
what both ways of replaying work on: the plain one on arrays, the exact one record by record.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.model.heap_lives import Heap, Lives
from collector.model.heap_places import Places
from collector.model.processes import Processes
from collector.schema import DecodedBatch, EventColumns

__all__ = [
    "ALLOCATED",
    "CREATED",
    "DESTROYED",
    "FREED",
    "MARK_NAMES",
    "MAX_SIZE",
    "MOVED_FROM",
    "MOVED_TO",
    "REALLOCATED",
    "RESIZED",
    "SNAPSHOTS",
    "Failures",
    "HeapRecords",
    "Touches",
    "failures_of",
    "gather",
    "touches_of",
]

Bools: TypeAlias = NDArray[np.bool_]
Int8s: TypeAlias = NDArray[np.int8]
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]

MARK_NAMES = {
    "HeapExpand": "expand",
    "HeapContract": "contract",
    "HeapSnapShot": "snapshot",
    "HeapCreateSnapShot": "create_snapshot",
    "HeapDestroySnapShot": "destroy_snapshot",
    "HeapExtendSnapShot": "extend_snapshot",
    "HeapCommit": "commit",
    "HeapDecommit": "decommit",
    "HeapLock": "lock",
    "HeapUnlock": "unlock",
    "HeapValidate": "validate",
    "HeapWalk": "walk",
    "HeapSubsegmentAlloc": "subsegment_alloc",
    "HeapSubsegmentFree": "subsegment_free",
    "HeapSubsegmentAllocCached": "subsegment_alloc_cached",
    "HeapSubsegmentFreeCached": "subsegment_free_cached",
    "HeapSubsegmentInit": "subsegment_init",
    "HeapSubSegmentActivated": "subsegment_activated",
    "HeapAffinityManagerEnable": "affinity_manager_enable",
    "HeapAffinitySlotChanged": "affinity_slot_changed",
    "HeapSubsegmentReuseThresholdActivated": "subsegment_reuse_threshold_activated",
    "HeapRangeCreate": "range_create",
}
"""Events that say something of a heap but nothing of a block, and their names in table heap_gauge."""

ALLOCATED, FREED, REALLOCATED, CREATED, DESTROYED = range(5)
"""Kinds of heap records; a higher one is a mark, in the order of MARK_NAMES."""
_NAMES = ("HeapAlloc", "HeapFree", "HeapReAlloc", "HeapCreate", "HeapDestroy", *MARK_NAMES)
SNAPSHOTS = tuple(_NAMES.index(name) for name in ("HeapSnapShot", "HeapDestroySnapShot", "HeapExtendSnapShot"))
"""Kinds of marks that only a heap has which was there before."""
_HANDLE_FIELDS = {"HeapAffinitySlotChanged": "heap", "HeapSubsegmentReuseThresholdActivated": "heap"}
_OWN_PID_FIELDS = {name: "process_id" for name in _NAMES if name.endswith("SnapShot")}

RESIZED, MOVED_TO, MOVED_FROM = 2, 3, 4
"""Touches besides ALLOCATED and FREED: a reallocation in place, and the two sides of any other one."""

MAX_SIZE = 1 << 47
"""The user address space of 64-bit Windows: no block is larger, whatever a damaged record says."""


@dataclass(slots=True)
class HeapRecords:
    """All records of a window that name a heap and come from a known process; columns of length n, in the window's order."""

    columns: dict[str, EventColumns]
    """The window's events by name."""
    rows: Int64s
    kinds: Int8s
    at: Int64s
    """Row of each record in the columns of its own event."""
    processes: Int64s
    heaps: Int32s
    pids: Int64s
    """Process ids of the headers."""
    tids: Int64s
    new_heaps: list[tuple[int, Heap]]
    """Heaps that no earlier window spoke of, with the index of their first record."""
    without_process: int
    """Records left out, as nothing says whose they are."""

    def of(self, kind: int) -> Int64s:
        """Indices of the records of one kind."""
        return np.flatnonzero(self.kinds == kind)


@dataclass(slots=True)
class Touches:
    """What a window does to addresses; columns of length n, sorted by place, then by record."""

    kind: Int8s
    record: Int64s
    """Index into the HeapRecords."""
    size: Int64s
    """Bytes; of an allocation, or the new ones of a reallocation."""
    told_size: Int64s
    """Bytes that a reallocation says there were."""
    group: Int64s
    """Number of the place among those touched."""
    partner: Int64s
    """The other side of a move, -1 where there is none."""
    is_first: Bools
    """Whether the touch is the first of its group."""
    places: Int64s
    """Place of each group."""


def gather(batch: DecodedBatch, processes: Processes, lives: Lives, places: Places) -> HeapRecords:
    """The heap records of a window."""
    columns = {name: found for name in _NAMES if (found := batch.get(name)) is not None}
    raw = batch.raw
    if not columns:
        none = np.zeros(0, dtype=np.int64)
        return HeapRecords({}, none, none.astype(np.int8), none, none, none.astype(np.int32), none, none, [], 0)
    rows = np.concatenate([c.rows for c in columns.values()])
    order = np.argsort(rows)
    rows = rows[order]
    kinds = np.concatenate([np.full(len(c), _NAMES.index(name), dtype=np.int8) for name, c in columns.items()])[order]
    at = np.concatenate([np.arange(len(c), dtype=np.int64) for c in columns.values()])[order]
    handles = np.concatenate([c.numbers(_HANDLE_FIELDS.get(name, "heap_handle")).astype(np.uint64) for name, c in columns.items()])[order]
    pids = raw.pid[rows]
    for name, field in _OWN_PID_FIELDS.items():
        if name in columns:
            named = columns[name].numbers(field).astype(np.int64)
            here = np.flatnonzero(kinds == _NAMES.index(name))
            pids[here] = np.where(named[at[here]] > 0, named[at[here]], pids[here])
    is_owned = pids >= 0
    without_process = int(pids.size - np.count_nonzero(is_owned))
    if without_process:
        rows, kinds, at, handles, pids = rows[is_owned], kinds[is_owned], at[is_owned], handles[is_owned], pids[is_owned]
    owners = processes.of_pids(pids, batch, rows)
    heaps, made = lives.indices(owners, handles)
    new_heaps: list[tuple[int, Heap]] = []
    if made:
        first = np.full(len(lives.heaps), heaps.size, dtype=np.int64)
        np.minimum.at(first, heaps, np.arange(heaps.size))
        new_heaps = sorted(((int(first[heap.index]), heap) for heap in made), key=lambda pair: pair[0])
        for heap in made:
            places.add_heap(heap.index, heap.process)
    return HeapRecords(columns, rows, kinds, at, owners, heaps, raw.pid[rows], raw.tid[rows], new_heaps, without_process)


@dataclass(slots=True)
class Failures:
    """Records that touch no address, by process."""

    allocs: Int64s
    reallocs: Int64s
    impossible: int
    """Sizes above MAX_SIZE."""


def failures_of(records: HeapRecords) -> Failures:
    """Allocations and reallocations that gave no address, and impossible sizes."""
    allocs, reallocs = records.of(ALLOCATED), records.of(REALLOCATED)
    no_block = _field(records, "HeapAlloc", "alloc_address", allocs) == 0
    no_move = _field(records, "HeapReAlloc", "new_alloc_address", reallocs) == 0
    impossible = np.count_nonzero(~no_block & (_sizes(records, "HeapAlloc", "alloc_size", allocs) >= MAX_SIZE))
    impossible += np.count_nonzero(~no_move & (_sizes(records, "HeapReAlloc", "new_alloc_size", reallocs) >= MAX_SIZE))
    return Failures(records.processes[allocs[no_block]], records.processes[reallocs[no_move]], int(impossible))


def touches_of(records: HeapRecords, places: Places) -> Touches:
    """All touches of a window; finds or makes their places.

    Left out are what did nothing to an address: allocations and reallocations that failed (address 0), frees of address 0, and sizes
    above MAX_SIZE.
    """
    allocs, frees, reallocs = records.of(ALLOCATED), records.of(FREED), records.of(REALLOCATED)
    alloc_address, alloc_size = _field(records, "HeapAlloc", "alloc_address", allocs), _sizes(records, "HeapAlloc", "alloc_size", allocs)
    free_address = _field(records, "HeapFree", "free_address", frees)
    new, old = _field(records, "HeapReAlloc", "new_alloc_address", reallocs), _field(records, "HeapReAlloc", "old_alloc_address", reallocs)
    new_size = _sizes(records, "HeapReAlloc", "new_alloc_size", reallocs)
    old_size = _sizes(records, "HeapReAlloc", "old_alloc_size", reallocs)
    opened = np.flatnonzero((alloc_address != 0) & (alloc_size < MAX_SIZE))
    freed = np.flatnonzero(free_address != 0)
    works = (new != 0) & (new_size < MAX_SIZE)
    in_place, moved = np.flatnonzero(works & (new == old)), np.flatnonzero(works & (new != old))
    has_old = moved[old[moved] != 0]

    counts = [opened.size, freed.size, in_place.size, moved.size, has_old.size]
    kind = np.repeat(np.array([ALLOCATED, FREED, RESIZED, MOVED_TO, MOVED_FROM], dtype=np.int8), counts)
    record = np.concatenate([allocs[opened], frees[freed], reallocs[in_place], reallocs[moved], reallocs[has_old]])
    address = np.concatenate([alloc_address[opened], free_address[freed], new[in_place], new[moved], old[has_old]])
    none = np.zeros(freed.size, dtype=np.int64)
    size = np.concatenate([alloc_size[opened], none, new_size[in_place], new_size[moved], new_size[has_old]])
    told_size = np.concatenate([np.zeros(opened.size, np.int64), none, old_size[in_place], old_size[moved], old_size[has_old]])

    order, rank = _order(address, records.heaps[record], record * 2 + (kind == MOVED_FROM))
    kind, record, size, told_size, group = kind[order], record[order], size[order], told_size[order], rank[order]
    is_first = np.ones(group.size, dtype=np.bool_)
    is_first[1:] = group[1:] != group[:-1]
    first = np.flatnonzero(is_first)
    found = places.find(records.heaps[record[first]], address[order][first])
    return Touches(kind, record, size, told_size, group, _partners(kind, record, records.rows.size), is_first, found)


def _order(address: UInt64s, heap: Int32s, position: Int64s) -> tuple[Int64s, Int64s]:
    """The order by (address, heap, position), and the number of each touch's (address, heap); positions are below 2^32 and unique.

    Sorting packed numbers takes 11 ns each on this kind of machine, a stable argsort 115 ns.
    """
    by_address = np.argsort(address)
    ordered, heaps = address[by_address], heap[by_address]
    is_new = np.ones(ordered.size, dtype=np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    if np.any(~is_new[1:] & (heaps[1:] != heaps[:-1])):
        by_address = np.lexsort((heap, address))
        ordered, heaps = address[by_address], heap[by_address]
        is_new[1:] = (ordered[1:] != ordered[:-1]) | (heaps[1:] != heaps[:-1])
    rank = np.empty(address.size, dtype=np.int64)
    rank[by_address] = np.cumsum(is_new) - 1
    touch_at = np.zeros(int(position.max(initial=0)) + 1, dtype=np.int64)
    touch_at[position] = np.arange(position.size)
    return touch_at[np.sort((rank << np.int64(32)) | position) & np.int64(0xFFFFFFFF)], rank


def _partners(kind: Int8s, record: Int64s, count: int) -> Int64s:
    """For each side of a move the touch that is the other side."""
    partner = np.full(kind.size, -1, dtype=np.int64)
    to, source = np.flatnonzero(kind == MOVED_TO), np.flatnonzero(kind == MOVED_FROM)
    if source.size:
        where = np.full(count, -1, dtype=np.int64)
        where[record[source]] = source
        partner[to] = where[record[to]]
        where[record[to]] = to
        partner[source] = where[record[source]]
    return partner


def _field(records: HeapRecords, event: str, name: str, chosen: Int64s) -> UInt64s:
    if event not in records.columns:
        return np.zeros(0, dtype=np.uint64)
    return records.columns[event].numbers(name)[records.at[chosen]].astype(np.uint64)


def _sizes(records: HeapRecords, event: str, name: str, chosen: Int64s) -> Int64s:
    return np.minimum(_field(records, event, name, chosen), np.uint64(MAX_SIZE)).astype(np.int64)
