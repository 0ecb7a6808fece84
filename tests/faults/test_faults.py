"""Each fault that can meet a collector; afterwards the folder keeps its promises and the trace can be collected again."""

import contextlib
import os
import random
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.cli import main
from collector import room
from collector.errors import SourceError
from collector.packages import unpacking
from collector.pipeline import import_trace
from collector.source import Source
from collector.store import catalog as catalog_module
from tests.faults.folder import FORMS, Folder, collecting, made_folder, story, writers

KILLS = int(os.environ.get("SOCKSCOPE_KILLS", "2"))
SENDS = 4000

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the faults are made by means that Windows lacks")


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    return made_folder(tmp_path, sends=SENDS, form=getattr(request, "param", "etl"))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="what a collector does is seen in /proc")
@pytest.mark.parametrize(
    ("victim", "folder"),
    [("collector", "etl"), ("collector", "gz"), ("collector", "xml"), ("reader", "etl"), ("writer", "etl"), ("both", "etl")],
    indirect=["folder"],
)
def test_kills_at_random_moments(folder: Folder, victim: str) -> None:
    """The reader is the collector while another process inserts its rows, the writer is that process."""
    is_beside = victim != "collector"
    longest = folder.seconds(is_beside=is_beside)
    moments = random.Random(f"{victim} of {folder.file.name}")
    met = 0
    for _ in range(10 + 5 * KILLS):
        process = folder.begun(is_beside=is_beside)
        time.sleep(moments.uniform(0, 0.9) * longest)
        if victim == "writer":
            while not (pids := writers(process)) and process.poll() is None:  # it begins after the collector
                time.sleep(0.005)
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        elif victim == "both":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        _, error = process.communicate(timeout=300)
        assert "Traceback" not in error
        assert folder.check() == "complete"  # the trace of the first collection is there whatever became of the later ones
        was_met = process.returncode != 0 if victim == "writer" else process.returncode == -signal.SIGKILL
        met += was_met
        longest *= 1 if was_met else 0.8  # it was done before: now it takes less time than when it was measured
        if met == KILLS:
            break
    assert met == KILLS, "too few kills met a collector at its work"
    folder.collect_again()


@pytest.mark.parametrize(
    ("folder", "killed_at"),
    [
        ("gz", ("collector.packages.unpacking._write", 1)),
        ("gz", ("collector.packages.unpacking._write", 4)),
        ("xml", ("collector.texts.transcript.Transcript.add", SENDS)),
        ("xml", ("collector.texts.transcript.EtlWriter.add_buffer", 4)),
    ],
    indirect=["folder"],
    ids=lambda value: value if isinstance(value, str) else f"{value[0].rpartition('.')[2]} {value[1]}",
)
def test_killed_while_a_trace_is_unpacked_or_made_of_a_text(folder: Folder, killed_at: tuple[str, int]) -> None:
    process = folder.start(killed_at=killed_at)
    said = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL, said
    assert folder.check() == "absent"
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


@pytest.mark.parametrize(
    ("folder", "limit_kb", "words"),
    [
        *(("etl", kb, "reading or writing failed (disk I/O error). Check the disk.") for kb in (64, 200, 400)),
        *(("gz", kb, "tested.etl (in tested.etl.gz): cannot be unpacked: File too large.") for kb in (64, 400)),
        *(("xml", kb, "tested.etl.xml: its events cannot be written to the disk: File too large.") for kb in (64, 400)),
    ],
    indirect=["folder"],
    ids=lambda value: "" if " " in str(value) else str(value),
)
def test_no_space_left(folder: Folder, limit_kb: int, words: str) -> None:
    """A limit on the size of files stands for a full disk: a write fails half-way."""
    before = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    before += f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit_kb << 10}, {limit_kb << 10}))"
    done = subprocess.run(collecting(folder.file, folder.traces.root, before=before), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert words in line
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


@pytest.mark.parametrize("folder", [form for form in FORMS if form != "etl"], indirect=True)
def test_a_read_error_while_a_trace_is_unpacked_or_made_of_a_text(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    size = folder.file.stat().st_size

    class Failing(Source):
        def read_at(self, offset: int, size_bytes: int) -> bytes:
            if self.name == folder.file.name and offset + size_bytes > size // 2:
                raise SourceError(f"{self.name}: reading {size_bytes:,} bytes at byte {offset:,} failed: Input/output error.")
            return super().read_at(offset, size_bytes)

    monkeypatch.setattr(unpacking, "Source", Failing)
    assert main(["collect", str(folder.file), "--database", str(folder.traces.root)]) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(f"{folder.file.name}: reading ")
    assert line.endswith("failed: Input/output error.")
    assert folder.check() == "absent"
    monkeypatch.undo()
    folder.collect_again()


@pytest.mark.parametrize("folder", ["xml"], indirect=True)
def test_a_text_is_not_made_into_records_on_a_disk_without_room(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(room, "CHECK_BYTES", 100_000)
    monkeypatch.setattr(room, "ROOM_BYTES", 1_000_000)
    for free, status in ((1_000_000 + 99_999, 1), (1 << 40, 0)):
        monkeypatch.setattr("collector.room.shutil.disk_usage", lambda place, free=free: SimpleNamespace(free=free))
        assert main(["collect", str(folder.file), "--database", str(folder.traces.root)]) == status
        first = capsys.readouterr().err.splitlines()[0]
        if status:
            assert re.fullmatch(
                r"tested\.etl\.xml: its events cannot be written to the disk: there is no room: 1,1\d\d,\d{3} bytes .* free\.", first
            )
            assert folder.check() == "absent"
    assert folder.check() == "complete"


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
