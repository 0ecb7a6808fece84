"""Receives that were too small for their datagram: what was posted, what had arrived."""

import json
from dataclasses import dataclass, replace

from sqlalchemy import Connection, select

from app import format as fmt
from app.filters import Condition, Conditions, Filter, one_of
from app.links import ProcessRef, parse_socket
from app.paging import Asked, Position
from app.queries import operations
from app.queries.connection import connection_filters
from app.queries.operations import OperationRow, operation
from app.queries.who import life_filters, owner_filter, socket_filter, socket_number
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["FILTERS", "SORTS", "SmallReceiveRow", "small_receives_number", "small_receives_page"]

_event = TRACE.tables["socket_event"]

BUFFER_OVERFLOW = 0x8000_0005
_ARRIVALS = (38, 39, 3004)
_BEFORE_NS = 1_000_000_000  # how long before the receive's end its datagram is looked for


@dataclass(frozen=True, slots=True)
class SmallReceiveRow:
    """One receive. `arrived` is the size of the last datagram that was indicated before it ended; None where that was not recorded."""

    operation: str
    posted_ns: int | None
    completed_ns: int | None
    socket: str | None
    process: ProcessRef | None
    kind: str
    posted_len: int | None
    bytes: int
    arrived: int | None
    lost: int | None
    peer: str | None
    buffer: fmt.Address | None
    posted_tid: int | None
    stack: str | None


_RECEIVES = ("recv", "recvfrom", "recvmsg")

FILTERS: tuple[Filter, ...] = (
    owner_filter(operation.c.socket_n),
    socket_filter(operation.c.socket_n),
    *connection_filters(operation.c.socket_n, peer_n=operation.c.peer_n),
    *(
        replace(one, parse=one_of(_RECEIVES), choices=tuple((kind, kind) for kind in _RECEIVES)) if one.key == "kind" else one
        for one in operations.FILTERS
        if one.key in ("kind", "min_length", "max_length", "min_latency", "max_latency", "tid")
    ),
    *life_filters(operation.c.posted_ns, operation.c.end_ns),
)

SORTS = tuple(
    sort for sort in operations.SORTS if sort.key in ("posted_ns", "process", "peer", "posted_tid", "kind", "bytes", "posted_len")
)
"""The list's first order is by time."""


def _only_small(where: Conditions) -> Conditions:
    """The conditions of the request, and those that make a receive one of these."""
    fixed = {"kind": ",".join(_RECEIVES), "status": f"{BUFFER_OVERFLOW:#x}"}
    made = tuple(Condition(one, fixed[one.key], one.parse(fixed[one.key])) for one in operations.FILTERS if one.key in fixed)
    return replace(where, items=(*where.items, *made))


def small_receives_page(db: Connection, asked: Asked) -> tuple[list[SmallReceiveRow], Position | None]:
    """One page of the receives, and where the next begins."""
    rows, following = operations.operations_page(db, replace(asked, where=_only_small(asked.where)))
    return [_row(db, row) for row in rows], following


def small_receives_number(db: Connection, where: Conditions) -> int | None:
    """How many there are, as `count_up_to`."""
    return operations.operations_number(db, _only_small(where))


def _row(db: Connection, row: OperationRow) -> SmallReceiveRow:
    arrived = _arrived(db, row)
    return SmallReceiveRow(
        operation=row.operation,
        posted_ns=row.posted_ns,
        completed_ns=row.completed_ns,
        socket=row.socket,
        process=row.process,
        kind=row.kind,
        posted_len=row.posted_len,
        bytes=row.bytes,
        arrived=arrived,
        lost=None if arrived is None else max(arrived - row.bytes, 0),
        peer=row.peer,
        buffer=row.buffer,
        posted_tid=row.posted_tid,
        stack=row.stack,
    )


def _arrived(db: Connection, row: OperationRow) -> int | None:
    """The size of the datagram that was indicated last before a receive ended."""
    if row.socket is None or row.completed_ns is None:
        return None
    e = _event.c
    fields = db.execute(
        select(e.fields)
        .where(
            e.trace_id == THIS_TRACE,
            e.socket_n == socket_number(parse_socket(row.socket)),
            e.event.in_(_ARRIVALS),
            e.t_ns.between(row.completed_ns - _BEFORE_NS, row.completed_ns),
        )
        .order_by(e.t_ns.desc(), e.n.desc())
        .limit(1)
    ).scalar()
    known = json.loads(fields) if fields else {}
    size = known.get("buffer_length", known.get("bytes_indicated"))
    return size if isinstance(size, int) else None
