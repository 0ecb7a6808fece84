"""Sockets that are over, kept in few bytes: a busy server makes a million of them, and their rows wait for the end of the trace.

An object costs about 900 bytes, its archive 250. It may come back: late records belong to sockets that have ended.
"""

import marshal
from collections.abc import Iterator
from operator import attrgetter

from collector.model.owners import Owners
from collector.model.socket_state import Peer, Socket

__all__ = ["SocketArchive"]

_APART = ("open", "owner", "peers", "unanswered")  # what is no plain value, or empty by then
_PLAIN = tuple(name for name in Socket.__slots__ if name not in _APART)
_VALUES = attrgetter(*_PLAIN)
_PEER = attrgetter(*Peer.__slots__)


class SocketArchive:
    """All sockets of a trace, number n at place n - 1, as objects or as bytes (3 µs to archive, 4 µs to bring back)."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._all: list[Socket | bytes] = []

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Socket]:
        """All sockets; those from the archive are copies."""
        for kept in self._all:
            yield kept if isinstance(kept, Socket) else self._read(kept)

    def in_memory(self) -> Iterator[Socket]:
        """Those that are objects: all that have anything open are."""
        return (kept for kept in self._all if isinstance(kept, Socket))

    def add(self, socket: Socket) -> None:
        """The next socket."""
        self._all.append(socket)

    def put_away(self, socket: Socket) -> None:
        """Keep a socket as bytes; nothing may change the object from now on, and it has nothing open."""
        assert not socket.open
        peers = None if socket.peers is None else {address: _PEER(peer) for address, peer in socket.peers.items()}
        self._all[socket.n - 1] = marshal.dumps((_VALUES(socket), socket.owner.n, peers))

    def is_away(self, n: int) -> bool:
        """Whether the socket of a number is archived."""
        return not isinstance(self._all[n - 1], Socket)

    def bring_back(self, n: int) -> Socket:
        """The socket of a number as the object that may be changed."""
        kept = self._all[n - 1]
        if isinstance(kept, Socket):
            return kept
        socket = self._all[n - 1] = self._read(kept)
        return socket

    def process_of(self, n: int) -> int:
        """Process object of a socket that is archived."""
        kept = self._all[n - 1]
        return kept.owner.eprocess if isinstance(kept, Socket) else self._owners.all[marshal.loads(kept)[1] - 1].eprocess

    def _read(self, kept: bytes) -> Socket:
        # marshal reads what this process wrote a moment ago, never a file.
        values, owner_n, peers = marshal.loads(kept)
        socket = Socket.__new__(Socket)
        for name, value in zip(_PLAIN, values, strict=True):
            setattr(socket, name, value)
        socket.owner = self._owners.all[owner_n - 1]
        socket.open = {}
        socket.unanswered = None
        socket.peers = None
        if peers is not None:
            for address, totals in peers.items():
                peer = socket.peer(address)
                for name, value in zip(Peer.__slots__, totals, strict=True):
                    setattr(peer, name, value)
        return socket
