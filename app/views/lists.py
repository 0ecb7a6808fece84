"""A page that is one filtered, sorted, paged table: what all lists of a trace share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request

from app.clockface import CLOCK, FACES
from app.deps import OpenTrace
from app.filters import Filter
from app.format import plural
from app.keyset import AskedByName
from app.listing import Column, Listing, listing
from app.notes import noted_rows
from app.page import Crumb, Page
from app.paging import COUNT_CEILING, MAX_FILE, MAX_PAGE, MAX_SHOWN, Asked, Position, Sort, ask
from app.queries.coverage import coverage
from app.queries.trace import has_losses
from app.recording import AFD, Command
from app.render import wanted_form
from app.urls import with_query
from app.views.described import PARAMETERS, example_of

__all__ = ["Empty", "ListPage", "asked_of", "kept_parts", "list_page", "list_sentence", "order_words", "parameters", "why_empty"]


@dataclass(frozen=True, slots=True)
class Empty:
    """Why a table has no rows, and the way out."""

    reason: str
    ways: tuple[Crumb, ...] = ()
    command: Command | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage(Page):
    """One page of a list. `facts` are sentences above the table, `ways` links to neighbouring views of the same rows."""

    listing: Listing
    empty: Empty | None = None
    facts: tuple[str, ...] = ()
    ways: tuple[Crumb, ...] = field(default=(), metadata={"json": False})


def asked_of(request: Request, filters: tuple[Filter, ...], sorts: tuple[Sort, ...]) -> Asked:
    """What a request asks of a list. Raises BadFilter, BadPosition."""
    return ask(request.query_params, filters, sorts, form=wanted_form(request))


def why_empty(
    db: Connection,
    *,
    nouns: str,
    needs: tuple[str, ...],
    otherwise: str,
    clear_href: str | None = None,
    narrowed: str = "",
) -> Empty:
    """Say why a table is empty: the filters, records that are missing, or that nothing of the kind happened."""
    covered = coverage(db)
    missing = covered.missing(needs)
    if missing:
        if missing[0].provider == AFD and not covered.by_area["sockets"]:
            return Empty(
                f"This trace has no records of the Winsock provider: it was not enabled in the session.{_or_lost(db)}",
                command=missing[0].command,
            )
        what = " and no ".join(area.what for area in missing)
        return Empty(
            f"This trace has no {what}. Either nothing of the kind happened, or it was not recorded: {missing[0].where}.{_or_lost(db)}",
            command=missing[0].command,
        )
    if narrowed and clear_href:
        return Empty(f"No {nouns} {narrowed}.", ways=(Crumb("Show all", clear_href),))
    return Empty(otherwise)


def _or_lost(db: Connection) -> str:
    """A third way to have no record of a kind, where the trace lost some."""
    return " Records were lost, too: those of this kind may be among them." if has_losses(db) else ""


def list_page(
    request: Request,
    trace: OpenTrace,
    asked: Asked,
    rows: Sequence[Any],  # Any: each list has a row type of its own
    following: Position | None,
    total: int | None,
    *,
    title: str,
    noun: tuple[str, str],
    columns: Sequence[Column],
    filters: Sequence[Filter],
    sorts: Sequence[Sort],
    section: str,
    needs: tuple[str, ...],
    otherwise: str,
    row_type: type,
    facts: tuple[str, ...] = (),
    ways: tuple[Crumb, ...] = (),
    is_counted: bool = True,
) -> ListPage:
    """The page of one list. `needs` are the areas of records without which it must be empty, `otherwise` says why else it can be.

    `is_counted` says that this list has a number unless counting takes too long.
    """
    table = listing(
        section,
        trace.urls.here(request),
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
        marks=noted_rows(request, trace, rows),
        row_type=row_type,
    )
    narrowed = asked.where.in_words()
    sentence = list_sentence(total, len(rows), noun, narrowed, order_words(columns, asked))
    if is_counted and total is None and rows:
        sentence += " Counting them takes too long: narrow the time range or filter to have their number."
    empty = None
    if not rows:
        empty = why_empty(
            trace.db,
            nouns=noun[1],
            needs=needs,
            otherwise=otherwise,
            clear_href=table.clear_href or _all_href(request, trace, asked),
            narrowed=narrowed,
        )
    return ListPage(
        title=title,
        sentence=sentence,
        trace=trace.head,
        crumbs=trace.crumbs(),
        section=section,
        listing=table,
        empty=empty,
        facts=facts,
        ways=ways,
    )


def kept_parts(request: Request) -> dict[str, str]:
    """What links to further pages of a list keep besides its filters and its order."""
    return {key: request.query_params[key] for key in ("limit", "format") if request.query_params.get(key)}


def _all_href(request: Request, trace: OpenTrace, asked: Asked) -> str | None:
    """The page without its default conditions, where it has some."""
    defaults = [item.filter.key for item in asked.where.items if item.filter.default is not None]
    return with_query(trace.urls.here(request), dict.fromkeys(defaults, "")) if defaults else None


def list_sentence(total: int | None, shown: int, noun: tuple[str, str], narrowed: str, order: str) -> str:
    """`12 sockets of process a.exe, the earliest first.`"""
    if total is None:
        size = f"The {noun[1]}" if shown else f"No {noun[1]}"
    elif total > COUNT_CEILING:
        size = f"More than {plural(COUNT_CEILING, *noun)}"
    else:
        size = plural(total, *noun) if total else f"No {noun[1]}"
    return f"{size}{' ' + narrowed if narrowed else ''}{', ' + order if shown > 1 else ''}."


def order_words(columns: Sequence[Column], asked: Asked | AskedByName) -> str:
    """The order of a list: `by size, falling`."""
    sort = asked.order.sort
    title = next(
        (column.title for column in columns if column.key == sort.key),
        "time" if sort.is_time or sort.key == "first_ns" else sort.key.removesuffix("_ns").replace("_", " "),
    )
    return f"by {title.lower()}{', falling' if asked.order.falls else ''}"


def parameters(filters: Sequence[Filter], sorts: Sequence[Sort]) -> dict[str, Any]:  # Any: a piece of OpenAPI
    """The query parameters of a list for the API's description."""
    described = [
        {
            "name": one.key,
            "in": "query",
            "required": False,
            "description": f"{one.label}: rows {one.words.replace('{}', '…')}." + (f" Default: {one.default}." if one.default else ""),
            "schema": {"type": "string"} | ({"enum": [value for value, _ in one.choices]} if one.choices else {}),
            "example": one.choices[0][0] if one.choices else example_of(one.key, one.parse),
        }
        for one in filters
    ]
    names = [sort.key for sort in sorts]
    described.append(
        {
            "name": "sort",
            "in": "query",
            "required": False,
            "description": "Column to sort by; a minus before it shows the greatest first.",
            "schema": {"type": "string", "enum": [sign + name for name in names for sign in ("", "-")]},
        }
    )
    sizes = f"Rows of a page: 1 to {MAX_SHOWN}, as JSON to {MAX_PAGE}, as CSV to {MAX_FILE}."
    for name, words, example in (("after", *PARAMETERS["after"]), ("limit", sizes, "50")):
        part = {"name": name, "in": "query", "required": False, "description": words, "schema": {"type": "string"}, "example": example}
        described.append(part)
    described.append(
        {
            "name": CLOCK,
            "in": "query",
            "required": False,
            "description": "How texts say moments; with utc a CSV has dates, too. Numbers are always nanoseconds since the trace began.",
            "schema": {"type": "string", "enum": list(FACES)},
        }
    )
    described.append(
        {
            "name": "format",
            "in": "query",
            "required": False,
            "description": "The form of the answer; without it the Accept header decides.",
            "schema": {"type": "string", "enum": ["html", "json", "csv"]},
        }
    )
    return {"parameters": described}
