"""Buffer headers of an ETL file and the expansion of compressed buffers.

Layouts and rules are those of etl-format S2 and S3.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyfwnt
from numpy.typing import NDArray

from collector.raw import Int64s

__all__ = [
    "FLAG_BUFFER_LOST",
    "FLAG_COMPRESSED",
    "FLAG_EVENTS_LOST",
    "FLAG_PROCESSOR_INDEX",
    "HEADER_BYTES",
    "MAX_BUFFER_BYTES",
    "BufferHeader",
    "BufferIndex",
    "Compression",
    "expand",
    "xpress_start",
]

HEADER_BYTES = 72
MAX_BUFFER_BYTES = 16 << 20
"""The largest buffer that a session can ask for: 16 MB."""

Bools = NDArray[np.bool_]

FLAG_EVENTS_LOST = 0x0002
FLAG_BUFFER_LOST = 0x0004
FLAG_PROCESSOR_INDEX = 0x0020
FLAG_COMPRESSED = 0x0040
KNOWN_FLAGS = 0x007F

TYPE_EMPTY_MARKER = 6
LAST_TYPE = 7

_LAYOUT = struct.Struct("<IIIiqqQHHIIHH")


class Compression(IntEnum):
    """Windows' numbers of its compression formats, as the State field of a compressed file's first buffer holds them."""

    NONE = 0
    LZNT1 = 2
    XPRESS = 3
    XPRESS_HUFF = 4


@dataclass(frozen=True, slots=True)
class BufferHeader:
    """WMI_BUFFER_HEADER, the fields that are of use on disk."""

    size: int
    saved_offset: int
    current_offset: int
    time_stamp: int
    sequence: int
    processor: int
    state: int
    filled: int
    """End of the records, counted from the start of the expanded buffer."""
    flags: int
    type: int

    @classmethod
    def parse(cls, header: bytes) -> "BufferHeader":
        """Read the first 72 bytes of a buffer; raises struct.error for fewer."""
        (size, saved, current, _references, time_stamp, sequence, _clock, processor, _logger, state, filled, flags, type_) = (
            _LAYOUT.unpack_from(header)
        )
        return cls(size, saved, current, time_stamp, sequence, processor, state, filled, flags, type_)

    @property
    def cpu(self) -> int:
        """Processor number; without the flag (Windows 7) only the low byte counts, the high one holds the alignment."""
        return self.processor & (0x07FF if self.flags & FLAG_PROCESSOR_INDEX else 0xFF)

    @property
    def is_compressed(self) -> bool:
        return bool(self.flags & FLAG_COMPRESSED)

    @property
    def is_plausible(self) -> bool:
        """Whether these bytes can be a buffer header at all: random bytes pass once in about 10^9 times."""
        return HEADER_BYTES <= self.size <= MAX_BUFFER_BYTES and self.type <= LAST_TYPE and not self.flags & ~KNOWN_FLAGS


@dataclass(frozen=True, slots=True)
class BufferIndex:
    """One row a buffer, in file order; all arrays int64 or bool, shape (buffers,)."""

    offset: Int64s
    """Byte of the file where the buffer starts."""
    size: Int64s
    """Bytes that the buffer takes in the file and that are there."""
    filled: Int64s
    """End of the records in the expanded buffer, at least 72."""
    sequence: Int64s
    cpu: Int64s
    is_packed: Bools
    has_lost_events: Bools
    has_lost_buffers: Bools
    is_clamped: Bools
    """The end of the records is a guess: records may stop before it."""
    first_ticks: Int64s
    """Time stamp of the first record, 0 where `has_ticks` is false."""
    has_ticks: Bools
    holes: int
    """Places where a buffer should be and none can be read."""
    missing_bytes: int
    """Bytes by which the last buffer reaches beyond the end of the file."""

    def __len__(self) -> int:
        return int(self.offset.size)


_EXPANDERS = {
    Compression.LZNT1: pyfwnt.lznt1_decompress,
    Compression.XPRESS: pyfwnt.lzxpress_decompress,
    Compression.XPRESS_HUFF: pyfwnt.lzxpress_huffman_decompress,
}

_MORE_ROOM = 1 << 20


def expand(packed: bytes, size: int, method: Compression) -> bytes:
    """Expand the bytes behind a buffer's header; at most `size` bytes, fewer (down to none) where the packed bytes are damaged."""
    if size <= 0 or not packed:
        return b""
    if method is Compression.NONE:
        return packed[:size]
    for room in (size, size + _MORE_ROOM):  # a match that goes on beyond `size` is an error to pyfwnt
        try:
            return bytes(_EXPANDERS[method](packed, room))[:size]
        except (OSError, ValueError, MemoryError, OverflowError):  # what pyfwnt raises for damaged input
            continue
    return b""


def xpress_start(packed: bytes, size: int) -> bytes:
    """The first `size` bytes that a plain XPRESS stream stands for, or as many as can be told from a piece of it (MS-XCA 2.4).

    pyfwnt wants whole streams: a piece that ends inside a token is an error to it, and so is a match that goes on beyond `size`.
    """
    out = bytearray()
    at, flags, flags_left, half_at = 0, 0, 0, -1
    while len(out) < size:
        if not flags_left:
            flags, flags_left, at = int.from_bytes(packed[at : at + 4], "little"), 32, at + 4
        flags_left -= 1
        if not flags >> flags_left & 1:
            if at >= len(packed):
                break
            out.append(packed[at])
            at += 1
            continue
        token, at = int.from_bytes(packed[at : at + 2], "little"), at + 2
        distance, length = (token >> 3) + 1, token & 7
        if length == 7:
            if half_at < 0:
                half_at, at = at, at + 1
                more = packed[half_at : half_at + 1]
                length += more[0] & 15 if more else 0
            else:
                length, half_at = length + (packed[half_at] >> 4), -1
            # A longer one has further bytes that say so; they are passed over, as no more than `size` is wanted.
            if length == 7 + 15:
                length, at = _longer(packed, at)
        if at > len(packed) or distance > len(out):
            break
        for _ in range(min(length + 3, size - len(out))):
            out.append(out[-distance])
    return bytes(out)


def _longer(packed: bytes, at: int) -> tuple[int, int]:
    """Length, less 3, of a match whose four bits do not say it; and where the stream goes on."""
    for width in (1, 2, 4):
        length, at = int.from_bytes(packed[at : at + width], "little"), at + width
        if width == 1 and length < 255:
            return length + 7 + 15, at
        if width > 1 and (length or width == 4):
            break
    return length, at
