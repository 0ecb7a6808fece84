"""How far the data of a trace can be trusted, and what is in the file."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.format import plural
from app.listing import Column, Listing, plain_listing
from app.page import Page, ProblemLine
from app.queries import trust as queries
from app.queries.coverage import InventoryRow, inventory
from app.queries.trace import TraceRow, problems, trace_row
from app.render import render
from app.views.described import described

__all__ = ["TrustPage", "router"]

router = APIRouter()

INVENTORY_COLUMNS = (
    Column("provider_name", "Provider", "optional_text", keeps=True),
    Column("event_name", "Event", "optional_text", keeps=True),
    Column("event_id", "Id", "optional"),
    Column("opcode", "Opcode or type", "optional"),
    Column("version", "Version", "optional"),
    Column("count", "Records", "count"),
    Column("known", "Decoded", "flag"),
    Column("damaged", "Damaged", "errors"),
    Column("first_ns", "First", "time"),
    Column("last_ns", "Last", "time"),
    Column("header_kind", "Header"),
    Column("provider", "Provider id", "mono"),
)

CATALOG_COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("what", "What", keeps=True),
    Column("name", "Layered provider", "optional_text"),
    Column("bits", "Catalog", "optional"),
    Column("installer", "By the program", "optional_text"),
    Column("entry", "Entry", "optional"),
    Column("pid", "Process id", "optional"),
)
CHANGES_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustPage(Page):
    """What limits the answers."""

    recorded: TraceRow | None
    problems: tuple[ProblemLine, ...]
    unmatched: queries.Unmatched
    unknown_owners: int
    unseen_creates: int
    heap: tuple[tuple[str, int], ...]
    catalog: Listing
    listing: Listing


@router.get(
    "/t/{trace_key}/trust", name="trust", summary="Trust and inventory", response_class=HTMLResponse, openapi_extra=described("format")
)
def trust(request: Request, trace: ReadTrace) -> Response:
    """What limits the answers of this trace, what that makes uncertain and what to do, and what is in the file."""
    known = problems(trace.db)
    owners, creates = queries.owners_unknown(trace.db)
    sentence = (
        f"{plural(len(known), 'way')} in which this data is limited, the worst first; below, all that is in the file."
        if known
        else "No problem of this data is known; below, all that is in the file."
    )
    path = trace.urls("trust", trace_key=trace.key)
    page = TrustPage(
        title="Trust",
        sentence=sentence,
        trace=trace.head,
        crumbs=trace.crumbs(),
        section="trust",
        recorded=trace_row(trace.db),
        problems=tuple(known),
        unmatched=queries.unmatched(trace.db),
        unknown_owners=owners,
        unseen_creates=creates,
        heap=queries.heap_doubts(trace.db),
        catalog=plain_listing("catalog", path, CATALOG_COLUMNS, queries.catalog_changes(trace.db, CHANGES_SHOWN), queries.CatalogChange),
        listing=plain_listing("inventory", path, INVENTORY_COLUMNS, inventory(trace.db), InventoryRow),
    )
    return render(request, "trust.html", page)
