"""More different headers than any real trace has: their number is bounded, and what is beyond is counted and said."""

import struct
from pathlib import Path
from uuid import UUID

import pytest

from collector.readers import etl, etl_forms
from collector.readers.etl import EtlReader
from collector.source import Source
from tests.etl_bytes import START_TICKS, buffer, event, full, items, message, perfinfo, system, trace
from tests.etl_reading import Reading, read_bytes

PROVIDER = UUID("11111111-2222-3333-4444-555555555555")


def limited(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(etl_forms, "MAX_FORMS", most)
    monkeypatch.setattr(etl, "MAX_FORMS", most)


def many(count: int) -> list[bytes]:
    """Records of all layouts, each with another header."""
    makers = (
        lambda n, t: perfinfo(t, version=n % 0x8000, hook=0x0F00 + n % 256, payload=bytes(n % 5)),
        lambda n, t: system(t, hook=0x1000 + n % 256, version=n % 100, payload=bytes(n % 7), pid=n, tid=n + 1),
        lambda n, t: full(t, UUID(int=n + 1), n % 256, bytes(n % 3), pid=n, version=n % 200),
        lambda n, t: event(t, n % 65536, bytes(n % 9), guid=PROVIDER, version=n % 256, pid=n, keyword=n),
        lambda n, t: event(t, n % 65536, bytes(n % 9), guid=PROVIDER, pid=n, extended=items((1, bytes(16)), (6, bytes(24)))),
        lambda n, t: message(n % 65536, 0xAA, UUID(int=n + 1).bytes_le + struct.pack("<qII", t, n, n + 1), bytes(n % 4)),
    )
    return [makers[n % len(makers)](n, START_TICKS + 1 + n) for n in range(count)]


def identities(reading: Reading) -> list[tuple[UUID, int, int]]:
    return list(zip(reading.providers, reading.column("event_id"), reading.column("opcode"), strict=True))


def file_of(records: list[bytes]) -> bytes:
    return trace(*(buffer(records[at : at + 5], sequence=at // 5 + 1) for at in range(0, len(records), 5)))


@pytest.mark.parametrize("most", [1, 2, 10, 60, 119, 120, 121, 122])
def test_beyond_the_limit_records_keep_all_but_their_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    content = file_of(many(120))
    whole = read_bytes(tmp_path, content)
    limited(monkeypatch, most)
    found = read_bytes(tmp_path, content)

    assert len(found) == len(whole) == 121
    same = ("ticks", "cpu", "pid", "tid", "kind", "pointer_size", "payload_size", "keyword", "buffer", "buffer_offset")
    for name in same:
        assert found.column(name) == whole.column(name), name
    assert found.payloads == whole.payloads
    counts = [problem.count for problem in found.problems if problem.kind.name == "too_many_forms"]
    assert counts == ([121 - most] if most < 121 else [])
    identities = [
        tuple(zip(reading.providers, reading.column("event_id"), reading.column("opcode"), strict=True)) for reading in (whole, found)
    ]
    unlike = [after for before, after in zip(*identities, strict=True) if before != after]
    assert set(unlike) <= {(UUID(int=0), 0, 0)}
    assert len(unlike) == max(0, 121 - most)


def test_a_form_that_is_known_stays_known_beyond_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = [event(START_TICKS + 1 + n, 1003) for n in range(4)]
    later = [event(START_TICKS + 1000 + n, 1003) for n in range(4)]
    limited(monkeypatch, 2)  # the log file header, and the one of these
    found = read_bytes(tmp_path, file_of([*known, known[0], *many(40), *later]), window_buffers=1)
    assert list(found.column("event_id")).count(1003) == 9
    (problem,) = [problem for problem in found.problems if problem.kind.name == "too_many_forms"]
    assert problem.count == 40
    assert "the first 2 that were told apart" in problem.text


def test_the_table_stays_small_whatever_the_file_makes_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, 16)
    path = tmp_path / "many.etl"
    path.write_bytes(file_of(many(3000)))
    with Source.open(path) as source:
        reader = EtlReader(source, window_buffers=3)
        sizes = [(len(raw), len(raw.forms)) for raw in reader.windows()]
    assert sum(records for records, _ in sizes) == 3001
    assert max(forms for _, forms in sizes) <= 16 + 6
