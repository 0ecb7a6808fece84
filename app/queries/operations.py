"""Operations on sockets, from posted to completed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, case, func, literal_column, or_, select

from app import format as fmt
from app.filters import Conditions, Filter, one_of, parse_address, parse_bytes, parse_count, parse_duration, yes_no
from app.links import OperationLink, ProcessRef, operation_link
from app.paging import Asked, Position, Sort, count_up_to, fetch
from app.queries.buffer_memory import MEMORY_FILTER
from app.queries.connection import connection_filters
from app.queries.resolution import LONG_NS
from app.queries.stack_refs import stack_hash
from app.queries.statuses import parse_status, status_condition, status_words
from app.queries.who import (
    life_filters,
    owner_filter,
    process_columns,
    process_ref,
    process_table,
    socket_columns,
    socket_filter,
    socket_ref,
    socket_table,
)
from app.sort_groups import SortGroups
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import BUFFER_CLASSES, MATCHES, OPERATION_KINDS, OUTCOMES, SPACES, word_at

__all__ = [
    "FILTERS",
    "NEVER_COMPLETED",
    "SORTS",
    "OperationRow",
    "OperationWhole",
    "find_operation",
    "in_flight_addresses",
    "kind_filter",
    "kinds_of",
    "operation_rows",
    "operations_number",
    "operations_page",
    "words_of",
]

operation = TRACE.tables["operation"]
_buffer = TRACE.tables["operation_buffer"]
_sums = TRACE.tables["operation_sum"]
_s = socket_table()
_p = process_table()
_peer = TRACE.tables["address"].alias("peer")
_posted_by = process_table("h")

NEVER_COMPLETED = ("in_flight", "unknown_end", "ended_with_socket", "ended_by_exit")


@dataclass(frozen=True, slots=True)
class OperationRow:
    """One operation in the list. `operation` is its link below its socket."""

    operation: str
    posted_ns: int | None
    completed_ns: int | None
    end_ns: int | None
    socket: str | None
    process: ProcessRef | None
    kind: str
    outcome: str
    status: fmt.Status | None
    bytes: int
    posted_len: int | None
    latency_ns: int | None
    buffer: fmt.Address | None
    buffer_count: int | None
    space: str | None
    fast_path: bool
    peer: str | None
    posted_tid: int | None
    completed_tid: int | None
    posted_pid: int | None
    stack: str | None


@dataclass(frozen=True, slots=True)
class OperationWhole:
    """All that is known of one operation; `n` and `socket_n` stay in the server."""

    n: int
    socket_n: int
    row: OperationRow
    match: str | None
    buffer_inferred: bool
    buffer_class: str | None
    allocation_n: int | None
    allocation_offset: int | None
    posted_event: int | None
    posted_cpu: int | None
    posted_location: int | None
    completed_event: int | None
    completed_pid: int | None
    completed_cpu: int | None
    completed_location: int | None
    completed_buffer: fmt.Address | None
    completed_len: int | None
    completed_stack: str | None


def words_of(words: tuple[str, ...], column: ColumnElement[Any]) -> Callable[[tuple[str, ...]], ColumnElement[bool]]:  # Any: an integer
    """A condition on a column that holds places in a vocabulary."""
    return lambda chosen: column.in_([words.index(word) for word in chosen])


def kinds_of(*kinds: str) -> list[int]:
    """The numbers of kinds of operations."""
    return [OPERATION_KINDS.index(kind) for kind in kinds]


def kind_filter(
    column: ColumnElement[Any],  # Any: as above
    *several: tuple[str, str],
    key: str = "kind",
    words: str = "of kind {}",
    label: str = "Kind",
) -> Filter:
    """Rows with an operation of some kinds; `several` are choices of more than one."""
    choices = (*((kind, kind) for kind in OPERATION_KINDS), *several)
    return Filter(key, one_of(OPERATION_KINDS), words_of(OPERATION_KINDS, column), words, label, show=" or ".join, choices=choices)


_latency = operation.c.completed_ns - operation.c.posted_ns
_moment = func.coalesce(operation.c.posted_ns, operation.c.completed_ns)


def _touches(value: int) -> ColumnElement[bool]:
    """Operations whose buffer, as posted, holds an address; kernel addresses are compared whole."""
    stored = fmt.stored_address(value)
    inside = and_(
        operation.c.space == SPACES.index("user"), operation.c.buffer <= stored, operation.c.buffer + operation.c.posted_len > stored
    )
    return or_(operation.c.buffer == stored, inside)


FILTERS = (
    owner_filter(operation.c.socket_n),
    socket_filter(operation.c.socket_n),
    *connection_filters(operation.c.socket_n, peer_n=operation.c.peer_n),
    kind_filter(operation.c.kind, ("send,sendto,sendmsg", "all sends"), ("recv,recvfrom,recvmsg", "all receives")),
    Filter(
        "outcome",
        one_of(OUTCOMES),
        words_of(OUTCOMES, operation.c.outcome),
        "that ended as {}",
        "Outcome",
        show=lambda v: fmt.words(" or ".join(v)),
        choices=(*((word, fmt.words(word)) for word in OUTCOMES), (",".join(NEVER_COMPLETED), "never completed")),
    ),
    Filter(
        "status",
        parse_status,
        lambda v: status_condition(operation.c.status, v),
        "with status {}",
        "Status",
        show=status_words,
        hint="10054, 0xc000020d, a name",
    ),
    Filter(
        "min_bytes",
        parse_bytes,
        lambda v: operation.c.bytes >= v,
        "that moved {} or more",
        "Bytes from",
        show=fmt.bytes_text,
        hint="64 KiB",
    ),
    Filter("max_bytes", parse_bytes, lambda v: operation.c.bytes <= v, "that moved {} or less", "Bytes to", show=fmt.bytes_text),
    Filter(
        "min_length", parse_bytes, lambda v: operation.c.posted_len >= v, "of buffers of {} or more", "Buffer from", show=fmt.bytes_text
    ),
    Filter("max_length", parse_bytes, lambda v: operation.c.posted_len <= v, "of buffers of {} or less", "Buffer to", show=fmt.bytes_text),
    Filter(
        "min_latency", parse_duration, lambda v: _latency >= v, "that took {} or longer", "Latency from", show=fmt.duration, hint="200 ms"
    ),
    Filter("max_latency", parse_duration, lambda v: _latency <= v, "that took {} or less", "Latency to", show=fmt.duration),
    Filter(
        "space",
        one_of(SPACES),
        words_of(SPACES, operation.c.space),
        "with a buffer address of space {}",
        "Buffer space",
        show=" or ".join,
        choices=(("user", "user"), ("kernel", "kernel"), ("none", "none")),
    ),
    MEMORY_FILTER,
    Filter("buffer", parse_address, _touches, "whose buffer holds {}", "Buffer address", hint="0x…"),
    Filter("tid", parse_count, lambda v: or_(operation.c.posted_tid == v, operation.c.completed_tid == v), "in thread {}", "Thread"),
    Filter(
        "late",
        yes_no,
        lambda v: (
            operation.c.completed_ns > _s.c.closed_ns
            if v
            else or_(operation.c.completed_ns.is_(None), _s.c.closed_ns.is_(None), operation.c.completed_ns <= _s.c.closed_ns)
        ),
        "that completed {}",
        "After close",
        show=lambda v: "after the close" if v else "before the close",
        choices=(("yes", "completed after close"), ("no", "before")),
    ),
    Filter(
        "foreign",
        yes_no,
        lambda v: operation.c.posted_pid != _p.c.pid if v else operation.c.posted_pid == _p.c.pid,
        "posted {}",
        "Header process",
        show=lambda v: "under another process id" if v else "under the owner's process id",
        choices=(("yes", "differs from owner"), ("no", "is the owner")),
    ),
    *life_filters(_moment, operation.c.end_ns),
)

_MOMENT = (operation.c.posted_ns, operation.c.completed_ns)
_LONG_LIVED: ColumnElement[bool] = literal_column(f"(operation.end_ns IS NULL OR operation.end_ns - operation.posted_ns > {LONG_NS})")
"""The condition of the index ix_operation_long, word by word."""


def _of_image(image: str | None) -> ColumnElement[bool]:
    """Operations on the sockets of processes of this image; for None, of those whose image or process is unknown."""
    processes = _named if image is None else _named.where(_p.c.image == image)
    owned = select(_s.c.n).where(_s.c.trace_id == THIS_TRACE, _s.c.process_n.in_(processes))
    return operation.c.socket_n.not_in(owned) if image is None else operation.c.socket_n.in_(owned)


_named = select(_p.c.n).where(_p.c.trace_id == THIS_TRACE, _p.c.image.is_not(None))
_images = select(_p.c.image).distinct().where(_p.c.trace_id == THIS_TRACE, _p.c.image.is_not(None))

SORTS = (
    Sort("posted_ns", operation.c.posted_ns, is_time=True),
    Sort("process", _p.c.image, groups=SortGroups(_images, _of_image)),
    Sort("peer", _peer.c.text),
    Sort("posted_tid", operation.c.posted_tid),
    Sort("kind", operation.c.kind),
    Sort("outcome", operation.c.outcome),
    Sort("status", operation.c.status),
    Sort("bytes", operation.c.bytes, falls=True),
    Sort("posted_len", operation.c.posted_len, falls=True),
    Sort("latency_ns", _latency, falls=True),
    Sort("buffer", operation.c.buffer),
)

_ROWS = select(
    *(
        operation.c[name]
        for name in (
            "posted_ns",
            "completed_ns",
            "end_ns",
            "kind",
            "outcome",
            "status",
            "bytes",
            "posted_len",
            "buffer",
            "buffer_count",
            "space",
            "fast_path",
            "posted_tid",
            "completed_tid",
            "posted_pid",
        )
    ),
    _latency.label("latency_ns"),
    _peer.c.text.label("peer"),
    stack_hash(operation.c.posted_stack_ref).label("stack"),
    *socket_columns(_s),
    *process_columns(_p),
).select_from(
    operation.outerjoin(_s, and_(_s.c.trace_id == THIS_TRACE, _s.c.n == operation.c.socket_n))
    .outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == _s.c.process_n))
    .outerjoin(_peer, and_(_peer.c.trace_id == THIS_TRACE, _peer.c.n == operation.c.peer_n))
)


def _row(row: Any) -> OperationRow:  # Any: a row with the columns of _ROWS
    kind = word_at(OPERATION_KINDS, row.kind) or ""
    return OperationRow(
        operation=operation_link(kind, row.buffer, row.posted_ns, row.completed_ns),
        posted_ns=row.posted_ns,
        completed_ns=row.completed_ns,
        end_ns=row.end_ns,
        socket=socket_ref(row),
        process=process_ref(row),
        kind=kind,
        outcome=word_at(OUTCOMES, row.outcome) or "",
        status=fmt.to_status(row.status),
        bytes=row.bytes,
        posted_len=row.posted_len,
        latency_ns=row.latency_ns,
        buffer=fmt.to_address(row.buffer),
        buffer_count=row.buffer_count,
        space=word_at(SPACES, row.space),
        fast_path=row.fast_path,
        peer=row.peer,
        posted_tid=row.posted_tid,
        completed_tid=row.completed_tid,
        posted_pid=row.posted_pid,
        stack=row.stack,
    )


def operations_page(db: Connection, asked: Asked) -> tuple[list[OperationRow], Position | None]:
    """One page of the operations, and where the next begins."""
    found = fetch(db, _ROWS, table=operation, moment=_MOMENT, asked=asked, long_lived=_LONG_LIVED)
    return [_row(row) for row in found.rows], found.next


def operations_number(db: Connection, where: Conditions) -> int | None:
    """How many operations there are, as `count_up_to`."""
    return count_up_to(db, _ROWS, table=operation, moment=_MOMENT, where=where, long_lived=_LONG_LIVED)


def find_operation(db: Connection, socket_n: ColumnElement[int] | int, link: OperationLink) -> OperationWhole | None:
    """One operation of a socket by its kind, buffer and time."""
    if link.kind not in OPERATION_KINDS:
        return None
    buffer = fmt.stored_address(link.buffer or 0)
    is_buffer = or_(operation.c.buffer == buffer, operation.c.buffer.is_(None)) if buffer == 0 else operation.c.buffer == buffer
    more = (
        "match", "buffer_inferred", "posted_event", "posted_cpu", "posted_location", "completed_event", "completed_pid", "completed_cpu",
        "completed_location", "completed_buffer", "completed_len", "n", "socket_n",
    )  # fmt: skip
    found = db.execute(
        _ROWS.add_columns(
            *(operation.c[name] for name in more),
            stack_hash(operation.c.completed_stack_ref).label("completed_stack"),
            _buffer.c.buffer_class,
            _buffer.c.allocation_n,
            _buffer.c.allocation_offset,
        )
        .outerjoin(_buffer, and_(_buffer.c.trace_id == THIS_TRACE, _buffer.c.operation_n == operation.c.n))
        .where(
            operation.c.trace_id == THIS_TRACE,
            operation.c.socket_n == socket_n,
            operation.c.kind == OPERATION_KINDS.index(link.kind),
            or_(operation.c.posted_ns == link.ns, and_(operation.c.posted_ns.is_(None), operation.c.completed_ns == link.ns)),
            is_buffer,
        )
        .order_by(operation.c.n)
        .limit(1)
    ).first()
    if found is None:
        return None
    return OperationWhole(
        n=found.n,
        socket_n=found.socket_n,
        row=_row(found),
        match=word_at(MATCHES, found.match),
        buffer_inferred=found.buffer_inferred,
        buffer_class=word_at(BUFFER_CLASSES, found.buffer_class),
        allocation_n=found.allocation_n,
        allocation_offset=found.allocation_offset,
        posted_event=found.posted_event,
        posted_cpu=found.posted_cpu,
        posted_location=found.posted_location,
        completed_event=found.completed_event,
        completed_pid=found.completed_pid,
        completed_cpu=found.completed_cpu,
        completed_location=found.completed_location,
        completed_buffer=fmt.to_address(found.completed_buffer),
        completed_len=found.completed_len,
        completed_stack=found.completed_stack,
    )


def in_flight_addresses(db: Connection) -> tuple[int, int]:
    """How many sends and receives took time at all, and how many of those had a user address."""
    s = _sums.c
    is_user = s.space == SPACES.index("user")
    row = db.execute(
        select(func.coalesce(func.sum(s["count"]), 0), func.coalesce(func.sum(case((is_user, s["count"]), else_=0)), 0)).where(
            s.trace_id == THIS_TRACE, s.waits
        )
    ).one()
    return int(row[0]), int(row[1])


def operation_rows(db: Connection, *conditions: ColumnElement[bool], limit: int) -> list[OperationRow]:
    """Rows that meet conditions on the columns of `operation`, in time order."""
    statement = _ROWS.where(operation.c.trace_id == THIS_TRACE, *conditions).order_by(operation.c.posted_ns.nulls_first(), operation.c.n)
    rows = db.execute(statement.limit(limit))
    return [_row(row) for row in rows]
