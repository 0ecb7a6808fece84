"""The list of operations, and the page of one."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.format import bytes_text, duration, time
from app.listing import Column
from app.notes import notes_part
from app.page import Crumb, Page
from app.queries import operations as queries
from app.queries.allocations import AllocationRow, allocation, allocation_rows
from app.queries.overlaps import OverlapRow, overlaps_of
from app.render import render
from app.urls import with_query
from app.views.described import described
from app.views.found_operation import found_operation
from app.views.lists import asked_of, list_page, parameters

__all__ = ["COLUMNS", "OperationPage", "router"]

router = APIRouter()

COLUMNS = (
    Column("kind", "Kind", "operation_kind", keeps=True, term="operation"),
    Column("posted_ns", "Posted", "before", keeps=True, term="posted"),
    Column("socket", "Socket", "socket"),
    Column("process", "Process", "process"),
    Column("outcome", "Outcome", "words", term="outcome"),
    Column("status", "Status", "status", term="status"),
    Column("bytes", "Moved", "bytes", term="bytes"),
    Column("posted_len", "Buffer size", "bytes"),
    Column("latency_ns", "Latency", "latency", term="latency"),
    Column("buffer", "Buffer", "address", term="buffer"),
    Column("peer", "Peer", "optional_endpoint"),
    Column("posted_tid", "Thread", "number"),
    Column("posted_pid", "Header pid", "number", term="header process"),
    Column("stack", "Stack", "stack", term="stack"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationPage(Page):
    """One operation: both its records, its buffer, and what else touched that."""

    operation: queries.OperationRow
    match: str | None
    buffer_inferred: bool
    buffer_class: str | None
    allocation_offset: int | None
    posted_event: int | None
    posted_cpu: int | None
    posted_location: int | None
    completed_event: int | None
    completed_pid: int | None
    completed_cpu: int | None
    completed_location: int | None
    completed_stack: str | None
    allocation: AllocationRow | None
    overlaps: tuple[OverlapRow, ...]


@router.get(
    "/t/{trace_key}/operations",
    name="operations",
    summary="Operations",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def operations(request: Request, trace: ReadTrace) -> Response:
    """Operations on sockets from posted to completed: connects, accepts, sends, receives."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.operations_page(trace.db, asked)
    path = trace.urls("operations", trace_key=trace.key)
    page = list_page(
        request,
        trace,
        asked,
        rows,
        following,
        queries.operations_number(trace.db, asked.where),
        title="Operations",
        noun=("operation", "operations"),
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        section="operations",
        needs=("transfers",),
        otherwise="No operation was recorded.",
        ways=(
            Crumb("never completed", with_query(path, {"outcome": ",".join(queries.NEVER_COMPLETED)})),
            Crumb("completed after close", with_query(path, {"late": "yes"})),
            Crumb("slowest", with_query(path, {"sort": "-latency_ns"})),
            Crumb("too-small receives", trace.urls("small_receives", trace_key=trace.key)),
            Crumb("posted under another process id", with_query(path, {"foreign": "yes"})),
        ),
        row_type=queries.OperationRow,
    )
    return render(request, "list.html", page)


@router.get(
    "/t/{trace_key}/sockets/{socket}/{operation}",
    name="operation",
    summary="One operation",
    response_class=HTMLResponse,
    openapi_extra=described("format"),
)
def operation(request: Request, trace: ReadTrace, socket: str, operation: str) -> Response:
    """One operation of a socket: `KIND:0xBUFFER@NS`, where NS is its post, or its completion when the post is unknown."""
    found = found_operation(trace, socket, operation)
    row = found.row
    link = f"sockets/{row.socket}/{row.operation}"
    block = allocation_rows(trace.db, allocation.c.n == found.allocation_n, limit=1) if found.allocation_n is not None else []
    page = OperationPage(
        title=f"{row.kind} at {time(row.posted_ns if row.posted_ns is not None else row.completed_ns)}",
        sentence=_sentence(row),
        trace=trace.head,
        crumbs=trace.crumbs(
            Crumb("sockets", trace.urls("sockets", trace_key=trace.key)),
            Crumb(str(row.socket).partition("@")[0], trace.urls.below(trace.key, f"sockets/{row.socket}")),
        ),
        section="operations",
        canonical=trace.urls.below(trace.key, link),
        notes=notes_part(request, trace, link),
        addresses=() if row.peer is None else (row.peer,),
        operation=row,
        match=found.match,
        buffer_inferred=found.buffer_inferred,
        buffer_class=found.buffer_class,
        allocation_offset=found.allocation_offset,
        posted_event=found.posted_event,
        posted_cpu=found.posted_cpu,
        posted_location=found.posted_location,
        completed_event=found.completed_event,
        completed_pid=found.completed_pid,
        completed_cpu=found.completed_cpu,
        completed_location=found.completed_location,
        completed_stack=found.completed_stack,
        allocation=block[0] if block else None,
        overlaps=tuple(overlaps_of(trace.db, found.n)),
    )
    return render(request, "operation.html", page)


def _sentence(row: queries.OperationRow) -> str:
    asked = f" of {bytes_text(row.posted_len)}" if row.posted_len else ""
    ends = {
        "completed": f"moved {bytes_text(row.bytes)}",
        "failed": "failed",
        "cancelled": "was cancelled",
        "rejected": "was refused when it was posted",
        "sent": "was sent; datagram sends need not report their end",
        "ended_with_socket": "never completed: its socket was closed",
        "ended_by_exit": "never completed: its process ended",
        "unknown_end": "has no recorded end",
        "in_flight": "was still in flight when the trace ended",
    }
    took = (
        f" after {duration(row.latency_ns)}" if row.latency_ns is not None and row.outcome in ("completed", "failed", "cancelled") else ""
    )
    return f"This {row.kind}{asked} {ends.get(row.outcome, row.outcome)}{took}."
