"""Each fault that can meet a collector; afterwards the folder keeps its promises and the trace can be collected again."""

import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from collector.errors import SourceError
from collector.pipeline import import_trace
from collector.source import Source
from collector.store import catalog as catalog_module
from tests.faults.folder import Folder, made_folder, story

KILLS = int(os.environ.get("SOCKSCOPE_KILLS", "2"))
SENDS = 4000

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the faults are made by means that Windows lacks")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return made_folder(tmp_path, sends=SENDS)


@pytest.mark.parametrize("victim", ["collector", "writer", "both"])
def test_kills_at_random_moments(folder: Folder, victim: str) -> None:
    longest = folder.seconds()
    moments = random.Random(victim)
    states = []
    for _ in range(KILLS):
        process = folder.start(is_beside=victim != "collector")
        time.sleep(moments.uniform(0.1, 1.1) * longest)
        if victim == "both":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            folder.kill(process, only_writer=victim == "writer")
        process.communicate(timeout=300)
        states.append(folder.check())
    assert states == ["complete"] * KILLS  # the trace of the first collection is there whatever became of the later ones
    folder.collect_again()


@pytest.mark.parametrize("is_beside", [False, True])
def test_a_trace_killed_in_its_first_collection_is_interrupted(folder: Folder, *, is_beside: bool) -> None:
    process = folder.start(is_beside=is_beside)
    part = folder.traces.part_path(folder.key)
    while process.poll() is None and not part.exists():
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=300)
    assert folder.check() == "interrupted"
    folder.collect_again()


@pytest.mark.parametrize("limit_kb", [64, 200, 400])
def test_no_space_left(folder: Folder, limit_kb: int) -> None:
    """A limit on the size of files stands for a full disk: a write fails half-way."""
    code = "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    code += f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit_kb << 10}, {limit_kb << 10}))\n"
    code += "from app.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "collect", str(folder.file), "--database", str(folder.traces.root)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert folder.check() in ("absent", "interrupted")
    folder.collect_again()


class _Failing(Source):
    """A file on a disk that fails beyond some byte."""

    def read_into(self, offset: int, memory: memoryview) -> int:
        if offset + len(memory) > 100_000:
            raise SourceError(f"{self.name}: reading {len(memory):,} bytes at byte {offset:,} failed: Input/output error.")
        return super().read_into(offset, memory)


def test_a_read_error(folder: Folder) -> None:
    with _Failing.open(folder.file) as source, pytest.raises(SourceError, match="Input/output error"):
        import_trace(source, folder.traces)
    assert folder.check() in ("absent", "interrupted")
    folder.collect_again()


def test_a_locked_catalog_is_said_in_one_line(folder: Folder) -> None:
    other = sqlite3.connect(folder.traces.catalog_path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    process = folder.start()
    _, error = process.communicate(timeout=300)
    other.close()
    assert process.returncode == 1
    assert "another program holds this database" in error
    assert "Traceback" not in error
    folder.check()
    folder.collect_again()


def test_collectors_of_different_files_at_once(folder: Folder, tmp_path: Path) -> None:
    others = [story(500 + n, 3).write(tmp_path / f"other{n}.etl") for n in range(2)]
    processes = [folder.start(file) for file in (*others, folder.file)]
    ended = [(process.communicate(timeout=300), process.returncode) for process in processes]
    assert [status for _, status in ended] == [0, 0, 0], ended
    assert folder.check() == "complete"
    assert len(list(folder.traces.trace_keys())) == 4


def test_collectors_of_one_file_at_once(folder: Folder) -> None:
    processes = [folder.start() for _ in range(3)]
    ended = [(process.communicate(timeout=300)[1], process.returncode) for process in processes]
    assert 0 in [status for _, status in ended]
    for error, status in ended:
        assert status == 0 or "another collector is collecting this file now" in error
    assert folder.check() == "complete"


def test_a_file_that_is_still_being_written(folder: Folder, tmp_path: Path) -> None:
    content = folder.file.read_bytes()
    growing = tmp_path / "growing.etl"
    growing.write_bytes(content[: 2 * (64 << 10) + 5000])
    process = folder.start(growing)
    with growing.open("ab") as file:
        for at in range(2 * (64 << 10) + 5000, len(content), 50_000):
            file.write(content[at : at + 50_000])
            file.flush()
            time.sleep(0.02)
    _, error = process.communicate(timeout=300)
    assert process.returncode in (0, 3), error
    assert "Traceback" not in error
    folder.check()
    folder.collect_again()


@pytest.mark.parametrize("how", ["replaced", "emptied", "overwritten", "removed"])
def test_a_file_that_changes_meanwhile(folder: Folder, tmp_path: Path, how: str) -> None:
    content = folder.file.read_bytes()
    changing = tmp_path / "changing.etl"
    changing.write_bytes(content)
    process = folder.start(changing)
    while process.poll() is None and not any(folder.traces.traces_path.glob("*.part")):
        time.sleep(0.005)
    if how == "replaced":
        story(10, 9).write(tmp_path / "new.etl").replace(changing)
    elif how == "emptied":
        changing.write_bytes(b"")
    elif how == "overwritten":
        with changing.open("r+b") as file:
            file.write(bytes(len(content)))
    else:
        changing.unlink()
    _, error = process.communicate(timeout=300)
    assert process.returncode in (0, 1, 3)
    assert "Traceback" not in error
    folder.check()
    folder.collect_again()


def test_a_clock_that_goes_back(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(f"20{year:02}-01-01T00:00:00+00:00" for year in range(99, 0, -1))
    monkeypatch.setattr(catalog_module, "now_utc", lambda: next(times))
    for _ in range(2):
        with Source.open(folder.file) as source:
            import_trace(source, folder.traces)
        assert folder.check() == "complete"


def test_no_memory_left(folder: Folder) -> None:
    """Too little memory ends in a message or in an interrupted trace, never in half of one."""
    limit = 600 << 20

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "collect", str(folder.file), "--database", str(folder.traces.root)],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=limited,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (folder.check() == "complete") == (done.returncode in (0, 3))
    folder.collect_again()
