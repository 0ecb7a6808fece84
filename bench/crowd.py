"""Clients of a running server: each asks page after page over a connection of its own and now and then writes a note."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx2 as httpx

__all__ = ["Asked", "ask_for"]

_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]+)"')
_PAGES_A_NOTE = 8
_PATIENCE_SECONDS = 120.0


@dataclass
class Asked:
    """What all clients saw: seconds of each answer, by status how many, what went wrong, and the notes that the server said it kept."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    notes: set[str] = field(default_factory=set)

    @property
    def requests(self) -> int:
        return sum(self.statuses.values()) + sum(self.errors.values())

    @property
    def failed(self) -> int:
        """Requests without an answer, or with one that says that something did not work."""
        return sum(count for status, count in self.statuses.items() if status >= 400) + sum(self.errors.values())


def ask_for(seconds: float, *, address: str, clients: int, paths: Sequence[str], key: str) -> Asked:
    """Let many clients ask until the time is over; each waits for its last answer. `key` is the trace for the notes."""
    return asyncio.run(_ask_all(seconds, address, clients, paths, key))


async def _ask_all(seconds: float, address: str, clients: int, paths: Sequence[str], key: str) -> Asked:
    asked, end = Asked(), time.monotonic() + seconds
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncHTTPTransport(limits=limits) as transport:
        await asyncio.gather(*(_client(asked, end, transport, address, number, paths, key) for number in range(clients)))
    return asked


async def _client(
    asked: Asked, end: float, transport: httpx.AsyncHTTPTransport, address: str, number: int, paths: Sequence[str], key: str
) -> None:
    client = httpx.AsyncClient(transport=transport, base_url=address, timeout=_PATIENCE_SECONDS, headers={"Accept": "text/html"})
    for turn in range(1_000_000):
        if turn and time.monotonic() >= end:
            return
        if (number + turn) % _PAGES_A_NOTE == 0:
            await _write(asked, client, key, f"client {number}, turn {turn}")
        else:
            await _get(asked, client, paths[(number * 7 + turn * 3) % len(paths)])


async def _get(asked: Asked, client: httpx.AsyncClient, path: str) -> httpx.Response | None:
    return await _timed(asked, client.build_request("GET", path), client)


async def _write(asked: Asked, client: httpx.AsyncClient, key: str, text: str) -> None:
    """Write a note as a browser does: load the page with the form, send the form."""
    page = await _get(asked, client, f"/t/{key}/notes")
    token = _TOKEN.search(page.text) if page is not None else None
    if token is None:
        asked.errors["a page without its form"] += page is not None and page.status_code == 200
        return
    form = {"form_token": token[1], "object": "", "text": text, "author": "crowd"}
    answer = await _timed(asked, client.build_request("POST", f"/t/{key}/notes", data=form), client)
    if answer is not None and answer.status_code == 303:
        asked.notes.add(text)


async def _timed(asked: Asked, request: httpx.Request, client: httpx.AsyncClient) -> httpx.Response | None:
    begin = time.perf_counter()
    try:
        answer = await client.send(request)
    except httpx.HTTPError as error:
        asked.errors[type(error).__name__] += 1
        return None
    asked.seconds.append(time.perf_counter() - begin)
    asked.statuses[answer.status_code] += 1
    return answer
