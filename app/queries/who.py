"""The process, the socket and the time range that rows of every list have: their columns, their references, their filters."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Label, and_, func, or_, select

from app import format as fmt
from app.filters import Filter, parse_time
from app.links import (
    ProcessLink,
    ProcessRef,
    SocketLink,
    parse_process,
    parse_socket,
    process_link,
    socket_link,
)
from collector.store.tables import THIS_TRACE, TRACE

__all__ = [
    "life_filters",
    "moment_filters",
    "owner_filter",
    "process_columns",
    "process_filter",
    "process_number",
    "process_ref",
    "process_table",
    "socket_columns",
    "socket_filter",
    "socket_number",
    "socket_ref",
    "socket_table",
]

UNKNOWN_PROCESS = "unknown"
"""What the process filter calls rows without a known process."""

_process = TRACE.tables["process"]
_socket = TRACE.tables["socket"]


def process_table(name: str = "p") -> FromClause:
    """The processes, to be joined to a row that has a process number."""
    return _process.alias(name)


def socket_table(name: str = "s") -> FromClause:
    """The sockets, to be joined to a row that has a socket number."""
    return _socket.alias(name)


def process_columns(p: FromClause, name: str = "p") -> tuple[Label[Any], ...]:  # Any: columns of several types
    """What `process_ref` reads."""
    return tuple(p.c[column].label(f"{name}_{column}") for column in ("n", "pid", "eprocess", "image", "start_ns", "first_ns"))


def process_ref(row: Any, name: str = "p") -> ProcessRef | None:  # Any: a row of whatever columns
    """The process of a row that selects `process_columns`; None when it has none."""
    values = row._mapping
    if values[f"{name}_n"] is None:
        return None
    pid = values[f"{name}_pid"]
    link = process_link(pid, values[f"{name}_eprocess"], values[f"{name}_start_ns"], values[f"{name}_first_ns"])
    return ProcessRef(link, pid, values[f"{name}_image"])


def socket_columns(s: FromClause, name: str = "s") -> tuple[Label[Any], ...]:  # Any: as above
    """What `socket_ref` reads."""
    return tuple(s.c[column].label(f"{name}_{column}") for column in ("endpoint", "created_ns", "first_ns"))


def socket_ref(row: Any, name: str = "s") -> str | None:  # Any: as above
    """The canonical link of the socket of a row that selects `socket_columns`."""
    values = row._mapping
    endpoint = values[f"{name}_endpoint"]
    return None if endpoint is None else socket_link(endpoint, values[f"{name}_created_ns"], values[f"{name}_first_ns"])


def process_number(link: ProcessLink) -> ColumnElement[int]:
    """The number of the process that a link means: the one whose life contains its time, else the nearest; without a time the last."""
    p = process_table("linked_process")
    start = func.coalesce(p.c.start_ns, p.c.first_ns)
    is_it = p.c.pid == link.pid if link.pid is not None else p.c.eprocess == fmt.stored_address(link.eprocess or 0)
    found = select(p.c.n).where(p.c.trace_id == THIS_TRACE, is_it)
    if link.ns is None:
        return found.order_by(start.desc()).limit(1).scalar_subquery()
    return found.order_by(start > link.ns, func.abs(start - link.ns)).limit(1).scalar_subquery()


def socket_number(link: SocketLink) -> ColumnElement[int]:
    """The number of the socket that a link with a time means, as `process_number`."""
    s = socket_table("linked_socket")
    start = func.coalesce(s.c.created_ns, s.c.first_ns)
    found = select(s.c.n).where(s.c.trace_id == THIS_TRACE, s.c.endpoint == fmt.stored_address(link.endpoint))
    if link.ns is None:
        return found.order_by(start.desc()).limit(1).scalar_subquery()
    return found.order_by(start > link.ns, func.abs(start - link.ns)).limit(1).scalar_subquery()


def _parse_process(text: str) -> ProcessLink | int | str:
    if "@" in text or text[:2].lower() == "0x":
        return parse_process(text)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else text


def process_filter(column: ColumnElement[Any], words: str = "of process {}") -> Filter:  # Any: a nullable integer column
    """Rows of one process instance (`PID@NS`), of all instances of a pid, of all whose image has a text in it, or of an unknown one."""

    def sql(value: ProcessLink | int | str) -> ColumnElement[bool]:
        if value == UNKNOWN_PROCESS:
            return column.is_(None)
        if isinstance(value, ProcessLink):
            return column == process_number(value)
        p = process_table("filtered_process")
        is_it = p.c.pid == value if isinstance(value, int) else p.c.image.icontains(value, autoescape=True)
        return column.in_(select(p.c.n).where(p.c.trace_id == THIS_TRACE, is_it))

    return Filter("process", _parse_process, sql, words, "Process", hint="name, pid, pid@time, unknown")


def owner_filter(socket_n: ColumnElement[Any]) -> Filter:  # Any: as above
    """As `process_filter`, for rows that name a socket: by the socket's process, without joining the socket to every row."""
    s = socket_table("owned_socket")
    of_socket = process_filter(s.c.process_n)

    def sql(value: Any) -> ColumnElement[bool]:  # Any: what a process filter parses
        owned = socket_n.in_(select(s.c.n).where(s.c.trace_id == THIS_TRACE, of_socket.sql(value)))
        return or_(socket_n.is_(None), owned) if value == UNKNOWN_PROCESS else owned

    return replace(of_socket, sql=sql)


def socket_filter(column: ColumnElement[Any], words: str = "on endpoint {}") -> Filter:  # Any: as above
    """Rows of one socket (`0xENDPOINT@NS`), or of all sockets that had an endpoint address."""

    def sql(value: SocketLink) -> ColumnElement[bool]:
        if value.ns is not None:
            return column == socket_number(value)
        s = socket_table("filtered_socket")
        return column.in_(select(s.c.n).where(s.c.trace_id == THIS_TRACE, s.c.endpoint == fmt.stored_address(value.endpoint)))

    return Filter("endpoint", parse_socket, sql, words, "Endpoint", hint="0x… or 0x…@time", is_narrow=True)


def moment_filters(column: ColumnElement[Any]) -> tuple[Filter, Filter]:  # Any: as above
    """From and to, for rows that are a moment."""
    return _range(lambda ns: column >= ns, lambda ns: column <= ns)


def life_filters(first: ColumnElement[Any], last: ColumnElement[Any]) -> tuple[Filter, Filter]:  # Any: as above
    """From and to, for rows that have a life: those that intersect the range. `last` NULL is a life without an end."""
    return _range(lambda ns: or_(last.is_(None), last >= ns), lambda ns: and_(first <= ns))


def _range(begins: Callable[[int], ColumnElement[bool]], ends: Callable[[int], ColumnElement[bool]]) -> tuple[Filter, Filter]:
    return (
        Filter("from", parse_time, begins, "from {}", "From", show=fmt.time_whole, hint="1.5 s, or 09:30:12 UTC"),
        Filter("to", parse_time, ends, "to {}", "To", show=fmt.time_whole, hint="1.5 s, or 09:30:12 UTC"),
    )
