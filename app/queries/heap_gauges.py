"""What the allocator reports about a heap over time: its sizes, few enough for a chart, and marks such as locks and validations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, or_, select

from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["MAX_EXACT", "GaugePoint", "heap_gauges", "heap_marks"]

_gauge = TRACE.tables["heap_gauge"]

MAX_EXACT = 1_000
"""Reports of a range that are all given; of more than these each stretch of the range gives its extremes."""

_STRETCHES = 250
_CHUNK = 50_000
_SIZES = ("committed", "reserved")


@dataclass(frozen=True, slots=True)
class GaugePoint:
    """Sizes of a heap as the allocator reports them."""

    t_ns: int
    what: str
    committed: int | None
    reserved: int | None
    free_space: int | None
    allocated: int | None


def heap_gauges(db: Connection, heap_n: int, from_ns: int, to_ns: int) -> list[GaugePoint]:
    """What the allocator reported about a heap in a range, in time order, and before it the sizes with which the range begins.

    Of more than MAX_EXACT reports, each of equally long stretches gives its first and last, and those with the least and the most
    committed and reserved: no peak is lost, and the chart's size does not depend on the trace's. Reads every report of the range (1 µs).
    """
    g = _gauge.c
    mine = (g.trace_id == THIS_TRACE, g.heap_n == heap_n)
    sized = or_(g.committed.is_not(None), g.reserved.is_not(None), g.allocated.is_not(None))
    query = (
        select(g.t_ns, g.what, g.committed, g.reserved, g.free_space, g.allocated)
        .where(*mine, sized, g.t_ns >= from_ns, g.t_ns <= to_ns)
        .order_by(g.t_ns, g.n)
    )
    inside: list[Sequence[Any]] = []  # Any: numbers, and the word of what was reported
    whole = True
    for chunk in _chunks(db, query):
        inside += chunk
        if len(inside) > MAX_EXACT:
            inside, whole = _extremes(inside, from_ns, to_ns), False
    found = [GaugePoint(*row) for row in (inside if whole else _extremes(inside, from_ns, to_ns))]
    before = {}
    for name in _SIZES:  # one report need not tell both
        newest = select(g.t_ns, g[name]).where(*mine, g[name].is_not(None), g.t_ns < from_ns).order_by(g.t_ns.desc(), g.n.desc()).limit(1)
        if (row := db.execute(newest).first()) is not None:
            before[name] = row
    if before:
        t_ns = max(row[0] for row in before.values())
        committed, reserved = (before[name][1] if name in before else None for name in _SIZES)
        found.insert(0, GaugePoint(t_ns, "before", committed, reserved, None, None))
    return found


def heap_marks(db: Connection, heap_n: int, from_ns: int, to_ns: int, *, limit: int) -> tuple[list[tuple[int, str]], int]:
    """Locks, validations, walks and other marks of a heap in a range: the first ones, and the number of all."""
    g = _gauge.c
    mine = (g.trace_id == THIS_TRACE, g.heap_n == heap_n, g.committed.is_(None), g.reserved.is_(None), g.t_ns >= from_ns, g.t_ns <= to_ns)
    rows = db.execute(select(g.t_ns, g.what).where(*mine).order_by(g.t_ns, g.n).limit(limit)).all()
    number = len(rows) if len(rows) < limit else db.execute(select(func.count()).where(*mine)).scalar_one()
    return [(row.t_ns, row.what) for row in rows], number


def _chunks(db: Connection, query: Any) -> Iterator[Sequence[Sequence[Any]]]:  # Any: a select, and rows of it
    result = db.execute(query)
    assert result.cursor is not None
    while rows := result.cursor.fetchmany(_CHUNK):  # straight from the driver: no names for a million rows
        yield rows
    result.close()


def _extremes(rows: list[Sequence[Any]], from_ns: int, to_ns: int) -> list[Sequence[Any]]:  # Any: as above
    """Of each stretch the rows that a step line cannot do without; what is left of some may be reduced again together with more."""
    t_ns = np.array([row[0] for row in rows], dtype=np.int64)
    width = max((to_ns - from_ns) // _STRETCHES, 1)
    stretch = (t_ns - from_ns) // width
    begins = np.flatnonzero(np.diff(stretch, prepend=stretch[0] - 1))
    chosen = [begins, np.append(begins[1:], stretch.size) - 1]
    for column in (2, 3):
        known = np.array([i for i, row in enumerate(rows) if row[column] is not None], dtype=np.int64)
        if known.size:
            sizes = np.array([rows[i][column] for i in known.tolist()], dtype=np.int64)
            order = np.lexsort((sizes, stretch[known]))
            edges = np.flatnonzero(np.diff(stretch[known][order], prepend=-1 << 62))
            chosen += [known[order[edges]], known[order[np.append(edges[1:], known.size) - 1]]]
    return [rows[i] for i in np.unique(np.concatenate(chosen)).tolist()]
