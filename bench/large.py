"""A large file: how much memory collecting it takes, and how soon it ends when it is cancelled at any moment.

    python -m bench.large FILE [--moments N] [--within SECONDS] [--seed N]
    python -m bench.generate both 28000000 FILE     makes one of 3 GB, 74000000 one of 8 GB

First the whole file is collected, unless `--within` says from how long a stretch at the start the moments are drawn. Each cancelled
collection must leave a database that opens, whose other traces are there, and no unfinished file.
"""

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from bench.generate import write_trace
from bench.measure import anonymous_of_all, family_of
from bench.mixes import MIXES
from collector.store.engine import TraceFolder

__all__ = ["main"]

_LOOK_SECONDS = 0.05
_OTHER_EVENTS = 2000
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.large", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", type=Path)
    parser.add_argument("--moments", type=int, default=10, help="how often it is cancelled (%(default)s)")
    parser.add_argument("--within", type=float, help="draw the moments from so many seconds after the start")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=args.file.parent) as root:
        folder = TraceFolder(Path(root) / "database")
        other = Path(root) / "other.etl"
        write_trace(other, MIXES["noise"], _OTHER_EVENTS)
        _collect(other, folder)
        within = args.within
        if within is None:
            within, status, peak = _collect(args.file, folder)
            print(f"whole: {within:.0f} s, exit status {status}, at most {peak / 1e6:.0f} MB, load {_load():.0f}", flush=True)
        drawn = random.Random(args.seed)
        slowest, dearest, highest = 0.0, 0.0, 0
        for number in range(args.moments):
            moment = drawn.uniform(0, within)
            asked = _Asked(_SIGNALS[number % 2], moment)
            _, status, peak = _collect(args.file, folder, asked)
            took, used = asked.since()
            wrong = _wrong_with(folder)
            print(
                f"asked after {moment:6.1f} s: ended {took:.2f} s later, {used:.2f} of the processors; exit status {status}, "
                f"{peak / 1e6:.0f} MB{wrong and ', ' + wrong}",
                flush=True,
            )
            slowest, dearest, highest = max(slowest, took), max(dearest, used), max(highest, peak)
            if wrong:
                return 1
        if args.moments:
            print(
                f"{args.moments} cancelled, the slowest in {slowest:.2f} s, at most {dearest:.2f} s of the processors; "
                f"at most {highest / 1e6:.0f} MB; load {_load():.0f}"
            )
    return 0


class _Asked:
    """Sends one signal at its moment, and knows what it took from then on."""

    def __init__(self, number: signal.Signals, moment: float) -> None:
        self._number, self._moment = number, moment
        self._at: float | None = None
        self._used = _used_by_ended()

    def ask(self, process: "subprocess.Popen[bytes]", seconds: float) -> None:
        if self._at is None and seconds >= self._moment:
            self._used += sum(map(_used_by, family_of(process.pid)))
            self._at = time.monotonic()
            process.send_signal(self._number)

    def since(self) -> tuple[float, float]:
        """Seconds until now, and those of the processors; 0 where the collection ended before the moment came.

        The collector and the process that inserts rows count together: both work until the second one is ended.
        """
        return (time.monotonic() - self._at, _used_by_ended() - self._used) if self._at is not None else (0.0, 0.0)


def _used_by_ended() -> float:
    used = os.times()
    return used.children_user + used.children_system


def _used_by(pid: int) -> float:
    """Seconds of the processors that a process has used, with its children that have ended; 0 where that is unknown."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _collect(file: Path, folder: TraceFolder, asked: _Asked | None = None) -> tuple[float, int, int]:
    """Seconds, exit status, and the most anonymous memory of the collector and its process together."""
    command = [sys.executable, "-m", "app.cli", "collect", str(file), "--database", str(folder.root)]
    begin, highest = time.monotonic(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            highest = max(highest, anonymous_of_all(process.pid))
            if asked is not None:
                asked.ask(process, time.monotonic() - begin)
            time.sleep(_LOOK_SECONDS)
    return time.monotonic() - begin, process.returncode, highest


def _load() -> float:
    return os.getloadavg()[0]


def _wrong_with(folder: TraceFolder) -> str:
    """What a cancelled collection left in disorder; nothing if all is well."""
    checks: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("an unfinished file is left", lambda: not [*folder.traces_path.glob("*.part*")]),
        ("the catalog is damaged", lambda: _is_sound(folder.catalog_path)),
        ("a trace is damaged", lambda: all(_is_sound(folder.trace_path(key)) for key in folder.trace_keys())),
        ("a trace is still said to be collected", lambda: "collecting" not in _states(folder)),
    )
    return "; ".join(words for words, is_right in checks if not is_right())


def _is_sound(path: Path) -> bool:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        found: str = db.execute("SELECT name FROM sqlite_master LIMIT 1").fetchone() and db.execute("PRAGMA quick_check(1)").fetchone()[0]
        return found == "ok"


def _states(folder: TraceFolder) -> list[str]:
    with closing(sqlite3.connect(f"file:{folder.catalog_path}?mode=ro", uri=True)) as db:
        return [state for (state,) in db.execute("SELECT state FROM trace_entry")]


if __name__ == "__main__":
    sys.exit(main())
