"""The traces of a folder: their state, progress and what was found in them."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from app.page import ProblemLine
from collector.store.tables import CATALOG

__all__ = ["EntryRow", "became", "collected_from", "entries", "entry", "problems"]

_entry = CATALOG.tables["trace_entry"]
_problem = CATALOG.tables["catalog_problem"]
_finding = CATALOG.tables["catalog_finding"]


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


def _number_of(table: str, *, severities: tuple[str, ...] = ()) -> object:
    counted = {"problem": _problem, "finding": _finding}[table]
    statement = select(func.count()).select_from(counted).where(counted.c.key == _entry.c.key)
    if severities:
        statement = statement.where(counted.c.severity.in_(severities))
    return statement.scalar_subquery()


_ENTRIES = select(
    *(_entry.c[name] for name in EntryRow.__dataclass_fields__ if name in _entry.c),
    _number_of("problem").label("problems"),  # type: ignore[attr-defined] # a scalar subquery
    _number_of("problem", severities=("data_loss", "damage")).label("losses"),  # type: ignore[attr-defined]
    _number_of("finding").label("findings"),  # type: ignore[attr-defined]
    _number_of("finding", severities=("high",)).label("high_findings"),  # type: ignore[attr-defined]
)


def entries(db: Connection) -> list[EntryRow]:
    """All traces, the one collected last first."""
    found = db.execute(_ENTRIES.order_by(_entry.c.collected_utc.desc(), _entry.c.key))
    return [EntryRow(**row._mapping) for row in found]


def entry(db: Connection, key: str) -> EntryRow | None:
    """One trace of the list."""
    found = db.execute(_ENTRIES.where(_entry.c.key == key)).first()
    return EntryRow(**found._mapping) if found else None


def became(db: Connection, live_key: str) -> list[EntryRow]:
    """The traces that a trace shown under this key while its session recorded has become."""
    return [EntryRow(**row._mapping) for row in db.execute(_ENTRIES.where(_entry.c.live_key == live_key).order_by(_entry.c.key))]


def collected_from(db: Connection, path: str) -> list[str]:
    """The keys of the traces that were read from this path last, the first one first."""
    return list(db.execute(select(_entry.c.key).where(_entry.c.path == path).order_by(_entry.c.collected_utc, _entry.c.key)).scalars())


def problems(db: Connection, key: str) -> list[ProblemLine]:
    """What limits a trace, as known so far while it is collected."""
    rows = db.execute(
        select(*(_problem.c[name] for name in ProblemLine.__dataclass_fields__)).where(_problem.c.key == key).order_by(_problem.c.n)
    )
    return [ProblemLine(**row._mapping) for row in rows]
