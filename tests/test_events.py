"""What holds for every declaration: a closed layout for both pointer sizes, one key, a source, and the published payload size."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from collector.events import ALL_EVENTS, OWN_PROVIDERS, SCHEMAS
from collector.events.afd import AFD, AFD_EVENTS
from collector.events.heap import HEAP, HEAP_EVENTS, MEMORY
from collector.events.system import IMAGE, IMAGE_ID, PROCESS, STACK_WALK, THREAD
from collector.schema import EventKey, EventSchema, Field, FieldType, key_of, pointer, table_of, u8, u32

# Bytes in a 64-bit and in a 32-bit record, without the socket address.
AFD_SIZES = {
    1: (36, 24),
    2: (26, 18),
    3: (38, 30),
    4: (22, 14),
    5: (34, 26),
    6: (20, 12),
    7: (20, 12),
    8: (20, 12),
    9: (20, 12),
    10: (20, 12),
    11: (20, 12),
    12: (20, 12),
    13: (20, 12),
    14: (20, 12),
    15: (26, 18),
    16: (38, 30),
    17: (20, 12),
    18: (36, 24),
    19: (36, 24),
    20: (36, 24),
    21: (42, 30),
    22: (54, 42),
    23: (28, 16),
    24: (28, 16),
    25: (28, 16),
    26: (38, 26),
    27: (50, 38),
    28: (28, 16),
    29: (24, 16),
    30: (16, 12),
    31: (20, 12),
    32: (20, 12),
    33: (30, 22),
    34: (42, 34),
    35: (22, 14),
    36: (34, 26),
    37: (20, 12),
    38: (26, 18),
    39: (38, 30),
    40: (20, 12),
    41: (16, 8),
    1000: (48, 36),
    1001: (28, 20),
    1002: (28, 20),
    1003: (44, 32),
    1004: (44, 32),
    1005: (44, 32),
    1006: (44, 32),
    1007: (48, 36),
    1009: (48, 36),
    1011: (44, 32),
    1012: (44, 32),
    1013: (48, 36),
    1015: (48, 36),
    1017: (28, 20),
    1018: (44, 32),
    1020: (28, 20),
    1021: (44, 32),
    1023: (28, 20),
    1024: (56, 40),
    1026: (28, 20),
    1027: (56, 40),
    1029: (28, 20),
    1030: (32, 24),
    1032: (28, 20),
    1033: (44, 32),
    1035: (36, 28),
    1036: (28, 20),
    1037: (32, 24),
    3000: (28, 20),
    3001: (36, 28),
    3003: (36, 24),
    3004: (40, 28),
    3006: (28, 20),
    3007: (28, 20),
    4000: (12, 8),
    4001: (8, 4),
    4002: (84, 52),
    4003: (12, 8),
    4004: (8, 4),
    4005: (52, 40),
    4006: (84, 56),
    4007: (24, 20),
    4008: (8, 4),
    4009: (84, 64),
    4010: (44, 28),
    4011: (12, 8),
    4012: (8, 4),
    4013: (20, 12),
    4014: (32, 20),
    4015: (20, 16),
    4016: (20, 12),
    4017: (16, 8),
    4018: (36, 24),
    4019: (29, 21),
    4020: (24, 16),
}

# The same by (opcode, version), then without the fields that may be absent.
HEAP_SIZES = {
    (0x20, 2): (12, 8, 12, 8),
    (0x20, 3): (36, 20, 12, 8),
    (0x21, 2): (28, 16, 28, 16),
    (0x22, 2): (44, 24, 44, 24),
    (0x23, 2): (8, 4, 8, 4),
    (0x24, 2): (20, 12, 20, 12),
    (0x25, 2): (52, 28, 52, 28),
    (0x25, 3): (60, 32, 52, 28),
    (0x26, 2): (56, 36, 36, 20),
    (0x26, 3): (64, 40, 36, 20),
    (0x27, 3): (64, 40, 36, 20),
    (0x28, 3): (64, 40, 36, 20),
    (0x29, 3): (64, 40, 36, 20),
    (0x2A, 2): (52, 28, 52, 28),
    (0x2A, 3): (60, 32, 52, 28),
    (0x2B, 2): (8, 4, 8, 4),
    (0x2C, 2): (8, 4, 8, 4),
    (0x2D, 2): (8, 4, 8, 4),
    (0x2E, 2): (8, 4, 8, 4),
    (0x2F, 2): (32, 16, 32, 16),
    (0x30, 2): (32, 16, 32, 16),
    (0x31, 2): (32, 16, 32, 16),
    (0x32, 2): (32, 16, 32, 16),
    (0x33, 2): (28, 16, 28, 16),
    (0x34, 2): (28, 16, 28, 16),
    (0x35, 2): (36, 20, 36, 20),
    (0x36, 2): (12, 8, 12, 8),
    (0x37, 2): (4, 4, 4, 4),
    (0x38, 2): (16, 8, 16, 8),
    (0x39, 2): (20, 12, 20, 12),
    (0x3A, 2): (20, 12, 20, 12),
}
RANGE_SIZES = {0x64: (24, 20, 20, 16), 0x65: (20, 12, 20, 12), 0x66: (24, 12, 24, 12), 0x67: (24, 12, 24, 12), 0x68: (8, 4, 8, 4)}

# Fixed fields of the kernel events, without texts, SIDs and frames, by (provider, opcode, version).
SYSTEM_SIZES = {
    (PROCESS, 1, 0): (16, 8),
    (PROCESS, 1, 1): (24, 20),
    (PROCESS, 1, 2): (24, 20),
    (PROCESS, 1, 3): (32, 24),
    (PROCESS, 1, 4): (36, 28),
    (PROCESS, 39, 5): (44, 36),
    (PROCESS, 11, 2): (4, 4),
    (PROCESS, 10, 0): (12, 8),
    (PROCESS, 10, 1): (20, 12),
    (PROCESS, 10, 2): (56, 44),
    (IMAGE, 2, 3): (56, 44),
    (THREAD, 1, 0): (8, 8),
    (THREAD, 1, 1): (57, 33),
    (THREAD, 2, 1): (8, 8),
    (THREAD, 1, 2): (68, 40),
    (THREAD, 1, 3): (72, 44),
    (THREAD, 0x48, 2): (8, 8),
    (IMAGE_ID, 0, 2): (24, 16),
    (IMAGE_ID, 32, 2): (12, 8),
    (IMAGE_ID, 36, 2): (32, 28),
    (IMAGE_ID, 38, 2): (20, 16),
    (IMAGE_ID, 40, 1): (12, 8),
    (STACK_WALK, 0x20, 2): (16, 16),
    (STACK_WALK, 0x23, 2): (8, 4),
    (STACK_WALK, 0x25, 2): (24, 20),
}


def test_every_event_says_where_its_layout_is_known_from() -> None:
    assert [schema.name for schema in ALL_EVENTS if len(schema.source) < 20] == []


def test_every_event_has_one_name() -> None:
    names = {key: {schema.name for schema in schemas} for key, schemas in SCHEMAS.items()}

    assert {key: found for key, found in names.items() if len(found) > 1} == {}


def test_no_two_events_share_a_name_but_the_image_load_of_both_groups() -> None:
    keys: dict[str, set[EventKey]] = {}
    for schema in ALL_EVENTS:
        keys.setdefault(schema.name, set()).add(schema.key)

    assert {name: len(found) for name, found in keys.items() if len(found) > 1} == {"ImageLoad": 2}


@pytest.mark.parametrize("schema", ALL_EVENTS, ids=lambda s: f"{s.name}-{s.versions}")
def test_every_layout_is_closed(schema: EventSchema) -> None:
    """Widths are known but for types whose content decides; lengths are read before what they measure; optional fields are last."""
    seen: list[str] = []
    may_be_absent = False
    for field in schema.fields:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", field.name)
        assert field.name not in seen
        assert field.length_field is None or field.length_field in seen
        assert field.required or schema.fields.index(field) > 0 or field.type is FieldType.POINTERS
        assert not (may_be_absent and field.required)
        may_be_absent = may_be_absent or not field.required
        for size in (4, 8):
            width = field.width(size)
            assert (
                width is not None
                or field.type in (FieldType.SOCKADDR, FieldType.SID, FieldType.ANSI, FieldType.UTF16)
                or not field.required
            )
        seen.append(field.name)


@pytest.mark.parametrize("schema", ALL_EVENTS, ids=lambda s: f"{s.name}-{s.versions}")
def test_a_32_bit_record_is_shorter_by_half_of_each_pointer(schema: EventSchema) -> None:
    pointers = sum(1 for field in schema.fields if field.type in (FieldType.POINTER, FieldType.SIZET))

    assert schema.fixed_size(8) - schema.fixed_size(4) == 4 * pointers


def test_all_96_socket_events_are_there_in_their_published_size() -> None:
    sizes = {schema.number: (schema.fixed_size(8), schema.fixed_size(4)) for schema in reversed(AFD_EVENTS)}

    assert len(AFD_SIZES) == 96
    assert sizes == AFD_SIZES


def test_the_posts_with_a_boolean_and_the_pause_are_told_by_their_exact_size() -> None:
    assert [schema.number for schema in AFD_EVENTS if schema.is_exact] == [18, 19, 20, 21, 22, 4019, 4019]


def test_every_heap_event_has_its_published_size() -> None:
    sizes = {(schema.number, schema.versions[-1]): _sizes(schema) for schema in HEAP_EVENTS if schema.provider == HEAP}

    assert {opcode for opcode, _ in sizes} == set(range(0x20, 0x3B))
    assert sizes == HEAP_SIZES


def test_every_heap_range_event_has_its_published_size() -> None:
    assert {schema.number: _sizes(schema) for schema in HEAP_EVENTS if schema.provider == MEMORY} == RANGE_SIZES


@pytest.mark.parametrize(("key", "sizes"), SYSTEM_SIZES.items(), ids=str)
def test_kernel_events_have_the_size_of_their_fixed_fields(key: tuple[object, int, int], sizes: tuple[int, int]) -> None:
    provider, opcode, version = key
    found = [s for s in ALL_EVENTS if (s.provider, s.number) == (provider, opcode) and (version in s.versions or not s.versions)]

    assert [(s.fixed_size(8), s.fixed_size(4)) for s in found] == [sizes]


def test_versions_follow_each_other_by_adding_fields() -> None:
    """A newer version of a heap event is its older one with more behind it."""
    for schemas in (found for key, found in SCHEMAS.items() if key.provider == HEAP):
        for older, newer in pairwise(schemas):
            assert newer.fields[: len(older.fields)] == older.fields


def test_only_our_own_providers_have_their_unknown_events_kept() -> None:
    assert {AFD, HEAP} <= OWN_PROVIDERS
    assert not OWN_PROVIDERS & {PROCESS, THREAD, IMAGE, MEMORY, STACK_WALK}


def test_a_key_is_what_the_header_carries() -> None:
    assert key_of(HEAP, is_classic=True, event_id=7, opcode=0x21) == EventKey(HEAP, True, 0x21)
    assert key_of(AFD, is_classic=False, event_id=1003, opcode=12) == EventKey(AFD, False, 1003)
    assert all(schema.key == key for key, schemas in SCHEMAS.items() for schema in schemas)


def _schema(versions: tuple[int, ...], *fields: Field) -> EventSchema:
    return EventSchema(AFD, 9000, versions, "Invented", fields, "invented for the test")


def test_a_version_cannot_be_declared_twice() -> None:
    with pytest.raises(ValueError, match=r"Invented: a version of .* is declared twice"):
        table_of([_schema((0, 1), u32("a")), _schema((1, 2), u32("a"), u32("b"))])


def test_a_layout_for_all_versions_stands_alone() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        table_of([_schema((), u32("a")), _schema((1,), u32("a"))])


def test_exact_layouts_of_one_version_must_differ_in_size() -> None:
    short, long = (replace(_schema((0,), pointer("a"), field), is_exact=True) for field in (u8("b"), u32("b")))

    assert table_of([short, long])[short.key] == (short, long)
    with pytest.raises(ValueError, match="declared twice"):
        table_of([short, replace(short, name="Other")])


def test_layouts_are_ordered_by_version() -> None:
    new, old = _schema((3,), u32("a"), u32("b")), _schema((0, 2), u32("a"))

    assert table_of([new, old])[new.key] == (old, new)


@pytest.mark.shared
def test_the_declarations_are_those_of_the_notes(shared_dir: Path) -> None:
    """Names, order and kind of all fields of the socket events."""
    kinds = {
        "uint32": FieldType.U32,
        "int32": FieldType.I32,
        "uint8": FieldType.U8,
        "bool32": FieldType.BOOL32,
        "pointer": FieldType.POINTER,
        "ipv4_uint32": FieldType.IPV4,
        "ipv6_bytes16": FieldType.IPV6,
        "port_uint16": FieldType.PORT,
        "sockaddr": FieldType.SOCKADDR,
    }
    notes = json.loads((shared_dir / "facts" / "winsock-afd-events.json").read_text(encoding="utf-8"))

    for event in notes["events"]:
        schema = SCHEMAS[EventKey(AFD, False, event["id"])][0]
        assert schema.name == event["name"]
        assert [f.name.replace("_", "") for f in schema.fields] == [f["name"].lower() for f in event["fields"]]
        assert [f.type for f in schema.fields] == [kinds[f["wire_type"]] for f in event["fields"]]


def _sizes(schema: EventSchema) -> tuple[int, int, int, int]:
    required = (schema.fixed_size(8, only_required=True), schema.fixed_size(4, only_required=True))
    return (schema.fixed_size(8), schema.fixed_size(4), *required)
