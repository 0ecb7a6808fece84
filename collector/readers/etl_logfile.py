"""The log file header, the first record of every ETL file: clock, losses and shape of the session.

Layout: etl-format S5, TRACE_LOGFILE_HEADER of 32- and 64-bit systems; conversions: S5.3.
"""

import struct
from dataclasses import dataclass, replace

from collector.clock import FILETIME_PER_SECOND, Clock, ClockKind, filetime_to_datetime
from collector.errors import NotAnEtl
from collector.raw import TraceHeader
from collector.readers.problems import (
    COUNTER_FREQUENCY,
    CPU_SPEED,
    HEADER_FIELD,
    INVALID_HEADER_TIME,
    STILL_RECORDED,
    TIMER_RESOLUTION,
    UNFINISHED_SESSION,
    ProblemLog,
)

__all__ = ["LogFileHeader", "clock_of", "moved", "parse_log_file_header", "trace_header"]

SYSTEM_HEADER_BYTES = 32

# Up to the two left-over pointers all fields stand at the same place.
_HEAD = struct.Struct("<IBBBBIIqIIIIIIII")
_TAIL = struct.Struct("<qqqII")  # BootTime, PerfFreq, StartTime, ReservedFlags, BuffersLost
_TAIL_AT = {4: 0xF0, 8: 0xF8}

_MODE_CIRCULAR = 0x2
_MODE_RELOG = 0x10000
_MODE_COMPRESSED = 0x04000000

_CLOCKS = {1: ClockKind.QPC, 2: ClockKind.SYSTEM_TIME, 3: ClockKind.CPU_CYCLES}

# A performance counter of less than 1 kHz or beyond 9 GHz was never built; the upper bound also keeps `Clock.ns` inside 64 bits.
_FREQUENCIES = range(1_000, 9_000_000_001)
_CPU_SPEEDS = range(1, 9_001)
_ASSUMED_FREQUENCY = 10_000_000  # the counter of all current systems
_ASSUMED_CPU_MHZ = 1_000


@dataclass(frozen=True, slots=True)
class LogFileHeader:
    """The fields as they stand in the file, not judged."""

    pointer_size: int
    first_ticks: int
    """Time stamp of the record itself: the moment that StartTime names."""
    buffer_size: int
    os_major: int
    os_minor: int
    layout_major: int
    layout_minor: int
    build: int
    processors: int
    end_filetime: int
    timer_resolution: int
    log_file_mode: int
    buffers_written: int
    declared_pointer_size: int
    events_lost: int
    cpu_mhz: int
    boot_filetime: int
    perf_freq: int
    start_filetime: int
    clock_type: int
    buffers_lost: int
    session_name: str
    file_name: str

    @property
    def is_compressed(self) -> bool:
        return bool(self.log_file_mode & _MODE_COMPRESSED)


def parse_log_file_header(record: bytes, *, name: str, offset: int) -> LogFileHeader:
    """Read the first record of a file.

    Args:
        record: the bytes of the first buffer behind its header, at least up to its end of data.
        name: name of the file, for messages.
        offset: byte of the file at which the record starts, for messages.

    Raises: NotAnEtl when the record is none that can begin a file.
    """
    if len(record) < SYSTEM_HEADER_BYTES:
        raise _unusable(name, offset, f"the first buffer holds {len(record):,} bytes of records, its first one needs {SYSTEM_HEADER_BYTES}")
    _version, kind, flags, size, hook, _tid, _pid, ticks = struct.unpack_from("<HBBHHIIq", record)
    pointer_size = {1: 4, 2: 8}.get(kind)
    if flags != 0xC0 or pointer_size is None or hook != 0:
        raise _unusable(name, offset, f"the first record is of kind {kind} with flags 0x{flags:02x} and hook 0x{hook:04x}")
    tail_at = _TAIL_AT[pointer_size]
    payload = record[SYSTEM_HEADER_BYTES : min(size, len(record))]
    if len(payload) < tail_at + _TAIL.size:
        raise _unusable(name, offset, f"the log file header has {len(payload):,} bytes, {tail_at + _TAIL.size:,} are needed")
    head = _HEAD.unpack_from(payload)
    (buffer_size, os_major, os_minor, layout_major, layout_minor, build, processors, end_filetime) = head[:8]
    (timer_resolution, _maximum_file, mode, buffers_written, _start_buffers, declared_pointer, events_lost, cpu_mhz) = head[8:]
    boot_filetime, perf_freq, start_filetime, clock_type, buffers_lost = _TAIL.unpack_from(payload, tail_at)
    names = payload[tail_at + _TAIL.size :].decode("utf-16-le", errors="replace").split("\0")
    return LogFileHeader(
        pointer_size=pointer_size,
        first_ticks=ticks,
        buffer_size=buffer_size,
        os_major=os_major,
        os_minor=os_minor,
        layout_major=layout_major,
        layout_minor=layout_minor,
        build=build,
        processors=processors,
        end_filetime=end_filetime,
        timer_resolution=timer_resolution,
        log_file_mode=mode,
        buffers_written=buffers_written,
        declared_pointer_size=declared_pointer,
        events_lost=events_lost,
        cpu_mhz=cpu_mhz,
        boot_filetime=boot_filetime,
        perf_freq=perf_freq,
        start_filetime=start_filetime,
        clock_type=clock_type,
        buffers_lost=buffers_lost,
        session_name=names[0],
        file_name=names[1] if len(names) > 1 else "",
    )


def trace_header(header: LogFileHeader, clock: Clock, log: ProblemLog, *, is_growing: bool = False) -> TraceHeader:
    """Judge the fields and say what is wrong with them; `clock` is that of `clock_of`. The counts of a growing file are not final."""
    if is_growing:
        header = replace(header, end_filetime=0, buffers_written=0)
    is_merged = header.session_name == "Relogger" or bool(header.log_file_mode & _MODE_RELOG)
    is_closed = header.buffers_written != 0 or header.end_filetime != 0
    if not is_closed:
        log.add(STILL_RECORDED if is_growing else UNFINISHED_SESSION)
    _check_times(header, clock, log, is_closed=is_closed)
    if header.timer_resolution == 0:
        log.add(TIMER_RESOLUTION, found=header.timer_resolution)
    if header.declared_pointer_size != header.pointer_size:
        used = f"pointer size {header.declared_pointer_size}, {header.pointer_size} was used"
        log.add(HEADER_FIELD, fields=used)
    return TraceHeader(
        clock=clock,
        pointer_size=header.pointer_size,
        processors=header.processors,
        os_version=f"{header.os_major}.{header.os_minor}.{header.build}",
        os_build=header.build,
        end_filetime=header.end_filetime,
        boot_filetime=header.boot_filetime,
        log_file_mode=header.log_file_mode,
        buffer_size=header.buffer_size,
        buffers_written=header.buffers_written,
        events_lost=header.events_lost,
        buffers_lost=header.buffers_lost,
        timer_resolution=header.timer_resolution,
        cpu_mhz=header.cpu_mhz,
        perf_freq=header.perf_freq,
        session_name=header.session_name,
        file_name=header.file_name,
        layout_version=f"{header.layout_major}.{header.layout_minor}",
        is_merged=is_merged,
        is_compressed=header.is_compressed,
        is_circular=bool(header.log_file_mode & _MODE_CIRCULAR),
        is_closed=is_closed,
    )


def clock_of(header: LogFileHeader, log: ProblemLog) -> Clock:
    """The clock of the session; what the header leaves out is assumed, and said."""
    kind = _CLOCKS.get(header.clock_type)
    if kind is None:
        # 0 is "unset": of the two usual clocks only system time makes the first time stamp equal to the start time.
        kind = ClockKind.SYSTEM_TIME if header.first_ticks == header.start_filetime else ClockKind.QPC
        if header.clock_type != 0:
            log.add(HEADER_FIELD, fields=f"clock type {header.clock_type}, {kind} was assumed")
    has_frequency = header.perf_freq in _FREQUENCIES
    has_speed = header.cpu_mhz in _CPU_SPEEDS
    ticks_per_second = header.perf_freq if has_frequency else _ASSUMED_FREQUENCY
    if kind is ClockKind.CPU_CYCLES:
        ticks_per_second = (header.cpu_mhz if has_speed else _ASSUMED_CPU_MHZ) * 1_000_000
    elif kind is ClockKind.SYSTEM_TIME:
        ticks_per_second = FILETIME_PER_SECOND
    if not has_frequency:
        used = f"{_ASSUMED_FREQUENCY:,} was assumed." if kind is ClockKind.QPC else f"The clock of this session ({kind}) does not need it."
        log.add(COUNTER_FREQUENCY, found=header.perf_freq, used=used)
    if not has_speed:
        is_needed = kind is ClockKind.CPU_CYCLES
        used = f"{_ASSUMED_CPU_MHZ:,} was assumed." if is_needed else f"The clock of this session ({kind}) does not need it."
        log.add(CPU_SPEED, found=header.cpu_mhz, used=used)
    return Clock(kind, header.first_ticks, ticks_per_second, _start_filetime(kind, header, header.first_ticks))


def moved(clock: Clock, header: LogFileHeader, start_ticks: int) -> Clock:
    """The clock with another time 0."""
    return replace(clock, start_ticks=start_ticks, start_filetime=_start_filetime(clock.kind, header, start_ticks))


def _start_filetime(kind: ClockKind, header: LogFileHeader, start_ticks: int) -> int:
    """Time 0 as FILETIME; 0 where that is no date."""
    filetime = start_ticks if kind is ClockKind.SYSTEM_TIME else header.start_filetime
    return 0 if filetime_to_datetime(filetime) is None else filetime


def _check_times(header: LogFileHeader, clock: Clock, log: ProblemLog, *, is_closed: bool) -> None:
    """Name the times of the header that are no dates, and an end before the start."""
    wrong = []
    if filetime_to_datetime(header.start_filetime) is None:
        wrong.append(f"start time {header.start_filetime}")
    if is_closed and filetime_to_datetime(header.end_filetime) is None:
        wrong.append(f"end time {header.end_filetime}")
    if filetime_to_datetime(header.boot_filetime) is None:
        wrong.append(f"boot time {header.boot_filetime}")
    if not wrong and is_closed and header.end_filetime < header.start_filetime:
        wrong.append("the end is before the start")
    if clock.start_ticks != header.first_ticks:
        wrong.append(f"time stamp of the header {header.first_ticks}, {clock.start_ticks} was used")
    if wrong:
        log.add(INVALID_HEADER_TIME, count=len(wrong), fields=", ".join(wrong))


def _unusable(name: str, offset: int, found: str) -> NotAnEtl:
    return NotAnEtl(
        f"{name}: this is not an ETL file: {found} at byte {offset:,}, but an ETL file begins with its log file header. "
        "Name the .etl file that the session wrote.",
        offset=offset,
    )
