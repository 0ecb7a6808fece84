"""The list of receives that were too small for their datagram."""

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.listing import Column
from app.queries import small_receives as queries
from app.render import render
from app.views.lists import asked_of, list_page, parameters

__all__ = ["COLUMNS", "router"]

router = APIRouter()

COLUMNS = (
    Column("kind", "Kind", "operation_kind", keeps=True, term="operation"),
    Column("posted_ns", "Posted", "before", keeps=True, term="posted"),
    Column("socket", "Socket", "socket"),
    Column("process", "Process", "process"),
    Column("posted_len", "Buffer size", "bytes"),
    Column("bytes", "Received", "bytes"),
    Column("arrived", "Arrived", "bytes", term="indication"),
    Column("lost", "Cut off", "bytes"),
    Column("peer", "From", "optional_endpoint"),
    Column("posted_tid", "Thread", "number"),
    Column("stack", "Stack", "stack", term="stack"),
)


@router.get(
    "/t/{trace_key}/too-small-receives",
    name="small_receives",
    summary="Too-small receives",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def small_receives(request: Request, trace: ReadTrace) -> Response:
    """Receives whose buffer was smaller than the datagram: the rest of it is gone."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.small_receives_page(trace.db, asked)
    page = list_page(
        request,
        trace,
        asked,
        rows,
        following,
        queries.small_receives_number(trace.db, asked.where),
        title="Too-small receives",
        noun=("receive that was too small", "receives that were too small"),
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        section="too-small-receives",
        needs=("datagrams",),
        otherwise="Every datagram of this trace fitted its receive.",
        facts=("“Arrived” is the size that the transport indicated last before the receive ended, where indications were recorded.",),
        row_type=queries.SmallReceiveRow,
    )
    return render(request, "list.html", page)
