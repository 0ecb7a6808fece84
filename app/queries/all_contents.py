"""What the catalog says of the contents of all traces: which of them show an error, an abort, a process, a kind of finding."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import ColumnElement, Connection, Select, func, or_, select

from app import format as fmt
from app.queries.statuses import parse_status
from app.queries.typed import statuses_in_words, typed
from collector.store.tables import CATALOG

__all__ = ["Across", "Known", "across", "not_entered"]

_MOST = 20
"""Traces that are named of each kind; the list of all of them is a link away."""
_LEAST_LETTERS = 2

_entry, _program, _status, _abort, _finding = (
    CATALOG.tables[name] for name in ("trace_entry", "catalog_program", "catalog_status", "catalog_abort", "catalog_finding")
)
_e = _entry.c


@dataclass(frozen=True, slots=True)
class Known:
    """A trace that shows something. `link` is a path below /t/KEY/ with the evidence."""

    key: str
    trace: str
    start_utc: str | None
    number: int
    more: str
    link: str


@dataclass(frozen=True, slots=True)
class Across:
    """What is shown, how many traces show it, the ones recorded last, and the list of all: the name of its page, and its filters."""

    title: str
    traces: int
    rows: tuple[Known, ...]
    route: str
    query: dict[str, str]


def not_entered(db: Connection) -> int:
    """How many traces there are whose contents are not known in the catalog."""
    return db.execute(select(func.count()).where(_e.names_left_out.is_(None), _e.state.in_(("complete", "live")))).scalar_one()


def across(db: Connection, text: str) -> list[Across]:
    """What a text may mean, and which traces show it."""
    meant = typed(text)
    found: list[Across] = []
    text = meant.text
    if not text:
        return []
    if meant.kind == "reason":
        if text.isascii() and text.isdigit() and len(text) < 10:
            found.append(_aborts(db, int(text)))
        return [one for one in found if one.traces]
    if meant.may_be("error") and (statuses := _statuses(text)):
        found.append(_errors(db, statuses, text))
    is_word = len(text) >= _LEAST_LETTERS and not text.isdigit()
    if is_word and meant.may_be("process"):
        found.append(_programs(db, text))
    if is_word and not meant.kind:
        found.append(_findings(db, text))
    return [one for one in found if one.traces]


def _statuses(text: str) -> tuple[int, ...]:
    try:
        return parse_status(text)
    except ValueError:
        return statuses_in_words(text)


def _shown(
    db: Connection,
    title: str,
    grouped: Select[Any],  # Any: a key and a number
    noun: tuple[str, str],
    link: str,
    query: dict[str, str],
    *,
    route: str = "traces",
) -> Across:
    """The traces of some groups of a table of contents by trace."""
    groups = grouped.subquery("groups")
    total = db.execute(select(func.count()).select_from(groups)).scalar_one()
    rows = db.execute(
        select(groups.c.key, groups.c.number, func.coalesce(_e.label, _e.name).label("trace"), _e.start_utc)
        .select_from(groups.join(_entry, _e.key == groups.c.key))
        .order_by(_e.start_utc.desc().nulls_last(), groups.c.key)
        .limit(_MOST)
    )
    known = tuple(Known(row.key, row.trace, row.start_utc, row.number, fmt.plural(row.number, *noun), link) for row in rows)
    return Across(title, total, known, route if query else "", query)


def _by_trace(table: Any, number: ColumnElement[Any], *conditions: ColumnElement[bool]) -> Select[Any]:  # Any: a table and a sum
    return select(table.c.key, number.label("number")).where(*conditions).group_by(table.c.key)


def _errors(db: Connection, statuses: tuple[int, ...], text: str) -> Across:
    s = _status.c
    number = func.sum(s.operations + s.binds)
    names = fmt.status(statuses[0]) if len(statuses) == 1 else f"errors “{text}”"
    # a list is filtered by a spelling of statuses; words that stand for several have none
    spelled = f"{statuses[0] & 0xFFFFFFFF:#x}" if len(statuses) == 1 else text
    query = {"status": spelled} if _is_spelling(spelled) else {}
    grouped = _by_trace(_status, number, s.status.in_(statuses))
    return _shown(db, f"Traces with {names}", grouped, ("failure", "failures"), f"errors?status={spelled}" if query else "errors", query)


def _is_spelling(text: str) -> bool:
    try:
        return bool(parse_status(text))
    except ValueError:
        return False


def _aborts(db: Connection, reason: int) -> Across:
    a = _abort.c
    grouped = _by_trace(_abort, func.sum(a.aborts), a.reason == reason)
    link = f"aborts?reason={reason}"
    return _shown(db, f"Traces with aborts for reason {reason}", grouped, ("abort", "aborts"), link, {"reason": str(reason)})


def _programs(db: Connection, text: str) -> Across:
    p = _program.c
    grouped = _by_trace(_program, func.sum(p.processes), p.name.icontains(text, autoescape=True))
    link = f"processes?{urlencode({'name': text})}"
    return _shown(db, f"Traces with a process “{text}”", grouped, ("process", "processes"), link, {"program": text})


def _findings(db: Connection, text: str) -> Across:
    f = _finding.c
    said = or_(f.title.icontains(text, autoescape=True), f.kind.icontains(text.replace(" ", "_"), autoescape=True))
    title, grouped = f"Traces with findings that say “{text}”", _by_trace(_finding, func.count(), said)
    return _shown(db, title, grouped, ("finding", "findings"), "", {"text": text}, route="all_findings")
