"""The front of the socket model: takes the socket events of a window one by one, and hands on finished rows.

Each event id has one method here; what the records mean is in the modules beside: `owners` (whose), `endpoints` (which life), `operations`
with `matching` and `overlaps` (requests), `connections` (connects, accepts, listeners), `aborts`, `polls`.
"""

from collections.abc import Callable, Iterable, Iterator

from collector.afdcodes import SO_RCVBUF, EnterExit, fails_at_entry, is_error
from collector.clock import Clock
from collector.errors import Problem
from collector.losses import Losses
from collector.model.aborts import abort_row
from collector.model.addresses import Addresses
from collector.model.afd_table import Event, afd_counts, afd_table
from collector.model.connections import Connections
from collector.model.endpoints import KEPT, Endpoints
from collector.model.loopback import Loopback
from collector.model.operations import Operations
from collector.model.overlaps import Overlaps
from collector.model.owners import Owners
from collector.model.plain_choice import Model
from collector.model.plain_window import PLAIN_FROM, Windows
from collector.model.polls import Polls
from collector.model.processes import Processes
from collector.model.row_sink import RowSink
from collector.model.rows import Rows, gathered
from collector.model.socket_problems import SocketCounts, socket_problems
from collector.model.socket_rows import drop_row, event_row, option_row, peer_rows, skipped_row, socket_row
from collector.model.socket_state import DGRAM, Socket
from collector.model.stacks import Stacks
from collector.model.transfers import (
    DATAGRAMS_ONLY,
    DOCUMENTED_COMPLETIONS,
    DOCUMENTED_FAILURES,
    DOCUMENTED_POSTS,
    OPTIONAL_EXITS,
    TRANSFERS,
)
from collector.raw import TraceHeader
from collector.schema import DecodedBatch

__all__ = ["Sockets"]

_WITHOUT_POST = 25
_CLEANUP = 1002
_SOCKETS_AT_ONCE = 10_000


class Sockets:
    """The socket model of one trace.

    Costs 1 µs a plain record and 6 to 10 µs any other (bench/sockets.py). Memory: what is open, and a number a socket until the end, since
    owners and the other ends of local connections may be known only then. `kept` sockets that are over stay at hand for late records,
    older ones in an archive. Parts of a window of at least `plain_from` records go through arrays as far as they are plain; None: all goes
    one by one.
    """

    def __init__(
        self,
        processes: Processes,
        stacks: Stacks,
        clock: Clock,
        losses: Losses,
        header: TraceHeader,
        *,
        kept: int = KEPT,
        plain_from: int | None = PLAIN_FROM,
    ) -> None:
        self.problems: list[Problem] = []
        self._stacks = stacks
        self._clock = clock
        self._losses = losses
        self._header = header
        self._sink = RowSink()
        self._addresses = Addresses()
        self._owners = Owners(processes)
        self._overlaps = Overlaps(losses)
        self._endpoints = Endpoints(self._owners, self._over, kept=kept)
        self._operations = Operations(self._sink, self._overlaps, self._endpoints.closing)
        self._connections = Connections(self._sink, self._endpoints, self._operations)
        model = Model(self._owners, self._endpoints, self._operations, self._overlaps)
        self._windows = Windows(model, self._connections, self._sink, self._handle, plain_from=plain_from)
        self._polls = Polls(self._sink, self._owners)
        self._rio_sockets: dict[int, Socket] = {}
        self._ids: dict[int, int] = {}
        self._last_ticks = 0
        self._handlers = self._all_handlers()

    def advance(self, batch: DecodedBatch) -> Rows:
        """Take in one window; rows of what is over."""
        self._owners.advance(batch)
        for number, count in afd_counts(batch).items():
            self._ids[number] = self._ids.get(number, 0) + count
        table = afd_table(batch, self._addresses, self._stacks.extended_refs(batch))
        if table is not None:
            self._windows.take(table)
            self._last_ticks = int(table.ticks[-1])
        self._owners.advance(batch)
        return self._take()

    def _handle(self, e: Event) -> None:
        if e.source and not self._owners.knows(e):
            self._owners.learn(e)
        self._handlers[e.id](e)

    def finish(self) -> Rows:
        """All that `finish_parts` gives, at once."""
        return gathered(self.finish_parts())

    def finish_parts(self) -> Iterator[Rows]:
        """Rows of what is still open, of the sockets and of their owners, in pieces; behind the last one `problems` is complete."""
        for row in self._owners.finish():
            self._sink.put("owner", row)
        ends = {o.n: end.ns for o in self._owners.all if (end := self._owners.end_of(o)) is not None}
        self._operations.finish(self._endpoints.all.in_memory(), self._last_ticks, ends)
        self._polls.finish()
        for row in self._overlaps.finish():
            self._sink.put("overlap", row)
        yield self._take()
        loopback = Loopback(self._addresses)
        for socket in self._endpoints.all:
            loopback.add(socket)
        peers = loopback.pairs()
        count = SocketCounts(self._owners)
        for i, socket in enumerate(self._endpoints.all, 1):
            if socket.is_void:
                continue
            count.add(socket)
            self._sink.put("socket", socket_row(socket, _end(socket, ends), peers.get(socket.n)))
            for row in peer_rows(socket):
                self._sink.put("peer", row)
            if i % _SOCKETS_AT_ONCE == 0:
                yield self._take()
        self.problems = socket_problems(count, self._owners, self._operations, self._endpoints, self._overlaps, self._ids)
        yield self._take()

    def _take(self) -> Rows:
        rows = self._sink.take()
        if addresses := self._addresses.take_rows():
            rows["address"] = [*addresses]
        return rows

    def _all_handlers(self) -> dict[int, Callable[[Event], object]]:
        handlers: dict[int, Callable[[Event], object]] = dict.fromkeys(range(5000), self._other)
        of_ids: tuple[tuple[Iterable[int], Callable[[Event], object]], ...] = (
            (TRANSFERS, self._transfer),
            (DOCUMENTED_POSTS, self._documented_post),
            (DOCUMENTED_COMPLETIONS, self._documented_completion),
            (DOCUMENTED_FAILURES, self._documented_failure),
            ((1, 1000), self._create),
            ((13, 1002), self._cleanup),
            ((1001,), self._close),
            ((14,), self._shut_down),
            ((4, 5, 6, 1017, 1018, 1020, 1021), self._connect),
            ((15, 16, 17), self._accept_documented),
            ((1023, 1024, 1026, 1027), self._accept),
            ((2, 3, 40, 1029, 1030), self._bind),
            ((7, 8, 1032), self._abort),
            ((33, 34, 1033), self._drop),
            ((29, 1035), self._option),
            ((1036, 1037, 35, 36, 3000, 3001, 4019), self._listener),
            ((37, 38, 39, 3003, 3004), self._data_indicated),
            ((41, 3006), self._disconnected),
            ((30, 31), self._poll),
            ((32,), self._event_mask),
            ((3007, 4016, 4017, 4018), self._of_socket),
            (range(4000, 4016), self._registered_io),
            ((4020,), self._registered_io),
        )
        for ids, handler in of_ids:
            handlers.update(dict.fromkeys(ids, handler))
        return handlers

    # ------------------------------------------------------------------------------------------------ transfers

    def _transfer(self, e: Event) -> None:
        kind = TRANSFERS[e.id]
        if e.enter_exit == EnterExit.ENTER:
            socket = self._endpoints.of(e) if fails_at_entry(e.status) else self._endpoints.starting(e)
            if self._connections.guessed:
                self._connections.used(socket)
            if self._operations.post(socket, e, kind, is_optional=e.id in OPTIONAL_EXITS) is None:
                self._write_event(socket, e)
        elif e.is_double:
            socket = self._endpoints.of(e)
            self._sink.add("skipped", skipped_row(socket.n, e, "double_count"))
        elif e.enter_exit == EnterExit.EXIT:
            self._operations.exit(self._endpoints.of(e), e, kind)
        else:
            self._of_socket(e)

    def _documented_post(self, e: Event) -> None:
        socket = self._endpoints.starting(e)
        if socket.type is None and e.id in DATAGRAMS_ONLY:
            socket.saw_type(DGRAM)
        if self._connections.guessed:
            self._connections.used(socket)
        if self._operations.post(socket, e, DOCUMENTED_POSTS[e.id]) is None:
            self._write_event(socket, e)

    def _documented_completion(self, e: Event) -> None:
        socket = self._endpoints.of(e)
        if socket.type is None and e.id in DATAGRAMS_ONLY:
            socket.saw_type(DGRAM)
        self._operations.completed(socket, e, DOCUMENTED_COMPLETIONS[e.id], has_post=e.id != _WITHOUT_POST)

    def _documented_failure(self, e: Event) -> None:
        kinds, kind = DOCUMENTED_FAILURES[e.id]
        self._operations.failed(self._endpoints.of(e), e, kinds, kind)

    # ------------------------------------------------------------------------------------------------ lives

    def _create(self, e: Event) -> None:
        self._operations.passes(e.tid)
        if not e.endpoint or (e.enter_exit == EnterExit.ENTER and fails_at_entry(e.status)):
            self._write_event(None, e)
            return
        if e.enter_exit in (None, EnterExit.ENTER):
            socket = self._endpoints.create(e)
            if e.id == 1:
                self._connections.created(socket, e)
            self._write_event(socket, e)
        else:
            self._write_event(self._create_exit(e), e)

    def _create_exit(self, e: Event) -> Socket | None:
        if is_error(e.status):
            known = self._endpoints.known(e.endpoint, e.process)
            if known is not None and known.is_idle:
                self._endpoints.void(known, e)
            return None
        socket = self._endpoints.starting(e)
        if socket.family is None:
            socket.created(e)
        return socket

    def _cleanup(self, e: Event) -> None:
        socket = self._of_socket(e)
        if e.enter_exit in (None, EnterExit.ENTER):
            self._endpoints.close(socket, e)

    def _close(self, e: Event) -> None:
        is_exit = e.enter_exit == EnterExit.EXIT
        socket = self._record_of((self._endpoints.closing(e) if is_exit else None) or self._endpoints.of(e), e)
        if e.enter_exit == EnterExit.ENTER:
            self._endpoints.close(socket, e)
        elif is_exit:
            self._endpoints.destroy(socket, e)

    def _shut_down(self, e: Event) -> None:
        socket = self._record_of(self._endpoints.of_late(e), e)
        if socket.closed_ns is None:
            socket.is_shut_down = True
        else:
            self._endpoints.destroy(socket, e)

    def _over(self, socket: Socket, e: Event) -> None:
        self._operations.socket_over(socket, e)
        self._connections.over(socket)

    # ------------------------------------------------------------------------------------------------ connections

    def _connect(self, e: Event) -> None:
        self._operations.passes(e.tid)
        if not self._connections.connect(e):
            self._of_socket(e)

    def _accept(self, e: Event) -> None:
        self._operations.passes(e.tid)
        if not self._connections.accept(e):
            self._of_socket(e)

    def _accept_documented(self, e: Event) -> None:
        self._operations.passes(e.tid)
        self._connections.accept_documented(e)

    def _listener(self, e: Event) -> None:
        socket = self._endpoints.starting(e) if e.id == 1037 and not fails_at_entry(e.status) else self._endpoints.of(e)
        self._operations.passes(e.tid)
        if e.id == 1037:
            self._connections.listen(socket, e)
        elif e.id == 1036:
            self._connections.waits(socket, e)
        elif e.id == 4019:
            self._connections.paused(socket, e)
        else:
            self._connections.indicated(socket, e)
        self._write_event(socket, e)

    def _bind(self, e: Event) -> None:
        is_enter = e.enter_exit == EnterExit.ENTER
        failed = e.id == 40 or (fails_at_entry(e.status) if is_enter else is_error(e.status))
        socket = self._endpoints.of(e) if failed or e.enter_exit == EnterExit.EXIT else self._endpoints.starting(e)
        self._operations.passes(e.tid)
        if failed:
            self._sink.add("bind_failure", (socket.n, e.ns, e.status, e.address or socket.requested or None))
        elif is_enter:
            socket.requested = e.address
        elif e.address:
            self._connections.not_accepted(socket)
            socket.local = e.address
        self._write_event(socket, e)

    def _abort(self, e: Event) -> None:
        socket = self._record_of(self._endpoints.of_late(e), e)
        self._sink.add("abort", abort_row(socket, e, indications_traced=self._windows.indications_traced))

    def _disconnected(self, e: Event) -> None:
        socket = self._record_of(self._endpoints.of_late(e), e)
        socket.is_disconnected = True
        socket.last_disconnect_ns = e.ns

    # ------------------------------------------------------------------------------------------------ the rest

    def _data_indicated(self, e: Event) -> None:
        self._windows.indications_traced = True
        socket = self._record_of(self._endpoints.of_late(e), e)
        if socket.type is None and e.id in DATAGRAMS_ONLY:
            socket.saw_type(DGRAM)
        socket.bytes_indicated += e.length
        socket.connection_indicated += e.length
        socket.last_traffic_ns = e.ns if socket.last_traffic_ns is None else max(socket.last_traffic_ns, e.ns)

    def _drop(self, e: Event) -> None:
        socket = self._of_socket(e)
        if socket.type is None:
            socket.saw_type(DGRAM)
        if e.address:
            socket.peer(e.address).dropped += 1
        self._sink.add("drop", drop_row(socket, e))

    def _option(self, e: Event) -> None:
        socket = self._endpoints.starting(e)
        self._operations.passes(e.tid)
        self._write_event(socket, e)
        self._sink.add("option", option_row(socket, e))
        if e.x == SO_RCVBUF and not is_error(e.status):
            socket.receive_buffer = e.y

    def _event_mask(self, e: Event) -> None:
        self._operations.passes(e.tid)
        self._write_event(self._endpoints.starting(e), e)

    def _poll(self, e: Event) -> None:
        self._operations.passes(e.tid)
        self._polls.record(e)
        self._sink.add("socket_event", event_row(None, self._owners.of(e).n, e))

    def _registered_io(self, e: Event) -> None:
        """Queues belong to a socket by event 4006 alone; domains and buffers to none."""
        self._operations.passes(e.tid)
        socket = self._rio_sockets.get(e.x) if e.x else None
        if e.id == 4006:
            socket = self._endpoints.at(e.endpoint)
            if socket is not None and not is_error(e.status):
                socket.is_registered_io = True
                self._rio_sockets[e.x] = socket
        elif e.id == 4008:
            self._rio_sockets.pop(e.x, None)
        self._write_event(socket, e)

    def _of_socket(self, e: Event) -> Socket:
        """A record that is an event of its socket and nothing more. One that has a process but no endpoint (4016 to 4018) belongs to the
        process's life of endpoint 0."""
        return self._record_of(self._endpoints.of(e), e)

    def _record_of(self, socket: Socket, e: Event) -> Socket:
        self._operations.passes(e.tid)
        self._write_event(socket, e)
        return socket

    def _other(self, e: Event) -> None:
        self._operations.passes(e.tid)
        self._write_event(None, e)

    def _write_event(self, socket: Socket | None, e: Event) -> None:
        if socket is not None:
            self._sink.add("socket_event", event_row(socket.n, socket.owner.n, e))
        else:
            self._sink.add("socket_event", event_row(None, self._owners.of(e).n if e.process else None, e))


def _end(socket: Socket, exits: dict[int, int]) -> str:
    """How a socket ended, in the words of table `socket`."""
    if socket.end == "closed" and socket.closed_by == _CLEANUP and socket.destroyed_ns is None:
        return "closing_at_end"
    if socket.end is not None:
        return socket.end
    return "ended_by_exit" if socket.owner.n in exits else "open_at_end"
