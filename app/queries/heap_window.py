"""What a process did with its heap between two times: what came and stayed, what came and went, by stack, by size, by lifetime."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, literal_column, select
from sqlalchemy.sql.elements import ColumnElement

from app.queries.heap_scan import LIFETIMES, SIZES, Group, in_scope
from app.queries.heap_timeline import HeapScope, live_at_end, live_before
from app.queries.heap_whole import blocks_of
from app.queries.resolution import LONG_NS
from app.queries.stack_modules import MAX_STACKS, NO_STACK, OTHERS, modules_of
from app.queries.stacks import callers_of
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["LIFETIMES", "SIZES", "ClassRow", "HeapWindow", "HeldByModule", "HeldByStack", "WindowClasses", "heap_window"]

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

_allocation = TRACE.tables["allocation"]
_resize = TRACE.tables["resize"]
_ref = TRACE.tables["stack_ref"]
_stack = TRACE.tables["stack"]


@dataclass(frozen=True, slots=True)
class WindowClasses:
    """Blocks by where they began and ended, as seen from a window: number and bytes.

    `stayed` began in it and were still there at its end, `passed` began and ended in it, `released` were older and ended in it,
    `steady` were there before and after. Bytes of what ended are its size at its end, of the rest its size at the window's end.
    """

    stayed: int
    stayed_bytes: int
    passed: int
    passed_bytes: int
    released: int
    released_bytes: int
    steady: int
    steady_bytes: int


@dataclass(frozen=True, slots=True)
class HeldByStack:
    """What one stack allocated in a window and still held at its end. `stack` is None for blocks without a stack."""

    stack: str | None
    callers: str
    held_bytes: int
    held: int
    allocated_bytes: int
    allocated: int
    first_ns: int
    last_ns: int
    is_suspect: bool


@dataclass(frozen=True, slots=True)
class HeldByModule:
    """What the stacks allocated whose innermost frame outside the allocator is in one module, and still held at the window's end."""

    module: str
    held_bytes: int
    held: int
    allocated_bytes: int
    allocated: int


@dataclass(frozen=True, slots=True)
class ClassRow:
    """Blocks of one class of size or lifetime; `low` is its lower limit, `high` its upper (None: open)."""

    low: int
    high: int | None
    blocks: int
    bytes: int
    held: int
    held_bytes: int


@dataclass(frozen=True, slots=True)
class HeapWindow:
    """What happened in a window. `stacks` are those that hold the most, `stacks_number` how many hold anything.

    `sizes` class the blocks that began in it by their size at the start, `lifetimes` those of them that were freed, moved or destroyed
    with their heap by how long they lived.
    """

    classes: WindowClasses
    stacks: tuple[HeldByStack, ...]
    stacks_number: int
    modules: tuple[HeldByModule, ...]
    sizes: tuple[ClassRow, ...]
    lifetimes: tuple[ClassRow, ...]


def heap_window(db: Connection, scope: HeapScope, t0: int, t1: int, *, stacks: int) -> HeapWindow:
    """The blocks of [t0, t1): from sums where that is the whole trace, else read once, 2 µs a block, in bounded memory.

    `stacks` is how many stacks to give.
    """
    found = blocks_of(db, scope, t0, t1)
    older = (0, 0) if found.is_all else _released(db, in_scope(scope), t0, t1)
    live = live_at_end(db, scope) if found.is_all else live_before(db, scope, t1)
    classes = WindowClasses(
        stayed=found.stayed[0],
        stayed_bytes=found.stayed[1],
        passed=found.passed[0],
        passed_bytes=found.passed[1],
        released=older[0] + found.adopted_over[0],
        released_bytes=older[1] + found.adopted_over[1],
        steady=live[1] - found.stayed[0],
        steady_bytes=live[0] - found.stayed[1],
    )
    held, number = _by_stack(db, found.groups, stacks)
    return HeapWindow(
        classes=classes,
        stacks=tuple(held),
        stacks_number=number,
        modules=tuple(_by_module(db, found.groups)),
        sizes=_class_rows(found.sizes, SIZES, closed=True),
        lifetimes=_class_rows(found.lifetimes, LIFETIMES, closed=False),
    )


def _class_rows(table: Int64s, limits: tuple[int, ...], *, closed: bool) -> tuple[ClassRow, ...]:
    """The classes that have blocks. `closed` limits belong to the class below, others to the one above."""
    found = []
    for index, (blocks, size, held, held_size) in enumerate(table.T.tolist()):
        if blocks:
            low = (limits[index - 1] + (1 if closed else 0)) if index else 0
            found.append(ClassRow(low, limits[index] if index < len(limits) else None, blocks, size, held, held_size))
    return tuple(found)


# ---------------------------------------------------------------------------------------------------- the older ones


def _released(db: Connection, mine: list[ColumnElement[bool]], t0: int, t1: int) -> tuple[int, int]:
    """Blocks from before t0 that ended in (t0, t1): by their start where they lived short, by an index of their own where long."""
    a = _allocation.c
    # Written as the index has it, since a partial index is used only for its very condition.
    long_lived: ColumnElement[bool] = literal_column(f"(allocation.end_ns - allocation.first_ns > {LONG_NS})")
    count = size = 0
    for search in ((a.first_ns >= t0 - LONG_NS, a.first_ns < t0), (long_lived, a.first_ns < t0 - LONG_NS)):
        row = db.execute(select(func.count(), func.coalesce(func.sum(a.size), 0)).where(*mine, *search, a.end_ns > t0, a.end_ns < t1)).one()
        count, size = count + row[0], size + row[1]
    return count, size


# ---------------------------------------------------------------------------------------------------- stacks


def _by_stack(db: Connection, groups: dict[int | None, Group], limit: int) -> tuple[list[HeldByStack], int]:
    """Stacks that hold something, the most bytes first, and their number."""
    holding = sorted(
        ((n, group) for n, group in groups.items() if group.held), key=lambda item: (-item[1].held_bytes, -item[1].held, item[1].first_ns)
    )
    shown = holding[:limit]
    numbers = [n for n, _ in shown if n is not None]
    hashes = {
        row.n: row.hash
        for row in db.execute(select(_stack.c.n, _stack.c.hash).where(_stack.c.trace_id == THIS_TRACE, _stack.c.n.in_(numbers)))
    }
    lines = callers_of(db, numbers)
    return [
        HeldByStack(
            stack=None if n is None else hashes.get(n),
            callers="" if n is None else lines.get(n, ""),
            held_bytes=group.held_bytes,
            held=group.held,
            allocated_bytes=group.allocated_bytes,
            allocated=group.allocated,
            first_ns=group.first_ns,
            last_ns=group.last_ns,
            is_suspect=group.is_suspect,
        )
        for n, group in shown
    ], len(holding)


def _by_module(db: Connection, groups: dict[int | None, Group]) -> list[HeldByModule]:
    """Modules that hold something, the most bytes first; of more than MAX_STACKS stacks the rest is one line."""
    holding = {n: group for n, group in groups.items() if group.held}
    ranked = sorted((n for n in holding if n is not None), key=lambda n: -holding[n].held_bytes)
    owners = modules_of(db, ranked[:MAX_STACKS])
    sums: dict[str, Group] = {}
    for n, group in holding.items():
        sums.setdefault(NO_STACK if n is None else owners.get(n, OTHERS), Group()).add(group)
    rows = [HeldByModule(name, one.held_bytes, one.held, one.allocated_bytes, one.allocated) for name, one in sums.items()]
    return sorted(rows, key=lambda row: (-row.held_bytes, -row.held, row.module))
