"""The heap of every process: which blocks lived when, opened and ended by which records.

A window goes one of two ways. Places whose records simply alternate are replayed on arrays; all others, and heaps that begin or end,
record by record. Both write into the same blocks, and rows leave about a second of trace time later, when their stacks must have come.
"""

from collections.abc import Iterator
from operator import attrgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.clock import Clock
from collector.errors import Problem
from collector.losses import Losses
from collector.model.heap_blocks import HEAP_SUPERSEDED, PROCESS_EXIT, SUPERSEDED, Blocks
from collector.model.heap_changes import WindowChanges, WindowClock
from collector.model.heap_exact import ExactReplay
from collector.model.heap_ledger import Ledger
from collector.model.heap_lives import Lives
from collector.model.heap_losses import LossIndex
from collector.model.heap_marks import HeapRanges, Marks
from collector.model.heap_places import Places
from collector.model.heap_plain import PlainReplay, exact_groups
from collector.model.heap_problems import ProblemTally, heap_problems
from collector.model.heap_records import CREATED, DESTROYED, HeapRecords, failures_of, gather, touches_of
from collector.model.heap_steps import Exit, block_steps, heap_steps
from collector.model.heap_totals import HeapTotals, WindowDeltas
from collector.model.processes import ProcessEnd, Processes
from collector.model.rows import Lines, Rows, gathered, rows_of
from collector.model.stacks import Stacks
from collector.model.waiting import Waiting
from collector.schema import DecodedBatch

__all__ = ["ROWS_AT_ONCE", "Heaps"]

Bools: TypeAlias = NDArray[np.bool_]
Int64s: TypeAlias = NDArray[np.int64]

ROWS_AT_ONCE = 1 << 14
"""Rows that the end of a trace hands on in one piece."""
_NO_FREE_STACK = (PROCESS_EXIT, SUPERSEDED, HEAP_SUPERSEDED)
_MIN_DROPPED_PLACES = 1 << 16
_FOREVER = np.iinfo(np.int64).max


class Heaps:
    """The heap model of one trace.

    `advance` takes the windows in their order, after `Stacks.advance` of the same window, and hands on the rows that nothing can change
    any more; `finish` hands on the rest. Tables: heap, allocation, resize, heap_gauge, heap_range, heap_counter, heap_anomaly.
    """

    def __init__(self, processes: Processes, stacks: Stacks, clock: Clock, losses: Losses) -> None:
        self._processes, self._stacks, self._clock, self._losses = processes, stacks, clock, losses
        self._places, self._blocks, self._lives, self._totals = Places(), Blocks(), Lives(), HeapTotals()
        self._marks, self._ranges = Marks(self._lives), HeapRanges(clock)
        self._anomalies = Waiting(8)  # ticks, record number, kind, process, handle, address, block, thread
        self._settled_anomalies = Waiting(8)  # the same with the stack instead of the record number, at the end
        self._kinds: list[str] = []
        self._anomaly_count = self._resize_count = 0
        self._has_ended: Bools = np.zeros(16, dtype=np.bool_)
        self._next_drop = _MIN_DROPPED_PLACES
        self._tallies: dict[str, ProblemTally] = {}

    @property
    def problems(self) -> list[Problem]:
        """What limits the answers; complete after `finish`."""
        return heap_problems(self._tallies, has_losses=self._losses.has_any)

    def advance(self, batch: DecodedBatch) -> Rows:
        """Replay one window."""
        records = gather(batch, self._processes, self._lives, self._places)
        rows: Rows = {"heap_range": self._ranges.advance(batch, self._processes)}
        ends = self._processes.ends_in(batch)
        for end in ends:
            rows["heap_range"] += self._ranges.end(end.process_n, end.ns)
        if records.rows.size or any(end.process_n in self._lives.by_process for end in ends):
            clock = WindowClock(batch.raw.ticks, batch.raw.first_seq)
            changes = WindowChanges(WindowDeltas(len(batch.raw)))
            self._replay(records, ends, changes, clock)
            rows["resize"] = self._settle(changes, clock)
            rows["heap_gauge"] = self._marks.advance(records, batch)
            self._totals.apply(changes.deltas, batch.raw.ticks)
            self._expect_stacks(records, batch)
            self._lives.end_window()
        self._tally("heap_process_unknown", records.without_process, batch.raw.ticks)
        self._follow_stacks(self._stacks.settled_ticks)
        rows |= self._hand_on(at_most=2 * len(batch.raw) + ROWS_AT_ONCE)
        self._drop_places()
        return {table: own for table, own in rows.items() if own}

    def finish(self) -> Rows:
        """The rows that are left; see `finish_parts`."""
        return gathered(self.finish_parts())

    def finish_parts(self) -> Iterator[Rows]:
        """As `finish`, in pieces of bounded size; after `Stacks.finish`."""
        self._follow_stacks(_FOREVER)
        while any((rows := self._hand_on(at_most=ROWS_AT_ONCE)).values()):
            yield rows
        live = self._blocks.live()
        for first in range(0, live.size, ROWS_AT_ONCE):
            yield {"allocation": self._blocks.rows(live[first : first + ROWS_AT_ONCE], self._clock, self._losses, are_live=True)}
        yield {
            "heap": self._lives.rows(self._clock),
            "heap_range": self._ranges.finish(),
            "heap_counter": self._totals.rows(self._clock),
        }

    # ------------------------------------------------------------------------------------------------ one window

    def _replay(self, records: HeapRecords, ends: list[ProcessEnd], changes: WindowChanges, clock: WindowClock) -> None:
        failures = failures_of(records)
        self._totals.count_all(failures.allocs, "failed_allocs")
        self._totals.count_all(failures.reallocs, "failed_reallocs")
        if failures.impossible:
            self._tally("heap_size_impossible", failures.impossible, clock.ticks)
        touches = touches_of(records, self._places)
        losses = LossIndex(self._losses)
        exits = self._exits(records, ends, clock)
        is_exact, is_ending, is_new = self._heaps_to_watch(records, exits)
        expects_loss = (self._lives.create_seen[: is_new.size] | is_new) if losses else np.zeros_like(is_new)
        hold = self._clock.ticks_per_second
        groups = exact_groups(touches, records, self._places, is_exact, expects_loss, ticks=clock.ticks, hold_ticks=hold)

        steps = [*heap_steps(records), *block_steps(touches, groups, records), *exits]
        if steps:
            steps.sort(key=attrgetter("row"))  # stable: of one record, first sights stand first and exits last
            ledger = Ledger(places=self._places, blocks=self._blocks, totals=self._totals, changes=changes, clock=clock)
            ledger.load(touches.places[groups], np.flatnonzero(is_ending))
            exact = ExactReplay(ledger, places=self._places, lives=self._lives, totals=self._totals, losses=losses, hold_ticks=hold)
            exact.run(steps)
            ledger.finish()
        plain = PlainReplay(
            records, places=self._places, blocks=self._blocks, lives=self._lives, totals=self._totals, changes=changes, clock=clock
        )
        plain.run(touches, ~groups)
        is_touched = np.zeros(len(self._lives.heaps), dtype=np.bool_)
        is_touched[records.heaps[touches.record]] = True
        for heap in np.flatnonzero(is_touched).tolist():
            if (life := self._lives.heaps[heap].life) is not None:
                life.is_named_only = False

    def _exits(self, records: HeapRecords, ends: list[ProcessEnd], clock: WindowClock) -> list[Exit]:
        """Process ends, each behind the last record of its process: records of the very tick of an end still belong to it."""
        known = max(int(records.processes.max(initial=0)), max((end.process_n for end in ends), default=0)) + 1
        if known > self._has_ended.size:
            self._has_ended = np.concatenate([self._has_ended, np.zeros(2 * known - self._has_ended.size, dtype=np.bool_)])
        rows = {end.process_n: end.seq - clock.first_seq for end in ends}
        self._has_ended[list(rows)] = True
        late = np.flatnonzero(self._has_ended[records.processes])
        for process, row in zip(records.processes[late].tolist(), records.rows[late].tolist(), strict=True):
            rows[process] = max(rows.get(process, row), row)
        return [
            Exit(row, process, tuple(heap.index for heap in self._lives.by_process[process]))
            for process, row in rows.items()
            if process in self._lives.by_process
        ]

    def _heaps_to_watch(self, records: HeapRecords, exits: list[Exit]) -> tuple[Bools, Bools, Bools]:
        """By heap index: replayed exactly; may end in the window; made in it by its very first record, and nothing else."""
        heaps = self._lives.heaps
        is_exact, is_ending, is_new = (np.zeros(len(heaps), dtype=np.bool_) for _ in range(3))
        is_exact[list(self._lives.destroyed)] = True
        is_ending[records.heaps[records.of(DESTROYED)]] = True
        for exit_ in exits:
            is_ending[list(exit_.heaps)] = True
        made, times = np.unique(records.heaps[records.of(CREATED)], return_counts=True)
        born = {heap.index for record, heap in records.new_heaps if records.kinds[record] == CREATED}
        for heap, count in zip(made.tolist(), times.tolist(), strict=True):
            if heap in born and count == 1:
                is_new[heap] = True
            else:
                is_ending[heap] = True
        return is_exact | is_ending, is_ending, is_new

    def _settle(self, changes: WindowChanges, clock: WindowClock) -> Lines:
        """Number what the window opened, and queue what waits for stacks; the rows of table resize."""
        opened = _joined(changes.opened)
        self._blocks.number(opened)
        blocks, places = self._blocks.records, self._places.records
        at = blocks["place"][opened]
        is_latest = places["generation"][at] == blocks["generation"][opened]
        places["n"][at[is_latest]] = blocks["n"][opened[is_latest]]
        for slots, previous in changes.linked:
            blocks["previous_n"][slots] = blocks["n"][previous]
        rows, slots = _by_row(changes.ended_rows, changes.ended_slots)
        self._blocks.end(clock.ticks[rows], slots)
        rows, slots = _by_row(changes.owner_rows, changes.owner_slots)
        self._blocks.owned(clock.ticks[rows], clock.first_seq + rows, slots)
        self._queue_anomalies(changes, clock)
        return self._resizes(changes, clock)

    def _resizes(self, changes: WindowChanges, clock: WindowClock) -> Lines:
        if not changes.resized:
            return []
        row, slot, size, old_size = (np.concatenate(columns) for columns in zip(*changes.resized, strict=True))
        order = np.argsort(row)
        row, count = row[order], int(row.size)
        first, self._resize_count = self._resize_count, self._resize_count + count
        blocks = self._blocks.records[slot[order]]
        return rows_of(
            "resize",
            {
                "n": np.arange(first, first + count),
                "allocation_n": blocks["n"],
                "t_ns": self._clock.ns(clock.ticks[row]),
                "seq": clock.first_seq + row,
                "size": size[order],
                "old_size": old_size[order],
            },
            count=count,
            unstored={"process_n": blocks["process"].astype(np.int64), "heap_n": blocks["life"].astype(np.int64)},
        )

    def _queue_anomalies(self, changes: WindowChanges, clock: WindowClock) -> None:
        if not changes.anomalies:
            return
        parts: list[tuple[Int64s, ...]] = []
        for found in changes.anomalies:
            if found.kind not in self._kinds:
                self._kinds.append(found.kind)
            ticks = clock.ticks[found.rows]
            self._tallies.setdefault(found.kind, ProblemTally()).add(int(ticks.size), int(ticks.min()), int(ticks.max()))
            numbers = np.where(found.slots >= 0, self._blocks.records["n"][found.slots], found.numbers)
            kinds = np.full(ticks.size, self._kinds.index(found.kind))
            handles, addresses = found.handles.view(np.int64), found.addresses.view(np.int64)
            parts.append((ticks, clock.first_seq + found.rows, kinds, found.processes, handles, addresses, numbers, found.tids))
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.argsort(columns[1], kind="stable")
        self._anomalies.add(*(column[order] for column in columns))

    def _expect_stacks(self, records: HeapRecords, batch: DecodedBatch) -> None:
        """Say which records may have a stack."""
        may = np.flatnonzero(records.kinds <= DESTROYED)
        self._stacks.expect(batch, records.rows[may], records.pids[may], records.processes[may], records.kinds[may])

    # ------------------------------------------------------------------------------------------------ handing on

    def _follow_stacks(self, until: int) -> None:
        """Take over the stacks of records up to a time; what ended until then can be handed on."""
        seqs, slots = self._blocks.owners_until(until)
        self._blocks.set_owner(slots, self._stacks.refs_of(seqs))
        slots = self._blocks.ended_until(until)
        ended = self._blocks.records[slots]
        self._blocks.set_free(slots, np.where(np.isin(ended["reason"], _NO_FREE_STACK), -1, self._stacks.refs_of(ended["end_seq"])))
        ticks, seqs, *columns = self._anomalies.take(until)
        self._settled_anomalies.add(ticks, *columns, self._stacks.refs_of(seqs))

    def _hand_on(self, *, at_most: int) -> Rows:
        """Rows that nothing changes any more. A quiet second frees what the busy one before held back: not all of it at once."""
        slots = self._blocks.settled(at_most)
        rows: Rows = {"allocation": self._blocks.rows(slots, self._clock, self._losses, are_live=False)}
        self._blocks.release(slots)
        ticks, kinds, processes, handles, addresses, numbers, tids, refs = self._settled_anomalies.take(_FOREVER, at_most=at_most)
        count = int(ticks.size)
        first, self._anomaly_count = self._anomaly_count, self._anomaly_count + count
        rows["heap_anomaly"] = rows_of(
            "heap_anomaly",
            {
                "n": np.arange(first, first + count),
                "process_n": processes,
                "kind": [self._kinds[kind] for kind in kinds.tolist()],
                "t_ns": self._clock.ns(ticks),
                "heap": handles,
                "address": [address or None for address in addresses.tolist()],
                "allocation_n": [None if n < 0 else n for n in numbers.tolist()],
                "tid": tids,
                "stack_ref": [None if ref < 0 else ref for ref in refs.tolist()],
            },
            count=count,
        )
        return rows

    def _drop_places(self) -> None:
        """Forget the places of ended processes once they are most of all: that costs a pass over all places."""
        count = self._places.count
        if count < self._next_drop:
            return
        has_ended = self._has_ended[self._lives.process[self._places.records["heap"][:count]]]
        if np.count_nonzero(has_ended) * 2 > count:
            self._blocks.moved(self._places.drop(has_ended))
        self._next_drop = max(_MIN_DROPPED_PLACES, 2 * self._places.count)

    def _tally(self, name: str, count: int, ticks: Int64s) -> None:
        if count:
            self._tallies.setdefault(name, ProblemTally()).add(count, int(ticks[0]), int(ticks[-1]))


def _joined(parts: list[Int64s]) -> Int64s:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _by_row(rows: list[Int64s], slots: list[Int64s]) -> tuple[Int64s, Int64s]:
    """Slots in the order of the records beside them."""
    row, slot = _joined(rows), _joined(slots)
    order = np.argsort(row, kind="stable")
    return row[order], slot[order]
