"""How much of everything a trace has."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from app.paging import COUNT_CEILING
from collector.store.tables import TRACE

__all__ = ["Counts", "counts"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of rows. `n` counts up from 1 in each table, so that the greatest one is the number of rows, without counting."""

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

    def last(name: str) -> int:
        table = TRACE.tables[name]
        return int(db.execute(select(func.coalesce(func.max(table.c.n), 0)).where(table.c.trace_id == 1)).scalar_one())

    socket = TRACE.tables["socket"]
    some = select(socket.c.n).where(socket.c.trace_id == 1, socket.c.listener).limit(COUNT_CEILING).subquery()
    return Counts(
        processes=last("process"),
        sockets=last("socket"),
        operations=last("operation"),
        aborts=last("abort"),
        overlaps=last("overlap"),
        io_findings=last("io_finding"),
        drops=last("drop"),
        listeners=int(db.execute(select(func.count()).select_from(some)).scalar_one()),
        polls=last("poll"),
        allocations=last("allocation"),
        stacks=last("stack"),
        skipped=last("skipped"),
        undecoded=last("raw_event"),
    )
