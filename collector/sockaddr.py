"""Socket addresses: bytes of the wire to the one spelling that tables, pages and links use.

Layouts are those of the Windows socket headers: family (16 bits, little-endian) first; for IP the port (16 bits, big-endian) next, for
IPv6 then flow information, 16 address bytes and the scope id (32 bits, little-endian).
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from uuid import UUID

__all__ = ["AF_HYPERV", "AF_INET", "AF_INET6", "AF_UNIX", "AF_VSOCK", "SocketAddress", "from_ip", "from_ipv4", "from_ipv6", "from_sockaddr"]

AF_UNIX = 1
AF_INET = 2
AF_INET6 = 23
AF_HYPERV = 34
AF_VSOCK = 40

_MAPPED = bytes(10) + b"\xff\xff"
_IPV4_BYTES = 8  # family, port, address; the eight bytes behind them are padding
_IPV6_BYTES = 24  # the scope id behind these is 0 where it is left out
_HYPERV_BYTES = 36
_VSOCK_BYTES = 12


@dataclass(frozen=True, slots=True)
class SocketAddress:
    """One address; `ip` has 16 bytes (IPv4 as ::ffff:a.b.c.d) and is None for families without IP."""

    text: str
    family: int
    ip: bytes | None = None
    port: int | None = None
    scope_id: int | None = None

    @property
    def is_any(self) -> bool:
        """Whether it stands for all local addresses: 0.0.0.0 or ::."""
        return self.ip is not None and (not any(self.ip) or self.ip == _MAPPED + bytes(4))


def from_ipv4(ip: bytes, port: int) -> SocketAddress:
    """An IPv4 address of 4 bytes in network order, e.g. `192.0.2.1:80`."""
    return SocketAddress(f"{IPv4Address(ip)}:{port}", AF_INET, _MAPPED + ip, port, 0)


def from_ipv6(ip: bytes, port: int, scope_id: int = 0) -> SocketAddress:
    """An IPv6 address of 16 bytes, e.g. `[fe80::1%7]:53`; an IPv4 address inside is shown as one: `[::ffff:192.0.2.53]:53`."""
    text = f"::ffff:{IPv4Address(ip[12:])}" if ip.startswith(_MAPPED) else str(IPv6Address(ip))
    zone = f"%{scope_id}" if scope_id else ""
    return SocketAddress(f"[{text}{zone}]:{port}", AF_INET6, ip, port, scope_id)


def from_ip(ip: bytes, port: int) -> SocketAddress:
    """An IP address of 16 bytes, IPv4 mapped, as events have it that tell no family: `192.0.2.1:80`, `[fe80::1]:53`."""
    return from_ipv4(ip[12:], port) if ip.startswith(_MAPPED) else from_ipv6(ip, port)


def from_sockaddr(raw: bytes) -> SocketAddress | None:
    """A socket address as it stands in an event; None where there is none (no bytes, or no family).

    Bytes that are too few for their family, and families without a spelling of ours, are shown as they are: `family 32: 0a0b`.
    """
    if len(raw) < 2:
        return None
    family = int.from_bytes(raw[:2], "little")
    port = int.from_bytes(raw[2:4], "big")
    if family == AF_INET and len(raw) >= _IPV4_BYTES:
        return from_ipv4(raw[4:8], port)
    if family == AF_INET6 and len(raw) >= _IPV6_BYTES:
        return from_ipv6(raw[8:24], port, int.from_bytes(raw[24:28], "little"))
    if family == AF_UNIX:
        return SocketAddress(_path(raw[2:]), family)
    if family == AF_HYPERV and len(raw) >= _HYPERV_BYTES:
        return SocketAddress(f"vm {UUID(bytes_le=raw[4:20])} service {UUID(bytes_le=raw[20:36])}", family)
    if family == AF_VSOCK and len(raw) >= _VSOCK_BYTES:
        vsock_port = int.from_bytes(raw[4:8], "little")
        return SocketAddress(f"vsock {int.from_bytes(raw[8:12], 'little')}:{vsock_port}", family, port=vsock_port)
    if not any(raw):
        return None
    return SocketAddress(f"family {family}: {raw[2:].hex()}", family)


def _path(raw: bytes) -> str:
    """The path of a local socket, zero terminated; one that begins with a zero byte has no file."""
    if raw[:1] == b"\0":
        name = raw[1:].rstrip(b"\0")
        return f"unix @{name.decode('utf-8', 'replace')}" if name else "unix unnamed"
    path = raw.split(b"\0", 1)[0].decode("utf-8", "replace")
    return path or "unix unnamed"
