"""An ETL file as XML, as tracerpt and the Event Viewer write it: by our own decoder, with the manifests' names."""

from collections.abc import Iterator
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any
from uuid import UUID
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from collector.clock import filetime_to_datetime
from collector.decoder import Decoder
from collector.events import ALL_EVENTS
from collector.raw import HeaderKind, RawEvents
from collector.readers import reader_for
from collector.schema import EventColumns, Field, FieldType
from collector.source import Source

__all__ = ["event_xml"]

_HEX = {FieldType.POINTER, FieldType.SIZET}
_FIELDS = {schema.name: {field.name: field for field in schema.fields} for schema in ALL_EVENTS}
for _schema in ALL_EVENTS:
    _FIELDS[_schema.name] |= {field.name: field for field in _schema.fields}


def event_xml(path: Path, *, is_grouped: bool = False, is_reversed: bool = False, is_undecoded: bool = False) -> str:
    """The text; `is_grouped` writes large numbers with separators, `is_reversed` the last event first, as the Event Viewer may.

    With `is_undecoded` the tool did not know the layouts.
    """
    with Source.open(path) as source:
        reader = reader_for(source)
        clock, decoder, events = reader.header.clock, Decoder(header=reader.header), []
        for raw in reader.windows():
            batch = decoder.decode(raw, clock)
            fields: dict[int, str] = {}
            for columns in batch.events.values():
                for n, row in enumerate(columns.rows.tolist()):
                    fields[row] = "".join(_fields(columns, n, is_grouped=is_grouped))
            for row in range(len(raw)):
                filetime = clock.start_filetime + int(batch.ns[row]) // 100
                bare = f"<BinaryEventData>{raw.payload_bytes(row).hex().upper()}</BinaryEventData>"
                events.append(
                    _event(raw, row, filetime, f"<EventData>{fields[row]}</EventData>" if row in fields and not is_undecoded else bare)
                )
        header = reader.header
        about = {
            "BufferSize": header.buffer_size, "ProviderVersion": header.os_build, "NumberOfProcessors": header.processors,
            "PointerSize": header.pointer_size, "EventsLost": header.events_lost, "BuffersLost": header.buffers_lost,
            "CPUSpeed": header.cpu_mhz, "BootTime": header.boot_filetime, "StartTime": clock.start_filetime,
            "EndTime": header.end_filetime, "TimerResolution": header.timer_resolution,
        }  # fmt: skip
    data = "".join(f'<Data Name="{name}">{value}</Data>' for name, value in about.items())
    first = _system(UUID("9e814aad-3204-11d2-9a82-006008a86939"), clock.start_filetime, "", 0, 0) + f"<EventData>{data}</EventData>"
    first += _class(UUID("68fdd900-4a3e-11d1-84f4-0000f80464e3"))
    events[0] = f"<Event>{first}</Event>"  # instead of the record that stands in the header
    return '<?xml version="1.0"?>\n<Events>\n' + "\n".join(reversed(events) if is_reversed else events) + "\n</Events>\n"


def _event(raw: RawEvents, row: int, filetime: int, data: str) -> str:
    guid = raw.providers[int(raw.provider[row])]
    is_manifest = raw.kind[row] in (HeaderKind.EVENT32, HeaderKind.EVENT64)
    numbers = (
        f"<EventID>{raw.event_id[row]}</EventID><Version>{raw.version[row]}</Version><Level>{raw.level[row]}</Level><Task>0</Task>"
        f"<Opcode>{raw.opcode[row]}</Opcode><Keywords>0x{int(raw.keyword[row]):x}</Keywords>"
    )
    ids = f'<Execution ProcessID="{raw.pid[row] & 0xFFFFFFFF}" ThreadID="{raw.tid[row] & 0xFFFFFFFF}" ProcessorID="{raw.cpu[row]}"/>'
    activity = UUID(bytes_le=int(raw.activity[row]).to_bytes(8, "little") + bytes(8))
    ids += f'<Correlation ActivityID="{{{activity}}}"/>' if activity.int else "<Correlation/>"
    system = _system(guid, filetime, numbers, int(raw.opcode[row]), int(raw.cpu[row]), ids)
    rendered = "<RenderingInfo Culture='en-US'><Level>Information </Level><Opcode>Open </Opcode></RenderingInfo>"
    space = "http://schemas.microsoft.com/win/2004/08/events/event"
    return f"<Event xmlns='{space}'>{system}{data}{'' if is_manifest else _class(guid)}{rendered}</Event>"


def _system(guid: UUID, filetime: int, numbers: str, opcode: int, cpu: int, ids: str = "") -> str:
    moment = filetime_to_datetime(filetime)
    assert moment is not None
    time = f"{moment:%Y-%m-%dT%H:%M:%S}.{filetime % 10_000_000:07d}00Z"
    numbers = numbers or f"<EventID>0</EventID><Version>2</Version><Opcode>{opcode}</Opcode>"
    ids = ids or f'<Execution ProcessID="4" ThreadID="8" ProcessorID="{cpu}"/>'
    return f'<System><Provider Guid="{{{guid}}}" />{numbers}<TimeCreated SystemTime="{time}"/>{ids}<Channel /><Computer /></System>'


def _class(guid: UUID) -> str:
    space = "http://schemas.microsoft.com/win/2004/08/events/trace"
    return f"<ExtendedTracingInfo xmlns='{space}'><EventGuid>{{{guid}}}</EventGuid></ExtendedTracingInfo>"


def _fields(columns: EventColumns, n: int, *, is_grouped: bool) -> Iterator[str]:
    for name, column in columns.fields.items():
        if name in columns.missing and columns.missing[name][n]:
            continue
        field = _FIELDS[columns.name][name]
        if field.type in (FieldType.POINTERS, FieldType.RANGES):
            continue
        shown = "".join(part.capitalize() for part in name.split("_"))
        text = _text(field, column[n], columns, n, is_grouped=is_grouped)  # type: ignore[index]  # lists of addresses are left out
        yield f"<Data Name={quoteattr(shown)}>{escape(text)}</Data>"


def _text(field: Field, value: Any, columns: EventColumns, n: int, *, is_grouped: bool) -> str:  # Any: a cell of a column
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
    return f"{int(value):,}".replace(",", "\u00a0") if is_grouped else str(int(value))
