"""Windows of records to columns: keys, versions, pointer sizes, damage, and nothing ever raised."""

import struct
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.decoder import Decoder
from collector.events import ALL_EVENTS, SCHEMAS
from collector.events.afd import AFD
from collector.events.heap import HEAP, HEAP_RANGES, MEMORY
from collector.events.system import IMAGE, PROCESS, THREAD
from collector.raw import HeaderKind
from collector.schema import EventSchema, Field, sizet, table_of, u32, u64
from tests.decoding import ALLOC_32, ALLOC_64, CREATE_64, FREE_64, OTHER, REALLOC_32, SEND_64, afd, decode, heap, key
from tests.raw_events import CLOCK, Record, raw_events

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
