"""ETL files byte by byte, for tests of the reader: written from the layouts alone, sharing no code with reader or writer.

Everything has a default, so that a test says only what it is about.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

BUFFER_BYTES = 1024
START_TICKS = 1_000_000
START_FILETIME = 133_855_542_000_000_000
FREQUENCY = 10_000_000
AFD = UUID("e53c6823-7bb8-44bb-90dc-3f86090d48a6")
NO_ACTIVITY = UUID(int=0)
LOST_EVENT = UUID("6a399ae0-4bc6-4de9-870b-3657f8947e7e")

COMPRESSED = 0x04000001
"""A mode of the log file: sequential, compressed."""


def system(ticks: int, hook: int = 0x1021, payload: bytes = b"", *, tid: int = 8, pid: int = 4, version: int = 2, kind: int = 2) -> bytes:
    """SYSTEM (kind 1, 2) or COMPACT (3, 4) record."""
    times = b"" if kind in (3, 4) else bytes(8)
    size = 24 + len(times) + len(payload)
    return struct.pack("<HBBHHIIq", version, kind, 0xC0, size, hook, tid, pid, ticks) + times + payload


def perfinfo(ticks: int, hook: int = 0x0F2E, payload: bytes = b"", *, version: int = 2, kind: int = 17) -> bytes:
    return struct.pack("<HBBHHq", version, kind, 0xC0, 16 + len(payload), hook, ticks) + payload


def full(
    ticks: int,
    guid: UUID = LOST_EVENT,
    opcode: int = 0,
    payload: bytes = b"",
    *,
    tid: int = 8,
    pid: int = 4,
    version: int = 0,
    kind: int = 20,
) -> bytes:
    """FULL (kind 10, 20) or INSTANCE (11, 21) record."""
    instance = bytes(24) if kind in (11, 21) else b""
    size = 48 + len(instance) + len(payload)
    head = struct.pack("<HBBBBHIIq", size, kind, 0xC0, opcode, 5, version, tid, pid, ticks)
    return head + guid.bytes_le + bytes(8) + instance + payload


def item(type_: int, data: bytes, *, more: bool = False) -> bytes:
    """One extended item."""
    size = (8 + len(data) + 7) & ~7
    return struct.pack("<HHHH", size, type_, int(more), len(data)) + data.ljust(size - 8, b"\0")


def items(*parts: tuple[int, bytes]) -> bytes:
    """A chain of extended items."""
    return b"".join(item(type_, data, more=i + 1 < len(parts)) for i, (type_, data) in enumerate(parts))


def event(
    ticks: int,
    event_id: int = 1003,
    payload: bytes = b"",
    *,
    guid: UUID = AFD,
    version: int = 0,
    level: int = 4,
    opcode: int = 12,
    keyword: int = 0x8000000000000001,
    activity: UUID = NO_ACTIVITY,
    tid: int = 8,
    pid: int = 4,
    extended: bytes = b"",
    kind: int = 19,
) -> bytes:
    size = 80 + len(extended) + len(payload)
    head = struct.pack("<HBBHHIIq", size, kind, 0xC0, int(bool(extended)), 0, tid, pid, ticks) + guid.bytes_le
    descriptor = struct.pack("<HBBBBHQ", event_id, version, 16, level, opcode, 7, keyword)
    return head + descriptor + bytes(8) + activity.bytes_le + extended + payload


def message(number: int, options: int, parts: bytes = b"", payload: bytes = b"") -> bytes:
    """A WPP message; `parts` are the optional fields that `options` announce."""
    return struct.pack("<HBBHH", 8 + len(parts) + len(payload), 0, 0x90, number, options) + parts + payload


def opaque(kind: int, size: int = 24, flags: int = 0xC0) -> bytes:
    """A record of a kind that nobody documents."""
    return struct.pack("<HBB", size, kind, flags).ljust(size, b"\x11")


def body(records: Iterable[bytes], *, filler: bytes = b"\xcd") -> bytes:
    """Records one behind the other, each from a multiple of 8 on, with left-over bytes between."""
    return b"".join(record + filler * (-len(record) % 8) for record in records)


def buffer(
    records: Sequence[bytes] = (),
    *,
    cpu: int = 0,
    sequence: int = 1,
    size: int = BUFFER_BYTES,
    flags: int = 0x20,
    type_: int = 0,
    state: int = 3,
    filled: int | None = None,
    processor: int | None = None,
    packed: bytes | None = None,
    time_stamp: int = 0,
) -> bytes:
    """One buffer, 0xFF behind its records; `packed` stands for compressed bytes of the records."""
    content = body(records)
    end = 72 + len(content) if filled is None else filled
    stored = content if packed is None else packed
    stride = size if packed is None else 72 + len(packed)
    assert packed is not None or 72 + len(content) <= size
    flags |= 0x40 if packed is not None else 0
    number = cpu if processor is None else processor
    header = struct.pack("<IIIiqqQHHIIHH", stride, end, size + 8, 0, time_stamp, sequence, 0, number, 34, state, end, flags, type_)
    return (header.ljust(72, b"\0") + stored).ljust(stride, b"\xff")


def log_file_header(
    *,
    pointer_size: int = 8,
    start_ticks: int = START_TICKS,
    buffer_size: int = BUFFER_BYTES,
    end_filetime: int = START_FILETIME + FREQUENCY,
    boot_filetime: int = START_FILETIME - FREQUENCY,
    start_filetime: int = START_FILETIME,
    timer_resolution: int = 156_250,
    mode: int = 1,
    buffers_written: int = 0,
    events_lost: int = 0,
    buffers_lost: int = 0,
    cpu_mhz: int = 3000,
    perf_freq: int = FREQUENCY,
    clock_type: int = 1,
    declared_pointer_size: int | None = None,
    session: str = "session",
    file_name: str = "C:\\trace.etl",
) -> bytes:
    """The first record of a file."""
    declared = pointer_size if declared_pointer_size is None else declared_pointer_size
    head = struct.pack(
        "<IBBBBIIqIIIIIIII",
        *(
            buffer_size,
            10,
            0,
            1,
            5,
            19045,
            4,
            end_filetime,
            timer_resolution,
            100,
            mode,
            buffers_written,
            1,
            declared,
            events_lost,
            cpu_mhz,
        ),
    )
    zone = bytes(172).ljust(176 if pointer_size == 4 else 172 + 4, b"\0")
    tail = struct.pack("<qqqII", boot_filetime, perf_freq, start_filetime, clock_type, buffers_lost)
    names = (session + "\0" + file_name + "\0").encode("utf-16-le")
    payload = head + bytes(2 * pointer_size) + zone + tail + names
    return system(start_ticks, 0, payload, version=2, kind=1 if pointer_size == 4 else 2)


def trace(*buffers: bytes, first_size: int | None = None, state: int = 3, **header: Any) -> bytes:  # Any: fields of log_file_header
    """A file: the header buffer with its record, then the buffers as they are.

    BuffersWritten is right unless given.
    """
    header.setdefault("buffers_written", 1 + len(buffers))
    size = header.get("buffer_size", BUFFER_BYTES)
    size = size if 512 <= size <= 1 << 20 else BUFFER_BYTES
    record = log_file_header(**header)
    own = buffer([record], sequence=0, type_=4, size=first_size or size, state=state, flags=0x21)
    return own + b"".join(buffers)


def literals_xpress(content: bytes) -> bytes:
    """Plain LZ77 of literals alone: a zero flag word before each 32 bytes."""
    pieces = [content[at : at + 32] for at in range(0, len(content), 32)]
    return b"".join(bytes(4) + piece for piece in pieces)


def literals_lznt1(content: bytes) -> bytes:
    """LZNT1 of literals alone: compressed chunks of 4096 bytes, a zero flag byte before each 8 bytes."""
    chunks = []
    for at in range(0, len(content), 4096):
        chunk = content[at : at + 4096]
        packed = b"".join(b"\0" + chunk[i : i + 8] for i in range(0, len(chunk), 8))
        # A chunk that would not shrink is stored as it is.
        if len(packed) > 4096:
            chunks.append(struct.pack("<H", 0x3000 | (len(chunk) - 1)) + chunk)
        else:
            chunks.append(struct.pack("<H", 0xB000 | (len(packed) - 1)) + packed)
    return b"".join(chunks)


def literals_huffman(content: bytes) -> bytes:
    """XPRESS Huffman of literals alone: all 512 symbols have nine bits, so a literal's code is its value."""
    blocks = []
    for at in range(0, len(content), 65536):
        bits = "".join(f"{byte:09b}" for byte in content[at : at + 65536])
        bits += f"{256:09b}"  # end of stream
        bits = bits.ljust(((len(bits) + 15) // 16 + 1) * 16, "0")
        words = b"".join(struct.pack("<H", int(bits[i : i + 16], 2)) for i in range(0, len(bits), 16))
        blocks.append(b"\x99" * 256 + words.ljust(4, b"\0"))
    return b"".join(blocks)


def six(**header: Any) -> list[bytes]:
    """A header buffer and five buffers of two records, 5 ticks apart, as separate pieces."""
    content = trace(*(buffer([system(START_TICKS + 10 * n), system(START_TICKS + 10 * n + 5)], sequence=n) for n in range(1, 6)), **header)
    return [content[at : at + BUFFER_BYTES] for at in range(0, len(content), BUFFER_BYTES)]


def patched(content: bytes, at: int, patch: bytes) -> bytes:
    return content[:at] + patch + content[at + len(patch) :]


def lost_marker(ticks: int, opcode: int = 32) -> bytes:
    return full(ticks, LOST_EVENT, opcode, kind=20)


def packed_trace(state: int = 3, *, pack: Callable[[bytes], bytes] = literals_xpress, damage: dict[int, bytes] | None = None) -> bytes:
    """Four compressed buffers; `damage` replaces the packed bytes of some."""
    parts = []
    for n in range(1, 5):
        records = [system(START_TICKS + 10 * n + k, payload=bytes(range(16))) for k in range(12)]
        parts.append(buffer(records, sequence=n, packed=(damage or {}).get(n, pack(body(records)))))
    return trace(*parts, mode=COMPRESSED, state=state, first_size=512)


EVERY_KIND = [
    *(system(START_TICKS + 1, kind=kind) for kind in (1, 2, 3, 4)),
    *(perfinfo(START_TICKS + 1, kind=kind) for kind in (16, 17)),
    *(full(START_TICKS + 1, kind=kind) for kind in (10, 11, 20, 21)),
    *(event(START_TICKS + 1, extended=items((1, bytes(16)), (6, bytes(24))), kind=kind) for kind in (18, 19)),
    message(1, 0xAA, LOST_EVENT.bytes_le + struct.pack("<qII", START_TICKS + 1, 1, 2)),
    opaque(13),
]
