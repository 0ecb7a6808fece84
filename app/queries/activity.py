"""What happened in a trace over time, in buckets: sockets, operations, bytes, errors, aborts, live heap."""

from dataclasses import dataclass, replace

from sqlalchemy import Connection, func, select

from app.queries.resolution import joined, level_for
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["Activity", "ActivityPoint", "HeapPoint", "activity"]

_rollup = TRACE.tables["socket_rollup"]
_process = TRACE.tables["process"]
_heap_rollup = TRACE.tables["heap_rollup"]
_abort = TRACE.tables["abort"]
_socket = TRACE.tables["socket"]

MAX_BUCKETS = 300


@dataclass(frozen=True, slots=True)
class ActivityPoint:
    """One bucket in which something happened. `open` is how many sockets are known to be open at its end."""

    from_ns: int
    to_ns: int
    open: int
    posted: int
    bytes_sent: int
    bytes_received: int
    errors: int
    aborts: int
    in_flight_max: int | None


@dataclass(frozen=True, slots=True)
class HeapPoint:
    """Live bytes of all traced heaps at the end of a bucket, as a change since the trace began."""

    t_ns: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Activity:
    """A range of a trace's time in buckets of 2^`level` ns; `open_before` is how many sockets were open at its start."""

    from_ns: int
    to_ns: int
    level: int
    open_before: int
    points: tuple[ActivityPoint, ...]
    heap: tuple[HeapPoint, ...]


def activity(db: Connection, from_ns: int, to_ns: int, *, process_n: int | None = None) -> Activity:
    """What a trace, or one process of it, did in a range; at most a few hundred buckets whatever the trace's size."""
    level = level_for(from_ns, to_ns, most=MAX_BUCKETS)
    first, last = from_ns >> level, to_ns >> level
    r = _rollup.c
    scope = ("trace", 0) if process_n is None else ("process", process_n)
    mine = (r.trace_id == THIS_TRACE, r.scope == scope[0], r.scope_n == scope[1], r.level == level)
    opened, closed = db.execute(
        select(func.coalesce(func.sum(r.opened), 0), func.coalesce(func.sum(r.closed), 0)).where(*mine, r.bucket < first)
    ).one()
    open_before = open_now = _older(db, process_n) + opened - closed
    aborts = _aborts(db, from_ns, to_ns, level, process_n)
    points = []
    columns = (r.bucket, r.opened, r.closed, r.posted, r.bytes_sent, r.bytes_received, r.errors, r.in_flight_max)
    for row in db.execute(select(*columns).where(*mine, r.bucket >= first, r.bucket <= last).order_by(r.bucket)):
        open_now += row.opened - row.closed
        points.append(
            ActivityPoint(
                from_ns=row.bucket << level,
                to_ns=(row.bucket + 1) << level,
                open=open_now,
                posted=row.posted,
                bytes_sent=row.bytes_sent,
                bytes_received=row.bytes_received,
                errors=row.errors,
                aborts=aborts.pop(row.bucket, 0),
                in_flight_max=row.in_flight_max,
            )
        )
    for bucket, count in aborts.items():
        points.append(ActivityPoint(bucket << level, (bucket + 1) << level, open_before, 0, 0, 0, 0, count, None))
    points.sort(key=lambda point: point.from_ns)
    heap = _heap(db, from_ns, to_ns, level, process_n)
    points = joined(points, from_ns, to_ns, most=MAX_BUCKETS, at=lambda point: point.from_ns, join=_both)
    heap = joined(heap, from_ns, to_ns, most=MAX_BUCKETS, at=lambda point: point.t_ns - 1, join=lambda _, later: later)
    return Activity(from_ns, to_ns, level, open_before, tuple(points), tuple(heap))


def _both(first: ActivityPoint, later: ActivityPoint) -> ActivityPoint:
    """Two buckets as one."""
    most = [point.in_flight_max for point in (first, later) if point.in_flight_max is not None]
    return replace(
        later,
        from_ns=first.from_ns,
        posted=first.posted + later.posted,
        bytes_sent=first.bytes_sent + later.bytes_sent,
        bytes_received=first.bytes_received + later.bytes_received,
        errors=first.errors + later.errors,
        aborts=first.aborts + later.aborts,
        in_flight_max=max(most, default=None),
    )


def _older(db: Connection, process_n: int | None) -> int:
    """Sockets whose creation is not in the trace: they are taken as open from its start."""
    s = _socket.c
    wanted = [s.trace_id == THIS_TRACE, s.created_ns.is_(None)] + ([] if process_n is None else [s.process_n == process_n])
    return db.execute(select(func.count()).select_from(_socket).where(*wanted)).scalar_one()


def _aborts(db: Connection, from_ns: int, to_ns: int, level: int, process_n: int | None) -> dict[int, int]:
    a, s = _abort.c, _socket.c
    bucket = (a.t_ns // (1 << level)).label("bucket")
    query = select(bucket, func.count()).where(a.trace_id == THIS_TRACE, a.t_ns >= max(from_ns, 0), a.t_ns <= to_ns).group_by(bucket)
    if process_n is not None:
        query = query.where(a.socket_n.in_(select(s.n).where(s.trace_id == THIS_TRACE, s.process_n == process_n)))
    return {row[0]: row[1] for row in db.execute(query)}


def _heap(db: Connection, from_ns: int, to_ns: int, level: int, process_n: int | None) -> list[HeapPoint]:
    """Live bytes summed over processes: buckets hold their change, so sums are exact at the buckets' ends."""
    h = _heap_rollup.c
    is_mine = h.scope_n.in_(select(_process.c.n).where(_process.c.trace_id == THIS_TRACE)) if process_n is None else h.scope_n == process_n
    mine = [h.trace_id == THIS_TRACE, h.scope == "process", h.level == level, is_mine]
    change = func.sum(h.bytes_end - h.bytes_start)
    first, last = from_ns >> level, to_ns >> level
    live = db.execute(select(func.coalesce(change, 0)).where(*mine, h.bucket < first)).scalar_one()
    rows = db.execute(
        select(h.bucket, change).where(*mine, h.bucket >= first, h.bucket <= last).group_by(h.bucket).order_by(h.bucket)
    ).all()
    if not rows and not live:
        return []
    points = [HeapPoint(from_ns, live)]
    for bucket, more in rows:
        live += more
        points.append(HeapPoint((bucket + 1) << level, live))
    return points
