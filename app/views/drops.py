"""The list of dropped datagrams."""

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.format import plural, time
from app.listing import Column
from app.queries import drops as queries
from app.render import render
from app.views.lists import asked_of, list_page, parameters

__all__ = ["COLUMNS", "router"]

router = APIRouter()

COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("socket", "Socket", "socket", keeps=True),
    Column("process", "Process", "process"),
    Column("local", "Local", "endpoint"),
    Column("reason", "Reason", "drop_reason", term="drop"),
    Column("length", "Size", "bytes"),
    Column("source", "From", "endpoint"),
    Column("receives_outstanding", "Receives waiting", "count"),
    Column("receive_buffer_bytes", "SO_RCVBUF", "bytes"),
)


@router.get(
    "/t/{trace_key}/drops",
    name="drops",
    summary="Drops",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def drops(request: Request, trace: ReadTrace) -> Response:
    """Datagrams that arrived and were thrown away before the program could read them."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.drops_page(trace.db, asked)
    page = list_page(
        request,
        trace,
        asked,
        rows,
        following,
        queries.drops_number(trace.db, asked.where),
        title="Drops",
        noun=("dropped datagram", "dropped datagrams"),
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        section="drops",
        needs=("drops",),
        otherwise="No datagram was dropped in this trace.",
        facts=_facts(trace.db),
        row_type=queries.DropRow,
    )
    return render(request, "list.html", page)


def _facts(db: Connection) -> tuple[str, ...]:
    """The drops of the whole trace by reason, as sentences."""
    return tuple(
        f"Reason {reason}: {plural(number, 'datagram')} from {time(first)} to {time(last)}."
        for reason, number, first, last in queries.drops_by_reason(db)
    )
