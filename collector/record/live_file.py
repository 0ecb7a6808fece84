"""Writes what sessions deliver in real time into one ETL file, which others can follow while it grows.

Records of several sessions arrive one behind the other; they are held back for a moment and put in order, processor by processor. What is
later than that stands in a buffer of its own, which readers order by its time.
"""

import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from collector.clock import Clock, ClockKind
from collector.etlwriter import EtlWriter, Session
from collector.etlwriter.buffers import BUFFER_HEADER_SIZE
from collector.etlwriter.items import Item, items_bytes
from collector.etlwriter.session import HEADER_FIELDS
from collector.raw import HeaderKind
from collector.record.backlog import Copied
from collector.record.constants import Misc
from collector.record.structures import TRACE_LOGFILE_HEADER

__all__ = ["HELD_SECONDS", "LiveFile", "disk_form"]

HELD_SECONDS = 2.0
"""How long a record waits for earlier ones of other sessions; a session hands its buffers on every second."""
FLUSH_SECONDS = 3.0
"""How long a record waits for the buffer that it stands in to be full."""

EVENT_TRACE = UUID("68fdd900-4a3e-11d1-84f4-0000f80464e3")
_HEADER_OPCODE = 0  # of EVENT_TRACE: the log file header, which this file has one of its own
_FLAGS_AT, _TID_AT, _TICKS_AT, _PROVIDER_AT, _DESCRIPTOR_AT, _TIMES_AT, _CONTEXT_AT = 4, 8, 16, 24, 40, 56, 80
_EVENT_HEAD = struct.Struct("<HBBH")
_CLASSIC_HEAD = struct.Struct("<HBBBBH")
_EXTENDED_INFO = 0x0001
_MOST_RECORD = 0xFFFF
_FILETIME_1970 = 116_444_736_000_000_000
_CLOCKS = {1: ClockKind.QPC, 2: ClockKind.SYSTEM_TIME, 3: ClockKind.CPU_CYCLES}

Placed = tuple[int, int, bytes]
"""Ticks, processor, and the bytes of a record as they stand in a file."""


def disk_form(record: Copied) -> Placed:
    """A delivered record as it stands in a file (etl-format S4). Raises ValueError for one that no file can hold.

    Of a classic record Windows does not tell which kind of header it was logged with; it gets the one that has room for all that is told.
    """
    head, payload, items = record
    flags = int.from_bytes(head[_FLAGS_AT : _FLAGS_AT + 2], "little")
    is_wide = not flags & Misc.EVENT_HEADER_FLAG_32_BIT_HEADER
    context = int.from_bytes(head[_CONTEXT_AT : _CONTEXT_AT + 2], "little")
    cpu = context if flags & Misc.EVENT_HEADER_FLAG_PROCESSOR_INDEX else context & 0xFF
    ticks = int.from_bytes(head[_TICKS_AT : _TICKS_AT + 8], "little", signed=True)
    if flags & Misc.EVENT_HEADER_FLAG_CLASSIC_HEADER:
        _, version, _, level, opcode = struct.unpack_from("<HBBBB", head, _DESCRIPTOR_AT)
        kind = HeaderKind.FULL64 if is_wide else HeaderKind.FULL32
        body = head[_TID_AT : _PROVIDER_AT + 16] + head[_TIMES_AT : _TIMES_AT + 8] + payload
        data = _CLASSIC_HEAD.pack(_fits(_CLASSIC_HEAD.size + len(body)), kind, 0xC0, opcode, level, version) + body
    else:
        kind = HeaderKind.EVENT64 if is_wide else HeaderKind.EVENT32
        # Flags that say how the record was delivered are none of the file's.
        flags = flags & ~(_EXTENDED_INFO | Misc.EVENT_HEADER_FLAG_PROCESSOR_INDEX) | (_EXTENDED_INFO if items else 0)
        body = head[6:_CONTEXT_AT] + items_bytes([Item(number, content) for number, content in items]) + payload
        data = _EVENT_HEAD.pack(_fits(_EVENT_HEAD.size + len(body)), kind, 0xC0, flags) + body
    return ticks, cpu, data


def _start_time(payload: bytes) -> int:
    """When a session began, by its own header record; 0 where it does not say (the record of `TRACE_LOGFILE_HEADER`)."""
    (pointer_at, _, _), (narrow_at, wide_at, _) = HEADER_FIELDS["pointer_size"], HEADER_FIELDS["start_time"]
    at = wide_at if int.from_bytes(payload[pointer_at : pointer_at + 4], "little") == 8 else narrow_at
    return int.from_bytes(payload[at : at + 8], "little") if len(payload) >= at + 8 else 0


def _fits(size: int) -> int:
    if size > _MOST_RECORD:
        raise ValueError(f"a record of {size:,} bytes; a file takes {_MOST_RECORD:,}")
    return size


class LiveFile:
    """The file; one thread at a time may use it. It is begun with the first records, which tell its time 0."""

    def __init__(
        self,
        path: Path,
        name: str,
        header: TRACE_LOGFILE_HEADER,
        *,
        held_seconds: float = HELD_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self.unwritable = 0
        """Records that no file can hold."""
        self._name, self._header, self._held_seconds, self._now = name, header, held_seconds, now
        self._out: BinaryIO = path.open("w+b")
        self._writer: EtlWriter | None = None
        self._lost = self._told = (0, 0)
        """Events and buffers that are missing, and what the header says of them."""
        self._arrived: list[tuple[float, int]] = []
        """When records arrived, and their latest ticks."""
        self._held: list[Placed] = []
        self._open: dict[int, _Filling] = {}

    def take(self, records: Iterable[Copied]) -> None:
        """Take what was delivered, and write what has waited long enough. Raises OSError."""
        now, start_filetime = self._now(), None
        placed = []
        for record in records:
            try:
                form = disk_form(record)
            except ValueError:
                self.unwritable += 1
                continue
            if record[0][_PROVIDER_AT : _PROVIDER_AT + 16] == EVENT_TRACE.bytes_le and record[0][_DESCRIPTOR_AT + 5] == _HEADER_OPCODE:
                self._begin(form[0], _start_time(record[1]) or self._header.StartTime)
                continue
            placed.append(form)
        if placed:
            if self._writer is None:
                first = min(ticks for ticks, _, _ in placed)
                start_filetime = _FILETIME_1970 + time.time_ns() // 100  # the header record did not come: about now
                self._begin(first, start_filetime)
            self._arrived.append((now, max(ticks for ticks, _, _ in placed)))
            self._held += placed
        self._release(now)

    def lose(self, events: int, buffers: int) -> None:
        """Say in the header how many events and buffers are missing so far, so that who follows the file learns of it. Raises OSError."""
        before, self._lost = self._told, (events, buffers)
        writer = self._writer
        if writer is None or before == self._lost:
            return
        self._told = self._lost
        writer.lose_events(events - before[0], is_flagged=False)
        writer.lose_buffers(buffers - before[1], is_skipped=False)  # no sign says where they were
        writer.write_header()
        self._out.flush()

    def close(self) -> None:
        """Write the rest, and say in the header that the session has ended. Raises OSError."""
        try:
            if self._writer is None:
                self._begin(0, self._header.StartTime or _FILETIME_1970 + time.time_ns() // 100)
            self._release(float("inf"))
            writer = self._writer
            assert writer is not None
            writer.session = replace(writer.session, is_closed=True)
            writer.close()
            self._out.flush()
        finally:
            self._out.close()

    def _begin(self, ticks: int, start_filetime: int) -> None:
        if self._writer is not None:
            return
        header = self._header
        kind = _CLOCKS.get(header.ReservedFlags, ClockKind.QPC)
        frequency = header.PerfFreq if kind is ClockKind.QPC else (header.CpuSpeedInMHz or 1_000) * 1_000_000
        if kind is ClockKind.SYSTEM_TIME:
            frequency, start_filetime = 10_000_000, ticks
        session = Session(
            name=self._name,
            file_name=str(self.path),
            pointer_size=header.PointerSize if header.PointerSize in (4, 8) else 8,
            processors=max(1, header.NumberOfProcessors),
            buffer_size=65 * 1024,  # the largest record, and a header
            clock=Clock(kind, ticks, frequency or 10_000_000, start_filetime),
            counter_frequency=header.PerfFreq,
            cpu_mhz=header.CpuSpeedInMHz,
            os_major=header.Version & 0xFF,
            os_minor=header.Version >> 8 & 0xFF,
            os_build=header.ProviderVersion,
            timer_resolution=header.TimerResolution,
            boot_filetime=header.BootTime,
            is_closed=False,
        )
        self._writer = EtlWriter(self._out, session)
        self.lose(*self._lost)
        self._out.flush()

    def _release(self, now: float) -> None:
        """Write records that arrived long enough ago, with all that are no later than these; and buffers that wait to be full."""
        ripe = [ticks for at, ticks in self._arrived if now - at >= self._held_seconds]
        if ripe:
            upto = max(ripe)
            self._arrived = [(at, ticks) for at, ticks in self._arrived if now - at < self._held_seconds]
            ready = sorted((one for one in self._held if one[0] <= upto), key=lambda one: one[0])  # stable: equal times as they came
            self._held = [one for one in self._held if one[0] > upto]
            self._write(ready, now)
        for cpu in [cpu for cpu, filling in self._open.items() if now - filling.since >= FLUSH_SECONDS]:
            self._flush(cpu)
        self._out.flush()

    def _write(self, ready: Sequence[Placed], now: float) -> None:
        assert self._writer is not None
        room = self._writer.session.buffer_size - BUFFER_HEADER_SIZE
        for ticks, cpu, data in ready:
            filling = self._open.get(cpu)
            if filling is not None and (len(filling.data) + len(data) > room or ticks < filling.last):
                self._flush(cpu)
                filling = None
            if filling is None:
                filling = self._open[cpu] = _Filling(ticks, self._now() if now == float("inf") else now)
            filling.data += data + bytes(-len(data) % 8)
            filling.last = ticks

    def _flush(self, cpu: int) -> None:
        assert self._writer is not None
        filling = self._open.pop(cpu)
        self._writer.add_buffer(bytes(filling.data), cpu=cpu, first_ticks=filling.first, last_ticks=filling.last, is_late=True)


class _Filling:
    """A buffer on its way."""

    __slots__ = ("data", "first", "last", "since")

    def __init__(self, ticks: int, now: float) -> None:
        self.data = bytearray()
        self.first = self.last = ticks
        self.since = now
