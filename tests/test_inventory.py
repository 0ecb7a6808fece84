"""All records of a trace counted by identity, with the names that the trace brings along."""

import struct
from pathlib import Path
from uuid import UUID

import pytest

from collector.clock import Clock, ClockKind
from collector.decoder import Decoder
from collector.inventory import EventCount, Inventory, kind_name
from collector.model.rows import unfolded
from collector.provider_names import WELL_KNOWN
from collector.readers.etl import EtlReader
from collector.readers.etl_providers import GROUP_GUIDS
from collector.source import Source
from collector.store.tables import ROW_COLUMNS
from tests.etl_bytes import AFD, START_TICKS, buffer, event, full, items, message, opaque, perfinfo, system, trace

T = START_TICKS
FOREIGN = UUID("11111111-2222-3333-4444-555555555555")
METADATA = UUID("bbccf6c1-6cd1-48c4-80ff-839482e37671")


def counted(folder: Path, content: bytes, *, decode: bool = True, window_buffers: int = 1024) -> Inventory:
    path = folder / "built.etl"
    path.write_bytes(content)
    with Source.open(path) as source:
        reader = EtlReader(source, window_buffers=window_buffers)
        inventory = Inventory(reader.header.clock)
        decoder = Decoder(header=reader.header)
        for raw in reader.windows():
            if decode:
                inventory.add(decoder.decode(raw, reader.header.clock))
            else:
                inventory.add_raw(raw)
    return inventory


def identity(count: EventCount) -> tuple[str, str, int | None, int, int, int]:
    return (count.provider_name or str(count.provider), count.header_kind, count.event_id, count.opcode, count.version, count.count)


def named(inventory: Inventory, guid: UUID) -> str | None:
    return next(count.provider_name for count in inventory.counts() if count.provider == guid)


MIXED = trace(
    buffer([event(T + 10), event(T + 20), event(T + 30, 1004), event(T + 40, 1003, version=7)], sequence=1),
    buffer([system(T + 15), system(T + 25, 0x1024), perfinfo(T + 35, 0x1821, version=3), system(T + 45)], sequence=2, cpu=1),
    buffer([event(T + 50, 9999, guid=FOREIGN), event(T + 55, 9999, guid=FOREIGN, kind=18), message(43, 0), opaque(99)], sequence=3),
)


@pytest.mark.parametrize("window_buffers", [1, 2, 1024])
def test_every_record_is_counted_once_under_its_identity(tmp_path: Path, window_buffers: int) -> None:
    inventory = counted(tmp_path, MIXED, window_buffers=window_buffers)
    assert sorted(map(identity, inventory.counts()), key=str) == sorted(
        [
            ("EventTrace", "SYSTEM64", None, 0, 2, 1),
            ("Microsoft-Windows-Winsock-AFD", "EVENT64", 1003, 12, 0, 2),
            ("Microsoft-Windows-Winsock-AFD", "EVENT64", 1003, 12, 7, 1),
            ("Microsoft-Windows-Winsock-AFD", "EVENT64", 1004, 12, 0, 1),
            ("Heap", "SYSTEM64", None, 0x21, 2, 2),
            ("Heap", "SYSTEM64", None, 0x24, 2, 1),
            ("StackWalk", "PERFINFO64", None, 0x21, 3, 1),
            (str(FOREIGN), "EVENT64", 9999, 12, 0, 1),
            (str(FOREIGN), "EVENT32", 9999, 12, 0, 1),
            (str(UUID(int=0)), "MESSAGE", 43, 0, 0, 1),
            (str(UUID(int=0)), "KIND_99", None, 0, 0, 1),
        ],
        key=str,
    )


def test_first_and_last_times_and_the_most_frequent_first(tmp_path: Path) -> None:
    counts = counted(tmp_path, MIXED, window_buffers=1).counts()
    heap = next(count for count in counts if count.provider_name == "Heap" and count.opcode == 0x21)
    assert (heap.first_ticks, heap.last_ticks) == (T + 15, T + 45)
    assert [count.count for count in counts] == sorted((count.count for count in counts), reverse=True)


def test_what_the_decoder_says_of_them(tmp_path: Path) -> None:
    inventory = counted(tmp_path, MIXED)
    send = next(count for count in inventory.counts() if count.event_id == 1003 and count.version == 0)
    foreign = next(count for count in inventory.counts() if count.provider == FOREIGN)
    # The records have no payload, so what has a layout is damaged.
    assert (send.known, send.damaged) == (2, 2)
    assert (foreign.known, foreign.damaged, foreign.event_name) == (0, 0, None)
    assert all(count.known == count.damaged == 0 for count in counted(tmp_path, MIXED, decode=False).counts())


def test_rows_of_the_table(tmp_path: Path) -> None:
    inventory = counted(tmp_path, MIXED)
    rows = list(unfolded(inventory.rows()))
    table = [dict(zip(ROW_COLUMNS["event_count"], row, strict=True)) for row in rows]

    assert [row["n"] for row in table] == list(range(1, 12))
    assert sum(int(str(row["count"])) for row in table) == 13
    classic = next(row for row in table if row["provider_name"] == "Heap" and row["opcode"] == 0x21)
    assert (classic["event_id"], classic["first_ns"], classic["last_ns"]) == (None, 1500, 4500)
    assert classic["provider"] == "222962ab-6180-4b88-a825-346b75f2a24a"


def test_thousands_of_identities_are_told_apart(tmp_path: Path) -> None:
    """More than the places of a small table, with many that share one."""
    buffers = [
        buffer([event(T + n, n % 65536, version=n % 200, opcode=n % 7) for n in range(at, at + 700)], size=65536)
        for at in range(0, 14000, 700)
    ]
    inventory = counted(tmp_path, trace(*buffers, buffer_size=65536), decode=False)
    counts = inventory.counts()
    assert len(counts) == 14001
    assert {count.count for count in counts} == {1}
    assert all(count.version == count.event_id % 200 for count in counts if count.event_id is not None)


def test_names_in_traits_manifests_and_metadata(tmp_path: Path) -> None:
    traits, manifest, described = (UUID(int=n) for n in (101, 102, 103))
    name = "My-Company-Provider ".encode("utf-16-le") + b"\0\0"
    info = described.bytes_le + bytes(16 + 20) + struct.pack("<I", 112) + bytes(56) + name
    inventory = counted(
        tmp_path,
        trace(
            buffer(
                [
                    event(T + 1, 0, guid=traits, extended=items((11, b"\x05\0\0a\0"), (12, b"\x0a\0Traits.A\0"))),
                    event(T + 2, 0xFFFE, b'\x01\x01\x00\x5b\x01\0\0\0<manifest><provider name="Event.Source" guid=', guid=manifest),
                    full(T + 3, METADATA, 32, info),
                    event(T + 4, 5, guid=described),
                ],
                size=4096,
            ),
            buffer_size=4096,
        ),
    )
    assert [named(inventory, guid) for guid in (traits, manifest, described)] == ["Traits.A", "Event.Source", "My-Company-Provider"]


def test_damaged_names_are_no_names(tmp_path: Path) -> None:
    guids = [UUID(int=n) for n in range(201, 206)]
    records = [
        event(T + 1, 0, guid=guids[0], extended=items((12, b"\x02\0"))),
        event(T + 2, 0, guid=guids[1], extended=items((12, b"\x06\0\x07\x08\0"))),
        event(T + 3, 0xFFFE, b"", guid=guids[2]),
        event(T + 4, 0xFFFE, b'\x01\x01\x00\x5b\x01\0\0\0<provider name="', guid=guids[3]),
        full(T + 5, METADATA, 32, guids[4].bytes_le + bytes(36) + struct.pack("<I", 5000) + bytes(60)),
        full(T + 6, METADATA, 32, b"short"),
        event(T + 7, guid=guids[4]),
    ]
    inventory = counted(tmp_path, trace(buffer(records, size=4096), buffer_size=4096))
    assert [named(inventory, guid) for guid in guids] == [None] * 5


def test_a_known_name_is_not_replaced_by_the_files(tmp_path: Path) -> None:
    record = event(T + 1, 1003, guid=AFD, extended=items((12, b"\x0a\0Impostor\0")))
    assert named(counted(tmp_path, trace(buffer([record]))), AFD) == "Microsoft-Windows-Winsock-AFD"


def test_all_hook_groups_have_a_name_or_none_at_all() -> None:
    assert sum(guid not in WELL_KNOWN for guid in GROUP_GUIDS.values()) == 1  # 0x0C, a spare


def test_kinds_have_names() -> None:
    assert [kind_name(kind) for kind in (2, 0x90, 13, 99)] == ["SYSTEM64", "MESSAGE", "ERROR", "KIND_99"]


def test_an_empty_inventory() -> None:
    inventory = Inventory(Clock(ClockKind.QPC, 0, 10_000_000, 0))
    assert inventory.counts() == []
    assert inventory.rows() == []
