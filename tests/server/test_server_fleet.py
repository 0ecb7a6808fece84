"""A cluster of workers that collects into a server; a worker, or the server, is killed while it does."""

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.cli import main
from collector.errors import StoreUnreachable
from collector.stages import Progress, ignore, never, program_version
from collector.store.catalog import Catalog
from collector.store.server import TraceServer
from tests.build import Trace, afd
from tests.server.cluster import Cluster

pytest.importorskip("distributed", reason='collecting by a cluster needs the package "distributed"')

from tests.fleet.cluster import Cluster as Workers
from tests.fleet.cluster import local_cluster, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="workers are killed by means that Windows lacks")

_COMMAND = "import sys; from app.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Five traces, each with as many sends as its name says."""
    return [
        Trace().cpu(0, afd.opened(at_us=10), *(afd.sent(at_us=100 + 10 * n) for n in range(sends))).write(tmp_path / f"{sends}.etl")
        for sends in range(1, 6)
    ]


@pytest.fixture
def server(server_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> Iterator[TraceServer]:
    """An empty database, which is the default one; traces for it are built in a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SOCKSCOPE_DATABASE", server_url)
    with closing(TraceServer(server_url)) as server:
        yield server
    if not cluster.is_running():
        cluster.start()


def _key(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


def _begin(workers: Workers, files: list[Path], project_root: Path) -> subprocess.Popen[str]:
    """The command as a process of its own."""
    command = [sys.executable, "-c", _COMMAND, "collect", "--scheduler", workers.address, *map(str, files)]
    return subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": str(project_root)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _check_all_are_whole(server: TraceServer, cluster: Cluster, database: str) -> None:
    """All five traces are there, whole, and nothing besides once what somebody left is dropped."""
    catalog = Catalog(server)
    catalog.settle()
    entries = catalog.entries()
    assert {entry.name: (entry.state, entry.operations) for entry in entries} == {
        f"{sends}.etl": ("complete", sends) for sends in range(1, 6)
    }
    assert sorted(server.trace_keys()) == sorted(entry.key for entry in entries)

    def is_swept() -> bool:
        server.clear_locks()
        return cluster.sql("SELECT count(*) FROM pg_class WHERE relname ~ '^operation_[0-9]+$'", database) == [["5"]]

    until(is_swept)


def test_workers_collect_into_a_server(
    server: TraceServer, files: list[Path], project_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = _key(files[2])
    with local_cluster(tmp_path) as workers:
        workers.add_workers(2)
        held = workers.hold_at(key)
        process = _begin(workers, files, project_root)
        victim = workers.holder(key)
        assert not server.has_trace(key)
        os.kill(victim, signal.SIGKILL)
        assert workers.holder(key) != victim
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

        assert main(["collect", "--keep", str(files[0]), "--scheduler", workers.address]) == 1
        assert "this file is collected already" in capsys.readouterr().err


@pytest.mark.parametrize("is_seen_away", [False, True], ids=["while files are decoded", "when they are done"])
def test_a_server_that_is_restarted_amid_a_run(
    server: TraceServer, cluster: Cluster, database_name: str, files: list[Path], project_root: Path, tmp_path: Path, *, is_seen_away: bool
) -> None:
    """Two workers are amid a file each, three files wait; the server is as if killed, and comes back."""
    with local_cluster(tmp_path) as workers:
        workers.add_workers(2)
        holds = {_key(file): workers.hold_at(_key(file)) for file in files}
        process = _begin(workers, files, project_root)
        until(lambda: len(list(workers.hold.glob("*.*"))) == 2)
        begun = [path.stem for path in workers.hold.glob("*.*")]
        assert server.trace_keys() == []

        cluster.stop("immediate")
        if is_seen_away:  # the two come to the server while it is away: they fail, and are begun anew
            for key in begun:
                holds[key].unlink()
            until(lambda: not list((tmp_path / "cache").rglob("*.part")))
        cluster.start()
        for held in holds.values():
            held.unlink(missing_ok=True)
        out, err = process.communicate(timeout=300)

        assert (process.returncode, len(out.splitlines())) == (0, 5), err
        assert "Traceback" not in err
        _check_all_are_whole(server, cluster, database_name)


def test_a_server_that_does_not_come_back(
    server: TraceServer, cluster: Cluster, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker says so, and its file can be collected later."""
    from collector.fleet import there
    from collector.fleet.orders import Order

    monkeypatch.setattr(there, "_AWAY_SECONDS", 0.0)
    Catalog(server)
    order = Order(0, "run", program_version(), files[0].name, str(files[0]), server.address, "fleet-1")

    def stop(progress: Progress) -> None:
        if cluster.is_running():
            cluster.stop("immediate")

    with server.collecting("fleet-1", ""):
        (outcome,) = there.collected_here(order, there.Here("w", never, stop)).outcomes
        assert isinstance(outcome.error, StoreUnreachable)
        assert "the server cannot be reached" in str(outcome.error)
        (outcome,) = there.collected_here(order, there.Here("w", never, ignore)).outcomes  # and one that begins now
        assert isinstance(outcome.error, StoreUnreachable)

    cluster.start()
    Catalog(server).settle()
    assert [(entry.name, entry.state) for entry in Catalog(server).entries()] == [("1.etl", "interrupted")]
    assert server.trace_keys() == []
    assert main(["collect", str(files[0])]) == 0
    assert [(entry.name, entry.state) for entry in Catalog(server).entries()] == [("1.etl", "complete")]
