"""The list of traces: filtered, sorted, paged, and grouped by day, machine and program."""

import re
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, exists, func, or_, select

from app import format as fmt
from app.filters import Conditions, Filter, one_of, one_word, parse_bytes, parse_count, parse_text, yes_no
from app.keyset import AskedByName, Name, count_named, fetch_named
from app.paging import Order, Sort
from app.queries.catalog import ENTRIES, EntryRow
from app.queries.statuses import parse_status, status_condition, status_words
from collector.store.tables import CATALOG
from collector.words import FINDING_KINDS

__all__ = [
    "FILTERS",
    "GROUPINGS",
    "SORTS",
    "STATES",
    "UNKNOWN",
    "GroupRow",
    "Grouping",
    "groups_number",
    "groups_page",
    "traces_number",
    "traces_page",
    "unfinished",
]

STATES = ("collecting", "live", "complete", "interrupted")
UNKNOWN = "unknown"

_entry = CATALOG.tables["trace_entry"]
_program = CATALOG.tables["catalog_program"]
_finding, _status, _abort = (CATALOG.tables[name] for name in ("catalog_finding", "catalog_status", "catalog_abort"))
_e = _entry.c

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

Settled = dict[str, list[str]]
"""Keys of traces whose collector is gone by the state that they have in truth, for the parameters of this module's statements."""

_state = case(
    (_e.key.in_(bindparam("complete", expanding=True)), "complete"),
    (_e.key.in_(bindparam("interrupted", expanding=True)), "interrupted"),
    else_=_e.state,
)


def parse_day(text: str) -> date:
    """A day in UTC. Raises ValueError."""
    try:
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise ValueError("a day such as 2025-06-03.")


def _day_or_unknown(text: str) -> date | None:
    return None if text == UNKNOWN else parse_day(text)


def _name_or_unknown(text: str) -> str | None:
    return None if text == UNKNOWN else parse_text(text)


def _next_day(day: date) -> str:
    return (day + timedelta(days=1)).isoformat() if day < date.max else "9999-12-32"


def _of_day(day: date | None) -> ColumnElement[bool]:
    return _e.start_utc.is_(None) if day is None else and_(_e.start_utc >= day.isoformat(), _e.start_utc < _next_day(day))


def _shown(value: object) -> str:
    return UNKNOWN if value is None else str(value)


def _counted(key: str, column: ColumnElement[Any], words: str, label: str) -> Filter:  # Any: a number
    """A filter by whether there are any."""
    return Filter(
        key,
        yes_no,
        lambda v: func.coalesce(column, 0) > 0 if v else func.coalesce(column, 0) == 0,
        f"{{}} {words}",
        label,
        show=lambda v: "with" if v else "without",
        choices=(("yes", "with"), ("no", "without")),
    )


def _with_text(text: str) -> ColumnElement[bool]:
    return or_(
        _e.name.icontains(text, autoescape=True), _e.label.icontains(text, autoescape=True), _e.key.istartswith(text, autoescape=True)
    )


def _runs(name: str) -> ColumnElement[bool]:
    p = _program.c
    return exists().where(p.key == _e.key, p.name.icontains(name, autoescape=True))


def _has_finding(kind: str) -> ColumnElement[bool]:
    return exists().where(_finding.c.key == _e.key, _finding.c.kind == kind)


FILTERS = (
    Filter("text", parse_text, _with_text, "with “{}” in their name, label or key", "Name, label or key"),
    Filter(
        "state",
        one_of(STATES),
        lambda v: _state.in_(v),
        "that are {}",
        "State",
        show=" or ".join,
        choices=tuple((state, state) for state in STATES),
    ),
    Filter(
        "findings",
        one_word(("yes", "no", "high")),
        lambda v: (
            func.coalesce(_e.high_findings if v == "high" else _e.findings, 0) > 0 if v != "no" else func.coalesce(_e.findings, 0) == 0
        ),
        "{}",
        "Findings",
        show=lambda v: {"yes": "with findings", "no": "without findings", "high": "with findings of high severity"}[v],
        choices=(("yes", "with"), ("high", "with some of high severity"), ("no", "without")),
    ),
    Filter("finding", one_word(FINDING_KINDS), _has_finding, "with findings of kind {}", "Kind of finding", hint="aborted"),
    Filter(
        "status",
        parse_status,
        lambda v: exists().where(_status.c.key == _e.key, status_condition(_status.c.status, v)),
        "in which something failed with {}",
        "Error",
        show=status_words,
        hint="10054, 0xc000020d, a name",
    ),
    Filter(
        "reason", parse_count, lambda v: exists().where(_abort.c.key == _e.key, _abort.c.reason == v), "with aborts for reason {}", "Reason"
    ),
    _counted("losses", _e.losses, "lost or damaged data", "Lost or damaged data"),
    Filter("from", parse_day, lambda v: _e.start_utc >= v.isoformat(), "recorded from {} on", "Recorded from", hint="2025-06-03"),
    Filter("to", parse_day, lambda v: _e.start_utc < _next_day(v), "recorded to {}", "Recorded to", hint="2025-06-04"),
    Filter("day", _day_or_unknown, _of_day, "recorded on day {}", "Day", show=_shown, hint="2025-06-03"),
    Filter("program", parse_text, _runs, "with a process “{}”", "Program", hint="client.exe"),
    Filter(
        "machine",
        _name_or_unknown,
        lambda v: _e.machine.is_(None) if v is None else func.lower(_e.machine) == v.lower(),
        "of machine {}",
        "Machine",
        show=_shown,
    ),
    Filter("min_size", parse_bytes, lambda v: _e.size_bytes >= v, "of {} or more", "Size from", show=fmt.bytes_text, hint="10 MB"),
    Filter("max_size", parse_bytes, lambda v: _e.size_bytes <= v, "of {} or less", "Size to", show=fmt.bytes_text, hint="1 GB"),
)

SORTS = (
    Sort("collected_utc", _e.collected_utc, falls=True),
    Sort("name", func.lower(func.coalesce(_e.label, _e.name))),
    Sort("state", _state),
    Sort("start_utc", _e.start_utc, falls=True),
    *(
        Sort(name, _e[name], falls=True)
        for name in ("end_ns", "size_bytes", "records", "processes", "sockets", "operations", "allocations", "problems", "findings")
    ),
    Sort("machine", func.lower(_e.machine)),
    Sort("key", _e.key),
)


def unfinished(db: Connection) -> list[EntryRow]:
    """The traces whose entry says that a collector is at work on them."""
    return [EntryRow(**row._mapping) for row in db.execute(ENTRIES.where(_e.state.in_(("collecting", "live"))))]


def traces_page(db: Connection, asked: AskedByName, settled: Settled) -> tuple[list[EntryRow], Name | None]:
    """One page of the traces, and where the next begins."""
    found = fetch_named(db, ENTRIES, name=(_e.key,), asked=asked, values=settled)
    names = EntryRow.__dataclass_fields__
    return [EntryRow(**{name: row._mapping[name] for name in names}) for row in found.rows], found.next


def traces_number(db: Connection, asked: AskedByName, settled: Settled) -> int:
    """How many traces there are, as `count_named`."""
    return count_named(db, select(_e.key), asked, settled)


# ---------------------------------------------------------------------------------------------------- groups


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Traces that belong together. `name` is None for those of which it is unknown."""

    name: str | None
    traces: int
    with_findings: int
    with_losses: int
    size_bytes: int | None
    first_utc: str | None
    last_utc: str | None


@dataclass(frozen=True, slots=True)
class Grouping:
    """A way to group traces: what a group is called, the word between it and its traces, the filter that leaves these, and its orders,
    the usual one first."""

    title: str
    noun: tuple[str, str]
    link: str
    filter: str
    sorts: tuple[Sort, ...]


def _groups(by: str, asked: AskedByName) -> Any:  # Any: a subquery, whose columns are read by name
    name = {"day": func.substr(_e.start_utc, 1, 10), "machine": _e.machine, "program": _program.c.name}[by]
    rows = select(
        name.label("name"),
        func.count().label("traces"),
        func.sum(case((_e.findings > 0, 1), else_=0)).label("with_findings"),
        func.sum(case((_e.losses > 0, 1), else_=0)).label("with_losses"),
        func.sum(_e.size_bytes).label("size_bytes"),
        func.min(_e.start_utc).label("first_utc"),
        func.max(_e.start_utc).label("last_utc"),
    )
    if by == "program":
        used = or_(_program.c.sockets > 0, _program.c.allocated.is_not(None))
        rows = rows.select_from(_entry.join(_program, _program.c.key == _e.key)).where(used)
    return rows.where(*asked.where.clauses()).group_by(name).subquery("groups")


def _sorts(*first: str) -> tuple[Sort, ...]:
    """The orders of a grouping; the columns given here are not used, as those of the groups depend on what is asked."""
    rest = [name for name in ("name", "traces", "with_findings", "with_losses", "size_bytes", "first_utc", "last_utc") if name not in first]
    return tuple(Sort(name, _e.key, falls=name != "name" or first == ("name",)) for name in (*first, *rest))


GROUPINGS = {
    "day": Grouping("Traces by day", ("day", "days"), "with", "day", _sorts("name")),
    "machine": Grouping("Traces by machine", ("machine", "machines"), "with", "machine", _sorts("traces")),
    "program": Grouping("Traces by program", ("program", "programs"), "in", "program", _sorts("traces")),
}


def groups_page(db: Connection, by: str, asked: AskedByName, settled: Settled) -> tuple[list[GroupRow], Name | None]:
    """One page of the groups of the traces that the filters leave, and where the next begins."""
    groups = _groups(by, asked)
    order = Order(Sort(asked.order.sort.key, groups.c[asked.order.sort.key]), asked.order.falls)
    found = fetch_named(db, select(groups), name=(groups.c.name,), asked=replace(asked, where=Conditions(), order=order), values=settled)
    names = GroupRow.__dataclass_fields__
    return [GroupRow(**{name: row._mapping[name] for name in names}) for row in found.rows], found.next


def groups_number(db: Connection, by: str, asked: AskedByName, settled: Settled) -> int:
    """How many groups there are, as `count_named`."""
    return count_named(db, select(_groups(by, asked).c.name), replace(asked, where=Conditions()), settled)
