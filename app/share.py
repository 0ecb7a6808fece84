"""The link to what a page shows, as one gives it to somebody else: canonical names, the whole state, nothing of this browser's own."""

from urllib.parse import quote, urlencode

from starlette.requests import Request

from app.page import Page
from app.urls import Urls

__all__ = ["absolute_link", "canonical_link"]

_PLAIN = "@:,/"
_OURS = frozenset({"format", "token"})


def canonical_link(request: Request, page: Page) -> str:
    """The path of a page below the base path of a proxy, with the query that holds its state."""
    urls: Urls = request.app.state.urls
    path = page.canonical or urls.base_path + quote(request.url.path, safe=_PLAIN)
    query = [(key, value) for key, value in request.query_params.multi_items() if key not in _OURS]
    return f"{path}?{urlencode(query, safe=_PLAIN)}" if query else path


def absolute_link(request: Request, page: Page) -> str:
    """The same with scheme and host, as the request names them."""
    return f"{request.url.scheme}://{request.url.netloc}{canonical_link(request, page)}"
