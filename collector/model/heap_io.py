"""The memory behind the buffers of socket operations, and blocks that end while an operation uses them: a pass over the unfinished file."""

from collections.abc import Iterator
from heapq import merge
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, Table, case, func, select
from sqlalchemy import Row as RowOf

from collector.clock import Clock
from collector.losses import Losses
from collector.model.heap_io_regions import Regions
from collector.model.heap_io_spots import Spots
from collector.model.heap_io_sweep import Block, Finding, Operation, Resize, Sweep
from collector.model.heap_losses import LossIndex
from collector.model.rows import Lines, Row, Rows
from collector.model.spool import STRETCH, TimeSpool
from collector.store.tables import allocation, heap, heap_range, module, operation, resize, socket, thread
from collector.words import BUFFER_CLASSES, CERTAINTIES, SPACES

__all__ = ["join_buffers"]

Int64s: TypeAlias = NDArray[np.int64]
Records: TypeAlias = NDArray[np.void]

_ABSENT = -(1 << 63)
_NEVER = np.iinfo(np.int64).max
_CHUNK = 50_000
_ROWS_AT_ONCE = 1 << 14
_POSTED_COLUMNS = (
    "n", "t", "socket_n", "process", "buffer", "length", "count", "seq", "end_ns", "completed_ns", "completed_seq",
)  # fmt: skip
_POSTED = np.dtype([(name, "<i8") for name in _POSTED_COLUMNS])
_USER = SPACES.index("user")
_NONE = -1
_FREED, _IMAGE, _STACK, _UNTRACKED, _UNKNOWN = (
    BUFFER_CLASSES.index(word) for word in ("freed_block", "image", "stack", "heap_untracked", "unknown")
)

_Timed: TypeAlias = tuple[int, int, int, Block | Resize | tuple[Operation, int, int]]
"""Time in ns, record number, and what begins then; the number between keeps equal ones apart."""


def join_buffers(connection: Connection, clock: Clock, losses: Losses, *, stretch: int = STRETCH) -> Iterator[Rows]:
    """Rows of the tables operation_buffer and io_finding, in pieces.

    Reads operations, allocations, resizes, modules, threads and heap ranges; each once, in the order of time, but the operations twice. In
    memory are the distinct buffer addresses, the blocks that live there, and operations in flight. Operations of a process whose
    heap was not recorded get no rows: nothing could be said of buffers that are neither in an image nor on a stack.

    Args:
        stretch: operations that are in memory at once, about.
    """
    heap_processes = _heap_processes(connection)
    if not heap_processes.size:
        return
    with TimeSpool(_POSTED, border=0, stretch=stretch) as spool:
        spots = Spots()
        for rows in _pages(connection, _operations(), operation):
            posted = np.array([tuple(row) for row in rows], dtype=np.int64).view(_POSTED).reshape(-1)
            posted = posted[np.isin(posted["process"], heap_processes)]
            spots.add(posted["process"], posted["buffer"], posted["buffer"] + np.maximum(posted["length"], 1))
            spool.add(posted)
        spots.finish()
        if spots.count:
            yield from _Join(connection, clock, losses, spots).run(spool)


class _Join:
    """One run of the sweep over one file."""

    def __init__(self, connection: Connection, clock: Clock, losses: Losses, spots: Spots) -> None:
        self._connection, self._spots = connection, spots
        self._sweep = Sweep(spots.count, spots.between, clock, LossIndex(losses))
        read = connection.execute
        self._images = Regions(
            (int(p), int(lo), int(lo) + int(size), since, until)
            for p, lo, size, since, until in read(
                select(module.c.process_n, module.c.base, module.c.size_bytes, module.c.loaded_ns, module.c.unloaded_ns)
                .where(module.c.process_n.is_not(None), module.c.size_bytes > 0)
            )
        )  # fmt: skip
        self._stacks = Regions(
            (int(p), int(lo), int(hi), since, until)
            for p, lo, hi, since, until in read(
                select(thread.c.process_n, thread.c.stack_low, thread.c.stack_high, thread.c.start_ns, thread.c.end_ns)
                .where(thread.c.process_n.is_not(None), thread.c.stack_low.is_not(None), thread.c.stack_high.is_not(None))
            )
        )  # fmt: skip
        self._ranges = Regions(
            (int(p), int(lo), int(hi), since, until)
            for p, lo, hi, since, until in read(
                select(heap_range.c.process_n, heap_range.c.lo, heap_range.c.hi, heap_range.c.from_ns, heap_range.c.until_ns)
                .where(heap_range.c.process_n.is_not(None))
            )
        )  # fmt: skip
        self._grown = _grown(connection)
        self._buffers: Lines = []
        self._findings = 0

    def run(self, spool: TimeSpool) -> Iterator[Rows]:
        """Sweep over everything; rows in pieces."""
        sweep = self._sweep
        for _, _, _, what in merge(self._opened(), self._resized(), self._posted(spool)):
            if isinstance(what, Block):
                sweep.open(what)
            elif isinstance(what, Resize):
                sweep.resize(what)
            else:
                self._post(*what)
            if len(self._buffers) + len(sweep.findings) > _ROWS_AT_ONCE:
                yield self._take()
        sweep.finish()
        yield self._take()

    def _post(self, posted: Operation, near: int, far: int) -> None:
        """Class one buffer: a live block, an image or a stack, a block that has ended, or what is left."""
        class_, block_n, offset = self._sweep.post(posted)
        if class_ in (_NONE, _FREED) and near != _NONE:
            class_ = near
        elif class_ == _FREED:
            self._sweep.posted_after_free(posted)
        elif class_ == _NONE:
            class_ = far
        self._buffers.append((posted.n, class_, block_n, offset))

    def _take(self) -> Rows:
        findings, self._sweep.findings = self._sweep.findings, []
        rows: Rows = {
            "operation_buffer": self._buffers,
            "io_finding": [_finding_row(self._findings + i, finding) for i, finding in enumerate(findings)],
        }
        self._findings += len(findings)
        self._buffers = []
        return rows

    # ------------------------------------------------------------------------------------------------ streams

    def _opened(self) -> Iterator[_Timed]:
        """Blocks that some buffer may touch, in the order of opening."""
        grown_n, grown_size = self._grown
        for rows in _pages(self._connection, _allocations(), allocation):
            table = np.array([tuple(row)[:5] for row in rows], dtype=np.int64)
            n, process, lo, largest, size = table.T
            if grown_n.size:
                at = np.minimum(np.searchsorted(grown_n, n), grown_n.size - 1)
                largest = np.where(grown_n[at] == n, np.maximum(grown_size[at], largest), largest)
            first, last, at_start, touches = (np.zeros(n.size, dtype=np.int64) for _ in range(4))
            for one in np.unique(process).tolist():
                own = np.flatnonzero(process == one)
                first[own], last[own], at_start[own] = self._spots.inside(one, lo[own], lo[own] + size[own])
                touches[own] = self._spots.may_touch(one, lo[own], lo[own] + np.maximum(largest[own], 1))
            chosen = np.flatnonzero(touches)
            columns = (chosen.tolist(), first[chosen].tolist(), last[chosen].tolist(), at_start[chosen].tolist())
            for i, low, high, exact in zip(*columns, strict=True):
                block = _block(tuple(rows[i]), (low, high), exact)
                yield block.ns, block.seq, 0, block

    def _resized(self) -> Iterator[_Timed]:
        for rows in _pages(self._connection, _resizes(), resize):
            for _, block_n, ns, seq, size in map(tuple, rows):
                yield ns, seq, 1, Resize(block_n, ns, seq, size)

    def _posted(self, spool: TimeSpool) -> Iterator[_Timed]:
        """Operations in the order of their posts, each with the classes that it has where no heap block is found."""
        for stretch, _ in spool.stretches():
            posted = stretch[np.lexsort((stretch["seq"], stretch["t"]))]
            for first in range(0, posted.size, _CHUNK):
                yield from self._piece(posted[first : first + _CHUNK])

    def _piece(self, p: Records) -> Iterator[_Timed]:
        where = p["process"], p["buffer"], p["t"]
        near = np.where(self._images.hold(*where), _IMAGE, np.where(self._stacks.hold(*where), _STACK, _NONE))
        far = np.where(self._ranges.hold(*where), _UNTRACKED, _UNKNOWN)
        spots = self._spots.of(p["process"], p["buffer"])
        is_done = p["completed_seq"] != _ABSENT
        closed = np.where(p["end_ns"] == _ABSENT, _NEVER, p["end_ns"])
        is_sent = ~is_done & (closed == p["t"])
        end_ns = np.where(is_done, p["completed_ns"], closed)
        end_seq = np.where(is_done, p["completed_seq"], np.where(is_sent, p["seq"], -1))
        columns = [p[name] for name in ("n", "socket_n", "process")]
        columns += [spots, p["buffer"], p["length"], p["count"] > 1, p["t"], p["seq"], end_ns, end_seq, closed, is_done]
        for posted, one, other in zip(map(Operation, *(c.tolist() for c in columns)), near.tolist(), far.tolist(), strict=True):
            yield posted.ns, posted.seq, 2, (posted, one, other)


def _block(row: tuple[Any, ...], spots: tuple[int, int], zero_spot: int) -> Block:
    n, process, lo, _, size, ns, seq, end_ns, end_seq, reason, is_inferred, stack_ref = row
    if end_ns is None or end_seq is None:
        end_ns = end_seq = _NEVER
    return Block(n, process, lo, size, ns, seq, end_ns, end_seq, reason or 0, bool(is_inferred), stack_ref, spots, zero_spot)


def _finding_row(n: int, finding: Finding) -> Row:
    posted, block = finding.operation, finding.block
    return (
        n, finding.kind, finding.ns, posted.process, posted.socket_n, posted.n, block.n, finding.reason, finding.by_bytes,
        CERTAINTIES[0 if finding.is_certain else 1], block.free_stack_ref if finding.reason else None,
    )  # fmt: skip


def _heap_processes(connection: Connection) -> Int64s:
    """Processes with heap records, or with known heap ranges."""
    columns = (heap.c.process_n, heap_range.c.process_n)
    return np.array([n for column in columns for (n,) in connection.execute(select(column).distinct()) if n is not None], dtype=np.int64)


def _pages(connection: Connection, query: "Select[Any]", table: Table) -> Iterator[list["RowOf[Any]"]]:
    """The rows of a query in the order of the table's numbers, page by page: no cursor stays open while rows are written."""
    last = -1
    while True:
        page = query.where(table.c.trace_id == 1, table.c.n > last).order_by(table.c.n).limit(_CHUNK)
        rows = list(connection.execute(page).fetchall())
        if not rows:
            return
        yield rows
        last = int(rows[-1][0])


def _operations() -> "Select[Any]":
    o = operation.c
    return (
        select(
            o.n, o.posted_ns, o.socket_n, func.coalesce(socket.c.process_n, -1), o.buffer, func.coalesce(o.posted_len, 0),
            func.coalesce(o.buffer_count, 1), func.coalesce(o.posted_seq, -1), func.coalesce(o.end_ns, _ABSENT),
            func.coalesce(o.completed_ns, _ABSENT), func.coalesce(o.completed_seq, _ABSENT),
        )
        .join_from(operation, socket, (socket.c.trace_id == o.trace_id) & (socket.c.n == o.socket_n))
        .where(o.space == _USER, o.posted_ns.is_not(None), o.buffer.is_not(None))
    )  # fmt: skip


def _allocations() -> "Select[Any]":
    a = allocation.c
    largest = case((a.size > a.size_at_open, a.size), else_=a.size_at_open)
    return select(
        a.n, a.process_n, a.address, largest, a.size_at_open, a.first_ns, a.first_seq, a.end_ns, a.end_seq, a.end_reason, a.end_inferred,
        a.free_stack_ref,
    )  # fmt: skip


def _resizes() -> "Select[Any]":
    r = resize.c
    return select(r.n, r.allocation_n, r.t_ns, r.seq, r.size)


def _grown(connection: Connection) -> tuple[Int64s, Int64s]:
    """Blocks resized more than once, whose largest size may be neither the first nor the last: number and largest size."""
    r = resize.c
    rows = connection.execute(
        select(r.allocation_n, func.max(r.size)).group_by(r.allocation_n).having(func.count() > 1).order_by(r.allocation_n)
    )
    table = np.array([tuple(row) for row in rows], dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]
