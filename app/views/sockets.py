"""The list of sockets."""

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.listing import Column
from app.queries import sockets as queries
from app.render import render
from app.views.lists import asked_of, list_page, parameters

__all__ = ["COLUMNS", "router"]

router = APIRouter()

COLUMNS = (
    Column("socket", "Socket", "socket", keeps=True, term="socket"),
    Column("process", "Process", "process"),
    Column("protocol", "Protocol"),
    Column("local", "Local", "endpoint"),
    Column("remote", "Remote", "endpoint", keeps=True),
    Column("first_ns", "First seen", "time", term="first seen"),
    Column("life_ns", "Life", "duration"),
    Column("bytes_sent", "Sent", "bytes"),
    Column("bytes_received", "Received", "bytes"),
    Column("sends", "Sends", "count"),
    Column("receives", "Receives", "count"),
    Column("end", "End", "socket_end", term="end"),
    Column("errors", "Errors, the last", "socket_errors"),
)


@router.get(
    "/t/{trace_key}/sockets",
    name="sockets",
    summary="Sockets",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def sockets(request: Request, trace: ReadTrace) -> Response:
    """The sockets of a trace, one row a lifetime of an endpoint; unused ones are hidden unless asked for."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.sockets_page(trace.db, asked)
    page = list_page(
        request,
        trace,
        asked,
        rows,
        following,
        queries.sockets_number(trace.db, asked.where),
        title="Sockets",
        noun=("socket", "sockets"),
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        section="sockets",
        needs=("sockets",),
        otherwise="No socket was seen in this trace.",
        row_type=queries.SocketRow,
    )
    return render(request, "list.html", page)
