"""The header fields of records as columns.

All layouts are those of etl-format S4. Records start at multiples of 8, so a header is read as 64-bit words.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collector.raw import HeaderKind, Int32s, Int64s, UInt8s, UInt64s
from collector.readers.etl_walk import (
    COMPACT,
    EVENT,
    FULL,
    HEADER_SIZES,
    INSTANCE,
    OPAQUE_HEADER_SIZE,
    PERFINFO,
    SYSTEM,
    gather,
    message_layout,
    record_sizes,
)

__all__ = ["HeaderColumns", "header_columns", "item_ends"]

Bools = NDArray[np.bool_]

Rows = Int64s | slice
"""Row numbers, or all rows at once: most windows of a session have one kind of record, and need no indexing then."""

# Families of kinds whose headers are read the same way; 0 for kinds that nobody documents.
_FAMILY = np.zeros(256, np.uint8)
for _number, _kinds in enumerate(((*SYSTEM, *COMPACT, *PERFINFO), (*FULL, *INSTANCE), EVENT, (HeaderKind.MESSAGE,)), start=1):
    _FAMILY[list(_kinds)] = _number
_HAS_IDS = np.zeros(256, np.bool_)
_HAS_IDS[[*SYSTEM, *COMPACT, *FULL, *INSTANCE, *EVENT]] = True

_POINTER_4 = (
    HeaderKind.SYSTEM32,
    HeaderKind.COMPACT32,
    HeaderKind.FULL32,
    HeaderKind.INSTANCE32,
    HeaderKind.PERFINFO32,
    HeaderKind.EVENT32,
)

_HEADER_SIZE = np.full(256, OPAQUE_HEADER_SIZE, np.int64)
_HEADER_SIZE[list(HEADER_SIZES)] = list(HEADER_SIZES.values())


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
    fixed: Int64s
    """Bytes of the header, without extended items; may be more than the record has."""


def header_columns(data: UInt8s, positions: Int64s, *, file_pointer_size: int) -> HeaderColumns:
    """All header fields of the records of a window.

    Args:
        data: uint8 with PAD_BYTES to spare behind the last record.
        positions: int64 (n,), multiples of 8, as `walk` gives them.
        file_pointer_size: of records whose kind does not say.
    """
    words = data.view(np.uint64)
    cursor = positions >> 3
    first = words[cursor]
    size = record_sizes(data, positions)
    code = (first >> 16) & 0xFFFF
    # Messages and data blocks are told by their flags alone; their kind byte means something else.
    kind = np.where(code >> 8 == 0xC0, code, code >> 8).astype(np.uint8)
    family = _FAMILY[kind]
    columns = _Columns(kind, positions, _pointer_sizes(kind, file_pointer_size))
    columns.set_ids(_rows(_HAS_IDS[kind]), words[cursor + 1])
    for number, fill in enumerate((_system, _full, _event, _message), start=1):
        rows = _rows(family == number)
        if not isinstance(rows, slice) and not rows.size:
            continue
        fill(columns, rows, first[rows], cursor[rows], data, size[rows])
    return columns.finished(positions + size)


class _Columns:
    """The columns while they are filled, one header family after another; what no family fills stays at "none"."""

    def __init__(self, kind: UInt8s, positions: Int64s, pointer_size: UInt8s) -> None:
        n = kind.size
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
        self.payload = positions + OPAQUE_HEADER_SIZE
        self.extended = np.full(n, -1, np.int64)
        self.group = np.full(n, -2, np.int32)
        self.guid_low = np.zeros(n, np.uint64)
        self.guid_high = np.zeros(n, np.uint64)
        self.is_damaged = np.zeros(n, np.bool_)
        self.item_bytes = np.zeros(n, np.int64)

    def set_ids(self, rows: Rows, word: UInt64s) -> None:
        """Thread and process id from the 64-bit word that holds both, one for each of all records; 0xFFFFFFFF is "none"."""
        halves = word[rows].view(np.uint32)
        tid, pid = halves[::2].astype(np.int64), halves[1::2].astype(np.int64)
        tid[tid == 0xFFFFFFFF] = -1
        pid[pid == 0xFFFFFFFF] = -1
        self.tid[rows], self.pid[rows] = tid, pid

    def finished(self, ends: Int64s) -> HeaderColumns:
        """Close the columns; a header that leaves its own record has no user data."""
        fixed = self.payload - self.positions
        reached = self.payload + self.item_bytes
        self.is_damaged |= reached > ends
        payload = np.where(self.is_damaged, ends, reached)
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
            fixed=fixed,
        )


def _pointer_sizes(kind: UInt8s, file_pointer_size: int) -> UInt8s:
    table = np.full(256, file_pointer_size, np.uint8)
    table[list(HEADER_SIZES)] = 8
    table[list(_POINTER_4)] = 4
    return table[kind]


def _rows(mask: Bools) -> Rows:
    rows = np.flatnonzero(mask)
    return slice(None) if rows.size == mask.size else rows


def _system(columns: _Columns, rows: Rows, first: UInt64s, cursor: Int64s, data: UInt8s, size: Int64s) -> None:
    """SYSTEM, COMPACT and PERFINFO: identity is the hook; PEBS and PMC words may follow the fixed part (S4.4)."""
    halves = first.view(np.uint16)
    version = halves[::4].astype(np.int32)
    payload = columns.positions[rows] + _HEADER_SIZE[columns.kind[rows]]
    if (version & 0x8000).any():
        has_extra = (version & 0x8000) != 0
        payload += np.where(has_extra, 8 + 8 * ((version >> 8) & 7), 0)
        version = np.where(has_extra, version & ~0x8700, version)
    columns.version[rows] = version
    columns.opcode[rows] = halves[3::4] & 0xFF
    columns.group[rows] = halves[3::4] >> 8
    columns.payload[rows] = payload


def _full(columns: _Columns, rows: Rows, first: UInt64s, cursor: Int64s, data: UInt8s, size: Int64s) -> None:
    """FULL and INSTANCE: identity is class GUID and opcode."""
    words = data.view(np.uint64)
    columns.opcode[rows] = (first >> 32) & 0xFF
    columns.level[rows] = (first >> 40) & 0xFF
    columns.version[rows] = (first >> 48).astype(np.int32)
    columns.group[rows] = -1
    columns.guid_low[rows] = words[cursor + 3]
    columns.guid_high[rows] = words[cursor + 4]
    columns.payload[rows] = columns.positions[rows] + _HEADER_SIZE[columns.kind[rows]]


def _event(columns: _Columns, rows: Rows, first: UInt64s, cursor: Int64s, data: UInt8s, size: Int64s) -> None:
    """EVENT: identity is provider GUID and event id; extended items stand before the user data when flag bit 0 is set."""
    words = data.view(np.uint64)
    descriptor = words[cursor + 5]
    columns.event_id[rows] = descriptor.view(np.uint16)[::4]
    columns.version[rows] = descriptor.view(np.uint8)[2::8]
    columns.level[rows] = descriptor.view(np.uint8)[4::8]
    columns.opcode[rows] = descriptor.view(np.uint8)[5::8]
    columns.keyword[rows] = words[cursor + 6]
    columns.activity[rows] = words[cursor + 8]
    columns.group[rows] = -1
    columns.guid_low[rows] = words[cursor + 3]
    columns.guid_high[rows] = words[cursor + 4]
    start = columns.positions[rows] + 80
    columns.payload[rows] = start
    has_items = ((first >> 32) & 1) == 1
    if has_items.any():
        with_items = np.flatnonzero(has_items) if isinstance(rows, slice) else rows[has_items]
        start = start[has_items]
        end, is_good = item_ends(words, start, columns.positions[with_items] + size[has_items])
        columns.extended[with_items] = start
        columns.item_bytes[with_items] = end - start
        columns.is_damaged[with_items] = ~is_good


def item_ends(words: UInt64s, start: Int64s, end: Int64s) -> tuple[Int64s, Bools]:
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


def _message(columns: _Columns, rows: Rows, first: UInt64s, cursor: Int64s, data: UInt8s, size: Int64s) -> None:
    """MESSAGE: identity is the message GUID and number; the parts of the header depend on the options."""
    rows = np.arange(columns.kind.size) if isinstance(rows, slice) else rows
    options = (first >> 48).astype(np.int64)
    layout = message_layout(options)
    columns.event_id[rows] = ((first >> 32) & 0xFFFF).astype(np.int32)
    pointer_size = np.where(options & 0x80, 8, np.where(options & 0x40, 4, columns.pointer_size[rows]))
    columns.pointer_size[rows] = pointer_size.astype(np.uint8)
    columns.payload[rows] = columns.positions[rows] + layout.payload
    fits = layout.payload <= size
    if (some := np.flatnonzero((layout.guid >= 0) & fits)).size:
        guid = gather(data, columns.positions[rows[some]] + layout.guid[some], 16).view(np.uint64)
        columns.group[rows[some]] = -1
        columns.guid_low[rows[some]] = guid[:, 0]
        columns.guid_high[rows[some]] = guid[:, 1]
    if (some := np.flatnonzero((layout.ids >= 0) & fits)).size:
        ids = np.zeros(columns.kind.size, np.uint64)
        ids[rows[some]] = gather(data, columns.positions[rows[some]] + layout.ids[some], 8).view(np.uint64).reshape(-1)
        columns.set_ids(rows[some], ids)
