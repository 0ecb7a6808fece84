"""`sockscope record --rotate` on a Windows that is played: which files are finished, what is sent while it records, and what is left."""

import signal
import socket
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from app.cli import main
from collector.dashboard import Target
from collector.events.afd import AFD
from collector.record.pieces import finished
from collector.record.plan import Plan
from collector.sample.machine import Logged
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.verbs import recording_pieces
from collector.verbs.recording_pieces import PieceSender
from tests.build.imported import collect
from tests.record.played import Played
from tests.record.test_record_cli import record, start
from tests.test_invariance import assert_same, rewritten, sample_records, sample_session
from tests.test_joining import written
from tests.test_sending import TOKEN, dashboard
from tests.test_together import as_one

NEW_FILE = 8
NAMES = ["x-kernel.etl", "x-winsock-1.etl", "x-winsock-2.etl", "x-winsock-3.etl"]


def is_within(low: int, high: int, entry: Logged) -> bool:
    return entry.record.provider == AFD and low <= entry.record.ticks < high


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The sample as a kernel session writes it, and a Winsock session that begins two new files: each has the clock of the session."""
    folder, session = tmp_path_factory.mktemp("parts"), sample_session()
    times = sorted(entry.record.ticks for entry in sample_records()[1] if entry.record.provider == AFD)
    cuts = [0, times[len(times) // 3], times[2 * len(times) // 3], 1 << 63]
    rest = written(folder / "x-kernel.etl", session, lambda entry: entry.record.provider != AFD)
    rotating = replace(session, mode=NEW_FILE, maximum_file_mb=1)
    return [rest, *(written(folder / NAMES[n], rotating, partial(is_within, cuts[n - 1], cuts[n])) for n in (1, 2, 3))]


@pytest.fixture
def rotating(machine: Played, parts: list[Path]) -> Played:
    """A machine whose sessions write these."""
    for part in parts:
        machine.file(part.name, part)
    return machine


@pytest.mark.parametrize(
    ("ended", "count"),
    [
        ([], 0),
        ([True], 0),
        ([True, False], 1),
        ([False, False], 0),
        ([False, False, False], 1),
        ([True, False, False], 1),
        ([True, True, False], 2),
    ],
)
def test_a_file_is_finished_when_its_header_has_its_end_and_a_newer_one_is_there(tmp_path: Path, ended: list[bool], count: int) -> None:
    """Or when two newer ones are there."""
    files = [
        written(tmp_path / f"x-winsock-{n}.etl", replace(sample_session(), is_closed=is_ended), lambda _: False)
        for n, is_ended in enumerate(ended, 1)
    ]
    assert finished(files) == files[:count]


def test_a_file_that_cannot_be_read_yet_is_waited_for(tmp_path: Path) -> None:
    files = [tmp_path / "x-winsock-1.etl", tmp_path / "x-winsock-2.etl", tmp_path / "x-winsock-3.etl"]
    for file in files:
        file.write_bytes(b"no trace" * 100)
    assert finished(files[:2]) == []
    assert finished(files) == files[:1]


def test_files_are_those_of_the_recording_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    plan = Plan("x", tmp_path, rotate_mb=5)
    for name in ("x-winsock-10.etl", "x-winsock-9.etl", "x-winsock.etl", "x-winsock-1a.etl", "xx-winsock-1.etl", "x-kernel.etl"):
        (tmp_path / name).touch()
    assert [path.name for path in plan.files()] == ["x-kernel.etl", "x-winsock-9.etl", "x-winsock-10.etl"]
    assert [path.name for path in replace(plan, rotate_mb=0).files()] == ["x-kernel.etl", "x-winsock.etl"]


def test_new_files_stay_and_are_collected_as_one(
    rotating: Played, tmp_path: Path, parts: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert record(tmp_path, "--rotate", "1", "--collect", "--database", str(tmp_path / "db")) == 0

    out = capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.glob("*.etl")) == NAMES
    for name, part in zip(NAMES, parts, strict=True):
        assert (tmp_path / name).read_bytes() == part.read_bytes()
        assert f"{tmp_path / name}  " in out
    for folder in ("again", "whole"):
        (tmp_path / folder).mkdir()
    again = as_one([tmp_path / name for name in NAMES], tmp_path / "again")
    assert f"http://127.0.0.1:8350/t/{again.report.key}" in out
    assert_same(again, collect(rewritten(tmp_path / "whole" / "whole.etl", sample_session()), tmp_path / "whole"))


def test_without_a_wish_it_is_said_how_to_look_at_them(rotating: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert record(tmp_path, "--rotate", "1") == 0
    assert f"sockscope collect {' '.join(str(tmp_path / name) for name in NAMES)} --as one" in capsys.readouterr().err
    assert rotating.named("CreateMergedTraceFile") == []


def test_nothing_written_is_nothing_recorded(machine: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert record(tmp_path, "--rotate", "1") == 1
    assert "No session has written a file" in capsys.readouterr().err


def test_finished_files_are_sent_while_it_records_and_the_rest_at_its_end(library: Path, tmp_path: Path, parts: list[Path]) -> None:
    folder = tmp_path / "windows"
    folder.mkdir()
    script: dict[str, list[list[object]]] = {"file": [[part.name, str(part)] for part in parts]}
    with dashboard(tmp_path / "elsewhere") as base:
        target = ["--to", base, "--token", TOKEN]
        with start(library, folder, script, "record", "--name", "x", "--output", str(tmp_path), "--rotate", "1", *target) as process:
            assert process.stdout is not None
            assert "  x-winsock-1.etl: " in process.stdout.readline()
            assert Played(library, folder).running == 2, "it still records"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert [line.split("  ")[1].split(":")[0] for line in out.splitlines() if base in line].count("x-winsock-1.etl") == 0, (
            "once is enough"
        )
        files = [str(tmp_path / name) for name in NAMES]
        assert f"sockscope join {' '.join(files)} --output {tmp_path / 'x.etl'}" in err
        assert main(["send", *files, *target]) == 0  # waits until all are collected
    assert sorted(entry.name for entry in Catalog(TraceFolder(tmp_path / "elsewhere")).entries()) == NAMES
    assert Played(library, folder).running == 0


def test_files_that_cannot_be_sent_stay_with_the_command_that_does(
    rotating: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with dashboard(tmp_path / "elsewhere") as base:
        assert record(tmp_path, "--rotate", "1", "--to", base, "--token", "w" * 20) == 1
    err = capsys.readouterr().err
    assert "none of this server's tokens" in err
    assert f"To send it later: sockscope send {' '.join(str(tmp_path / name) for name in NAMES)} --to {base}" in err
    assert sorted(path.name for path in tmp_path.glob("*.etl")) == NAMES


@pytest.fixture
def plan(tmp_path: Path, parts: list[Path], monkeypatch: pytest.MonkeyPatch) -> Plan:
    """A recording that has written all its files."""
    monkeypatch.setattr(recording_pieces, "_LOOK_SECONDS", 0.01)
    for part in parts:
        (tmp_path / part.name).write_bytes(part.read_bytes())
    return Plan("x", tmp_path, rotate_mb=1)


def test_what_could_not_be_sent_is_tried_again_after_all_else(plan: Plan, tmp_path: Path) -> None:
    with dashboard(tmp_path / "elsewhere") as base, PieceSender(plan, Target.parse(base, "w" * 20, None)) as sender:
        while len(sender._failed) < 2:
            sender._thread.join(0.01)
    assert [path.name for path in sender.left(plan.files())] == [NAMES[0], NAMES[3], NAMES[1], NAMES[2]]


def fail_when_it_tries(sender: PieceSender, capsys: pytest.CaptureFixture[str]) -> None:
    with sender:
        while "Trying again." not in capsys.readouterr().err:
            sender._thread.join(0.01)
        raise ZeroDivisionError


def test_a_recording_that_fails_waits_for_no_dashboard(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        target = Target.parse(f"http://127.0.0.1:{nobody.getsockname()[1]}", TOKEN, None)
        sender = PieceSender(plan, target)
        with pytest.raises(ZeroDivisionError):
            fail_when_it_tries(sender, capsys)
    assert not sender._thread.is_alive()
    assert sender.left(plan.pieces())
