"""Who may look, and who may write: the tokens of a server, and what becomes of those who guess.

There are two tokens: one that lets everything, and one for links that only show. Each comes as a bearer, as a cookie, or once in a link as
`?token=`, which then becomes the cookie, so that it stays in no address bar and no history.
"""

import hmac
import ipaddress
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.urls import with_query

__all__ = ["MAY_WRITE", "Guesses", "TokenCheck"]

_log = logging.getLogger("sockscope")

MAY_WRITE = "sockscope.may_write"
"""Key of the request's scope; it is missing where no token is demanded."""

_COOKIE = "sockscope_token"
_OPEN_PATHS = ("/healthz",)
_READING = ("GET", "HEAD")

MOST_GUESSES = 10
BLOCKED_SECONDS = 60.0
_MOST_CLIENTS = 4096
_V6_NETWORK = 64
"""A customer of an IPv6 network has at least all addresses below a prefix of so many bits."""


class Guesses:
    """Wrong tokens by client: one that tries too many different ones is not heard for a while.

    The same wrong token counts once: it is what a browser with the cookie of an earlier server sends with each request.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: OrderedDict[str, tuple[float, set[int]]] = OrderedDict()

    def wait_seconds(self, client: str) -> int:
        """How long a client is not heard; 0 for one that is."""
        began, wrong = self._seen.get(_who(client), (0.0, frozenset[int]()))
        left = began + BLOCKED_SECONDS - self._clock()
        return int(left) + 1 if len(wrong) >= MOST_GUESSES and left > 0 else 0

    def note(self, client: str, wrong: str) -> None:
        """Count a wrong token. The time of a client begins with the first one, and anew with the one too many."""
        who, now = _who(client), self._clock()
        began, tried = self._seen.pop(who, (now, set[int]()))
        if now - began > BLOCKED_SECONDS:
            began, tried = now, set()
        if len(tried) < MOST_GUESSES:
            tried.add(hash(wrong))
            if len(tried) == MOST_GUESSES:
                began = now
                _log.warning("%s tried %d wrong tokens and is not heard for %d seconds", who or "somebody", MOST_GUESSES, BLOCKED_SECONDS)
        self._seen[who] = (began, tried)
        while len(self._seen) > _MOST_CLIENTS:
            self._seen.popitem(last=False)


class TokenCheck:
    """Demands a token. With the one for reading, nothing can be sent: notes, uploads and deletions are refused."""

    def __init__(self, app: ASGIApp, token: str, view_token: str | None, base_path: str, guesses: Guesses | None = None) -> None:
        self._app, self._base_path = app, base_path
        self._tokens = [(token.encode(), True)] + ([(view_token.encode(), False)] if view_token is not None else [])
        self._guesses = guesses or Guesses()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        client = scope["client"][0] if scope.get("client") else ""
        wait = self._guesses.wait_seconds(client)
        if wait:
            sentence = f"Too many wrong tokens came from your address. Try again in {wait} seconds.\n"
            await PlainTextResponse(sentence, 429, {"Retry-After": str(wait)})(scope, receive, send)
            return
        headers = Headers(scope=scope)
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        linked = query.pop("token", None) if scope["method"] in _READING else None
        if linked is not None and self._rights(linked) is not None:
            await self._cookie_answer(scope, query, linked)(scope, receive, send)
            return
        given = [one for one in (_bearer(headers), _cookie(headers), linked) if one]
        rights = [right for right in map(self._rights, given) if right is not None]
        if not rights:
            for wrong in given:
                self._guesses.note(client, wrong)
            await _refusal(is_wrong=bool(given))(scope, receive, send)
        elif not any(rights) and scope["method"] not in _READING:
            sentence = "This link only shows: nothing can be written with it. Ask for the link that the server printed for writing.\n"
            await PlainTextResponse(sentence, 403)(scope, receive, send)
        else:
            await self._app({**scope, MAY_WRITE: any(rights)}, receive, send)

    def _rights(self, given: str) -> bool | None:
        """Whether a token lets write; None for one that is none of ours. Takes as long for each."""
        found = None
        for token, may_write in self._tokens:
            if hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token):
                found = may_write
        return found

    def _cookie_answer(self, scope: Scope, query: dict[str, str], token: str) -> RedirectResponse:
        """The same page again, without the token in its address; one path below this server, whatever the request's path looks like."""
        path = self._base_path + "/" + quote(scope["path"].lstrip("/\\"))
        away = RedirectResponse(with_query(path, query), 303, {"Cache-Control": "no-store"})
        away.set_cookie(_COOKIE, token, httponly=True, samesite="lax", secure=scope["scheme"] == "https", path=self._base_path or "/")
        return away


def _refusal(*, is_wrong: bool) -> PlainTextResponse:
    why = "That is none of this server's tokens." if is_wrong else "This server demands a token."
    return PlainTextResponse(
        f"{why} Open the link that it printed when it started, or send Authorization: Bearer TOKEN.\n",
        401,
        {"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"},
    )


def _who(client: str) -> str:
    """What counts as one client."""
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client[:64]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((int(address), _V6_NETWORK), strict=False))
    return str(address)


def _bearer(headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _cookie(headers: Headers) -> str | None:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(_COOKIE)
    except CookieError:
        return None
    return morsel.value if morsel else None
