"""Small sends that are followed by a wait of the length that delayed acknowledgements have."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, Subquery, and_, case, column, func, literal_column, or_, select, union

from app import format as fmt
from app.filters import Filter, parse_count, parse_duration
from app.links import ProcessRef
from app.paging import Asked, Position, Sort
from app.queries.connection import own_connection_filters
from app.queries.grouping import Groups
from app.queries.operations import kinds_of
from app.queries.socket_groups import MOST_SOCKETS, SMALL_BYTES, with_names, with_references
from app.queries.sums import number_where
from app.queries.who import (
    moment_filters,
    process_filter,
    process_ref,
    process_table,
    socket_filter,
    socket_ref,
    socket_table,
)
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import OPERATION_KINDS, OUTCOMES

__all__ = ["DELAYS_MS", "FILTERS", "LEAST", "MOST_SOCKETS", "SMALL_BYTES", "SORTS", "StallRow", "stalls"]

DELAYS_MS = ((35, 55), (180, 240))
"""Usual waits for a delayed acknowledgement: 40 ms and 200 ms, with room."""
LEAST = 3
"""How often a socket must wait so before it is listed."""

_MS = 1_000_000
_operation = TRACE.tables["operation"]
_s = socket_table()
_p = process_table()


@dataclass(frozen=True, slots=True)
class StallRow:
    """One socket whose small sends wait."""

    socket: str | None
    process: ProcessRef | None
    remote: str | None
    count: int
    small_sends: int
    lost_ns: int
    mean_ns: int
    first_ns: int
    last_ns: int


def _is_delay(ns: ColumnElement[Any]) -> ColumnElement[bool]:  # Any: an integer
    return or_(*(ns.between(low * _MS, high * _MS) for low, high in DELAYS_MS))


# Written out, not bound: SQLite sorts once for all that is asked of the same window only where it sees that it is the same.
_SEND, _ONE, _NONE = (literal_column(str(number), Integer) for number in (OPERATION_KINDS.index("send"), 1, 0))
_is_send = _operation.c.kind == _SEND
_moment = case((_is_send, _operation.c.posted_ns), else_=_operation.c.completed_ns)

_OF_GROUP = ("min_waits", "min_lost", "min_wait")
_waits: ColumnElement[Any] = column("count")
_lost: ColumnElement[Any] = column("lost_ns")
_mean: ColumnElement[Any] = column("mean_ns")

FILTERS = (
    process_filter(_s.c.process_n),
    socket_filter(_s.c.n),
    *own_connection_filters(_s),
    Filter("min_waits", parse_count, lambda v: _waits >= v, "with {} waits or more", "Waits from"),
    Filter("min_lost", parse_duration, lambda v: _lost >= v, "that lost {} or more", "Lost from", show=fmt.duration, hint="1 s"),
    Filter(
        "min_wait", parse_duration, lambda v: _mean >= v, "whose mean wait is {} or more", "Wait from", show=fmt.duration, hint="100 ms"
    ),
    *moment_filters(_moment),
)

_NAMES = ("count", "lost_ns", "mean_ns", "small_sends", "first_ns", "last_ns", "process", "remote")
_OF_SOCKET = ("process", "endpoint", "address", "port", "protocol")


def _of_socket(asked: Asked) -> list[ColumnElement[bool]]:
    """The filters that choose sockets, as conditions on these."""
    return [item.filter.sql(item.value) for item in asked.where.items if item.filter.key in _OF_SOCKET]


def _busy(asked: Asked) -> Any:  # Any: a select of socket numbers
    """The stream sockets that are looked at: those with the most sends, of those that the filters leave."""
    return (
        select(_s.c.n, _s.c.loopback_peer_n)
        .where(_s.c.trace_id == THIS_TRACE, or_(_s.c.type == 1, _s.c.type.is_(None)), _s.c.sends >= LEAST, *_of_socket(asked))
        .order_by(_s.c.sends.desc(), _s.c.n.desc())  # as the index has it: most sockets of a trace may have as many sends
        .limit(MOST_SOCKETS)
        .cte("busy")
    )


def _steps(asked: Asked) -> Any:  # Any: a subquery
    """Sends when posted and receives when completed, each with the two before it on its socket; of both ends of a local connection."""
    o = _operation.c
    busy = _busy(asked)
    looked_at = union(select(busy.c.n), select(busy.c.loopback_peer_n).where(busy.c.loopback_peer_n.is_not(None)))

    is_send = case((_is_send, _ONE), else_=_NONE)

    def before(column: Any, steps: int = 1) -> Any:  # Any: parts of SQL
        return func.lag(column, steps).over(partition_by=o.socket_n, order_by=(_moment, o.n))

    return (
        select(
            o.socket_n,
            case((_s.c.loopback_peer_n < _s.c.n, _s.c.loopback_peer_n), else_=_s.c.n).label("pair"),
            _moment.label("t"),
            is_send.label("is_send"),
            o.bytes,
            (o.completed_ns - o.posted_ns).label("took"),
            before(_moment).label("t1"),
            before(is_send).label("send1"),
            before(o.bytes).label("bytes1"),
            before(is_send, 2).label("send2"),
        )
        .select_from(_operation.join(_s, and_(_s.c.trace_id == THIS_TRACE, _s.c.n == o.socket_n)))
        .where(
            o.trace_id == THIS_TRACE,
            o.kind.in_(kinds_of("send", "recv")),
            o.outcome == OUTCOMES.index("completed"),
            _moment.is_not(None),
            o.socket_n.in_(looked_at),
            *(item.filter.sql(item.value) for item in asked.where.items if item.filter.key not in (*_OF_SOCKET, *_OF_GROUP)),
        )
        .subquery("steps")
    )


SORTS = tuple(Sort(name, _operation.c.n, falls=name not in ("first_ns", "last_ns", "process", "remote")) for name in _NAMES)
"""By the columns of the rows, which are sums; the columns given here are not used."""


def stalls(db: Connection, asked: Asked) -> tuple[list[StallRow], Position | None]:
    """One page of the sockets whose small sends wait, in the order asked for, and where the next begins."""
    key = asked.order.sort.key
    groups = Groups(
        _waiting(asked), by={"first_ns": "earliest_ns", "last_ns": "latest_ns"}.get(key, key), falls=asked.order.falls, name=("socket_n",)
    )
    chosen = groups.page(db, asked)
    rows = db.execute(with_references(chosen, _s, _p).order_by(*groups.order(chosen))).all()
    return (
        [
            StallRow(
                socket=socket_ref(row),
                process=process_ref(row),
                remote=row.remote,
                count=row._mapping["count"],  # a row has a method of this name
                small_sends=row.small_sends,
                lost_ns=row.lost_ns,
                mean_ns=int(row.mean_ns),
                first_ns=row.earliest_ns,
                last_ns=row.latest_ns,
            )
            for row in rows[: asked.limit]
        ],
        groups.following(db, asked, rows),
    )


def _waiting(asked: Asked) -> Subquery:
    """The sockets whose small sends wait, with what the waits sum up to.

    A wait is a small send that itself takes that long, or that follows another send and is answered that late: write, write, read.
    Waits that overlap, of one pattern or both, at one end of a local connection or both, are one; it belongs to where it began first.
    """
    steps = _steps(asked).c
    small = and_(steps.is_send == 1, steps.bytes.between(1, SMALL_BYTES))
    slow = and_(small, _is_delay(steps.took))
    answered = and_(
        steps.is_send == 0,
        steps.send1 == 1,
        steps.send2 == 1,
        steps.bytes1.between(1, SMALL_BYTES),
        _is_delay(steps.t - steps.t1),
    )
    waits = select(
        steps.socket_n,
        steps.pair,
        case((small, 1), else_=0).label("is_small"),
        case((slow, steps.t), (answered, steps.t1)).label("since"),
        case((slow, steps.t + steps.took), (answered, steps.t)).label("until"),
    ).subquery("waits")
    # What lies within another wait of the connection, at this end or the other, is that wait again.
    order_in_pair = (waits.c.since.nulls_last(), waits.c.until, waits.c.socket_n)
    earlier = func.max(waits.c.until).over(partition_by=waits.c.pair, order_by=order_in_pair, rows=(None, -1))
    seen = select(waits, func.coalesce(earlier, waits.c.since).label("earlier")).subquery("seen").c
    is_new = and_(seen.since.is_not(None), seen.since >= seen.earlier)
    lost = case((is_new, seen.until - seen.since), else_=0)
    sums = (
        select(
            seen.socket_n,
            number_where(is_new).label("count"),
            func.sum(seen.is_small).label("small_sends"),
            func.sum(lost).label("lost_ns"),
            (func.sum(lost) / number_where(is_new)).label("mean_ns"),
            func.min(case((is_new, seen.since))).label("earliest_ns"),
            func.max(case((is_new, seen.since))).label("latest_ns"),
        )
        .group_by(seen.socket_n)
        .having(number_where(is_new) >= LEAST)
        .subquery("sums")
    )
    of_group = [item.filter.sql(item.value) for item in asked.where.items if item.filter.key in _OF_GROUP]
    chosen = select(_s.c.n).where(_s.c.trace_id == THIS_TRACE, *_of_socket(asked))
    return with_names(sums).where(sums.c.socket_n.in_(chosen), *of_group).subquery("groups")
