"""Under which names the server answers, and what a browser may do with the answer: host check, headers.

Trace files are hostile input and a page shows their text, so no page may run a script or a style that is not a file of ours.
"""

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["CONTENT_SECURITY_POLICY", "HEADERS", "HostCheck", "SafeHeaders"]

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

# What pages of ours never ask for; only the clipboard is left, which the button that copies a link writes to.
_NO_FEATURES = (
    "accelerometer", "autoplay", "camera", "display-capture", "fullscreen", "geolocation", "gyroscope", "hid", "magnetometer", "microphone",
    "midi", "payment", "serial", "usb",
)  # fmt: skip

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer a browser sends our own forms with `Origin: null`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{name}=()" for name in _NO_FEATURES),
}


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


def _host(header: str) -> str:
    """The name of a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()
