"""Heap handles and their lives: which heap a record speaks of, and which life of it at that moment.

A handle of a process is a small index here; it can live several times (create, destroy, create).
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.clock import Clock
from collector.model.rows import Lines, rows_of, signed

__all__ = ["Heap", "Life", "Lives"]

Bools: TypeAlias = NDArray[np.bool_]
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]


@dataclass(slots=True)
class Life:
    """One life of a heap handle; times are raw ticks, sizes the last known ones in bytes."""

    n: int
    number: int
    process: int
    handle: int
    first_ticks: int
    flags: int | None = None
    create_seen: bool = False
    created_ticks: int | None = None
    destroyed_ticks: int | None = None
    is_named_only: bool = True
    """Only sizes and marks so far: nothing says that it is older than its first record."""
    committed: int | None = None
    reserved: int | None = None
    free_space: int | None = None
    allocated: int | None = None


@dataclass(slots=True)
class Heap:
    """One handle of one process."""

    index: int
    process: int
    handle: int
    lives: int = 0
    life: Life | None = None
    """The current life, or the last one when `is_destroyed`."""
    is_destroyed: bool = False
    changes: list[tuple[int, Life]] = field(default_factory=list)
    """Lives begun in the current window: (row, life)."""
    before: Life | None = None
    """The life that was current when the window began, where `changes` has any."""


class Lives:
    """All heap handles of a trace, and the lives of each."""

    def __init__(self) -> None:
        self.heaps: list[Heap] = []
        self.by_process: dict[int, list[Heap]] = {}
        self.lives: list[Life] = []
        self.destroyed: dict[int, None] = {}
        """Indices of heaps that are destroyed now."""
        self.process: Int32s = np.zeros(16, dtype=np.int32)
        """Process of each heap index; the first `len(heaps)` are in use, as in the two below."""
        self.life_n: Int32s = np.full(16, -1, dtype=np.int32)
        """Row number of the current or last life."""
        self.create_seen: Bools = np.zeros(16, dtype=np.bool_)
        """Whether that life began with a Create."""
        self._handles: UInt64s = np.zeros(0, dtype=np.uint64)
        self._pairs: Int64s = np.zeros(0, dtype=np.int64)
        self._pair_heaps: Int32s = np.zeros(0, dtype=np.int32)
        self._handle_numbers: Int64s = np.zeros(0, dtype=np.int64)
        self._changed: list[Heap] = []

    def indices(self, processes: Int64s, handles: UInt64s) -> tuple[Int32s, list[Heap]]:
        """The heap of each record, and the heaps that nobody spoke of before.

        Args:
            processes: process row number of each record, int64, shape (n,); below 2^31.
            handles: uint64, shape (n,).
        """
        numbers = self._number_handles(handles)
        pairs = (processes << np.int64(32)) | numbers
        at = np.searchsorted(self._pairs, pairs)
        at[at == self._pairs.size] = 0
        is_new = self._pairs[at] != pairs if self._pairs.size else np.ones(pairs.size, dtype=np.bool_)
        made: list[Heap] = []
        if is_new.any():
            new, first = np.unique(pairs[is_new], return_index=True)
            where = np.flatnonzero(is_new)[first]
            made += [self._add(int(processes[row]), int(handles[row])) for row in where.tolist()]
            merged = np.concatenate([self._pairs, new])
            order = np.argsort(merged)
            self._pairs = merged[order]
            self._pair_heaps = np.concatenate([self._pair_heaps, np.array([h.index for h in made], dtype=np.int32)])[order]
            at = np.searchsorted(self._pairs, pairs)
        return self._pair_heaps[at], made

    def begin(self, heap: Heap, row: int, ticks: int, *, create_seen: bool = False, flags: int | None = None) -> Life:
        """Begin a life of a handle with the record at a row of the window."""
        heap.lives += 1
        life = Life(len(self.lives), heap.lives, heap.process, heap.handle, ticks, flags, create_seen, ticks if create_seen else None)
        self.lives.append(life)
        if not heap.changes:
            heap.before = heap.life
            self._changed.append(heap)
        heap.changes.append((row, life))
        heap.life, heap.is_destroyed = life, False
        self.destroyed.pop(heap.index, None)
        self.life_n[heap.index], self.create_seen[heap.index] = life.n, create_seen
        return life

    def destroy(self, heap: Heap, ticks: int) -> None:
        """End the current life of a handle."""
        assert heap.life is not None
        heap.is_destroyed, heap.life.destroyed_ticks = True, ticks
        self.destroyed[heap.index] = None

    def created(self, heap: Heap, ticks: int, flags: int) -> None:
        """The Create of a life that began with the first sizes of its heap."""
        life = heap.life
        assert life is not None
        life.create_seen, life.created_ticks, life.flags = True, ticks, flags
        self.create_seen[heap.index] = True

    def at(self, heap: Heap, row: int) -> Life:
        """The life that a record of the window belongs to; records after a destroy belong to the life that it ended."""
        i = bisect_right(heap.changes, row, key=lambda change: change[0])
        life = heap.changes[i - 1][1] if i else heap.before or (heap.changes[0][1] if heap.changes else heap.life)
        assert life is not None, "a heap has a life from its first record on"
        return life

    def end_window(self) -> None:
        """Forget which lives began in the window."""
        for heap in self._changed:
            heap.changes.clear()
            heap.before = None
        self._changed.clear()

    def rows(self, clock: Clock) -> Lines:
        """Rows of table heap."""

        def ns(ticks: int | None) -> int | None:
            return None if ticks is None else clock.ns_of(ticks)

        return rows_of(
            "heap",
            {
                "n": [life.n for life in self.lives],
                "process_n": [life.process for life in self.lives],
                "handle": [signed(life.handle) for life in self.lives],
                "life": [life.number for life in self.lives],
                "flags": [life.flags for life in self.lives],
                "created_ns": [ns(life.created_ticks) for life in self.lives],
                "first_ns": [ns(life.first_ticks) for life in self.lives],
                "destroyed_ns": [ns(life.destroyed_ticks) for life in self.lives],
                "create_seen": [life.create_seen for life in self.lives],
                "committed": [life.committed for life in self.lives],
                "reserved": [life.reserved for life in self.lives],
                "free_space": [life.free_space for life in self.lives],
                "allocated": [life.allocated for life in self.lives],
            },
            count=len(self.lives),
        )

    def _add(self, process: int, handle: int) -> Heap:
        heap = Heap(len(self.heaps), process, handle)
        self.heaps.append(heap)
        self.by_process.setdefault(process, []).append(heap)
        if heap.index >= self.process.size:
            size = 2 * self.process.size
            self.process, self.life_n = np.resize(self.process, size), np.resize(self.life_n, size)
            self.create_seen = np.resize(self.create_seen, size)
        self.process[heap.index], self.life_n[heap.index], self.create_seen[heap.index] = process, -1, False
        return heap

    def _number_handles(self, handles: UInt64s) -> Int64s:
        """A small number for each handle value; a trace has few of them, so they are searched."""
        at = np.searchsorted(self._handles, handles)
        at[at == self._handles.size] = 0
        is_new = self._handles[at] != handles if self._handles.size else np.ones(handles.size, dtype=np.bool_)
        if is_new.any():
            new = np.unique(handles[is_new])
            merged = np.concatenate([self._handles, new])
            numbers = np.concatenate([self._handle_numbers, np.arange(self._handles.size, merged.size)])
            order = np.argsort(merged)
            self._handles, self._handle_numbers = merged[order], numbers[order]
            at = np.searchsorted(self._handles, handles)
        return self._handle_numbers[at]
