"""What is held at one moment: the blocks that live then, summed by stack, by size and by age."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, case, func, literal_column, select
from sqlalchemy.sql.elements import ColumnElement

from app.planning import without_index
from app.queries.heap_scan import LIFETIMES, SIZES, Group, in_scope
from app.queries.heap_timeline import HeapScope
from app.queries.resolution import LONG_NS
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["OLDER", "HeldPart", "held_by_ref", "held_parts"]

_allocation = TRACE.tables["allocation"]
_resize = TRACE.tables["resize"]

OLDER = -1
"""Class of age of a block that is older than the trace."""


@dataclass(frozen=True, slots=True)
class HeldPart:
    """Blocks held at a moment that are alike in stack reference, class of size (at their start) and class of age; see SIZES, LIFETIMES."""

    ref: int
    size_class: int
    age_class: int
    blocks: int
    bytes: int


def held_by_ref(db: Connection, scope: HeapScope, ns: int) -> dict[int, Group]:
    """What is held at a moment, all changes at it included, by stack reference (-1 without a stack).

    Bytes are the blocks' sizes then. Blocks from before the trace count from when they were first seen.
    """
    a = _allocation.c
    columns = (func.min(a.first_ns), func.max(a.first_ns), func.max(func.coalesce(a.trust, 0)))
    found: dict[int, Group] = {}
    for ref, blocks, size, first, last, trust in _sums(db, scope, ns, (), columns):
        found.setdefault(ref, Group()).add(
            Group(held=blocks, held_bytes=size, first_ns=first, last_ns=last, is_suspect=trust == 1),
        )
    return found


def held_parts(db: Connection, scope: HeapScope, ns: int) -> list[HeldPart]:
    """The same, parted also by size and by age."""
    a = _allocation.c
    size_class = case(*((a.size_at_open <= limit, index) for index, limit in enumerate(SIZES)), else_=len(SIZES))
    age = ns - a.first_ns
    ages = ((age < limit, index) for index, limit in enumerate(LIFETIMES))
    age_class = case((a.start_ns.is_(None), OLDER), *ages, else_=len(LIFETIMES))
    return [HeldPart(*row) for row in _sums(db, scope, ns, (size_class, age_class), ())]


def _sums(
    db: Connection, scope: HeapScope, ns: int, classes: tuple[ColumnElement[int], ...], columns: tuple[ColumnElement[int], ...]
) -> Iterator[Any]:  # Any: rows of whole numbers
    """Rows of reference, classes, blocks, bytes and the columns asked for, from three searches that have no block in common.

    Those never freed and those that live long have an index of their own; all others began shortly before.
    """
    a, z = _allocation.c, _resize.c
    # The sizes stored are the last ones: what came by reallocation in place after the moment is taken back, block by block.
    later = select(func.sum(z.size - z.old_size)).where(z.trace_id == THIS_TRACE, z.allocation_n == a.n, z.t_ns > ns)
    size = a.size - func.coalesce(later.correlate(_allocation).scalar_subquery(), 0)
    keys = (func.coalesce(a.owner_stack_ref, -1), *classes)
    # Written as the index has it, since a partial index is used only for its very condition.
    long_lived: ColumnElement[bool] = literal_column(f"(allocation.end_ns - allocation.first_ns > {LONG_NS})")
    searches = (
        (a.end_ns.is_(None), a.first_ns <= ns),
        (a.end_ns > ns, a.first_ns > ns - LONG_NS, a.first_ns <= ns),
        (long_lived, a.end_ns > ns, without_index(a.first_ns) <= ns - LONG_NS),
    )
    for search in searches:
        yield from db.execute(select(*keys, func.count(), func.sum(size), *columns).where(*in_scope(scope), *search).group_by(*keys))
