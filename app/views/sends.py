"""The way of sends: which sockets send slowly, in which sizes, how far apart, with which buffer and backlog."""

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.format import bytes_text, duration, thin
from app.listing import Column, Listing, plain_listing
from app.page import Crumb
from app.queries import sends as queries
from app.queries.coverage import coverage
from app.render import render
from app.views.described import described
from app.views.grouped import grouped_part, grouped_sentence
from app.views.lists import ListPage, asked_of, parameters

__all__ = ["COLUMNS", "SendsPage", "router"]

router = APIRouter()

COLUMNS = (
    Column("socket", "Socket", "socket", keeps=True),
    Column("latency_ns", "Slowest", "latency", keeps=True, term="latency"),
    Column("mean_latency_ns", "Mean latency", "latency"),
    Column("sends", "Sends", "count"),
    Column("bytes", "Sent", "bytes"),
    Column("mean_bytes", "Mean size", "bytes"),
    Column("small_sends", "Small", "count"),
    Column("mean_gap_ns", "Mean gap", "latency"),
    Column("most_in_flight", "At once", "count", term="in flight"),
    Column("send_buffer_bytes", "SO_SNDBUF", "past"),
    Column("backlog_bytes", "Backlog", "past"),
    Column("process", "Process", "process"),
    Column("remote", "Remote", "endpoint"),
    Column("first_ns", "First", "time"),
    Column("last_ns", "Last", "time"),
)

CLASS_COLUMNS = (
    Column("what", "Class", keeps=True),
    Column("sends", "Sends", "count", keeps=True),
    Column("bytes", "Sent", "bytes"),
)


@dataclass(frozen=True, slots=True)
class ClassLine:
    """Sends of a class, in words and as its border: from `low` on, in bytes or ns."""

    what: str
    low: int
    sends: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendsPage(ListPage):
    """Sockets by their sends, and all of these sends by size and by latency."""

    sizes: Listing
    latencies: Listing


@router.get(
    "/t/{trace_key}/sends",
    name="sends",
    summary="The way of sends",
    response_class=HTMLResponse,
    openapi_extra={"parameters": [*parameters(queries.FILTERS, queries.SORTS)["parameters"], *described("table")["parameters"]]},
)
def sends(request: Request, trace: ReadTrace) -> Response:
    """Sockets by their completed sends, the slowest first: sizes, gaps, latencies, sends in flight at once, send buffer, backlog."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.sends(trace.db, asked)
    table, empty = grouped_part(
        request,
        trace,
        asked,
        rows,
        following,
        name="sends",
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        row_type=queries.SendsRow,
        nouns="sends",
        needs=("transfers",),
        otherwise="No send of this trace completed.",
    )
    sizes, latencies = queries.classes(trace.db, asked)
    path = trace.urls("sends", trace_key=trace.key)
    page = SendsPage(
        title="Sends",
        sentence=grouped_sentence(len(rows), table, ("socket that sends", "sockets that send"), asked, "the slowest send first"),
        trace=trace.head,
        crumbs=trace.crumbs(),
        section="sends",
        listing=table,
        empty=empty,
        facts=_facts(trace),
        ways=(
            Crumb("single sends, the slowest first", trace.urls("operations", _SLOWEST, trace_key=trace.key)),
            Crumb("small sends that wait", trace.urls("stalls", trace_key=trace.key)),
        ),
        sizes=plain_listing("sizes", path, CLASS_COLUMNS, _lines(sizes, bytes_text), ClassLine),
        latencies=plain_listing("latencies", path, CLASS_COLUMNS, _lines(latencies, duration), ClassLine),
    )
    return render(request, "sends.html", page)


_SLOWEST = {"kind": "send,sendto,sendmsg", "sort": "-latency_ns"}


def _facts(trace: ReadTrace) -> tuple[str, ...]:
    """What the numbers mean, and what this trace cannot tell."""
    missing = " and no ".join(area.what for area in coverage(trace.db).missing(("backlogs", "options")))
    return (
        f"Small is a send of 1 to {thin(queries.SMALL_BYTES)} bytes, a gap the time from one post to the next. A send that the driver "
        "copies completes at once, whatever the network does. Round-trip times and windows are known to the TCP/IP provider alone. "
        f"The {queries.MOST_SOCKETS} sockets with the most sends are looked at; filter to look at others.",
        *((f"This trace has no {missing}: those columns stay empty.",) if missing else ()),
    )


def _lines(rows: list[queries.ClassRow], write: Callable[[int], str]) -> list[ClassLine]:
    def words(low: int, high: int | None) -> str:
        if high is None:
            return f"{write(low)} and more"
        return write(low) if high == low + 1 else f"{write(low)} to below {write(high)}" if low else f"below {write(high)}"

    return [ClassLine(words(row.low, row.high), row.low, row.sends, row.bytes) for row in rows]
