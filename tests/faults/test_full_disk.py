"""A disk that is really full: a small file system in memory, where the system lets one be mounted."""

import hashlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from tests.faults.folder import ROOT, collecting, in_form, story

SIZES_KB = (160, 400, 700)
"""Of the file system: too small for the catalog beside a trace, for the rows of a trace, for its indexes."""
SENDS = 4000
MANY_SENDS = 70_000
"""So many that roll-ups do not wait in memory alone."""
SPILLS_SOON = "from collector.model.rollups import SocketRollups; SocketRollups.__init__.__kwdefaults__['stretch'] = 100"
NO_RESERVE = "from collector import room; room.ROOM_BYTES = room.CHECK_BYTES = 0"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="such a file system is made by means that Windows lacks")


@pytest.fixture(params=SIZES_KB)
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={request.param}k", "tmpfs", str(path)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def collect(
    file: Path, database: Path, *, is_beside: bool = False, before: str = "", temporary: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    command = collecting(file, database, is_beside=is_beside, before=before)
    environment = os.environ | ({"TMPDIR": str(temporary)} if temporary else {})
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("is_beside", [False, True], ids=["one process", "two processes"])
def test_a_full_disk_is_said_and_leaves_no_half_trace(small_disk: Path, tmp_path: Path, *, is_beside: bool) -> None:
    good, file = story(30, 1).write(tmp_path / "good.etl"), story(SENDS, 2).write(tmp_path / "tested.etl")
    key = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    database = small_disk / "database"
    has_good = collect(good, database, is_beside=is_beside).returncode == 0
    traces = TraceFolder(database)
    digests = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in traces.traces_path.glob("*.db")} if has_good else {}

    done = collect(file, database, is_beside=is_beside)

    assert "Traceback" not in done.stderr
    if done.returncode == 0:
        assert traces.has_trace(key)
        return
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert "no space is left" in line
    assert not traces.has_trace(key)
    assert not list(database.glob("traces/*.part*"))
    assert {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in digests} == digests

    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert collect(file, database, is_beside=is_beside).returncode == 0
    assert {entry.key: entry.state for entry in Catalog(traces).entries()}[key] == "complete"
    for path in (traces.catalog_path, *traces.traces_path.glob("*.db")):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)], path


@pytest.mark.parametrize(("is_beside", "sends", "before"), [(False, SENDS, SPILLS_SOON), (True, MANY_SENDS, "")], ids=["one", "two"])
@pytest.mark.parametrize("small_disk", [160], indirect=True)
def test_a_full_disk_of_temporary_files(small_disk: Path, tmp_path: Path, sends: int, before: str, *, is_beside: bool) -> None:
    file, database = story(sends, 2).write(tmp_path / "tested.etl"), tmp_path / "database"

    done = collect(file, database, is_beside=is_beside, before=before, temporary=small_disk)

    (line,) = done.stderr.strip().splitlines()
    assert (done.returncode, f"{small_disk}: no space is left" in line, "set TMPDIR" in line) == (1, True, True)
    assert [path.name for path in (database / "traces").iterdir() if path.suffix != ".lock"] == []
    assert [entry.state for entry in Catalog(TraceFolder(database)).entries()] == ["interrupted"]
    assert collect(file, database, is_beside=is_beside).returncode == 0


@pytest.mark.parametrize(
    ("form", "before", "words"),
    [
        ("gz", "", "there is no room to unpack it: 335,544,320 bytes must be left on the disk. Free some."),
        ("gz", NO_RESERVE, "tested.etl (in tested.etl.gz): cannot be unpacked: No space left on device."),
        ("xml", "", "tested.etl.xml: its events cannot be written to the disk: No space left on device."),
    ],
    ids=["kept free", "gz", "xml"],
)
@pytest.mark.parametrize("small_disk", [700], indirect=True)
def test_a_disk_that_fills_while_a_trace_is_unpacked_or_made_of_a_text(
    small_disk: Path, tmp_path: Path, form: str, before: str, words: str
) -> None:
    database = small_disk / "database"
    assert collect(story(30, 1).write(tmp_path / "good.etl"), database).returncode == 0
    traces = TraceFolder(database)
    (good,) = traces.trace_keys()
    held = {path: path.read_bytes() for path in database.rglob("*") if path.is_file()}
    file, key = in_form(story(SENDS, 2).write(tmp_path / "tested.etl"), form)

    done = collect(file, database, before=before)

    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert line.endswith(words)
    assert {path: path.read_bytes() for path in database.rglob("*") if path.is_file()} == held
    subprocess.run(["mount", "-o", "remount,size=512m", str(small_disk)], check=True)  # of memory only what is written
    assert collect(file, database).returncode == 0
    assert traces.trace_keys() == sorted([good, key])
