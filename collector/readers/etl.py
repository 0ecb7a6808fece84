"""The reader of ETL files: buffers of all processors → windows of records in global time order.

Order (etl-format S6): time stamp, processor, sequence number of the buffer, place in the buffer. Buffers are loaded by the time of
their first record, which the index knows; so the first record of the next buffer not yet loaded is the moment up to which a
window is complete, and only buffers that reach beyond it stay loaded.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from collector.errors import EmptyTrace, FormatError, Problem
from collector.raw import HeaderKind, Int64s, RawEvents, TraceHeader, UInt8s
from collector.readers.etl_buffers import HEADER_BYTES, BufferHeader, Compression
from collector.readers.etl_headers import HeaderColumns, header_columns
from collector.readers.etl_index import BufferIndex, index_buffers
from collector.readers.etl_load import BufferLoader, OpenBuffer
from collector.readers.etl_logfile import LogFileHeader, clock_of, moved, parse_log_file_header, trace_header
from collector.readers.etl_losses import MARKER_OPCODES, LossSigns
from collector.readers.etl_order import order_buffers, time_limits
from collector.readers.etl_providers import LOST_EVENT, MAX_PROVIDERS, Providers
from collector.readers.etl_walk import PAD_BYTES
from collector.readers.problems import (
    BUFFERS_MISSING,
    BUFFERS_WRITTEN_DIFFERS,
    DAMAGED_RECORD,
    SEQUENCE_FAULT,
    TOO_MANY_PROVIDERS,
    UNKNOWN_HEADER_KIND,
    WRAPPED_FILE,
    ProblemLog,
)
from collector.source import Source

__all__ = ["EtlReader", "is_etl"]

WINDOW_BYTES = 16 << 20
WINDOW_BUFFERS = 1024

_HIGHEST_SEQUENCE = 1 << 40  # a higher number is damaged: no session writes that many buffers
_FIRST_RECORD_MOST = 1 << 16  # a record's size is a 16-bit number

_KNOWN_KINDS = np.zeros(256, np.bool_)
_KNOWN_KINDS[[kind for kind in HeaderKind if kind not in (HeaderKind.TIMED, HeaderKind.ERROR, HeaderKind.WNODE)]] = True


def is_etl(start: bytes) -> bool:
    """Whether a file that starts with these bytes (120 are enough) is an ETL file: its first record is a log file header."""
    marker = start[HEADER_BYTES : HEADER_BYTES + 8]
    return len(marker) == 8 and marker[2] in (HeaderKind.SYSTEM32, HeaderKind.SYSTEM64) and marker[3] == 0xC0 and marker[6:8] == b"\0\0"


class EtlReader:
    """Reads one ETL file; see `raw.Reader`."""

    header: TraceHeader
    problems: list[Problem]

    def __init__(self, source: Source, *, window_buffers: int = WINDOW_BUFFERS, window_bytes: int = WINDOW_BYTES) -> None:
        """Read the header and the index of buffers. Raises SourceError, FormatError.

        `window_buffers` and `window_bytes` bound how much is loaded before the next window is handed out; they change no record
        and no order.
        """
        self._window_buffers = max(1, window_buffers)
        self._window_bytes = window_bytes
        self._log = ProblemLog()
        self._providers = Providers()
        self._unknown_kinds: Counter[int] = Counter()
        self._next_seq = 0
        first = BufferHeader.parse(source.read_at(0, HEADER_BYTES).ljust(HEADER_BYTES, b"\0"))
        logfile = parse_log_file_header(source.read_at(HEADER_BYTES, _FIRST_RECORD_MOST), name=source.name, offset=HEADER_BYTES)
        compression = _compression(logfile, first)
        self._index = index_buffers(source, declared_size=logfile.buffer_size, compression=compression, log=self._log)
        _check_index(source, self._index)
        clock = clock_of(logfile, self._log)
        zero, low, high = time_limits(self._index, logfile.first_ticks, clock.ticks_per_second)
        self.header = trace_header(logfile, moved(clock, logfile, zero), self._log)
        self._order = order_buffers(self._index, low=low, high=high, fallback=zero)
        self._signs = LossSigns(
            self._index,
            self._order,
            events_lost=logfile.events_lost,
            buffers_lost=logfile.buffers_lost,
            buffers_missing=self._buffers_missing(logfile),
            log=self._log,
        )
        # A packed buffer in a file that does not say how it is compressed is taken for the one format ever seen.
        method = compression if compression is not Compression.NONE else Compression.XPRESS
        self._loader = BufferLoader(source, self._index, self._order, method, limits=(low, high), signs=self._signs, log=self._log)
        self._note_buffers(logfile)
        self.losses = self._signs.losses
        self.bytes_total = source.size
        self.bytes_done = 0
        self.buffers_read = 0
        self._tell_problems()

    def windows(self) -> Iterator[RawEvents]:
        """All records once, in windows of global time order. Raises SourceError."""
        loading, start, rank = self._order.loading, self._order.start, self._order.rank
        opened: list[OpenBuffer] = []
        at = 0
        while at < loading.size:
            upto = self._window_end(at)
            opened = sorted(opened + self._loader.load(loading[at:upto]), key=lambda buffer: buffer.rank)
            self.buffers_read += upto - at
            self.bytes_done += int(self._index.size[loading[at:upto]].sum())
            at = upto
            following = int(loading[at]) if at < loading.size else None
            window = self._window(opened, None if following is None else (int(start[following]), int(rank[following])))
            opened = [buffer for buffer in opened if buffer.taken < buffer.ticks.size]
            for buffer in opened:
                buffer.keep_rest()
            self._tell_problems()
            if window is not None:
                yield window
        self.bytes_done = self.bytes_total

    def _window_end(self, at: int) -> int:
        """Where the next load ends: some buffers, at least one, not too many bytes."""
        filled = np.cumsum(self._index.filled[self._order.loading[at : at + self._window_buffers]])
        return at + max(1, int(np.searchsorted(filled, self._window_bytes, "right")))

    def _window(self, opened: list[OpenBuffer], following: tuple[int, int] | None) -> RawEvents | None:
        """Take all records that no buffer still to be loaded can precede, sort them, and read their headers.

        `opened` is in the order of rank; `following` is start and rank of the next buffer.
        """
        pieces: list[UInt8s] = []
        positions: list[Int64s] = []
        offsets: list[Int64s] = []
        ticks: list[Int64s] = []
        owners: list[OpenBuffer] = []
        base = 0
        for buffer in opened:
            upto = buffer.ticks.size
            if following is not None:
                # At the very tick of the next buffer's first record only buffers before it in rank are ahead of it.
                upto = int(np.searchsorted(buffer.ticks, following[0], "right" if buffer.rank < following[1] else "left"))
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
            # Each buffer is a rising run, so this sort only merges; rows of equal time stay in the order of rank and place.
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
        self._note_records(window, columns)
        return window

    def _note_records(self, window: RawEvents, columns: HeaderColumns) -> None:
        """Problems and losses that the records of a window tell of."""
        if columns.is_damaged.any():
            rows = np.flatnonzero(columns.is_damaged)
            first = int(rows[0])
            ticks = window.ticks[rows]
            self._log.add(
                DAMAGED_RECORD,
                count=int(rows.size),
                first_ticks=int(ticks[0]),
                last_ticks=int(ticks[-1]),
                place=window.place(first),
                found=f"{window.place(first)} is shorter than its own header",
                skipped=0,
            )
        is_unknown = ~_KNOWN_KINDS[window.kind]
        if is_unknown.any():
            rows = np.flatnonzero(is_unknown)
            self._unknown_kinds.update(window.kind[rows].tolist())
            problem = self._log.add(
                UNKNOWN_HEADER_KIND,
                count=int(rows.size),
                first_ticks=int(window.ticks[rows[0]]),
                last_ticks=int(window.ticks[rows[-1]]),
                place=window.place(int(rows[0])),
            )
            problem.details["kinds"] = ", ".join(f"{count:,} of kind {kind}" for kind, count in sorted(self._unknown_kinds.items()))
        if self._providers.overflowed:
            self._log.add(TOO_MANY_PROVIDERS, count=self._providers.overflowed).details["limit"] = MAX_PROVIDERS
            self._providers.overflowed = 0
        marker = self._providers.find(LOST_EVENT)
        if marker is not None:
            is_marker = (window.provider == marker) & np.isin(window.opcode, MARKER_OPCODES)
            for row in np.flatnonzero(is_marker).tolist():
                self._signs.marker(int(window.ticks[row]), int(window.opcode[row]))

    def _note_buffers(self, logfile: LogFileHeader) -> None:
        """Problems that the index of buffers tells of."""
        if (faults := self._order.faults).size:
            number = int(faults[0])
            place = f"buffer {number:,} at byte {int(self._index.offset[number]):,}"
            self._log.add(SEQUENCE_FAULT, count=int(faults.size), place=place)
        declared, found = logfile.buffers_written, len(self._index)
        if overwritten := self._overwritten():
            self._log.add(WRAPPED_FILE, count=overwritten)
        elif missing := self._buffers_missing(logfile):
            self._log.add(BUFFERS_MISSING, count=missing, declared=declared, found=found)
        elif self.header.is_closed and declared != found:
            self._log.add(BUFFERS_WRITTEN_DIFFERS, declared=declared, found=found)

    def _overwritten(self) -> int:
        """Buffers that a circular file has lost to newer ones."""
        oldest = int(self._index.sequence[1:].min()) if len(self._index) > 1 else 1
        return oldest - 1 if self.header.is_circular and 1 < oldest <= _HIGHEST_SEQUENCE else 0

    def _buffers_missing(self, logfile: LogFileHeader) -> int:
        """Buffers that the header counts and the file has no trace of; unreadable places in the file are told apart."""
        if not self.header.is_closed or self._overwritten():
            return 0
        return max(0, logfile.buffers_written - len(self._index) - self._index.holes)

    def _tell_problems(self) -> None:
        self.problems = self._signs.problems() + self._log.problems()


def _compression(logfile: LogFileHeader, first: BufferHeader) -> Compression:
    """The format of a compressed file stands in the State field of its first buffer (S3)."""
    if not logfile.is_compressed:
        return Compression.NONE
    number = first.state & 0xFFFF
    known = (Compression.LZNT1, Compression.XPRESS, Compression.XPRESS_HUFF)
    return Compression(number) if number in known else Compression.XPRESS


def _check_index(source: Source, index: BufferIndex) -> None:
    """Refuse a file without a single whole buffer."""
    if not len(index):
        raise FormatError(
            f"{source.name}: no buffer of this ETL file can be read: the size in the header of its first one is damaged, and no other "
            "header was found. Copy the file again from the machine that recorded it.",
            offset=0,
        )
    if len(index) == 1 and index.missing_bytes and int(index.offset[0] + index.size[0]) == source.size:
        raise EmptyTrace(
            f"{source.name}: the file is cut: it ends after {source.size:,} bytes, inside its first buffer of "
            f"{source.size + index.missing_bytes:,} bytes, so it holds no event. "
            "Stop the session (logman stop NAME -ets) and copy it again.",
            offset=source.size,
        )
