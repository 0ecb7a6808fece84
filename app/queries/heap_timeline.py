"""Live heap of a process or of one heap over time: exact steps where they are few, buckets with their extremes where they are many."""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, and_, literal_column, select
from sqlalchemy.sql.elements import ColumnElement

from app.queries.resolution import LEVELS, LONG_NS, joined, level_for
from collector.store.tables import THIS_TRACE, TRACE

__all__ = [
    "MAX_STEPS",
    "HeapBucket",
    "HeapScope",
    "HeapStep",
    "HeapTimeline",
    "ended_between",
    "heap_timeline",
    "live_at_end",
    "live_before",
]

_rollup = TRACE.tables["heap_rollup"]
_allocation = TRACE.tables["allocation"]
_resize = TRACE.tables["resize"]

MAX_STEPS = 1_500
"""Changes that are shown one by one; more are shown by buckets."""

MAX_BUCKETS = 600


@dataclass(frozen=True, slots=True)
class HeapScope:
    """What a timeline is about: a process (`word` is `process`) or one life of a heap (`heap`), by its row number."""

    word: str
    n: int
    process_n: int


@dataclass(frozen=True, slots=True)
class HeapBucket:
    """A bucket of time in which something changed. Live bytes and counts are changes since the trace began."""

    from_ns: int
    to_ns: int
    bytes_start: int
    bytes_end: int
    bytes_min: int
    bytes_max: int
    count_end: int
    count_max: int
    allocs: int
    frees: int
    alloc_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class HeapStep:
    """What is live from a moment on."""

    t_ns: int
    bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class HeapTimeline:
    """A range of time. `steps` are exact and there only when they are few; `buckets` always tell the rates.

    `bytes_before` and `count_before` are what is live at the range's start.
    """

    from_ns: int
    to_ns: int
    level: int
    bytes_before: int
    count_before: int
    steps: tuple[HeapStep, ...] | None
    buckets: tuple[HeapBucket, ...]
    peak: HeapStep | None


def heap_timeline(db: Connection, scope: HeapScope, from_ns: int, to_ns: int) -> HeapTimeline:
    """The live heap in [from_ns, to_ns]; the answer's size does not depend on the trace's."""
    level = level_for(from_ns, to_ns, most=MAX_BUCKETS)
    buckets = _buckets(db, scope, level, from_ns, to_ns)
    changes = sum(bucket.allocs + bucket.frees for bucket in buckets)
    before = _before(db, scope, level, from_ns >> level)
    steps = None
    if changes <= MAX_STEPS:
        before = live_before(db, scope, from_ns)
        steps = tuple(_steps(db, scope, from_ns, to_ns, before))
    return HeapTimeline(
        from_ns=from_ns,
        to_ns=to_ns,
        level=level,
        bytes_before=before[0],
        count_before=before[1],
        steps=steps,
        buckets=tuple(buckets),
        peak=_peak(before, from_ns, steps, buckets),
    )


def live_before(db: Connection, scope: HeapScope, ns: int) -> tuple[int, int]:
    """Live bytes and count just before a moment: what changes at it is left out."""
    border = ns >> LEVELS[0] << LEVELS[0]
    live = _before(db, scope, LEVELS[0], ns >> LEVELS[0])
    steps = _steps(db, scope, border, ns - 1, live) if border < ns else []
    return (steps[-1].bytes, steps[-1].count) if steps else live


def live_at_end(db: Connection, scope: HeapScope) -> tuple[int, int]:
    """Live bytes and count at the end of the trace, as a change since it began."""
    return _before(db, scope, LEVELS[-1], 1 << 62)


def _mine(scope: HeapScope, level: int) -> tuple[ColumnElement[bool], ...]:
    r = _rollup.c
    return (r.trace_id == THIS_TRACE, r.scope == scope.word, r.scope_n == scope.n, r.level == level)


def _before(db: Connection, scope: HeapScope, level: int, bucket: int) -> tuple[int, int]:
    """What is live at the border before a bucket."""
    r = _rollup.c
    row = db.execute(
        select(r.bytes_end, r.count_end).where(*_mine(scope, level), r.bucket < bucket).order_by(r.bucket.desc()).limit(1)
    ).first()
    return (0, 0) if row is None else (row.bytes_end, row.count_end)


def _buckets(db: Connection, scope: HeapScope, level: int, from_ns: int, to_ns: int) -> list[HeapBucket]:
    r = _rollup.c
    names = [name for name in HeapBucket.__dataclass_fields__ if name not in ("from_ns", "to_ns")]
    rows = db.execute(
        select(r.bucket, *(r[name] for name in names))
        .where(*_mine(scope, level), r.bucket >= from_ns >> level, r.bucket <= to_ns >> level)
        .order_by(r.bucket)
    )
    buckets = (HeapBucket(row.bucket << level, (row.bucket + 1) << level, *row[1:]) for row in rows)
    return joined(buckets, from_ns, to_ns, most=MAX_BUCKETS, at=lambda bucket: bucket.from_ns, join=_both)


def _both(first: HeapBucket, later: HeapBucket) -> HeapBucket:
    """Two buckets as one."""
    return replace(
        later,
        from_ns=first.from_ns,
        bytes_start=first.bytes_start,
        bytes_min=min(first.bytes_min, later.bytes_min),
        bytes_max=max(first.bytes_max, later.bytes_max),
        count_max=max(first.count_max, later.count_max),
        allocs=first.allocs + later.allocs,
        frees=first.frees + later.frees,
        alloc_bytes=first.alloc_bytes + later.alloc_bytes,
        free_bytes=first.free_bytes + later.free_bytes,
    )


def _peak(before: tuple[int, int], from_ns: int, steps: tuple[HeapStep, ...] | None, buckets: list[HeapBucket]) -> HeapStep | None:
    """The first place with the most live bytes; of a bucket its start."""
    if steps is not None:
        places = [HeapStep(from_ns, *before), *steps]
    else:
        places = [HeapStep(max(bucket.from_ns, from_ns), bucket.bytes_max, bucket.count_max) for bucket in buckets]
    return max(places, key=lambda place: place.bytes, default=None)


def _steps(db: Connection, scope: HeapScope, from_ns: int, to_ns: int, live: tuple[int, int]) -> list[HeapStep]:
    """Each change of live bytes or count in a range, from its records; a record is one change however many blocks it touches."""
    a, z = _allocation.c, _resize.c
    mine = [a.trace_id == THIS_TRACE, a.process_n == scope.process_n] + ([a.heap_n == scope.n] if scope.word == "heap" else [])
    changes: dict[int, tuple[int, int, int]] = {}

    def add(seq: int, t_ns: int, size: int, count: int) -> None:
        known = changes.get(seq, (t_ns, 0, 0))
        changes[seq] = (max(known[0], t_ns), known[1] + size, known[2] + count)

    for row in db.execute(select(a.first_seq, a.first_ns, a.size_at_open).where(*mine, a.first_ns >= from_ns, a.first_ns <= to_ns)):
        add(row.first_seq, row.first_ns, row.size_at_open, 1)
    for row in ended_between(db, mine, from_ns, to_ns, a.end_seq, a.end_ns, a.size):
        add(row.end_seq, row.end_ns, -row.size, -1)
    resized = (
        select(z.seq, z.t_ns, (z.size - z.old_size).label("more"))
        .select_from(_resize.join(_allocation, and_(a.trace_id == THIS_TRACE, a.n == z.allocation_n)))
        .where(*mine, z.trace_id == THIS_TRACE, z.t_ns >= from_ns, z.t_ns <= to_ns)
    )
    for row in db.execute(resized):
        add(row.seq, row.t_ns, row.more, 0)
    size, count = live
    steps = []
    for _, (t_ns, more, blocks) in sorted(changes.items()):
        if more or blocks:
            size, count = size + more, count + blocks
            steps.append(HeapStep(t_ns, size, count))
    return steps


def ended_between(
    db: Connection, mine: list[ColumnElement[bool]], from_ns: int, to_ns: int, *columns: ColumnElement[Any]
) -> list[Any]:  # Any: columns and rows of several types
    """Allocations that end in [from_ns, to_ns]: the short-lived ones by their start, the long-lived by an index of their own."""
    a = _allocation.c
    inside = (a.end_ns >= from_ns, a.end_ns <= to_ns)
    # Written as the index has it, since a partial index is used only for its very condition.
    long_lived: ColumnElement[bool] = literal_column(f"(allocation.end_ns - allocation.first_ns > {LONG_NS})")
    short = select(*columns).where(*mine, *inside, a.first_ns >= from_ns - LONG_NS, a.first_ns <= to_ns)
    long = select(*columns).where(*mine, *inside, long_lived, a.first_ns < from_ns - LONG_NS)
    return [*db.execute(short), *db.execute(long)]
