"""Both ends of a local connection: sockets of one trace whose addresses mirror each other while both live."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from collector.model.addresses import Addresses
from collector.model.socket_state import DGRAM, Socket

__all__ = ["loopback_pairs"]

_NEIGHBOURS = 8  # sockets of the same two ports that are looked at: lives of one connection's ports follow each other


def loopback_pairs(sockets: Sequence[Socket], addresses: Addresses) -> dict[int, int]:
    """The other end of each socket whose connection is local, by socket number; both directions.

    A side that is bound to all addresses mirrors any address with its port; where both sides are, their remote addresses must be the
    same. An accepted socket without a local address has its listener's. n log n in the number of sockets.

    Args:
        sockets: all of the trace, socket number n at place n - 1.
    """
    by_ports: dict[tuple[int, int], list[_End]] = {}
    for socket in sockets:
        local = socket.local or (sockets[socket.accepted_from - 1].local if socket.accepted_from else 0)
        if local and socket.remote and not socket.is_void and socket.type != DGRAM:
            ports = addresses.port(local), addresses.port(socket.remote)
            if min(ports) > 0:
                by_ports.setdefault(ports, []).append(_End(socket, local))
    found: dict[int, int] = {}
    for (local_port, remote_port), ours in by_ports.items():
        theirs = by_ports.get((remote_port, local_port))
        if theirs is None or local_port > remote_port:
            continue
        theirs = sorted(theirs, key=_order)
        starts = [end.socket.first_ns for end in theirs]
        for end in sorted(ours, key=_order):
            if end.socket.n not in found:
                _find(end, theirs, bisect_right(starts, _over_ns(end)), addresses, found)
    return found


class _End(NamedTuple):
    """A socket and its local address, its own or its listener's."""

    socket: Socket
    local: int


def _order(end: _End) -> tuple[int, int]:
    return end.socket.first_ns, end.socket.n


def _find(one: _End, others: list[_End], beyond: int, addresses: Addresses, found: dict[int, int]) -> None:
    for other in reversed(others[max(beyond - _NEIGHBOURS, 0) : beyond]):
        is_free = other.socket is not one.socket and other.socket.n not in found
        lives_meet = other.socket.first_ns <= _over_ns(one) and one.socket.first_ns <= _over_ns(other)
        if is_free and lives_meet and _mirror(one, other, addresses):
            found[one.socket.n], found[other.socket.n] = other.socket.n, one.socket.n
            return


def _over_ns(end: _End) -> int:
    """When a socket was over, far ahead for one that was not."""
    return end.socket.over_ns if end.socket.is_over else 1 << 62


def _mirror(one: _End, other: _End, addresses: Addresses) -> bool:
    one_any, other_any = addresses.is_any(one.local), addresses.is_any(other.local)
    one_remote, other_remote = addresses.ip(one.socket.remote), addresses.ip(other.socket.remote)
    if one_any and other_any:
        return one_remote == other_remote
    return (one_any or addresses.ip(one.local) == other_remote) and (other_any or addresses.ip(other.local) == one_remote)
