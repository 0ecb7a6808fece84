"""What happened on one socket in a range of time, bounded: operations, or how many were in flight; moments; bytes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, and_, func, literal_column, or_, select
from sqlalchemy.sql.elements import ColumnElement

from app import format as fmt
from app.format import Address, Status
from app.links import operation_link
from app.queries.resolution import LEVELS, LONG_NS, joined, level_for, pieces
from app.queries.socket_moments import MAX_MOMENTS, Moment, moments
from app.queries.transport import stack_moments
from collector.store.tables import FEW_OPERATIONS, THIS_TRACE, TRACE
from collector.words import OPERATION_KINDS, OUTCOMES, SPACES, word_at

__all__ = [
    "MAX_BARS",
    "BandPoint",
    "BytesPoint",
    "OperationBar",
    "Timeline",
    "operation_bars",
    "operation_numbers",
    "timeline",
]

_operation = TRACE.tables["operation"]
_rollup = TRACE.tables["socket_rollup"]
_overlap = TRACE.tables["overlap"]
_finding = TRACE.tables["io_finding"]

MAX_BARS = FEW_OPERATIONS
"""Operations that are shown one by one; more are shown as how many were in flight, which only sockets with more have buckets for."""

MAX_BUCKETS = 600

_SENDS = ("send", "sendto", "sendmsg")
_RECEIVES = ("recv", "recvfrom", "recvmsg")
_WOULD_BLOCK = 0xC00000A3


@dataclass(frozen=True, slots=True)
class OperationBar:
    """One operation as a timeline shows it. `from_ns` is None when its post is unknown, `to_ns` when it is in flight at the end."""

    link: str
    kind: str
    direction: str
    outcome: str
    status: Status | None
    bytes: int
    posted_len: int | None
    buffer: Address | None
    space: str
    from_ns: int | None
    to_ns: int | None
    overlaps: int
    freed: int


@dataclass(frozen=True, slots=True)
class BandPoint:
    """Operations in flight in one bucket: fewest, most, and how many at its end; and how many of each direction completed in it."""

    from_ns: int
    to_ns: int
    low: int
    high: int
    end: int
    sends: int = 0
    receives: int = 0


@dataclass(frozen=True, slots=True)
class BytesPoint:
    """Bytes of the socket's whole life up to a time."""

    t_ns: int
    sent: int
    received: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """A range of one socket's time. Either `bars` or `band` is there; `posted` is how many operations the band stands for."""

    from_ns: int
    to_ns: int
    bars: tuple[OperationBar, ...]
    band: tuple[BandPoint, ...]
    bytes: tuple[BytesPoint, ...]
    moments: tuple[Moment, ...]
    is_band: bool
    posted: int


def timeline(db: Connection, socket_n: int, from_ns: int, to_ns: int) -> Timeline:
    """What happened on a socket in [from_ns, to_ns]; the answer's size does not depend on the trace's."""
    bars = operation_bars(db, socket_n, from_ns, to_ns, limit=MAX_BARS + 1)
    is_band = len(bars) > MAX_BARS
    level = level_for(from_ns, to_ns, most=MAX_BUCKETS)
    band, posted = _band(db, socket_n, from_ns, to_ns, level) if is_band else ([], len(bars))
    counted = _bytes_by_buckets(db, socket_n, from_ns, to_ns, level) if is_band else _bytes_by_bars(db, socket_n, from_ns, bars)
    errors = _errors_by_buckets(db, socket_n, from_ns, to_ns, level) if is_band else _errors_of(bars, from_ns, to_ns)
    return Timeline(
        from_ns=from_ns,
        to_ns=to_ns,
        bars=() if is_band else tuple(bars),
        band=tuple(band),
        bytes=tuple(counted),
        moments=tuple(errors + moments(db, socket_n, from_ns, to_ns) + stack_moments(db, socket_n, from_ns, to_ns)),
        is_band=is_band,
        posted=posted,
    )


def operation_numbers(db: Connection, socket_n: int, from_ns: int, to_ns: int, *, limit: int) -> list[int]:
    """Row numbers of the operations of a socket that were in flight in a range, in the order of their posts, at most `limit`."""
    o = _operation.c
    return [row.n for row in _in_flight(db, socket_n, from_ns, to_ns, limit, (o.n, o.posted_ns, o.completed_ns))]


def _in_flight(
    db: Connection, socket_n: int, from_ns: int, to_ns: int, limit: int, columns: Sequence[ColumnElement[Any]]
) -> list[Any]:  # Any: rows of several columns
    """Columns of the operations of a socket that were in flight in a range, in the order of their posts.

    Three short searches instead of one over the socket's whole past: what was posted shortly before or in the range, what lives long,
    and completions whose post is unknown.
    """
    o = _operation.c
    reaches = or_(o.end_ns.is_(None), o.end_ns >= from_ns)
    # Written as the index has it, since a partial index is used only for its very condition.
    long_lived: ColumnElement[bool] = literal_column(f"(operation.end_ns IS NULL OR operation.end_ns - operation.posted_ns > {LONG_NS})")
    searches: tuple[ColumnElement[bool], ...] = (
        and_(o.posted_ns >= from_ns - LONG_NS, o.posted_ns <= to_ns, reaches),
        and_(long_lived, o.posted_ns < from_ns - LONG_NS, reaches),
        and_(o.posted_ns.is_(None), o.completed_ns >= from_ns, o.completed_ns <= to_ns),
    )
    rows: list[Any] = []  # Any: rows of several columns
    for search in searches:
        rows += db.execute(
            select(*columns).where(o.trace_id == THIS_TRACE, o.socket_n == socket_n, search).order_by(o.posted_ns, o.n).limit(limit)
        ).all()
    rows.sort(key=lambda row: (row.completed_ns if row.posted_ns is None else row.posted_ns, row.n))
    return rows[:limit]


def operation_bars(db: Connection, socket_n: int, from_ns: int, to_ns: int, *, limit: int) -> list[OperationBar]:
    """Operations of a socket that were in flight in a range, in the order of their posts, at most `limit`."""
    o = _operation.c
    columns = (o.n, o.kind, o.outcome, o.status, o.bytes, o.posted_len, o.buffer, o.space, o.posted_ns, o.completed_ns, o.end_ns)
    rows = _in_flight(db, socket_n, from_ns, to_ns, limit, columns)
    numbers = [row.n for row in rows]
    shared = _count_by(db, numbers, _overlap, "first_n") if len(rows) < limit else {}
    for n, count in (_count_by(db, numbers, _overlap, "second_n") if len(rows) < limit else {}).items():
        shared[n] = shared.get(n, 0) + count
    freed = _count_by(db, numbers, _finding, "operation_n") if len(rows) < limit else {}
    return [
        OperationBar(
            link=operation_link(_word(OPERATION_KINDS, row.kind), row.buffer, row.posted_ns, row.completed_ns),
            kind=_word(OPERATION_KINDS, row.kind),
            direction=direction_of(_word(OPERATION_KINDS, row.kind)),
            outcome=_word(OUTCOMES, row.outcome),
            status=fmt.to_status(row.status),
            bytes=row.bytes,
            posted_len=row.posted_len,
            buffer=fmt.to_address(row.buffer),
            space=_word(SPACES, row.space),
            from_ns=row.posted_ns,
            to_ns=row.completed_ns if row.posted_ns is None else row.end_ns,
            overlaps=shared.get(row.n, 0),
            freed=freed.get(row.n, 0),
        )
        for row in rows
    ]


def direction_of(kind: str) -> str:
    """`send`, `receive` or `connect` (connects and accepts move no data)."""
    return "send" if kind in _SENDS else "receive" if kind in _RECEIVES else "connect"


def _word(words: tuple[str, ...], number: int) -> str:
    return word_at(words, number) or fmt.UNKNOWN


def _count_by(db: Connection, numbers: Sequence[int], table: Table, column: str) -> dict[int, int]:
    """How many rows of a table name each of some operations."""
    if not numbers:
        return {}
    named = table.c
    rows = db.execute(
        select(named[column], func.count()).where(named.trace_id == THIS_TRACE, named[column].in_(numbers)).group_by(named[column])
    )
    return {row[0]: row[1] for row in rows}


def _buckets(
    db: Connection, socket_n: int, columns: Sequence[ColumnElement[int]], level: int, first: int, last: int
) -> Sequence[tuple[int, ...]]:
    """Columns of a socket's buckets from `first` to `last`, both included, in time order."""
    r = _rollup.c
    found = db.execute(
        select(r.bucket, *columns)
        .where(r.trace_id == THIS_TRACE, r.scope == "socket", r.scope_n == socket_n, r.level == level, r.bucket >= first, r.bucket <= last)
        .order_by(r.bucket)
    )
    return [tuple(row) for row in found]


def _band(db: Connection, socket_n: int, from_ns: int, to_ns: int, level: int) -> tuple[list[BandPoint], int]:
    r = _rollup.c
    first, last = from_ns >> level, to_ns >> level
    before = db.execute(
        select(r.in_flight_end)
        .where(r.trace_id == THIS_TRACE, r.scope == "socket", r.scope_n == socket_n, r.level == level, r.bucket < first)
        .order_by(r.bucket.desc())
        .limit(1)
    ).scalar()
    level_now, posted, points = before or 0, 0, []
    if before is not None:
        points.append(BandPoint(from_ns, from_ns, level_now, level_now, level_now))
    columns = (r.in_flight_min, r.in_flight_max, r.in_flight_end, r.posted, r.ended, r.sends, r.receives)
    for bucket, low, high, end, began, ended, sends, receives in _buckets(db, socket_n, columns, level, first, last):
        after = level_now + began - ended if end is None else end
        lowest, highest = (min(level_now, after), max(level_now, after)) if low is None or high is None else (low, high)
        points.append(BandPoint(bucket << level, (bucket + 1) << level, lowest, highest, after, sends, receives))
        level_now, posted = after, posted + began
    return joined(points, from_ns, to_ns, most=MAX_BUCKETS, at=lambda point: point.from_ns, join=_both), posted


def _both(first: BandPoint, later: BandPoint) -> BandPoint:
    """Two buckets as one."""
    sends, receives = first.sends + later.sends, first.receives + later.receives
    return BandPoint(first.from_ns, later.to_ns, min(first.low, later.low), max(first.high, later.high), later.end, sends, receives)


def _bytes_before(db: Connection, socket_n: int, until_ns: int) -> tuple[int, int]:
    """Bytes sent and received before a time, to the finest bucket's border."""
    r = _rollup.c
    first = db.execute(
        select(r.bucket)
        .where(r.trace_id == THIS_TRACE, r.scope == "socket", r.scope_n == socket_n, r.level == LEVELS[0])
        .order_by(r.bucket)
        .limit(1)
    ).scalar()
    if first is None:
        return _bytes_of_few(db, socket_n, until_ns)
    sent = received = 0
    for level, begin, end in pieces(first << LEVELS[0], until_ns):
        row = db.execute(
            select(func.coalesce(func.sum(r.bytes_sent), 0), func.coalesce(func.sum(r.bytes_received), 0)).where(
                r.trace_id == THIS_TRACE, r.scope == "socket", r.scope_n == socket_n, r.level == level, r.bucket >= begin, r.bucket < end
            )
        ).one()
        sent, received = sent + row[0], received + row[1]
    return sent, received


def _bytes_of_few(db: Connection, socket_n: int, until_ns: int) -> tuple[int, int]:
    """Bytes before a time of a socket without buckets, which has at most FEW_OPERATIONS operations; each counts when it completes."""
    o = _operation.c
    counted_ns = func.coalesce(o.completed_ns, o.posted_ns)
    rows = db.execute(
        select(o.kind, func.sum(o.bytes)).where(o.trace_id == THIS_TRACE, o.socket_n == socket_n, counted_ns < until_ns).group_by(o.kind)
    ).all()
    by_direction = {"send": 0, "receive": 0, "connect": 0}
    for kind, count in rows:
        by_direction[direction_of(_word(OPERATION_KINDS, kind))] += count
    return by_direction["send"], by_direction["receive"]


def _bytes_by_buckets(db: Connection, socket_n: int, from_ns: int, to_ns: int, level: int) -> list[BytesPoint]:
    r = _rollup.c
    first, last = from_ns >> level, to_ns >> level
    sent, received = _bytes_before(db, socket_n, first << level)
    points = [BytesPoint(first << level, sent, received)]
    for bucket, more_sent, more_received in _buckets(db, socket_n, (r.bytes_sent, r.bytes_received), level, first, last):
        sent, received = sent + more_sent, received + more_received
        points.append(BytesPoint((bucket + 1) << level, sent, received))
    return joined(points, from_ns, to_ns, most=MAX_BUCKETS, at=lambda point: point.t_ns - 1, join=lambda _, later: later)


def _bytes_by_bars(db: Connection, socket_n: int, from_ns: int, bars: Iterable[OperationBar]) -> list[BytesPoint]:
    """Exact steps. Sums before the range come from buckets up to the last border, so operations that ended between are added."""
    border = from_ns >> LEVELS[0] << LEVELS[0]
    sent, received = _bytes_before(db, socket_n, border)
    between = operation_bars(db, socket_n, border, from_ns, limit=100_000) if border < from_ns else []
    ended = [bar for bar in between if bar.to_ns is not None and border <= bar.to_ns < from_ns]
    sent += sum(bar.bytes for bar in ended if bar.direction == "send")
    received += sum(bar.bytes for bar in ended if bar.direction == "receive")
    points = [BytesPoint(from_ns, sent, received)]
    done = sorted((bar for bar in bars if bar.to_ns is not None and bar.to_ns >= from_ns and bar.bytes), key=lambda bar: bar.to_ns or 0)
    for bar in done:
        sent += bar.bytes if bar.direction == "send" else 0
        received += bar.bytes if bar.direction == "receive" else 0
        points.append(BytesPoint(bar.to_ns or 0, sent, received))
    return points


def _errors_of(bars: Iterable[OperationBar], from_ns: int, to_ns: int) -> list[Moment]:
    """Failures of the operations shown; would-block answers are no errors."""
    failed = (bar for bar in bars if bar.outcome in ("failed", "rejected") and bar.status != _WOULD_BLOCK)
    moments = []
    for bar in failed:
        at = bar.to_ns if bar.to_ns is not None else bar.from_ns
        if at is not None and from_ns <= at <= to_ns:
            moments.append(Moment("error", at, f"{bar.kind} {bar.outcome}: {fmt.status(bar.status)}"))
    return moments[:MAX_MOMENTS]


def _errors_by_buckets(db: Connection, socket_n: int, from_ns: int, to_ns: int, level: int) -> list[Moment]:
    r = _rollup.c
    buckets = _buckets(db, socket_n, (r.errors,), level, from_ns >> level, to_ns >> level)
    counts = ((bucket << level, errors) for bucket, errors in buckets if errors)
    found = joined(
        counts, from_ns, to_ns, most=MAX_BUCKETS, at=lambda count: count[0], join=lambda first, later: (first[0], first[1] + later[1])
    )
    return [Moment("error", max(at, from_ns), f"{fmt.plural(errors, 'failed operation')} here", errors) for at, errors in found]
