"""The blocks and places that the exact replay of a window works on, and what it did to them.

They are objects only here, and only for one window: read from the columns when the replay names them, written back at its end.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.model.heap_blocks import BLOCK, LIVE, Blocks
from collector.model.heap_changes import Anomalies, WindowChanges, WindowClock
from collector.model.heap_lives import Heap
from collector.model.heap_places import Places
from collector.model.heap_totals import HeapTotals

__all__ = ["Block", "Ledger", "Place"]

Int64s: TypeAlias = NDArray[np.int64]

_RECORD = attrgetter(*(BLOCK.names or ()))


@dataclass(slots=True)
class Block:
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
    previous: "Block | None" = None
    older_block: "Block | None" = None


@dataclass(slots=True)
class Place:
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
    latest: Block | None = None


@dataclass(slots=True)
class _Report:
    row: int
    process: int
    handle: int
    address: int
    tid: int
    block: Block | None
    n: int = -1
    slot: int = -1


@dataclass(slots=True)
class _Resize:
    row: int
    block: Block
    size: int
    old_size: int


@dataclass(slots=True)
class _Pending:
    """What a window's steps did, until `finish` writes it down."""

    opened: list[Block] = field(default_factory=list)
    ended: list[tuple[int, Block]] = field(default_factory=list)
    owners: list[tuple[int, Block]] = field(default_factory=list)
    resizes: list[_Resize] = field(default_factory=list)
    reports: dict[str, list[_Report]] = field(default_factory=dict)
    deltas: dict[int, list[int]] = field(default_factory=dict)
    """Process, bytes and blocks by row."""


class Ledger:
    """One window's blocks and places. `load` first, `finish` last."""

    def __init__(self, *, places: Places, blocks: Blocks, totals: HeapTotals, changes: WindowChanges, clock: WindowClock) -> None:
        self._places, self._blocks, self._totals, self._changes, self._clock = places, blocks, totals, changes, clock
        self._known: dict[int, Place] = {}
        self._kept: dict[int, Block] = {}
        self._live: dict[int, dict[int, Place]] = {}
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
            place = self._known[index] = Place(index, *record)
            if place.is_live:
                self._live.setdefault(place.heap, {})[index] = place
        if not ending_heaps.size:
            return
        records = self._blocks.records
        slots = np.flatnonzero((records["place"] >= 0) & (records["reason"] == LIVE) & np.isin(records["heap"], ending_heaps))
        is_named = np.zeros(self._places.count, dtype=np.bool_)
        is_named[places] = True
        slots = slots[~is_named[records["place"][slots]]]
        heaps = self._blocks.records["heap"][slots]
        order = np.argsort(heaps, kind="stable")
        for part in np.split(slots[order], np.flatnonzero(np.diff(heaps[order])) + 1):
            if part.size:
                self._untouched[int(self._blocks.records["heap"][part[0]])] = part

    def place(self, index: int) -> Place:
        """A place that `load` named."""
        return self._known[index]

    def ticks(self, row: int) -> int:
        """Raw time of a record."""
        return int(self._clock.ticks[row])

    def latest(self, place: Place) -> Block:
        """The live block of a place."""
        block = self.kept_latest(place)
        assert block is not None, "a live block is kept"
        return block

    def kept_latest(self, place: Place) -> Block | None:
        """The latest block of a place, None where it has none or its row has been handed on."""
        if place.latest is None and place.generation and self._blocks.is_kept(place.slot, place.index, place.generation):
            place.latest = self._block(place.slot)
        return place.latest

    def owner(self, place: int) -> tuple[Block | None, int]:
        """The live block of any place: itself where the window works on it, else its slot."""
        known = self._known.get(place)
        return (None, int(self._places.records["slot"][place])) if known is None else (self.latest(known), -1)

    def older(self, block: Block) -> Block | None:
        """The block before it at its place, where that is kept."""
        if block.older_block is None and block.older >= 0 and self._blocks.is_kept(block.older, block.place, block.generation - 1):
            block.older_block = self._block(block.older)
        return block.older_block

    def _block(self, slot: int) -> Block:
        block = self._kept.get(slot)
        if block is None:
            block = self._kept[slot] = Block(slot, *self._blocks.records[slot].tolist())
        return block

    def open(self, place: Place, heap: Heap, row: int, tid: int, size: int, source: int, origin: int) -> Block:
        """Open a block."""
        assert heap.life is not None
        older = self.kept_latest(place)
        place.generation += 1
        block = Block(
            slot=-1, n=-1, address=place.address, first_seq=self._clock.first_seq + row, ticks=self.ticks(row), size=size,
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

    def end(self, block: Block, place: Place, row: int, reason: int, tid: int, *, is_inferred: bool) -> None:
        """End the live block of a place."""
        block.reason, block.is_inferred, block.free_tid = reason, is_inferred, tid
        block.end_seq, block.end_ticks = self._clock.first_seq + row, self.ticks(row)
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

    def end_all(self, heap: Heap, row: int, reason: int, tid: int, *, is_inferred: bool) -> int:
        """End all live blocks of a heap at once; their number."""
        own = list(self._live.get(heap.index, {}).values())
        for place in own:
            self.end(self.latest(place), place, row, reason, tid, is_inferred=is_inferred)
        slots = self._untouched.pop(heap.index, None)
        if slots is None:
            return len(own)
        seq, ticks = self._clock.first_seq + row, self.ticks(row)
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

    def resize(self, block: Block, row: int, size: int) -> None:
        """Give a live block another size; also an equal one makes the record the owner of the block."""
        grown = size - block.size
        if grown:
            self._pending.resizes.append(_Resize(row, block, size, block.size))
            self._totals.moved(block.process, allocated=max(grown, 0), freed=max(-grown, 0))
            self._count(row, block.process, grown, 0)
        block.size = size
        self._pending.owners.append((row, block))

    def report(
        self, kind: str, row: int, heap: Heap, tid: int, *, address: int = 0, block: Block | None = None, n: int = -1, slot: int = -1
    ) -> None:
        """Note an anomaly; the block that it concerns is given as itself, by its slot, or by its number alone."""
        self._pending.reports.setdefault(kind, []).append(_Report(row, heap.process, heap.handle, address, tid, block, n, slot))

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


def _rows_and_slots(pairs: list[tuple[int, Block]]) -> tuple[Int64s, Int64s]:
    return _column(row for row, _ in pairs), _column(block.slot for _, block in pairs)


def _column(values: Iterator[int]) -> Int64s:
    return np.fromiter(values, dtype=np.int64)
