"""The index of an ETL file: all its buffers, found before the first record is decoded.

A quiet processor's first buffer may be the last of the file, so time order needs all buffer headers first. Reading them one by one, as
here, costs some 15 us a buffer; `etl_grid` is quicker where all are sound. Damage is met here: a header that cannot be right, buffers
of zeros, a file that ends too early.
"""

from array import array

import numpy as np
from numpy.typing import NDArray

from collector.raw import HeaderKind
from collector.readers.etl_buffers import (
    FLAG_BUFFER_LOST,
    FLAG_EVENTS_LOST,
    HEADER_BYTES,
    KNOWN_FLAGS,
    LAST_TYPE,
    MAX_BUFFER_BYTES,
    TYPE_EMPTY_MARKER,
    BufferHeader,
    BufferIndex,
    Compression,
    expand,
    xpress_start,
)
from collector.readers.etl_grid import grid_index
from collector.readers.etl_walk import FIRST_RECORD_BYTES, first_ticks
from collector.readers.problems import DAMAGED_BUFFER, DECOMPRESSION_FAILED, TRUNCATED_FILE, ZEROED_BUFFER, ProblemLog
from collector.source import Source

__all__ = ["BufferIndex", "index_buffers"]

_PEEK = HEADER_BYTES + FIRST_RECORD_BYTES
_PACKED_PEEK = 256  # XPRESS needs 45 packed bytes for 40 literal ones
_READ_AHEAD = 64 << 10
_SEARCH_START = 4 << 10
_SEARCH_MOST = 1 << 20
_HEADER_KINDS_LAST = HeaderKind.INSTANCE64
_MOST_SWELLING = 32
"""Expanded bytes for each byte of a compressed file: recorded ones have 3 to 10, a few bytes can be made to stand for MBs."""


def index_buffers(source: Source, *, declared_size: int, compression: Compression, log: ProblemLog) -> BufferIndex:
    """Find all buffers of a file.

    Args:
        declared_size: BufferSize of the log file header, of expanded buffers; 0 when that field is useless.
        compression: Compression.NONE for files of equal, plain buffers.
    """
    return _Indexer(source, declared_size, compression, log).run()


class _Indexer:
    """Walks over the buffers of one file."""

    def __init__(self, source: Source, declared_size: int, compression: Compression, log: ProblemLog) -> None:
        self._source = source
        self._compression = compression
        self._log = log
        self._piece_at = 0
        self._piece = b""
        first = BufferHeader.parse(source.read_at(0, HEADER_BYTES))
        is_declared = HEADER_BYTES <= declared_size <= MAX_BUFFER_BYTES
        self._most_filled = declared_size if is_declared else MAX_BUFFER_BYTES
        self._method = Compression.XPRESS if compression is Compression.NONE else compression
        # Plain files have equal buffers: their size is a grid to come back to after damage.
        self._grid = 0
        if compression is Compression.NONE:
            is_own = first.is_plausible and (not is_declared or self._is_header(first.size))
            self._grid = first.size if is_own else declared_size if is_declared else 0
        self._numbers = {name: array("q") for name in ("offset", "size", "filled", "sequence", "cpu", "first_ticks")}
        self._flags = {name: bytearray() for name in ("is_packed", "has_lost_events", "has_lost_buffers", "is_clamped", "has_ticks")}
        self._zeroed: list[tuple[int, int]] = []
        self._holes = 0
        self._missing_bytes = 0
        self._room = MAX_BUFFER_BYTES + _MOST_SWELLING * source.size

    def run(self) -> BufferIndex:
        if self._grid and (index := grid_index(self._source, self._grid)) is not None:
            return index
        position = 0
        while position + HEADER_BYTES <= self._source.size:
            header = BufferHeader.parse(self._peek(position, HEADER_BYTES))
            stride = self._stride(position, header)
            if stride:
                self._add(position, header, stride)
                position += stride
            else:
                position = self._skip(position, header)
        rest = self._source.size - position
        if rest > 0 and self._peek(position, rest) != bytes(rest):
            self._missing_bytes = HEADER_BYTES - rest
            self._log.add(TRUNCATED_FILE, place=f"byte {position:,}", missing=HEADER_BYTES - rest)
        self._report_zeroed()
        numbers = {name: np.frombuffer(values, np.int64).copy() for name, values in self._numbers.items()}
        flags = {name: np.frombuffer(values, np.bool_).copy() for name, values in self._flags.items()}
        return BufferIndex(
            offset=numbers["offset"],
            size=numbers["size"],
            filled=numbers["filled"],
            sequence=numbers["sequence"],
            cpu=numbers["cpu"],
            is_packed=flags["is_packed"],
            has_lost_events=flags["has_lost_events"],
            has_lost_buffers=flags["has_lost_buffers"],
            is_clamped=flags["is_clamped"],
            first_ticks=numbers["first_ticks"],
            has_ticks=flags["has_ticks"],
            holes=self._holes + len(self._zeroed),
            missing_bytes=self._missing_bytes,
        )

    def _peek(self, position: int, size: int) -> bytes:
        """Bytes of the file, read ahead where buffers are small."""
        start = position - self._piece_at
        if not (start >= 0 and start + size <= len(self._piece)):
            is_near = 0 <= start <= len(self._piece) + 8192
            self._piece = self._source.read_at(position, max(size, _READ_AHEAD if is_near and self._piece else _PEEK))
            self._piece_at, start = position, 0
        return self._piece[start : start + size]

    def _is_header(self, position: int) -> bool:
        """Whether a buffer may begin here, or the file ends exactly here."""
        if position >= self._source.size:
            return position == self._source.size
        header = self._peek(position, HEADER_BYTES)
        return len(header) == HEADER_BYTES and BufferHeader.parse(header).is_plausible

    def _stride(self, position: int, header: BufferHeader) -> int:
        """Bytes to the next buffer; 0 where no buffer begins at this place."""
        following = position + header.size
        if self._grid:
            if header.size == self._grid:
                return header.size
            is_own = header.is_plausible and self._is_header(following) and not self._is_header(position + self._grid)
            if is_own or header.is_plausible or self._is_usable_but_for_size(header):
                stride = header.size if is_own else self._grid
                self._damaged(position, f"buffer size {header.size:,}, {stride:,} was used where {self._grid:,} is usual")
                return stride
            return 0
        if not header.is_plausible:
            return 0
        if self._is_header(following):
            return header.size
        # The size, or the header that follows, is damaged: a nearer header says which.
        found = self._search(position + HEADER_BYTES, min(following, self._source.size))
        if found is not None:
            self._damaged(position, f"buffer size {header.size:,}, but the next buffer begins after {found - position:,} bytes")
            return found - position
        return header.size

    def _is_usable_but_for_size(self, header: BufferHeader) -> bool:
        is_filled = HEADER_BYTES <= header.filled <= self._grid
        return header.type <= LAST_TYPE and not header.flags & ~KNOWN_FLAGS and is_filled

    def _add(self, position: int, header: BufferHeader, stride: int) -> None:
        """Index one buffer; judge where its records end."""
        size = min(stride, self._source.size - position)
        if size < stride:
            self._missing_bytes = stride - size
            self._log.add(TRUNCATED_FILE, place=self._place(position), missing=stride - size)
        is_packed = header.is_compressed
        if is_packed and self._compression is Compression.NONE and header.filled <= header.size:
            self._damaged(position, "the flag of a compressed buffer in a file that is not compressed")
            is_packed = False
        most = self._most_filled if is_packed else size
        filled, is_clamped = header.filled, size < stride
        if header.type > LAST_TYPE or header.flags & ~KNOWN_FLAGS:
            self._damaged(position, f"type {header.type} and flags 0x{header.flags:04x}")
        if header.type == TYPE_EMPTY_MARKER and not HEADER_BYTES <= filled <= most:
            filled, is_clamped = HEADER_BYTES, True
        elif filled > most:
            if size == stride:
                self._damaged(position, f"filled size {filled:,} exceeds the buffer size {most:,}")
            filled, is_clamped = most, True
        elif filled < HEADER_BYTES:
            # A buffer that was still being filled, or whose header is damaged: S2.3.
            self._damaged(position, f"filled size {filled:,} is below the {HEADER_BYTES} bytes of the header")
            filled = min(value for value in (header.saved_offset, header.current_offset, most) if value >= HEADER_BYTES)
            filled, is_clamped = min(filled, most), True
        if is_packed:
            self._room -= filled
            if self._room < 0:
                place = self._place(position)
                found = f"{place} would expand to {filled:,} bytes, and all to more than {_MOST_SWELLING} times the size of the file"
                self._log.add(DECOMPRESSION_FAILED, place=place, found=found)
                self._holes += 1
                return
        ticks = self._first_ticks(position, size, filled, is_packed=is_packed)
        for name, number in (
            ("offset", position),
            ("size", size),
            ("filled", filled),
            ("sequence", header.sequence),
            ("cpu", header.cpu),
            ("first_ticks", ticks or 0),
        ):
            self._numbers[name].append(number)
        for name, flag in (
            ("is_packed", is_packed),
            ("has_lost_events", header.flags & FLAG_EVENTS_LOST),
            ("has_lost_buffers", header.flags & FLAG_BUFFER_LOST),
            ("is_clamped", is_clamped),
            ("has_ticks", ticks is not None and filled > HEADER_BYTES),
        ):
            self._flags[name].append(bool(flag))

    def _first_ticks(self, position: int, size: int, filled: int, *, is_packed: bool) -> int | None:
        """Time stamp of a buffer's first record, None where it has none."""
        if not is_packed:
            return first_ticks(self._peek(position, min(_PEEK, size))[HEADER_BYTES:])
        if self._method is Compression.XPRESS:
            packed = self._peek(position, min(size, HEADER_BYTES + _PACKED_PEEK))[HEADER_BYTES:]
            return first_ticks(xpress_start(packed, FIRST_RECORD_BYTES))
        packed = self._peek(position, size)[HEADER_BYTES:]
        if self._method is Compression.LZNT1:  # a row of chunks, each with its size
            packed = packed[: (int.from_bytes(packed[:2], "little") & 0xFFF) + 3]
        start = expand(packed, FIRST_RECORD_BYTES, self._method) or expand(packed, filled - HEADER_BYTES, self._method)
        return first_ticks(start[:FIRST_RECORD_BYTES])

    def _skip(self, position: int, header: BufferHeader) -> int:
        """Name what stands where a buffer should begin, and find the next place to look at."""
        end = self._source.size
        if self._grid:
            end = min((position // self._grid + 1) * self._grid, end)
        else:
            found = self._search(position + 1, end)
            end = found if found is not None else end
        if self._is_zero(position, end):
            self._zeroed.append((position, end))
        else:
            self._holes += 1
            self._damaged(position, f"buffer size {header.size:,}, type {header.type}, flags 0x{header.flags:04x}")
        return end

    def _is_zero(self, start: int, end: int) -> bool:
        """Whether a stretch of the file holds zeros only; read in pieces."""
        for at in range(start, end, _SEARCH_MOST):
            piece = self._source.read_at(at, min(_SEARCH_MOST, end - at))
            if piece != bytes(len(piece)):
                return False
        return True

    def _report_zeroed(self) -> None:
        """Name the zeroed buffers, save those at the end: there they are the rest of a preallocated file."""
        end = self._source.size
        while self._zeroed and self._zeroed[-1][1] == end:
            end = self._zeroed.pop()[0]
        for start, _ in self._zeroed:
            self._log.add(ZEROED_BUFFER, place=f"byte {start:,}")

    def _search(self, start: int, end: int) -> int | None:
        """The first byte from `start` on, before `end`, where a buffer header of a compressed file begins.

        A candidate must be followed by another header or the end of the file. The pieces read grow, so that a near header is cheap
        and a far one costs little more than reading up to it.
        """
        piece_bytes = _SEARCH_START
        while start + HEADER_BYTES <= end:
            piece = np.frombuffer(self._source.read_at(start, piece_bytes + HEADER_BYTES), np.uint8)
            count = min(piece.size - HEADER_BYTES + 1, end - start)
            if count <= 0:
                return None
            for at, size in _header_candidates(piece, count):
                if self._is_header(start + at + size):
                    return start + at
            start += count
            piece_bytes = min(2 * piece_bytes, _SEARCH_MOST)
        return None

    def _damaged(self, position: int, found: str) -> None:
        self._log.add(DAMAGED_BUFFER, place=self._place(position), found=f"{self._place(position)} has {found}")

    def _place(self, position: int) -> str:
        return f"buffer {len(self._numbers['offset']):,} at byte {position:,}"


def _header_candidates(piece: NDArray[np.uint8], count: int) -> list[tuple[int, int]]:
    """Places among the first `count` of `piece` that look like a buffer header, and the size of the buffer.

    Where the piece reaches as far as the header that would follow, that one must look like a header too.
    """
    places = piece.size - HEADER_BYTES + 1
    size = np.zeros(places, np.uint32)
    filled = np.zeros(places, np.uint32)
    references = np.zeros(places, np.bool_)
    for byte in range(4):
        size |= piece[byte : byte + places].astype(np.uint32) << np.uint32(8 * byte)
        filled |= piece[0x30 + byte : 0x30 + byte + places].astype(np.uint32) << np.uint32(8 * byte)
        references |= piece[0x0C + byte : 0x0C + byte + places] != 0
    looks = (size >= HEADER_BYTES) & (size <= MAX_BUFFER_BYTES)
    looks &= (piece[0x34 : 0x34 + places] <= KNOWN_FLAGS) & (piece[0x35 : 0x35 + places] == 0)
    looks &= (piece[0x36 : 0x36 + places] <= LAST_TYPE) & (piece[0x37 : 0x37 + places] == 0)
    at = np.flatnonzero((looks & ~references & (filled >= HEADER_BYTES))[:count])
    following = at + size[at]
    is_inside = following < places
    at = at[~is_inside | looks[np.where(is_inside, following, 0)]]
    return list(zip(at.tolist(), size[at].tolist(), strict=True))
