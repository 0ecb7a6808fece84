"""Which open request a completion ends: the requests in flight, found by each of the matching rules without a search.

The rules are winsock-semantics 4.1 rule 5 (a to f) and 4.2. Every rule asks for the oldest or newest request under some key, so each has
an index from key to requests in the order of posting.
"""

from collections import OrderedDict
from typing import TypeAlias

from collector.model.afd_table import KERNEL_SPACE, Event
from collector.model.socket_state import Kind, Operation

__all__ = ["Match", "OpenRequests"]

Key: TypeAlias = tuple[int, ...]


class Match:
    """How a completion found its request: indexes into words.MATCHES."""

    NONE = 0
    ACTIVITY = 1
    THREAD = 2
    BUFFER = 3
    KERNEL_ORDER = 4
    FIFO = 5


class _Queue:
    """Several requests under one key, in the order of posting, whose both ends are at hand; and the same of each thread."""

    __slots__ = ("_all", "_by_thread")

    def __init__(self, first: Operation, second: Operation) -> None:
        self._all: OrderedDict[int, Operation] = OrderedDict()  # a dict would look for its first entry past all removed ones
        self._by_thread: dict[int, OrderedDict[int, Operation]] = {}
        self.add(first)
        self.add(second)

    def add(self, operation: Operation) -> None:
        self._all[operation.n] = operation
        self._by_thread.setdefault(operation.post.tid, OrderedDict())[operation.n] = operation

    def discard(self, operation: Operation) -> bool:
        """Whether nothing is left."""
        del self._all[operation.n]
        mine = self._by_thread[operation.post.tid]
        del mine[operation.n]
        if not mine:
            del self._by_thread[operation.post.tid]
        return not self._all

    def oldest(self) -> Operation:
        return next(iter(self._all.values()))

    def newest_of(self, tid: int) -> Operation | None:
        mine = self._by_thread.get(tid)
        return None if mine is None else next(reversed(mine.values()))


class _Queues:
    """Requests by key. One request of a key stands alone, as most do (0.15 µs to add and to discard); several share a queue (1 µs)."""

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        self._by_key: dict[Key, Operation | _Queue] = {}

    def add(self, key: Key, operation: Operation) -> None:
        known = self._by_key.setdefault(key, operation)
        if known is operation:
            return
        if isinstance(known, _Queue):
            known.add(operation)
        else:
            self._by_key[key] = _Queue(known, operation)

    def discard(self, key: Key, operation: Operation) -> None:
        known = self._by_key[key]
        if known is operation or (isinstance(known, _Queue) and known.discard(operation)):
            del self._by_key[key]

    def oldest(self, key: Key) -> Operation | None:
        known = self._by_key.get(key)
        return known.oldest() if isinstance(known, _Queue) else known

    def newest_of(self, key: Key, tid: int) -> Operation | None:
        """The newest request of one thread."""
        known = self._by_key.get(key)
        if known is None or isinstance(known, _Queue):
            return None if known is None else known.newest_of(tid)
        return known if known.post.tid == tid else None


class OpenRequests:
    """All requests in flight of a trace."""

    def __init__(self) -> None:
        self._by_buffer = _Queues()
        self._by_activity = _Queues()
        self._kernel = _Queues()
        self._by_kind = _Queues()

    def add(self, o: Operation) -> None:
        """A request was posted."""
        post, activity = o.post, o.activity
        if o.kind >= Kind.SEND:
            self._by_buffer.add((o.lane, post.buffer), o)
            if activity:
                self._by_activity.add((o.lane, activity), o)
            elif post.space == KERNEL_SPACE:
                self._kernel.add((o.lane,), o)
            if not o.is_documented:
                return
        elif activity:
            self._by_activity.add((-o.socket.n, o.kind, activity), o)
        self._by_kind.add((o.socket.n, o.kind), o)

    def remove(self, o: Operation) -> None:
        """A request is over; the mirror of `add`."""
        post, activity = o.post, o.activity
        if o.kind >= Kind.SEND:
            self._by_buffer.discard((o.lane, post.buffer), o)
            if activity:
                self._by_activity.discard((o.lane, activity), o)
            elif post.space == KERNEL_SPACE:
                self._kernel.discard((o.lane,), o)
            if not o.is_documented:
                return
        elif activity:
            self._by_activity.discard((-o.socket.n, o.kind, activity), o)
        self._by_kind.discard((o.socket.n, o.kind), o)

    def of_exit(self, lane: int, e: Event) -> tuple[Operation | None, int]:
        """The transfer that a modern exit completes, and by which rule (4.1 rule 5)."""
        if e.activity and e.activity != e.endpoint:
            operation = self._by_activity.oldest((lane, e.activity))
            if operation is not None:
                return operation, Match.ACTIVITY
        if e.fast or not e.buffer:
            operation = self._by_buffer.newest_of((lane, e.buffer), e.tid)
            if operation is not None:
                return operation, Match.THREAD
        if e.buffer:
            return self.of_buffer(lane, e)
        operation = self._by_buffer.oldest((lane, 0))
        return operation, Match.NONE if operation is None else Match.FIFO

    def of_buffer(self, lane: int, e: Event) -> tuple[Operation | None, int]:
        """The transfer with the buffer of a completion; the kernel's own address may have moved on meanwhile (rules c, d, f)."""
        if not e.buffer:
            return None, Match.NONE
        operation = self._by_buffer.oldest((lane, e.buffer))
        if operation is not None:
            return operation, Match.BUFFER
        if e.space == KERNEL_SPACE:
            operation = self._kernel.oldest((lane,))
            if operation is not None:
                return operation, Match.KERNEL_ORDER
        return None, Match.NONE

    def of_failure(self, socket_n: int, kinds: tuple[int, ...], tid: int) -> tuple[Operation | None, int]:
        """The request of these kinds that a documented failure ends: the thread's newest, else the oldest (4.2 rule 4)."""
        mine = [o for o in (self._by_kind.newest_of((socket_n, kind), tid) for kind in kinds) if o is not None]
        if mine:
            return max(mine, key=lambda o: o.n), Match.THREAD
        others = [o for o in (self._by_kind.oldest((socket_n, kind)) for kind in kinds) if o is not None]
        if others:
            return min(others, key=lambda o: o.n), Match.FIFO
        return None, Match.NONE

    def of_call(self, socket_n: int, kind: int, e: Event) -> tuple[Operation | None, int]:
        """The connect or accept that an exit completes: by activity, else the oldest."""
        if e.activity and e.activity != e.endpoint:
            operation = self._by_activity.oldest((-socket_n, kind, e.activity))
            if operation is not None:
                return operation, Match.ACTIVITY
        operation = self._by_kind.oldest((socket_n, kind))
        return operation, Match.NONE if operation is None else Match.FIFO
