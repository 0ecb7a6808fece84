"""A value as a tool of Windows writes it, back into the value of a field: numbers of any locale, addresses, identities, bytes."""

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from uuid import UUID

from collector.clock import FILETIME_PER_SECOND
from collector.etlwriter.addresses import sockaddr_bytes
from collector.etlwriter.payloads import Value
from collector.schema import EventSchema, Field, FieldType
from collector.texts.unread import NoMoment
from collector.texts.words import WORDS

__all__ = ["filetime_of", "guid_of", "hex_bytes", "id_of", "number_of", "plain_name", "values_of"]

_GROUPED = re.compile(r"[+-]?(?:\d{1,3}([\s.,'’_٬])\d{3}(?:\1\d{3})*|\d{1,2},(?:\d\d,)+\d{3})")
"""Groups of three with one and the same separator, or as in India: three digits, before them groups of two."""
_MOST_DIGITS = 40
_CLOCK = r"([01]\d|2[0-3]):([0-5]\d):([0-5]\d)"
_ZONE = r"(?:(Z)|([+-])([01]\d|2[0-3]):?([0-5]\d))?"
_TIME = re.compile(rf"(\d{{4}})-(\d\d)-(\d\d)[T ]{_CLOCK}(?:[.,](\d{{1,9}})\d*)?\s*{_ZONE}", re.ASCII)
_FIRST_DAY = date(1601, 1, 1).toordinal()
_SID = re.compile(r"S-(\d{1,3})-(\d{1,15}|0x[0-9A-Fa-f]{1,12})((?:-\d{1,10}){0,15})", re.ASCII)
_HEX = re.compile(r"(?:0[xX])?[0-9A-Fa-f\s]+")
_ADDRESS_BYTES = 128
_SIGNED = {FieldType.I8, FieldType.I16, FieldType.I32, FieldType.I64}
_STATUSES = {"NTSTATUS", "Win32"}
_MAY_BE_NONE = re.compile(r".*(?:pid|_id|process|thread)")
"""Ids, of which -1 is that of none."""


def number_of(text: str) -> int:
    """A whole number: decimal, with the separators of any locale between groups, or hexadecimal with 0x. Raises ValueError."""
    if text.isdecimal() and len(text) <= _MOST_DIGITS:  # nearly all of them
        return int(text)
    text = text.strip()
    if len(text) > _MOST_DIGITS:
        raise ValueError("a number of too many digits")
    if text[:2].lower() == "0x":
        return int(text[2:], 16)
    if text.lstrip("+-").isdecimal():
        return int(text)
    if _GROUPED.fullmatch(text):
        return int("".join(c for c in text if c.isdecimal() or c in "+-"))
    raise ValueError(f"not a number: {text!r}")


def id_of(text: str) -> int:
    """The number of a process or thread; -1 is how some tools write 0xFFFFFFFF, that of none. Raises ValueError."""
    if not -1 <= (number := number_of(text)) <= 0xFFFFFFFF:
        raise ValueError(f"not the number of a process or thread: {text[:_MOST_DIGITS]!r}")
    return number & 0xFFFFFFFF


def filetime_of(text: str) -> int:
    """A moment as FILETIME; without a zone it is taken as UTC. Raises NoMoment."""
    found = _TIME.fullmatch(text.strip())
    if not found:
        raise NoMoment
    year, month, day, hour, minute, second, part, _, sign, hours, minutes = found.groups()
    seconds = _days(int(year), int(month), int(day)) * 86_400 + int(hour) * 3600 + int(minute) * 60 + int(second)
    if sign:
        seconds -= (int(hours) * 3600 + int(minutes) * 60) * (1 if sign == "+" else -1)
    filetime = seconds * FILETIME_PER_SECOND + int((part or "0").ljust(9, "0")) // 100
    if filetime <= 0:
        raise NoMoment
    return filetime


@lru_cache(maxsize=64)
def _days(year: int, month: int, day: int) -> int:
    try:
        return date(year, month, day).toordinal() - _FIRST_DAY
    except ValueError as error:
        raise NoMoment from error


@lru_cache(maxsize=1024)
def guid_of(text: str) -> UUID:
    """`{68fdd900-4a3e-11d1-84f4-0000f80464e3}`, braces or not. Raises ValueError."""
    return UUID(text.strip().strip("{}"))


def hex_bytes(text: str) -> bytes:
    """Bytes in hexadecimal, with or without 0x and spaces. Raises ValueError."""
    text = "".join(text.split())
    return bytes.fromhex(text[2:] if text[:2].lower() == "0x" else text)


@lru_cache(maxsize=1024)
def plain_name(name: str) -> str:
    """A field's name as manifests (`BufferLength`) and our declarations (`buffer_length`) share it."""
    return name.replace("_", "").lower()


def values_of(schema: EventSchema, found: Mapping[str, str], listed: list[str], pointer_size: int) -> dict[str, Value]:
    """The values of an event's fields.

    Args:
        found: texts by `plain_name`.
        listed: all texts in their order, for tools that leave names out or have others.

    Raises: ValueError for a text that is no value of its field, and where a required one is missing.
    """
    texts = {field.name: found[name] for field in schema.fields if (name := plain_name(field.name)) in found}
    lacking = [f.name for f in schema.fields if f.required and f.name not in texts and f.type is not FieldType.SID]
    if lacking and texts:  # how long a value is follows from it
        lacking = [name for name in lacking if not any(f.length_field == name and f.name in texts for f in schema.fields)]
    if lacking:
        for fields in (schema.fields, [field for field in schema.fields if field.type is not FieldType.SID]):
            if sum(field.required for field in fields) <= len(listed) <= len(fields):
                texts = {field.name: text for field, text in zip(fields, listed, strict=False)}
                lacking = []
                break
    if lacking:
        raise ValueError(f"{schema.name} has no {lacking[0]}")
    no_user: dict[str, Value] = {field.name: b"" for field in schema.fields if field.type is FieldType.SID}  # tools leave it out
    return no_user | {field.name: _value(field, texts[field.name], pointer_size) for field in schema.fields if field.name in texts}


def _value(field: Field, text: str, pointer_size: int) -> Value:
    if field.type in _READERS:
        return _READERS[field.type](text)
    if field.enum is not None and not text[:1].isdecimal() and (word := text.strip().lower()) in (words := WORDS.get(field.enum, {})):
        return words[word]
    number = number_of(text)
    bits = 8 * (field.width(pointer_size) or 8)
    if not (0 if number >= 0 else _least(field, bits)) <= number < 1 << bits:  # of signed ones the bits may stand there, as 0xC0000043
        raise ValueError(f"{field.name} has no room for {text[:_MOST_DIGITS]}")
    return number


def _least(field: Field, bits: int) -> int:
    """The least number that tools write for a field: of a status or the value of an option with its sign, too."""
    if field.type in _SIGNED or field.enum in _STATUSES or field.name == "value":
        return -(1 << bits - 1)
    return -1 if _MAY_BE_NONE.fullmatch(field.name) else 0


def _truth(text: str) -> int:
    word = text.strip().lower()
    return {"true": 1, "false": 0}[word] if word in ("true", "false") else _bits32(text)


def _bits32(text: str) -> int:
    """32 bits, which may be written with a sign."""
    if not -(1 << 31) <= (number := number_of(text)) < 1 << 32:
        raise ValueError(f"no 32 bits: {text[:_MOST_DIGITS]!r}")
    return number & 0xFFFFFFFF


def _port(text: str) -> int:
    if not 0 <= (number := number_of(text)) <= 0xFFFF:
        raise ValueError(f"not a port: {text!r}")
    return number


def _ipv4(text: str) -> str | bytes:
    return text.strip() if "." in text else _bits32(text).to_bytes(4, "little")


def _sockaddr(text: str) -> bytes:
    text = text.strip()
    found = sockaddr_bytes(text) if ":" in text and not text.lower().startswith("0x") else hex_bytes(text)
    if len(found) > _ADDRESS_BYTES:
        raise ValueError("an address of too many bytes")
    return found


def _sid(text: str) -> bytes:
    text = text.strip()
    if not (found := _SID.fullmatch(text)):
        return hex_bytes(text) if not text or _HEX.fullmatch(text) else b""  # the name of an account, whose SID nobody can tell
    revision, authority, parts = found.groups()
    numbers = [int(part) for part in parts.split("-")[1:]]
    try:
        head = bytes([int(revision), len(numbers)]) + int(authority, 0).to_bytes(6, "big")
        return head + b"".join(number.to_bytes(4, "little") for number in numbers)
    except OverflowError as error:
        raise ValueError("an identity with a number that has no room") from error


def _no_list(text: str) -> Value:
    raise ValueError("lists are not written out in a form that can be read back")


_READERS: Mapping[FieldType, Callable[[str], Value]] = {
    FieldType.BOOL32: _truth,
    FieldType.PORT: _port,
    FieldType.IPV4: _ipv4,
    FieldType.IPV6: str.strip,
    FieldType.GUID: guid_of,
    FieldType.SOCKADDR: _sockaddr,
    FieldType.ANSI: str,
    FieldType.UTF16: str,
    FieldType.SID: _sid,
    FieldType.REST: hex_bytes,
    FieldType.POINTERS: _no_list,
    FieldType.RANGES: _no_list,
}
