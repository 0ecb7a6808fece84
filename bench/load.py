"""How a server holds out: many clients with mixed pages and notes while another trace is collected over and over.

python -m bench.load [--clients 200] [--seconds 60] [--events 100000] [--json FILE]
"""

import argparse
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.crowd import ask_for
from bench.generate import write_trace
from bench.mixes import MIXES
from bench.pages import page_paths
from collector.store.engine import TraceFolder

__all__ = ["MOST_GROWTH", "SPARE_BYTES", "Held", "Server", "hold", "main", "running_server"]

_ADDRESS = re.compile(r"sockscope is at (http://[^/]+)/")
MOST_GROWTH, SPARE_BYTES = 1.1, 16 << 20
"""Memory at the end is level where it is at most so many times that of the middle, and so much more."""
_STOP_SECONDS = 20
_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True, slots=True)
class Held:
    """What a time under load came to. Milliseconds; memory in bytes, as seen at its begin, middle and end, None where it is unknown."""

    clients: int
    seconds: float
    requests: int
    failed: int
    statuses: dict[int, int]
    errors: dict[str, int]
    p50_ms: float
    p95_ms: float
    slowest_ms: float
    notes_kept: int
    notes_lost: int
    collected: int
    memory: tuple[int | None, int | None, int | None]
    complaints: str

    @property
    def has_grown(self) -> bool:
        """Whether the server's memory went on growing after half of the time; not known is no."""
        _, middle, end = self.memory
        return middle is not None and end is not None and end > middle * MOST_GROWTH + SPARE_BYTES

    @property
    def status(self) -> int:
        """The exit status."""
        return 1 if self.failed or self.notes_lost or self.complaints or self.has_grown else 0


@dataclass
class Server:
    """A server in a process of its own; `log` is what it said on stderr, once it has ended."""

    process: "subprocess.Popen[str]"
    address: str
    log: str = ""
    memory: list[int] = field(default_factory=list)

    def resident_bytes(self) -> int | None:
        """Memory that it holds now; None where the system does not say."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        except OSError:
            return None
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS")), None)


@contextmanager
def running_server(database: Path, *options: str) -> Iterator[Server]:
    """`sockscope serve` on a free port, stopped at the end. Raises RuntimeError when it does not start."""
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, "-m", "app.cli", "serve", "--database", str(database), "--port", "0", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"})
        assert process.stdout is not None
        found = _ADDRESS.search(process.stdout.readline())
        server = Server(process, found[1] if found else "")
        try:
            if not server.address:
                raise RuntimeError("the server did not start")
            yield server
        finally:
            process.send_signal(signal.SIGINT if sys.platform != "win32" else signal.SIGTERM)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
            log.seek(0)
            server.log = log.read()


def hold(folder: Path, *, clients: int, seconds: float, events: int) -> Held:
    """Make two traces below a folder, serve one to many clients while the other is collected again and again, and count."""
    database, shown, other = folder / "database", folder / "shown.etl", folder / "other.etl"
    write_trace(shown, MIXES["noise"], events)
    write_trace(other, MIXES["winsock"], events)
    _collect(shown, database)
    key = TraceFolder(database).trace_keys()[0]
    paths = list(page_paths(database, key).values())
    over, rounds = threading.Event(), [0]

    def collect_on() -> None:
        while not over.is_set():
            _collect(other, database)
            rounds[0] += 1

    with running_server(database) as server:
        ask_for(0, address=server.address, clients=1, paths=paths, key=key)  # loads what all pages share
        collector = threading.Thread(target=collect_on)
        watcher = threading.Thread(target=_watch, args=(server, over))
        collector.start()
        watcher.start()
        try:
            asked = ask_for(seconds, address=server.address, clients=clients, paths=paths, key=key)
        finally:
            over.set()
            collector.join()
            watcher.join()
    kept = _notes(database, key)
    ordered, memory = sorted(asked.seconds) or [0.0], server.memory
    return Held(
        clients=clients, seconds=seconds, requests=asked.requests, failed=asked.failed,
        statuses=dict(sorted(asked.statuses.items())), errors=dict(asked.errors),
        p50_ms=_ms(ordered, 0.5), p95_ms=_ms(ordered, 0.95), slowest_ms=_ms(ordered, 1.0),
        notes_kept=len(asked.notes & kept), notes_lost=len(asked.notes - kept), collected=rounds[0],
        memory=(memory[0], memory[len(memory) // 2], memory[-1]) if memory else (None, None, None),
        complaints=server.log,
    )  # fmt: skip


def _collect(file: Path, database: Path) -> None:
    """Collect with the command line. Raises RuntimeError when nothing was stored."""
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "collect", str(file), "--database", str(database)], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 3):
        raise RuntimeError(f"collecting {file.name} failed: {done.stderr}")


def _watch(server: Server, over: threading.Event) -> None:
    """Look at the server's memory until it is over."""
    while True:
        if (size := server.resident_bytes()) is not None:
            server.memory.append(size)
        if over.wait(_BETWEEN_LOOKS):
            return


def _notes(database: Path, key: str) -> set[str]:
    with closing(sqlite3.connect(f"file:{TraceFolder(database).catalog_path}?mode=ro", uri=True)) as db:
        return {text for (text,) in db.execute("SELECT text FROM v_notes WHERE key = ?", (key,))}


def _ms(ordered: list[float], share: float) -> float:
    return round(ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000, 1)


def main(argv: list[str] | None = None) -> int:
    """Exit status 1 when a request failed, a note was lost or the server's memory went on growing."""
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--clients", type=int, default=200, help="clients that ask at once (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="for how long (%(default)s)")
    parser.add_argument("--events", type=int, default=100_000, help="events of each of the two traces (%(default)s)")
    parser.add_argument("--json", type=Path, help="where the numbers go, too")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        held = hold(Path(temporary), clients=args.clients, seconds=args.seconds, events=args.events)
    memory = ", ".join("unknown" if size is None else f"{size / 2**20:.0f} MiB" for size in held.memory)
    print(f"{held.clients} clients, {held.seconds:g} s: {held.requests:,} requests, {held.failed} failed; statuses {held.statuses}")
    print(f"half within {held.p50_ms:,} ms, 95 of 100 within {held.p95_ms:,} ms, the slowest {held.slowest_ms:,} ms")
    print(f"notes: {held.notes_kept} kept, {held.notes_lost} lost; the other trace was collected {held.collected} times meanwhile")
    print(f"memory of the server at begin, middle and end: {memory}{'; it went on growing' if held.has_grown else ''}")
    if held.errors or held.complaints:
        print(f"errors: {held.errors}\nthe server said:\n{held.complaints}")
    if args.json:
        args.json.write_text(json.dumps(asdict(held), indent=1) + "\n")
    return held.status


if __name__ == "__main__":
    sys.exit(main())
