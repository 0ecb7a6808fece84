"""Measures a PostgreSQL server against a folder: collecting the same traces into both, and the pages of both, in turns.

    python -m bench.server [--mix MIX] [--events N] [--times N]

The server is one of the bench's own, in a temporary folder, with the settings that PostgreSQL comes with.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from bench.generate import write_trace
from bench.mixes import MIXES
from bench.pages import measure_paths, page_paths
from collector.store.engine import TraceFolder
from tests.server.cluster import Cluster, programs

__all__ = ["main"]

EVENTS = 1_000_000
TIMES = 3


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.server", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mix", action="append", choices=list(MIXES), help="which mixes; may be repeated; both when left out")
    parser.add_argument("--events", type=int, default=EVENTS, help="events of a trace (%(default)s)")
    parser.add_argument("--times", type=int, default=TIMES, help="how often each is collected, in turns; the best counts (%(default)s)")
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
            _print_pages([measure_paths(place, page_paths(folder / "database", key)) for place in places])
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


def _print_pages(both: Sequence[dict[str, dict[str, float | int]]]) -> None:
    """Half of the answers of each page, in milliseconds."""
    folder, server = both
    print("\n| page, ms | folder | server | ratio |\n| --- | ---: | ---: | ---: |")
    for name, page in folder.items():
        other = server[name]
        if (page["status"], other["status"]) != (200, 200):
            print(f"| {name} | status {page['status']} | status {other['status']} | |")
            continue
        print(f"| {name} | {page['p50']} | {other['p50']} | {other['p50'] / max(page['p50'], 0.1):.1f} |")


if __name__ == "__main__":
    sys.exit(main())
