"""The reader on the reference traces: counts as their README and expected files give them, order as a plain reader finds it."""

import json
import re
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pyfwnt
import pytest

from collector.raw import HeaderKind
from tests.etl_reading import Reading, read_path

pytestmark = pytest.mark.shared

KIND_COUNT = re.compile(r"\b([A-Z]+\d*) ([\d,]+)")
KINDS = {kind.name for kind in HeaderKind}

# Notes that a sound file may have; every other problem would be a mistake of the reader.
USUAL = {
    "AMSITrace.etl": {"lost_events"},
    "CldFlt2-2025-12-21-121418.etl": {"unfinished_session"},
    "Process.etl": {"sequence_gap"},
}


def readme_rows(shared: Path) -> dict[str, tuple[int, dict[str, int]]]:
    """Events, and events by header kind, of each file in the table of the real traces."""
    rows = {}
    for line in (shared / "traces" / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 8 and cells[0].strip("`").endswith(".etl"):
            by_kind = {kind: int(count.replace(",", "")) for kind, count in KIND_COUNT.findall(cells[6]) if kind in KINDS}
            rows[cells[0].strip("`")] = (int(cells[5].replace(",", "")), by_kind)
    return rows


def by_kind(reading: Reading) -> dict[str, int]:
    return {HeaderKind(kind).name: count for kind, count in Counter(reading.column("kind")).items()}


def plain_order(content: bytes) -> list[tuple[int, int, int, int, int]]:
    """(ticks, cpu, sequence, buffer, offset) of all records, by a loop over bytes; for sound files alone."""
    records = []
    at = number = 0
    while at < len(content):
        (stride,) = struct.unpack_from("<I", content, at)
        (sequence,) = struct.unpack_from("<q", content, at + 0x18)
        (processor,) = struct.unpack_from("<H", content, at + 0x28)
        filled, flags = struct.unpack_from("<IH", content, at + 0x30)
        expanded = content[at : at + stride]
        if flags & 0x40:
            expanded = expanded[:72] + pyfwnt.lzxpress_decompress(expanded[72:], filled - 72)
        cpu = processor & 0x7FF if flags & 0x20 else processor & 0xFF
        position, last = 72, 0
        while position + 8 <= filled:
            low, kind, marker, high = struct.unpack_from("<HBBH", expanded, position)
            size = high if marker == 0xC0 and kind in (1, 2, 3, 4, 16, 17) else low
            if marker == 0x90:
                (options,) = struct.unpack_from("<H", expanded, position + 6)
                time_at = 8 + 4 * (options & 1) + 16 * (options >> 1 & 1)
                last = struct.unpack_from("<q", expanded, position + time_at)[0] if options & 0x18 else last
            else:
                (last,) = struct.unpack_from("<q", expanded, position + (8 if kind in (16, 17) else 16))
            records.append((last, cpu, sequence, number, position))
            position += (size + 7) & ~7
        at += stride
        number += 1
    return sorted(records)


def test_every_real_file_is_in_the_table(shared_dir: Path) -> None:
    files = {path.name for path in (shared_dir / "traces" / "real").glob("*.etl")}
    assert files
    assert set(readme_rows(shared_dir)) == files


def test_records_of_real_files_by_kind(shared_dir: Path) -> None:
    for name, (events, kinds) in readme_rows(shared_dir).items():
        reading = read_path(shared_dir / "traces" / "real" / name)
        assert len(reading) == events, name
        assert by_kind(reading) == kinds, name
        assert reading.kinds == USUAL.get(name, set()), name


def test_the_order_is_that_of_a_plain_reader(shared_dir: Path) -> None:
    traces = shared_dir / "traces"
    for path in [*sorted((traces / "real").glob("*.etl")), traces / "story-32.etl", traces / "story-mixed.etl"]:
        reading = read_path(path, window_buffers=7)
        expected = plain_order(path.read_bytes())
        found = list(zip(*(reading.column(name) for name in ("ticks", "cpu", "buffer", "buffer_offset")), strict=True))
        assert found == [(ticks, cpu, number, offset) for ticks, cpu, _, number, offset in expected], path.name


def test_records_of_the_stories(shared_dir: Path) -> None:
    for name in ("story-32", "story-mixed"):
        expected = json.loads((shared_dir / "traces" / f"{name}.expected.json").read_text(encoding="utf-8"))
        reading = read_path(shared_dir / "traces" / f"{name}.etl")
        assert len(reading) == expected["records"]
        assert by_kind(reading) == expected["records_by_kind"]
        assert reading.problems == []
        check_clock(reading, expected["clock"])


def check_clock(reading: Reading, expected: dict[str, object]) -> None:
    clock = reading.header.clock
    assert (clock.kind, clock.ticks_per_second, clock.start_ticks, clock.start_filetime, reading.header.pointer_size) == (
        expected["kind"],
        expected["ticks_per_second"],
        expected["start_ticks"],
        expected["start_filetime"],
        expected["pointer_size"],
    )


def test_the_events_of_the_worked_traces_are_where_they_say(shared_dir: Path) -> None:
    for path in sorted((shared_dir / "traces" / "worked").glob("*.etl")):
        expected = json.loads(path.with_suffix(".expected.json").read_text(encoding="utf-8"))
        reading = read_path(path, window_buffers=1)
        check_clock(reading, expected["clock"])
        ns = reading.header.clock.ns(np.array(reading.column("ticks"))).tolist()
        places = zip(*(reading.column(name) for name in ("buffer", "buffer_offset", "cpu")), ns, strict=True)
        found = {(buffer, offset): (cpu, time) for buffer, offset, cpu, time in places}
        for event in expected["events"]:
            assert found[event["buffer"], event["offset"]] == (event["cpu"], event["t_ns"]), (path.name, event)
        losses = {"lost_events"} if expected["id"] == "HT-06" else set()
        assert reading.kinds == losses, path.name


def test_the_loss_of_a_worked_trace_has_one_place(shared_dir: Path) -> None:
    reading = read_path(shared_dir / "traces" / "worked" / "HT-06.etl")
    clock = reading.header.clock
    assert [(clock.ns_of(first), clock.ns_of(last)) for first, last in reading.losses.spans] == [(102_000, 102_000)]
    assert not reading.losses.is_everywhere
    assert reading.problem("lost_events").count == 3


@pytest.mark.parametrize(("window_buffers", "window_bytes"), [(1, 1 << 24), (3, 1 << 24), (1024, 200_000)])
def test_where_windows_are_cut_changes_nothing_in_real_files(shared_dir: Path, window_buffers: int, window_bytes: int) -> None:
    traces = shared_dir / "traces"
    for path in (traces / "real" / "ShutdownPerfDiagLogger.etl", traces / "real" / "CrossMachineHTTP.etl", traces / "story-mixed.etl"):
        whole = read_path(path)
        pieces = read_path(path, window_buffers=window_buffers, window_bytes=window_bytes)
        assert pieces.windows > whole.windows
        assert pieces.digest() == whole.digest(), path.name


@pytest.mark.parametrize("name", ["real/SelfDescribingSingleEvent.etl", "real/HTTP_Server.etl", "worked/HT-06.etl", "story-32.etl"])
def test_a_real_file_cut_or_damaged_anywhere_ends_well(shared_dir: Path, tmp_path: Path, name: str) -> None:
    content = (shared_dir / "traces" / name).read_bytes()
    sound = len(read_path(shared_dir / "traces" / name))
    rng = np.random.default_rng(7)
    path = tmp_path / "damaged.etl"
    for _ in range(12):
        damaged = bytearray(content)
        for at in rng.integers(1024, len(content), 20).tolist():
            damaged[at] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        assert len(read_path(path)) <= 2 * sound
        path.write_bytes(content[: int(rng.integers(len(content) // 2, len(content)))])
        assert len(read_path(path)) <= sound
