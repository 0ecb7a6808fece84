"""What findings count, as conditions on the tables: the page that a finding links to filters by the same ones, so that both agree.

Every function gives a part of a query; numbers are those of a trace's tables, times nanoseconds.
"""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Integer, Select, and_, case, exists, func, literal, or_, select, type_coerce, union_all

from collector import words
from collector.afdcodes import TRANSPORT_ABORTS
from collector.store.tables import THIS_TRACE, abort, address, listen_event, operation, socket, socket_event

__all__ = [
    "DYNAMIC_PORTS",
    "HALF_CLOSED_NS",
    "REST_NS",
    "SAME_INCIDENT_NS",
    "SOON_NS",
    "dynamic_ports_held",
    "failed_at_listener",
    "half_closed",
    "is_left_open",
    "is_reported_twice",
    "rest_before",
]

DYNAMIC_PORTS = (49_152, 65_535)
"""The default range from which Windows takes ports that nobody asked for."""
HALF_CLOSED_NS = 5_000_000_000
"""How long a socket stays open after its peer finished before that is worth a look."""
REST_NS = 5_000_000_000
"""A connection that was silent this long before its last use was probably kept in a pool."""
SOON_NS = 2_000_000_000
"""How soon after a send an abort counts as the answer to it."""
SAME_INCIDENT_NS = 1_000_000
"""The failure of an incoming connection and its abort at the listener are recorded within a microsecond; here is room to spare."""

_PEER_FINISHED = (41, 3006)  # the transport says that the peer sends no more
_FIRST_ERROR = 0xC0000000
_SENDS = tuple(words.OPERATION_KINDS.index(kind) for kind in ("send", "sendto", "sendmsg"))
_DATA = (*_SENDS, *(words.OPERATION_KINDS.index(kind) for kind in ("recv", "recvfrom", "recvmsg")))


def is_left_open(s: FromClause = socket) -> ColumnElement[bool]:
    """Sockets that were created and connected in the trace and were still open at its end."""
    return and_(s.c.create_seen, s.c.connections > 0, ~s.c.listener, s.c.closed_ns.is_(None), s.c.end == "open_at_end")


def half_closed(end_ns: ColumnElement[int]) -> Select[Any]:  # Any: columns of several types
    """Sockets that stayed open for long after their peer finished: `socket_n`, `t_ns` of the peer's end, `waited_ns`, `is_open`.

    Left out are sockets that their process's end closed, and those that were aborted meanwhile.
    """
    e, a = socket_event.c, abort.c
    finished = (
        select(e.socket_n, func.min(e.t_ns).label("t_ns"))
        .where(e.trace_id == THIS_TRACE, e.event.in_(_PEER_FINISHED), e.socket_n.is_not(None), func.coalesce(e.status, 0) < _FIRST_ERROR)
        .group_by(e.socket_n)
        .subquery("finished")
    )
    s = socket.alias("kept")
    was_aborted = exists().where(a.trace_id == THIS_TRACE, a.socket_n == s.c.n, a.t_ns <= finished.c.t_ns + HALF_CLOSED_NS)
    waited = func.coalesce(s.c.closed_ns, end_ns) - finished.c.t_ns
    return (
        select(
            s.c.n.label("socket_n"),
            s.c.process_n,
            finished.c.t_ns,
            waited.label("waited_ns"),
            type_coerce(case((s.c.closed_ns.is_(None), 1), else_=0), Integer).label("is_open"),
        )
        .join_from(finished, s, s.c.n == finished.c.socket_n)
        .where(s.c.trace_id == THIS_TRACE, s.c.end != "ended_by_exit", waited >= HALF_CLOSED_NS, ~was_aborted)
    )


def failed_at_listener(e: FromClause = listen_event) -> ColumnElement[bool]:
    """Records of a listener that say that an incoming connection, or the accept of one, failed."""
    return and_(e.c.what.in_(("indication", "accept_failed")), func.coalesce(e.c.status, 0) >= _FIRST_ERROR)


def is_reported_twice(a: FromClause = abort) -> ColumnElement[bool]:
    """Aborts at a listener whose incident is in its records already: the failure of the same connection, at almost the same time."""
    e = listen_event.alias("same_incident")
    return exists().where(
        e.c.trace_id == THIS_TRACE,
        e.c.socket_n == a.c.socket_n,
        e.c.t_ns.between(a.c.t_ns - SAME_INCIDENT_NS, a.c.t_ns + SAME_INCIDENT_NS),
        failed_at_listener(e),
    )


def rest_before(a: FromClause = abort) -> ColumnElement[int]:
    """How long the connection of an abort had been silent before the sends that the abort answered; NULL for any other pattern.

    Only primary aborts of connections in use that the transport is said to have given have one.
    """
    s, b = operation.alias("sent"), operation.alias("earlier")
    again = (
        select(func.min(s.c.posted_ns))
        .where(
            s.c.trace_id == THIS_TRACE,
            s.c.socket_n == a.c.socket_n,
            s.c.kind.in_(_SENDS),
            s.c.posted_ns.between(a.c.t_ns - SOON_NS, a.c.t_ns),
        )
        .correlate(a)
        .scalar_subquery()
    )
    moment = case((b.c.completed_ns < again, b.c.completed_ns), else_=b.c.posted_ns)
    before = (
        select(func.max(moment))
        .where(b.c.trace_id == THIS_TRACE, b.c.socket_n == a.c.socket_n, b.c.kind.in_(_DATA), b.c.posted_ns < again)
        .where(or_(b.c.completed_ns.is_(None), b.c.completed_ns < a.c.t_ns, b.c.kind.in_(_SENDS)))
        .correlate(a)
        .scalar_subquery()
    )
    is_one = and_(a.c.is_primary, ~a.c.on_listener, a.c.during == "running", a.c.reason.in_(TRANSPORT_ABORTS))
    return type_coerce(case((is_one, again - before)), Integer)


def dynamic_ports_held(*conditions: ColumnElement[bool]) -> Select[Any]:  # Any: columns of several types
    """The most dynamic ports that each process held at once, and when first: `process_n`, `held`, `t`. A running sum of opens and closes.

    `conditions` are on `socket`. Accepted sockets are left out, as they share the port of their listener.
    """
    s, local = socket.c, address.alias("local_port").c
    ended = func.coalesce(s.closed_ns, s.destroyed_ns)
    dynamic = (
        s.trace_id == THIS_TRACE,
        local.trace_id == THIS_TRACE,
        local.n == s.local_n,
        local.port.between(*DYNAMIC_PORTS),
        s.accepted_from_n.is_(None),
        *conditions,
    )
    steps = union_all(
        select(s.process_n, s.first_ns.label("t"), literal(1).label("step")).where(*dynamic),
        select(s.process_n, ended.label("t"), literal(-1).label("step")).where(*dynamic, ended.is_not(None)),
    ).subquery("steps")
    order = (steps.c.t, steps.c.step)
    held = func.sum(steps.c.step).over(partition_by=steps.c.process_n, order_by=order).label("held")
    running = select(steps.c.process_n, steps.c.t, held).subquery("running")
    rank = func.row_number().over(partition_by=running.c.process_n, order_by=(running.c.held.desc(), running.c.t)).label("rank")
    best = select(running.c.process_n, running.c.held, running.c.t, rank).subquery("best")
    return select(best.c.process_n, best.c.held, best.c.t).where(best.c.rank == 1)
