"""How the socket model grows: time and memory per record at 1x, 2x and 4x of several shapes of traffic.

    python -m bench.sockets [SHAPE …] [--size N]

Windows are built as columns, without a file, so the numbers are those of the model alone.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from collector.clock import Clock, ClockKind
from collector.events import SCHEMAS
from collector.losses import Losses
from collector.model.processes import Processes
from collector.model.rows import count_of
from collector.model.sockets import Sockets
from collector.model.stacks import Stacks
from collector.raw import HeaderKind, RawEvents, TraceHeader
from collector.schema import Column, DecodedBatch, EventColumns, FieldType

__all__ = ["main"]

Int64s = NDArray[np.int64]
CLOCK = Clock(ClockKind.QPC, 0, 10_000_000, 133_000_000_000_000_000)
WINDOW = 100_000
PROCESS, PID = 0xFFFF9A0C11223080, 4120
KERNEL = -0x65F300000000  # 0xFFFF9A0D00000000, as a signed number
USER = 0x1D2A4460000
_AFD = next(key.provider for key, schemas in SCHEMAS.items() if schemas[0].name == "AfdSend")
_SCHEMAS = {schemas[0].number: schemas[0] for key, schemas in SCHEMAS.items() if key.provider == _AFD}


class Traffic:
    """Records as columns by field name, in time order; `ids` are event ids."""

    def __init__(self, ids: Int64s, **fields: Int64s | int) -> None:
        self.ids = ids
        self.fields = fields

    def column(self, name: str, rows: Int64s) -> Int64s:
        value = self.fields.get(name, 0)
        return value[rows] if isinstance(value, np.ndarray) else np.full(rows.size, value if value < 1 << 63 else value - (1 << 64))

    def windows(self) -> Iterator[DecodedBatch]:
        for begin in range(0, self.ids.size, WINDOW):
            rows = np.arange(begin, min(begin + WINDOW, self.ids.size))
            yield self._window(rows)

    def _window(self, rows: Int64s) -> DecodedBatch:
        n = rows.size
        ticks = rows * 10
        zeros = np.zeros(n, dtype=np.int64)
        ids = self.ids[rows]
        raw = RawEvents(
            data=np.zeros(1, dtype=np.uint8),
            providers=[_AFD],
            first_seq=int(rows[0]),
            offset=zeros,
            payload=zeros,
            payload_size=zeros.astype(np.int32),
            ticks=ticks,
            cpu=zeros.astype(np.uint16),
            pid=np.full(n, PID),
            tid=self.column("tid", rows),
            kind=np.full(n, HeaderKind.EVENT64, dtype=np.uint8),
            pointer_size=np.full(n, 8, dtype=np.uint8),
            provider=zeros.astype(np.int32),
            event_id=ids.astype(np.int32),
            opcode=zeros.astype(np.uint8),
            version=zeros.astype(np.int32),
            level=np.full(n, 4, dtype=np.uint8),
            keyword=self.column("keyword", rows).view(np.uint64),
            activity=self.column("activity", rows).view(np.uint64),
            extended=zeros - 1,
            buffer=zeros.astype(np.int32),
            buffer_offset=zeros.astype(np.int32),
        )
        events = {}
        for number in np.unique(ids).tolist():
            schema = _SCHEMAS[number]
            mine = np.flatnonzero(ids == number)
            fields: dict[str, Column] = {}
            for field in schema.fields:
                if field.type is FieldType.SOCKADDR:
                    address = np.zeros((mine.size, 28), dtype=np.uint8)
                    address[:, 0], address[:, 2], address[:, 4] = 2, 1, 10
                    fields[field.name] = address
                elif field.name == "address_len":
                    fields[field.name] = np.full(mine.size, 16, dtype=np.uint32)
                else:
                    wide = field.type in (FieldType.POINTER, FieldType.SIZET)
                    fields[field.name] = (
                        self.column(field.name, rows[mine]).astype(np.int64).view(np.uint64)
                        if wide
                        else self.column(field.name, rows[mine]).astype(np.uint32)
                    )
            events[schema.name] = EventColumns(schema.name, mine, fields)
        none = np.zeros(0, dtype=np.int64)
        return DecodedBatch(raw, CLOCK.ns(ticks), events, none, none, none, np.ones(n, dtype=np.bool_))


def _endpoints(numbers: Int64s) -> Int64s:
    return KERNEL + numbers * 0x800


def _cycle(n: int, *values: int) -> Int64s:
    return np.tile(np.array(values, dtype=np.int64), n // len(values) + 1)[:n]


def fast(n: int) -> Traffic:
    """n operations on one socket: each enters and leaves in its thread."""
    m = 2 * n
    pair = np.arange(m) // 2
    return Traffic(
        _cycle(m, 1003, 1003, 1004, 1004),
        enter_exit=_cycle(m, 0, 1),
        location=_cycle(m, 3047, 3051, 4115, 4116),
        keyword=0x16,
        tid=pair % 4 + 10,
        process=PROCESS,
        endpoint=KERNEL,
        buffer=USER + pair % 64 * 8192,
        buffer_count=1,
        buffer_length=1000,
    )


def pipelined(n: int) -> Traffic:
    """n overlapped receives on one socket, 1000 in flight, each with an ActivityId, a user address and its own buffer."""
    depth = 1000
    posts = np.arange(n)
    order = np.argsort(np.concatenate([posts * 2, posts * 2 + 2 * depth + 1]), kind="stable")
    number = np.concatenate([posts, posts])[order]
    return Traffic(
        np.full(2 * n, 1004),
        enter_exit=np.repeat([0, 1], n)[order],
        keyword=0x6,
        tid=11,
        activity=KERNEL + number % (4 * depth) * 64,
        process=PROCESS,
        endpoint=KERNEL,
        buffer=USER + number % (2 * depth) * 8192,
        buffer_count=1,
        buffer_length=4096,
    )


def identical(n: int) -> Traffic:
    """n receives on one socket, 1000 in flight, all into one buffer: every one overlaps a thousand others."""
    traffic = pipelined(n)
    traffic.fields["buffer"] = USER
    return traffic


def huge(n: int) -> Traffic:
    """As `pipelined`, with one receive over all of them that never completes."""
    traffic = pipelined(n)
    buffer, length = traffic.column("buffer", np.arange(2 * n)), np.full(2 * n, 4096)
    activity = traffic.column("activity", np.arange(2 * n)).copy()
    buffer[0], length[0], activity[0] = USER, 1 << 31, 7
    traffic.fields.update(buffer=buffer, buffer_length=length, activity=activity)
    return traffic


def datagrams(n: int) -> Traffic:
    """n datagram sends from one buffer, of 300 lengths, half of them without an exit."""
    ids = np.full(n + n // 2, 1013)
    number = np.arange(ids.size) * 2 // 3
    is_exit = np.arange(ids.size) % 3 == 2
    return Traffic(
        ids,
        enter_exit=is_exit.astype(np.int64),
        keyword=0x15,
        tid=11,
        process=PROCESS,
        endpoint=KERNEL,
        buffer=USER,
        buffer_count=1,
        buffer_length=100 + number % 300,
    )


def sockets(n: int) -> Traffic:
    """n sockets, 100 at a time: created, connected, one send, one receive, closed."""
    steps = 12
    together = 100
    number = np.arange(n)
    step = np.arange(steps)
    when = (number[:, None] // together * together * steps + step[None, :] * together + number[:, None] % together).ravel()
    order = np.argsort(when, kind="stable")
    m = steps * n
    life = np.repeat(number, steps)[order]
    return Traffic(
        _cycle(m, 1000, 1000, 1018, 1017, 1003, 1003, 1004, 1004, 1002, 1002, 1001, 1001)[order],
        enter_exit=_cycle(m, 0, 1)[order],
        keyword=0x16,
        tid=life % 50,
        process=PROCESS,
        endpoint=_endpoints(life % 20_000),
        buffer=USER + life % together * 8192,
        buffer_count=1,
        buffer_length=500,
        address_family=2,
        socket_type=1,
        protocol=6,
        process_id=PID,
    )


SHAPES: dict[str, tuple[Callable[[int], Traffic], int]] = {
    "fast": (fast, 250_000),
    "pipelined": (pipelined, 250_000),
    "identical": (identical, 250_000),
    "huge": (huge, 250_000),
    "datagrams": (datagrams, 250_000),
    "sockets": (sockets, 25_000),
}


def measure(traffic: Traffic) -> tuple[float, int]:
    """Seconds in the model, and rows."""
    header = TraceHeader(CLOCK, 8, 4, "10.0", 19045, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "", "", "", False, False, False, True)
    processes = Processes(CLOCK)
    stacks = Stacks(processes, CLOCK)
    model = Sockets(processes, stacks, CLOCK, Losses(), header)
    spent, rows = 0.0, 0
    for batch in traffic.windows():
        processes.advance(batch)
        begin = time.process_time()
        rows += sum(map(count_of, model.advance(batch).values()))
        spent += time.process_time() - begin
    begin = time.process_time()
    rows += sum(map(count_of, model.finish().values()))
    return spent + time.process_time() - begin, rows


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("shape", nargs="*", choices=[[], *SHAPES], help="all of them when left out")
    parser.add_argument("--size", type=int, help="operations or sockets at 1x")
    args = parser.parse_args(argv)
    for name in args.shape or SHAPES:
        make, size = SHAPES[name]
        first = 0.0
        for factor in (1, 2, 4):
            traffic = make((args.size or size) * factor)
            seconds, rows = measure(traffic)
            first = first or seconds
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(
                f"{name:10} {factor}x  {traffic.ids.size:>9,} records  {seconds:6.2f} s  {seconds / traffic.ids.size * 1e6:5.2f} µs each  "
                f"{seconds / first:5.2f} of 1x  {rows:>9,} rows  peak {memory} MB"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
