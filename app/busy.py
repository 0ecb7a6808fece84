"""How many requests a server takes at once: beyond that it says so at once, instead of letting everybody wait without end."""

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["MOST_REQUESTS", "RequestLimit"]

MOST_REQUESTS = 300
"""Requests that wait or are worked on; at some 60 pages a second the last of these waits for five seconds."""


class RequestLimit:
    """Refuses requests beyond a number, with 503."""

    def __init__(self, app: ASGIApp, most: int = MOST_REQUESTS) -> None:
        self._app, self._most, self._now = app, most, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._now >= self._most:
            refused = PlainTextResponse(
                f"This server works on {self._now} requests and takes no more. Load the page again in a moment.\n",
                503,
                {"Retry-After": "2", "Cache-Control": "no-store"},
            )
            await refused(scope, receive, send)
            return
        self._now += 1
        is_counted = True

        async def send_on(message: Message) -> None:
            nonlocal is_counted
            if is_counted and message["type"] == "http.response.start":
                kind = Headers(raw=message.get("headers", [])).get("content-type", "")
                if kind.startswith("text/event-stream"):  # waits most of the time, and has a limit of its own
                    is_counted = False
                    self._now -= 1
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        finally:
            self._now -= is_counted
