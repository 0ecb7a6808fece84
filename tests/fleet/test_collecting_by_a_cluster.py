"""A cluster of worker processes collects many files; workers die, files are damaged, users change their minds."""

import contextlib
import gc
import hashlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import main
from collector.errors import CollectCancelled
from collector.fleet.orders import Order
from collector.stages import program_version
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.verbs.fleet import _Shown
from tests.build import Trace, afd
from tests.build.packages import zip_of

pytest.importorskip("distributed", reason='collecting by a cluster needs the package "distributed"')

from collector.fleet.running import carried_out
from tests.fleet.cluster import Cluster, local_cluster, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="workers are killed by means that Windows lacks")

ROOT = Path(__file__).parents[2]
_COMMAND = "import sys; from app.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers, at least; tests that end some add others before."""
    with local_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.add_workers(2)
        yield cluster


@pytest.fixture
def database(tmp_path: Path) -> TraceFolder:
    return TraceFolder(tmp_path / "database")


def write(path: Path, sends: int) -> Path:
    """A trace whose number of sends tells it from others."""
    path.parent.mkdir(exist_ok=True)
    return Trace().cpu(0, afd.opened(at_us=10), *(afd.sent(at_us=100 + 10 * n) for n in range(sends))).write(path)


def key_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


def begin(cluster: Cluster, database: TraceFolder, *words: str | Path) -> subprocess.Popen[str]:
    """The command as a process of its own."""
    command = [sys.executable, "-c", _COMMAND, "collect", "--scheduler", cluster.address, "--database", str(database.root)]
    return subprocess.Popen(
        [*command, *map(str, words)],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def states(database: TraceFolder) -> dict[str, str]:
    """The state of each trace by the name that it is shown with; nothing half-made is there."""
    catalog = Catalog(database)
    assert catalog.settle() == 0, "somebody had left something for others to clear away"
    assert sorted(path.suffix for path in database.traces_path.iterdir()) == [".db"] * len(database.trace_keys())
    found = {entry.name: entry.state for entry in catalog.entries()}
    assert {entry.key for entry in catalog.entries() if entry.state == "complete"} == set(database.trace_keys())
    return found


def sends_of(database: TraceFolder, file: Path) -> int:
    with database.trace(key_of(file)).connect() as connection:
        return int(connection.exec_driver_sql("SELECT sum(sends) FROM v_sockets").scalar_one())


def test_a_folder_of_traces(cluster: Cluster, database: TraceFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [write(tmp_path / "traces" / f"{n}.etl", n) for n in range(1, 7)]
    (tmp_path / "traces" / "notes.txt").write_text("no trace")

    status = main(["collect", str(tmp_path / "traces"), "--scheduler", cluster.address, "--database", str(database.root)])

    out, err = capsys.readouterr()
    assert status == 0
    assert sorted(re.findall(r"^[0-9a-f]{12}  (\d\.etl): \d+ records, 1 process, 1 socket", out, re.MULTILINE)) == [f.name for f in files]
    assert err.splitlines()[-1] == f"6 stored: {', '.join(map(str, files))}"
    assert states(database) == {file.name: "complete" for file in files}
    assert [sends_of(database, file) for file in files] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_ends_in_the_middle_of_an_import(end: signal.Signals, cluster: Cluster, database: TraceFolder, tmp_path: Path) -> None:
    files = [write(tmp_path / "traces" / f"{n}.etl", n) for n in range(1, 9)]
    cluster.add_workers(1)
    held = cluster.hold_at(key_of(files[3]))
    process = begin(cluster, database, *files)

    victim = cluster.holder(key_of(files[3]))
    assert database.part_path(key_of(files[3])).exists()
    os.kill(victim, end)
    assert cluster.holder(key_of(files[3])) != victim  # another worker is as far now
    held.unlink()
    out, err = process.communicate(timeout=300)

    assert process.returncode == 0, err
    assert re.search(r"4\.etl: the worker that collected it was lost; now it is collected by tcp://127\.0\.0\.1:\d+\.\n", err)
    assert len(out.splitlines()) == 8
    assert states(database) == {file.name: "complete" for file in files}
    assert [sends_of(database, file) for file in files] == list(range(1, 9))


def test_a_file_that_ends_every_worker_is_given_up(database: TraceFolder, tmp_path: Path) -> None:
    good, bad = write(tmp_path / "good.etl", 1), write(tmp_path / "bad.etl", 2)
    with local_cluster(tmp_path, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="1") as cluster:
        cluster.add_workers(3)
        cluster.hold_at(key_of(bad))
        process = begin(cluster, database, bad, good)
        for _ in range(2):
            os.kill(cluster.holder(key_of(bad)), signal.SIGKILL)
        _, err = process.communicate(timeout=300)

    assert process.returncode == 1
    assert f"{bad}: 2 workers ended while they collected it" in err
    assert err.splitlines()[-1] == f"1 stored: {good}; 1 not stored: {bad}"
    assert states(database) == {"good.etl": "complete", "bad.etl": "interrupted"}


def test_damage_loss_and_what_is_no_trace(
    cluster: Cluster, database: TraceFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = write(tmp_path / "whole.etl", 500)
    cut, none, gone = tmp_path / "cut.etl", tmp_path / "none.etl", tmp_path / "gone.etl"
    cut.write_bytes(whole.read_bytes()[:-3000])
    none.write_bytes(bytes(65536))
    command = ["collect", "--scheduler", cluster.address, "--database", str(database.root)]

    assert main([*command, str(whole), str(cut)]) == 3
    assert "cut.etl: damage: The file ends inside a buffer" in capsys.readouterr().err
    assert main([*command, str(none), str(gone), str(whole)]) == 1

    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("none.etl: ") for line in lines)
    (line,) = [line for line in lines if "there is no such file" in line]
    assert re.fullmatch(
        rf"{gone}: .* So sees the worker tcp://127\.0\.0\.1:\d+ on .+: all workers need the file under the same path\.", line
    )
    assert lines[-1] == f"1 stored: {whole}; 2 not stored: {none}, {gone}"
    assert states(database) == {"whole.etl": "complete", "cut.etl": "complete"}


def test_the_same_file_twice(cluster: Cluster, database: TraceFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "one.etl", 3)
    command = ["collect", "--scheduler", cluster.address, "--database", str(database.root)]

    assert main([*command, str(file), f"{tmp_path}/./one.etl"]) == 0
    out, err = capsys.readouterr()
    assert (out.count("\n"), err.count("is named twice; it is collected once.")) == (1, 1)
    assert main([*command, "--keep", str(file)]) == 1
    assert "this file is collected already" in capsys.readouterr().err

    copy = Path(shutil.copy(file, tmp_path / "copy.etl"))
    assert main([*command, str(file), str(copy)]) == 0  # one after the other, as they are the same trace
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert list(states(database).values()) == ["complete"]


def test_cancelling_stops_the_workers(cluster: Cluster, database: TraceFolder, tmp_path: Path) -> None:
    files = [write(tmp_path / "traces" / f"{n}.etl", n) for n in range(1, 4)]
    waiting = [write(tmp_path / "traces" / f"{n}.etl", n) for n in range(5, 9)]
    assert main(["collect", str(files[0]), "--database", str(database.root)]) == 0
    holds = [cluster.hold_at(key_of(file)) for file in (*files, *waiting)]
    process = begin(cluster, database, *files, *waiting)
    until(lambda: len(list(cluster.hold.glob("*.*"))) == 2)

    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)  # while nothing lets the imports go on: they have stopped

    for file in (*holds, *cluster.hold.glob("*.*")):
        file.unlink()
    assert (process.returncode, out) == (1, "")
    assert err.count("Cancelled.\n") == 1
    assert "Traceback" not in err
    assert re.search(r"^2 not stored: .*; 5 not tried: ", err, re.MULTILINE)
    found = states(database)
    assert found.pop("1.etl") == "complete"
    assert set(found.values()) <= {"interrupted"}
    assert main(["collect", str(tmp_path / "traces"), "--scheduler", cluster.address, "--database", str(database.root)]) == 0
    assert set(states(database).values()) == {"complete"}


@pytest.mark.parametrize("looks", range(5))
def test_cancelling_early_is_quiet(cluster: Cluster, database: TraceFolder, tmp_path: Path, looks: int) -> None:
    """Python warns of what was to be waited for and never began; here that is an error."""
    file = write(tmp_path / "one.etl", 1)
    order = Order(0, "run", program_version(), file.name, str(file), str(database.root), "fleet-1")
    asked = itertools.count()
    database.make()
    with database.collecting("fleet-1", ""), contextlib.suppress(CollectCancelled), contextlib.closing(_Shown(1)) as shown:
        carried_out(cluster.address, [order], lambda: next(asked) >= looks, shown, wait_seconds=60)
    gc.collect()
    Catalog(database).settle()
    assert set(states(database).values()) <= {"interrupted", "complete"}  # the latter where it was done before it was cancelled


def test_the_scheduler_is_lost(database: TraceFolder, tmp_path: Path) -> None:
    files = [write(tmp_path / "traces" / f"{n}.etl", n) for n in (1, 2)]
    with local_cluster(tmp_path) as cluster:
        (worker,) = cluster.add_workers(1)
        cluster.hold_at(key_of(files[0]))
        cluster.hold_at(key_of(files[1]))
        process = begin(cluster, database, *files)
        until(lambda: any(cluster.hold.glob("*.*")))
        cluster.scheduler.kill()
        _, err = process.communicate(timeout=300)
        until(lambda: worker.poll() is not None or not any(database.traces_path.glob("*.part")))

    assert process.returncode == 1
    assert f"{cluster.address}: the scheduler was lost." in err
    assert re.search(r"(1 not known: .*; 1|2) not tried: ", err)
    assert "Traceback" not in err
    Catalog(database).settle()
    assert set(states(database).values()) == {"interrupted"}


def test_all_workers_are_lost(database: TraceFolder, tmp_path: Path) -> None:
    file = write(tmp_path / "one.etl", 1)
    with local_cluster(tmp_path) as cluster:
        cluster.add_workers(1)
        cluster.hold_at(key_of(file))
        process = begin(cluster, database, file, "--wait", "1s")
        os.kill(cluster.holder(key_of(file)), signal.SIGKILL)
        _, err = process.communicate(timeout=300)

    assert process.returncode == 1
    assert f"{cluster.address}: the scheduler has lost all its workers, for 1 s now." in err
    assert states(database) == {"one.etl": "interrupted"}


def test_a_cluster_without_workers(tmp_path: Path, database: TraceFolder, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "one.etl", 1)
    with local_cluster(tmp_path) as cluster:
        command = ["collect", str(file), "--scheduler", cluster.address, "--database", str(database.root), "--wait"]
        assert main([*command, "0.5s"]) == 1
        first, second = capsys.readouterr().err.splitlines()
        assert first == f"{cluster.address}: the scheduler has no worker yet; waiting 0.5 s for one."
        assert second.startswith(
            f"sockscope collect: {cluster.address}: the scheduler has no worker, for 0.5 s now. Start some: dask worker"
        )

        process = begin(cluster, database, file)
        assert process.stderr is not None
        assert "has no worker yet" in process.stderr.readline()
        cluster.add_workers(1)
        process.communicate(timeout=300)
    assert process.returncode == 0
    assert states(database) == {"one.etl": "complete"}


def test_a_scheduler_without_this_program(tmp_path: Path, database: TraceFolder, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['collector'] = None")  # it cannot be imported
    with local_cluster(tmp_path, PYTHONPATH=str(tmp_path)) as cluster:
        file = write(tmp_path / "one.etl", 1)
        assert main(["collect", str(file), "--scheduler", cluster.address, "--database", str(database.root)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"sockscope collect: {cluster.address}: sockscope is not installed where the scheduler runs (")


def test_the_gate_judges_what_the_workers_stored(
    cluster: Cluster, database: TraceFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = (afd.opened(at_us=10), afd.connected(at_us=50))
    good = Trace().cpu(0, *opened, *afd.closed(at_us=90)).write(tmp_path / "good.etl")
    bad = Trace().cpu(0, *opened, afd.abort(at_us=500, reason=4)).write(tmp_path / "bad.etl")
    report = tmp_path / "report.xml"
    command = ["collect", str(bad), str(good), "--scheduler", cluster.address, "--database", str(database.root), "--junit", str(report)]

    assert main([*command, "--fail-on", "abort"]) == 4
    out = capsys.readouterr().out
    assert re.findall(r"^(\w+)  aborted: (\d), allowed 0$", out, re.MULTILINE) == [("FAILED", "1"), ("passed", "0")]
    assert re.findall(r'<testsuite name="(\w+\.etl) ', report.read_text()) == ["bad.etl", "good.etl"]  # whoever was done first
    assert main([*command, "--fail-on", "abort=1"]) == 0


def test_nannies_threads_packages_and_parts(database: TraceFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [write(tmp_path / f"{n}.etl", n) for n in range(1, 5)]
    package = tmp_path / "two.zip"
    package.write_bytes(zip_of({file.name: file.read_bytes() for file in files[:2]}))
    with local_cluster(tmp_path) as cluster:
        cluster.add_workers(1, "--nthreads", "3", has_nanny=True)
        command = ["collect", "--scheduler", cluster.address, "--database", str(database.root), "--only", "sockets"]
        assert main([*command, str(package), *map(str, files[2:])]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert sorted(states(database)) == [
        "1.etl (in two.zip) (sockets)",
        "2.etl (in two.zip) (sockets)",
        "3.etl (sockets)",
        "4.etl (sockets)",
    ]
