"""The page around a moment: everything of note within a second of it, whoever it happened to."""

from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app import format as fmt
from app.charts.figure import Figure
from app.charts.strip import strip_figure
from app.deps import ReadTrace
from app.errors import BadRequest
from app.filters import parse_duration, parse_time
from app.listing import Column, Listing, plain_listing
from app.page import Crumb, Page
from app.queries.around import KINDS, MAX_OF_A_KIND, AroundRow, around
from app.render import render
from app.urls import with_query
from app.views.described import described

__all__ = ["AroundPage", "router"]

router = APIRouter()

SECOND = 1_000_000_000
MAX_WITHIN = 60 * SECOND

COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("kind", "What", "text"),
    Column("text", "In words", "around", keeps=True),
    Column("process", "Process", "process"),
    Column("socket", "Socket", "optional_socket"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AroundPage(Page):
    """What happened near a moment."""

    at_ns: int
    within_ns: int
    listing: Listing
    chart: Figure = field(metadata={"json": False})
    chart_words: str = field(metadata={"json": False})
    ways: tuple[Crumb, ...] = field(metadata={"json": False})
    capped: tuple[str, ...]


@router.get(
    "/t/{trace_key}/around/{at}",
    name="around",
    summary="Around a moment",
    response_class=HTMLResponse,
    openapi_extra=described("within", "format"),
)
def around_moment(request: Request, trace: ReadTrace, at: str) -> Response:
    """Aborts, failures, drops, freed memory, unloaded modules and processes that began or ended, within a second of a moment.

    `at` is in nanoseconds; `within` (a time span, such as 50 ms) narrows or widens the second.
    """
    given = request.query_params.get("within")
    what = f"around/{at}"
    try:
        at_ns = parse_time(at)
        what = f"within={given}"
        within = parse_duration(given) if given else SECOND
    except ValueError as error:
        raise BadRequest(f"{what} cannot be read; it is {error}") from error
    if not 0 < within <= MAX_WITHIN:
        raise BadRequest(f"within: a span up to {fmt.duration(MAX_WITHIN)}.")
    first, last = at_ns - within, at_ns + within
    rows = around(trace.db, first, last)
    path = trace.urls("around", trace_key=trace.key, at=at_ns)
    capped = tuple(kind for kind in KINDS if sum(row.kind == kind for row in rows) == MAX_OF_A_KIND)
    page = AroundPage(
        title=f"Around {fmt.time_whole(at_ns)}",
        sentence=(
            f"{'More than ' if capped else ''}{fmt.plural(len(rows), 'thing')} of note within {fmt.duration(within)} of this moment, "
            "in all processes."
        ),
        trace=trace.head_within(first, last),
        crumbs=trace.crumbs(),
        section="events",
        canonical=path,
        at_ns=at_ns,
        within_ns=within,
        listing=plain_listing("around", path, COLUMNS, rows, AroundRow),
        chart=strip_figure(rows, first, last, at_ns),
        chart_words=f"What happened {fmt.time_span(first, last)}, by kind. The table below says the same.",
        ways=(
            Crumb("within 10 ms", with_query(path, {"within": "10ms"})),
            Crumb("within 100 ms", with_query(path, {"within": "100ms"})),
            Crumb("within a second", path),
            Crumb("within 10 s", with_query(path, {"within": "10s"})),
            Crumb("all records of the range", trace.urls("events", {"from": str(first), "to": str(last)}, trace_key=trace.key)),
        ),
        capped=capped,
    )
    return render(request, "around.html", page)
