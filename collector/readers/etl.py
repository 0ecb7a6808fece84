"""The reader of ETL files: buffers of all processors → windows of records in global time order.

Order (etl-format S6): time stamp, processor, sequence number of the buffer, place in the buffer. Buffers are loaded by the time of
their first record, which the index knows; so the first record of the next buffer not yet loaded is the moment up to which a
window is complete, and only buffers that reach beyond it stay loaded.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from collector.errors import EmptyTrace, FormatError, Problem
from collector.raw import HeaderKind, Int64s, RawEvents, TraceHeader
from collector.readers.etl_buffers import HEADER_BYTES, BufferHeader, Compression
from collector.readers.etl_copies import leave_out_copies
from collector.readers.etl_forms import MAX_FORMS, FormTable
from collector.readers.etl_index import BufferIndex, index_buffers
from collector.readers.etl_load import BufferLoader, Loaded
from collector.readers.etl_logfile import LogFileHeader, clock_of, moved, parse_log_file_header, trace_header
from collector.readers.etl_losses import LossSigns
from collector.readers.etl_order import order_buffers, time_limits
from collector.readers.etl_providers import MAX_PROVIDERS, Providers
from collector.readers.etl_rest import Cut, OpenBuffer
from collector.readers.etl_window import EtlWindow, Taken
from collector.readers.problems import (
    BUFFERS_MISSING,
    BUFFERS_WRITTEN_DIFFERS,
    DAMAGED_RECORD,
    SEQUENCE_FAULT,
    TOO_MANY_FORMS,
    TOO_MANY_PROVIDERS,
    UNKNOWN_HEADER_KIND,
    WRAPPED_FILE,
    ProblemLog,
)
from collector.source import Source

__all__ = ["EtlReader", "is_etl"]

WINDOW_BYTES = 8 << 20
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
        self._log = ProblemLog(source.problems)
        self._unknown_kinds: Counter[int] = Counter()
        self._next_seq = 0
        first = BufferHeader.parse(source.read_at(0, HEADER_BYTES).ljust(HEADER_BYTES, b"\0"))
        logfile = parse_log_file_header(source.read_at(HEADER_BYTES, _FIRST_RECORD_MOST), name=source.name, offset=HEADER_BYTES)
        compression = _compression(logfile, first)
        self._index = index_buffers(source, declared_size=logfile.buffer_size, compression=compression, log=self._log)
        _check_index(source, self._index)
        leave_out_copies(source, self._index, self._log)
        said = ProblemLog() if source.told_by else self._log  # what the header of a text's events leaves out, nobody has said wrongly
        clock = clock_of(logfile, said)
        zero, low, high = time_limits(self._index, logfile.first_ticks, clock.ticks_per_second)
        self.header = trace_header(logfile, moved(clock, logfile, zero), said, is_growing=source.is_growing)
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
        self._table = FormTable(Providers(), self.header.pointer_size)
        self._loader = BufferLoader(
            source, self._index, self._order, method, self._table, limits=(low, high), signs=self._signs, log=self._log
        )
        self._note_buffers(logfile)
        self.losses = self._signs.losses
        self.bytes_total = source.size
        self.bytes_done = 0
        self.buffers_read = 0
        self._tell_problems()

    def windows(self) -> Iterator[RawEvents]:
        """All records once, in windows of global time order. Raises SourceError."""
        loading = self._order.loading
        opened: list[OpenBuffer] = []
        at = 0
        while at < loading.size:
            upto = self._window_end(at)
            window, opened = self._window(loading[at:upto], opened, self._cut(upto))
            self.buffers_read += upto - at
            self.bytes_done += int(self._index.size[loading[at:upto]].sum())
            at = upto
            self._tell_problems()
            if window is not None:
                yield window
        self.bytes_done = self.bytes_total

    def _cut(self, at: int) -> Cut | None:
        """Up to where the records of all buffers before a place of the loading order are complete; None: all are."""
        if at >= self._order.loading.size:
            return None
        number = int(self._order.loading[at])
        return Cut(int(self._order.start[number]), int(self._order.rank[number]))

    def _window_end(self, at: int) -> int:
        """Where the next load ends: some buffers, at least one, not too many bytes."""
        filled = np.cumsum(self._index.filled[self._order.loading[at : at + self._window_buffers]])
        return at + max(1, int(np.searchsorted(filled, self._window_bytes, "right")))

    def _window(self, loading: Int64s, opened: list[OpenBuffer], cut: Cut | None) -> tuple[EtlWindow | None, list[OpenBuffer]]:
        """Load some buffers and take all records before the cut, of these and of those still open; and what stays open then."""
        chosen = [(buffer, upto) for buffer in opened if (upto := buffer.upto(cut)) > buffer.taken]
        pieces = [buffer.piece(upto) for buffer, upto in chosen]
        places = np.concatenate(([0], np.cumsum([(piece.size + 7) & ~7 for _, piece in pieces], dtype=np.int64)))
        loaded = self._loader.load(loading, spare=int(places[-1]))
        parts: list[Taken] = []
        for (buffer, upto), (low, piece), place in zip(chosen, pieces, places.tolist(), strict=False):
            loaded.data[place : place + piece.size] = piece
            rows = slice(buffer.taken, upto)
            parts.append(
                Taken(
                    position=buffer.offsets[rows] + (place - low),
                    size=buffer.sizes[rows],
                    ticks=buffer.ticks[rows],
                    form=buffer.forms[rows],
                    counts=np.array([upto - buffer.taken]),
                    rank=np.array([buffer.rank]),
                    cpu=np.array([buffer.cpu], np.uint16),
                    number=np.array([buffer.number], np.int32),
                    base=np.array([place - low]),
                )
            )
            buffer.take(upto)
        new, rest = self._split(loaded, cut)
        taken = Taken.joined([*parts, new])
        left = [buffer for buffer in opened if not buffer.is_done] + rest
        if not taken.ticks.size:
            return None, left
        window = EtlWindow(loaded.data, taken, self._table, self._next_seq)
        self._next_seq += len(window)
        self._note_records(window)
        return window, left

    def _split(self, loaded: Loaded, cut: Cut | None) -> tuple[Taken, list[OpenBuffer]]:
        """The records of new buffers before the cut, and what stays open."""
        numbers, edges = loaded.numbers, loaded.edges
        rank, cpu = self._order.rank[numbers], self._index.cpu[numbers]
        beyond = edges[1:].copy()
        rest = []
        if cut is not None:
            last = loaded.ticks[np.maximum(edges[1:] - 1, 0)] if loaded.ticks.size else np.zeros(numbers.size, np.int64)
            for lane in np.flatnonzero((edges[1:] > edges[:-1]) & (last >= cut.ticks)).tolist():
                start, end = int(edges[lane]), int(edges[lane + 1])
                beyond[lane] = start + int(np.searchsorted(loaded.ticks[start:end], cut.ticks, cut.side(int(rank[lane]))))
                if beyond[lane] < end:
                    rest.append(_rest(loaded, lane, slice(int(beyond[lane]), end), rank=int(rank[lane]), cpu=int(cpu[lane])))
        position, size, ticks, form = loaded.positions, loaded.sizes, loaded.ticks, loaded.forms
        if rest:
            cut_at = np.flatnonzero(beyond < edges[1:])
            runs = list(zip([0, *edges[cut_at + 1].tolist()], [*beyond[cut_at].tolist(), int(edges[-1])], strict=True))
            position, size, ticks = (np.concatenate([column[first:end] for first, end in runs]) for column in (position, size, ticks))
            form = np.concatenate([form[first:end] for first, end in runs])
        return Taken(
            position=position,
            size=size,
            ticks=ticks,
            form=form,
            counts=beyond - edges[:-1],
            rank=rank,
            cpu=cpu.astype(np.uint16),
            number=numbers.astype(np.int32),
            base=loaded.bases,
        ), rest

    def _note_records(self, window: EtlWindow) -> None:
        """Problems and losses that the records of a window tell of."""
        if window.is_damaged.any():
            rows = np.flatnonzero(window.is_damaged)
            place = window.place(int(rows[0]))
            self._log.add(
                DAMAGED_RECORD,
                count=int(rows.size),
                first_ticks=int(window.ticks[rows[0]]),
                last_ticks=int(window.ticks[rows[-1]]),
                place=place,
                found=f"{place} is shorter than its own header",
                skipped=0,
            )
        is_unknown = ~_KNOWN_KINDS[self._table.forms.kind]
        if (rows := window.rows_of(is_unknown)).size:
            self._unknown_kinds.update(window.kind[rows].tolist())
            problem = self._log.add(
                UNKNOWN_HEADER_KIND,
                count=int(rows.size),
                first_ticks=int(window.ticks[rows[0]]),
                last_ticks=int(window.ticks[rows[-1]]),
                place=window.place(int(rows[0])),
            )
            problem.details["kinds"] = ", ".join(f"{count:,} of kind {kind}" for kind, count in sorted(self._unknown_kinds.items()))
        if (rows := window.rows_of(self._table.is_nameless)).size:
            self._log.add(TOO_MANY_PROVIDERS, count=int(rows.size)).details["limit"] = MAX_PROVIDERS
        if (rows := window.rows_of(self._table.is_beyond)).size:
            place = window.place(int(rows[0]))
            self._log.add(TOO_MANY_FORMS, count=int(rows.size), place=place).details["limit"] = MAX_FORMS
        for row in window.rows_of(self._table.is_marker).tolist():
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
        elif self.header.is_closed and declared not in (found, found + self._index.holes):
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


def _rest(loaded: Loaded, lane: int, rows: slice, *, rank: int, cpu: int) -> OpenBuffer:
    """Copies of some records of a loaded buffer, with their bytes."""
    positions, sizes = loaded.positions[rows], loaded.sizes[rows]
    base, low, high = int(loaded.bases[lane]), int(positions.min()), int((positions + sizes).max())
    return OpenBuffer(
        number=int(loaded.numbers[lane]),
        rank=rank,
        cpu=cpu,
        data=loaded.data[low:high].copy(),
        data_at=low - base,
        offsets=positions - base,
        sizes=sizes.copy(),
        ticks=loaded.ticks[rows].copy(),
        forms=loaded.forms[rows].copy(),
    )


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
