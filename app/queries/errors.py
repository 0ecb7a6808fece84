"""Failed operations, grouped: the same call on the same socket with the same answer."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Subquery, and_, func, or_, select

from app import format as fmt
from app.filters import Filter
from app.links import ProcessRef
from app.paging import Asked, Position, Sort
from app.queries.addresses import remote_filter
from app.queries.connection import connection_filters
from app.queries.grouping import Groups
from app.queries.operations import kind_filter
from app.queries.socket_groups import with_names
from app.queries.statuses import parse_status, status_condition, status_words
from app.queries.who import (
    moment_filters,
    owner_filter,
    process_columns,
    process_ref,
    process_table,
    socket_columns,
    socket_filter,
    socket_ref,
    socket_table,
)
from collector.afdcodes import STATUS_WOULD_BLOCK
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import OPERATION_KINDS, OUTCOMES, word_at

__all__ = ["FILTERS", "SORTS", "ErrorRow", "errors"]

_operation = TRACE.tables["operation"]
_p = process_table()
_failure = TRACE.tables["failure"]
_abort = TRACE.tables["abort"]
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


_owner = socket_table("remote_of")
_of_socket = select(_owner.c.remote_n).where(_owner.c.trace_id == THIS_TRACE, _owner.c.n == _operation.c.socket_n).scalar_subquery()
_remote_n = func.coalesce(_operation.c.peer_n, _of_socket)
"""The address that an operation names, else the one of its socket."""


FILTERS = (
    owner_filter(_operation.c.socket_n),
    socket_filter(_operation.c.socket_n),
    kind_filter(_operation.c.kind),
    Filter(
        "status",
        parse_status,
        lambda v: status_condition(_operation.c.status, v),
        "with status {}",
        "Status",
        show=status_words,
        hint="10054, 0xc000020d, a name",
    ),
    remote_filter(_remote_n),
    *connection_filters(_operation.c.socket_n, peer_n=_operation.c.peer_n),
    *moment_filters(_time),
)

_FAILED = (
    _operation.c.trace_id == THIS_TRACE,
    _operation.c.outcome.in_([OUTCOMES.index("failed"), OUTCOMES.index("rejected")]),
    or_(_operation.c.status.is_(None), _operation.c.status != STATUS_WOULD_BLOCK),
)
"""Would-block answers are no errors."""

SORTS = tuple(
    Sort(name, _operation.c.n, falls=name in ("count", "last_ns"))
    for name in ("count", "first_ns", "last_ns", "kind", "status", "process", "remote")
)
"""By the columns of the rows, which are sums; the columns given here are not used."""

_COLUMNS = {"count": "number", "first_ns": "earliest_ns", "last_ns": "latest_ns"}
"""What a sort of these names is by in the tables of groups; others have the name of their column."""


def errors(db: Connection, asked: Asked) -> tuple[list[ErrorRow], Position | None]:
    """One page of the groups, and where the next begins."""
    key, falls = asked.order.sort.key, asked.order.falls
    table = _groups(asked) if asked.where.items else _all_groups()
    groups = Groups(
        with_names(table).subquery("named") if key in ("process", "remote") else table,
        by=_COLUMNS.get(key, key),
        falls=falls,
        name=("socket_n", "kind", "status"),
        is_numbered=not asked.where.items and key == "count" and falls,
    )
    chosen = groups.page(db, asked)
    s, remote = socket_table("of_group"), TRACE.tables["address"].alias("remote_of_group")
    rows = db.execute(
        select(chosen, remote.c.text.label("remote_text"), s.c.closed_ns, *socket_columns(s), *process_columns(_p))
        .select_from(
            chosen.outerjoin(s, and_(s.c.trace_id == THIS_TRACE, s.c.n == chosen.c.socket_n))
            .outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == s.c.process_n))
            .outerjoin(remote, and_(remote.c.trace_id == THIS_TRACE, remote.c.n == s.c.remote_n))
        )
        .order_by(*groups.order(chosen))
    ).all()
    return [_row(db, row) for row in rows[: asked.limit]], groups.following(db, asked, rows)


def _all_groups() -> Subquery:
    """All groups of the trace, as the collector has counted them; `n` counts from the most frequent on."""
    f = _failure.c
    return (
        select(f.socket_n, f.kind, f.status, f["count"].label("number"), f.first_ns.label("earliest_ns"), f.last_ns.label("latest_ns"), f.n)
        .where(f.trace_id == THIS_TRACE)
        .subquery("groups")
    )


def _groups(asked: Asked) -> Subquery:
    """The groups of the operations that the filters leave."""
    o = _operation.c
    return (
        select(o.socket_n, o.kind, o.status, func.count().label("number"))
        .add_columns(func.min(_time).label("earliest_ns"), func.max(_time).label("latest_ns"))
        .where(*_FAILED, *asked.where.clauses())
        .group_by(o.socket_n, o.kind, o.status)
        .subquery("groups")
    )


def _row(db: Connection, row: Row[Any]) -> ErrorRow:  # Any: the columns selected above
    return ErrorRow(
        count=row.number,
        socket=socket_ref(row),
        process=process_ref(row),
        remote=row.remote_text,
        kind=word_at(OPERATION_KINDS, row.kind) or "",
        status=fmt.to_status(row.status),
        first_ns=row.earliest_ns,
        last_ns=row.latest_ns,
        per_second=fmt.per_second(row.number, row.latest_ns - row.earliest_ns),
        after_end=_after_end(db, row),
    )


def _after_end(db: Connection, row: Row[Any]) -> int:  # Any: as above
    """How many failures of a group came after the socket's close or its first abort."""
    aborted = db.execute(select(func.min(_abort.c.t_ns)).where(_abort.c.trace_id == THIS_TRACE, _abort.c.socket_n == row.socket_n)).scalar()
    ends = [ns for ns in (aborted, row.closed_ns) if ns is not None]
    if not ends or row.latest_ns <= min(ends):
        return 0
    o = _operation.c
    same = (o.socket_n == row.socket_n, o.kind == row.kind, o.status.is_not_distinct_from(row.status))
    return int(db.execute(select(func.count()).where(*_FAILED, *same, _time > min(ends))).scalar_one())
