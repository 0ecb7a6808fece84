"""Where each record of some buffers starts, and its time stamp.

All layouts are those of etl-format S4. Records start at multiples of 8, so a header is read as 64-bit words.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collector.raw import HeaderKind, Int64s, UInt8s, UInt64s

__all__ = [
    "COMPACT",
    "DATA_BLOCK",
    "EVENT",
    "FIRST_RECORD_BYTES",
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
    "first_ticks_of",
    "gather",
    "is_uniform",
    "message_layout",
    "record_codes",
    "record_sizes",
    "record_ticks",
    "walk",
]

Bools = NDArray[np.bool_]

DATA_BLOCK = 0xB0
"""Our kind number for records with the flags of a "ulong32 time" data block, whose layout nobody documents."""

PAD_BYTES = 96
"""Zero bytes wanted behind the last record, so that reading a header field never leaves the array."""

FIRST_RECORD_BYTES = 40
"""The longest way to a time stamp is that of a message with all options."""

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

_SHIFT = (16 * _SIZE_AT).astype(np.uint64)

_FIRST_SCAN = (_FLAGS_EVENT,)
_ALL_FLAGS = (_FLAGS_EVENT, _FLAGS_MESSAGE, DATA_BLOCK)
_ROUNDS = 6  # of dropping what nothing leads to; payloads that hold copies of records may need more
_TO_CODE = np.uint64(16)
_LOW_16 = np.uint64(0xFFFF)


@dataclass(frozen=True, slots=True)
class Walk:
    """Where the records of some buffers are.

    `positions` int64 (n,), ascending: start of each record; `first` uint64 (n,): its first 64-bit word; `sizes` int64 (n,): its bytes,
    header included and not rounded; `stops` int64 (buffers,): where the walk of each buffer ended, which is its end of data unless bytes
    there are no record.
    """

    positions: Int64s
    first: UInt64s
    sizes: Int64s
    stops: Int64s


def walk(data: UInt8s, starts: Int64s, ends: Int64s) -> Walk:
    """Find the records of some buffers.

    Where a record may begin shows in one byte, its flags. All places that have such a byte are looked at together; what no record of the
    buffer leads to is dropped, and what is left is what going from record to record would find. That costs some 30 ns a record, whatever
    the size of the buffers.

    Args:
        data: uint8, whose size is a multiple of 8; expanded buffers.
        starts, ends: int64 (buffers,), ascending; first record and end of data of each buffer in `data`; starts are multiples of 8.
    """
    found = _Candidates(data, starts, ends, _FIRST_SCAN)
    found.keep_linked()
    if found.may_go_on_with(_ALL_FLAGS):
        found = _Candidates(data, starts, ends, _ALL_FLAGS)
        found.keep_linked()
    return Walk(found.at << 3, found.first, found.sizes, found.stops())


class _Candidates:
    """Places in some buffers where the bytes of a record may begin; `at` counts 64-bit words, as all places here do."""

    def __init__(self, data: UInt8s, starts: Int64s, ends: Int64s, flags: tuple[int, ...]) -> None:
        self._words = data.view(np.uint64)
        self._flags = data[3::8]
        self._starts, self._ends = starts, ends
        self._mask = self._flags == flags[0]
        for other in flags[1:]:
            self._mask |= self._flags == other
        at = np.flatnonzero(self._mask)
        edges = np.searchsorted(at, np.append(starts >> 3, self._words.size))
        at = at[edges[0] : edges[-1]]
        end = np.repeat(ends, np.diff(edges))
        first = self._words.take(at)
        code = record_codes(first)
        size = ((first >> _SHIFT.take(code)) & _LOW_16).view(np.int64)
        is_record = (size >= _MIN_SIZE.take(code)) & ((at << 3) + size <= end)
        # What is no record leads nowhere: to a place behind all others.
        following = np.where(is_record, at + ((size + 7) >> 3), self._words.size)
        self.at, self.first, self.sizes, self._following = at, first, size, following

    def keep_linked(self) -> None:
        """Keep the records: those at the start of a buffer, and those where another record ends."""
        start, nowhere = self._starts >> 3, self._words.size
        for _ in range(_ROUNDS):
            is_linked = np.zeros(nowhere + 1, np.bool_)
            is_linked[self._following] = True
            is_linked[start] = True
            keep = is_linked.take(self.at)
            keep &= self._following != nowhere
            rows = np.flatnonzero(keep)
            if rows.size == keep.size:
                return
            led_to = self._following[~keep]
            self._choose(rows)
            # Only what was dropped can have led to a place that nothing else leads to.
            if not self._mask[led_to[led_to < nowhere]].any():
                return
        self._keep_walked()

    def _choose(self, rows: Int64s) -> None:
        self.at, self.first = self.at.take(rows), self.first.take(rows)
        self.sizes, self._following = self.sizes.take(rows), self._following.take(rows)

    def _keep_walked(self) -> None:
        """The same by going from one to the next; a plain loop, 0.2 us a record."""
        row_of = {place: row for row, place in enumerate(self.at.tolist())}
        following = self._following.tolist()
        rows = []
        for place, end in zip((self._starts >> 3).tolist(), ((self._ends + 7) >> 3).tolist(), strict=True):
            while place < end and (row := row_of.get(place)) is not None:
                rows.append(row)
                place = following[row]
        self._choose(np.array(rows, np.int64))

    def stops(self) -> Int64s:
        """Where the last record of each buffer ends, in bytes; its start where it has none."""
        last = np.searchsorted(self.at, (self._ends + 7) >> 3) - 1
        has_any = last >= np.searchsorted(self.at, self._starts >> 3)
        stops = self._starts.copy()
        stops[has_any] = self._following[last[has_any]] << 3
        return stops

    def may_go_on_with(self, flags: tuple[int, ...]) -> bool:
        """Whether a buffer ends early at bytes that have one of these flags."""
        stops = self.stops()
        early = stops[stops + 8 <= self._ends] >> 3
        return bool(early.size) and bool(np.isin(self._flags[early], flags).any())


def record_sizes(data: UInt8s, positions: Int64s) -> Int64s:
    """Bytes of each record, header included and not rounded; int64 (n,)."""
    halves = data.view(np.uint16)
    cursor = positions >> 1
    sizes: Int64s = halves[cursor + _SIZE_AT[halves[cursor + 1]]].astype(np.int64)
    return sizes


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


def first_ticks_of(records: UInt8s) -> tuple[Int64s, Bools]:
    """The same for many records, uint8 (n, 40): time stamps, int64 (n,), 0 where there is none; and where there is one, bool (n,)."""
    first = records.view(np.uint64)[:, 0]
    code = record_codes(first)
    size = ((first >> _SHIFT.take(code)) & _LOW_16).view(np.int64)
    at = _TIME_WORD.take(code) * 8
    messages = np.flatnonzero((code >> 8) == _FLAGS_MESSAGE)
    at[messages] = message_layout((first[messages] >> np.uint64(48)).view(np.int64)).time
    has_time = (size >= _MIN_SIZE.take(code)) & (at >= 0) & (at + 8 <= np.minimum(size, FIRST_RECORD_BYTES))
    rows = np.flatnonzero(has_time)
    ticks = np.zeros(code.size, np.int64)
    ticks[rows] = gather(records.reshape(-1), rows * FIRST_RECORD_BYTES + at[rows], 8).view(np.int64).reshape(-1)
    return ticks, has_time


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


def record_codes(first: UInt64s) -> Int64s:
    """The type and flags bytes of records, which tables go by, from the first 64-bit word of each."""
    codes: Int64s = ((first >> _TO_CODE) & _LOW_16).view(np.int64)
    return codes


def is_uniform(codes: Int64s) -> bool:
    """Whether all records, of which there is one at least, are of one kind: most pieces of most traces are."""
    return bool((codes == codes[0]).all())


def record_ticks(data: UInt8s, found: Walk) -> tuple[Int64s, Bools]:
    """Time stamps of records, and which records have one; int64 (n,), bool (n,). Untimed rows hold 0.

    Args:
        data: uint8 with PAD_BYTES to spare behind the last record.
    """
    words = data.view(np.int64)
    code = record_codes(found.first)
    time_word = _TIME_WORD.take(code[:1]) if code.size and is_uniform(code) else _TIME_WORD.take(code)
    ticks = words.take((found.positions >> 3) + time_word)  # an untimed one takes the word before it, or the last of all
    has_time = np.broadcast_to(time_word >= 0, code.shape)
    if not has_time.all():
        has_time = has_time.copy()
        ticks[~has_time] = 0
        rows = np.flatnonzero((code >> 8) == _FLAGS_MESSAGE)
        time = message_layout((found.first[rows] >> np.uint64(48)).view(np.int64)).time
        timed = (time >= 0) & (time + 8 <= found.sizes[rows])
        rows, time = rows[timed], time[timed]
        ticks[rows] = gather(data, found.positions[rows] + time, 8).view(np.int64).reshape(-1)
        has_time[rows] = True
    return ticks, has_time


def gather(data: UInt8s, at: Int64s, size: int) -> UInt8s:
    """`size` bytes from each offset, uint8 (n, size), contiguous."""
    return np.ascontiguousarray(data[at[:, None] + np.arange(size)])
