"""What a reader hands on: one trace header, and windows of records as columns, in global time order.

A window is bounded (some buffers of every processor), a record is a row number into its columns. Nothing here knows what an
event means.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from collector.clock import Clock
from collector.errors import Problem
from collector.losses import Losses

__all__ = ["Forms", "HeaderKind", "ItemType", "RawEvents", "Reader", "TraceHeader"]

UInt8s = NDArray[np.uint8]
UInt16s = NDArray[np.uint16]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
UInt64s = NDArray[np.uint64]


class HeaderKind(IntEnum):
    """Header type of a record: byte 2 of its marker (etl-format S4.1); MESSAGE is our number for flags 0x90."""

    SYSTEM32 = 1
    SYSTEM64 = 2
    COMPACT32 = 3
    COMPACT64 = 4
    FULL32 = 10
    INSTANCE32 = 11
    TIMED = 12
    ERROR = 13
    WNODE = 14
    PERFINFO32 = 16
    PERFINFO64 = 17
    EVENT32 = 18
    EVENT64 = 19
    FULL64 = 20
    INSTANCE64 = 21
    MESSAGE = 0x90


class ItemType(IntEnum):
    """ExtType of an extended item of an EVENT header (etl-format S7)."""

    RELATED_ACTIVITY = 1
    SID = 2
    TERMINAL_SESSION = 3
    INSTANCE_INFO = 4
    STACK32 = 5
    STACK64 = 6
    PEBS_INDEX = 7
    PMC_COUNTERS = 8
    PSM_KEY = 9
    EVENT_KEY = 10
    SCHEMA = 11
    PROVIDER_TRAITS = 12
    PROCESS_START_KEY = 13
    CONTROL_GUID = 14
    QPC_DELTA = 15
    CONTAINER_ID = 16
    STACK_KEY32 = 17
    STACK_KEY64 = 18


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """What the log file header says about the whole trace; raw numbers, unknown ones None."""

    clock: Clock
    pointer_size: int
    processors: int
    os_version: str
    os_build: int
    end_filetime: int
    boot_filetime: int
    log_file_mode: int
    buffer_size: int
    buffers_written: int
    events_lost: int
    buffers_lost: int
    timer_resolution: int
    cpu_mhz: int
    perf_freq: int
    session_name: str
    file_name: str
    layout_version: str
    is_merged: bool
    is_compressed: bool
    is_circular: bool
    is_closed: bool


@dataclass(frozen=True, slots=True)
class Forms:
    """What headers say, one row a distinct form of header; arrays of one length, see `RawEvents` for their meaning.

    A window has some dozen forms, so what depends on the form alone is worked out once and then looked up.
    """

    kind: UInt8s
    pointer_size: UInt8s
    provider: Int32s
    event_id: Int32s
    opcode: UInt8s
    version: Int32s
    level: UInt8s

    def __len__(self) -> int:
        return int(self.kind.size)


@dataclass(eq=False)
class RawEvents:
    """One window of records as columns, all of length n, in the order (ticks, cpu, buffer sequence, offset).

    `data` holds the records; offsets count from its start. The arrays belong to the receiver, and are valid only until the next window is
    asked for unless copied. A reader may fill a column when it is first asked for.
    """

    data: UInt8s
    """uint8, the expanded buffers of the window."""
    providers: list[UUID]
    """Class or provider GUIDs; grows over the life of the reader, `provider` indexes it. System headers get the GUID of their group."""
    first_seq: int
    """Number of the first record of the window in the trace's global order; row i is record `first_seq + i`."""

    offset: Int64s
    """Start of the record in `data`."""
    payload: Int64s
    """Start of the user data in `data`, behind header, extra words and extended items."""
    payload_size: Int32s
    """Bytes of user data, never negative."""
    ticks: Int64s
    """Raw clock, ascending over all windows. A record without a time stamp has that of the record before it in its buffer."""
    cpu: UInt16s
    pid: Int64s
    """Process id of the header, -1 where the header kind has none or the header says 0xFFFFFFFF; `tid` likewise."""
    tid: Int64s
    kind: UInt8s
    """HeaderKind."""
    pointer_size: UInt8s
    """4 or 8, of the record."""
    provider: Int32s
    """Index into `providers`."""
    event_id: Int32s
    """Event id for EVENT headers and message number for MESSAGE; for all other kinds 0 (their identity is the opcode)."""
    opcode: UInt8s
    version: Int32s
    """Version with the extra-word bits masked off."""
    level: UInt8s
    keyword: UInt64s
    """Keyword of EVENT headers, 0 elsewhere."""
    activity: UInt64s
    """First 8 bytes of the ActivityId of EVENT headers, 0 elsewhere."""
    extended: Int64s
    """Start of the extended items in `data`, or -1; they end at `payload`."""
    buffer: Int32s
    """Index of the buffer in the file, the header buffer is 0."""
    buffer_offset: Int32s
    """Start of the record in its expanded buffer, header included: the place to name to a user."""

    def __len__(self) -> int:
        return int(self.ticks.size)

    @cached_property
    def _formed(self) -> tuple[Forms, Int32s]:
        """Forms of a window whose columns were given, told apart by their values."""
        names = ("kind", "pointer_size", "provider", "event_id", "opcode", "version", "level")
        columns: list[NDArray[np.int64]] = [getattr(self, name).astype(np.int64) for name in names]
        _, first, form = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
        return Forms(*(getattr(self, name)[first] for name in names)), form.reshape(-1).astype(np.int32)

    @property
    def forms(self) -> Forms:
        """The forms of header that occur, and perhaps others."""
        return self._formed[0]

    @property
    def form(self) -> Int32s:
        """Index into `forms` of each row, int32, shape (n,)."""
        return self._formed[1]

    @property
    def seq(self) -> Int64s:
        """Global record numbers of the rows, int64, shape (n,)."""
        return np.arange(self.first_seq, self.first_seq + len(self), dtype=np.int64)

    def payload_bytes(self, row: int) -> bytes:
        """User data of one record, copied."""
        start = int(self.payload[row])
        return self.data[start : start + int(self.payload_size[row])].tobytes()

    def place(self, row: int) -> str:
        """Where a record stands in the file, in words."""
        return f"buffer {int(self.buffer[row]):,}, offset {int(self.buffer_offset[row]):,}"


class Reader(Protocol):
    """A source of windows; made by `readers.reader_for(source)`."""

    header: TraceHeader
    bytes_total: int
    """Size of the input, for progress."""
    bytes_done: int
    """Bytes of the input read so far."""
    problems: list[Problem]
    """What was wrong with the container; complete once `windows` is exhausted."""
    losses: Losses
    """Where records were lost; complete up to the window handed out."""
    buffers_read: int

    def windows(self) -> Iterator[RawEvents]:
        """All records once, in windows of global time order. Raises SourceError, FormatError."""
        ...
