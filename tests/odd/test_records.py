"""Records of odd kinds, with odd items, addresses, texts and times, among sound ones."""

import struct
from pathlib import Path

import pytest

from collector.etlwriter import Record
from collector.raw import HeaderKind
from tests.build import Event, Trace, afd, system
from tests.build.events import ENDPOINT
from tests.etl_bytes import EVERY_KIND, START_TICKS, buffer, opaque, trace
from tests.etl_bytes import event as record
from tests.odd.collected import ALL_SENDS, collected, six_sends

Capture = pytest.CaptureFixture[str]
KINDS = [0, 5, 6, 7, 8, 9, 12, 13, 14, 15, 22, 64, 255]


@pytest.mark.parametrize("flags", [0xB0, 0xC0])
def test_header_kinds_that_nobody_knows_are_counted(tmp_path: Path, capsys: Capture, flags: int) -> None:
    records = [opaque(kind, flags=flags) for kind in KINDS]
    found = collected(trace(buffer([*EVERY_KIND[:4], *records, *EVERY_KIND[4:8]])), tmp_path, capsys)
    assert found.records == 1 + 8 + len(KINDS)
    assert found.problems["unknown_header_kind"]["count"] == len(KINDS)


@pytest.mark.parametrize(
    "chain",
    [
        struct.pack("<HHHH", 0, 1, 0, 0),
        struct.pack("<HHHH", 65535, 1, 0, 16),
        struct.pack("<HHHH", 8, 1, 1, 0),
        struct.pack("<HHHH", 24, 1, 0, 65535) + bytes(16),
        struct.pack("<HHHH", 7, 6, 1, 1) + bytes(8),
        bytes(8),
        b"\xff" * 16,
    ],
)
def test_extended_items_that_run_over_cost_their_record_alone(tmp_path: Path, capsys: Capture, chain: bytes) -> None:
    content = trace(buffer([record(START_TICKS + 1, extended=chain), *EVERY_KIND[:4]]))
    found = collected(content, tmp_path, capsys)
    assert found.records == 1 + 1 + 4
    assert found.kinds & {"damaged_record", "damaged_events"}
    assert found.status == 3


@pytest.mark.parametrize(
    ("family", "length"),
    [
        *((family, length) for family in (0, 1, 2, 3, 17, 23, 34, 40, 0xFFFF) for length in (0, 1, 2, 3, 7, 16)),
        *((family, length) for family in (2, 23, 34) for length in (8, 15, 17, 24, 27, 28, 29, 36, 128, 400)),
    ],
)
def test_an_address_of_any_family_and_length_is_shown_as_far_as_it_goes(tmp_path: Path, capsys: Capture, family: int, length: int) -> None:
    address = (struct.pack("<H", family) + bytes(range(1, 200)) * 3)[:length]
    found = collected(six_sends().cpu(0, afd.connected(at_us=20, address=address)).bytes(), tmp_path, capsys)
    assert found.sends == ALL_SENDS
    assert found.status == 0


@pytest.mark.parametrize("declared", [0, 1, 15, 17, 1000, 0xFFFFFFFF])
def test_an_address_whose_length_lies_is_damage_or_read(tmp_path: Path, capsys: Capture, declared: int) -> None:
    connect = afd.connect(at_us=20, address="192.0.2.1:80")
    (built,) = connect.records(8, Trace().clock)
    payload = built.payload.replace(struct.pack("<I", 16), struct.pack("<I", declared), 1)
    lying = Record(
        kind=HeaderKind.EVENT64, ticks=built.ticks, pid=built.pid, tid=built.tid, provider=built.provider, event_id=built.event_id,
        version=built.version, opcode=built.opcode, level=built.level, keyword=built.keyword, payload=payload,
    )  # fmt: skip
    found = collected(six_sends().cpu(0, lying).bytes(), tmp_path, capsys)
    assert found.sends == ALL_SENDS
    assert found.kinds & {"damaged_events", "longer_events", "trailing_bytes"} or found.status == 0


@pytest.mark.parametrize("cut", [1, 2, 3, 20, 40])
def test_texts_without_their_end(tmp_path: Path, capsys: Capture, cut: int) -> None:
    start = system.process_start(at_us=5, command_line="app.exe --long-command-line")
    without_end = Event(name=start.name, at_us=start.at_us, values=start.values, header=start.header, cut=cut)
    found = collected(six_sends().cpu(0, without_end).bytes(), tmp_path, capsys)
    assert found.sends == ALL_SENDS
    assert found.status in (0, 3)
    assert (found.status == 3) == ("damaged_events" in found.kinds)


@pytest.mark.parametrize("ticks", [1, 10_000, 10_000_000])
def test_disorder_inside_a_buffer_is_sorted_and_said(tmp_path: Path, capsys: Capture, ticks: int) -> None:
    first, second = EVERY_KIND[1], record(START_TICKS + 1 + 2 * ticks)
    earlier = record(START_TICKS + 1 + ticks)
    found = collected(trace(buffer([first, second, earlier])), tmp_path, capsys)
    assert found.records == 4
    assert found.problems["disorder"]["count"] == 1
    assert found.status == 3


@pytest.mark.parametrize("at_us", [-3_600_000_000, -1_000_000, -1, 3_600_000_000])
def test_events_before_the_start_and_after_the_end_are_there(tmp_path: Path, capsys: Capture, at_us: int) -> None:
    other = afd.sent(at_us=at_us, length_bytes=7, buffer=0x9000, endpoint=ENDPOINT + 0x1000)
    found = collected(six_sends(end_ticks=six_sends().clock.start_ticks + 100).cpu(1, other).bytes(), tmp_path, capsys)
    assert sorted(found.sends) == sorted([*ALL_SENDS, (9, 7, "completed")])
    assert found.status == 0


@pytest.mark.parametrize("version", [1, 2, 200])
def test_versions_and_ids_that_nobody_knows_are_counted_by_name(tmp_path: Path, capsys: Capture, version: int) -> None:
    (known,) = afd.create(at_us=30).records(8, Trace().clock)
    odd = [
        Record(kind=HeaderKind.EVENT64, ticks=known.ticks + n, provider=known.provider, event_id=number, version=version, payload=bytes(8))
        for n, number in enumerate((998, 999, 65535))
    ]
    found = collected(six_sends().cpu(0, odd).bytes(), tmp_path, capsys)
    assert found.sends == ALL_SENDS
    assert found.problems["unknown_events"]["count"] == 3
