"""Whose frames they are: a process at a time between two changes of its images.

Stacks of one context resolve alike, so a stack seen often is one number. Images are looked up at the end of the trace only, as the rundown
there tells which were loaded all along.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.model.processes import KERNEL, Processes
from collector.schema import DecodedBatch

__all__ = ["Contexts", "FrameTable", "NamedFrame"]

Bools: TypeAlias = NDArray[np.bool_]
Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]

_IMAGE_EVENTS = ("ImageLoad", "ImageUnload", "ImageDCStart", "ImageDCEnd")
_KERNEL_PID = 0
_MAX_KNOWN = 100_000


@dataclass(frozen=True, slots=True)
class _Context:
    """`process` is -1 where only the process id is known; seq and ns are those of the context's first event."""

    process: int
    pid: int
    seq: int
    ns: int


class NamedFrame(NamedTuple):
    """A frame and where it is; the module is empty, and the offset the address, for one outside of all images."""

    address: int
    module: str
    offset: int
    text: str
    """What goes into the stack's hash."""


class Contexts:
    """All contexts of one trace."""

    def __init__(self) -> None:
        self._all: list[_Context] = []
        self._tables: dict[tuple[tuple[int, int, str], ...], FrameTable] = {}
        self._known: dict[tuple[int, int, int, int], int] = {}
        self._changes: dict[int, int] = {}
        """Image events so far, by process id."""
        self._window: dict[int, Int64s] = {}
        """Rows of the image events of the current window, by process id."""

    def advance(self, batch: DecodedBatch) -> None:
        """Take in the image events of a window."""
        for pid, rows in self._window.items():
            self._changes[pid] = self._changes.get(pid, 0) + int(rows.size)
        found = [
            (c.numbers("process_id").astype(np.int64), c.rows)
            for name in _IMAGE_EVENTS
            if (c := batch.get(name)) and "process_id" in c.fields
        ]
        self._window = {}
        if found:
            pids, rows = (np.concatenate(columns) for columns in zip(*found, strict=True))
            order = np.lexsort((rows, pids))
            pids, rows = pids[order], rows[order]
            for part in np.split(np.arange(pids.size), np.flatnonzero(np.diff(pids)) + 1):
                self._window[int(pids[part[0]])] = rows[part]

    def of(self, batch: DecodedBatch, rows: Int64s, pids: Int64s, processes: Int64s) -> Int64s:
        """The context of events of the window.

        Args:
            rows: ascending, shape (n,).
            processes: process row numbers, -1 where only the process id is known.
        """
        contexts = np.empty(rows.size, dtype=np.int64)
        pair = (processes + 1 << np.int64(32)) | (pids & np.int64(0xFFFFFFFF))
        for one in np.unique(pair).tolist():
            where = np.flatnonzero(pair == one)
            pid, process = one & 0xFFFFFFFF, (one >> 32) - 1
            changes = np.sort(np.concatenate([self._window.get(p, np.zeros(0, np.int64)) for p in {pid, _KERNEL_PID}]))
            since = np.searchsorted(changes, rows[where], side="right") if changes.size else np.zeros(where.size, dtype=np.int64)
            for part in np.unique(since).tolist():
                own = where[since == part]
                contexts[own] = self._get(batch, pid, process, int(part), int(rows[own[0]]))
        return contexts

    def _get(self, batch: DecodedBatch, pid: int, process: int, part: int, row: int) -> int:
        seen = sum(self._changes.get(p, 0) for p in {pid, _KERNEL_PID}) + part
        key = process, pid, seen, 0
        context = self._known.get(key)
        if context is None:
            context = self._known[key] = len(self._all)
            self._all.append(_Context(process, pid, batch.raw.first_seq + row, int(batch.ns[row])))
        return context

    def table(self, context: int, processes: Processes) -> "FrameTable":
        """The images of a context, one table for all contexts that have the same; after the last window."""
        own = self._all[context]
        process = own.process if own.process >= 0 else processes.of_pid(own.pid, own.seq, own.ns, "header")
        modules = tuple(
            (m.base, m.size, m.file)
            for n in (process, KERNEL)
            for m in processes.modules(n)
            if (m.loaded_seq is None or m.loaded_seq <= own.seq) and (m.unloaded_seq is None or m.unloaded_seq > own.seq)
        )
        if modules not in self._tables:
            self._tables[modules] = FrameTable(modules)
        return self._tables[modules]


class FrameTable:
    """Images that are loaded at one time; names are those of the files."""

    def __init__(self, images: Iterable[tuple[int, int, str]]) -> None:
        modules = sorted(images)
        self._bases = [base for base, _, _ in modules]
        self._sizes = [size for _, size, _ in modules]
        self._names = [file.replace("/", "\\").rsplit("\\", 1)[-1] for _, _, file in modules]
        self._known: dict[int, NamedFrame] = {}  # return addresses negative

    def name(self, frames: list[int]) -> list[NamedFrame]:
        """Module and offset of each frame of one stack, innermost first; stacks share most of their frames, so those found are kept.

        All but the innermost are return addresses, which point behind the call: a call that never returns can be the last of its image.
        """
        if len(self._known) > _MAX_KNOWN:
            self._known.clear()
        known = self._known
        return [known.get(key) or self._find(key) for key in (*frames[:1], *(-frame for frame in frames[1:]))]

    def _find(self, key: int) -> NamedFrame:
        frame = abs(key)
        asked = frame - 1 if key < 0 else frame
        at = bisect_right(self._bases, asked) - 1
        is_inside = at >= 0 and asked - self._bases[at] < self._sizes[at]
        module, offset = (self._names[at], frame - self._bases[at]) if is_inside else ("", frame)
        found = self._known[key] = NamedFrame(frame, module, offset, f"{module.lower()}+{offset:x}")
        return found
