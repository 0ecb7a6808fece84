"""The records of a file as Windows would deliver them in real time: EVENT_HEADERs, payloads and items."""

import ctypes
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from collector.raw import HeaderKind, RawEvents
from collector.readers.etl import EtlReader
from collector.record.backlog import Copied
from collector.record.structures import EVENT_HEADER, TRACE_LOGFILE_HEADER
from collector.source import Source

__all__ = ["delivered", "header_of", "played_form"]

_WIDE, _NARROW, _CLASSIC, _INDEX = 0x40, 0x20, 0x100, 0x200


def header_of(path: Path) -> TRACE_LOGFILE_HEADER:
    """What OpenTraceW would tell of the session that wrote a file."""
    with Source.open(path) as source:
        header = EtlReader(source).header
    major, minor, build = (int(part) for part in header.os_version.split("."))
    return TRACE_LOGFILE_HEADER(
        BufferSize=header.buffer_size,
        Version=major | minor << 8,
        ProviderVersion=build,
        NumberOfProcessors=header.processors,
        TimerResolution=header.timer_resolution,
        PointerSize=header.pointer_size,
        CpuSpeedInMHz=header.cpu_mhz,
        BootTime=header.boot_filetime,
        PerfFreq=header.perf_freq,
        StartTime=header.clock.start_filetime,
        ReservedFlags=1,
    )


def delivered(path: Path) -> Iterator[Copied]:
    """All records of a file, in their order."""
    with Source.open(path) as source:
        for window in EtlReader(source).windows():
            for row in range(len(window)):
                yield _record(window, row)


def played_form(records: Iterator[Copied]) -> bytes:
    """Records as the library that plays Windows reads them."""
    parts = []
    for head, payload, items in records:
        parts.append(head + struct.pack("<HH", len(items), len(payload)))
        parts += [struct.pack("<HH", kind, len(data)) + data for kind, data in items]
        parts.append(payload)
    return b"".join(parts)


def _record(window: RawEvents, row: int) -> Copied:
    kind, start = int(window.kind[row]), int(window.offset[row])
    is_wide = int(window.pointer_size[row]) == 8
    if kind in (HeaderKind.EVENT32, HeaderKind.EVENT64):
        header = bytearray(window.data[start : start + 80].tobytes())
        flags = struct.unpack_from("<H", header, 4)[0] & ~1
    else:
        made = EVENT_HEADER(
            ThreadId=int(window.tid[row]) & 0xFFFF_FFFF, ProcessId=int(window.pid[row]) & 0xFFFF_FFFF, TimeStamp=int(window.ticks[row])
        )
        ctypes.memmove(ctypes.byref(made.ProviderId), window.providers[int(window.provider[row])].bytes_le, 16)
        descriptor = made.EventDescriptor
        descriptor.Opcode, descriptor.Version, descriptor.Level = int(window.opcode[row]), int(window.version[row]), int(window.level[row])
        header, flags = bytearray(bytes(made)), _CLASSIC
    struct.pack_into("<H", header, 4, flags | _INDEX | (_WIDE if is_wide else _NARROW))
    struct.pack_into("<HH", header, 0, 0, 0)  # Windows tells nothing of use there
    context = struct.pack("<HH", int(window.cpu[row]), 7)
    return bytes(header) + context, window.payload_bytes(row), tuple(_items(window, row))


def _items(window: RawEvents, row: int) -> Iterator[tuple[int, bytes]]:
    at, end = int(window.extended[row]), int(window.payload[row])
    while 0 <= at < end:
        size, kind, _, length = np.frombuffer(window.data[at : at + 8].tobytes(), "<u2").tolist()
        yield kind, window.data[at + 8 : at + 8 + length].tobytes()
        at += size
