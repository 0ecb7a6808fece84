"""Small sound inputs to begin from: each has another part of the format, and together they have nearly all of it."""

import functools
import struct
import tempfile
import zipfile
from pathlib import Path
from uuid import UUID

from tests.build import Trace, afd, heap, system
from tests.build.event_xml import event_xml
from tests.build.evtx import evtx
from tests.build.netsh_text import netsh_text
from tests.build.packages import cabinet_of, gzip_of, zip_of
from tests.build.tracerpt_csv import tracerpt_csv
from tests.build.xperf_dump import xperf_dump
from tests.etl_bytes import (
    EVERY_KIND,
    START_TICKS,
    body,
    buffer,
    full,
    literals_huffman,
    literals_lznt1,
    literals_xpress,
    lost_marker,
    packed_trace,
    trace,
)
from tests.etl_bytes import system as system_record

__all__ = ["blobs", "csv_texts", "dump_texts", "event_logs", "event_texts", "files", "message_texts", "packages", "packed_pieces"]

METADATA = UUID("bbccf6c1-6cd1-48c4-80ff-839482e37671")
PROVIDER = UUID("11111111-2222-3333-4444-555555555555")


@functools.cache
def files() -> tuple[bytes, ...]:
    """Whole ETL files, most of them a few KB."""
    return (
        _every_kind(),
        packed_trace(),
        packed_trace(2, pack=literals_lznt1),
        packed_trace(4, pack=literals_huffman),
        _story(8).bytes(),
        _story(4).bytes(),
        _story(8, has_metadata=True).bytes(),
        _described(),
    )


@functools.cache
def blobs() -> tuple[bytes, ...]:
    """Event metadata: what a file says of the layout of its own events, and of the names of their values."""
    fields = (
        ("Number", 8, 0, 4, 0, 0),
        ("Count", 6, 0, 2, 0, 0),
        ("Text", 1, 0, 0, 0, 0),
        ("Bytes", 14, 2, 0, 0, 1),
        ("List", 8, 4, 0, 1, 0),
    )
    names, at = b"", 112 + 24 * len(fields)
    properties = b""
    for name, in_type, flags, _, count, length in fields:
        properties += struct.pack("<IIHHIHHI", flags, at + len(names), in_type, 0, 0, count or 1, length, 0)
        names += name.encode("utf-16-le") + b"\0\0"
    provider_at = at + len(names)
    names += "Provider\0Task\0".encode("utf-16-le")
    numbers = [0, provider_at, 0, 0, 0, provider_at + 18, *[0] * 6, len(fields), len(fields), 1, 0]
    event = PROVIDER.bytes_le + bytes(16) + struct.pack("<HBBBBHQ16I", 7, 0, 0, 4, 0, 1, 1, *numbers) + properties + names
    words = "Map\0one\0two\0".encode("utf-16-le")
    entries = struct.pack("<IIII", 32 + 8, 1, 32 + 16, 2)
    values = PROVIDER.bytes_le + struct.pack("<4I", 32, 1, 2, 0) + entries + words
    return (event, values)


@functools.cache
def event_texts() -> tuple[bytes, ...]:
    """XML as a tool makes it of a recording, in two encodings."""
    with tempfile.TemporaryDirectory() as folder:
        text = event_xml(_story(8).write(Path(folder) / "story.etl"))
    return (text.encode(), text.encode("utf-16"))


@functools.cache
def event_logs() -> tuple[bytes, ...]:
    """An event log of one chunk."""
    with tempfile.TemporaryDirectory() as folder:
        return (evtx(_story(8).write(Path(folder) / "story.etl")),)


@functools.cache
def message_texts() -> tuple[bytes, ...]:
    """Text of messages in two encodings."""
    with tempfile.TemporaryDirectory() as folder:
        text = netsh_text(_story(8).write(Path(folder) / "story.etl"))
    return (text.encode(), text.encode("utf-16"))


@functools.cache
def dump_texts() -> tuple[bytes, ...]:
    """Text of the xperf dumper in two encodings."""
    with tempfile.TemporaryDirectory() as folder:
        text = xperf_dump(_story(8).write(Path(folder) / "story.etl"))
    return (text.encode(), text.encode("utf-16"))


@functools.cache
def csv_texts() -> tuple[bytes, ...]:
    """CSV as tracerpt makes it of a recording, in two encodings."""
    with tempfile.TemporaryDirectory() as folder:
        text = tracerpt_csv(_story(8).write(Path(folder) / "story.etl"))
    return (text.encode(), text.encode("utf-16"))


@functools.cache
def packages() -> tuple[bytes, ...]:
    """Packages of each kind that is unpacked, with a trace or a text inside, and one in another."""
    trace, text = _story(8).bytes(), csv_texts()[0]
    inner = zip_of({"notes.txt": b"notes", "a.etl": trace}, zipfile.ZIP_STORED)
    return (
        zip_of({"deep/a.etl": trace, "b.csv": text}),
        inner,
        zip_of({"b.zip": inner, "c.heapstate": b"snapshot"}),
        gzip_of(trace),
        gzip_of(text[:2000]) + gzip_of(text[2000:]),
        cabinet_of({"a.etl": trace, "notes.txt": b"notes"}),
    )


@functools.cache
def packed_pieces() -> tuple[bytes, ...]:
    """Compressed bytes, the first byte says of which format."""
    content = body([system_record(START_TICKS + n, payload=bytes(range(24))) for n in range(20)])
    return (b"\x02" + literals_lznt1(content), b"\x03" + literals_xpress(content), b"\x04" + literals_huffman(content))


def _every_kind() -> bytes:
    return trace(
        buffer(EVERY_KIND[:7], sequence=1, cpu=0),
        buffer(EVERY_KIND[7:], sequence=2, cpu=1),
        buffer([system_record(START_TICKS + 9), lost_marker(START_TICKS + 10)], sequence=3, cpu=0, flags=0x22),
        events_lost=2,
    )


def _described() -> bytes:
    """An event of a provider that nobody knows, behind the metadata that describes it."""
    event, values = blobs()
    payload = struct.pack("<IH", 7, 2) + "text\0".encode("utf-16-le") + b"ab" + struct.pack("<II", 1, 2)
    from tests.etl_bytes import event as record

    return trace(
        buffer(
            [
                full(START_TICKS + 1, METADATA, 32, event),
                full(START_TICKS + 1, METADATA, 33, values),
                record(START_TICKS + 1, 7, payload, guid=PROVIDER),
            ],
            size=2048,
        ),
        buffer_size=2048,
    )


def _story(pointer_size: int, *, has_metadata: bool = False) -> Trace:
    """A process, its sockets and its heap: something of every model."""
    built = Trace(pointer_size=pointer_size, buffer_size=2048, has_metadata=has_metadata).cpu(
        0,
        system.process_start(at_us=1),
        system.image(at_us=2, base=0x7FF6_0000_0000),
        afd.opened(at_us=10),
        afd.bind(at_us=20),
        afd.connected(at_us=50),
        afd.sent(at_us=100, length_bytes=512, buffer=0x1000, duration_us=240),
        afd.received(at_us=400, buffer=heap.HEAP + 0x1000),
        afd.receive(at_us=600, buffer=heap.HEAP + 0x1000),
        afd.abort(at_us=700),
        afd.closed(at_us=800),
    )
    return built.cpu(
        1,
        heap.create(at_us=5),
        heap.alloc(at_us=30, stack=(0x7FF6_0000_1000, 0x7FF6_0000_2000)),
        heap.realloc(at_us=40, new_size=128, old_size=64),
        heap.free(at_us=610),
        heap.snapshot(at_us=620, committed=4096, reserved=65536),
        system.process_end(at_us=900),
    )
