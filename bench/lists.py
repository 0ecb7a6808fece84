"""What the pages of a large trace take and weigh: each as it opens, each list in every order, and by its busiest process.

python -m bench.lists FOLDER KEY [--seconds 8]

Exit status 1 when a page failed, or took too long without saying so.
"""

import argparse
import asyncio
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

import httpx2 as httpx

from app.main import create_app
from app.settings import Settings
from bench.pages import ANEW, page_paths

__all__ = ["Asked", "ask_all", "main"]

_SORT = re.compile(r"[?&]sort=-?([a-z_]+)")
_SLOW, _REFUSED = 503, 400
_HEADERS = {**ANEW, "Accept": "text/html"}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: the page by its path, what was asked of it, and what came."""

    page: str
    query: str
    status: int
    seconds: float
    size_bytes: int
    is_explained: bool
    """Whether what took too long says so, and how to narrow the question; True for what did not."""


def ask_all(folder: Path, key: str, *, limit_seconds: float) -> list[Asked]:
    """Ask for every page of a trace, and for every list in each order that a column offers, both ways, and of its busiest process."""
    return asyncio.run(_ask_all(folder, key, limit_seconds))


async def _ask_all(folder: Path, key: str, limit_seconds: float) -> list[Asked]:
    app = create_app(Settings(database=folder, query_seconds=limit_seconds))
    found: list[Asked] = []
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", timeout=600) as client:
        await client.get("/")  # compiles what all pages share
        paths = list(page_paths(folder, key).values())
        busiest = next((path.rpartition("/")[2].partition("@")[0] for path in paths if "/processes/" in path), None)
        for path in paths:
            asked, text = await _ask(client, path)
            found.append(asked)
            if urlsplit(path).query or path.count("/") != 3:
                continue
            keys = sorted(set(_SORT.findall(unescape(text))))
            queries = [f"sort={sign}{one}" for one in keys for sign in ("", "-")]
            queries += [f"process={busiest}"] if busiest is not None and 'name="process"' in text else []
            found += [(await _ask(client, f"{path}?{query}"))[0] for query in queries]
    return found


async def _ask(client: httpx.AsyncClient, path: str) -> tuple[Asked, str]:
    begin = time.perf_counter()
    answer = await client.get(path, headers=dict(_HEADERS))
    seconds = time.perf_counter() - begin
    parts = urlsplit(path)
    is_explained = answer.status_code != _SLOW or bool(
        re.search(r"too long.*narrow the time range", answer.text, re.IGNORECASE | re.DOTALL)
    )
    return Asked(parts.path, parts.query, answer.status_code, seconds, len(answer.content), is_explained), answer.text


def _rows(found: Sequence[Asked]) -> Iterator[tuple[str, ...]]:
    """A row a page: as it opens, then its orders, the slowest of them, and those that took too long."""
    for page in dict.fromkeys(asked.page for asked in found):
        first, *more = [asked for asked in found if asked.page == page]
        slowest = max(more, key=lambda asked: asked.seconds, default=None)
        slow = [asked.query or "as it opens" for asked in (first, *more) if asked.status == _SLOW]
        yield (
            "/".join(page.split("/")[3:]) or "overview" if page != "/" else "/",
            f"{first.seconds * 1000:,.0f}",
            f"{first.size_bytes / 1000:,.0f}",
            f"{len(more)}",
            f"{slowest.seconds * 1000:,.0f} ({slowest.query})" if slowest else "",
            ", ".join(slow),
        )


def main(argv: list[str] | None = None) -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.lists", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="the database")
    parser.add_argument("key", help="a trace in it")
    parser.add_argument("--seconds", type=float, default=8, help="time limit of a statement (%(default)s)")
    args = parser.parse_args(argv)
    found = ask_all(args.folder, args.key, limit_seconds=args.seconds)
    print("| page | opens in ms | KB | orders and filters | the slowest, ms | too long |\n| --- | ---: | ---: | ---: | --- | --- |")
    for row in _rows(found):
        print(f"| {' | '.join(row)} |")
    slow = [asked for asked in found if asked.status == _SLOW]
    failed = [asked for asked in found if asked.status not in (200, _REFUSED, _SLOW) or not asked.is_explained]
    refused = sum(asked.status == _REFUSED for asked in found)
    print(f"{len(found)} pages, {len(slow)} of them 503 with the advice to narrow the range, {refused} refused, {len(failed)} failed")
    for asked in failed:
        print(f"failed: {asked}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
