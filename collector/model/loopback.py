"""Both ends of a local connection: sockets of one trace whose addresses mirror each other while both live."""

from bisect import bisect_right
from collections.abc import Iterable

from collector.model.addresses import Addresses
from collector.model.socket_state import DGRAM, Socket

__all__ = ["loopback_pairs"]

_NEIGHBOURS = 8  # sockets of the same two ports that are looked at: lives of one connection's ports follow each other


def loopback_pairs(sockets: Iterable[Socket], addresses: Addresses) -> dict[int, int]:
    """The other end of each socket whose connection is local, by socket number; both directions.

    A side that is bound to all addresses mirrors any address with its port; where both sides are, their remote addresses must be the
    same. n log n in the number of sockets.
    """
    by_ports: dict[tuple[int, int], list[Socket]] = {}
    for socket in sockets:
        if socket.local and socket.remote and not socket.is_void and socket.type != DGRAM:
            ports = addresses.port(socket.local), addresses.port(socket.remote)
            if min(ports) > 0:
                by_ports.setdefault(ports, []).append(socket)
    found: dict[int, int] = {}
    for (local, remote), ours in by_ports.items():
        theirs = by_ports.get((remote, local))
        if theirs is None or local > remote:
            continue
        theirs = sorted(theirs, key=lambda s: (s.first_ns, s.n))
        starts = [s.first_ns for s in theirs]
        for socket in sorted(ours, key=lambda s: (s.first_ns, s.n)):
            if socket.n not in found:
                _find(socket, theirs, bisect_right(starts, _end_ns(socket)), addresses, found)
    return found


def _find(socket: Socket, others: list[Socket], beyond: int, addresses: Addresses, found: dict[int, int]) -> None:
    for other in reversed(others[max(beyond - _NEIGHBOURS, 0) : beyond]):
        lives_meet = other.first_ns <= _end_ns(socket) and socket.first_ns <= _end_ns(other)
        if other is not socket and other.n not in found and lives_meet and _mirror(socket, other, addresses):
            found[socket.n], found[other.n] = other.n, socket.n
            return


def _end_ns(socket: Socket) -> int:
    """When a socket was over, far ahead for one that was not."""
    return socket.over_ns if socket.is_over else 1 << 62


def _mirror(one: Socket, other: Socket, addresses: Addresses) -> bool:
    one_any, other_any = addresses.is_any(one.local), addresses.is_any(other.local)
    if one_any and other_any:
        return addresses.ip(one.remote) == addresses.ip(other.remote)
    return (one_any or addresses.ip(one.local) == addresses.ip(other.remote)) and (
        other_any or addresses.ip(other.local) == addresses.ip(one.remote)
    )
