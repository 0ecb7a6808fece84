"""Socket addresses as Windows stores them, from their text.

A SOCKADDR_IN has 16 bytes (family 2, port and address in network order, 8 zero bytes), a SOCKADDR_IN6 28 (family 23, port, flow
information, address, scope id); families are little-endian. Layouts: the Windows socket headers, ws2def.h and ws2ipdef.h.
"""

import re
import struct
from ipaddress import IPv4Address, IPv6Address

__all__ = ["AF_INET", "AF_INET6", "ipv4_bytes", "ipv6_bytes", "sockaddr_bytes", "split_address"]

AF_INET = 2
AF_INET6 = 23

_V6 = re.compile(r"\[(?P<host>[^%\]]+)(?:%(?P<scope>\d+))?\]:(?P<port>\d+)")
_V4 = re.compile(r"(?P<host>[\d.]+):(?P<port>\d+)")


def split_address(text: str) -> tuple[IPv4Address | IPv6Address, int, int]:
    """Host, port and scope id of `192.0.2.1:80` or `[fe80::1%7]:53`. Raises ValueError for any other text."""
    if v6 := _V6.fullmatch(text):
        return IPv6Address(v6["host"]), int(v6["port"]), int(v6["scope"] or 0)
    if v4 := _V4.fullmatch(text):
        return IPv4Address(v4["host"]), int(v4["port"]), 0
    raise ValueError(f"not a socket address: {text!r}")


def sockaddr_bytes(address: str | bytes) -> bytes:
    """A socket address as it stands in a payload; bytes are taken as they are. Raises ValueError for an odd text."""
    if isinstance(address, bytes):
        return address
    host, port, scope = split_address(address)
    if isinstance(host, IPv4Address):
        return struct.pack("<H", AF_INET) + struct.pack(">H", port) + host.packed + bytes(8)
    return struct.pack("<H", AF_INET6) + struct.pack(">HI", port, 0) + host.packed + struct.pack("<I", scope)


def ipv4_bytes(address: str | int | bytes) -> bytes:
    """Four bytes in network order; an int has its first octet in the top bits."""
    if isinstance(address, bytes):
        return address
    return IPv4Address(address).packed


def ipv6_bytes(address: str | int | bytes) -> bytes:
    """Sixteen bytes in network order."""
    if isinstance(address, bytes):
        return address
    return IPv6Address(address).packed
