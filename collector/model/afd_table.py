"""All socket events of a window as one table in time order, whatever their layouts: what the socket model loops over.

Columns are built with arrays; only the texts of fields that no column has (`fields`) are made per record, and only for events that are
neither posts nor completions.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.afdcodes import DOUBLE_COUNT_LOCATIONS, RELIABLE_LOCATIONS, RELIABLE_UNLESS_SYSTEM, EnterExit, Keyword
from collector.model.addresses import Addresses, AddressKey, ipv4_keys, ipv6_keys, sockaddr_keys
from collector.schema import DecodedBatch, EventColumns, Ragged

__all__ = ["KERNEL_SPACE", "NO_SPACE", "USER_SPACE", "Event", "PidSource", "afd_counts", "afd_events"]

Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

NO_SPACE, USER_SPACE, KERNEL_SPACE = 0, 1, 2  # indexes into words.SPACES

_MODERN = 1000
_SYSTEM_PID = 4
_NO_PID = 0xFFFFFFFF
_IPV6_BYTES = 16
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


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where an event's fields go: length, the four numbers x, y, z, w; whether its other fields are written out as JSON."""

    length: str = "buffer_length"
    extra: tuple[str, ...] = ()
    endpoint: str = "endpoint"
    written: bool = True


_TRANSFER = _Shape(written=False)
_CREATE = ("address_family", "socket_type", "protocol")
_SHAPES: dict[str, _Shape] = {
    "SocketCreate": _Shape(extra=("user_mode_pid", *_CREATE)),
    "SocketBindV4": _Shape(),
    "SocketBindV6": _Shape(),
    "SocketConnectV4": _TRANSFER,
    "SocketConnectV6": _TRANSFER,
    "ConnectCompleted": _TRANSFER,
    "AfdInitiatedAbort": _Shape(extra=("reason",)),
    "TransportInitiatedAbort": _Shape(extra=("reason",)),
    "SendFailed": _TRANSFER,
    "SendMsgFailed": _TRANSFER,
    "RecvFailed": _TRANSFER,
    "RecvFromFailed": _TRANSFER,
    "SocketClose": _Shape(),
    "SocketCleanup": _Shape(),
    "SocketAcceptV4": _TRANSFER,
    "SocketAcceptV6": _TRANSFER,
    "AcceptFailed": _TRANSFER,
    "SendPosted": _TRANSFER,
    "RecvPosted": _TRANSFER,
    "RecvFromPosted": _TRANSFER,
    "SendToPostedV4": _TRANSFER,
    "SendToPostedV6": _TRANSFER,
    "RecvCompleted": _TRANSFER,
    "SendCompleted": _TRANSFER,
    "SendMsgCompleted": _TRANSFER,
    "RecvFromCompletedV4": _TRANSFER,
    "RecvFromCompletedV6": _TRANSFER,
    "SendToCompleted": _TRANSFER,
    "SocketOption": _Shape(extra=("option", "value")),
    "SelectPosted": _Shape(extra=("handle_count", "timeout")),
    "SelectCompleted": _Shape(),
    "EventSelect": _Shape(),
    "DatagramDroppedV4": _Shape(length="packet_size", extra=("reason",)),
    "DatagramDroppedV6": _Shape(length="packet_size", extra=("reason",)),
    "ConnectIndicatedV4": _Shape(endpoint="listen_endpoint"),
    "ConnectIndicatedV6": _Shape(endpoint="listen_endpoint"),
    "DataIndicated": _Shape(length="bytes_indicated"),
    "DataIndicatedFromV4": _Shape(length="bytes_indicated"),
    "DataIndicatedFromV6": _Shape(length="bytes_indicated"),
    "BindFailed": _Shape(),
    "DisconnectIndicated": _Shape(),
    "AfdCreate": _Shape(extra=("process_id", *_CREATE)),
    "AfdClose": _Shape(),
    "AfdCleanup": _Shape(),
    "AfdSend": _TRANSFER,
    "AfdReceive": _TRANSFER,
    "AfdSendTo": _TRANSFER,
    "AfdReceiveFrom": _TRANSFER,
    "AfdSendToWithAddress": _TRANSFER,
    "AfdReceiveFromWithAddress": _TRANSFER,
    "AfdSendMessage": _TRANSFER,
    "AfdReceiveMessage": _TRANSFER,
    "AfdSendMessageWithAddress": _TRANSFER,
    "AfdReceiveMessageWithAddress": _TRANSFER,
    "AfdConnect": _TRANSFER,
    "AfdConnectWithAddress": _TRANSFER,
    "AfdConnectEx": _TRANSFER,
    "AfdConnectExWithAddress": _TRANSFER,
    "AfdAccept": _TRANSFER,
    "AfdAcceptWithAddress": _Shape(extra=("accept_endpoint", "current_backlog"), written=False),
    "AfdAcceptEx": _TRANSFER,
    "AfdAcceptExWithAddress": _Shape(extra=("accept_endpoint", "current_backlog"), written=False),
    "AfdBind": _Shape(),
    "AfdBindWithAddress": _Shape(),
    "AfdAbort": _Shape(extra=("reason",)),
    "AfdDatagramDropWithAddress": _Shape(extra=("reason",)),
    "AfdOption": _Shape(extra=("option", "value")),
    "AfdWaitForListen": _Shape(),
    "AfdListen": _Shape(extra=("backlog",)),
    "AfdConnectIndication": _Shape(),
    "AfdConnectIndicationWithAddress": _Shape(extra=("", "current_backlog")),
    "AfdDataIndication": _Shape(),
    "AfdDataIndicationWithAddress": _Shape(),
    "AfdDisconnect": _Shape(),
    "AfdSendBackLog": _Shape(),
    "AfdRioCreateRegistrationDomain": _Shape(),
    "AfdRioCleanupRegistrationDomain": _Shape(),
    "AfdRioCreateCq": _Shape(),
    "AfdRioDestroyCq": _Shape(),
    "AfdRioCleanupCq": _Shape(),
    "AfdRioResizeCq": _Shape(),
    "AfdRioCreateRqPair": _Shape(extra=("rio_state",)),
    "AfdRioCloseRioState": _Shape(extra=("rio_state",)),
    "AfdRioCleanupRioState": _Shape(extra=("rio_state",)),
    "AfdRioResizeRqPair": _Shape(extra=("rio_state",)),
    "AfdRioRegisterBuffer": _Shape(),
    "AfdRioDeregisterBuffer": _Shape(),
    "AfdRioCleanupBuffer": _Shape(),
    "AfdRioValidateBufferId": _Shape(extra=("rio_state",)),
    "AfdRioRangeCheck": _Shape(extra=("rio_state",)),
    "AfdRioSendReceive": _Shape(extra=("rio_state",)),
    "AfdNrtCreate": _Shape(),
    "AfdNrtClose": _Shape(),
    "AfdRioNotifyCq": _Shape(),
    "AfdAcceptPause": _Shape(extra=("", "pause_un_pause", "tl_backlog_count")),
    "AfdRioValidateBufferSharing": _Shape(extra=("rio_state",)),
}

_COLUMNS = {"process", "endpoint", "listen_endpoint", "enter_exit", "location", "status", "error", "address", "address_len", "port"}
_NUMBERS = {"process_id", "user_mode_pid"}  # numbers in fields as wide as a pointer
_CALLERS = (2, 3, 4, 5, 18, 19, 20, 21, 22, 29, 30, 32, 40)  # documented events that the caller's own thread writes


class _Table:
    """Columns of all socket events of a window, filled event by event and then put in order."""

    def __init__(self, parts: Sequence[tuple[EventColumns, _Shape]]) -> None:
        self.count = sum(len(columns) for columns, _ in parts)
        self.rows = np.concatenate([columns.rows for columns, _ in parts])
        self.numbers: dict[str, Int64s] = {}
        self.present: dict[str, Bools] = {}
        self.fast = np.zeros(self.count, dtype=np.bool_)
        self.addresses: list[AddressKey | None] = []
        self.fields: list[str | None] = []
        at = 0
        for columns, shape in parts:
            self._add(columns, shape, slice(at, at + len(columns)))
            at += len(columns)

    def number(self, name: str) -> Int64s:
        """A column; zeros where no event of the window has it."""
        return self.numbers.setdefault(name, np.zeros(self.count, dtype=np.int64))

    def has(self, name: str) -> Bools:
        """Where a column was filled."""
        return self.present.setdefault(name, np.zeros(self.count, dtype=np.bool_))

    def _add(self, columns: EventColumns, shape: _Shape, where: slice) -> None:
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
            values = _signed(columns, source)
            if values is not None:
                self.number(name)[where] = values
                self.has(name)[where] = True
        fast = _signed(columns, "fast_path")
        if fast is not None:
            self.fast[where] = fast != 0
        self.addresses += _address_keys(columns)
        self.fields += _json_of(columns) if shape.written else [None] * len(columns)


def afd_events(batch: DecodedBatch, addresses: Addresses, stacks: Int64s) -> Iterator[Event]:
    """The socket events of a window in time order.

    Args:
        addresses: numbers the addresses that occur.
        stacks: int64, shape (n,); the stack reference of each row of the window, -1 for none.

    Cost: 1.2 µs an event, most of it for making the tuple.
    """
    parts = [(columns, _SHAPES[name]) for name, columns in batch.events.items() if name in _SHAPES and len(columns)]
    if not parts:
        return iter(())
    table = _Table(parts)
    order = np.argsort(table.rows, kind="stable")
    rows = table.rows[order]
    raw = batch.raw
    ids = raw.event_id[rows].astype(np.int64)
    is_modern = ids >= _MODERN
    keyword = raw.keyword[rows]
    location = table.number("location")[order]
    enter_exit = table.number("enter_exit")[order]
    buffer = table.number("buffer")[order]
    pid = raw.pid[rows]
    is_exit = is_modern & table.has("enter_exit")[order] & (enter_exit == EnterExit.EXIT) & (ids < 3000)
    double = is_exit & (((keyword & np.uint64(Keyword.BUFFERED)) != 0) | np.isin(location, list(DOUBLE_COUNT_LOCATIONS)))
    stack = stacks[rows]
    first_seq = raw.first_seq
    columns: list[Sequence[object]] = [
        (rows + first_seq).tolist(),
        raw.ticks[rows].tolist(),
        batch.ns[rows].tolist(),
        _values(ids),
        _values(raw.cpu[rows]),
        _values(pid),
        _values(raw.tid[rows]),
        _values(raw.activity[rows].view(np.int64)),
        _or_none(stack, stack >= 0),
        _values(np.where(is_modern, (keyword & np.uint64(Keyword.FAST_PATH)) != 0, table.fast[order])),
        _values(_type_hints(keyword, is_modern)),
        _values(_pid_sources(ids, location, pid, table.number("x")[order], enter_exit)),
        _values(double),
        _or_none(enter_exit, table.has("enter_exit")[order]),
        _or_none(location, table.has("location")[order]),
        _values(table.number("process")[order]),
        _values(table.number("endpoint")[order]),
        _values(buffer),
        _values(_spaces(buffer, raw.pointer_size[rows])),
        _values(table.number("length")[order]),
        _or_none(table.number("count")[order], table.has("count")[order]),
        _values(table.number("status")[order]),
        _values(table.has("status")[order]),
        addresses.numbers([table.addresses[i] for i in order.tolist()]),
        *(_values(table.number(name)[order]) for name in "xyzw"),
        [table.fields[i] for i in order.tolist()],
    ]
    return map(partial(tuple.__new__, Event), zip(*columns, strict=True))  # _make would check each length in Python


def afd_counts(batch: DecodedBatch) -> dict[int, int]:
    """How many socket records of each event id a window has."""
    found: dict[int, int] = {}
    for name, columns in batch.events.items():
        if name in _SHAPES and len(columns):
            number = int(batch.raw.event_id[columns.rows[0]])
            found[number] = found.get(number, 0) + len(columns)
    return found


def _signed(columns: EventColumns, name: str) -> Int64s | None:
    """A column of whole numbers; None where the event has none of this name (a trace may describe a layout of its own)."""
    column = columns.fields.get(name)
    if not isinstance(column, np.ndarray) or column.ndim != 1 or column.dtype.kind not in "iub":
        return None
    return column.view(np.int64) if column.dtype == np.uint64 else column.astype(np.int64)


def _values(column: NDArray[np.generic]) -> Sequence[object]:
    """The values as Python objects; where all are the same it is one object (most columns of most windows are)."""
    return [column[0].item()] * column.size if (column == column[0]).all() else column.tolist()


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
    reliable = np.isin(location, list(RELIABLE_LOCATIONS)) | (np.isin(location, list(RELIABLE_UNLESS_SYSTEM)) & (pid != _SYSTEM_PID))
    is_pid = (pid > 0) & (pid < _NO_PID)
    located = (ids >= _MODERN) & reliable & is_pid
    called = np.isin(ids, _CALLERS) & is_pid
    return np.where(creates, PidSource.CREATE, np.where(located, PidSource.LOCATION, np.where(called, PidSource.HEADER, PidSource.NONE)))


def _spaces(buffer: Int64s, pointer_size: NDArray[np.uint8]) -> Int64s:
    """Address space by magnitude alone (winsock-semantics 5.3)."""
    is_64 = pointer_size == 8
    kernel = np.where(is_64, (buffer < 0) & (buffer >= _KERNEL_64), buffer >= _KERNEL_32)
    user = (buffer >= _FIRST_USER) & np.where(is_64, buffer <= _LAST_USER, buffer < _KERNEL_32)
    return np.where(kernel, KERNEL_SPACE, np.where(user, USER_SPACE, NO_SPACE))


def _address_keys(columns: EventColumns) -> Sequence[AddressKey | None]:
    address, length, port = columns.fields.get("address"), _signed(columns, "address_len"), _signed(columns, "port")
    if isinstance(address, np.ndarray) and address.dtype == np.uint8 and address.ndim == 2:
        if length is not None:
            return sockaddr_keys(address.view(np.uint8), length)
        if port is not None and address.shape[1] == _IPV6_BYTES:
            return ipv6_keys(address.view(np.uint8), port)
    ip = _signed(columns, "address")
    if ip is not None and port is not None:
        return ipv4_keys(ip & 0xFFFFFFFF, port & 0xFFFF)
    return [None] * len(columns)


def _json_of(columns: EventColumns) -> Sequence[str | None]:
    """The fields without a column, one JSON object a record; addresses as hex text (0.8 µs a record)."""
    names = [name for name in columns.fields if name not in _COLUMNS]
    if not names:
        return [None] * len(columns)
    texts = [_json_values(columns, name) for name in names]
    template = ", ".join(f"{json.dumps(name)}: %s" for name in names)
    return [f"{{{template % row}}}" for row in zip(*texts, strict=True)]


def _json_values(columns: EventColumns, name: str) -> list[str]:
    column = columns.fields[name]
    if isinstance(column, list):
        return [json.dumps(text) for text in column]
    if isinstance(column, Ragged):
        return [json.dumps([hex(value) for value in column.row(i).tolist()]) for i in range(len(column))]
    if column.ndim > 1:
        return [f'"{value.tobytes().hex()}"' for value in column]
    if column.dtype == np.uint64 and name not in _NUMBERS:
        return [f'"{value:#x}"' for value in column.tolist()]
    if column.dtype.kind == "f":
        return [json.dumps(value if math.isfinite(value) else None) for value in column.tolist()]
    return [json.dumps(value) for value in column.tolist()] if column.dtype.kind == "b" else [str(value) for value in column.tolist()]
