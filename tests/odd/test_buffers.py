"""Buffers that are zeroed, swapped, repeated, gone, cut, or of another size than they say; and files that end anywhere."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from collector.errors import TraceError
from collector.etlwriter import Compression
from tests.build import Trace, afd
from tests.etl_reading import read_bytes, read_path
from tests.odd.collected import ALL_SENDS, collected, six_sends

Capture = pytest.CaptureFixture[str]
NUMBERS = range(1, 7)


def without(*numbers: int) -> list[tuple[int, int, str]]:
    return [send for send in ALL_SENDS if send[0] not in numbers]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_zeroed_buffer_costs_itself_alone(tmp_path: Path, capsys: Capture, number: int) -> None:
    found = collected(six_sends().zero_buffer(number).bytes(), tmp_path, capsys)
    assert found.sends == without(number)
    if number == NUMBERS[-1]:  # as the rest of a preallocated file would be, but the header counts it
        assert found.kinds == {"buffers_missing"}
    else:
        assert found.kinds - {"sequence_gap", "sockets_without_create", "unknown_owners"} == {"zeroed_buffer"}
        assert found.problems["zeroed_buffer"]["place"] == f"byte {1024 * number:,}"
    assert found.status == 3


@pytest.mark.parametrize(("first", "second"), [(1, 2), (1, 6), (2, 5), (5, 6)])
def test_swapped_buffers_are_put_in_order(tmp_path: Path, capsys: Capture, first: int, second: int) -> None:
    found = collected(six_sends().swap_buffers(first, second).bytes(), tmp_path, capsys)
    assert found.sends == ALL_SENDS
    assert found.kinds == set()
    assert found.status == 0


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("method", [Compression.NONE, Compression.XPRESS])
def test_a_repeated_buffer_is_said_and_read_once(tmp_path: Path, capsys: Capture, number: int, method: Compression) -> None:
    found = collected(six_sends(compression=method).repeat_buffer(number).bytes(), tmp_path, capsys)
    assert found.sends == ALL_SENDS
    assert found.kinds == {"repeated_buffer", "sequence_fault", "buffers_written_differs"}
    assert str(found.problems["repeated_buffer"]["place"]).startswith(f"buffer {number + 1} at byte")
    assert "Buffers that are copies of an earlier one of the file: 1." in found.said
    assert found.status == 3


@pytest.mark.parametrize("times", [2, 3])
def test_a_file_followed_by_itself_counts_nothing_twice(tmp_path: Path, capsys: Capture, times: int) -> None:
    content = six_sends().bytes()
    once = collected(content, tmp_path, capsys)
    (tmp_path / "again").mkdir()
    found = collected(content * times, tmp_path / "again", capsys)
    assert (found.sends, found.records) == (once.sends, once.records)
    assert found.problems["repeated_buffer"]["count"] == 7 * (times - 1)
    assert (once.status, found.status) == (0, 3)


def test_buffers_of_one_number_with_other_records_are_no_copies(tmp_path: Path, capsys: Capture) -> None:
    """The sequence number of the third is that of the second, as if a session had counted wrong."""
    found = collected(six_sends().overwrite_in_buffer(3, 0x18, struct.pack("<Q", 2)).bytes(), tmp_path, capsys)
    assert found.sends == ALL_SENDS
    assert "repeated_buffer" not in found.kinds


@pytest.mark.parametrize("number", NUMBERS)
def test_a_buffer_that_is_gone_is_a_loss(tmp_path: Path, capsys: Capture, number: int) -> None:
    found = collected(six_sends().drop_buffer(number).bytes(), tmp_path, capsys)
    assert found.sends == without(number)
    assert "buffers_missing" in found.kinds
    assert found.status == 3


@pytest.mark.parametrize("number", [1, 4])
@pytest.mark.parametrize("offset", [0x00, 0x30])
@pytest.mark.parametrize("value", [0, 7, 71, 1025, 65535, 1 << 24, 0xFFFFFFFF])
def test_a_size_that_lies_costs_nothing(tmp_path: Path, capsys: Capture, number: int, offset: int, value: int) -> None:
    found = collected(six_sends().overwrite_in_buffer(number, offset, struct.pack("<I", value)).bytes(), tmp_path, capsys)
    assert found.sends == ALL_SENDS
    assert found.kinds == {"damaged_buffer"}
    assert found.problems["damaged_buffer"]["count"] == 1
    assert str(found.problems["damaged_buffer"]["place"]).startswith(f"buffer {number}")
    assert found.status == 3


@pytest.mark.parametrize("field", [0x04, 0x08, 0x0C, 0x10, 0x20, 0x28, 0x2A, 0x2C, 0x38, 0x40])
@pytest.mark.parametrize("value", [0, 0xFFFFFFFF])
def test_fields_of_a_buffer_that_mean_nothing_hide_nothing(tmp_path: Path, capsys: Capture, field: int, value: int) -> None:
    found = collected(six_sends().overwrite_in_buffer(3, field, struct.pack("<I", value)).bytes(), tmp_path, capsys)
    assert sorted(found.sends) == ALL_SENDS


SIZES = [0, 7, 8, 15, 31, 65535]


@pytest.mark.parametrize("number", [1, 6])
@pytest.mark.parametrize("size", SIZES)
def test_a_record_size_that_cannot_be_right_ends_its_buffer_alone(tmp_path: Path, capsys: Capture, number: int, size: int) -> None:
    found = collected(six_sends().overwrite_in_buffer(number, 72, struct.pack("<H", size)).bytes(), tmp_path, capsys)
    assert [send for send in found.sends if send[0] != number] == without(number)
    assert found.kinds & {"damaged_record", "unknown_header_kind"}
    assert found.status == 3
    assert "damage" in found.said


def test_cut_at_every_byte_each_record_before_the_cut_is_read(tmp_path: Path) -> None:
    content = small().bytes()
    whole = read_bytes(tmp_path, content)
    size = whole.header.buffer_size
    starts = [buffer * size + offset for buffer, offset in zip(whole.column("buffer"), whole.column("buffer_offset"), strict=True)]
    ends = [*starts[1:], None]
    refused: list[tuple[int, str]] = []
    for cut in range(1, len(content)):
        path = tmp_path / "cut.etl"
        path.write_bytes(content[:cut])
        try:
            reading = read_path(path, window_buffers=1)
        except TraceError as error:
            refused.append((cut, str(error)))
            continue
        sound = sum(1 for start, end in zip(starts, ends, strict=True) if end is not None and end <= cut and start < cut)
        assert len(reading) >= sound - 1, cut
        assert reading.kinds & {"truncated_file", "buffers_missing"}, cut
    assert [cut for cut, _ in refused] == list(range(1, size))
    assert all("cut.etl" in words for _, words in refused)


def small() -> Trace:
    built = Trace(buffer_size=1024).cpu(0, afd.opened(at_us=10))
    return built.flush(at_us=20).cpu(0, afd.sent(at_us=30, length_bytes=1))


@pytest.mark.parametrize("cut", [600, 1024, 1025, 1095, 1096, 2000, 3072, 4500, 7167])
def test_a_cut_file_is_stored_as_far_as_it_goes(tmp_path: Path, capsys: Capture, cut: int) -> None:
    found = collected(six_sends().bytes()[:cut], tmp_path, capsys)
    if cut < 1024:
        assert (found.status, found.records) == (1, 0)
        assert "the file is cut" in found.said
    else:
        assert found.status == 3
        assert found.kinds & {"truncated_file", "buffers_missing"}
        assert found.sends == ALL_SENDS[: len(found.sends)]
        assert len(found.sends) >= (cut - 1024) // 1024


def _damaged(content: bytes) -> bytes:
    return content[:90] + bytes(byte ^ 0xA5 for byte in content[90:])


def _too_much(content: bytes) -> bytes:
    """The header says that fewer bytes come out than do."""
    return content[:0x30] + struct.pack("<I", 72 + 80) + content[0x34:]


def _nothing(content: bytes) -> bytes:
    return content[:72] + bytes(len(content) - 72)


@pytest.mark.parametrize("method", [Compression.LZNT1, Compression.XPRESS, Compression.XPRESS_HUFF])
@pytest.mark.parametrize("damage", [_damaged, _too_much, _nothing])
@pytest.mark.parametrize("number", [1, 6])
def test_a_packed_buffer_that_is_damaged_costs_itself_alone(
    tmp_path: Path, capsys: Capture, method: Compression, damage: Callable[[bytes], bytes], number: int
) -> None:
    trace = six_sends(compression=method)
    pieces = Trace._split(bytearray(trace.bytes()))
    pieces[number] = damage(pieces[number])
    found = collected(b"".join(pieces), tmp_path, capsys)
    assert [send for send in found.sends if send[0] != number] == without(number)
    assert found.kinds & {"decompression_failed", "damaged_record", "damaged_buffer", "unknown_header_kind"}
    assert found.status == 3


def test_a_source_that_is_not_there_and_one_that_is_none(tmp_path: Path, capsys: Capture) -> None:
    for content, words in (
        (b"", "the file is empty"),
        (six_sends().bytes()[:500], "the file is cut"),
        (b"PK\x03\x04" + bytes(500), "zip archive"),
        (bytes(range(128, 256)) * 40, "not an ETL file"),
    ):
        found = collected(content, tmp_path, capsys)
        assert found.status == 1
        assert words in found.said
        assert len(found.said.splitlines()) == 1


def test_random_bytes_behind_a_good_first_buffer_are_damage(tmp_path: Path, capsys: Capture) -> None:
    noise = bytes((37 * i * i + 11 * i + 201) % 256 for i in range(6 * 1024))
    found = collected(six_sends().bytes()[:1024] + noise, tmp_path, capsys)
    assert (found.status, found.records, found.sends) == (3, 1, [])
    assert "damaged_buffer" in found.kinds
