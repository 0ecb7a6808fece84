"""What big traces consist of: for each mix the records of any stretch of it, computed from their place in the trace.

Nothing is drawn and nothing is remembered between stretches, so the same mix has the same bytes however it is cut, at any size.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias
from uuid import NAMESPACE_DNS, UUID, uuid5

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collector.etlwriter.addresses import sockaddr_bytes
from collector.etlwriter.bulk import RecordBlock, record_block
from collector.etlwriter.records import Record, record_bytes
from collector.raw import HeaderKind

__all__ = ["CPUS", "MIXES", "PIDS", "STACK_KEYS", "STEP_TICKS", "Mix", "Piece", "eprocess_of", "stack_key"]

Int64s: TypeAlias = NDArray[np.int64]

CPUS = 4
STEP_TICKS = 50
"""Ticks from one place of a trace to the next: 200,000 records a second of a 10 MHz clock."""
PIDS = tuple(4000 + 52 * n for n in range(16))
STACK_KEYS = 2000

_CHANNEL = 0x8000_0000_0000_0000
_FAST, _SLOW = _CHANNEL | 0x16, _CHANNEL | 0x06  # by call, stream; the first by the fast path
_TRANSPORT = _CHANNEL | 0x0A
_KERNEL = 0xFFFF_9A0D_0000_0000
_USER = 0x1D2_A446_0000
_PEER = np.frombuffer(sockaddr_bytes("192.0.2.10:443"), np.uint8)


class Piece(Protocol):
    """Records of one event: `places` in the trace, int64 ascending, and the processor of each."""

    @property
    def places(self) -> Int64s: ...

    @property
    def cpus(self) -> Int64s: ...

    def block(self, chosen: Int64s, ticks: Int64s) -> RecordBlock:
        """Some of the records, by number, at the given times."""
        ...


@dataclass(frozen=True, slots=True)
class Known:
    """Records of an event that has a schema; an array in a column has one value a record."""

    name: str
    places: Int64s
    cpus: Int64s
    columns: Mapping[str, ArrayLike]
    pids: ArrayLike = 0
    tids: ArrayLike = 0
    activities: ArrayLike = 0
    keyword: int | None = None

    def block(self, chosen: Int64s, ticks: Int64s) -> RecordBlock:
        def of(value: ArrayLike) -> ArrayLike:
            return value[chosen] if isinstance(value, np.ndarray) and value.shape[:1] == self.places.shape else value

        columns = {name: of(value) for name, value in self.columns.items()}
        if self.name.startswith("StackKey"):
            columns["event_time_stamp"] = ticks - 1
        keyword = {} if self.keyword is None else {"keyword": self.keyword}
        ids: dict[str, ArrayLike] = {"pids": of(self.pids), "tids": of(self.tids), "activities": of(self.activities)}
        return record_block(self.name, ticks, columns, **ids, **keyword)  # type: ignore[arg-type]  # names of two kinds in one call


@dataclass(frozen=True, slots=True)
class Foreign:
    """Records of a provider that nobody asks about."""

    provider: UUID
    event_id: int
    size: int
    places: Int64s
    cpus: Int64s
    pids: Int64s

    def block(self, chosen: Int64s, ticks: Int64s) -> RecordBlock:
        record = Record(
            kind=HeaderKind.EVENT64,
            ticks=0,
            payload=bytes(self.size),
            provider=self.provider,
            event_id=self.event_id,
            level=4,
            keyword=0x10,
        )
        rows = np.tile(np.frombuffer(record_bytes(record), np.uint8), (chosen.size, 1))
        rows[:, 16:24] = ticks.astype("<i8").view(np.uint8).reshape(-1, 8)
        rows[:, 8:12] = (self.pids[chosen] + 4).astype("<u4").view(np.uint8).reshape(-1, 4)
        rows[:, 12:16] = self.pids[chosen].astype("<u4").view(np.uint8).reshape(-1, 4)
        return RecordBlock(ticks, rows)


@dataclass(frozen=True, slots=True)
class Mix:
    """One kind of trace. `pieces(first, beyond)` gives the records of a stretch of places, at least one a place."""

    name: str
    title: str
    pieces: Callable[[int, int], Iterator[Piece]]
    has_stacks: bool = False
    sharing: int = 1
    """Records at one place."""


def eprocess_of(pid: ArrayLike) -> Int64s:
    """The address of the process object of a process, two's complement."""
    return np.asarray(pid, np.int64) * 0x400 + (_KERNEL - (1 << 64) - (1 << 32))


def stack_key(number: ArrayLike) -> Int64s:
    """The key of a stack, two's complement."""
    return np.asarray(number, np.int64) * 0x1B0 + (_KERNEL - (1 << 64) + (1 << 33))


def _mixed(values: Int64s, below: int) -> Int64s:
    """Numbers without visible order, 0 to `below` - 1."""
    spread = values.astype(np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    return ((spread >> np.uint64(33)) % np.uint64(below)).astype(np.int64)


# ---------------------------------------------------------------------------------------------------- sockets


@dataclass(frozen=True, slots=True)
class _Step:
    """One record in the life of a socket."""

    name: str
    enter_exit: int
    location: int = 0
    keyword: int = _SLOW
    buffer: str = ""
    """user: one of the thread's own; kernel: the system's; empty: none."""
    length: int = 0
    status: int = 0
    is_elsewhere: bool = False
    """Completed in the idle thread."""
    request: int = 0
    """Which request of the socket, if it has an ActivityId."""
    more: Mapping[str, ArrayLike] = field(default_factory=dict)


def _round(n: int) -> tuple[_Step, ...]:
    """A receive that waits for the answer to a send, one that finds data at hand, and a send by the slow path."""
    got = 200 + 37 * n
    return (
        _Step("AfdReceive", 0, buffer="kernel", length=4096, request=3 * n + 1),
        _Step("AfdSend", 0, 3047, _FAST, "user", 500 + n),
        _Step("AfdSend", 1, 3051, _FAST, "user", 500 + n),
        _Step("AfdDataIndication", 3, 0, _TRANSPORT, "kernel", got, is_elsewhere=True),
        _Step("AfdReceive", 1, buffer="kernel", length=got, request=3 * n + 1, is_elsewhere=True),
        _Step("AfdReceive", 0, 4115, _FAST, "user", 8192),
        _Step("AfdReceive", 1, 4116, _FAST, "user", got + 1000),
        _Step("AfdSend", 0, buffer="kernel", length=1400, request=3 * n + 2),
        _Step("AfdSend", 1, buffer="kernel", length=1400, request=3 * n + 2, is_elsewhere=True),
    )


_CREATE: Mapping[str, ArrayLike] = {"address_family": 2, "socket_type": 1, "protocol": 6}
_TO_PEER: Mapping[str, ArrayLike] = {"address_len": 16, "address": _PEER}
_LIFE = (
    _Step("AfdCreate", 0, 1006, more=_CREATE),
    _Step("AfdCreate", 1, 1013, more=_CREATE),
    _Step("AfdConnectWithAddress", 0, 5023, more=_TO_PEER),
    _Step("AfdConnect", 1, 5027),
    *(step for n in range(4) for step in _round(n)),
    _Step("AfdDisconnect", 3, 0, _TRANSPORT, is_elsewhere=True),
    _Step("AfdCleanup", 0, 2000),
    _Step("AfdCleanup", 1, 2001),
    _Step("AfdClose", 0, 1002),
    _Step("AfdClose", 1, 1003),
)
_TOGETHER = 400
_ADDRESSES = 20_000


def _socket_piece(step: _Step, places: Int64s, member: Int64s, endpoint: Int64s, life: Int64s) -> Known:
    """Records of one step of several sockets."""
    pid = np.array(PIDS, np.int64)[member % len(PIDS)]
    buffer = {"user": _USER + member * 0x4000, "kernel": _KERNEL - (1 << 64) + (3 << 33) + life % (1 << 20) * 0x100}.get(step.buffer, 0)
    columns: dict[str, ArrayLike] = {
        "enter_exit": step.enter_exit,
        "location": step.location,
        "process": eprocess_of(pid),
        "endpoint": endpoint,
        "process_id": pid,
        "buffer_count": 1,
        "buffer": buffer,
        "buffer_length": step.length,
        "status": step.status,
        **step.more,
    }
    elsewhere = step.is_elsewhere
    activity = _KERNEL - (1 << 64) + (5 << 33) + (life * 16 + step.request) % (1 << 24) * 0x40 if step.request else 0
    return Known(
        step.name,
        places,
        member % CPUS,
        columns,
        pids=0 if elsewhere else pid,
        tids=0 if elsewhere else pid + 4 + member // len(PIDS) % 8 * 4,
        activities=activity,
        keyword=step.keyword,
    )


def _winsock(first: int, beyond: int) -> Iterator[Piece]:
    """Connections of 45 records each, 400 at a time, in 16 processes."""
    places = np.arange(first, beyond)
    generation, rest = np.divmod(places, _TOGETHER * len(_LIFE))
    at, member = np.divmod(rest, _TOGETHER)
    life = generation * _TOGETHER + member
    for number, step in enumerate(_LIFE):
        own = np.flatnonzero(at == number)
        if own.size:
            endpoint = _KERNEL - (1 << 64) + life[own] % _ADDRESSES * 0x800
            yield _socket_piece(step, places[own], member[own], endpoint, life[own])


_DEPTH = 64


def _hot(first: int, beyond: int) -> Iterator[Piece]:
    """One socket: 64 receives in flight, each with a buffer of its own, and sends between them."""
    places = np.arange(first, beyond)
    number, turn = np.divmod(places, 4)
    posted = _Step("AfdReceive", 0, buffer="user", length=4096, request=1)
    done = _Step("AfdReceive", 1, buffer="user", length=1460, request=1, is_elsewhere=True)
    arrived = _Step("AfdDataIndication", 3, 0, _TRANSPORT, "kernel", 1460, is_elsewhere=True)
    parts = (
        (posted, turn == 0, 0),
        (done, (turn == 1) & (number >= _DEPTH), -_DEPTH),
        (arrived, (turn == 1) & (number < _DEPTH), 0),
        (_Step("AfdSend", 0, 3047, _FAST, "user", 700), turn == 2, 1 << 20),
        (_Step("AfdSend", 1, 3051, _FAST, "user", 700), turn == 3, 1 << 20),
    )
    for step, chosen, shift in parts:
        own = np.flatnonzero(chosen)
        if own.size:
            request = number[own] + shift
            member = np.zeros(own.size, np.int64)
            piece = _socket_piece(step, places[own], member, np.full(own.size, _KERNEL - (1 << 64)), request % (4 * _DEPTH))
            columns = dict(piece.columns)
            if step.buffer == "user":
                columns["buffer"] = _USER + (request % (2 * _DEPTH) if step.request else 3 * _DEPTH + request % 4) * 0x2000
            yield Known(
                piece.name, piece.places, number[own] // 16 % CPUS, columns, piece.pids, piece.tids, piece.activities, piece.keyword
            )


# ---------------------------------------------------------------------------------------------------- heaps

_SHORT, _LONG = 64, 8192
_SHORT_LIFE, _LONG_LIFE = 24, 5000


def _heap(first: int, beyond: int) -> Iterator[Piece]:
    """Short and long-lived blocks of 16 heaps, some resized, each record with a stack: two records a place."""
    places = np.arange(first, beyond)
    number, turn = np.divmod(places, 5)
    parts: tuple[tuple[str, NDArray[np.bool_], int, bool], ...] = (
        ("HeapAlloc", turn == 0, 0, False),
        ("HeapAlloc", turn == 1, 0, True),
        ("HeapFree", (turn == 2) & (number >= _SHORT_LIFE), _SHORT_LIFE, False),
        ("HeapFree", (turn == 3) & (number >= _LONG_LIFE), _LONG_LIFE, True),
        ("HeapReAlloc", (turn == 4) & (number >= 100), 100, True),
    )
    filler = ((turn == 2) & (number < _SHORT_LIFE)) | ((turn == 3) & (number < _LONG_LIFE)) | ((turn == 4) & (number < 100))
    for name, chosen, age, is_long in (*parts, ("HeapLock", filler, 0, False)):
        own = np.flatnonzero(chosen)
        if not own.size:
            continue
        block = number[own] - age
        member = block % len(PIDS)
        pid = np.array(PIDS, np.int64)[member]
        tid = pid + 4 + number[own] // len(PIDS) % 4 * 4
        heap = 0x1A0_0000_0000 + member * 0x1_0000_0000
        address = heap + (0x100_0000 + block % _LONG * 0x800 if is_long else 0x1_0000 + block % _SHORT * 0x400)
        size = 16 + _mixed(block, 700)
        columns: dict[str, ArrayLike] = {
            "heap_handle": heap,
            "alloc_size": size,
            "alloc_address": address,
            "free_address": address,
            "new_alloc_address": address,
            "old_alloc_address": address,
            "new_alloc_size": size + 64,
            "old_alloc_size": size,
            "source_id": 2,
        }
        cpus = member % CPUS
        yield Known(name, places[own], cpus, columns, pid, tid)
        key = stack_key(_mixed(number[own] * 7 + turn[own], STACK_KEYS))
        yield Known("StackKeyUser", places[own], cpus, {"stack_process": pid, "stack_thread": tid, "stack_key": key})


# ---------------------------------------------------------------------------------------------------- noise

_FOREIGN = tuple((uuid5(NAMESPACE_DNS, f"provider{n}.bench"), 10 + n, (16, 48, 120, 32)[n % 4]) for n in range(12))


def _noise(first: int, beyond: int) -> Iterator[Piece]:
    """Eight of ten records of other providers, the rest sockets and heaps."""
    places = np.arange(first, beyond)
    turn = places % 10
    for at, inner in ((0, _winsock), (5, _heap)):
        own = places[turn == at] // 10
        if own.size:
            for piece in inner(int(own[0]), int(own[-1]) + 1):
                assert isinstance(piece, Known)
                yield Known(
                    piece.name, piece.places * 10 + at, piece.cpus, piece.columns, piece.pids, piece.tids, piece.activities, piece.keyword
                )
    foreign = places[(turn != 0) & (turn != 5)]
    which = _mixed(foreign, len(_FOREIGN))
    for number, (provider, event_id, size) in enumerate(_FOREIGN):
        own = foreign[which == number]
        if own.size:
            yield Foreign(provider, event_id, size, own, _mixed(own, CPUS), np.array(PIDS, np.int64)[own % len(PIDS)])


# ---------------------------------------------------------------------------------------------------- a whole program


def _both(first: int, beyond: int) -> Iterator[Piece]:
    """Four of five places of the heap, each record with a stack, the fifth of sockets: a program with both sessions on."""
    group, turn = np.divmod(np.arange(first, beyond), 5)
    of_sockets, of_heap = group[turn == 0], (group * 4 + turn - 1)[turn > 0]
    if of_sockets.size:
        for piece in _winsock(int(of_sockets[0]), int(of_sockets[-1]) + 1):
            assert isinstance(piece, Known)
            yield replace(piece, places=piece.places * 5)
    if of_heap.size:
        for piece in _heap(int(of_heap[0]), int(of_heap[-1]) + 1):
            assert isinstance(piece, Known)
            yield replace(piece, places=piece.places // 4 * 5 + piece.places % 4 + 1)


MIXES: Mapping[str, Mix] = {
    mix.name: mix
    for mix in (
        Mix("winsock", "many sockets", _winsock),
        Mix("hot", "one hot socket", _hot),
        Mix("heap", "heap with stacks", _heap, has_stacks=True, sharing=2),
        Mix("noise", "other providers", _noise, has_stacks=True),
        Mix("both", "heap and sockets", _both, has_stacks=True),
    )
}
