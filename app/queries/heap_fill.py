"""How full a heap is: what its blocks hold against what the allocator committed for it, over time."""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from app.queries.heap_timeline import HeapScope, live_before
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["FillPoint", "fill_points"]

_gauge = TRACE.tables["heap_gauge"]


@dataclass(frozen=True, slots=True)
class FillPoint:
    """A moment: the sizes that the allocator reported last, and the blocks known to be held then, as a change since the trace began."""

    t_ns: int
    committed: int
    free_space: int | None
    held_bytes: int
    held_blocks: int

    @property
    def filled_percent(self) -> int | None:
        """How much of what is committed the known blocks fill."""
        return 100 * max(self.held_bytes, 0) // self.committed if self.committed > 0 else None


def fill_points(db: Connection, scope: HeapScope, t0: int, t1: int, *, most: int) -> list[FillPoint]:
    """At most `most` moments (2 or more) of [t0, t1], evenly apart, from the first at which the heap's size is known.

    Each costs a look at an index for the size and at the roll-ups for the blocks, whatever the size of the trace.
    """
    g = _gauge.c
    sized = (g.trace_id == THIS_TRACE, g.heap_n == scope.n, g.committed.is_not(None))
    first = db.execute(select(g.t_ns).where(*sized, g.t_ns <= t1).order_by(g.t_ns).limit(1)).scalar()
    if first is None:
        return []
    t0 = max(t0, first)
    points: list[FillPoint] = []
    for t_ns in sorted({t0 + (t1 - t0) * i // (most - 1) for i in range(most)}):
        newest = select(g.t_ns, g.committed, g.free_space).where(*sized, g.t_ns <= t_ns).order_by(g.t_ns.desc(), g.n.desc()).limit(1)
        size = db.execute(newest).one()
        points.append(FillPoint(t_ns, size.committed, size.free_space, *live_before(db, scope, t_ns + 1)))
    return points
