"""What a process did with its heap between two times: what came and stayed, what came and went, by stack, by size, by lifetime."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, and_, func, literal_column, or_, select
from sqlalchemy.sql.elements import ColumnElement

from app.queries.heap_timeline import HeapScope, live_before
from app.queries.resolution import LONG_NS
from app.queries.stacks import callers_of
from collector.store.tables import TRACE
from collector.words import END_REASONS, ORIGINS

__all__ = ["LIFETIMES", "SIZES", "ClassRow", "HeapWindow", "HeldByStack", "WindowClasses", "heap_window"]

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

_allocation = TRACE.tables["allocation"]
_resize = TRACE.tables["resize"]
_ref = TRACE.tables["stack_ref"]
_stack = TRACE.tables["stack"]

SIZES = (0, *(1 << power for power in range(4, 21)))
"""Upper limits of the size classes; the last class has none."""

LIFETIMES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000)
"""Limits between the lifetime classes, in ns; a lifetime of exactly a limit belongs to the class above it."""

_ADOPTED = ORIGINS.index("adopted")
_LIFETIME_ENDS = [END_REASONS.index(word) for word in ("freed", "realloc_moved", "heap_destroyed")]
_NEVER = (1 << 63) - 1
_CHUNK = 50_000


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


@dataclass(frozen=True, slots=True)
class HeapWindow:
    """What happened in a window. `stacks` are those that hold the most, `stacks_number` how many hold anything.

    `sizes` class the blocks that began in it by their size at the start, `lifetimes` those of them that were freed, moved or destroyed
    with their heap by how long they lived.
    """

    classes: WindowClasses
    stacks: tuple[HeldByStack, ...]
    stacks_number: int
    sizes: tuple[ClassRow, ...]
    lifetimes: tuple[ClassRow, ...]


def heap_window(db: Connection, scope: HeapScope, t0: int, t1: int, *, stacks: int) -> HeapWindow:
    """The blocks of [t0, t1), read once: 2 µs a block that began in it, in bounded memory; `stacks` is how many stacks to give."""
    found = _Scan(t1)
    for chunk in _began(db, scope, t0, t1):
        found.add(chunk)
    mine = _mine(scope)
    regrown = _resized_later(db, mine, t0, t1)
    found.held_bytes_by_ref(regrown)
    released = _released(db, mine, t0, t1)
    live = live_before(db, scope, t1)
    stayed_bytes = found.stayed[1] + sum(regrown.values())
    classes = WindowClasses(
        stayed=found.stayed[0],
        stayed_bytes=stayed_bytes,
        passed=found.passed[0],
        passed_bytes=found.passed[1],
        released=released[0] + found.adopted_over[0],
        released_bytes=released[1] + found.adopted_over[1],
        steady=live[1] - found.stayed[0],
        steady_bytes=live[0] - stayed_bytes,
    )
    held, number = _by_stack(db, found.by_ref, stacks)
    return HeapWindow(
        classes=classes,
        stacks=tuple(held),
        stacks_number=number,
        sizes=_class_rows(found.sizes, SIZES, closed=True),
        lifetimes=_class_rows(found.lifetimes, LIFETIMES, closed=False),
    )


# ---------------------------------------------------------------------------------------------------- the blocks that began in it


def _mine(scope: HeapScope) -> list[ColumnElement[bool]]:
    a = _allocation.c
    return [a.trace_id == 1, a.process_n == scope.process_n] + ([a.heap_n == scope.n] if scope.word == "heap" else [])


_REF, _FIRST, _END, _SIZE, _OPENED, _ORIGIN, _REASON, _TRUST = range(8)


def _began(db: Connection, scope: HeapScope, t0: int, t1: int) -> Iterator[Int64s]:
    """Blocks first seen in [t0, t1), as columns of int64, shape (8, n); no stack and no reason are -1, no end is _NEVER."""
    a = _allocation.c
    columns = (
        func.coalesce(a.owner_stack_ref, -1),
        a.first_ns,
        func.coalesce(a.end_ns, _NEVER),
        a.size,
        a.size_at_open,
        a.origin,
        func.coalesce(a.end_reason, -1),
        func.coalesce(a.trust, 0),
    )
    result = db.execute(select(*columns).where(*_mine(scope), a.first_ns >= t0, a.first_ns < t1))
    assert result.cursor is not None
    # Straight from the driver: rows of a million blocks need no names (5 µs a row with them, 2 without).
    while rows := result.cursor.fetchmany(_CHUNK):
        yield np.array(rows, dtype=np.int64).T
    result.close()


@dataclass
class _Group:
    """Sums of the blocks of one stack reference."""

    allocated: int = 0
    allocated_bytes: int = 0
    held: int = 0
    held_bytes: int = 0
    first_ns: int = _NEVER
    last_ns: int = -_NEVER
    is_suspect: bool = False

    def add(self, other: "_Group") -> None:
        self.allocated += other.allocated
        self.allocated_bytes += other.allocated_bytes
        self.held += other.held
        self.held_bytes += other.held_bytes
        self.first_ns, self.last_ns = min(self.first_ns, other.first_ns), max(self.last_ns, other.last_ns)
        self.is_suspect = self.is_suspect or other.is_suspect


@dataclass
class _Scan:
    """Sums over the blocks that began in a window which ends at `t1`."""

    t1: int
    stayed: tuple[int, int] = (0, 0)
    passed: tuple[int, int] = (0, 0)
    adopted_over: tuple[int, int] = (0, 0)
    by_ref: dict[int, _Group] = field(default_factory=dict)
    sizes: Int64s = field(default_factory=lambda: np.zeros((4, len(SIZES) + 1), dtype=np.int64))
    """Blocks, bytes, held blocks, held bytes by class."""
    lifetimes: Int64s = field(default_factory=lambda: np.zeros((4, len(LIFETIMES) + 1), dtype=np.int64))

    def add(self, chunk: Int64s) -> None:
        adopted = chunk[_ORIGIN] == _ADOPTED  # older than the window, only seen here for the first time
        over = chunk[_END] < self.t1
        self.adopted_over = _plus(self.adopted_over, chunk[_SIZE], adopted & over)
        chunk, over = chunk[:, ~adopted], over[~adopted]
        held = ~over
        self.stayed = _plus(self.stayed, chunk[_SIZE], held)
        self.passed = _plus(self.passed, chunk[_SIZE], over)
        _count(self.sizes, np.searchsorted(SIZES, chunk[_OPENED], side="left"), chunk, held)
        ended = np.isin(chunk[_REASON], _LIFETIME_ENDS)
        lived = chunk[_END, ended] - chunk[_FIRST, ended]
        _count(self.lifetimes, np.searchsorted(LIFETIMES, lived, side="right"), chunk[:, ended], held[ended])
        self._add_stacks(chunk, held)

    def _add_stacks(self, chunk: Int64s, held: Bools) -> None:
        refs, place = np.unique(chunk[_REF], return_inverse=True)
        number = refs.size
        first, last = np.full(number, _NEVER), np.full(number, -_NEVER)
        np.minimum.at(first, place, chunk[_FIRST])
        np.maximum.at(last, place, chunk[_FIRST])
        sums = [_sums(place, values, number) for values in (np.ones_like(place), chunk[_OPENED], held, chunk[_SIZE] * held)]
        suspect = _sums(place, held & (chunk[_TRUST] == 1), number) > 0
        for index, ref in enumerate(refs.tolist()):
            allocated, opened_bytes, kept, kept_bytes = (int(each[index]) for each in sums)
            one = _Group(allocated, opened_bytes, kept, kept_bytes, int(first[index]), int(last[index]), bool(suspect[index]))
            self.by_ref.setdefault(ref, _Group()).add(one)

    def held_bytes_by_ref(self, more: dict[int, int]) -> None:
        """Add to the held bytes of stack references."""
        for ref, size in more.items():
            if ref in self.by_ref:
                self.by_ref[ref].held_bytes += size


def _plus(known: tuple[int, int], sizes: Int64s, chosen: Bools) -> tuple[int, int]:
    return known[0] + int(chosen.sum()), known[1] + int(sizes[chosen].sum())


def _sums(place: Int64s, values: NDArray[Any], number: int) -> Int64s:  # Any: counts and truths
    """Exact sums by place; bincount with weights would go through floats."""
    total = np.zeros(number, dtype=np.int64)
    np.add.at(total, place, values.astype(np.int64))
    return total


def _count(table: Int64s, place: Int64s, chunk: Int64s, held: Bools) -> None:
    size = table.shape[1]
    for row, values in enumerate((np.ones_like(place), chunk[_OPENED], held, chunk[_SIZE] * held)):
        table[row] += _sums(place, values, size)


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


def _resized_later(db: Connection, mine: list[ColumnElement[bool]], t0: int, t1: int) -> dict[int, int]:
    """What the held blocks of a window gained or lost by reallocation in place after it, by stack reference, to be taken back.

    The sizes stored are the last ones; a block's size at t1 is that, less what came after.
    """
    a, z = _allocation.c, _resize.c
    ref = func.coalesce(a.owner_stack_ref, -1)
    rows = db.execute(
        select(ref, func.sum(z.old_size - z.size))
        .select_from(_resize.join(_allocation, and_(a.trace_id == z.trace_id, a.n == z.allocation_n)))
        .where(
            z.trace_id == 1,
            z.t_ns >= t1,
            *mine,
            a.first_ns >= t0,
            a.first_ns < t1,
            a.origin != _ADOPTED,
            or_(a.end_ns.is_(None), a.end_ns >= t1),
        )
        .group_by(ref)
    )
    return {row[0]: row[1] for row in rows}


# ---------------------------------------------------------------------------------------------------- stacks


def _by_stack(db: Connection, by_ref: dict[int, _Group], limit: int) -> tuple[list[HeldByStack], int]:
    """Stacks that hold something, the most bytes first, and their number; several references may be one stack."""
    stack_of = _stacks_of(db, [ref for ref, group in by_ref.items() if ref >= 0])
    groups: dict[int | None, _Group] = {}
    for ref, group in by_ref.items():
        groups.setdefault(stack_of.get(ref), _Group()).add(group)
    holding = sorted(
        ((n, group) for n, group in groups.items() if group.held), key=lambda item: (-item[1].held_bytes, -item[1].held, item[1].first_ns)
    )
    shown = holding[:limit]
    numbers = [n for n, _ in shown if n is not None]
    hashes = {
        row.n: row.hash for row in db.execute(select(_stack.c.n, _stack.c.hash).where(_stack.c.trace_id == 1, _stack.c.n.in_(numbers)))
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


def _stacks_of(db: Connection, refs: list[int]) -> dict[int, int]:
    """Stack numbers by reference."""
    r = _ref.c
    query = select(r.ref, r.stack_n).where(r.trace_id == 1)
    if len(refs) <= 500:
        query = query.where(r.ref.in_(refs))
    return {row.ref: row.stack_n for row in db.execute(query)}
