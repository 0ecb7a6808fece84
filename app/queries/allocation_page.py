"""One heap allocation: its life, what else lived at its address, its sizes, and the operations that used it."""

from dataclasses import dataclass

from sqlalchemy import Connection, and_, select

from app import format as fmt
from app.format import Address
from app.links import NEAR_SHOWN, AllocationLink, allocation_link, operation_link
from app.queries.allocations import AllocationRow, allocation, allocation_rows
from app.queries.who import socket_columns, socket_ref, socket_table
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import BUFFER_CLASSES, OPERATION_KINDS, OUTCOMES, word_at

__all__ = ["AllocationWhole", "ResizeRow", "UserRow", "find_allocation", "generations", "nearest_allocations", "resizes", "users"]

_heap = TRACE.tables["heap"]
_resize = TRACE.tables["resize"]
_buffer = TRACE.tables["operation_buffer"]
_operation = TRACE.tables["operation"]
_finding = TRACE.tables["io_finding"]

MAX_ROWS = 100


@dataclass(frozen=True, slots=True)
class AllocationWhole:
    """All that is known of one allocation; `n` and `heap_n` stay in the server."""

    n: int
    heap_n: int
    row: AllocationRow
    size_at_open: int
    source_id: int | None
    free_tid: int | None
    end_inferred: bool
    previous: str | None
    moved_to: str | None


@dataclass(frozen=True, slots=True)
class ResizeRow:
    """A reallocation in place."""

    t_ns: int
    old_size: int
    size: int


@dataclass(frozen=True, slots=True)
class UserRow:
    """A socket operation whose buffer lies in the allocation; `conflict` says how they got into each other's way."""

    operation: str
    operation_kind: str
    socket: str | None
    posted_ns: int | None
    end_ns: int | None
    outcome: str
    bytes: int
    buffer: Address | None
    posted_len: int | None
    offset: int | None
    buffer_class: str
    conflict: str | None


def find_allocation(db: Connection, process_n: int, link: AllocationLink) -> AllocationWhole | None:
    """The allocation at a heap's address whose life contains the link's time; without a time the last."""
    a, h = allocation.c, _heap.c
    wanted = [
        a.trace_id == THIS_TRACE,
        a.process_n == process_n,
        a.address == fmt.stored_address(link.address),
        h.handle == fmt.stored_address(link.heap),
    ]
    if link.ns is not None:
        wanted.append(a.first_ns <= link.ns)
    row = db.execute(
        select(a.n, a.heap_n, a.size_at_open, a.source_id, a.free_tid, a.end_inferred, a.previous_n, a.end_ns)
        .join(_heap, and_(h.trace_id == THIS_TRACE, h.n == a.heap_n))
        .where(*wanted)
        .order_by(a.first_ns.desc(), a.n.desc())
        .limit(1)
    ).first()
    if row is None or (link.ns is not None and row.end_ns is not None and row.end_ns < link.ns):
        return None
    return AllocationWhole(
        n=row.n,
        heap_n=row.heap_n,
        row=allocation_rows(db, a.n == row.n, limit=1)[0],
        size_at_open=row.size_at_open,
        source_id=row.source_id,
        free_tid=row.free_tid,
        end_inferred=row.end_inferred,
        previous=_link(db, row.previous_n) if row.previous_n is not None else None,
        moved_to=_moved_to(db, process_n, row.n, row.end_ns),
    )


def nearest_allocations(db: Connection, process_n: int, link: AllocationLink) -> list[AllocationRow]:
    """Allocations of a process at the link's address, at most NEAR_SHOWN."""
    a = allocation.c
    rows = allocation_rows(db, a.process_n == process_n, a.address == fmt.stored_address(link.address), limit=MAX_ROWS)
    rows.sort(key=lambda row: abs(row.first_ns - (link.ns or 0)))
    return rows[:NEAR_SHOWN]


def _link(db: Connection, n: int) -> str | None:
    a, h = allocation.c, _heap.c
    row = db.execute(
        select(h.handle, a.address, a.start_ns, a.first_ns)
        .join(_heap, and_(h.trace_id == THIS_TRACE, h.n == a.heap_n))
        .where(a.trace_id == THIS_TRACE, a.n == n)
    ).first()
    return None if row is None else allocation_link(row.handle, row.address, row.start_ns, row.first_ns)


def _moved_to(db: Connection, process_n: int, n: int, end_ns: int | None) -> str | None:
    """The block that a moving reallocation made of this one: it began a little before this one ended."""
    a = allocation.c
    if end_ns is None:
        return None
    near = (a.first_ns >= end_ns - 1_000_000_000, a.first_ns <= end_ns)
    found = db.execute(select(a.n).where(a.trace_id == THIS_TRACE, a.process_n == process_n, *near, a.previous_n == n).limit(1)).scalar()
    return None if found is None else _link(db, found)


def generations(db: Connection, whole: AllocationWhole, process_n: int) -> list[AllocationRow]:
    """What lived at this address of this process, in time order: all of it where that is little, else what is nearest in time."""
    a = allocation.c
    here = (a.process_n == process_n, a.address == fmt.stored_address(whole.row.address))
    rows = allocation_rows(db, *here, a.first_ns >= whole.row.first_ns, limit=MAX_ROWS // 2)
    before = db.execute(
        select(a.n)
        .where(a.trace_id == THIS_TRACE, *here, a.first_ns < whole.row.first_ns)
        .order_by(a.first_ns.desc(), a.n.desc())
        .limit(MAX_ROWS // 2)
    )
    earlier = allocation_rows(db, a.n.in_([row.n for row in before]), limit=MAX_ROWS // 2)
    return earlier + rows


def resizes(db: Connection, whole: AllocationWhole) -> list[ResizeRow]:
    """Its reallocations in place, in time order."""
    z = _resize.c
    rows = db.execute(
        select(z.t_ns, z.old_size, z.size).where(z.trace_id == THIS_TRACE, z.allocation_n == whole.n).order_by(z.seq).limit(MAX_ROWS)
    )
    return [ResizeRow(row.t_ns, row.old_size, row.size) for row in rows]


def users(db: Connection, whole: AllocationWhole) -> list[UserRow]:
    """Socket operations whose buffer lies in the allocation, in time order."""
    b, o, f, s = _buffer.c, _operation.c, _finding, socket_table()
    conflict = (
        select(f.c.kind)
        .where(f.c.trace_id == THIS_TRACE, f.c.operation_n == o.n, f.c.allocation_n == whole.n)
        .order_by(f.c.n)
        .limit(1)
        .scalar_subquery()
    )
    rows = db.execute(
        select(o.kind, o.outcome, o.bytes, o.buffer, o.posted_len, o.posted_ns, o.completed_ns, o.end_ns)
        .add_columns(b.allocation_offset, b.buffer_class, conflict.label("conflict"), *socket_columns(s))
        .select_from(
            _buffer.join(_operation, and_(o.trace_id == THIS_TRACE, o.n == b.operation_n)).outerjoin(
                s, and_(s.c.trace_id == THIS_TRACE, s.c.n == o.socket_n)
            )
        )
        .where(b.trace_id == THIS_TRACE, b.allocation_n == whole.n)
        .order_by(o.posted_ns, o.n)
        .limit(MAX_ROWS)
    )
    found = []
    for row in rows:
        kind = word_at(OPERATION_KINDS, row.kind) or ""
        found.append(
            UserRow(
                operation=operation_link(kind, row.buffer, row.posted_ns, row.completed_ns),
                operation_kind=kind,
                socket=socket_ref(row),
                posted_ns=row.posted_ns,
                end_ns=row.end_ns,
                outcome=word_at(OUTCOMES, row.outcome) or "",
                bytes=row.bytes,
                buffer=fmt.to_address(row.buffer),
                posted_len=row.posted_len,
                offset=row.allocation_offset,
                buffer_class=word_at(BUFFER_CLASSES, row.buffer_class) or "",
                conflict=row.conflict,
            )
        )
    return found
