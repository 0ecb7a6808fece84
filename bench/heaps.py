"""How the heap model grows: time and memory per record at 1x, 2x and 4x of several shapes of traffic.

    python -m bench.heaps [SHAPE …] [--size N]

Windows are built as columns, without a file, so the numbers are those of stacks and heaps alone, with the rows that they hand on.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from collector.clock import Clock, ClockKind
from collector.events.heap import HEAP
from collector.losses import Losses
from collector.model.heaps import Heaps
from collector.model.processes import Processes
from collector.model.stacks import Stacks
from collector.raw import HeaderKind, RawEvents
from collector.schema import Column, DecodedBatch, EventColumns, Ragged

__all__ = ["main"]

Int64s = NDArray[np.int64]
CLOCK = Clock(ClockKind.QPC, 0, 10_000_000, 133_000_000_000_000_000)
WINDOW = 150_000
PID, HANDLE, BASE = 4120, 0x1A_0000, 0x2_0000_0000
TICKS_APART = 20  # half a million records a second
FRAMES = np.array([[0x7FF8_0000_0000 + 64 * s + 4096 * i for i in range(20)] for s in range(500)], dtype=np.uint64)
ALLOC, FREE, MOVE, RESIZE, STACK = range(5)


class Traffic:
    """Records in time order. `place` is a number of an address; `old` that of a move; `of` the record that a stack belongs to."""

    def __init__(self, kind: Int64s, place: Int64s, *, old: Int64s | None = None, heaps: int = 1, has_stacks: bool = False) -> None:
        if has_stacks:  # one behind every allocation
            at = np.repeat(np.arange(kind.size), np.where(kind == ALLOC, 2, 1))
            is_stack = np.concatenate([[False], at[1:] == at[:-1]])
            kind, place, old = np.where(is_stack, STACK, kind[at]), place[at], None if old is None else old[at]
        self.kind, self.place, self.heaps = kind, place, heaps
        self.old = place if old is None else old

    def windows(self) -> Iterator[DecodedBatch]:
        for begin in range(0, self.kind.size, WINDOW):
            yield self._window(np.arange(begin, min(begin + WINDOW, self.kind.size)))

    def _window(self, rows: Int64s) -> DecodedBatch:
        n, kind = rows.size, self.kind[rows]
        ticks, zeros, is_stack = rows * TICKS_APART, np.zeros(rows.size, dtype=np.int64), kind == STACK
        raw = RawEvents(
            data=np.zeros(8, dtype=np.uint8),
            providers=[HEAP],
            first_seq=int(rows[0]),
            offset=zeros,
            payload=zeros,
            payload_size=zeros.astype(np.int32),
            ticks=ticks,
            cpu=zeros.astype(np.uint16),
            pid=np.where(is_stack, -1, PID),
            tid=np.where(is_stack, -1, 11),
            kind=np.full(n, HeaderKind.SYSTEM64, dtype=np.uint8),
            pointer_size=np.full(n, 8, dtype=np.uint8),
            provider=zeros.astype(np.int32),
            event_id=zeros.astype(np.int32),
            opcode=zeros.astype(np.uint8),
            version=zeros.astype(np.int32),
            level=zeros.astype(np.uint8),
            keyword=zeros.astype(np.uint64),
            activity=zeros.astype(np.uint64),
            extended=zeros - 1,
            buffer=zeros.astype(np.int32),
            buffer_offset=zeros.astype(np.int32),
        )
        groups = {
            "HeapAlloc": kind == ALLOC,
            "HeapFree": kind == FREE,
            "HeapReAlloc": (kind == MOVE) | (kind == RESIZE),
            "StackWalk": is_stack,
        }
        events = {name: EventColumns(name, np.flatnonzero(own), self._fields(name, rows[own])) for name, own in groups.items() if own.any()}
        none = np.zeros(0, dtype=np.int64)
        return DecodedBatch(raw, CLOCK.ns(ticks), events, none, none, none, np.ones(n, dtype=np.bool_))

    def _fields(self, name: str, rows: Int64s) -> dict[str, Column]:
        place, size = self.place[rows], (self.place[rows] % 97 + 16).astype(np.uint64)
        if name == "StackWalk":
            frames = Ragged(FRAMES[place % len(FRAMES)].reshape(-1), np.arange(rows.size + 1) * FRAMES.shape[1])
            who = {"stack_process": np.full(rows.size, PID, dtype=np.uint32), "stack_thread": np.full(rows.size, 11, dtype=np.uint32)}
            return {"event_time_stamp": ((rows - 1) * TICKS_APART).astype(np.uint64), **who, "frames": frames}
        fields: dict[str, Column] = {"heap_handle": (HANDLE + place % self.heaps * 0x10_0000).astype(np.uint64)}
        address, source = (BASE + place * 128).astype(np.uint64), np.full(rows.size, 2, dtype=np.uint32)
        if name == "HeapAlloc":
            return fields | {"alloc_size": size, "alloc_address": address, "source_id": source}
        if name == "HeapFree":
            return fields | {"free_address": address, "source_id": source}
        old = (BASE + self.old[rows] * 128).astype(np.uint64)
        sizes = {"new_alloc_size": size, "old_alloc_size": size}
        return fields | {"new_alloc_address": address, "old_alloc_address": old, **sizes, "source_id": source}


def _toggle(n: int, places: int) -> tuple[Int64s, Int64s]:
    """n records on random places, each place allocated and freed in turn."""
    place = np.random.default_rng(1).integers(0, places, n)
    order = np.argsort(place, kind="stable")
    first = np.searchsorted(place[order], place[order])
    kind = np.empty(n, dtype=np.int64)
    kind[order] = (np.arange(n) - first) % 2
    return kind, place


def churn(n: int) -> Traffic:
    """n records on 200,000 addresses of four heaps, allocated and freed in turn."""
    return Traffic(*_toggle(n, 200_000), heaps=4)


def stacks(n: int) -> Traffic:
    """n records as in churn, and a stack of 20 frames for every allocation."""
    return Traffic(*_toggle(n, 200_000), heaps=4, has_stacks=True)


def fresh(n: int) -> Traffic:
    """n records; no address is ever handed out again: the most that the model must remember."""
    numbers = np.arange(n) // 2
    kind = np.tile([ALLOC, FREE], n // 2 + 1)[:n]
    return Traffic(kind, np.where(kind == FREE, np.maximum(numbers - 1000, 0), numbers))


def held(n: int) -> Traffic:
    """n allocations that nobody frees."""
    return Traffic(np.full(n, ALLOC), np.arange(n))


def moves(n: int) -> Traffic:
    """n records of moving reallocations: allocation, free and summary."""
    step, part = np.arange(n) // 3, np.arange(n) % 3
    block = step % 1000
    turn = step // 1000
    new, old = block * 2 + turn % 2, block * 2 + (turn + 1) % 2
    return Traffic(np.array([ALLOC, FREE, MOVE])[part], np.where(part == 1, old, new), old=old)


def unknown(n: int) -> Traffic:
    """n frees of blocks from before the trace."""
    return Traffic(np.full(n, FREE), np.arange(n))


def lost(n: int) -> Traffic:
    """n records, half of the frees lost: every address goes the exact way."""
    kind, place = _toggle(n * 3 // 2, 50_000)
    kept = np.random.default_rng(2).random(kind.size) < np.where(kind == FREE, 0.5, 1.0)
    return Traffic(kind[kept][:n], place[kept][:n])


SHAPES: dict[str, Callable[[int], Traffic]] = {f.__name__: f for f in (churn, stacks, fresh, held, moves, unknown, lost)}


def measure(traffic: Traffic) -> tuple[int, int, float]:
    """Heap records, rows and processor seconds of one run."""
    processes = Processes(CLOCK)
    model = Stacks(processes, CLOCK)
    heaps = Heaps(processes, model, CLOCK, Losses())
    rows, spent = 0, 0.0
    for batch in traffic.windows():
        started = time.process_time()
        processes.advance(batch)
        model.advance(batch)
        rows += sum(map(len, heaps.advance(batch).values()))
        spent += time.process_time() - started
    started = time.process_time()
    for parts in (model.finish_parts(), heaps.finish_parts()):
        rows += sum(len(own) for part in parts for own in part.values())
    return int(np.count_nonzero(traffic.kind != STACK)), rows, spent + time.process_time() - started


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", choices=[*SHAPES, []], help="all, when none is named")
    parser.add_argument("--size", type=int, default=500_000, help="records of 1x")
    arguments = parser.parse_args(argv)
    for name in arguments.shapes or SHAPES:
        for factor in (1, 2, 4):
            records, rows, seconds = measure(SHAPES[name](arguments.size * factor))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            speed = f"{seconds:6.2f} s {seconds / records * 1e6:6.2f} µs a record"
            print(f"{name:8} {records:>10,} records {rows:>10,} rows {speed} {memory:5} MB peak so far")
    return 0


if __name__ == "__main__":
    sys.exit(main())
