"""Buffers of a session: each processor fills one, flushed ones go to the file, and that order is the order of the file.

A buffer is a WMI_BUFFER_HEADER of 72 bytes, records on multiples of 8, and 0xFF to its end. Sequence numbers are given when a
buffer is opened. The bytes between two records are whatever an earlier use of the memory left there, and so are they here.
"""

import struct
from dataclasses import dataclass

__all__ = ["BUFFER_HEADER_SIZE", "BufferFlag", "BufferType", "OpenBuffer", "buffer_header"]

BUFFER_HEADER_SIZE = 72


class BufferFlag:
    """BufferFlag bits."""

    FLUSH_MARKER = 0x0001
    EVENTS_LOST = 0x0002
    BUFFER_LOST = 0x0004
    PROCESSOR_INDEX = 0x0020
    COMPRESSED = 0x0040


class BufferType:
    """BufferType values that occur in files."""

    GENERIC = 0
    HEADER = 4


def buffer_header(
    *, size: int, filled: int, time: int, sequence: int, cpu: int, logger_id: int, state: int, flags: int, kind: int, is_windows7: bool
) -> bytes:
    """The 72 bytes before the records; `filled` counts from the start of the buffer.

    SavedOffset repeats the end of the data and CurrentOffset overshoots the buffer, as in recorded files. The pointers at the end are
    left-overs that no reader may use.
    """
    processor = (cpu | 8 << 8) if is_windows7 else cpu
    current = 0 if kind == BufferType.HEADER else size + 48
    saved = 0 if kind == BufferType.HEADER else filled
    head = struct.pack("<IIIiqqQ", size, saved, current, 0, time, sequence, 0xFFFFA00B12345678)
    tail = struct.pack("<HHIIHH", processor, logger_id, state, filled, flags, kind)
    return head + tail + struct.pack("<QQ", 0xFFFFA00BC0DE0010, 0)


@dataclass(slots=True)
class OpenBuffer:
    """The buffer that a processor is filling; `memory` is used again after each flush without being cleared."""

    memory: bytearray
    sequence: int
    end: int = BUFFER_HEADER_SIZE
    first_ticks: int = 0
    last_ticks: int = 0
    flags: int = 0

    @property
    def is_empty(self) -> bool:
        return self.end == BUFFER_HEADER_SIZE

    def has_room(self, size: int) -> bool:
        return self.end + size <= len(self.memory)

    def append(self, record: bytes, ticks: int) -> None:
        """Put a record behind the others; the next one starts at a multiple of 8."""
        if self.is_empty:
            self.first_ticks = ticks
        self.memory[self.end : self.end + len(record)] = record
        self.end += (len(record) + 7) & ~7
        self.last_ticks = ticks

    def records(self) -> bytes:
        """Everything behind the header, left-over bytes included."""
        return bytes(self.memory[BUFFER_HEADER_SIZE : self.end])
