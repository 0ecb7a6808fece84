"""`sockscope record --live` on a Windows that is played: the trace is that of a file, and every way out leaves a finished file."""

import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

from app.cli import main
from collector.errors import RecordError
from collector.readers.etl import EtlReader
from collector.record import guardian, live, readiness
from collector.record.backlog import Backlog
from collector.record.constants import Code
from collector.record.live import LiveReading
from collector.record.losses import LossWatch
from collector.record.plan import Kind, Plan
from collector.record.sessions import start_winsock
from collector.source import Source
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from tests.record.delivered import delivered, header_of, played_form
from tests.record.played import WINDOWS_11, Played
from tests.record.test_real_time import a_file, assert_same
from tests.test_sending import TOKEN, dashboard


@pytest.fixture
def session(played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Windows 11 whose Winsock session delivers the records of this file."""
    monkeypatch.setattr(readiness, "this_machine", lambda: WINDOWS_11)
    monkeypatch.setattr(readiness, "Windows", lambda paths: played.windows)
    monkeypatch.setattr(guardian, "Guardian", lambda *_: nullcontext())
    file = a_file(tmp_path)
    (tmp_path / "records").write_bytes(played_form(delivered(file)))
    played.records(tmp_path / "records", bytes(header_of(file)))
    return file


def record(tmp_path: Path, *words: str) -> int:
    place = ["--output", str(tmp_path), "--database", str(tmp_path / "db")]
    return main(["record", "--live", "--name", "x", "--no-kernel", "--duration", "1ms", *place, *words])


def test_what_is_delivered_becomes_the_trace_of_a_file(
    session: Path, played: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert record(tmp_path) == 0
    out, err = capfd.readouterr()
    (entry,) = Catalog(TraceFolder(tmp_path / "db")).entries()
    assert entry.state == "complete"
    assert f"{tmp_path / 'x.etl'}  " in out
    assert f"{entry.key}  x.etl:" in out, "the follower says what it has stored"
    assert "read in real time" in err
    assert played.running == 0
    (started,) = played.named("StartTraceW")
    assert (started.properties.LogFileMode, started.properties.LogFileNameOffset) == (0x100, 0)
    assert_same(tmp_path / "x.etl", session, tmp_path)


def test_what_was_shown_is_sent_to_a_dashboard_elsewhere(session: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with dashboard(tmp_path / "elsewhere") as base:
        assert record(tmp_path, "--to", base, "--token", TOKEN) == 0
    (sent,) = Catalog(TraceFolder(tmp_path / "elsewhere")).entries()
    assert (sent.name, sent.state) == ("x.etl", "complete")
    (shown,) = Catalog(TraceFolder(tmp_path / "db")).entries()
    assert shown.key == sent.key, "the link is the same on both machines"
    assert f"{base}/t/{sent.key}" in capfd.readouterr().out

    with dashboard(tmp_path / "elsewhere") as base:
        assert record(tmp_path, "--to", base, "--token", "w" * 20, "--name", "y") == 1
    assert "It stays here. To send it later: sockscope send" in capfd.readouterr().err
    assert (tmp_path / "y.etl").exists()


def test_events_that_had_no_room_are_told(
    session: Path, played: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "Backlog", lambda: Backlog(10_000))
    assert record(tmp_path) == 3
    assert "had no room" in capfd.readouterr().err
    with Source.open(tmp_path / "x.etl") as source:
        assert EtlReader(source).header.events_lost > 0


def test_a_session_that_cannot_be_read_is_stopped(session: Path, played: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    played.answer("OpenTraceW", Code.ERROR_ACCESS_DENIED)
    assert record(tmp_path) == 1
    assert "The session sockscope-x-winsock cannot be read" in capfd.readouterr().err
    assert played.running == 0
    assert not (tmp_path / "x.etl").exists()


def test_reading_that_fails_ends_the_recording(session: Path, played: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    played.answer("ProcessTrace", 998)
    assert record(tmp_path, "--duration", "60s") == 3
    assert "ended too early" in capfd.readouterr().err
    assert played.running == 0
    with Source.open(tmp_path / "x.etl") as source:
        assert EtlReader(source).header.is_closed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--files", "--circular", "--size-limit", "5"], "choose one"),
        (["--circular", "--size-limit", "5"], "choose one"),
        (["--collect"], "leave --collect out"),
        (["--rotate", "5"], "leave --rotate out"),
    ],
)
def test_wrong_usage(session: Path, played: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert record(tmp_path, *words) == 2
    assert said in capfd.readouterr().err
    assert played.named("StartTraceW") == []


def test_a_file_that_cannot_be_written(session: Path, played: Played, tmp_path: Path) -> None:
    plan = Plan("x", tmp_path / "none", is_live=True)
    reading = LiveReading(played.windows, plan, LossWatch(plan))
    start_winsock(played.windows, plan.session(Kind.WINSOCK), level=5, keywords=0)
    with pytest.raises(RecordError, match="cannot be written"), reading:
        reading.read(Kind.WINSOCK)
    assert len(played.named("CloseTrace")) == 1
    assert not any(thread.name == "live-file" for thread in threading.enumerate())
