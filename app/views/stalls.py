"""Sockets whose small sends wait for acknowledgements."""

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.format import thin
from app.listing import Column
from app.queries import stalls as queries
from app.render import render
from app.views.grouped import grouped_part, grouped_sentence
from app.views.lists import ListPage, asked_of, parameters

__all__ = ["COLUMNS", "router"]

router = APIRouter()

COLUMNS = (
    Column("socket", "Socket", "socket", keeps=True),
    Column("count", "Waits", "count", keeps=True),
    Column("lost_ns", "Lost in all", "duration"),
    Column("mean_ns", "Mean wait", "duration"),
    Column("small_sends", "Small sends", "count"),
    Column("process", "Process", "process"),
    Column("remote", "Remote", "endpoint"),
    Column("first_ns", "First", "time"),
    Column("last_ns", "Last", "time"),
)


@router.get(
    "/t/{trace_key}/stalls",
    name="stalls",
    summary="Small sends that wait",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def stalls(request: Request, trace: ReadTrace) -> Response:
    """Sockets on which small sends are followed, again and again, by waits as long as delayed acknowledgements."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.stalls(trace.db, asked)
    table, empty = grouped_part(
        request,
        trace,
        asked,
        rows,
        following,
        name="stalls",
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        row_type=queries.StallRow,
        nouns="stalls",
        needs=("transfers",),
        otherwise=f"No socket of this trace waited like this {queries.LEAST} times or more.",
    )
    noun = ("socket whose small sends wait", "sockets whose small sends wait")
    waits = " or ".join(f"{low} to {high} ms" for low, high in queries.DELAYS_MS)
    page = ListPage(
        title="Stalls",
        sentence=grouped_sentence(len(rows), table, noun, asked, "most waits first"),
        trace=trace.head,
        crumbs=trace.crumbs(),
        section="stalls",
        listing=table,
        empty=empty,
        facts=(
            f"Counted are sends of at most {thin(queries.SMALL_BYTES)} bytes that take {waits}, and waits of that length between the "
            "second of two sends and the answer. That is the pattern of Nagle's algorithm against a delayed acknowledgement, not a "
            f"proof: TCP_NODELAY is not among the options that are recorded. The {queries.MOST_SOCKETS} sockets with the most sends are "
            "looked at; filter to look at others.",
        ),
    )
    return render(request, "list.html", page)
