"""Damaged files: what can be read is read, what cannot is named with a count and a place."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.errors import EmptyTrace, NotAnEtl, TraceError
from collector.losses import END_OF_TIME
from collector.readers import reader_for
from collector.source import Source
from tests.etl_bytes import (
    BUFFER_BYTES,
    LOST_EVENT,
    START_TICKS,
    body,
    buffer,
    event,
    full,
    items,
    literals_huffman,
    literals_lznt1,
    literals_xpress,
    message,
    opaque,
    perfinfo,
    system,
    trace,
)
from tests.etl_reading import Reading, read_bytes

T = START_TICKS
COMPRESSED = 0x04000001


def six(**header: int) -> list[bytes]:
    """A header buffer and five buffers of two records."""
    content = trace(*(buffer([system(T + 10 * n), system(T + 10 * n + 5)], sequence=n) for n in range(1, 6)), **header)
    return [content[at : at + BUFFER_BYTES] for at in range(0, len(content), BUFFER_BYTES)]


def patched(content: bytes, at: int, patch: bytes) -> bytes:
    return content[:at] + patch + content[at + len(patch) :]


# ------------------------------------------------------------------------------------------------ buffers


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


def test_more_and_fewer_buffers_than_declared(tmp_path: Path) -> None:
    for written in (0, 1, 5, 7, 1000):
        reading = read_bytes(tmp_path, b"".join(six(buffers_written=written)))
        assert len(reading) == 11
        assert reading.kinds == {"buffers_written_differs"}
        assert f"counts {written:,} buffers, the file holds 6" in reading.problem("buffers_written_differs").text


# ------------------------------------------------------------------------------------------------ records


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


# ------------------------------------------------------------------------------------------------ losses


def lost_marker(ticks: int, opcode: int = 32) -> bytes:
    return full(ticks, LOST_EVENT, opcode, kind=20)


def test_losses_that_nothing_places_may_be_anywhere(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, trace(buffer([system(T + 10)]), events_lost=41, buffers_lost=0))
    assert reading.losses.is_everywhere
    problem = reading.problem("lost_events")
    assert (problem.count, problem.first_ticks) == (41, None)


def test_a_flag_places_a_loss_in_its_buffer(tmp_path: Path) -> None:
    reading = read_bytes(
        tmp_path,
        trace(
            buffer([system(T + 10), system(T + 20)], sequence=1, flags=0x22),
            buffer([system(T + 30), system(T + 40)], sequence=2, flags=0x24),
            events_lost=3,
            buffers_lost=1,
        ),
    )
    assert reading.losses.spans == [(T + 10, T + 20), (T + 30, T + 40)]
    assert not reading.losses.is_everywhere
    lost = reading.problem("lost_events")
    assert (lost.count, lost.first_ticks, lost.last_ticks) == (3, T + 10, T + 20)
    assert reading.problem("lost_buffers").count == 1


def test_one_loss_in_three_signs_is_counted_once(tmp_path: Path) -> None:
    reading = read_bytes(
        tmp_path,
        trace(
            buffer([system(T + 10), system(T + 15), lost_marker(T + 20)], sequence=1, flags=0x22),
            buffer([system(T + 30)], sequence=2),
            events_lost=3,
        ),
    )
    assert reading.losses.spans == [(T + 20, T + 20)]
    assert not reading.losses.is_everywhere
    assert (reading.problem("lost_events").count, reading.problem("lost_events").first_ticks) == (3, T + 20)


@pytest.mark.parametrize(("opcode", "kind"), [(32, "lost_events"), (33, "lost_buffers"), (34, "lost_buffers")])
def test_markers_alone_count_what_the_header_does_not(tmp_path: Path, opcode: int, kind: str) -> None:
    reading = read_bytes(tmp_path, trace(buffer([lost_marker(T + 10, opcode), lost_marker(T + 20, opcode), lost_marker(T + 25, 31)])))
    assert reading.losses.spans == [(T + 10, T + 10), (T + 20, T + 20)]
    assert reading.kinds == {kind}
    assert reading.problem(kind).count == 2


def test_a_hole_without_a_gap_in_the_sequence_may_be_anywhere(tmp_path: Path) -> None:
    buffers = six()
    reading = read_bytes(tmp_path, b"".join([*buffers[:3], b"\x55" * BUFFER_BYTES, *buffers[3:]]))
    assert reading.losses.is_everywhere


def test_a_cut_file_lacks_everything_after_the_last_buffers(tmp_path: Path) -> None:
    buffers = [buffer([system(T + 10 * n)], cpu=n % 2, sequence=n) for n in range(1, 6)]
    reading = read_bytes(tmp_path, trace(*buffers)[:-100])
    assert reading.losses.spans == [(T + 40, END_OF_TIME)]


# ------------------------------------------------------------------------------------------------ compression


def packed_trace(state: int = 3, *, pack: Callable[[bytes], bytes] = literals_xpress, damage: dict[int, bytes] | None = None) -> bytes:
    """Four compressed buffers; `damage` replaces the packed bytes of some."""
    parts = []
    for n in range(1, 5):
        records = [system(T + 10 * n + k, payload=bytes(range(16))) for k in range(12)]
        parts.append(buffer(records, sequence=n, packed=(damage or {}).get(n, pack(body(records)))))
    return trace(*parts, mode=COMPRESSED, state=state, first_size=512)


@pytest.mark.parametrize(("state", "pack"), [(2, literals_lznt1), (3, literals_xpress), (4, literals_huffman), (77, literals_xpress)])
def test_each_compression_format(tmp_path: Path, state: int, pack: Callable[[bytes], bytes]) -> None:
    reading = read_bytes(tmp_path, packed_trace(state, pack=pack))
    assert reading.header.is_compressed
    assert reading.problems == []
    assert len(reading) == 49
    assert set(reading.payloads[1:]) == {bytes(range(16))}


def test_a_plain_buffer_in_a_compressed_file(tmp_path: Path) -> None:
    records = [system(T + 5), system(T + 6)]
    packed = buffer(records, sequence=1, packed=literals_xpress(body(records)))
    plain = buffer([system(T + 7)], sequence=2, size=512)
    reading = read_bytes(tmp_path, trace(packed, plain, packed, mode=COMPRESSED, first_size=512))
    assert reading.column("ticks") == [T, T + 5, T + 5, T + 6, T + 6, T + 7]


@pytest.mark.parametrize("damage", [b"\xff" * 300, b"", bytes(10), b"\x00\x00\x00\x80" + b"\x07\x00" * 20])
def test_a_buffer_that_does_not_expand_costs_only_itself(tmp_path: Path, damage: bytes) -> None:
    reading = read_bytes(tmp_path, packed_trace(damage={2: damage}))
    assert 37 <= len(reading) < 49
    assert reading.problem("decompression_failed").count == 1
    assert "buffer 2 at byte" in reading.problem("decompression_failed").text
    assert reading.losses.spans


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


# ------------------------------------------------------------------------------------------------ whole files


def test_a_file_cut_inside_its_first_buffer_holds_no_event(tmp_path: Path) -> None:
    content = trace(buffer([system(T + 5)]), buffer_size=BUFFER_BYTES)
    for size in (600, 700, BUFFER_BYTES - 1):
        with pytest.raises(EmptyTrace, match=rf"cut: it ends after {size:,} bytes, inside its first buffer of 1,024 bytes"):
            read_bytes(tmp_path, content[:size])
    with pytest.raises(NotAnEtl, match="the log file header has"):
        read_bytes(tmp_path, content[:300])


def refusal(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "given.etl"
    path.write_bytes(content)
    with Source.open(path) as source, pytest.raises(NotAnEtl) as caught:
        reader_for(source)
    text = str(caught.value)
    assert text.startswith("given.etl: ")
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04" + bytes(500), "zip archive"),
        (b"\x1f\x8b\x08" + bytes(500), "gzip"),
        (b"MSCF" + bytes(500), "cabinet"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(500), "7z archive"),
        (b"ElfFile\0" + bytes(500), r"Windows event log (.evtx)"),
        (b"\xd4\xc3\xb2\xa1" + bytes(500), "packet capture (pcap)"),
        (b"\x0a\x0d\x0d\x0a" + bytes(500), "packet capture (pcapng)"),
        (b"SQLite format 3\0" + bytes(500), "SQLite database"),
        (b"timestamp,event\n1,open\n" * 40, "text"),
        (b"hello", "text"),
        ("<Events>größe</Events>".encode() * 30, "text"),
        ("<Events/>".encode("utf-16") * 30, "text"),
        ("events".encode("utf-16-le") * 30, "text"),
        (bytes(5000), "nothing but zero bytes"),
        (bytes(range(128, 256)) * 10, "no format that is known here (it begins with 80 81 82 83"),
        (bytes(range(128, 160)), "too short for a trace: 32 bytes"),
    ],
)
def test_what_is_no_trace_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    assert words in refusal(tmp_path, content)


EVERY_KIND = [
    *(system(T + 1, kind=kind) for kind in (1, 2, 3, 4)),
    *(perfinfo(T + 1, kind=kind) for kind in (16, 17)),
    *(full(T + 1, kind=kind) for kind in (10, 11, 20, 21)),
    *(event(T + 1, extended=items((1, bytes(16)), (6, bytes(24))), kind=kind) for kind in (18, 19)),
    message(1, 0xAA, LOST_EVENT.bytes_le + struct.pack("<qII", T + 1, 1, 2)),
    opaque(13),
]


def test_each_kind_of_record_in_one_file(tmp_path: Path) -> None:
    for pointer_size in (4, 8):
        reading = read_bytes(tmp_path, trace(buffer(EVERY_KIND, size=2048), buffer_size=2048, pointer_size=pointer_size))
        assert sorted(reading.column("kind")) == sorted(
            [1 if pointer_size == 4 else 2, 1, 2, 3, 4, 16, 17, 10, 11, 20, 21, 18, 19, 0x90, 13]
        )
        assert reading.kinds == {"unknown_header_kind"}


SMALL = trace(
    buffer(EVERY_KIND[:7], sequence=1, cpu=0),
    buffer(EVERY_KIND[7:], sequence=2, cpu=1),
    buffer([system(T + 9), lost_marker(T + 10)], sequence=3, cpu=0, flags=0x22),
    events_lost=2,
)
SMALL_PACKED = packed_trace()


def ends_well(tmp_path: Path, content: bytes) -> Reading | None:
    """Read, or be refused by an error of ours; nothing else."""
    try:
        reading = read_bytes(tmp_path, content, window_buffers=2)
    except TraceError as error:
        return None if "\n" not in str(error) else pytest.fail(str(error))
    assert len(reading) <= len(content) // 8 * 40
    for problem in reading.problems:
        assert problem.text
    return reading


@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.sampled_from([SMALL, SMALL_PACKED]),
    flips=st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(1, 255)), min_size=1, max_size=8),
)
def test_flipped_bytes_end_in_a_result_or_an_error_of_ours(tmp_path: Path, content: bytes, flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(content)
    for at, mask in flips:
        damaged[at % len(damaged)] ^= mask
    ends_well(tmp_path, bytes(damaged))


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.sampled_from([SMALL, SMALL_PACKED]), size=st.integers(1, len(SMALL)))
def test_any_beginning_of_a_file_ends_in_a_result_or_an_error_of_ours(tmp_path: Path, content: bytes, size: int) -> None:
    ends_well(tmp_path, content[:size])


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.binary(max_size=3000), start=st.integers(0, 2000))
def test_any_bytes_behind_any_beginning(tmp_path: Path, noise: bytes, start: int) -> None:
    content = SMALL[:start] + noise
    if content:
        ends_well(tmp_path, content)


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(field=st.integers(0, 67), value=st.sampled_from([0, 1, 7, 71, 72, 1023, 1024, 1025, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]))
def test_any_field_of_the_log_file_header_at_its_limits(tmp_path: Path, field: int, value: int) -> None:
    reading = ends_well(tmp_path, patched(SMALL, 72 + 32 + 4 * field, struct.pack("<I", value)))
    assert reading is not None
    assert len(reading) == 1 + len(EVERY_KIND) + 2
