"""Writes an ETL file: records in, buffers out, the log file header corrected at the end as Windows does."""

from collections.abc import Callable, Iterable
from typing import BinaryIO
from uuid import UUID

from collector.etlwriter.buffers import BUFFER_HEADER_SIZE, BufferFlag, BufferType, OpenBuffer, buffer_header
from collector.etlwriter.compression import COMPRESSORS
from collector.etlwriter.metadata import metadata_of
from collector.etlwriter.records import Record, record_bytes
from collector.etlwriter.session import HeaderTotals, Session, log_file_header
from collector.raw import HeaderKind
from collector.schema import EventSchema

__all__ = ["LEFT_OVER", "EtlWriter"]

_STATE_FLUSH = 3
LEFT_OVER = bytes.fromhex("3800 14c0 5000 13c0 ffff ffff 0000 c0c0")
"""Old contents of buffer memory: a pattern with bytes that look like markers, so that a reader that scans for records is caught."""


class EtlWriter:
    """Writes one trace into a seekable binary file.

    Records are added in the order in which their processor logged them: time may not go back on one processor. Between processors
    any order will do, it only decides which buffer is flushed first. `close` flushes what is open, processor by processor.

    With `metadata` a record that describes its layout stands before the first record of each event, as in merged files.
    `flush_every` is the session's flush timer in ticks, 0 for none: a buffer older than that is flushed when its processor logs again.
    """

    def __init__(
        self, out: BinaryIO, session: Session | None = None, *, metadata: Iterable[EventSchema] = (), flush_every: int = 0
    ) -> None:
        self.session = session or Session()
        if self.session.compression and self.session.maximum_buffers is not None:
            raise ValueError("a circular file has buffers of one size, so it cannot be compressed")
        self._out = out
        self._flush_every = flush_every
        self._open: dict[int, OpenBuffer] = {}
        self._memory: dict[int, bytearray] = {}
        self._next_sequence = 1
        self._flushed = 0
        self._last_flags_at: tuple[int, int] | None = None
        self._lost_events = self.session.lost_events
        self._lost_buffers = self.session.lost_buffers
        self._pending_flags: dict[int, int] = {}
        self._last_ticks: dict[int, int] = {}
        self._header_records: list[bytes] = []
        self._metadata = {(s.provider, s.number, v): s for s in metadata if not s.is_classic for v in s.versions or (0,)}
        self._described: set[tuple[UUID, int, int]] = set()
        self._compress: Callable[[bytes], bytes] | None = COMPRESSORS.get(self.session.compression)
        self._out.write(self._header_buffer())

    @property
    def buffers_written(self) -> int:
        """Buffers flushed so far, the header buffer included."""
        return 1 + self._flushed

    def add_to_header(self, record: Record) -> None:
        """Append a record to the header buffer, behind the log file header. Raises ValueError when it is full."""
        self._header_records.append(record_bytes(record))
        self._header_buffer()

    def add(self, record: Record, cpu: int = 0) -> None:
        """Log a record on a processor.

        Raises: ValueError when time goes back on that processor, or the record does not fit into an empty buffer.
        """
        described = self._metadata.get((record.provider, record.event_id, record.version)) if self._metadata else None
        if described is not None and record.kind in (HeaderKind.EVENT32, HeaderKind.EVENT64):
            key = (record.provider, record.event_id, record.version)
            if key not in self._described:
                self._described.add(key)
                self._append(metadata_of(described, record), record.ticks, cpu)
        self._append(record_bytes(record), record.ticks, cpu)

    def _append(self, record: bytes, ticks: int, cpu: int) -> None:
        self._check_time(ticks, cpu)
        if BUFFER_HEADER_SIZE + len(record) > self.session.buffer_size:
            raise ValueError(f"a record of {len(record):,} bytes does not fit into a buffer of {self.session.buffer_size:,}")
        self._last_ticks[cpu] = ticks
        buffer = self._open.get(cpu)
        is_old = self._flush_every and buffer is not None and ticks - buffer.first_ticks >= self._flush_every
        if buffer is not None and (is_old or not buffer.has_room((len(record) + 7) & ~7)):
            self.flush(cpu)
            buffer = None
        if buffer is None:
            buffer = self._open_buffer(cpu)
        buffer.append(record, ticks)

    def lose_events(self, count: int, *, cpu: int = 0, is_flagged: bool = True) -> None:
        """Count lost events; with `is_flagged` the processor's open buffer ends here and says that events were lost."""
        self._lost_events += count
        if is_flagged:
            if cpu in self._open:
                self._open[cpu].flags |= BufferFlag.EVENTS_LOST
                self.flush(cpu)
            else:
                self._pending_flags[cpu] = BufferFlag.EVENTS_LOST

    def lose_buffers(self, count: int, *, is_skipped: bool = True) -> None:
        """Count lost buffers; with `is_skipped` as many sequence numbers are left out here."""
        self._lost_buffers += count
        self._next_sequence += count if is_skipped else 0

    def flush(self, cpu: int | None = None) -> None:
        """Write the open buffer of one processor, or of all; empty ones are not written."""
        for number in sorted(self._open) if cpu is None else [cpu]:
            buffer = self._open.pop(number, None)
            if buffer is not None and not buffer.is_empty:
                self._write_buffer(buffer.records(), cpu=number, sequence=buffer.sequence, last_ticks=buffer.last_ticks, flags=buffer.flags)

    def add_buffer(self, records: bytes, *, cpu: int, first_ticks: int, last_ticks: int, flags: int = 0, is_late: bool = False) -> None:
        """Write a whole buffer of one processor; `records` is all that stands behind its header, at most its size; `flags` of BufferFlag.

        With `is_late` it may hold records from before those that its processor had in the file already.

        Raises: ValueError when time goes back on that processor.
        """
        self.flush(cpu)
        if not is_late:
            self._check_time(first_ticks, cpu)
        self._last_ticks[cpu] = max(last_ticks, self._last_ticks.get(cpu, last_ticks))
        flags |= self._pending_flags.pop(cpu, 0)
        self._write_buffer(records, cpu=cpu, sequence=self._take_sequence(), last_ticks=last_ticks, flags=flags)

    def _check_time(self, ticks: int, cpu: int) -> None:
        if ticks < self._last_ticks.get(cpu, ticks):
            raise ValueError(f"processor {cpu}: a record at tick {ticks:,} follows one at tick {self._last_ticks[cpu]:,}")

    def _take_sequence(self) -> int:
        """The sequence number of a buffer that is opened now."""
        self._next_sequence += 1
        return self._next_sequence - 1

    def _write_buffer(self, records: bytes, *, cpu: int, sequence: int, last_ticks: int, flags: int) -> None:
        session = self.session
        filled = BUFFER_HEADER_SIZE + len(records)
        flags |= 0 if session.is_windows7 else BufferFlag.PROCESSOR_INDEX
        size, body = session.buffer_size, records + b"\xff" * (session.buffer_size - filled)
        if self._compress is not None:
            packed = self._compress(records)
            if len(packed) < len(records):  # what does not shrink stays as it is
                size, body, flags = BUFFER_HEADER_SIZE + len(packed), packed, flags | BufferFlag.COMPRESSED
        head = buffer_header(
            size=size,
            filled=filled,
            time=session.filetime_of(last_ticks) if session.is_merged else last_ticks,
            sequence=sequence,
            cpu=cpu,
            logger_id=0 if session.is_merged else session.logger_id,
            state=_STATE_FLUSH,
            flags=flags,
            kind=BufferType.GENERIC,
            is_windows7=session.is_windows7,
        )
        if session.maximum_buffers is not None:
            slot = self._flushed % (session.maximum_buffers - 1)
            self._out.seek(session.buffer_size * (1 + slot))
        self._last_flags_at = (self._out.tell() + 0x34, flags)
        self._out.write(head + body)
        self._flushed += 1

    def close(self) -> None:
        """Flush what is open, mark the last buffer, and write the header buffer again with what is known now."""
        self.flush()
        if self.session.is_closed and self._last_flags_at is not None:
            at, flags = self._last_flags_at
            self._out.seek(at)
            self._out.write((flags | BufferFlag.FLUSH_MARKER).to_bytes(2, "little"))
        self.write_header()

    def write_header(self) -> None:
        """Write the header buffer again with what is known now, such as losses while the session goes on."""
        self._out.seek(0)
        self._out.write(self._header_buffer())
        self._out.seek(0, 2)

    def _open_buffer(self, cpu: int) -> OpenBuffer:
        size = self.session.buffer_size
        memory = self._memory.setdefault(cpu, bytearray((LEFT_OVER * (size // len(LEFT_OVER) + 1))[:size]))
        buffer = OpenBuffer(memory, self._take_sequence(), flags=self._pending_flags.pop(cpu, 0))
        self._open[cpu] = buffer
        return buffer

    def _header_buffer(self) -> bytes:
        session = self.session
        last = session.end_ticks
        if last is None:
            last = max(self._last_ticks.values(), default=session.clock.start_ticks)
        written = self.buffers_written
        if session.maximum_buffers is not None:
            written = min(written, session.maximum_buffers)
        totals = HeaderTotals(session.filetime_of(last), written, self._lost_events, self._lost_buffers)
        records = b"".join(
            record + bytes(-len(record) % 8) for record in (record_bytes(log_file_header(session, totals)), *self._header_records)
        )
        size, filled = session.header_buffer_size, BUFFER_HEADER_SIZE + len(records)
        if filled > size:
            raise ValueError(f"the header buffer of {size:,} bytes has no room for {filled:,}")
        head = buffer_header(
            size=size,
            filled=filled,
            time=0,
            sequence=0,
            cpu=0,
            logger_id=0 if session.is_merged else session.logger_id,
            state=session.compression if session.is_merged else (session.compression or _STATE_FLUSH),
            flags=(BufferFlag.FLUSH_MARKER if session.is_closed else 0)
            | (0 if session.is_merged or session.is_windows7 else BufferFlag.PROCESSOR_INDEX),
            kind=BufferType.HEADER,
            is_windows7=session.is_windows7,
        )
        return head + records + b"\xff" * (size - filled)
