"""Sockets: lives of endpoint addresses, and which of them a record belongs to.

The kernel uses an endpoint address again within microseconds. A life is (endpoint, process object, time); the rules by which it begins and
ends are winsock-semantics 3.
"""

from collections import deque
from collections.abc import Callable

from collector.model.afd_table import Event
from collector.model.owners import Owner, Owners
from collector.model.socket_archive import SocketArchive
from collector.model.socket_state import Socket

__all__ = ["KEPT", "Endpoints"]

KEPT = 10_000
"""Sockets that are over but kept as objects, as late records may come."""


class Endpoints:
    """Finds, opens and ends the sockets of one trace; numbered from 1 in the order of first appearance."""

    def __init__(self, owners: Owners, on_over: Callable[[Socket, Event], None], *, kept: int = KEPT) -> None:
        self.all = SocketArchive(owners)
        self.superseded = 0
        self._owners = owners
        self._kept = kept
        self._on_over = on_over
        self._latest: dict[int, Socket] = {}
        self._older: dict[tuple[int, int], Socket] = {}
        self._away: dict[int, int] = {}  # endpoints whose latest life is archived, by its number
        self._away_older: dict[tuple[int, int], int] = {}
        self._closing: dict[tuple[int, int], int] = {}  # closed but not yet gone: number by endpoint and process
        self._over: deque[Socket] = deque()

    def known(self, endpoint: int, process: int) -> Socket | None:
        """The latest life of an endpoint in a process, ended or not."""
        socket = self.at(endpoint)
        if socket is not None and socket.owner.eprocess == process:
            return socket
        return self._older.get((endpoint, process)) or self._older_from_archive(endpoint, process)

    def latest(self, endpoint: int) -> Socket | None:
        """The latest life of an endpoint unless that is archived."""
        return self._latest.get(endpoint)

    def has_closing(self, endpoint: int, process: int) -> bool:
        """Whether a life of an endpoint is closed but not yet gone."""
        return (endpoint, process) in self._closing

    def at(self, endpoint: int) -> Socket | None:
        """The latest life of an endpoint in whatever process."""
        socket = self._latest.get(endpoint)
        if socket is None and endpoint in self._away:
            socket = self._latest[endpoint] = self._brought_back(self._away.pop(endpoint))
        return socket

    def of(self, e: Event) -> Socket:
        """The socket of a record that starts nothing: late ones go to the life that has ended, the first of an endpoint opens one."""
        socket = self._latest.get(e.endpoint)
        if socket is None or socket.owner.eprocess != e.process:
            socket = self.known(e.endpoint, e.process)
            if socket is None:
                return self._open(e, self._owners.of(e))
        if e.ns > socket.last_ns:
            socket.last_ns = e.ns
        if socket.type is None and e.type_hint:
            socket.saw_type(e.type_hint)
        return socket

    def closing(self, e: Event) -> Socket | None:
        """The life that was closed last at the endpoint of a record and is not yet gone. A newer one may be in use already: the memory of
        an endpoint is given away before the record that says so is written."""
        n = self._closing.get((e.endpoint, e.process))
        if n is None:
            return None
        socket = self._brought_back(n)
        if e.ns > socket.last_ns:
            socket.last_ns = e.ns
        return socket

    def of_late(self, e: Event) -> Socket:
        """The socket of an abort or indication: where the newest life has no connection yet, the one before that is closing."""
        latest = self._latest.get(e.endpoint)
        if latest is not None and latest.is_untouched and latest.owner.eprocess == e.process:
            socket = self.closing(e)
            if socket is not None:
                return socket
        return self.of(e)

    def starting(self, e: Event) -> Socket:
        """The socket of a record that starts something (bind, connect, post …): one that had ended is followed by a new life here."""
        socket = self._latest.get(e.endpoint)
        if socket is None:
            return self._open(e, self._owners.of_caller(e))
        if socket.owner.eprocess != e.process:
            if not socket.is_over:
                self._supersede(socket, e)
            return self._open(e, self._owners.of_caller(e))
        if socket.is_over and socket.is_over_before(e):
            return self._open(e, self._owners.of_caller(e))
        if e.ns > socket.last_ns:
            socket.last_ns = e.ns
        if socket.type is None and e.type_hint:
            socket.saw_type(e.type_hint)
        return socket

    def create(self, e: Event) -> Socket:
        """A create with a good status: a new socket, or a further connection of one that was disconnected (winsock-semantics 3.8)."""
        owner = self._owners.of_caller(e)
        socket = self._latest.get(e.endpoint)
        if socket is not None and not socket.is_over:
            is_same = socket.owner is owner and (socket.family, socket.type, socket.protocol) == (e.y, e.z, e.w)
            if e.id == 1 and is_same and (socket.is_disconnected or socket.is_aborted or socket.is_shut_down):
                socket.begin_connection()
                socket.remote = 0
                if e.ns > socket.last_ns:
                    socket.last_ns = e.ns
                return socket
            if socket.owner is not owner or not socket.began_with(e):
                self._supersede(socket, e)
                socket = self._open(e, owner)
        else:
            socket = self._open(e, owner)
        socket.created(e)
        socket.create_seen = True
        socket.created_ns = e.ns
        socket.create_tid = e.tid
        socket.create_stack = e.stack
        return socket

    def close(self, socket: Socket, e: Event) -> None:
        """The last handle was closed, or the first sign of it."""
        if socket.closed_ns is None and socket.destroyed_ns in (None, e.ns):
            socket.closed_ns = e.ns
            socket.closed_by = e.id
            socket.close_tid = e.tid
            socket.close_stack = e.stack
            self._closing[socket.endpoint, socket.owner.eprocess] = socket.n
            self._end(socket, e, "closed")

    def destroy(self, socket: Socket, e: Event) -> None:
        """The endpoint is gone; where no close was seen, it was closed by now at the latest."""
        if socket.destroyed_ns is None:
            socket.destroyed_ns = e.ns
            key = socket.endpoint, socket.owner.eprocess
            if self._closing.get(key) == socket.n:
                del self._closing[key]
            self._end(socket, e, "closed")

    def void(self, socket: Socket, e: Event) -> None:
        """A create failed after all: there never was a socket."""
        if not socket.is_over:
            socket.is_void = True
            self._end(socket, e, "superseded")

    def named(self, e: Event, endpoint: int) -> Socket:
        """The socket that a record names besides its own as one that begins something; one without a create is opened."""
        return self.starting(e._replace(endpoint=endpoint, type_hint=0))

    def _open(self, e: Event, owner: Owner) -> Socket:
        socket = Socket(len(self.all) + 1, e, owner)
        if e.type_hint:
            socket.saw_type(e.type_hint)
        self.all.add(socket)
        before = self._latest.get(e.endpoint)
        if before is not None:
            if before.owner.eprocess != e.process:
                if not before.is_over:  # a late record of an older life in another process: it does not end this one
                    self._older[e.endpoint, e.process] = socket
                    return socket
                self._older[e.endpoint, before.owner.eprocess] = before
        elif e.endpoint in self._away:
            n = self._away.pop(e.endpoint)
            self._away_older[e.endpoint, self.all.process_of(n)] = n
        self._latest[e.endpoint] = socket
        return socket

    def _older_from_archive(self, endpoint: int, process: int) -> Socket | None:
        n = self._away_older.pop((endpoint, process), None)
        if n is None:
            return None
        socket = self._older[endpoint, process] = self._brought_back(n)
        return socket

    def _brought_back(self, n: int) -> Socket:
        is_away = self.all.is_away(n)
        socket = self.all.bring_back(n)
        if is_away:
            self._over.append(socket)
        return socket

    def _put_away(self) -> None:
        """Archive the socket that has been over for longest."""
        socket = self._over.popleft()
        if socket.open:
            self._over.append(socket)
            return
        self.all.put_away(socket)
        if self._latest.get(socket.endpoint) is socket:
            del self._latest[socket.endpoint]
            self._away[socket.endpoint] = socket.n
            return
        key = socket.endpoint, socket.owner.eprocess
        if self._older.get(key) is socket:
            del self._older[key]
            self._away_older[key] = socket.n

    def _supersede(self, socket: Socket, e: Event) -> None:
        self.superseded += 1
        self._end(socket, e, "superseded")

    def _end(self, socket: Socket, e: Event, how: str) -> None:
        if not socket.is_over:
            socket.is_over = True
            socket.end = how
            socket.over_ticks, socket.over_ns, socket.over_cpu = e.ticks, e.ns, e.cpu
            self._on_over(socket, e)
            self._over.append(socket)
            if len(self._over) > self._kept:
                self._put_away()
