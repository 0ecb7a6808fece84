"""What one trace shows in numbers that another can be held against, from its sums: no page reads all its operations for it."""

import random
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select, true

from app.filters import Condition
from app.queries.coverage import coverage
from app.queries.heap_flame import stack_hashes
from app.queries.stacks import callers_of
from app.queries.trace import has_losses, part_stored
from app.queries.who import owner_filter, process_filter, process_table
from collector.limits import KINDS, kinds_in_words
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import HEAP_FINDINGS, IO_FINDINGS, OPERATION_KINDS, OUTCOMES

__all__ = ["PROCESS", "SAMPLE", "Held", "Side", "held_by_hash", "side_of"]

SAMPLE = 5_000
"""Operations whose latencies are read; of more, these are picked at random, the same ones each time."""
MOST_GROUPS = 200
"""Statuses, reasons and stacks that are looked at in each trace, those that count most."""
_SHARES = (50, 95, 99)

_sum, _operations = TRACE.tables["process_sum"], TRACE.tables["operation_sum"]
_failure, _bind, _abort = (TRACE.tables[name] for name in ("failure", "bind_failure", "abort"))
_allocation, _counter = TRACE.tables["allocation"], TRACE.tables["heap_counter"]
_operation, _socket = TRACE.tables["operation"], TRACE.tables["socket"]
_stack, _stacks, _finding = TRACE.tables["stack"], TRACE.tables["stack_sum"], TRACE.tables["finding"]

PROCESS = process_filter(_sum.c.process_n)
"""The filter that holds in both traces."""

Number = int | None


@dataclass(frozen=True, slots=True)
class Held:
    """What the blocks of a stack hold at the end of a trace."""

    bytes: int
    blocks: int
    callers: str


@dataclass(frozen=True, slots=True)
class Side:
    """One of two traces. Values are None where nothing of the kind was recorded or stored, or where its sums do not tell processes apart.

    `part` says what was stored of it, empty for all. What it does not have of a kind that it does, there are `absent` of: none, or,
    where only some processes, sockets or times were stored, nobody knows how many.

    `latencies` are ns by kind and by how many of 100 took no longer; `is_sampled` says that they are those of some operations.
    `findings` are how many there are by kind, with the link to the worst; `cannot_show` says that there are no records of sockets, and
    none of the heap.
    """

    totals: dict[str, Number]
    operations: dict[tuple[str, str], int] | None
    errors: dict[int, int] | None
    aborts: dict[tuple[int, str | None], int] | None
    latencies: dict[tuple[str, int], int] | None
    held: dict[str, Held] | None
    findings: dict[str, tuple[int, str | None]]
    cannot_show: tuple[bool, bool]
    processes: int
    has_losses: bool
    is_sampled: bool
    part: str
    absent: Number

    def findings_of(self, kind: str) -> Number:
        """How many findings of a kind there are; None where the records that show them are not there."""
        if kind in self.findings:
            return self.findings[kind][0]
        no_sockets, no_heap = self.cannot_show
        needs_sockets, needs_heap = kind not in HEAP_FINDINGS - IO_FINDINGS, kind in HEAP_FINDINGS
        return None if (no_sockets and needs_sockets) or (no_heap and needs_heap) else self.absent


def side_of(db: Connection, process: Condition | None) -> Side:
    """The numbers of one trace, or of those of its processes that a condition of PROCESS leaves."""
    areas = coverage(db).by_area
    part = part_stored(db)
    kinds, is_narrow = kinds_in_words(part) if part else (KINDS, False)
    has_sockets, has_transfers, has_aborts = ("sockets" in kinds and bool(areas[name]) for name in ("sockets", "transfers", "aborts"))
    has_heap = "heap" in kinds and bool(areas["heap"])
    absent = None if is_narrow else 0
    latencies, is_sampled = _latencies(db, process) if has_transfers else (None, False)
    return Side(
        totals={name: absent if number == 0 else number for name, number in _totals(db, process, has_sockets, has_heap).items()},
        operations=_by_outcome(db) if has_transfers and process is None else None,
        errors=_errors(db, process) if has_sockets else None,
        aborts=_aborts(db, process) if has_aborts else None,
        latencies=latencies,
        held=_held(db, process) if has_heap and areas["stacks"] else None,
        findings=_findings(db, process),
        cannot_show=(not has_sockets, not has_heap),
        processes=_processes(db, process),
        has_losses=has_losses(db),
        is_sampled=is_sampled,
        part=part,
        absent=absent,
    )


def _of(process: Condition | None, column: ColumnElement[Any]) -> ColumnElement[bool]:  # Any: a number of a process
    return true() if process is None else process_filter(column).sql(process.value)


def _of_socket(process: Condition | None, column: ColumnElement[Any]) -> ColumnElement[bool]:  # Any: a number of a socket
    return true() if process is None else owner_filter(column).sql(process.value)


def _processes(db: Connection, process: Condition | None) -> int:
    p = process_table().c
    return db.execute(select(func.count()).where(p.trace_id == THIS_TRACE, _of(process, p.n))).scalar_one()


_SUMMED = ("sockets", "bytes_sent", "bytes_received", "failed_binds", "open_at_end", "ports")
_SOCKETS = (*_SUMMED, "errors")
_HEAP = ("held_bytes", "held_count", "allocations", "allocated_bytes")


def _totals(db: Connection, process: Condition | None, has_sockets: bool, has_heap: bool) -> dict[str, Number]:
    of_sockets = _socket_totals(db, process) if has_sockets else dict.fromkeys(_SOCKETS)
    return of_sockets | (_heap_totals(db, process) if has_heap else dict.fromkeys(_HEAP))


def _socket_totals(db: Connection, process: Condition | None) -> dict[str, Number]:
    """Sums over sockets, and the failed operations that the page of errors lists: those of each kind, would-block answers left out."""
    sums = (func.coalesce(func.sum(_sum.c[name]), 0).label(name) for name in _SUMMED)
    found = dict(db.execute(select(*sums).where(_sum.c.trace_id == THIS_TRACE, _of(process, _sum.c.process_n))).one()._mapping)
    f = _failure.c
    failed = select(func.coalesce(func.sum(f["count"]), 0)).where(f.trace_id == THIS_TRACE, _of_socket(process, f.socket_n))
    return found | {"errors": db.execute(failed).scalar_one()}


def _heap_totals(db: Connection, process: Condition | None) -> dict[str, Number]:
    """Of all blocks, those without a stack and those from before the trace included; `allocated_bytes` as the process counts them.

    What is read lies in indexes: blocks by process, and those that are held.
    """
    a, c = _allocation.c, _counter.c
    mine = (a.trace_id == THIS_TRACE, _of(process, a.process_n))
    held, blocks = db.execute(select(func.coalesce(func.sum(a.size), 0), func.count()).where(*mine, a.end_ns.is_(None))).one()
    bytes_counted = select(func.coalesce(func.sum(c.value), 0)).where(
        c.trace_id == THIS_TRACE, c.name == "bytes_allocated", _of(process, c.process_n)
    )
    return {
        "held_bytes": held,
        "held_count": blocks,
        "allocations": db.execute(select(func.count()).select_from(_allocation).where(*mine)).scalar_one(),
        "allocated_bytes": db.execute(bytes_counted).scalar_one(),
    }


def _by_outcome(db: Connection) -> dict[tuple[str, str], int]:
    o = _operations.c
    sums = select(o.kind, o.outcome, func.sum(o["count"])).where(o.trace_id == THIS_TRACE).group_by(o.kind, o.outcome)
    rows = db.execute(sums.order_by(o.kind, o.outcome))
    return {(OPERATION_KINDS[kind], OUTCOMES[outcome]): number for kind, outcome, number in rows}


def _errors(db: Connection, process: Condition | None) -> dict[int, int]:
    """Failed operations and failed binds by status."""
    f, b = _failure.c, _bind.c
    found: dict[int, int] = {}
    number = func.sum(f["count"])
    of_operations = (
        select(f.status, number).where(f.trace_id == THIS_TRACE, f.status.is_not(None), _of_socket(process, f.socket_n)).group_by(f.status)
    )
    of_binds = select(b.status, func.count()).where(b.trace_id == THIS_TRACE, _of_socket(process, b.socket_n)).group_by(b.status)
    for wanted in (of_operations.order_by(number.desc(), f.status), of_binds.order_by(b.status)):
        for status, count in db.execute(wanted.limit(MOST_GROUPS)):
            found[status] = found.get(status, 0) + count
    return found


def _aborts(db: Connection, process: Condition | None) -> dict[tuple[int, str | None], int]:
    a = _abort.c
    rows = db.execute(
        select(a.reason, func.max(a.reason_name), func.count())
        .where(a.trace_id == THIS_TRACE, _of_socket(process, a.socket_n))
        .group_by(a.reason)
        .order_by(func.count().desc(), a.reason)
        .limit(MOST_GROUPS)
    )
    return {(reason, name): number for reason, name, number in rows}


def _latencies(db: Connection, process: Condition | None) -> tuple[dict[tuple[str, int], int], bool]:
    """Latencies of completed operations by kind, from at most SAMPLE operations; and whether there are more."""
    o = _operation.c
    first, last = (db.execute(select(end(o.n)).where(o.trace_id == THIS_TRACE)).scalar() for end in (func.min, func.max))
    if first is None or last is None:
        return {}, False
    is_sampled = last - first >= SAMPLE
    numbers = random.Random(0).sample(range(first, last + 1), SAMPLE) if is_sampled else range(first, last + 1)
    rows = db.execute(
        select(o.kind, o.completed_ns - o.posted_ns)
        .where(o.trace_id == THIS_TRACE, o.n.in_(list(numbers)), o.outcome == OUTCOMES.index("completed"), _of_socket(process, o.socket_n))
        .where(o.posted_ns.is_not(None), o.completed_ns >= o.posted_ns)
        .order_by(o.n)
    )
    took: dict[int, list[int]] = {}
    for kind, ns in rows:
        took.setdefault(kind, []).append(ns)
    found: dict[tuple[str, int], int] = {}
    for kind, times in took.items():
        times.sort()
        found |= {(OPERATION_KINDS[kind], share): times[(len(times) * share + 99) // 100 - 1] for share in _SHARES}
    return found, is_sampled


def _stacks_by(process: Condition | None) -> Select[Any]:  # Any: a stack and two sums
    s = _stacks.c
    size = func.sum(s.held_bytes)
    return (
        select(s.stack_n, size.label("bytes"), func.sum(s.held_count).label("blocks"))
        .where(s.trace_id == THIS_TRACE, _of(process, s.process_n))
        .group_by(s.stack_n)
        .order_by(size.desc(), s.stack_n)
    )


def _held(db: Connection, process: Condition | None) -> dict[str, Held]:
    """The stacks that hold the most, by their hash, which is the same in every trace."""
    return _named(db, [row for row in db.execute(_stacks_by(process).limit(MOST_GROUPS)).all() if row.blocks])


def held_by_hash(db: Connection, process: Condition | None, hashes: list[str]) -> dict[str, Held]:
    """What some stacks hold in a trace, those of which it has blocks."""
    numbers = list(db.execute(select(_stack.c.n).where(_stack.c.trace_id == THIS_TRACE, _stack.c.hash.in_(hashes))).scalars())
    return _named(db, list(db.execute(_stacks_by(process).where(_stacks.c.stack_n.in_(numbers))).all()))


def _named(db: Connection, rows: list[Any]) -> dict[str, Held]:  # Any: rows of _stacks_by
    numbers = [row.stack_n for row in rows]
    names, callers = stack_hashes(db, numbers), callers_of(db, numbers)
    return {names[row.stack_n]: Held(row.bytes, row.blocks, callers.get(row.stack_n, "")) for row in rows if row.stack_n in names}


def _findings(db: Connection, process: Condition | None) -> dict[str, tuple[int, str | None]]:
    f = _finding.c
    rows = db.execute(select(f.kind, f["count"], f.link).where(f.trace_id == THIS_TRACE, _of(process, f.process_n)).order_by(f.n))
    found: dict[str, tuple[int, str | None]] = {}
    for row in rows:
        number, link = found.get(row.kind, (0, row.link))
        found[row.kind] = (number + row._mapping["count"], link)
    return found
