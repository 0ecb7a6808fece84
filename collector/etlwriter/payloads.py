"""Payloads from the declarations of events: values by field name in, packed bytes out."""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import cast
from uuid import UUID

from collector.etlwriter.addresses import ipv4_bytes, ipv6_bytes, sockaddr_bytes
from collector.schema import EventSchema, Field, FieldType

__all__ = ["Value", "Values", "payload_bytes"]

Value = int | bool | float | str | bytes | UUID | Iterable[int] | Iterable[tuple[int, int]]
Values = Mapping[str, Value]

_CODES = {
    FieldType.U8: "B",
    FieldType.U16: "H",
    FieldType.U32: "I",
    FieldType.U64: "Q",
    FieldType.I8: "b",
    FieldType.I16: "h",
    FieldType.I32: "i",
    FieldType.I64: "q",
    FieldType.BOOL32: "I",
}
_POINTERS = {4: "I", 8: "Q"}


def payload_bytes(schema: EventSchema, values: Values, *, pointer_size: int) -> bytes:
    """The payload of one record.

    Fields follow each other without padding. A length field that is not given is taken from the field that it measures. Fields
    that are not required end the payload at the first one without a value. Numbers are cut to their width, as the kernel does.

    Raises: KeyError for a required field without a value, and for a value that no field has.
    """
    if strange := set(values) - {field.name for field in schema.fields}:
        raise KeyError(f"{schema.name} has no field {sorted(strange)}")
    complete = dict(values)
    for field in schema.fields:
        if field.length_field and field.length_field not in complete and field.name in complete:
            complete[field.length_field] = _measure(field, complete[field.name])
    parts = []
    for field in schema.fields:
        if field.name not in complete:
            if field.required and field.type is not FieldType.REST:
                raise KeyError(f"{schema.name} needs a value for {field.name}")
            break
        parts.append(_field_bytes(field, complete[field.name], pointer_size))
    return b"".join(parts)


def _measure(field: Field, value: Value) -> int:
    """What a length field says about the field it measures: bytes of an address, number of ranges or of list elements."""
    if field.type is FieldType.SOCKADDR:
        return len(sockaddr_bytes(cast(str | bytes, value)))
    return len(list(cast(Iterable[object], value)))


def _field_bytes(field: Field, value: Value, pointer_size: int) -> bytes:
    kind = field.type
    if kind in _CODES:
        return _number(_CODES[kind], cast(int, value))
    if kind in (FieldType.POINTER, FieldType.SIZET):
        return _number(_POINTERS[pointer_size], cast(int, value))
    if kind in (FieldType.F32, FieldType.F64):
        return struct.pack("<f" if kind is FieldType.F32 else "<d", value)
    if kind is FieldType.PORT:
        return struct.pack(">H", cast(int, value))
    if kind is FieldType.GUID:
        return cast(UUID, value).bytes_le
    if kind is FieldType.POINTERS:
        code = _POINTERS[pointer_size] if field.element in (None, FieldType.POINTER) else _CODES[field.element]
        return b"".join(_number(code, number) for number in cast(Iterable[int], value))
    if kind is FieldType.RANGES:
        pairs = cast(Iterable[tuple[int, int]], value)
        return b"".join(_number(_POINTERS[pointer_size], part) for pair in pairs for part in pair)
    if kind is FieldType.SID:
        return _sid(cast(bytes, value), pointer_size)
    return _TEXTS[kind](value)


def _number(code: str, value: int) -> bytes:
    width = struct.calcsize(code)
    return (int(value) & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def _sid(sid: bytes, pointer_size: int) -> bytes:
    """A TOKEN_USER (two pointers that mean nothing in a file) and the SID; four zero bytes for no user."""
    if not sid:
        return bytes(4)
    return (0xFFFFD00000000060 & ((1 << 8 * pointer_size) - 1)).to_bytes(pointer_size, "little") + bytes(pointer_size) + sid


def _ansi(text: str | bytes) -> bytes:
    return (text if isinstance(text, bytes) else text.encode()) + b"\0"


def _utf16(text: str | bytes) -> bytes:
    return (text if isinstance(text, bytes) else text.encode("utf-16-le", "surrogatepass")) + b"\0\0"


def _counted_ansi(text: str) -> bytes:
    return struct.pack("<H", len(text.encode())) + text.encode()


def _counted_utf16(text: str) -> bytes:
    return struct.pack("<H", 2 * len(text)) + text.encode("utf-16-le")


_TEXTS: dict[FieldType, Callable[..., bytes]] = {
    FieldType.IPV4: ipv4_bytes,
    FieldType.IPV6: ipv6_bytes,
    FieldType.SOCKADDR: sockaddr_bytes,
    FieldType.ANSI: _ansi,
    FieldType.UTF16: _utf16,
    FieldType.COUNTED_ANSI: _counted_ansi,
    FieldType.COUNTED_UTF16: _counted_utf16,
    FieldType.BYTES: bytes,
    FieldType.BARE_SID: bytes,
    FieldType.REST: bytes,
}
