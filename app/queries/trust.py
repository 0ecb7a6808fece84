"""What limits the answers of a trace, in numbers."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from collector.store.tables import THIS_TRACE, TRACE
from collector.words import MATCHES, OUTCOMES, word_at

__all__ = ["CatalogChange", "Unmatched", "catalog_changes", "heap_doubts", "owners_unknown", "unmatched"]

_operations = TRACE.tables["operation_sum"]
_sockets = TRACE.tables["process_sum"]
_counter = TRACE.tables["heap_counter"]
_change = TRACE.tables["catalog_change"]
_skipped = TRACE.tables["skipped"]


@dataclass(frozen=True, slots=True)
class Unmatched:
    """How operations were put together: numbers by matching rule, posts without a completion, completions without a post."""

    by_match: tuple[tuple[str, int], ...]
    by_outcome: tuple[tuple[str, int], ...]
    without_post: int
    left_out: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """Something that changed the Winsock catalog. `bits` says which of the two catalogs, `entry` the entry's id."""

    t_ns: int
    what: str
    name: str | None
    bits: int | None
    installer: str | None
    entry: int | None
    pid: int | None


def catalog_changes(db: Connection, limit: int) -> list[CatalogChange]:
    """Layered providers installed, removed or disabled, and resets, in time order; they see all traffic of programs."""
    c = _change.c
    rows = db.execute(
        select(c.t_ns, c.what, c.name, c.catalog_bits, c.installer, c.entry, c.pid)
        .where(c.trace_id == THIS_TRACE)
        .order_by(c.n)
        .limit(limit)
    )
    return [CatalogChange(*row) for row in rows]


def unmatched(db: Connection) -> Unmatched:
    """How operations were put together."""
    o = _operations.c
    rows = db.execute(
        select(o.match, o.outcome, o.is_posted, func.sum(o["count"]))
        .where(o.trace_id == THIS_TRACE)
        .group_by(o.match, o.outcome, o.is_posted)
        .order_by(o.match, o.outcome, o.is_posted)
    )
    matches: dict[str, int] = {}
    outcomes: dict[str, int] = {}
    without = 0
    for match, outcome, is_posted, number in rows:
        name = word_at(MATCHES, match) or "no completion"
        matches[name] = matches.get(name, 0) + number
        ended = word_at(OUTCOMES, outcome) or ""
        outcomes[ended] = outcomes.get(ended, 0) + number
        without += 0 if is_posted else number
    left = db.execute(
        select(_skipped.c.reason, func.count())
        .where(_skipped.c.trace_id == THIS_TRACE)
        .group_by(_skipped.c.reason)
        .order_by(_skipped.c.reason)
    ).all()
    return Unmatched(
        by_match=tuple(sorted(matches.items())),
        by_outcome=tuple(sorted(outcomes.items())),
        without_post=without,
        left_out=tuple((reason, number) for reason, number in left),
    )


def owners_unknown(db: Connection) -> tuple[int, int]:
    """Sockets whose process is unknown, and sockets whose making was not recorded."""
    s = _sockets.c
    of_nobody = select(func.coalesce(func.sum(s.sockets), 0)).where(s.trace_id == THIS_TRACE, s.process_n.is_(None)).scalar_subquery()
    row = db.execute(select(of_nobody, func.coalesce(func.sum(s.not_made), 0)).where(s.trace_id == THIS_TRACE)).one()
    return int(row[0]), int(row[1])


def heap_doubts(db: Connection) -> tuple[tuple[str, int], ...]:
    """Counters of the heap model over all processes; peaks are of single processes and have no sum."""
    rows = db.execute(
        select(_counter.c.name, func.sum(_counter.c.value))
        .where(_counter.c.trace_id == THIS_TRACE, _counter.c.name.not_in(("peak_bytes", "peak_ns")))
        .group_by(_counter.c.name)
        .order_by(_counter.c.name)
    )
    return tuple((name, int(value)) for name, value in rows)
