"""The events of an ETL file as tools of Windows tell them: by our own decoder, with the manifests' names and the tools' spellings."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from collector.decoder import Decoder
from collector.events import ALL_EVENTS
from collector.raw import HeaderKind, RawEvents, TraceHeader
from collector.readers import reader_for
from collector.schema import EventColumns, Field, FieldType
from collector.source import Source

__all__ = ["NUMBERS", "Number", "ToldEvent", "told_events"]

Number = Callable[[int], str]
"""How a tool writes a decimal number."""

_HEX = {FieldType.POINTER, FieldType.SIZET}
_FIELDS: dict[str, dict[str, Field]] = {schema.name: {} for schema in ALL_EVENTS}
for _schema in ALL_EVENTS:
    _FIELDS[_schema.name] |= {field.name: field for field in _schema.fields}


@dataclass(frozen=True, slots=True)
class ToldEvent:
    """One event; `values` are names and texts in the order of the layout, None where the layout is not known."""

    name: str
    provider: UUID
    is_manifest: bool
    event_id: int
    version: int
    level: int
    opcode: int
    keyword: int
    pid: int
    tid: int
    cpu: int
    filetime: int
    activity: UUID
    values: tuple[tuple[Field, str], ...] | None
    payload: bytes


def _in_lakhs(number: int) -> str:
    """As in India: three digits, before them groups of two."""
    head, parts = str(number)[:-3], [str(number)[-3:]]
    while head:
        head, part = head[:-2], head[-2:]
        parts.insert(0, part)
    return ",".join(parts)


NUMBERS: Mapping[str, Number] = {
    "commas": lambda number: f"{number:,}",
    "dots": lambda number: f"{number:,}".replace(",", "."),
    "blanks": lambda number: f"{number:,}".replace(",", "\u00a0"),
    "narrow blanks": lambda number: f"{number:,}".replace(",", "\u202f"),
    "apostrophes": lambda number: f"{number:,}".replace(",", "’"),
    "lakhs": _in_lakhs,
}
"""Separators of locales; of numbers that are not negative."""


def told_events(path: Path, *, number: Number = str) -> tuple[TraceHeader, list[ToldEvent]]:
    """The header of a file and its events in order."""
    with Source.open(path) as source:
        reader = reader_for(source)
        clock, decoder, events = reader.header.clock, Decoder(header=reader.header), []
        for raw in reader.windows():
            batch = decoder.decode(raw, clock)
            fields: dict[int, tuple[str, tuple[tuple[Field, str], ...]]] = {}
            for columns in batch.events.values():
                for n, row in enumerate(columns.rows.tolist()):
                    fields[row] = columns.name, tuple(_fields(columns, n, number))
            times = [clock.start_filetime + ns // 100 for ns in batch.ns.tolist()]
            events += [_told(raw, row, time, *fields.get(row, ("", None))) for row, time in enumerate(times)]
        return reader.header, events


def _told(raw: RawEvents, row: int, filetime: int, name: str, values: tuple[tuple[Field, str], ...] | None) -> ToldEvent:
    return ToldEvent(
        name=name,
        provider=raw.providers[int(raw.provider[row])],
        is_manifest=raw.kind[row] in (HeaderKind.EVENT32, HeaderKind.EVENT64),
        event_id=int(raw.event_id[row]),
        version=int(raw.version[row]),
        level=int(raw.level[row]),
        opcode=int(raw.opcode[row]),
        keyword=int(raw.keyword[row]),
        pid=int(raw.pid[row]) & 0xFFFFFFFF,
        tid=int(raw.tid[row]) & 0xFFFFFFFF,
        cpu=int(raw.cpu[row]),
        filetime=filetime,
        activity=UUID(bytes_le=int(raw.activity[row]).to_bytes(8, "little") + bytes(8)),
        values=values,
        payload=raw.payload_bytes(row),
    )


def _fields(columns: EventColumns, n: int, number: Number) -> Iterator[tuple[Field, str]]:
    for name, column in columns.fields.items():
        if name in columns.missing and columns.missing[name][n]:
            continue
        field = _FIELDS[columns.name][name]
        if field.type in (FieldType.POINTERS, FieldType.RANGES):
            continue
        yield field, _text(field, column[n], columns, n, number)  # type: ignore[index]  # lists of addresses are left out


def _text(field: Field, value: Any, columns: EventColumns, n: int, number: Number) -> str:  # Any: a cell of a column
    if field.type in _HEX:
        return f"0x{int(value):X}"
    if field.type is FieldType.SOCKADDR:
        return bytes(value).hex().upper()[: 2 * int(columns.numbers(field.length_field or "")[n])]
    if field.type is FieldType.SID:
        return bytes(value)[: 8 + 4 * int(value[1])].hex() if int(value[0]) else ""
    if field.type is FieldType.IPV6:
        return str(IPv6Address(bytes(value)))
    if field.type is FieldType.GUID:
        return f"{{{UUID(bytes_le=bytes(value))}}}"
    if field.type is FieldType.IPV4:
        return ".".join(str(int(value) >> shift & 0xFF) for shift in (24, 16, 8, 0))
    if field.type is FieldType.BOOL32:
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        return bytes(value).hex()
    return number(int(value))
