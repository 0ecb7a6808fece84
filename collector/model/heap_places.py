"""Every (heap, address) that was ever handed out, found by hashing whole windows at once.

A place remembers its latest block, also after that block has ended: generations never restart, and a second free of the same block
must be told from the free of a block that the trace never saw. Open addressing with linear probing, as NumPy columns: one step
of the loop moves all keys of a window that have not arrived.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["PLACE", "Places"]

Bools: TypeAlias = NDArray[np.bool_]
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]

PLACE = np.dtype(
    [
        ("address", "u8"),
        ("n", "i8"),  # row number of the latest block
        ("end_ticks", "i8"),  # its end, where it has ended
        ("heap", "i4"),  # index of the heap handle
        ("slot", "i4"),  # slot of the latest block, -1 before the first; valid while that block is kept
        ("generation", "i4"),  # of the latest block, 0 before the first
        ("life", "i4"),  # life of the heap in which the latest block was opened, -1 before the first
        ("is_live", "?"),
        ("is_unconfirmed", "?"),  # ended by a reallocation summary whose Free has not been seen
        ("is_twin", "?"),  # another heap of the process has the same address
    ],
    align=True,
)

_MIN_CAPACITY = 1 << 12
_MAX_LOAD = 0.6
_PIECE = 1 << 18  # keys hashed at a time when a table grows: bounds the temporary arrays
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # the constants of splitmix64


class Places:
    """The places of one trace. `records` is a PLACE array of which the first `count` are in use; indices are final until `drop`."""

    def __init__(self) -> None:
        self.records: NDArray[np.void] = np.zeros(_MIN_CAPACITY, dtype=PLACE)
        self.count = 0
        self.twins: dict[int, dict[int, None]] = {}
        """Live places by a place of the same process and address, in the order of their opening; twins alone are in it."""
        self._twin_of: dict[int, int] = {}
        self._process_of_heap: Int32s = np.zeros(16, dtype=np.int32)
        self._by_place = np.full(_MIN_CAPACITY * 2, -1, dtype=np.int32)
        self._by_spot = np.full(_MIN_CAPACITY * 2, -1, dtype=np.int32)

    def add_heap(self, heap: int, process: int) -> None:
        """Say which process a heap index belongs to, before its places are asked for."""
        if heap >= self._process_of_heap.size:
            self._process_of_heap = np.resize(self._process_of_heap, max(heap + 1, 2 * self._process_of_heap.size))
        self._process_of_heap[heap] = process

    def find(self, heaps: Int32s, addresses: UInt64s) -> Int64s:
        """Indices of places, made where they are new; each (heap, address) once. int64, shape (n,)."""
        hashes = _hash(addresses, heaps)
        found = self._probe(self._by_place, hashes, lambda at, rows: self._is_place(at, heaps[rows], addresses[rows]), None)
        new = np.flatnonzero(found < 0)
        if new.size:
            found[new] = self._add(heaps[new], addresses[new])
        return found

    def live_twin(self, place: int) -> int | None:
        """Of the other live places with the process and address of this one, that with the youngest block."""
        live = self.twins.get(self._twin_of.get(place, -1))
        return next(reversed(live)) if live else None

    def set_live(self, place: int, *, is_live: bool) -> None:
        """Keep the order of live twins; for places that are twins."""
        live = self.twins[self._twin_of[place]]
        live.pop(place, None)
        if is_live:
            live[place] = None

    def drop(self, is_dropped: Bools) -> Int64s:
        """Forget places; the new index of each old one, -1 for forgotten ones, int64, shape (count,).

        Args:
            is_dropped: bool, shape (count,). Twins must be dropped together with their process.
        """
        kept = np.flatnonzero(~is_dropped)
        moved = np.full(self.count, -1, dtype=np.int64)
        moved[kept] = np.arange(kept.size)
        capacity = max(_MIN_CAPACITY, int(kept.size * 1.5))
        records = np.zeros(capacity, dtype=PLACE)
        records[: kept.size] = self.records[kept]
        self.records, self.count = records, int(kept.size)
        self._twin_of = {int(moved[p]): int(moved[q]) for p, q in self._twin_of.items() if moved[p] >= 0}
        self.twins = {int(moved[q]): {int(moved[p]): None for p in live} for q, live in self.twins.items() if moved[q] >= 0}
        self._rebuild()
        return moved

    # ------------------------------------------------------------------------------------------------ tables

    def _is_place(self, at: Int64s, heaps: Int32s, addresses: UInt64s) -> Bools:
        records = self.records[at]
        return np.asarray((records["address"] == addresses) & (records["heap"] == heaps))

    def _is_spot(self, at: Int64s, processes: Int32s, addresses: UInt64s) -> Bools:
        records = self.records[at]
        return np.asarray((records["address"] == addresses) & (self._process_of_heap[records["heap"]] == processes))

    def _add(self, heaps: Int32s, addresses: UInt64s) -> Int64s:
        first, last = self.count, self.count + heaps.size
        if last > self.records.size:
            # In place, as it is a large array: nobody keeps a view of it across a call of `find`.
            self.records.resize(max(last, self.records.size * 5 // 4), refcheck=False)
        new = self.records[first:last]
        new["address"], new["heap"], new["slot"], new["life"] = addresses, heaps, -1, -1
        self.count = last
        if last > self._by_place.size * _MAX_LOAD:
            self._rebuild()
            return np.arange(first, last)
        self._enter(first, last)
        return np.arange(first, last)

    def _rebuild(self) -> None:
        capacity = _MIN_CAPACITY * 2
        while self.count > capacity * _MAX_LOAD:
            capacity *= 2
        self._by_place = np.full(capacity, -1, dtype=np.int32)
        self._by_spot = np.full(capacity, -1, dtype=np.int32)
        for first in range(0, self.count, _PIECE):
            self._enter(first, min(first + _PIECE, self.count))

    def _enter(self, first: int, last: int) -> None:
        heaps, addresses = self.records["heap"][first:last].copy(), self.records["address"][first:last].copy()
        processes = self._process_of_heap[heaps]
        index = np.arange(first, last)
        self._probe(self._by_place, _hash(addresses, heaps), lambda at, rows: self._is_place(at, heaps[rows], addresses[rows]), index)
        spots = self._probe(
            self._by_spot, _hash(addresses, processes), lambda at, rows: self._is_spot(at, processes[rows], addresses[rows]), index
        )
        for i in np.flatnonzero(spots != index).tolist():
            self._pair(first + i, int(spots[i]))

    def _pair(self, place: int, other: int) -> None:
        """Two heaps of a process have the same address (rare; 1 µs each)."""
        if place in self._twin_of:
            return
        if other not in self._twin_of:
            self._twin_of[other] = other
            self.twins[other] = {other: None} if self.records["is_live"][other] else {}
            self.records["is_twin"][other] = True
        self._twin_of[place] = self._twin_of[other]
        self.records["is_twin"][place] = True

    @staticmethod
    def _probe(table: Int32s, hashes: UInt64s, is_same: Callable[[Int64s, Int64s], Bools], claims: Int64s | None) -> Int64s:
        """Walk from each hash to an entry that is the same, or to an empty one.

        Args:
            claims: values to enter where nothing is the same, shape (n,); None to look up only. Of equal keys one is entered.

        Returns: the entry found or made, -1 where there is none and nothing was to be entered; int64, shape (n,).
        """
        mask = np.uint64(table.size - 1)
        at = (hashes & mask).astype(np.int64)
        found = np.full(hashes.size, -1, dtype=np.int64)
        going = np.arange(hashes.size)
        while going.size:
            entries = table[at[going]].astype(np.int64)
            is_empty = entries < 0
            if claims is not None and is_empty.any():
                claimed = going[is_empty]
                table[at[claimed]] = claims[claimed]
                entries = table[at[going]].astype(np.int64)  # who wrote last has it; the others look at it like at any entry
                is_empty = np.zeros(going.size, dtype=np.bool_)
            hit = np.zeros(going.size, dtype=np.bool_)
            full = np.flatnonzero(~is_empty)
            hit[full] = is_same(entries[full], going[full])
            found[going[hit]] = entries[hit]
            going = going[~(hit | is_empty)]
            at[going] = (at[going] + 1) & np.int64(mask)
        return found


def _hash(addresses: UInt64s, owners: Int32s) -> UInt64s:
    """splitmix64 of the address, moved by the heap or process."""
    x = addresses + owners.astype(np.uint64) * _MIX[0]
    x = (x ^ (x >> np.uint64(30))) * _MIX[1]
    x = (x ^ (x >> np.uint64(27))) * _MIX[2]
    return np.asarray(x ^ (x >> np.uint64(31)))
