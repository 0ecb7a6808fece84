"""Records that describe the layout of modern events inside the file, as the merge step writes them.

The payload is a TRACE_EVENT_INFO: 112 bytes, 24 bytes a property, then the names as UTF-16. The record has the time, processor and
process of the first event that it describes and stands just before it.
"""

import struct
from uuid import UUID

from collector.etlwriter.records import POINTER_SIZES, Record, record_bytes
from collector.raw import HeaderKind
from collector.schema import EventSchema, Field, FieldType

__all__ = ["METADATA_CLASS", "metadata_of", "trace_event_info"]

METADATA_CLASS = UUID("bbccf6c1-6cd1-48c4-80ff-839482e37671")
_EVENT_INFO = 32
_HEAD_SIZE = 112
_PROPERTY_SIZE = 24
_PARAM_LENGTH = 2
_PARAM_COUNT = 4

# In-type and out-type of the manifest language by field type.
_TYPES: dict[FieldType, tuple[int, int]] = {
    FieldType.U8: (4, 4),
    FieldType.U16: (6, 6),
    FieldType.U32: (8, 8),
    FieldType.U64: (10, 10),
    FieldType.I8: (3, 3),
    FieldType.I16: (5, 5),
    FieldType.I32: (7, 7),
    FieldType.I64: (9, 9),
    FieldType.POINTER: (16, 19),
    FieldType.SIZET: (308, 19),
    FieldType.POINTERS: (16, 19),
    FieldType.BOOL32: (13, 13),
    FieldType.IPV4: (8, 23),
    FieldType.IPV6: (14, 24),
    FieldType.PORT: (6, 22),
    FieldType.GUID: (15, 14),
    FieldType.SOCKADDR: (14, 25),
    FieldType.ANSI: (2, 1),
    FieldType.UTF16: (1, 1),
    FieldType.SID: (19, 1),
    FieldType.REST: (305, 1),
}


def metadata_of(schema: EventSchema, first: Record, provider_name: str = "Microsoft-Windows-Winsock-AFD") -> bytes:
    """The record that describes an event, for the first record of it."""
    size = POINTER_SIZES[first.kind]
    return record_bytes(
        Record(
            kind=HeaderKind.FULL64 if size == 8 else HeaderKind.FULL32,
            ticks=first.ticks,
            provider=METADATA_CLASS,
            opcode=_EVENT_INFO,
            pid=first.pid,
            tid=first.tid,
            payload=trace_event_info(schema, first, provider_name=provider_name, pointer_size=size),
        )
    )


def trace_event_info(schema: EventSchema, first: Record, *, provider_name: str, pointer_size: int) -> bytes:
    """The blob that describes an event; descriptor values are those of `first`."""
    fields = schema.fields
    texts = _Texts(_HEAD_SIZE + _PROPERTY_SIZE * len(fields))
    names = {field.name: index for index, field in enumerate(fields)}
    properties = b"".join(_property(field, names, texts.add(_manifest_name(field.name)), pointer_size) for field in fields)
    provider = texts.add(provider_name)
    task = texts.add(schema.name + " ")
    head = schema.provider.bytes_le + bytes(16)
    head += struct.pack("<HBBBBHQ", schema.number, first.version, first.channel, first.level, first.opcode, first.task, first.keyword)
    head += struct.pack("<11I", 0, provider, 0, 0, 0, task, 0, 0, 0, 0, 0)
    head += struct.pack("<5I", 0, 0, len(fields), len(fields), 1)
    assert len(head) == _HEAD_SIZE, len(head)
    return head + properties + texts.bytes()


def _property(field: Field, names: dict[str, int], name_offset: int, pointer_size: int) -> bytes:
    in_type, out_type = _TYPES[field.type]
    flags, count, length = 0, 1, field.width(pointer_size) or 0
    if field.type is FieldType.SOCKADDR and field.length_field:
        flags, length = _PARAM_LENGTH, names[field.length_field]
    elif field.type is FieldType.IPV6:
        length = 0
    elif field.type is FieldType.RANGES:
        raise ValueError("an array of ranges has no manifest type")
    return struct.pack("<IIHHIHHI", flags, name_offset, in_type, out_type, 0, count, length, 0)


def _manifest_name(name: str) -> str:
    """enter_exit → EnterExit."""
    return "".join(part.capitalize() for part in name.split("_"))


class _Texts:
    """Zero-terminated texts, one behind the other, by their offset."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._data = bytearray()

    def add(self, text: str) -> int:
        offset = self._start + len(self._data)
        self._data += text.encode("utf-16-le") + b"\0\0"
        return offset

    def bytes(self) -> bytes:
        return bytes(self._data)
