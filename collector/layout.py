"""One layout read from many payloads at once: where each field starts, and its values as columns.

Fields of fixed width that follow each other are one packed dtype, gathered with one copy per record; behind a field whose length the
content decides, each record goes on at its own place. Nothing loops over records but the texts of rare system events.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.schema import Column, EventSchema, Field, FieldType, Ragged

__all__ = ["MAX_SOCKADDR", "Layout", "Reading", "layout_of", "select"]

Bools: TypeAlias = NDArray[np.bool_]
UInt8s: TypeAlias = NDArray[np.uint8]
Int64s: TypeAlias = NDArray[np.int64]

MAX_SOCKADDR = 128
"""Bytes of SOCKADDR_STORAGE, the longest socket address; what is behind them is passed over, but not kept."""
_MIN_SOCKADDR = 28  # a column has room for an IPv6 address
_MAX_SID_PARTS = 15  # SID_MAX_SUB_AUTHORITIES
_SID_BYTES = 8 + 4 * _MAX_SID_PARTS

# Wire format, and the dtype of the column where that is another one.
_FORMATS: dict[FieldType, tuple[str, str]] = {
    FieldType.U8: ("u1", "u1"),
    FieldType.U16: ("<u2", "u2"),
    FieldType.U32: ("<u4", "u4"),
    FieldType.U64: ("<u8", "u8"),
    FieldType.I8: ("i1", "i1"),
    FieldType.I16: ("<i2", "i2"),
    FieldType.I32: ("<i4", "i4"),
    FieldType.I64: ("<i8", "i8"),
    FieldType.BOOL32: ("<u4", "?"),
    FieldType.IPV4: (">u4", "u4"),
    FieldType.PORT: (">u2", "u2"),
    FieldType.IPV6: ("(16,)u1", "u1"),
    FieldType.GUID: ("(16,)u1", "u1"),
}


@dataclass(slots=True)
class Reading:
    """What one layout gave for n payloads; the columns hold the payloads that fit, in their order."""

    fits: Bools
    """Whether a payload had all that its layout demands, shape (n,)."""
    longer: Int64s
    """Numbers of the payloads that fit and have more bytes than their layout, ascending."""
    fields: dict[str, Column] = field(default_factory=dict)
    missing: dict[str, Bools] = field(default_factory=dict)


@dataclass(slots=True)
class _Cursor:
    """Where reading stands in each payload that is still good."""

    data: UInt8s
    index: Int64s
    """Number of the payload among those asked for."""
    at: Int64s
    end: Int64s
    fields: dict[str, Column]
    missing: dict[str, Bools]

    def keep(self, good: Bools) -> None:
        """Drop the payloads that do not fit, with what was read of them."""
        if good.all():
            return
        rows = np.flatnonzero(good)
        self.index, self.at, self.end = self.index[rows], self.at[rows], self.end[rows]
        self.fields = {name: select(column, rows) for name, column in self.fields.items()}
        self.missing = {name: mask[rows] for name, mask in self.missing.items()}


class Layout:
    """One schema for one pointer size."""

    def __init__(self, schema: EventSchema, pointer_size: int) -> None:
        self.schema = schema
        self.pointer_size = pointer_size
        self._runs = _runs_of(schema.fields, pointer_size)

    def read(self, data: UInt8s, starts: Int64s, sizes: Int64s, *, exactly: bool = False) -> Reading:
        """Read a payload at each start.

        Args:
            data: uint8, contiguous, the bytes that hold all payloads.
            starts: int64, shape (n,); begin of each payload in `data`.
            sizes: int64, shape (n,); its bytes. A payload that would end behind `data` does not fit.
            exactly: whether a payload with more bytes than the layout does not fit either.
        """
        n = int(starts.size)
        ends = starts + sizes
        cursor = _Cursor(data, np.arange(n, dtype=np.int64), starts, ends, {}, {})
        cursor.keep(ends <= data.size)
        if exactly:
            cursor.keep(cursor.end - cursor.at == self.schema.fixed_size(self.pointer_size))
        for run in self._runs:
            if isinstance(run, _Run):
                run.read(cursor)
            elif not run.required and run.width(self.pointer_size) is not None:
                self._read_optional(cursor, run)
            else:
                self._read_variable(cursor, run)
        fits = np.zeros(n, dtype=np.bool_)
        fits[cursor.index] = True
        return Reading(fits, cursor.index[self._has_surplus(cursor, sizes)], cursor.fields, cursor.missing)

    def _has_surplus(self, cursor: _Cursor, sizes: Int64s) -> Bools:
        """Whether bytes are left over; padding of a classic payload up to a multiple of 8 is none."""
        surplus = cursor.end - cursor.at
        if not self.schema.is_classic:
            return np.asarray(surplus > 0)
        return np.asarray((surplus >= 8) | ((surplus > 0) & (sizes[cursor.index] % 8 != 0)))

    def _read_optional(self, cursor: _Cursor, what: Field) -> None:
        """A field of fixed width that stands only where bytes are left."""
        width = what.width(self.pointer_size) or 0
        present = cursor.end - cursor.at >= width + self._owed(cursor, width)
        dtype, column_dtype = _formats(what, self.pointer_size)
        shape = (cursor.at.size, 16) if what.type in (FieldType.GUID, FieldType.IPV6) else (cursor.at.size,)
        column = np.zeros(shape, dtype=column_dtype)
        rows = np.flatnonzero(present)
        if rows.size:
            column[rows] = _gather(cursor.data, cursor.at[rows], width).view(np.dtype(dtype)).reshape(rows.size, *shape[1:])
        cursor.fields[what.name] = column
        if rows.size < present.size:
            cursor.missing[what.name] = ~present
        cursor.at = cursor.at + np.where(present, width, 0)

    def _owed(self, cursor: _Cursor, width: int) -> Int64s | int:
        """Bytes that belong to the ranges behind an optional field, so that it cannot be there. With ranges cut short, what is left over
        of whole pairs is the field's."""
        ranges = next((f for f in self.schema.fields if f.type is FieldType.RANGES), None)
        if ranges is None or ranges.length_field is None:
            return 0
        pair = 2 * self.pointer_size
        left = cursor.end - cursor.at
        wanted = _numbers(cursor, ranges.length_field) * pair
        return np.where(wanted <= left, wanted, np.where(left % pair >= width, 0, left))

    def _read_variable(self, cursor: _Cursor, what: Field) -> None:
        if what.type is FieldType.SOCKADDR:
            _read_sockaddr(cursor, what)
        elif what.type is FieldType.SID:
            _read_sid(cursor, what, self.pointer_size)
        elif what.type in (FieldType.ANSI, FieldType.UTF16):
            _read_text(cursor, what)
        elif what.type is FieldType.POINTERS:
            count = (cursor.end - cursor.at) // self.pointer_size
            _read_addresses(cursor, what, count, self.pointer_size)
        elif what.type is FieldType.RANGES:
            room = (cursor.end - cursor.at) // (2 * self.pointer_size)
            wanted = _numbers(cursor, what.length_field or "")
            _read_addresses(cursor, what, 2 * np.minimum(wanted, room), self.pointer_size)
        else:
            assert what.type is FieldType.REST, what
            cursor.at = cursor.end


class _Run:
    """Required fields of fixed width, one behind the other: one packed dtype."""

    def __init__(self, fields: list[Field], pointer_size: int) -> None:
        formats = [(f.name, *_formats(f, pointer_size)) for f in fields]
        self.dtype = np.dtype([(name, wire) for name, wire, _ in formats])
        self.columns = [(name, np.dtype(column)) for name, _, column in formats]

    def read(self, cursor: _Cursor) -> None:
        size = self.dtype.itemsize
        cursor.keep(cursor.end - cursor.at >= size)
        records = _gather(cursor.data, cursor.at, size).view(self.dtype)
        for name, dtype in self.columns:
            cursor.fields[name] = records[name].astype(dtype)
        cursor.at = cursor.at + size


@lru_cache(maxsize=4096)
def layout_of(schema: EventSchema, pointer_size: int) -> Layout:
    """The compiled layout of a schema for 4- or 8-byte pointers."""
    return Layout(schema, pointer_size)


def select(column: Column, rows: Int64s) -> Column:
    """Some values of a column, in the order of their numbers in `rows`; a copy."""
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(column, Ragged):
        counts = np.diff(column.starts)[rows]
        values = column.values[_flat(column.starts[rows], counts, 1)]
        return Ragged(values, _starts(counts))
    return [column[i] for i in rows.tolist()]


def _runs_of(fields: tuple[Field, ...], pointer_size: int) -> list["_Run | Field"]:
    runs: list[_Run | Field] = []
    fixed: list[Field] = []
    for what in fields:
        if what.required and what.width(pointer_size) is not None:
            fixed.append(what)
            continue
        if fixed:
            runs.append(_Run(fixed, pointer_size))
            fixed = []
        runs.append(what)
    if fixed:
        runs.append(_Run(fixed, pointer_size))
    return runs


def _formats(what: Field, pointer_size: int) -> tuple[str, str]:
    if what.type in (FieldType.POINTER, FieldType.SIZET):
        return f"<u{pointer_size}", "u8"
    return _FORMATS[what.type]


def _gather(data: UInt8s, at: Int64s, size: int) -> NDArray[np.void]:
    """Copy `size` bytes from each place; void of that size, shape (n,). Every place has that many bytes behind it."""
    if at.size == 0 or size == 0:
        return np.zeros(at.size, dtype=f"V{max(size, 1)}") if size else np.zeros(at.size, dtype=np.dtype([]))
    # An overlapping view with a record at every byte: indexing it is one memcpy per record, whatever the alignment.
    every_byte: NDArray[np.void] = np.ndarray((data.size - size + 1,), dtype=f"V{size}", buffer=data.data, strides=(1,))
    return every_byte[at]


def _numbers(cursor: _Cursor, name: str) -> Int64s:
    column = cursor.fields[name]
    assert isinstance(column, np.ndarray)
    return column.astype(np.int64)


def _flat(starts: Int64s, counts: Int64s, stride: int) -> Int64s:
    """Place of every element of runs that begin at `starts`, `stride` bytes apart, one run behind the other."""
    total = int(counts.sum())
    first = np.cumsum(counts) - counts
    return np.repeat(starts - first * stride, counts) + np.arange(total, dtype=np.int64) * stride


def _starts(counts: Int64s) -> Int64s:
    starts = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _read_addresses(cursor: _Cursor, what: Field, counts: Int64s, width: int) -> None:
    places = _flat(cursor.at, counts, width)
    values = _gather(cursor.data, places, width).view(f"<u{width}").astype(np.uint64)
    cursor.fields[what.name] = Ragged(values, _starts(counts))
    cursor.at = cursor.at + counts * width


def _padded(cursor: _Cursor, starts: Int64s, lengths: Int64s, width: int) -> UInt8s:
    """The bytes at each start, zero padded to `width`; uint8, shape (n, width)."""
    column = np.zeros((starts.size, width), dtype=np.uint8)
    for length in np.unique(lengths).tolist():
        if length:
            rows = np.flatnonzero(lengths == length)
            column[rows, :length] = _gather(cursor.data, starts[rows], length).view(np.uint8).reshape(rows.size, length)
    return column


def _read_sockaddr(cursor: _Cursor, what: Field) -> None:
    cursor.keep(_numbers(cursor, what.length_field or "") <= cursor.end - cursor.at)
    lengths = _numbers(cursor, what.length_field or "")
    kept = np.minimum(lengths, MAX_SOCKADDR)
    width = max(_MIN_SOCKADDR, int(kept.max(initial=0)))
    cursor.fields[what.name] = _padded(cursor, cursor.at, kept, width)
    cursor.at = cursor.at + lengths


def _read_sid(cursor: _Cursor, what: Field, pointer_size: int) -> None:
    """A SID behind a TOKEN_USER of two pointers, whose values mean nothing; four zero bytes stand for no SID."""
    cursor.keep(cursor.end - cursor.at >= 4)
    token = 2 * pointer_size
    absent = _gather(cursor.data, cursor.at, 4).view("<u4") == 0
    good = absent | (cursor.end - cursor.at >= token + 8)
    parts = np.zeros(cursor.at.size, dtype=np.int64)
    there = np.flatnonzero(~absent & good)
    parts[there] = cursor.data[cursor.at[there] + token + 1]
    good &= absent | ((parts <= _MAX_SID_PARTS) & (cursor.end - cursor.at >= token + 8 + 4 * parts))
    absent, parts = absent[good], parts[good]
    cursor.keep(good)
    lengths = np.where(absent, 0, 8 + 4 * parts)
    cursor.fields[what.name] = _padded(cursor, cursor.at + token, lengths, _SID_BYTES)
    if absent.any():
        cursor.missing[what.name] = absent
    cursor.at = cursor.at + np.where(absent, 4, token + lengths)


def _read_text(cursor: _Cursor, what: Field) -> None:
    """A text up to its zero. A required one without zero is damage; an optional one may be cut or absent.

    Loops over records (1 µs each): only process, thread and image events have texts.
    """
    unit = 2 if what.type is FieldType.UTF16 else 1
    texts: list[str] = []
    lengths = np.zeros(cursor.at.size, dtype=np.int64)
    good = np.ones(cursor.at.size, dtype=np.bool_)
    absent = np.zeros(cursor.at.size, dtype=np.bool_)
    for i, (start, end) in enumerate(zip(cursor.at.tolist(), cursor.end.tolist(), strict=True)):
        raw = cursor.data[start:end].tobytes()
        length = _text_length(raw, unit)
        if length < 0:
            length = len(raw) - len(raw) % unit
            good[i] = not what.required
            absent[i] = length == 0
            lengths[i] = length
        else:
            lengths[i] = length + unit
        texts.append(_utf16(raw[:length]) if unit == 2 else _ansi(raw[:length]))
    cursor.fields[what.name] = texts
    if absent.any() and not what.required:
        cursor.missing[what.name] = absent
    cursor.at = cursor.at + lengths
    cursor.keep(good)


def _text_length(raw: bytes, unit: int) -> int:
    """Bytes before the terminating zero, -1 without one."""
    if unit == 1:
        return raw.find(b"\0")
    at = raw.find(b"\0\0")
    while at % 2 == 1:  # the high byte of one character and the low byte of the next; -1 is odd as well
        if at < 0:
            return -1
        at = raw.find(b"\0\0", at + 1)
    return at


def _utf16(raw: bytes) -> str:
    return raw.decode("utf-16-le", errors="replace")


def _ansi(raw: bytes) -> str:
    """8-bit text: UTF-8 where it is that (symbol file names are), else the Western code page."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace")
