"""The list of select and poll calls."""

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.listing import Column
from app.queries import polls as queries
from app.render import render
from app.views.lists import asked_of, list_page, parameters

__all__ = ["COLUMNS", "router"]

router = APIRouter()

COLUMNS = (
    Column("posted_ns", "Posted", "before", keeps=True, term="posted"),
    Column("process", "Process", "process", keeps=True),
    Column("took_ns", "Took", "latency"),
    Column("tid", "Thread", "number"),
    Column("handles", "Sockets", "count"),
    Column("timeout_raw", "Timeout as recorded", "number", term="timeout"),
    Column("error", "Answer", "status", term="status"),
)


@router.get(
    "/t/{trace_key}/polls",
    name="polls",
    summary="Polls",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def polls(request: Request, trace: ReadTrace) -> Response:
    """Select and poll calls of processes; they belong to no socket."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.polls_page(trace.db, asked)
    page = list_page(
        request,
        trace,
        asked,
        rows,
        following,
        queries.polls_number(trace.db, asked.where),
        title="Polls",
        noun=("poll", "polls"),
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        section="polls",
        needs=("polls",),
        otherwise="No poll was recorded.",
        row_type=queries.PollRow,
    )
    return render(request, "list.html", page)
