"""Heap blocks and socket operations in each other's way: freed, moved or shrunk in flight, overrun, posted after the free."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, func, select

from app import format as fmt
from app.filters import Conditions, Filter, one_of, parse_address, parse_bytes
from app.links import ProcessRef, allocation_link, operation_link
from app.paging import Asked, Position, Sort, count_up_to, fetch
from app.queries.connection import connection_filters
from app.queries.operations import kind_filter
from app.queries.stack_refs import stack_hash
from app.queries.who import (
    moment_filters,
    process_columns,
    process_filter,
    process_ref,
    process_table,
    socket_columns,
    socket_filter,
    socket_ref,
    socket_table,
)
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import BUFFER_CLASSES, OPERATION_KINDS, word_at

__all__ = ["FILTERS", "KINDS", "SORTS", "FreeRow", "buffer_classes", "frees_number", "frees_of", "frees_page"]

finding = TRACE.tables["io_finding"]
_operation = TRACE.tables["operation"]
_allocation = TRACE.tables["allocation"]
_heap = TRACE.tables["heap"]
_buffer = TRACE.tables["operation_buffer"]
_s = socket_table()
_p = process_table()

KINDS = ("freed_in_flight", "reused_in_flight", "shrunk_in_flight", "overruns_block", "posted_after_free")


@dataclass(frozen=True, slots=True)
class FreeRow:
    """One conflict of a heap block with an operation. The operation is a link below its socket, the allocation one below its process."""

    t_ns: int
    kind: str
    certainty: str
    process: ProcessRef | None
    socket: str | None
    operation_kind: str
    operation: str
    posted_ns: int | None
    buffer: fmt.Address | None
    posted_len: int | None
    allocation: str | None
    allocation_address: fmt.Address | None
    allocation_size: int | None
    reason: str | None
    by_bytes: int | None
    owner_stack: str | None
    free_stack: str | None
    allocation_n: int | None


FILTERS = (
    process_filter(finding.c.process_n),
    socket_filter(finding.c.socket_n),
    *connection_filters(finding.c.socket_n, address_key="ip"),
    Filter(
        "kind",
        one_of(KINDS),
        lambda v: finding.c.kind.in_(v),
        "of kind {}",
        "Kind",
        show=lambda v: fmt.words(" or ".join(v)),
        choices=tuple((word, fmt.words(word)) for word in KINDS),
    ),
    Filter(
        "certainty",
        one_of(("certain", "possible")),
        lambda v: finding.c.certainty.in_(v),
        "that are {}",
        "Certainty",
        show=" or ".join,
        choices=(("certain", "certain"), ("possible", "possible")),
    ),
    kind_filter(_operation.c.kind, key="operation", words="of a {}", label="Operation"),
    Filter(
        "address",
        parse_address,
        lambda v: and_(_allocation.c.address <= fmt.stored_address(v), _allocation.c.address + _allocation.c.size > fmt.stored_address(v)),
        "whose block holds {}",
        "Block address",
        hint="0x…",
    ),
    Filter("min_size", parse_bytes, lambda v: _allocation.c.size >= v, "of blocks of {} or more", "Block from", show=fmt.bytes_text),
    Filter("max_size", parse_bytes, lambda v: _allocation.c.size <= v, "of blocks of {} or less", "Block to", show=fmt.bytes_text),
    *moment_filters(finding.c.t_ns),
)

_MOMENT = (finding.c.t_ns,)

SORTS = (
    Sort("t_ns", finding.c.t_ns, is_time=True),
    Sort("kind", finding.c.kind),
    Sort("certainty", finding.c.certainty),
    Sort("process", _p.c.image),
    Sort("posted_ns", _operation.c.posted_ns),
    Sort("buffer", _operation.c.buffer),
    Sort("posted_len", _operation.c.posted_len, falls=True),
    Sort("allocation_size", _allocation.c.size, falls=True),
    Sort("by_bytes", finding.c.by_bytes, falls=True),
)

_ROWS = select(
    *(finding.c[name] for name in ("t_ns", "kind", "certainty", "reason", "by_bytes", "allocation_n")),
    _operation.c.kind.label("o_kind"),
    _operation.c.buffer,
    _operation.c.posted_ns,
    _operation.c.completed_ns,
    _operation.c.posted_len,
    _heap.c.handle,
    _allocation.c.address,
    _allocation.c.start_ns.label("a_start_ns"),
    _allocation.c.first_ns.label("a_first_ns"),
    _allocation.c.size,
    stack_hash(_allocation.c.owner_stack_ref).label("owner_stack"),
    stack_hash(finding.c.free_stack_ref).label("free_stack"),
    *socket_columns(_s),
    *process_columns(_p),
).select_from(
    finding.outerjoin(_operation, and_(_operation.c.trace_id == THIS_TRACE, _operation.c.n == finding.c.operation_n))
    .outerjoin(_allocation, and_(_allocation.c.trace_id == THIS_TRACE, _allocation.c.n == finding.c.allocation_n))
    .outerjoin(_heap, and_(_heap.c.trace_id == THIS_TRACE, _heap.c.n == _allocation.c.heap_n))
    .outerjoin(_s, and_(_s.c.trace_id == THIS_TRACE, _s.c.n == finding.c.socket_n))
    .outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == finding.c.process_n))
)


def _row(row: Any) -> FreeRow:  # Any: a row with the columns of _ROWS
    kind = word_at(OPERATION_KINDS, row.o_kind) or ""
    block = None if row.address is None or row.handle is None else allocation_link(row.handle, row.address, row.a_start_ns, row.a_first_ns)
    return FreeRow(
        t_ns=row.t_ns,
        kind=row.kind,
        certainty=row.certainty,
        process=process_ref(row),
        socket=socket_ref(row),
        operation_kind=kind,
        operation=operation_link(kind, row.buffer, row.posted_ns, row.completed_ns),
        posted_ns=row.posted_ns,
        buffer=fmt.to_address(row.buffer),
        posted_len=row.posted_len,
        allocation=block,
        allocation_address=fmt.to_address(row.address),
        allocation_size=row.size,
        reason=row.reason,
        by_bytes=row.by_bytes,
        owner_stack=row.owner_stack,
        free_stack=row.free_stack,
        allocation_n=row.allocation_n,
    )


def frees_page(db: Connection, asked: Asked) -> tuple[list[FreeRow], Position | None]:
    """One page of the conflicts, and where the next begins."""
    found = fetch(db, _ROWS, table=finding, moment=_MOMENT, asked=asked, are_moments=True)
    return [_row(row) for row in found.rows], found.next


def frees_number(db: Connection, where: Conditions) -> int | None:
    """How many conflicts there are, as `count_up_to`."""
    return count_up_to(db, _ROWS, table=finding, moment=_MOMENT, where=where, are_moments=True)


def frees_of(db: Connection, operation_n: int, *, limit: int = 50) -> list[FreeRow]:
    """The conflicts of one operation, in time order."""
    mine = (finding.c.trace_id == THIS_TRACE, finding.c.operation_n == operation_n)
    return [_row(row) for row in db.execute(_ROWS.where(*mine).order_by(finding.c.t_ns, finding.c.n).limit(limit))]


def buffer_classes(db: Connection) -> dict[str, int]:
    """What lay behind the buffers of operations, by class; empty where the join with the heap was not made."""
    kind = _buffer.c.buffer_class
    rows = db.execute(select(kind, func.count()).where(_buffer.c.trace_id == THIS_TRACE).group_by(kind).order_by(kind))
    return {word_at(BUFFER_CLASSES, number) or "": count for number, count in rows}
