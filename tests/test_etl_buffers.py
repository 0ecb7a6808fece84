"""Buffer headers and the expansion of compressed buffers."""

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.etlwriter.compression import xpress
from collector.readers.etl_buffers import HEADER_BYTES, MAX_BUFFER_BYTES, BufferHeader, Compression, expand, xpress_start
from tests.etl_bytes import buffer, literals_huffman, literals_lznt1, literals_xpress, system

PLAIN = bytes(range(256)) * 30


def test_the_fields_stand_where_the_layout_says() -> None:
    header = BufferHeader.parse(buffer([system(5)], cpu=3, sequence=77, size=2048, time_stamp=99, flags=0x22))
    assert header == BufferHeader(
        size=2048,
        saved_offset=104,
        current_offset=2056,
        time_stamp=99,
        sequence=77,
        processor=3,
        state=3,
        filled=104,
        flags=0x22,
        type=0,
    )


@pytest.mark.parametrize(
    ("flags", "processor", "cpu"),
    [(0x20, 0x07FF, 0x7FF), (0x20, 0x0801, 1), (0x00, 0x0802, 2), (0x00, 0x08FF, 255)],
)
def test_the_processor_number_depends_on_a_flag(flags: int, processor: int, cpu: int) -> None:
    assert BufferHeader.parse(buffer(flags=flags, processor=processor)).cpu == cpu


@pytest.mark.parametrize(
    ("size", "type_", "flags", "is_plausible"),
    [
        (HEADER_BYTES - 1, 0, 0, False),
        (HEADER_BYTES, 0, 0, True),
        (MAX_BUFFER_BYTES, 7, 0x7F, True),
        (MAX_BUFFER_BYTES + 1, 0, 0, False),
        (1024, 8, 0, False),
        (1024, 0, 0x80, False),
        (0, 0, 0, False),
    ],
)
def test_what_can_be_a_header(size: int, type_: int, flags: int, is_plausible: bool) -> None:
    raw = bytearray(buffer())
    struct.pack_into("<I", raw, 0, size)
    struct.pack_into("<HH", raw, 0x34, flags, type_)
    assert BufferHeader.parse(bytes(raw)).is_plausible is is_plausible


@pytest.mark.parametrize(
    ("packed", "plain"),
    [
        # the two examples of MS-XCA, section 3.1
        ("3f000000" + "6162636465666768696a6b6c6d6e6f707172737475767778797a", b"abcdefghijklmnopqrstuvwxyz"),
        ("ffffff1f61626317000fff2601", b"abc" * 100),
    ],
)
def test_xpress_as_its_specification_shows_it(packed: str, plain: bytes) -> None:
    assert expand(bytes.fromhex(packed), len(plain), Compression.XPRESS) == plain


def test_lznt1_with_a_match_that_overlaps_itself() -> None:
    # One chunk of 6 bytes: flags (the fourth token is a match), a, b, c, then distance 3 and length 297 in 4 and 12 bits.
    assert expand(bytes.fromhex("05b0" + "08" + "616263" + "2621"), 300, Compression.LZNT1) == b"abc" * 100


@pytest.mark.parametrize(
    ("method", "pack"),
    [(Compression.LZNT1, literals_lznt1), (Compression.XPRESS, literals_xpress), (Compression.XPRESS_HUFF, literals_huffman)],
)
@pytest.mark.parametrize("size", [1, 8, 40, 4095, 4096, 4097, 7680])
def test_each_format_gives_the_bytes_back(method: Compression, pack: Callable[[bytes], bytes], size: int) -> None:
    assert expand(pack(PLAIN[:size]), size, method) == PLAIN[:size]


@pytest.mark.parametrize("method", list(Compression))
@pytest.mark.parametrize("packed", [b"", b"\0", b"\xff" * 3, b"\xff" * 400, bytes(400), bytes(range(256)) * 4])
@pytest.mark.parametrize("size", [0, 1, 40, 65536])
def test_damage_gives_at_most_what_was_asked_for(method: Compression, packed: bytes, size: int) -> None:
    assert len(expand(packed, size, method)) <= size


def huffman_abc() -> bytes:
    """abc, a match of distance 3 and length 297, end of stream: codes of two bits for the letters, three for the others (MS-XCA 2.2)."""
    lengths = bytearray(256)
    for symbol, bits in ((97, 2), (98, 2), (99, 2), (256, 3), (256 + 16 + 15, 3)):
        lengths[symbol // 2] |= bits << 4 * (symbol % 2)
    word = int("0001101111110000", 2)
    return bytes(lengths) + struct.pack("<HHBH", word, 0, 0xFF, 294)


@pytest.mark.parametrize(
    ("method", "packed"),
    [
        (Compression.XPRESS, bytes.fromhex("ffffff1f61626317000fff2601")),
        (Compression.LZNT1, bytes.fromhex("05b0086162632621")),
        (Compression.XPRESS_HUFF, huffman_abc()),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 4, 5, 60, 150, 298, 299, 300])
def test_a_last_match_that_goes_beyond_the_end_is_taken_up_to_it(method: Compression, packed: bytes, size: int) -> None:
    """Recorded files have such buffers: their last records would be lost with the whole buffer."""
    assert expand(packed, size, method) == (b"abc" * 100)[:size]


def test_a_longer_stream_is_cut_at_the_size_asked_for() -> None:
    assert expand(literals_xpress(PLAIN), 100, Compression.XPRESS) == PLAIN[:100]


def test_a_shorter_stream_gives_what_it_has() -> None:
    assert expand(literals_xpress(PLAIN[:64]), 100, Compression.XPRESS) == PLAIN[:64]


@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=9), st.sampled_from([1, 2, 5, 40, 90, 400, 70_000])), max_size=12), st.integers(0, 80)
)
def test_the_start_of_a_packed_stream_is_that_of_the_whole(runs: list[tuple[bytes, int]], size: int) -> None:
    plain = b"".join(piece * (1 + count // len(piece)) for piece, count in runs)
    packed = xpress(plain)
    assert xpress_start(packed, size) == plain[:size]
    for cut in (0, 1, 5, 37, 46, 48, 60, 256):
        assert plain.startswith(xpress_start(packed[:cut], size))
    assert len(xpress_start(packed[:256], 40)) == min(40, len(plain))


@given(st.binary(max_size=300), st.integers(0, 200))
def test_the_start_of_any_bytes_is_at_most_what_was_asked_for(packed: bytes, size: int) -> None:
    assert len(xpress_start(packed, size)) <= size
