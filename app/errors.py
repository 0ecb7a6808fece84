"""What goes wrong in a request, and the page that says so: what happened, why, and the way out."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from app.asked import AskedQuery
from app.filters import BadFilter
from app.links import BadLink
from app.page import Crumb, Page, TraceHead
from app.paging import BadPosition
from app.safety import HEADERS
from app.urls import with_query
from collector.errors import StoreError, StoreLocked, StoreSlow, StoreWaited

__all__ = ["ANSWERS", "BadRequest", "Choice", "ErrorPage", "NotFound", "OtherName", "SeveralFit", "StillCollecting", "install"]

_log = logging.getLogger("sockscope")

ANSWERS: dict[int | str, dict[str, Any]] = {  # Any: as FastAPI has it
    300: {"description": "The link fits several things; the page leads to each."},
    303: {"description": "Written; the page to look at is elsewhere."},
    307: {"description": "The thing has another name in links."},
    400: {"description": "A part of the path, the query or the form cannot be used; the page says which, and what can."},
    401: {"description": "The server demands a token."},
    403: {"description": "What was sent comes from another site, or without the token of a form; nothing was written."},
    404: {"description": "There is no such trace or thing; the page leads to what is nearest."},
    405: {"description": "The page does not know this method."},
    408: {"description": "What was sent did not arrive in time."},
    413: {"description": "What was sent is too large."},
    415: {"description": "What was sent is no form."},
    421: {"description": "The server does not go by this name."},
    429: {"description": "Too many wrong tokens, or uploads at once."},
    503: {
        "description": "The trace is being collected, the database is busy or gone, or the question takes too long; the page says which."
    },
}
"""What every page may answer besides itself, for the description of the API."""


class BadRequest(ValueError):
    """A request that cannot be answered as it is; the message says what is allowed."""


class NotFound(Exception):
    """There is no such trace or object. `ways` lead to the nearest thing that there is."""

    def __init__(self, message: str, *, ways: tuple[Crumb, ...] = ()) -> None:
        super().__init__(message)
        self.ways = ways


class OtherName(Exception):
    """The object has another name in links: `parts` of the path, and of the query, that stand for those of the request."""

    def __init__(self, parts: Mapping[str, str], query: Mapping[str, str] | None = None) -> None:
        super().__init__(", ".join([*parts.values(), *(query or {}).values()]))
        self.parts, self.query = parts, query or {}


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that a link can mean: parts of the path and of the query that would say so."""

    text: str
    parts: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)


class SeveralFit(Exception):
    """A link that means several things; `ways` lead to all of them."""

    def __init__(self, message: str, choices: tuple[Choice, ...], *, ways: tuple[Crumb, ...] = ()) -> None:
        super().__init__(message)
        self.choices, self.ways = choices, ways


class StillCollecting(Exception):
    """The trace is not readable yet, or never became so."""

    def __init__(self, key: str) -> None:
        super().__init__(f"Trace {key} is being collected.")
        self.key = key


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPage(Page):
    """A page that says what went wrong."""

    status: int
    advice: str = ""
    ways: tuple[Crumb, ...] = field(default=())


def install(app: FastAPI, render: Callable[..., Response]) -> None:
    """Turn errors into pages. `render` is app.render.render, handed in because it depends on this module."""

    def answer(request: Request, status: int, title: str, sentence: str, advice: str = "", ways: tuple[Crumb, ...] = ()) -> Response:
        urls = request.app.state.urls
        head: TraceHead | None = getattr(request.state, "trace_head", None)
        crumbs: tuple[Crumb, ...] = (Crumb("traces", urls("traces")),)
        if head is not None:
            crumbs += (Crumb(head.name, urls("overview", trace_key=head.key)),)
        page = ErrorPage(title=title, sentence=sentence, status=status, advice=advice, ways=ways, trace=head, crumbs=crumbs)
        headers = {"Retry-After": "2"} if status == 503 else {}
        try:
            return render(request, "error.html", page, status_code=status, headers=headers, reads_query=False)
        except BadRequest:  # the form itself is what the request has wrong
            return PlainTextResponse(f"{title}\n{sentence}\n{advice}\n", status, headers)

    def begin(request: Request) -> tuple[Crumb, ...]:
        return (Crumb("the list of traces", request.app.state.urls("traces")),)

    def bad(request: Request, error: Exception) -> Response:
        whole = Crumb("the same page without filters", request.app.state.urls.base_path + request.url.path)
        if isinstance(error, RequestValidationError):
            sentence = "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in error.errors()) + "."
        else:
            sentence = str(error)
        return answer(request, 400, "This link has a part that cannot be used", sentence, ways=(whole,) if request.query_params else ())

    def not_found(request: Request, error: Exception) -> Response:
        assert isinstance(error, NotFound)
        return answer(request, 404, "Not found", str(error), ways=error.ways)

    def other_name(request: Request, error: Exception) -> Response:
        assert isinstance(error, OtherName)
        return RedirectResponse(request.app.state.urls.same_page(request, error.parts, error.query), 307)

    def several(request: Request, error: Exception) -> Response:
        assert isinstance(error, SeveralFit)
        urls = request.app.state.urls
        ways = tuple(Crumb(one.text, urls.same_page(request, one.parts, one.query)) for one in error.choices)
        return answer(request, 300, "Which one?", str(error), ways=ways + error.ways)

    def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 404:
            return answer(request, 404, "Not found", f"There is no page {request.url.path}.", ways=begin(request))
        response = answer(request, error.status_code, "This does not work", _in_words(error, request.method))
        response.headers.update(error.headers or {})
        return response

    def slow(request: Request, error: Exception) -> Response:
        if isinstance(error, StoreWaited):
            return answer(request, 503, "The server is busy", str(error))
        return answer(
            request,
            503,
            "This question takes too long",
            str(error),
            "Narrow the time range, or filter by process or socket; sorting by time is the quickest.",
            ways=_narrower(request),
        )

    def locked(request: Request, error: Exception) -> Response:
        return answer(request, 503, "The database is busy", str(error), "Load the page again in a moment.")

    def store(request: Request, error: Exception) -> Response:
        return answer(request, 503, "The database cannot be read", str(error))

    def database(request: Request, error: Exception) -> Response:
        _log.error("%s: %s", request.url.path, error)
        return answer(
            request,
            500,
            "The database gave no answer",
            "The database refused a question of this page.",
            "The server's log has the details.",
        )

    def gone(request: Request, error: Exception) -> Response:
        return PlainTextResponse("The request was broken off.\n", 400)  # nobody is there to read it

    def unforeseen(request: Request, error: Exception) -> Response:
        response = answer(
            request, 500, "This page failed", "A fault of this program kept the page from being made.", "The server's log has the details."
        )
        response.headers.update(HEADERS)  # this answer does not pass the layer that adds them
        return response

    for kind in (BadFilter, BadLink, BadPosition, BadRequest, RequestValidationError):
        app.add_exception_handler(kind, bad)
    app.add_exception_handler(NotFound, not_found)
    app.add_exception_handler(OtherName, other_name)
    app.add_exception_handler(SeveralFit, several)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(StoreSlow, slow)
    app.add_exception_handler(StoreLocked, locked)
    app.add_exception_handler(StoreError, store)
    app.add_exception_handler(SQLAlchemyError, database)
    app.add_exception_handler(ClientDisconnect, gone)
    app.add_exception_handler(Exception, unforeseen)


def _narrower(request: Request) -> tuple[Crumb, ...]:
    """Links to parts of the time range that a page was asked for, where it is one that reads a range."""
    query, whole = request.query_params, getattr(request.state, "range_ns", None)
    if whole is None or not isinstance(query, AskedQuery) or "from" not in query.asked:
        return ()
    first, last = whole
    width = last - first
    kept = {key: value for key, value in query.multi_items() if key not in ("from", "to", "after")}
    path = request.app.state.urls.base_path + request.url.path
    parts = (
        ("the first half of this range", first, first + width // 2),
        ("its second half", first + width // 2, last),
        ("its first tenth", first, first + width // 10),
    )
    return tuple(Crumb(text, with_query(path, kept | {"from": str(a), "to": str(b)})) for text, a, b in parts if b > a)


def _in_words(error: HTTPException, method: str) -> str:
    """What an error of the framework means; our own say it themselves."""
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "GET")
        return f"This page does not know the method {method[:20]}: it has {allowed}."
    return str(error.detail)
