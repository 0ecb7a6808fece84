"""A log file header that lies: all that the buffers hold is decoded, and the oddity is on the trust page."""

import re
from pathlib import Path

import pytest

from tests.build.answers import text_of
from tests.build.imported import collect
from tests.build.served import served
from tests.odd.collected import ALL_SENDS, collected, six_sends

Capture = pytest.CaptureFixture[str]
HUGE = (1 << 63) - 1
DATE = re.compile(r"\b\d{4,}-\d\d-\d\d\b")
SOUND_RECORDS = 15
WRONG = {
    **dict.fromkeys(("start_time", "perf_freq", "cpu_mhz", "timer_resolution", "buffers_written", "processors", "buffer_size"), 0),
    **dict.fromkeys(("end_time", "boot_time"), HUGE),
}

FIELDS: list[tuple[str, int, set[str]]] = [
    *(("buffer_size", size, set()) for size in (0, 7, 71, 72, 1023, 4096, 1 << 24, (1 << 24) + 1, 0xFFFFFFFF)),
    *(("processors", count, set()) for count in (0, 1, 64, 2048, 0xFFFFFFFF)),
    *(("pointer_size", size, {"header_field"}) for size in (0, 4, 16, 0xFFFFFFFF)),
    *(("start_time", time, {"invalid_header_time"}) for time in (0, HUGE, -1)),
    *(("end_time", time, {"invalid_header_time"}) for time in (0, 1, HUGE, -1)),
    *(("boot_time", time, {"invalid_header_time"}) for time in (0, HUGE, -1)),
    *(("perf_freq", frequency, {"counter_frequency"}) for frequency in (0, -1, 1, 999, HUGE)),
    *(("cpu_mhz", speed, {"cpu_speed"}) for speed in (0, 0xFFFFFFFF)),
    ("timer_resolution", 0, {"timer_resolution"}),
    ("timer_resolution", 0xFFFFFFFF, set()),
    ("clock_type", 0, set()),
    *(("clock_type", kind, {"header_field"}) for kind in (4, 0xFFFFFFFF)),
    *(("buffers_written", count, {"buffers_written_differs"}) for count in (0, 1, 6)),
    *(("buffers_written", count, {"buffers_missing"}) for count in (8, 0xFFFFFFFF)),
    *(("events_lost", count, {"lost_events"}) for count in (1, 0xFFFFFFFF)),
    *(("buffers_lost", count, {"lost_buffers"}) for count in (1, 0xFFFFFFFF)),
    *((name, 0xFFFFFFFF, set()) for name in ("maximum_file_size", "start_buffers", "os_build")),
    *((name, 255, set()) for name in ("os_major", "os_minor", "layout_major", "layout_minor")),
    ("bias_minutes", -(1 << 31), set()),
]


@pytest.mark.parametrize(("field", "value", "kinds"), FIELDS, ids=lambda value: str(value) if not isinstance(value, set) else "")
def test_a_field_that_lies_hides_nothing(tmp_path: Path, capsys: Capture, field: str, value: int, kinds: set[str]) -> None:
    found = collected(six_sends().with_header(**{field: value}).bytes(), tmp_path, capsys)

    assert found.sends == ALL_SENDS
    assert found.records == SOUND_RECORDS
    assert found.kinds == kinds
    is_loss = bool(kinds & {"buffers_missing", "lost_events", "lost_buffers"})
    assert found.status == (3 if is_loss else 0)


@pytest.mark.parametrize("time", [0, HUGE, -1])
def test_without_a_start_the_pages_show_relative_times_and_say_why(tmp_path: Path, time: int) -> None:
    path = six_sends().with_header(start_time=time).write(tmp_path / "odd.etl")
    imported = collect(path, tmp_path)
    key = imported.report.key
    with served(imported.folder) as client:
        overview, trust = (client.get(f"/t/{key}{part}") for part in ("", "/trust"))
        assert "Recorded unknown Length 6.05 ms" in text_of(overview.text)
        said = f"Times in the file header that cannot be right: 1 (start time {time}). Times count from the first moment of the trace"
        assert said in text_of(trust.text)
        for part, first in (("sockets", "+0.000 010 s"), ("operations", "+0.001 000 s"), ("events", "+0.001 000 s"), ("aborts", "")):
            for clock in ("", "?clock=utc"):  # also where a link asks for dates
                shown = text_of(client.get(f"/t/{key}/{part}{clock}").text)
                assert first in shown, part
                assert not DATE.search(shown), part
        assert client.get(f"/t/{key}?format=json").json()["trace"]["start_utc"] is None


def test_a_session_that_was_never_closed(tmp_path: Path, capsys: Capture) -> None:
    found = collected(six_sends(is_closed=False).bytes(), tmp_path, capsys)
    assert found.sends == ALL_SENDS
    assert found.kinds == {"unfinished_session"}
    assert found.status == 0


@pytest.mark.parametrize("mode", [0x2, 0x10000, 0x2000, 0x10000000, 0xFBFFFFFF])
def test_a_mode_that_the_file_does_not_follow(tmp_path: Path, capsys: Capture, mode: int) -> None:
    found = collected(six_sends().with_header(log_file_mode=mode).bytes(), tmp_path, capsys)
    assert found.sends == ALL_SENDS


def test_the_mode_of_compression_in_a_plain_file(tmp_path: Path, capsys: Capture) -> None:
    found = collected(six_sends().with_header(log_file_mode=0x4000001).bytes(), tmp_path, capsys)
    assert found.sends == ALL_SENDS
    assert found.status == 0


@pytest.mark.parametrize("pointer_size", [4, 8])
def test_all_fields_at_once(tmp_path: Path, capsys: Capture, pointer_size: int) -> None:
    trace = six_sends(pointer_size=pointer_size)
    found = collected(trace.with_header(**WRONG).bytes(), tmp_path, capsys)
    assert found.sends == ALL_SENDS
    assert found.kinds >= {"invalid_header_time", "counter_frequency", "cpu_speed", "timer_resolution", "buffers_written_differs"}
