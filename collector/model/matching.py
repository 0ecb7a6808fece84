"""Which open request a completion ends: the requests in flight, found by each of the matching rules without a search.

The rules are winsock-semantics 4.1 rule 5 (a to f) and 4.2. Every rule asks for the oldest or newest request under some key, so each has
an index from key to requests in the order of posting.
"""

from collections import OrderedDict
from typing import TypeAlias

from collector.model.afd_table import KERNEL_SPACE, Event
from collector.model.socket_state import Operation

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


class _Queues:
    """Requests by key, each key's in the order of posting. One request of a key stands alone, as most do; several share an OrderedDict,
    whose both ends are at hand (0.2 µs to add or discard)."""

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        self._by_key: dict[Key, Operation | OrderedDict[int, Operation]] = {}

    def add(self, key: Key, operation: Operation) -> None:
        known = self._by_key.setdefault(key, operation)
        if known is operation:
            return
        if isinstance(known, Operation):
            self._by_key[key] = OrderedDict(((known.n, known), (operation.n, operation)))
        else:
            known[operation.n] = operation

    def discard(self, key: Key, operation: Operation) -> None:
        known = self._by_key.get(key)
        if isinstance(known, OrderedDict):
            known.pop(operation.n, None)
            if known:
                return
        elif known is not operation:
            return
        del self._by_key[key]

    def oldest(self, key: Key) -> Operation | None:
        known = self._by_key.get(key)
        return next(iter(known.values())) if isinstance(known, OrderedDict) else known

    def newest(self, key: Key) -> Operation | None:
        known = self._by_key.get(key)
        return next(reversed(known.values())) if isinstance(known, OrderedDict) else known


class OpenRequests:
    """All requests in flight of a trace."""

    def __init__(self) -> None:
        self._by_activity = _Queues()
        self._by_buffer = _Queues()
        self._by_thread = _Queues()
        self._kernel = _Queues()
        self._by_kind = _Queues()
        self._by_kind_thread = _Queues()

    def add(self, operation: Operation) -> None:
        """A request was posted."""
        self._index(operation, remove=False)

    def remove(self, operation: Operation) -> None:
        """A request is over."""
        self._index(operation, remove=True)

    def of_exit(self, lane: int, e: Event) -> tuple[Operation | None, int]:
        """The transfer that a modern exit completes, and by which rule (4.1 rule 5)."""
        if e.activity and e.activity != e.endpoint:
            operation = self._by_activity.oldest((lane, e.activity))
            if operation is not None:
                return operation, Match.ACTIVITY
        if e.fast:
            operation = self._by_thread.newest((lane, e.buffer, e.tid))
            if operation is not None:
                return operation, Match.THREAD
        if e.buffer:
            return self.of_buffer(lane, e)
        operation = self._by_thread.newest((lane, 0, e.tid))
        if operation is not None:
            return operation, Match.THREAD
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
        mine = [o for o in (self._by_kind_thread.newest((socket_n, kind, tid)) for kind in kinds) if o is not None]
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

    def _index(self, o: Operation, *, remove: bool) -> None:
        if o.is_transfer:
            lane, buffer = o.lane, o.match_buffer
            keyed: list[tuple[_Queues, Key]] = [(self._by_buffer, (lane, buffer))]
            if o.activity:
                keyed.append((self._by_activity, (lane, o.activity)))
            elif o.match_space == KERNEL_SPACE:
                keyed.append((self._kernel, (lane,)))
            if o.is_documented:
                keyed += [(self._by_kind, (o.socket.n, o.kind)), (self._by_kind_thread, (o.socket.n, o.kind, o.tid))]
            else:
                keyed.append((self._by_thread, (lane, buffer, o.tid)))
        else:
            keyed = [(self._by_kind, (o.socket.n, o.kind))]
            if o.activity:
                keyed.append((self._by_activity, (-o.socket.n, o.kind, o.activity)))
        for queues, key in keyed:
            if remove:
                queues.discard(key, o)
            else:
                queues.add(key, o)
