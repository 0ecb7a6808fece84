"""The quick ways of the reader give what the plain ones give: records, header fields, order, the index of buffers."""

import dataclasses
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.errors import TraceError
from collector.raw import HeaderKind
from collector.readers import etl_index
from collector.readers.etl import EtlReader
from collector.readers.etl_buffers import BufferIndex
from collector.readers.etl_headers import header_columns
from collector.readers.etl_walk import walk
from collector.source import Source
from tests.etl_bytes import START_TICKS, body, buffer, event, full, items, message, opaque, perfinfo, system, trace
from tests.etl_reading import read_bytes
from tests.reference_walk import plain_walk
from tests.test_etl_walk import laid_out

T = START_TICKS
FROM_HEADERS = ("kind", "pointer_size", "pid", "tid", "event_id", "opcode", "version", "level", "keyword", "activity")
PLACES = ("payload", "payload_size", "extended")


def any_record(rng: random.Random, ticks: int, *, is_timed: bool = False) -> bytes:
    """A record of some kind; its payload often holds what looks like records."""
    payload = rng.choice([b"", rng.randbytes(rng.randrange(40)), system(ticks), body([event(ticks), system(ticks, payload=bytes(4))])])
    bits = rng.randrange(1 << 16)
    choices = [
        lambda: system(
            ticks, bits, payload, tid=rng.choice([8, 0xFFFFFFFF]), version=rng.choice([2, 3, 0x8102]), kind=rng.choice([1, 2, 3, 4])
        ),
        lambda: perfinfo(ticks, bits, payload, kind=rng.choice([16, 17])),
        lambda: full(ticks, opcode=bits & 0xFF, payload=payload, kind=rng.choice([10, 11, 20, 21])),
        lambda: event(ticks, bits, payload, level=bits & 7, keyword=bits, kind=rng.choice([18, 19])),
        lambda: event(ticks, 1003, payload, extended=items((1, bytes(16)), (6, rng.randbytes(24)))),
        lambda: event(ticks, 1003, payload, extended=rng.randbytes(rng.randrange(1, 30))),
        lambda: message(bits, rng.choice([0, 0x02, 0x20, 0x3F, 0xE2]), rng.randbytes(rng.randrange(44))),
        lambda: opaque(rng.choice([12, 99]), flags=rng.choice([0xC0, 0xB0])),
    ]
    return rng.choice(choices[:5] if is_timed else choices)()


@st.composite
def contents(draw: st.DrawFn) -> list[bytes]:
    """What some buffers hold: records, now and then with bytes between them that are none, or cut."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    damage = draw(st.sampled_from([0.0, 0.1]))
    found = []
    for _ in range(draw(st.integers(1, 12))):
        content = b""
        for _ in range(rng.randrange(9)):
            content += body([any_record(rng, T)], filler=rng.choice([b"\xcd", b"\xc0"]))
            if rng.random() < damage:
                content += rng.choice([bytes(8), rng.randbytes(8 * rng.randrange(6))])
        found.append(content[: len(content) - rng.randrange(len(content) // 2 + 1)] if rng.random() < damage else content)
    return found


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(contents())
def test_the_records_are_those_of_a_plain_walk(buffers: list[bytes]) -> None:
    data, starts, ends = laid_out(*buffers)

    found = walk(data, starts, ends)

    plain = [plain_walk(content) for content in buffers]
    places = [(start + at, size) for start, (records, _) in zip(starts.tolist(), plain, strict=True) for at, size in records]
    assert list(zip(found.positions.tolist(), found.sizes.tolist(), strict=True)) == places
    assert (found.stops - starts).tolist() == [stop for _, stop in plain]
    assert found.first.tolist() == [int.from_bytes(data[at : at + 8].tobytes(), "little") for at, _ in places]


def test_long_chains_of_copied_records_in_a_payload_are_no_records() -> None:
    """Each round of the quick way drops one false record of a chain; behind the last round the plain way goes on."""
    copies = body([system(T + n) for n in range(60)])
    records = [event(T, payload=bytes(8) + copies), system(T), full(T, payload=bytes(4) + copies)]
    data, starts, ends = laid_out(body(records), body(records), body(records[:1]))

    found = walk(data, starts, ends)

    assert found.sizes.tolist() == [len(record) for record in [*records, *records, records[0]]]
    assert found.stops.tolist() == ((ends + 7) & ~7).tolist()


@st.composite
def sound_traces(draw: st.DrawFn) -> bytes:
    """Traces whose time stamps never go back within a processor, with many equal ones."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    clocks = [T] * draw(st.integers(1, 3))
    spread = draw(st.sampled_from([0, 1, 40]))
    buffers = []
    for sequence in range(1, draw(st.integers(1, 14))):
        cpu = rng.randrange(len(clocks))
        records: list[bytes] = []
        for _ in range(rng.randrange(6)):
            clocks[cpu] += rng.randint(0, spread)
            record = any_record(rng, clocks[cpu], is_timed=not records)
            if len(body([*records, record])) > 900:
                break
            records.append(record)
        buffers.append(buffer(records, cpu=cpu, sequence=sequence))
    return trace(*buffers)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=sound_traces(), window_buffers=st.sampled_from([1, 3, 1024]))
def test_columns_and_order_are_those_of_single_records(tmp_path: Path, content: bytes, window_buffers: int) -> None:
    path = tmp_path / "built.etl"
    path.write_bytes(content)
    rows = []
    with Source.open(path) as source:
        for raw in EtlReader(source, window_buffers=window_buffers).windows():
            expected = header_columns(raw.data, raw.offset, file_pointer_size=8)
            for name in (*FROM_HEADERS, *PLACES):
                assert getattr(raw, name).tolist() == getattr(expected, name).tolist(), name
                assert getattr(raw, name).dtype == getattr(expected, name).dtype, name
            for name in ("kind", "pointer_size", "provider", "event_id", "opcode", "version", "level"):
                assert getattr(raw.forms, name)[raw.form].tolist() == getattr(raw, name).tolist(), name
            rows += list(zip(raw.ticks.tolist(), raw.cpu.tolist(), raw.buffer.tolist(), raw.buffer_offset.tolist(), strict=True))
    # Sequence numbers rise with the place in the file, so the buffer's number stands for them.
    assert rows == sorted(rows)
    records = [
        (number, 72 + at)
        for number in range(len(content) // 1024)
        for at, _ in plain_walk(content[1024 * number + 72 : 1024 * number + int.from_bytes(content[1024 * number + 48 :][:4], "little")])[
            0
        ]
    ]
    assert sorted((number, offset) for _, _, number, offset in rows) == records


def index_of(path: Path) -> BufferIndex:
    with Source.open(path) as source:
        return EtlReader(source)._index


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=sound_traces())
def test_the_index_of_a_sound_file_is_that_of_going_from_buffer_to_buffer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    path = tmp_path / "built.etl"
    path.write_bytes(content)
    at_once = index_of(path)
    with monkeypatch.context() as patch:
        patch.setattr(etl_index, "grid_index", lambda source, grid: None)
        one_by_one = index_of(path)

    for field in dataclasses.fields(BufferIndex):
        assert np.array_equal(getattr(at_once, field.name), getattr(one_by_one, field.name)), field.name


def test_header_kinds_that_occur_in_these_tests_are_all_there_are() -> None:
    rng = random.Random(5)
    data, starts, ends = laid_out(*[any_record(rng, T) for _ in range(400)])
    kinds = set(header_columns(data, walk(data, starts, ends).positions, file_pointer_size=8).kind.tolist())
    assert kinds >= set(HeaderKind) - {HeaderKind.ERROR, HeaderKind.WNODE}


def ends_well(folder: Path, content: bytes) -> None:
    """Reading gives windows that keep their promises (`read_bytes` asks), or an error of ours."""
    try:
        reading = read_bytes(folder, content, window_buffers=2)
    except TraceError:
        return
    assert len(reading) <= len(content)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=sound_traces(), seed=st.integers(0, 1 << 32))
def test_buffers_may_be_swapped_zeroed_repeated_or_lie(tmp_path: Path, content: bytes, seed: int) -> None:
    rng = random.Random(seed)
    buffers = [bytearray(content[at : at + 1024]) for at in range(0, len(content), 1024)]
    for _ in range(rng.randrange(1, 4)):
        one, other = rng.randrange(len(buffers)), rng.randrange(len(buffers))
        match rng.randrange(5):
            case 0:
                buffers[one], buffers[other] = buffers[other], buffers[one]
            case 1:
                buffers[one] = bytearray(1024)
            case 2:
                buffers.insert(other, bytearray(buffers[one]))
            case 3:  # a header that lies about its size, time, sequence, processor, filled size, flags or type
                at = rng.choice([0, 4, 8, 16, 24, 40, 48, 52, 54])
                buffers[one][at : at + 2] = rng.choice([b"\0\0", b"\xff\xff", b"\x48\0", rng.randbytes(2)])
            case _:
                buffers[one][72:] = rng.randbytes(1024 - 72)
    ends_well(tmp_path, b"".join(buffers))
