"""The list of listeners."""

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.listing import Column
from app.queries import listeners as queries
from app.render import render
from app.views.lists import asked_of, list_page, parameters

__all__ = ["COLUMNS", "router"]

router = APIRouter()

COLUMNS = (
    Column("socket", "Socket", "socket", keeps=True, term="listener"),
    Column("local", "Local", "mono", keeps=True),
    Column("process", "Process", "process"),
    Column("first_ns", "First seen", "time", term="first seen"),
    Column("closed_ns", "Closed", "ended"),
    Column("backlog_asked", "Backlog asked", "count"),
    Column("backlog_peak", "Backlog reached", "count"),
    Column("indications", "Arrived", "count", term="indication"),
    Column("accepted", "Accepted", "count"),
    Column("accepts_failed", "Failed", "errors"),
    Column("accepted_unused", "Never used", "count"),
    Column("longest_wait_ns", "Longest wait", "duration"),
    Column("mean_wait_ns", "Mean wait", "duration"),
    Column("pauses", "Pauses", "count"),
)


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
    )
    return render(request, "list.html", page)
