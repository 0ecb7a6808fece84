"""Records on their way from those who deliver them to the one who writes them: bounded, so that Windows never waits.

When the other side is too slow, records are dropped and counted, and two marker records say from when until when. Once dropping has begun
it goes on until half of the room is free: one gap is easier to live with than a sieve. A session that makes very many events gets only a
part of the room, so that those of the others still find some.
"""

import struct
import threading

from collector.events.system import LOST_EVENT
from collector.record.constants import Misc

__all__ = ["HEAP_SHARE", "MOST_TAKEN", "MOST_WAITING_BYTES", "Backlog", "Copied", "Lane"]

MOST_WAITING_BYTES = 256 << 20
HEAP_SHARE = 0.75
"""How much of the room a heap session may take."""
MOST_TAKEN = 20_000
"""Records that are taken out at once; a fraction of a second's work."""

_LOST_EVENTS_OPCODE = 32
_TIMES_END, _CONTEXT_AT = 24, 80
_HEAD = struct.Struct("<HHHH")
_KEPT_FLAGS = Misc.EVENT_HEADER_FLAG_32_BIT_HEADER | Misc.EVENT_HEADER_FLAG_64_BIT_HEADER | Misc.EVENT_HEADER_FLAG_PROCESSOR_INDEX
_DESCRIPTOR = struct.Struct("<HBBBBHQ")

Copied = tuple[bytes, bytes, tuple[tuple[int, bytes], ...]]
"""A record: its EVENT_HEADER and ETW_BUFFER_CONTEXT (84 bytes), its payload, and its extended items as type and data."""


class Backlog:
    """Records that wait; any number of threads."""

    def __init__(self, most_bytes: int = MOST_WAITING_BYTES) -> None:
        self.most_bytes = most_bytes
        self.lock = threading.Lock()
        self.bytes = 0
        """Of the records that wait."""
        self.waiting: list[Copied] = []
        self._lanes: list[Lane] = []

    def lane(self, share: float = 1.0) -> "Lane":
        """A way in for one session, which may take this part of the room."""
        lane = Lane(self, int(self.most_bytes * share))
        self._lanes.append(lane)
        return lane

    @property
    def dropped(self) -> int:
        """Records that had no room."""
        return sum(lane.dropped for lane in self._lanes)

    def take(self, most: int = MOST_TAKEN) -> list[Copied]:
        """The records that have waited longest, in the order of their arrival."""
        with self.lock:
            found = self.waiting[:most]
            del self.waiting[:most]
            self.bytes = self.bytes * len(self.waiting) // (len(found) + len(self.waiting)) if self.waiting else 0
        return found

    def end(self) -> None:
        """Nothing more comes: gaps that are open end here."""
        with self.lock:
            for lane in self._lanes:
                lane.end_gap()


class Lane:
    """One session's way into a backlog; one thread at a time."""

    def __init__(self, backlog: Backlog, most_bytes: int) -> None:
        self.dropped = 0
        """Records that had no room."""
        self._backlog, self._most = backlog, most_bytes
        self._last_dropped: bytes | None = None
        """Head of the last record that was dropped, while a gap is open."""

    def put(self, record: Copied, size: int) -> None:
        """Take a record, or count it as dropped."""
        backlog = self._backlog
        with backlog.lock:
            if self._last_dropped is None:
                if backlog.bytes + size <= self._most:
                    backlog.bytes += size
                    backlog.waiting.append(record)
                    return
                backlog.waiting.append(_marker(record[0]))
            elif backlog.bytes <= self._most // 2:
                self.end_gap()
                backlog.bytes += size
                backlog.waiting.append(record)
                return
            self.dropped += 1
            self._last_dropped = record[0]

    def end_gap(self) -> None:
        """Mark the end of a gap where one is open; whoever calls holds the lock."""
        if self._last_dropped is not None:
            self._backlog.waiting.append(_marker(self._last_dropped))
            self._last_dropped = None


def _marker(head: bytes) -> Copied:
    """A record that says that events are missing where this one stood; it is of the class by which Windows says so itself."""
    flags = int.from_bytes(head[4:6], "little") & _KEPT_FLAGS | Misc.EVENT_HEADER_FLAG_CLASSIC_HEADER
    descriptor = _DESCRIPTOR.pack(0, 0, 0, 0, _LOST_EVENTS_OPCODE, 0, 0)
    made = _HEAD.pack(0, 0, flags, 0) + head[8:_TIMES_END] + LOST_EVENT.bytes_le + descriptor
    return made + bytes(_CONTEXT_AT - len(made)) + head[_CONTEXT_AT:], b"", ()
