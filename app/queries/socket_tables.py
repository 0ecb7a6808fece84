"""What belongs to one socket: aborts, options, peers, accepted sockets, operations that never completed."""

from dataclasses import dataclass

from sqlalchemy import Connection, and_, func, or_, select

from app import format as fmt
from app.format import Status
from app.links import operation_link, socket_link
from app.queries.socket_moments import ARRIVALS, DISCONNECTS
from app.queries.socket_page import SocketHead
from app.queries.socket_timeline import direction_of
from app.queries.stack_refs import stack_hash
from app.queries.who import socket_table
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import OPERATION_KINDS, OUTCOMES, word_at

__all__ = [
    "AbortRow",
    "AcceptedRow",
    "LastOperation",
    "Listened",
    "OpenOperations",
    "OptionRow",
    "PeerRow",
    "indications_traced",
    "memory_conflicts",
    "socket_aborts",
    "socket_accepted",
    "socket_disconnect_ns",
    "socket_dropped",
    "socket_last_failure",
    "socket_listened",
    "socket_open_operations",
    "socket_options",
    "socket_peers",
]

_operation = TRACE.tables["operation"]
_abort = TRACE.tables["abort"]
_option = TRACE.tables["option"]
_peer = TRACE.tables["peer"]
_address = TRACE.tables["address"]
_event = TRACE.tables["socket_event"]
_count = TRACE.tables["event_count"]
_drop = TRACE.tables["drop"]
_listen = TRACE.tables["listen_event"]
_overlap = TRACE.tables["overlap"]
_finding = TRACE.tables["io_finding"]

_AFD = "e53c6823-7bb8-44bb-90dc-3f86090d48a6"

MAX_SIDE_ROWS = 100
"""Rows of the short tables of a page: aborts, peers, options."""


@dataclass(frozen=True, slots=True)
class AbortRow:
    """An abort of this socket's connection."""

    t_ns: int
    reason: int
    reason_name: str | None
    reason_certainty: str | None
    initiator: str
    during: str
    is_primary: bool
    on_listener: bool
    unread_bytes: int | None
    outstanding: int | None
    last_error: Status | None
    last_disconnect_ns: int | None
    last_traffic_ns: int | None
    location: int | None
    tid: int | None
    stack: str | None


@dataclass(frozen=True, slots=True)
class OptionRow:
    """An option that was set."""

    t_ns: int
    option: int
    name: str | None
    value: int
    status: Status | None


@dataclass(frozen=True, slots=True)
class PeerRow:
    """Whom a datagram socket talked with."""

    peer: str
    bytes_sent: int
    bytes_received: int
    sends: int
    receives: int
    dropped: int


@dataclass(frozen=True, slots=True)
class AcceptedRow:
    """A socket that this listener accepted."""

    socket: str
    remote: str | None
    first_ns: int
    end: str
    bytes_sent: int
    bytes_received: int
    errors: int


@dataclass(frozen=True, slots=True)
class LastOperation:
    """One operation as evidence."""

    link: str
    kind: str
    outcome: str
    status: Status | None
    posted_ns: int | None
    completed_ns: int | None
    bytes: int
    posted_len: int | None


@dataclass(frozen=True, slots=True)
class Listened:
    """What a listener did: requests that arrived, accepts that worked and failed, its backlog, the longest wait for an accept."""

    requests: int
    accepted: int
    failed: int
    backlog_asked: int | None
    backlog_reached: int | None
    longest_wait_ns: int | None


@dataclass(frozen=True, slots=True)
class OpenOperations:
    """Operations that had no completion of their own: how many a direction, their posted bytes, the oldest post."""

    sends: int
    receives: int
    others: int
    posted_bytes: int
    oldest_ns: int | None
    outcomes: tuple[str, ...]


def socket_aborts(db: Connection, socket_n: int) -> list[AbortRow]:
    """The aborts of a socket in time order."""
    a = _abort.c
    plain = [name for name in AbortRow.__dataclass_fields__ if name not in ("last_error", "stack")]
    rows = db.execute(
        select(*(a[name] for name in plain), a.last_error, stack_hash(a.stack_ref).label("stack"))
        .where(a.trace_id == THIS_TRACE, a.socket_n == socket_n)
        .order_by(a.t_ns, a.n)
        .limit(MAX_SIDE_ROWS)
    )
    return [
        AbortRow(**{name: row._mapping[name] for name in plain}, last_error=fmt.to_status(row.last_error), stack=row.stack) for row in rows
    ]


def socket_options(db: Connection, socket_n: int) -> list[OptionRow]:
    """The options set on a socket, in time order."""
    o = _option.c
    rows = db.execute(
        select(o.t_ns, o.option, o.name, o.value, o.status)
        .where(o.trace_id == THIS_TRACE, o.socket_n == socket_n)
        .order_by(o.t_ns, o.n)
        .limit(MAX_SIDE_ROWS)
    )
    return [OptionRow(row.t_ns, row.option, row.name, row.value, fmt.to_status(row.status)) for row in rows]


def socket_peers(db: Connection, socket_n: int) -> list[PeerRow]:
    """The peers of a datagram socket, busiest first."""
    q = _peer.c
    rows = db.execute(
        select(_address.c.text.label("peer"), q.bytes_sent, q.bytes_received, q.sends, q.receives, q.dropped)
        .join(_address, and_(_address.c.trace_id == THIS_TRACE, _address.c.n == q.address_n))
        .where(q.trace_id == THIS_TRACE, q.socket_n == socket_n)
        .order_by((q.bytes_sent + q.bytes_received).desc(), q.address_n)
        .limit(MAX_SIDE_ROWS)
    )
    return [PeerRow(**row._mapping) for row in rows]


def socket_accepted(db: Connection, socket_n: int, *, limit: int) -> list[AcceptedRow]:
    """The sockets that a listener accepted, in time order, at most `limit`."""
    o, s = _operation, socket_table()
    rows = db.execute(
        select(s.c.endpoint, s.c.created_ns, s.c.first_ns, s.c.end, s.c.bytes_sent, s.c.bytes_received, s.c.errors, _address.c.text)
        .select_from(
            o.join(s, and_(s.c.trace_id == THIS_TRACE, s.c.n == o.c.accepted_n)).outerjoin(
                _address, and_(_address.c.trace_id == THIS_TRACE, _address.c.n == s.c.remote_n)
            )
        )
        .where(o.c.trace_id == THIS_TRACE, o.c.socket_n == socket_n)
        .order_by(o.c.posted_ns, o.c.n)
        .limit(limit)
    )
    return [
        AcceptedRow(
            socket_link(row.endpoint, row.created_ns, row.first_ns),
            row.text,
            row.first_ns,
            row.end,
            row.bytes_sent,
            row.bytes_received,
            row.errors,
        )
        for row in rows
    ]


def socket_last_failure(db: Connection, head: SocketHead) -> LastOperation | None:
    """The last failed operation with the socket's last error, for the evidence."""
    if head.last_error is None:
        return None
    o = _operation.c
    row = db.execute(
        select(o.kind, o.outcome, o.status, o.posted_ns, o.completed_ns, o.bytes, o.posted_len, o.buffer)
        .where(o.trace_id == THIS_TRACE, o.socket_n == head.n, o.status == int(head.last_error))
        .order_by(o.posted_ns.desc(), o.n.desc())
        .limit(1)
    ).first()
    if row is None:
        return None
    kind = word_at(OPERATION_KINDS, row.kind) or fmt.UNKNOWN
    return LastOperation(
        link=operation_link(kind, row.buffer, row.posted_ns, row.completed_ns),
        kind=kind,
        outcome=word_at(OUTCOMES, row.outcome) or fmt.UNKNOWN,
        status=fmt.to_status(row.status),
        posted_ns=row.posted_ns,
        completed_ns=row.completed_ns,
        bytes=row.bytes,
        posted_len=row.posted_len,
    )


def socket_open_operations(db: Connection, head: SocketHead) -> OpenOperations:
    """Operations of a socket that never completed by themselves."""
    o = _operation.c
    outcomes = ("ended_with_socket", "ended_by_exit", "unknown_end", "in_flight")
    rows = db.execute(
        select(o.kind, o.outcome, func.count(), func.coalesce(func.sum(o.posted_len), 0), func.min(o.posted_ns))
        .where(o.trace_id == THIS_TRACE, o.socket_n == head.n, o.outcome.in_([OUTCOMES.index(word) for word in outcomes]))
        .group_by(o.kind, o.outcome)
    ).all()
    counts = {"send": 0, "receive": 0, "connect": 0}
    for kind, _, count, _, _ in rows:
        counts[direction_of(word_at(OPERATION_KINDS, kind) or "")] += count
    return OpenOperations(
        sends=counts["send"],
        receives=counts["receive"],
        others=counts["connect"],
        posted_bytes=sum(row[3] for row in rows),
        oldest_ns=min((row[4] for row in rows if row[4] is not None), default=None),
        outcomes=tuple(sorted({word_at(OUTCOMES, row[1]) or "" for row in rows})),
    )


def socket_dropped(db: Connection, socket_n: int) -> int:
    """How many datagrams were dropped at a socket."""
    d = _drop.c
    return db.execute(select(func.count()).select_from(_drop).where(d.trace_id == THIS_TRACE, d.socket_n == socket_n)).scalar_one()


def socket_listened(db: Connection, socket_n: int) -> Listened:
    """What a listener did."""
    e = _listen.c
    rows = db.execute(
        select(e.what, func.count(), func.max(e.backlog_now), func.max(e.backlog_asked), func.max(e.wait_ns))
        .where(e.trace_id == THIS_TRACE, e.socket_n == socket_n)
        .group_by(e.what)
    ).all()
    counts = {row[0]: row[1] for row in rows}
    return Listened(
        requests=counts.get("indication", 0),
        accepted=counts.get("accepted", 0),
        failed=counts.get("accept_failed", 0),
        backlog_asked=max((row[3] for row in rows if row[3] is not None), default=None),
        backlog_reached=max((row[2] for row in rows if row[2] is not None), default=None),
        longest_wait_ns=max((row[4] for row in rows if row[4] is not None), default=None),
    )


def socket_disconnect_ns(db: Connection, socket_n: int) -> int | None:
    """When the peer was first seen to have finished."""
    e = _event.c
    found: int | None = db.execute(
        select(func.min(e.t_ns)).where(e.trace_id == THIS_TRACE, e.socket_n == socket_n, e.event.in_(DISCONNECTS))
    ).scalar()
    return found


def indications_traced(db: Connection) -> bool:
    """Whether the trace has any record of the transport's indications."""
    c = _count.c
    ids = (*ARRIVALS, *DISCONNECTS)
    return db.execute(select(c.n).where(c.trace_id == THIS_TRACE, c.provider == _AFD, c.event_id.in_(ids)).limit(1)).first() is not None


def memory_conflicts(db: Connection, socket_n: int) -> tuple[int, int]:
    """How many overlaps and how many changes of memory in flight a socket's operations have."""
    first, second, o, f = _operation.alias("first"), _operation.alias("second"), _overlap.c, _finding.c
    # From the overlaps to their operations: they are few, and a socket's operations can be a million.
    overlaps = db.execute(
        select(func.count())
        .select_from(
            _overlap.join(first, and_(first.c.trace_id == THIS_TRACE, first.c.n == o.first_n)).join(
                second, and_(second.c.trace_id == THIS_TRACE, second.c.n == o.second_n)
            )
        )
        .where(o.trace_id == THIS_TRACE, or_(first.c.socket_n == socket_n, second.c.socket_n == socket_n))
    ).scalar_one()
    freed = db.execute(
        select(func.count()).select_from(_finding).where(f.trace_id == THIS_TRACE, f.socket_n == socket_n, f.kind != "overruns_block")
    ).scalar_one()
    return overlaps, freed
