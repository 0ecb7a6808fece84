"""The process that stops sessions in the place of a recorder that was killed."""

import io
import time
from pathlib import Path

import pytest

from collector.record.buffers import Buffers
from collector.record.guardian import Guardian, guard
from collector.record.plan import SessionPlan
from collector.record.programs import Program
from collector.record.sessions import start_winsock
from tests.record.played import Played

NAMES = ["sockscope-x-winsock", "sockscope-x-kernel"]


@pytest.fixture
def started(played: Played) -> Played:
    for name in reversed(NAMES):
        start_winsock(played.windows, SessionPlan(name, "x.etl", Buffers(64, 2, 2)), level=5, keywords=0)
    return played


def test_a_word_of_the_recorder_lets_all_be(started: Played) -> None:
    assert guard(io.BytesIO(b"over\n"), started.windows, NAMES) == []
    assert started.running == 2


def test_an_end_without_a_word_stops_what_runs_in_order(started: Played) -> None:
    assert guard(io.BytesIO(), started.windows, ["sockscope-x-heap", *NAMES]) == NAMES
    assert started.running == 0


@pytest.mark.parametrize("half", [b"ov", b"over", b"suspended 424"])
def test_half_a_word_is_none(started: Played, half: bytes) -> None:
    started.living(424)
    assert guard(io.BytesIO(half), started.windows, NAMES) == NAMES
    assert started.named("TerminateProcess") == []


@pytest.mark.parametrize(("said", "ended"), [(b"suspended 4242\n", 1), (b"suspended 4242\nresumed\n", 0)], ids=["suspended", "resumed"])
def test_a_program_that_nobody_will_resume_is_ended(started: Played, said: bytes, ended: int) -> None:
    program = Program(started.windows, ["app.exe"])
    assert guard(io.BytesIO(said), started.windows, NAMES) == NAMES
    assert started.suspended == 1 - ended
    assert [call.short for call in started.calls if "Process" in call.name][1:] == ["OpenProcess", "TerminateProcess"] * ended
    assert [(call.arguments["pid"], call.arguments["access"]) for call in started.named("OpenProcess")] == [(program.pid, 1)] * ended
    assert started.open_handles == 2, "those of the program, which are the recorder's"


def test_a_suspended_program_that_is_gone_keeps_no_session(started: Played) -> None:
    assert guard(io.BytesIO(b"suspended 99\n"), started.windows, NAMES) == NAMES
    assert started.named("TerminateProcess") == []


def test_a_program_is_held_for_as_long_as_it_is_suspended(played: Played) -> None:
    said: list[object] = []

    class Listening(Guardian):
        def _say(self, word: bytes) -> None:
            said.append((word, played.suspended, len(played.named("TerminateProcess"))))

    guardian = Listening([], {})
    with Program(played.windows, ["app.exe"], guardian) as program:
        program.resume()
    assert said == [(b"suspended 4242\n", 1, 0), (b"resumed\n", 0, 0)]
    del said[:]
    with Program(played.windows, ["app.exe"], guardian):
        pass
    assert said == [(b"suspended 4242\n", 1, 0), (b"resumed\n", 0, 1)], "not before it is gone: its id may be another's then"


def test_one_that_cannot_be_stopped_keeps_none_of_the_others(started: Played) -> None:
    started.answer("Stop", 5)
    assert guard(io.BytesIO(), started.windows, NAMES) == NAMES[1:]


def test_the_process_ends_with_the_recording(started: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYED_FOLDER", str(tmp_path / "windows"))
    guardian = Guardian(NAMES, started.windows.paths)
    with guardian:
        process = guardian._process
        assert process is not None
        assert process.poll() is None
    assert process.returncode == 0
    assert started.running == 2


def test_one_that_is_gone_does_not_disturb_the_end(started: Played) -> None:
    guardian = Guardian(NAMES, started.windows.paths)
    with guardian:
        assert guardian._process is not None
        guardian._process.kill()
        guardian._process.wait()
        guardian.hold(4242)
        guardian.release()
        began = time.monotonic()
    assert time.monotonic() - began < 5


def test_where_it_cannot_be_begun_the_recording_goes_on(started: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with Guardian(NAMES, started.windows.paths) as guardian:
        assert guardian._process is None
        guardian.hold(4242)
    assert started.running == 2
