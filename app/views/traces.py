"""The start page: the traces of this database, also by day, machine and program."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import HTMLResponse, Response

from app.deps import Catalog
from app.errors import BadRequest
from app.filters import Filter
from app.keyset import AskedByName, Name, ask_by_name
from app.listing import Column, Listing, listing
from app.living import living_entry
from app.page import Crumb, Page
from app.paging import Sort
from app.queries import catalog
from app.queries import traces as queries
from app.render import render, wanted_form
from app.urls import with_query
from app.views.lists import Empty, kept_parts, list_sentence, order_words, parameters
from app.views.uploads import UploadPart, upload_part
from collector.store.stores import TraceStore

__all__ = ["COLUMNS", "TracesPage", "named_listing", "router"]

router = APIRouter()

COLUMNS = (
    Column("name", "Trace", keeps=True),
    Column("state", "State", keeps=True),
    Column("start_utc", "Recorded"),
    Column("end_ns", "Length", "duration"),
    Column("size_bytes", "Size", "bytes"),
    Column("records", "Records", "count"),
    Column("processes", "Processes", "count"),
    Column("sockets", "Sockets", "count"),
    Column("operations", "Operations", "count"),
    Column("allocations", "Allocations", "count"),
    Column("problems", "Problems"),
    Column("findings", "Findings"),
    Column("key", "Key", "mono"),
)
GROUP_COLUMNS = (
    Column("traces", "Traces", "count", keeps=True),
    Column("with_findings", "With findings", "count"),
    Column("with_losses", "With lost or damaged data", "count"),
    Column("size_bytes", "Size", "bytes"),
    Column("first_utc", "First recorded", "utc"),
    Column("last_utc", "Last recorded", "utc"),
)
_GROUP = "Traces by day, machine or program instead of one by one."


@dataclass(frozen=True, slots=True, kw_only=True)
class TracesPage(Page):
    """A list of traces, or with `group` of their groups. `missing` are the keys of complete traces whose file is gone."""

    listing: Listing
    group: str = ""
    missing: tuple[str, ...] = ()
    empty: Empty | None = None
    is_new: bool = field(default=False, metadata={"json": False})
    ways: tuple[Crumb, ...] = field(default=(), metadata={"json": False})
    upload: UploadPart | None = None


@dataclass(frozen=True, slots=True)
class GroupLine(queries.GroupRow):
    """A group with the link to the list of its traces."""

    href: str


def _parameters() -> dict[str, Any]:  # Any: a piece of OpenAPI
    """The parameters of the list, and the one that groups."""
    schema = {"type": "string", "enum": list(queries.GROUPINGS)}
    group = {"name": "group", "in": "query", "required": False, "description": _GROUP, "schema": schema, "example": "day"}
    return {"parameters": [*parameters(queries.FILTERS, queries.SORTS)["parameters"], group]}


@router.get("/", name="traces", summary="Traces", response_class=HTMLResponse, openapi_extra=_parameters())
def traces(request: Request, db: Catalog) -> Response:
    """The traces of this database with their state, problems and findings, the one collected last first."""
    group = request.query_params.get("group", "")
    if group and group not in queries.GROUPINGS:
        raise BadRequest(f"group={group[:40]}: traces are grouped by {', '.join(queries.GROUPINGS)}.")
    page = _grouped(request, db, group) if group else _listed(request, db)
    return render(request, "traces.html", page)


def named_listing(
    request: Request,
    name: str,
    columns: Sequence[Column],
    rows: Sequence[Any],  # Any: each list has a row type of its own
    asked: AskedByName,
    following: Name | None,
    total: int,
    *,
    path: str,
    filters: Sequence[Filter],
    sorts: Sequence[Sort],
    row_type: type,
) -> Listing:
    """A filtered, sorted and paged table over all traces."""
    return listing(
        name,
        path,
        columns,
        rows,
        filters=filters,
        sorts=sorts,
        where=asked.where,
        order=asked.order,
        next_position=following,
        after=asked.after,
        total=total,
        kept=kept_parts(request),
        row_type=row_type,
    )


def _listed(request: Request, db: Connection | None) -> TracesPage:
    folder, path = _folder(request), request.app.state.urls.here(request)
    asked = ask_by_name(request.query_params, queries.FILTERS, queries.SORTS, form=wanted_form(request))
    rows: list[catalog.EntryRow] = []
    following, total = None, 0
    if db is not None:
        settled = _settled(folder, db)
        rows, following = queries.traces_page(db, asked, settled)
        total = queries.traces_number(db, asked, settled)
    rows = [living_entry(folder, row) for row in rows]
    table = named_listing(
        request,
        "traces",
        COLUMNS,
        rows,
        asked,
        following,
        total,
        path=path,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        row_type=catalog.EntryRow,
    )
    narrowed = asked.where.in_words()
    order = "the one collected last first" if table.is_in_own_order else order_words(COLUMNS, asked)
    sentence = list_sentence(total, len(rows), ("trace", "traces"), narrowed or "in this database", order)
    is_new = not rows and not narrowed and asked.after is None
    return TracesPage(
        title="Traces",
        sentence="No trace was collected yet." if is_new else sentence,
        listing=table,
        missing=tuple(folder.missing([row.key for row in rows if row.state == "complete"])),
        empty=_empty("traces", narrowed, table) if not rows and not is_new else None,
        is_new=is_new,
        ways=() if is_new else _ways(request, ""),
        upload=upload_part(request, lambda key: _is_listed(db, key)),
    )


def _grouped(request: Request, db: Connection | None, by: str) -> TracesPage:
    grouping = queries.GROUPINGS[by]
    path = with_query(request.app.state.urls.here(request), {"group": by})
    asked = ask_by_name(request.query_params, queries.FILTERS, grouping.sorts, form=wanted_form(request))
    rows: list[GroupLine] = []
    following, total = None, 0
    if db is not None:
        settled = _settled(_folder(request), db)
        found, following = queries.groups_page(db, by, asked, settled)
        total = queries.groups_number(db, by, asked, settled)
        rows = [_line(request, asked, grouping, row) for row in found]
    columns = (Column("name", grouping.noun[0].capitalize(), "group", keeps=True), *GROUP_COLUMNS)
    table = named_listing(
        request,
        f"by-{by}",
        columns,
        rows,
        asked,
        following,
        total,
        path=path,
        filters=queries.FILTERS,
        sorts=grouping.sorts,
        row_type=GroupLine,
    )
    table = replace(table, kept={**table.kept, "group": by})
    narrowed = asked.where.in_words()
    order = order_words(columns, asked)
    if asked.order.sort.key == "traces":
        order = f"the one {grouping.link} the {'most' if asked.order.falls else 'fewest'} traces first"
    of_which = f"{grouping.link} traces{' ' + narrowed if narrowed else ''}"
    counted = list_sentence(total, len(rows), grouping.noun, of_which, order)
    return TracesPage(
        title=grouping.title,
        sentence=counted,
        crumbs=(Crumb("traces", request.app.state.urls("traces")),),
        listing=table,
        group=by,
        empty=None if rows else _empty(grouping.noun[1], narrowed, table),
        ways=_ways(request, by),
    )


def _line(request: Request, asked: AskedByName, grouping: queries.Grouping, row: queries.GroupRow) -> GroupLine:
    told = asked.where.query() | {grouping.filter: queries.UNKNOWN if row.name is None else row.name}
    values = {name: getattr(row, name) for name in queries.GroupRow.__dataclass_fields__}
    return GroupLine(**values, href=request.app.state.urls("traces", told))


def _empty(nouns: str, narrowed: str, table: Listing) -> Empty:
    if narrowed:
        return Empty(f"No {nouns} {narrowed}.", ways=(Crumb("Show all", table.clear_href or table.first_href or ""),))
    return Empty(f"No {nouns} are known.")


def _ways(request: Request, now: str) -> tuple[Crumb, ...]:
    urls = request.app.state.urls
    groups = [Crumb(f"by {by}", urls("traces", {"group": by})) for by in queries.GROUPINGS if by != now]
    return (*([Crumb("one by one", urls("traces"))] if now else []), *groups, Crumb("findings of all", urls("all_findings")))


def _settled(folder: TraceStore, db: Connection) -> dict[str, list[str]]:
    """The traces whose collector is gone, by the state that they have in truth."""
    found: dict[str, list[str]] = {"complete": [], "interrupted": []}
    for entry in queries.unfinished(db):
        state = living_entry(folder, entry).state
        if state in found:
            found[state].append(entry.key)
    return found


def _is_listed(db: Connection | None, key: str) -> bool:
    return db is not None and catalog.entry(db, key) is not None


def _folder(request: Request) -> TraceStore:
    folder: TraceStore = request.app.state.folder
    return folder


@router.get("/healthz", name="healthz", summary="Whether the server answers", response_class=Response)
def healthz(request: Request) -> Response:
    """`ok` while the server runs; says nothing about the traces."""
    return Response("ok\n", media_type="text/plain")
