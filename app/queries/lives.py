"""The lives of a reused name: all that a process id, an endpoint, a heap handle or a block's address stood for while the trace ran."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, func, select

from app import format as fmt
from app.links import AllocationLink, HeapLink, ProcessLink, SocketLink, socket_link
from app.queries.allocations import allocation, allocation_rows
from app.queries.processes import nearest_processes
from app.queries.who import process_columns, process_ref, process_table, socket_table
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["Life", "allocation_lives", "heap_lives", "process_lives", "socket_lives"]

_heap = TRACE.tables["heap"]
_address = TRACE.tables["address"]


@dataclass(frozen=True, slots=True)
class Life:
    """One of them: its canonical link, what it was, when it began (None before the trace) and ended (None when it was there at the end)."""

    link: str
    what: str
    began_ns: int | None
    first_ns: int
    ended_ns: int | None


def process_lives(db: Connection, link: ProcessLink, *, limit: int) -> list[Life]:
    """Instances of a process id or process object, the earliest first."""
    return [
        Life(row.process, row.name, row.start_ns, row.first_ns, row.end_ns)
        for row in nearest_processes(db, link, limit=limit)  # without a time: by their own
    ]


def socket_lives(db: Connection, link: SocketLink, *, limit: int) -> list[Life]:
    """Sockets that had an endpoint address, the earliest first."""
    s, p, remote = socket_table(), process_table(), _address.alias("remote")
    rows = db.execute(
        select(s.c.endpoint, s.c.create_seen, s.c.created_ns, s.c.first_ns, s.c.last_ns, s.c.closed_ns, s.c.destroyed_ns, s.c.end)
        .add_columns(s.c.listener, remote.c.text.label("remote"), *process_columns(p))
        .select_from(
            s.outerjoin(p, and_(p.c.trace_id == THIS_TRACE, p.c.n == s.c.process_n)).outerjoin(
                remote, and_(remote.c.trace_id == THIS_TRACE, remote.c.n == s.c.remote_n)
            )
        )
        .where(s.c.trace_id == THIS_TRACE, s.c.endpoint == fmt.stored_address(link.endpoint))
        .order_by(func.coalesce(s.c.created_ns, s.c.first_ns), s.c.n)
        .limit(limit)
    )
    return [
        Life(
            socket_link(row.endpoint, row.created_ns, row.first_ns),
            _socket_words(row),
            row.created_ns if row.create_seen else None,
            row.first_ns,
            None if row.end in ("open_at_end", "closing_at_end") else row.destroyed_ns or row.closed_ns or row.last_ns,
        )
        for row in rows
    ]


def _socket_words(row: Any) -> str:  # Any: a row with the columns selected above
    process = process_ref(row)
    owner = "a process that is not known"
    if process is not None:
        owner = " ".join(str(part) for part in (process.image or "process", process.pid) if part is not None)
    kind = "listener" if row.listener else "socket"
    return f"{kind} of {owner}" + (f" to {row.remote}" if row.remote else "")


def heap_lives(db: Connection, process_n: int, link: HeapLink, *, limit: int) -> list[Life]:
    """Heaps of a process that had a handle, the earliest first."""
    h = _heap.c
    rows = db.execute(
        select(h.handle, h.life, h.created_ns, h.first_ns, h.destroyed_ns)
        .where(h.trace_id == THIS_TRACE, h.process_n == process_n, h.handle == fmt.stored_address(link.handle))
        .order_by(h.first_ns, h.n)
        .limit(limit)
    )
    return [
        Life(
            f"{link.handle}@{row.first_ns if row.created_ns is None else row.created_ns}",
            f"life {row.life} of this handle",
            row.created_ns,
            row.first_ns,
            row.destroyed_ns,
        )
        for row in rows
    ]


def allocation_lives(db: Connection, process_n: int, link: AllocationLink, *, limit: int) -> list[Life]:
    """Blocks of a heap that began at an address, the earliest first."""
    heaps = _numbers(db, process_n, link)
    here = (allocation.c.process_n == process_n, allocation.c.address == fmt.stored_address(link.address), allocation.c.heap_n.in_(heaps))
    rows = allocation_rows(db, *here, limit=limit)
    return [Life(row.allocation, f"{fmt.bytes_text(row.size)}", row.start_ns, row.first_ns, row.end_ns) for row in rows]


def _numbers(db: Connection, process_n: int, link: AllocationLink) -> list[int]:
    h = _heap.c
    found: Iterable[int] = db.execute(
        select(h.n).where(h.trace_id == THIS_TRACE, h.process_n == process_n, h.handle == fmt.stored_address(link.heap))
    ).scalars()
    return list(found)
