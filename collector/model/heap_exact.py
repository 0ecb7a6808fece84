"""Replaying records one by one, by every rule: reallocations, lost frees, errors of the program, heaps that begin or end.

A window brings here only the places and heaps that need it. About 5 µs a record, so even a trace that needs it throughout stays linear.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.model.heap_blocks import (
    ADOPTED,
    ALLOC,
    BLOCK,
    FREED,
    HEAP_DESTROYED,
    HEAP_SUPERSEDED,
    LIVE,
    PROCESS_EXIT,
    REALLOC_MOVE,
    REALLOC_MOVED,
    REALLOC_STANDALONE,
    SUPERSEDED,
    Blocks,
)
from collector.model.heap_changes import Anomalies, WindowChanges, WindowClock
from collector.model.heap_lives import Heap, Lives
from collector.model.heap_losses import LossIndex
from collector.model.heap_places import Places
from collector.model.heap_steps import Alloc, Create, Destroy, Exit, Free, ReAlloc, Shown, Sight, Step
from collector.model.heap_totals import HeapTotals

__all__ = ["ExactReplay"]

Int64s: TypeAlias = NDArray[np.int64]

_RECORD = attrgetter(*(BLOCK.names or ()))


@dataclass(slots=True)
class _Block:
    """One block while it is replayed: the columns of BLOCK, and its neighbours."""

    slot: int
    n: int
    address: int
    first_seq: int
    ticks: int
    size: int
    size_at_open: int
    previous_n: int
    end_seq: int
    end_ticks: int
    tid: int
    free_tid: int
    source: int
    process: int
    heap: int
    life: int
    place: int
    older: int
    generation: int
    owner_ref: int
    free_ref: int
    origin: int
    reason: int
    is_claimed: bool
    is_inferred: bool
    previous: "_Block | None" = None
    older_block: "_Block | None" = None


@dataclass(slots=True)
class _Place:
    """One place while it is replayed."""

    index: int
    address: int
    n: int
    end_ticks: int
    heap: int
    slot: int
    generation: int
    life: int
    is_live: bool
    is_unconfirmed: bool
    is_twin: bool
    latest: _Block | None = None


@dataclass(slots=True)
class _Report:
    row: int
    process: int
    handle: int
    address: int
    tid: int
    block: _Block | None
    n: int = -1
    slot: int = -1


@dataclass(slots=True)
class _Resize:
    row: int
    block: _Block
    size: int
    old_size: int


@dataclass(slots=True)
class _Pending:
    """What a window's steps did, until `finish` writes it down."""

    opened: list[_Block] = field(default_factory=list)
    ended: list[tuple[int, _Block]] = field(default_factory=list)
    owners: list[tuple[int, _Block]] = field(default_factory=list)
    resizes: list[_Resize] = field(default_factory=list)
    reports: dict[str, list[_Report]] = field(default_factory=dict)
    deltas: dict[int, list[int]] = field(default_factory=dict)
    """Process, bytes and blocks by row."""


class ExactReplay:
    """One window's steps. `run` takes them in order, `finish` writes the result back."""

    def __init__(
        self,
        *,
        places: Places,
        blocks: Blocks,
        lives: Lives,
        totals: HeapTotals,
        losses: LossIndex,
        changes: WindowChanges,
        clock: WindowClock,
        hold_ticks: int,
    ) -> None:
        self._places, self._blocks, self._lives, self._totals = places, blocks, lives, totals
        self._losses, self._changes, self._clock, self._hold = losses, changes, clock, hold_ticks
        self._known: dict[int, _Place] = {}
        self._kept: dict[int, _Block] = {}
        self._live: dict[int, dict[int, _Place]] = {}
        """Of the known places those with a live block, by heap."""
        self._untouched: dict[int, Int64s] = {}
        """Slots of all other live blocks, by heap that may end."""
        self._pending = _Pending()

    def load(self, places: Int64s, ending_heaps: Int64s) -> None:
        """Take in what the steps will work on.

        Args:
            places: all places that they name, each once.
            ending_heaps: indices of heaps that may end: their other live blocks end with them.
        """
        for index, record in zip(places.tolist(), self._places.records[places].tolist(), strict=True):
            place = self._known[index] = _Place(index, *record)
            if place.is_live:
                self._live.setdefault(place.heap, {})[index] = place
        if not ending_heaps.size:
            return
        is_ending = np.zeros(len(self._lives.heaps), dtype=np.bool_)
        is_ending[ending_heaps] = True
        records = self._blocks.records
        slots = np.flatnonzero((records["place"] >= 0) & (records["reason"] == LIVE) & is_ending[records["heap"]])
        is_named = np.zeros(self._places.count, dtype=np.bool_)
        is_named[places] = True
        slots = slots[~is_named[records["place"][slots]]]
        heaps = self._blocks.records["heap"][slots]
        order = np.argsort(heaps, kind="stable")
        for part in np.split(slots[order], np.flatnonzero(np.diff(heaps[order])) + 1):
            if part.size:
                self._untouched[int(self._blocks.records["heap"][part[0]])] = part

    def run(self, steps: list[Step]) -> None:
        """Replay steps in the order of their rows."""
        for step in steps:
            match step:
                case Alloc():
                    self._alloc(step)
                case Free():
                    self._free(step)
                case ReAlloc():
                    self._realloc(step)
                case Sight():
                    self._lives.begin(self._lives.heaps[step.heap], step.row, self._ticks(step.row))
                case Shown():
                    self._touch(self._lives.heaps[step.heap])
                case Create():
                    self._create(step)
                case Destroy():
                    self._destroy(step)
                case Exit():
                    for heap in step.heaps:
                        self._end_heap(self._lives.heaps[heap], step.row, PROCESS_EXIT, -1, is_inferred=False)

    # ------------------------------------------------------------------------------------------------ blocks

    def _alloc(self, step: Alloc) -> None:
        heap, place = self._in_life(step.heap, step.row), self._known[step.place]
        self._supersede(place, step.row, step.tid)
        self._open(place, heap, step.row, step.tid, step.size, step.source, ALLOC)
        self._totals.count(heap.process, "allocs")

    def _free(self, step: Free) -> None:
        heap, place = self._lives.heaps[step.heap], self._known[step.place]
        self._touch(heap)
        ticks, process = self._ticks(step.row), heap.process
        if place.is_live:
            self._end(self._latest(place), place, step.row, FREED, step.tid, is_inferred=False)
            self._totals.count(process, "frees")
            return
        if heap.is_destroyed:
            self._unmatched("free_after_destroy", step, place, heap)
            return
        twin = self._places.live_twin(place.index) if place.is_twin else None
        if twin is not None:
            owner = self._known.get(twin)
            slot = int(self._places.records["slot"][twin]) if owner is None else -1
            block = None if owner is None else self._latest(owner)
            self._report("free_wrong_heap", step.row, heap, place, step.tid, block, slot=slot)
            self._totals.count(process, "wrong_heap_frees")
            return
        assert heap.life is not None
        if place.generation and place.life == heap.life.n:
            if place.is_unconfirmed:
                place.is_unconfirmed = False
                self._totals.count(process, "frees")
            elif self._losses.between(place.end_ticks, ticks):
                self._unmatched("free_unmatched_after_loss", step, place, heap)
            else:
                self._unmatched("double_free", step, place, heap, latest=True)
                self._totals.count(process, "double_frees")
        elif heap.life.create_seen:
            lost = self._losses.between(heap.life.first_ticks, ticks)
            self._unmatched("free_unmatched_after_loss" if lost else "free_never_allocated", step, place, heap)
        else:
            self._unmatched("free_unknown", step, place, heap)
            self._totals.count(process, "unknown_frees")

    def _realloc(self, step: ReAlloc) -> None:
        heap, new = self._in_life(step.heap, step.row), self._known[step.new]
        self._totals.count(heap.process, "reallocs")
        if step.new == step.old:
            if new.is_live:
                self._resize(self._latest(new), new, heap, step)
            else:
                self._open(new, heap, step.row, step.tid, step.size, step.source, ADOPTED)
            return
        old = self._known[step.old] if step.old >= 0 else None
        block = self._latest(new) if new.is_live else None
        if block is not None and self._is_pair(block, step):
            block.is_claimed, block.origin = True, REALLOC_MOVE
            if old is not None:
                block.previous = self._moved_from(block, old, step)
        else:
            moved = None
            if old is not None and old.is_live:
                moved = self._latest(old)
                self._end_moved(moved, old, step)
            self._supersede(new, step.row, step.tid)
            block = self._open(new, heap, step.row, step.tid, step.size, step.source, REALLOC_STANDALONE)
            block.previous = moved
        if old is not None and block.previous is None:
            self._totals.count(heap.process, "realloc_unknown_old")

    @staticmethod
    def _is_pair(block: _Block, step: ReAlloc) -> bool:
        """Whether an Alloc opened the block for this reallocation."""
        return block.origin == ALLOC and not block.is_claimed and block.tid == step.tid and block.size == step.size

    def _moved_from(self, block: _Block, old: _Place, step: ReAlloc) -> _Block | None:
        """The old half of a move whose new half an Alloc opened; its end is relabelled or made."""
        ticks = self._ticks(step.row)
        candidate = self._kept_latest(old)
        while candidate is not None and (candidate.reason == LIVE or candidate.end_seq > block.first_seq):
            # Rows older than the hold may have been handed on; leaving them alone keeps the result independent of the windows.
            if candidate.reason == FREED and candidate.free_tid == step.tid and ticks - candidate.end_ticks < self._hold:
                candidate.reason = REALLOC_MOVED
                return candidate
            candidate = self._older(candidate)
        if old.is_live and (live := self._latest(old)).first_seq < block.first_seq:
            self._end_moved(live, old, step)
            return live
        return None

    def _end_moved(self, block: _Block, place: _Place, step: ReAlloc) -> None:
        self._end(block, place, step.row, REALLOC_MOVED, step.tid, is_inferred=True)
        place.is_unconfirmed = True

    def _resize(self, block: _Block, place: _Place, heap: Heap, step: ReAlloc) -> None:
        if block.size != step.told_size:
            self._report("size_mismatch", step.row, heap, place, step.tid, block)
        grown = step.size - block.size
        if grown:
            self._pending.resizes.append(_Resize(step.row, block, step.size, block.size))
            self._totals.moved(heap.process, allocated=max(grown, 0), freed=max(-grown, 0))
            self._count(step.row, heap.process, grown, 0)
        block.size = step.size
        self._pending.owners.append((step.row, block))

    def _supersede(self, place: _Place, row: int, tid: int) -> None:
        """End a live block whose address was handed out again."""
        if place.is_live:
            block, heap = self._latest(place), self._lives.heaps[place.heap]
            self._end(block, place, row, SUPERSEDED, -1, is_inferred=True)
            self._report("implicit_free", row, heap, place, tid, block)
            self._totals.count(heap.process, "implicit_frees")

    # ------------------------------------------------------------------------------------------------ heaps

    def _in_life(self, index: int, row: int) -> Heap:
        """A heap whose memory is handed out: after a destroy its Create was lost."""
        heap = self._lives.heaps[index]
        if heap.is_destroyed:
            self._lives.begin(heap, row, self._ticks(row))
        self._touch(heap)
        return heap

    @staticmethod
    def _touch(heap: Heap) -> None:
        if heap.life is not None:
            heap.life.is_named_only = False

    def _create(self, step: Create) -> None:
        heap, ticks = self._lives.heaps[step.heap], self._ticks(step.row)
        if heap.life is not None and not heap.is_destroyed:
            if heap.life.is_named_only and not heap.life.create_seen:
                self._lives.created(heap, ticks, step.flags)  # the allocator writes sizes while it makes the heap
                return
            ended = self._end_heap(heap, step.row, HEAP_SUPERSEDED, -1, is_inferred=True)
            if ended:
                self._report_heap("implicit_destroy", step.row, heap, step.tid)
        self._lives.begin(heap, step.row, ticks, create_seen=True, flags=step.flags)

    def _destroy(self, step: Destroy) -> None:
        heap = self._lives.heaps[step.heap]
        if heap.is_destroyed or heap.life is None:
            return
        ended = self._end_heap(heap, step.row, HEAP_DESTROYED, step.tid, is_inferred=False)
        if ended:
            self._totals.count(heap.process, "destroyed_blocks", ended)
        self._lives.destroy(heap, self._ticks(step.row))

    def _end_heap(self, heap: Heap, row: int, reason: int, tid: int, *, is_inferred: bool) -> int:
        """End all live blocks of a heap at once; their number."""
        own = list(self._live.get(heap.index, {}).values())
        for place in own:
            self._end(self._latest(place), place, row, reason, tid, is_inferred=is_inferred)
        slots = self._untouched.pop(heap.index, None)
        if slots is None:
            return len(own)
        seq, ticks = self._clock.first_seq + row, self._ticks(row)
        block, known = self._blocks.records, self._places.records
        block["reason"][slots], block["is_inferred"][slots], block["free_tid"][slots] = reason, is_inferred, tid
        block["end_seq"][slots], block["end_ticks"][slots] = seq, ticks
        places = block["place"][slots]
        known["is_live"][places], known["end_ticks"][places] = False, ticks
        for place in places[known["is_twin"][places]].tolist():
            self._places.set_live(place, is_live=False)
        freed = int(block["size"][slots].sum())
        self._totals.moved(heap.process, freed=freed)
        self._count(row, heap.process, -freed, -int(slots.size))
        self._changes.end(np.full(slots.size, row, dtype=np.int64), slots)
        return len(own) + int(slots.size)

    # ------------------------------------------------------------------------------------------------ state

    def _ticks(self, row: int) -> int:
        return int(self._clock.ticks[row])

    def _latest(self, place: _Place) -> _Block:
        block = self._kept_latest(place)
        assert block is not None, "a live block is kept"
        return block

    def _kept_latest(self, place: _Place) -> _Block | None:
        """The latest block of a place, None where it has none or its row has been handed on."""
        if place.latest is None and place.generation and self._blocks.is_kept(place.slot, place.index, place.generation):
            place.latest = self._block(place.slot)
        return place.latest

    def _older(self, block: _Block) -> _Block | None:
        """The block before it at its place, where that is kept."""
        if block.older_block is None and block.older >= 0 and self._blocks.is_kept(block.older, block.place, block.generation - 1):
            block.older_block = self._block(block.older)
        return block.older_block

    def _block(self, slot: int) -> _Block:
        block = self._kept.get(slot)
        if block is None:
            block = self._kept[slot] = _Block(slot, *self._blocks.records[slot].tolist())
        return block

    def _open(self, place: _Place, heap: Heap, row: int, tid: int, size: int, source: int, origin: int) -> _Block:
        assert heap.life is not None
        older = self._kept_latest(place)
        place.generation += 1
        block = _Block(
            slot=-1, n=-1, address=place.address, first_seq=self._clock.first_seq + row, ticks=self._ticks(row), size=size,
            size_at_open=size, previous_n=-1, end_seq=-1, end_ticks=0, tid=tid, free_tid=-1, source=source, process=heap.process,
            heap=heap.index, life=heap.life.n, place=place.index, older=-1, generation=place.generation, owner_ref=-1, free_ref=-1,
            origin=origin, reason=LIVE, is_claimed=False, is_inferred=False, older_block=older,
        )  # fmt: skip
        place.latest, place.is_live, place.is_unconfirmed, place.life = block, True, False, heap.life.n
        self._live.setdefault(place.heap, {})[place.index] = place
        if place.is_twin:
            self._places.set_live(place.index, is_live=True)
        self._pending.opened.append(block)
        self._pending.owners.append((row, block))
        self._totals.moved(heap.process, allocated=size)
        self._count(row, heap.process, size, 1)
        return block

    def _end(self, block: _Block, place: _Place, row: int, reason: int, tid: int, *, is_inferred: bool) -> None:
        block.reason, block.is_inferred, block.free_tid = reason, is_inferred, tid
        block.end_seq, block.end_ticks = self._clock.first_seq + row, self._ticks(row)
        place.is_live, place.end_ticks = False, block.end_ticks
        del self._live[place.heap][place.index]
        if place.is_twin:
            self._places.set_live(place.index, is_live=False)
        self._pending.ended.append((row, block))
        self._totals.moved(block.process, freed=block.size)
        self._count(row, block.process, -block.size, -1)

    def _count(self, row: int, process: int, size: int, blocks: int) -> None:
        """What a record does to live bytes and live count."""
        delta = self._pending.deltas.get(row)
        if delta is None:
            delta = self._pending.deltas[row] = [process, 0, 0]
        delta[1] += size
        delta[2] += blocks

    # ------------------------------------------------------------------------------------------------ anomalies

    def _unmatched(self, kind: str, step: Free, place: _Place, heap: Heap, *, latest: bool = False) -> None:
        block = self._kept_latest(place) if latest else None
        self._report(kind, step.row, heap, place, step.tid, block, n=place.n if latest else -1)
        self._totals.count(heap.process, "unmatched_frees")

    def _report(
        self, kind: str, row: int, heap: Heap, place: _Place, tid: int, block: _Block | None, *, n: int = -1, slot: int = -1
    ) -> None:
        report = _Report(row, heap.process, heap.handle, place.address, tid, block, n, slot)
        self._pending.reports.setdefault(kind, []).append(report)

    def _report_heap(self, kind: str, row: int, heap: Heap, tid: int) -> None:
        self._pending.reports.setdefault(kind, []).append(_Report(row, heap.process, heap.handle, 0, tid, None))

    # ------------------------------------------------------------------------------------------------ writing back

    def finish(self) -> None:
        """Write blocks and places back, and hand the window's changes on."""
        pending, changes = self._pending, self._changes
        slots = self._blocks.take(len(pending.opened))
        for slot, block in zip(slots.tolist(), pending.opened, strict=True):
            block.slot = slot
        touched = [*self._kept.values(), *pending.opened]
        if touched:
            for block in pending.opened:
                block.older = block.older_block.slot if block.older_block is not None else -1
            at = np.array([block.slot for block in touched], dtype=np.int64)
            self._blocks.records[at] = np.array([_RECORD(block) for block in touched], dtype=BLOCK)
        if self._known:
            places = list(self._known.values())
            at = np.array([place.index for place in places], dtype=np.int64)
            for place in places:
                place.slot = place.latest.slot if place.latest is not None else place.slot
            known = self._places.records[at]
            for name in ("slot", "generation", "life", "is_live", "is_unconfirmed", "end_ticks"):
                known[name] = [getattr(place, name) for place in places]
            self._places.records[at] = known
        if pending.deltas:
            process, size, count = np.array(list(pending.deltas.values()), dtype=np.int64).T
            changes.deltas.add_all(_column(iter(pending.deltas)), process, size, count)
        changes.opened.append(slots)
        changes.end(*_rows_and_slots(pending.ended))
        changes.own(*_rows_and_slots(pending.owners))
        linked = [(block, block.previous) for block in touched if block.previous is not None]
        if linked:
            changes.linked.append((_column(b.slot for b, _ in linked), _column(p.slot for _, p in linked)))
        if pending.resizes:
            r = pending.resizes
            changes.resized.append(
                (_column(x.row for x in r), _column(x.block.slot for x in r), _column(x.size for x in r), _column(x.old_size for x in r))
            )
        for kind, reports in pending.reports.items():
            changes.anomalies.append(
                Anomalies(
                    kind,
                    _column(x.row for x in reports),
                    _column(x.process for x in reports),
                    np.array([x.handle for x in reports], dtype=np.uint64),
                    np.array([x.address for x in reports], dtype=np.uint64),
                    _column(x.tid for x in reports),
                    _column(x.slot if x.block is None else x.block.slot for x in reports),
                    _column(x.n for x in reports),
                )
            )


def _rows_and_slots(pairs: list[tuple[int, _Block]]) -> tuple[Int64s, Int64s]:
    return _column(row for row, _ in pairs), _column(block.slot for _, block in pairs)


def _column(values: Iterator[int]) -> Int64s:
    return np.fromiter(values, dtype=np.int64)
