"""What a call stack did besides allocating: freeing, posting operations, creating and closing sockets."""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["StackUse", "stack_uses"]

_use = TRACE.tables["stack_use"]


@dataclass(frozen=True, slots=True)
class StackUse:
    """How often a stack did something, and when first and last."""

    what: str
    times: int
    first_ns: int | None
    last_ns: int | None


def stack_uses(db: Connection, stack_n: int) -> list[StackUse]:
    """What has this stack, what it did most often first."""
    u = _use.c
    rows = db.execute(
        select(u.what, u.times, u.first_ns, u.last_ns)
        .where(u.trace_id == THIS_TRACE, u.stack_n == stack_n)
        .order_by(u.times.desc(), u.what)
    )
    return [StackUse(*row) for row in rows]
