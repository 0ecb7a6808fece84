"""Whose allocations a stack's are: the module of its innermost frame outside the allocator."""

from sqlalchemy import Connection, select

from app.queries.stacks import is_allocator, module_file
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["MAX_STACKS", "NO_STACK", "OTHERS", "modules_of"]

MAX_STACKS = 2_000
"""Stacks whose modules are looked up, those that changed or hold the most; the rest is one line."""

NO_STACK, OTHERS, UNKNOWN_MODULE = "(no stack)", "(other stacks)", "(no module)"

_INNER_FRAMES = 32
"""Frames in which a stack's module is looked for: an allocator is not deeper than that."""

_CHUNK = 500

_frame = TRACE.tables["stack_frame"]


def modules_of(db: Connection, stacks: list[int]) -> dict[int, str]:
    """The module of the innermost frame outside the allocator; of a stack that is nothing but allocator, its outermost known one's."""
    f = _frame.c
    found: dict[int, str] = {}
    settled: set[int] = set()
    for start in range(0, len(stacks), _CHUNK):
        rows = db.execute(
            select(f.stack_n, f.module, f.symbol)
            .where(f.trace_id == THIS_TRACE, f.stack_n.in_(stacks[start : start + _CHUNK]), f.frame < _INNER_FRAMES)
            .order_by(f.stack_n, f.frame)
        )
        for row in rows:
            if row.stack_n not in settled:
                found[row.stack_n] = module_file(row.module) or UNKNOWN_MODULE
                if not is_allocator(row.module, row.symbol):
                    settled.add(row.stack_n)
    return found
