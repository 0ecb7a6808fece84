"""The list of all heaps of a trace."""

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.listing import Column
from app.page import Crumb
from app.queries import heaps as queries
from app.render import render
from app.views.grouped import grouped_part, grouped_sentence
from app.views.lists import ListPage, asked_of, parameters

__all__ = ["COLUMNS", "router"]

router = APIRouter()

COLUMNS = (
    Column("handle", "Heap", "one_heap", keeps=True),
    Column("live_bytes", "Held at the end", "bytes", keeps=True, term="held"),
    Column("live_blocks", "Blocks held", "count"),
    Column("process", "Process", "heap_process"),
    Column("committed", "Committed", "bytes", term="committed"),
    Column("reserved", "Reserved", "bytes", term="reserved"),
    Column("free_space", "Free space", "bytes", term="free space"),
    Column("first_ns", "First seen", "time"),
    Column("created_ns", "Created", "before"),
    Column("destroyed_ns", "Destroyed", "ended"),
    Column("flags", "Flags", "optional"),
)


@router.get(
    "/t/{trace_key}/heaps",
    name="heaps",
    summary="Heaps",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def heaps(request: Request, trace: ReadTrace) -> Response:
    """All heaps of the trace, one life of a handle a row, those that hold the most at the end first."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.heaps_page(trace.db, asked)
    table, empty = grouped_part(
        request,
        trace,
        asked,
        rows,
        following,
        name="heaps",
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        row_type=queries.ListedHeapRow,
        nouns="heaps",
        needs=("heap",),
        otherwise="No heap was traced.",
    )
    page = ListPage(
        title="Heaps",
        sentence=grouped_sentence(len(rows), table, ("heap", "heaps"), asked, "those that hold the most first"),
        trace=trace.head,
        crumbs=trace.crumbs(Crumb("heap", trace.urls("heap", trace_key=trace.key))),
        section="heap",
        listing=table,
        empty=empty,
    )
    return render(request, "list.html", page)
