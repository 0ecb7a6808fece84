"""Reallocations in place after a window: the sizes stored are a block's last ones."""

from sqlalchemy import Connection, and_, func, or_, select
from sqlalchemy.sql.elements import ColumnElement

from app.queries.heap_scan import ADOPTED
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["resized_later"]

_allocation = TRACE.tables["allocation"]
_resize = TRACE.tables["resize"]


def resized_later(db: Connection, mine: list[ColumnElement[bool]], t0: int, t1: int) -> dict[int, int]:
    """What the held blocks of a window gained or lost by reallocation in place after it, by stack reference, to be taken back.

    The sizes stored are the last ones; a block's size at t1 is that, less what came after.
    """
    a, z = _allocation.c, _resize.c
    latest = db.execute(select(func.max(z.t_ns)).where(z.trace_id == THIS_TRACE)).scalar()
    if latest is None or latest < t1:
        return {}
    ref = func.coalesce(a.owner_stack_ref, -1)
    rows = db.execute(
        select(ref, func.sum(z.old_size - z.size))
        .select_from(_resize.join(_allocation, and_(a.trace_id == THIS_TRACE, a.n == z.allocation_n)))
        .where(
            z.trace_id == THIS_TRACE,
            z.t_ns >= t1,
            *mine,
            a.first_ns >= t0,
            a.first_ns < t1,
            a.origin != ADOPTED,
            or_(a.end_ns.is_(None), a.end_ns >= t1),
        )
        .group_by(ref)
    )
    return {row[0]: row[1] for row in rows}
