"""A folder of traces that must outlive its collectors: one finished trace that nobody may touch, one that is being collected."""

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from tests.build import Trace, afd
from tests.build.imported import collect

__all__ = ["Folder", "made_folder"]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Folder:
    """`good` is the finished trace, its file's digest taken; `file` is what the collectors under test collect, as `key`."""

    traces: TraceFolder
    good: str
    digest: str
    file: Path
    key: str

    def start(self, file: Path | None = None, *, is_beside: bool = False) -> subprocess.Popen[str]:
        """A collector of its own process group; with `is_beside`, a second process inserts the rows whatever the size of the file."""
        code = "import sys; from collector import pipeline; from app.cli import main\n"
        code += "pipeline._is_worth_a_process = lambda source: True\n" if is_beside else ""
        code += "sys.exit(main(sys.argv[1:]))"
        return subprocess.Popen(
            [sys.executable, "-c", code, "collect", str(file or self.file), "--database", str(self.traces.root)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def check(self) -> str:
        """Hold the folder to what it promises after anything; returns the state of the trace under test, `absent` if there is none."""
        catalog = Catalog(self.traces)
        catalog.settle()
        for path in (self.traces.catalog_path, *self.traces.traces_path.glob("*.db")):
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)], path
        assert hashlib.sha256(self.traces.trace_path(self.good).read_bytes()).hexdigest() == self.digest
        states = {entry.key: entry.state for entry in catalog.entries()}
        assert states[self.good] == "complete"
        state = states.get(self.key, "absent")
        assert state in ("absent", "interrupted", "complete")
        assert (state == "complete") == self.traces.has_trace(self.key)
        assert not list(self.traces.traces_path.glob("*.part*"))
        return state

    def collect_again(self) -> None:
        """The trace under test can be collected, whatever became of it before."""
        process = self.start()
        said = process.communicate(timeout=300)
        assert process.returncode == 0, said
        assert self.check() == "complete"

    def kill(self, process: subprocess.Popen[str], *, only_writer: bool = False) -> None:
        """End a collector without warning; or only the process that inserts its rows."""
        if not only_writer:
            process.kill()
            process.wait()
            return
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        for pid in children.read_text().split() if children.exists() else ():
            os.kill(int(pid), signal.SIGKILL)

    def seconds(self) -> float:
        """How long an undisturbed collection takes."""
        started = time.monotonic()
        self.collect_again()
        return time.monotonic() - started


def story(sends: int, first: int) -> Trace:
    """A socket that sends."""
    built = Trace(buffer_size=64 << 10).cpu(0, afd.opened(at_us=10))
    return built.cpu(0, *(afd.sent(at_us=1000 + 10 * n, length_bytes=first + n, buffer=0x1000) for n in range(sends)))


def made_folder(root: Path, *, sends: int) -> Folder:
    """Collect the good trace, write the other."""
    good = collect(story(50, 1).write(root / "good.etl"), root)
    file = story(sends, 2).write(root / "tested.etl")
    digest = hashlib.sha256(good.path.read_bytes()).hexdigest()
    key = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    return Folder(good.folder, good.report.key, digest, file, key)
