"""How fast the pages of a collected trace answer: time in the server, asked one after another and by many at once.

Pages are asked through the server's own entry, without a network between; the file system's cache is warm, as the trace was just made.
"""

import asyncio
import gc
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import httpx2 as httpx

from app.main import create_app
from app.settings import Settings
from collector.store.engine import TraceFolder

__all__ = ["ANEW", "crowd", "measure_pages", "page_paths"]

_TIMES = 20
_SECONDS_A_PAGE = 3.0
_CLIENTS = 50
_PAGES_A_CLIENT = 4
ANEW = {"Cache-Control": "no-store"}
"""Headers of a request whose answer is made for it, not kept from another."""

_LISTS = (
    "trust", "processes", "sockets", "operations", "errors", "aborts", "stalls", "overlaps", "in-flight-frees", "listeners", "ports",
    "drops", "polls", "events", "heap", "allocations", "stacks",
)  # fmt: skip

# Pages of one thing: the path, and the busiest such thing. Each column of the query's row fills a gap of the path.
_THINGS = (
    ("processes/{}", "SELECT process FROM v_operations GROUP BY process ORDER BY count(*) DESC, process LIMIT 1"),
    ("processes/{}", "SELECT process FROM v_allocations GROUP BY process ORDER BY count(*) DESC, process LIMIT 1"),
    ("sockets/{}", "SELECT socket FROM v_sockets ORDER BY sends + receives DESC, socket LIMIT 1"),
    ("sockets/{}/timeline", "SELECT socket FROM v_sockets ORDER BY sends + receives DESC, socket LIMIT 1"),
    ("heap/{}", "SELECT process FROM v_allocations GROUP BY process ORDER BY count(*) DESC, process LIMIT 1"),
    ("heap/{}/timeline", "SELECT process FROM v_allocations GROUP BY process ORDER BY count(*) DESC, process LIMIT 1"),
    ("heap/{}/{}", "SELECT process, heap || '@' || coalesce(created_ns, first_ns) FROM v_heaps ORDER BY process, heap LIMIT 1"),
    ("heap/{}/{}", "SELECT process, allocation FROM v_allocations LIMIT 1"),
    ("stacks/{}", "SELECT stack FROM v_stacks LIMIT 1"),
    ("address/{}", "SELECT buffer FROM v_operations WHERE buffer IS NOT NULL LIMIT 1"),
    ("address/{}", "SELECT address FROM v_allocations LIMIT 1"),
    ("operations?endpoint={}", "SELECT socket FROM v_sockets ORDER BY sends + receives DESC, socket LIMIT 1"),
)


def page_paths(folder: Path, key: str) -> dict[str, str]:
    """What to ask: a short name of each page, and its path. Pages of things that the trace does not have are left out."""
    paths = {"/": "/", "overview": f"/t/{key}"} | {name: f"/t/{key}/{name}" for name in _LISTS}
    with closing(sqlite3.connect(f"file:{TraceFolder(folder).trace_path(key)}?mode=ro", uri=True)) as db:
        for path, query in _THINGS:
            found = db.execute(query).fetchone()
            if found is not None and None not in found:
                name = path.format(*("…" for _ in found))
                paths[name if name not in paths else f"{name} (heap)"] = f"/t/{key}/{path.format(*found)}"
    return paths


def measure_pages(folder: str, key: str) -> dict[str, object]:
    """Milliseconds of each page: the first time, half and 95 of 100 of those after it, of the processor; and with many clients at once."""
    return asyncio.run(_measure(Path(folder), page_paths(Path(folder), key)))


async def _measure(folder: Path, paths: dict[str, str]) -> dict[str, object]:
    settings = Settings(database=folder)
    app = create_app(settings)
    gc.collect()
    gc.freeze()  # as the server does
    pages: dict[str, dict[str, float | int]] = {}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", timeout=60) as client:
        await client.get(paths["/"])  # compiles what all pages share
        for name, path in paths.items():
            took: list[float] = []
            status, begin, used = 0, time.perf_counter(), 0.0
            while len(took) <= _TIMES and (len(took) < 3 or time.perf_counter() - begin < _SECONDS_A_PAGE):
                status, seconds = await _ask(client, path, ANEW)
                took.append(seconds)
                used = used or time.process_time()  # the first time compiles and loads
            cpu = (time.process_time() - used) / (len(took) - 1)
            first, later = took[0], sorted(took[1:])
            pages[name] = {
                "first": _ms(first),
                "p50": _ms(_at(later, 0.5)),
                "p95": _ms(_at(later, 0.95)),
                "cpu": _ms(cpu),
                "status": status,
            }
        good = [path for name, path in paths.items() if pages[name]["status"] == 200]
        crowds = {"crowd": await crowd(client, good, ANEW)}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(create_app(settings)), base_url="http://127.0.0.1", timeout=60) as client:
        await client.get(paths["/"])
        crowds["crowd of a fresh server"] = await crowd(client, good, {})
    return {"pages": pages, **crowds}


async def crowd(client: httpx.AsyncClient, paths: list[str], headers: Mapping[str, str]) -> dict[str, object]:
    """Many clients at once, each on a way of its own through the pages."""

    async def walk(number: int) -> list[tuple[int, float]]:
        return [await _ask(client, paths[(number * 7 + n * 3) % len(paths)], headers) for n in range(_PAGES_A_CLIENT)]

    begin = time.perf_counter()
    answers = await asyncio.gather(*map(walk, range(_CLIENTS)))
    seconds = time.perf_counter() - begin
    all_at_once = sorted(seconds for own in answers for _, seconds in own)
    return {
        "clients": _CLIENTS, "requests": len(all_at_once), "p50": _ms(_at(all_at_once, 0.5)), "p95": _ms(_at(all_at_once, 0.95)),
        "failed": dict(Counter(status for own in answers for status, _ in own if status != 200)),
        "a_second": round(len(all_at_once) / seconds, 1),
    }  # fmt: skip


async def _ask(client: httpx.AsyncClient, path: str, headers: Mapping[str, str]) -> tuple[int, float]:
    begin = time.perf_counter()
    answer = await client.get(path, headers=dict(headers))
    return answer.status_code, time.perf_counter() - begin


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
