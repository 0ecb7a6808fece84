"""The traces of a folder: their state, progress and what was found in them."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from app.page import ProblemLine
from collector.store.tables import CATALOG

__all__ = ["ENTRIES", "EntryRow", "became", "collected_from", "entries", "entry", "latest", "problems"]

_entry = CATALOG.tables["trace_entry"]
_problem = CATALOG.tables["catalog_problem"]


@dataclass(frozen=True, slots=True)
class EntryRow:
    """A trace in the list of traces."""

    key: str
    name: str
    label: str | None
    state: str
    size_bytes: int | None
    start_utc: str | None
    end_ns: int | None
    records: int | None
    processes: int | None
    sockets: int | None
    operations: int | None
    allocations: int | None
    events_lost: int | None
    buffers_lost: int | None
    bytes_done: int | None
    bytes_total: int | None
    message: str | None
    collected_utc: str
    problems: int
    losses: int
    findings: int
    high_findings: int
    machine: str | None


_COUNTED = ("problems", "losses", "findings", "high_findings")

ENTRIES = select(
    *(_entry.c[name] for name in EntryRow.__dataclass_fields__ if name not in _COUNTED),
    *(func.coalesce(_entry.c[name], 0).label(name) for name in _COUNTED),
)
"""The columns of `EntryRow`."""


def entries(db: Connection) -> list[EntryRow]:
    """All traces, the one collected last first."""
    found = db.execute(ENTRIES.order_by(_entry.c.collected_utc.desc(), _entry.c.key))
    return [EntryRow(**row._mapping) for row in found]


def latest(db: Connection, limit: int) -> list[EntryRow]:
    """The traces collected last."""
    found = db.execute(ENTRIES.order_by(_entry.c.collected_utc.desc(), _entry.c.key.desc()).limit(limit))
    return [EntryRow(**row._mapping) for row in found]


def entry(db: Connection, key: str) -> EntryRow | None:
    """One trace of the list."""
    found = db.execute(ENTRIES.where(_entry.c.key == key)).first()
    return EntryRow(**found._mapping) if found else None


def became(db: Connection, live_key: str) -> list[EntryRow]:
    """The traces that a trace shown under this key while its session recorded has become."""
    return [EntryRow(**row._mapping) for row in db.execute(ENTRIES.where(_entry.c.live_key == live_key).order_by(_entry.c.key))]


def collected_from(db: Connection, path: str) -> list[str]:
    """The keys of the traces that were read from this path last, the first one first."""
    return list(db.execute(select(_entry.c.key).where(_entry.c.path == path).order_by(_entry.c.collected_utc, _entry.c.key)).scalars())


def problems(db: Connection, key: str) -> list[ProblemLine]:
    """What limits a trace, as known so far while it is collected."""
    rows = db.execute(
        select(*(_problem.c[name] for name in ProblemLine.__dataclass_fields__)).where(_problem.c.key == key).order_by(_problem.c.n)
    )
    return [ProblemLine(**row._mapping) for row in rows]
