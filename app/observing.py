"""What becomes of each request, told to the log and to the metrics once its answer is on its way."""

import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Observed", "Observer", "Seen", "note_in_log"]

_log = logging.getLogger("sockscope.requests")
_SECRET = re.compile(r"(token(?:=|%3d))[^&%]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Seen:
    """One request and its answer. `seconds` ends with the last byte, or with the first one of a stream that stays open."""

    method: str
    path: str
    query: str
    client: str
    status: int
    seconds: float

    @property
    def shown_query(self) -> str:
        """The query string without what lets a browser in."""
        return _SECRET.sub(r"\1hidden", urlencode(parse_qsl(self.query, keep_blank_values=True), safe="@:,/"))


Observer = Callable[[Seen], None]


class Observed:
    """Tells observers of each request. An answer that fails on its way counts as 500; one that nobody waited for as 499."""

    def __init__(self, app: ASGIApp, observers: Sequence[Observer]) -> None:
        self._app, self._observers = app, observers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status, is_told = 499, False

        def tell() -> None:
            nonlocal is_told
            if not is_told:
                is_told = True
                query = scope["query_string"].decode("latin-1")
                client = (scope.get("client") or ("",))[0]
                seen = Seen(scope["method"], scope["path"], query, client, status, time.perf_counter() - began)
                for observer in self._observers:
                    observer(seen)

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                await send(message)
                if Headers(raw=message.get("headers", [])).get("content-type", "").startswith("text/event-stream"):
                    tell()
            else:
                await send(message)

        try:
            await self._app(scope, receive, send_on)
        except Exception:
            status = 500
            raise
        finally:
            tell()


def note_in_log(seen: Seen) -> None:
    """Write a line: `GET /t/3f…/sockets?state=open 200 18 ms 127.0.0.1`."""
    query = f"?{seen.shown_query}" if seen.shown_query else ""
    fields = {
        "method": seen.method,
        "path": seen.path,
        "query": seen.shown_query,
        "status": seen.status,
        "milliseconds": round(seen.seconds * 1000, 1),
        "client": seen.client,
    }
    _log.info(
        "%s %s%s %d %.0f ms %s",
        seen.method, seen.path, query, seen.status, seen.seconds * 1000, seen.client or "unknown", extra={"fields": fields},
    )  # fmt: skip
