"""Where the buffers of operations start: the addresses that blocks are looked at for."""

from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Spots"]

Bools: TypeAlias = NDArray[np.bool_]
Int64s: TypeAlias = NDArray[np.int64]

_MAX_WAITING = 1 << 20


class Spots:
    """The distinct (process, address) at which buffers start, each with the furthest end of a buffer that starts at or before it."""

    def __init__(self) -> None:
        self._parts: list[Int64s] = []
        self._waiting = 0
        self._table: Int64s = np.zeros((0, 3), dtype=np.int64)
        self._first: dict[int, tuple[int, int]] = {}
        self._furthest: Int64s = np.zeros(0, dtype=np.int64)

    @property
    def count(self) -> int:
        return int(self._table.shape[0])

    def add(self, processes: Int64s, starts: Int64s, ends: Int64s) -> None:
        self._parts.append(_merged(np.stack([processes, starts, ends], axis=1)))
        self._waiting += self._parts[-1].shape[0]
        if self._waiting > max(_MAX_WAITING, self.count):
            self._join()

    def finish(self) -> None:
        """Call once, before asking."""
        self._join()
        process = self._table[:, 0]
        begins = np.flatnonzero(np.diff(process, prepend=process[:1] - 1)) if process.size else np.zeros(0, np.int64)
        edges = np.append(begins, process.size).tolist()
        self._furthest = self._table[:, 2].copy()
        for first, last in pairwise(edges):
            self._first[int(process[first])] = first, last
            self._furthest[first:last] = np.maximum.accumulate(self._furthest[first:last])

    def of(self, processes: Int64s, starts: Int64s) -> Int64s:
        """The spot of each buffer."""
        found = np.empty(starts.size, dtype=np.int64)
        for process in np.unique(processes).tolist():
            where = np.flatnonzero(processes == process)
            first, last = self._first[process]
            found[where] = first + np.searchsorted(self._table[first:last, 1], starts[where])
        return found

    def inside(self, process: int, lo: Int64s, hi: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Of ranges of one process: first spot, behind the last spot, and the spot at the very begin or -1."""
        first, last = self._first.get(process, (0, 0))
        starts = self._table[first:last, 1]
        low, high = np.searchsorted(starts, lo), np.searchsorted(starts, hi)
        is_exact = np.zeros(lo.size, dtype=np.bool_)
        some = np.flatnonzero(low < starts.size)
        is_exact[some] = starts[low[some]] == lo[some]
        return first + low, first + high, np.where(is_exact, first + low, -1)

    def may_touch(self, process: int, lo: Int64s, hi: Int64s) -> Bools:
        """Whether some buffer may overlap a range of a process; true for all that do."""
        first, last = self._first.get(process, (0, 0))
        high = np.searchsorted(self._table[first:last, 1], hi)
        touches = np.zeros(lo.size, dtype=np.bool_)
        some = np.flatnonzero(high > 0)
        touches[some] = self._furthest[first + high[some] - 1] > lo[some]
        return touches

    def between(self, process: int, lo: int, hi: int) -> tuple[int, int]:
        """First spot and behind the last spot of one range."""
        first, last = self._first.get(process, (0, 0))
        starts = self._table[first:last, 1]
        return first + int(np.searchsorted(starts, lo)), first + int(np.searchsorted(starts, hi))

    def _join(self) -> None:
        if self._parts:
            self._table = _merged(np.concatenate([self._table, *self._parts]))
            self._parts, self._waiting = [], 0


def _merged(table: Int64s) -> Int64s:
    """Rows of (process, start, end) with each start once, sorted; the furthest end of each."""
    table = table[np.lexsort((table[:, 2], table[:, 1], table[:, 0]))]
    is_last = np.ones(table.shape[0], dtype=np.bool_)
    is_last[:-1] = (table[1:, :2] != table[:-1, :2]).any(axis=1)
    return table[is_last]
