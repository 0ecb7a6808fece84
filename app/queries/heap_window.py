"""What a process did with its heap between two times: what came and stayed, what came and went, by stack, by size, by lifetime."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, case, func, literal_column, or_, select
from sqlalchemy.sql.elements import ColumnElement

from app.queries.heap_timeline import HeapScope
from app.queries.resolution import LONG_NS
from app.queries.stacks import callers_of
from collector.store.tables import TRACE
from collector.words import END_REASONS, ORIGINS

__all__ = [
    "LIFETIMES",
    "SIZES",
    "ClassRow",
    "HeldByStack",
    "WindowClasses",
    "held_by_stack_between",
    "lifetime_classes",
    "size_classes",
    "window_classes",
]

_allocation = TRACE.tables["allocation"]
_resize = TRACE.tables["resize"]
_rollup = TRACE.tables["heap_rollup"]
_ref = TRACE.tables["stack_ref"]
_stack = TRACE.tables["stack"]

SIZES = (0, *(1 << power for power in range(4, 21)))
"""Upper limits of the size classes; the last class has none."""

LIFETIMES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000)
"""Limits between the lifetime classes, in ns; a lifetime of exactly a limit belongs to the class above it."""

_ADOPTED = ORIGINS.index("adopted")
_LIFETIME_ENDS = [END_REASONS.index(word) for word in ("freed", "realloc_moved", "heap_destroyed")]

Block = ColumnElement[Any]


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
class ClassRow:
    """Blocks of one class of size or lifetime; `low` is its lower limit, `high` its upper (None: open)."""

    low: int
    high: int | None
    blocks: int
    bytes: int
    held: int
    held_bytes: int


def _mine(scope: HeapScope) -> list[ColumnElement[bool]]:
    a = _allocation.c
    return [a.trace_id == 1, a.process_n == scope.process_n] + ([a.heap_n == scope.n] if scope.word == "heap" else [])


def _began(t0: int, t1: int) -> tuple[ColumnElement[bool], ...]:
    """Blocks whose start is known and in [t0, t1)."""
    a = _allocation.c
    return (a.first_ns >= t0, a.first_ns < t1, a.origin != _ADOPTED)


def window_classes(db: Connection, scope: HeapScope, t0: int, t1: int) -> WindowClasses:
    """Blocks that live at some time in [t0, t1), by class."""
    a, mine = _allocation.c, _mine(scope)
    ended = case((a.end_ns < t1, 1), else_=0)
    stayed = passed = (0, 0)
    rows = db.execute(select(ended.label("ended"), func.count(), func.sum(a.size)).where(*mine, *_began(t0, t1)).group_by(ended))
    for is_over, count, size in rows:
        if is_over:
            passed = (count, size)
        else:
            stayed = (count, size)
    released = _released(db, mine, t0, t1)
    steady = _steady(db, mine, t0, t1)
    later = _resized_later(db, mine, t1, and_(*_began(t0, t1), or_(a.end_ns.is_(None), a.end_ns >= t1)))
    later_steady = _resized_later(db, mine, t1, and_(_is_old(t0), a.first_ns < t1, or_(a.end_ns.is_(None), a.end_ns >= t1)))
    return WindowClasses(stayed[0], stayed[1] + later, passed[0], passed[1], released[0], released[1], steady[0], steady[1] + later_steady)


def _is_old(t0: int) -> ColumnElement[bool]:
    """Blocks that began before a time, or that were adopted: their start is unknown."""
    a = _allocation.c
    return or_(a.first_ns < t0, a.origin == _ADOPTED)


def _sum(db: Connection, *conditions: ColumnElement[bool]) -> tuple[int, int]:
    a = _allocation.c
    row = db.execute(select(func.count(), func.coalesce(func.sum(a.size), 0)).where(*conditions)).one()
    return row[0], row[1]


def _released(db: Connection, mine: list[ColumnElement[bool]], t0: int, t1: int) -> tuple[int, int]:
    """Old blocks that ended in (t0, t1): by their start where they lived short, by an index of their own where long."""
    a = _allocation.c
    # Written as the index has it, since a partial index is used only for its very condition.
    long_lived: ColumnElement[bool] = literal_column(f"(allocation.end_ns - allocation.first_ns > {LONG_NS})")
    ends = (a.end_ns > t0, a.end_ns < t1)
    parts = (
        _sum(db, *mine, *ends, a.first_ns >= t0 - LONG_NS, a.first_ns < t0),
        _sum(db, *mine, *ends, long_lived, a.first_ns < t0 - LONG_NS),
        _sum(db, *mine, *ends, a.first_ns >= t0, a.first_ns < t1, a.origin == _ADOPTED),
    )
    return sum(part[0] for part in parts), sum(part[1] for part in parts)


def _steady(db: Connection, mine: list[ColumnElement[bool]], t0: int, t1: int) -> tuple[int, int]:
    a = _allocation.c
    return _sum(db, *mine, a.first_ns < t1, _is_old(t0), or_(a.end_ns.is_(None), a.end_ns >= t1))


def _resized_later(db: Connection, mine: list[ColumnElement[bool]], t1: int, members: ColumnElement[bool]) -> int:
    """What the blocks of a class gained or lost by reallocation in place after a time, to be taken back: their sizes are the last ones."""
    z = _resize.c
    gained: int = db.execute(
        select(func.coalesce(func.sum(z.old_size - z.size), 0))
        .select_from(_resize.join(_allocation, and_(_allocation.c.trace_id == z.trace_id, _allocation.c.n == z.allocation_n)))
        .where(z.trace_id == 1, z.t_ns >= t1, *mine, members)
    ).scalar_one()
    return gained


def held_by_stack_between(
    db: Connection, scope: HeapScope, t0: int, t1: int, *, limit: int, by: str = "held_bytes"
) -> tuple[list[HeldByStack], bool]:
    """Stacks whose blocks of [t0, t1) are still held at t1, and whether there are more; `by` is a column of HeldByStack."""
    a = _allocation.c
    held = or_(a.end_ns.is_(None), a.end_ns >= t1)
    sums = {
        "held_bytes": func.sum(case((held, a.size), else_=0)),
        "held": func.sum(case((held, 1), else_=0)),
        "allocated_bytes": func.sum(a.size_at_open),
        "allocated": func.count(),
    }
    suspect = func.max(case((and_(held, a.trust == 1), 1), else_=0))
    rows = db.execute(
        select(
            _ref.c.stack_n,
            *(column.label(name) for name, column in sums.items()),
            func.min(a.first_ns).label("first_ns"),
            func.max(a.first_ns).label("last_ns"),
            suspect.label("suspect"),
        )
        .select_from(_allocation.outerjoin(_ref, and_(_ref.c.trace_id == 1, _ref.c.ref == a.owner_stack_ref)))
        .where(*_mine(scope), *_began(t0, t1))
        .group_by(_ref.c.stack_n)
        .having(sums["held" if by.startswith("held") else "allocated"] > 0)
        .order_by(sums[by].desc(), func.min(a.first_ns))
        .limit(limit + 1)
    ).all()
    shown = rows[:limit]
    numbers = [row.stack_n for row in shown if row.stack_n is not None]
    named = db.execute(select(_stack.c.n, _stack.c.hash).where(_stack.c.trace_id == 1, _stack.c.n.in_(numbers)))
    hashes = {row.n: row.hash for row in named}
    lines = callers_of(db, numbers)
    return [
        HeldByStack(
            stack=hashes.get(row.stack_n),
            callers=lines.get(row.stack_n, ""),
            held_bytes=row.held_bytes,
            held=row.held,
            allocated_bytes=row.allocated_bytes,
            allocated=row.allocated,
            first_ns=row.first_ns,
            last_ns=row.last_ns,
            is_suspect=bool(row.suspect),
        )
        for row in shown
    ], len(rows) > limit


def _classes(
    db: Connection, where: Sequence[ColumnElement[bool]], limits: Sequence[int], value: ColumnElement[int], *, closed: bool, t1: int
) -> list[ClassRow]:
    """Blocks by the class of a value. `closed` limits belong to the class below, others to the one above."""
    a = _allocation.c
    place = case(*(((value <= limit) if closed else (value < limit), index) for index, limit in enumerate(limits)), else_=len(limits))
    held = or_(a.end_ns.is_(None), a.end_ns >= t1)
    rows = db.execute(
        select(
            place.label("place"),
            func.count(),
            func.sum(a.size_at_open),
            func.sum(case((held, 1), else_=0)),
            func.sum(case((held, a.size), else_=0)),
        )
        .where(*where)
        .group_by(place)
        .order_by(place)
    )
    found = []
    for index, blocks, size, held_blocks, held_bytes in rows:
        low = (limits[index - 1] + (1 if closed else 0)) if index else 0
        found.append(ClassRow(low, limits[index] if index < len(limits) else None, blocks, size, held_blocks, held_bytes))
    return found


def size_classes(db: Connection, scope: HeapScope, t0: int, t1: int) -> list[ClassRow]:
    """Blocks allocated in [t0, t1) by their size at the start."""
    return _classes(db, [*_mine(scope), *_began(t0, t1)], SIZES, _allocation.c.size_at_open, closed=True, t1=t1)


def lifetime_classes(db: Connection, scope: HeapScope, t0: int, t1: int) -> list[ClassRow]:
    """Blocks allocated in [t0, t1) that were freed, moved or destroyed with their heap, by how long they lived."""
    a = _allocation.c
    where = [*_mine(scope), *_began(t0, t1), a.end_reason.in_(_LIFETIME_ENDS)]
    return _classes(db, where, LIFETIMES, a.end_ns - a.first_ns, closed=False, t1=t1)
