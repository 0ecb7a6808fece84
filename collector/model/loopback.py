"""Both ends of a local connection: sockets of one trace whose addresses mirror each other while both live."""

from array import array
from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from collector.model.addresses import Addresses
from collector.model.socket_state import DGRAM, Socket

__all__ = ["Loopback"]

_NEIGHBOURS = 8  # sockets of the same two ports that are looked at: lives of one connection's ports follow each other
_FOR_EVER = 1 << 62


class _End(NamedTuple):
    """A connected socket; addresses are numbers, the local one its own or its listener's."""

    n: int
    local: int
    remote: int
    first_ns: int
    over_ns: int


class Loopback:
    """Takes all sockets of a trace, then tells the other end of each local connection. n log n in the number of sockets; 48 bytes each."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._ends = array("q")
        self._local_of_listener: dict[int, int] = {}

    def add(self, socket: Socket) -> None:
        """One socket, in any order."""
        if socket.listener and socket.local:
            self._local_of_listener[socket.n] = socket.local
        if socket.remote and not socket.is_void and socket.type != DGRAM and (socket.local or socket.accepted_from):
            over_ns = socket.over_ns if socket.is_over else _FOR_EVER
            self._ends.extend((socket.n, socket.local, socket.remote, socket.first_ns, over_ns, socket.accepted_from or 0))

    def pairs(self) -> dict[int, int]:
        """The other end of each socket whose connection is local, by socket number; both directions.

        A side that is bound to all addresses mirrors any address with its port; where both sides are, their remote addresses must be
        the same. An accepted socket without a local address has its listener's.
        """
        found: dict[int, int] = {}
        by_ports = self._mirrored_by_ports()
        for (local_port, remote_port), ours in by_ports.items():
            if local_port > remote_port or (remote_port, local_port) not in by_ports:
                continue
            theirs = by_ports[remote_port, local_port]
            starts = [end.first_ns for end in theirs]
            for end in ours:
                if end.n not in found:
                    self._find(end, theirs, bisect_right(starts, end.over_ns), found)
        return found

    def _mirrored_by_ports(self) -> dict[tuple[int, int], list[_End]]:
        """Sockets whose two ports another socket has the other way round, by (local, remote) port, in the order of their begin."""
        ends = np.array(self._ends, dtype=np.int64).reshape(-1, 6)
        accepted = ends[:, 1] == 0
        ends[accepted, 1] = [self._local_of_listener.get(listener, 0) for listener in ends[accepted, 5].tolist()]
        ends = ends[ends[:, 1] > 0]
        local = self._addresses.ports(ends[:, 1])
        remote = self._addresses.ports(ends[:, 2])
        good = (local > 0) & (remote > 0) & np.isin(local << 16 | remote, remote << 16 | local)
        by_ports: dict[tuple[int, int], list[_End]] = {}
        for ports, row in zip(zip(local[good].tolist(), remote[good].tolist(), strict=True), ends[good, :5].tolist(), strict=True):
            by_ports.setdefault(ports, []).append(_End(*row))
        for same in by_ports.values():
            same.sort(key=lambda end: (end.first_ns, end.n))
        return by_ports

    def _find(self, one: _End, others: list[_End], beyond: int, found: dict[int, int]) -> None:
        for other in reversed(others[max(beyond - _NEIGHBOURS, 0) : beyond]):
            lives_meet = other.first_ns <= one.over_ns and one.first_ns <= other.over_ns
            if other.n != one.n and other.n not in found and lives_meet and self._mirror(one, other):
                found[one.n], found[other.n] = other.n, one.n
                return

    def _mirror(self, one: _End, other: _End) -> bool:
        ip, is_any = self._addresses.ip, self._addresses.is_any
        if is_any(one.local) and is_any(other.local):
            return ip(one.remote) == ip(other.remote)
        return (is_any(one.local) or ip(one.local) == ip(other.remote)) and (is_any(other.local) or ip(other.local) == ip(one.remote))
