"""The search box: what a few typed words may mean, in one trace or in all."""

from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import HTMLResponse, Response

from app.deps import LEAST_DIGITS, Catalog
from app.errors import BadRequest
from app.format import plural
from app.page import Crumb, Page
from app.queries import catalog
from app.queries.all_contents import Known, across, not_entered
from app.queries.search import Group, search
from app.render import render
from collector.errors import StoreError, StoreSlow
from collector.store.stores import TraceStore

__all__ = ["Found", "SearchPage", "router"]

router = APIRouter()

MAX_TRACES = 20
MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in one trace; `note` says where looking was not possible."""

    key: str
    name: str
    groups: tuple[Group, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class AcrossPart:
    """What some traces of the whole database show. `href` leads to the list of all of them, where there is one."""

    title: str
    traces: int
    rows: tuple[Known, ...]
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage(Page):
    """The results of a search: what all traces of the database show by their contents in the catalog, the traces in which something was
    found, the names of the others, and the traces that are called so. `gaps` says which traces the catalog does not know enough of."""

    found: tuple[Found, ...]
    across: tuple[AcrossPart, ...] = ()
    gaps: str = ""
    without: tuple[str, ...] = ()
    named: tuple[Crumb, ...] = ()
    everywhere_href: str = field(default="", metadata={"json": False})


@router.get(
    "/search",
    name="search",
    summary="Search",
    response_class=HTMLResponse,
    openapi_extra={
        "parameters": [
            {"name": "q", "in": "query", "required": False, "schema": {"type": "string"}, "example": "WSAECONNRESET",
             "description": "An error in any spelling, a port, an IP address or prefix, a process id or name, an address, a module."},
            {"name": "trace", "in": "query", "required": False, "schema": {"type": "string"}, "description": "Look in this trace alone."},
        ]
    },
)  # fmt: skip
def search_page(request: Request, db: Catalog) -> Response:
    """Errors in any spelling, ports, IP addresses and prefixes, processes, kernel and buffer addresses, modules, stacks."""
    text = request.query_params.get("q", "").strip()
    only = request.query_params.get("trace", "").strip().lower()
    if len(text) > MAX_TEXT:
        raise BadRequest(f"A search has at most {MAX_TEXT} characters.")
    urls = request.app.state.urls
    entries = [one for one in (catalog.entries(db) if db is not None else []) if one.state in ("complete", "live")]
    wanted = [one for one in entries if one.key == only] if only else entries[:MAX_TRACES]
    looked = [_look(request.app.state.folder, one, text) for one in wanted] if text else []
    found = tuple(one for one in looked if one.groups or one.note)
    named = tuple(
        Crumb(one.label or one.name, urls("overview", trace_key=one.key))
        for one in (entries if text and not only else [])
        if text.lower() in f"{one.label or ''}\n{one.name}".lower() or (len(text) >= LEAST_DIGITS and one.key.startswith(text.lower()))
    )[:MAX_TRACES]
    where = _where(wanted, only, len(entries))
    everywhere = _across(request, db, text) if text and not only and db is not None else ()
    hits = [hit for one in found for group in one.groups for hit in group.hits]
    number = sum(not hit.is_offer for hit in hits) + len(named)
    if not text:
        sentence = "Type an error, a port, an IP address or prefix, a process id or name, an address, or a module."
    elif number:
        sentence = f"{plural(number, 'match', 'matches')} for “{text}” in {where}."
    elif everywhere:
        sentence = f"Nothing matches “{text}” in {where}, but other traces show it."
    elif hits:
        sentence = f"Nothing begins at “{text}” in {where}, but it may lie inside of something."
    else:
        sentence = f"Nothing matches “{text}” in {where}."
    crumbs: tuple[Crumb, ...] = (Crumb("traces", urls("traces")),)
    if only and wanted:
        crumbs += (Crumb(wanted[0].name, urls("overview", trace_key=only)),)
    page = SearchPage(
        title="Search",
        sentence=sentence,
        crumbs=crumbs,
        query=text,
        found=found,
        across=everywhere,
        gaps=_gaps(db) if text and not only and db is not None else "",
        named=named,
        within=only if wanted else "",
        without=tuple(one.name for one in looked if not (one.groups or one.note)) if number else (),
        everywhere_href=urls("search", {"q": text}) if only and text and len(entries) > len(wanted) else "",
    )
    return render(request, "search.html", page)


def _across(request: Request, db: Connection, text: str) -> tuple[AcrossPart, ...]:
    """What all traces show, as far as the catalog knows."""
    urls = request.app.state.urls
    return tuple(AcrossPart(one.title, one.traces, one.rows, urls(one.route, one.query) if one.route else "") for one in across(db, text))


def _gaps(db: Connection) -> str:
    """Which traces the catalog does not know enough of, empty where there are none."""
    number = not_entered(db)
    if not number:
        return ""
    what = f"What {plural(number, 'trace')} of this database {'contains' if number == 1 else 'contain'}"
    return f"{what} is not entered yet: run sockscope migrate where the files are."


def _where(wanted: list[catalog.EntryRow], only: str, number: int) -> str:
    """Where was looked, in words."""
    if only:
        return wanted[0].name if wanted else f"trace {only}, which is not in this database"
    return f"the {len(wanted)} traces collected last, of {number}" if number > len(wanted) else plural(number, "trace")


def _look(folder: TraceStore, entry: catalog.EntryRow, text: str) -> Found:
    try:
        with folder.trace(entry.key).connect() as db:
            return Found(entry.key, entry.name, tuple(search(db, text)))
    except StoreSlow:
        return Found(entry.key, entry.name, (), "Looking here takes too long; be more precise.")
    except StoreError as error:
        return Found(entry.key, entry.name, (), str(error))
