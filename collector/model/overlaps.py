"""One buffer in two operations at once: pairs of requests whose user memory intersects while the first is in flight.

The rule is winsock-semantics 6: operation B is posted while A is in flight (A.posted <= B.posted < A.completed), both of one process
instance, both with a user address and a length, their ranges intersecting. What belongs to one tick has no order, so posts wait until the
clock goes on: by then a completion of the same tick has taken its operation out, and equal posts are put in the order of address.

Operations in flight with the same range form one group. A second operation is noted once in each group that it touches, and a first
operation finds its pairs in its group when it ends: those noted since it joined. So the work is n log n plus the pairs, also with one huge
buffer or with many identical ones. Whether a datagram send stayed in flight is known only when its exit comes, and often none does: those
are in no group, and look back at the posts since theirs when they get their exit.
"""

from bisect import bisect_left
from collections import OrderedDict
from operator import itemgetter
from typing import NamedTuple, Protocol

import numpy as np

from collector.losses import Losses
from collector.model.afd_table import Event
from collector.model.owners import Owner
from collector.model.rows import Row
from collector.model.sorted_keys import Key, SortedKeys

__all__ = ["MAX_PAIRS", "MAX_PAIRS_OF_OWNER", "MAX_RECENT", "Flight", "Membership", "Overlaps"]

MAX_PAIRS_OF_OWNER = 10_000
"""Pairs stored of one process instance; more are counted."""
MAX_PAIRS = 100_000
"""Pairs stored of one trace."""

MAX_RECENT = 1 << 14
"""Posts of one process instance that a datagram send can look back at when its exit comes."""

_MAX_NOTES = 4 * MAX_PAIRS_OF_OWNER  # notes kept in all groups of one process instance
_FEW_RANGES = 12  # below this a plain scan is quicker than the index
_FEW_POSTS = 12  # below this a plain scan is quicker than arrays


class Flight(Protocol):
    """What an operation must say about itself; `overlap` belongs to this module."""

    @property
    def n(self) -> int: ...
    @property
    def socket(self) -> "FlightSocket": ...
    @property
    def began(self) -> Event: ...
    @property
    def memory(self) -> Event: ...
    @property
    def sending(self) -> bool: ...
    @property
    def is_optional(self) -> bool: ...
    @property
    def is_inferred(self) -> bool: ...

    overlap: "Membership | None"


class FlightSocket(Protocol):
    """What the socket of an operation must say about itself."""

    @property
    def n(self) -> int: ...
    @property
    def endpoint(self) -> int: ...
    @property
    def owner(self) -> Owner: ...


class _Second(NamedTuple):
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
        self.seconds: list[tuple[int, _Second]] = []  # those kept, each with its number

    def leave(self, n: int) -> int:
        """Take an operation out, and forget seconds from before the oldest one that stays; how many were forgotten."""
        del self.members[n]
        if not self.seconds:
            return 0
        before = len(self.seconds)
        oldest = next((m.joined for m in self.members.values()), self.count)
        if oldest > self.seconds[-1][0]:
            self.seconds.clear()
        elif before > 64 and oldest > self.seconds[before // 2][0]:
            self.seconds = [entry for entry in self.seconds if entry[0] >= oldest]
        return before - len(self.seconds)


class _RecentPosts:
    """The last posts of one process instance, for datagram sends to look back at."""

    __slots__ = ("_bounds", "_seconds", "count")

    def __init__(self) -> None:
        self.count = 0
        self._seconds: list[_Second] = []
        self._bounds = np.zeros((2, 64), dtype=np.int64)

    def add(self, second: _Second) -> None:
        place = self.count % MAX_RECENT
        if place < len(self._seconds):
            self._seconds[place] = second
        else:
            self._seconds.append(second)
            if place >= self._bounds.shape[1]:
                self._bounds = np.concatenate([self._bounds, np.zeros_like(self._bounds)], axis=1)
        self._bounds[0, place] = second.lo
        self._bounds[1, place] = second.hi
        self.count += 1

    def touching(self, lo: int, hi: int, first: int, beyond: int) -> list[_Second]:
        """Posts number `first` to `beyond` (excluded) that intersect [lo, hi), as far as they are remembered."""
        first = max(first, self.count - MAX_RECENT)
        if beyond - first <= _FEW_POSTS:
            posts = [self._seconds[number % MAX_RECENT] for number in range(first, beyond)]
            return [post for post in posts if post.lo < hi and lo < post.hi]
        places = np.arange(first, beyond) % MAX_RECENT
        bounds = self._bounds[:, places]
        return [self._seconds[i] for i in places[(bounds[0] < hi) & (lo < bounds[1])].tolist()]


class Membership:
    """An operation's place in this module: waiting for the clock, in a group or among the recent posts, or over."""

    __slots__ = ("frozen", "group", "is_over", "joined", "operation", "recent")

    def __init__(self, operation: Flight) -> None:
        self.operation = operation
        self.group: _Range | None = None
        self.recent: _RecentPosts | None = None
        self.joined = 0
        self.frozen: int | None = None
        self.is_over = False


class _InFlight:
    """The ranges in flight of one process instance, found by intersection."""

    __slots__ = ("_levels", "notes", "ranges", "recent", "stored", "true_count")

    def __init__(self) -> None:
        self.ranges: dict[Key, _Range] = {}
        self.recent: _RecentPosts | None = None
        self._levels: dict[int, SortedKeys] | None = None
        self.notes = 0
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

    def note(self, touched: list[_Range], second: _Second) -> None:
        """A post touches what is in flight."""
        for group in touched:
            if self.notes < _MAX_NOTES:
                group.seconds.append((group.count, second))
                self.notes += 1
            group.count += 1

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
        self.notes -= group.leave(membership.operation.n)
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
        ticks = operation.began.ticks
        if self._waiting and ticks > self._tick:
            self._settle()
        self._tick = ticks
        operation.overlap = membership = Membership(operation)
        self._waiting.append(membership)

    def ended(self, operation: Flight, ticks: int, *, is_unknown: bool = False) -> None:
        """An operation is in flight no longer; `is_unknown`: it was over at that time at the latest. A second call does nothing."""
        membership = operation.overlap
        if membership is None:
            return
        if self._waiting and ticks > self._tick:
            # Its own post is all that the clock has passed: nothing was posted meanwhile, so it need not be put in flight.
            membership.is_over = len(self._waiting) == 1 and self._waiting[0] is membership
            self._settle()
        self._release(membership)
        if membership.group is not None:
            self._pair(membership, ticks, is_unknown=is_unknown)
        elif membership.recent is not None:
            self._look_back(membership, membership.recent, ticks)

    def frozen(self, operation: Flight, ticks: int) -> None:
        """An operation is in flight no longer, but whether it ever stayed in flight is known only when its exit comes or does not."""
        membership = operation.overlap
        if membership is None:
            return
        if self._waiting and ticks > self._tick:
            self._settle()
        if membership.recent is None:
            self._release(membership)
        elif membership.frozen is None:
            membership.frozen = membership.recent.count

    def was_instant(self, operation: Flight) -> None:
        """An operation turns out not to have stayed in flight: a datagram send without an exit."""
        if operation.overlap is not None:
            self._release(operation.overlap)

    @staticmethod
    def _release(membership: Membership) -> None:
        membership.is_over = True
        membership.operation.overlap = None  # no cycle is left for the garbage collector

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
            waiting.sort(key=_address_order)
        for membership in waiting:
            operation = membership.operation
            owner_n = operation.socket.owner.n
            flight = self._flights.get(owner_n)
            if flight is None:
                flight = self._flights[owner_n] = _InFlight()
            lo, hi = _bounds(operation)
            second = None
            if flight.ranges and (touched := flight.touching(lo, hi)):
                flight.note(touched, second := _second(operation))
            if operation.is_optional and flight.recent is None:
                flight.recent = _RecentPosts()
            if flight.recent is not None:
                flight.recent.add(second or _second(operation))
            if membership.is_over:
                continue
            if operation.is_optional and flight.recent is not None:
                membership.recent, membership.joined = flight.recent, flight.recent.count
            else:
                flight.join(membership, lo, hi)

    def _pair(self, membership: Membership, ticks: int, *, is_unknown: bool) -> None:
        """Make the pairs whose first operation has ended."""
        group, first = membership.group, membership.operation
        assert group is not None
        flight = self._flights[first.socket.owner.n]
        beyond = group.count
        if beyond > membership.joined:
            begin = bisect_left(group.seconds, membership.joined, key=itemgetter(0))
            chosen = [second for _, second in group.seconds[begin : begin + self._room(flight)]]
            self._store(flight, first, chosen, beyond - membership.joined, ticks, is_unknown=is_unknown)
        flight.leave(membership)

    def _look_back(self, membership: Membership, recent: _RecentPosts, ticks: int) -> None:
        """Make the pairs of a datagram send whose exit has come."""
        first = membership.operation
        beyond = recent.count if membership.frozen is None else membership.frozen
        if beyond > membership.joined:
            seconds = recent.touching(*_bounds(first), membership.joined, beyond)
            if seconds:
                flight = self._flights[first.socket.owner.n]
                self._store(flight, first, seconds[: self._room(flight)], len(seconds), ticks)

    def _room(self, flight: _InFlight) -> int:
        return max(min(MAX_PAIRS_OF_OWNER - flight.stored, MAX_PAIRS - len(self._rows)), 0)

    def _store(self, flight: _InFlight, first: Flight, seconds: list[_Second], count: int, ticks: int, *, is_unknown: bool = False) -> None:
        flight.true_count += count
        if seconds:
            doubtful = is_unknown or first.is_inferred or self._losses.between(first.began.ticks, ticks)
            one = _second(first)
            owner_n = first.socket.owner.n
            self._rows += [(second.ticks, _row(owner_n, one, second, doubtful=doubtful)) for second in seconds]
            flight.stored += len(seconds)


def _bounds(operation: Flight) -> Key:
    lo = operation.memory.buffer
    return lo, lo + operation.began.length


def _address_order(membership: Membership) -> tuple[int, int, int]:
    """Of equal posts the one with the lower (endpoint, buffer) is called first."""
    operation = membership.operation
    return operation.socket.endpoint & 0xFFFFFFFFFFFFFFFF, operation.memory.buffer, operation.n


def _second(operation: Flight) -> _Second:
    began, count = operation.began, operation.memory.buffer_count
    lo, hi = _bounds(operation)
    # Of a chain of buffers only the start of the first is known (winsock-semantics 5.5).
    known_hi = lo + 1 if count is not None and count > 1 else hi
    return _Second(operation.n, began.ticks, began.ns, lo, hi, known_hi, operation.sending, operation.is_inferred, operation.socket.n)


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
