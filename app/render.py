"""A page as HTML, JSON, CSV or a report: the same frozen dataclass, in the form that the request wants."""

import csv
import dataclasses
import io
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app import clockface
from app import format as fmt
from app.asked import refuse_unread
from app.assets import template_folder
from app.errors import BadRequest
from app.filters import BadFilter
from app.forms import PageForm
from app.glossary import term
from app.labels import label
from app.listing import Listing
from app.page import Page
from app.queries.names import Named
from app.report import Drawings, report, report_policy
from app.rows import table_rows
from app.sections import SECTIONS
from app.share import absolute_link, canonical_link, clock_part, data_links
from app.urls import Urls
from collector.plain import inert_cell, visible_text

__all__ = ["as_json", "csv_text", "environment", "render", "tables_of", "wanted_form"]

_ADDRESSES = ("endpoint", "optional_endpoint")
"""Kinds of columns that hold socket addresses."""
_SAFE_INTEGER = (1 << 53) - 1


def environment() -> Environment:
    """The templates: escaped, and strict about names that a page does not have."""
    made = Environment(
        loader=FileSystemLoader(template_folder()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters |= fmt.FILTERS | {"term": term, "label": label}
    made.globals |= {"sections": SECTIONS, "table_rows": table_rows}
    return made


def _shown(value: object) -> object:
    """What a template writes: text with its controls and marks of direction as escapes, or these would turn what stands around it."""
    return visible_text(value) if type(value) is str else value


def wanted_form(request: Request) -> str:
    """`html`, `json`, `csv` or `report`: by `?format=`, else by the Accept header. Raises BadRequest."""
    named = request.query_params.get("format")
    if named is not None:
        if named not in ("html", "json", "csv", "report"):
            raise BadRequest(f"format={named}: a page comes as html, json or csv, that of a socket or heap also as report.")
        return named
    accept = request.headers.get("accept", "")
    if "text/html" in accept:
        return "html"
    if "application/json" in accept:
        return "json"
    return "csv" if "text/csv" in accept else "html"


def render(
    request: Request,
    template: str,
    page: Page,
    *,
    status_code: int = 200,
    headers: Mapping[str, str] | None = None,
    reads_query: bool = True,
) -> Response:
    """Answer with a page. `reads_query` is false for pages that stand in for the one that was asked for.

    Raises BadRequest for the CSV of a page that has no table, or has several and none is named, and for the report of one that has none;
    BadFilter for a part of the query that the page has not read by now.
    """
    form = wanted_form(request)
    if form == "report" and not page.has_report:
        if status_code < 400:
            raise BadRequest("format=report: only the pages of one socket and of one heap come as a report.")
        form = "html"  # what went wrong is said on a page
    tables = tables_of(page)
    chosen = request.query_params.get("table") if form == "csv" or len(tables) > 1 else None
    if reads_query and chosen is not None and form != "csv":
        raise BadFilter("table", chosen[:40], "only CSV has one table alone: ask for format=csv, too.")
    if reads_query and request.method == "GET":
        refuse_unread(request)
    vary = {"Vary": "Accept, Cookie", "Cache-Control": "no-cache"} | dict(headers or {})
    if form == "json":
        names = _names(request, page, tables)
        shown = as_json(page) | ({"address_names": {text: named.name for text, named in names.items()}} if names else {})
        body = json.dumps(shown, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
        return Response(body, status_code, vary, media_type="application/json")
    if form == "csv":
        listing = _chosen_table(page, tables, chosen)
        name = "".join(c if c.isalnum() else "-" for c in f"{page.trace.key if page.trace else 'sockscope'}-{listing.name}")
        following = {"Link": f'<{listing.next_href}>; rel="next"'} if listing.next_href else {}
        disposition = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
        return Response(
            csv_text(listing, page.trace.start_utc if page.trace else None),
            status_code,
            vary | disposition | following,
            media_type="text/csv; charset=utf-8",
        )
    urls: Urls = request.app.state.urls
    page_form = PageForm(request)
    drawings = Drawings() if form == "report" else None
    context = {"page": page, "url_for": urls, "path": urls.base_path + request.url.path, "settings": request.app.state.page_settings}
    context |= {
        "clock": clock_part(request, page),
        "form": page_form,
        "drawings": drawings,
        "names": _names(request, page, tables),
        "link": canonical_link(request, page),
        "absolute_link": absolute_link(request, page),
        "data_links": [] if hasattr(page, "listing") else data_links(request, page, [name for name, table in tables.items() if table.rows]),
    }
    text = request.app.state.templates.get_template(template).render(context)
    if drawings is not None:
        return _report(text, page, drawings, canonical_link(request, page), vary)
    response = HTMLResponse(text, status_code, vary)
    page_form.keep(response)
    return response


def _report(text: str, page: Page, drawings: Drawings, link: str, headers: Mapping[str, str]) -> Response:
    """A page as a file to keep."""
    name = "".join(c if c.isalnum() else "-" for c in link.partition("?")[0].strip("/").removeprefix("t/"))
    disposition = {"Content-Disposition": f'attachment; filename="{name}.html"', "Content-Security-Policy": report_policy()}
    return HTMLResponse(report(text, page, drawings, link).encode("utf-8", "replace"), headers={**headers, **disposition})


def _names(request: Request, page: Page, tables: Mapping[str, Listing]) -> Mapping[str, Named]:
    """Names of the socket addresses that a page shows; none on pages of no trace."""
    names_of: Callable[[Iterable[str]], Mapping[str, Named]] | None = getattr(request.state, "names_of", None)
    if names_of is None or page.trace is None:
        return {}
    texts = list(page.addresses)
    for table in tables.values():
        keys = [head.column.key for head in table.heads if head.column.kind in _ADDRESSES]
        texts += [text for row in table.rows for key in keys if (text := getattr(row, key))]
    return names_of(texts) if texts else {}


def tables_of(page: object) -> dict[str, Listing]:
    """The tables of a page by their names, those in its parts among them."""
    found: dict[str, Listing] = {}
    for one in dataclasses.fields(page) if dataclasses.is_dataclass(page) else ():
        value = getattr(page, one.name)
        if isinstance(value, Listing):
            found[value.name] = value
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            found |= tables_of(value)
    return found


def _chosen_table(page: Page, tables: Mapping[str, Listing], name: str | None) -> Listing:
    """The table that becomes CSV: the one that is named, else the page's own. Raises BadRequest."""
    if not tables:
        raise BadRequest("This page has no table: it comes as html or json.")
    own = getattr(page, "listing", None)
    if name is None and isinstance(own, Listing):
        return own
    if name is None or name not in tables:
        given = "This page is more than one table" if name is None else f"table={name}: this page has no such table"
        raise BadRequest(f"{given}. Name one with table=…: {', '.join(tables)}.")
    return tables[name]


def as_json(value: object) -> Any:  # Any: JSON
    """A page as JSON values: addresses and statuses are `0x…` text, times whole nanoseconds, unknown is null."""
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, fmt.Address | fmt.Status):
        return str(value)
    if isinstance(value, int):
        return value if -_SAFE_INTEGER <= value <= _SAFE_INTEGER else str(value)
    if isinstance(value, Listing):
        return {
            "rows": [as_json(row) for row in value.rows],
            "filter": value.where.query(),
            "sort": str(value.order) if value.order else None,
            "total": value.total,
            "total_is_more": value.total_is_more,
            "next": value.next_href,
            "noted": [{"row": place, "object": one.object, "notes": one.notes} for place, one in sorted(value.marks.rows.items())],
        }
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        shown = (one for one in dataclasses.fields(value) if one.metadata.get("json", True))
        return {one.name: as_json(getattr(value, one.name)) for one in shown}
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [as_json(item) for item in value]
    return str(value)


def csv_text(listing: Listing, start_utc: str | None = None) -> str:
    """All fields of a table's rows as CSV with a head; text that a spreadsheet would take for a formula gets an apostrophe before it.

    Moments are nanoseconds since the trace began; where the request asks for UTC, further columns say them as dates.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    names = [one.name for one in dataclasses.fields(listing.row_type)]
    moments = [name for name in names if name in _moments(listing)] if start_utc and clockface.current() is not None else []
    writer.writerow([*names, *(f"{name.removesuffix('_ns')}_utc" for name in moments)])
    for row in listing.rows:
        dates = [fmt.absolute(getattr(row, name), start_utc) for name in moments]
        writer.writerow([*(_csv_cell(getattr(row, name)) for name in names), *(_csv_cell(date) for date in dates)])
    return out.getvalue()


def _moments(listing: Listing) -> frozenset[str]:
    """The columns of a table that are moments of the trace, as opposed to spans of time."""
    return frozenset(head.column.key for head in listing.heads if head.column.kind in ("time", "before", "ended"))


def _csv_cell(value: object) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, fmt.Address | fmt.Status):
        return value
    return inert_cell(str(value))
