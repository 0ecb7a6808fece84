"""Fields that are absent, of different width, or of a length that the content decides."""

import struct

import pytest

from collector.decoder import Decoder
from collector.events.heap import HEAP, MEMORY
from collector.events.system import IMAGE, LOST_EVENT, PROCESS, STACK_WALK, THREAD
from tests.decoding import BIND_64, CREATE_64, DROP_64, FREE_64, IPV4_443, afd, decode, heap, key
from tests.raw_events import Record

# ---------------------------------------------------------------------------------------------------- absent fields


def test_an_absent_field_is_missing_and_not_zero() -> None:
    batch = decode(heap(0x20, CREATE_64[:12], version=0), heap(0x20, CREATE_64, version=3), heap(0x20, CREATE_64[:20], version=3))

    create = batch.events["HeapCreate"]
    assert create.numbers("reserved_space").tolist() == [0, 1048576, 1048576]
    assert create.missing["reserved_space"].tolist() == [True, False, False]
    assert create.missing["allocated_space"].tolist() == [True, False, True]
    assert "heap_handle" not in create.missing


def test_a_field_that_is_cut_is_absent() -> None:
    decoder = Decoder()

    create = decode(heap(0x20, CREATE_64[:19], version=3), decoder=decoder).events["HeapCreate"]

    assert create.missing["reserved_space"].tolist() == [True]
    assert decoder.trailing[key(HEAP, 0x20, 3)].count == 1


def test_a_snapshot_of_the_oldest_form_ends_with_its_flags() -> None:
    oldest = struct.pack("<QQQQI", 1, 2, 3, 4, 2)

    snapshot = decode(heap(0x26, oldest), heap(0x26, oldest + struct.pack("<I", 4120))).events["HeapSnapShot"]

    assert snapshot.missing["process_id"].tolist() == [True, False]
    assert snapshot.numbers("process_id").tolist() == [0, 4120]


def test_versions_and_widths_of_one_event_stand_in_the_order_of_their_records() -> None:
    small = struct.pack("<II", 0x2D0000, 2)
    batch = decode(
        heap(0x20, CREATE_64, version=3),
        heap(0x20, small, version=0, pointer_size=4),
        heap(0x24, FREE_64),
        heap(0x20, CREATE_64[:12], version=2),
        heap(0x20, small, version=3, pointer_size=4),
    )

    create = batch.events["HeapCreate"]
    assert create.rows.tolist() == [0, 1, 3, 4]
    assert create.numbers("heap_flags").tolist() == [0x1002, 2, 0x1002, 2]
    assert create.missing["reserved_space"].tolist() == [False, True, True, True]


def test_fields_of_different_width_in_two_versions_take_the_wider() -> None:
    """The process id was a pointer in version 0; sizes of images grew from 4 bytes to a pointer."""
    old = struct.pack("<QI", 0x7FF0, 0x1000) + b"a\0\0\0"
    new = struct.pack("<QQI", 0x8FF0, 1 << 33, 77) + b"b\0\0\0"
    columns = decode(Record(IMAGE, new, opcode=3, version=1), Record(IMAGE, old, opcode=3, version=0)).events["ImageDCStart"]

    assert columns.numbers("image_size").tolist() == [1 << 33, 0x1000]
    assert columns.missing["process_id"].tolist() == [False, True]
    assert columns.texts("file_name") == ["b", "a"]


# ---------------------------------------------------------------------------------------------------- addresses


def test_fields_behind_a_socket_address_stand_at_its_end() -> None:
    batch = decode(
        afd(1033, DROP_64 + struct.pack("<I", 16) + IPV4_443 + struct.pack("<I", 2)),
        afd(1033, DROP_64 + struct.pack("<I", 0) + struct.pack("<I", 3)),
        afd(1033, DROP_64 + struct.pack("<I", 28) + bytes(range(28)) + struct.pack("<I", 4)),
    )

    drop = batch.events["AfdDatagramDropWithAddress"]
    assert drop.numbers("reason").tolist() == [2, 3, 4]
    assert drop.numbers("address_len").tolist() == [16, 0, 28]
    assert drop.numbers("address").shape == (3, 28)
    assert drop.numbers("address")[0].tobytes() == IPV4_443 + bytes(12)
    assert drop.numbers("address")[1].tobytes() == bytes(28)
    assert drop.numbers("address")[2].tobytes() == bytes(range(28))


@pytest.mark.parametrize("length", [17, 21, 0x7FFFFFFF, 0xFFFFFFFF])
def test_an_address_longer_than_the_payload_is_damage(length: int) -> None:
    batch = decode(afd(1030, BIND_64 + struct.pack("<I", length) + IPV4_443), afd(1030, BIND_64 + struct.pack("<I", 16) + IPV4_443))

    assert batch.damaged.tolist() == [0]
    assert batch.events["AfdBindWithAddress"].rows.tolist() == [1]


def test_an_address_that_leaves_no_room_for_what_follows_is_damage() -> None:
    batch = decode(afd(1033, DROP_64 + struct.pack("<I", 18) + IPV4_443 + struct.pack("<I", 2)))

    assert batch.damaged.tolist() == [0]
    assert batch.events == {}


def test_of_a_huge_address_the_first_bytes_are_kept() -> None:
    huge = bytes(i % 251 for i in range(300))

    drop = decode(afd(1033, DROP_64 + struct.pack("<I", 300) + huge + struct.pack("<I", 5))).events["AfdDatagramDropWithAddress"]

    assert drop.numbers("address").shape == (1, 128)
    assert drop.numbers("address")[0].tobytes() == huge[:128]
    assert drop.numbers("address_len").tolist() == [300]
    assert drop.numbers("reason").tolist() == [5]


def test_widths_of_addresses_are_joined_over_pointer_sizes() -> None:
    bind_32 = bytes.fromhex("01000000 761b0000 80302211 10e03322 00000000")
    batch = decode(
        afd(1030, BIND_64 + struct.pack("<I", 40) + bytes(range(40))),
        afd(1030, bind_32 + struct.pack("<I", 16) + IPV4_443, pointer_size=4),
    )

    bind = batch.events["AfdBindWithAddress"]
    assert bind.numbers("address").shape == (2, 40)
    assert bind.numbers("address")[1].tobytes() == IPV4_443 + bytes(24)
    assert bind.numbers("process").tolist() == [0xFFFF9A0C11223080, 0x11223080]


# ---------------------------------------------------------------------------------------------------- lists, SIDs, texts


def test_frames_run_to_the_end_of_the_record() -> None:
    head = struct.pack("<QII", 5, 100, 104)
    batch = decode(
        Record(STACK_WALK, head + struct.pack("<3Q", 1, 2, 3), opcode=0x20),
        Record(STACK_WALK, head, opcode=0x20),
        Record(STACK_WALK, head + struct.pack("<2I", 0xFFFFFFFF, 5), opcode=0x20, pointer_size=4),
        Record(STACK_WALK, head + struct.pack("<Q", 9), opcode=0x20),
    )

    frames = batch.events["StackWalk"].ragged("frames")
    assert [frames.row(i).tolist() for i in range(len(frames))] == [[1, 2, 3], [], [0xFFFFFFFF, 5], [9]]


def _rundown(count: int, *pairs: int, reserved: bytes = bytes(4)) -> Record:
    payload = struct.pack("<QIII", 0x1D0000, 2, 4120, count) + reserved + struct.pack(f"<{len(pairs)}Q", *pairs)
    return Record(MEMORY, payload, opcode=0x64, version=2)


def test_ranges_follow_a_reserved_word_or_not() -> None:
    batch = decode(
        _rundown(2, 0x1000, 16, 0x2000, 32), _rundown(2, 0x3000, 48, 0x4000, 64, reserved=b""), _rundown(0), _rundown(0, reserved=b"")
    )

    rundown = batch.events["HeapRangeRundown"]
    ranges = rundown.ragged("ranges")
    assert [ranges.row(i).tolist() for i in range(4)] == [[0x1000, 16, 0x2000, 32], [0x3000, 48, 0x4000, 64], [], []]
    assert rundown.missing["reserved"].tolist() == [False, True, False, True]


def test_ranges_that_are_cut_are_those_that_are_there() -> None:
    ranges = decode(_rundown(1000, 0x1000, 16), _rundown(1000, 0x2000, 32, reserved=b"")).events["HeapRangeRundown"].ragged("ranges")

    assert [ranges.row(i).tolist() for i in range(2)] == [[0x1000, 16], [0x2000, 32]]


def _process(sid: bytes, image: bytes = b"a.exe\0", command: bytes = b"a\0\0\0", tail: bytes = bytes(4)) -> Record:
    return Record(
        PROCESS, struct.pack("<QIIIiQI", 0xFFFF800000001000, 8, 4, 0, 259, 0, 0) + sid + image + command + tail, opcode=1, version=4
    )


SID = bytes.fromhex("0105000000000005 15000000 11223344 55667788 99aabbcc e9030000")


def test_a_sid_is_absent_or_stands_behind_its_token() -> None:
    start = decode(_process(bytes(4)), _process(b"\7" * 16 + SID)).events["ProcessStart"]

    assert start.missing["user_sid"].tolist() == [True, False]
    assert start.numbers("user_sid")[1].tobytes() == SID + bytes(68 - len(SID))
    assert start.texts("image_file_name") == ["a.exe", "a.exe"]


@pytest.mark.parametrize(
    "sid",
    [b"\7" * 16 + b"\1\x10" + bytes(6 + 64), b"\7" * 16 + b"\1\xff" + bytes(6), b"\7\7\7", b"\7" * 20],
    ids=["16", "255", "3 bytes", "cut"],
)
def test_a_sid_of_too_many_parts_or_cut_is_damage(sid: bytes) -> None:
    record = _process(sid)
    if len(sid) in (3, 20):
        record = record.with_payload(record.payload[: 36 + len(sid)])

    assert decode(record).damaged.tolist() == [0]


def test_texts_are_read_whatever_they_hold() -> None:
    start = decode(
        _process(bytes(4), "ü.exe".encode() + b"\0", "Ā\0".encode("utf-16-le")),
        _process(bytes(4), b"\xfc.exe\0", b"\0\xd8" + b"x\0" + b"\0\0"),
        _process(bytes(4), b"\0", b"\0\0"),
    ).events["ProcessStart"]

    assert start.texts("image_file_name") == ["ü.exe", "ü.exe", ""]
    assert start.texts("command_line") == ["Ā", "\ufffdx", ""]


@pytest.mark.parametrize("cut", range(1, 15))
def test_a_text_without_its_end_is_damage(cut: int) -> None:
    record = _process(bytes(4))

    assert decode(record.with_payload(record.payload[:-cut])).damaged.tolist() == [0]


def test_a_thread_may_have_no_name() -> None:
    fields = struct.pack("<II7QIbBBB", 8, 12, 1, 2, 3, 4, 5, 6, 7, 0, 8, 5, 2, 0)
    threads = decode(
        Record(THREAD, fields, opcode=1, version=3),
        Record(THREAD, fields + b"i\0o\0\0\0", opcode=1, version=3),
        Record(THREAD, fields + b"i\0o\0", opcode=1, version=3),
    ).events["ThreadStart"]

    assert threads.texts("thread_name") == ["", "io", "io"]
    assert threads.missing["thread_name"].tolist() == [True, False, False]


def test_a_marker_of_lost_events_needs_no_payload() -> None:
    batch = decode(Record(LOST_EVENT, b"", opcode=32), Record(LOST_EVENT, bytes(8), opcode=33), Record(LOST_EVENT, b"", opcode=34))

    assert {name: columns.rows.tolist() for name, columns in batch.events.items()} == {
        "RTLostEvent": [0],
        "RTLostBuffer": [1],
        "RTLostFile": [2],
    }
