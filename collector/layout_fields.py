"""Fields whose length the content decides: socket addresses, SIDs, texts, lists; and the place where reading stands in each payload."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.schema import WIDTHS, Column, Field, FieldType, Ragged

__all__ = ["MAX_BYTES", "Cursor", "formats_of", "gather", "numbers", "read_variable", "select"]

Bools: TypeAlias = NDArray[np.bool_]
UInt8s: TypeAlias = NDArray[np.uint8]
Int64s: TypeAlias = NDArray[np.int64]

MAX_BYTES = 128
"""Bytes kept of a field of bytes: those of SOCKADDR_STORAGE, the longest socket address. What is behind them is passed over."""
_MIN_SOCKADDR = 28  # a column has room for an IPv6 address
_MAX_SID_PARTS = 15  # SID_MAX_SUB_AUTHORITIES
_SID_BYTES = 8 + 4 * _MAX_SID_PARTS

# Wire format, and the dtype of the column.
_FORMATS: dict[FieldType, tuple[str, str]] = {
    FieldType.U8: ("u1", "u1"),
    FieldType.U16: ("<u2", "u2"),
    FieldType.U32: ("<u4", "u4"),
    FieldType.U64: ("<u8", "u8"),
    FieldType.I8: ("i1", "i1"),
    FieldType.I16: ("<i2", "i2"),
    FieldType.I32: ("<i4", "i4"),
    FieldType.I64: ("<i8", "i8"),
    FieldType.F32: ("<f4", "f4"),
    FieldType.F64: ("<f8", "f8"),
    FieldType.BOOL32: ("<u4", "?"),
    FieldType.IPV4: (">u4", "u4"),
    FieldType.PORT: (">u2", "u2"),
    FieldType.IPV6: ("(16,)u1", "u1"),
    FieldType.GUID: ("(16,)u1", "u1"),
}


@dataclass(slots=True)
class Cursor:
    """Where reading stands in each payload that is still good, and what was read of those."""

    data: UInt8s
    index: Int64s
    """Number of the payload among those asked for."""
    at: Int64s
    end: Int64s
    fields: dict[str, Column]
    missing: dict[str, Bools]

    @property
    def left(self) -> Int64s:
        """Bytes not read yet."""
        return self.end - self.at

    def keep(self, good: Bools) -> None:
        """Drop the payloads that do not fit, with what was read of them."""
        if good.all():
            return
        rows = np.flatnonzero(good)
        self.index, self.at, self.end = self.index[rows], self.at[rows], self.end[rows]
        self.fields = {name: select(column, rows) for name, column in self.fields.items()}
        self.missing = {name: mask[rows] for name, mask in self.missing.items()}


def formats_of(what: Field, pointer_size: int) -> tuple[str, str]:
    """Format on the wire and dtype of the column, for a field of fixed width."""
    if what.type in (FieldType.POINTER, FieldType.SIZET):
        return f"<u{pointer_size}", "u8"
    return _FORMATS[what.type]


def gather(data: UInt8s, at: Int64s, size: int) -> NDArray[np.void]:
    """Copy `size` bytes (at least 1) from each place; void of that size, shape (n,). Every place has that many bytes behind it."""
    if at.size == 0:
        return np.zeros(0, dtype=f"V{size}")
    # An overlapping view with a record at every byte: indexing it is one memcpy per record, whatever the alignment.
    every_byte: NDArray[np.void] = np.ndarray((data.size - size + 1,), dtype=f"V{size}", buffer=data.data, strides=(1,))
    return every_byte[at]


def numbers(cursor: Cursor, name: str) -> Int64s:
    """A number field that was read, as int64."""
    column = cursor.fields[name]
    assert isinstance(column, np.ndarray)
    return column.astype(np.int64)


def select(column: Column, rows: Int64s) -> Column:
    """Some values of a column, in the order of their numbers in `rows`; a copy."""
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(column, Ragged):
        counts = np.diff(column.starts)[rows]
        values = column.values[_flat(column.starts[rows], counts, 1)]
        return Ragged(values, _starts(counts))
    return [column[i] for i in rows.tolist()]


def read_variable(cursor: Cursor, what: Field, pointer_size: int) -> None:
    """Read one field of variable length in each payload; those that it does not fit are dropped."""
    if what.type in (FieldType.SOCKADDR, FieldType.BYTES):
        _read_bytes(cursor, what)
    elif what.type is FieldType.SID:
        _read_sid(cursor, what, token=2 * pointer_size)
    elif what.type is FieldType.BARE_SID:
        _read_sid(cursor, what, token=0)
    elif what.type in (FieldType.ANSI, FieldType.UTF16, FieldType.COUNTED_ANSI, FieldType.COUNTED_UTF16):
        _read_text(cursor, what)
    elif what.type is FieldType.POINTERS:
        _read_list(cursor, what, WIDTHS.get(what.element or FieldType.POINTER, pointer_size))
    elif what.type is FieldType.RANGES:
        room = cursor.left // (2 * pointer_size)
        _take_list(cursor, what, 2 * np.minimum(numbers(cursor, what.length_field or ""), room), pointer_size)
    else:
        assert what.type is FieldType.REST, what
        cursor.at = cursor.end


def _lengths(cursor: Cursor, what: Field) -> Int64s | None:
    """The length that another field or a constant gives, None without one. A negative number is no length and fits nowhere."""
    if what.length_field is not None:
        return numbers(cursor, what.length_field)
    return None if what.length is None else np.full(cursor.at.size, what.length, dtype=np.int64)


def _flat(starts: Int64s, counts: Int64s, stride: int) -> Int64s:
    """Place of every element of runs that begin at `starts`, `stride` bytes apart, one run behind the other."""
    total = int(counts.sum())
    first = np.cumsum(counts) - counts
    return np.repeat(starts - first * stride, counts) + np.arange(total, dtype=np.int64) * stride


def _starts(counts: Int64s) -> Int64s:
    starts = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _read_list(cursor: Cursor, what: Field, width: int) -> None:
    """Numbers: as many as the layout says, or up to the end of the payload."""
    if (counts := _lengths(cursor, what)) is not None:
        cursor.keep((counts >= 0) & (counts <= cursor.left // width))
        counts = _lengths(cursor, what)
    _take_list(cursor, what, cursor.left // width if counts is None else counts, width)


def _take_list(cursor: Cursor, what: Field, counts: Int64s, width: int) -> None:
    values = gather(cursor.data, _flat(cursor.at, counts, width), width).view(f"<u{width}").astype(np.uint64)
    cursor.fields[what.name] = Ragged(values, _starts(counts))
    cursor.at = cursor.at + counts * width


def _padded(cursor: Cursor, starts: Int64s, lengths: Int64s, width: int) -> UInt8s:
    """The bytes at each start, zero padded to `width`; uint8, shape (n, width)."""
    column = np.zeros((starts.size, width), dtype=np.uint8)
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        if length:
            rows = np.flatnonzero(lengths == length)
            column[rows, :length] = gather(cursor.data, starts[rows], length).view(np.uint8).reshape(rows.size, length)
    return column


def _read_bytes(cursor: Cursor, what: Field) -> None:
    lengths = _lengths(cursor, what)
    assert lengths is not None, what
    good = (lengths >= 0) & (lengths <= cursor.left)
    cursor.keep(good)
    lengths = lengths[good]
    kept = np.minimum(lengths, MAX_BYTES)
    least = _MIN_SOCKADDR if what.type is FieldType.SOCKADDR else 1
    cursor.fields[what.name] = _padded(cursor, cursor.at, kept, max(least, int(kept.max(initial=0))))
    cursor.at = cursor.at + lengths


def _read_sid(cursor: Cursor, what: Field, *, token: int) -> None:
    """A SID, behind a TOKEN_USER of `token` bytes whose values mean nothing; then four zero bytes stand for no SID."""
    if token:
        cursor.keep(cursor.left >= 4)
        absent = gather(cursor.data, cursor.at, 4).view("<u4") == 0
    else:
        absent = np.zeros(cursor.at.size, dtype=np.bool_)
    good = absent | (cursor.left >= token + 8)
    parts = np.zeros(cursor.at.size, dtype=np.int64)
    there = np.flatnonzero(~absent & good)
    parts[there] = cursor.data[cursor.at[there] + token + 1]
    good &= absent | ((parts <= _MAX_SID_PARTS) & (cursor.left >= token + 8 + 4 * parts))
    absent, parts = absent[good], parts[good]
    cursor.keep(good)
    lengths = np.where(absent, 0, 8 + 4 * parts)
    cursor.fields[what.name] = _padded(cursor, cursor.at + token, lengths, _SID_BYTES)
    if absent.any():
        cursor.missing[what.name] = absent
    cursor.at = cursor.at + np.where(absent, 4, token + lengths)


def _read_text(cursor: Cursor, what: Field) -> None:
    """A text up to its zero, or of a given length. A required one that is cut is damage; an optional one may be cut or absent.

    Loops over records (1 µs each): only process, thread and image events have texts.
    """
    unit = 2 if what.type in (FieldType.UTF16, FieldType.COUNTED_UTF16) else 1
    is_counted = what.type in (FieldType.COUNTED_ANSI, FieldType.COUNTED_UTF16)
    given = _lengths(cursor, what)
    wanted = [None] * cursor.at.size if given is None else [n * unit for n in given.tolist()]
    texts: list[str] = []
    taken = np.zeros(cursor.at.size, dtype=np.int64)
    good = np.ones(cursor.at.size, dtype=np.bool_)
    absent = np.zeros(cursor.at.size, dtype=np.bool_)
    for i, (start, end, length) in enumerate(zip(cursor.at.tolist(), cursor.end.tolist(), wanted, strict=True)):
        raw = cursor.data[start:end].tobytes()
        if is_counted:
            length, raw = int.from_bytes(raw[:2], "little"), raw[2:]
        text, size = _cut(raw, unit, length)
        if size is None:
            good[i] = not what.required
            size = len(raw)
        absent[i] = start == end
        taken[i] = min(size + (2 if is_counted else 0), end - start)
        texts.append(text)
    cursor.fields[what.name] = texts
    if absent.any() and not what.required:
        cursor.missing[what.name] = absent
    cursor.at = cursor.at + taken
    cursor.keep(good)


def _cut(raw: bytes, unit: int, length: int | None) -> tuple[str, int | None]:
    """A text at the begin of some bytes, and the bytes it takes, None if its end is not there."""
    if length is None:
        end = _zero(raw, unit)
        size = None if end < 0 else end + unit
        part = raw if end < 0 else raw[:end]
    else:
        size = length if 0 <= length <= len(raw) else None
        part = raw[: max(length, 0)]
    part = part[: len(part) - len(part) % unit]
    text = part.decode("utf-16-le", errors="replace") if unit == 2 else _ansi(part)
    return text.rstrip("\0"), size


def _zero(raw: bytes, unit: int) -> int:
    """Bytes before the terminating zero, -1 without one."""
    at = raw.find(bytes(unit))
    while unit == 2 and at > 0 and at % 2 == 1:  # the high byte of one character and the low byte of the next
        at = raw.find(bytes(unit), at + 1)
    return at


def _ansi(raw: bytes) -> str:
    """8-bit text: UTF-8 where it is that (symbol file names are), else the Western code page."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace")
