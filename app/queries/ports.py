"""Who uses ports: opens by process and remote host, ports in use at once, binds that failed."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Subquery, and_, func, or_, select

from app import format as fmt
from app.filters import Conditions, Filter, one_of
from app.links import ProcessRef
from app.paging import Asked, Position, Sort
from app.queries.addresses import address_numbers, parse_address_range, parse_port, port_numbers
from app.queries.connection import PROTOCOLS, connection_condition
from app.queries.grouping import Groups
from app.queries.statuses import parse_status, status_condition, status_words
from app.queries.sums import number_where
from app.queries.who import (
    life_filters,
    process_columns,
    process_filter,
    process_ref,
    process_table,
    socket_columns,
    socket_ref,
    socket_table,
)
from collector.store.evidence import DYNAMIC_PORTS, dynamic_ports_held
from collector.store.tables import THIS_TRACE, TRACE

__all__ = [
    "DYNAMIC_PORTS",
    "FILTERS",
    "MAX_ROWS",
    "SORTS",
    "BindFailureRow",
    "PortUseRow",
    "RemoteRow",
    "bind_failures",
    "port_use",
    "remotes",
]

MAX_ROWS = 200

_socket = TRACE.tables["socket"]
_process_sum = TRACE.tables["process_sum"]
_remote_sum = TRACE.tables["remote_sum"]
_failure = TRACE.tables["bind_failure"]
_local = TRACE.tables["address"].alias("local")
_remote = TRACE.tables["address"].alias("remote")
_p = process_table()


@dataclass(frozen=True, slots=True)
class PortUseRow:
    """Ports of one process. `peak_dynamic` is the most ports of the dynamic range that it held at once; sockets older than the trace
    count from their first record."""

    process: ProcessRef | None
    opens: int
    per_second: str | None
    open_at_end: int
    ports: int
    peak_dynamic: int | None
    peak_ns: int | None
    bind_failures: int


@dataclass(frozen=True, slots=True)
class RemoteRow:
    """Connections of one process to one remote host."""

    process: ProcessRef | None
    host: str
    count: int
    open_at_end: int
    closed_here: int
    first_ns: int
    last_ns: int
    per_second: str | None
    bytes_sent: int
    bytes_received: int


@dataclass(frozen=True, slots=True)
class BindFailureRow:
    """A bind that failed, with the address asked for."""

    t_ns: int
    socket: str | None
    process: ProcessRef | None
    status: fmt.Status | None
    requested: str | None


def _has_port(port: int) -> ColumnElement[bool]:
    numbers = port_numbers(port)
    return or_(_socket.c.local_n.in_(numbers), _socket.c.remote_n.in_(numbers))


FILTERS = (
    process_filter(_socket.c.process_n),
    Filter(
        "address", parse_address_range, lambda v: _socket.c.remote_n.in_(address_numbers(v)), "to {}", "Remote address", hint="IP or prefix"
    ),
    Filter("port", parse_port, _has_port, "with port {}", "Port", hint="local or remote"),
    Filter(
        "protocol",
        one_of(tuple(PROTOCOLS)),
        lambda v: connection_condition("protocol", _socket.c.n, v),
        "speaking {}",
        "Protocol",
        show=" or ".join,
        choices=(("tcp", "TCP"), ("udp", "UDP")),
    ),
    Filter(
        "status",
        parse_status,
        lambda v: _socket.c.n.in_(
            select(_failure.c.socket_n).where(_failure.c.trace_id == THIS_TRACE, status_condition(_failure.c.status, v))
        ),
        "with a bind that failed with {}",
        "Failed bind",
        show=status_words,
        hint="10055, a name",
    ),
    *life_filters(_socket.c.first_ns, func.coalesce(_socket.c.closed_ns, _socket.c.last_ns)),
)

_SUMS = ("count", "first_ns", "last_ns", "process", "host", "closed_here", "open_at_end", "bytes_sent", "bytes_received")

SORTS = tuple(Sort(name, _socket.c.n, falls=name not in ("first_ns", "process", "host")) for name in _SUMS)
"""By the columns of the rows, which are sums; the columns given here are not used."""

_COLUMNS = {"count": "number", "first_ns": "earliest_ns", "last_ns": "latest_ns", "host": "ip"}
"""What a sort of these names is by in the tables of groups; others have the name of their column."""


def _rate(count: int, first_ns: int, last_ns: int) -> str | None:
    return fmt.per_second(count, last_ns - first_ns)


def remotes(db: Connection, asked: Asked) -> tuple[list[RemoteRow], Position | None]:
    """One page of the connections by process and remote host, and where the next begins."""
    key, falls = asked.order.sort.key, asked.order.falls
    is_all = not asked.where.items and key != "host"
    table = _all_remotes() if is_all else _remotes(asked)
    groups = Groups(
        _with_process(table) if key == "process" else table,
        by=_COLUMNS.get(key, key),
        falls=falls,
        name=("process_n", "text"),
        is_numbered=is_all and key == "count" and falls,
    )
    chosen = groups.page(db, asked)
    rows = db.execute(
        select(chosen, *process_columns(_p))
        .select_from(chosen.outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == chosen.c.process_n)))
        .order_by(*groups.order(chosen))
    ).all()
    return [_remote_row(row) for row in rows[: asked.limit]], groups.following(db, asked, rows)


def _remotes(asked: Asked) -> Subquery:
    """The remote hosts of the sockets that the filters leave, by process."""
    s = _socket.c
    return (
        select(s.process_n, _remote.c.ip, func.min(_remote.c.text).label("text"), func.count().label("number"))
        .add_columns(number_where(s.closed_ns.is_(None)).label("open_at_end"), number_where(s.closed_ns.is_not(None)).label("closed_here"))
        .add_columns(func.min(s.first_ns).label("earliest_ns"), func.max(s.first_ns).label("latest_ns"))
        .add_columns(func.sum(s.bytes_sent).label("bytes_sent"), func.sum(s.bytes_received).label("bytes_received"))
        .select_from(_socket.join(_remote, and_(_remote.c.trace_id == THIS_TRACE, _remote.c.n == s.remote_n)))
        .where(s.trace_id == THIS_TRACE, s.accepted_from_n.is_(None), *asked.where.clauses())
        .group_by(s.process_n, _remote.c.ip)
        .subquery("groups")
    )


def _all_remotes() -> Subquery:
    """The same of all sockets, as the collector has summed them; `n` counts from the most connections on."""
    r = _remote_sum.c
    return (
        select(r.process_n, r.text, r["count"].label("number"), r.open_at_end, r.closed_here, r.first_ns.label("earliest_ns"))
        .add_columns(r.last_ns.label("latest_ns"), r.bytes_sent, r.bytes_received, r.n)
        .where(r.trace_id == THIS_TRACE)
        .subquery("groups")
    )


def _with_process(groups: Subquery) -> Subquery:
    """The groups with what their process is called."""
    p = process_table("named_process")
    named = groups.outerjoin(p, and_(p.c.trace_id == THIS_TRACE, p.c.n == groups.c.process_n))
    return select(groups, p.c.image.label("process")).select_from(named).subquery("named")


def _remote_row(row: Row[Any]) -> RemoteRow:  # Any: the columns selected above
    text: str = row.text
    host = text[1:].partition("]")[0] if text.startswith("[") else text.rpartition(":")[0] or text
    return RemoteRow(
        process=process_ref(row),
        host=host,
        count=row.number,
        open_at_end=row.open_at_end,
        closed_here=row.closed_here,
        first_ns=row.earliest_ns,
        last_ns=row.latest_ns,
        per_second=_rate(row.number, row.earliest_ns, row.latest_ns),
        bytes_sent=row.bytes_sent,
        bytes_received=row.bytes_received,
    )


def port_use(db: Connection, where: Conditions) -> list[PortUseRow]:
    """Port use by process, most opens first."""
    if not where.items:
        return _all_port_use(db)
    failures = (
        select(_socket.c.process_n, func.count().label("count"))
        .select_from(_failure.join(_socket, and_(_socket.c.trace_id == THIS_TRACE, _socket.c.n == _failure.c.socket_n)))
        .where(_failure.c.trace_id == THIS_TRACE)
        .group_by(_socket.c.process_n)
        .subquery("failures")
    )
    used = (
        select(
            _socket.c.process_n,
            func.count().label("opens"),
            number_where(_socket.c.closed_ns.is_(None)).label("open_at_end"),
            func.count(_local.c.port.distinct()).label("ports"),
            func.min(_socket.c.first_ns).label("opened_ns"),
            func.max(_socket.c.first_ns).label("latest_ns"),
        )
        .select_from(_socket.outerjoin(_local, and_(_local.c.trace_id == THIS_TRACE, _local.c.n == _socket.c.local_n)))
        .where(_socket.c.trace_id == THIS_TRACE, *where.clauses())
        .group_by(_socket.c.process_n)
        .order_by(func.count().desc(), _socket.c.process_n)
        .limit(MAX_ROWS)
        .subquery("used")
    )
    rows = db.execute(
        select(used, func.coalesce(failures.c.count, 0).label("bind_failures"), *process_columns(_p))
        .select_from(
            used.outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == used.c.process_n)).outerjoin(
                failures, failures.c.process_n == used.c.process_n
            )
        )
        .order_by(used.c.opens.desc(), used.c.process_n)
    ).all()
    peaks = {process_n: (held, moment) for process_n, held, moment in db.execute(dynamic_ports_held(*where.clauses()))}
    return [
        PortUseRow(
            process=process_ref(row),
            opens=row.opens,
            per_second=_rate(row.opens, row.opened_ns, row.latest_ns),
            open_at_end=row.open_at_end,
            ports=row.ports,
            peak_dynamic=peaks.get(row.process_n, (0, None))[0],
            peak_ns=peaks.get(row.process_n, (0, None))[1],
            bind_failures=row.bind_failures,
        )
        for row in rows
    ]


def _all_port_use(db: Connection) -> list[PortUseRow]:
    """The same of all sockets, as the collector has summed them."""
    u = _process_sum.c
    rows = db.execute(
        select(u.sockets, u.open_at_end, u.ports, u.first_ns.label("opened_ns"), u.last_ns.label("latest_ns"), u.failed_binds)
        .add_columns(u.peak_dynamic, u.peak_ns, *process_columns(_p))
        .select_from(_process_sum.outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == u.process_n)))
        .where(u.trace_id == THIS_TRACE)
        .order_by(u.sockets.desc(), u.process_n)
        .limit(MAX_ROWS)
    )
    return [
        PortUseRow(
            process=process_ref(row),
            opens=row.sockets,
            per_second=_rate(row.sockets, row.opened_ns, row.latest_ns),
            open_at_end=row.open_at_end,
            ports=row.ports,
            peak_dynamic=row.peak_dynamic,
            peak_ns=row.peak_ns,
            bind_failures=row.failed_binds,
        )
        for row in rows
    ]


def bind_failures(db: Connection, where: Conditions) -> tuple[list[BindFailureRow], bool]:
    """The first MAX_ROWS binds that failed, in time order, and whether there are more.

    Of the filters those of process, status and time range hold here, and no address.
    """
    s = socket_table()
    requested = TRACE.tables["address"].alias("requested")
    conditions = []
    for item in where.items:
        if item.filter.key == "process":
            conditions.append(process_filter(s.c.process_n).sql(item.value))
        if item.filter.key == "status":
            conditions.append(status_condition(_failure.c.status, item.value))
        if item.filter.key == "from":
            conditions.append(_failure.c.t_ns >= item.value)
        if item.filter.key == "to":
            conditions.append(_failure.c.t_ns <= item.value)
    rows = db.execute(
        select(_failure.c.t_ns, _failure.c.status, requested.c.text, *socket_columns(s), *process_columns(_p))
        .select_from(
            _failure.outerjoin(s, and_(s.c.trace_id == THIS_TRACE, s.c.n == _failure.c.socket_n))
            .outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == s.c.process_n))
            .outerjoin(requested, and_(requested.c.trace_id == THIS_TRACE, requested.c.n == _failure.c.requested_n))
        )
        .where(_failure.c.trace_id == THIS_TRACE, *conditions)
        .order_by(_failure.c.t_ns, _failure.c.n)
        .limit(MAX_ROWS + 1)
    ).all()
    shown = [BindFailureRow(row.t_ns, socket_ref(row), process_ref(row), fmt.to_status(row.status), row.text) for row in rows[:MAX_ROWS]]
    return shown, len(rows) > MAX_ROWS
