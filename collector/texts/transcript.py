"""Events that were read from a text as an ETL file without a name, so that all that follows is the same as for a recorded one."""

import errno
import io
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

import numpy as np

from collector.clock import FILETIME_PER_SECOND, Clock, ClockKind
from collector.errors import CollectCancelled
from collector.etlwriter.buffers import BUFFER_HEADER_SIZE
from collector.etlwriter.events import record_of
from collector.etlwriter.records import NO_GUID, Record, record_bytes
from collector.etlwriter.session import Session
from collector.etlwriter.writer import EtlWriter
from collector.events import SCHEMAS
from collector.events.system import STACK_WALK
from collector.raw import HeaderKind
from collector.room import Room
from collector.schema import EventSchema, key_of
from collector.source import nameless_file
from collector.texts.values import number_of, values_of

__all__ = ["TextEvent", "Transcript"]

HEADER_CLASS = UUID("68fdd900-4a3e-11d1-84f4-0000f80464e3")
"""Events about the session itself; opcode 0 is what stands in the header of its file."""
_BUFFER_BYTES = 128 << 10  # a record has at most 64 KB
_MOST_PROCESSORS = 2048
_BETWEEN_LOOKS = 4096
_LOSSES = {"eventslost": "events", "bufferslost": "buffers"}


@dataclass(slots=True)
class TextEvent:
    """One event as a text says it; `class_guid` is that of classic events, `texts` are its fields by `plain_name`."""

    filetime: int = 0
    provider: UUID | None = None
    class_guid: UUID | None = None
    event_id: int = 0
    version: int = 0
    level: int = 0
    opcode: int = 0
    keyword: int = 0
    pid: int = 0
    tid: int = 0
    cpu: int = 0
    activity: UUID = NO_GUID
    texts: dict[str, str] = field(default_factory=dict)
    listed: list[str] = field(default_factory=list)
    payload: bytes | None = None


class Transcript:
    """Takes events in any order; `close` gives the file. Memory: 22 bytes an event."""

    def __init__(self, pointer_size: int, place: Path | None) -> None:
        self.pointer_size = pointer_size
        self.stacks = self.unread = 0
        self._about: dict[str, str] = {}
        self._place = place
        self._spool = io.BufferedRandom(nameless_file(place), 1 << 20)
        self._ticks, self._starts, self._sizes, self._cpus = array("q"), array("q"), array("i"), array("H")
        self._end = 0
        self._room = Room(place, at_once=False)

    def __len__(self) -> int:
        return len(self._ticks)

    def add(self, event: TextEvent) -> None:
        """Take one event. Raises OSError; ValueError for a number of its head that has no room."""
        if event.class_guid == HEADER_CLASS:
            if event.opcode == 0:
                self._about = self._about or event.texts
            return
        if event.class_guid == STACK_WALK:  # they name the event that they belong to by its raw time, which texts do not have
            self.stacks += 1
            return
        if not _has_room(event):
            raise ValueError("a number of its head has no room")
        packed = record_bytes(self._record(event))
        packed += bytes(-len(packed) % 8)
        self._spool.write(packed)
        self._ticks.append(event.filetime)
        self._starts.append(self._end)
        self._sizes.append(len(packed))
        self._cpus.append(event.cpu)
        self._end += len(packed)
        if needed := self._room.lacking(self._end, self._end):  # all is written once more, in its order
            raise OSError(errno.ENOSPC, f"there is no room: {needed:,} bytes must be free")

    def _record(self, event: TextEvent) -> Record:
        is_classic = event.class_guid is not None
        provider = event.class_guid or event.provider or NO_GUID
        wide = self.pointer_size == 8
        bare = Record(
            kind=(HeaderKind.FULL64 if wide else HeaderKind.FULL32) if is_classic else (HeaderKind.EVENT64 if wide else HeaderKind.EVENT32),
            ticks=event.filetime,
            provider=provider,
            event_id=event.event_id,
            version=event.version,
            level=event.level,
            opcode=event.opcode,
            keyword=event.keyword & (1 << 64) - 1,
            pid=event.pid,
            tid=event.tid,
            activity=event.activity,
        )
        if event.payload is not None:
            return replace(bare, payload=event.payload)
        schemas = SCHEMAS.get(key_of(provider, is_classic=is_classic, event_id=event.event_id, opcode=event.opcode), ())
        for schema in _fitting(schemas, bare.version):
            try:
                values = values_of(schema, event.texts, event.listed, self.pointer_size)
                known = record_of(
                    schema.name, values, ticks=event.filetime, pointer_size=self.pointer_size, version=_known(schema, bare.version)
                )
                record_bytes(known)
            except (ValueError, KeyError, OverflowError):
                continue
            if is_classic and known.kind != bare.kind:  # a record of the kernel says its class by its group
                return replace(known, version=bare.version, opcode=bare.opcode, pid=bare.pid, tid=bare.tid)
            return replace(bare, payload=known.payload, channel=known.channel, opcode=bare.opcode or known.opcode)
        self.unread += bool(schemas)
        return bare  # without a payload it is counted, as damaged where we know its fields

    def close(self, should_cancel: Callable[[], bool]) -> io.FileIO:
        """The ETL file of one event or more, which the caller closes. Raises OSError, CollectCancelled."""
        ticks = np.frombuffer(self._ticks, np.int64)
        order = np.argsort(ticks, kind="stable")
        file = nameless_file(self._place)
        try:
            buffered = io.BufferedRandom(file)
            writer = EtlWriter(buffered, self._session(int(ticks.min()), int(ticks.max())))
            self._copy(order, writer, should_cancel)
            writer.lose_events(self._told("eventslost"), is_flagged=False)
            writer.lose_buffers(self._told("bufferslost"))
            writer.close()
            buffered.detach()
        except BaseException:
            file.close()
            raise
        return file

    def discard(self) -> None:
        """Give back what the events took."""
        self._spool.close()

    def _session(self, first: int, last: int) -> Session:
        start = self._told("starttime", 1 << 62)
        start = start if 0 < first - start < FILETIME_PER_SECOND * 86_400 else first
        return Session(
            name="",
            file_name="",
            pointer_size=self.pointer_size,
            processors=max(self._told("numberofprocessors", _MOST_PROCESSORS), max(self._cpus) + 1),
            buffer_size=_BUFFER_BYTES,
            clock=Clock(ClockKind.SYSTEM_TIME, start, FILETIME_PER_SECOND, start),
            os_major=10 if self._told("providerversion") else 0,
            os_build=self._told("providerversion"),
            cpu_mhz=self._told("cpuspeed"),
            timer_resolution=self._told("timerresolution"),
            boot_filetime=self._told("boottime", 1 << 62),
            end_ticks=max(last, self._told("endtime", last + FILETIME_PER_SECOND * 86_400)),
        )

    def lacks(self) -> list[str]:
        """Sentences for the trust page: losses that the session's own event says, but not as a number."""
        unread = [words for name, words in _LOSSES.items() if self._number(name, 0xFFFFFFFF) is None]
        return [f"How many {words} were lost cannot be read from it, and is shown as 0." for words in unread]

    def _told(self, name: str, most: int = 0xFFFFFFFF) -> int:
        """A number that the session's own event says; 0 where there is none."""
        return self._number(name, most) or 0

    def _number(self, name: str, most: int) -> int | None:
        """The same; None for what is no such number."""
        try:
            number = number_of(self._about.get(name, "0"))
        except ValueError:
            return None
        return number if 0 <= number <= most else None

    def _copy(self, order: "np.ndarray[tuple[int], np.dtype[np.int64]]", writer: EtlWriter, should_cancel: Callable[[], bool]) -> None:
        room = _BUFFER_BYTES - BUFFER_HEADER_SIZE
        waiting: dict[int, tuple[bytearray, list[int]]] = {}

        def write(cpu: int) -> None:
            records, times = waiting.pop(cpu)
            writer.add_buffer(bytes(records), cpu=cpu, first_ticks=times[0], last_ticks=times[1])

        for start in range(0, len(order), _BETWEEN_LOOKS):
            if should_cancel():
                raise CollectCancelled("Cancelled. Nothing was stored.")
            for row in order[start : start + _BETWEEN_LOOKS].tolist():  # 2 us a record, a twentieth of what parsing it took
                cpu, ticks = self._cpus[row], self._ticks[row]
                self._spool.seek(self._starts[row])
                packed = self._spool.read(self._sizes[row])
                if cpu in waiting and len(waiting[cpu][0]) + len(packed) > room:
                    write(cpu)
                records, times = waiting.setdefault(cpu, (bytearray(), [ticks, ticks]))
                records += packed
                times[1] = ticks
        for cpu in sorted(waiting):
            write(cpu)


def _has_room(event: TextEvent) -> bool:
    """Whether the numbers of an event's head are such that a record has; a mask may be written with a sign."""
    return (
        0 <= event.event_id <= 0xFFFF
        and 0 <= event.version <= 0xFF
        and 0 <= event.level <= 0xFF
        and 0 <= event.opcode <= 0xFF
        and -(1 << 63) <= event.keyword < 1 << 64
        and 0 <= event.cpu < _MOST_PROCESSORS
    )


def _fitting(schemas: tuple[EventSchema, ...], version: int) -> list[EventSchema]:
    """The layouts of a version, those of the newest known one where it is newer."""
    exact = [schema for schema in schemas if not schema.versions or version in schema.versions]
    if exact:
        return exact
    newest = max((max(schema.versions) for schema in schemas), default=-1)
    return [schema for schema in schemas if newest in schema.versions and version > newest]


def _known(schema: EventSchema, version: int) -> int:
    return version if not schema.versions or version in schema.versions else max(schema.versions)
