"""The blocks that began in a window of time, read once and summed: by stack, by size, by lifetime."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, select
from sqlalchemy.sql.elements import ColumnElement

from app.queries.heap_timeline import HeapScope
from collector.store.tables import LIFETIME_LIMITS, SIZE_LIMITS, THIS_TRACE, TRACE
from collector.words import END_REASONS, ORIGINS

__all__ = ["ADOPTED", "LIFETIMES", "LIFETIME_ENDS", "SIZES", "Group", "Scan", "by_stack", "in_scope", "scan"]

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

_allocation = TRACE.tables["allocation"]
_ref = TRACE.tables["stack_ref"]

SIZES, LIFETIMES = SIZE_LIMITS, LIFETIME_LIMITS

ADOPTED = ORIGINS.index("adopted")
"""Origin of a block that is older than the trace and was first seen in it."""

LIFETIME_ENDS = [END_REASONS.index(word) for word in ("freed", "realloc_moved", "heap_destroyed")]
_NEVER = (1 << 63) - 1
_CHUNK = 50_000
_AT_ONCE, _MANY = 500, 5_000  # references that are looked up in one statement, and at all


def in_scope(scope: HeapScope) -> list[ColumnElement[bool]]:
    """The condition of the blocks of a scope."""
    a = _allocation.c
    return [a.trace_id == THIS_TRACE, a.process_n == scope.process_n] + ([a.heap_n == scope.n] if scope.word == "heap" else [])


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
    result = db.execute(select(*columns).where(*in_scope(scope), a.first_ns >= t0, a.first_ns < t1))
    assert result.cursor is not None
    # Straight from the driver: rows of a million blocks need no names (5 µs a row with them, 2 without).
    while rows := result.cursor.fetchmany(_CHUNK):
        yield np.array(rows, dtype=np.int64).T
    result.close()


@dataclass
class Group:
    """Sums of the blocks of one stack reference."""

    allocated: int = 0
    allocated_bytes: int = 0
    held: int = 0
    held_bytes: int = 0
    first_ns: int = _NEVER
    last_ns: int = -_NEVER
    is_suspect: bool = False

    def add(self, other: "Group") -> None:
        """Take the sums of another group in."""
        self.allocated += other.allocated
        self.allocated_bytes += other.allocated_bytes
        self.held += other.held
        self.held_bytes += other.held_bytes
        self.first_ns, self.last_ns = min(self.first_ns, other.first_ns), max(self.last_ns, other.last_ns)
        self.is_suspect = self.is_suspect or other.is_suspect


@dataclass
class Scan:
    """Sums over the blocks that began in a window which ends at `t1`."""

    t1: int
    stayed: tuple[int, int] = (0, 0)
    passed: tuple[int, int] = (0, 0)
    adopted_over: tuple[int, int] = (0, 0)
    by_ref: dict[int, Group] = field(default_factory=dict)
    sizes: Int64s = field(default_factory=lambda: np.zeros((4, len(SIZES) + 1), dtype=np.int64))
    """Blocks, bytes, held blocks, held bytes by class."""
    lifetimes: Int64s = field(default_factory=lambda: np.zeros((4, len(LIFETIMES) + 1), dtype=np.int64))

    def add(self, chunk: Int64s) -> None:
        """Some more blocks, as columns."""
        adopted = chunk[_ORIGIN] == ADOPTED  # older than the window, only seen here for the first time
        over = chunk[_END] < self.t1
        self.adopted_over = _plus(self.adopted_over, chunk[_SIZE], adopted & over)
        chunk, over = chunk[:, ~adopted], over[~adopted]
        held = ~over
        self.stayed = _plus(self.stayed, chunk[_SIZE], held)
        self.passed = _plus(self.passed, chunk[_SIZE], over)
        _count(self.sizes, np.searchsorted(SIZES, chunk[_OPENED], side="left"), chunk, held)
        ended = np.isin(chunk[_REASON], LIFETIME_ENDS)
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
            one = Group(allocated, opened_bytes, kept, kept_bytes, int(first[index]), int(last[index]), bool(suspect[index]))
            self.by_ref.setdefault(ref, Group()).add(one)

    def add_held_bytes(self, more: dict[int, int]) -> None:
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


def scan(db: Connection, scope: HeapScope, t0: int, t1: int) -> Scan:
    """The blocks that began in [t0, t1): 2 µs a block, in bounded memory."""
    found = Scan(t1)
    for chunk in _began(db, scope, t0, t1):
        found.add(chunk)
    return found


def by_stack(db: Connection, by_ref: dict[int, Group]) -> dict[int | None, Group]:
    """Sums by stack number, None for blocks without a stack; several references may be one stack."""
    stack_of = _stacks_of(db, [ref for ref in by_ref if ref >= 0])
    groups: dict[int | None, Group] = {}
    for ref, group in by_ref.items():
        groups.setdefault(stack_of.get(ref), Group()).add(group)
    return groups


def _stacks_of(db: Connection, refs: list[int]) -> dict[int, int]:
    """The numbers of stacks by reference: of some, looked up; of many, all that there are."""
    r = _ref.c
    every = select(r.ref, r.stack_n).where(r.trace_id == THIS_TRACE)
    queries = [every] if len(refs) > _MANY else [every.where(r.ref.in_(refs[at : at + _AT_ONCE])) for at in range(0, len(refs), _AT_ONCE)]
    found: dict[int, int] = {}
    for query in queries:
        result = db.execute(query)
        assert result.cursor is not None
        found.update(result.cursor.fetchall())
        result.close()
    return found
