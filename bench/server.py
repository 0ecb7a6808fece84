"""Measures a PostgreSQL server against a folder: collecting the same traces into both, and the pages of both, in turns.

    python -m bench.server [--mix MIX] [--events N] [--times N]

The server is one of the bench's own, in a temporary folder, with the settings that PostgreSQL comes with.
"""

import argparse
import asyncio
import contextlib
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import httpx2 as httpx

from app.main import create_app
from app.settings import Settings
from bench.generate import write_trace
from bench.mixes import MIXES
from bench.pages import ANEW, page_paths
from collector.store.engine import TraceFolder
from tests.server.cluster import Cluster, programs

__all__ = ["main"]

EVENTS = 1_000_000
TIMES = 3
_ROUNDS = 8


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.server", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--mix", action="append", choices=list(MIXES), help="which mixes; may be repeated; heap and sockets together when left out"
    )
    parser.add_argument("--events", type=int, default=EVENTS, help="events of a trace (%(default)s)")
    parser.add_argument("--times", type=int, default=TIMES, help="how often each is collected, in turns; the quickest counts (%(default)s)")
    args = parser.parse_args(argv)
    found = programs()
    if found is None:
        print("PostgreSQL is not installed.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as temporary, closing(Cluster(found, settings={"max_connections": "100"})) as cluster:
        folder = Path(temporary)
        cluster.sql("CREATE DATABASE traces")
        for mix in args.mix or ["both"]:
            file = folder / f"{mix}.etl"
            write_trace(file, MIXES[mix], args.events)
            places: list[Path | str] = [folder / "database", cluster.url("traces")]
            _print_collecting(
                mix, args.events, [min(times) for times in zip(*(_collect(file, places) for _ in range(args.times)), strict=True)]
            )
            (key,) = TraceFolder(places[0]).trace_keys()
            _print_pages(asyncio.run(_ask_in_turns(places, page_paths(folder / "database", key))))
            TraceFolder(places[0]).remove_trace(key)
            file.unlink()
    return 0


def _collect(file: Path, places: Sequence[Path | str]) -> list[tuple[float, float]]:
    """Seconds, and those of the collector's processors, for each place in turn."""
    found = []
    for place in places:
        begin, used = time.perf_counter(), _processor_seconds()
        subprocess.run(
            [sys.executable, "-m", "collector.cli", "collect", str(file), "--database", str(place)], check=True, capture_output=True
        )
        found.append((time.perf_counter() - begin, _processor_seconds() - used))
    return found


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _print_collecting(mix: str, events: int, best: Sequence[tuple[float, float]]) -> None:
    (folder, folder_cpu), (server, server_cpu) = best
    print(f"\n{MIXES[mix].title}, {events:,} events\n")
    print("| collected | folder | server | ratio |\n| --- | ---: | ---: | ---: |")
    print(f"| seconds | {folder:.1f} | {server:.1f} | {server / folder:.2f} |")
    print(f"| processor of the collector, s | {folder_cpu:.1f} | {server_cpu:.1f} | {server_cpu / folder_cpu:.2f} |")


async def _ask_in_turns(places: Sequence[Path | str], paths: dict[str, str]) -> dict[str, list[float]]:
    """Milliseconds of the quickest answer to each page from each place, asked one after the other so that both meet the same machine."""
    found: dict[str, list[float]] = {}
    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                httpx.AsyncClient(
                    transport=httpx.ASGITransport(create_app(Settings(database=place))), base_url="http://127.0.0.1", timeout=60
                )
            )
            for place in places
        ]
        for name, path in paths.items():
            best = [math.inf for _ in clients]
            for _ in range(_ROUNDS):
                for n, client in enumerate(clients):
                    begin = time.perf_counter()
                    answer = await client.get(path, headers=ANEW)
                    answer.raise_for_status()
                    best[n] = min(best[n], 1000 * (time.perf_counter() - begin))
            found[name] = best
    return found


def _print_pages(answered: dict[str, list[float]]) -> None:
    print("\n| page, ms | folder | server | ratio |\n| --- | ---: | ---: | ---: |")
    for name, (folder, server) in answered.items():
        print(f"| {name} | {folder:.1f} | {server:.1f} | {server / folder:.1f} |")


if __name__ == "__main__":
    sys.exit(main())
