"""The stack behind a row's reference."""

from typing import Any

from sqlalchemy import and_, select

from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["stack_hash"]

_stack = TRACE.tables["stack"]
_stack_ref = TRACE.tables["stack_ref"]


def stack_hash(ref: Any) -> Any:  # Any: a column and a scalar select of SQLAlchemy
    """SQL for the hash of the stack behind a reference."""
    return (
        select(_stack.c.hash)
        .select_from(_stack_ref.join(_stack, and_(_stack.c.trace_id == THIS_TRACE, _stack.c.n == _stack_ref.c.stack_n)))
        .where(_stack_ref.c.trace_id == THIS_TRACE, _stack_ref.c.ref == ref)
        .scalar_subquery()
    )
