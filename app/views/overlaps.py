"""The list of buffer overlaps."""

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.format import count, plural
from app.listing import Column
from app.queries import overlaps as queries
from app.queries.operations import in_flight_addresses
from app.render import render
from app.views.lists import asked_of, list_page, parameters

__all__ = ["COLUMNS", "router"]

router = APIRouter()

COLUMNS = (
    Column("severity", "Severity", "severity", keeps=True),
    Column("t_ns", "Time", "time"),
    Column("pair", "Pair", "pair", keeps=True, term="overlap"),
    Column("process", "Process", "process"),
    Column("lo", "Shared from", "address"),
    Column("shared_bytes", "Shared", "bytes"),
    Column("range", "Ranges", term="ranges"),
    Column("certainty", "Certainty", "certainty", term="certainty"),
    Column("first", "First", "first_operation"),
    Column("first_posted_ns", "Posted", "before"),
    Column("first_end_ns", "Over", "ended"),
    Column("second", "Second", "second_operation"),
    Column("scope", "Scope", "words", term="scope"),
)


@router.get(
    "/t/{trace_key}/overlaps",
    name="overlaps",
    summary="Overlaps",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def overlaps(request: Request, trace: ReadTrace) -> Response:
    """Memory handed to a second operation while the first was still using it, the worst first."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.overlaps_page(trace.db, asked)
    page = list_page(
        request,
        trace,
        asked,
        rows,
        following,
        queries.overlaps_number(trace.db, asked.where),
        title="Overlaps",
        noun=("overlap", "overlaps"),
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        section="overlaps",
        needs=("transfers",),
        otherwise="No two operations with known addresses shared memory while in flight.",
        facts=_facts(trace.db),
        row_type=queries.OverlapRow,
    )
    return render(request, "list.html", page)


def _facts(db: Connection) -> tuple[str, ...]:
    """How much this list can know: operations whose buffer address the driver did not log can overlap unseen."""
    waiting, known = in_flight_addresses(db)
    if not waiting:
        return ()
    return (
        f"{plural(known, 'operation')} of {count(waiting)} that were in flight for a time had a user address. The others, pending "
        "requests above all, show the kernel's own address: what they share stays unseen. Of a request with several buffers only the "
        "start of the first is known.",
    )
