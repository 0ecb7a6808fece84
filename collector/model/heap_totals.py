"""Live bytes and live blocks of each process, its peak, and its counters.

One record is one point: what a destroy, a process exit or a standalone reallocation does to many blocks happens at once.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.clock import Clock
from collector.model.rows import Lines

__all__ = ["HeapTotals", "WindowDeltas"]

Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]

_MAX_INTEGER = (1 << 63) - 1


class WindowDeltas:
    """What each record of a window does to live bytes and live count; columns by row of the window."""

    def __init__(self, count: int) -> None:
        self.bytes = np.zeros(count, dtype=np.int64)
        self.blocks = np.zeros(count, dtype=np.int64)
        self.process = np.full(count, -1, dtype=np.int32)
        """Process of a row that changes something; a row belongs to one process."""

    def add_all(self, rows: Int64s, processes: Int32s | Int64s, sizes: Int64s, blocks: int | Int64s) -> None:
        """Add to some rows, each named once."""
        self.bytes[rows] += sizes
        self.blocks[rows] += blocks
        self.process[rows] = processes


@dataclass(slots=True)
class _Process:
    live_bytes: int = 0
    live_blocks: int = 0
    bytes_allocated: int = 0
    bytes_freed: int = 0
    peak_bytes: int = -1
    peak_ticks: int = 0
    counters: Counter[str] = field(default_factory=Counter)


class HeapTotals:
    """Totals of all processes with heap records."""

    def __init__(self) -> None:
        self._processes: dict[int, _Process] = {}

    def count(self, process: int, name: str, times: int = 1) -> None:
        self._of(process).counters[name] += times

    def count_all(self, processes: Int32s | Int64s, name: str) -> None:
        """Count once for each entry."""
        for process, times in zip(*(a.tolist() for a in np.unique(processes, return_counts=True)), strict=True):
            self.count(process, name, times)

    def moved(self, process: int, *, allocated: int = 0, freed: int = 0) -> None:
        """Bytes handed out and given back."""
        totals = self._of(process)
        totals.bytes_allocated += allocated
        totals.bytes_freed += freed

    def moved_all(self, processes: Int32s | Int64s, allocated: Int64s, freed: Int64s) -> None:
        """As `moved`, for each entry."""
        if not processes.size:
            return
        order = np.argsort(processes)
        owners = processes[order]
        starts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
        sums = np.add.reduceat(allocated[order], starts).tolist(), np.add.reduceat(freed[order], starts).tolist()
        for process, up, down in zip(owners[starts].tolist(), *sums, strict=True):
            self.moved(process, allocated=up, freed=down)

    def live(self, process: int) -> tuple[int, int]:
        """Live bytes and live blocks."""
        totals = self._of(process)
        return totals.live_bytes, totals.live_blocks

    def apply(self, deltas: WindowDeltas, ticks: Int64s) -> None:
        """Follow a window: live totals after it, and peaks in it."""
        rows = np.flatnonzero((deltas.bytes != 0) | (deltas.blocks != 0))
        if not rows.size:
            return
        owners = deltas.process[rows]
        order = np.argsort(owners, kind="stable") if owners.min() != owners.max() else np.arange(rows.size)
        rows, owners = rows[order], owners[order]
        starts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]])).tolist()
        for first, last in zip(starts, [*starts[1:], rows.size], strict=True):
            totals, own = self._of(int(owners[first])), rows[first:last]
            level = totals.live_bytes + np.cumsum(deltas.bytes[own])
            highest = int(np.argmax(level))
            if level[highest] > totals.peak_bytes:
                totals.peak_bytes, totals.peak_ticks = int(level[highest]), int(ticks[own[highest]])
            totals.live_bytes = int(level[-1])
            totals.live_blocks += int(deltas.blocks[own].sum())

    def rows(self, clock: Clock) -> Lines:
        """Rows of table heap_counter: counters that are not zero, bytes, and the peak where there was any block."""
        rows: Lines = []
        for process in sorted(self._processes):
            totals = self._processes[process]
            values = {name: value for name, value in sorted(totals.counters.items()) if value}
            values |= {"bytes_allocated": totals.bytes_allocated, "bytes_freed": totals.bytes_freed}
            if totals.peak_bytes >= 0:
                values |= {"peak_bytes": totals.peak_bytes, "peak_ns": clock.ns_of(totals.peak_ticks)}
            rows.extend((process, name, min(value, _MAX_INTEGER)) for name, value in values.items())
        return rows

    def _of(self, process: int) -> _Process:
        totals = self._processes.get(process)
        if totals is None:
            totals = self._processes[process] = _Process()
        return totals
