"""The list of all socket records."""

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.listing import Column
from app.queries import events as queries
from app.queries.event_rows import EventRow
from app.render import render
from app.views.lists import asked_of, list_page, parameters

__all__ = ["COLUMNS", "router"]

router = APIRouter()

COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("event_id", "Id", "number"),
    Column("name", "Event", "optional_text", keeps=True),
    Column("what", "What", "event_what"),
    Column("socket", "Socket", "socket"),
    Column("process", "Process", "process", term="owner"),
    Column("bytes", "Bytes", "past"),
    Column("buffer", "Buffer", "optional_address", term="buffer"),
    Column("status", "Status", "status", term="status"),
    Column("address", "Address", "optional_endpoint"),
    Column("location", "Location", "optional", term="location"),
    Column("tid", "Thread", "number"),
    Column("header_pid", "Header pid", "number", term="header process"),
    Column("cpu", "CPU", "number"),
    Column("fields", "Other fields", "fields"),
)


@router.get(
    "/t/{trace_key}/events",
    name="events",
    summary="Events",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def events(request: Request, trace: ReadTrace) -> Response:
    """All records of the socket provider in time order, those that were not counted and those that could not be decoded too."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.events_page(trace.db, asked)
    total = len(rows) if following is None and asked.after is None else None
    page = list_page(
        request,
        trace,
        asked,
        rows,
        following,
        total,
        title="Events",
        noun=("record", "records"),
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        section="events",
        needs=("sockets",),
        otherwise="No socket record is in this trace.",
        is_counted=False,
        row_type=EventRow,
    )
    return render(request, "list.html", page)
