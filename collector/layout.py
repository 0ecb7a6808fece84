"""One layout read from many payloads at once: where each field starts, and its values as columns.

Fields of fixed width that follow each other are one packed dtype, gathered with one copy per record; behind a field whose length the
content decides, each record goes on at its own place. Nothing loops over records but the texts of rare system events.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.layout_fields import Cursor, formats_of, gather, numbers, read_variable
from collector.schema import Column, EventSchema, Field, FieldType

__all__ = ["Layout", "Reading", "layout_of"]

Bools: TypeAlias = NDArray[np.bool_]
UInt8s: TypeAlias = NDArray[np.uint8]
Int64s: TypeAlias = NDArray[np.int64]


@dataclass(slots=True)
class Reading:
    """What one layout gave for n payloads; the columns hold the payloads that fit, in their order."""

    fits: Bools
    """Whether a payload had all that its layout demands, shape (n,)."""
    longer: Int64s
    """Numbers of the payloads that fit and have more bytes than their layout, ascending."""
    fields: dict[str, Column] = field(default_factory=dict)
    missing: dict[str, Bools] = field(default_factory=dict)


class Layout:
    """One schema for one pointer size."""

    def __init__(self, schema: EventSchema, pointer_size: int) -> None:
        self.schema = schema
        self.pointer_size = pointer_size
        self._runs = _runs_of(schema.fields, pointer_size)
        only = self._runs[0] if len(self._runs) == 1 else None
        self._whole = only if isinstance(only, _Run) else None

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
        if n and self._whole is not None and int(ends.max()) <= data.size:
            least, most = int(sizes.min()), int(sizes.max())
            if least >= self._whole.size and (not exactly or most == self._whole.size):
                return self._read_whole(data, starts, sizes, most)
        cursor = Cursor(data, np.arange(n, dtype=np.int64), starts, ends, {}, {})
        cursor.keep(ends <= data.size)
        if exactly:
            cursor.keep(cursor.left == self.schema.fixed_size(self.pointer_size))
        for run in self._runs:
            if isinstance(run, _Run):
                run.read(cursor)
            elif not run.required and run.width(self.pointer_size) is not None:
                self._read_optional(cursor, run)
            else:
                read_variable(cursor, run, self.pointer_size)
        fits = np.zeros(n, dtype=np.bool_)
        fits[cursor.index] = True
        return Reading(fits, cursor.index[self._has_surplus(cursor, sizes)], cursor.fields, cursor.missing)

    def _read_whole(self, data: UInt8s, starts: Int64s, sizes: Int64s, most: int) -> Reading:
        """Read payloads that all fit a layout of fixed width, `most` bytes long at the most."""
        assert self._whole is not None
        size = self._whole.size
        longer = np.flatnonzero(self._is_surplus(sizes - size, sizes)) if most > size else np.zeros(0, dtype=np.int64)
        return Reading(np.ones(starts.size, dtype=np.bool_), longer, self._whole.columns_at(data, starts))

    def _has_surplus(self, cursor: Cursor, sizes: Int64s) -> Bools:
        return self._is_surplus(cursor.left, sizes[cursor.index])

    def _is_surplus(self, surplus: Int64s, sizes: Int64s) -> Bools:
        """Whether bytes are left over; padding of a classic payload up to a multiple of 8 is none."""
        if not self.schema.is_classic:
            return np.asarray(surplus > 0)
        return np.asarray((surplus >= 8) | ((surplus > 0) & (sizes % 8 != 0)))

    def _read_optional(self, cursor: Cursor, what: Field) -> None:
        """A field of fixed width that stands only where bytes are left."""
        width = what.width(self.pointer_size) or 0
        present = cursor.left >= width + self._owed(cursor, width)
        dtype, column_dtype = formats_of(what, self.pointer_size)
        shape = (cursor.at.size, 16) if what.type in (FieldType.GUID, FieldType.IPV6) else (cursor.at.size,)
        column = np.zeros(shape, dtype=column_dtype)
        rows = np.flatnonzero(present)
        if rows.size:
            column[rows] = gather(cursor.data, cursor.at[rows], width).view(np.dtype(dtype)).reshape(rows.size, *shape[1:])
        cursor.fields[what.name] = column
        if rows.size < present.size:
            cursor.missing[what.name] = ~present
        cursor.at = cursor.at + np.where(present, width, 0)

    def _owed(self, cursor: Cursor, width: int) -> Int64s | int:
        """Bytes that belong to the ranges behind an optional field, so that it cannot be there. With ranges cut short, what is left over
        of whole pairs is the field's."""
        ranges = next((f for f in self.schema.fields if f.type is FieldType.RANGES), None)
        if ranges is None or ranges.length_field is None:
            return 0
        pair = 2 * self.pointer_size
        left = cursor.left
        wanted = numbers(cursor, ranges.length_field) * pair
        return np.where(wanted <= left, wanted, np.where(left % pair >= width, 0, left))


class _Run:
    """Required fields of fixed width, one behind the other: one packed dtype."""

    def __init__(self, fields: list[Field], pointer_size: int) -> None:
        formats = [(f.name, *formats_of(f, pointer_size)) for f in fields]
        self.dtype = np.dtype([(name, wire) for name, wire, _ in formats])
        self.columns = [(name, np.dtype(column)) for name, _, column in formats]

        self.size = self.dtype.itemsize

    def read(self, cursor: Cursor) -> None:
        cursor.keep(cursor.left >= self.size)
        cursor.fields.update(self.columns_at(cursor.data, cursor.at))
        cursor.at = cursor.at + self.size

    def columns_at(self, data: UInt8s, at: Int64s) -> dict[str, Column]:
        """The fields of records that begin at these places."""
        records = gather(data, at, self.size).view(self.dtype)
        return {name: records[name].astype(dtype) for name, dtype in self.columns}


@lru_cache(maxsize=4096)
def layout_of(schema: EventSchema, pointer_size: int) -> Layout:
    """The compiled layout of a schema for 4- or 8-byte pointers."""
    return Layout(schema, pointer_size)


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
