"""The heap model fed by hand: a list of records in, rows as dicts out, in windows cut wherever a test likes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from uuid import UUID

import numpy as np

from collector.errors import Problem
from collector.losses import Losses
from collector.model.heaps import Heaps
from collector.model.processes import Processes
from collector.model.rows import Rows, unfolded
from collector.model.stacks import Stacks
from collector.schema import DecodedBatch, EventColumns, Ragged
from collector.store.tables import ROW_COLUMNS
from collector.words import END_REASONS, ORIGINS
from tests.raw_events import CLOCK, Record, raw_events

__all__ = [
    "HEAP",
    "OTHER_HEAP",
    "PID",
    "TID",
    "Ran",
    "Rec",
    "alloc",
    "create",
    "define",
    "destroy",
    "end_process",
    "free",
    "heap_record",
    "realloc",
    "run",
    "stack",
    "stack_key",
    "start_process",
]

HEAP, OTHER_HEAP = 0x1A_0000, 0x2B_0000
PID, TID = 100, 11
_PROVIDER = UUID(int=1)


@dataclass(frozen=True)
class Rec:
    """One record: event name, raw time, header ids, fields. Text fields are str, frames a tuple of addresses."""

    name: str
    ticks: int
    fields: Mapping[str, int | str | tuple[int, ...]]
    pid: int = PID
    tid: int = TID
    pointer_size: int = 8


def heap_record(name: str, ticks: int, *, heap: int = HEAP, pid: int = PID, tid: int = TID, **fields: int) -> Rec:
    return Rec(f"Heap{name}", ticks, {"heap_handle": heap, **fields}, pid, tid)


def create(ticks: int, *, heap: int = HEAP, pid: int = PID, flags: int = 2) -> Rec:
    return heap_record("Create", ticks, heap=heap, pid=pid, heap_flags=flags)


def destroy(ticks: int, *, heap: int = HEAP, pid: int = PID) -> Rec:
    return heap_record("Destroy", ticks, heap=heap, pid=pid)


def alloc(ticks: int, address: int, size: int = 64, *, heap: int = HEAP, pid: int = PID, tid: int = TID) -> Rec:
    return heap_record("Alloc", ticks, heap=heap, pid=pid, tid=tid, alloc_address=address, alloc_size=size, source_id=2)


def free(ticks: int, address: int, *, heap: int = HEAP, pid: int = PID, tid: int = TID) -> Rec:
    return heap_record("Free", ticks, heap=heap, pid=pid, tid=tid, free_address=address, source_id=2)


def realloc(ticks: int, new: int, old: int, size: int, old_size: int = 64, *, heap: int = HEAP, pid: int = PID, tid: int = TID) -> Rec:
    return heap_record(
        "ReAlloc", ticks, heap=heap, pid=pid, tid=tid, new_alloc_address=new, old_alloc_address=old, new_alloc_size=size,
        old_alloc_size=old_size, source_id=3,
    )  # fmt: skip


def end_process(ticks: int, *, pid: int = PID) -> Rec:
    return Rec("ProcessEnd", ticks, {"process_id": pid, "unique_process_key": 0xFFFF_9A0C_0000_0000 + pid}, -1, -1)


def start_process(ticks: int, *, pid: int = PID) -> Rec:
    return Rec("ProcessStart", ticks, {"process_id": pid, "unique_process_key": 0xFFFF_9A0C_0000_0000 + pid}, -1, -1)


def stack(ticks: int, of_ticks: int, frames: tuple[int, ...], *, pid: int = PID, tid: int = TID, pointer_size: int = 8) -> Rec:
    fields: dict[str, int | tuple[int, ...]] = {"event_time_stamp": of_ticks, "stack_process": pid, "stack_thread": tid, "frames": frames}
    return Rec("StackWalk", ticks, fields, -1, -1, pointer_size)


def stack_key(ticks: int, of_ticks: int, key: int, *, part: str = "User", pid: int = PID, tid: int = TID) -> Rec:
    fields = {"event_time_stamp": of_ticks, "stack_process": pid, "stack_thread": tid, "stack_key": key}
    return Rec(f"StackKey{part}", ticks, fields, -1, -1)


def define(ticks: int, key: int, frames: tuple[int, ...], *, what: str = "Delete") -> Rec:
    return Rec(f"StackKey{what}", ticks, {"stack_key": key, "frames": frames}, -1, -1)


@dataclass
class Ran:
    """What the model handed on."""

    rows: Rows = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def table(self, name: str) -> list[dict[str, Any]]:  # a column may hold anything that SQLite does
        """All rows of a table by number, as dicts."""
        rows = [dict(zip(ROW_COLUMNS[name], row, strict=True)) for row in unfolded(self.rows.get(name, []))]
        return sorted(rows, key=lambda row: tuple(row[key] for key in ("n", "ref", "stack_n", "frame", "process_n", "name") if key in row))

    def blocks(self, *columns: str) -> list[tuple[object, ...]]:
        """Allocations in the order of opening; origin and end reason as words."""
        rows = self.table("allocation")
        for row in rows:
            row["origin"] = ORIGINS[row["origin"]]
            row["end_reason"] = None if row["end_reason"] is None else END_REASONS[row["end_reason"]]
            row["owner_stack"] = self.frames(row["owner_stack_ref"])
            row["free_stack"] = self.frames(row["free_stack_ref"])
        return [tuple(row[column] for column in columns) for row in rows]

    def counters(self, process: int = 0) -> dict[str, int]:
        return {row["name"]: row["value"] for row in self.table("heap_counter") if row["process_n"] == process}

    def anomalies(self) -> list[tuple[object, ...]]:
        return [(row["kind"], row["address"], row["allocation_n"]) for row in self.table("heap_anomaly")]

    def stack_of(self, ref: int | None) -> dict[str, Any] | None:
        """The stack behind a reference."""
        numbers = {row["ref"]: row["stack_n"] for row in self.table("stack_ref")}
        if ref is None:
            return None
        return next(row for row in self.table("stack") if row["n"] == numbers[ref])

    def frames(self, ref: int | None) -> tuple[int, ...] | None:
        found = self.stack_of(ref)
        if found is None:
            return None
        return tuple(row["address"] for row in self.table("stack_frame") if row["stack_n"] == found["n"])

    def plain(self) -> dict[str, list[tuple[object, ...]]]:
        """All rows in one order, stacks as their hashes and processes as ids and first sight: what must not depend on the windows."""
        names = {row["n"]: (row["pid"], row["first_ns"]) for row in self.table("process")}
        hashes = {row["n"]: row["hash"] for row in self.table("stack")}
        stacks = {row["ref"]: hashes[row["stack_n"]] for row in self.table("stack_ref")}
        out: dict[str, list[tuple[object, ...]]] = {"stack": sorted((row["hash"], row["depth"]) for row in self.table("stack"))}
        for name in ("allocation", "resize", "heap", "heap_gauge", "heap_range", "heap_counter", "heap_anomaly"):
            rows = self.table(name)
            for row in rows:
                for column, value in row.items():
                    if column == "process_n" and value is not None:
                        row[column] = names[value]
                    elif column.endswith("stack_ref") and value is not None:
                        row[column] = stacks[value]
            out[name] = [tuple(row.values()) for row in rows]
        out["heap_counter"].sort(key=repr)
        return out


def run(records: Sequence[Rec], cuts: Iterable[int] = (), *, losses: Losses | None = None) -> Ran:
    """Put records, ordered by time, through the model; `cuts` are the numbers of records that begin a window."""
    losses = losses or Losses()
    processes = Processes(CLOCK)
    stacks = Stacks(processes, CLOCK)
    heaps = Heaps(processes, stacks, CLOCK, losses)
    ran = Ran()
    borders = sorted({0, len(records), *(cut for cut in cuts if 0 < cut < len(records))})
    for first, last in pairwise(borders):
        batch = _batch(records[first:last], first)
        for rows in (processes.advance(batch), stacks.advance(batch), heaps.advance(batch)):
            _add(ran.rows, rows)
    for rows in (processes.finish(), stacks.finish(), heaps.finish()):
        _add(ran.rows, rows)
    ran.problems = [*stacks.problems, *heaps.problems]
    return ran


def _add(rows: Rows, more: Rows) -> None:
    for table, own in more.items():
        rows.setdefault(table, []).extend(own)


def _batch(records: Sequence[Rec], first_seq: int) -> DecodedBatch:
    raw = raw_events(
        (Record(_PROVIDER, b"", ticks=r.ticks, pid=r.pid, tid=r.tid, pointer_size=r.pointer_size) for r in records), first_seq=first_seq
    )
    events = {}
    for name in dict.fromkeys(r.name for r in records):
        own = [(row, r.fields) for row, r in enumerate(records) if r.name == name]
        columns = {key: _column([fields[key] for _, fields in own]) for key in own[0][1]}
        events[name] = EventColumns(name, np.array([row for row, _ in own], dtype=np.int64), columns)
    none = np.zeros(0, dtype=np.int64)
    return DecodedBatch(raw, CLOCK.ns(raw.ticks), events, none, none, none, np.ones(len(records), dtype=np.bool_))


def _column(values: list[Any]) -> Any:
    if isinstance(values[0], str):
        return values
    if isinstance(values[0], tuple):
        starts = np.cumsum([0, *(len(v) for v in values)])
        return Ragged(np.array([x for v in values for x in v], dtype=np.uint64), starts.astype(np.int64))
    return np.array(values, dtype=np.uint64)
