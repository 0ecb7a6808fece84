"""Windows of records to columns: keys, versions, pointer sizes, damage, absent fields, and nothing ever raised."""

import struct
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.decoder import Decoder, VersionKey
from collector.events import ALL_EVENTS, SCHEMAS
from collector.events.afd import AFD
from collector.events.heap import HEAP, HEAP_RANGES, MEMORY
from collector.events.system import IMAGE, LOST_EVENT, PROCESS, STACK_WALK, THREAD
from collector.raw import HeaderKind
from collector.schema import DecodedBatch, EventKey, EventSchema, Field, sizet, table_of, u32, u64
from tests.raw_events import CLOCK, Record, raw_events

OTHER = UUID("11111111-2222-3333-4444-555555555555")

# The five records of HT-08, behind their headers: a 64-bit and a 32-bit process in one trace.
ALLOC_64 = bytes.fromhex("00001d0000000000 5000000000000000 30121d0000000000 02000000")
ALLOC_32 = bytes.fromhex("00001d00 50000000 30121d00 02000000")
FREE_64 = bytes.fromhex("00001d0000000000 30121d0000000000 02000000")
REALLOC_32 = bytes.fromhex("00001d00 30121d00 30121d00 60000000 50000000 03000000")
CREATE_64 = bytes.fromhex("00002d0000000000 02100000 0000100000000000 0020000000000000 4007000000000000")

SEND_64 = bytes.fromhex("00000000 b80b0000 803022110c9affff 10e033220c9affff 01000000 d0c0b0a0f4010000 00020000 00000000")
BIND_64 = bytes.fromhex("01000000 761b0000 803022110c9affff 10e033220c9affff 00000000")
IPV4_443 = bytes.fromhex("0200 01bb c0000207 0000000000000000")
DROP_64 = bytes.fromhex("02000000 00000000 803022110c9affff 10e033220c9affff 0000000000000000 00020000")


def heap(opcode: int, payload: bytes, *, version: int = 2, pointer_size: int = 8, kind: HeaderKind | None = None, pid: int = 4) -> Record:
    return Record(HEAP, payload, opcode=opcode, version=version, pointer_size=pointer_size, kind=kind, pid=pid)


def afd(event_id: int, payload: bytes, *, version: int = 0, pointer_size: int = 8, opcode: int = 0) -> Record:
    return Record(AFD, payload, event_id=event_id, version=version, pointer_size=pointer_size, opcode=opcode)


def decode(*records: Record, decoder: Decoder | None = None, providers: list[UUID] | None = None) -> DecodedBatch:
    """`providers` belongs to several windows of one trace."""
    return (decoder or Decoder()).decode(raw_events(records, providers=providers), CLOCK)


def key(provider: UUID, number: int, version: int = 0, *, is_classic: bool = True) -> VersionKey:
    return EventKey(provider, is_classic, number), version


# ---------------------------------------------------------------------------------------------------- which event, which width


def test_pointers_follow_the_record_and_not_the_file() -> None:
    batch = decode(
        heap(0x21, ALLOC_64, pid=4444),
        heap(0x21, ALLOC_32, pointer_size=4, pid=5555),
        heap(0x24, FREE_64, pid=4444),
        heap(0x22, REALLOC_32, pointer_size=4, pid=5555),
        heap(0x20, CREATE_64, version=3, pid=4444),
    )

    alloc, realloc, create = batch.events["HeapAlloc"], batch.events["HeapReAlloc"], batch.events["HeapCreate"]
    assert alloc.rows.tolist() == [0, 1]
    assert alloc.numbers("alloc_address").tolist() == [0x1D1230, 0x1D1230]
    assert alloc.numbers("alloc_size").tolist() == [80, 80]
    assert alloc.numbers("heap_handle").dtype == np.uint64
    assert batch.events["HeapFree"].numbers("free_address").tolist() == [0x1D1230]
    assert realloc.numbers("new_alloc_size").tolist() == [96]
    assert realloc.numbers("old_alloc_size").tolist() == [80]
    assert create.numbers("heap_flags").tolist() == [4098]
    assert [create.numbers(name).tolist() for name in ("reserved_space", "committed_space", "allocated_space")] == [
        [1048576],
        [8192],
        [1856],
    ]


def test_a_full_header_with_the_heap_class_is_a_heap_event() -> None:
    batch = decode(
        heap(0x24, FREE_64, kind=HeaderKind.FULL64), heap(0x24, FREE_64, kind=HeaderKind.PERFINFO64, pid=-1), heap(0x24, FREE_64)
    )

    assert batch.events["HeapFree"].rows.tolist() == [0, 1, 2]


def test_the_event_id_counts_and_not_the_opcode() -> None:
    """Opcode 12 belongs to many events of the provider; an id can be the opcode of another event."""
    batch = decode(afd(1003, SEND_64, opcode=24), afd(24, SEND_64[8:36], opcode=10))

    assert {name: columns.rows.tolist() for name, columns in batch.events.items()} == {"SendCompleted": [1], "AfdSend": [0]}


def test_a_number_of_another_kind_of_header_is_another_event() -> None:
    """The heap class in a manifest event, the socket provider in a classic one: nobody has declared those."""
    batch = decode(
        Record(HEAP, FREE_64, event_id=0x24),
        Record(AFD, SEND_64, opcode=3),
        Record(PROCESS, b"", event_id=1),
        Record(AFD, SEND_64, event_id=1003, kind=HeaderKind.MESSAGE),
    )

    assert batch.events == {}
    assert batch.unknown.tolist() == [0, 1]
    assert batch.known.tolist() == [False, False, False, False]


def test_an_image_load_comes_in_the_group_of_processes() -> None:
    payload = struct.pack("<QQI", 0x7FF0, 0x1000, 12) + "a.dll".encode("utf-16-le") + b"\0\0"
    batch = decode(
        Record(IMAGE, payload, opcode=10, version=1),
        Record(IMAGE, payload, opcode=2, version=1),
        Record(PROCESS, payload, opcode=10, version=1),
    )

    assert batch.events["ImageLoad"].rows.tolist() == [0, 2]
    assert batch.events["ImageLoad"].texts("file_name") == ["a.dll", "a.dll"]
    assert batch.events["ImageUnload"].rows.tolist() == [1]


def test_foreign_events_are_neither_known_nor_unknown() -> None:
    context_switch = Record(THREAD, bytes(24), opcode=36, version=2)
    page_fault = Record(MEMORY, bytes(16), opcode=10, version=2)

    batch = decode(Record(OTHER, b"x", event_id=7), context_switch, page_fault)

    assert batch.events == {}
    assert batch.unknown.tolist() == []
    assert batch.known.tolist() == [False, False, False]


def test_unknown_events_of_our_providers_are_kept_and_counted_by_version() -> None:
    decoder = Decoder()

    batch = decode(
        afd(1008, b"abc"),
        Record(HEAP_RANGES, b"", opcode=9),
        heap(0x3B, b""),
        afd(1008, b"abcd"),
        afd(1008, b"", version=1),
        decoder=decoder,
    )

    assert batch.unknown.tolist() == [0, 1, 2, 3, 4]
    assert {k: tally.count for k, tally in decoder.unknown.items()} == {
        key(AFD, 1008, is_classic=False): 2,
        key(AFD, 1008, 1, is_classic=False): 1,
        key(HEAP, 0x3B, 2): 1,
        key(HEAP_RANGES, 9): 1,
    }


def test_a_window_without_records_is_empty() -> None:
    batch = decode()

    assert batch.events == {}
    assert batch.known.tolist() == []


def test_providers_may_grow_from_window_to_window() -> None:
    decoder, providers = Decoder(), [OTHER]

    first = decoder.decode(raw_events([Record(OTHER, b"", event_id=1)], providers=providers), CLOCK)
    second = decoder.decode(raw_events([heap(0x24, FREE_64), afd(1003, SEND_64)], providers=providers, first_seq=1), CLOCK)

    assert first.events == {}
    assert set(second.events) == {"HeapFree", "AfdSend"}


def test_times_are_those_of_the_clock() -> None:
    assert decode(afd(1003, SEND_64), afd(1003, SEND_64)).ns.tolist() == [10_000, 20_000]


# ---------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize("cut", [1, 4, 43, 44])
def test_a_payload_shorter_than_its_layout_is_damage(cut: int) -> None:
    decoder = Decoder()

    batch = decode(afd(1003, SEND_64), afd(1003, SEND_64[:-cut]), afd(1003, SEND_64), decoder=decoder)

    assert batch.events["AfdSend"].rows.tolist() == [0, 2]
    assert batch.damaged.tolist() == [1]
    assert batch.known.tolist() == [True, True, True]
    tally = decoder.damaged[key(AFD, 1003, is_classic=False)]
    assert (tally.count, tally.first_ticks, tally.last_ticks) == (1, 200, 200)
    assert tally.place.startswith("buffer 1, offset ")


def test_the_first_place_of_damage_is_kept_over_windows() -> None:
    decoder = Decoder()
    decode(afd(1003, SEND_64), afd(1003, b""), decoder=decoder)
    decode(afd(1003, b"xx"), afd(1003, b""), afd(1003, SEND_64), decoder=decoder)

    tally = decoder.damaged[key(AFD, 1003, is_classic=False)]
    assert (tally.count, tally.first_ticks, tally.last_ticks, tally.place) == (3, 200, 200, "buffer 1, offset 46")


def test_more_bytes_than_a_known_version_has_are_counted() -> None:
    decoder = Decoder()

    batch = decode(afd(1003, SEND_64), afd(1003, SEND_64 + b"\1"), decoder=decoder)

    assert batch.events["AfdSend"].numbers("status").tolist() == [0, 0]
    assert batch.damaged.tolist() == []
    assert decoder.trailing[key(AFD, 1003, is_classic=False)].count == 1
    assert decoder.trailing[key(AFD, 1003, is_classic=False)].first_ticks == 200


def test_a_newer_version_is_read_with_our_newest_layout() -> None:
    decoder = Decoder()

    batch = decode(afd(1003, SEND_64 + b"\1\2\3\4", version=2), heap(0x20, CREATE_64, version=9), decoder=decoder)

    assert batch.events["AfdSend"].numbers("buffer_length").tolist() == [512]
    assert batch.events["HeapCreate"].numbers("allocated_space").tolist() == [1856]
    assert batch.newer.tolist() == [0, 1]
    assert {k: tally.count for k, tally in decoder.newer.items()} == {key(AFD, 1003, 2, is_classic=False): 1, key(HEAP, 0x20, 9): 1}


def test_a_newer_version_that_is_too_short_is_damage() -> None:
    batch = decode(afd(1003, SEND_64[:40], version=1))

    assert batch.events == {}
    assert (batch.damaged.tolist(), batch.newer.tolist()) == ([0], [0])


def test_a_version_between_two_known_ones_has_the_layout_of_the_lower() -> None:
    batch = decode(heap(0x21, ALLOC_64, version=1), heap(0x21, ALLOC_64, version=0))

    assert batch.events["HeapAlloc"].rows.tolist() == [0, 1]
    assert batch.newer.tolist() == []


def test_a_version_below_all_known_ones_is_unknown() -> None:
    """The layout of 0x27 is only known from version 2 on."""
    batch = decode(heap(0x27, bytes(64), version=1))

    assert batch.events == {}
    assert batch.unknown.tolist() == [0]
    assert batch.damaged.tolist() == []


@pytest.mark.parametrize(("size", "is_good"), [(33, False), (35, False), (36, True), (37, False)])
def test_a_post_whose_boolean_has_another_width_is_refused(size: int, is_good: bool) -> None:
    """With a boolean of one byte a SendPosted has 33 bytes: then nothing behind it is where we look."""
    decoder = Decoder()

    batch = decode(afd(18, bytes(size)), decoder=decoder)

    assert ("SendPosted" in batch.events) == is_good
    assert batch.damaged.tolist() == ([] if is_good else [0])


def test_a_newer_version_of_an_exact_event_may_be_longer() -> None:
    assert decode(afd(18, bytes(40), version=1)).events["SendPosted"].rows.tolist() == [0]


@pytest.mark.parametrize(("size", "dtype"), [(29, np.uint8), (32, np.uint32)])
def test_the_pause_of_accepting_has_two_sizes(size: int, dtype: type) -> None:
    payload = bytes(24) + b"\1" + bytes(size - 29) + struct.pack("<I", 42)

    columns = decode(afd(4019, payload)).events["AfdAcceptPause"]

    assert columns.numbers("pause_un_pause").dtype == dtype
    assert columns.numbers("pause_un_pause").tolist() == [1]
    assert columns.numbers("tl_backlog_count").tolist() == [42]


def test_any_other_size_of_the_pause_is_damage() -> None:
    assert decode(afd(4019, bytes(30))).damaged.tolist() == [0]


def test_padding_of_a_heap_record_is_not_trailing() -> None:
    commit = struct.pack("<QQQI", 1, 2, 3, 8)
    decoder = Decoder()

    decode(heap(0x33, commit), heap(0x33, commit + bytes(4)), decoder=decoder)

    assert decoder.trailing == {}
    decode(heap(0x33, commit + bytes(12)), decoder=decoder)
    assert decoder.trailing[key(HEAP, 0x33, 2)].count == 1


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


# ---------------------------------------------------------------------------------------------------- properties


def test_schemas_may_be_given() -> None:
    fields: tuple[Field, ...] = (u64("a"), u32("b", required=False), sizet("c", required=False))
    schema = EventSchema(OTHER, 5, (0,), "Invented", fields, "invented for the test")
    decoder = Decoder(table_of([schema]), own=[OTHER])

    batch = decode(Record(OTHER, struct.pack("<QI", 7, 8), event_id=5), Record(OTHER, b"", event_id=6), decoder=decoder)

    assert batch.events["Invented"].numbers("b").tolist() == [8]
    assert batch.events["Invented"].missing["c"].tolist() == [True]
    assert batch.unknown.tolist() == [1]


_RECORDS = st.builds(
    lambda schema, payload, version, size: Record(
        schema.provider,
        payload,
        event_id=None if schema.is_classic else schema.number,
        opcode=schema.number if schema.is_classic else 0,
        version=version,
        pointer_size=size,
    ),
    st.sampled_from(ALL_EVENTS),
    st.binary(max_size=160),
    st.integers(0, 6),
    st.sampled_from([4, 8]),
)


@given(st.lists(_RECORDS, max_size=30))
@settings(max_examples=150, deadline=None)
def test_any_bytes_end_in_columns_or_counts(records: list[Record]) -> None:
    """Every record is decoded once, or is damage, or is unknown; columns have a value for each of their rows."""
    decoder = Decoder()

    batch = decode(*records, decoder=decoder)

    rows = sorted(row for columns in batch.events.values() for row in columns.rows.tolist())
    unread = {i for i, record in enumerate(records) if not batch.known[i]} | set(batch.unknown.tolist())
    assert sorted([*rows, *batch.damaged.tolist(), *unread]) == list(range(len(records)))
    for columns in batch.events.values():
        assert all(len(column) == len(columns) for column in columns.fields.values())
        assert all(mask.shape == (len(columns),) for mask in columns.missing.values())
    assert sum(tally.count for tally in decoder.damaged.values()) == batch.damaged.size
    assert sum(tally.count for tally in decoder.newer.values()) == batch.newer.size


@given(st.lists(_RECORDS, min_size=2, max_size=20), st.data())
@settings(max_examples=60, deadline=None)
def test_where_a_window_is_cut_changes_nothing(records: list[Record], data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(records) - 1))
    whole, halves = Decoder(), Decoder()

    one = decode(*records, decoder=whole)
    providers: list[UUID] = []
    two = [decode(*part, decoder=halves, providers=providers) for part in (records[:at], records[at:])]

    for name, columns in one.events.items():
        found = [(0 if i == 0 else at, part.events[name]) for i, part in enumerate(two) if name in part.events]
        assert columns.rows.tolist() == [row + first for first, part in found for row in part.rows.tolist()]
    assert {k: t.count for k, t in whole.damaged.items()} == {k: t.count for k, t in halves.damaged.items()}
    assert {k: t.count for k, t in whole.trailing.items()} == {k: t.count for k, t in halves.trailing.items()}


def test_every_declared_event_can_be_dispatched() -> None:
    """A key that the table of slots loses would never be seen again."""
    records = [
        Record(k.provider, bytes(400), event_id=None if k.is_classic else k.number, opcode=k.number if k.is_classic else 0, version=v)
        for k, schemas in SCHEMAS.items()
        for v in (schemas[-1].versions or (0,))
    ]

    batch = decode(*records)

    assert batch.known.all()
    assert batch.unknown.size == 0
    assert set(batch.events) | {s.name for s in ALL_EVENTS if s.is_exact} == {s.name for s in ALL_EVENTS}
