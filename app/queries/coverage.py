"""Which kinds of records a trace has: what its pages can show, and why one is empty."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from app.recording import AFD, AREAS, HEAP_PROVIDER, Area
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["Coverage", "InventoryRow", "coverage", "inventory"]

_count = TRACE.tables["event_count"]
_stack = TRACE.tables["stack"]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The numbers of records by area; 0 where this trace has none."""

    by_area: dict[str, int]

    def missing(self, names: tuple[str, ...]) -> tuple[Area, ...]:
        """The areas among some that this trace has no record of."""
        return tuple(AREAS[name] for name in names if not self.by_area[name])


@dataclass(frozen=True, slots=True)
class InventoryRow:
    """The records of one identity in the file."""

    provider_name: str | None
    provider: str
    event_id: int | None
    opcode: int | None
    version: int | None
    header_kind: str
    event_name: str | None
    count: int
    known: bool
    damaged: int
    first_ns: int | None
    last_ns: int | None


def coverage(db: Connection) -> Coverage:
    """What was recorded, counted by area."""
    rows = db.execute(
        select(func.lower(_count.c.provider), _count.c.event_id, _count.c.opcode, func.sum(_count.c.count))
        .where(_count.c.trace_id == THIS_TRACE)
        .group_by(func.lower(_count.c.provider), _count.c.event_id, _count.c.opcode)
    ).all()
    found: dict[str, int] = dict.fromkeys(AREAS, 0)
    for provider, event_id, opcode, number in rows:
        guid = provider.strip("{}")
        identity = event_id if guid == AFD else opcode if guid == HEAP_PROVIDER else None
        for area in AREAS.values():
            if area.provider == guid and (not area.ids or identity in area.ids):
                found[area.name] += number
    if not found["stacks"]:
        found["stacks"] = db.execute(
            select(func.count()).select_from(_stack.select().where(_stack.c.trace_id == THIS_TRACE).limit(1).subquery())
        ).scalar_one()
    return Coverage(found)


def inventory(db: Connection) -> list[InventoryRow]:
    """All records of the file by identity, the most frequent first."""
    columns = (_count.c[name] for name in InventoryRow.__dataclass_fields__)
    rows = db.execute(select(*columns).where(_count.c.trace_id == THIS_TRACE).order_by(_count.c.count.desc(), _count.c.n))
    return [InventoryRow(**row._mapping) for row in rows]
