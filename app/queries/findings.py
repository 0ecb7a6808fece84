"""What the program did that is worth a look."""

from dataclasses import dataclass

from sqlalchemy import Connection, and_, case, func, select

from app.links import ProcessRef
from app.queries.who import process_columns, process_ref, process_table, socket_columns, socket_ref, socket_table
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["FindingRow", "findings", "findings_by_code"]

_finding = TRACE.tables["finding"]
_p = process_table()
_s = socket_table()
_RANK = case({"high": 0, "medium": 1, "low": 2}, value=_finding.c.severity, else_=9)


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding. `link` is a path below /t/KEY/ that shows the evidence."""

    kind: str
    severity: str
    count: int
    title: str
    text: str
    certainty: str
    t_ns: int | None
    process: ProcessRef | None
    socket: str | None
    link: str | None
    code: str | None


def findings_by_code(db: Connection) -> dict[str, tuple[int, str | None]]:
    """How many findings belong to each question, and the link of the worst of them."""
    found: dict[str, tuple[int, str | None]] = {}
    rows = db.execute(
        select(_finding.c.code, _finding.c.link)
        .where(_finding.c.trace_id == THIS_TRACE, _finding.c.code.is_not(None))
        .order_by(_RANK, _finding.c.n)
    )
    for row in rows:
        number, worst = found.get(row.code, (0, None))
        found[row.code] = (number + 1, worst or row.link)
    return found


def findings(db: Connection, *, limit: int, process_n: int | None = None) -> tuple[list[FindingRow], int]:
    """The worst findings of a trace, or of one process, and how many there are."""
    conditions = [_finding.c.trace_id == THIS_TRACE]
    if process_n is not None:
        conditions.append(_finding.c.process_n == process_n)
    rows = db.execute(
        select(
            *(_finding.c[name] for name in ("kind", "severity", "count", "title", "text", "certainty", "t_ns", "link", "code")),
            *process_columns(_p),
            *socket_columns(_s),
        )
        .select_from(
            _finding.outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == _finding.c.process_n)).outerjoin(
                _s, and_(_s.c.trace_id == THIS_TRACE, _s.c.n == _finding.c.socket_n)
            )
        )
        .where(*conditions)
        .order_by(_RANK, _finding.c.n)
        .limit(limit)
    )
    number = db.execute(select(func.count()).select_from(_finding).where(*conditions)).scalar_one()
    return [
        FindingRow(
            row.kind,
            row.severity,
            row._mapping["count"],
            row.title,
            row.text,
            row.certainty,
            row.t_ns,
            process_ref(row),
            socket_ref(row),
            row.link,
            row.code,
        )
        for row in rows
    ], number
