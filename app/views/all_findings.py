"""The findings of all traces in one list, under a head that says in how many traces each kind occurs."""

from dataclasses import dataclass, fields

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import Catalog
from app.format import plural
from app.keyset import ask_by_name
from app.listing import Column, Listing, plain_listing
from app.page import Crumb
from app.queries import all_findings as queries
from app.render import render, wanted_form
from app.views.described import described
from app.views.lists import Empty, ListPage, list_sentence, order_words, parameters
from app.views.traces import named_listing

__all__ = ["COLUMNS", "AllFindingsPage", "router"]

router = APIRouter()

COLUMNS = (
    Column("severity", "Severity", "severity", keeps=True),
    Column("title", "Finding", "evidence", keeps=True),
    Column("kind", "Kind", "words"),
    Column("count", "Times", "count"),
    Column("trace", "Trace", "of_trace"),
    Column("start_utc", "Recorded", "utc"),
)
KIND_COLUMNS = (
    Column("kind", "Kind", "found_kind", keeps=True),
    Column("traces", "Traces", "count", keeps=True),
    Column("findings", "Findings", "count"),
    Column("severity", "Worst", "severity"),
    Column("last_utc", "Last recorded", "utc"),
)


@dataclass(frozen=True, slots=True)
class KindLine(queries.KindRow):
    """A kind with the link to its findings."""

    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AllFindingsPage(ListPage):
    """The findings of all traces. `kinds` says how many traces have each kind."""

    kinds: Listing


@router.get(
    "/findings",
    name="all_findings",
    summary="Findings of all traces",
    response_class=HTMLResponse,
    openapi_extra={"parameters": [*parameters(queries.FILTERS, queries.SORTS)["parameters"], *described("table")["parameters"]]},
)
def all_findings(request: Request, db: Catalog) -> Response:
    """What programs did that is worth a look, over all traces, the worst first; each leads to its evidence."""
    urls = request.app.state.urls
    path = urls("all_findings")
    asked = ask_by_name(request.query_params, queries.FILTERS, queries.SORTS, form=wanted_form(request))
    rows, following = queries.findings_page(db, asked) if db is not None else ([], None)
    total = queries.findings_number(db, asked) if db is not None else 0
    found = queries.kinds(db, asked) if db is not None else []
    table = named_listing(
        request,
        "findings",
        COLUMNS,
        rows,
        asked,
        following,
        total,
        path=path,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        row_type=queries.FoundRow,
    )
    lines = [_line(row, urls("all_findings", asked.where.query() | {"kind": row.kind})) for row in found]
    narrowed = asked.where.in_words()
    order = "the worst first" if table.is_in_own_order else order_words(COLUMNS, asked)
    empty = None
    if not rows:
        empty = Empty(
            f"No findings {narrowed}."
            if narrowed
            else "No trace of this database has a finding. That is not proof that nothing happened: "
            "each trace's page says which questions it cannot answer.",
            ways=(Crumb("Show all", path),) if narrowed else (),
        )
    page = AllFindingsPage(
        title="Findings",
        sentence=list_sentence(total, len(rows), ("finding", "findings"), narrowed or "in all traces", order),
        crumbs=(Crumb("traces", urls("traces")),),
        listing=table,
        empty=empty,
        facts=(f"{plural(len(lines), 'kind')} of findings. What a trace does not record, it has no findings of.",) if lines else (),
        kinds=plain_listing("kinds", path, KIND_COLUMNS, lines, KindLine),
    )
    return render(request, "all_findings.html", page)


def _line(row: queries.KindRow, href: str) -> KindLine:
    return KindLine(**{one.name: getattr(row, one.name) for one in fields(row)}, href=href)
