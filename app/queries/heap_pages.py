"""Processes with a traced heap, their heaps, their counters and what did not fit."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, and_, case, func, or_, select

from app import format as fmt
from app.format import Address
from app.links import NEAR_SHOWN, HeapLink, ProcessRef, allocation_link, heap_link
from app.queries.resolution import LEVELS
from app.queries.stack_refs import stack_hash
from app.queries.who import process_columns, process_ref, process_table
from collector.store.tables import THIS_TRACE, TRACE

__all__ = [
    "NORMAL_ANOMALY",
    "AnomalyRow",
    "CounterRow",
    "HeapProcessRow",
    "HeapRow",
    "find_heap",
    "flags_in_words",
    "heap_anomalies",
    "heap_counters",
    "heap_processes",
    "heaps_of",
    "nearest_heaps",
]

_counter = TRACE.tables["heap_counter"]
_rollup = TRACE.tables["heap_rollup"]
_heap = TRACE.tables["heap"]
_process = TRACE.tables["process"]
_anomaly = TRACE.tables["heap_anomaly"]
_allocation = TRACE.tables["allocation"]

MAX_PROCESSES = 500
MAX_ROWS = 200

# Flags of HeapCreate as the vendor's headers name them; 0x1000 and up are classes that the runtime marks itself with.
_FLAGS = {
    0x1: "without lock",
    0x2: "growable",
    0x4: "raises exceptions",
    0x8: "zeroes memory",
    0x10: "reallocates in place only",
    0x20: "checks tails",
    0x40: "checks frees",
    0x80: "does not merge on free",
    0x40000: "executable",
}


@dataclass(frozen=True, slots=True)
class HeapProcessRow:
    """A process whose heap was traced; bytes and blocks are changes since the trace began."""

    process: ProcessRef
    live_bytes: int
    live_blocks: int
    peak_bytes: int | None
    peak_ns: int | None
    allocs: int
    frees: int
    bytes_allocated: int
    bytes_freed: int
    heaps: int
    unknown_frees: int
    errors: int
    n: int


@dataclass(frozen=True, slots=True)
class HeapRow:
    """One life of a heap handle."""

    heap: str
    process: str
    handle: Address
    life: int
    flags: str | None
    created_ns: int | None
    first_ns: int
    destroyed_ns: int | None
    live_bytes: int
    live_blocks: int
    committed: int | None
    reserved: int | None
    free_space: int | None
    allocated: int | None
    n: int

    @property
    def filled_percent(self) -> int | None:
        """How much of what is committed the blocks known to the trace fill."""
        return 100 * self.live_bytes // self.committed if self.committed and self.live_bytes >= 0 else None


@dataclass(frozen=True, slots=True)
class CounterRow:
    """A counter of the heap model."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class AnomalyRow:
    """A record that did not fit the blocks known."""

    t_ns: int
    kind: str
    heap: Address | None
    address: Address | None
    allocation: str | None
    process: str
    tid: int | None
    stack: str | None


NORMAL_ANOMALY = "free_unknown"
_PROGRAM_ERRORS = ("double_free", "free_wrong_heap", "free_never_allocated", "free_after_destroy")
_ERRORS = ("double_frees", "wrong_heap_frees")


def heap_processes(db: Connection) -> list[HeapProcessRow]:
    """Processes with traced heap, those that hold the most first."""
    counters: dict[int, dict[str, int]] = {}
    for row in db.execute(select(_counter.c.process_n, _counter.c.name, _counter.c.value).where(_counter.c.trace_id == THIS_TRACE)):
        counters.setdefault(row.process_n, {})[row.name] = row.value
    heaps = dict[int, int]()
    for row in db.execute(select(_heap.c.process_n, func.count()).where(_heap.c.trace_id == THIS_TRACE).group_by(_heap.c.process_n)):
        heaps[row[0]] = row[1]
    live = _live(db, "process", select(_process.c.n).where(_process.c.trace_id == THIS_TRACE))
    numbers = sorted(set(counters) | set(heaps) | set(live))
    p = process_table()
    found = []
    for row in db.execute(select(p.c.n, *process_columns(p)).where(p.c.trace_id == THIS_TRACE, p.c.n.in_(numbers))):
        reference = process_ref(row)
        assert reference is not None
        known, held = counters.get(row.n, {}), live.get(row.n, (0, 0))
        found.append(
            HeapProcessRow(
                process=reference,
                live_bytes=held[0],
                live_blocks=held[1],
                peak_bytes=known.get("peak_bytes"),
                peak_ns=known.get("peak_ns"),
                allocs=known.get("allocs", 0),
                frees=known.get("frees", 0),
                bytes_allocated=known.get("bytes_allocated", 0),
                bytes_freed=known.get("bytes_freed", 0),
                heaps=heaps.get(row.n, 0),
                unknown_frees=known.get("unknown_frees", 0),
                errors=sum(known.get(name, 0) for name in _ERRORS),
                n=row.n,
            )
        )
    found.sort(key=lambda one: (-one.live_bytes, -(one.peak_bytes or 0), one.n))
    return found[:MAX_PROCESSES]


def _live(db: Connection, scope: str, numbers: list[int] | Select[tuple[int]]) -> dict[int, tuple[int, int]]:
    """Live bytes and blocks at the end of the trace by scope number."""
    r = _rollup.c
    mine = [r.trace_id == THIS_TRACE, r.scope == scope, r.level == LEVELS[-1], r.scope_n.in_(numbers)]
    last = select(r.scope_n, func.max(r.bucket).label("bucket")).where(*mine).group_by(r.scope_n).subquery()
    rows = db.execute(
        select(r.scope_n, r.bytes_end, r.count_end).join(last, and_(last.c.scope_n == r.scope_n, last.c.bucket == r.bucket)).where(*mine)
    )
    return {row.scope_n: (row.bytes_end, row.count_end) for row in rows}


def heaps_of(db: Connection, process_n: int, process: str) -> list[HeapRow]:
    """The heaps of a process by time, at most MAX_ROWS; `process` is its link."""
    return _heap_rows(db, process, _heap.c.process_n == process_n, limit=MAX_ROWS)


def find_heap(db: Connection, process_n: int, process: str, link: HeapLink) -> HeapRow | None:
    """The life of a heap handle that contains the link's time, without one the last."""
    h = _heap.c
    wanted = [h.process_n == process_n, h.handle == fmt.stored_address(link.handle)]
    if link.ns is not None:
        wanted += [h.first_ns <= link.ns, or_(h.destroyed_ns.is_(None), h.destroyed_ns >= link.ns)]
    rows = _heap_rows(db, process, *wanted, limit=MAX_ROWS)
    return rows[-1] if rows else None


def nearest_heaps(db: Connection, process_n: int, process: str, link: HeapLink) -> list[HeapRow]:
    """The lives of a heap handle nearest to the link's time, at most NEAR_SHOWN; where there is none, other heaps of the process."""
    rows = heaps_of(db, process_n, process)
    same = [row for row in rows if row.handle == link.handle] or rows
    return sorted(same, key=lambda row: abs(row.first_ns - (link.ns or 0)))[:NEAR_SHOWN]


def _heap_rows(db: Connection, process: str, *wanted: Any, limit: int) -> list[HeapRow]:  # Any: conditions
    h = _heap.c
    names = ("n", "handle", "life", "flags", "created_ns", "first_ns", "destroyed_ns", "committed", "reserved", "free_space", "allocated")
    rows = db.execute(
        select(*(h[name] for name in names)).where(h.trace_id == THIS_TRACE, *wanted).order_by(h.first_ns, h.n).limit(limit)
    ).all()
    live = _live(db, "heap", [row.n for row in rows])
    found = []
    for row in rows:
        handle = fmt.to_address(row.handle)
        assert handle is not None
        held = live.get(row.n, (0, 0))
        found.append(
            HeapRow(
                heap=heap_link(row.handle, row.created_ns, row.first_ns),
                process=process,
                handle=handle,
                life=row.life,
                flags=flags_in_words(row.flags),
                created_ns=row.created_ns,
                first_ns=row.first_ns,
                destroyed_ns=row.destroyed_ns,
                live_bytes=held[0],
                live_blocks=held[1],
                committed=row.committed,
                reserved=row.reserved,
                free_space=row.free_space,
                allocated=row.allocated,
                n=row.n,
            )
        )
    return found


def flags_in_words(flags: int | None) -> str | None:
    """The flags of a heap as a number and in the words of HeapCreate."""
    if flags is None:
        return None
    words = [word for bit, word in _FLAGS.items() if flags & bit]
    return f"{flags:#x}" + (f": {', '.join(words)}" if words else "")


def heap_counters(db: Connection, process_n: int) -> list[CounterRow]:
    """The counters of a process."""
    c = _counter.c
    rows = db.execute(select(c.name, c.value).where(c.trace_id == THIS_TRACE, c.process_n == process_n).order_by(c.name))
    return [CounterRow(row.name, row.value) for row in rows]


def heap_anomalies(db: Connection, process_n: int, process: str, from_ns: int, to_ns: int) -> tuple[list[AnomalyRow], dict[str, int]]:
    """Records of a process in a range that did not fit, at most MAX_ROWS, and how many there are of each kind.

    Errors of the program come first, then what lost records explain, each in time order. Frees of blocks from before the trace are
    normal and only counted.
    """
    a, b, h = _anomaly.c, _allocation, _heap
    mine = (a.trace_id == THIS_TRACE, a.process_n == process_n, a.t_ns >= from_ns, a.t_ns <= to_ns)
    kinds = db.execute(select(a.kind, func.count().label("times")).where(*mine).group_by(a.kind).order_by(func.count().desc(), a.kind))
    numbers = {row.kind: row.times for row in kinds}
    rows = db.execute(
        select(a.t_ns, a.kind, a.heap, a.address, a.tid, stack_hash(a.stack_ref).label("stack"), h.c.handle, b.c.address.label("block"))
        .add_columns(b.c.start_ns, b.c.first_ns)
        .select_from(
            _anomaly.outerjoin(b, and_(b.c.trace_id == THIS_TRACE, b.c.n == a.allocation_n)).outerjoin(
                h, and_(h.c.trace_id == THIS_TRACE, h.c.n == b.c.heap_n)
            )
        )
        .where(*mine, a.kind != NORMAL_ANOMALY)
        .order_by(case((a.kind.in_(_PROGRAM_ERRORS), 0), else_=1), a.t_ns, a.n)
        .limit(MAX_ROWS)
    ).all()
    return [
        AnomalyRow(
            t_ns=row.t_ns,
            kind=row.kind,
            heap=fmt.to_address(row.heap),
            address=fmt.to_address(row.address),
            allocation=None if row.block is None else allocation_link(row.handle or 0, row.block, row.start_ns, row.first_ns),
            process=process,
            tid=row.tid,
            stack=row.stack,
        )
        for row in rows
    ], numbers
