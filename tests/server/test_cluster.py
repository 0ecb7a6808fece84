"""The server of the tests ends with who started it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.server.cluster import programs

_STARTED = """
import os, sys
from tests.server.cluster import Cluster, programs
cluster = Cluster(programs())
print(cluster.folder, flush=True)
sys.stdin.read()
"""


def _runs(number: int) -> bool:
    """Whether a process runs; one that ended and that nobody asked for has no command line any more."""
    try:
        return bool(Path(f"/proc/{number}/cmdline").read_bytes())
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at as Linux shows them")
@pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed")
def test_a_run_that_is_killed_leaves_no_server_and_no_folder(project_root: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", _STARTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=project_root, start_new_session=True
    )
    assert run.stdout is not None
    folder = Path(run.stdout.readline().strip())
    server = int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
    assert _runs(server)

    os.killpg(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)

    end = time.monotonic() + 120
    while folder.exists() or _runs(server):
        assert time.monotonic() < end, "the server outlived the run"
        time.sleep(0.01)
