"""Several traces of one time into one file: sessions for the kernel, for Winsock and for a heap write a file each.

Records are copied byte for byte, each processor's in the order of their time, as xperf's merge does; unlike that it adds nothing, such as
the identities of modules. Losses of all files are added up; buffers of the time in which one of them lost something say so.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO

import numpy as np

from collector.clock import FILETIME_PER_SECOND, NS_PER_SECOND, Clock
from collector.errors import CollectCancelled, FormatError, Problem, Severity, SourceError
from collector.etlwriter.buffers import BUFFER_HEADER_SIZE, BufferFlag
from collector.etlwriter.session import SEQUENTIAL, Session
from collector.etlwriter.writer import EtlWriter
from collector.losses import Losses
from collector.raw import HeaderKind, Int64s, RawEvents, Reader, TraceHeader, UInt8s
from collector.readers import reader_for
from collector.source import Source

__all__ = ["Joined", "join_traces", "seconds_apart", "write_joined"]

_BUFFER_BYTES = 256 << 10  # a record has at most 64 KB
_MOST_APART_S = 600  # the system's time may be set while sessions run; another boot is farther away


@dataclass(frozen=True, slots=True)
class Joined:
    """How many records were written, and what limits the files that they are from, by file."""

    records: int
    problems: list[tuple[str, Problem]]

    @property
    def lines(self) -> list[str]:
        """What a user should know of the files, a sentence each."""
        return [f"{name}: {problem.text}" for name, problem in self.problems if problem.kind.severity != Severity.NOTE]

    @property
    def is_limited(self) -> bool:
        """Whether records are lost or damaged."""
        return any(problem.kind.severity in (Severity.DATA_LOSS, Severity.DAMAGE) for _, problem in self.problems)


def join_traces(files: Sequence[Path], target: Path, should_cancel: Callable[[], bool] = lambda: False) -> Joined:
    """Write the records of all files into one.

    The target appears only when it is whole. Raises: SourceError, FormatError for a file that cannot be read or was recorded with another
    clock; CollectCancelled.
    """
    names = [file.name for file in files]
    unfinished = target.with_name(target.name + ".part")
    with ExitStack() as stack:
        readers = [reader_for(stack.enter_context(Source.open(file))) for file in files]
        _check_clocks(names, [reader.header for reader in readers])
        try:
            with unfinished.open("wb") as out:
                joined = write_joined(names, readers, out, should_cancel)
            unfinished.replace(target)
        except OSError as error:
            raise SourceError(f"{target}: cannot be written: {error.strerror or error}.") from error
        finally:
            with suppress(OSError):  # a folder that cannot be written says so by the first error
                unfinished.unlink(missing_ok=True)
        return joined


def write_joined(names: Sequence[str], readers: Sequence[Reader], out: BinaryIO, should_cancel: Callable[[], bool]) -> Joined:
    """Write the records of all readers into an open file, at its start. Raises OSError, SourceError, FormatError, CollectCancelled."""
    writer = EtlWriter(out, _session(readers))
    count = _copy(readers, writer, should_cancel)
    for reader in readers:
        writer.lose_events(reader.header.events_lost, is_flagged=False)
        writer.lose_buffers(reader.header.buffers_lost)
    writer.close()
    return Joined(count, [(name, problem) for name, reader in zip(names, readers, strict=True) for problem in reader.problems])


def _check_clocks(names: Sequence[str], headers: Sequence[TraceHeader]) -> None:
    """Raises FormatError for files whose times do not compare."""
    first = headers[0]
    for name, header in zip(names[1:], headers[1:], strict=True):
        clock, own = first.clock, header.clock
        is_same = (clock.kind, clock.ticks_per_second, first.pointer_size) == (own.kind, own.ticks_per_second, header.pointer_size)
        if not is_same or abs(seconds_apart(clock, own)) > _MOST_APART_S:
            raise FormatError(
                f"{name} and {names[0]} were recorded with different clocks or on different machines: they cannot be joined. "
                "Collect each of them by itself."
            )


def seconds_apart(first: Clock, second: Clock) -> float:
    """How far two clocks disagree about the moment at which the second session began; 0 where one has no date.

    One counter: the same ticks are the same moment in both, whenever each session began.
    """
    if not (first.start_filetime and second.start_filetime):
        return 0.0
    dates = (second.start_filetime - first.start_filetime) / FILETIME_PER_SECOND
    return dates - first.ns_of(second.start_ticks) / NS_PER_SECOND


def _session(readers: Sequence[Reader]) -> Session:
    """The header of the joined file: of the session that began first."""
    header = min((reader.header for reader in readers), key=lambda header: header.clock.start_ticks)
    major, minor, build = (int(part) for part in header.os_version.split("."))
    end = max(reader.header.end_filetime for reader in readers)
    return Session(
        pointer_size=header.pointer_size,
        processors=max(reader.header.processors for reader in readers),
        buffer_size=_BUFFER_BYTES,
        clock=header.clock,
        counter_frequency=header.perf_freq,
        cpu_mhz=header.cpu_mhz,
        os_major=major,
        os_minor=minor,
        os_build=build,
        timer_resolution=header.timer_resolution,
        boot_filetime=header.boot_filetime,
        mode=SEQUENTIAL,
        is_merged=True,
        is_closed=all(reader.header.is_closed for reader in readers),
        header={"end_time": end, "bias_minutes": 0},
    )


@dataclass(slots=True)
class _Head:
    """What is left of one file's window."""

    windows: Iterator[RawEvents]
    window: RawEvents
    taken: int = 0

    @property
    def last_ticks(self) -> int:
        return int(self.window.ticks[-1])


@dataclass(frozen=True, slots=True, eq=False)
class _Records:
    """Records in a row, padded to eight bytes each; `ends` int64 (n,) counts from the start of `data`."""

    data: UInt8s
    ends: Int64s
    ticks: Int64s

    def cut(self, count: int) -> tuple["_Records", "_Records"]:
        """The first so many, and the rest."""
        at = int(self.ends[count - 1]) if count else 0
        return (
            _Records(self.data[:at], self.ends[:count], self.ticks[:count]),
            _Records(self.data[at:], self.ends[count:] - at, self.ticks[count:]),
        )


class _Marks:
    """The losses of one file, as marks of joined buffers: as few as cover them, because a reader takes each for a loss."""

    def __init__(self, losses: Losses, flags: int) -> None:
        self._losses = losses
        self._covered = Losses()
        self._flags = flags

    def take(self, first: int, last: int) -> int:
        """Flags of a buffer with records from one tick to another; 0 where nothing was lost, or another buffer says so already."""
        spans = self._losses.spans
        at = max(bisect_right(spans, first, key=itemgetter(0)) - 1, 0)
        while at < len(spans) and spans[at][0] <= last:
            low, high = max(spans[at][0], first), min(spans[at][1], last)
            before = bisect_right(self._covered.spans, low, key=itemgetter(0))
            if low <= high and not (before and self._covered.spans[before - 1][1] >= high):
                self._covered.add(first, last)
                return self._flags
            at += 1
        return 0


def _flags_of(header: TraceHeader) -> int:
    """What the marks of a file's losses say was lost."""
    if header.buffers_lost and not header.events_lost:
        return BufferFlag.BUFFER_LOST
    return BufferFlag.EVENTS_LOST | (BufferFlag.BUFFER_LOST if header.buffers_lost else 0)


class _Output:
    """The joined file: buffers of one processor each, marked where a file lost something."""

    def __init__(self, writer: EtlWriter, readers: Sequence[Reader]) -> None:
        self._writer = writer
        # A loss that has no place in its file may be anywhere; marks of others would say that it is where they are.
        is_placed = not any(reader.losses.is_everywhere for reader in readers)
        self._marks = [_Marks(reader.losses, _flags_of(reader.header)) for reader in readers] if is_placed else []

    def write_full(self, cpu: int, records: _Records) -> _Records:
        """Write the buffers that are full; returns what is left."""
        room = _BUFFER_BYTES - BUFFER_HEADER_SIZE
        while records.data.size > room:
            full, records = records.cut(int(np.searchsorted(records.ends, room, "right")))
            self.write(cpu, full)
        return records

    def write(self, cpu: int, records: _Records) -> None:
        """Write one buffer."""
        first, last = int(records.ticks[0]), int(records.ticks[-1])
        flags = 0
        for marks in self._marks:
            flags |= marks.take(first, last)
        self._writer.add_buffer(records.data.tobytes(), cpu=cpu, first_ticks=first, last_ticks=last, flags=flags)


def _copy(readers: Sequence[Reader], writer: EtlWriter, should_cancel: Callable[[], bool]) -> int:
    output = _Output(writer, readers)
    heads = [head for reader in readers if (head := _next(reader.windows())) is not None]
    waiting: dict[int, _Records] = {}
    count = 0
    while heads:
        if should_cancel():
            raise CollectCancelled("Stopped: the files were not joined.")
        until = min(head.last_ticks for head in heads)  # up to there every file is known
        parts = [_take(head, until) for head in heads]
        count += sum(int(ticks.size) for ticks, *_ in parts)
        for cpu, records in _by_processor(parts):
            old = waiting.get(cpu)
            waiting[cpu] = output.write_full(cpu, records if old is None else _after(old, records))
        heads = [head if head.taken < len(head.window) else following for head in heads if (following := _following(head)) is not None]
    for cpu in sorted(waiting):
        if waiting[cpu].ticks.size:
            output.write(cpu, waiting[cpu])
    return count


def _next(windows: Iterator[RawEvents]) -> _Head | None:
    """The next window that has records besides the log file header."""
    for window in windows:
        head = _Head(windows, window)
        if _is_log_file_header(window):
            head.taken = 1
        if head.taken < len(window):
            return head
    return None


def _following(head: _Head) -> _Head | None:
    return head if head.taken < len(head.window) else _next(head.windows)


def _is_log_file_header(window: RawEvents) -> bool:
    """Whether a window begins with the first record of its file, in whose place the joined file has one of its own."""
    is_first = window.first_seq == 0 and int(window.buffer[0]) == 0 and int(window.buffer_offset[0]) == BUFFER_HEADER_SIZE
    return is_first and int(window.kind[0]) in (HeaderKind.SYSTEM32, HeaderKind.SYSTEM64)


def _take(head: _Head, until: int) -> tuple[Int64s, Int64s, Int64s, Int64s, UInt8s]:
    """Ticks, processors, starts and sizes of the records up to a time, and the bytes in which they stand."""
    window = head.window
    rows = slice(head.taken, int(np.searchsorted(window.ticks, until, "right")))
    head.taken = max(rows.stop, head.taken)
    starts = window.offset[rows]
    sizes = window.payload[rows] + window.payload_size[rows] - starts
    return window.ticks[rows], window.cpu[rows].astype(np.int64), starts, sizes, window.data


def _by_processor(parts: Sequence[tuple[Int64s, Int64s, Int64s, Int64s, UInt8s]]) -> Iterator[tuple[int, _Records]]:
    """The records of each processor in the order of their time; at one time in the order of the files."""
    ticks, cpus, sizes = (np.concatenate([part[n] for part in parts]) for n in (0, 1, 3))
    bases = np.cumsum([0, *(part[4].size for part in parts)])
    starts = np.concatenate([part[2] + base for part, base in zip(parts, bases[:-1], strict=True)])
    data = np.concatenate([part[4] for part in parts])
    order = np.lexsort((np.arange(ticks.size), ticks, cpus))
    edges = np.flatnonzero(np.diff(cpus[order], prepend=-1, append=-1))
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        rows = order[low:high]
        yield int(cpus[rows[0]]), _gather(data, starts[rows], sizes[rows], ticks[rows])


def _gather(data: UInt8s, starts: Int64s, sizes: Int64s, ticks: Int64s) -> _Records:
    """Copies of records, one behind the other."""
    # Records stand at multiples of eight in their buffers, so what is copied as padding is what stood there. 0.3 us a record.
    view, strides = data.data, (sizes + 7) & ~7
    copied = b"".join([view[start:end] for start, end in zip(starts.tolist(), (starts + strides).tolist(), strict=True)])
    return _Records(np.frombuffer(copied, np.uint8), np.cumsum(strides), ticks)


def _after(first: _Records, second: _Records) -> _Records:
    ends = np.concatenate([first.ends, second.ends + first.data.size])
    return _Records(np.concatenate([first.data, second.data]), ends, np.concatenate([first.ticks, second.ticks]))
