"""Memory that is no heap block: images, user stacks, and the ranges that heaps cut their blocks from."""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Regions"]

Bools: TypeAlias = NDArray[np.bool_]
Int64s: TypeAlias = NDArray[np.int64]

_MAX_STEPS = 8
"""Regions that begin below an address and are looked at, nearest first: more can only overlap each other at different times."""


class Regions:
    """Address ranges of processes, each for some time. Times in ns, both ends half-open."""

    def __init__(self, rows: Iterable[tuple[int, int, int, int | None, int | None]]) -> None:
        """Rows of (process, low, high, from, until); None is "always"."""
        first, last = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        table = np.array(
            [
                (p, lo, hi, first if since is None else since, last if until is None else until)
                for p, lo, hi, since, until in rows
                if lo < hi
            ],
            dtype=np.int64,
        ).reshape(-1, 5)
        table = table[np.lexsort((table[:, 3], table[:, 1], table[:, 0]))]
        self._by_process: dict[int, _Process] = {}
        for part in np.split(table, np.flatnonzero(np.diff(table[:, 0])) + 1):
            if part.size:
                self._by_process[int(part[0, 0])] = _Process(*part.T[1:])

    def __bool__(self) -> bool:
        return bool(self._by_process)

    def hold(self, processes: Int64s, addresses: Int64s, ns: Int64s) -> Bools:
        """Whether an address lies in a region of its process at a time; bool, shape (n,)."""
        found = np.zeros(addresses.size, dtype=np.bool_)
        for process in np.unique(processes).tolist():
            own = self._by_process.get(process)
            if own is not None:
                where = np.flatnonzero(processes == process)
                found[where] = own.hold(addresses[where], ns[where])
        return found


class _Process:
    """The regions of one process, sorted by (low, since)."""

    def __init__(self, low: Int64s, high: Int64s, since: Int64s, until: Int64s) -> None:
        self._low, self._high, self._since, self._until = low, high, since, until
        self._begins, index = np.unique(low, return_index=True)
        self._groups = np.append(index, low.size)

    def hold(self, addresses: Int64s, ns: Int64s) -> Bools:
        found = np.zeros(addresses.size, dtype=np.bool_)
        group = np.searchsorted(self._begins, addresses, side="right") - 1
        for back in range(_MAX_STEPS):
            left = np.flatnonzero(~found & (group - back >= 0))
            if not left.size:
                break
            found[left] = self._in_group(group[left] - back, addresses[left], ns[left])
        return found

    def _in_group(self, group: Int64s, addresses: Int64s, ns: Int64s) -> Bools:
        """Of the regions with one low end, the one of that time: the last that began before."""
        low, high = self._groups[group].astype(np.int64), self._groups[group + 1].astype(np.int64)
        first = low.copy()
        while True:
            going = np.flatnonzero(low < high)
            if not going.size:
                break
            middle = (low[going] + high[going]) // 2
            before = self._since[middle] <= ns[going]
            low[going] = np.where(before, middle + 1, low[going])
            high[going] = np.where(before, high[going], middle)
        at = low - 1
        is_there = at >= first
        at = np.maximum(at, 0)
        return np.asarray(is_there & (addresses < self._high[at]) & (ns < self._until[at]))
