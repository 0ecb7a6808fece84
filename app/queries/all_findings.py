"""The findings of all traces, from the copies in the catalog: which there are, and in how many traces each kind occurs."""

from dataclasses import dataclass

from sqlalchemy import Connection, case, func, or_, select

from app.filters import Filter, one_of, parse_text
from app.keyset import AskedByName, Name, count_named, fetch_named
from app.paging import Sort
from app.queries.traces import FILTERS as OF_TRACES
from app.queries.traces import UNKNOWN
from collector.store.tables import CATALOG
from collector.words import FINDING_KINDS

__all__ = ["FILTERS", "SEVERITIES", "SORTS", "FoundRow", "KindRow", "findings_number", "findings_page", "kinds"]

SEVERITIES = ("high", "medium", "low")

_entry = CATALOG.tables["trace_entry"]
_finding = CATALOG.tables["catalog_finding"]
_e, _f = _entry.c, _finding.c
_rank = case({word: place for place, word in enumerate(SEVERITIES)}, value=_f.severity, else_=9)
_trace = func.coalesce(_e.label, _e.name)


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A finding of some trace. `link` is a path below /t/KEY/ that shows the evidence."""

    severity: str
    title: str
    kind: str
    count: int
    trace: str
    key: str
    start_utc: str | None
    link: str | None


@dataclass(frozen=True, slots=True)
class KindRow:
    """A kind of finding: in how many traces it occurs, how many findings of it there are, and the worst severity among them."""

    kind: str
    traces: int
    findings: int
    severity: str
    last_utc: str | None


FILTERS = (
    Filter("kind", one_of(FINDING_KINDS), lambda v: _f.kind.in_(v), "of kind {}", "Kind", show=" or ".join, hint="aborted"),
    Filter(
        "severity",
        one_of(SEVERITIES),
        lambda v: _f.severity.in_(v),
        "of severity {}",
        "Severity",
        show=" or ".join,
        choices=tuple((word, word) for word in SEVERITIES),
    ),
    Filter(
        "text",
        parse_text,
        lambda v: or_(_f.title.icontains(v, autoescape=True), _f.kind.icontains(v.replace(" ", "_"), autoescape=True)),
        "that say “{}”",
        "Text",
    ),
    Filter(
        "trace",
        parse_text,
        lambda v: or_(
            _e.name.icontains(v, autoescape=True), _e.label.icontains(v, autoescape=True), _e.key.istartswith(v, autoescape=True)
        ),
        "in traces with “{}” in their name, label or key",
        "Name, label or key of the trace",
    ),
    *(one for one in OF_TRACES if one.key in ("from", "to", "day", "machine")),
)

SORTS = (
    Sort("severity", _rank),
    Sort("kind", _f.kind),
    Sort("title", _f.title),
    Sort("count", _f["count"], falls=True),
    Sort("trace", func.lower(_trace)),
    Sort("start_utc", _e.start_utc, falls=True),
)

_NAME = (_f.key, _f.n)
_FROM = _finding.join(_entry, _e.key == _f.key)
_ROWS = select(_f.severity, _f.title, _f.kind, _f["count"], _trace.label("trace"), _f.key, _e.start_utc, _f.link).select_from(_FROM)


def findings_page(db: Connection, asked: AskedByName) -> tuple[list[FoundRow], Name | None]:
    """One page of the findings, and where the next begins."""
    found = fetch_named(db, _ROWS, name=_NAME, asked=asked)
    names = FoundRow.__dataclass_fields__
    return [FoundRow(**{name: row._mapping[name] for name in names}) for row in found.rows], found.next


def findings_number(db: Connection, asked: AskedByName) -> int:
    """How many findings there are, as `count_named`."""
    return count_named(db, select(_f.n).select_from(_FROM), asked)


def kinds(db: Connection, asked: AskedByName) -> list[KindRow]:
    """The kinds of the findings that all filters but the one by kind leave; that of most traces first."""
    clauses = [item.filter.sql(item.value) for item in asked.where.items if item.filter.key != "kind"]
    traces = func.count(_f.key.distinct())
    rows = db.execute(
        select(_f.kind, traces, func.count(), func.min(_rank), func.max(_e.start_utc))
        .select_from(_FROM)
        .where(*clauses)
        .group_by(_f.kind)
        .order_by(traces.desc(), _f.kind)
    )
    return [
        KindRow(kind, number, found, SEVERITIES[rank] if rank < len(SEVERITIES) else UNKNOWN, last)
        for kind, number, found, rank, last in rows
    ]
