"""The list of heap allocations."""

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.listing import Column
from app.queries import allocations as queries
from app.render import render
from app.views.lists import asked_of, list_page, parameters

__all__ = ["COLUMNS", "router"]

router = APIRouter()

COLUMNS = (
    Column("allocation", "Address", "allocation", keeps=True, term="allocation"),
    Column("size", "Size", "bytes", keeps=True),
    Column("process", "Process", "process"),
    Column("heap", "Heap", "heap_of_block"),
    Column("generation", "Generation", "count", term="generation"),
    Column("start_ns", "Allocated", "before"),
    Column("end_ns", "Ended", "ended"),
    Column("life_ns", "Life", "latency"),
    Column("end_reason", "How", "optional_words"),
    Column("origin", "Origin", "words", term="origin"),
    Column("tid", "Thread", "number"),
    Column("owner_stack", "Stack", "stack", term="stack"),
    Column("free_stack", "Freed by", "stack"),
)


@router.get(
    "/t/{trace_key}/allocations",
    name="allocations",
    summary="Allocations",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def allocations(request: Request, trace: ReadTrace) -> Response:
    """Heap allocations from alloc to free. Those from before the trace are unknown."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.allocations_page(trace.db, asked)
    page = list_page(
        request,
        trace,
        asked,
        rows,
        following,
        queries.allocations_number(trace.db, asked.where),
        title="Allocations",
        noun=("allocation", "allocations"),
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        section="allocations",
        needs=("heap",),
        otherwise="No allocation was recorded.",
        row_type=queries.AllocationRow,
    )
    return render(request, "list.html", page)
