"""Properties of event metadata to our fields: which in-types we can follow, and how."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from collector.schema import WIDTHS, Field, FieldType

__all__ = ["Property", "Unsupported", "fields_of", "snake_case"]

_STRUCT, _PARAM_LENGTH, _PARAM_COUNT, _CUSTOM_SCHEMA = 1, 2, 4, 0x80
_PORT, _IPV4, _IPV6, _SOCKET_ADDRESS = 22, 23, 24, 25  # out-types
_BINARY, _SYSTEMTIME = 14, 18
_MAX_FIELDS = 512  # arrays of fixed count become fields of their own
_MAX_DEPTH = 4
_MAX_STEPS = 4096  # structures may hold each other

# In-types of tdh.h: those of fixed width, then texts and SIDs.
_NUMBERS = {
    3: FieldType.I8,
    4: FieldType.U8,
    5: FieldType.I16,
    6: FieldType.U16,
    7: FieldType.I32,
    8: FieldType.U32,
    9: FieldType.I64,
    10: FieldType.U64,
    11: FieldType.F32,
    12: FieldType.F64,
    13: FieldType.BOOL32,
    15: FieldType.GUID,
    16: FieldType.POINTER,
    17: FieldType.U64,  # FILETIME
    20: FieldType.U32,
    21: FieldType.U64,
    306: FieldType.U16,  # one character
    307: FieldType.U8,
    308: FieldType.SIZET,
}
_TEXTS = {1: FieldType.UTF16, 2: FieldType.ANSI}
_COUNTED = {22: FieldType.COUNTED_UTF16, 23: FieldType.COUNTED_ANSI, 300: FieldType.COUNTED_UTF16, 301: FieldType.COUNTED_ANSI}
_SIDS = {19: FieldType.BARE_SID, 310: FieldType.SID}
_LISTED = (FieldType.U8, FieldType.U16, FieldType.U32, FieldType.U64, FieldType.POINTER, FieldType.SIZET)


class Unsupported(Exception):
    """A layout that we cannot follow; the message is the reason, short enough to count by."""


@dataclass(frozen=True, slots=True)
class Property:
    """One EVENT_PROPERTY_INFO. `in_type` and `out_type` of a structure are its first member and their number."""

    name: str
    flags: int
    in_type: int
    out_type: int
    map_name: str
    count: int
    length: int

    @property
    def is_struct(self) -> bool:
        return bool(self.flags & _STRUCT)


def fields_of(properties: Sequence[Property], top_level: int) -> tuple[Field, ...]:
    """The fields of an event in the order of its payload.

    Members of a structure follow in its place, named after it; elements of an array of fixed count are fields with a number.

    Raises: Unsupported for in-types without a known form, and arrays of structures of a count that the payload gives.
    """
    return tuple(_Flattening(properties).run(range(top_level)))


def snake_case(name: str) -> str:
    """AddressLen → address_len, NotificationContext1 → notification_context1, TLBacklogCount → tl_backlog_count."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"\W+", "_", words).strip("_").lower()


class _Flattening:
    """The walk over the properties of one event; remembers under which name each number was read."""

    def __init__(self, properties: Sequence[Property]) -> None:
        self._properties = properties
        self._names: dict[int, str] = {}
        """Field name of each property that was met: lengths and counts refer to it."""
        self._fields: list[Field] = []
        self._taken: set[str] = set()
        self._steps = 0

    def run(self, top_level: range) -> list[Field]:
        for index in top_level:
            self._add(index, prefix="", depth=0)
        return self._fields

    def _add(self, index: int, *, prefix: str, depth: int) -> None:
        self._steps += 1
        if index >= len(self._properties) or depth > _MAX_DEPTH or self._steps > _MAX_STEPS:
            raise Unsupported("structure out of bounds")
        what = self._properties[index]
        if what.flags & _CUSTOM_SCHEMA:
            raise Unsupported("custom schema")
        name = prefix + what.name
        if what.flags & _PARAM_COUNT:
            self._add_list(what, name)
            return
        count = max(what.count, 1)
        if count > _MAX_FIELDS:
            raise Unsupported("too many fields")
        for i in range(count):
            numbered = name if count == 1 else f"{name}_{i}"
            if what.is_struct:
                for member in range(what.in_type, what.in_type + what.out_type):
                    self._add(member, prefix=numbered + "_", depth=depth + 1)
            else:
                self._append(index, self._field(what, numbered))

    def _append(self, index: int | None, new: Field) -> None:
        if len(self._fields) >= _MAX_FIELDS:
            raise Unsupported("too many fields")
        name, number = new.name, 2
        while name in self._taken:
            name, number = f"{new.name}_{number}", number + 1
        self._taken.add(name)
        if index is not None:
            self._names[index] = name
        self._fields.append(
            new if name == new.name else Field(name, new.type, new.unit, new.enum, new.required, new.length_field, new.length)
        )

    def _add_list(self, what: Property, name: str) -> None:
        """An array whose count another property gives: only of numbers."""
        element = None if what.is_struct else _NUMBERS.get(what.in_type)
        if element not in _LISTED:
            raise Unsupported("array of structures" if what.is_struct else f"array of in-type {what.in_type}")
        self._append(None, Field(name, FieldType.POINTERS, length_field=self._number(what.count), element=element))

    def _field(self, what: Property, name: str) -> Field:
        length_field = self._number(what.length) if what.flags & _PARAM_LENGTH else None
        length = what.length if what.length and length_field is None else None
        if what.in_type in _NUMBERS:
            return Field(name, _shown(_NUMBERS[what.in_type], what.out_type), enum=what.map_name or None)
        if what.in_type in _TEXTS:
            return Field(name, _TEXTS[what.in_type], required=False, length_field=length_field, length=length)
        if what.in_type in _COUNTED:
            return Field(name, _COUNTED[what.in_type], required=False)
        if what.in_type in _SIDS:
            return Field(name, _SIDS[what.in_type])
        if what.in_type == _SYSTEMTIME:
            return Field(name, FieldType.BYTES, length=16)
        if what.in_type == _BINARY:
            return _binary(name, what.out_type, length_field, length)
        raise Unsupported(f"in-type {what.in_type}")

    def _number(self, index: int) -> str:
        """Name of the number that a length or count refers to; it must stand before, and once."""
        name = self._names.get(index)
        known = next((f for f in self._fields if f.name == name), None)
        if known is None or WIDTHS.get(known.type, 0) not in (1, 2, 4, 8) or known.type in (FieldType.F32, FieldType.F64):
            raise Unsupported("length or count out of place")
        return known.name


def _shown(kind: FieldType, out_type: int) -> FieldType:
    """Numbers in network order are marked by their out-type alone."""
    if kind is FieldType.U16 and out_type == _PORT:
        return FieldType.PORT
    return FieldType.IPV4 if kind is FieldType.U32 and out_type == _IPV4 else kind


def _binary(name: str, out_type: int, length_field: str | None, length: int | None) -> Field:
    if out_type == _IPV6 and length_field is None and length in (None, 16):
        return Field(name, FieldType.IPV6)
    if length_field is None and length is None:
        raise Unsupported("binary without length")
    kind = FieldType.SOCKADDR if out_type == _SOCKET_ADDRESS else FieldType.BYTES
    return Field(name, kind, length_field=length_field, length=length)
