"""One buffer in two operations at once: pairs of requests whose user memory intersects while the first is in flight.

The rule is winsock-semantics 6: operation B is posted while A is in flight (A.posted <= B.posted < A.completed), both of one process
instance, both with a user address and a length, their ranges intersecting. What belongs to one tick has no order, so posts wait until the
clock goes on: by then a completion of the same tick has taken its operation out, and equal posts are put in the order of address.

Operations in flight with the same range form one group. A second operation is noted once in each group that it touches, and a first
operation finds its pairs in its group when it ends: those noted since it joined. So the work is n log n plus the pairs kept, also with
one huge buffer or with many identical ones, and pairs past the cap are counted without being looked at.
"""

from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass
from operator import itemgetter
from typing import Protocol

from collector.losses import Losses
from collector.model.rows import Row
from collector.model.sorted_keys import Key, SortedKeys

__all__ = ["MAX_PAIRS", "MAX_PAIRS_OF_OWNER", "Flight", "Membership", "Overlaps"]

MAX_PAIRS_OF_OWNER = 10_000
"""Pairs stored of one process instance; more are counted."""
MAX_PAIRS = 100_000
"""Pairs stored of one trace."""

_FEW_RANGES = 12  # below this a plain scan is quicker than the index


class Flight(Protocol):
    """What an operation must say about itself; `overlap` belongs to this module."""

    n: int
    ticks: int
    ns: int
    buffer: int
    length: int
    count: int | None
    sending: bool
    buffer_inferred: bool
    overlap: "Membership | None"

    @property
    def place(self) -> "tuple[int, int, int]":
        """Number of the owner, number of the socket, unsigned address of its endpoint."""


@dataclass(frozen=True, slots=True)
class _Second:
    """An operation as the second of pairs."""

    n: int
    ticks: int
    ns: int
    lo: int
    hi: int
    known_hi: int
    sending: bool
    inferred: bool
    socket_n: int


class _Range:
    """Operations in flight on one range, and the seconds that touched it."""

    __slots__ = ("count", "hi", "lo", "members", "seconds")

    def __init__(self, lo: int, hi: int) -> None:
        self.lo = lo
        self.hi = hi
        self.members: OrderedDict[int, Membership] = OrderedDict()  # a dict would look for its first member past all that left
        self.count = 0  # seconds ever noted here
        self.seconds: list[tuple[int, _Second]] = []  # the last of them, each with its number; at most MAX_PAIRS_OF_OWNER

    def note(self, second: _Second) -> None:
        if len(self.seconds) < MAX_PAIRS_OF_OWNER:
            self.seconds.append((self.count, second))
        self.count += 1

    def leave(self, n: int) -> None:
        """Take an operation out, and forget seconds from before the oldest one that stays."""
        del self.members[n]
        if not self.seconds:
            return
        oldest = next((m.joined for m in self.members.values()), self.count)
        if oldest > self.seconds[-1][0]:
            self.seconds.clear()
        elif len(self.seconds) > 64 and oldest > self.seconds[len(self.seconds) // 2][0]:
            self.seconds = [entry for entry in self.seconds if entry[0] >= oldest]


class Membership:
    """An operation's place in this module: waiting for the clock, in a group, or over."""

    __slots__ = ("frozen", "group", "is_over", "joined", "operation")

    def __init__(self, operation: Flight) -> None:
        self.operation = operation
        self.group: _Range | None = None
        self.joined = 0
        self.frozen: int | None = None
        self.is_over = False


class _InFlight:
    """The ranges in flight of one process instance, found by intersection."""

    __slots__ = ("_levels", "ranges", "stored", "true_count")

    def __init__(self) -> None:
        self.ranges: dict[Key, _Range] = {}
        self._levels: dict[int, SortedKeys] | None = None
        self.stored = 0
        self.true_count = 0

    def touching(self, lo: int, hi: int) -> list[_Range]:
        """Ranges that intersect [lo, hi)."""
        if self._levels is None:
            return [r for r in self.ranges.values() if r.lo < hi and lo < r.hi]
        found = []
        for level, keys in self._levels.items():
            # Ranges of this level are at most 2^level long, so those that begin further below cannot reach `lo`. Of those that begin
            # within that distance, half of them overlap each other, so looking at one in vain was paid for by their own pairs.
            found += [self.ranges[key] for key in keys.between(lo - (1 << level) + 1, hi) if key[1] > lo]
        return found

    def join(self, membership: Membership, lo: int, hi: int) -> None:
        """Put an operation in flight."""
        group = self.ranges.get((lo, hi))
        if group is None:
            group = self.ranges[lo, hi] = _Range(lo, hi)
            if self._levels is not None:
                self._add_to_level((lo, hi))
            elif len(self.ranges) > _FEW_RANGES:
                self._levels = {}
                for key in self.ranges:
                    self._add_to_level(key)
        group.members[membership.operation.n] = membership
        membership.group = group
        membership.joined = group.count

    def leave(self, membership: Membership) -> None:
        """Take an operation out of flight."""
        group = membership.group
        assert group is not None
        group.leave(membership.operation.n)
        if group.members:
            return
        key = (group.lo, group.hi)
        del self.ranges[key]
        if self._levels is not None:
            level = _level(key)
            self._levels[level].remove(key)
            if not self._levels[level]:
                del self._levels[level]
            if not self._levels:
                self._levels = None

    def _add_to_level(self, key: Key) -> None:
        assert self._levels is not None
        self._levels.setdefault(_level(key), SortedKeys()).add(key)


def _level(key: Key) -> int:
    return (key[1] - key[0] - 1).bit_length()


class Overlaps:
    """Finds the overlaps of one trace as its operations come and go; costs 2 µs an operation (a post and an end)."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._flights: dict[int, _InFlight] = {}
        self._waiting: list[Membership] = []
        self._tick = 0
        self._rows: list[tuple[int, Row]] = []

    def posted(self, operation: Flight) -> None:
        """An operation with a user address and a length was posted."""
        if self._waiting and operation.ticks > self._tick:
            self._settle()
        self._tick = operation.ticks
        operation.overlap = membership = Membership(operation)
        self._waiting.append(membership)

    def ended(self, operation: Flight, ticks: int, *, is_unknown: bool = False) -> None:
        """An operation is in flight no longer; `is_unknown`: it was over at that time at the latest. A second call does nothing."""
        membership = operation.overlap
        if membership is None or membership.is_over:
            return
        if self._waiting and ticks > self._tick:
            self._settle()
        membership.is_over = True
        if membership.group is not None:
            self._pair(membership, ticks, is_unknown=is_unknown)

    def frozen(self, operation: Flight, ticks: int) -> None:
        """An operation is in flight no longer, but whether it ever stayed in flight is known only when its exit comes or does not."""
        membership = operation.overlap
        if membership is None or membership.is_over:
            return
        if self._waiting and ticks > self._tick:
            self._settle()
        if membership.group is None:
            membership.is_over = True
        elif membership.frozen is None:
            membership.frozen = membership.group.count

    def was_instant(self, operation: Flight) -> None:
        """An operation turns out not to have stayed in flight: a datagram send without an exit."""
        membership = operation.overlap
        if membership is None or membership.is_over:
            return
        membership.is_over = True
        if membership.group is not None:
            self._flights[operation.place[0]].leave(membership)

    def finish(self) -> list[Row]:
        """Rows of table `overlap`, in the order of the second post. Operations still in flight must have been ended before."""
        self._rows.sort(key=lambda entry: (entry[0], entry[1][1], entry[1][0]))
        return [(n, *row) for n, (_, row) in enumerate(self._rows, 1)]

    @property
    def uncounted(self) -> dict[int, int]:
        """By owner number, how many pairs were found but not stored."""
        return {n: f.true_count - f.stored for n, f in self._flights.items() if f.true_count > f.stored}

    def settle(self) -> None:
        """Let the posts of the last tick take effect; the trace is over."""
        self._settle()

    def _settle(self) -> None:
        waiting, self._waiting = self._waiting, []
        if len(waiting) > 1:
            waiting.sort(key=lambda m: (m.operation.place[2], m.operation.buffer, m.operation.n))
        for membership in waiting:
            operation = membership.operation
            owner_n, socket_n, _ = operation.place
            flight = self._flights.get(owner_n)
            if flight is None:
                flight = self._flights[owner_n] = _InFlight()
            lo, hi = operation.buffer, operation.buffer + operation.length
            if flight.ranges:
                touched = flight.touching(lo, hi)
                if touched:
                    second = _second(operation, socket_n)
                    for group in touched:
                        group.note(second)
            if not membership.is_over:
                flight.join(membership, lo, hi)

    def _pair(self, membership: Membership, ticks: int, *, is_unknown: bool) -> None:
        """Make the pairs whose first operation has ended."""
        group, first = membership.group, membership.operation
        assert group is not None
        owner_n, socket_n, _ = first.place
        flight = self._flights[owner_n]
        beyond = group.count if membership.frozen is None else membership.frozen
        count = beyond - membership.joined
        if count:
            flight.true_count += count
            room = min(MAX_PAIRS_OF_OWNER - flight.stored, MAX_PAIRS - len(self._rows))
            if room > 0:
                doubtful = is_unknown or first.buffer_inferred or self._losses.between(first.ticks, ticks)
                begin = bisect_left(group.seconds, membership.joined, key=itemgetter(0))
                chosen = [second for number, second in group.seconds[begin : begin + room] if number < beyond]
                one = _second(first, socket_n)
                self._rows += [(second.ticks, _row(owner_n, one, second, doubtful=doubtful)) for second in chosen]
                flight.stored += len(chosen)
        flight.leave(membership)


def _second(operation: Flight, socket_n: int) -> _Second:
    lo, hi = operation.buffer, operation.buffer + operation.length
    # Of a chain of buffers only the start of the first is known (winsock-semantics 5.5).
    known_hi = lo + 1 if operation.count is not None and operation.count > 1 else hi
    return _Second(operation.n, operation.ticks, operation.ns, lo, hi, known_hi, operation.sending, operation.buffer_inferred, socket_n)


def _row(owner_n: int, first: _Second, second: _Second, *, doubtful: bool) -> Row:
    lo, hi = max(first.lo, second.lo), min(first.hi, second.hi)
    if (first.lo, first.hi) == (second.lo, second.hi):
        extent = "exact"
    elif (lo, hi) in ((first.lo, first.hi), (second.lo, second.hi)):
        extent = "contained"
    else:
        extent = "partial"
    is_known = first.lo < second.known_hi and second.lo < first.known_hi
    certainty = "certain" if is_known and not doubtful and not second.inferred else "possible"
    pair = f"{_direction(first.sending)}->{_direction(second.sending)}"
    scope = "same_socket" if first.socket_n == second.socket_n else "cross_socket"
    severity = "low" if first.sending and second.sending else "high"
    return (owner_n, first.n, second.n, second.ns, lo, hi, pair, extent, certainty, scope, severity)


def _direction(sending: bool) -> str:
    return "send" if sending else "recv"
