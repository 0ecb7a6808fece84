"""The link to what a page shows, as one gives it to somebody else: canonical names, the whole state, nothing of this browser's own."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from starlette.requests import Request

from app import clockface
from app.page import Crumb, Page
from app.urls import Urls, with_query

__all__ = ["ClockPart", "absolute_link", "canonical_link", "clock_part", "data_links"]

_PLAIN = "@:,/"
_OURS = frozenset({"format", "table", "token"})


def canonical_link(request: Request, page: Page) -> str:
    """The path of a page below the base path of a proxy, with the query that holds its state."""
    urls: Urls = request.app.state.urls
    path = page.canonical.partition("?")[0] or urls.base_path + quote(request.url.path, safe=_PLAIN)
    query = [(key, value) for key, value in request.query_params.multi_items() if key not in _OURS]
    return f"{path}?{urlencode(query, safe=_PLAIN)}" if query else path


def absolute_link(request: Request, page: Page) -> str:
    """The same with scheme and host, as the request names them."""
    return f"{request.url.scheme}://{request.url.netloc}{canonical_link(request, page)}"


def data_links(request: Request, page: Page, tables: Iterable[str]) -> list[Crumb]:
    """What a page shows in other forms: one file that needs no server, the whole as JSON, each of its tables as CSV."""
    link = canonical_link(request, page)
    forms = [Crumb("Report", with_query(link, {"format": "report"}))] if page.has_report else []
    forms.append(Crumb("JSON", with_query(link, {"format": "json"})))
    return forms + [Crumb(f"{name.replace('-', ' ')} as CSV", with_query(link, {"format": "csv", "table": name})) for name in tables]


@dataclass(frozen=True, slots=True)
class ClockPart:
    """The switch between moments as time since the trace began and as UTC; not `is_known` where a trace does not say when it began."""

    is_known: bool
    is_utc: bool
    trace_href: str
    utc_href: str


def clock_part(request: Request, page: Page) -> ClockPart:
    """The switch for the view that a page shows; all other state stays."""
    path, _, _ = canonical_link(request, page).partition("?")
    query = [(key, value) for key, value in request.query_params.multi_items() if key not in _OURS | {clockface.CLOCK}]

    def href(*more: tuple[str, str]) -> str:
        return f"{path}?{urlencode([*query, *more], safe=_PLAIN)}" if query or more else path

    is_known = page.trace is not None and clockface.start_of(page.trace.start_utc) is not None
    return ClockPart(is_known, clockface.current() is not None, href(), href((clockface.CLOCK, "utc")))
