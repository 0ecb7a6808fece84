"""Failed operations, grouped: the same call on the same socket with the same answer."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, case, func, or_, select

from app import format as fmt
from app.filters import Filter, one_of
from app.links import ProcessRef
from app.paging import Asked, Sort
from app.queries.operations import words_of
from app.queries.statuses import parse_status, status_condition, status_words
from app.queries.sums import number_where
from app.queries.who import (
    moment_filters,
    process_columns,
    process_filter,
    process_ref,
    process_table,
    socket_columns,
    socket_filter,
    socket_ref,
    socket_table,
)
from collector.afdcodes import STATUS_WOULD_BLOCK
from collector.store.tables import TRACE
from collector.words import OPERATION_KINDS, OUTCOMES, word_at

__all__ = ["FILTERS", "SORTS", "ErrorRow", "errors"]

_operation = TRACE.tables["operation"]
_s = socket_table()
_p = process_table()
_time = func.coalesce(_operation.c.completed_ns, _operation.c.posted_ns)


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One group of failures. `after_end` counts those after the socket's close or its first abort."""

    count: int
    socket: str | None
    process: ProcessRef | None
    remote: str | None
    kind: str
    status: fmt.Status | None
    first_ns: int
    last_ns: int
    per_second: str | None
    after_end: int


FILTERS = (
    process_filter(_s.c.process_n),
    socket_filter(_operation.c.socket_n),
    Filter(
        "kind",
        one_of(OPERATION_KINDS),
        words_of(OPERATION_KINDS, _operation.c.kind),
        "of kind {}",
        "Kind",
        show=" or ".join,
        choices=tuple((kind, kind) for kind in OPERATION_KINDS),
    ),
    Filter(
        "status",
        parse_status,
        lambda v: status_condition(_operation.c.status, v),
        "with status {}",
        "Status",
        show=status_words,
        hint="10054, 0xc000020d, a name",
    ),
    *moment_filters(_time),
)

_count = func.count()
_ended = TRACE.tables["abort"].alias("ending")
_first_abort = select(func.min(_ended.c.t_ns)).where(_ended.c.trace_id == 1, _ended.c.socket_n == _s.c.n).scalar_subquery()

SORTS = (
    Sort("count", _count, falls=True),
    Sort("first_ns", func.min(_time)),
    Sort("last_ns", func.max(_time), falls=True),
    Sort("kind", _operation.c.kind),
    Sort("status", _operation.c.status),
    Sort("process", _p.c.image),
)


def errors(db: Connection, asked: Asked) -> tuple[list[ErrorRow], bool]:
    """The groups in the order asked for, at most as many as a page has, and whether there are more. Would-block answers are no errors."""
    remote = TRACE.tables["address"].alias("remote")
    never = 1 << 62
    closed, aborted = func.coalesce(_s.c.closed_ns, never), func.coalesce(_first_abort, never)
    ended = case((closed < aborted, closed), else_=aborted)
    order = asked.order.sort.column
    rows = db.execute(
        select(
            _count.label("number"),
            _operation.c.kind,
            _operation.c.status,
            func.min(_time).label("first_ns"),
            func.max(_time).label("last_ns"),
            number_where(_time > ended).label("after_end"),
            remote.c.text.label("remote"),
            *socket_columns(_s),
            *process_columns(_p),
        )
        .select_from(
            _operation.outerjoin(_s, and_(_s.c.trace_id == 1, _s.c.n == _operation.c.socket_n))
            .outerjoin(_p, and_(_p.c.trace_id == 1, _p.c.n == _s.c.process_n))
            .outerjoin(remote, and_(remote.c.trace_id == 1, remote.c.n == _s.c.remote_n))
        )
        .where(
            _operation.c.trace_id == 1,
            _operation.c.outcome.in_([OUTCOMES.index("failed"), OUTCOMES.index("rejected")]),
            or_(_operation.c.status.is_(None), _operation.c.status != STATUS_WOULD_BLOCK),
            *asked.where.clauses(),
        )
        .group_by(_operation.c.socket_n, _operation.c.kind, _operation.c.status)
        .order_by(order.desc() if asked.order.falls else order.asc(), func.min(_time), _operation.c.kind, _operation.c.status)
        .limit(asked.limit + 1)
    ).all()
    return [_row(row) for row in rows[: asked.limit]], len(rows) > asked.limit


def _row(row: Row[Any]) -> ErrorRow:  # Any: the columns selected above
    span = row.last_ns - row.first_ns
    return ErrorRow(
        count=row.number,
        socket=socket_ref(row),
        process=process_ref(row),
        remote=row.remote,
        kind=word_at(OPERATION_KINDS, row.kind) or "",
        status=fmt.to_status(row.status),
        first_ns=row.first_ns,
        last_ns=row.last_ns,
        per_second=f"{(row.number - 1) * 1_000_000_000 / span:.3g}" if row.number > 1 and span > 0 else None,
        after_end=row.after_end or 0,
    )
