"""A server over HTTP: how soon it answers after its start, and how it serves many clients at once.

python -m bench.served FOLDER KEY [--workers N …] [--starts 5]

For each number of workers: the seconds from the start of the command to the first page, then clients that each ask four pages one after
another, first of a server that has just started, then with each page made anew. The clients are a process of their own.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx2 as httpx

from bench.load import running_server
from bench.pages import ANEW, crowd, page_paths

__all__ = ["main"]

_WARM = 8  # requests before the crowd comes: every worker has loaded what all pages share


def main(argv: list[str] | None = None) -> int:
    """Exit status 1 when a request failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.served", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="the database")
    parser.add_argument("key", help="a trace in it")
    parser.add_argument("--workers", type=int, action="append", help="processes of the server; may be repeated (1 and 2)")
    parser.add_argument("--starts", type=int, default=5, help="how often the start is measured (%(default)s)")
    args = parser.parse_args(argv)
    paths = page_paths(args.folder, args.key)
    failed = 0
    for workers in args.workers or (1, 2):
        options = ("--workers", str(workers)) if workers > 1 else ()
        starts = sorted(_start(args.folder, options) for _ in range(args.starts))
        print(f"{workers} worker(s): answers {starts[0]:.2f} to {starts[-1]:.2f} s after its start, {args.starts} starts", flush=True)
        for words, headers in (("pages as they are kept", {}), ("each page made anew", ANEW)):
            with running_server(args.folder, *options) as server:
                found = asyncio.run(_ask(server.address, list(paths.values()), headers))
            print(
                f"  {words}: {found['clients']} clients, {found['requests']} requests, p50 {found['p50']} ms, p95 {found['p95']} ms, "
                f"{found['a_second']} a second, failed {found['failed']}; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
            failed += bool(found["failed"])
    return 1 if failed else 0


def _start(folder: Path, options: Sequence[str]) -> float:
    """Seconds from the start of the command to the first page."""
    begin = time.perf_counter()
    with running_server(folder, *options) as server:
        while True:
            try:
                httpx.get(f"{server.address}/", timeout=10).raise_for_status()
                return time.perf_counter() - begin
            except httpx.TransportError:
                time.sleep(0.01)


async def _ask(address: str, paths: list[str], headers: Mapping[str, str]) -> dict[str, object]:
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=0)  # each request may go to another worker
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
        for _ in range(_WARM):
            await client.get("/", headers=dict(ANEW))
        return await crowd(client, paths, headers)


if __name__ == "__main__":
    sys.exit(main())
