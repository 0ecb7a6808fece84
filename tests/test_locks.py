"""The lock of a trace: one holder, nothing left behind, a killed holder's file cleared away."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from collector.errors import StoreLocked
from collector.store import locks
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder

ROOT = Path(__file__).parents[1]
HOLDER = """
import sys, time
from pathlib import Path
from collector.store import locks
with locks.held(Path(sys.argv[1]), "busy"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock `abc.db.lock` of a folder of traces."""
    (tmp_path / "traces").mkdir()
    path = tmp_path / "traces" / "abc.db.lock"
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_has_one_holder_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "abc.db.lock"
    with locks.held(path, "busy"):
        assert locks.is_held(path)
        with pytest.raises(StoreLocked, match="busy"), locks.held(path, "busy"):
            pass
    assert not path.exists()
    assert not locks.is_held(path)


def test_the_file_of_a_killed_holder_is_cleared_at_the_next_start(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    path = tmp_path / "traces" / "abc.db.lock"
    Catalog(TraceFolder(tmp_path)).settle()
    assert path.exists()
    assert locks.is_held(path)
    holder.kill()
    holder.communicate()
    assert path.exists()
    Catalog(TraceFolder(tmp_path)).settle()
    assert not path.exists()


def test_a_lock_can_be_had_while_others_clear(tmp_path: Path) -> None:
    path = tmp_path / "abc.db.lock"
    over = threading.Event()

    def clear() -> None:
        while not over.is_set():
            path.touch()
            locks.clear(path)

    clearing = threading.Thread(target=clear)
    clearing.start()
    try:
        for _ in range(200):
            with locks.held(path, "busy"):
                assert path.exists()
    finally:
        over.set()
        clearing.join()
