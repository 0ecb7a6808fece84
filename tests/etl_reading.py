"""Reading whole ETL files in tests: all windows joined, comparable."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from collector.errors import Problem
from collector.losses import Losses
from collector.raw import RawEvents, TraceHeader
from collector.readers.etl import EtlReader
from collector.source import Source

COLUMNS = (
    "payload_size",
    "ticks",
    "cpu",
    "pid",
    "tid",
    "kind",
    "pointer_size",
    "event_id",
    "opcode",
    "version",
    "level",
    "keyword",
    "activity",
    "buffer",
    "buffer_offset",
)


@dataclass
class Reading:
    """One file read to its end."""

    header: TraceHeader
    columns: dict[str, NDArray[np.generic]]
    providers: list[UUID]
    payloads: list[bytes]
    problems: list[Problem]
    losses: Losses
    windows: int

    def __len__(self) -> int:
        return len(self.providers)

    def column(self, name: str) -> list[int]:
        values: list[int] = self.columns[name].tolist()
        return values

    @property
    def kinds(self) -> set[str]:
        """Names of the problems."""
        return {problem.kind.name for problem in self.problems}

    def problem(self, kind: str) -> Problem:
        """The one problem of a kind."""
        (found,) = [problem for problem in self.problems if problem.kind.name == kind]
        return found

    def digest(self) -> tuple[object, ...]:
        """All that must not depend on how a file was cut into windows."""
        columns = tuple(hashlib.sha256(np.ascontiguousarray(self.columns[name]).tobytes()).hexdigest() for name in COLUMNS)
        problems = tuple((p.kind.name, p.count, p.first_ticks, p.last_ticks, p.place, p.text) for p in self.problems)
        return columns, tuple(self.providers), tuple(self.payloads), problems, tuple(self.losses.spans), self.losses.is_everywhere


def read_path(path: Path, *, window_buffers: int = 1024, window_bytes: int = 16 << 20) -> Reading:
    """Read a file to its end, holding each window to what `RawEvents` promises."""
    with Source.open(path) as source:
        reader = EtlReader(source, window_buffers=window_buffers, window_bytes=window_bytes)
        parts: dict[str, list[NDArray[np.generic]]] = {name: [] for name in COLUMNS}
        providers: list[UUID] = []
        payloads: list[bytes] = []
        windows, last = 0, None
        for raw in reader.windows():
            check_window(raw, first_seq=len(providers), not_before=last)
            windows, last = windows + 1, int(raw.ticks[-1])
            for name in COLUMNS:
                parts[name].append(getattr(raw, name).copy())
            providers += [raw.providers[number] for number in raw.provider.tolist()]
            payloads += [raw.payload_bytes(row) for row in range(len(raw))]
        assert reader.bytes_done == reader.bytes_total == source.size
        columns = {name: np.concatenate(arrays) if arrays else np.zeros(0) for name, arrays in parts.items()}
        return Reading(reader.header, columns, providers, payloads, reader.problems, reader.losses, windows)


def read_bytes(folder: Path, content: bytes, *, window_buffers: int = 1024, window_bytes: int = 16 << 20) -> Reading:
    """Read a file of these bytes."""
    path = folder / "built.etl"
    path.write_bytes(content)
    return read_path(path, window_buffers=window_buffers, window_bytes=window_bytes)


def check_window(raw: RawEvents, *, first_seq: int, not_before: int | None) -> None:
    """Assert the promises of one window: lengths, order, and that nothing points out of its bytes."""
    n = len(raw)
    assert n > 0
    assert raw.first_seq == first_seq
    assert raw.seq.tolist() == list(range(first_seq, first_seq + n))
    for name in (*COLUMNS, "offset", "payload", "provider", "extended"):
        assert getattr(raw, name).shape == (n,), name
    assert (np.diff(raw.ticks) >= 0).all()
    assert not_before is None or raw.ticks[0] >= not_before
    assert (raw.offset >= 0).all()
    assert (raw.payload >= raw.offset).all()
    assert (raw.payload_size >= 0).all()
    assert (raw.payload + raw.payload_size <= raw.data.size).all()
    assert (raw.extended[raw.extended >= 0] <= raw.payload[raw.extended >= 0]).all()
    assert ((raw.provider >= 0) & (raw.provider < len(raw.providers))).all()
