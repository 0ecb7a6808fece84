"""Sockets that listen, and whether they keep up."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, case, func, select

from app.filters import Conditions, Filter, parse_count
from app.links import ProcessRef
from app.paging import Asked, Position, Sort, count_up_to, fetch
from app.queries.addresses import parse_port, port_numbers
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
from collector.store.tables import TRACE

__all__ = ["FILTERS", "SORTS", "ListenerRow", "listeners_number", "listeners_page"]

socket = TRACE.tables["socket"]
_event = TRACE.tables["listen_event"]
_local = TRACE.tables["address"].alias("local")
_p = process_table()


def _number(what: str) -> Any:  # Any: an SQL sum
    return func.sum(case((_event.c.what == what, 1), else_=0))


_happened = (
    select(
        _event.c.socket_n,
        func.max(_event.c.backlog_asked).label("backlog_asked"),
        func.max(_event.c.backlog_now).label("backlog_peak"),
        _number("indication").label("indications"),
        _number("accepted").label("accepted"),
        _number("accept_failed").label("accepts_failed"),
        _number("pause").label("pauses"),
        func.max(_event.c.wait_ns).label("longest_wait_ns"),
        func.avg(_event.c.wait_ns).label("mean_wait_ns"),
    )
    .where(_event.c.trace_id == 1)
    .group_by(_event.c.socket_n)
    .subquery("happened")
)
_made = socket.alias("made")
_unused = (
    select(func.count())
    .where(_made.c.trace_id == 1, _made.c.accepted_from_n == socket.c.n, _made.c.sends == 0, _made.c.receives == 0)
    .correlate(socket)
    .scalar_subquery()
)


@dataclass(frozen=True, slots=True)
class ListenerRow:
    """One listener. `accepted_unused` counts connections on which nothing was sent or received."""

    socket: str | None
    process: ProcessRef | None
    local: str | None
    first_ns: int
    closed_ns: int | None
    backlog_asked: int | None
    backlog_peak: int | None
    indications: int
    accepted: int
    accepts_failed: int
    accepted_unused: int
    longest_wait_ns: int | None
    mean_wait_ns: int | None
    pauses: int


_accepted = func.coalesce(_happened.c.accepted, 0)
_failed = func.coalesce(_happened.c.accepts_failed, 0)
_indications = func.coalesce(_happened.c.indications, 0)

FILTERS = (
    process_filter(socket.c.process_n),
    socket_filter(socket.c.n),
    Filter("port", parse_port, lambda v: socket.c.local_n.in_(port_numbers(v)), "on port {}", "Port"),
    Filter("min_backlog", parse_count, lambda v: _happened.c.backlog_peak >= v, "whose backlog reached {}", "Backlog from"),
    *life_filters(socket.c.first_ns, func.coalesce(socket.c.closed_ns, socket.c.last_ns)),
)

_MOMENT = (socket.c.first_ns,)

SORTS = (
    Sort("first_ns", socket.c.first_ns, is_time=True),
    Sort("process", _p.c.image),
    Sort("local", _local.c.text),
    Sort("backlog_asked", _happened.c.backlog_asked, falls=True),
    Sort("backlog_peak", _happened.c.backlog_peak, falls=True),
    Sort("indications", _indications, falls=True),
    Sort("accepted", _accepted, falls=True),
    Sort("accepts_failed", _failed, falls=True),
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
        _failed.label("accepts_failed"),
        func.coalesce(_happened.c.pauses, 0).label("pauses"),
        _happened.c.longest_wait_ns,
        _happened.c.mean_wait_ns,
        _unused.label("accepted_unused"),
    )
    .select_from(
        socket.outerjoin(_p, and_(_p.c.trace_id == 1, _p.c.n == socket.c.process_n))
        .outerjoin(_local, and_(_local.c.trace_id == 1, _local.c.n == socket.c.local_n))
        .outerjoin(_happened, _happened.c.socket_n == socket.c.n)
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
        accepts_failed=row.accepts_failed,
        accepted_unused=row.accepted_unused,
        longest_wait_ns=row.longest_wait_ns,
        mean_wait_ns=None if row.mean_wait_ns is None else int(row.mean_wait_ns),
        pauses=row.pauses,
    )


def listeners_page(db: Connection, asked: Asked) -> tuple[list[ListenerRow], Position | None]:
    """One page of the listeners, and where the next begins."""
    found = fetch(db, _ROWS, table=socket, moment=_MOMENT, asked=asked)
    return [_row(row) for row in found.rows], found.next


def listeners_number(db: Connection, where: Conditions) -> int | None:
    """How many listeners there are, as `count_up_to`."""
    return count_up_to(db, _ROWS, table=socket, moment=_MOMENT, where=where)
