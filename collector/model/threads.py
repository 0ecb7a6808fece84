"""Threads that the kernel events name: their life, their user stack, their name."""

from dataclasses import dataclass
from typing import Protocol

from collector.model.process_events import numbers_of, texts_of
from collector.model.rows import Lines, rows_of, signed
from collector.schema import DecodedBatch, EventColumns

__all__ = ["Owner", "ThreadStack", "Threads"]


class Owner(Protocol):
    """Names the process instance of a kernel event."""

    def __call__(self, pid: int, seq: int, ns: int, *, is_late: bool = False, is_sight: bool = True) -> int: ...


@dataclass(frozen=True, slots=True)
class ThreadStack:
    """The user stack of a thread: addresses `low` up to `high`; times are None where the trace does not say."""

    tid: int
    low: int
    high: int
    start_ns: int | None
    end_ns: int | None


@dataclass(slots=True)
class _Thread:
    process_n: int
    tid: int
    start_ns: int | None = None
    end_ns: int | None = None
    low: int | None = None
    high: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class _Record:
    event: str
    seq: int
    ns: int
    pid: int
    tid: int
    low: int | None
    high: int | None
    name: str


_EVENTS = ("ThreadStart", "ThreadDCStart", "ThreadName", "ThreadDCEnd", "ThreadEnd")


class Threads:
    """The threads of all processes, in the order in which they were met."""

    def __init__(self) -> None:
        self._all: list[_Thread] = []
        self._open: dict[int, _Thread] = {}

    def advance(self, batch: DecodedBatch, owner: Owner) -> None:
        """Take in a window. Loops over thread events (2 µs each)."""
        records: list[_Record] = []
        for name in _EVENTS:
            columns = batch.get(name)
            if columns is not None:
                records += _records(batch, columns)
        for record in sorted(records, key=lambda record: record.seq):
            self._apply(record, owner)

    def of(self, n: int) -> list[ThreadStack]:
        """The known user stacks of a process."""
        return [
            ThreadStack(t.tid, t.low, t.high, t.start_ns, t.end_ns)
            for t in self._all
            if t.process_n == n and t.low is not None and t.high is not None
        ]

    def rows(self) -> Lines:
        """Rows of the table `thread`."""
        threads = self._all
        return rows_of(
            "thread",
            {
                "n": list(range(len(threads))),
                "process_n": [t.process_n for t in threads],
                "tid": [t.tid for t in threads],
                "start_ns": [t.start_ns for t in threads],
                "end_ns": [t.end_ns for t in threads],
                "stack_low": [signed(t.low) for t in threads],
                "stack_high": [signed(t.high) for t in threads],
                "name": [t.name for t in threads],
            },
            count=len(threads),
        )

    def _apply(self, record: _Record, owner: Owner) -> None:
        is_end = record.event in ("ThreadEnd", "ThreadDCEnd")
        n = owner(record.pid, record.seq, record.ns, is_late=record.event == "ThreadEnd", is_sight=not is_end)
        thread = self._open.get(record.tid)
        if thread is None or thread.process_n != n or record.event == "ThreadStart":
            thread = _Thread(n, record.tid)
            self._all.append(thread)
            self._open[record.tid] = thread
        if record.low is not None and record.high is not None:
            # The lower bound moves down while a stack grows.
            thread.low = record.low if thread.low is None or thread.high != record.high else min(thread.low, record.low)
            thread.high = record.high
        thread.name = record.name or thread.name
        if record.event == "ThreadStart":
            thread.start_ns = record.ns
        elif record.event == "ThreadEnd":
            thread.end_ns = record.ns
            del self._open[record.tid]


def _records(batch: DecodedBatch, columns: EventColumns) -> list[_Record]:
    number, text = numbers_of(columns), texts_of(columns)
    pids, tids, names = number("process_id"), number("thread_id"), text("thread_name")
    bases, limits = number("user_stack_base"), number("user_stack_limit")
    records = []
    for i, row in enumerate(columns.rows.tolist()):
        base, limit = bases[i] or 0, limits[i] or 0
        has_stack = base != 0 and limit != 0
        records.append(
            _Record(
                columns.name,
                batch.raw.first_seq + row,
                int(batch.ns[row]),
                pids[i] or 0,
                tids[i] or 0,
                min(base, limit) if has_stack else None,
                max(base, limit) if has_stack else None,
                names[i],
            )
        )
    return records
