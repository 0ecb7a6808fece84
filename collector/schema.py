"""The declaration of an event: who sends it, its layout, its units, and where we know that from.

dtype, documentation and test builders derive from one `EventSchema`. Pointers are a field type, so one declaration serves
records of 32- and 64-bit processes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from collector.raw import RawEvents

__all__ = ["Column", "DecodedBatch", "EventColumns", "EventKey", "EventSchema", "Field", "FieldType", "Ragged", "key_of", "table_of"]


class FieldType(StrEnum):
    """Wire types; widths of `pointer` and `sizet` follow the record's own header."""

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
    POINTERS = "pointers"
    RANGES = "ranges"
    REST = "rest"


@dataclass(frozen=True, slots=True)
class Field:
    """One field; `name` is the manifest's in snake_case. `length_field` names the field that holds a sockaddr's length."""

    name: str
    type: FieldType
    unit: str | None = None
    enum: str | None = None
    required: bool = True
    length_field: str | None = None


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

    `versions` are those the layout is known for; a higher version than any declared one is read with the highest layout and counted
    as newer. Fields follow each other without padding.
    """

    provider: UUID
    number: int
    versions: tuple[int, ...]
    name: str
    fields: tuple[Field, ...]
    source: str
    is_classic: bool = False

    @property
    def key(self) -> EventKey:
        return EventKey(self.provider, self.is_classic, self.number)


def key_of(provider: UUID, *, is_classic: bool, event_id: int, opcode: int) -> EventKey:
    """The dispatch key of a record, used both to fill the table and to ask it."""
    return EventKey(provider, is_classic, opcode if is_classic else event_id)


def table_of(schemas: Iterable[EventSchema]) -> dict[EventKey, tuple[EventSchema, ...]]:
    """All layouts by key, ordered by version. Raises ValueError when two layouts claim one version of one key."""
    table: dict[EventKey, list[EventSchema]] = {}
    for schema in schemas:
        known = table.setdefault(schema.key, [])
        taken = {version for other in known for version in other.versions}
        if taken & set(schema.versions):
            raise ValueError(f"{schema.name}: version {sorted(taken & set(schema.versions))} of {schema.key} is declared twice")
        known.append(schema)
    return {key: tuple(sorted(known, key=lambda s: min(s.versions, default=0))) for key, known in table.items()}


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
    uint32 with the first octet in the top bits. sockaddr, ipv6, guid and sid are uint8 of shape (m, width), zero padded; the length
    of a sockaddr is in its length field. `missing[name]` is a bool array (m,) for each field that some record lacks; where it
    is true the number column holds 0, a text ''.
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

    def get(self, name: str) -> EventColumns | None:
        """The columns of one event, None where it does not occur."""
        return self.events.get(name)
