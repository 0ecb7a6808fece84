"""The list of heap blocks that were freed, moved or outgrown under an operation."""

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import HTMLResponse, Response

from app.deps import OpenTrace, ReadTrace
from app.format import count, plural
from app.listing import Column
from app.page import Crumb
from app.queries import frees as queries
from app.queries.buffer_memory import MEMORY_WORDS
from app.queries.operations import in_flight_addresses
from app.render import render
from app.views.lists import asked_of, list_page, parameters

__all__ = ["COLUMNS", "router"]

router = APIRouter()

COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("kind", "What", "io_kind", keeps=True),
    Column("certainty", "Certainty", "certainty", term="certainty"),
    Column("process", "Process", "process"),
    Column("socket", "Socket", "socket"),
    Column("operation", "Operation", "row_operation"),
    Column("posted_ns", "Posted", "before"),
    Column("buffer", "Buffer", "address"),
    Column("posted_len", "Buffer size", "bytes"),
    Column("allocation", "Allocation", "allocation"),
    Column("allocation_size", "Its size", "bytes"),
    Column("by_bytes", "Past its end", "past"),
    Column("reason", "How it ended", "optional_words"),
    Column("owner_stack", "Allocated by", "stack"),
    Column("free_stack", "Freed by", "stack"),
)


@router.get(
    "/t/{trace_key}/in-flight-frees",
    name="in_flight_frees",
    summary="Freed in flight",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def in_flight_frees(request: Request, trace: ReadTrace) -> Response:
    """Heap blocks freed, moved, shrunk or overrun while a socket operation used them, or used after their free."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.frees_page(trace.db, asked)
    page = list_page(
        request,
        trace,
        asked,
        rows,
        following,
        queries.frees_number(trace.db, asked.where),
        title="Freed in flight",
        noun=("conflict of a heap block with an operation", "conflicts of heap blocks with operations"),
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        section="in-flight-frees",
        needs=("transfers", "heap"),
        otherwise="No heap block and operation with known addresses were in conflict.",
        facts=_facts(trace.db),
        ways=_ways(trace),
        row_type=queries.FreeRow,
    )
    return render(request, "list.html", page)


def _facts(db: Connection) -> tuple[str, ...]:
    """How much this list can know."""
    waiting, known = in_flight_addresses(db)
    if not waiting:
        return ()
    said = f"{plural(known, 'operation')} of {count(waiting)} that were in flight for a time had a user address"
    said += "." if known == waiting else "; of the others nothing can be said here."
    return (said,)


def _ways(trace: OpenTrace) -> tuple[Crumb, ...]:
    """The operations by the memory behind their buffers, most first."""
    numbers = sorted(queries.buffer_classes(trace.db).items(), key=lambda one: -one[1])
    return tuple(
        Crumb(f"{plural(number, 'buffer')} in {MEMORY_WORDS[name]}", trace.urls("operations", {"memory": name}, trace_key=trace.key))
        for name, number in numbers
        if name in MEMORY_WORDS
    )
