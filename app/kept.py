"""Answers that are kept: a finished trace does not change, so a page of it is made once and its browser asks whether it still holds.

What a page says depends on its URL, its form, the trace file, the notes in the catalog, and on what the browser sends along; all that is in
the key of a kept answer. The token of a form is another one in each answer, so it is put in when the answer leaves.
When many ask for the same at once, one answer is made and the others wait for it.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.access import MAY_WRITE
from app.deps import LIVE_PREFIX
from app.forms import TOKEN_COOKIE, TOKEN_PLACE, FormSlot, PageForm
from collector.errors import StoreError
from collector.store.stores import TraceStore

__all__ = ["KeptAnswers"]

_MOST_BYTES = 64 << 20
_MOST_OF_ONE = 2 << 20
_SETTLED_NS = 100_000_000
"""A file that was written less than this ago may be written again without showing it in its times."""


@dataclass(frozen=True, slots=True)
class _Answer:
    headers: list[tuple[bytes, bytes]]
    body: bytes
    has_token: bool


class KeptAnswers:
    """Gives pages of finished traces again, from memory or by 304. `Cache-Control: no-store` of a request has the page made anew."""

    def __init__(self, app: ASGIApp, folder: TraceStore, secret: bytes) -> None:
        """`secret` is new in each run of the server: what another run gave may have been made by other code."""
        self._app, self._folder = app, folder
        self._kept: OrderedDict[str, _Answer] = OrderedDict()
        self._making: dict[str, asyncio.Event] = {}
        self._bytes = 0
        self._catalog: list[tuple[int, int, int] | None] = []
        self._salt = sha256(b"kept" + secret).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = self._key(scope) if scope["type"] == "http" and scope["method"] == "GET" else None
        if key is None:
            await self._app(scope, receive, send)
            return
        making = self._making.get(key)
        if making is not None:
            await making.wait()
        answer = self._kept.get(key)
        if answer is not None:
            self._kept.move_to_end(key)
            await self._give(answer, key, scope, receive, send)
            return
        made = asyncio.Event()
        if making is None:  # else what was made could not be kept: nobody waits for the next
            self._making[key] = made
        try:
            await self._make(key, made, scope, receive, send)
        finally:
            self._made(key, made)

    def _made(self, key: str, made: asyncio.Event) -> None:
        """Let those go on who wait for an answer."""
        made.set()
        if self._making.get(key) is made:
            del self._making[key]

    async def _make(self, key: str, made: asyncio.Event, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the page be made, and keep it where it is whole and quickly made: one that took long may leave out what took too long."""
        slot, began = FormSlot(), time.monotonic()
        started: list[Message] = []
        body = bytearray()

        async def take(message: Message) -> None:
            if message["type"] == "http.response.start":
                started.append(message)
                return
            if message["type"] == "http.response.body":
                body.extend(message.get("body", b""))
                if message.get("more_body", False):
                    return
                answer = _Answer(list(started[0]["headers"]), bytes(body), slot.is_asked)
                status = started[0]["status"]
                is_whole = status == 200 and time.monotonic() - began < self._folder.limit_seconds
                if is_whole and not any(name == b"set-cookie" for name, _ in answer.headers) and self._key(scope) == key:
                    self._keep(key, answer)
                    self._made(key, made)  # before it is on its way to a browser that may be slow
                    await self._give(answer, key, scope, receive, send)
                else:
                    await self._give(answer, None, scope, receive, send, status=status)

        await self._app({**scope, FormSlot.NAME: slot}, receive, take)

    async def _give(self, answer: _Answer, key: str | None, scope: Scope, receive: Receive, send: Send, *, status: int = 200) -> None:
        """An answer on its way to one browser: with its own token, or only word that what it has still holds."""
        response = Response(answer.body, status)
        response.raw_headers = [*answer.headers]
        form = PageForm(Request(scope))
        has_cookie = bool(form.cookie)
        if answer.has_token:
            response.body = answer.body.replace(TOKEN_PLACE, form.token.encode())
            form.keep(response)
        MutableHeaders(raw=response.raw_headers)["Content-Length"] = str(len(response.body))
        if key is not None and (has_cookie or not answer.has_token):
            told = key + (form.cookie if answer.has_token else "")
            tag = f'W/"{sha256(told.encode()).hexdigest()[:32]}"'
            MutableHeaders(raw=response.raw_headers)["ETag"] = tag
            if _names(Headers(scope=scope).get("if-none-match", ""), tag):
                gone = (b"content-length", b"content-type")
                response.status_code, response.body = 304, b""
                response.raw_headers = [(name, value) for name, value in response.raw_headers if name not in gone]
        await response(scope, receive, send)

    def _keep(self, key: str, answer: _Answer) -> None:
        if len(answer.body) > _MOST_OF_ONE:
            return
        replaced = self._kept.pop(key, None)
        self._kept[key] = answer
        self._bytes += len(answer.body) - (len(replaced.body) if replaced else 0)
        while self._bytes > _MOST_BYTES:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest.body)

    def _key(self, scope: Scope) -> str | None:
        """What an answer depends on; None where it cannot be kept."""
        parts = scope["path"].split("/")
        if len(parts) < 3 or parts[1] != "t" or parts[2].lower().startswith(LIVE_PREFIX):  # who follows it may be gone at any time
            return None
        headers = Headers(scope=scope)
        if "no-store" in headers.get("cache-control", ""):
            return None
        try:
            files = self._folder.files_of(parts[2].lower())
        except StoreError:
            return None
        if not files:  # to ask a server whether an answer holds would take as long as many a page
            return None
        trace, *notes = (_state_of(path) for path in files)
        if notes != self._catalog:  # nobody can ask again for what was made with another catalog
            self._catalog, self._bytes = notes, 0
            self._kept.clear()
        now = time.time_ns()
        if trace is None or any(state is not None and now - state[1] < _SETTLED_NS for state in (trace, *notes)):
            return None
        cookies = _cookies(headers.get("cookie", ""))
        cookies.pop(TOKEN_COOKIE, None)
        told = (
            scope["path"], scope["query_string"], scope.get("root_path", ""), scope["scheme"], headers.get("host", ""),
            headers.get("accept", ""), sorted(cookies.items()), scope.get(MAY_WRITE, True), trace, notes, self._salt,
        )  # fmt: skip
        return repr(told)


def _names(header: str, tag: str) -> bool:
    """Whether what a browser has, by its If-None-Match, is what it would be given; `*` is whatever there is (RFC 9110, 13.1.2)."""
    given = [one.strip() for one in header.split(",")]
    return given == ["*"] or tag in given


def _state_of(path: Path) -> tuple[int, int, int] | None:
    """Which file this is and when it was written; None for none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _cookies(header: str) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(header).items()}
    except CookieError:
        return {"": header}
