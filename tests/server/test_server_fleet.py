"""A cluster of workers that collects into a server; a worker is killed while it does."""

import hashlib
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from app.cli import main
from collector.store.catalog import Catalog
from collector.store.server import TraceServer
from tests.build import Trace, afd

pytest.importorskip("distributed", reason='collecting by a cluster needs the package "distributed"')

from tests.fleet.cluster import local_cluster

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="workers are killed by means that Windows lacks")

_COMMAND = "import sys; from app.cli import main; sys.exit(main(sys.argv[1:]))"


def test_workers_collect_into_a_server(
    server_url: str, project_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # traces are built in a folder of the test's own
    monkeypatch.setenv("SOCKSCOPE_DATABASE", server_url)
    files = [
        Trace().cpu(0, afd.opened(at_us=10), *(afd.sent(at_us=100 + 10 * n) for n in range(sends))).write(tmp_path / f"{sends}.etl")
        for sends in range(1, 6)
    ]
    key = hashlib.sha256(files[2].read_bytes()).hexdigest()[:12]
    with local_cluster(tmp_path) as cluster, closing(TraceServer(server_url)) as server:
        cluster.add_workers(2)
        held = cluster.hold_at(key)
        command = [sys.executable, "-c", _COMMAND, "collect", "--scheduler", cluster.address, *map(str, files)]
        environment = os.environ | {"PYTHONPATH": str(project_root)}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        victim = cluster.holder(key)
        assert not server.has_trace(key)
        os.kill(victim, signal.SIGKILL)
        assert cluster.holder(key) != victim
        held.unlink()
        out, err = process.communicate(timeout=300)

        assert process.returncode == 0, err
        assert len(out.splitlines()) == 5
        assert "3.etl: the worker that collected it was lost; now it is collected by tcp://127.0.0.1:" in err
        entries = Catalog(server).entries()
        assert {entry.name: (entry.state, entry.operations) for entry in entries} == {
            f"{sends}.etl": ("complete", sends) for sends in range(1, 6)
        }
        assert sorted(server.trace_keys()) == sorted(entry.key for entry in entries)

        assert main(["collect", "--keep", str(files[0]), "--scheduler", cluster.address]) == 1
        assert "this file is collected already" in capsys.readouterr().err
