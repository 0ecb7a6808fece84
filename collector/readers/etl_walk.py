"""Where each record of some buffers starts, and its time stamp.

All layouts are those of etl-format S4. Records start at multiples of 8, so a header is read as 64-bit words.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collector.raw import HeaderKind, Int64s, UInt8s

__all__ = [
    "COMPACT",
    "DATA_BLOCK",
    "EVENT",
    "FULL",
    "HEADER_SIZES",
    "INSTANCE",
    "OPAQUE_HEADER_SIZE",
    "PAD_BYTES",
    "PERFINFO",
    "SYSTEM",
    "MessageLayout",
    "Walk",
    "first_ticks",
    "gather",
    "message_layout",
    "record_sizes",
    "record_ticks",
    "walk",
]

Bools = NDArray[np.bool_]

DATA_BLOCK = 0xB0
"""Our kind number for records with the flags of a "ulong32 time" data block, whose layout nobody documents."""

PAD_BYTES = 96
"""Zero bytes wanted behind the last record, so that reading a header field never leaves the array."""

_FLAGS_EVENT = 0xC0
_FLAGS_MESSAGE = 0x90
_NEVER = 1 << 17  # more than any 16-bit size

SYSTEM = (HeaderKind.SYSTEM32, HeaderKind.SYSTEM64)
COMPACT = (HeaderKind.COMPACT32, HeaderKind.COMPACT64)
PERFINFO = (HeaderKind.PERFINFO32, HeaderKind.PERFINFO64)
FULL = (HeaderKind.FULL32, HeaderKind.FULL64)
INSTANCE = (HeaderKind.INSTANCE32, HeaderKind.INSTANCE64)
EVENT = (HeaderKind.EVENT32, HeaderKind.EVENT64)

HEADER_SIZES = {
    **dict.fromkeys(SYSTEM, 32),
    **dict.fromkeys(COMPACT, 24),
    **dict.fromkeys(PERFINFO, 16),
    **dict.fromkeys(FULL, 48),
    **dict.fromkeys(INSTANCE, 72),
    **dict.fromkeys(EVENT, 80),
}
OPAQUE_HEADER_SIZE = 8

# Tables by the upper half of a record's first dword: type byte, then flags byte.
_MIN_SIZE = np.full(1 << 16, _NEVER, np.int64)
"""Smallest size of a record, _NEVER where the bytes are no record."""
_SIZE_AT = np.zeros(1 << 16, np.int64)
"""Where the size stands, in 16-bit halves from the start of the record."""
_TIME_WORD = np.full(1 << 16, -1, np.int64)
"""64-bit word of the header that holds the time stamp, -1 where the kind has none or it moves."""

for _kind in range(256):
    _MIN_SIZE[_FLAGS_EVENT << 8 | _kind] = OPAQUE_HEADER_SIZE
    _MIN_SIZE[_FLAGS_MESSAGE << 8 | _kind] = 8
    _MIN_SIZE[DATA_BLOCK << 8 | _kind] = OPAQUE_HEADER_SIZE
for _kind in (*SYSTEM, *COMPACT, *PERFINFO):
    _SIZE_AT[_FLAGS_EVENT << 8 | _kind] = 2
for _kind, _bytes in HEADER_SIZES.items():
    _MIN_SIZE[_FLAGS_EVENT << 8 | _kind] = _bytes
    _TIME_WORD[_FLAGS_EVENT << 8 | _kind] = 1 if _kind in PERFINFO else 2

# Lists are quicker than arrays in a plain loop.
_MIN_SIZES: list[int] = _MIN_SIZE.tolist()
_SIZE_SHIFTS: list[int] = (16 * _SIZE_AT).tolist()

_STEP = ((np.arange(1 << 16) + 7) >> 3) << 2
"""16-bit halves to the next record, by size."""

# Below this many buffers one vector step costs more than a plain loop over their records (measured: a step takes 15 us for 64
# buffers and 27 us for 500, a plain record 0.3 us).
_LOCKSTEP_BUFFERS = 48


@dataclass(frozen=True, slots=True)
class Walk:
    """Where the records of some buffers are.

    `positions` int64 (n,), ascending: start of each record; `stops` int64 (buffers,): where the walk of each buffer ended, which is
    its end of data unless bytes there are no record.
    """

    positions: Int64s
    stops: Int64s


def walk(data: UInt8s, starts: Int64s, ends: Int64s) -> Walk:
    """Find the records of many buffers, all cursors moving in lockstep.

    Args:
        data: uint8, whose size is a multiple of 8; expanded buffers.
        starts, ends: int64 (buffers,); first record and end of data of each buffer in `data`; starts are multiples of 8.
    """
    # Cursors count 16-bit halves: kind and size of a record can then be taken by one index each.
    halves = data.view(np.uint16)
    stops = starts.copy()
    active = np.flatnonzero(starts + 8 <= ends)
    cursor, end = starts[active] >> 1, ((ends[active] + 7) & ~7) >> 1
    steps: list[Int64s] = []
    while active.size >= _LOCKSTEP_BUFFERS:
        code = halves[cursor + 1]
        size = halves[cursor + _SIZE_AT[code]]
        following = cursor + _STEP[size]
        is_good = size >= _MIN_SIZE[code]
        is_good &= following <= end
        if np.count_nonzero(is_good) == is_good.size:
            steps.append(cursor)
            goes_on = following < end
            cursor = following
        else:
            steps.append(cursor[is_good])
            cursor = np.where(is_good, following, cursor)
            goes_on = is_good & (cursor < end)
        if np.count_nonzero(goes_on) != goes_on.size:
            stops[active] = cursor << 1
            active, cursor, end = active[goes_on], cursor[goes_on], end[goes_on]
    is_record = np.zeros((data.size >> 3) + 1, np.bool_)
    if steps:
        is_record[np.concatenate(steps) >> 2] = True
    if active.size:
        words = data.data.cast("B").cast("Q")
        for buffer, first, last in zip(active.tolist(), (cursor << 1).tolist(), (end << 1).tolist(), strict=True):
            found, stops[buffer] = _walk_one(words, first, last)
            is_record[found] = True
    return _without_cut_ones(data, Walk(np.flatnonzero(is_record) << 3, stops), ends)


def _without_cut_ones(data: UInt8s, found: Walk, ends: Int64s) -> Walk:
    """Drop a last record that fits into its buffer only when the end of data is rounded up to a multiple of 8."""
    cut = np.flatnonzero(found.stops > ends)
    if not cut.size:
        return found
    is_kept = np.ones(found.positions.size, np.bool_)
    last = np.searchsorted(found.positions, found.stops[cut]) - 1
    at = found.positions[last]
    is_beyond = at + record_sizes(data, at) > ends[cut]
    is_kept[last[is_beyond]] = False
    found.stops[cut[is_beyond]] = at[is_beyond]
    return Walk(found.positions[is_kept], found.stops)


def record_sizes(data: UInt8s, positions: Int64s) -> Int64s:
    """Bytes of each record, header included and not rounded; int64 (n,)."""
    halves = data.view(np.uint16)
    cursor = positions >> 1
    sizes: Int64s = halves[cursor + _SIZE_AT[halves[cursor + 1]]].astype(np.int64)
    return sizes


def _walk_one(words: memoryview, position: int, end: int) -> tuple[list[int], int]:
    """Record starts of one buffer, in 64-bit words, and where the walk stopped; a plain loop, 0.2 us a record."""
    found = []
    while position + 8 <= end:
        word = words[position >> 3]
        code = (word >> 16) & 0xFFFF
        size = (word >> _SIZE_SHIFTS[code]) & 0xFFFF
        if size < _MIN_SIZES[code] or position + size > end:
            break
        found.append(position >> 3)
        position += (size + 7) & ~7
    return found, position


def first_ticks(record: bytes) -> int | None:
    """Time stamp of one record from its first 40 bytes; None where it has none, or where these bytes are no record."""
    if len(record) < 8:
        return None
    word = int.from_bytes(record[:8], "little")
    code = (word >> 16) & 0xFFFF
    size = (word >> _SIZE_SHIFTS[code]) & 0xFFFF
    if size < _MIN_SIZES[code]:
        return None
    at = 8 * int(_TIME_WORD[code])
    if code >> 8 == _FLAGS_MESSAGE:
        at = int(message_layout(np.array([word >> 48])).time[0])
    if at < 0 or at + 8 > min(size, len(record)):
        return None
    return int.from_bytes(record[at : at + 8], "little", signed=True)


@dataclass(frozen=True, slots=True)
class MessageLayout:
    """Where the optional parts of message headers stand, int64 (n,), bytes from the start of the record; -1 where absent."""

    guid: Int64s
    time: Int64s
    ids: Int64s
    payload: Int64s


def message_layout(options: Int64s) -> MessageLayout:
    """Offsets of the parts that each message's option bits announce (etl-format S4.7)."""
    at = np.full(options.shape, 8, np.int64)

    def take(is_there: Bools, size: int) -> Int64s:
        nonlocal at
        start = np.where(is_there, at, -1)
        at = at + np.where(is_there, size, 0)
        return start

    take((options & 0x01) != 0, 4)
    has_guid = (options & 0x02) != 0
    guid = take(has_guid, 16)
    take(((options & 0x04) != 0) & ~has_guid, 4)
    time = take((options & 0x18) != 0, 8)
    ids = take((options & 0x20) != 0, 8)
    return MessageLayout(guid, time, ids, at)


def record_ticks(data: UInt8s, positions: Int64s) -> tuple[Int64s, Bools]:
    """Time stamps of records, and which records have one; int64 (n,), bool (n,). Untimed rows hold 0.

    Args:
        data: uint8 with PAD_BYTES to spare behind the last record.
        positions: int64 (n,), as `walk` gives them.
    """
    words = data.view(np.int64)
    cursor = positions >> 3
    first = words[cursor]
    code = (first >> 16) & 0xFFFF
    time_word = _TIME_WORD[code]
    has_time = time_word >= 0
    ticks = words[cursor + np.maximum(time_word, 0)]
    if not has_time.all():
        ticks[~has_time] = 0
        rows = np.flatnonzero((code >> 8) == _FLAGS_MESSAGE)
        time = message_layout((first[rows] >> 48) & 0xFFFF).time
        timed = (time >= 0) & (time + 8 <= (first[rows] & 0xFFFF))
        rows, time = rows[timed], time[timed]
        ticks[rows] = gather(data, positions[rows] + time, 8).view(np.int64).reshape(-1)
        has_time[rows] = True
    return ticks, has_time


def gather(data: UInt8s, at: Int64s, size: int) -> UInt8s:
    """`size` bytes from each offset, uint8 (n, size), contiguous."""
    return np.ascontiguousarray(data[at[:, None] + np.arange(size)])
