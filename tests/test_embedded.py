"""Layouts that a trace brings along: TRACE_EVENT_INFO and EVENT_MAP_INFO blobs to schemas, and events decoded by them."""

import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.clock import Clock
from collector.decoder import Decoder
from collector.embedded import METADATA, EmbeddedLayouts
from collector.embedded_fields import snake_case
from collector.events import SCHEMAS
from collector.events.afd import AFD
from collector.raw import RawEvents
from collector.readers import reader_for
from collector.schema import EventKey, Field, FieldType
from collector.source import Source
from tests.raw_events import CLOCK, Record, raw_events

# In-types and out-types of tdh.h.
STRING, ANSI, U8, I32, U32, U64, BOOLEAN, BINARY, GUID, POINTER, FILETIME, SYSTEMTIME, SID = 1, 2, 4, 7, 8, 10, 13, 14, 15, 16, 17, 18, 19
PORT, IPV4, IPV6, SOCKET_ADDRESS = 22, 23, 24, 25
STRUCT, PARAM_LENGTH, PARAM_COUNT = 1, 2, 4

Prop = tuple[str, int, int, int, int, int]  # name, flags, in-type, out-type, count, length


def prop(name: str, in_type: int, out_type: int = 0, *, flags: int = 0, count: int = 1, length: int = 0) -> Prop:
    return name, flags, in_type, out_type, count, length


def event_info(
    *properties: Prop, event_id: int = 1008, version: int = 0, task: str = "AfdInvented ", top_level: int | None = None, source: int = 0
) -> bytes:
    """A TRACE_EVENT_INFO as it stands in a merged file: 112 bytes, 24 a property, then the texts."""
    texts = bytearray()
    begin = 112 + 24 * len(properties)

    def text(value: str) -> int:
        offset = begin + len(texts)
        texts.extend(value.encode("utf-16-le") + b"\0\0")
        return offset

    rows = b"".join(
        struct.pack("<IIHHIHHI", flags, text(name), one, two, 0, count, length, 0) for name, flags, one, two, count, length in properties
    )
    provider, task_name = text("Microsoft-Windows-Winsock-AFD "), text(task)
    numbers = [
        source,
        provider,
        0,
        0,
        0,
        task_name,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        len(properties),
        len(properties) if top_level is None else top_level,
        1,
    ]
    head = AFD.bytes_le + bytes(16) + struct.pack("<HBBBBHQ", event_id, version, 0, 4, 12, 1, 0) + struct.pack("<16I", *numbers)
    assert len(head) == 112
    return head + rows + bytes(texts)


def learned(*properties: Prop, **options: int) -> tuple[Field, ...]:
    layouts = EmbeddedLayouts()
    layouts.learn(32, event_info(*properties, **options))  # type: ignore[arg-type]  # only numbers are passed on
    assert not layouts.damaged
    schema = layouts.layout(EventKey(AFD, False, 1008), 0)
    return () if schema is None else schema.fields


def metadata(blob: bytes, opcode: int = 32) -> Record:
    return Record(METADATA, blob, opcode=opcode)


def test_properties_become_fields() -> None:
    fields = learned(
        prop("EnterExit", U32),
        prop("Endpoint", POINTER, length=8),
        prop("Port", 6, PORT),
        prop("V4", U32, IPV4),
        prop("V6", BINARY, IPV6),
        prop("Fast", BOOLEAN),
        prop("Since", FILETIME),
        prop("Clock", SYSTEMTIME),
        prop("Id", GUID),
        prop("Owner", SID),
    )

    assert fields == (
        Field("enter_exit", FieldType.U32),
        Field("endpoint", FieldType.POINTER),
        Field("port", FieldType.PORT),
        Field("v4", FieldType.IPV4),
        Field("v6", FieldType.IPV6),
        Field("fast", FieldType.BOOL32),
        Field("since", FieldType.U64),
        Field("clock", FieldType.BYTES, length=16),
        Field("id", FieldType.GUID),
        Field("owner", FieldType.BARE_SID),
    )


def test_an_event_that_we_do_not_ship_is_read_by_the_layout_of_its_trace() -> None:
    blob = event_info(
        prop("Endpoint", POINTER),
        prop("AddressLen", U32),
        prop("Address", BINARY, SOCKET_ADDRESS, flags=PARAM_LENGTH, length=1),
        prop("Name", STRING),
        prop("Status", I32),
    )
    payload = struct.pack("<QI", 0xFFFF9A0C2233E010, 16) + bytes(range(16)) + "tcp".encode("utf-16-le") + b"\0\0" + struct.pack("<i", -5)
    decoder = Decoder()

    batch = decoder.decode(
        raw_events([metadata(blob), Record(AFD, payload, event_id=1008), Record(AFD, payload[:11], event_id=1008)]), CLOCK
    )

    columns = batch.events["AfdInvented"]
    assert columns.rows.tolist() == [1]
    assert columns.numbers("endpoint").tolist() == [0xFFFF9A0C2233E010]
    assert columns.numbers("address")[0, :16].tobytes() == bytes(range(16))
    assert columns.texts("name") == ["tcp"]
    assert columns.numbers("status").tolist() == [-5]
    assert batch.damaged.tolist() == [2]
    assert batch.unknown.tolist() == []
    assert batch.described.tolist() == [1]
    assert batch.known.tolist() == [True, True, True]


def test_a_layout_serves_records_of_both_pointer_sizes() -> None:
    blob = event_info(prop("Endpoint", POINTER, length=8), prop("Size", 308))
    records = [
        metadata(blob),
        Record(AFD, struct.pack("<QQ", 1 << 63, 7), event_id=1008),
        Record(AFD, struct.pack("<II", 1 << 31, 8), event_id=1008, pointer_size=4),
    ]

    columns = Decoder().decode(raw_events(records), CLOCK).events["AfdInvented"]

    assert columns.numbers("endpoint").tolist() == [1 << 63, 1 << 31]
    assert columns.numbers("size").tolist() == [7, 8]


def test_a_layout_may_stand_in_an_earlier_window_or_behind_the_record_in_the_same_one() -> None:
    event = Record(AFD, struct.pack("<I", 5), event_id=1008)
    decoder, providers = Decoder(), [AFD, METADATA]

    before = decoder.decode(raw_events([event], providers=providers), CLOCK)
    same = decoder.decode(raw_events([event, metadata(event_info(prop("X", U32)))], providers=providers), CLOCK)
    later = decoder.decode(raw_events([event], providers=providers), CLOCK)

    assert before.unknown.tolist() == [0]
    assert [part.events["AfdInvented"].numbers("x").tolist() for part in (same, later)] == [[5], [5]]


def test_a_newer_version_of_ours_is_read_in_full_under_our_name() -> None:
    shipped = [
        prop(name, POINTER if name in ("Process", "Endpoint") else U32)
        for name in ("EnterExit", "Location", "Process", "Endpoint", "Status")
    ]
    blob = event_info(prop("Silo", U64), *shipped, prop("Extra", U32), event_id=1001, version=1)
    payload = struct.pack("<QIIQQII", 99, 1, 2003, 0xE0, 0xE1, 0xC000020D, 7)
    decoder = Decoder()

    batch = decoder.decode(raw_events([metadata(blob), Record(AFD, payload, event_id=1001, version=1)]), CLOCK)

    columns = batch.events["AfdClose"]
    assert {name: columns.numbers(name).tolist() for name in columns.fields} == {
        "silo": [99],
        "enter_exit": [1],
        "location": [2003],
        "process": [0xE0],
        "endpoint": [0xE1],
        "status": [0xC000020D],
        "extra": [7],
    }
    assert batch.newer.tolist() == []


def test_a_newer_version_that_lacks_what_models_read_is_read_with_our_layout() -> None:
    blob = event_info(prop("EnterExit", U32), prop("Location", U64), event_id=1001, version=1)
    payload = struct.pack("<IIQQI", 1, 2003, 0xE0, 0xE1, 0)

    batch = Decoder().decode(raw_events([metadata(blob), Record(AFD, payload, event_id=1001, version=1)]), CLOCK)

    assert batch.events["AfdClose"].numbers("endpoint").tolist() == [0xE1]
    assert batch.newer.tolist() == [1]


def test_the_version_that_we_ship_is_read_with_our_layout() -> None:
    blob = event_info(prop("Nonsense", U64), event_id=1001)
    payload = struct.pack("<IIQQI", 1, 2003, 0xE0, 0xE1, 0)

    batch = Decoder().decode(raw_events([metadata(blob), Record(AFD, payload, event_id=1001)]), CLOCK)

    assert batch.events["AfdClose"].numbers("endpoint").tolist() == [0xE1]


def test_an_unknown_event_never_takes_the_name_of_ours() -> None:
    blob = event_info(prop("X", U32), task="AfdSend ")

    batch = Decoder().decode(raw_events([metadata(blob), Record(AFD, bytes(4), event_id=1008)]), CLOCK)

    assert list(batch.events) == ["AfdSend 1008"]


# ---------------------------------------------------------------------------------------------------- arrays, structures, texts


def test_members_of_a_structure_stand_in_its_place() -> None:
    fields = learned(
        prop("Before", U32),
        prop("Point", 2, 2, flags=STRUCT, count=2),  # members are the properties 2 and 3
        prop("X", U8),
        prop("Y", POINTER),
        top_level=2,
    )

    assert [f.name for f in fields] == ["before", "point_0_x", "point_0_y", "point_1_x", "point_1_y"]


def test_an_array_of_numbers_whose_count_is_a_field() -> None:
    blob = event_info(prop("Count", U8), prop("Items", U32, flags=PARAM_COUNT, count=0), prop("Last", U8))
    payloads = [bytes([2]) + struct.pack("<IIB", 7, 8, 9), bytes([0, 5]), bytes([3]) + bytes(11)]

    batch = Decoder().decode(raw_events([metadata(blob), *(Record(AFD, p, event_id=1008) for p in payloads)]), CLOCK)

    columns = batch.events["AfdInvented"]
    assert [columns.ragged("items").row(i).tolist() for i in range(2)] == [[7, 8], []]
    assert columns.numbers("last").tolist() == [9, 5]
    assert batch.damaged.tolist() == [3]


def test_texts_end_at_their_zero_their_length_or_the_record() -> None:
    blob = event_info(
        prop("Chars", U8),
        prop("Wide", STRING, flags=PARAM_LENGTH, length=0),
        prop("Fixed", ANSI, length=3),
        prop("Counted", 300),
        prop("Tail", STRING),
    )
    wide, counted = "ab".encode("utf-16-le"), "xyz".encode("utf-16-le")
    payload = bytes([2]) + wide + b"ABC" + struct.pack("<H", 6) + counted + "tail".encode("utf-16-le")

    columns = Decoder().decode(raw_events([metadata(blob), Record(AFD, payload, event_id=1008)]), CLOCK).events["AfdInvented"]

    assert [columns.texts(name) for name in ("wide", "fixed", "counted", "tail")] == [["ab"], ["ABC"], ["xyz"], ["tail"]]


def test_a_bare_sid_has_no_token_before_it() -> None:
    sid = bytes.fromhex("0101000000000005 12000000")
    blob = event_info(prop("User", SID), prop("Last", U32))

    batch = Decoder().decode(raw_events([metadata(blob), Record(AFD, sid + struct.pack("<I", 6), event_id=1008)]), CLOCK)

    assert batch.events["AfdInvented"].numbers("user")[0, :12].tobytes() == sid
    assert batch.events["AfdInvented"].numbers("last").tolist() == [6]


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ((prop("X", 999),), "in-type 999"),
        ((prop("X", BINARY),), "binary without length"),
        ((prop("X", BINARY, flags=PARAM_LENGTH, length=1), prop("Length", U32)), "length or count out of place"),
        ((prop("X", BINARY, flags=PARAM_LENGTH, length=0),), "length or count out of place"),
        ((prop("N", U32), prop("S", 0, 1, flags=STRUCT | PARAM_COUNT, count=0)), "array of structures"),
        ((prop("S", 0, 1, flags=STRUCT),), "structure out of bounds"),
        ((prop("S", 40000, 9, flags=STRUCT),), "structure out of bounds"),
        ((prop("S", 0, 0xFFFF, flags=STRUCT, count=400),), "structure out of bounds"),
        ((prop("X", U32, count=60000),), "too many fields"),
        ((prop("X", U32, flags=0x80),), "custom schema"),
    ],
)
def test_what_we_cannot_follow_is_left_unknown_and_counted(properties: tuple[Prop, ...], reason: str) -> None:
    decoder = Decoder()

    batch = decoder.decode(raw_events([metadata(event_info(*properties)), Record(AFD, bytes(8), event_id=1008)]), CLOCK)

    assert batch.unknown.tolist() == [1]
    assert decoder.embedded.unsupported == {reason: 1}
    assert decoder.embedded.damaged == 0


def test_names_that_occur_twice_or_not_at_all_are_told_apart() -> None:
    fields = learned(prop("Same", U32), prop("Same", U8), prop("", U32), prop("?!", U32))

    assert [f.name for f in fields] == ["same", "same_2", "field2", "field3"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("EnterExit", "enter_exit"),
        ("AddressLen", "address_len"),
        ("TLBacklogCount", "tl_backlog_count"),
        ("NotificationContext1", "notification_context1"),
        ("PauseUnPause", "pause_un_pause"),
        ("already_snake", "already_snake"),
        ("With Blank-And?", "with_blank_and"),
    ],
)
def test_names_become_snake_case(name: str, expected: str) -> None:
    assert snake_case(name) == expected


# ---------------------------------------------------------------------------------------------------- other blobs


def test_the_name_of_the_provider_is_learned_from_any_kind_of_layout() -> None:
    layouts = EmbeddedLayouts()

    layouts.learn(32, event_info(prop("X", U32), source=1))

    assert layouts.provider_names == {AFD: "Microsoft-Windows-Winsock-AFD"}
    assert layouts.schemas == {}


def test_a_map_gives_names_to_values() -> None:
    names = "ReasonMap \0one\0two \0".encode("utf-16-le")
    begin = 16 + 2 * 8
    info = struct.pack("<4I", begin, 2, 2, 0) + struct.pack("<4I", begin + 22, 1, begin + 30, 2) + names
    layouts = EmbeddedLayouts()

    layouts.learn(33, AFD.bytes_le + info)

    found = layouts.maps[AFD, "ReasonMap"]
    assert found.is_bits
    assert found.names == {1: "one", 2: "two"}
    assert layouts.damaged == 0


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        bytes(15),
        bytes(111),
        event_info(prop("X", U32))[:120],
        event_info(prop("X", U32))[:-1],
        event_info(prop("X", U32), top_level=2),
    ],
    ids=["empty", "15", "111", "cut in properties", "cut in texts", "more at the top than there are"],
)
def test_damaged_blobs_are_counted(blob: bytes) -> None:
    layouts = EmbeddedLayouts()

    layouts.learn(32, blob)
    layouts.learn(33, blob[:20])

    assert layouts.damaged == 2
    assert layouts.schemas == {}


def test_a_blob_of_another_opcode_is_passed_over() -> None:
    layouts = EmbeddedLayouts()

    layouts.learn(34, b"?")

    assert (layouts.damaged, layouts.unsupported) == (0, {})


_BLOB = event_info(
    prop("Count", U8), prop("Items", U32, flags=PARAM_COUNT), prop("S", 3, 1, flags=STRUCT, count=2), prop("M", STRING), top_level=3
)


@given(
    st.lists(st.tuples(st.integers(0, len(_BLOB) - 1), st.integers(0, 255)), max_size=8), st.binary(max_size=80), st.sampled_from([32, 33])
)
@settings(max_examples=300, deadline=None)
def test_flipped_bytes_never_raise(flips: list[tuple[int, int]], payload: bytes, opcode: int) -> None:
    blob = bytearray(_BLOB)
    for at, value in flips:
        blob[at] = value

    batch = Decoder().decode(raw_events([metadata(bytes(blob), opcode), *(Record(AFD, payload, event_id=i) for i in (1008, 1003))]), CLOCK)

    assert batch.known[0]


@given(st.binary(max_size=300), st.sampled_from([32, 33]))
@settings(max_examples=200, deadline=None)
def test_any_blob_ends_in_a_layout_or_a_count(blob: bytes, opcode: int) -> None:
    layouts = EmbeddedLayouts()

    layouts.learn(opcode, blob)

    assert layouts.damaged + len(layouts.schemas) + len(layouts.maps) + sum(layouts.unsupported.values()) <= 1


# ---------------------------------------------------------------------------------------------------- reference traces


def windows(path: Path) -> Iterator[tuple[RawEvents, Clock]]:
    with closing(Source.open(path)) as source:
        reader = reader_for(source)
        for raw in reader.windows():
            yield raw, reader.header.clock


@pytest.mark.shared
@pytest.mark.parametrize(("name", "count"), [("story-mixed.etl", 40), ("story-32.etl", 30)])
def test_the_layouts_in_the_stories_are_those_that_we_ship(shared_dir: Path, name: str, count: int) -> None:
    """Every socket event of the trace is described in it: field names, widths and lengths are ours."""
    decoder = Decoder()
    for raw, clock in windows(shared_dir / "traces" / name):
        decoder.decode(raw, clock)

    layouts = decoder.embedded
    assert (len(layouts.schemas), layouts.damaged, layouts.unsupported) == (count, 0, {})
    for (key, version), schema in layouts.schemas.items():
        shipped = next(s for s in SCHEMAS[key] if version in s.versions)
        assert [_shape(f) for f in schema.fields] == [_shape(f) for f in shipped.fields]


def _shape(field: Field) -> tuple[str, int | None, int | None, str | None]:
    return field.name, field.width(4), field.width(8), field.length_field


@pytest.mark.shared
def test_events_of_a_public_trace_decode_to_their_last_byte(shared_dir: Path) -> None:
    """All but one event that the trace describes: the manifest of 82 declares two addresses where the stack has many."""
    path = shared_dir / "traces" / "real" / "net.4.5.2.x64.etl"
    first = Decoder()
    for raw, clock in windows(path):
        first.decode(raw, clock)
    described = {key.provider for key, _ in first.embedded.schemas}
    decoder = Decoder(own=described)
    read = 0
    for raw, clock in windows(path):
        batch = decoder.decode(raw, clock)
        ours = {schema.name for schema in decoder.embedded.schemas.values()}
        read += sum(len(columns) for name, columns in batch.events.items() if name in ours)

    runtime = UUID("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4")
    assert len(decoder.embedded.schemas) == 58
    assert read > 65_000
    assert decoder.damaged == {}
    assert list(decoder.trailing) == [(EventKey(runtime, False, 82), 0)]
    assert decoder.embedded.unsupported == {"array of structures": 3}
