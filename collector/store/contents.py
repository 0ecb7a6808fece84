"""What the catalog says of a trace's contents, so that all traces can be asked at once: its programs, errors and reasons of aborts.

Read from the sums of the trace's own file; each kind has a limit, and how many are left out is kept, too.
"""

import json
from dataclasses import dataclass

from sqlalchemy import Connection, Select, and_, delete, func, insert, literal, select, update

from collector.store.tables import CATALOG, THIS_TRACE, TRACE

__all__ = ["MOST_NAMES", "MOST_REASONS", "MOST_STATUSES", "Contents", "read_contents", "store_contents"]

MOST_NAMES, MOST_STATUSES, MOST_REASONS = 1_000, 200, 100
"""How many of each the catalog keeps of a trace: those with the most sockets, failures and aborts."""

_Rows = list[dict[str, object]]

_entry = CATALOG.tables["trace_entry"]
_TABLES = tuple(CATALOG.tables[name] for name in ("catalog_program", "catalog_status", "catalog_abort"))
_trace, _process, _sums, _counter = (TRACE.tables[name] for name in ("trace", "process", "process_sum", "heap_counter"))
_failure, _bind, _abort = (TRACE.tables[name] for name in ("failure", "bind_failure", "abort"))


@dataclass(frozen=True, slots=True)
class Contents:
    """Rows of the three tables without their key, and how many more there are of each."""

    machine: str | None
    programs: _Rows
    statuses: _Rows
    reasons: _Rows
    names_left_out: int
    statuses_left_out: int
    reasons_left_out: int


def read_contents(trace: Connection) -> Contents:
    """What a finished trace contains."""
    header = trace.execute(select(_trace.c.header).where(_trace.c.trace_id == THIS_TRACE)).scalar()
    programs, names_left_out = _most(trace, _PROGRAMS, MOST_NAMES)
    statuses, statuses_left_out = _most(trace, _STATUSES, MOST_STATUSES)
    reasons, reasons_left_out = _most(trace, _REASONS, MOST_REASONS)
    shape = json.loads(header) if header else {}
    machine = shape.get("machine") if isinstance(shape, dict) else None
    machine = machine if isinstance(machine, str) else None
    return Contents(machine, programs, statuses, reasons, names_left_out, statuses_left_out, reasons_left_out)


def store_contents(catalog: Connection, key: str, contents: Contents | None) -> None:
    """Put them in the place of what was known of the trace; None where its file could not be asked. The caller's transaction."""
    for table in _TABLES:
        catalog.execute(delete(table).where(table.c.key == key))
    parts = () if contents is None else zip(_TABLES, (contents.programs, contents.statuses, contents.reasons), strict=True)
    for table, rows in parts:
        if rows:
            catalog.execute(insert(table), [{"key": key} | row for row in rows])
    names = ("machine", "names_left_out", "statuses_left_out", "reasons_left_out")
    catalog.execute(update(_entry).where(_entry.c.key == key).values({name: getattr(contents, name, None) for name in names}))


def _most(trace: Connection, wanted: Select[tuple[object, ...]], most: int) -> tuple[_Rows, int]:
    """The first rows, and how many there are beyond."""
    rows = [dict(row._mapping) for row in trace.execute(wanted.limit(most))]
    if len(rows) < most:
        return rows, 0
    return rows, trace.execute(select(func.count()).select_from(wanted.order_by(None).subquery())).scalar_one() - most


def _programs() -> Select[tuple[object, ...]]:
    p, s, c = _process.c, _sums.c, _counter.c
    sockets, allocated = func.coalesce(func.sum(s.sockets), 0), func.sum(c.value)
    return (
        select(p.image.label("name"), func.count().label("processes"), sockets.label("sockets"), allocated.label("allocated"))
        .select_from(
            _process.outerjoin(_sums, and_(s.trace_id == THIS_TRACE, s.process_n == p.n)).outerjoin(
                _counter, and_(c.trace_id == THIS_TRACE, c.process_n == p.n, c.name == "bytes_allocated")
            )
        )
        .where(p.trace_id == THIS_TRACE, p.image.is_not(None))
        .group_by(p.image)
        .order_by(sockets.desc(), allocated.desc().nulls_last(), func.count().desc(), p.image)
    )


def _statuses() -> Select[tuple[object, ...]]:
    f, b = _failure.c, _bind.c
    failed = select(f.status, f["count"].label("operations"), literal(0).label("binds")).where(
        f.trace_id == THIS_TRACE, f.status.is_not(None)
    )
    both = failed.union_all(select(b.status, literal(0), literal(1)).where(b.trace_id == THIS_TRACE)).subquery("failed")
    operations, binds = func.sum(both.c.operations), func.sum(both.c.binds)
    return (
        select(both.c.status, operations.label("operations"), binds.label("binds"))
        .group_by(both.c.status)
        .order_by((operations + binds).desc(), both.c.status)
    )


def _reasons() -> Select[tuple[object, ...]]:
    a = _abort.c
    return (
        select(a.reason, func.max(a.reason_name).label("reason_name"), func.count().label("aborts"))
        .where(a.trace_id == THIS_TRACE)
        .group_by(a.reason)
        .order_by(func.count().desc(), a.reason)
    )


_PROGRAMS, _STATUSES, _REASONS = _programs(), _statuses(), _reasons()
