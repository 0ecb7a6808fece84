"""What limits the answers of a trace, in numbers."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from app.queries.operations import LOOKED_AT
from app.queries.sums import number_where
from collector.store.tables import TRACE
from collector.words import MATCHES, OUTCOMES, word_at

__all__ = ["Unmatched", "heap_doubts", "owners_unknown", "unmatched"]

_operation = TRACE.tables["operation"]
_socket = TRACE.tables["socket"]
_counter = TRACE.tables["heap_counter"]
_skipped = TRACE.tables["skipped"]


@dataclass(frozen=True, slots=True)
class Unmatched:
    """How operations were put together: numbers by matching rule, posts without a completion, completions without a post."""

    by_match: tuple[tuple[str, int], ...]
    by_outcome: tuple[tuple[str, int], ...]
    without_post: int
    left_out: tuple[tuple[str, int], ...]
    is_all: bool


def unmatched(db: Connection) -> Unmatched:
    """How operations were put together, of the first LOOKED_AT ones."""
    op = _operation.c
    first, last = db.execute(select(*(select(end(op.n)).where(op.trace_id == 1).scalar_subquery() for end in (func.min, func.max)))).one()
    some = op.n < (first or 0) + LOOKED_AT
    rows = db.execute(
        select(op.match, op.outcome, op.posted_ns.is_(None).label("no_post"), func.count())
        .where(op.trace_id == 1, some)
        .group_by(op.match, op.outcome, op.posted_ns.is_(None))
    ).all()
    matches: dict[str, int] = {}
    outcomes: dict[str, int] = {}
    without = 0
    for match, outcome, no_post, number in rows:
        name = word_at(MATCHES, match) or "no completion"
        matches[name] = matches.get(name, 0) + number
        ended = word_at(OUTCOMES, outcome) or ""
        outcomes[ended] = outcomes.get(ended, 0) + number
        without += number if no_post else 0
    left = db.execute(
        select(_skipped.c.reason, func.count()).where(_skipped.c.trace_id == 1).group_by(_skipped.c.reason).order_by(_skipped.c.reason)
    ).all()
    return Unmatched(
        by_match=tuple(sorted(matches.items())),
        by_outcome=tuple(sorted(outcomes.items())),
        without_post=without,
        left_out=tuple((reason, number) for reason, number in left),
        is_all=last is None or last < first + LOOKED_AT,
    )


def owners_unknown(db: Connection) -> tuple[int, int]:
    """Sockets whose process is unknown, and sockets whose making was not recorded."""
    s = _socket.c
    row = db.execute(
        select(func.coalesce(number_where(s.process_n.is_(None)), 0), func.coalesce(number_where(s.create_seen.is_(False)), 0)).where(
            s.trace_id == 1
        )
    ).one()
    return int(row[0]), int(row[1])


def heap_doubts(db: Connection) -> tuple[tuple[str, int], ...]:
    """Counters of the heap model over all processes; peaks are of single processes and have no sum."""
    rows = db.execute(
        select(_counter.c.name, func.sum(_counter.c.value))
        .where(_counter.c.trace_id == 1, _counter.c.name.not_in(("peak_bytes", "peak_ns")))
        .group_by(_counter.c.name)
        .order_by(_counter.c.name)
    )
    return tuple((name, int(value)) for name, value in rows)
