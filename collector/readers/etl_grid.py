"""The index of a sound file of plain, equal buffers: all their headers at once, some 2 us a buffer.

Whatever is odd about a single header is left to `etl_index`, which goes from buffer to buffer and knows damage.
"""

import numpy as np

from collector.readers.etl_buffers import (
    FLAG_BUFFER_LOST,
    FLAG_COMPRESSED,
    FLAG_EVENTS_LOST,
    FLAG_PROCESSOR_INDEX,
    HEADER_BYTES,
    KNOWN_FLAGS,
    LAST_TYPE,
    BufferIndex,
)
from collector.readers.etl_walk import FIRST_RECORD_BYTES, first_ticks_of
from collector.source import Source

__all__ = ["grid_index"]

_PEEK = HEADER_BYTES + FIRST_RECORD_BYTES
_HEADER = np.dtype(
    {
        "names": ["size", "sequence", "processor", "filled", "flags", "type"],
        "formats": ["<u4", "<i8", "<u2", "<u4", "<u2", "<u2"],
        "offsets": [0, 24, 40, 48, 52, 54],
        "itemsize": _PEEK,
    }
)
"""Fields of WMI_BUFFER_HEADER (etl-format S2.1), in what is read of each buffer."""


def grid_index(source: Source, grid: int) -> BufferIndex | None:
    """The index, where the file consists of whole buffers of `grid` bytes without any fault; None otherwise. Raises SourceError."""
    if source.size % grid or grid < _PEEK:
        return None
    count = source.size // grid
    peeked = np.empty((count, _PEEK), np.uint8)
    memory = peeked.reshape(-1).data
    for number in range(count):
        if source.read_into(number * grid, memory[number * _PEEK : (number + 1) * _PEEK]) < _PEEK:
            return None
    header = peeked.view(_HEADER).reshape(-1)
    filled, flags = header["filled"].astype(np.int64), header["flags"]
    is_sound = (header["size"] == grid) & (header["type"] <= LAST_TYPE) & (filled >= HEADER_BYTES) & (filled <= grid)
    is_sound &= (flags & np.uint16(FLAG_COMPRESSED | ~KNOWN_FLAGS & 0xFFFF)) == 0
    if not is_sound.all():
        return None
    ticks, has_ticks = first_ticks_of(np.ascontiguousarray(peeked[:, HEADER_BYTES:]))
    has_index = (flags & FLAG_PROCESSOR_INDEX) != 0
    none = np.zeros(count, np.bool_)
    return BufferIndex(
        offset=np.arange(count, dtype=np.int64) * grid,
        size=np.full(count, grid, np.int64),
        filled=filled,
        sequence=header["sequence"].astype(np.int64),
        cpu=np.where(has_index, header["processor"] & 0x07FF, header["processor"] & 0xFF).astype(np.int64),
        is_packed=none,
        has_lost_events=(flags & FLAG_EVENTS_LOST) != 0,
        has_lost_buffers=(flags & FLAG_BUFFER_LOST) != 0,
        is_clamped=none,
        first_ticks=ticks,
        has_ticks=has_ticks & (filled > HEADER_BYTES),
        holes=0,
        missing_bytes=0,
    )
