"""Sockets that are over, kept on disk: a busy server makes a million of them, and their rows wait for the end of the trace.

An object costs about 900 bytes of memory, its archive 250 bytes of a temporary file and a number. It may come back: late records belong to
sockets that have ended.
"""

import marshal
import tempfile
from array import array
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from collector.errors import StoreFull
from collector.model.owners import Owners
from collector.model.socket_state import Peer, Socket

__all__ = ["SocketArchive"]

_APART = ("open", "owner", "peers", "unanswered")  # what is no plain value, or empty by then
_PLAIN = tuple(name for name in Socket.__slots__ if name not in _APART)
_VALUES = attrgetter(*_PLAIN)
_PEER = attrgetter(*Peer.__slots__)
_AT_ONCE = 1 << 20
_SIZE_BYTES = 4
_HERE = -1


class SocketArchive:
    """All sockets of a trace, number n at place n - 1, as objects or as bytes (3 µs to archive, 5 µs to bring back).

    Up to a megabyte of bytes never touches the disk. Whatever archives a socket raises StoreFull where there is no room for it.
    """

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._objects: dict[int, Socket] = {}
        self._places = array("q")
        """Where the bytes of each socket begin, `_HERE` while it is an object."""
        self._written = 0
        self._waiting = bytearray()
        self._file: Any = None  # a binary temporary file; its class differs from system to system

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Socket]:
        """All sockets; those from the archive are copies."""
        for n, place in enumerate(self._places, 1):
            yield self._objects[n] if place == _HERE else self._read(place)

    def in_memory(self) -> Iterator[Socket]:
        """Those that are objects: all that have anything open are."""
        return (self._objects[n] for n in sorted(self._objects))

    def add(self, socket: Socket) -> None:
        """The next socket."""
        self._places.append(_HERE)
        self._objects[socket.n] = socket

    def put_away(self, socket: Socket) -> None:
        """Keep a socket as bytes; nothing may change the object from now on, and it has nothing open."""
        assert not socket.open
        peers = None if socket.peers is None else {address: _PEER(peer) for address, peer in socket.peers.items()}
        packed = marshal.dumps((_VALUES(socket), socket.owner.n, peers))
        self._places[socket.n - 1] = self._written + len(self._waiting)
        self._waiting += len(packed).to_bytes(_SIZE_BYTES, "little") + packed
        del self._objects[socket.n]
        if len(self._waiting) >= _AT_ONCE:
            self._spill()

    def is_away(self, n: int) -> bool:
        """Whether the socket of a number is archived."""
        return self._places[n - 1] != _HERE

    def bring_back(self, n: int) -> Socket:
        """The socket of a number as the object that may be changed."""
        place = self._places[n - 1]
        if place == _HERE:
            return self._objects[n]
        socket = self._objects[n] = self._read(place)
        self._places[n - 1] = _HERE
        return socket

    def process_of(self, n: int) -> int:
        """Process object of a socket, archived or not."""
        place = self._places[n - 1]
        return self._objects[n].owner.eprocess if place == _HERE else self._owners.all[self._values(place)[1] - 1].eprocess

    def _spill(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __del__
            self._file.seek(self._written)
            self._file.write(self._waiting)
            self._file.flush()
        except OSError as error:
            raise StoreFull(
                f"{tempfile.gettempdir()}: temporary data cannot be written ({error.strerror}). Free some space there."
            ) from error
        self._written += len(self._waiting)
        self._waiting.clear()

    def _values(self, place: int) -> Any:  # Any: what marshal gives: plain values, number of the owner, totals by peer
        # marshal reads what this process wrote a moment ago, never a file of somebody else.
        if place >= self._written:
            begin = place - self._written + _SIZE_BYTES
            size = int.from_bytes(self._waiting[begin - _SIZE_BYTES : begin], "little")
            return marshal.loads(self._waiting[begin : begin + size])
        self._file.seek(place)
        return marshal.loads(self._file.read(int.from_bytes(self._file.read(_SIZE_BYTES), "little")))

    def _read(self, place: int) -> Socket:
        values, owner_n, peers = self._values(place)
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
