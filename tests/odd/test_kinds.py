"""Every kind of record header, in files of 32- and 64-bit machines, packed and not: each is counted by its kind, and disturbs no other."""

import json
from pathlib import Path
from uuid import UUID

import pytest

from app.cli import main
from collector.etlwriter import Compression, Record
from collector.etlwriter.records import HOOK_KINDS
from collector.raw import HeaderKind
from tests.odd.collected import ALL_SENDS, collected, six_sends

Capture = pytest.CaptureFixture[str]
WRITTEN = [kind for kind in HeaderKind if kind not in (HeaderKind.TIMED, HeaderKind.ERROR, HeaderKind.WNODE)]
FOREIGN = UUID("aaaaaaaa-1111-2222-3333-444444444444")
COUNT = 5


def record(kind: HeaderKind, ticks: int, n: int) -> Record:
    """A record of something that nobody decodes."""
    return Record(
        kind=kind,
        ticks=ticks,
        pid=77,
        tid=88,
        provider=FOREIGN,
        group=0x1F if kind in HOOK_KINDS else 0,
        event_id=40_000,
        opcode=0x55,
        version=3,
        payload=bytes(8 * n),
    )


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.name)
@pytest.mark.parametrize("pointer_size", [4, 8])
@pytest.mark.parametrize("method", [Compression.NONE, Compression.XPRESS, Compression.LZNT1, Compression.XPRESS_HUFF], ids=lambda m: m.name)
def test_each_kind_is_counted_and_disturbs_nothing(
    tmp_path: Path, capsys: Capture, kind: HeaderKind, pointer_size: int, method: Compression
) -> None:
    trace = six_sends(pointer_size=pointer_size, compression=method)
    start = trace.clock.start_ticks
    trace.cpu(0, (record(kind, start + 20_000 * n + 5_000, n) for n in range(COUNT)))
    found = collected(trace.bytes(), tmp_path, capsys)

    assert found.sends == ALL_SENDS
    assert found.status == 0
    assert found.kinds == set()
    assert found.records == 15 + COUNT
    assert main(["inspect", str(tmp_path / "odd.etl"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (row,) = [row for row in report["events"] if row["header_kind"] == kind.name and (row["event_id"] or row["opcode"]) in (40_000, 0x55)]
    assert (row["count"], row["known"], row["damaged"]) == (COUNT, 0, 0)
    assert sum(row["count"] for row in report["events"]) == report["records"] == 15 + COUNT
    assert report["records_by_kind"][kind.name] >= COUNT
    assert report["header"]["is_compressed"] == (method is not Compression.NONE)
    assert report["header"]["pointer_size"] == pointer_size


@pytest.mark.parametrize("pointer_size", [4, 8])
@pytest.mark.parametrize("method", [Compression.NONE, Compression.XPRESS])
def test_all_kinds_in_one_file(tmp_path: Path, capsys: Capture, pointer_size: int, method: Compression) -> None:
    trace = six_sends(pointer_size=pointer_size, compression=method)
    start = trace.clock.start_ticks
    trace.cpu(0, (record(kind, start + 4_000 * n + 5_000, n % 4) for n, kind in enumerate(WRITTEN)))
    found = collected(trace.bytes(), tmp_path, capsys)
    assert found.sends == ALL_SENDS
    assert found.kinds == set()
    assert found.records == 15 + len(WRITTEN)
    assert main(["inspect", str(tmp_path / "odd.etl")]) == 0
    said = capsys.readouterr().out
    assert f"{15 + len(WRITTEN)}" in next(line for line in said.splitlines() if line.endswith("in all"))
    assert all(kind.name in said for kind in WRITTEN)
