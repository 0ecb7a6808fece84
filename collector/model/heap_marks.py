"""What the allocator says of a heap besides its blocks: sizes, locks, subsegments, and the address ranges of heaps."""

import json
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.clock import Clock
from collector.model.heap_lives import Life, Lives
from collector.model.heap_records import CREATED, MARK_NAMES, HeapRecords
from collector.model.processes import Processes
from collector.model.rows import Lines, Row, signed
from collector.schema import DecodedBatch

__all__ = ["HeapRanges", "Marks"]

Int64s: TypeAlias = NDArray[np.int64]

_SIZES = {"committed_space": "committed", "reserved_space": "reserved", "free_space": "free_space", "allocated_space": "allocated"}
_ADDRESSES = {"commit_address", "de_commit_address", "block", "sub_segment"}
_RANGE_EVENTS = ("HeapRangeRundown", "HeapRangeReserve", "HeapRangeRelease", "HeapRangeDestroy")


class Marks:
    """Rows of table heap_gauge, and the last known sizes of each life. Loops over records (3 µs each): they are far rarer than blocks."""

    def __init__(self, lives: Lives) -> None:
        self._lives = lives
        self._count = 0

    def advance(self, records: HeapRecords, batch: DecodedBatch) -> Lines:
        """Marks of a window; asked after its lives have begun."""
        chosen = np.flatnonzero(records.kinds >= CREATED)
        if not chosen.size:
            return []
        names = ("HeapCreate", "HeapDestroy", *MARK_NAMES)
        words = ("create", "destroy", *MARK_NAMES.values())
        rows: Lines = []
        values = {name: _values_of(records, name) for name in names if name in records.columns}
        for record in chosen.tolist():
            row, index = int(records.rows[record]), int(records.kinds[record]) - CREATED
            fields = values[names[index]][int(records.at[record])]
            life = self._lives.at(self._lives.heaps[int(records.heaps[record])], row)
            sizes = {column: fields.pop(name, None) for name, column in _SIZES.items()}
            _remember(life, sizes, fields)
            fields["tid"] = int(records.tids[record])
            told = (sizes[column] for column in ("committed", "reserved", "free_space", "allocated"))
            rows.append((self._count, life.n, int(batch.ns[row]), words[index], *told, json.dumps(fields)))
            self._count += 1
        return rows


def _values_of(records: HeapRecords, name: str) -> list[dict[str, object]]:
    """The fields of each record of one event, absent ones left out; addresses as text."""
    columns = records.columns[name]
    rows: list[dict[str, object]] = [{} for _ in range(len(columns))]
    for field in columns.fields:
        if field in ("heap_handle", "heap"):
            continue
        missing = columns.missing.get(field)
        for i, value in enumerate(columns.numbers(field).tolist()):
            if missing is None or not missing[i]:
                rows[i][field] = f"0x{value:x}" if field in _ADDRESSES else signed(value)
    return rows


def _remember(life: Life, sizes: dict[str, object], fields: dict[str, object]) -> None:
    for column, value in sizes.items():
        if isinstance(value, int):
            setattr(life, column, value)
    flags = fields.get("heap_flags")
    if life.flags is None and isinstance(flags, int):
        life.flags = flags


@dataclass(slots=True)
class _Range:
    n: int
    process: int | None
    handle: int
    lo: int
    hi: int
    from_ns: int | None


class HeapRanges:
    """Which addresses belong to which heap, from the range events of the memory group."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count = 0
        self._open: dict[tuple[int | None, int], dict[int, _Range]] = {}
        """Open ranges by (process, handle), then by their first address."""

    def advance(self, batch: DecodedBatch, processes: Processes) -> Lines:
        """Ranges closed in a window. Loops over range events (some for each heap)."""
        steps: list[tuple[int, str, int]] = sorted(
            (row, name, i) for name in _RANGE_EVENTS if (c := batch.get(name)) is not None for i, row in enumerate(c.rows.tolist())
        )
        if not steps:
            return []
        rows: Lines = []
        owners = self._owners(batch, processes, steps)
        for (row, name, i), owner in zip(steps, owners.tolist(), strict=True):
            columns, ns = batch.events[name], int(batch.ns[row])
            key = (owner if owner >= 0 else None, int(columns.numbers("heap_handle")[i]))
            if name == "HeapRangeRundown":
                pairs = columns.ragged("ranges").row(i).tolist() if "ranges" in columns.fields else []
                for lo, size in zip(pairs[::2], pairs[1::2], strict=True):
                    self._begin(key, lo, size, None)
            elif name == "HeapRangeDestroy":
                rows += [_row(r, ns) for r in self._open.pop(key, {}).values()]
            else:
                lo, size = int(columns.numbers("hr_address")[i]), int(columns.numbers("hr_size")[i])
                if name == "HeapRangeReserve":
                    self._begin(key, lo, size, ns)
                else:
                    rows += self._release(key, lo, lo + size, ns)
        return rows

    def end(self, process: int, ns: int) -> Lines:
        """Ranges of a process that ended."""
        rows: Lines = []
        for key in [key for key in self._open if key[0] == process]:
            rows += [_row(r, ns) for r in self._open.pop(key).values()]
        return rows

    def finish(self) -> Lines:
        """Ranges that are open at the end."""
        rows: Lines = [_row(r, None) for ranges in self._open.values() for r in ranges.values()]
        self._open = {}
        return rows

    def _owners(self, batch: DecodedBatch, processes: Processes, steps: list[tuple[int, str, int]]) -> Int64s:
        """Process of each event: the one that a rundown names, else that of the header."""
        at = np.array([row for row, _, _ in steps], dtype=np.int64)
        pids = batch.raw.pid[at]
        for k, (_, name, i) in enumerate(steps):
            if name == "HeapRangeRundown" and (own := int(batch.events[name].numbers("hr_pid")[i])):
                pids[k] = own
        return processes.of_pids(pids, batch, at)

    def _begin(self, key: tuple[int | None, int], lo: int, size: int, ns: int | None) -> None:
        ranges = self._open.setdefault(key, {})
        if size <= 0 or lo in ranges:
            return
        ranges[lo] = _Range(self._count, *key, lo, min(lo + size, (1 << 64) - 1), ns)
        self._count += 1

    def _release(self, key: tuple[int | None, int], lo: int, hi: int, ns: int) -> Lines:
        """Close what a release covers; what is left of a range goes on under a new row."""
        ranges = self._open.get(key, {})
        rows: Lines = []
        for touched in [r for r in ranges.values() if r.lo < hi and lo < r.hi]:
            del ranges[touched.lo]
            rows.append(_row(touched, ns))
            for left_lo, left_hi in ((touched.lo, lo), (hi, touched.hi)):
                if left_lo < left_hi:
                    self._begin(key, left_lo, left_hi - left_lo, ns)
        return rows


def _row(r: _Range, until_ns: int | None) -> Row:
    return (r.n, r.process, signed(r.handle), signed(r.lo), signed(r.hi), r.from_ns, until_ns)
