"""How sockets get connected: connects, accepts, and what happens at listeners.

Connects and accepts are operations of their own kinds; a listener's rows tell how its backlog fills and how long a connection waits for
its accept. Rules are winsock-semantics 3.8, 3.10 and 9.
"""

from collections import OrderedDict, deque

from collector.afdcodes import PROGRESS_LOCATION, STATUS_WOULD_BLOCK, EnterExit, fails_at_entry, is_error
from collector.model.afd_table import Event
from collector.model.endpoints import Endpoints
from collector.model.operations import Operations
from collector.model.row_sink import RowSink
from collector.model.socket_state import DGRAM, STREAM, Kind, Socket

__all__ = ["Connections"]

_MAX_WAITING = 4096  # connection requests remembered per listener, and accepts without a socket per process
_DOCUMENTED = 1000


class _Waiting:
    """What has arrived at a listener and was not accepted yet: times of the requests by peer."""

    __slots__ = ("_by_peer", "_count")

    def __init__(self) -> None:
        self._by_peer: OrderedDict[int, deque[int]] = OrderedDict()
        self._count = 0

    def arrived(self, peer: int, ns: int) -> None:
        self._by_peer.setdefault(peer, deque()).append(ns)
        self._count += 1
        if self._count > _MAX_WAITING:
            self.accepted(next(iter(self._by_peer)))

    def accepted(self, peer: int) -> int | None:
        """Takes the oldest request of a peer; gives its time."""
        times = self._by_peer.get(peer)
        if times is None:
            return None
        ns = times.popleft()
        self._count -= 1
        if not times:
            del self._by_peer[peer]
        return ns


class Connections:
    """Connects, accepts and listeners of one trace."""

    def __init__(self, sink: RowSink, endpoints: Endpoints, operations: Operations) -> None:
        self._sink = sink
        self._endpoints = endpoints
        self._operations = operations
        self._waiting: dict[int, _Waiting] = {}
        self._listeners_of_peer: dict[tuple[int, int], Socket] = {}
        self._unclaimed: dict[int, deque[tuple[Socket, Event]]] = {}
        self._spare: dict[int, deque[tuple[Socket, int]]] = {}  # created while guesses stood open, with the record number, by owner
        self._guesses_of: dict[int, int] = {}
        self.guessed: dict[int, tuple[Socket, Event]] = {}
        """Sockets taken for accepted ones until they show it, by number, with the listener and its accept."""

    # ------------------------------------------------------------------------------------------------ connect

    def connect(self, e: Event) -> bool:
        """A connect entered or ended; false when the record is neither (progress)."""
        is_enter = e.enter_exit == EnterExit.ENTER if e.id >= _DOCUMENTED else e.id != 6
        if not is_enter:
            if e.id >= _DOCUMENTED and e.enter_exit != EnterExit.EXIT:
                return False
            self._connected(self._endpoints.of(e), e)
            return True
        if e.location == PROGRESS_LOCATION:
            return False
        if e.has_status and fails_at_entry(e.status):
            self._operations.post(self._endpoints.of(e), e, Kind.CONNECT)
            return True
        socket = self._endpoints.starting(e)
        self.not_accepted(socket)
        if socket.connections:
            socket.begin_connection()
        if e.address:
            socket.remote = e.address
        if socket.type == DGRAM and socket.open:
            self._operations.settle_peers(socket)
        self._operations.post(socket, e, Kind.CONNECT)
        return True

    def _connected(self, socket: Socket, e: Event) -> None:
        self._operations.call_done(socket, e, Kind.CONNECT)
        if not is_error(e.status) and socket.type != DGRAM:
            socket.connections += 1
        if e.address:
            socket.remote = e.address

    # ------------------------------------------------------------------------------------------------ accept, modern

    def accept(self, e: Event) -> bool:
        """accept() or AcceptEx entered or ended; false when the record is neither."""
        if e.enter_exit == EnterExit.ENTER:
            if fails_at_entry(e.status):
                listener = self._endpoints.of(e)
                self._operations.post(listener, e, Kind.ACCEPT)
                self._listen_row(listener, e, "accept_failed", status=e.status)
                return True
            listener = self._endpoints.starting(e)
            listener.listener = True
            self._operations.post(listener, e, Kind.ACCEPT)
            self._listen_row(listener, e, "accept_posted")
            return True
        if e.enter_exit != EnterExit.EXIT:
            return False
        listener = self._endpoints.of(e)
        listener.listener = True
        if is_error(e.status):
            self._operations.call_done(listener, e, Kind.ACCEPT)
            self._listen_row(listener, e, "accept_failed", peer=e.address, status=e.status)
            return True
        accepted = self._accepted_socket(listener, e) if e.x else None
        self._operations.call_done(listener, e, Kind.ACCEPT, accepted=None if accepted is None else accepted.n)
        backlog = e.y if e.id in (1024, 1027) else None
        self._listen_row(listener, e, "accepted", backlog_now=backlog, peer=e.address, accepted=accepted, wait=True, status=e.status)
        return True

    def _accepted_socket(self, listener: Socket, e: Event) -> Socket:
        socket = self._endpoints.named(e, e.x)
        self._link(socket, listener, e, is_inferred=False)
        socket.local = socket.local or listener.local
        socket.family = socket.family if socket.family is not None else listener.family
        if socket.type is None and listener.type is not None:
            socket.saw_type(listener.type)
        return socket

    def _link(self, socket: Socket, listener: Socket, e: Event, *, is_inferred: bool) -> None:
        if socket.connections:
            socket.begin_connection()
        socket.accepted_from = listener.n
        socket.accept_inferred = is_inferred
        socket.connections += 1
        socket.remote = e.address or socket.remote

    # ------------------------------------------------------------------------------------------------ accept, documented

    def accept_documented(self, e: Event) -> None:
        """Events 15 and 16 name the listener or the accepted socket, nobody says which; 17 is a failure at the listener."""
        socket = self._endpoints.of(e)
        if e.id == 17 or is_error(e.status):
            self._operations.call_done(socket, e, Kind.ACCEPT)
            self._listen_row(socket, e, "accept_failed", peer=e.address, status=e.status)
            return
        if socket.listener:
            self._operations.call_done(socket, e, Kind.ACCEPT, has_post=False)
            self._listen_row(socket, e, "accepted", peer=e.address, wait=True, status=e.status)
            waiting = self._unclaimed.setdefault(socket.owner.n, deque())
            waiting.append((socket, e))
            if len(waiting) > _MAX_WAITING:
                waiting.popleft()
            return
        listener = self._listeners_of_peer.pop((e.process, e.address), None)
        self._operations.call_done(socket, e, Kind.ACCEPT, has_post=False)
        if listener is not None:
            self._link(socket, listener, e, is_inferred=True)
            self._listen_row(listener, e, "accepted", peer=e.address, accepted=socket, wait=True, status=e.status)
            return
        if socket.connections:
            socket.begin_connection()
        socket.connections += 1
        socket.remote = e.address or socket.remote

    def created(self, socket: Socket, e: Event) -> None:
        """A documented create: the next one of a process after its listener accepted is the accepted socket, unless it connects."""
        owner_n = socket.owner.n
        if socket.type != STREAM:
            return
        waiting = self._unclaimed.get(owner_n)
        if waiting:
            self._guess(socket, *waiting.popleft())
        elif owner_n in self._guesses_of:
            self._spare.setdefault(owner_n, deque(maxlen=_MAX_WAITING)).append((socket, e.seq))

    def not_accepted(self, socket: Socket) -> None:
        """A socket that binds, connects or listens by itself was not accepted: the next one was, or will be."""
        guess = self.guessed.get(socket.n)
        if guess is None:
            return
        socket.accepted_from, socket.accept_inferred = None, False
        socket.connections -= 1
        socket.remote = 0
        listener, accept = guess
        spare = self._spare.get(socket.owner.n, ())
        for entry in spare:
            other, seq = entry
            if seq > accept.seq and not (other.remote or other.local or other.connections or other.listener):
                self._spare[socket.owner.n].remove(entry)
                self._guess(other, listener, accept)
                break
        else:
            self._unclaimed.setdefault(socket.owner.n, deque()).appendleft(guess)
        self.used(socket)

    def used(self, socket: Socket) -> None:
        """A socket does something else than connect: a guess that it was accepted stands."""
        if self.guessed.pop(socket.n, None) is None:
            return
        owner_n = socket.owner.n
        self._guesses_of[owner_n] -= 1
        if not self._guesses_of[owner_n]:
            del self._guesses_of[owner_n]
            self._spare.pop(owner_n, None)

    def _guess(self, socket: Socket, listener: Socket, accept: Event) -> None:
        self.guessed[socket.n] = (listener, accept)
        self._guesses_of[socket.owner.n] = self._guesses_of.get(socket.owner.n, 0) + 1
        self._link(socket, listener, accept, is_inferred=True)

    # ------------------------------------------------------------------------------------------------ listeners

    def listen(self, socket: Socket, e: Event) -> None:
        """listen() was called."""
        if e.enter_exit == EnterExit.EXIT and not is_error(e.status) and socket.listener:
            return  # its enter has said all
        socket.listener = socket.listener or not is_error(e.status)
        self._listen_row(socket, e, "listen", backlog_asked=e.x, status=e.status)

    def indicated(self, socket: Socket, e: Event) -> None:
        """A connection request arrived at a listener, or was refused there."""
        self.not_accepted(socket)
        socket.listener = True
        if not is_error(e.status):
            self._waiting.setdefault(socket.n, _Waiting()).arrived(e.address, e.ns)
            if e.id < _DOCUMENTED and len(self._listeners_of_peer) < _MAX_WAITING * 16:
                self._listeners_of_peer[e.process, e.address] = socket
        backlog = e.y if e.id == 3001 else None
        status = e.status if e.has_status else None
        self._listen_row(socket, e, "indication", backlog_now=backlog, peer=e.address, status=status)

    def paused(self, socket: Socket, e: Event) -> None:
        """A listener stopped taking connections, or took them again."""
        self._listen_row(socket, e, "pause" if e.y else "unpause", backlog_now=e.z)

    def waits(self, socket: Socket, e: Event) -> None:
        """The first half of accept(): the caller waits at the listener."""
        if e.enter_exit == EnterExit.ENTER:
            socket.listener = True
            what = "accept_failed" if fails_at_entry(e.status) else "accept_posted"
            self._listen_row(socket, e, what, status=e.status if fails_at_entry(e.status) else None)
        elif is_error(e.status):
            self._listen_row(socket, e, "accept_failed", status=e.status)

    def over(self, socket: Socket) -> None:
        """A socket is over; its waiting requests are nobody's any more."""
        self._waiting.pop(socket.n, None)
        self.used(socket)

    def _listen_row(
        self,
        socket: Socket,
        e: Event,
        what: str,
        *,
        backlog_asked: int | None = None,
        backlog_now: int | None = None,
        peer: int = 0,
        accepted: Socket | None = None,
        status: int | None = None,
        wait: bool = False,
    ) -> None:
        if what == "accept_failed" and status == STATUS_WOULD_BLOCK:
            return  # an answer, no failure (winsock-semantics 8.11)
        wait_ns = None
        if wait:
            waiting = self._waiting.get(socket.n)
            since = None if waiting is None else waiting.accepted(peer)
            wait_ns = None if since is None else e.ns - since
        accepted_n = None if accepted is None else accepted.n
        self._sink.add("listen_event", (socket.n, e.ns, what, backlog_asked, backlog_now, peer or None, accepted_n, status, wait_ns))
