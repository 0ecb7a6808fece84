"""Windows of raw records built by hand, for tests that want no file."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np

from collector.clock import Clock, ClockKind
from collector.raw import HeaderKind, RawEvents

__all__ = ["CLOCK", "Record", "raw_events"]

CLOCK = Clock(ClockKind.QPC, start_ticks=0, ticks_per_second=10_000_000, start_filetime=0)
_CLASSIC = {4: HeaderKind.SYSTEM32, 8: HeaderKind.SYSTEM64}
_EVENT = {4: HeaderKind.EVENT32, 8: HeaderKind.EVENT64}


@dataclass(frozen=True)
class Record:
    """One record; a classic one when it has an opcode and no event id."""

    provider: UUID
    payload: bytes
    event_id: int | None = None
    opcode: int = 0
    version: int = 0
    pointer_size: int = 8
    ticks: int | None = None
    pid: int = 4
    tid: int = 8
    kind: HeaderKind | None = None
    keyword: int = 0
    activity: int = 0
    cpu: int = 0

    def with_payload(self, payload: bytes) -> "Record":
        return replace(self, payload=payload)


def raw_events(records: Iterable[Record], *, first_seq: int = 0, providers: list[UUID] | None = None) -> RawEvents:
    """A window of these records, in their order; ticks count 100, 200, … where a record names none. Payloads lie at odd places."""
    listed = list(records)
    known = providers if providers is not None else []
    data = bytearray(b"\xee")
    payloads = []
    for record in listed:
        if record.provider not in known:
            known.append(record.provider)
        payloads.append(len(data))
        data += record.payload + b"\xee"
    n = len(listed)
    return RawEvents(
        data=np.frombuffer(bytes(data), dtype=np.uint8),
        providers=known,
        first_seq=first_seq,
        offset=np.array(payloads, dtype=np.int64),
        payload=np.array(payloads, dtype=np.int64),
        payload_size=np.array([len(r.payload) for r in listed], dtype=np.int32),
        ticks=np.array([100 * (i + 1) if r.ticks is None else r.ticks for i, r in enumerate(listed)], dtype=np.int64),
        cpu=np.array([r.cpu for r in listed], dtype=np.uint16),
        pid=np.array([r.pid for r in listed], dtype=np.int64),
        tid=np.array([r.tid for r in listed], dtype=np.int64),
        kind=np.array([_kind(r) for r in listed], dtype=np.uint8),
        pointer_size=np.array([r.pointer_size for r in listed], dtype=np.uint8),
        provider=np.array([known.index(r.provider) for r in listed], dtype=np.int32),
        event_id=np.array([r.event_id or 0 for r in listed], dtype=np.int32),
        opcode=np.array([r.opcode for r in listed], dtype=np.uint8),
        version=np.array([r.version for r in listed], dtype=np.int32),
        level=np.full(n, 4, dtype=np.uint8),
        keyword=np.array([r.keyword for r in listed], dtype=np.uint64),
        activity=np.array([r.activity for r in listed], dtype=np.uint64),
        extended=np.full(n, -1, dtype=np.int64),
        buffer=np.ones(n, dtype=np.int32),
        buffer_offset=np.array(payloads, dtype=np.int32),
    )


def _kind(record: Record) -> HeaderKind:
    if record.kind is not None:
        return record.kind
    return (_CLASSIC if record.event_id is None else _EVENT)[record.pointer_size]
