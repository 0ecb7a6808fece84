"""Sockets that listen, and whether they keep up."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, func, literal, null, select, union_all

from app import format as fmt
from app.filters import Conditions, Filter, parse_count, parse_duration
from app.links import ProcessRef
from app.paging import Asked, Position, Sort, count_up_to, fetch
from app.queries.addresses import address_numbers, parse_address_range, parse_port, port_numbers
from app.queries.who import (
    life_filters,
    process_columns,
    process_filter,
    process_ref,
    process_table,
    socket_columns,
    socket_filter,
    socket_ref,
)
from collector.store.evidence import SAME_INCIDENT_NS, failed_at_listener, is_reported_twice
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["FILTERS", "MOST_FAILURES", "SORTS", "FailureRow", "ListenerRow", "failures", "listeners_number", "listeners_page"]

MOST_FAILURES = 500

socket = TRACE.tables["socket"]
_event = TRACE.tables["listen_event"]
_abort = TRACE.tables["abort"]
_local = TRACE.tables["address"].alias("local")
_p = process_table()


_happened = TRACE.tables["listener_sum"]
_made = socket.alias("made")
_unused = (
    select(func.count())
    .where(_made.c.trace_id == THIS_TRACE, _made.c.accepted_from_n == socket.c.n, _made.c.sends == 0, _made.c.receives == 0)
    .correlate(socket)
    .scalar_subquery()
)


@dataclass(frozen=True, slots=True)
class ListenerRow:
    """One listener. `failed` counts incoming connections that failed, each once; `accepted_unused` connections on which nothing was sent
    or received."""

    socket: str | None
    process: ProcessRef | None
    local: str | None
    first_ns: int
    closed_ns: int | None
    backlog_asked: int | None
    backlog_peak: int | None
    indications: int
    accepted: int
    failed: int
    accepted_unused: int
    longest_wait_ns: int | None
    mean_wait_ns: int | None
    pauses: int


@dataclass(frozen=True, slots=True)
class FailureRow:
    """An incoming connection that failed at a listener. `reason` is that of the abort which tells of it; `status` None where no other
    record does."""

    t_ns: int
    socket: str | None
    process: ProcessRef | None
    what: str
    peer: str | None
    status: fmt.Status | None
    reason: str | None
    reason_certainty: str | None


_accepted = func.coalesce(_happened.c.accepted, 0)
_aborted = (
    select(func.count())
    .where(_abort.c.trace_id == THIS_TRACE, _abort.c.socket_n == socket.c.n, _abort.c.on_listener, ~is_reported_twice(_abort))
    .correlate(socket)
    .scalar_subquery()
)
_failed = func.coalesce(_happened.c.failed, 0) + _aborted
_indications = func.coalesce(_happened.c.indications, 0)

FILTERS = (
    process_filter(socket.c.process_n),
    socket_filter(socket.c.n),
    Filter("port", parse_port, lambda v: socket.c.local_n.in_(port_numbers(v)), "on port {}", "Port"),
    Filter(
        "address",
        parse_address_range,
        lambda v: socket.c.local_n.in_(address_numbers(v)),
        "on address {}",
        "Local address",
        hint="IP or prefix",
    ),
    Filter("min_failed", parse_count, lambda v: _failed >= v, "with {} failed connections or more", "Failed from"),
    Filter(
        "min_wait",
        parse_duration,
        lambda v: _happened.c.longest_wait_ns >= v,
        "whose longest wait is {} or more",
        "Wait from",
        show=fmt.duration,
        hint="200 ms",
    ),
    Filter("min_backlog", parse_count, lambda v: _happened.c.backlog_peak >= v, "whose backlog reached {}", "Backlog from"),
    *life_filters(socket.c.first_ns, func.coalesce(socket.c.closed_ns, socket.c.last_ns)),
)

_MOMENT = (socket.c.first_ns,)

SORTS = (
    Sort("first_ns", socket.c.first_ns, is_time=True),
    Sort("process", _p.c.image),
    Sort("local", _local.c.text),
    Sort("closed_ns", socket.c.closed_ns),
    Sort("accepted_unused", _unused, falls=True),
    Sort("pauses", func.coalesce(_happened.c.pauses, 0), falls=True),
    Sort("backlog_asked", _happened.c.backlog_asked, falls=True),
    Sort("backlog_peak", _happened.c.backlog_peak, falls=True),
    Sort("indications", _indications, falls=True),
    Sort("accepted", _accepted, falls=True),
    Sort("failed", _failed, falls=True),
    Sort("longest_wait_ns", _happened.c.longest_wait_ns, falls=True),
    Sort("mean_wait_ns", _happened.c.mean_wait_ns, falls=True),
)

_ROWS = (
    select(
        *socket_columns(socket),
        *process_columns(_p),
        socket.c.closed_ns,
        _local.c.text.label("local"),
        _happened.c.backlog_asked,
        _happened.c.backlog_peak,
        _indications.label("indications"),
        _accepted.label("accepted"),
        _failed.label("failed"),
        func.coalesce(_happened.c.pauses, 0).label("pauses"),
        _happened.c.longest_wait_ns,
        _happened.c.mean_wait_ns,
        _unused.label("accepted_unused"),
    )
    .select_from(
        socket.outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == socket.c.process_n))
        .outerjoin(_local, and_(_local.c.trace_id == THIS_TRACE, _local.c.n == socket.c.local_n))
        .outerjoin(_happened, and_(_happened.c.trace_id == THIS_TRACE, _happened.c.socket_n == socket.c.n))
    )
    .where(socket.c.listener)
)


def _row(row: Row[Any]) -> ListenerRow:  # Any: the columns of _ROWS
    return ListenerRow(
        socket=socket_ref(row),
        process=process_ref(row),
        local=row.local,
        first_ns=row.s_first_ns,
        closed_ns=row.closed_ns,
        backlog_asked=row.backlog_asked,
        backlog_peak=row.backlog_peak,
        indications=row.indications,
        accepted=row.accepted,
        failed=row.failed,
        accepted_unused=row.accepted_unused,
        longest_wait_ns=row.longest_wait_ns,
        mean_wait_ns=row.mean_wait_ns,
        pauses=row.pauses,
    )


def listeners_page(db: Connection, asked: Asked) -> tuple[list[ListenerRow], Position | None]:
    """One page of the listeners, and where the next begins."""
    found = fetch(db, _ROWS, table=socket, moment=_MOMENT, asked=asked)
    return [_row(row) for row in found.rows], found.next


def listeners_number(db: Connection, where: Conditions) -> int | None:
    """How many listeners there are, as `count_up_to`."""
    return count_up_to(db, _ROWS, table=socket, moment=_MOMENT, where=where)


_WHAT = {"indication": "request failed", "accept_failed": "accept failed", "abort": "aborted"}


def failures(db: Connection, where: Conditions) -> list[FailureRow]:
    """The first `MOST_FAILURES` connections that failed at the listeners that the filters leave, in time order, each once."""
    e, a = _event.c, _abort.alias("told").c
    peer = TRACE.tables["address"].alias("peer")
    listeners = _ROWS.with_only_columns(socket.c.n).where(socket.c.trace_id == THIS_TRACE, *where.clauses()).subquery("chosen")
    chosen = select(listeners.c.n)
    told = (
        select(func.min(a.n))
        .where(a.trace_id == THIS_TRACE, a.socket_n == e.socket_n, a.on_listener)
        .where(a.t_ns.between(e.t_ns - SAME_INCIDENT_NS, e.t_ns + SAME_INCIDENT_NS))
        .correlate(_event)
        .scalar_subquery()
    )
    happened = union_all(
        select(e.t_ns, e.socket_n, e.what, e.peer_n, e.status, told.label("abort_n")).where(
            e.trace_id == THIS_TRACE, failed_at_listener(_event), e.socket_n.in_(chosen)
        ),
        select(
            _abort.c.t_ns, _abort.c.socket_n, literal("abort").label("what"), null().label("peer_n"), null().label("status"), _abort.c.n
        ).where(_abort.c.trace_id == THIS_TRACE, _abort.c.on_listener, ~is_reported_twice(_abort), _abort.c.socket_n.in_(chosen)),
    ).subquery("failed")
    reason = _abort.alias("reason")
    rows = db.execute(
        select(happened, peer.c.text.label("peer"), reason.c.reason, reason.c.reason_name, reason.c.reason_certainty)
        .add_columns(*socket_columns(socket), *process_columns(_p))
        .select_from(
            happened.join(socket, and_(socket.c.trace_id == THIS_TRACE, socket.c.n == happened.c.socket_n))
            .outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == socket.c.process_n))
            .outerjoin(peer, and_(peer.c.trace_id == THIS_TRACE, peer.c.n == happened.c.peer_n))
            .outerjoin(reason, and_(reason.c.trace_id == THIS_TRACE, reason.c.n == happened.c.abort_n))
        )
        .order_by(happened.c.t_ns, happened.c.socket_n)
        .limit(MOST_FAILURES)
    )
    return [
        FailureRow(
            t_ns=row.t_ns,
            socket=socket_ref(row),
            process=process_ref(row),
            what=_WHAT[row.what],
            peer=row.peer,
            status=fmt.to_status(row.status),
            reason=None if row.reason is None else f"{row.reason} {fmt.words(row.reason_name)}" if row.reason_name else f"{row.reason}",
            reason_certainty=row.reason_certainty,
        )
        for row in rows
    ]
