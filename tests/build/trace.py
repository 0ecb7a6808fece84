"""A built trace: events by processor, the session that wrote them, and what went wrong with the file afterwards."""

import io
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self, TypedDict, Unpack
from uuid import UUID

from collector.clock import Clock
from collector.etlwriter import Compression, EtlWriter, Record, Session
from collector.events.afd import AFD_EVENTS
from collector.raw import HeaderKind
from tests.build.events import Event, ticks_at

__all__ = ["LOST_EVENT_CLASS", "SessionValues", "Trace"]

LOST_EVENT_CLASS = UUID("6a399ae0-4bc6-4de9-870b-3657f8947e7e")

Damage = Callable[[bytearray], bytearray]


class SessionValues(TypedDict, total=False):
    """What a test may say about the session; see `Session`."""

    name: str
    file_name: str
    processors: int
    clock: Clock
    counter_frequency: int
    cpu_mhz: int
    os_major: int
    os_minor: int
    os_build: int
    boot_filetime: int
    end_ticks: int
    mode: int
    maximum_buffers: int
    is_windows7: bool
    is_merged: bool
    is_closed: bool
    compression: Compression
    header: dict[str, int]


class Trace:
    """Builds one ETL file.

    Events of one processor may be given in any order and in several calls; they are logged in time order, equal times in the order
    given. The methods change the trace and return it.
    """

    def __init__(
        self, *, pointer_size: int = 8, buffer_size: int = 8 * 1024, has_metadata: bool = False, **session: Unpack[SessionValues]
    ) -> None:
        self.session = Session(pointer_size=pointer_size, buffer_size=buffer_size, **session)
        self._events: list[tuple[int, Event | Record]] = []
        self._flushes: list[tuple[int, int | None]] = []
        self._losses: list[tuple[int, int, int]] = []
        self._lost_buffers: list[tuple[int, int]] = []
        self._damage: list[Damage] = []
        self._metadata = AFD_EVENTS if has_metadata else ()

    @property
    def clock(self) -> Clock:
        return self.session.clock

    def cpu(self, number: int, *events: Event | Record | Iterable[Event | Record]) -> Self:
        """Events that a processor logs; lists of events are taken apart."""
        for item in events:
            if isinstance(item, (Event, Record)):
                self._events.append((number, item))
            else:
                self._events.extend((number, each) for each in item)
        return self

    def with_session(self, **session: Unpack[SessionValues]) -> Self:
        """Change what the session is set to."""
        self.session = replace(self.session, **session)
        return self

    def with_header(self, **fields: int) -> Self:
        """Overwrite fields of the log file header, by the names in HEADER_FIELDS."""
        self.session = replace(self.session, header={**self.session.header, **fields})
        return self

    def flush(self, *, at_us: float, cpu: int | None = None) -> Self:
        """End the open buffers of one processor, or of all, at a moment."""
        self._flushes.append((ticks_at(at_us, self.clock), cpu))
        return self

    def lose_events(self, count: int, *, at_us: float | None = None, cpu: int = 0) -> Self:
        """Lose events: at a moment, with the buffer's flag and a marker event, or somewhere, counted in the header alone."""
        if at_us is None:
            self.session = replace(self.session, lost_events=self.session.lost_events + count)
        else:
            self._losses.append((ticks_at(at_us, self.clock), cpu, count))
        return self

    def lose_buffers(self, count: int, *, at_us: float) -> Self:
        """Lose whole buffers: a gap in the sequence numbers, and the header's count."""
        self._lost_buffers.append((ticks_at(at_us, self.clock), count))
        return self

    # ------------------------------------------------------------------------------------------------ damage

    def cut_at(self, size_bytes: int) -> Self:
        """Keep the first bytes of the file; a negative number cuts as many from the end."""
        return self._damaged(lambda data: data[:size_bytes])

    def append(self, tail: bytes) -> Self:
        """Bytes behind the end of the file."""
        return self._damaged(lambda data: data + tail)

    def flip(self, offset: int, mask: int = 0xFF) -> Self:
        """Turn bits of one byte of the file; a negative offset counts from the end."""

        def damage(data: bytearray) -> bytearray:
            data[offset % len(data)] ^= mask
            return data

        return self._damaged(damage)

    def overwrite(self, offset: int, new: bytes) -> Self:
        """Put other bytes at a place of the file."""

        def damage(data: bytearray) -> bytearray:
            data[offset : offset + len(new)] = new
            return data

        return self._damaged(damage)

    def swap_buffers(self, first: int = -2, second: int = -1) -> Self:
        """Exchange two buffers of the file, by default the last two; the header buffer is number 0."""

        def damage(data: bytearray) -> bytearray:
            buffers = self._split(data)
            buffers[first], buffers[second] = buffers[second], buffers[first]
            return bytearray(b"".join(buffers))

        return self._damaged(damage)

    def zero_buffer(self, number: int) -> Self:
        """Make a buffer all zeros, header included."""
        return self._replaced(number, lambda buffer: bytes(len(buffer)))

    def drop_buffer(self, number: int) -> Self:
        """Take a buffer out of the file."""
        return self._replaced(number, lambda buffer: b"")

    def repeat_buffer(self, number: int) -> Self:
        """Write a buffer twice."""
        return self._replaced(number, lambda buffer: buffer + buffer)

    def overwrite_in_buffer(self, number: int, offset: int, new: bytes) -> Self:
        """Put other bytes at a place of a buffer, its header included."""
        return self._replaced(number, lambda buffer: buffer[:offset] + new + buffer[offset + len(new) :])

    def _replaced(self, number: int, change: Callable[[bytes], bytes]) -> Self:
        def damage(data: bytearray) -> bytearray:
            buffers = self._split(data)
            buffers[number] = change(buffers[number])
            return bytearray(b"".join(buffers))

        return self._damaged(damage)

    def _damaged(self, damage: Damage) -> Self:
        self._damage.append(damage)
        return self

    @staticmethod
    def _split(data: bytearray) -> list[bytes]:
        """The buffers of a whole file, by the size that each one's header says."""
        buffers, position = [], 0
        while position < len(data):
            size = int.from_bytes(data[position : position + 4], "little") or len(data) - position
            buffers.append(bytes(data[position : position + size]))
            position += size
        return buffers

    # ------------------------------------------------------------------------------------------------ the file

    def records(self) -> list[tuple[int, Record]]:
        """All records with their processor in the order in which they are logged."""
        built: list[tuple[int, Record]] = []
        for cpu, item in self._events:
            if isinstance(item, Record):
                built.append((cpu, item))
            else:
                built.extend((cpu, record) for record in item.records(self.session.pointer_size, self.clock))
        return sorted(built, key=lambda pair: pair[1].ticks)

    def bytes(self) -> bytes:
        """The file."""
        out = io.BytesIO()
        writer = EtlWriter(out, self.session, metadata=self._metadata)
        todo: list[tuple[int, int, Callable[[], None]]] = [
            *((ticks, 0, partial(writer.flush, cpu)) for ticks, cpu in self._flushes),
            *((ticks, 1, partial(self._lose, writer, ticks, cpu, count)) for ticks, cpu, count in self._losses),
            *((ticks, 1, partial(self._lose_buffers, writer, count)) for ticks, count in self._lost_buffers),
            *((record.ticks, 2, partial(writer.add, record, cpu)) for cpu, record in self.records()),
        ]
        for _, _, step in sorted(todo, key=lambda item: item[:2]):
            step()
        writer.close()
        data = bytearray(out.getvalue())
        for damage in self._damage:
            data = damage(data)
        return bytes(data)

    def write(self, path: Path) -> Path:
        """Write the file; gives the path back."""
        path.write_bytes(self.bytes())
        return path

    @staticmethod
    def _lose_buffers(writer: EtlWriter, count: int) -> None:
        writer.flush()
        writer.lose_buffers(count)

    def _lose(self, writer: EtlWriter, ticks: int, cpu: int, count: int) -> None:
        kind = HeaderKind.FULL64 if self.session.pointer_size == 8 else HeaderKind.FULL32
        writer.add(Record(kind=kind, ticks=ticks, provider=LOST_EVENT_CLASS, opcode=32), cpu)
        writer.lose_events(count, cpu=cpu)
