"""A folder of traces that must outlive its collectors: one finished trace that nobody may touch, one that is being collected."""

import hashlib
import os
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
from tests.build.event_xml import event_xml
from tests.build.imported import collect
from tests.build.packages import gzip_of

__all__ = ["FORMS", "Folder", "collecting", "in_form", "made_folder", "story", "writers"]

ROOT = Path(__file__).parents[2]
FORMS = ("etl", "gz", "xml")
"""A trace as it was recorded, packed, and as a text: the latter two are written to the disk as an ETL file first."""
_BESIDE = "from collector import pipeline; pipeline._is_worth_a_process = lambda source: True"
_KILLED = """
import os, pkgutil, signal
place, _, name = sys.argv.pop(1).rpartition(".")
place, calls = pkgutil.resolve_name(place), iter(range(int(sys.argv.pop(1)) - 1))
whole = getattr(place, name)
def call(*words, **more):
    if next(calls, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(*words, **more)
setattr(place, name, call)
"""


@dataclass(frozen=True)
class Folder:
    """`good` is the finished trace, its file's digest taken; `file` is what the collectors under test collect, as `key`."""

    traces: TraceFolder
    good: str
    digest: str
    file: Path
    key: str

    def start(
        self, file: Path | None = None, *, is_beside: bool = False, killed_at: tuple[str, int] | None = None
    ) -> subprocess.Popen[str]:
        """A collector of its own process group.

        With `is_beside`, a second process inserts the rows whatever the size of the file. `killed_at` is a function, and which call of
        it kills the collector before anything of it is done.
        """
        return subprocess.Popen(
            collecting(file or self.file, self.traces.root, is_beside=is_beside, killed_at=killed_at),
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
        assert [path.name for path in self.traces.root.iterdir() if not path.name.startswith("catalog.")] == ["traces"]
        return state

    def collect_again(self) -> None:
        """The trace under test can be collected, whatever became of it before."""
        process = self.start()
        said = process.communicate(timeout=300)
        assert process.returncode == 0, said
        assert self.check() == "complete"

    def begun(self, *, is_beside: bool) -> subprocess.Popen[str]:
        """A collector at work: it has the process that inserts its rows, or without one what it unpacks to, or the trace that it writes."""
        process = self.start(is_beside=is_beside)
        part = self.traces.part_path(self.key)
        while process.poll() is None and not (writers(process) if is_beside else part.exists() or has_nameless_file(process)):
            time.sleep(0.002)
        return process

    def seconds(self, *, is_beside: bool) -> float:
        """How long an undisturbed collection takes from when it has begun."""
        process = self.begun(is_beside=is_beside)
        started = time.monotonic()
        said = process.communicate(timeout=300)
        assert process.returncode == 0, said
        return time.monotonic() - started


def story(sends: int, first: int) -> Trace:
    """A socket that sends."""
    built = Trace(buffer_size=64 << 10).cpu(0, afd.opened(at_us=10))
    return built.cpu(0, *(afd.sent(at_us=1000 + 10 * n, length_bytes=first + n, buffer=0x1000) for n in range(sends)))


def in_form(file: Path, form: str) -> tuple[Path, str]:
    """An ETL file in one of the forms, beside it, and the key of its trace."""
    content = file.read_bytes()
    if form == "xml":
        content = event_xml(file).encode()
    key = hashlib.sha256(content).hexdigest()[:12]
    if form != "etl":
        file = file.with_name(f"{file.name}.{form}")
        file.write_bytes(gzip_of(content) if form == "gz" else content)
    return file, key


def made_folder(root: Path, *, sends: int, form: str = "etl") -> Folder:
    """Collect the good trace, write the other."""
    good = collect(story(50, 1).write(root / "good.etl"), root)
    file, key = in_form(story(sends, 2).write(root / "tested.etl"), form)
    digest = hashlib.sha256(good.path.read_bytes()).hexdigest()
    return Folder(good.folder, good.report.key, digest, file, key)


def collecting(
    file: Path, database: Path, *, is_beside: bool = False, killed_at: tuple[str, int] | None = None, before: str = ""
) -> list[str]:
    """The command that collects a file; see `Folder.start`. `before` is done first."""
    lines = ["import sys", before, _BESIDE if is_beside else "", _KILLED if killed_at else "", "from app.cli import main"]
    words = ["collect", str(file), "--database", str(database)]
    return [sys.executable, "-c", "\n".join([*lines, "sys.exit(main(sys.argv[1:]))"]), *map(str, killed_at or ()), *words]


def has_nameless_file(process: subprocess.Popen[str]) -> bool:
    """Whether a process has a file open that no folder lists."""
    try:
        return any(str(file.readlink()).endswith(" (deleted)") for file in Path(f"/proc/{process.pid}/fd").iterdir())
    except OSError:  # it has ended, or closed one at this moment
        return False


def writers(process: subprocess.Popen[str]) -> list[int]:
    """The processes that a collector has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        return [int(pid) for pid in children.read_text().split()]
    except OSError:
        return []
