"""Header fields of every kind of record as columns."""

import struct
from collections.abc import Callable, Sequence
from uuid import UUID

import numpy as np
import pytest

from collector.raw import HeaderKind
from collector.readers.etl_headers import HeaderColumns, header_columns
from collector.readers.etl_walk import PAD_BYTES, walk
from tests.etl_bytes import AFD, LOST_EVENT, body, event, full, items, message, opaque, perfinfo, system

ACTIVITY = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")


def columns_of(records: Sequence[bytes], *, file_pointer_size: int = 8) -> HeaderColumns:
    content = body(records)
    data = np.frombuffer(content + bytes(PAD_BYTES), np.uint8)
    found = walk(data, np.array([0]), np.array([len(content)]))
    return header_columns(data, found.positions, file_pointer_size=file_pointer_size)


def row(columns: HeaderColumns, i: int = 0) -> dict[str, int]:
    return {name: int(getattr(columns, name)[i]) for name in HeaderColumns.__dataclass_fields__}


def guid(columns: HeaderColumns, i: int = 0) -> UUID:
    halves = np.array([columns.guid_low[i], columns.guid_high[i]], np.uint64)
    return UUID(bytes_le=halves.tobytes())


@pytest.mark.parametrize(("kind", "header", "pointer_size"), [(1, 32, 4), (2, 32, 8), (3, 24, 4), (4, 24, 8)])
def test_system_and_compact(kind: int, header: int, pointer_size: int) -> None:
    found = row(columns_of([system(5, 0x0F24, b"payload", tid=12, pid=0x1000, version=3, kind=kind)]))

    assert found["kind"] == kind
    assert (found["pid"], found["tid"], found["version"], found["pointer_size"]) == (0x1000, 12, 3, pointer_size)
    assert (found["group"], found["opcode"], found["event_id"], found["level"]) == (0x0F, 0x24, 0, 0)
    assert (found["payload"], found["payload_size"], found["extended"]) == (header, 7, -1)


@pytest.mark.parametrize(("kind", "pointer_size"), [(16, 4), (17, 8)])
def test_perfinfo_has_no_ids(kind: int, pointer_size: int) -> None:
    found = row(columns_of([perfinfo(5, 0x1820, b"12345678", kind=kind)]))

    assert (found["pid"], found["tid"], found["pointer_size"]) == (-1, -1, pointer_size)
    assert (found["group"], found["opcode"], found["payload"], found["payload_size"]) == (0x18, 0x20, 16, 8)


@pytest.mark.parametrize("make", [system, perfinfo])
def test_extra_words_of_hardware_counters_are_skipped(make: Callable[..., bytes]) -> None:
    """Bit 15 of the version announces one word, bits 8 to 10 up to seven more; 0x8700 is no part of the version."""
    plain = row(columns_of([make(5, payload=b"abc", version=0x0302)]))
    one = row(columns_of([make(5, payload=bytes(8) + b"abc", version=0x8002)]))
    four = row(columns_of([make(5, payload=bytes(32) + b"abc", version=0x8302)]))

    assert [found["version"] for found in (plain, one, four)] == [0x0302, 2, 2]
    assert [found["payload_size"] for found in (plain, one, four)] == [3, 3, 3]
    assert [found["payload"] - plain["payload"] for found in (one, four)] == [8, 32]


@pytest.mark.parametrize(("kind", "header", "pointer_size"), [(10, 48, 4), (20, 48, 8), (11, 72, 4), (21, 72, 8)])
def test_full_and_instance(kind: int, header: int, pointer_size: int) -> None:
    columns = columns_of([full(5, LOST_EVENT, 32, b"xyz", tid=0xFFFFFFFF, pid=77, version=0x1234, kind=kind)])
    found = row(columns)

    assert guid(columns) == LOST_EVENT
    assert (found["opcode"], found["level"], found["version"], found["event_id"]) == (32, 5, 0x1234, 0)
    assert (found["pid"], found["tid"], found["pointer_size"], found["group"]) == (77, -1, pointer_size, -1)
    assert (found["payload"], found["payload_size"]) == (header, 3)


@pytest.mark.parametrize(("kind", "pointer_size"), [(18, 4), (19, 8)])
def test_event(kind: int, pointer_size: int) -> None:
    columns = columns_of([event(5, 1013, b"data", version=2, level=5, opcode=60, keyword=1 << 63 | 4, activity=ACTIVITY, kind=kind)])
    found = row(columns)

    assert guid(columns) == AFD
    assert (found["event_id"], found["version"], found["level"], found["opcode"]) == (1013, 2, 5, 60)
    assert found["keyword"] == 1 << 63 | 4
    assert found["activity"] == int.from_bytes(ACTIVITY.bytes_le[:8], "little")
    assert (found["pointer_size"], found["extended"], found["payload"], found["payload_size"]) == (pointer_size, -1, 80, 4)


def test_extended_items_stand_between_header_and_payload() -> None:
    chain = items((1, bytes(16)), (6, bytes(8 + 24)), (11, b"odd"))
    found = row(columns_of([event(5, payload=b"data", extended=chain)]))

    assert (found["extended"], found["payload"], found["payload_size"]) == (80, 80 + len(chain), 4)
    assert not found["is_damaged"]


@pytest.mark.parametrize(
    "chain",
    [
        struct.pack("<HHHH", 0, 6, 0, 0),  # no size
        struct.pack("<HHHH", 200, 6, 0, 100),  # leaves the record
        struct.pack("<HHHH", 16, 6, 0, 9) + bytes(8),  # more data than the item
        struct.pack("<HHHH", 16, 6, 1, 8) + bytes(8),  # announces another item at the end of the record
    ],
)
def test_a_damaged_chain_leaves_no_payload(chain: bytes) -> None:
    columns = columns_of([event(5, extended=chain), event(6, payload=b"fine")])

    first, second = row(columns, 0), row(columns, 1)
    assert first["is_damaged"]
    assert (first["payload_size"], first["extended"]) == (0, -1)
    assert (second["is_damaged"], second["payload_size"]) == (0, 4)


def test_messages_take_their_parts_from_their_options() -> None:
    everything = struct.pack("<I", 9) + LOST_EVENT.bytes_le + struct.pack("<qII", 5, 12, 34)
    usual = LOST_EVENT.bytes_le + struct.pack("<qII", 5, 12, 34)
    columns = columns_of(
        [
            message(43, 0xAA, usual, b"args"),
            message(44, 0x6B, everything, b"x"),
            message(45, 0x24, struct.pack("<III", 7, 12, 34)),
            message(46, 0x00, b"", b"bare"),
        ],
        file_pointer_size=4,
    )

    assert columns.kind.tolist() == [HeaderKind.MESSAGE] * 4
    assert columns.event_id.tolist() == [43, 44, 45, 46]
    assert columns.group.tolist() == [-1, -1, -2, -2]
    assert guid(columns, 0) == guid(columns, 1) == LOST_EVENT
    assert columns.tid.tolist() == [12, 12, 12, -1]
    assert columns.pid.tolist() == [34, 34, 34, -1]
    assert columns.pointer_size.tolist() == [8, 4, 4, 4]
    assert columns.payload_size.tolist() == [4, 1, 0, 4]


def test_a_message_shorter_than_its_options_say_is_damaged() -> None:
    found = row(columns_of([message(43, 0xAA, bytes(10))]))
    assert found["is_damaged"]
    assert found["payload_size"] == 0


def test_kinds_that_nobody_documents_stay_opaque() -> None:
    columns = columns_of([opaque(13, 24), opaque(99, 30), opaque(5, 16, flags=0xB0)], file_pointer_size=4)

    assert columns.kind.tolist() == [13, 99, 0xB0]
    assert columns.group.tolist() == [-2, -2, -2]
    assert columns.pid.tolist() == [-1, -1, -1]
    assert columns.pointer_size.tolist() == [4, 4, 4]
    assert columns.payload_size.tolist() == [16, 22, 8]


def test_extra_words_beyond_the_record_are_damage() -> None:
    found = row(columns_of([system(5, payload=bytes(8), version=0x8302)]))
    assert found["is_damaged"]
    assert found["payload_size"] == 0


def test_all_kinds_mixed_give_each_its_own_fields() -> None:
    records = [system(1), event(2, 7), full(3, LOST_EVENT, 33), perfinfo(4), message(5, 0), opaque(13), event(6, 8, kind=18)]
    columns = columns_of(records * 3)

    assert columns.kind.tolist() == [2, 19, 20, 17, 0x90, 13, 18] * 3
    assert columns.event_id.tolist() == [0, 7, 0, 0, 5, 0, 8] * 3
    assert columns.opcode.tolist() == [0x21, 12, 33, 0x2E, 0, 0, 12] * 3
    assert columns.pid.tolist() == [4, 4, 4, -1, -1, -1, 4] * 3
