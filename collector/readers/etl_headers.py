"""Record headers: where each record of a window starts, and its header fields as columns.

All layouts are those of etl-format S4. Records start at multiples of 8, so a header is read as 64-bit words.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collector.raw import HeaderKind, Int32s, Int64s, UInt8s, UInt64s

__all__ = [
    "DATA_BLOCK",
    "PAD_BYTES",
    "HeaderColumns",
    "MessageLayout",
    "Walk",
    "first_ticks",
    "header_columns",
    "message_layout",
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

_SYSTEM = (HeaderKind.SYSTEM32, HeaderKind.SYSTEM64)
_COMPACT = (HeaderKind.COMPACT32, HeaderKind.COMPACT64)
_PERFINFO = (HeaderKind.PERFINFO32, HeaderKind.PERFINFO64)
_FULL = (HeaderKind.FULL32, HeaderKind.FULL64)
_INSTANCE = (HeaderKind.INSTANCE32, HeaderKind.INSTANCE64)
_EVENT = (HeaderKind.EVENT32, HeaderKind.EVENT64)

_HEADER_BYTES = {
    **dict.fromkeys(_SYSTEM, 32),
    **dict.fromkeys(_COMPACT, 24),
    **dict.fromkeys(_PERFINFO, 16),
    **dict.fromkeys(_FULL, 48),
    **dict.fromkeys(_INSTANCE, 72),
    **dict.fromkeys(_EVENT, 80),
}
_POINTER_4 = (
    HeaderKind.SYSTEM32,
    HeaderKind.COMPACT32,
    HeaderKind.FULL32,
    HeaderKind.INSTANCE32,
    HeaderKind.PERFINFO32,
    HeaderKind.EVENT32,
)
_OPAQUE_HEADER_BYTES = 8

# Tables by the upper half of a record's first dword: type byte, then flags byte.
_MIN_SIZE = np.full(1 << 16, _NEVER, np.int64)
"""Smallest size of a record, _NEVER where the bytes are no record."""
_SIZE_SHIFT = np.zeros(1 << 16, np.int64)
"""Bits to shift the first 64-bit word by to see the size."""
_TIME_WORD = np.full(1 << 16, -1, np.int64)
"""64-bit word of the header that holds the time stamp, -1 where the kind has none or it moves."""

for _kind in range(256):
    _MIN_SIZE[_FLAGS_EVENT << 8 | _kind] = _HEADER_BYTES.get(_kind, _OPAQUE_HEADER_BYTES)
    _MIN_SIZE[_FLAGS_MESSAGE << 8 | _kind] = 8
    _MIN_SIZE[DATA_BLOCK << 8 | _kind] = _OPAQUE_HEADER_BYTES
for _kind in (*_SYSTEM, *_COMPACT, *_PERFINFO):
    _SIZE_SHIFT[_FLAGS_EVENT << 8 | _kind] = 32
for _kind in _HEADER_BYTES:
    _TIME_WORD[_FLAGS_EVENT << 8 | _kind] = 1 if _kind in _PERFINFO else 2

# Lists are quicker than arrays in a plain loop.
_MIN_SIZES: list[int] = _MIN_SIZE.tolist()
_SIZE_SHIFTS: list[int] = _SIZE_SHIFT.tolist()

# Below this many buffers one vector step costs more than a plain loop over their records (measured: a step takes about 14 us,
# a plain record 0.2 us).
_LOCKSTEP_BUFFERS = 64


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
    words = data.view(np.int64)
    is_record = np.zeros(words.size + 1, np.bool_)
    cursors = starts >> 3
    stops = starts.copy()
    active = np.flatnonzero(cursors * 8 + 8 <= ends)
    cursor, end = cursors[active], ends[active]
    while active.size >= _LOCKSTEP_BUFFERS:
        word = words[cursor]
        code = (word >> 16) & 0xFFFF
        size = (word >> _SIZE_SHIFT[code]) & 0xFFFF
        is_good = (size >= _MIN_SIZE[code]) & ((cursor << 3) + size <= end)
        if is_good.all():
            is_record[cursor] = True
            cursor = cursor + ((size + 7) >> 3)
        else:
            is_record[cursor[is_good]] = True
            cursor = cursor + np.where(is_good, (size + 7) >> 3, 0)
        goes_on = is_good & ((cursor << 3) + 8 <= end)
        if not goes_on.all():
            stops[active] = cursor << 3
            active, cursor, end = active[goes_on], cursor[goes_on], end[goes_on]
    if active.size:
        plain = memoryview(data).cast("Q")
        for buffer, first, last in zip(active.tolist(), (cursor << 3).tolist(), end.tolist(), strict=True):
            found, stops[buffer] = _walk_one(plain, first, last)
            is_record[found] = True
    return Walk(np.flatnonzero(is_record) << 3, stops)


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
        ticks[rows] = _gather(data, positions[rows] + time, 8).view(np.int64).reshape(-1)
        has_time[rows] = True
    return ticks, has_time


@dataclass(frozen=True, slots=True)
class HeaderColumns:
    """Header fields of n records; see `RawEvents` for the meaning of the columns that it names too."""

    kind: UInt8s
    pointer_size: UInt8s
    pid: Int64s
    tid: Int64s
    event_id: Int32s
    opcode: UInt8s
    version: Int32s
    level: UInt8s
    keyword: UInt64s
    activity: UInt64s
    payload: Int64s
    payload_size: Int32s
    extended: Int64s
    group: Int32s
    """Hook group of system headers, -1 for records that name a GUID, -2 for those that name neither."""
    guid_low: UInt64s
    """First and second half of the GUID, 0 where `group` is not -1."""
    guid_high: UInt64s
    is_damaged: Bools
    """The header's own parts do not fit into the record: it has no user data."""


def header_columns(data: UInt8s, positions: Int64s, *, file_pointer_size: int) -> HeaderColumns:
    """All header fields of the records of a window.

    Args:
        data: uint8 with PAD_BYTES to spare behind the last record.
        positions: int64 (n,), multiples of 8, as `walk` gives them.
        file_pointer_size: of records whose kind does not say.
    """
    n = positions.size
    words = data.view(np.uint64)
    cursor = positions >> 3
    first = words[cursor]
    second = words[cursor + 1]
    flags = (first >> 24) & 0xFF
    raw_kind = (first >> 16) & 0xFF
    is_event_kind = flags == _FLAGS_EVENT
    kind = np.where(is_event_kind, raw_kind, flags).astype(np.uint8)
    columns = _Columns(n, kind, positions, _pointer_sizes(kind, file_pointer_size))

    is_classic = np.isin(kind, (*_SYSTEM, *_COMPACT, *_PERFINFO))
    size = np.where(is_classic, first >> 32, first).astype(np.int64) & 0xFFFF

    has_ids = np.isin(kind, (*_SYSTEM, *_COMPACT, *_FULL, *_INSTANCE, *_EVENT))
    columns.set_ids(has_ids, second)

    if (rows := np.flatnonzero(is_classic)).size:
        _system(columns, rows, first[rows])
    if (rows := np.flatnonzero(np.isin(kind, (*_FULL, *_INSTANCE)))).size:
        _full(columns, rows, first[rows], words, cursor[rows])
    if (rows := np.flatnonzero(np.isin(kind, _EVENT))).size:
        _event(columns, rows, first[rows], words, cursor[rows], size[rows])
    if (rows := np.flatnonzero(kind == HeaderKind.MESSAGE)).size:
        _message(columns, rows, first[rows], data, size[rows])
    return columns.finished(positions + size)


class _Columns:
    """The columns while they are filled, one header family after another; what no family fills stays at "none"."""

    def __init__(self, n: int, kind: UInt8s, positions: Int64s, pointer_size: UInt8s) -> None:
        self.kind = kind
        self.positions = positions
        self.pointer_size = pointer_size
        self.pid = np.full(n, -1, np.int64)
        self.tid = np.full(n, -1, np.int64)
        self.event_id = np.zeros(n, np.int32)
        self.opcode = np.zeros(n, np.uint8)
        self.version = np.zeros(n, np.int32)
        self.level = np.zeros(n, np.uint8)
        self.keyword = np.zeros(n, np.uint64)
        self.activity = np.zeros(n, np.uint64)
        self.payload = positions + _OPAQUE_HEADER_BYTES
        self.extended = np.full(n, -1, np.int64)
        self.group = np.full(n, -2, np.int32)
        self.guid_low = np.zeros(n, np.uint64)
        self.guid_high = np.zeros(n, np.uint64)
        self.is_damaged = np.zeros(n, np.bool_)

    def set_ids(self, rows: Bools | Int64s, word: UInt64s) -> None:
        """Thread and process id from the 64-bit word that holds both; 0xFFFFFFFF is "none"."""
        taken = word[rows] if rows.dtype == np.bool_ else word
        tid = (taken & 0xFFFFFFFF).astype(np.int64)
        pid = (taken >> 32).astype(np.int64)
        self.tid[rows] = np.where(tid == 0xFFFFFFFF, -1, tid)
        self.pid[rows] = np.where(pid == 0xFFFFFFFF, -1, pid)

    def finished(self, ends: Int64s) -> HeaderColumns:
        """Close the columns; a header that leaves its own record has no user data."""
        overshoots = self.payload > ends
        self.is_damaged |= overshoots
        payload = np.where(self.is_damaged, ends, self.payload)
        self.extended[self.is_damaged] = -1
        return HeaderColumns(
            kind=self.kind,
            pointer_size=self.pointer_size,
            pid=self.pid,
            tid=self.tid,
            event_id=self.event_id,
            opcode=self.opcode,
            version=self.version,
            level=self.level,
            keyword=self.keyword,
            activity=self.activity,
            payload=payload,
            payload_size=(ends - payload).astype(np.int32),
            extended=self.extended,
            group=self.group,
            guid_low=self.guid_low,
            guid_high=self.guid_high,
            is_damaged=self.is_damaged,
        )


def _pointer_sizes(kind: UInt8s, file_pointer_size: int) -> UInt8s:
    table = np.full(256, file_pointer_size, np.uint8)
    table[list(_HEADER_BYTES)] = 8
    table[list(_POINTER_4)] = 4
    return table[kind]


def _header_bytes(kind: UInt8s) -> Int64s:
    table = np.full(256, _OPAQUE_HEADER_BYTES, np.int64)
    table[list(_HEADER_BYTES)] = list(_HEADER_BYTES.values())
    return table[kind]


def _system(columns: _Columns, rows: Int64s, first: UInt64s) -> None:
    """SYSTEM, COMPACT and PERFINFO: identity is the hook; PEBS and PMC words may follow the fixed part (S4.4)."""
    version = (first & 0xFFFF).astype(np.int64)
    extra = ((version >> 15) & 1) + np.where(version & 0x8000, (version >> 8) & 7, 0)
    columns.version[rows] = np.where(version & 0x8000, version & ~0x8700, version)
    columns.opcode[rows] = (first >> 48) & 0xFF
    columns.group[rows] = (first >> 56).astype(np.int32)
    columns.payload[rows] = columns.positions[rows] + _header_bytes(columns.kind[rows]) + 8 * extra


def _full(columns: _Columns, rows: Int64s, first: UInt64s, words: UInt64s, cursor: Int64s) -> None:
    """FULL and INSTANCE: identity is class GUID and opcode."""
    columns.opcode[rows] = (first >> 32) & 0xFF
    columns.level[rows] = (first >> 40) & 0xFF
    columns.version[rows] = (first >> 48).astype(np.int32)
    columns.group[rows] = -1
    columns.guid_low[rows] = words[cursor + 3]
    columns.guid_high[rows] = words[cursor + 4]
    columns.payload[rows] = columns.positions[rows] + _header_bytes(columns.kind[rows])


def _event(columns: _Columns, rows: Int64s, first: UInt64s, words: UInt64s, cursor: Int64s, size: Int64s) -> None:
    """EVENT: identity is provider GUID and event id; extended items stand before the user data when flag bit 0 is set."""
    descriptor = words[cursor + 5]
    columns.event_id[rows] = (descriptor & 0xFFFF).astype(np.int32)
    columns.version[rows] = ((descriptor >> 16) & 0xFF).astype(np.int32)
    columns.level[rows] = (descriptor >> 32) & 0xFF
    columns.opcode[rows] = (descriptor >> 40) & 0xFF
    columns.keyword[rows] = words[cursor + 6]
    columns.activity[rows] = words[cursor + 8]
    columns.group[rows] = -1
    columns.guid_low[rows] = words[cursor + 3]
    columns.guid_high[rows] = words[cursor + 4]
    columns.payload[rows] = columns.positions[rows] + 80
    has_items = ((first >> 32) & 1) == 1
    if has_items.any():
        with_items = rows[has_items]
        start = columns.positions[with_items] + 80
        end, is_good = _item_ends(words, start, columns.positions[with_items] + size[has_items])
        columns.extended[with_items] = start
        columns.payload[with_items] = end
        columns.is_damaged[with_items] = ~is_good


def _item_ends(words: UInt64s, start: Int64s, end: Int64s) -> tuple[Int64s, Bools]:
    """Where the chain of extended items of each record ends, and whether all items lie inside the record (S7).

    One vector step moves over one item of every record; a record has at most as many items as it has words.
    """
    cursor = start.copy()
    is_good = np.ones(start.size, np.bool_)
    active = np.arange(start.size)
    while active.size:
        at = cursor[active]
        fits = at + 8 <= end[active]
        word = np.where(fits, words[np.where(fits, at, 0) >> 3], 0).astype(np.int64)
        size = ((word & 0xFFFF) + 7) & ~7
        fits &= (size >= 8) & (at + size <= end[active]) & (((word >> 48) & 0xFFFF) + 8 <= size)
        is_good[active] = fits
        cursor[active] = at + np.where(fits, size, 0)
        active = active[fits & (((word >> 32) & 1) == 1)]
    return cursor, is_good


def _message(columns: _Columns, rows: Int64s, first: UInt64s, data: UInt8s, size: Int64s) -> None:
    """MESSAGE: identity is the message GUID and number; the parts of the header depend on the options."""
    options = (first >> 48).astype(np.int64)
    layout = message_layout(options)
    columns.event_id[rows] = ((first >> 32) & 0xFFFF).astype(np.int32)
    pointer_size = np.where(options & 0x80, 8, np.where(options & 0x40, 4, columns.pointer_size[rows]))
    columns.pointer_size[rows] = pointer_size.astype(np.uint8)
    columns.payload[rows] = columns.positions[rows] + layout.payload
    fits = layout.payload <= size
    if (some := np.flatnonzero((layout.guid >= 0) & fits)).size:
        guid = _gather(data, columns.positions[rows[some]] + layout.guid[some], 16).view(np.uint64)
        columns.group[rows[some]] = -1
        columns.guid_low[rows[some]] = guid[:, 0]
        columns.guid_high[rows[some]] = guid[:, 1]
    if (some := np.flatnonzero((layout.ids >= 0) & fits)).size:
        ids = _gather(data, columns.positions[rows[some]] + layout.ids[some], 8).view(np.uint64).reshape(-1)
        columns.set_ids(rows[some], ids)


def _gather(data: UInt8s, at: Int64s, size: int) -> UInt8s:
    """`size` bytes from each offset, uint8 (n, size), contiguous."""
    return np.ascontiguousarray(data[at[:, None] + np.arange(size)])
