"""Failed operations, grouped by socket, call and answer."""

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.listing import Column
from app.queries import errors as queries
from app.render import render
from app.views.grouped import grouped_part, grouped_sentence
from app.views.lists import ListPage, asked_of, parameters

__all__ = ["COLUMNS", "router"]

router = APIRouter()

COLUMNS = (
    Column("status", "Status", "status", keeps=True, term="status"),
    Column("count", "Times", "count", keeps=True),
    Column("kind", "Call", "kind", term="operation"),
    Column("socket", "Socket", "socket"),
    Column("process", "Process", "process"),
    Column("remote", "Remote", "endpoint"),
    Column("first_ns", "First", "time"),
    Column("last_ns", "Last", "time"),
    Column("per_second", "Per second", "rate"),
    Column("after_end", "After its end", "count"),
)


@router.get(
    "/t/{trace_key}/errors",
    name="errors",
    summary="Repeated errors",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def errors(request: Request, trace: ReadTrace) -> Response:
    """Failed operations grouped by socket, call and status. A would-block answer is no error and is left out."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.errors(trace.db, asked)
    table, empty = grouped_part(
        request,
        trace,
        asked,
        rows,
        following,
        name="errors",
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        row_type=queries.ErrorRow,
        nouns="errors",
        needs=("transfers",),
        otherwise="No operation failed in this trace; answers of non-blocking calls that had nothing to do are not counted as failures.",
    )
    page = ListPage(
        title="Errors",
        sentence=grouped_sentence(len(rows), table, ("group of equal errors", "groups of equal errors"), asked, "the most frequent first"),
        trace=trace.head,
        crumbs=trace.crumbs(),
        section="errors",
        listing=table,
        empty=empty,
        facts=("“After its end” counts failures after the socket was closed or its connection was aborted: the program still called it.",),
    )
    return render(request, "list.html", page)
