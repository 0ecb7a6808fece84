"""All socket events of a window as one table in time order, whatever their layouts: what the socket model reads.

Columns are built with arrays; only the texts of fields that no column has (`fields`) are made per record, and only for events that are
neither posts nor completions. What the model takes one by one it asks for as `Event`s.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.afdcodes import DOUBLE_COUNT_LOCATIONS, RELIABLE_LOCATIONS, RELIABLE_UNLESS_SYSTEM, EnterExit, Keyword
from collector.model.addresses import Addresses, AddressKey
from collector.model.afd_fields import address_keys, json_of, signed_column
from collector.model.afd_shapes import SHAPES, Shape
from collector.schema import DecodedBatch, EventColumns

__all__ = ["KERNEL_SPACE", "NO_SPACE", "USER_SPACE", "AfdTable", "Event", "PidSource", "afd_counts", "afd_table"]

Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

NO_SPACE, USER_SPACE, KERNEL_SPACE = 0, 1, 2  # indexes into words.SPACES

_MODERN = 1000
_SYSTEM_PID = 4
_NO_PID = 0xFFFFFFFF
_FIRST_USER = 0x10000
_LAST_USER = 0x7FFFFFFFFFFF
_KERNEL_64 = -0x800000000000  # 0xFFFF800000000000 as a signed number; all above are negative too
_KERNEL_32 = 0x80000000


class PidSource:
    """Why a record names the process id of its `process` (winsock-semantics 2.2): the values of `Event.source`."""

    NONE = 0
    CREATE = 1
    LOCATION = 2
    HEADER = 3


class Event(NamedTuple):
    """One socket record. Addresses are two's complement; a field that its event does not have is None, or 0 where it says so."""

    seq: int
    ticks: int
    ns: int
    id: int
    cpu: int
    pid: int
    tid: int
    activity: int
    """First 8 bytes of the header's ActivityId, 0 for none."""
    stack: int | None
    fast: bool
    """Fast I/O: by keyword in modern events, by field in documented ones."""
    type_hint: int
    """Socket type by keyword: 1 stream, 2 dgram, 0 unknown."""
    source: int
    is_double: bool
    """An exit that repeats a completion (winsock-semantics 4.1 rule 4)."""
    enter_exit: int | None
    location: int | None
    process: int
    endpoint: int
    buffer: int
    space: int
    length: int
    buffer_count: int | None
    status: int
    """NTSTATUS, unsigned; 0 for events without one."""
    has_status: bool
    address: int
    """Number of the address, 0 for none."""
    x: int
    y: int
    z: int
    w: int
    fields: str | None
    """JSON of the fields that have no column here; None for posts and completions."""


_ALL = slice(None)
_CALLERS = (2, 3, 4, 5, 18, 19, 20, 21, 22, 29, 30, 32, 40)  # documented events that the caller's own thread writes


@dataclass(frozen=True, slots=True, eq=False)
class AfdTable:
    """The socket events of a window, or of a part of it, in time order: columns of shape (n,), named and meant as in `Event`.

    A field that its event does not have is 0 here, and where `Event` has None a column `has_…` tells; a stack is -1 for none.
    """

    seq: Int64s
    ticks: Int64s
    ns: Int64s
    id: Int64s
    cpu: Int64s
    pid: Int64s
    tid: Int64s
    activity: Int64s
    stack: Int64s
    fast: Bools
    type_hint: Int64s
    source: Int64s
    is_double: Bools
    enter_exit: Int64s
    has_enter_exit: Bools
    location: Int64s
    has_location: Bools
    process: Int64s
    endpoint: Int64s
    buffer: Int64s
    space: Int64s
    length: Int64s
    buffer_count: Int64s
    has_buffer_count: Bools
    status: Int64s
    has_status: Bools
    address: Int64s
    x: Int64s
    y: Int64s
    z: Int64s
    w: Int64s
    fields: NDArray[np.object_]

    def __len__(self) -> int:
        return int(self.seq.size)

    def part(self, begin: int, end: int) -> "AfdTable":
        """Some rows that follow each other; the columns are not copied."""
        return AfdTable(*(getattr(self, name)[begin:end] for name in _NAMES))

    def events(self, at: Int64s | slice = _ALL) -> Iterator[Event]:
        """Rows as events, all or some of them (1 µs each, most of it for making the tuple)."""
        columns: list[Sequence[object]] = [
            _values(self.seq[at]),
            _values(self.ticks[at]),
            _values(self.ns[at]),
            _values(self.id[at]),
            _values(self.cpu[at]),
            _values(self.pid[at]),
            _values(self.tid[at]),
            _values(self.activity[at]),
            _or_none(self.stack[at], self.stack[at] >= 0),
            _values(self.fast[at]),
            _values(self.type_hint[at]),
            _values(self.source[at]),
            _values(self.is_double[at]),
            _or_none(self.enter_exit[at], self.has_enter_exit[at]),
            _or_none(self.location[at], self.has_location[at]),
            _values(self.process[at]),
            _values(self.endpoint[at]),
            _values(self.buffer[at]),
            _values(self.space[at]),
            _values(self.length[at]),
            _or_none(self.buffer_count[at], self.has_buffer_count[at]),
            _values(self.status[at]),
            _values(self.has_status[at]),
            _values(self.address[at]),
            *(_values(column[at]) for column in (self.x, self.y, self.z, self.w)),
            self.fields[at].tolist(),
        ]
        return map(partial(tuple.__new__, Event), zip(*columns, strict=True))  # _make would check each length in Python


_NAMES = tuple(field.name for field in dataclass_fields(AfdTable))


class _Parts:
    """Columns of all socket events of a window, filled event by event and then put in order."""

    def __init__(self, parts: Sequence[tuple[EventColumns, Shape]]) -> None:
        self.count = sum(len(columns) for columns, _ in parts)
        self.rows = np.concatenate([columns.rows for columns, _ in parts])
        self.order = np.argsort(self.rows, kind="stable")
        self.fast = np.zeros(self.count, dtype=np.bool_)
        self._numbers: dict[str, Int64s] = {}
        self._present: dict[str, Bools] = {}
        self._keys: list[tuple[slice, Sequence[AddressKey | None]]] = []
        self._fields: list[tuple[slice, Sequence[str | None]]] = []
        at = 0
        for columns, shape in parts:
            self._add(columns, shape, slice(at, at + len(columns)))
            at += len(columns)

    def number(self, name: str) -> Int64s:
        """A column in order of time; zeros where no event of the window has it."""
        column = self._numbers.get(name)
        return np.zeros(self.count, dtype=np.int64) if column is None else column[self.order]

    def has(self, name: str) -> Bools:
        """Where a column was filled, in order of time."""
        column = self._present.get(name)
        return np.zeros(self.count, dtype=np.bool_) if column is None else column[self.order]

    def numbered(self, addresses: Addresses) -> Int64s:
        """Numbers of the addresses in order of time, 0 for none; those that are new get theirs in that order."""
        numbers = np.zeros(self.count, dtype=np.int64)
        if self._keys:
            keys = np.full(self.count, None, dtype=np.object_)
            filled = np.zeros(self.count, dtype=np.bool_)
            for where, some in self._keys:
                keys[where] = _objects(some)
                filled[where] = True
            at = np.flatnonzero(filled[self.order])
            numbers[at] = addresses.numbers(keys[self.order[at]].tolist())
        return numbers

    def fields(self) -> NDArray[np.object_]:
        """Texts of the other fields, in order of time."""
        texts = np.full(self.count, None, dtype=np.object_)
        for where, some in self._fields:
            texts[where] = _objects(some)
        return texts[self.order]

    def _add(self, columns: EventColumns, shape: Shape, where: slice) -> None:
        for name, source in (
            ("enter_exit", "enter_exit"),
            ("location", "location"),
            ("process", "process"),
            ("endpoint", shape.endpoint),
            ("buffer", "buffer"),
            ("length", shape.length),
            ("count", "buffer_count"),
            ("status", "status"),
            ("status", "error"),
            *zip("xyzw", shape.extra, strict=False),
        ):
            values = signed_column(columns, source)
            if values is not None:
                self._numbers.setdefault(name, np.zeros(self.count, dtype=np.int64))[where] = values
                self._present.setdefault(name, np.zeros(self.count, dtype=np.bool_))[where] = True
        fast = signed_column(columns, "fast_path")
        if fast is not None:
            self.fast[where] = fast != 0
        if (keys := address_keys(columns)) is not None:
            self._keys.append((where, keys))
        if shape.written:
            self._fields.append((where, json_of(columns)))


def afd_table(batch: DecodedBatch, addresses: Addresses, stacks: Int64s) -> AfdTable | None:
    """The socket events of a window; None where it has none.

    Args:
        addresses: numbers the addresses that occur.
        stacks: int64, shape (n,); the stack reference of each row of the window, -1 for none.
    """
    some = [(columns, SHAPES[name]) for name, columns in batch.events.items() if name in SHAPES and len(columns)]
    if not some:
        return None
    parts = _Parts(some)
    rows = parts.rows[parts.order]
    raw = batch.raw
    ids = raw.event_id[rows].astype(np.int64)
    is_modern = ids >= _MODERN
    keyword = raw.keyword[rows]
    location, enter_exit, buffer, x = (parts.number(name) for name in ("location", "enter_exit", "buffer", "x"))
    pid = raw.pid[rows].astype(np.int64)
    is_exit = is_modern & parts.has("enter_exit") & (enter_exit == EnterExit.EXIT) & (ids < 3000)
    return AfdTable(
        seq=rows + raw.first_seq,
        ticks=raw.ticks[rows],
        ns=batch.ns[rows],
        id=ids,
        cpu=raw.cpu[rows].astype(np.int64),
        pid=pid,
        tid=raw.tid[rows].astype(np.int64),
        activity=raw.activity[rows].view(np.int64),
        stack=stacks[rows],
        fast=np.where(is_modern, (keyword & np.uint64(Keyword.FAST_PATH)) != 0, parts.fast[parts.order]),
        type_hint=_type_hints(keyword, is_modern),
        source=_pid_sources(ids, location, pid, x, enter_exit),
        is_double=is_exit & (((keyword & np.uint64(Keyword.BUFFERED)) != 0) | _is_one_of(location, DOUBLE_COUNT_LOCATIONS)),
        enter_exit=enter_exit,
        has_enter_exit=parts.has("enter_exit"),
        location=location,
        has_location=parts.has("location"),
        process=parts.number("process"),
        endpoint=parts.number("endpoint"),
        buffer=buffer,
        space=_spaces(buffer, raw.pointer_size[rows]),
        length=parts.number("length"),
        buffer_count=parts.number("count"),
        has_buffer_count=parts.has("count"),
        status=parts.number("status"),
        has_status=parts.has("status"),
        address=parts.numbered(addresses),
        x=x,
        y=parts.number("y"),
        z=parts.number("z"),
        w=parts.number("w"),
        fields=parts.fields(),
    )


def afd_counts(batch: DecodedBatch) -> dict[int, int]:
    """How many socket records of each event id a window has."""
    found: dict[int, int] = {}
    for name, columns in batch.events.items():
        if name in SHAPES and len(columns):
            number = int(batch.raw.event_id[columns.rows[0]])
            found[number] = found.get(number, 0) + len(columns)
    return found


def _is_one_of(column: Int64s, numbers: Iterable[int]) -> Bools:
    """Membership in a small set of small numbers, by a table."""
    chosen = np.array(sorted(numbers))
    table = np.zeros(int(chosen[-1]) + 2, dtype=np.bool_)
    table[chosen] = True
    return table[np.clip(column, -1, table.size - 1)]  # what is outside falls on the last place, which is false


def _objects(values: Sequence[object]) -> NDArray[np.object_]:
    """Values as an array of objects; NumPy would take tuples among them for a second axis."""
    return np.fromiter(values, dtype=np.object_, count=len(values))


def _values(column: NDArray[np.generic]) -> Sequence[object]:
    """The values as Python objects; where all are the same it is one object (most columns of most windows are)."""
    return [column[0].item()] * column.size if column.size and (column == column[0]).all() else column.tolist()


def _or_none(column: Int64s, present: Bools) -> Sequence[object]:
    if present.all():
        return _values(column)
    if not present.any():
        return [None] * column.size
    values: list[object] = column.tolist()
    for i in np.flatnonzero(~present).tolist():
        values[i] = None
    return values


def _type_hints(keyword: NDArray[np.uint64], is_modern: Bools) -> Int64s:
    datagram = (keyword & np.uint64(Keyword.DATAGRAM)) != 0
    stream = (keyword & np.uint64(Keyword.STREAM)) != 0
    hints = np.where(datagram, 2, np.where(stream, 1, 0))
    return np.where(is_modern & ~(datagram & stream), hints, 0)


def _pid_sources(ids: Int64s, location: Int64s, pid: Int64s, created_by: Int64s, enter_exit: Int64s) -> Int64s:
    """Which records name a process id, and by which of the ranked sources (winsock-semantics 2.2)."""
    creates = ((ids == 1) | (ids == _MODERN)) & (created_by > 0)
    reliable = _is_one_of(location, RELIABLE_LOCATIONS) | (_is_one_of(location, RELIABLE_UNLESS_SYSTEM) & (pid != _SYSTEM_PID))
    is_pid = (pid > 0) & (pid < _NO_PID)
    located = (ids >= _MODERN) & reliable & is_pid
    called = _is_one_of(ids, _CALLERS) & is_pid
    return np.where(creates, PidSource.CREATE, np.where(located, PidSource.LOCATION, np.where(called, PidSource.HEADER, PidSource.NONE)))


def _spaces(buffer: Int64s, pointer_size: NDArray[np.uint8]) -> Int64s:
    """Address space by magnitude alone (winsock-semantics 5.3)."""
    is_64 = pointer_size == 8
    kernel = np.where(is_64, (buffer < 0) & (buffer >= _KERNEL_64), buffer >= _KERNEL_32)
    user = (buffer >= _FIRST_USER) & np.where(is_64, buffer <= _LAST_USER, buffer < _KERNEL_32)
    return np.where(kernel, KERNEL_SPACE, np.where(user, USER_SPACE, NO_SPACE))
