"""Changes of an ETL file that keep enough of its shape to get past its first bytes: what a blind fuzzer would take hours to hit."""

import random
import struct
from collections.abc import Callable
from itertools import pairwise

__all__ = ["mutated"]

_SIZES = (
    0,
    1,
    7,
    8,
    15,
    16,
    71,
    72,
    73,
    80,
    1023,
    1024,
    1025,
    0x7FFF,
    0x8000,
    0xFFFF,
    1 << 16,
    1 << 24,
    (1 << 24) + 1,
    0x7FFFFFFF,
    0xFFFFFFFF,
)
_MOVES = (-10_000_000, -10_000, -1, 1, 10_000, 10_000_000, 1 << 50, -(1 << 50))
_FIELDS = (0, 2, 3, 4, 6, 8, 12, 16, 24, 40, 42, 80, 82, 84, 86)
_TIMES = (0, 1, -1, 1_000_000, 133_855_542_000_000_000, (1 << 62) - 1, (1 << 63) - 1, -(1 << 63))
_BUFFER_HEADER = (0x00, 0x04, 0x08, 0x0C, 0x10, 0x18, 0x28, 0x2A, 0x2C, 0x30, 0x34, 0x36)
_HEADER_BYTES = 72
_MOST_BYTES = 1 << 18


def mutated(content: bytes, seed: int) -> bytes:
    """Another file, made from this one by a few changes; the same seed makes the same."""
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 4)):
        content = chance.choice(_CHANGES)(content, chance)
    return content[:_MOST_BYTES]


def _starts(content: bytes) -> list[int]:
    """Where buffers begin, as far as their sizes lead."""
    found: list[int] = []
    at = 0
    while at + _HEADER_BYTES <= len(content) and len(found) < 256:
        found.append(at)
        size = int.from_bytes(content[at : at + 4], "little")
        if size < _HEADER_BYTES:
            break
        at += size
    return found


def _records(content: bytes, start: int) -> list[int]:
    """Where the records of a buffer begin, as far as their sizes lead."""
    end = min(len(content), start + int.from_bytes(content[start : start + 4], "little"))
    found: list[int] = []
    at = start + _HEADER_BYTES
    while at + 8 <= end and len(found) < 256:
        found.append(at)
        is_at_four = content[at + 2] in (1, 2, 3, 4, 16, 17)
        size = int.from_bytes(content[at + 4 * is_at_four :][:2], "little")
        if size < 8:
            break
        at += (size + 7) & ~7
    return found


def _put(content: bytes, at: int, new: bytes) -> bytes:
    return content[:at] + new + content[at + len(new) :]


def _number(chance: random.Random) -> bytes:
    """A number that is at a limit of something, of 1 to 8 bytes."""
    width = chance.choice((1, 2, 4, 8))
    value = chance.choice(_TIMES if width == 8 else _SIZES)
    return (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def _any_field(content: bytes, chance: random.Random) -> bytes:
    return _put(content, chance.randrange(max(1, len(content))), _number(chance))


def _buffer_field(content: bytes, chance: random.Random) -> bytes:
    starts = _starts(content)
    return _put(content, chance.choice(starts) + chance.choice(_BUFFER_HEADER), _number(chance)) if starts else content


def _log_file_field(content: bytes, chance: random.Random) -> bytes:
    return _put(content, _HEADER_BYTES + 4 * chance.randrange(80), _number(chance))


def _record_field(content: bytes, chance: random.Random) -> bytes:
    starts = _starts(content)
    records = _records(content, chance.choice(starts)) if starts else []
    return _put(content, chance.choice(records) + chance.choice(_FIELDS), _number(chance)) if records else content


def _record_time(content: bytes, chance: random.Random) -> bytes:
    """Time stamps a little or very far off."""
    starts = _starts(content)
    records = _records(content, chance.choice(starts)) if starts else []
    if not records:
        return content
    at = chance.choice(records) + 16
    (ticks,) = struct.unpack("<q", content[at : at + 8].ljust(8, b"\0"))
    moved = max(-(1 << 63), min((1 << 63) - 1, ticks + chance.choice(_MOVES)))
    return _put(content, at, struct.pack("<q", moved))


def _buffers(change: Callable[[list[bytes], random.Random], None]) -> Callable[[bytes, random.Random], bytes]:
    """A change of the list of buffers."""

    def changed(content: bytes, chance: random.Random) -> bytes:
        starts = [*_starts(content), len(content)]
        pieces = [content[low:high] for low, high in pairwise(starts)]
        if len(pieces) > 1:
            change(pieces, chance)
        return b"".join(pieces)

    return changed


def _swap(pieces: list[bytes], chance: random.Random) -> None:
    one, other = chance.randrange(len(pieces)), chance.randrange(len(pieces))
    pieces[one], pieces[other] = pieces[other], pieces[one]


def _zero(pieces: list[bytes], chance: random.Random) -> None:
    at = chance.randrange(len(pieces))
    pieces[at] = bytes(len(pieces[at]))


def _repeat(pieces: list[bytes], chance: random.Random) -> None:
    at = chance.randrange(len(pieces))
    pieces[at:at] = [pieces[at]] * chance.randint(1, 4)


def _drop(pieces: list[bytes], chance: random.Random) -> None:
    del pieces[chance.randrange(len(pieces))]


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randint(1, max(1, len(content)))]


def _flip(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(max(1, len(content)))
    return _put(content, at, bytes([(content[at : at + 1] or b"\0")[0] ^ chance.randint(1, 255)]))


def _noise(content: bytes, chance: random.Random) -> bytes:
    return _put(content, chance.randrange(max(1, len(content))), chance.randbytes(chance.randint(1, 64)))


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _any_field,
    _buffer_field,
    _log_file_field,
    _record_field,
    _record_field,
    _record_time,
    _buffers(_swap),
    _buffers(_zero),
    _buffers(_repeat),
    _buffers(_drop),
    _cut,
    _flip,
    _noise,
)
