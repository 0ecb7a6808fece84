"""The sockets of a trace: one row a lifetime of an endpoint."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, exists, func, or_, select

from app import format as fmt
from app.filters import Conditions, Filter, one_of, one_word, parse_address, parse_bytes, parse_count, parse_duration, parse_text, yes_no
from app.links import ProcessRef, socket_link
from app.paging import Asked, Position, Sort, count_up_to, fetch
from app.queries.addresses import remote_filter
from app.queries.connection import PROTOCOLS, at_addresses, own_connection_filters
from app.queries.names import numbers_of_names
from app.queries.statuses import parse_status, status_condition, status_words
from app.queries.who import life_filters, process_columns, process_filter, process_ref, process_table
from collector.store.evidence import HALF_CLOSED_NS, half_closed, is_left_open
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["ENDS", "FILTERS", "SORTS", "TYPES", "SocketRow", "protocol_words", "socket_rows", "sockets_number", "sockets_page"]

socket = TRACE.tables["socket"]
peer = TRACE.tables["peer"]
abort = TRACE.tables["abort"]
p = process_table()
local = TRACE.tables["address"].alias("local")
remote = TRACE.tables["address"].alias("remote")

ENDS = ("closed", "superseded", "open_at_end", "closing_at_end", "ended_by_exit")
TYPES = {"none": 0, "stream": 1, "dgram": 2, "raw": 3, "rdm": 4, "seqpacket": 5}

_TYPE_WORDS = {number: word for word, number in TYPES.items()}
_PROTOCOL_WORDS = {number: word.upper() for word, number in PROTOCOLS.items()} | {58: "ICMPv6"}
_INTERNET = (2, 23)


@dataclass(frozen=True, slots=True)
class SocketRow:
    """One socket in the list. `last_ns` is its last record, `life_ns` runs to its close, else to that."""

    socket: str
    endpoint: fmt.Address
    process: ProcessRef | None
    type: str | None
    protocol: str | None
    local: str | None
    remote: str | None
    first_ns: int
    create_seen: bool
    closed_ns: int | None
    last_ns: int
    life_ns: int
    end: str
    listener: bool
    connections: int
    bytes_sent: int
    bytes_received: int
    sends: int
    receives: int
    errors: int
    last_error: fmt.Status | None
    aborted: bool


def protocol_words(family: int | None, kind: int | None, protocol: int | None) -> str | None:
    """A socket's protocol as people say it: by its number where the family is an internet one, else by its type."""
    if family in _INTERNET:
        if protocol in _PROTOCOL_WORDS:
            return _PROTOCOL_WORDS[protocol or 0]
        if not protocol and kind in (1, 2):
            return "TCP" if kind == 1 else "UDP"
    if protocol is None or (not protocol and kind is None):
        return None
    return f"protocol {protocol}"


# An abort at a listener tells of a connection that never had a socket; the listener lives on (winsock-semantics 8.8).
_was_aborted = exists().where(abort.c.trace_id == THIS_TRACE, abort.c.socket_n == socket.c.n, ~abort.c.on_listener)
# Of one that is older than the trace nobody can say that it was never used.
_was_used = or_(
    ~socket.c.create_seen,
    _was_aborted,
    socket.c.local_n.is_not(None),
    socket.c.remote_n.is_not(None),
    socket.c.connections > 0,
    socket.c.sends > 0,
    socket.c.receives > 0,
    socket.c.errors > 0,
    socket.c.bytes_indicated > 0,
    socket.c.listener,
)
_KEPT_WORDS = {
    "left_open": "that were connected in the trace and never closed",
    "half_closed": f"that stayed open {fmt.duration(HALF_CLOSED_NS)} or longer after their peer finished",
}


def _is_kept(words: tuple[str, ...]) -> ColumnElement[bool]:
    trace = TRACE.tables["trace"]
    end_ns = select(trace.c.end_ns).where(trace.c.trace_id == THIS_TRACE).scalar_subquery()
    half = half_closed(end_ns).subquery("half_closed")
    conditions = {"left_open": is_left_open(socket), "half_closed": socket.c.n.in_(select(half.c.socket_n))}
    return or_(*(conditions[word] for word in words))


_life = func.coalesce(socket.c.closed_ns, socket.c.last_ns) - socket.c.first_ns

FILTERS = (
    process_filter(socket.c.process_n),
    Filter("endpoint", parse_address, lambda v: socket.c.endpoint == fmt.stored_address(v), "at endpoint {}", "Endpoint", hint="0x…"),
    *own_connection_filters(socket),
    remote_filter(socket.c.remote_n),
    Filter("host", parse_text, lambda v: at_addresses(socket, numbers_of_names(v)), "with a name like “{}”", "Name", hint="example.com"),
    Filter(
        "type",
        one_of(tuple(TYPES)),
        lambda v: socket.c.type.in_([TYPES[word] for word in v]),
        "of type {}",
        "Type",
        show=" or ".join,
        choices=tuple((word, word) for word in TYPES),
    ),
    Filter(
        "state",
        one_of(ENDS),
        lambda v: socket.c.end.in_(v),
        "whose end is {}",
        "End",
        show=lambda v: fmt.words(" or ".join(v)),
        choices=tuple((word, fmt.words(word)) for word in ENDS),
    ),
    Filter(
        "aborted",
        yes_no,
        lambda v: _was_aborted if v else ~_was_aborted,
        "{} by an abort",
        "Aborted",
        show=lambda v: "ended" if v else "not ended",
        choices=(("yes", "yes"), ("no", "no")),
    ),
    Filter("min_errors", parse_count, lambda v: socket.c.errors >= v, "with {} errors or more", "Errors from", hint="count"),
    Filter(
        "min_bytes",
        parse_bytes,
        lambda v: socket.c.bytes_sent + socket.c.bytes_received >= v,
        "that moved {} or more",
        "Bytes from",
        show=fmt.bytes_text,
        hint="64 KiB",
    ),
    Filter(
        "max_bytes",
        parse_bytes,
        lambda v: socket.c.bytes_sent + socket.c.bytes_received <= v,
        "that moved {} or less",
        "Bytes to",
        show=fmt.bytes_text,
    ),
    Filter(
        "status",
        parse_status,
        lambda v: status_condition(socket.c.last_error, v),
        "whose last error is {}",
        "Last error",
        show=status_words,
        hint="10054, a name",
    ),
    Filter("min_life", parse_duration, lambda v: _life >= v, "that lived {} or longer", "Life from", show=fmt.duration, hint="10 s"),
    Filter("max_life", parse_duration, lambda v: _life <= v, "that lived {} or shorter", "Life to", show=fmt.duration),
    *life_filters(socket.c.first_ns, func.coalesce(socket.c.destroyed_ns, socket.c.closed_ns, socket.c.last_ns)),
    Filter(
        "listener",
        yes_no,
        lambda v: socket.c.listener if v else ~socket.c.listener,
        "that {}",
        "Listener",
        show=lambda v: "listen" if v else "do not listen",
        choices=(("yes", "yes"), ("no", "no")),
    ),
    Filter(
        "loopback",
        yes_no,
        lambda v: socket.c.loopback_peer_n.is_not(None) if v else socket.c.loopback_peer_n.is_(None),
        "{} their other end in this trace",
        "Other end here",
        show=lambda v: "with" if v else "without",
        choices=(("yes", "yes"), ("no", "no")),
    ),
    Filter(
        "kept",
        one_of(("left_open", "half_closed")),
        _is_kept,
        "{}",
        "Kept",
        show=lambda v: " or ".join(_KEPT_WORDS[word] for word in v),
        choices=(("left_open", "connected here, never closed"), ("half_closed", "open long after the peer finished")),
    ),
    Filter(
        "unused",
        one_word(("hide", "only")),
        lambda v: _was_used if v == "hide" else ~_was_used,
        "{}",
        "Unused",
        show=lambda v: "without the unused ones" if v == "hide" else "that were never used",
        choices=(("hide", "hidden"), ("only", "only these")),
        default="hide",
    ),
)

_MOMENT = (socket.c.first_ns,)

SORTS = (
    Sort("first_ns", socket.c.first_ns, is_time=True),
    Sort("process", p.c.image),
    Sort("protocol", socket.c.protocol),
    Sort("local", local.c.text),
    Sort("remote", remote.c.text),
    Sort("bytes_sent", socket.c.bytes_sent, falls=True),
    Sort("bytes_received", socket.c.bytes_received, falls=True),
    Sort("sends", socket.c.sends, falls=True),
    Sort("receives", socket.c.receives, falls=True),
    Sort("errors", socket.c.errors, falls=True),
    Sort("life_ns", _life, falls=True),
    Sort("end", socket.c.end),
    Sort("endpoint", socket.c.endpoint),
)

_ROWS = select(
    *(
        socket.c[name]
        for name in (
            "endpoint",
            "family",
            "type",
            "protocol",
            "created_ns",
            "first_ns",
            "create_seen",
            "closed_ns",
            "last_ns",
            "end",
            "listener",
            "connections",
            "bytes_sent",
            "bytes_received",
            "sends",
            "receives",
            "errors",
            "last_error",
        )
    ),
    _life.label("life_ns"),
    local.c.text.label("local"),
    remote.c.text.label("remote"),
    _was_aborted.label("aborted"),
    *process_columns(p),
).select_from(
    socket.outerjoin(p, and_(p.c.trace_id == THIS_TRACE, p.c.n == socket.c.process_n))
    .outerjoin(local, and_(local.c.trace_id == THIS_TRACE, local.c.n == socket.c.local_n))
    .outerjoin(remote, and_(remote.c.trace_id == THIS_TRACE, remote.c.n == socket.c.remote_n))
)


def _row(row: Any) -> SocketRow:  # Any: a row with the columns of _ROWS
    endpoint = fmt.to_address(row.endpoint)
    assert endpoint is not None
    return SocketRow(
        socket=socket_link(row.endpoint, row.created_ns, row.first_ns),
        endpoint=endpoint,
        process=process_ref(row),
        type=None if row.type is None else _TYPE_WORDS.get(row.type, f"type {row.type}"),
        protocol=protocol_words(row.family, row.type, row.protocol),
        local=row.local,
        remote=row.remote,
        first_ns=row.first_ns,
        create_seen=row.create_seen,
        closed_ns=row.closed_ns,
        last_ns=row.last_ns,
        life_ns=row.life_ns,
        end=row.end,
        listener=row.listener,
        connections=row.connections,
        bytes_sent=row.bytes_sent,
        bytes_received=row.bytes_received,
        sends=row.sends,
        receives=row.receives,
        errors=row.errors,
        last_error=fmt.to_status(row.last_error),
        aborted=row.aborted,
    )


def sockets_page(db: Connection, asked: Asked) -> tuple[list[SocketRow], Position | None]:
    """One page of the sockets, and where the next begins."""
    found = fetch(db, _ROWS, table=socket, moment=_MOMENT, asked=asked)
    return [_row(row) for row in found.rows], found.next


def sockets_number(db: Connection, where: Conditions) -> int | None:
    """How many sockets there are, as `count_up_to`."""
    return count_up_to(db, _ROWS, table=socket, moment=_MOMENT, where=where)


def socket_rows(db: Connection, *conditions: ColumnElement[bool], limit: int) -> list[SocketRow]:
    """Rows that meet conditions on the columns of `socket`, in time order."""
    rows = db.execute(_ROWS.where(socket.c.trace_id == THIS_TRACE, *conditions).order_by(socket.c.first_ns, socket.c.n).limit(limit))
    return [_row(row) for row in rows]
