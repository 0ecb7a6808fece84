"""Several traces collected by the workers of a cluster on this machine, against one plain collect of the same files.

python -m bench.fleet [--events 300000] [--workers 1 2 4] [--runs 2] [--json FILE]
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from distributed import Client

from bench.generate import write_trace
from bench.mixes import MIXES

__all__ = ["Collected", "main"]

TRACES = 8
_ROOT = Path(__file__).parents[1]
_WAIT_SECONDS = 60.0
_COLLECT = "import sys; from app.cli import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True, slots=True)
class Collected:
    """All files collected once. `cpu` is processor time of whoever decodes and inserts."""

    how: str
    seconds: float
    cpu: float


def main(argv: Sequence[str] | None = None) -> int:
    """Write the traces, collect them in each way, print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.fleet", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=300_000, help="events of the smallest trace (default: %(default)s)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="how many workers, one after the other (default: 1 2 4)")
    parser.add_argument("--runs", type=int, default=2, help="each way so often; the quickest counts (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        files, events = _written(place, args.events)
        ways = [("plain", 0), *((f"{count} worker{'s' if count > 1 else ''}", count) for count in args.workers)]
        best: dict[str, Collected] = {}
        for run in range(args.runs):
            for how, count in ways:  # in turn, so that what else the machine does meets all
                database = place / f"database{run}-{count}"
                print(f"… {how}", file=sys.stderr)
                found = _plain(how, files, database) if not count else _by_workers(how, count, files, database, place)
                best[how] = min(best.get(how, found), found, key=lambda each: each.seconds)
    _print(list(best.values()), events, sum(file_bytes for _, file_bytes in files))
    if args.json is not None:
        args.json.write_text(json.dumps({"events": events, "ways": [asdict(found) for found in best.values()]}, indent=1) + "\n")
    return 0


def _written(place: Path, events: int) -> tuple[list[tuple[Path, int]], int]:
    """Traces of all mixes in turn, no two alike, with their sizes; and how many records they have together."""
    files, total = [], 0
    names = list(MIXES)
    for n in range(TRACES):
        path = place / f"{n}.etl"
        total += sum(write_trace(path, MIXES[names[n % len(names)]], events + n * events // 20).values())
        files.append((path, path.stat().st_size))
    return files, total


def _plain(how: str, files: Sequence[tuple[Path, int]], database: Path) -> Collected:
    begin = time.monotonic()
    process = _collect(files, database)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - begin
    if process.returncode:
        raise RuntimeError(f"{how}: exit status {process.returncode}")
    return Collected(how, seconds, used.ru_utime + used.ru_stime)


def _by_workers(how: str, count: int, files: Sequence[tuple[Path, int]], database: Path, place: Path) -> Collected:
    with _cluster(place, count) as (address, workers):
        before = sum(map(_used, workers))
        begin = time.monotonic()
        process = _collect(files, database, "--scheduler", address)
        status = process.wait()
        seconds = time.monotonic() - begin
        if status:
            raise RuntimeError(f"{how}: exit status {status}")
        return Collected(how, seconds, sum(map(_used, workers)) - before)


def _collect(files: Sequence[tuple[Path, int]], database: Path, *words: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", _COLLECT, "collect", *(str(path) for path, _ in files), "--database", str(database), *words],
        env=_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextlib.contextmanager
def _cluster(place: Path, count: int) -> Iterator[tuple[str, list[int]]]:
    """A scheduler and workers of one thread, all modules loaded; the address, and the processes of the workers."""
    said = place / f"scheduler{count}.json"
    said.unlink(missing_ok=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_running("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(said)))
        while not (said.exists() and said.read_text().endswith("}")):
            time.sleep(0.05)
        address = json.loads(said.read_text())["address"]
        words = ("dask_worker", address, "--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--local-directory", str(place))
        workers = [stack.enter_context(_running(*words)) for _ in range(count)]
        asyncio.run(_ready(address, count))
        yield address, workers


async def _ready(address: str, count: int) -> None:
    async with Client(address, asynchronous=True, set_as_default=False) as client:
        await client.wait_for_workers(count, timeout=_WAIT_SECONDS)
        await client.run(_load)


def _load() -> None:
    """Load what a worker needs, as it has after its first file."""
    import collector.fleet.there  # noqa: F401


@contextlib.contextmanager
def _running(program: str, *words: str) -> Iterator[int]:
    command = [sys.executable, "-m", f"distributed.cli.{program}", *words, "--no-dashboard"]
    with subprocess.Popen(command, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(_ROOT)}


def _used(pid: int) -> float:
    """Processor time of a process and of those that it started and that have ended, s."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _print(found: Sequence[Collected], events: int, size: int) -> None:
    processors = os.cpu_count() or 1
    plain = found[0]
    print(f"{TRACES} traces, {events:,} records, {size / 1e6:,.0f} MB; {processors} processors\n")
    print("| | s | records/s | MB/s | of plain's rate | processor s | of the processors' time |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for each in found:
        print(
            f"| {each.how} | {each.seconds:.1f} | {events / each.seconds:,.0f} | {size / 1e6 / each.seconds:.0f} "
            f"| {plain.seconds / each.seconds:.2f} | {each.cpu:.1f} | {100 * each.cpu / processors / each.seconds:.0f} % |"
        )


if __name__ == "__main__":
    sys.exit(main())
