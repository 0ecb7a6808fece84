"""Records of the events that we know: values by field name in, a record with the header of its kind out.

What the kernel puts into the header beside time and ids (opcode, level, keyword, hook) follows from the event and its values, as the
providers' manifests and recorded files have it; every one of them can be given instead.
"""

from collections.abc import Mapping
from functools import cache
from typing import TypedDict, Unpack
from uuid import UUID

from collector.etlwriter.items import Item
from collector.etlwriter.payloads import Values, payload_bytes
from collector.etlwriter.records import HOOK_KINDS, NO_GUID, Record
from collector.events import ALL_EVENTS
from collector.events.afd import AFD
from collector.events.heap import HEAP, MEMORY
from collector.events.network import TCP_CLASS, UDP_CLASS
from collector.events.system import IMAGE, PROCESS, STACK_WALK, THREAD
from collector.raw import HeaderKind
from collector.schema import EventSchema

__all__ = ["CHANNEL", "HeaderValues", "activity_of", "afd_keyword", "record_of", "schema_of"]

CHANNEL = 0x8000_0000_0000_0000
"""Keyword bit of the operational channel, on every event of the socket provider."""

_GROUPS: Mapping[UUID, int] = {
    MEMORY: 0x02,
    PROCESS: 0x03,
    THREAD: 0x05,
    TCP_CLASS: 0x06,
    UDP_CLASS: 0x08,
    HEAP: 0x10,
    IMAGE: 0x14,
    STACK_WALK: 0x18,
}
"""Hook group by class; other classic classes have a full header."""

_AFD_OPCODES: Mapping[int, int] = {
    **dict.fromkeys((1000, 4000, 4002, 4006, 4010, 4016), 10),
    **dict.fromkeys(range(1003, 1034), 12),
    **dict.fromkeys((3006,), 13),
    **dict.fromkeys((1032,), 14),
    **dict.fromkeys((1001, 4001, 4003, 4007, 4011, 4017), 15),
    **dict.fromkeys((1002, 4004, 4008, 4012), 16),
    **dict.fromkeys((4005, 4009), 17),
}
_VERBOSE = frozenset({*range(18, 40), 41})
_INFORMATION, _ERROR, _DETAIL = 4, 2, 5


class HeaderValues(TypedDict, total=False):
    """What a caller may say about the header of a record."""

    kind: HeaderKind
    version: int
    pid: int
    tid: int
    level: int
    opcode: int
    keyword: int
    activity: UUID
    items: tuple[Item, ...]


@cache
def _by_name() -> dict[str, tuple[EventSchema, ...]]:
    found: dict[str, tuple[EventSchema, ...]] = {}
    for schema in ALL_EVENTS:
        found[schema.name] = (*found.get(schema.name, ()), schema)
    return found


def schema_of(name: str, version: int | None = None) -> EventSchema:
    """The declaration of an event, that of its newest version unless one is named. Raises KeyError for an unknown name or version."""
    schemas = _by_name()[name]
    if version is None:
        return max(schemas, key=lambda schema: max(schema.versions, default=0))
    for schema in schemas:
        if not schema.versions or version in schema.versions:
            return schema
    raise KeyError(f"{name} has no version {version}")


def record_of(name: str, values: Values, *, ticks: int, pointer_size: int = 8, **header: Unpack[HeaderValues]) -> Record:
    """A record of an event by name.

    Raises: KeyError for an unknown event, and for values that its fields do not take.
    """
    schema = schema_of(name, header.get("version"))
    version = header.get("version", max(schema.versions, default=2 if schema.is_classic else 0))
    kind = header.get("kind", _kind_of(schema, pointer_size))
    return Record(
        kind=kind,
        ticks=ticks,
        payload=payload_bytes(schema, values, pointer_size=pointer_size),
        provider=NO_GUID if kind in HOOK_KINDS else schema.provider,
        group=_GROUPS.get(schema.provider, 0),
        event_id=0 if schema.is_classic else schema.number,
        opcode=header.get("opcode", schema.number if schema.is_classic else _AFD_OPCODES.get(schema.number, 0)),
        version=version,
        level=header.get("level", _level_of(schema, values)),
        channel=16 if schema.provider == AFD else 0,
        keyword=header.get("keyword", CHANNEL if schema.provider == AFD else 0),
        pid=header.get("pid", 0),
        tid=header.get("tid", 0),
        activity=header.get("activity", NO_GUID),
        items=header.get("items", ()),
    )


def _kind_of(schema: EventSchema, pointer_size: int) -> HeaderKind:
    """The header kind in which recorded files have the event: rundowns and stacks have no ids of their own."""
    is_wide = pointer_size == 8
    if not schema.is_classic:
        return HeaderKind.EVENT64 if is_wide else HeaderKind.EVENT32
    if schema.provider not in _GROUPS:
        return HeaderKind.FULL64 if is_wide else HeaderKind.FULL32
    if schema.provider in (STACK_WALK, TCP_CLASS, UDP_CLASS) or schema.name.endswith(("DCStart", "DCEnd")):
        return HeaderKind.PERFINFO64 if is_wide else HeaderKind.PERFINFO32
    return HeaderKind.SYSTEM64 if is_wide else HeaderKind.SYSTEM32


def _level_of(schema: EventSchema, values: Values) -> int:
    """The driver logs failing statuses at level 2, whatever the manifest says."""
    if schema.is_classic:
        return 0
    if schema.number < 1000:
        return _DETAIL if schema.number in _VERBOSE else _INFORMATION
    status = values.get("status", 0)
    return _ERROR if schema.number in (1032, 1033) or (isinstance(status, int) and status >> 31) else _INFORMATION


def afd_keyword(number: int, *, is_datagram: bool = False, is_fast: bool = False, is_buffered: bool = False) -> int:
    """Keyword mask of a modern socket event: channel, origin, kind of socket, path."""
    if number < 1000:
        return CHANNEL | (0x100_0000_0000 if number in (33, 34) else 0)
    if number >= 4000:
        return CHANNEL | (0x80 if number in (4016, 4017) else 0x40)
    origin = 0x8 if number >= 3000 else 0x4
    kind = 0x1 if is_datagram else 0x2
    drop = 0x100_0000_0000 if number == 1033 else 0
    return CHANNEL | drop | origin | kind | (0x10 if is_fast else 0) | (0x20 if is_buffered else 0)


def activity_of(address: int) -> UUID:
    """The ActivityId of a request: the first eight bytes are the address of the I/O request."""
    return UUID(bytes_le=address.to_bytes(8, "little") + bytes(8))
