"""What a call stack did besides allocating: freeing, posting operations, creating and closing sockets."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from collector.errors import StoreSlow
from collector.store.tables import TRACE

__all__ = ["StackUse", "stack_uses"]

_ref = TRACE.tables["stack_ref"]

# What is counted, the table, its column of stacks, and its time.
_USES = (
    ("blocks freed", "allocation", "free_stack_ref", "end_ns"),
    ("operations posted", "operation", "posted_stack_ref", "posted_ns"),
    ("operations completed", "operation", "completed_stack_ref", "completed_ns"),
    ("sockets created", "socket", "create_stack_ref", "created_ns"),
    ("sockets closed", "socket", "close_stack_ref", "closed_ns"),
    ("other socket events", "socket_event", "stack_ref", "t_ns"),
    ("aborts", "abort", "stack_ref", "t_ns"),
    ("heap records that do not fit", "heap_anomaly", "stack_ref", "t_ns"),
)


@dataclass(frozen=True, slots=True)
class StackUse:
    """How often a stack did something, and when first and last."""

    what: str
    times: int
    first_ns: int | None
    last_ns: int | None


def stack_uses(db: Connection, stack_n: int) -> list[StackUse]:
    """What has this stack, kinds without any left out; a kind whose search takes too long (a pass over its table) is left out too."""
    refs = select(_ref.c.ref).where(_ref.c.trace_id == 1, _ref.c.stack_n == stack_n)
    found = []
    for what, name, column, time in _USES:
        table = TRACE.tables[name].c
        query = select(func.count(), func.min(table[time]), func.max(table[time])).where(table.trace_id == 1, table[column].in_(refs))
        try:
            row = db.execute(query).one()
        except StoreSlow:
            continue
        if row[0]:
            found.append(StackUse(what, *row))
    return found
