"""Traces made to cost as much as they can for their size; each takes a size in bytes and fills about that much."""

import struct
from collections.abc import Callable, Iterable
from uuid import UUID

from tests.build import Trace, afd, heap
from tests.build import system as kernel
from tests.etl_bytes import COMPRESSED, START_TICKS, buffer, event, full, item, system, trace

__all__ = ["HOSTILE"]

METADATA = UUID("bbccf6c1-6cd1-48c4-80ff-839482e37671")
PROVIDER = UUID("11111111-2222-3333-4444-555555555555")
BUFFER = 64 << 10


def _buffers(records: Iterable[bytes], size: int) -> bytes:
    """Records in as many buffers as they need, up to a size of the file."""
    buffers: list[bytes] = []
    waiting: list[bytes] = []
    filled = 72
    for record in records:
        padded = len(record) + (-len(record) % 8)
        if filled + padded > BUFFER:
            buffers.append(buffer(waiting, sequence=len(buffers) + 1, size=BUFFER))
            waiting, filled = [], 72
            if (len(buffers) + 2) * BUFFER > size:
                break
        waiting.append(record)
        filled += padded
    return trace(*buffers, buffer_size=BUFFER)


def _endless(make: Callable[[int], bytes], size: int) -> bytes:
    return _buffers((make(n) for n in range(1, 1 << 40)), size)


def many_providers(size: int) -> bytes:
    """Each record of another provider, with other numbers."""
    return _endless(lambda n: event(START_TICKS + n, n % 65536, guid=UUID(int=n), version=n % 256), size)


def long_chains(size: int) -> bytes:
    """Records that are nothing but extended items of 8 bytes."""
    chain = item(1, b"", more=True) * 7000
    return _endless(lambda n: event(START_TICKS + n, extended=chain), size)


def overlapping_names(size: int) -> bytes:
    """Metadata whose many names are all one long text of capitals."""
    at, count = 112 + 24 * 600, 600
    properties = struct.pack("<IIHHIHHI", 0, at, 8, 0, 0, 1, 0, 0) * count
    name = ("A" * 22_000 + "\0").encode("utf-16-le")

    def blob(n: int) -> bytes:
        numbers = [0, at, 0, 0, 0, at, *[0] * 6, count, count, 1, 0]
        described = struct.pack("<HBBBBHQ16I", n % 65536, 0, 0, 4, 0, 1, 1, *numbers)
        return full(START_TICKS + n, METADATA, 32, PROVIDER.bytes_le + bytes(16) + described + properties + name)

    return _endless(blob, size)


def many_layouts(size: int) -> bytes:
    """Metadata of as many events as fit, of as many fields as there may be, all of one name."""
    count = 500
    at = 112 + 24 * count
    properties = struct.pack("<IIHHIHHI", 0, at, 8, 0, 0, 1, 0, 0) * count
    name = "Field\0".encode("utf-16-le")

    def pair(n: int) -> bytes:
        numbers = [0, at, 0, 0, 0, at, *[0] * 6, count, count, 1, 0]
        described = struct.pack("<HBBBBHQ16I", n % 65536, n >> 16 & 255, 0, 4, 0, 1, 1, *numbers)
        return full(START_TICKS + n, METADATA, 32, PROVIDER.bytes_le + bytes(16) + described + properties + name)

    return _endless(pair, size)


def unfinished_manifests(size: int) -> bytes:
    """Manifests that begin again and again and never name their provider."""
    text = bytes(8) + b"<provider " * 6000
    return _endless(lambda n: event(START_TICKS + n, 0xFFFE, text, guid=UUID(int=n)), size)


def tiny_buffers(size: int) -> bytes:
    """A compressed file of buffers that are nothing but their header."""
    return trace(buffer(packed=b"") * (size // 72), mode=COMPRESSED, first_size=512)


def swelling_buffers(size: int) -> bytes:
    """Packed buffers of 1 KB that expand to 8 MB of one record, over and over."""
    record = system(START_TICKS + 1)
    far, near = struct.pack("<HBBH", (31 << 3) | 7, 0xFF, 0xFF, 31_997), struct.pack("<HBH", (31 << 3) | 7, 0xFF, 31_997)
    packed = bytes(4) + record + 8 * (struct.pack("<I", 0xFFFFFFFF) + 16 * (far + near))
    count = size // (72 + len(packed))
    buffers = (buffer(packed=packed, filled=8 << 20, sequence=n) for n in range(1, count + 1))
    return trace(b"".join(buffers), mode=COMPRESSED, first_size=512, buffer_size=8 << 20)


def false_headers(size: int) -> bytes:
    """A compressed file whose bytes look like a buffer's header at every place, and never are one."""
    header = struct.pack("<I", 0x0100)
    body = (header + bytes(8)) * (size // 12)
    return trace((b"\x48\0\0\0" * (size // 4))[: size // 2] + body[: size // 2], mode=COMPRESSED, first_size=512)


def open_buffers(size: int) -> bytes:
    """Each buffer has records at both ends of the time of the trace, so none can be given back before the last."""
    last = START_TICKS + 1_000_000_000
    count = size // BUFFER - 1
    records = [[system(START_TICKS + 1 + n), *[system(last)] * 1900] for n in range(count)]
    return trace(*(buffer(some, sequence=n + 1, cpu=n % 64, size=BUFFER) for n, some in enumerate(records)), buffer_size=BUFFER)


def backward_times(size: int) -> bytes:
    """Time stamps that fall from record to record."""
    return _endless(lambda n: system(START_TICKS + 100_000_000 - n), size)


def one_buffer_for_all(size: int) -> bytes:
    """Receives of one buffer on many sockets, none of which ends: each overlaps all others."""
    built = Trace(buffer_size=BUFFER)
    for n in range(size // 250):
        built.cpu(0, afd.receive(at_us=10 + n, endpoint=0xFFFF_8000_0000_0000 + 0x100 * n, buffer=0x1000))
    return built.bytes()


def same_block_again(size: int) -> bytes:
    """One address allocated again and again, never freed, and receives into it."""
    built = Trace(buffer_size=BUFFER)
    for n in range(size // 320):
        built.cpu(
            0,
            heap.alloc(at_us=10 + 2 * n, size=1 << 20),
            afd.receive(at_us=11 + 2 * n, endpoint=0xFFFF_8000_0000_0000 + 0x100 * n, buffer=heap.HEAP + 0x1000),
        )
    return built.bytes()


def nested_blocks(size: int) -> bytes:
    """Blocks that lie inside each other."""
    built = Trace(buffer_size=BUFFER)
    for n in range(size // 72):
        built.cpu(0, heap.alloc(at_us=10 + n, address=heap.HEAP + 16 * n, size=1 << 40))
    return built.bytes()


def stacks_without_owner(size: int) -> bytes:
    """Stack records that belong to no record, all of one time."""
    built = Trace(buffer_size=BUFFER)
    for n in range(size // 1600):
        built.cpu(0, kernel.stack(at_us=10, of_ticks=START_TICKS + 100, frames=tuple(range(n, n + 190))))
    return built.bytes()


HOSTILE: dict[str, Callable[[int], bytes]] = {
    make.__name__: make
    for make in (
        many_providers,
        long_chains,
        overlapping_names,
        many_layouts,
        unfinished_manifests,
        tiny_buffers,
        swelling_buffers,
        false_headers,
        open_buffers,
        backward_times,
        one_buffer_for_all,
        same_block_again,
        nested_blocks,
        stacks_without_owner,
    )
}
