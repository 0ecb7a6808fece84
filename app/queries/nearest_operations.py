"""The operations next to one that this copy of the trace does not have."""

from sqlalchemy import ColumnElement, Connection, func, select

from app.links import NEAR_SHOWN, OperationLink, SocketLink
from app.paging import number_at
from app.queries.operations import OperationRow, operation, operation_rows
from app.queries.who import socket_number
from collector.store.tables import THIS_TRACE

__all__ = ["nearest_operations"]

_LOOKED_AT = 50
"""Operations before and after the moment among which those on the same buffer come first."""

_MOMENT = (operation.c.posted_ns, operation.c.completed_ns)


def nearest_operations(db: Connection, socket: SocketLink, link: OperationLink) -> list[OperationRow]:
    """Operations of the socket whose life is nearest, at most NEAR_SHOWN: on the same buffer, then of the same kind, then by time.

    Where the socket has none, those of the whole trace that are nearest in time.
    """
    number = db.execute(select(socket_number(socket))).scalar()
    rows = _around(db, link.ns, operation.c.socket_n == number) if number is not None else []
    if not rows:
        at = number_at(db, operation, _MOMENT, link.ns)
        rows = operation_rows(db, operation.c.n.between(at - NEAR_SHOWN, at + NEAR_SHOWN), limit=2 * NEAR_SHOWN + 1)
        return sorted(rows, key=lambda row: _distance(row, link.ns))[:NEAR_SHOWN]
    buffer = link.buffer or None
    rows.sort(key=lambda row: (row.kind != link.kind or row.buffer != buffer, row.kind != link.kind, _distance(row, link.ns)))
    return rows[:NEAR_SHOWN]


def _around(db: Connection, ns: int, mine: ColumnElement[bool]) -> list[OperationRow]:
    """The operations before and after a moment, as the index of a socket's operations has them; those without a post are few."""
    o = operation.c
    own = select(o.n).where(o.trace_id == THIS_TRACE, mine)
    sides = (
        own.where(o.posted_ns <= ns).order_by(o.posted_ns.desc()),
        own.where(o.posted_ns > ns).order_by(o.posted_ns),
        own.where(o.posted_ns.is_(None)).order_by(func.abs(o.completed_ns - ns)),
    )
    numbers = [n for side in sides for n in db.execute(side.limit(_LOOKED_AT)).scalars()]
    return operation_rows(db, o.n.in_(numbers), limit=len(numbers))


def _distance(row: OperationRow, ns: int) -> int:
    moment = row.posted_ns if row.posted_ns is not None else row.completed_ns
    return abs((moment or 0) - ns)
