"""The declaration of an event: who sends it, its layout, its units, and where we know that from.

dtype, documentation and test builders derive from one `EventSchema`. Pointers are a field type, so one declaration serves
records of 32- and 64-bit processes. A declaration is written with the short field constructors at the end of this module:

    AFD_CLOSE = EventSchema(AFD, 1001, (0,), "AfdClose", (u32("enter_exit"), pointer("endpoint"), …), source="…")
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from collector.raw import RawEvents

__all__ = [
    "WIDTHS",
    "Column",
    "DecodedBatch",
    "EventColumns",
    "EventKey",
    "EventSchema",
    "Field",
    "FieldType",
    "Ragged",
    "SchemaTable",
    "ansi",
    "bool32",
    "guid",
    "i8",
    "i16",
    "i32",
    "i64",
    "ipv4",
    "ipv6",
    "key_of",
    "pointer",
    "pointers",
    "port",
    "ranges",
    "rest",
    "sid",
    "sizet",
    "sockaddr",
    "table_of",
    "u8",
    "u16",
    "u32",
    "u64",
    "utf16",
]


class FieldType(StrEnum):
    """Wire types; widths of `pointer` and `sizet` follow the record's own header.

    `sid` stands behind two pointers of TOKEN_USER, `bare_sid` alone. Counted texts begin with their bytes as 16-bit number. Floats and
    the types from `bytes` to the counted texts occur only in layouts that a trace brings along.
    """

    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    POINTER = "pointer"
    SIZET = "sizet"
    BOOL32 = "bool32"
    IPV4 = "ipv4"
    IPV6 = "ipv6"
    PORT = "port"
    GUID = "guid"
    SOCKADDR = "sockaddr"
    ANSI = "ansi"
    UTF16 = "utf16"
    SID = "sid"
    F32 = "f32"
    F64 = "f64"
    BYTES = "bytes"
    BARE_SID = "bare_sid"
    COUNTED_ANSI = "counted_ansi"
    COUNTED_UTF16 = "counted_utf16"
    POINTERS = "pointers"
    RANGES = "ranges"
    REST = "rest"


WIDTHS: Mapping[FieldType, int] = {
    FieldType.U8: 1,
    FieldType.U16: 2,
    FieldType.U32: 4,
    FieldType.U64: 8,
    FieldType.I8: 1,
    FieldType.I16: 2,
    FieldType.I32: 4,
    FieldType.I64: 8,
    FieldType.BOOL32: 4,
    FieldType.IPV4: 4,
    FieldType.IPV6: 16,
    FieldType.PORT: 2,
    FieldType.GUID: 16,
    FieldType.F32: 4,
    FieldType.F64: 8,
}
"""Bytes of the types whose width is the same in all records; pointer and sizet follow the record, all others their content."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field; `name` is the manifest's in snake_case.

    `length_field` names the field that holds the bytes of a sockaddr, the characters of a text, the number of ranges or of list elements;
    `length` is the same as a constant. `element` is the type in a list of numbers (`pointers`), a pointer if None. Fields that
    are not required may be absent at the end of a payload.
    """

    name: str
    type: FieldType
    unit: str | None = None
    enum: str | None = None
    required: bool = True
    length_field: str | None = None
    length: int | None = None
    element: FieldType | None = None

    def width(self, pointer_size: int) -> int | None:
        """Bytes of the field in a record of 4- or 8-byte pointers, None where the content decides."""
        return pointer_size if self.type in (FieldType.POINTER, FieldType.SIZET) else WIDTHS.get(self.type)


@dataclass(frozen=True, slots=True)
class EventKey:
    """What a record's header carries to say which event it is.

    `number` is the event id for manifest events and the opcode for classic ones; the GUID of a system header is that of its
    hook group.
    """

    provider: UUID
    is_classic: bool
    number: int


@dataclass(frozen=True, slots=True)
class EventSchema:
    """One layout of one event.

    `versions` are those the layout is known for, none given means all; a higher version than any declared one is read with the
    highest layout and counted as newer. Fields follow each other without padding. A payload may be longer than its layout, unless
    `is_exact`: then any other size is damage, and several exact layouts of one version are told apart by their size.
    """

    provider: UUID
    number: int
    versions: tuple[int, ...]
    name: str
    fields: tuple[Field, ...]
    source: str
    is_classic: bool = False
    is_exact: bool = False

    @property
    def key(self) -> EventKey:
        return EventKey(self.provider, self.is_classic, self.number)

    def fixed_size(self, pointer_size: int, *, only_required: bool = False) -> int:
        """Bytes of all fields of fixed width; with `only_required` of those that no record lacks."""
        return sum(f.width(pointer_size) or 0 for f in self.fields if f.required or not only_required)


def key_of(provider: UUID, *, is_classic: bool, event_id: int, opcode: int) -> EventKey:
    """The dispatch key of a record, used both to fill the table and to ask it."""
    return EventKey(provider, is_classic, opcode if is_classic else event_id)


SchemaTable: TypeAlias = Mapping[EventKey, tuple[EventSchema, ...]]
"""All layouts of each key, ordered by version."""


def table_of(schemas: Iterable[EventSchema]) -> dict[EventKey, tuple[EventSchema, ...]]:
    """All layouts by key, ordered by version.

    Raises: ValueError when two layouts claim one version of one key, unless both are exact and of different size.
    """
    table: dict[EventKey, list[EventSchema]] = {}
    for schema in schemas:
        known = table.setdefault(schema.key, [])
        if any(_is_same(schema, other) for other in known):
            raise ValueError(f"{schema.name}: a version of {schema.key} is declared twice")
        known.append(schema)
    return {key: tuple(sorted(known, key=lambda s: min(s.versions, default=0))) for key, known in table.items()}


def _is_same(one: EventSchema, other: EventSchema) -> bool:
    """Whether some record would fit both layouts."""
    if one.versions and other.versions and not set(one.versions) & set(other.versions):
        return False
    return not (one.is_exact and other.is_exact) or any(one.fixed_size(size) == other.fixed_size(size) for size in (4, 8))


@dataclass(frozen=True, slots=True)
class Ragged:
    """Rows of different length: row i is `values[starts[i]:starts[i + 1]]`."""

    values: NDArray[np.uint64]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.starts.size) - 1

    def row(self, i: int) -> NDArray[np.uint64]:
        return self.values[self.starts[i] : self.starts[i + 1]]


# One column of m rows: a number array (m,), bytes (m, width) uint8 zero padded (sockaddr, ipv6, guid, sid), text, or ragged addresses.
Column = NDArray[np.generic] | list[str] | Ragged


@dataclass(frozen=True, slots=True)
class EventColumns:
    """All records of one event name in one window, whatever their version and pointer size, in the window's order.

    Number columns: unsigned ones keep their width, pointer and sizet are uint64, bool32 is bool, port is uint16 in host order, ipv4 is
    uint32 with the first octet in the top bits. sockaddr, ipv6, guid and sid are uint8 of shape (m, width), zero padded; a sockaddr has a
    width of 28 to 128 bytes, and its true length is in its length field. Ranges are lists of address, size, address, size, … in turn.
    A field that two versions have in different width takes the wider one. `missing[name]` is a bool array (m,) for each field
    that some record lacks; where it is true the number column holds 0, a text ''.
    """

    name: str
    rows: NDArray[np.int64]
    """Row numbers into the window, ascending, shape (m,)."""
    fields: Mapping[str, Column]
    missing: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.rows.size)

    def numbers(self, name: str) -> NDArray[np.generic]:
        """A number column. Raises KeyError for an unknown name, TypeError for text or ragged ones."""
        column = self.fields[name]
        if not isinstance(column, np.ndarray):
            raise TypeError(f"{self.name}.{name} is not a column of numbers")
        return column

    def texts(self, name: str) -> list[str]:
        """A text column. Raises KeyError for an unknown name, TypeError for others."""
        column = self.fields[name]
        if not isinstance(column, list):
            raise TypeError(f"{self.name}.{name} is not a column of texts")
        return column

    def ragged(self, name: str) -> Ragged:
        """A column of address lists. Raises KeyError for an unknown name, TypeError for others."""
        column = self.fields[name]
        if not isinstance(column, Ragged):
            raise TypeError(f"{self.name}.{name} is not a column of address lists")
        return column


@dataclass(frozen=True, slots=True)
class DecodedBatch:
    """One window with everything that we know how to read.

    `events` has an entry only for names that occur. `unknown` are rows of our own providers without a layout (raw, to be kept),
    `damaged` rows whose payload is shorter than the layout or has a wrong size, `newer` rows read with an older layout.
    """

    raw: RawEvents
    ns: NDArray[np.int64]
    """Time of each row in ns since time 0, shape (n,)."""
    events: Mapping[str, EventColumns]
    unknown: NDArray[np.int64]
    damaged: NDArray[np.int64]
    newer: NDArray[np.int64]
    known: NDArray[np.bool_]
    """For each row of the window, whether a layout was found, shape (n,)."""
    described: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Rows of our own providers that we do not ship, read with a layout that the trace has: the models do not know their names."""

    def get(self, name: str) -> EventColumns | None:
        """The columns of one event, None where it does not occur."""
        return self.events.get(name)


# The field constructors: one per wire type.


def u8(name: str, *, unit: str | None = None, enum: str | None = None, required: bool = True) -> Field:
    return Field(name, FieldType.U8, unit, enum, required)


def u16(name: str, *, unit: str | None = None, enum: str | None = None, required: bool = True) -> Field:
    return Field(name, FieldType.U16, unit, enum, required)


def u32(name: str, *, unit: str | None = None, enum: str | None = None, required: bool = True) -> Field:
    return Field(name, FieldType.U32, unit, enum, required)


def u64(name: str, *, unit: str | None = None, enum: str | None = None, required: bool = True) -> Field:
    return Field(name, FieldType.U64, unit, enum, required)


def i8(name: str, *, unit: str | None = None, enum: str | None = None, required: bool = True) -> Field:
    return Field(name, FieldType.I8, unit, enum, required)


def i16(name: str, *, unit: str | None = None, enum: str | None = None, required: bool = True) -> Field:
    return Field(name, FieldType.I16, unit, enum, required)


def i32(name: str, *, unit: str | None = None, enum: str | None = None, required: bool = True) -> Field:
    return Field(name, FieldType.I32, unit, enum, required)


def i64(name: str, *, unit: str | None = None, enum: str | None = None, required: bool = True) -> Field:
    return Field(name, FieldType.I64, unit, enum, required)


def sizet(name: str, *, unit: str | None = None, enum: str | None = None, required: bool = True) -> Field:
    return Field(name, FieldType.SIZET, unit, enum, required)


def pointer(name: str, *, required: bool = True) -> Field:
    return Field(name, FieldType.POINTER, required=required)


def bool32(name: str, *, required: bool = True) -> Field:
    return Field(name, FieldType.BOOL32, required=required)


def ipv4(name: str, *, required: bool = True) -> Field:
    return Field(name, FieldType.IPV4, required=required)


def ipv6(name: str, *, required: bool = True) -> Field:
    return Field(name, FieldType.IPV6, required=required)


def port(name: str, *, required: bool = True) -> Field:
    return Field(name, FieldType.PORT, required=required)


def guid(name: str, *, required: bool = True) -> Field:
    return Field(name, FieldType.GUID, required=required)


def sid(name: str, *, required: bool = True) -> Field:
    return Field(name, FieldType.SID, required=required)


def ansi(name: str, *, required: bool = True) -> Field:
    return Field(name, FieldType.ANSI, required=required)


def utf16(name: str, *, required: bool = True) -> Field:
    return Field(name, FieldType.UTF16, required=required)


def sockaddr(name: str, *, length_field: str) -> Field:
    """A socket address of as many bytes as `length_field` says."""
    return Field(name, FieldType.SOCKADDR, length_field=length_field)


def pointers(name: str) -> Field:
    """Pointers up to the end of the payload."""
    return Field(name, FieldType.POINTERS, required=False)


def ranges(name: str, *, length_field: str) -> Field:
    """Pairs of address and size, as many as `length_field` says."""
    return Field(name, FieldType.RANGES, required=False, length_field=length_field)


def rest(name: str) -> Field:
    """Bytes up to the end of the payload that we do not read."""
    return Field(name, FieldType.REST, required=False)
