"""Reports without a server: a page is asked of the application within this process, as a browser would ask for it."""

import asyncio
import json
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Scope

from app.main import create_app
from app.settings import Settings

__all__ = ["NoReport", "report_of"]

_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 3


class NoReport(Exception):
    """There is no such page; `str(error)` says why."""


def report_of(database: Path | str, path: str, query: dict[str, str]) -> bytes:
    """The report of a page of a folder of traces or of a server, such as `/t/KEY/sockets/0xENDPOINT@NS`. Raises NoReport."""
    return asyncio.run(_report(database, path, query))


async def _report(database: Path | str, path: str, query: dict[str, str]) -> bytes:
    app = create_app(Settings(database=database))
    try:
        return await _report_by(app, path, query)
    finally:
        app.state.folder.close()


async def _report_by(app: FastAPI, path: str, query: dict[str, str]) -> bytes:
    wanted = query | {"format": "report"}
    for _ in range(_MOST_REDIRECTS):
        status, headers, body = await _ask(app, path, urlencode(wanted))
        if status not in _REDIRECTS:
            break
        path, _, more = headers["location"].partition("?")
        path, wanted = unquote(path), dict(parse_qsl(more))
    if status == 200:
        return body
    _, _, body = await _ask(app, path, urlencode(query | {"format": "json"}))
    raise NoReport(str(json.loads(body)["sentence"]).replace("\N{NARROW NO-BREAK SPACE}", " "))  # which terminals do not show


async def _ask(app: ASGIApp, path: str, query: str) -> tuple[int, dict[str, str], bytes]:
    """One request. Returns its status, headers and body."""
    status = 500
    headers: dict[str, str] = {}
    pieces: list[bytes] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            headers.update({name.decode().lower(): value.decode("latin-1") for name, value in message["headers"]})
        else:
            pieces.append(message.get("body", b""))

    scope: Scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http", "root_path": "",
        "path": path, "raw_path": path.encode(), "query_string": query.encode(), "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {},
    }  # fmt: skip
    await app(scope, receive, send)
    return status, headers, b"".join(pieces)
