"""The list of listeners."""

from dataclasses import dataclass, fields

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.format import thin
from app.listing import Column, Listing, plain_listing
from app.queries import listeners as queries
from app.render import render
from app.views.lists import ListPage, asked_of, list_page, parameters

__all__ = ["COLUMNS", "ListenersPage", "router"]

router = APIRouter()

COLUMNS = (
    Column("socket", "Socket", "socket", keeps=True, term="listener"),
    Column("local", "Local", "endpoint", keeps=True),
    Column("process", "Process", "process"),
    Column("first_ns", "First seen", "time", term="first seen"),
    Column("closed_ns", "Closed", "ended"),
    Column("backlog_asked", "Backlog asked", "count", term="backlog"),
    Column("backlog_peak", "Backlog reached", "count", term="backlog"),
    Column("indications", "Arrived", "count", term="indication"),
    Column("accepted", "Accepted", "count"),
    Column("failed", "Failed", "errors"),
    Column("accepted_unused", "Never used", "count"),
    Column("longest_wait_ns", "Longest wait", "duration"),
    Column("mean_wait_ns", "Mean wait", "duration"),
    Column("pauses", "Pauses", "count", term="pause"),
)


FAILURE_COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("status", "Status", "status", keeps=True, term="status"),
    Column("what", "What"),
    Column("peer", "From", "optional_endpoint"),
    Column("reason", "Abort reason", "drop_reason"),
    Column("socket", "Listener", "socket"),
    Column("process", "Process", "process"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenersPage(ListPage):
    """The listeners, and the incoming connections that failed at them."""

    failures: Listing
    failures_note: str = ""


@router.get(
    "/t/{trace_key}/listeners",
    name="listeners",
    summary="Listeners",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def listeners(request: Request, trace: ReadTrace) -> Response:
    """Sockets that listen, and whether they keep up with what arrives."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.listeners_page(trace.db, asked)
    page = list_page(
        request,
        trace,
        asked,
        rows,
        following,
        queries.listeners_number(trace.db, asked.where),
        title="Listeners",
        noun=("listener", "listeners"),
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        section="listeners",
        needs=("listens",),
        otherwise="No socket listened in this trace.",
        row_type=queries.ListenerRow,
    )
    failed = queries.failures(trace.db, asked.where)
    whole = ListenersPage(
        **{one.name: getattr(page, one.name) for one in fields(page)},
        failures=plain_listing("failures", trace.urls("listeners", trace_key=trace.key), FAILURE_COLUMNS, failed, queries.FailureRow),
        failures_note=f"The first {thin(queries.MOST_FAILURES)} are shown; narrow the list above to see others."
        if len(failed) == queries.MOST_FAILURES
        else "",
    )
    return render(request, "listeners.html", whole)
