"""Whole files: what is no trace is named, and any bytes end in a result or in an error of ours."""

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.errors import EmptyTrace, NotAnEtl, SourceError, TraceError
from collector.readers import reader_for
from collector.source import Source
from tests.etl_bytes import BUFFER_BYTES, EVERY_KIND, START_TICKS, buffer, lost_marker, packed_trace, patched, system, trace
from tests.etl_reading import Reading, read_bytes

T = START_TICKS


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
        (bytes(5000), "filled with zero bytes"),
        (bytes(range(128, 256)) * 10, "begins with the bytes 80 81 82 83"),
        (bytes(range(128, 160)), "too short for a trace: 32 bytes"),
    ],
)
def test_what_is_no_trace_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    assert words in refusal(tmp_path, content)


def test_each_kind_of_record_in_one_file(tmp_path: Path) -> None:
    for pointer_size in (4, 8):
        reading = read_bytes(tmp_path, trace(buffer(EVERY_KIND, size=2048), buffer_size=2048, pointer_size=pointer_size))
        assert sorted(reading.column("kind")) == sorted(
            [1 if pointer_size == 4 else 2, 1, 2, 3, 4, 16, 17, 10, 11, 20, 21, 18, 19, 0x90, 13]
        )
        assert reading.kinds == {"unknown_header_kind"}


def test_a_file_that_shrinks_while_it_is_read_is_an_error_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "shrinking.etl"
    path.write_bytes(SMALL)
    with Source.open(path) as source:
        reader = reader_for(source)
        path.write_bytes(SMALL[:1500])
        with pytest.raises(SourceError, match=r"shrinking\.etl: the file became shorter while it was being read: buffer 2 at byte 2,048"):
            list(reader.windows())


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
