"""The plain way from record to record, to hold the quick one against: slow, short, and sharing no code with it."""

import struct

__all__ = ["plain_walk"]

_CLASSIC = {1: 32, 2: 32, 3: 24, 4: 24, 16: 16, 17: 16}
_NAMED = {10: 48, 20: 48, 11: 72, 21: 72, 18: 80, 19: 80}


def plain_walk(content: bytes) -> tuple[list[tuple[int, int]], int]:
    """Start and size of each record of a buffer, and where they stop: at its end, rounded up to 8, or where bytes are no record."""
    found, at = [], 0
    while at + 8 <= len(content):
        low, kind, flags, high = struct.unpack_from("<HBBH", content, at)
        is_classic = flags == 0xC0 and kind in _CLASSIC
        size = high if is_classic else low
        least = (_CLASSIC | _NAMED).get(kind, 8) if flags == 0xC0 else 8
        if flags not in (0xC0, 0x90, 0xB0) or size < least or at + size > len(content):
            break
        found.append((at, size))
        at += (size + 7) & ~7
    return found, at
