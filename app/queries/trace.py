"""The trace itself: its one row, its problems and its findings."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, case, func, or_, select

from app.page import ProblemLine, TraceHead
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["TraceRow", "has_losses", "head", "part_stored", "problems", "start_utc", "trace_row"]

_trace = TRACE.tables["trace"]
_problem = TRACE.tables["problem"]

LOSSES = ("data_loss", "damage")
_WORST_FIRST = {"data_loss": 0, "damage": 1, "limit": 2, "note": 3}


@dataclass(frozen=True, slots=True)
class TraceRow:
    """What was recorded, and how."""

    key: str
    name: str
    state: str
    start_utc: str | None
    end_ns: int | None
    clock: str
    ticks_per_second: int
    pointer_size: int
    processors: int | None
    os_build: str | None
    records: int
    events_lost: int | None
    buffers_lost: int | None
    collected_utc: str
    collector_version: str


def trace_row(db: Connection) -> TraceRow | None:
    """The trace of a file."""
    found = db.execute(select(*(_trace.c[name] for name in TraceRow.__dataclass_fields__)).where(_trace.c.trace_id == THIS_TRACE)).first()
    return TraceRow(**found._mapping) if found else None


def start_utc(db: Connection) -> str | None:
    """When the trace began, as stored; None where it does not say."""
    return db.execute(select(_trace.c.start_utc).where(_trace.c.trace_id == THIS_TRACE)).scalar()


def problems(db: Connection) -> list[ProblemLine]:
    """What limits the answers, worst first."""
    rank = case(_WORST_FIRST, value=_problem.c.severity, else_=9)
    columns = (_problem.c[name] for name in ProblemLine.__dataclass_fields__)
    rows = db.execute(select(*columns).where(_problem.c.trace_id == THIS_TRACE).order_by(rank, _problem.c.n))
    return [ProblemLine(**row._mapping) for row in rows]


def has_losses(db: Connection) -> bool:
    """Whether records were lost or damaged anywhere in the trace."""
    found = select(_problem.c.n).where(_problem.c.trace_id == THIS_TRACE, _problem.c.severity.in_(LOSSES)).limit(1)
    return db.execute(found).first() is not None


def part_stored(db: Connection) -> str:
    """Which part of the trace was stored, as `Limits.words`; empty for all of it."""
    texts = db.execute(
        select(_problem.c.text).where(_problem.c.trace_id == THIS_TRACE, _problem.c.kind == "stored_in_part").order_by(_problem.c.n)
    )
    return ", ".join(text.partition(": ")[2].removesuffix(".") for text in texts.scalars())


def head(db: Connection, from_ns: int | None, to_ns: int | None) -> TraceHead | None:
    """What each page says about its trace; losses that touch the range, those without a time always."""
    row = db.execute(
        select(_trace.c.key, _trace.c.name, _trace.c.state, _trace.c.start_utc, _trace.c.end_ns).where(_trace.c.trace_id == THIS_TRACE)
    ).first()
    if row is None:
        return None
    touching: list[ColumnElement[bool]] = [_problem.c.severity.in_(LOSSES)]
    if from_ns is not None:
        touching.append(or_(_problem.c.last_ns.is_(None), _problem.c.last_ns >= from_ns))
    if to_ns is not None:
        touching.append(or_(_problem.c.first_ns.is_(None), _problem.c.first_ns <= to_ns))
    columns = [_problem.c[name] for name in ProblemLine.__dataclass_fields__]
    rank = case(_WORST_FIRST, value=_problem.c.severity, else_=9)
    losses = db.execute(select(*columns).where(_problem.c.trace_id == THIS_TRACE, and_(*touching)).order_by(rank, _problem.c.n).limit(20))
    number = db.execute(select(func.count()).select_from(_problem).where(_problem.c.trace_id == THIS_TRACE)).scalar_one()
    return TraceHead(**row._mapping, losses=tuple(ProblemLine(**loss._mapping) for loss in losses), problems=number)
