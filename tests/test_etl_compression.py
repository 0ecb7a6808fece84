"""Compressed files: every format, and damage that the packed bytes hide."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from collector.etlwriter.compression import xpress
from collector.readers.etl import EtlReader
from collector.source import Source
from tests.etl_bytes import (
    COMPRESSED,
    START_TICKS,
    body,
    buffer,
    literals_huffman,
    literals_lznt1,
    literals_xpress,
    packed_trace,
    patched,
    six,
    system,
    trace,
)
from tests.etl_reading import read_bytes
from tests.odd.hostile import swelling_buffers

T = START_TICKS


@pytest.mark.parametrize(("state", "pack"), [(2, literals_lznt1), (3, literals_xpress), (4, literals_huffman), (77, literals_xpress)])
def test_each_compression_format(tmp_path: Path, state: int, pack: Callable[[bytes], bytes]) -> None:
    reading = read_bytes(tmp_path, packed_trace(state, pack=pack))
    assert reading.header.is_compressed
    assert reading.problems == []
    assert len(reading) == 49
    assert set(reading.payloads[1:]) == {bytes(range(16))}


def test_a_plain_buffer_in_a_compressed_file(tmp_path: Path) -> None:
    records = [system(T + 5), system(T + 6)]
    packed, later = (buffer(records, sequence=number, packed=literals_xpress(body(records))) for number in (1, 3))
    plain = buffer([system(T + 7)], sequence=2, size=512)
    reading = read_bytes(tmp_path, trace(packed, plain, later, mode=COMPRESSED, first_size=512))
    assert reading.column("ticks") == [T, T + 5, T + 5, T + 6, T + 6, T + 7]


@pytest.mark.parametrize("damage", [b"\xff" * 300, b"", bytes(10), b"\x00\x00\x00\x80" + b"\x07\x00" * 20])
def test_a_buffer_that_does_not_expand_costs_only_itself(tmp_path: Path, damage: bytes) -> None:
    reading = read_bytes(tmp_path, packed_trace(damage={2: damage}))
    assert 37 <= len(reading) < 49
    assert reading.problem("decompression_failed").count == 1
    assert "buffer 2 at byte" in reading.problem("decompression_failed").text
    assert reading.losses.spans


@pytest.mark.parametrize("beyond", [1, 8, 100])
def test_a_buffer_whose_last_match_goes_beyond_its_end_is_whole(tmp_path: Path, beyond: int) -> None:
    """The bytes behind the last record are a run that the packer took in one match, longer than the buffer."""
    content = body([system(T + n, payload=bytes(16)) for n in range(1, 9)])
    packed = buffer(packed=xpress(content + bytes(3 + beyond)), filled=72 + len(content), sequence=1)
    reading = read_bytes(tmp_path, trace(packed, mode=COMPRESSED, first_size=512))
    assert reading.problems == []
    assert reading.column("ticks") == [T, *range(T + 1, T + 9)]


def test_a_wrong_size_of_a_compressed_buffer_is_found_out(tmp_path: Path) -> None:
    content = packed_trace()
    second = 512 + struct.unpack_from("<I", content, 512)[0]
    for size in (second + 40, 5000, 1 << 20):
        reading = read_bytes(tmp_path, patched(content, 512, struct.pack("<I", size)))
        assert len(reading) == 49, size
        assert "the next buffer begins after" in reading.problem("damaged_buffer").text


@pytest.mark.parametrize("size", [0, 30, 0xFFFFFFFF])
def test_behind_an_unreadable_header_of_a_compressed_file_the_next_one_is_searched(tmp_path: Path, size: int) -> None:
    content = packed_trace()
    second = 512 + struct.unpack_from("<I", content, 512)[0]
    reading = read_bytes(tmp_path, patched(content, second, struct.pack("<I", size)))
    assert len(reading) == 37
    assert reading.problem("damaged_buffer").count == 1


def test_a_compressed_file_that_ends_inside_a_buffer(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, packed_trace()[:-100])
    assert 37 < len(reading) < 49
    assert reading.kinds == {"truncated_file"}


def test_the_flag_of_compression_alone_makes_no_compressed_buffer(tmp_path: Path) -> None:
    buffers = six()
    buffers[2] = patched(buffers[2], 0x34, struct.pack("<H", 0x60))
    reading = read_bytes(tmp_path, b"".join(buffers))
    assert len(reading) == 11
    assert "flag of a compressed buffer" in reading.problem("damaged_buffer").text


def test_buffers_that_swell_are_read_one_after_the_other(tmp_path: Path) -> None:
    """Whose first time stamp is not known must be kept open from the start: 4 MB of such buffers took 1.2 GB."""
    path = tmp_path / "swelling.etl"
    path.write_bytes(swelling_buffers(1 << 20))
    with Source.open(path) as source:
        sizes = [len(raw) for raw in EtlReader(source).windows()]
    assert sum(sizes) > 1_000_000
    assert max(sizes) < 600_000
