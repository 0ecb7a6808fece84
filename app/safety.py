"""Who may ask and what a browser may do with the answer: host check, token, headers.

Trace files are hostile input and a page shows their text, so no page may run a script or a style that is not a file of ours.
"""

import hmac
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.urls import with_query

__all__ = ["CONTENT_SECURITY_POLICY", "HEADERS", "HostCheck", "SafeHeaders", "TokenCheck"]

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer a browser sends our own forms with `Origin: null`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

_COOKIE = "sockscope_token"
_OPEN_PATHS = ("/healthz",)


class SafeHeaders:
    """Adds the safety headers to each answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_safely)


class HostCheck:
    """Refuses requests for a host name that is not ours: a page elsewhere cannot reach the server through a name of its own."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self._app, self._hosts = app, frozenset(host.lower().strip("[]") for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and "*" not in self._hosts and _host(Headers(scope=scope).get("host", "")) not in self._hosts:
            refused = PlainTextResponse(
                "This server does not answer to that host name. Start it with --allow-host NAME to allow one.\n", status_code=421
            )
            await refused(scope, receive, send)
            return
        await self._app(scope, receive, send)


class TokenCheck:
    """Demands the token: as a bearer, as a cookie, or once as `?token=`, which then becomes the cookie."""

    def __init__(self, app: ASGIApp, token: str, base_path: str) -> None:
        self._app, self._token, self._base_path = app, token.encode(), base_path

    def _is_right(self, given: str | None) -> bool:
        return given is not None and hmac.compare_digest(given.encode(), self._token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if (scheme.lower() == "bearer" and self._is_right(bearer.strip())) or self._is_right(_cookie(headers.get("cookie", ""))):
            await self._app(scope, receive, send)
            return
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        if scope["method"] in ("GET", "HEAD") and self._is_right(query.pop("token", None)):
            away = RedirectResponse(with_query(self._base_path + scope["path"], query), status_code=303)
            away.set_cookie(
                _COOKIE, self._token.decode(), httponly=True, samesite="lax", secure=scope["scheme"] == "https", path=self._base_path or "/"
            )
            await away(scope, receive, send)
            return
        refused = PlainTextResponse(
            "This server demands a token. Open the link that it printed when it started, or send Authorization: Bearer TOKEN.\n",
            status_code=401,
            headers={"WWW-Authenticate": "Bearer"},
        )
        await refused(scope, receive, send)


def _host(header: str) -> str:
    """The name of a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def _cookie(header: str) -> str | None:
    try:
        morsel = SimpleCookie(header).get(_COOKIE)
    except CookieError:
        return None
    return morsel.value if morsel else None
