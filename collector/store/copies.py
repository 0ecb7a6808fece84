"""What the catalog keeps of a trace: copies of its problems and findings, which the trace's own file says as well."""

import json
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from collector.errors import StoreError
from collector.store.tables import THIS_TRACE, allocation, finding, operation, problem, process, socket, trace

__all__ = ["FindingCopy", "ProblemCopy", "read_back"]


@dataclass(frozen=True, slots=True)
class ProblemCopy:
    """A problem as the catalog keeps it, in the columns' order."""

    kind: str
    severity: str
    count: int
    first_ns: int | None
    last_ns: int | None
    place: str | None
    text: str
    effect: str | None
    advice: str | None


@dataclass(frozen=True, slots=True)
class FindingCopy:
    """A finding as the catalog keeps it."""

    kind: str
    severity: str
    count: int
    title: str
    link: str | None


def read_back(connection: Connection) -> tuple[dict[str, object], list[ProblemCopy], list[FindingCopy]]:
    """Columns of a trace's entry, with its problems and findings. Raises StoreError for a file without a trace."""
    names = (
        "name",
        "state",
        "start_utc",
        "end_ns",
        "records",
        "events_lost",
        "buffers_lost",
        "collected_utc",
        "collector_version",
        "header",
    )
    row = connection.execute(select(*(trace.c[name] for name in names)).where(trace.c.trace_id == THIS_TRACE)).first()
    if row is None:
        raise StoreError("This file holds no trace.")
    entry: dict[str, object] = dict(row._mapping)
    shape = json.loads(row.header) if entry.pop("header") else {}
    if entry["state"] == "complete":
        entry["live_key"] = shape.get("live_key")
    for column, table in (("processes", process), ("sockets", socket), ("operations", operation), ("allocations", allocation)):
        entry[column] = connection.execute(select(func.count()).select_from(table).where(table.c.trace_id == THIS_TRACE)).scalar_one()
    p, f = problem.c, finding.c
    problems = connection.execute(
        select(p.kind, p.severity, p.count, p.first_ns, p.last_ns, p.place, p.text, p.effect, p.advice)
        .where(p.trace_id == THIS_TRACE)
        .order_by(p.n)
    )
    findings = connection.execute(select(f.kind, f.severity, f.count, f.title, f.link).where(f.trace_id == THIS_TRACE).order_by(f.n))
    return entry, [ProblemCopy(*found) for found in problems], [FindingCopy(*found) for found in findings]
