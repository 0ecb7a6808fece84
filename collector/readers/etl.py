"""The reader of ETL files: buffers of all processors → windows of records in global time order.

Order (etl-format S6): time stamp, processor, sequence number of the buffer, place in the buffer. Buffers are loaded by the time of
their first record, which the index knows; so the first record of the next buffer not yet loaded is the moment up to which a
window is complete, and only the buffers that reach beyond it stay loaded.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from collector.errors import Problem
from collector.losses import Losses
from collector.raw import Int64s, RawEvents, TraceHeader, UInt8s
from collector.readers.etl_buffers import HEADER_BYTES, BufferHeader, Compression, expand
from collector.readers.etl_headers import PAD_BYTES, header_columns, record_ticks, walk
from collector.readers.etl_index import index_buffers
from collector.readers.etl_logfile import LogFileHeader, parse_log_file_header, trace_header
from collector.readers.etl_providers import Providers
from collector.readers.problems import ProblemLog
from collector.source import Source

__all__ = ["EtlReader"]

_WINDOW_BYTES = 16 << 20
_WINDOW_BUFFERS = 1024


@dataclass(slots=True)
class _OpenBuffer:
    """A loaded buffer with records that no window has had yet."""

    number: int
    """Index of the buffer in the file."""
    rank: int
    """Place among all buffers in (cpu, sequence, file) order."""
    cpu: int
    data: UInt8s
    """Bytes of the expanded buffer from `data_at` on."""
    data_at: int
    offsets: Int64s
    """Starts of its records in the expanded buffer, in the order of `ticks`."""
    ticks: Int64s
    is_sorted: bool
    """Whether `offsets` ascend, as they do unless time stamps went back."""
    taken: int = 0


class EtlReader:
    """Reads one ETL file; see `raw.Reader`."""

    def __init__(self, source: Source, *, window_buffers: int = _WINDOW_BUFFERS, window_bytes: int = _WINDOW_BYTES) -> None:
        """Read the header and the index of buffers. Raises SourceError, FormatError.

        `window_buffers` and `window_bytes` bound how much is loaded before the next window is handed out; they change no record
        and no order.
        """
        self._source = source
        self._window_buffers = max(1, window_buffers)
        self._window_bytes = window_bytes
        self._log = ProblemLog()
        self._logfile, first = _first_buffer(source)
        self._compression = _compression(self._logfile, first)
        self._index = index_buffers(source, declared_size=self._logfile.buffer_size, compression=self._compression, log=self._log)
        self._start = np.where(self._index.has_ticks, self._index.first_ticks, self._logfile.first_ticks)
        self.header: TraceHeader = trace_header(self._logfile, start_ticks=self._logfile.first_ticks, log=self._log)
        self.losses = Losses()
        self.bytes_total = source.size
        self.bytes_done = 0
        self.buffers_read = 0
        self._providers = Providers()
        self._next_seq = 0

    @property
    def problems(self) -> list[Problem]:
        return self._log.problems()

    def windows(self) -> Iterator[RawEvents]:
        index = self._index
        by_rank = np.lexsort((np.arange(len(index)), index.sequence, index.cpu))
        rank = np.empty(len(index), np.int64)
        rank[by_rank] = np.arange(len(index))
        order = np.lexsort((rank, self._start))
        opened: list[_OpenBuffer] = []
        at = 0
        while at < order.size:
            upto = self._window_end(order, at)
            opened += self._load(order[at:upto], rank)
            at = upto
            next_ticks, next_rank = (int(self._start[order[at]]), int(rank[order[at]])) if at < order.size else (None, 0)
            window = self._emit(opened, next_ticks, next_rank)
            opened = [buffer for buffer in opened if buffer.taken < buffer.offsets.size]
            if window is not None:
                yield window
        self.bytes_done = self.bytes_total

    def _window_end(self, order: Int64s, at: int) -> int:
        """Where the next load ends: some buffers, at least one, not too many bytes."""
        filled = np.cumsum(self._index.filled[order[at : at + self._window_buffers]])
        return at + max(1, int(np.searchsorted(filled, self._window_bytes, "right")))

    def _load(self, numbers: Int64s, rank: Int64s) -> list[_OpenBuffer]:
        """Read, expand and walk some buffers."""
        index = self._index
        room = (index.filled[numbers] + 7) & ~7
        bases = np.concatenate(([0], np.cumsum(room)))
        data = np.zeros(int(bases[-1]) + PAD_BYTES, np.uint8)
        ends = bases[:-1].copy()
        for i, number in enumerate(numbers.tolist()):
            expanded = self._expanded(number)
            base = int(bases[i])
            data[base + HEADER_BYTES : base + HEADER_BYTES + len(expanded)] = np.frombuffer(expanded, np.uint8)
            ends[i] += HEADER_BYTES + len(expanded)
            self.bytes_done += int(index.size[number])
        self.buffers_read += numbers.size
        found = walk(data, bases[:-1] + HEADER_BYTES, ends)
        ticks, has_time = record_ticks(data, found.positions)
        edges = np.searchsorted(found.positions, bases)
        opened = []
        for i, number in enumerate(numbers.tolist()):
            rows = slice(int(edges[i]), int(edges[i + 1]))
            base, end = int(bases[i]), int(bases[i + 1])
            opened.append(
                _OpenBuffer(
                    number=number,
                    rank=int(rank[number]),
                    cpu=int(index.cpu[number]),
                    data=data[base:end],
                    data_at=0,
                    offsets=found.positions[rows] - base,
                    ticks=ticks[rows],
                    is_sorted=True,
                )
            )
        return opened

    def _expanded(self, number: int) -> bytes:
        """The bytes of a buffer behind its header, up to its end of records."""
        index = self._index
        offset, size, filled = int(index.offset[number]), int(index.size[number]), int(index.filled[number])
        if not index.is_packed[number]:
            return self._source.read_at(offset + HEADER_BYTES, filled - HEADER_BYTES)
        packed = self._source.read_at(offset + HEADER_BYTES, size - HEADER_BYTES)
        return expand(packed, filled - HEADER_BYTES, self._compression)

    def _emit(self, opened: list[_OpenBuffer], next_ticks: int | None, next_rank: int) -> RawEvents | None:
        """Take all records that no buffer still to be loaded can precede, sort them, and read their headers."""
        opened.sort(key=lambda buffer: buffer.rank)
        pieces: list[UInt8s] = []
        positions: list[Int64s] = []
        offsets: list[Int64s] = []
        ticks: list[Int64s] = []
        owners: list[_OpenBuffer] = []
        base = 0
        for buffer in opened:
            upto = buffer.ticks.size
            if next_ticks is not None:
                # At the very tick of the next buffer's first record only buffers before it in rank are ahead of it.
                upto = int(np.searchsorted(buffer.ticks, next_ticks, "right" if buffer.rank < next_rank else "left"))
            if upto <= buffer.taken:
                continue
            chosen = buffer.offsets[buffer.taken : upto]
            low = int(chosen[0]) if buffer.is_sorted else int(chosen.min())
            high = int(buffer.offsets[upto]) if buffer.is_sorted and upto < buffer.offsets.size else buffer.data_at + buffer.data.size
            pieces.append(buffer.data[low - buffer.data_at : high - buffer.data_at])
            positions.append(chosen + (base - low))
            offsets.append(chosen)
            ticks.append(buffer.ticks[buffer.taken : upto])
            owners.append(buffer)
            base += high - low
            buffer.taken = upto
        if not owners:
            return None
        counts = [chosen.size for chosen in offsets]
        data = np.concatenate([*pieces, np.zeros(PAD_BYTES, np.uint8)])
        time = np.concatenate(ticks)
        position, offset = np.concatenate(positions), np.concatenate(offsets)
        cpu = np.repeat(np.array([buffer.cpu for buffer in owners], np.uint16), counts)
        number = np.repeat(np.array([buffer.number for buffer in owners], np.int32), counts)
        if np.any(time[1:] < time[:-1]):
            order = np.argsort(time, kind="stable")
            time, position, offset, cpu, number = time[order], position[order], offset[order], cpu[order], number[order]
        columns = header_columns(data, position, file_pointer_size=self.header.pointer_size)
        window = RawEvents(
            data=data,
            providers=self._providers.guids,
            first_seq=self._next_seq,
            offset=position,
            payload=columns.payload,
            payload_size=columns.payload_size,
            ticks=time,
            cpu=cpu,
            pid=columns.pid,
            tid=columns.tid,
            kind=columns.kind,
            pointer_size=columns.pointer_size,
            provider=self._providers.of(columns),
            event_id=columns.event_id,
            opcode=columns.opcode,
            version=columns.version,
            level=columns.level,
            keyword=columns.keyword,
            activity=columns.activity,
            extended=columns.extended,
            buffer=number,
            buffer_offset=offset.astype(np.int32),
        )
        self._next_seq += len(window)
        return window


def _first_buffer(source: Source) -> tuple[LogFileHeader, BufferHeader]:
    """The log file header and the header of the buffer that holds it."""
    header = BufferHeader.parse(source.read_at(0, HEADER_BYTES))
    record = source.read_at(HEADER_BYTES, 1 << 16)
    return parse_log_file_header(record, name=source.name, offset=HEADER_BYTES), header


def _compression(logfile: LogFileHeader, first: BufferHeader) -> Compression:
    """The format of a compressed file stands in the State field of its first buffer (S3)."""
    if not logfile.is_compressed:
        return Compression.NONE
    number = first.state & 0xFFFF
    return Compression(number) if number in (2, 3, 4) else Compression.XPRESS
