"""Stacks whose memory stays: what they hold at each quarter of a window, and what speaks for and against a leak."""

from dataclasses import dataclass
from itertools import pairwise

from sqlalchemy import Connection, case, func, select

from app.queries.heap_flame import stack_hashes
from app.queries.heap_held import held_by_ref
from app.queries.heap_scan import LIFETIME_ENDS, Group, by_stack, in_scope
from app.queries.heap_timeline import HeapScope
from app.queries.heap_whole import Opened, covers_all, opened_by_stack
from app.queries.stacks import callers_of
from collector.store.tables import TRACE

__all__ = ["QUARTERS", "Growth", "GrowthRow", "Level", "borders_of", "growth"]

_allocation = TRACE.tables["allocation"]

QUARTERS = 4


@dataclass(frozen=True, slots=True)
class Level:
    """What is held just before the end of a quarter."""

    bytes: int
    blocks: int


@dataclass(frozen=True, slots=True)
class GrowthRow:
    """A stack whose blocks of a window are held at the end of the trace.

    `levels` are what the stack holds just before the window and at the end of each quarter, `is_steady` whether the number of blocks rises
    in every one. `freed` of `allocated` blocks of the window were freed; None where that was not counted.
    """

    stack: str | None
    callers: str
    held_bytes: int
    held: int
    levels: tuple[Level, ...]
    is_steady: bool
    first_ns: int
    last_ns: int
    allocated: int | None
    freed: int | None
    is_suspect: bool

    @property
    def freed_percent(self) -> float | None:
        """Share of the stack's blocks that were freed."""
        return None if self.freed is None or not self.allocated else round(100 * self.freed / self.allocated, 1)


@dataclass(frozen=True, slots=True)
class Growth:
    """Stacks by rank: those that rise in every quarter first, then by bytes. `number` and `steady` count all, shown or not."""

    borders: tuple[int, ...]
    rows: tuple[GrowthRow, ...]
    number: int
    steady: int


def borders_of(t0: int, t1: int) -> tuple[int, ...]:
    """The window's begin and the ends of its quarters."""
    return tuple(t0 + (t1 - t0) * i // QUARTERS for i in range(QUARTERS + 1))


def growth(
    db: Connection,
    scope: HeapScope,
    t0: int,
    t1: int,
    *,
    end_ns: int,
    min_age_ns: int = 0,
    limit: int,
    wanted: str = "",
    counts_freed: bool,
) -> Growth:
    """Stacks whose blocks began in [t0, t1), are held at the end of the trace, and are at least so old then.

    Args:
        end_ns: end of the trace.
        wanted: hash of a stack that is given whatever its rank.
        counts_freed: whether to read all blocks of the window (1 µs each) for the share that was freed.
    """
    held = by_stack(db, _held(db, scope, t0, t1, end_ns - min_age_ns))
    borders = borders_of(t0, t1)
    levels = [by_stack(db, held_by_ref(db, scope, border - 1)) for border in borders]
    none = Group()

    def steady(n: int | None) -> bool:
        return all(later > sooner for sooner, later in pairwise(level.get(n, none).held for level in levels))

    ranked = sorted(held, key=lambda n: (not steady(n), -held[n].held_bytes, -held[n].held, -1 if n is None else n))
    hashes = stack_hashes(db, ranked[:limit] if not wanted else ranked)
    shown = ranked[:limit] + [n for n in ranked[limit:] if wanted and hashes.get(n) == wanted]
    opened = _opened(db, scope, t0, t1) if counts_freed else {}
    lines = callers_of(db, [n for n in shown if n is not None])
    rows = tuple(
        GrowthRow(
            stack=hashes.get(n),
            callers="" if n is None else lines.get(n, ""),
            held_bytes=held[n].held_bytes,
            held=held[n].held,
            levels=tuple(Level(level.get(n, none).held_bytes, level.get(n, none).held) for level in levels),
            is_steady=steady(n),
            first_ns=held[n].first_ns,
            last_ns=held[n].last_ns,
            allocated=opened[n].blocks if counts_freed else None,
            freed=opened[n].freed if counts_freed else None,
            is_suspect=held[n].is_suspect,
        )
        for n in shown
    )
    return Growth(borders, rows, len(ranked), sum(steady(n) for n in ranked))


def _held(db: Connection, scope: HeapScope, t0: int, t1: int, before_ns: int) -> dict[int, Group]:
    """The blocks that began in [t0, t1), not after `before_ns`, and are never freed, by stack reference."""
    a = _allocation.c
    ref = func.coalesce(a.owner_stack_ref, -1)
    rows = db.execute(
        select(ref, func.count(), func.sum(a.size), func.min(a.first_ns), func.max(a.first_ns), func.max(func.coalesce(a.trust, 0)))
        .where(*in_scope(scope), a.end_ns.is_(None), a.first_ns >= t0, a.first_ns < t1, a.first_ns <= before_ns, a.start_ns.is_not(None))
        .group_by(ref)
    )
    return {
        ref: Group(held=blocks, held_bytes=size, first_ns=first, last_ns=last, is_suspect=trust == 1)
        for ref, blocks, size, first, last, trust in rows
    }


def _opened(db: Connection, scope: HeapScope, t0: int, t1: int) -> dict[int | None, Opened]:
    """All blocks that began in [t0, t1), by stack number; of the whole trace from what the collector added up."""
    if covers_all(db, scope, t0, t1):
        return opened_by_stack(db, scope)
    a = _allocation.c
    ref = func.coalesce(a.owner_stack_ref, -1)
    stays = func.sum(case((a.end_reason.in_(LIFETIME_ENDS), 0), else_=1))
    rows = db.execute(
        select(ref, func.count(), stays).where(*in_scope(scope), a.first_ns >= t0, a.first_ns < t1, a.start_ns.is_not(None)).group_by(ref)
    )
    groups = by_stack(db, {row[0]: Group(allocated=row[1], held=row[2]) for row in rows})
    return {n: Opened(group.allocated, group.allocated - group.held) for n, group in groups.items()}
