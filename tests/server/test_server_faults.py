"""Collectors and servers that end in the middle: nothing is half visible, and what is left goes away by itself."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, func, select
from sqlalchemy.pool import NullPool

from collector.errors import CollectCancelled, StoreLocked, StoreUnreachable
from collector.pipeline import import_trace
from collector.source import Source
from collector.stages import Progress
from collector.store import server as server_module
from collector.store.catalog import Catalog
from collector.store.server import TraceServer
from collector.store.tables import THIS_TRACE, socket
from tests.build import Trace, afd
from tests.server.cluster import Cluster

_WAIT_SECONDS = 120


@pytest.fixture(autouse=True)
def _running(cluster: Cluster) -> Iterator[None]:
    """The server runs after each test, whatever became of it."""
    yield
    if not cluster.is_running():
        cluster.start()


@pytest.fixture
def server(server_url: str, tmp_path: Path) -> Iterator[TraceServer]:
    """A server whose traces are built in a folder of the test's own."""
    with closing(TraceServer(server_url, building=tmp_path / "building")) as server:
        yield server


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A small trace."""
    return Trace().cpu(0, afd.opened(at_us=10), afd.connected(at_us=50), afd.sent(at_us=100)).write(tmp_path / "small.etl")


def _collect(server: TraceServer, file: Path, on_progress: Callable[[Progress], None] = lambda progress: None) -> str:
    with Source.open(file) as source:
        return import_trace(source, server, on_progress).key


def _until(is_so: Callable[[], bool]) -> None:
    """Wait for what another process does by itself."""
    end = time.monotonic() + _WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


def _parts(cluster: Cluster, database: str) -> int:
    """How many partitions there are, attached or not."""
    return int(cluster.sql("SELECT count(*) FROM pg_class WHERE relname ~ '^operation_[0-9]+$'", database)[0][0])


def _comes_to(server: TraceServer, count: Callable[[], int], wanted: int) -> None:
    """A sweep leaves what takes too long, on a busy machine, to the next one."""

    def is_so() -> bool:
        Catalog(server).settle()
        return count() == wanted

    _until(is_so)


def test_a_server_that_is_killed_amid_a_load(
    server: TraceServer, file: Path, cluster: Cluster, database_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = _collect(server, file)
    before = server.number_of(key)

    def killed(*_: object) -> None:
        cluster.stop("immediate")

    monkeypatch.setattr(server_module, "attach_partitions", killed)
    with pytest.raises(StoreUnreachable, match=r"ended the connection|cannot be reached"):
        _collect(server, file)
    monkeypatch.undo()
    cluster.start()

    assert server.number_of(key) == before
    assert not server.is_being_collected(key)
    catalog = Catalog(server)
    assert catalog.find(key).state == "collecting"  # nobody could write down that it ended
    catalog.settle()
    assert (catalog.find(key).state, catalog.find(key).sockets) == ("complete", 1)
    _comes_to(server, lambda: _parts(cluster, database_name), 1)
    assert _collect(server, file) == key
    assert server.number_of(key) != before


def test_a_server_that_is_restarted_while_a_trace_is_decoded(server: TraceServer, file: Path, cluster: Cluster) -> None:
    stages: list[str] = []

    def restart(progress: Progress) -> None:
        if not stages:
            cluster.stop("immediate")
            cluster.start()
        stages.append(progress.stage)

    key = _collect(server, file, restart)

    assert Catalog(server).find(key).state == "complete"


def test_a_lock_that_somebody_took_while_the_server_was_restarted(
    server: TraceServer, file: Path, cluster: Cluster, tmp_path: Path
) -> None:
    key = _collect(server, file)
    other = TraceServer(server.url.render_as_string(hide_password=False), building=tmp_path / "elsewhere")
    with closing(other), server.collecting(key, "busy"):
        cluster.restart()
        with other.collecting(key, "busy"), pytest.raises(StoreLocked, match="another collector collects this trace now"):
            server.place(key)


def test_a_server_that_is_stopped_before_a_trace_is_placed(server: TraceServer, file: Path, cluster: Cluster) -> None:
    def stop(progress: Progress) -> None:
        if cluster.is_running():
            cluster.stop("immediate")

    with pytest.raises(StoreUnreachable, match="cannot be reached"):
        _collect(server, file, stop)
    cluster.start()

    catalog = Catalog(server)
    catalog.settle()
    (entry,) = catalog.entries()
    assert entry.state == "interrupted"
    assert _collect(server, file) == entry.key


_KILLED = """
import os, signal, sys
from pathlib import Path
from collector.pipeline import import_trace
from collector.source import Source
from collector.store import server
def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)
server.{step} = killed
import_trace(Source.open(Path(sys.argv[2])), server.TraceServer(sys.argv[1], building=Path(sys.argv[3])))
"""


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("step", ["load_rows", "attach_partitions", "remove_part"])
def test_a_collector_that_is_killed(
    server: TraceServer, server_url: str, file: Path, cluster: Cluster, database_name: str, tmp_path: Path, step: str, is_first: bool
) -> None:
    key = None if is_first else _collect(server, file)
    building = tmp_path / "building"

    done = subprocess.run([sys.executable, "-c", _KILLED.format(step=step), server_url, str(file), str(building)], timeout=120)
    assert done.returncode == -signal.SIGKILL

    catalog = Catalog(server)
    (entry,) = catalog.entries()
    assert entry.state == "collecting"
    _until(lambda: not server.is_being_collected(entry.key))
    catalog.settle()
    (entry,) = catalog.entries()
    is_placed = step == "remove_part"  # then the rows were there, and the entry alone was missing
    assert entry.state == ("interrupted" if is_first and not is_placed else "complete")
    assert entry.key == key or is_first
    assert [path.name for path in building.iterdir()] == []
    _comes_to(server, lambda: _parts(cluster, database_name), 0 if entry.state == "interrupted" else 1)
    assert _collect(server, file) == entry.key
    assert Catalog(server).find(entry.key).sockets == 1
    _comes_to(server, lambda: _parts(cluster, database_name), 1)


def test_the_same_file_by_two_machines(server: TraceServer, server_url: str, file: Path, tmp_path: Path) -> None:
    key = _collect(server, file)
    with closing(TraceServer(server_url, building=tmp_path / "elsewhere")) as other, other.collecting(key, "busy"):
        assert server.is_being_collected(key)
        with pytest.raises(StoreLocked, match="another collector is collecting this file now"):
            _collect(server, file)
        with pytest.raises(StoreLocked, match="is being collected"):
            Catalog(server).remove(key)

    assert not server.is_being_collected(key)
    Catalog(server).remove(key)
    assert server.trace_keys() == []


def test_several_collectors_at_once(server: TraceServer, server_url: str, tmp_path: Path, cluster: Cluster, database_name: str) -> None:
    files = [
        Trace().cpu(0, *(afd.opened(at_us=10 * n, endpoint=0xE0 + n) for n in range(1, count))).write(tmp_path / f"{count}.etl")
        for count in range(2, 6)
    ]
    collectors = [
        subprocess.Popen([sys.executable, "-m", "collector.cli", "collect", str(file), str(file), "--database", server_url],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for file in files
    ]  # fmt: skip
    for collector in collectors:
        said = collector.communicate(timeout=300)
        assert collector.returncode == 0, said

    entries = Catalog(server).entries()
    assert sorted((entry.state, entry.sockets) for entry in entries) == [("complete", count) for count in range(1, 5)]
    _comes_to(server, lambda: int(cluster.sql("SELECT count(*) FROM sockscope.trace_load", database_name)[0][0]), 4)


def test_rows_that_somebody_reads_stay_until_he_is_done(server: TraceServer, file: Path, cluster: Cluster, database_name: str) -> None:
    key = _collect(server, file)
    question = "SELECT count(*) FROM socket WHERE trace_id = %s"
    first = server.number_of(key)
    with server.trace(key).connect() as reader:
        counted = select(func.count()).select_from(socket).where(socket.c.trace_id == THIS_TRACE)
        assert reader.execute(counted).scalar_one() == 1
        _collect(server, file)
        assert reader.execute(counted).scalar_one() == 1
        assert reader.exec_driver_sql(question, (first,)).scalar_one() == 1
        assert _parts(cluster, database_name) == 2

    _comes_to(server, lambda: _parts(cluster, database_name), 1)


def test_a_sweep_that_ended_in_the_middle(server: TraceServer, file: Path, cluster: Cluster, database_name: str) -> None:
    key = _collect(server, file)
    number = server.number_of(key)
    cluster.sql(f"UPDATE sockscope.trace_load SET is_current = false WHERE number = {number}", database_name)
    cluster.sql(f"ALTER TABLE sockscope.operation DETACH PARTITION sockscope.operation_{number}", database_name)
    with server.catalog().connect() as reader:  # while it looks at the table, nothing is taken off at once
        reader.exec_driver_sql("SELECT count(*) FROM socket")
        detach = f"ALTER TABLE sockscope.socket DETACH PARTITION sockscope.socket_{number} CONCURRENTLY"
        with pytest.raises(RuntimeError, match="statement timeout"):
            cluster.sql(detach, f"dbname={database_name} options='-c statement_timeout=200'")
    pending = "SELECT count(*) FROM pg_inherits WHERE inhdetachpending"
    assert cluster.sql(pending, database_name) == [["1"]]

    assert _collect(server, file) == key

    _comes_to(server, lambda: int(cluster.sql("SELECT count(*) FROM sockscope.trace_load", database_name)[0][0]), 1)
    assert cluster.sql(pending, database_name) == [["0"]]
    assert _parts(cluster, database_name) == 1


def test_cancelling_ends_a_statement_that_waits(server: TraceServer, file: Path, cluster: Cluster, database_name: str) -> None:
    key = _collect(server, file)
    before = server.number_of(key)
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'ShareUpdateExclusiveLock'"

    def is_waiting() -> bool:
        return cluster.sql(waiting, database_name) == [["1"]]

    engine = create_engine(server.url, poolclass=NullPool)
    with engine.begin() as other, Source.open(file) as source:
        other.exec_driver_sql("LOCK TABLE sockscope.operation IN ACCESS EXCLUSIVE MODE")  # nothing can be attached meanwhile
        with pytest.raises(CollectCancelled, match="Nothing was stored"):
            import_trace(source, server, should_cancel=is_waiting)

    assert server.number_of(key) == before
    assert Catalog(server).find(key).state == "complete"
    assert _parts(cluster, database_name) == 1
