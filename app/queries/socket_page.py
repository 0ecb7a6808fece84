"""One socket: who, where to, how long, how it ended, and whom it is tied to."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, FromClause, and_, func, or_, select

from app import format as fmt
from app.format import Address, Status
from app.links import NEAR_SHOWN, ProcessRef, SocketLink, socket_link
from app.queries.sockets import protocol_words
from app.queries.stack_refs import stack_hash
from app.queries.who import process_columns, process_ref, process_table, socket_columns, socket_ref, socket_table
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import FAMILIES, OPERATION_KINDS, OUTCOMES, SOCKET_TYPES

__all__ = ["Phase", "SocketHead", "find_socket", "nearest_sockets", "socket_phases"]

_socket = TRACE.tables["socket"]
_operation = TRACE.tables["operation"]
_event = TRACE.tables["socket_event"]
_owner = TRACE.tables["owner"]
_address = TRACE.tables["address"]

_FIRST_OPERATIONS = 2_000
"""Where the first connect of a socket is looked for."""

_BINDS = (2, 3, 1029, 1030)


@dataclass(frozen=True, slots=True)
class SocketHead:
    """One socket. `n` stays in the server; links are natural keys."""

    n: int
    link: str
    endpoint: Address
    process: ProcessRef | None
    eprocess: Address | None
    pid_source: str | None
    contradictions: int
    family: str | None
    type: str | None
    protocol: str | None
    type_inferred: bool
    create_seen: bool
    created_ns: int | None
    closed_ns: int | None
    destroyed_ns: int | None
    first_ns: int
    last_ns: int
    end: str
    local: str | None
    remote: str | None
    connections: int
    listener: bool
    accepted_from: str | None
    loopback_peer: str | None
    bytes_sent: int
    bytes_received: int
    bytes_indicated: int
    sends: int
    receives: int
    errors: int
    last_error: Status | None
    create_tid: int | None
    close_tid: int | None
    create_stack: str | None
    close_stack: str | None
    registered_io: bool

    @property
    def is_datagram(self) -> bool:
        return self.type == "dgram"

    @property
    def until_ns(self) -> int:
        """The last moment that the trace knows of it."""
        return max(self.last_ns, self.destroyed_ns or self.last_ns, self.closed_ns or self.last_ns)


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a socket's life; `from_ns` is None when it began before the trace, `to_ns` when it went on after it."""

    name: str
    from_ns: int | None
    to_ns: int | None


def find_socket(db: Connection, link: SocketLink) -> SocketHead | None:
    """The socket whose life contains the link's time; without a time the last at that address. None when there is none."""
    s = socket_table()
    start = func.coalesce(s.c.created_ns, s.c.first_ns)
    wanted = [s.c.trace_id == THIS_TRACE, s.c.endpoint == fmt.stored_address(link.endpoint)]
    if link.ns is not None:
        # A time of an object may lie between its create and its first record here, so the start is the lower of the two.
        wanted.append(or_(start <= link.ns, s.c.first_ns <= link.ns))
    head = _head(db, select(s.c.n).where(*wanted).order_by(start.desc()).limit(1).scalar_subquery())
    if head is None or link.ns is None:
        return head
    ended = head.end not in ("open_at_end", "closing_at_end")
    return None if ended and link.ns > head.until_ns else head


def nearest_sockets(db: Connection, link: SocketLink) -> list[str]:
    """Links of the sockets at that endpoint address that lie nearest to the link's time, at most NEAR_SHOWN."""
    s = socket_table()
    start = func.coalesce(s.c.created_ns, s.c.first_ns)
    rows = db.execute(
        select(s.c.endpoint, s.c.created_ns, s.c.first_ns)
        .where(s.c.trace_id == THIS_TRACE, s.c.endpoint == fmt.stored_address(link.endpoint))
        .order_by(func.abs(start - (link.ns or 0)))
        .limit(NEAR_SHOWN)
    )
    return [socket_link(row.endpoint, row.created_ns, row.first_ns) for row in rows]


def _head(db: Connection, number: Any) -> SocketHead | None:  # Any: a scalar select
    s, p = _socket, process_table()
    local, remote = _address.alias("local"), _address.alias("remote")
    listener, loopback = socket_table("listener"), socket_table("loopback")

    def one(table: FromClause, column: Any) -> Any:  # Any: a column; a condition
        return and_(table.c.trace_id == THIS_TRACE, table.c.n == column)

    plain = ("n", "endpoint", "family", "type", "protocol", "type_inferred", "create_seen", "created_ns", "closed_ns", "destroyed_ns",
             "first_ns", "last_ns", "end", "connections", "listener", "bytes_sent", "bytes_received", "bytes_indicated", "sends",
             "receives", "errors", "last_error", "create_tid", "close_tid", "registered_io")  # fmt: skip
    row: Any = db.execute(  # Any: columns of several types
        select(
            *(s.c[name] for name in plain),
            local.c.text.label("local"),
            remote.c.text.label("remote"),
            _owner.c.eprocess,
            _owner.c.pid_source,
            _owner.c.contradictions,
            stack_hash(s.c.create_stack_ref).label("create_stack"),
            stack_hash(s.c.close_stack_ref).label("close_stack"),
            *process_columns(p),
            *socket_columns(listener, "f"),
            *socket_columns(loopback, "b"),
        )
        .select_from(
            s.outerjoin(p, one(p, s.c.process_n))
            .outerjoin(_owner, one(_owner, s.c.owner_n))
            .outerjoin(local, one(local, s.c.local_n))
            .outerjoin(remote, one(remote, s.c.remote_n))
            .outerjoin(listener, one(listener, s.c.accepted_from_n))
            .outerjoin(loopback, one(loopback, s.c.loopback_peer_n))
        )
        .where(s.c.trace_id == THIS_TRACE, s.c.n == number)
    ).first()
    if row is None:
        return None
    endpoint = fmt.to_address(row.endpoint)
    assert endpoint is not None
    return SocketHead(
        n=row.n,
        link=socket_link(row.endpoint, row.created_ns, row.first_ns),
        endpoint=endpoint,
        process=process_ref(row),
        eprocess=fmt.to_address(row.p_eprocess if row.eprocess is None else row.eprocess),
        pid_source=row.pid_source,
        contradictions=row.contradictions or 0,
        family=None if row.family is None else FAMILIES.get(row.family, f"family {row.family}"),
        type=None if row.type is None else SOCKET_TYPES.get(row.type, f"type {row.type}"),
        protocol=protocol_words(row.family, row.type, row.protocol),
        accepted_from=socket_ref(row, "f"),
        loopback_peer=socket_ref(row, "b"),
        last_error=fmt.to_status(row.last_error),
        **{
            name: row._mapping[name]
            for name in (*plain, "local", "remote", "create_stack", "close_stack")
            if name not in ("n", "endpoint", "family", "type", "protocol", "last_error")
        },
    )


def socket_phases(db: Connection, head: SocketHead) -> list[Phase]:
    """The life of a socket as the trace shows it: open, bound, listening or connected, closing."""
    marks: list[tuple[str, int]] = []
    e = _event.c
    bound = db.execute(
        select(func.min(e.t_ns)).where(
            e.trace_id == THIS_TRACE,
            e.socket_n == head.n,
            e.event.in_(_BINDS),
            func.coalesce(e.status, 0) < 0x8000_0000,
            _is_exit(e.enter_exit),
        )
    ).scalar()
    if bound is not None:
        marks.append(("bound", bound))
    listening = db.execute(select(func.min(e.t_ns)).where(e.trace_id == THIS_TRACE, e.socket_n == head.n, e.event == 1037)).scalar()
    if head.listener and listening is not None:
        marks.append(("listening", listening))
    connected = _connected_ns(db, head) if head.connections else None
    if connected is not None:
        marks.append(("connected", connected))
    marks.sort(key=lambda mark: mark[1])
    ends = head.closed_ns if head.closed_ns is not None else None if head.end in ("open_at_end", "closing_at_end") else head.until_ns
    phases = []
    name, start = "open", head.created_ns if head.create_seen else None
    if not head.create_seen and connected is None and head.connections:
        name = "connected"
    if head.listener and listening is None:
        name = "listening"
    for next_name, at in marks:
        if start is None or at > start:
            phases.append(Phase(name, start, at))
        name, start = next_name, at
    phases.append(Phase(name, start, ends))
    if head.closed_ns is not None:
        phases.append(Phase("closing", head.closed_ns, head.destroyed_ns if head.end != "closing_at_end" else None))
    return phases


def _is_exit(enter_exit: Any) -> Any:  # Any: a column; a condition
    return or_(enter_exit.is_(None), enter_exit == 1)


def _connected_ns(db: Connection, head: SocketHead) -> int | None:
    """When the connection was made: by its own connect among its first operations, or by an accept of its listener."""
    o = _operation.c
    if head.accepted_from is not None:
        listener_n = select(_socket.c.accepted_from_n).where(_socket.c.trace_id == THIS_TRACE, _socket.c.n == head.n).scalar_subquery()
        accepted: int | None = db.execute(
            select(func.min(o.completed_ns)).where(o.trace_id == THIS_TRACE, o.socket_n == listener_n, o.accepted_n == head.n)
        ).scalar()
        return accepted
    some = (
        select(o.kind, o.outcome, o.completed_ns)
        .where(o.trace_id == THIS_TRACE, o.socket_n == head.n)
        .order_by(o.posted_ns, o.n)
        .limit(_FIRST_OPERATIONS)
        .subquery()
    )
    connected: int | None = db.execute(
        select(func.min(some.c.completed_ns)).where(
            some.c.kind == OPERATION_KINDS.index("connect"), some.c.outcome == OUTCOMES.index("completed")
        )
    ).scalar()
    return connected
