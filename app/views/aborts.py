"""The list of aborts."""

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.listing import Column
from app.queries import aborts as queries
from app.render import render
from app.views.lists import asked_of, list_page, parameters

__all__ = ["COLUMNS", "router"]

router = APIRouter()

COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("socket", "Socket", "socket", keeps=True),
    Column("process", "Process", "process"),
    Column("remote", "Remote", "endpoint"),
    Column("reason", "Reason", "abort_reason", term="abort reason"),
    Column("initiator", "By", "initiator"),
    Column("during", "While", term="while"),
    Column("primary", "Cause", "flag", term="primary"),
    Column("unread_bytes", "Unread", "bytes", term="unread"),
    Column("outstanding", "In flight", "count", term="in flight"),
    Column("quiet_ns", "Quiet before", "quiet", term="quiet"),
    Column("last_error", "Last error", "status"),
    Column("location", "Location", "optional", term="location"),
    Column("stack", "Stack", "stack"),
)


@router.get(
    "/t/{trace_key}/aborts",
    name="aborts",
    summary="Aborts",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def aborts(request: Request, trace: ReadTrace) -> Response:
    """Connections that were torn down: by whom, why, and what was lost. A reason's name is a reading, its number is the record."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.aborts_page(trace.db, asked)
    page = list_page(
        request,
        trace,
        asked,
        rows,
        following,
        queries.aborts_number(trace.db, asked.where),
        title="Aborts",
        noun=("abort", "aborts"),
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        section="aborts",
        needs=("aborts",),
        otherwise="No connection was aborted in this trace.",
        row_type=queries.AbortRow,
    )
    return render(request, "list.html", page)
