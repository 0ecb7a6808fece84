"""What lived and what happened at an address."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, Text, and_, cast, func, literal, literal_column, or_, select

from app import format as fmt
from app.links import ProcessRef
from app.planning import without_index
from app.queries.allocations import AllocationRow, allocation, allocation_rows
from app.queries.operations import OperationRow, operation, operation_rows
from app.queries.overlaps import OverlapRow, overlap, overlap_rows
from app.queries.sockets import SocketRow, socket, socket_rows
from app.queries.who import process_columns, process_ref, process_table
from collector.store.tables import LARGE_BYTES, THIS_TRACE, TRACE
from collector.words import SPACES

__all__ = ["MAX_ROWS", "RangeRow", "allocations_at", "operations_at", "overlaps_at", "ranges_at", "sockets_at"]

MAX_ROWS = 30
"""Rows of a kind that the page shows, so that it stays light; each query gives one more, which says that there are more."""

# Written as the indexes have it, since a partial index is used only for its very condition.
_is_large_operation: ColumnElement[bool] = literal_column(f"(operation.posted_len > {LARGE_BYTES})")
_is_large_allocation: ColumnElement[bool] = literal_column(f"(allocation.size > {LARGE_BYTES})")

_module = TRACE.tables["module"]
_thread = TRACE.tables["thread"]
_heap = TRACE.tables["heap"]
_heap_range = TRACE.tables["heap_range"]
_process = TRACE.tables["process"]
_p = process_table()


@dataclass(frozen=True, slots=True)
class RangeRow:
    """A range of addresses of a process that holds the address: a module, a thread's stack, a heap's segment, a kernel object."""

    what: str
    name: str
    process: ProcessRef | None
    low: fmt.Address
    high: fmt.Address | None
    from_ns: int | None
    until_ns: int | None


def sockets_at(db: Connection, address: int) -> list[SocketRow]:
    """Sockets whose endpoint the address is."""
    return socket_rows(db, socket.c.endpoint == fmt.stored_address(address), limit=MAX_ROWS + 1)


def operations_at(db: Connection, address: int) -> list[OperationRow]:
    """Operations whose buffer holds the address; of kernel addresses those that begin there."""
    stored, o = fmt.stored_address(address), operation.c
    holds = (o.space == SPACES.index("user"), o.buffer + o.posted_len > stored)
    far = without_index(o.buffer) < stored - LARGE_BYTES
    searches = (
        (o.buffer == stored,),
        (o.buffer.between(stored - LARGE_BYTES, stored - 1), *holds),
        (_is_large_operation, far, *holds),  # the index begins with the length
    )
    return operation_rows(db, o.n.in_(_first_numbers(db, operation, searches)), limit=MAX_ROWS + 1)


def _first_numbers(db: Connection, table: Table, searches: Sequence[tuple[ColumnElement[bool], ...]]) -> list[int]:
    """Numbers of the first rows that any of some searches finds, which have no row in common."""
    found: list[int] = []
    for conditions in searches:
        rows = db.execute(
            select(table.c.n).where(table.c.trace_id == THIS_TRACE, *conditions).order_by(without_index(table.c.n)).limit(MAX_ROWS + 1)
        )
        found += rows.scalars()
    return sorted(found)[: MAX_ROWS + 1]


def overlaps_at(db: Connection, address: int) -> list[OverlapRow]:
    """Overlaps that share the address."""
    stored = fmt.stored_address(address)
    return overlap_rows(db, overlap.c.lo <= stored, overlap.c.hi > stored, limit=MAX_ROWS + 1)


def allocations_at(db: Connection, address: int) -> list[AllocationRow]:
    """Allocations that hold the address."""
    stored, a = fmt.stored_address(address), allocation.c
    holds = or_(a.address + a.size > stored, a.address == stored)
    owners = select(_heap.c.process_n).where(_heap.c.trace_id == THIS_TRACE)
    near = (a.process_n.in_(owners), a.address.between(stored - LARGE_BYTES, stored), holds)
    far = (_is_large_allocation, without_index(a.address) < stored - LARGE_BYTES, holds)
    return allocation_rows(db, a.n.in_(_first_numbers(db, allocation, (near, far))), limit=MAX_ROWS + 1)


def ranges_at(db: Connection, address: int) -> list[RangeRow]:
    """Modules, thread stacks and heap segments around the address, and process objects at it."""
    stored, mask = fmt.stored_address(address), (1 << 64) - 1

    def read(what: str, table: Any, columns: tuple[Any, ...], process_n: Any, *conditions: Any) -> list[RangeRow]:  # Any: parts of SQL
        low, high, first, last, name = columns
        rows = db.execute(
            select(
                low.label("low"),
                high.label("high"),
                first.label("from_ns"),
                last.label("until_ns"),
                name.label("name"),
                *process_columns(_p),
            )
            .select_from(table.outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == process_n)))
            .where(table.c.trace_id == THIS_TRACE, *conditions)
            .order_by(table.c.n)
            .limit(MAX_ROWS + 1)
        )
        return [
            RangeRow(
                what,
                f"heap {fmt.address(row.name)}" if what == "heap segment" else str(row.name),
                process_ref(row),
                fmt.Address(row.low & mask),
                None if row.high is None else fmt.Address(row.high & mask),
                row.from_ns,
                row.until_ns,
            )
            for row in rows
        ]

    m, t, r, p = _module.c, _thread.c, _heap_range.c, _process.c
    end = m.base + m.size_bytes
    name = func.coalesce(t.name, literal("thread ") + cast(t.tid, Text))
    return [
        *read("module", _module, (m.base, end, m.loaded_ns, m.unloaded_ns, m.file), m.process_n, m.base <= stored, end > stored),
        *read(
            "stack",
            _thread,
            (t.stack_low, t.stack_high, t.start_ns, t.end_ns, name),
            t.process_n,
            t.stack_low <= stored,
            t.stack_high > stored,
        ),
        *read("heap segment", _heap_range, (r.lo, r.hi, r.from_ns, r.until_ns, r.handle), r.process_n, r.lo <= stored, r.hi > stored),
        *read(
            "process object",
            _process,
            (p.eprocess, p.eprocess, p.start_ns, p.end_ns, func.coalesce(p.image, "process")),
            p.n,
            p.eprocess == stored,
        ),
    ]
