"""Which connection an event of the network stack is about: its addresses as one key, the same whatever the event and its wire form."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.schema import EventColumns
from collector.sockaddr import AF_INET, AF_INET6

__all__ = ["KEY_BYTES", "TCP", "UDP", "Groups", "ends_of", "grouped", "keys_of", "sockaddr_ends"]

Int64s: TypeAlias = NDArray[np.int64]
UInt8s: TypeAlias = NDArray[np.uint8]

TCP, UDP = 6, 17
KEY_BYTES = 40
"""Source, protocol, local IP (16 bytes), local port, remote IP, remote port (both big-endian), and two zeros."""
_WORDS = KEY_BYTES // 8
_SPREAD = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F], dtype=np.uint64)

Ends: TypeAlias = tuple[UInt8s, Int64s]
"""IP addresses of 16 bytes, shape (m, 16), and ports, shape (m,)."""
Groups: TypeAlias = tuple[Int64s, Int64s]
"""The first row of each distinct key, and the number of the key of each row."""


def ends_of(columns: EventColumns, ip: str, port: str) -> Ends:
    """One side of the kernel's events, IPv4 mapped into IPv6."""
    ips = columns.numbers(ip)
    ports = columns.numbers(port).astype(np.int64)
    if ips.ndim == 2:
        return ips.astype(np.uint8), ports
    made = np.zeros((ips.size, 16), dtype=np.uint8)
    made[:, 10:12] = 0xFF
    made[:, 12:] = ips.astype(">u4").view(np.uint8).reshape(-1, 4)
    return made, ports


def sockaddr_ends(columns: EventColumns, name: str) -> tuple[Ends, NDArray[np.bool_]]:
    """One side of an event with socket addresses, and which rows have an IP address there; families of other kinds have none."""
    raw = columns.numbers(name).astype(np.uint8)
    lengths = columns.numbers(f"{name}_length").astype(np.int64)
    family = raw[:, 0].astype(np.int64) | raw[:, 1].astype(np.int64) << 8
    ports = raw[:, 2].astype(np.int64) << 8 | raw[:, 3]
    is_4, is_6 = (family == AF_INET) & (lengths >= 8), (family == AF_INET6) & (lengths >= 24)
    ips = np.zeros((lengths.size, 16), dtype=np.uint8)
    ips[is_4, 10:12] = 0xFF
    ips[is_4, 12:] = raw[is_4, 4:8]
    ips[is_6] = raw[is_6, 8:24]
    return (ips, ports), is_4 | is_6


def keys_of(source: int, protocol: int, local: Ends, remote: Ends | None) -> UInt8s:
    """Keys of events, uint8 of shape (m, KEY_BYTES); without a remote side those of a local end."""
    keys = np.zeros((local[1].size, KEY_BYTES), dtype=np.uint8)
    keys[:, 0], keys[:, 1] = source, protocol
    for at, side in ((2, local), (20, remote)):
        if side is not None:
            keys[:, at : at + 16] = side[0]
            keys[:, at + 16] = side[1] >> 8
            keys[:, at + 17] = side[1] & 0xFF
    return keys


def grouped(keys: UInt8s) -> Groups:
    """Equal keys together; by a hash that is checked, which is several times as quick as comparing the keys."""
    words = np.ascontiguousarray(keys).view(np.uint64)
    hashed = np.zeros(len(words), dtype=np.uint64)
    for i in range(_WORDS):
        hashed = (hashed ^ words[:, i]) * _SPREAD[i]
        hashed ^= hashed >> np.uint64(29)
    _, first, number = np.unique(hashed, return_index=True, return_inverse=True)
    if not (words == words[first[number]]).all():
        _, first, number = np.unique(np.ascontiguousarray(keys).view(f"V{KEY_BYTES}").ravel(), return_index=True, return_inverse=True)
    return first.astype(np.int64), number.reshape(-1).astype(np.int64)
