"""A real server on a free port and a real browser in front of it, for the browser tests."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, Page, Playwright

from app.main import create_app
from app.settings import Settings

__all__ = ["Watched", "chromium_path", "launch", "serving", "watch"]

_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium_path() -> str | None:
    """The system's Chromium; the tests download no browser."""
    return next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


def launch(playwright: Playwright, path: str) -> Browser:
    """A headless browser."""
    return playwright.chromium.launch(executable_path=path, args=_FLAGS)


@contextmanager
def serving(database: Path) -> Iterator[str]:
    """The dashboard over a folder of traces, at the URL given; stopped at the end."""
    server = uvicorn.Server(uvicorn.Config(create_app(Settings(database=database)), host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


@dataclass
class Watched:
    """What a page said that it should not have said."""

    base: str
    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


def watch(page: Page, base: str) -> Watched:
    """Collects console errors, page errors and requests to other servers from now on."""
    watched = Watched(base)
    page.on("console", lambda message: watched.complaints.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith((base, "data:", "blob:")) else watched.foreign.append(request.url),
    )
    return watched
