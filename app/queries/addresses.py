"""Finding socket addresses: exact, by IP, by prefix, by port."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, select

from app.filters import Filter, parse_text
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["AddressRange", "address_numbers", "parse_address_range", "parse_port", "port_numbers", "remote_filter"]

_address = TRACE.tables["address"]
_LIKE_IP = re.compile(r"[0-9a-fA-F.:/%\[\]]+")


@dataclass(frozen=True, slots=True)
class AddressRange:
    """IP addresses from `low` to `high` (16 bytes each, IPv4 mapped), with a port or all; `text` is what was asked for."""

    low: bytes
    high: bytes
    port: int | None
    text: str

    def __str__(self) -> str:
        return self.text


def parse_port(text: str) -> int:
    """A port. Raises ValueError."""
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:
        raise ValueError("a port from 0 to 65535.")
    return int(text)


def parse_address_range(text: str) -> AddressRange:
    """`192.0.2.1`, `192.0.2.0/24`, `192.0.2.1:80`, `fe80::1`, `[fe80::1%7]:53`, `2001:db8::/32`. Raises ValueError."""
    allowed = "an IP address, with a port or a prefix length: 192.0.2.1, 192.0.2.1:80, 192.0.2.0/24, [2001:db8::1]:53."
    host, port = text.strip(), None
    if host.startswith("["):
        host, bracket, rest = host[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(allowed)
        port = rest[1:] or None
    elif host.count(":") == 1:
        host, _, port = host.partition(":")
    try:
        network = ipaddress.ip_network(host.partition("%")[0] if "/" not in host else host, strict=False)
    except ValueError as error:
        raise ValueError(allowed) from error
    low, high = _sixteen(network.network_address), _sixteen(network.broadcast_address)
    return AddressRange(low, high, None if port is None else parse_port(port), text.strip())


def _sixteen(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bytes:
    return ip.packed if ip.version == 6 else bytes(10) + b"\xff\xff" + ip.packed


def address_numbers(wanted: AddressRange) -> Select[tuple[int]]:
    """Numbers of the addresses of a range."""
    found = select(_address.c.n).where(_address.c.trace_id == THIS_TRACE, _in(wanted))
    return found if wanted.port is None else found.where(_address.c.port == wanted.port)


def _in(wanted: AddressRange) -> ColumnElement[bool]:
    return _address.c.ip == wanted.low if wanted.low == wanted.high else _address.c.ip.between(wanted.low, wanted.high)


def port_numbers(port: int) -> Select[tuple[int]]:
    """Numbers of the addresses with a port."""
    return select(_address.c.n).where(_address.c.trace_id == THIS_TRACE, _address.c.port == port)


def _parse_remote(text: str) -> AddressRange | str:
    """An IP address or a range of them, else an address as it is shown. Raises ValueError for what cannot be text."""
    try:
        return parse_address_range(text)
    except ValueError:
        if _LIKE_IP.fullmatch(text) or _begins_with_ip(text):
            raise
        return parse_text(text)


def _begins_with_ip(text: str) -> bool:
    """Whether an IP address is followed by something that is neither its port nor its prefix length."""
    host = text.strip()
    host = host[1:].partition("]")[0] if host.startswith("[") else host.rpartition(":")[0] if ":" in host else host.partition("/")[0]
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def remote_filter(column: ColumnElement[Any]) -> Filter:  # Any: a nullable integer column
    """Rows with a remote address in a range, with one of another kind as it is shown, or (`unknown`) with none."""

    def sql(value: AddressRange | str) -> ColumnElement[bool]:
        if isinstance(value, AddressRange):
            return column.in_(address_numbers(value))
        if value == "unknown":
            return column.is_(None)
        return column.in_(select(_address.c.n).where(_address.c.trace_id == THIS_TRACE, _address.c.text == value))

    return Filter("remote", _parse_remote, sql, "with remote address {}", "Remote address", hint="IP, IP:port, prefix, unknown")
