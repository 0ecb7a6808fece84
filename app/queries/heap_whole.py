"""The blocks of a window by stack, size and lifetime: of a whole trace from what the collector added up, else block by block."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Table, func, select

from app.queries.heap_resizes import resized_later
from app.queries.heap_scan import LIFETIMES, SIZES, Group, by_stack, in_scope, scan
from app.queries.heap_timeline import HeapScope
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["Blocks", "Opened", "blocks_of", "covers_all", "opened_by_stack"]

Int64s = NDArray[np.int64]

_trace = TRACE.tables["trace"]
_heap = TRACE.tables["heap"]
_stack = TRACE.tables["heap_stack"]
_class = TRACE.tables["heap_class"]

_NEVER = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Blocks:
    """Sums over the blocks that began in a window, as (number, bytes), by class and by stack (None without one).

    `stayed` are held at its end, `passed` are not, `adopted_over` are from before the trace, first seen in the window and over in it.
    Rows of `sizes` and `lifetimes`: blocks, bytes, held blocks, held bytes; a column each class. `is_all` says that no block is older
    than the window and the trace ends in it.
    """

    stayed: tuple[int, int]
    passed: tuple[int, int]
    adopted_over: tuple[int, int]
    sizes: Int64s
    lifetimes: Int64s
    groups: dict[int | None, Group]
    is_all: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """Blocks that one stack made in a trace, and how many of them were freed, moved or destroyed with their heap."""

    blocks: int
    freed: int


def blocks_of(db: Connection, scope: HeapScope, t0: int, t1: int) -> Blocks:
    """The blocks of [t0, t1). Where that is not the whole trace: 2 µs a block."""
    if covers_all(db, scope, t0, t1):
        return _summed(db, scope)
    found = scan(db, scope, t0, t1)
    regrown = resized_later(db, in_scope(scope), t0, t1)
    found.add_held_bytes(regrown)
    stayed = found.stayed[0], found.stayed[1] + sum(regrown.values())
    return Blocks(stayed, found.passed, found.adopted_over, found.sizes, found.lifetimes, by_stack(db, found.by_ref), is_all=False)


def covers_all(db: Connection, scope: HeapScope, t0: int, t1: int) -> bool:
    """Whether no block of a scope begins before a window, and the trace ends in it."""
    end = db.execute(select(_trace.c.end_ns).where(_trace.c.trace_id == THIS_TRACE)).scalar()
    if end is None or t1 <= end:
        return False
    first = db.execute(select(func.min(_stack.c.first_ns)).where(*_mine(_stack, scope))).scalar()
    return first is None or t0 <= first


def opened_by_stack(db: Connection, scope: HeapScope) -> dict[int | None, Opened]:
    """All blocks of a whole trace by stack number, None without a stack."""
    s = _stack.c
    rows = db.execute(select(s.stack_n, func.sum(s.blocks), func.sum(s.freed)).where(*_mine(_stack, scope)).group_by(s.stack_n))
    return {row[0]: Opened(row[1], row[2]) for row in rows}


def _mine(table: Table, scope: HeapScope) -> tuple[ColumnElement[bool], ...]:
    heap_n = table.c.heap_n
    if scope.word == "heap":
        return table.c.trace_id == THIS_TRACE, heap_n == scope.n
    return table.c.trace_id == THIS_TRACE, heap_n.in_(
        select(_heap.c.n).where(_heap.c.trace_id == THIS_TRACE, _heap.c.process_n == scope.process_n)
    )


def _summed(db: Connection, scope: HeapScope) -> Blocks:
    c = _class.c
    sums = tuple(func.sum(c[name]) for name in ("blocks", "bytes", "held", "held_bytes"))
    tables = {"size": np.zeros((4, len(SIZES) + 1), dtype=np.int64), "lifetime": np.zeros((4, len(LIFETIMES) + 1), dtype=np.int64)}
    single = {"ended": (0, 0), "adopted": (0, 0)}
    for what, place, *numbers in db.execute(select(c.what, c.place, *sums).where(*_mine(_class, scope)).group_by(c.what, c.place)):
        if what in tables:
            tables[what][:, place] = numbers
        else:
            single[what] = numbers[0], numbers[1]
    _, _, held, held_bytes = tables["size"].sum(axis=1).tolist()
    return Blocks(
        (held, held_bytes), single["ended"], single["adopted"], tables["size"], tables["lifetime"], _groups(db, scope), is_all=True
    )


def _groups(db: Connection, scope: HeapScope) -> dict[int | None, Group]:
    s = _stack.c
    rows = db.execute(
        select(s.stack_n, s.blocks, s.bytes, s.held, s.held_bytes, s.first_ns, s.last_ns, s.is_suspect).where(*_mine(_stack, scope))
    )
    found: dict[int | None, Group] = {}
    for stack, blocks, size, held, held_bytes, first, last, is_suspect in rows:
        one = Group(blocks, size, held, held_bytes, first, last, bool(is_suspect))
        if stack in found:
            found[stack].add(one)  # a stack that allocates on several heaps
        else:
            found[stack] = one
    return found
