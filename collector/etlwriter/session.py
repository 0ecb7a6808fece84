"""The session that writes a trace: its clock, its buffers, its system, and the log file header that tells them to a reader.

The header is the TRACE_LOGFILE_HEADER of the public headers for ETW, the payload of the first record of every file.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from collector.clock import Clock, ClockKind
from collector.etlwriter.records import Record
from collector.raw import HeaderKind

__all__ = [
    "CIRCULAR",
    "DEFAULT_CLOCK",
    "HEADER_FIELDS",
    "MERGED",
    "NO_PER_PROCESSOR_BUFFERING",
    "SEQUENTIAL",
    "Compression",
    "HeaderTotals",
    "Session",
    "log_file_header",
]

SEQUENTIAL = 0x1
CIRCULAR = 0x2
MERGED = 0x10000
COMPRESSED = 0x4000000
NO_PER_PROCESSOR_BUFFERING = 0x10000000

DEFAULT_CLOCK = Clock(ClockKind.QPC, start_ticks=1_000_000_000, ticks_per_second=10_000_000, start_filetime=133_800_768_000_000_000)
"""A counter of 10 MHz; time 0 is 2025-01-01, 00:00 UTC."""

_CLOCK_TYPES = {ClockKind.QPC: 1, ClockKind.SYSTEM_TIME: 2, ClockKind.CPU_CYCLES: 3}


class Compression(IntEnum):
    """How buffers are packed; the values are the COMPRESSION_FORMAT numbers of Windows."""

    NONE = 0
    LZNT1 = 2
    XPRESS = 3
    XPRESS_HUFF = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a session is set to.

    A merged file imitates the merge step: session name Relogger, FILETIME in the buffer headers, no logger id. `is_windows7` selects
    the buffer headers of that time (processor number with the alignment above it, no flag for it). An unclosed file has no end time
    and no number of buffers. A circular file keeps `maximum_buffers` buffers, its header buffer included, and overwrites the oldest.
    `lost_events` and `lost_buffers` are losses without a place; those that the writer places are added to them.
    `header` overrides fields of the log file header by their name in HEADER_FIELDS, to write what no session would.
    """

    name: str = "sockscope"
    file_name: str = "C:\\Traces\\sockscope.etl"
    pointer_size: int = 8
    processors: int = 4
    buffer_size: int = 64 * 1024
    clock: Clock = DEFAULT_CLOCK
    counter_frequency: int | None = None
    cpu_mhz: int = 2400
    os_major: int = 10
    os_minor: int = 0
    os_build: int = 19045
    timer_resolution: int = 156_250
    boot_filetime: int | None = None
    end_ticks: int | None = None
    mode: int = SEQUENTIAL
    maximum_file_mb: int = 0
    maximum_buffers: int | None = None
    logger_id: int = 34
    is_windows7: bool = False
    is_merged: bool = False
    is_closed: bool = True
    compression: Compression = Compression.NONE
    lost_events: int = 0
    lost_buffers: int = 0
    header: Mapping[str, int] = field(default_factory=dict)

    @property
    def log_file_mode(self) -> int:
        """The mode word: the given bits and those that merging, compression and a circular file add."""
        return (
            self.mode
            | (MERGED if self.is_merged else 0)
            | (COMPRESSED if self.compression else 0)
            | (CIRCULAR if self.maximum_buffers is not None else 0)
        )

    @property
    def header_buffer_size(self) -> int:
        """Bytes of the first buffer: that of all, but short in compressed files."""
        return 1024 if self.compression else self.buffer_size

    def filetime_of(self, ticks: int) -> int:
        """FILETIME of a raw time stamp."""
        return self.clock.start_filetime + self.clock.ns_of(ticks) // 100


@dataclass(frozen=True, slots=True)
class HeaderTotals:
    """What is known only when the file is closed."""

    end_filetime: int
    buffers_written: int
    events_lost: int
    buffers_lost: int


HEADER_FIELDS: dict[str, tuple[int, int, str]] = {
    "buffer_size": (0x00, 0x00, "I"),
    "os_major": (0x04, 0x04, "B"),
    "os_minor": (0x05, 0x05, "B"),
    "layout_major": (0x06, 0x06, "B"),
    "layout_minor": (0x07, 0x07, "B"),
    "os_build": (0x08, 0x08, "I"),
    "processors": (0x0C, 0x0C, "I"),
    "end_time": (0x10, 0x10, "q"),
    "timer_resolution": (0x18, 0x18, "I"),
    "maximum_file_size": (0x1C, 0x1C, "I"),
    "log_file_mode": (0x20, 0x20, "I"),
    "buffers_written": (0x24, 0x24, "I"),
    "start_buffers": (0x28, 0x28, "I"),
    "pointer_size": (0x2C, 0x2C, "I"),
    "events_lost": (0x30, 0x30, "I"),
    "cpu_mhz": (0x34, 0x34, "I"),
    "bias_minutes": (0x40, 0x48, "i"),
    "boot_time": (0xF0, 0xF8, "q"),
    "perf_freq": (0xF8, 0x100, "q"),
    "start_time": (0x100, 0x108, "q"),
    "clock_type": (0x108, 0x110, "I"),
    "buffers_lost": (0x10C, 0x114, "I"),
}
"""Offset in a header of 4- and of 8-byte pointers and type, by name."""

_SIZES = {4: 0x110, 8: 0x118}
_NAMES = {4: (0x38, 0x3C), 8: (0x38, 0x40)}
_ZONE = {4: 0x40, 8: 0x48}


def log_file_header(session: Session, totals: HeaderTotals) -> Record:
    """The first record of the file, at the time 0 of the trace."""
    clock = session.clock
    frequency = session.counter_frequency
    if frequency is None:
        frequency = 10_000_000 if clock.kind is not ClockKind.QPC else clock.ticks_per_second
    values = {
        "buffer_size": session.buffer_size,
        "os_major": session.os_major,
        "os_minor": session.os_minor,
        "layout_major": 2 if session.compression else 1,
        "layout_minor": 0 if session.compression else 5,
        "os_build": session.os_build,
        "processors": session.processors,
        "end_time": totals.end_filetime if session.is_closed else 0,
        "timer_resolution": session.timer_resolution,
        "maximum_file_size": session.maximum_file_mb,
        "log_file_mode": session.log_file_mode,
        "buffers_written": totals.buffers_written if session.is_closed else 0,
        "start_buffers": 1,
        "pointer_size": session.pointer_size,
        "events_lost": totals.events_lost,
        "cpu_mhz": session.cpu_mhz,
        "bias_minutes": -60,
        "boot_time": session.boot_filetime if session.boot_filetime is not None else clock.start_filetime - 36_000_000_000,
        "perf_freq": frequency,
        "start_time": clock.start_filetime,
        "clock_type": _CLOCK_TYPES[clock.kind],
        "buffers_lost": totals.buffers_lost,
        **session.header,
    }
    names = ("Relogger", "[multiple files]") if session.is_merged else (session.name, session.file_name)
    return Record(
        kind=HeaderKind.SYSTEM64 if session.pointer_size == 8 else HeaderKind.SYSTEM32,
        ticks=clock.start_ticks,
        version=2,
        pid=4,
        tid=8,
        payload=_header_fields(values, session.pointer_size, merged=session.is_merged) + b"".join(_text(name) for name in names),
    )


def _header_fields(values: Mapping[str, int], pointer_size: int, *, merged: bool) -> bytes:
    fields = bytearray(_SIZES[pointer_size])
    if not merged:  # small left-over numbers, not offsets of the names
        for offset, number in zip(_NAMES[pointer_size], (5, 6), strict=True):
            fields[offset] = number
    for name, value in values.items():
        at32, at64, code = HEADER_FIELDS[name]
        struct.pack_into("<" + code, fields, at64 if pointer_size == 8 else at32, value)
    for offset, text in ((4, "@tzres.dll,-322"), (88, "@tzres.dll,-321")):
        start = _ZONE[pointer_size] + offset
        fields[start : start + 2 * len(text)] = text.encode("utf-16-le")
    return bytes(fields)


def _text(text: str) -> bytes:
    return text.encode("utf-16-le") + b"\0\0"
