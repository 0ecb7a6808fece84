"""What the two sides of collecting by a cluster do without one: refusing, waiting, words."""

import importlib.util
import pickle
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.cli import main
from collector import errors
from collector.collecting import Outcome
from collector.errors import CollectCancelled, FleetError, SourceError, StoreError, StoreLocked
from collector.fleet.orders import Answer, Order
from collector.stages import Progress, ignore, never, program_version
from collector.store.engine import TraceFolder
from collector.verbs.fleet import _Shown
from tests.build import Trace, afd

pytest.importorskip("distributed", reason='collecting by a cluster needs the package "distributed"')

from distributed import Status

from collector.fleet import cluster, there

HERE = there.Here("tcp://10.0.0.7:1 on seven", never, ignore)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Trace().cpu(0, afd.opened(at_us=10), afd.sent(at_us=100)).write(tmp_path / "one.etl")


def order_for(file: Path, **more: object) -> Order:
    values: dict[str, object] = {
        "number": 0,
        "run": "run",
        "version": program_version(),
        "word": file.name,
        "file": str(file),
        "mark": None,
    }
    return Order(**(values | {"database": str(file.parent / "database")} | more))  # type: ignore[arg-type] # by name


def only(answer: Answer) -> Outcome:
    (outcome,) = answer.outcomes
    return outcome


def test_an_order_is_carried_out(file: Path) -> None:
    outcome = only(there.collected_here(order_for(file), HERE))
    assert outcome.report is not None
    assert (outcome.label, outcome.report.name, outcome.error) == ("one.etl", "one.etl", None)


def test_a_worker_that_sees_another_folder_of_the_name_stores_nothing(file: Path, tmp_path: Path) -> None:
    """The mark is a lock that whoever gives orders holds there."""
    folder = TraceFolder(tmp_path / "database")
    error = only(there.collected_here(order_for(file, mark="fleet-1"), HERE)).error
    assert isinstance(error, StoreError)
    assert str(error).startswith(f"{folder.root}: the worker tcp://10.0.0.7:1 on seven sees another database of this name, or none")
    assert not folder.root.exists()

    folder.make()
    with folder.collecting("fleet-1", ""):
        assert only(there.collected_here(order_for(file, mark="fleet-1"), HERE)).error is None


def test_what_a_machine_is_to_blame_for_names_it(file: Path, tmp_path: Path) -> None:
    error = only(there.collected_here(order_for(tmp_path / "gone.etl"), HERE)).error
    assert isinstance(error, SourceError)
    assert "So sees the worker tcp://10.0.0.7:1 on seven: all workers need the file under the same path." in str(error)

    (tmp_path / "a file").touch()
    error = only(there.collected_here(order_for(file, database=str(tmp_path / "a file" / "x")), HERE)).error
    assert isinstance(error, StoreError)
    assert str(error).endswith("(worker tcp://10.0.0.7:1 on seven)")


def test_a_worker_of_another_version_stores_nothing(file: Path, tmp_path: Path) -> None:
    error = only(there.collected_here(order_for(file, version="0.0.7"), HERE)).error
    assert isinstance(error, FleetError)
    assert f"the worker tcp://10.0.0.7:1 on seven runs sockscope {program_version()}, and this command 0.0.7." in str(error)
    assert not (tmp_path / "database").exists()


def test_folders_of_symbols_are_looked_for_by_the_worker(file: Path, tmp_path: Path) -> None:
    error = only(there.collected_here(order_for(file, symbols=(str(tmp_path / "none"),)), HERE)).error
    assert "there is no such folder of symbol files" in str(error)


@pytest.fixture
def held(file: Path, tmp_path: Path) -> Iterator[ExitStack]:
    """Another collector is at the same trace, until the stack is closed."""
    folder = TraceFolder(tmp_path / "database")
    key = only(there.collected_here(order_for(file), HERE)).report.key  # type: ignore[union-attr] # it is stored
    with ExitStack() as stack:
        stack.enter_context(folder.collecting(key, ""))
        yield stack


def test_a_predecessor_that_is_about_to_stop_is_waited_for(file: Path, held: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(there, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda seconds: held.close()))
    assert only(there.collected_here(order_for(file), HERE)).error is None


def test_another_collector_is_not_waited_for_long(file: Path, held: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(0, 1000, 4))
    monkeypatch.setattr(there, "time", SimpleNamespace(monotonic=lambda: next(moments), sleep=lambda seconds: None))
    error = only(there.collected_here(order_for(file), HERE)).error
    assert isinstance(error, StoreLocked)
    assert "another collector is collecting this file now" in str(error)


def test_cancelling_ends_the_wait_for_another_collector(file: Path, held: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    monkeypatch.setattr(there, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda seconds: asked.set()))
    outcome = only(there.collected_here(order_for(file), there.Here("w", asked.is_set, ignore)))
    assert isinstance(outcome.error, CollectCancelled)


def test_errors_travel_as_values() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TraceError)]
    assert len(kinds) > 20
    for kind in kinds:
        back = pickle.loads(pickle.dumps(Answer((Outcome("a", error=kind("why")),)))).outcomes[0].error
        assert (type(back), str(back)) == (kind, "why")
    assert pickle.loads(pickle.dumps(errors.EmptyTrace("why", offset=5))).offset == 5


def test_a_scheduler_that_is_gone_stops_the_import() -> None:
    class Gone:
        asked = 0

        def is_set(self) -> bool:
            self.asked += 1
            if self.asked > 1:
                raise OSError("connection lost")
            return False

    at_work: Any = SimpleNamespace(status=Status.running)  # Any: all that is asked of a worker, and of an event
    gone: Any = Gone()
    with there._asking(at_work, gone) as should_cancel:
        assert not should_cancel()
        while not should_cancel():
            pass


def test_a_worker_that_ends_stops_the_import() -> None:
    worker: Any = SimpleNamespace(status=Status.running)  # Any: see above
    unset: Any = SimpleNamespace(is_set=lambda: False)
    with there._asking(worker, unset) as should_cancel:
        assert not should_cancel()
        worker.status = Status.closing
        assert should_cancel()


def test_versions_that_differ_are_named() -> None:
    def machine(**packages: str) -> dict[str, object]:
        return {"packages": {"python": "3.11.7", "dask": "2026.8.0", "distributed": "2026.8.0", "msgpack": "1.2"} | packages}

    same = {"client": machine(), "scheduler": machine(), "workers": {"tcp://a:1": machine()}}
    assert cluster.differences(same) == ""
    workers = {"tcp://a:1": machine(python="3.12.1"), "tcp://b:1": machine(python="3.13.0", dask="2026.9.0")}
    assert cluster.differences(same | {"workers": workers}) == (
        "python 3.11.7 here, 3.12.1, 3.13.0 there; dask 2026.8.0 here, 2026.9.0 there"
    )


@pytest.mark.parametrize(("named", "said"), [(1, "Cancelled. Nothing was stored."), (2, "Cancelled.")])
def test_a_run_is_shown(file: Path, capsys: pytest.CaptureFixture[str], named: int, said: str) -> None:
    order, shown = order_for(file), _Shown(named)
    shown.begun(order, "tcp://a:1")
    shown.moved(order, Progress("reading", 10, 100, 3))
    shown.begun(order, "tcp://b:1")
    shown.moved(order, Progress("reading", 20, 100, 3))
    cancelled = Answer((Outcome("one.etl", error=CollectCancelled("Cancelled. Nothing was stored.")),), ("a note",))
    assert shown.answered(order, cancelled)
    assert shown.answered(order, cancelled)
    shown.close()
    assert capsys.readouterr().err.splitlines() == [
        "one.etl: the worker that collected it was lost; now it is collected by tcp://b:1.",
        "a note",
        said,
        "a note",
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["a.etl", "--scheduler", "10.0.0.5:8786"], "is no address of a scheduler, such as tcp://10.0.0.5:8786"),
        (["a.etl", "--scheduler", "tcp://10.0.0.5"], "is no address"),
        (["a.etl", "--scheduler", "tcp://10.0.0.5:99999"], "is no address"),
        (["a.etl", "--scheduler", "http://10.0.0.5:8786"], "is no address"),
        (["a.etl", "--wait", "5s"], "--wait goes with --scheduler."),
        (["a.etl", "--scheduler", "tcp://h:1", "--follow"], "leave --follow and --watch out."),
        (["--scheduler", "tcp://h:1", "--watch", "."], "leave --follow and --watch out."),
        (["a.etl", "b.etl", "--scheduler", "tcp://h:1", "--as", "one"], "leave --scheduler out."),
        (["a.etl", "b.etl", "--scheduler", "tcp://h:1", "--name", "x"], "--name fits one file only."),
        (["--scheduler", "tcp://h:1"], "name an .etl file"),
    ],
)
def test_wrong_usage(words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", *words, "--database", str(tmp_path / "database")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "database").exists()


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["collect", *words]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("sockscope collect: ")


def test_the_package_is_missing(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    line = refused(capsys, str(file), "--scheduler", "tcp://h:1", "--database", str(tmp_path / "d"))
    assert line.endswith('"distributed", which is missing. Run: pip install "sockscope[fleet]"')


def test_a_folder_without_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    line = refused(capsys, str(tmp_path / "empty"), "--scheduler", "tcp://h:1", "--database", str(tmp_path / "d"))
    assert line == f"{tmp_path / 'empty'}: there is no .etl file and no package in this folder."


@pytest.mark.parametrize("answer", [None, b"", b"HTTP/1.0 400 Bad request\r\n\r\n"])
def test_no_scheduler_is_there(
    answer: bytes | None, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody listens, or another program that says nothing, or too little, or something else."""
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    report = tmp_path / "report.xml"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if answer is None:
            server.close()

        def speak() -> None:
            while True:
                try:
                    other, _ = server.accept()
                except OSError:
                    return
                with other:
                    other.sendall(answer or b"")

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        address = f"tcp://127.0.0.1:{port}"
        line = refused(
            capsys, str(file), "--scheduler", address, "--database", str(tmp_path / "d"), "--fail-on", "any", "--junit", str(report)
        )
        assert f"{address}: no scheduler of Dask" in report.read_text()
        assert line.startswith(f"{address}: no scheduler of Dask can be reached there (")
        if answer is not None:
            server.shutdown(socket.SHUT_RDWR)  # wakes the thread
            thread.join()


def test_an_encrypted_connection_without_certificates(tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, str(file), "--scheduler", "tls://127.0.0.1:1", "--database", str(tmp_path / "d"))
    assert line.startswith("tls://127.0.0.1:1: an encrypted connection needs certificates.")
