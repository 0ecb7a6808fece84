"""Layouts that a trace brings along: the event metadata that a merge writes into the file.

Class {bbccf6c1-6cd1-48c4-80ff-839482e37671}: opcode 32 holds a TRACE_EVENT_INFO, opcode 33 a provider GUID and an EVENT_MAP_INFO; layouts
as in the SDK header tdh.h, seen in merged public traces. With them an event that we do not ship is read as the machine that
recorded it would.
"""

import struct
from dataclasses import dataclass, field
from uuid import UUID

from collector.embedded_fields import Property, Unsupported, fields_of, snake_case
from collector.schema import EventKey, EventSchema, FieldType

__all__ = ["EVENT_INFO", "METADATA", "EmbeddedLayouts", "ValueMap"]

METADATA = UUID("bbccf6c1-6cd1-48c4-80ff-839482e37671")
EVENT_INFO = 32
MAP_INFO = 33

_GUID_SIZE = 16
_DESCRIPTOR_AT = 2 * _GUID_SIZE
_DESCRIPTOR = struct.Struct("<HBBBBHQ16I")  # the event descriptor, and 16 numbers up to the properties
_PROPERTIES_AT = _DESCRIPTOR_AT + _DESCRIPTOR.size
_PROPERTY = struct.Struct("<IIHHIHHI")
_MAP = struct.Struct("<4I")
_MAP_ENTRY = struct.Struct("<II")
_LONGEST_TEXT = 1024
"""Characters of a name; the longest ones of real traces have some 100."""
_BITS = 2  # flag of a map whose values are bits
_MANIFEST = 0  # DecodingSource of events with a manifest
_ALIKE = {
    FieldType.I8: FieldType.U8,
    FieldType.I16: FieldType.U16,
    FieldType.I32: FieldType.U32,
    FieldType.I64: FieldType.U64,
    FieldType.SIZET: FieldType.POINTER,
    FieldType.BOOL32: FieldType.U32,
    FieldType.IPV4: FieldType.U32,
    FieldType.PORT: FieldType.U16,
    FieldType.BYTES: FieldType.SOCKADDR,
}
"""Types of equal width, told apart by sign or by the way they are printed."""


class _Damaged(Exception):
    """A blob ends too early, points out of itself, or has more text than bytes."""


class _Texts:
    """The texts of one blob: zero-terminated UTF-16, named by their offset.

    All together may be as long as the blob, each as long as a name: texts that overlap would let a small blob cost any time and memory.
    """

    def __init__(self, blob: bytes) -> None:
        self._blob = blob
        self._left = len(blob)
        self._known = {0: ""}

    def at(self, offset: int) -> str:
        """One text, without the blank that names often end in; '' for offset 0. Raises _Damaged."""
        text = self._known.get(offset)
        if text is None:
            text = self._known[offset] = self._read(offset)
        return text

    def _read(self, offset: int) -> str:
        if offset >= len(self._blob):
            raise _Damaged
        most = offset + 2 * _LONGEST_TEXT + 2
        end = self._blob.find(b"\0\0", offset, most)
        while end >= 0 and (end - offset) % 2:
            end = self._blob.find(b"\0\0", end + 1, most)
        self._left -= end - offset
        if end < 0 or self._left < 0:
            raise _Damaged
        return self._blob[offset:end].decode("utf-16-le", errors="replace").strip()


@dataclass(frozen=True, slots=True)
class ValueMap:
    """Names of values; `is_bits` when each is one bit."""

    is_bits: bool
    names: dict[int, str]


@dataclass(slots=True)
class EmbeddedLayouts:
    """The layouts of one trace, learned record by record; nothing that a blob holds raises an error."""

    taken_names: frozenset[str] = frozenset()
    """Event names that mean something to the models, and must not be given to a layout of unknown meaning."""
    schemas: dict[tuple[EventKey, int], EventSchema] = field(default_factory=dict)
    """By event and version."""
    maps: dict[tuple[UUID, str], ValueMap] = field(default_factory=dict)
    """By provider and name."""
    provider_names: dict[UUID, str] = field(default_factory=dict)
    damaged: int = 0
    """Blobs that could not be read."""
    unsupported: dict[str, int] = field(default_factory=dict)
    """Layouts that we cannot follow, by reason."""

    def learn(self, opcode: int, blob: bytes) -> None:
        """Take in one metadata record; blobs of unknown opcode, damage and layouts beyond us are passed over, the latter two counted."""
        try:
            if opcode == EVENT_INFO:
                self._learn_event(blob)
            elif opcode == MAP_INFO:
                self._learn_map(blob)
        except _Damaged:
            self.damaged += 1
        except Unsupported as error:
            reason = str(error)
            self.unsupported[reason] = self.unsupported.get(reason, 0) + 1

    def layout(self, key: EventKey, version: int, *, like: EventSchema | None = None) -> EventSchema | None:
        """The layout of an event, None where the file has none.

        Args:
            like: our layout of a lower version. What the models read of it must be there and of the same width, else the file's
                layout is not given; it takes over the name.
        """
        schema = self.schemas.get((key, version))
        if schema is None or like is None:
            return schema
        types = {f.name: f.type for f in schema.fields}
        if any(_width_class(types.get(f.name)) != _width_class(f.type) for f in like.fields if f.required):
            return None
        ours = {f.name: f for f in like.fields if f.required and f.width(8) is not None}
        merged = tuple(ours.get(f.name, f) for f in schema.fields)
        return EventSchema(schema.provider, schema.number, schema.versions, like.name, merged, schema.source, schema.is_classic)

    def _learn_event(self, blob: bytes) -> None:
        event_id, version, _, _, opcode, _, _, source, *numbers = _numbers(_DESCRIPTOR, blob, _DESCRIPTOR_AT)
        guid = UUID(bytes_le=blob[:_GUID_SIZE])
        provider_name, task_name, count, top_level = numbers[0], numbers[4], numbers[12], numbers[13]
        texts = _Texts(blob)
        name = texts.at(provider_name)
        if name:
            self.provider_names.setdefault(guid, name)
        key = EventKey(guid, is_classic=False, number=event_id)
        if source != _MANIFEST or (key, version) in self.schemas:
            return
        if top_level > count or _PROPERTIES_AT + _PROPERTY.size * count > len(blob):
            raise _Damaged
        fields = fields_of([_property(blob, i, texts) for i in range(count)], top_level)
        task = texts.at(task_name) or f"{name} {event_id}"
        if task in self.taken_names:
            task = f"{task} {event_id}"
        self.schemas[key, version] = EventSchema(guid, event_id, (version,), task, fields, f"metadata in the trace, opcode {opcode}")

    def _learn_map(self, blob: bytes) -> None:
        guid, info = blob[:_GUID_SIZE], blob[_GUID_SIZE:]
        name_offset, flag, count, _ = _numbers(_MAP, info, 0)
        if _MAP.size + _MAP_ENTRY.size * count > len(info):
            raise _Damaged
        texts = _Texts(info)
        entries = (_numbers(_MAP_ENTRY, info, _MAP.size + _MAP_ENTRY.size * i) for i in range(count))
        names = {value: texts.at(offset) for offset, value in entries}
        self.maps.setdefault((UUID(bytes_le=guid), texts.at(name_offset)), ValueMap(bool(flag & _BITS), names))


def _width_class(kind: FieldType | None) -> FieldType | None:
    return None if kind is None else _ALIKE.get(kind, kind)


def _numbers(layout: struct.Struct, blob: bytes, at: int) -> tuple[int, ...]:
    """The numbers of a layout that has nothing else."""
    if at + layout.size > len(blob):
        raise _Damaged
    return layout.unpack_from(blob, at)


def _property(blob: bytes, i: int, texts: _Texts) -> Property:
    flags, name, one, two, map_name, count, length, _ = _numbers(_PROPERTY, blob, _PROPERTIES_AT + _PROPERTY.size * i)
    is_struct = bool(flags & 1)
    return Property(
        name=snake_case(texts.at(name)) or f"field{i}",
        flags=flags,
        in_type=one,
        out_type=two,
        map_name="" if is_struct else texts.at(map_name),
        count=count,
        length=length,
    )
