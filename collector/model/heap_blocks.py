"""Blocks that live, and blocks that have ended but still wait for their stacks: a slot each.

A block keeps its slot from its opening until its row is handed on. A row waits until the stack records of its events must have
come (they are up to 0.4 s late), so that nothing of it changes later; in that time a reallocation summary can still relabel its end.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.clock import Clock
from collector.losses import Losses
from collector.model.rows import Column, Lines, rows_of
from collector.model.waiting import Waiting
from collector.words import CERTAINTIES, END_REASONS, ORIGINS

__all__ = [
    "ADOPTED",
    "ALLOC",
    "BLOCK",
    "FREED",
    "HEAP_DESTROYED",
    "HEAP_SUPERSEDED",
    "LIVE",
    "PROCESS_EXIT",
    "REALLOC_MOVE",
    "REALLOC_MOVED",
    "REALLOC_STANDALONE",
    "SUPERSEDED",
    "Blocks",
]

Bools: TypeAlias = NDArray[np.bool_]
Int64s: TypeAlias = NDArray[np.int64]

ALLOC, REALLOC_MOVE, REALLOC_STANDALONE, ADOPTED = range(len(ORIGINS))
FREED, REALLOC_MOVED, HEAP_DESTROYED, PROCESS_EXIT, SUPERSEDED, HEAP_SUPERSEDED = range(len(END_REASONS))
LIVE = -1
"""End reason of a block that has not ended."""

BLOCK = np.dtype(
    [
        ("n", "i8"),  # row number, in the order of opening
        ("address", "u8"),
        ("first_seq", "i8"),
        ("ticks", "i8"),  # of the opening
        ("size", "i8"),
        ("size_at_open", "i8"),
        ("previous_n", "i8"),  # the block that a reallocation moved, -1 unknown
        ("end_seq", "i8"),
        ("end_ticks", "i8"),
        ("tid", "i8"),
        ("free_tid", "i8"),  # -1: nobody freed it
        ("source", "i8"),
        ("process", "i4"),
        ("heap", "i4"),  # index of the heap handle
        ("life", "i4"),  # row number of the heap's life
        ("place", "i4"),  # -1 once the row has been handed on
        ("older", "i4"),  # slot of the block before it at this place
        ("generation", "i4"),
        ("owner_ref", "i4"),  # stack that last set the size, -1 none
        ("free_ref", "i4"),  # stack that ended it, -1 none
        ("origin", "i1"),
        ("reason", "i1"),
        ("is_claimed", "?"),  # a reallocation summary has named it
        ("is_inferred", "?"),  # its end
    ],
    align=True,
)

_FIRST_CAPACITY = 1 << 10
_FOREVER = np.iinfo(np.int64).max


class Blocks:
    """The slots of one trace. `records` is a BLOCK array; a slot in use has a place."""

    def __init__(self) -> None:
        self.records: NDArray[np.void] = np.zeros(_FIRST_CAPACITY, dtype=BLOCK)
        self.records["place"] = -1
        self._free: Int64s = np.arange(_FIRST_CAPACITY - 1, -1, -1, dtype=np.int64)
        self._free_count = _FIRST_CAPACITY
        self._count = 0  # blocks numbered so far
        self._ended = Waiting(2)  # ticks of the end, slot
        self._settled = Waiting(2)  # the same, with their stacks known
        self._owners = Waiting(3)  # ticks, record number, slot of events that set a size

    def take(self, count: int) -> Int64s:
        """Slots for new blocks; int64, shape (count,)."""
        if count > self._free_count:
            old = self.records.size
            grown = max(count - self._free_count, old // 4)
            # In place, as this is the largest array: nobody keeps a view of it across a call of `take`.
            self.records.resize(old + grown, refcheck=False)
            self.records["place"][old:] = -1
            self._free.resize(old + grown, refcheck=False)
            self._free[self._free_count : self._free_count + grown] = np.arange(old + grown - 1, old - 1, -1)
            self._free_count += grown
        self._free_count -= count
        return self._free[self._free_count : self._free_count + count].copy()

    def number(self, slots: Int64s) -> None:
        """Give the blocks opened in one window their row numbers, in the order of their opening."""
        order = np.argsort(self.records["first_seq"][slots])
        self.records["n"][slots[order]] = np.arange(self._count, self._count + slots.size)
        self._count += slots.size

    def older(self, slot: int) -> int:
        """Slot of the block before this one at its place, -1 where there is none that still waits."""
        block = self.records[slot]
        older = int(block["older"])
        return older if older >= 0 and self.is_kept(older, int(block["place"]), int(block["generation"]) - 1) else -1

    def is_kept(self, slot: int, place: int, generation: int) -> bool:
        """Whether a slot still holds this block."""
        record = self.records[slot]
        return bool(record["place"] == place and record["generation"] == generation)

    def live(self) -> Int64s:
        """Slots of live blocks, in the order of their opening."""
        slots = np.flatnonzero((self.records["place"] >= 0) & (self.records["reason"] == LIVE))
        return slots[np.argsort(self.records["n"][slots])]

    def moved(self, places: Int64s) -> None:
        """Follow places to their new indices; int64, shape (number of old places,)."""
        used = np.flatnonzero(self.records["place"] >= 0)
        self.records["place"][used] = places[self.records["place"][used]]

    # ------------------------------------------------------------------------------------------------ waiting for stacks

    def end(self, ticks: Int64s, slots: Int64s) -> None:
        """Blocks that ended in one window, in the order of their ends."""
        self._ended.add(ticks, slots)

    def owned(self, ticks: Int64s, seqs: Int64s, slots: Int64s) -> None:
        """Events of one window that set a size, in their order: each may bring the block's owner stack."""
        self._owners.add(ticks, seqs, slots)

    def owners_until(self, ticks: int) -> tuple[Int64s, Int64s]:
        """Take the owner events up to a time: record numbers and slots, both int64, shape (n,)."""
        _, seqs, slots = self._owners.take(ticks)
        return seqs, slots

    def set_owner(self, slots: Int64s, refs: Int64s) -> None:
        """The stacks of owner events, in the order of the events; -1 leaves the stack that there was."""
        has_stack = refs >= 0
        self.records["owner_ref"][slots[has_stack]] = refs[has_stack]  # the last of equal slots stays

    def ended_until(self, ticks: int) -> Int64s:
        """The ended blocks up to a time, which can be handed on once `set_free` was called: slots in the order of ending."""
        when, slots = self._ended.take(ticks)
        self._settled.add(when, slots)
        return slots

    def set_free(self, slots: Int64s, refs: Int64s) -> None:
        """The stacks that ended some blocks, -1 unknown."""
        self.records["free_ref"][slots] = refs

    def settled(self, at_most: int) -> Int64s:
        """Take the first blocks that can be handed on: slots in the order of ending."""
        return self._settled.take(_FOREVER, at_most=at_most)[1]

    def release(self, slots: Int64s) -> None:
        """Free the slots of rows that were handed on."""
        self.records["place"][slots] = -1
        if self._free_count + slots.size > self._free.size:
            raise AssertionError("more slots were freed than taken")
        self._free[self._free_count : self._free_count + slots.size] = slots
        self._free_count += slots.size

    # ------------------------------------------------------------------------------------------------ rows

    def rows(self, slots: Int64s, clock: Clock, losses: Losses, *, are_live: bool) -> Lines:
        """Rows of table allocation, in the order of their numbers; live blocks get a trust, ended ones their end."""
        order = np.argsort(self.records["n"][slots])
        b = self.records[slots[order]]
        ns = clock.ns(b["ticks"])
        is_adopted = b["origin"] == ADOPTED
        columns: dict[str, Column] = {
            "n": b["n"],
            "process_n": b["process"],
            "heap_n": b["life"],
            "address": b["address"],
            "generation": b["generation"],
            "size": b["size"],
            "size_at_open": b["size_at_open"],
            "start_ns": np.ma.masked_array(ns, is_adopted),
            "first_ns": ns,
            "end_inferred": b["is_inferred"],
            "origin": b["origin"],
            "previous_n": np.ma.masked_array(b["previous_n"], b["previous_n"] < 0),
            "source_id": b["source"],
            "tid": b["tid"],
            "owner_stack_ref": np.ma.masked_array(b["owner_ref"], b["owner_ref"] < 0),
            "first_seq": b["first_seq"],
        }
        if are_live:
            last = np.iinfo(np.int64).max if losses.is_everywhere else max((hi for _, hi in losses.spans), default=np.iinfo(np.int64).min)
            columns["trust"] = np.where(b["ticks"] < last, CERTAINTIES.index("possible"), CERTAINTIES.index("certain"))
        else:
            columns |= {
                "end_ns": clock.ns(b["end_ticks"]),
                "end_reason": b["reason"],
                "free_tid": np.ma.masked_array(b["free_tid"], b["free_tid"] < 0),
                "free_stack_ref": np.ma.masked_array(b["free_ref"], b["free_ref"] < 0),
                "end_seq": b["end_seq"],
            }
        return rows_of("allocation", columns, count=int(b.size))
