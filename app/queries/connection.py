"""What rows that name a socket are narrowed by: the addresses, the ports and the protocol of that socket."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, and_, or_, select

from app.filters import Filter, one_of
from app.queries.addresses import AddressRange, address_numbers, parse_address_range, parse_port, port_numbers
from app.queries.who import socket_table
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["PROTOCOLS", "at_addresses", "connection_condition", "connection_filters", "own_connection_filters"]

PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58}

_peer = TRACE.tables["peer"]
_BY_TYPE = {"tcp": 1, "udp": 2}
_CHOICES = (("tcp", "TCP"), ("udp", "UDP"), ("icmp", "ICMP"), ("icmpv6", "ICMPv6"))


def at_addresses(s: FromClause, numbers: Any) -> ColumnElement[bool]:  # Any: a select of address numbers
    """Sockets that have one of some addresses, or talked with one."""
    talked = select(_peer.c.socket_n).where(_peer.c.trace_id == THIS_TRACE, _peer.c.address_n.in_(numbers))
    return or_(s.c.local_n.in_(numbers), s.c.remote_n.in_(numbers), s.c.n.in_(talked))


def _speaks(s: FromClause, words: tuple[str, ...]) -> ColumnElement[bool]:
    return or_(*(or_(s.c.protocol == PROTOCOLS[word], and_(s.c.protocol == 0, s.c.type == _BY_TYPE.get(word, -1))) for word in words))


def _numbers(key: str, value: Any) -> Any:  # Any: what the filter of this key parses; a select of address numbers
    return port_numbers(value) if key == "port" else address_numbers(value)


def _holds(s: FromClause, key: str, value: Any) -> ColumnElement[bool]:  # Any: what the filter of this key parses
    return _speaks(s, value) if key == "protocol" else at_addresses(s, _numbers(key, value))


def connection_condition(
    key: str,
    socket_n: ColumnElement[Any],
    value: AddressRange | int | tuple[str, ...],
    *,
    peer_n: ColumnElement[Any] | None = None,  # Any: nullable integers
) -> ColumnElement[bool]:
    """Rows whose socket has an address (`address`, `ip`), a port or a protocol; `peer_n` is an address that the row has of its own."""
    s = socket_table("connected")
    of_socket = socket_n.in_(select(s.c.n).where(s.c.trace_id == THIS_TRACE, _holds(s, key, value)))
    return of_socket if peer_n is None or key == "protocol" else or_(of_socket, peer_n.in_(_numbers(key, value)))


def own_connection_filters(s: FromClause) -> tuple[Filter, Filter, Filter]:
    """Address, port and protocol for a list of sockets, where `s` is the table itself."""
    return _filters("address", lambda key, value: _holds(s, key, value))


def connection_filters(
    socket_n: ColumnElement[Any],
    *,
    peer_n: ColumnElement[Any] | None = None,  # Any: as above
    address_key: str = "address",
) -> tuple[Filter, Filter, Filter]:
    """Address, port and protocol for rows that name a socket. `address_key` is another word where `address` means memory."""
    return _filters(address_key, lambda key, value: connection_condition(key, socket_n, value, peer_n=peer_n))


def _filters(address_key: str, condition: Any) -> tuple[Filter, Filter, Filter]:  # Any: (key, value) → a condition
    label = "Address" if address_key == "address" else "IP address"
    return (
        Filter(
            address_key,
            parse_address_range,
            lambda v: condition(address_key, v),
            "with address {}",
            label,
            hint="IP, IP:port or prefix",
        ),
        Filter("port", parse_port, lambda v: condition("port", v), "with port {}", "Port", hint="local or remote"),
        Filter(
            "protocol",
            one_of(tuple(PROTOCOLS)),
            lambda v: condition("protocol", v),
            "speaking {}",
            "Protocol",
            show=" or ".join,
            choices=_CHOICES,
        ),
    )
