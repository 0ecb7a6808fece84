"""Requests on sockets from post to completion: what becomes of each, and what it adds to its socket's totals.

Posting, outcomes and ends are winsock-semantics 4, bytes 10. A row is handed on when its request is over and nothing more can be said.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator

from collector.afdcodes import STATUS_CANCELLED, STATUS_PENDING, STATUS_WOULD_BLOCK, fails_at_entry, is_error
from collector.model.afd_table import USER_SPACE, Event
from collector.model.early import Early, EarlyCompletions, Kinds
from collector.model.matching import Match, OpenRequests
from collector.model.operation_rows import operation_row, unposted_row
from collector.model.overlaps import Overlaps
from collector.model.row_sink import RowSink
from collector.model.socket_state import DGRAM, STREAM, Kind, Operation, Socket
from collector.model.transfers import SENDING

__all__ = ["MAX_UNANSWERED", "Operations", "Outcome"]

MAX_UNANSWERED = 1024
"""Datagram sends of one socket that still wait for an exit that may never come; older ones count as sent."""
_MAX_CLOSED = 4096  # closed sockets whose requests may still complete; older ones are settled

_RESULTS_OF_ABORT = frozenset({0xC000020D, 0xC0000241, STATUS_CANCELLED})


class Outcome:
    """Outcomes: indexes into words.OUTCOMES."""

    COMPLETED = 0
    FAILED = 1
    CANCELLED = 2
    REJECTED = 3
    SENT = 4
    ENDED_WITH_SOCKET = 5
    ENDED_BY_EXIT = 6
    UNKNOWN_END = 7
    IN_FLIGHT = 8


def outcome_of(status: int) -> int:
    """What a final status says."""
    if status == STATUS_CANCELLED:
        return Outcome.CANCELLED
    return Outcome.FAILED if is_error(status) else Outcome.COMPLETED


class Operations:
    """The operations of one trace, numbered from 1 in the order of their first record."""

    def __init__(self, sink: RowSink, overlaps: Overlaps, closing: Callable[[Event], Socket | None]) -> None:
        """`closing` gives the life of a record's endpoint that is closed but not yet gone."""
        self.count = 0
        self.unmatched = 0
        self.first_unmatched: int | None = None
        self.last_unmatched: int | None = None
        self._sink = sink
        self._overlaps = overlaps
        self._closing = closing
        self._requests = OpenRequests()
        self._attempts: dict[int, tuple[Operation, bool]] = {}
        self._closed: deque[Socket] = deque()
        self._early = EarlyCompletions(self._stays_unmatched)

    # ------------------------------------------------------------------------------------------------ posts

    def post(self, socket: Socket, e: Event, kind: int, *, is_optional: bool = False) -> Operation | None:
        """A request was posted, or refused at its entry (then it is open no more); None when it went into one that was there already."""
        sending = SENDING[kind]
        attempt = self._attempts.pop(e.tid, None) if self._attempts else None
        if e.has_status and fails_at_entry(e.status):
            return self._refuse(socket, e, kind, sending)
        if attempt is not None and not _continues(*attempt, socket, e, sending):
            attempt = None
        if attempt is not None and not attempt[1]:
            self._join(attempt[0], e)
            return None
        self.count += 1
        operation = Operation(self.count, socket, kind, sending, e)
        operation.is_optional = is_optional
        if sending and socket.type == DGRAM and not operation.peer:
            operation.peer = socket.remote  # the default peer of now, not of the time when it is counted
        if attempt is not None:
            operation.memory = attempt[0].memory
        self._requests.add(operation)
        socket.open[operation.n] = operation
        socket.receiving += kind >= Kind.SEND and not sending
        if operation.memory.space == USER_SPACE and e.length and kind >= Kind.SEND:
            if not socket.is_over:
                self._overlaps.posted(operation)
            if e.fast:
                self._attempts[e.tid] = (operation, False)
        if is_optional:
            self._await_exit(socket, operation)
        if self._early.waiting and (early := self._early.met(operation, self._ended_by)) is not None:
            self._join_early(operation, early)
        return operation

    def passes(self, tid: int) -> None:
        """A record of another kind in this thread: what it attempted before has nothing to do with what follows."""
        if self._attempts:
            self._attempts.pop(tid, None)

    def is_doubtful(self, ticks: int) -> bool:
        """Whether a completion of a tick waits for a post that may stand behind it."""
        return bool(self._early.waiting) and self._early.waiting[0].e.ticks == ticks

    def attempting(self) -> list[int]:
        """Threads whose last record was an attempt that a slow entry may go on with."""
        return list(self._attempts)

    def attempted(self, owner_n: int) -> Iterator[tuple[int, int, int]]:
        """What those attempts of a process instance would hand on: first byte, end, number of the operation."""
        for operation, _ in self._attempts.values():
            if operation.socket.owner.n == owner_n:
                yield operation.memory.buffer, operation.memory.buffer + operation.began.length, -1

    # ------------------------------------------------------------------------------------------------ completions

    def exit(self, socket: Socket, e: Event, kind: int) -> None:
        """A modern transfer completed."""
        operation, match = self._requests.of_exit(socket.n * 2 + SENDING[kind], e)
        if operation is None and (older := self._older(socket, e)) is not None:
            operation, match = self._requests.of_exit(older.n * 2 + SENDING[kind], e)
        self._complete(socket if operation is None else operation.socket, e, kind, operation, match)

    def completed(self, socket: Socket, e: Event, kind: int, *, has_post: bool = True) -> None:
        """A documented transfer completed; `has_post` is false for the kind that logs none."""
        operation, match = self._requests.of_buffer(socket.n * 2 + SENDING[kind], e) if has_post else (None, Match.NONE)
        if operation is None and has_post and (older := self._older(socket, e)) is not None:
            operation, match = self._requests.of_buffer(older.n * 2 + SENDING[kind], e)
        self._complete(socket if operation is None else operation.socket, e, kind, operation, match, has_post=has_post)

    def failed(self, socket: Socket, e: Event, kinds: Kinds, kind: int) -> None:
        """A documented transfer failed: the first group of kinds that has an open request gives it."""
        operation, match = self._of_failure(socket, e, kinds)
        if operation is None and (older := self._older(socket, e)) is not None:
            operation, match = self._of_failure(older, e, kinds)
        self._complete(socket if operation is None else operation.socket, e, kind, operation, match, kinds=kinds)

    def call_done(self, socket: Socket, e: Event, kind: int, *, accepted: int | None = None, has_post: bool = True) -> Operation | None:
        """A connect or accept ended; gives its request."""
        operation, match = self._requests.of_call(socket.n, kind, e) if has_post else (None, Match.NONE)
        self._complete(socket, e, kind, operation, match, accepted=accepted, has_post=has_post)
        return operation

    def _of_failure(self, socket: Socket, e: Event, kinds: Kinds) -> tuple[Operation | None, int]:
        for group in kinds:
            operation, match = self._requests.of_failure(socket.n, group, e.tid)
            if operation is not None:
                return operation, match
        return None, Match.NONE

    def _older(self, socket: Socket, e: Event) -> Socket | None:
        """The life before a socket at its address, when that still has requests: a late completion that the new one knows nothing of."""
        older = self._closing(e) if not socket.is_over else None
        return None if older is None or older is socket or not older.open else older

    def settle_peers(self, socket: Socket) -> None:
        """A datagram socket gets another default peer: what has set the one before is over."""
        for operation in list(socket.open.values()):
            if operation.only_sets_peer:
                self._forget(operation)
                self._write(operation, Outcome.COMPLETED, operation.began.ns)

    # ------------------------------------------------------------------------------------------------ ends without completion

    def socket_over(self, socket: Socket, e: Event) -> None:
        """A socket was closed or superseded: what it had in flight ends here."""
        is_superseded = socket.end == "superseded"
        for operation in list(socket.open.values()):
            if operation.is_optional:
                self._overlaps.frozen(operation, e.ticks)
            else:
                self._overlaps.ended(operation, e.ticks, is_unknown=is_superseded)
        if not socket.open:
            return
        if is_superseded:
            self._settle(socket)
            return
        self._closed.append(socket)
        if len(self._closed) > _MAX_CLOSED:
            self._settle(self._closed.popleft())

    def finish(self, sockets: Iterable[Socket], last_ticks: int, ended_ns: dict[int, int]) -> None:
        """The trace is over. `ended_ns` has the end of the process of each owner that ended, by owner number."""
        self._early.pass_on()
        self._overlaps.settle()
        for socket in sockets:
            for operation in list(socket.open.values()):
                if not operation.is_optional:
                    self._overlaps.ended(operation, last_ticks)
            self._settle(socket, ended_ns.get(socket.owner.n))

    def _settle(self, socket: Socket, exit_ns: int | None = None) -> None:
        """Write what is still open on a socket; whether it ended with it, with its process, or goes on."""
        for operation in list(socket.open.values()):
            self._forget(operation)
            if operation.is_optional:
                self._sent(operation)
            elif operation.only_sets_peer:
                self._write(operation, Outcome.COMPLETED, operation.began.ns)
            elif socket.end == "superseded":
                self._write(operation, Outcome.UNKNOWN_END, socket.over_ns)
            elif socket.is_over:
                self._write(operation, Outcome.ENDED_WITH_SOCKET, max(socket.over_ns, operation.began.ns))
            elif exit_ns is not None:
                self._write(operation, Outcome.ENDED_BY_EXIT, max(exit_ns, operation.began.ns))
            else:
                self._write(operation, Outcome.IN_FLIGHT, None)

    def _await_exit(self, socket: Socket, operation: Operation) -> None:
        """Remember a datagram send whose exit may come; the oldest waits no longer when there are many."""
        if socket.unanswered is None:
            socket.unanswered = OrderedDict()
        waiting = socket.unanswered
        waiting[operation.n] = operation
        if len(waiting) > MAX_UNANSWERED:
            oldest = next(iter(waiting.values()))
            self._forget(oldest)
            self._sent(oldest)

    def _sent(self, operation: Operation) -> None:
        self._overlaps.was_instant(operation)
        length = operation.began.length
        operation.peer = self._count_bytes(operation.socket, operation.kind, True, length, operation.began.ns, operation.peer)
        self._write(operation, Outcome.SENT, operation.began.ns, length)

    # ------------------------------------------------------------------------------------------------ a fast attempt and what follows

    def _join(self, operation: Operation, e: Event) -> None:
        """The slow entry of a request whose fast attempt has logged no exit: it goes on under the address that it has now."""
        self._requests.remove(operation)
        operation.post = e
        self._requests.add(operation)

    def _refuse(self, socket: Socket, e: Event, kind: int, sending: bool) -> Operation:
        self.count += 1
        operation = Operation(self.count, socket, kind, sending, e)
        operation.is_open = False
        self._count_error(socket, e.status)
        self._sink.put("operation", operation_row(operation, Outcome.REJECTED, None, 0, e.status, e.ns, e, None))
        return operation

    # ------------------------------------------------------------------------------------------------ the end of one

    def _complete(
        self,
        socket: Socket,
        e: Event,
        kind: int,
        operation: Operation | None,
        match: int,
        *,
        accepted: int | None = None,
        has_post: bool = True,
        kinds: Kinds = (),
    ) -> None:
        status = e.status
        outcome = outcome_of(status)
        is_transfer = kind >= Kind.SEND
        length = e.length if outcome == Outcome.COMPLETED and is_transfer and status != STATUS_PENDING else 0
        if self._attempts:
            self._answer(operation, e)
        if outcome != Outcome.COMPLETED:
            self._count_error(socket, status)
        peer = e.address or (operation.peer if operation is not None else 0)
        if is_transfer and outcome == Outcome.COMPLETED:
            peer = self._count_bytes(socket, kind if operation is None else operation.kind, SENDING[kind], length, e.ns, peer)
        end_ns = min(e.ns, socket.over_ns) if socket.is_over else e.ns
        if operation is None:
            self.count += 1
            row = unposted_row(self.count, socket, kind, outcome, length, end_ns, e, peer, accepted)
            if has_post:
                self._early.add(Early(socket, e, kind, kinds, accepted, length, row))
            else:
                self._sink.put("operation", row)
            return
        self._forget(operation)
        self._overlaps.ended(operation, e.ticks, newest=self.count)
        operation.peer = peer
        self._sink.put("operation", operation_row(operation, outcome, match, length, status, end_ns, e, accepted))

    def _join_early(self, operation: Operation, early: Early) -> None:
        """A request whose completion, logged by another processor at the same tick, came first in order."""
        e = early.e
        _, match = self._found_by(early)
        operation.peer = e.address or operation.peer
        self._forget(operation)
        self._overlaps.ended(operation, e.ticks)
        row = operation_row(operation, outcome_of(e.status), match, early.length, e.status, e.ns, e, early.accepted)
        self._sink.put("operation", row)

    def _ended_by(self, early: Early) -> Operation | None:
        return self._found_by(early)[0]

    def _found_by(self, early: Early) -> tuple[Operation | None, int]:
        e, lane = early.e, early.socket.n * 2 + SENDING[early.kind]
        if early.kinds:
            return self._of_failure(early.socket, e, early.kinds)
        if early.kind < Kind.SEND:
            return self._requests.of_call(early.socket.n, early.kind, e)
        return self._requests.of_exit(lane, e) if e.enter_exit is not None else self._requests.of_buffer(lane, e)

    def _stays_unmatched(self, early: Early) -> None:
        self._note_unmatched(early.e)
        self._sink.put("operation", early.row)

    def _forget(self, operation: Operation) -> None:
        operation.is_open = False
        del operation.socket.open[operation.n]
        operation.socket.receiving -= operation.is_transfer and not operation.sending
        if operation.is_optional and (waiting := operation.socket.unanswered) is not None:
            del waiting[operation.n]
        self._requests.remove(operation)

    def _answer(self, operation: Operation | None, e: Event) -> None:
        """A completion in a thread: only "would block" to its last attempt leaves that worth remembering."""
        attempt = self._attempts.pop(e.tid, None)
        if attempt is not None and attempt[0] is operation and e.status in (STATUS_WOULD_BLOCK, STATUS_PENDING):
            self._attempts[e.tid] = (attempt[0], True)

    def _note_unmatched(self, e: Event) -> None:
        self.unmatched += 1
        self.last_unmatched = e.ticks
        if self.first_unmatched is None:
            self.first_unmatched = e.ticks

    def _count_error(self, socket: Socket, status: int) -> None:
        """Would-block is an answer, and what follows an abort is its result (winsock-semantics 8.7, 8.11)."""
        if status == STATUS_WOULD_BLOCK:
            return
        if status != STATUS_CANCELLED:
            socket.last_error = status
            socket.errors += not (socket.is_aborted and status in _RESULTS_OF_ABORT)

    def _count_bytes(self, socket: Socket, kind: int, sending: bool, length: int, ns: int, peer: int) -> int:
        """Add a transfer to its socket's totals and, on a datagram socket, to its peer's; gives the peer."""
        if length and (socket.last_traffic_ns is None or ns > socket.last_traffic_ns):
            socket.last_traffic_ns = ns
        if sending:
            socket.bytes_sent += length
            socket.sends += 1
        else:
            socket.bytes_received += length
            socket.connection_received += length
            socket.receives += 1
        if socket.type == DGRAM or (socket.type != STREAM and kind > Kind.RECV):
            peer = peer or socket.remote
            if peer:
                totals = socket.peer(peer)
                if sending:
                    totals.bytes_sent += length
                    totals.sends += 1
                else:
                    totals.bytes_received += length
                    totals.receives += 1
        return peer

    def _write(self, o: Operation, outcome: int, end_ns: int | None, length: int = 0) -> None:
        """Hand on a request that has no completion."""
        self._sink.put("operation", operation_row(o, outcome, None, length, None, end_ns, None, None))


def _continues(attempt: Operation, is_answered: bool, socket: Socket, e: Event, sending: bool) -> bool:
    """Whether a post is the slow entry of the request that its thread has just attempted (winsock-semantics 7.10).

    Fast requests of documented events may stay in flight, so without an answer two of those are one only where the buffer says so.
    """
    is_same_buffer = e.buffer == attempt.memory.buffer
    return (
        not e.fast
        and (e.space != USER_SPACE or is_same_buffer)
        and attempt.socket is socket
        and attempt.sending == sending
        and attempt.began.length == e.length
        and (is_answered or (attempt.is_open and (is_same_buffer or not attempt.is_documented)))
    )
