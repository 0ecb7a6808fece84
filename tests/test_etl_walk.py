"""Where records start, and their time stamps."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.raw import Int64s, UInt8s
from collector.readers.etl_walk import PAD_BYTES, first_ticks, record_sizes, record_ticks, walk
from tests.etl_bytes import LOST_EVENT, body, event, full, item, message, opaque, perfinfo, system

T = 0x1122334455667788

TIMED = [
    system(T, kind=1),
    system(T, kind=2),
    system(T, kind=3),
    system(T, kind=4),
    full(T, kind=10),
    full(T, kind=11),
    perfinfo(T, kind=16),
    perfinfo(T, kind=17),
    event(T, kind=18),
    event(T, kind=19),
    full(T, kind=20),
    full(T, kind=21),
    message(1, 0x08, struct.pack("<q", T)),
    message(1, 0x10, struct.pack("<q", T)),
    message(1, 0x3F, bytes(4) + LOST_EVENT.bytes_le + struct.pack("<qII", T, 1, 2)),
    message(1, 0x0C, bytes(4) + struct.pack("<q", T)),
]
UNTIMED = [message(1, 0x00), message(1, 0x20, bytes(8)), opaque(12), opaque(13), opaque(14), opaque(15), opaque(99), opaque(0, flags=0xB0)]


def laid_out(*contents: bytes, cut: int = 0) -> tuple[UInt8s, Int64s, Int64s]:
    """Contents of buffers one behind the other, from multiples of 8 on, 0xFF between them; the last one cut by some bytes."""
    data, starts, ends = b"", [], []
    for content in contents:
        starts.append(len(data))
        data += content
        ends.append(len(data))
        data += b"\xff" * (16 - len(data) % 8)
    ends[-1] -= cut
    return np.frombuffer(data + bytes(PAD_BYTES), np.uint8), np.array(starts), np.array(ends)


@pytest.mark.parametrize("record", TIMED, ids=lambda record: record[:4].hex())
def test_the_time_stamp_of_each_kind(record: bytes) -> None:
    data, starts, ends = laid_out(body([record]))
    ticks, has_time = record_ticks(data, walk(data, starts, ends))
    assert (ticks.tolist(), has_time.tolist()) == ([T], [True])
    assert first_ticks(record[:40]) == T


@pytest.mark.parametrize("record", UNTIMED, ids=lambda record: record[:4].hex())
def test_kinds_without_a_time_stamp(record: bytes) -> None:
    data, starts, ends = laid_out(body([record]))
    ticks, has_time = record_ticks(data, walk(data, starts, ends))
    assert (ticks.tolist(), has_time.tolist()) == ([0], [False])
    assert first_ticks(record[:40]) is None


def test_a_message_too_short_for_its_own_time_has_none() -> None:
    record = message(1, 0x08, bytes(7))
    data, starts, ends = laid_out(body([record]))
    assert record_ticks(data, walk(data, starts, ends))[1].tolist() == [False]
    assert first_ticks(record.ljust(40, b"\0")) is None


@pytest.mark.parametrize("buffers", [1, 47, 48, 200])
def test_all_records_of_all_buffers_are_found(buffers: int) -> None:
    """With few buffers a plain loop walks, with many they go in lockstep."""
    records = [TIMED[i % len(TIMED)] for i in range(23)]
    contents = [body(records[: i % 24]) for i in range(buffers)]
    data, starts, ends = laid_out(*contents)

    found = walk(data, starts, ends)

    expected = []
    for i, start in enumerate(starts.tolist()):
        for record in records[: i % 24]:
            expected.append(start)
            start += (len(record) + 7) & ~7
    assert found.positions.tolist() == expected
    assert found.stops.tolist() == ends.tolist()
    assert record_sizes(data, found.positions).tolist() == [len(r) for i in range(buffers) for r in records[: i % 24]]


@pytest.mark.parametrize("buffers", [1, 60])
@pytest.mark.parametrize(
    "damage",
    [
        bytes(16),
        b"\xff" * 16,
        b"\x18\x00\x02\x40" + bytes(20),  # flags say that this is no record
        struct.pack("<HBBHH", 2, 2, 0xC0, 31, 0x1021) + bytes(24),  # one byte short of its header
        struct.pack("<HBBHH", 2, 2, 0xC0, 48, 0x1021) + bytes(32),  # longer than what is left
    ],
)
def test_bytes_that_are_no_record_end_a_buffer(buffers: int, damage: bytes) -> None:
    good = body([system(5), system(6)])
    data, starts, ends = laid_out(*([good + damage] * buffers))

    found = walk(data, starts, ends)

    assert found.positions.tolist() == [start + at for start in starts.tolist() for at in (0, 32)]
    assert found.stops.tolist() == (starts + 64).tolist()


@pytest.mark.parametrize("buffers", [1, 60])
def test_the_end_of_data_cuts_exactly(buffers: int) -> None:
    record = system(5, payload=b"abc")  # 35 bytes
    content = body([record, record])
    whole = [content] * (buffers - 1)

    for cut, expected in ((0, 2), (5, 2), (6, 1), (40, 1), (45, 1), (46, 0)):
        data, starts, ends = laid_out(*whole, content, cut=cut)
        found = walk(data, starts, ends)
        mine = found.positions[found.positions >= starts[-1]]
        assert mine.size == expected, cut
        assert found.stops[-1] - starts[-1] in (40 * expected, ends[-1] - starts[-1])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.binary(min_size=0, max_size=200), min_size=1, max_size=70))
def test_any_bytes_end_in_a_walk(contents: list[bytes]) -> None:
    """Both ways of walking give the same records, whatever the bytes."""
    prefixed = [system(9) + content for content in contents]
    data, starts, ends = laid_out(*prefixed)

    together = walk(data, starts, ends)
    alone = [walk(data, starts[i : i + 1], ends[i : i + 1]) for i in range(starts.size)]

    assert together.positions.tolist() == [at for one in alone for at in one.positions.tolist()]
    assert together.stops.tolist() == [int(one.stops[0]) for one in alone]
    assert (together.stops <= ((ends + 7) & ~7)).all()
    ticks, _ = record_ticks(data, together)
    assert ticks.size == together.positions.size


def test_extended_items_are_part_of_the_record() -> None:
    record = event(T, extended=item(1, bytes(16)), payload=b"12345")
    data, starts, ends = laid_out(body([record, system(T + 1)]))
    found = walk(data, starts, ends)
    assert record_ticks(data, found)[0].tolist() == [T, T + 1]
