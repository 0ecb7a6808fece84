"""One global time order, whatever the order of buffers in the file and wherever windows are cut."""

import itertools
import random
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.losses import END_OF_TIME
from tests.etl_bytes import START_TICKS, buffer, event, message, perfinfo, system, trace
from tests.etl_reading import read_bytes

T = START_TICKS


def test_records_of_all_processors_come_in_the_order_of_time(tmp_path: Path) -> None:
    reading = read_bytes(
        tmp_path,
        trace(
            buffer([system(T + 10), system(T + 40)], cpu=1, sequence=2),
            buffer([system(T + 20), system(T + 30)], cpu=0, sequence=1),
        ),
    )
    assert reading.column("ticks") == [T, T + 10, T + 20, T + 30, T + 40]
    assert reading.column("cpu") == [0, 1, 0, 0, 1]
    assert reading.column("buffer") == [0, 1, 2, 2, 1]
    assert reading.column("buffer_offset") == [72, 72, 72, 104, 104]


def test_equal_times_are_ordered_by_processor_then_sequence_then_place(tmp_path: Path) -> None:
    reading = read_bytes(
        tmp_path,
        trace(
            buffer([system(T + 5, pid=31), system(T + 5, pid=32)], cpu=1, sequence=4),
            buffer([system(T + 5, pid=21), system(T + 9, pid=22)], cpu=0, sequence=3),
            buffer([system(T + 5, pid=11), system(T + 5, pid=12)], cpu=0, sequence=1),
        ),
    )
    assert reading.column("pid") == [4, 11, 12, 21, 31, 32, 22]


def test_a_quiet_processor_whose_first_buffer_is_the_last_of_the_file(tmp_path: Path) -> None:
    busy = [buffer([system(T + 100 * i + k) for k in range(20)], cpu=0, sequence=i + 1) for i in range(30)]
    quiet = buffer([system(T + 7, pid=99), system(T + 2950, pid=99)], cpu=3, sequence=99)

    for window_buffers in (1, 4, 1024):
        reading = read_bytes(tmp_path, trace(*busy, quiet), window_buffers=window_buffers)
        ticks = reading.column("ticks")
        assert ticks == sorted(ticks)
        assert [i for i, pid in enumerate(reading.column("pid")) if pid == 99] == [1 + 7 + 1, len(ticks) - 1]


def test_a_wrapped_circular_file_is_put_in_order_by_time(tmp_path: Path) -> None:
    """The oldest buffers are overwritten in place, so the file order begins in the middle."""
    wrapped = [buffer([system(T + 10 * number)], sequence=number) for number in (7, 8, 4, 5, 6)]
    reading = read_bytes(tmp_path, trace(*wrapped, mode=2))

    assert reading.header.is_circular
    assert reading.column("ticks")[1:] == [T + 40, T + 50, T + 60, T + 70, T + 80]
    assert reading.kinds == {"wrapped_file"}
    assert reading.problem("wrapped_file").count == 3


def test_repeated_and_contradicting_sequence_numbers_are_said_and_times_decide(tmp_path: Path) -> None:
    reading = read_bytes(
        tmp_path,
        trace(
            buffer([system(T + 30)], sequence=1),
            buffer([system(T + 20)], sequence=2),
            buffer([system(T + 10)], sequence=2),
            buffer([system(T + 40)], sequence=3),
        ),
    )
    assert reading.column("ticks") == [T, T + 10, T + 20, T + 30, T + 40]
    assert reading.kinds == {"sequence_fault"}


def test_gaps_in_the_sequence_are_a_note_unless_buffers_were_lost(tmp_path: Path) -> None:
    buffers = [buffer([system(T + 10 * n)], sequence=n, cpu=n % 2) for n in (1, 2, 5, 6, 9)]

    note = read_bytes(tmp_path, trace(*buffers))
    gap = note.problem("sequence_gap")
    assert (gap.count, gap.kind.severity, gap.first_ticks, gap.last_ticks) == (4, "note", T + 20, T + 60)
    assert not note.losses.spans
    assert not note.losses.is_everywhere

    lost = read_bytes(tmp_path, trace(*buffers, buffers_lost=4))
    assert lost.problem("lost_buffers").count == 4
    assert (lost.problem("lost_buffers").first_ticks, lost.problem("lost_buffers").last_ticks) == (T + 20, T + 60)
    # The second gap may belong to processor 0, which has no buffer after it.
    assert lost.losses.spans == [(T + 20, END_OF_TIME)]
    assert not lost.losses.is_everywhere


def test_untimed_records_take_the_time_of_the_one_before(tmp_path: Path) -> None:
    reading = read_bytes(
        tmp_path,
        trace(
            buffer([message(1, 0), message(2, 8, struct.pack("<q", T + 20)), message(3, 0), system(T + 30), message(4, 0)], sequence=1),
            buffer([system(T + 50)], sequence=2),
            buffer([message(5, 0)], sequence=3),
        ),
    )
    assert reading.column("ticks") == [T, T + 20, T + 20, T + 20, T + 30, T + 30, T + 50, T + 50]
    assert reading.column("event_id") == [0, 1, 2, 3, 0, 4, 0, 5]


@pytest.mark.parametrize("window_buffers", [1, 2, 1024])
def test_time_stamps_that_go_back_are_sorted_and_said(tmp_path: Path, window_buffers: int) -> None:
    reading = read_bytes(
        tmp_path,
        trace(
            buffer([system(T + 10), system(T + 40), system(T + 20), system(T + 30)], sequence=1),
            buffer([system(T + 50, pid=1), system(T + 5, pid=2), system(T + 60, pid=3)], sequence=2),
        ),
        window_buffers=window_buffers,
    )
    # A record may not come before the start of its buffer: windows before that are gone already.
    assert reading.column("ticks") == [T, T + 10, T + 20, T + 30, T + 40, T + 50, T + 50, T + 60]
    assert reading.column("pid")[-3:] == [1, 2, 3]
    assert reading.problem("disorder").count == 2
    assert reading.problem("disorder").place == "buffer 1"


@pytest.mark.parametrize("ticks", [0, -1, -(1 << 63), (1 << 63) - 1])
def test_an_absurd_time_stamp_is_replaced_and_said(tmp_path: Path, ticks: int) -> None:
    zero = 1 << 57
    reading = read_bytes(
        tmp_path,
        trace(
            buffer([system(zero + 10), system(ticks), system(zero + 30)]),
            buffer([system(ticks), system(zero + 5)], cpu=1),
            start_ticks=zero,
        ),
    )
    assert reading.column("ticks") == [zero, zero + 5, zero + 5, zero + 10, zero + 10, zero + 30]
    assert reading.problem("damaged_time").count == 2


def test_a_first_time_stamp_far_from_all_buffers_is_not_time_0(tmp_path: Path) -> None:
    buffers = [buffer([system(T + 10 * n)], sequence=n) for n in range(1, 6)]
    reading = read_bytes(tmp_path, trace(*buffers, start_ticks=(1 << 62) + 5))

    assert reading.header.clock.start_ticks == T + 10
    assert f"time stamp of the header {(1 << 62) + 5:}" in reading.problem("invalid_header_time").text
    assert reading.column("ticks") == [T + 10, T + 10, T + 20, T + 30, T + 40, T + 50]


def test_a_damaged_first_time_stamp_of_one_buffer_costs_no_order(tmp_path: Path) -> None:
    buffers = [buffer([system(T + 10 * n), system(T + 10 * n + 5)], sequence=n) for n in range(1, 8)]
    late = buffer([system(T + 5000), system(T + 45)], sequence=4)
    buffers[3] = late
    for window_buffers in (1, 2, 1024):
        reading = read_bytes(tmp_path, trace(*buffers), window_buffers=window_buffers)
        ticks = reading.column("ticks")
        assert ticks[-1] == T + 5000
        assert ticks[:-1] == [T, *(T + 10 * n + k for n in range(1, 8) for k in (0, 5) if (n, k) != (4, 0))]


def test_a_trace_whose_records_all_have_one_time(tmp_path: Path) -> None:
    """Nothing may wait for a later time stamp: memory would grow with the file."""
    buffers = [buffer([system(T, pid=100 * n + k) for k in range(8)], cpu=n % 3, sequence=n) for n in range(1, 31)]
    reading = read_bytes(tmp_path, trace(*buffers), window_buffers=2)

    assert reading.windows >= 14
    expected = [100 * n + k for cpu in range(3) for n in range(1, 31) if n % 3 == cpu for k in range(8)]
    assert reading.column("pid")[1:] == expected


@st.composite
def traces(draw: st.DrawFn) -> bytes:
    """Traces of some processors, buffers shuffled, with ties, untimed records and now and then disorder or a wrong sequence number."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    numbers = itertools.count(1)
    buffers = []
    clocks = [T] * draw(st.integers(1, 4))
    spread = draw(st.sampled_from([0, 1, 3, 50]))
    damage = draw(st.sampled_from([0.0, 0.0, 0.1]))
    for _ in range(draw(st.integers(0, 25))):
        cpu = rng.randrange(len(clocks))
        records = []
        for _ in range(rng.randrange(7)):
            clocks[cpu] += rng.randint(0, spread)
            ticks = clocks[cpu] - (rng.randint(0, 200) if rng.random() < damage else 0)
            kind = rng.randrange(6)
            if kind == 0:
                records.append(message(rng.randrange(100), 0))
            elif kind == 1:
                records.append(perfinfo(ticks))
            elif kind == 2:
                records.append(event(ticks, rng.randrange(1000, 1040), bytes(rng.randrange(9))))
            else:
                records.append(system(ticks, pid=rng.randrange(1000), payload=bytes(rng.randrange(9))))
        sequence = next(numbers) if rng.random() >= damage else rng.randrange(30)
        buffers.append(buffer(records, cpu=cpu, sequence=sequence, flags=0x22 if rng.random() < damage else 0x20))
    if draw(st.booleans()):
        rng.shuffle(buffers)
    return trace(*buffers, events_lost=draw(st.sampled_from([0, 3])))


@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=traces(), window_buffers=st.integers(1, 9), window_bytes=st.sampled_from([1, 300, 2000]))
def test_where_windows_are_cut_changes_nothing(tmp_path: Path, content: bytes, window_buffers: int, window_bytes: int) -> None:
    whole = read_bytes(tmp_path, content)
    pieces = read_bytes(tmp_path, content, window_buffers=window_buffers, window_bytes=window_bytes)
    assert pieces.digest() == whole.digest()


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=traces())
def test_the_order_of_the_file_changes_nothing_in_a_sound_trace(tmp_path: Path, content: bytes) -> None:
    first, rest = content[:1024], content[1024:]
    buffers = [rest[at : at + 1024] for at in range(0, len(rest), 1024)]
    one = read_bytes(tmp_path, content)
    if "sequence_fault" in one.kinds or "disorder" in one.kinds:
        return
    other = read_bytes(tmp_path, first + b"".join(reversed(buffers)))

    assert np.array_equal(one.columns["ticks"], other.columns["ticks"])
    assert one.payloads == other.payloads
    assert np.array_equal(one.columns["pid"], other.columns["pid"])
