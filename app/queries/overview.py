"""How much of everything a trace has."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from app.paging import COUNT_CEILING
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["Counts", "counts"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of rows. `n` counts up without gaps in each table, so that its ends give the number of rows, without counting."""

    processes: int
    sockets: int
    operations: int
    aborts: int
    overlaps: int
    io_findings: int
    drops: int
    listeners: int
    polls: int
    allocations: int
    stacks: int
    skipped: int
    undecoded: int


def counts(db: Connection) -> Counts:
    """How much of everything there is; listeners are counted one by one, but there are few."""

    def rows(name: str) -> int:
        n, trace_id = TRACE.tables[name].c.n, TRACE.tables[name].c.trace_id
        ends = [select(end(n)).where(trace_id == THIS_TRACE).scalar_subquery() for end in (func.min, func.max)]  # each a search, not a scan
        first, last = db.execute(select(*ends)).one()
        return 0 if first is None else int(last - first + 1)

    socket = TRACE.tables["socket"]
    some = select(socket.c.n).where(socket.c.trace_id == THIS_TRACE, socket.c.listener).limit(COUNT_CEILING).subquery()
    return Counts(
        processes=rows("process"),
        sockets=rows("socket"),
        operations=rows("operation"),
        aborts=rows("abort"),
        overlaps=rows("overlap"),
        io_findings=rows("io_finding"),
        drops=rows("drop"),
        listeners=int(db.execute(select(func.count()).select_from(some)).scalar_one()),
        polls=rows("poll"),
        allocations=rows("allocation"),
        stacks=rows("stack"),
        skipped=rows("skipped"),
        undecoded=rows("raw_event"),
    )
