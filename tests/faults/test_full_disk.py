"""A disk that is really full: a small file system in memory, where the system lets one be mounted."""

import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from tests.faults.folder import ROOT, story

SIZES_KB = (160, 400, 700)
"""Of the file system: too small for the catalog beside a trace, for the rows of a trace, for its indexes."""
SENDS = 4000


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


def collect(file: Path, database: Path, *, is_beside: bool) -> "subprocess.CompletedProcess[str]":
    code = "import sys; from collector import pipeline; from app.cli import main\n"
    code += "pipeline._is_worth_a_process = lambda source: True\n" if is_beside else ""
    code += "sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "collect", str(file), "--database", str(database)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("is_beside", [False, True], ids=["one process", "two processes"])
@pytest.mark.skipif(sys.platform == "win32", reason="such a file system is made by means that Windows lacks")
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
