"""Packs buffers in the formats that sessions use; unpacking is the reader's."""

from collections.abc import Callable

from collector.etlwriter.session import Compression

__all__ = ["COMPRESSORS", "lznt1", "xpress"]

_MIN_MATCH = 3


def _matches(data: bytes, position: int, newest: dict[bytes, int], *, reach: int, longest: int) -> tuple[int, int]:
    """Distance and length of a match at a position with the newest earlier place of its first three bytes; (0, 0) for none."""
    key = data[position : position + _MIN_MATCH]
    at = newest.get(key, -1)
    newest[key] = position
    if len(key) < _MIN_MATCH or at < 0 or position - at > reach:
        return 0, 0
    length, limit = _MIN_MATCH, min(longest, len(data) - position)
    while length < limit and data[at + length] == data[position + length]:
        length += 1
    return position - at, min(length, limit)


def xpress(data: bytes) -> bytes:
    """Plain LZ77 of MS-XCA: flag words of 32 bits, literals, and tokens of distance and length."""
    out = bytearray(4)
    flags_at, flags, count = 0, 0, 0
    nibble_at: int | None = None
    newest: dict[bytes, int] = {}
    position = 0
    # One step a byte or match: about 30 ms for a buffer of 64 KB.
    while position < len(data):
        if count == 32:
            out[flags_at : flags_at + 4] = flags.to_bytes(4, "little")
            flags_at, flags, count = len(out), 0, 0
            out += bytes(4)
        distance, length = _matches(data, position, newest, reach=8192, longest=0x7FFF)
        if not length:
            out.append(data[position])
            flags, count, position = flags << 1, count + 1, position + 1
            continue
        flags, count = flags << 1 | 1, count + 1
        rest = length - _MIN_MATCH
        out += ((distance - 1) << 3 | min(rest, 7)).to_bytes(2, "little")
        if rest >= 7:
            nibble = min(rest - 7, 15)
            if nibble_at is None:
                nibble_at = len(out)
                out.append(nibble)
            else:
                out[nibble_at] |= nibble << 4
                nibble_at = None
            if nibble == 15:
                byte = min(rest - 22, 255)
                out.append(byte)
                if byte == 255:
                    out += rest.to_bytes(2, "little")
        position += length
    # The unused flags of the last word are ones: the end of the data is not the end of the flags.
    unused = 32 - count
    out[flags_at : flags_at + 4] = (flags << unused | (1 << unused) - 1).to_bytes(4, "little")
    return bytes(out)


def lznt1(data: bytes) -> bytes:
    """LZNT1: chunks of 4,096 bytes, each with a header word and flag bytes; a chunk that does not shrink is stored as it is."""
    out = bytearray()
    for start in range(0, len(data), 4096):
        chunk = data[start : start + 4096]
        packed = _lznt1_chunk(chunk)
        if len(packed) < len(chunk):
            out += (0xB000 | len(packed) - 1).to_bytes(2, "little") + packed
        else:
            out += (0x3000 | len(chunk) - 1).to_bytes(2, "little") + chunk
    return bytes(out)


def _lznt1_chunk(chunk: bytes) -> bytes:
    out = bytearray()
    newest: dict[bytes, int] = {}
    position, flags_at, count = 0, -1, 8
    while position < len(chunk):
        if count == 8:
            flags_at, count = len(out), 0
            out.append(0)
        length_bits = 12 if position == 0 else 16 - max(4, (position - 1).bit_length())
        distance, length = _matches(chunk, position, newest, reach=1 << 16 - length_bits, longest=(1 << length_bits) + 2)
        if length:
            out[flags_at] |= 1 << count
            out += ((distance - 1) << length_bits | length - _MIN_MATCH).to_bytes(2, "little")
            position += length
        else:
            out.append(chunk[position])
            position += 1
        count += 1
    return bytes(out)


COMPRESSORS: dict[Compression, Callable[[bytes], bytes]] = {Compression.LZNT1: lznt1, Compression.XPRESS: xpress}
