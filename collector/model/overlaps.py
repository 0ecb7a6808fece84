"""One buffer in two operations at once: pairs of requests whose user memory intersects while the first is in flight.

The rule is winsock-semantics 6: operation B is posted while A is in flight (A.posted <= B.posted < A.completed), both of one process
instance, both with a user address and a length, their ranges intersecting. What belongs to one tick has no order, so posts wait until the
clock goes on: by then a completion of the same tick has taken its operation out, and equal posts are put in the order of address.

The work is n log n plus the pairs, also with one huge buffer or with many identical ones (see `in_flight`). Whether a datagram send
stayed in flight is known only when its exit comes, and often none does: those look back at the posts since theirs when they get their exit.
"""

from bisect import bisect_left
from collections.abc import Iterator
from operator import itemgetter

from collector.losses import Losses
from collector.model.in_flight import InFlight, Membership, Post, Range, RecentPosts
from collector.model.rows import Row
from collector.model.socket_state import Operation
from collector.model.sorted_keys import Key

__all__ = ["MAX_PAIRS", "MAX_PAIRS_OF_OWNER", "Overlaps"]

MAX_PAIRS_OF_OWNER = 10_000
"""Pairs stored of one process instance; more are counted."""
MAX_PAIRS = 100_000
"""Pairs stored of one trace."""


class _Flight:
    """What is in flight in a process instance, and how many pairs were found there."""

    __slots__ = ("found", "looking", "memory", "stored")

    def __init__(self) -> None:
        self.memory = InFlight()
        self.looking: dict[int, Operation] = {}
        """Datagram sends that will look back when their exit comes, by number."""
        self.found = 0
        self.stored = 0


class Overlaps:
    """Finds the overlaps of one trace as its operations come and go.

    A post and an end cost 2 µs together where nothing else is in flight, 8 µs among thousands of ranges.
    """

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._flights: dict[int, _Flight] = {}
        self._waiting: list[tuple[Operation, Membership]] = []
        self._tick = 0
        self._rows: list[tuple[int, Row]] = []

    @property
    def uncounted(self) -> dict[int, int]:
        """By owner number, how many pairs were found but not stored."""
        return {n: f.found - f.stored for n, f in self._flights.items() if f.found > f.stored}

    def in_flight(self, owner_n: int) -> Iterator[tuple[int, int, int]]:
        """What is in flight in a process instance, or may turn out to be: first byte, end, number of the operation."""
        for operation, _ in self._waiting:
            if operation.socket.owner.n == owner_n:
                yield (*_bounds(operation), operation.n)
        flight = self._flights.get(owner_n)
        if flight is not None:
            for operation in flight.looking.values():
                yield (*_bounds(operation), operation.n)
            for group in flight.memory.ranges.values():
                for n in group.members:
                    yield group.lo, group.hi, n

    def posted(self, operation: Operation) -> None:
        """An operation with a user address and a length was posted."""
        ticks = operation.began.ticks
        if self._waiting and ticks > self._tick:
            self.settle()
        self._tick = ticks
        operation.overlap = membership = Membership()
        self._waiting.append((operation, membership))

    def ended(self, operation: Operation, ticks: int, *, newest: int = 0, is_unknown: bool = False) -> None:
        """An operation is in flight no longer. A second call does nothing.

        Args:
            newest: number of the latest operation, needed where a datagram send got its exit.
            is_unknown: it was over at that time at the latest.
        """
        membership = operation.overlap
        if membership is None:
            return
        operation.overlap = None
        if self._waiting and ticks > self._tick:
            # When its own post is all that the clock has passed, nothing was posted meanwhile and it need not be put in flight.
            membership.is_over = len(self._waiting) == 1 and self._waiting[0][1] is membership
            self.settle()
        membership.is_over = True
        if membership.group is not None:
            self._pair(operation, membership, membership.group, ticks, is_unknown=is_unknown)
        elif membership.recent is not None:
            self._looks_no_more(operation)
            self._look_back(operation, membership, membership.recent, ticks, newest)

    def frozen(self, operation: Operation, ticks: int) -> None:
        """A datagram send is in flight no longer, but whether it ever was is known only when its exit comes or does not."""
        membership = operation.overlap
        if membership is None:
            return
        if self._waiting and ticks > self._tick:
            self.settle()
        if membership.recent is None:
            self.was_instant(operation)
        elif membership.frozen is None:
            membership.frozen = membership.recent.count
            self._looks_no_more(operation)

    def was_instant(self, operation: Operation) -> None:
        """An operation did not stay in flight: a datagram send without an exit."""
        if operation.overlap is not None:
            operation.overlap.is_over = True
            if operation.overlap.recent is not None:
                self._looks_no_more(operation)
            operation.overlap = None

    def settle(self) -> None:
        """Let the posts of the last tick take effect: the clock has gone on, or the trace is over."""
        waiting, self._waiting = self._waiting, []
        if len(waiting) > 1:
            waiting.sort(key=_address_order)
        for operation, membership in waiting:
            owner_n = operation.socket.owner.n
            flight = self._flights.get(owner_n)
            if flight is None:
                flight = self._flights[owner_n] = _Flight()
            memory = flight.memory
            lo, hi = _bounds(operation)
            post = None
            if memory.ranges and (touched := memory.touching(lo, hi)):
                memory.note(touched, post := _post(operation))
            if operation.is_optional and memory.recent is None:
                memory.recent = RecentPosts()
            recent = memory.recent
            if recent is not None:
                recent.add(post or _post(operation))
            if membership.is_over:
                continue
            if operation.is_optional and recent is not None:
                membership.recent, membership.joined = recent, recent.count
                flight.looking[operation.n] = operation
            else:
                memory.join(membership, operation.n, lo, hi)

    def finish(self) -> list[Row]:
        """Rows of table `overlap`, in the order of the second post. Operations still in flight must have been ended before."""
        self._rows.sort(key=lambda entry: (entry[0], entry[1][2], entry[1][1]))
        return [(n, *row) for n, (_, row) in enumerate(self._rows, 1)]

    def _pair(self, first: Operation, membership: Membership, group: Range, ticks: int, *, is_unknown: bool) -> None:
        """Make the pairs whose first operation has ended."""
        flight = self._flights[first.socket.owner.n]
        count = group.count - membership.joined
        if count:
            begin = bisect_left(group.posts, membership.joined, key=itemgetter(0))
            seconds = [post for _, post in group.posts[begin : begin + self._room(flight)]]
            self._store(flight, first, seconds, count, ticks, is_unknown=is_unknown)
        flight.memory.leave(group, first.n)

    def _look_back(self, first: Operation, membership: Membership, recent: RecentPosts, ticks: int, newest: int) -> None:
        """Make the pairs of a datagram send whose exit has come."""
        beyond = recent.count if membership.frozen is None else membership.frozen
        if beyond > membership.joined:
            seconds = recent.touching(*_bounds(first), membership.joined, beyond, newest=newest)
            if seconds:
                flight = self._flights[first.socket.owner.n]
                self._store(flight, first, seconds[: self._room(flight)], len(seconds), ticks)

    def _looks_no_more(self, operation: Operation) -> None:
        self._flights[operation.socket.owner.n].looking.pop(operation.n, None)

    def _room(self, flight: _Flight) -> int:
        return max(min(MAX_PAIRS_OF_OWNER - flight.stored, MAX_PAIRS - len(self._rows)), 0)

    def _store(self, flight: _Flight, first: Operation, seconds: list[Post], count: int, ticks: int, *, is_unknown: bool = False) -> None:
        flight.found += count
        if seconds:
            doubtful = is_unknown or first.is_inferred or self._losses.between(first.began.ticks, ticks)
            owner_n, one = first.socket.owner.n, _post(first)
            self._rows += [(second.ticks, _row(owner_n, one, second, doubtful=doubtful)) for second in seconds]
            flight.stored += len(seconds)


def _bounds(operation: Operation) -> Key:
    lo = operation.memory.buffer
    return lo, lo + operation.began.length


def _address_order(waiting: tuple[Operation, Membership]) -> tuple[int, int, int]:
    """Of equal posts the one with the lower (endpoint, buffer) is called first."""
    operation = waiting[0]
    return operation.socket.endpoint & 0xFFFFFFFFFFFFFFFF, operation.memory.buffer, operation.n


def _post(o: Operation) -> Post:
    began, count = o.began, o.memory.buffer_count
    lo, hi = _bounds(o)
    # Of a chain of buffers only the start of the first is known (winsock-semantics 5.5).
    known_hi = lo + 1 if count is not None and count > 1 else hi
    return Post(o.n, began.ticks, began.ns, lo, hi, known_hi, o.sending, o.is_inferred, o.socket.n)


def _row(owner_n: int, first: Post, second: Post, *, doubtful: bool) -> Row:
    """A row of table `overlap` without its number."""
    lo, hi = max(first.lo, second.lo), min(first.hi, second.hi)
    if (first.lo, first.hi) == (second.lo, second.hi):
        extent = "exact"
    elif (lo, hi) in ((first.lo, first.hi), (second.lo, second.hi)):
        extent = "contained"
    else:
        extent = "partial"
    is_known = first.lo < second.known_hi and second.lo < first.known_hi
    certainty = "certain" if is_known and not doubtful and not second.is_inferred else "possible"
    pair = f"{_direction(first.sending)}->{_direction(second.sending)}"
    scope = "same_socket" if first.socket_n == second.socket_n else "cross_socket"
    severity = "low" if first.sending and second.sending else "high"
    return (owner_n, first.n, second.n, second.ns, lo, hi, pair, extent, certainty, scope, severity)


def _direction(sending: bool) -> str:
    return "send" if sending else "recv"
