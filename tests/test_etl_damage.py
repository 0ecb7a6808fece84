"""Damaged files: what can be read is read, what cannot is named with a count and a place."""

import struct
from pathlib import Path

import pytest

from collector.errors import Severity
from tests.etl_bytes import BUFFER_BYTES, START_TICKS, buffer, event, opaque, patched, six, system, trace
from tests.etl_reading import read_bytes

T = START_TICKS


def test_a_sound_file_has_no_problem(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, b"".join(six()))
    assert len(reading) == 11
    assert reading.problems == []


def test_a_zeroed_buffer_in_the_middle_hides_no_other(tmp_path: Path) -> None:
    buffers = six()
    buffers[3] = bytes(BUFFER_BYTES)

    reading = read_bytes(tmp_path, b"".join(buffers))

    assert reading.column("ticks") == [T, *(T + 10 * n + k for n in (1, 2, 4, 5) for k in (0, 5))]
    assert reading.problem("zeroed_buffer").count == 1
    assert reading.problem("zeroed_buffer").place == "byte 3,072"
    assert reading.losses.spans == [(T + 20, T + 40)]  # the gap in the sequence says where
    assert not reading.losses.is_everywhere


def test_zeros_at_the_end_are_the_rest_of_a_preallocated_file(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, b"".join(six()) + bytes(3 * BUFFER_BYTES))
    assert len(reading) == 11
    assert reading.problems == []


def test_only_the_zeroed_buffers_before_the_end_are_counted(tmp_path: Path) -> None:
    buffers = six()
    buffers[1] = buffers[4] = buffers[5] = bytes(BUFFER_BYTES)
    reading = read_bytes(tmp_path, b"".join(buffers))
    assert reading.problem("zeroed_buffer").count == 1


@pytest.mark.parametrize("rest", [1, 71, 72, 1000, 1024, 5000])
def test_random_bytes_behind_a_good_first_buffer(tmp_path: Path, rest: int) -> None:
    noise = bytes((37 * i * i + 11 * i + 201) % 256 for i in range(rest))
    reading = read_bytes(tmp_path, six()[0] + noise)

    assert len(reading) == 1
    if rest < 72:
        assert reading.problem("truncated_file").text == f"The file ends inside a buffer: {72 - rest} bytes are missing."
    else:
        assert reading.problem("damaged_buffer").count == -(-rest // BUFFER_BYTES)
        assert "buffer 1 at byte 1,024 has buffer size" in reading.problem("damaged_buffer").text
    assert reading.losses.is_everywhere or reading.losses.spans or rest < 72


@pytest.mark.parametrize("size", [0, 71, 73, 2048, 1 << 24, (1 << 24) + 1, 0xFFFFFFFF])
@pytest.mark.parametrize("number", [1, 3, 5])
def test_a_buffer_size_that_cannot_be_right(tmp_path: Path, size: int, number: int) -> None:
    buffers = six()
    buffers[number] = patched(buffers[number], 0, struct.pack("<I", size))

    reading = read_bytes(tmp_path, b"".join(buffers))

    assert len(reading) == 11
    assert reading.problem("damaged_buffer").count == 1
    assert f"buffer size {size:,}, 1,024 was used" in reading.problem("damaged_buffer").text


def test_a_larger_buffer_among_equal_ones_is_read_whole(tmp_path: Path) -> None:
    buffers = six()
    large = buffer([system(T + 21 + k) for k in range(50)], sequence=6, size=2048)
    reading = read_bytes(tmp_path, b"".join([*buffers[:3], large, *buffers[3:]]))
    assert len(reading) == 61
    assert "buffer size 2,048, 2,048 was used where 1,024 is usual" in reading.problem("damaged_buffer").text


@pytest.mark.parametrize("declared", [0, 71, 4096, 1 << 25, 0xFFFFFFFF])
def test_a_declared_buffer_size_that_cannot_be_right(tmp_path: Path, declared: int) -> None:
    content = patched(b"".join(six()), 72 + 32, struct.pack("<I", declared))
    assert len(read_bytes(tmp_path, content)) == 11


@pytest.mark.parametrize("filled", [0, 71, BUFFER_BYTES + 1, 0xFFFFFFFF])
def test_an_end_of_data_that_cannot_be_right(tmp_path: Path, filled: int) -> None:
    buffers = six()
    buffers[2] = patched(buffers[2], 0x30, struct.pack("<I", filled))

    reading = read_bytes(tmp_path, b"".join(buffers))

    assert len(reading) == 11
    assert reading.problem("damaged_buffer").count == 1
    assert f"filled size {filled:,}" in reading.problem("damaged_buffer").text
    assert reading.problem("damaged_buffer").place == "buffer 2 at byte 2,048"


def test_unknown_types_and_flags_are_read_and_said(tmp_path: Path) -> None:
    buffers = six()
    buffers[2] = patched(buffers[2], 0x34, struct.pack("<HH", 0x0120, 9))
    reading = read_bytes(tmp_path, b"".join(buffers))
    assert len(reading) == 11
    assert "type 9 and flags 0x0120" in reading.problem("damaged_buffer").text


def test_an_empty_marker_has_no_records_and_is_no_damage(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, trace(buffer(type_=6, filled=0), buffer([system(T + 5)], sequence=2)))
    assert len(reading) == 2
    assert reading.kinds == set()


@pytest.mark.parametrize("cut", [1, 500, BUFFER_BYTES - 72 - 40, BUFFER_BYTES - 73])
def test_a_file_that_ends_inside_a_buffer(tmp_path: Path, cut: int) -> None:
    content = b"".join(six())[:-cut]
    reading = read_bytes(tmp_path, content)

    assert len(reading) == {1: 11, 500: 11, BUFFER_BYTES - 72 - 40: 10, BUFFER_BYTES - 73: 9}[cut]
    assert reading.kinds == {"truncated_file"}
    assert reading.problem("truncated_file").details["missing"] == cut
    assert reading.losses.after(T + 55)


def test_more_buffers_than_declared(tmp_path: Path) -> None:
    for written in (0, 1, 5):
        reading = read_bytes(tmp_path, b"".join(six(buffers_written=written)))
        assert len(reading) == 11
        assert reading.kinds == {"buffers_written_differs"}
        assert f"counts {written:,} buffers, the file holds 6" in reading.problem("buffers_written_differs").text
        assert not reading.losses.after(T)


def test_fewer_buffers_than_declared_are_a_loss_at_the_end(tmp_path: Path) -> None:
    for written in (7, 1000):
        reading = read_bytes(tmp_path, b"".join(six(buffers_written=written)))
        assert len(reading) == 11
        assert reading.kinds == {"buffers_missing"}
        problem = reading.problem("buffers_missing")
        assert (problem.count, problem.kind.severity) == (written - 6, Severity.DATA_LOSS)
        assert f"counts {written:,} buffers, the file holds 6" in problem.text
        assert reading.losses.after(T + 55)


@pytest.mark.parametrize("kept", range(1, 6))
def test_a_file_cut_between_two_buffers(tmp_path: Path, kept: int) -> None:
    reading = read_bytes(tmp_path, b"".join(six()[:kept]))

    assert reading.kinds == {"buffers_missing"}
    assert reading.problem("buffers_missing").count == 6 - kept
    assert reading.losses.after(T + 55)


def test_buffers_cut_out_of_the_middle_are_a_loss_at_their_place(tmp_path: Path) -> None:
    buffers = six()
    reading = read_bytes(tmp_path, b"".join(buffers[:2] + buffers[4:]))

    assert reading.kinds == {"buffers_missing", "sequence_gap"}
    assert reading.losses.between(T + 20, T + 40)
    assert not reading.losses.after(T + 55)


@pytest.mark.parametrize("damage", [bytes(24), b"\xff" * 24, struct.pack("<HBBHH", 2, 2, 0xC0, 3, 0x1021) + bytes(16)])
def test_a_damaged_record_ends_its_buffer_alone(tmp_path: Path, damage: bytes) -> None:
    reading = read_bytes(
        tmp_path,
        trace(
            buffer([system(T + 10), damage, system(T + 20)], sequence=1),
            buffer([system(T + 30)], sequence=2),
        ),
    )
    assert reading.column("ticks") == [T, T + 10, T + 30]
    problem = reading.problem("damaged_record")
    assert (problem.count, problem.place) == (1, "buffer 1, offset 104")
    assert "Bytes skipped behind them: 56." in problem.text
    assert reading.losses.spans == [(T + 10, T + 30)]


def test_a_record_shorter_than_its_own_header_is_kept_and_said(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, trace(buffer([event(T + 10, extended=bytes(16)), system(T + 20)])))
    assert reading.column("payload_size")[1:] == [0, 0]
    assert reading.column("ticks") == [T, T + 10, T + 20]
    problem = reading.problem("damaged_record")
    assert (problem.count, problem.place, problem.first_ticks) == (1, "buffer 1, offset 72", T + 10)


def test_unknown_kinds_are_counted_by_kind(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, trace(buffer([opaque(13), system(T + 10), opaque(99), opaque(13), opaque(0, flags=0xB0)])))
    problem = reading.problem("unknown_header_kind")
    assert problem.count == 4
    assert "(2 of kind 13, 1 of kind 99, 1 of kind 176)" in problem.text
    assert len(reading) == 6
