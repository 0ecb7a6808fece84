"""Replaying on arrays the places whose records alternate: allocated, perhaps resized, freed, allocated again.

A place is plain in a window when each of its records fits the one before, so that no rule beyond the first ones can apply: the
sorting shows that by comparing neighbours. A moving reallocation whose allocation and free stand right before it only labels them.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.model.heap_blocks import ALLOC, BLOCK, LIVE, REALLOC_MOVE, REALLOC_MOVED, Blocks
from collector.model.heap_blocks import FREED as ENDED_FREED
from collector.model.heap_changes import Anomalies, WindowChanges, WindowClock
from collector.model.heap_lives import Lives
from collector.model.heap_places import Places
from collector.model.heap_records import ALLOCATED, FREED, MOVED_FROM, MOVED_TO, RESIZED, HeapRecords, Touches
from collector.model.heap_totals import HeapTotals

__all__ = ["PlainReplay", "exact_groups"]

Bools: TypeAlias = NDArray[np.bool_]
Int8s: TypeAlias = NDArray[np.int8]
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]

_MAX_ROUNDS = 6


def exact_groups(
    touches: Touches, records: HeapRecords, places: Places, is_exact_heap: Bools, expects_loss: Bools, *, ticks: Int64s, hold_ticks: int
) -> Bools:
    """Which groups of touches need the exact rules; bool, shape (number of groups,).

    Args:
        ticks: of each row of the window.
        hold_ticks: how long after a free the summary of its move may come.
        is_exact_heap: by heap index: heaps that begin or end in the window.
        expects_loss: by heap index: heaps where an unmatched free is a question of losses.
    """
    kind, is_first, group = touches.kind, touches.is_first, touches.group
    place = places.records[touches.places]
    heap = place["heap"]
    was_live = np.where(kind[:-1] == FREED, False, True)
    was_live[kind[:-1] == MOVED_FROM] = False
    before = np.empty(kind.size, dtype=np.bool_)
    before[1:] = was_live
    before[is_first] = place["is_live"]
    needs_live = (kind == FREED) | (kind == RESIZED) | (kind == MOVED_TO)
    fits = before == needs_live

    # A first free of nothing: allocated before the trace, or an error, but in any case nothing that changes a byte.
    lone = np.flatnonzero(is_first & (kind == FREED) & ~before)
    lone_place = place[group[lone]]
    fits[lone] = (lone_place["generation"] == 0) & ~expects_loss[lone_place["heap"]]

    label = np.flatnonzero((kind == MOVED_TO) | (kind == MOVED_FROM))
    if label.size:
        freed_nothing = np.zeros(kind.size, dtype=np.bool_)
        freed_nothing[lone] = True
        fits[label] &= _labels_fit(touches, records, label, ticks, hold_ticks) & ~freed_nothing[label - 1]

    is_exact: Bools = is_exact_heap[heap] | place["is_twin"]
    is_exact[group[~fits]] = True
    to = np.flatnonzero((kind == MOVED_TO) & (touches.partner >= 0))
    one, two = group[to], group[touches.partner[to]]
    for _ in range(_MAX_ROUNDS):
        differs = is_exact[one] != is_exact[two]
        if not differs.any():
            return is_exact
        is_exact[one[differs]] = True
        is_exact[two[differs]] = True
    is_exact[one] = True  # a long chain of moves
    is_exact[two] = True
    return is_exact


def _labels_fit(touches: Touches, records: HeapRecords, label: Int64s, ticks: Int64s, hold_ticks: int) -> Bools:
    """Whether the summary of a move stands right behind the allocation or the free that it labels, all three of one thread."""
    kind, record = touches.kind, touches.record
    prior, is_to = label - 1, kind[label] == MOVED_TO
    good = ~touches.is_first[label] & (records.tids[record[prior]] == records.tids[record[label]])
    good &= np.where(is_to, (kind[prior] == ALLOCATED) & (touches.size[prior] == touches.size[label]), kind[prior] == FREED)
    allocated = record[np.maximum(touches.partner[label] - 1, 0)]
    is_late = ticks[records.rows[record[label]]] - ticks[records.rows[record[prior]]] >= hold_ticks
    good &= is_to | ((record[prior] > allocated) & ~is_late)
    return np.asarray(good)


class PlainReplay:
    """One window's plain places. `run` changes blocks, places and totals, and says what it did in `changes`."""

    def __init__(
        self,
        records: HeapRecords,
        *,
        places: Places,
        blocks: Blocks,
        lives: Lives,
        totals: HeapTotals,
        changes: WindowChanges,
        clock: WindowClock,
    ) -> None:
        self._records = records
        self._places, self._blocks, self._lives, self._totals, self._changes, self._clock = places, blocks, lives, totals, changes, clock

    def run(self, touches: Touches, is_plain: Bools) -> None:
        """Replay the touches of plain groups; `is_plain` by group."""
        chosen = np.flatnonzero(is_plain[touches.group])
        if not chosen.size:
            return
        kind, record, size = touches.kind[chosen], touches.record[chosen], touches.size[chosen]
        place, is_first = touches.places[touches.group[chosen]], touches.is_first[chosen]
        row, tid = self._records.rows[record], self._records.tids[record]
        state = self._places.records[place]
        process = self._lives.process[state["heap"]]

        # Which block each touch belongs to: every allocation begins one, and so does the first touch of a live place.
        opens = kind == ALLOCATED
        begins = opens | (is_first & state["is_live"])
        lone = is_first & (kind == FREED) & ~begins
        block = np.cumsum(begins) - 1
        head = np.flatnonzero(begins)
        is_new = opens[head]
        slots = np.where(is_new, -1, state["slot"][head]).astype(np.int64)
        slots[is_new] = self._blocks.take(int(np.count_nonzero(is_new)))
        serial = np.cumsum(opens)
        group_start = np.maximum.accumulate(np.where(is_first, np.arange(kind.size), 0))
        generation = state["generation"] + serial - serial[group_start] + opens[group_start]

        # A block is as large as the last touch that set a size says.
        stored = self._blocks.records["size"][slots]
        current = np.where(opens | (kind == RESIZED), size, 0)
        kept = head[~is_new & (kind[head] != RESIZED)]
        current[kept] = stored[block[kept]]
        setters = np.flatnonzero(begins | (kind == RESIZED))
        final = np.zeros(head.size, dtype=np.int64)
        final[block[setters]] = current[setters]  # the last of equal blocks stays
        resized = np.flatnonzero(kind == RESIZED)
        prior = setters[np.searchsorted(setters, resized) - 1]
        old_size = np.where(begins[resized], stored[block[resized]], current[prior])

        new = head[is_new]
        # The block before at the place: that of the head before, or the latest one that the place knows.
        older = np.where(is_first[head], state["slot"][head], np.concatenate([[-1], slots[:-1]]))[is_new]
        older[lone[new - 1] & ~is_first[new]] = -1
        self._open(slots[is_new], state[new], place[new], process[new], record[new], size[new], generation[new], older)
        self._blocks.records["size"][slots] = final

        frees = np.flatnonzero((kind == FREED) & ~lone)
        ended = slots[block[frees]]
        self._end(ended, row[frees], tid[frees])
        slot = np.where(lone, -1, np.append(slots, -1)[block])
        self._label(touches, chosen, kind, slot)
        self._settle_places(place, kind, slot, generation, is_first, lone)

        self._changes.opened.append(slots[is_new])
        self._changes.end(row[frees], ended)
        owners = np.flatnonzero(opens | (kind == RESIZED))
        self._changes.own(row[owners], slots[block[owners]])
        grown = size[resized] - old_size
        is_changed = grown != 0
        self._changes.resized.append(
            (row[resized][is_changed], slots[block[resized]][is_changed], size[resized][is_changed], old_size[is_changed])
        )

        deltas, totals, nothing = self._changes.deltas, self._totals, np.zeros(kind.size, dtype=np.int64)
        deltas.add_all(row[new], process[new], size[new], 1)
        deltas.add_all(row[frees], process[frees], -final[block[frees]], -1)
        deltas.add_all(row[resized], process[resized], grown, 0)
        totals.moved_all(process[new], size[new], nothing[new])
        totals.moved_all(process[frees], nothing[frees], final[block[frees]])
        totals.moved_all(process[resized], np.maximum(grown, 0), np.maximum(-grown, 0))
        totals.count_all(process[new], "allocs")
        totals.count_all(process[frees], "frees")
        totals.count_all(process[(kind == RESIZED) | (kind == MOVED_TO)], "reallocs")

        is_created = self._lives.create_seen[state["heap"]]
        totals.count_all(process[lone], "unmatched_frees")
        totals.count_all(process[lone & ~is_created], "unknown_frees")
        no_slot = np.full(kind.size, -1, dtype=np.int64)
        self._report("free_unknown", record[lone & ~is_created], state[lone & ~is_created], no_slot)
        self._report("free_never_allocated", record[lone & is_created], state[lone & is_created], no_slot)
        odd = resized[touches.told_size[chosen[resized]] != old_size]
        self._report("size_mismatch", record[odd], state[odd], slots[block[odd]])

    def _open(
        self,
        slots: Int64s,
        state: NDArray[np.void],
        place: Int64s,
        process: Int32s,
        record: Int64s,
        size: Int64s,
        generation: Int64s,
        older: Int64s,
    ) -> None:
        records = self._records
        row = records.rows[record]
        new = np.zeros(slots.size, dtype=BLOCK)
        new["n"], new["previous_n"], new["end_seq"], new["free_tid"], new["owner_ref"], new["free_ref"] = -1, -1, -1, -1, -1, -1
        new["address"], new["heap"], new["place"], new["process"] = state["address"], state["heap"], place, process
        new["life"] = self._lives.life_n[state["heap"]]
        new["tid"], new["size_at_open"], new["generation"], new["older"] = records.tids[record], size, generation, older
        new["first_seq"], new["ticks"] = self._clock.first_seq + row, self._clock.ticks[row]
        new["origin"], new["reason"] = ALLOC, LIVE
        if slots.size:
            new["source"] = records.columns["HeapAlloc"].numbers("source_id")[records.at[record]]
        self._blocks.records[slots] = new

    def _end(self, slots: Int64s, row: Int64s, tid: Int64s) -> None:
        block = self._blocks.records
        block["reason"][slots] = ENDED_FREED
        block["free_tid"][slots] = tid
        block["end_seq"][slots] = self._clock.first_seq + row
        block["end_ticks"][slots] = self._clock.ticks[row]

    def _label(self, touches: Touches, chosen: Int64s, kind: Int8s, slot: Int64s) -> None:
        """Moving reallocations: no byte, no count, no new start; `slot` by touch."""
        block = self._blocks.records
        labelled, left = slot[kind == MOVED_TO], np.flatnonzero(kind == MOVED_FROM)
        block["origin"][labelled] = REALLOC_MOVE
        block["is_claimed"][labelled] = True
        block["reason"][slot[left]] = REALLOC_MOVED
        if left.size:
            index = np.full(touches.kind.size, -1, dtype=np.int64)
            index[chosen] = np.arange(chosen.size)
            self._changes.linked.append((slot[index[touches.partner[chosen[left]]]], slot[left]))

    def _settle_places(self, place: Int64s, kind: Int8s, slot: Int64s, generation: Int64s, is_first: Bools, lone: Bools) -> None:
        """What the places know after the window."""
        last = np.flatnonzero(np.concatenate([is_first[1:], [True]]))
        last = last[~lone[last]]
        at, slot, known = place[last], slot[last], self._places.records
        is_live = (kind[last] != FREED) & (kind[last] != MOVED_FROM)
        known["slot"][at], known["generation"][at] = slot, generation[last]
        known["life"][at] = self._blocks.records["life"][slot]
        known["is_live"][at], known["is_unconfirmed"][at] = is_live, False
        known["end_ticks"][at] = self._blocks.records["end_ticks"][slot]

    def _report(self, kind: str, record: Int64s, state: NDArray[np.void], slots: Int64s) -> None:
        if not record.size:
            return
        heap = state["heap"]
        handles = np.array([h.handle for h in self._lives.heaps], dtype=np.uint64)[heap]
        records, none = self._records, np.full(record.size, -1, dtype=np.int64)
        self._changes.anomalies.append(
            Anomalies(
                kind,
                records.rows[record],
                records.processes[record],
                handles,
                state["address"].copy(),
                records.tids[record],
                slots[: record.size],
                none,
            )
        )
