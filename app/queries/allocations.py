"""Heap allocations, from alloc to free."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, exists, or_, select

from app import format as fmt
from app.filters import Conditions, Filter, one_of, parse_address, parse_bytes, parse_count, parse_duration, parse_text, parse_time
from app.links import HeapLink, ProcessRef, allocation_link, parse_heap
from app.paging import Asked, Position, Sort, count_up_to, fetch
from app.queries.operations import words_of
from app.queries.stack_refs import stack_hash
from app.queries.who import life_filters, process_columns, process_filter, process_ref, process_table
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import CERTAINTIES, END_REASONS, ORIGINS, word_at

__all__ = ["FILTERS", "SORTS", "AllocationRow", "allocation_rows", "allocations_number", "allocations_page"]

allocation = TRACE.tables["allocation"]
_heap = TRACE.tables["heap"]
_stack = TRACE.tables["stack"]
_ref = TRACE.tables["stack_ref"]
_p = process_table()
_life = allocation.c.end_ns - allocation.c.first_ns

NO_STACK = "none"
"""In the place of a stack's hash: blocks without one."""


@dataclass(frozen=True, slots=True)
class AllocationRow:
    """One allocation in the list; `allocation` is its link below its process."""

    allocation: str
    process: ProcessRef | None
    heap: fmt.Address | None
    address: fmt.Address
    generation: int
    size: int
    start_ns: int | None
    first_ns: int
    end_ns: int | None
    life_ns: int | None
    end_reason: str | None
    origin: str
    trust: str | None
    tid: int | None
    owner_stack: str | None
    free_stack: str | None


def _holds(value: int) -> ColumnElement[bool]:
    stored = fmt.stored_address(value)
    return and_(allocation.c.address <= stored, or_(allocation.c.address + allocation.c.size > stored, allocation.c.address == stored))


def _of_heap(link: HeapLink) -> ColumnElement[bool]:
    is_it = _heap.c.handle == fmt.stored_address(link.handle)
    if link.ns is None:
        return is_it
    later = _heap.alias("later_life")  # a life whose destruction was lost ends where the next one begins
    is_over = exists().where(
        later.c.trace_id == THIS_TRACE,
        later.c.process_n == _heap.c.process_n,
        later.c.handle == _heap.c.handle,
        later.c.n > _heap.c.n,
        later.c.first_ns <= link.ns,
    )
    return and_(is_it, _heap.c.first_ns <= link.ns, or_(_heap.c.destroyed_ns.is_(None), _heap.c.destroyed_ns >= link.ns), ~is_over)


def _live_at(ns: int) -> ColumnElement[bool]:
    return and_(allocation.c.first_ns <= ns, or_(allocation.c.end_ns.is_(None), allocation.c.end_ns > ns))


def _of_stack(column: ColumnElement[int], text: str) -> ColumnElement[bool]:
    if text == NO_STACK:
        return column.is_(None)
    refs = (
        select(_ref.c.ref)
        .join(_stack, and_(_stack.c.trace_id == THIS_TRACE, _stack.c.n == _ref.c.stack_n))
        .where(_ref.c.trace_id == THIS_TRACE, _stack.c.hash.startswith(text, autoescape=True))
    )
    return column.in_(refs)


FILTERS = (
    process_filter(allocation.c.process_n),
    Filter("heap", parse_heap, _of_heap, "of heap {}", "Heap", hint="0x… or 0x…@time"),
    Filter("address", parse_address, _holds, "that hold {}", "Address", hint="0x…"),
    Filter("min_size", parse_bytes, lambda v: allocation.c.size >= v, "of {} or more", "Size from", show=fmt.bytes_text, hint="64 KiB"),
    Filter("max_size", parse_bytes, lambda v: allocation.c.size <= v, "of {} or less", "Size to", show=fmt.bytes_text),
    Filter(
        "state",
        one_of(("live", "ended")),
        lambda v: or_(*(allocation.c.end_ns.is_(None) if w == "live" else allocation.c.end_ns.is_not(None) for w in v)),
        "that are {}",
        "State",
        show=lambda v: " or ".join({"live": "still held at the end", "ended": "over"}[w] for w in v),
        choices=(("live", "still held"), ("ended", "over")),
    ),
    Filter(
        "end",
        one_of(END_REASONS),
        words_of(END_REASONS, allocation.c.end_reason),
        "that were {}",
        "End",
        show=lambda v: fmt.words(" or ".join(v)),
        choices=tuple((word, fmt.words(word)) for word in END_REASONS),
    ),
    Filter("min_life", parse_duration, lambda v: _life >= v, "that lived {} or longer", "Life from", show=fmt.duration, hint="10 s"),
    Filter("max_life", parse_duration, lambda v: _life <= v, "that lived {} or shorter", "Life to", show=fmt.duration),
    Filter("live_at", parse_time, _live_at, "live at {}", "Live at", show=fmt.time_whole, hint="1.5 s, or 09:30:12 UTC"),
    Filter(
        "began_from", parse_time, lambda v: allocation.c.start_ns >= v, "allocated at {} or later", "Allocated from", show=fmt.time_whole
    ),
    Filter("began_to", parse_time, lambda v: allocation.c.start_ns <= v, "allocated at {} or before", "Allocated to", show=fmt.time_whole),
    Filter("stack", parse_text, partial(_of_stack, allocation.c.owner_stack_ref), "made by stack {}", "Stack", hint="hash, or none"),
    Filter("freed_by", parse_text, partial(_of_stack, allocation.c.free_stack_ref), "freed by stack {}", "Freed by stack", hint="hash"),
    Filter("tid", parse_count, lambda v: allocation.c.tid == v, "made by thread {}", "Thread"),
    *life_filters(allocation.c.first_ns, allocation.c.end_ns),
)

_MOMENT = (allocation.c.first_ns,)

SORTS = (
    Sort("first_ns", allocation.c.first_ns, is_time=True),
    Sort("process", _p.c.image),
    Sort("address", allocation.c.address),
    Sort("tid", allocation.c.tid),
    Sort("size", allocation.c.size, falls=True),
    Sort("life_ns", _life, falls=True),
    Sort("end_ns", allocation.c.end_ns),
    Sort("end_reason", allocation.c.end_reason),
    Sort("generation", allocation.c.generation, falls=True),
)

_ROWS = select(
    *(
        allocation.c[name]
        for name in ("address", "generation", "size", "start_ns", "first_ns", "end_ns", "end_reason", "origin", "trust", "tid")
    ),
    _life.label("life_ns"),
    _heap.c.handle,
    stack_hash(allocation.c.owner_stack_ref).label("owner_stack"),
    stack_hash(allocation.c.free_stack_ref).label("free_stack"),
    *process_columns(_p),
).select_from(
    allocation.outerjoin(_heap, and_(_heap.c.trace_id == THIS_TRACE, _heap.c.n == allocation.c.heap_n)).outerjoin(
        _p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == allocation.c.process_n)
    )
)


def _row(row: Any) -> AllocationRow:  # Any: a row with the columns of _ROWS
    return AllocationRow(
        allocation=allocation_link(row.handle or 0, row.address, row.start_ns, row.first_ns),
        process=process_ref(row),
        heap=fmt.to_address(row.handle),
        address=fmt.Address(row.address & (1 << 64) - 1),
        generation=row.generation,
        size=row.size,
        start_ns=row.start_ns,
        first_ns=row.first_ns,
        end_ns=row.end_ns,
        life_ns=row.life_ns,
        end_reason=word_at(END_REASONS, row.end_reason),
        origin=word_at(ORIGINS, row.origin) or "",
        trust=word_at(CERTAINTIES, row.trust),
        tid=row.tid,
        owner_stack=row.owner_stack,
        free_stack=row.free_stack,
    )


def allocations_page(db: Connection, asked: Asked) -> tuple[list[AllocationRow], Position | None]:
    """One page of the allocations, and where the next begins."""
    found = fetch(db, _ROWS, table=allocation, moment=_MOMENT, asked=asked)
    return [_row(row) for row in found.rows], found.next


def allocations_number(db: Connection, where: Conditions) -> int | None:
    """How many allocations there are, as `count_up_to`."""
    return count_up_to(db, _ROWS, table=allocation, moment=_MOMENT, where=where)


def allocation_rows(db: Connection, *conditions: ColumnElement[bool], limit: int) -> list[AllocationRow]:
    """Allocations that meet conditions on the columns of `allocation`, in time order."""
    rows = db.execute(
        _ROWS.where(allocation.c.trace_id == THIS_TRACE, *conditions).order_by(allocation.c.first_ns, allocation.c.n).limit(limit)
    )
    return [_row(row) for row in rows]
