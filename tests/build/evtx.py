"""The socket events of an ETL file as an event log (.evtx): chunks of records in binary XML, each chunk with the templates that it uses.

Layout: the published description of the format (libevtx). An event log has no processor, no session and no classic events.
"""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

from tests.build.told import ToldEvent, told_events

__all__ = ["CHUNK_BYTES", "FILE_HEADER_BYTES", "evtx", "evtx_of"]

CHUNK_BYTES = 65536
FILE_HEADER_BYTES = 4096
_CHUNK_HEADER_BYTES = 512
_FRAGMENT, _END = b"\x0f\x01\x01\x00", b"\x00"
_U8, _U16, _U32, _I64, _TEXT, _BINARY, _GUID, _FILETIME, _HEX64 = 4, 6, 8, 9, 1, 14, 15, 17, 21
_OWN = 10  # values of the system part; the last of them, and those of the event, may be absent
_SPACE = "http://schemas.microsoft.com/win/2004/08/events/event"

_Tree = tuple[str, dict[str, object], list[object]]
Shape = tuple[tuple[str, int], ...]
"""Name and type of the values of an event."""


def evtx(path: Path) -> bytes:
    """The socket events of a file as an event log."""
    return evtx_of([event for event in told_events(path)[1] if event.is_manifest and event.values is not None])


def evtx_of(events: Sequence[ToldEvent]) -> bytes:
    """An event log of these events, in their order."""
    chunks: list[bytes] = []
    chunk = _Chunk(1)
    for number, event in enumerate(events, 1):
        if not chunk.add(number, event):
            chunks.append(chunk.sealed())
            chunk = _Chunk(number)
            assert chunk.add(number, event)
    chunks.append(chunk.sealed())
    head = struct.pack("<8sQQQIHHHH76xI", b"ElfFile\0", 0, len(chunks) - 1, len(events) + 1, 128, 1, 3, FILE_HEADER_BYTES, len(chunks), 0)
    head += struct.pack("<I", zlib.crc32(head[:120]))
    return head.ljust(FILE_HEADER_BYTES, b"\0") + b"".join(chunks)


class _Chunk:
    """64 KB of records; names and templates stand where they are used first."""

    def __init__(self, first: int) -> None:
        self._first = self._last = first
        self._body = bytearray()
        self._last_at = _CHUNK_HEADER_BYTES
        self._names: dict[str, int] = {}
        self._templates: dict[Shape, int] = {}

    def add(self, number: int, event: ToldEvent) -> bool:
        """Put a record in; False where there is no room, and nothing has changed."""
        names, templates = dict(self._names), dict(self._templates)
        at = _CHUNK_HEADER_BYTES + len(self._body)
        xml = self._record_xml(event, at + 24)
        size = 24 + len(xml) + 4
        if at + size > CHUNK_BYTES:
            self._names, self._templates = names, templates
            return False
        self._body += struct.pack("<IIQQ", 0x2A2A, size, number, event.filetime) + xml + struct.pack("<I", size)
        self._last, self._last_at = number, at
        return True

    def sealed(self) -> bytes:
        """The chunk with its checksums."""
        free = _CHUNK_HEADER_BYTES + len(self._body)
        head = struct.pack("<8sQQQQIIII64xI", b"ElfChnk\0", self._first, self._last, self._first, self._last, 128, self._last_at, free,
                           zlib.crc32(self._body), 0)  # fmt: skip
        tables = bytes(384)
        whole = head + struct.pack("<I", zlib.crc32(head[:120] + tables)) + tables
        return (whole + bytes(self._body)).ljust(CHUNK_BYTES, b"\0")

    def _record_xml(self, event: ToldEvent, at: int) -> bytes:
        values = _values(event)
        shape = tuple((name, kind) for name, kind, _ in values)
        at += len(_FRAGMENT) + 10
        known = self._templates.get(shape)
        if known is None:
            self._templates[shape] = at
            body = self._template(shape, at + 24)
            identity = struct.pack("<I", zlib.crc32(repr(shape).encode())) + bytes(12)
            definition = struct.pack("<I16sI", 0, identity, len(body)) + body
            where = at
        else:
            identity, definition, where = struct.pack("<I", zlib.crc32(repr(shape).encode())) + bytes(12), b"", known
        instance = b"\x0c\x01" + identity[:4] + struct.pack("<I", where) + definition
        described = b"".join(struct.pack("<HBx", len(value), kind) for _, kind, value in values)
        return _FRAGMENT + instance + struct.pack("<I", len(values)) + described + b"".join(v for *_, v in values) + _END

    def _template(self, shape: Shape, at: int) -> bytes:
        """An event whose values are put in; the first ten are those of its system part."""
        guid, event_id, version, level, opcode, keyword, time, pid, tid, activity = range(_OWN)
        system: list[object] = [
            ("Provider", {"Name": "Microsoft-Windows-Winsock-AFD", "Guid": guid}, []),
            ("EventID", {}, [event_id]), ("Version", {}, [version]), ("Level", {}, [level]), ("Task", {}, ["0"]), ("Opcode", {}, [opcode]),
            ("Keywords", {}, [keyword]), ("TimeCreated", {"SystemTime": time}, []), ("Correlation", {"ActivityID": activity}, []),
            ("Execution", {"ProcessID": pid, "ThreadID": tid}, []),
            ("Channel", {}, ["Microsoft-Windows-Winsock-AFD/Operational"]), ("Computer", {}, ["PC"]),
        ]  # fmt: skip
        data: list[object] = [("Data", {"Name": name}, [n]) for n, (name, _) in enumerate(shape) if n >= _OWN]
        tree: _Tree = ("Event", {"xmlns": _SPACE}, [("System", {}, system), ("EventData", {}, data)])
        return _FRAGMENT + self._element(tree, at + len(_FRAGMENT), shape) + _END

    def _element(self, tree: "_Tree", at: int, shape: Shape) -> bytes:
        tag, attributes, content = tree
        body = self._name(tag, at + 7)
        if attributes:
            listed = b""
            start = at + 7 + len(body) + 4
            for n, (name, value) in enumerate(attributes.items()):
                listed += b"\x46" if n + 1 < len(attributes) else b"\x06"
                listed += self._name(name, start + len(listed))
                listed += _content(value, shape)
            body += struct.pack("<I", len(listed)) + listed
        if content:
            body += b"\x02"
            for part in content:
                body += self._element(part, at + 7 + len(body), shape) if isinstance(part, tuple) else _content(part, shape)
            body += b"\x04"
        else:
            body += b"\x03"
        return struct.pack("<BHI", 0x41 if attributes else 0x01, 0xFFFF, len(body)) + body

    def _name(self, name: str, at: int) -> bytes:
        """Where a name stands; the name itself behind that, the first time."""
        if name in self._names:
            return struct.pack("<I", self._names[name])
        self._names[name] = at + 4
        number = 0
        for character in name:
            number = (number * 65599 + ord(character)) & 0xFFFFFFFF
        return struct.pack("<IIHH", at + 4, 0, number & 0xFFFF, len(name)) + name.encode("utf-16-le") + b"\0\0"


def _content(value: object, shape: Shape) -> bytes:
    """A text, or the number of the value that is put in."""
    if isinstance(value, str):
        return struct.pack("<BBH", 5, 1, len(value)) + value.encode("utf-16-le")
    assert isinstance(value, int)
    return struct.pack("<BHB", 0x0E if value >= _OWN - 1 else 0x0D, value, shape[value][1])


def _values(event: ToldEvent) -> list[tuple[str, int, bytes]]:
    """Name, type and bytes of each value."""
    found = [
        ("", _GUID, event.provider.bytes_le), ("", _U16, struct.pack("<H", event.event_id)), ("", _U8, bytes([event.version])),
        ("", _U8, bytes([event.level])), ("", _U8, bytes([event.opcode])), ("", _HEX64, struct.pack("<Q", event.keyword)),
        ("", _FILETIME, struct.pack("<Q", event.filetime)), ("", _U32, struct.pack("<I", event.pid)),
        ("", _U32, struct.pack("<I", event.tid)), ("", _GUID, event.activity.bytes_le) if event.activity.int else ("", 0, b""),
    ]  # fmt: skip
    for field, text in event.values or ():
        name = "".join(part.capitalize() for part in field.name.split("_"))
        if text.startswith("0x"):
            found.append((name, _HEX64, struct.pack("<Q", int(text, 16))))
        elif field.type == "sockaddr":
            found.append((name, _BINARY, bytes.fromhex(text)))
        elif text.lstrip("-").isdecimal():
            found.append((name, _I64, struct.pack("<q", int(text))))
        else:
            found.append((name, _TEXT, text.encode("utf-16-le")))
    return found
