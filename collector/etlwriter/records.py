"""One record of a trace: header of any kind, extended items and payload as bytes.

Header layouts are those of the public kernel headers for ETW (SYSTEM, COMPACT, PERFINFO, EVENT_TRACE, EVENT_INSTANCE and EVENT
headers) and of WPP trace messages. The marker's byte 3 is 0xC0, or 0x90 for messages.
"""

import struct
from dataclasses import dataclass
from uuid import UUID

from collector.etlwriter.items import Item, items_bytes
from collector.raw import HeaderKind

__all__ = ["GROUPLESS", "HOOK_KINDS", "NO_GUID", "POINTER_SIZES", "Record", "record_bytes"]

NO_GUID = UUID(int=0)

GROUPLESS = frozenset({HeaderKind.FULL32, HeaderKind.FULL64, HeaderKind.INSTANCE32, HeaderKind.INSTANCE64})
"""Classic kinds that carry a class GUID."""

HOOK_KINDS = frozenset(
    {
        HeaderKind.SYSTEM32,
        HeaderKind.SYSTEM64,
        HeaderKind.COMPACT32,
        HeaderKind.COMPACT64,
        HeaderKind.PERFINFO32,
        HeaderKind.PERFINFO64,
    }
)
"""Classic kinds that carry a hook: group and opcode."""

POINTER_SIZES = {
    HeaderKind.SYSTEM32: 4,
    HeaderKind.COMPACT32: 4,
    HeaderKind.PERFINFO32: 4,
    HeaderKind.FULL32: 4,
    HeaderKind.INSTANCE32: 4,
    HeaderKind.EVENT32: 4,
    HeaderKind.SYSTEM64: 8,
    HeaderKind.COMPACT64: 8,
    HeaderKind.PERFINFO64: 8,
    HeaderKind.FULL64: 8,
    HeaderKind.INSTANCE64: 8,
    HeaderKind.EVENT64: 8,
}
"""Pointer size by header kind; a message says it in its options."""

_PEBS = 0x8000
_EXTENDED_INFO = 0x0001
_MESSAGE_SEQUENCE = 0x01
_MESSAGE_GUID = 0x02
_MESSAGE_COMPONENT = 0x04
_MESSAGE_TIME = 0x08
_MESSAGE_IDS = 0x20


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a record says; fields that its header kind has no room for are ignored.

    `group` is for kinds with a hook, `provider` for all others. `pmc` are extra counter words, `pebs` an extra index word of
    hook kinds. `options` are those of a message; its number is `event_id`.
    """

    kind: HeaderKind
    ticks: int
    payload: bytes = b""
    provider: UUID = NO_GUID
    group: int = 0
    event_id: int = 0
    opcode: int = 0
    version: int = 0
    level: int = 0
    channel: int = 0
    task: int = 0
    keyword: int = 0
    pid: int = 0
    tid: int = 0
    activity: UUID = NO_GUID
    kernel_time: int = 0
    user_time: int = 0
    event_property: int = 0
    items: tuple[Item, ...] = ()
    pebs: int | None = None
    pmc: tuple[int, ...] = ()
    instance: int = 0
    parent_instance: int = 0
    parent_provider: UUID = NO_GUID
    options: int = 0xAA
    sequence: int = 0
    component: int = 0
    flags: int = 0
    """Further flags of an EVENT header; whether items follow is added by itself."""


def record_bytes(record: Record) -> bytes:
    """A record without padding behind it; its length is the size that its header says.

    Raises: ValueError if that size does not fit in 16 bits or the kind has no known layout.
    """
    kind = record.kind
    if kind in HOOK_KINDS:
        body = _hook_words(record) + record.payload
        return _hook_header(record, body) + body
    if kind in GROUPLESS:
        body = _instance_words(record) + record.payload
        return _trace_header(record, _fits(48 + len(body))) + body
    if kind in (HeaderKind.EVENT32, HeaderKind.EVENT64):
        body = items_bytes(record.items) + record.payload
        return _event_header(record, _fits(80 + len(body))) + body
    if kind == HeaderKind.MESSAGE:
        body = _message_words(record) + record.payload
        return struct.pack("<HBBHH", _fits(8 + len(body)), 0, 0x90, record.event_id, record.options) + body
    raise ValueError(f"no layout is known for header kind {kind!r}")


def _fits(size: int) -> int:
    if size > 0xFFFF:
        raise ValueError(f"a record of {size:,} bytes is larger than its size field allows, 65,535")
    return size


def _ids(record: Record) -> tuple[int, int, int]:
    """Thread, process and time as every header but one has them; -1 is an id of all ones."""
    return record.tid & 0xFFFFFFFF, record.pid & 0xFFFFFFFF, record.ticks


def _hook_words(record: Record) -> bytes:
    words = ([] if record.pebs is None else [record.pebs]) + list(record.pmc)
    return struct.pack(f"<{len(words)}Q", *words)


def _hook_header(record: Record, body: bytes) -> bytes:
    version = record.version | (0 if record.pebs is None else _PEBS) | len(record.pmc) << 8
    head = (version, record.kind, 0xC0)
    if record.kind in (HeaderKind.PERFINFO32, HeaderKind.PERFINFO64):
        return struct.pack("<HBBHBBq", *head, _fits(16 + len(body)), record.opcode, record.group, record.ticks)
    ids = (record.opcode, record.group, *_ids(record))
    if record.kind in (HeaderKind.COMPACT32, HeaderKind.COMPACT64):
        return struct.pack("<HBBHBBIIq", *head, _fits(24 + len(body)), *ids)
    return struct.pack("<HBBHBBIIqII", *head, _fits(32 + len(body)), *ids, record.kernel_time, record.user_time)


def _trace_header(record: Record, size: int) -> bytes:
    head = struct.pack("<HBBBBH", size, record.kind, 0xC0, record.opcode, record.level, record.version)
    return head + struct.pack("<IIq", *_ids(record)) + record.provider.bytes_le + struct.pack("<II", record.kernel_time, record.user_time)


def _instance_words(record: Record) -> bytes:
    if record.kind in (HeaderKind.FULL32, HeaderKind.FULL64):
        return b""
    return struct.pack("<II", record.instance, record.parent_instance) + record.parent_provider.bytes_le


def _event_header(record: Record, size: int) -> bytes:
    flags = record.flags | (_EXTENDED_INFO if record.items else 0)
    head = struct.pack("<HBBHHIIq", size, record.kind, 0xC0, flags, record.event_property, *_ids(record))
    descriptor = struct.pack(
        "<HBBBBHQ", record.event_id, record.version, record.channel, record.level, record.opcode, record.task, record.keyword
    )
    times = struct.pack("<II", record.kernel_time, record.user_time)
    return head + record.provider.bytes_le + descriptor + times + record.activity.bytes_le


def _message_words(record: Record) -> bytes:
    parts = []
    if record.options & _MESSAGE_SEQUENCE:
        parts.append(struct.pack("<I", record.sequence))
    if record.options & _MESSAGE_GUID:
        parts.append(record.provider.bytes_le)
    elif record.options & _MESSAGE_COMPONENT:
        parts.append(struct.pack("<I", record.component))
    tid, pid, ticks = _ids(record)
    if record.options & _MESSAGE_TIME:
        parts.append(struct.pack("<q", ticks))
    if record.options & _MESSAGE_IDS:
        parts.append(struct.pack("<II", tid, pid))
    return b"".join(parts)
