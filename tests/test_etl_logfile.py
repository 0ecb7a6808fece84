"""The log file header: both layouts, the three clocks, and fields that cannot be right."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from collector.clock import ClockKind
from collector.errors import NotAnEtl
from collector.readers.etl_logfile import clock_of, moved, parse_log_file_header, trace_header
from collector.readers.problems import ProblemLog
from tests.etl_bytes import FREQUENCY, START_FILETIME, START_TICKS, log_file_header, system, trace
from tests.etl_reading import read_bytes

START = datetime(2025, 3, 4, 9, 30, tzinfo=UTC)
FAR = (1 << 63) - 1


def judged(**fields: Any) -> tuple[ClockKind, int, dict[str, str]]:
    """Clock kind, ticks a second, and the problems by name, of a header with these fields."""
    log = ProblemLog()
    header = parse_log_file_header(log_file_header(buffers_written=2, **fields), name="x.etl", offset=72)
    clock = clock_of(header, log)
    trace_header(header, clock, log)
    return clock.kind, clock.ticks_per_second, {problem.kind.name: problem.text for problem in log.problems()}


@pytest.mark.parametrize("pointer_size", [4, 8])
def test_all_fields_of_both_layouts(pointer_size: int) -> None:
    record = log_file_header(
        pointer_size=pointer_size,
        buffers_written=7,
        events_lost=3,
        buffers_lost=2,
        cpu_mhz=2592,
        perf_freq=2_500_000,
        mode=0x4010001,
        session="NT Kernel Logger",
        file_name="C:\\Tëst.etl",
    )
    log = ProblemLog()
    header = parse_log_file_header(record, name="x.etl", offset=72)
    found = trace_header(header, clock_of(header, log), log)

    assert log.problems() == []
    assert (found.pointer_size, found.processors, found.buffer_size) == (pointer_size, 4, 1024)
    assert (found.os_version, found.os_build, found.layout_version) == ("10.0.19045", 19045, "1.5")
    assert (found.events_lost, found.buffers_lost, found.buffers_written) == (3, 2, 7)
    assert (found.perf_freq, found.cpu_mhz, found.timer_resolution) == (2_500_000, 2592, 156_250)
    assert (found.session_name, found.file_name) == ("NT Kernel Logger", "C:\\Tëst.etl")
    assert (found.is_merged, found.is_compressed, found.is_circular, found.is_closed) == (True, True, False, True)
    assert found.clock.start_utc() == START


def test_the_performance_counter() -> None:
    kind, rate, problems = judged(clock_type=1, perf_freq=3_579_545)
    assert (kind, rate, problems) == (ClockKind.QPC, 3_579_545, {})


def test_system_time_counts_from_its_own_first_time_stamp(tmp_path: Path) -> None:
    ticks = START_FILETIME + 12_345
    reading = read_bytes(tmp_path, trace(start_ticks=ticks, clock_type=2, start_filetime=0))

    clock = reading.header.clock
    assert (clock.kind, clock.ticks_per_second, clock.start_filetime) == (ClockKind.SYSTEM_TIME, 10_000_000, ticks)
    assert clock.start_utc() == START + timedelta(microseconds=1234)
    assert reading.kinds == {"invalid_header_time"}


def test_processor_cycles() -> None:
    kind, rate, problems = judged(clock_type=3, cpu_mhz=2400)
    assert (kind, rate, problems) == (ClockKind.CPU_CYCLES, 2_400_000_000, {})


def test_an_unset_clock_is_told_by_its_first_time_stamp() -> None:
    assert judged(clock_type=0)[::2] == (ClockKind.QPC, {})
    assert judged(clock_type=0, start_ticks=START_FILETIME)[::2] == (ClockKind.SYSTEM_TIME, {})


def test_an_unknown_clock_is_said() -> None:
    kind, _, problems = judged(clock_type=77)
    assert kind is ClockKind.QPC
    assert "clock type 77, qpc was assumed" in problems["header_field"]


@pytest.mark.parametrize("clock_type", [1, 2, 3])
@pytest.mark.parametrize("frequency", [0, 999, 9_000_000_001, -1, FAR])
def test_a_frequency_that_cannot_be_right(clock_type: int, frequency: int) -> None:
    kind, rate, problems = judged(clock_type=clock_type, perf_freq=frequency, start_ticks=START_FILETIME)
    assert list(problems) == ["counter_frequency"]
    assert ("10,000,000 was assumed" in problems["counter_frequency"]) == (kind is ClockKind.QPC)
    assert rate == (3_000_000_000 if kind is ClockKind.CPU_CYCLES else 10_000_000)


@pytest.mark.parametrize("frequency", [1_000, 9_000_000_000])
def test_a_frequency_at_the_limits(frequency: int) -> None:
    assert judged(perf_freq=frequency) == (ClockKind.QPC, frequency, {})


@pytest.mark.parametrize(("clock_type", "said"), [(1, "does not need it"), (3, "1,000 was assumed")])
def test_a_processor_speed_of_zero(clock_type: int, said: str) -> None:
    _, rate, problems = judged(clock_type=clock_type, cpu_mhz=0)
    assert list(problems) == ["cpu_speed"]
    assert said in problems["cpu_speed"]
    assert rate == (1_000_000_000 if clock_type == 3 else FREQUENCY)


def test_a_timer_resolution_of_zero() -> None:
    assert list(judged(timer_resolution=0)[2]) == ["timer_resolution"]


@pytest.mark.parametrize("field", ["start_filetime", "end_filetime", "boot_filetime"])
@pytest.mark.parametrize("value", [0, FAR, -1])
def test_a_time_that_is_no_date(tmp_path: Path, field: str, value: int) -> None:
    reading = read_bytes(tmp_path, trace(**{field: value}))

    assert reading.kinds == {"invalid_header_time"}
    assert f"{field.removesuffix('_filetime')} time {value}" in reading.problem("invalid_header_time").text
    assert reading.column("ticks") == [START_TICKS]
    assert (reading.header.clock.start_utc() is None) == (field == "start_filetime")
    assert reading.header.clock.ns_of(START_TICKS + 1) == 100


def test_an_end_before_the_start(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, trace(end_filetime=START_FILETIME - 1))
    assert "the end is before the start" in reading.problem("invalid_header_time").text


def test_a_pointer_size_that_contradicts_the_record() -> None:
    assert "pointer size 4, 8 was used" in judged(declared_pointer_size=4)[2]["header_field"]


def test_a_session_that_was_not_closed(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, trace(buffers_written=0, end_filetime=0))
    assert reading.kinds == {"unfinished_session"}
    assert not reading.header.is_closed


def test_another_time_0_moves_utc_only_where_ticks_are_dates() -> None:
    log = ProblemLog()
    for clock_type, expected in ((1, START_FILETIME), (2, START_FILETIME + 5)):
        header = parse_log_file_header(log_file_header(clock_type=clock_type), name="x.etl", offset=72)
        clock = moved(clock_of(header, log), header, START_FILETIME + 5)
        assert (clock.start_ticks, clock.start_filetime) == (START_FILETIME + 5, expected)


@pytest.mark.parametrize(
    "record",
    [
        b"",
        log_file_header()[:31],
        log_file_header()[:200],
        system(5, 0x0001, bytes(400)),
        system(5, 0, bytes(271)),
        system(5, 0, bytes(400), kind=3),
        bytes(400),
    ],
)
def test_what_cannot_begin_a_file(record: bytes) -> None:
    with pytest.raises(NotAnEtl, match=r"x\.etl: this is not an ETL file") as caught:
        parse_log_file_header(record, name="x.etl", offset=72)
    assert caught.value.offset == 72


def test_names_may_be_missing() -> None:
    header = parse_log_file_header(system(5, 0, bytes(280)), name="x.etl", offset=72)
    assert (header.session_name, header.file_name) == ("", "")
