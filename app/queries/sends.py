"""The way of sends: by socket how large they are, how far apart, how long they take and how many wait at once; by size and by latency."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Row,
    Subquery,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
    true,
    union_all,
)

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
from collector.afdcodes import SO_SNDBUF
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import OUTCOMES

__all__ = ["FILTERS", "LATENCY_CLASSES", "MOST_SOCKETS", "SIZE_CLASSES", "SMALL_BYTES", "SORTS", "ClassRow", "SendsRow", "classes", "sends"]

SIZE_CLASSES = (0, 1, 101, SMALL_BYTES + 1, 16_385, 65_537, 1 << 20)
"""Where the classes of sizes begin, in bytes."""
LATENCY_CLASSES = (0, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
"""Where the classes of latencies begin, in ns."""

_BACKLOG = 3007
_operation = TRACE.tables["operation"]
_event = TRACE.tables["socket_event"]
_option = TRACE.tables["option"]
_s = socket_table()
_p = process_table()


@dataclass(frozen=True, slots=True)
class SendsRow:
    """The sends of one socket.

    A gap is the time from one post to the next. `most_in_flight` counts sends posted and not yet completed, `send_buffer_bytes` is
    SO_SNDBUF as it was set last, `backlog_bytes` the most that the transport said it holds back; None where that was not recorded.
    """

    socket: str | None
    process: ProcessRef | None
    remote: str | None
    sends: int
    bytes: int
    mean_bytes: int
    small_sends: int
    mean_gap_ns: int | None
    mean_latency_ns: int | None
    latency_ns: int | None
    most_in_flight: int
    send_buffer_bytes: int | None
    backlog_bytes: int | None
    first_ns: int
    last_ns: int


@dataclass(frozen=True, slots=True)
class ClassRow:
    """Sends of a class: from `low` to below `high` (None: no end) in bytes or ns."""

    low: int
    high: int | None
    sends: int
    bytes: int


_slowest: ColumnElement[Any] = literal_column("sums.latency_ns")
_number: ColumnElement[Any] = literal_column("sums.sends")
_OF_SOCKET = ("process", "endpoint", "address", "port", "protocol")
_OF_GROUP = ("min_sends", "min_latency")

FILTERS = (
    process_filter(_s.c.process_n),
    socket_filter(_s.c.n),
    *own_connection_filters(_s),
    Filter("min_sends", parse_count, lambda v: _number >= v, "with {} sends or more", "Sends from"),
    Filter(
        "min_latency",
        parse_duration,
        lambda v: _slowest >= v,
        "whose slowest send took {} or longer",
        "Slowest from",
        show=fmt.duration,
        hint="200 ms",
    ),
    *moment_filters(_operation.c.posted_ns),
)

SORTS = tuple(
    Sort(name, _operation.c.n, falls=name not in ("first_ns", "process", "remote"))
    for name in (
        "latency_ns", "sends", "bytes", "mean_bytes", "small_sends", "mean_gap_ns", "mean_latency_ns", "process", "remote", "first_ns",
        "last_ns",
    )
)  # fmt: skip
"""By the columns of the rows, which are sums; the columns given here are not used."""


def _of(asked: Asked, keys: tuple[str, ...]) -> list[ColumnElement[bool]]:
    return [item.filter.sql(item.value) for item in asked.where.items if item.filter.key in keys]


def _sent(asked: Asked) -> Subquery:
    """The completed sends that are looked at, with the time since the one before on their socket."""
    o = _operation.c
    busy = (
        select(_s.c.n)
        .where(_s.c.trace_id == THIS_TRACE, _s.c.sends > 0, *_of(asked, _OF_SOCKET))
        .order_by(_s.c.sends.desc(), _s.c.n.desc())  # as the index has it
        .limit(MOST_SOCKETS)
    )
    return (
        select(o.socket_n, o.n, o.bytes, o.posted_ns, o.completed_ns, (o.completed_ns - o.posted_ns).label("took"))
        .add_columns((o.posted_ns - func.lag(o.posted_ns).over(partition_by=o.socket_n, order_by=(o.posted_ns, o.n))).label("gap"))
        .where(
            o.trace_id == THIS_TRACE,
            o.kind.in_(kinds_of("send", "sendto", "sendmsg")),
            o.outcome.in_([OUTCOMES.index("completed"), OUTCOMES.index("sent")]),
            o.posted_ns.is_not(None),
            o.socket_n.in_(busy),
            *_of(asked, ("from", "to")),
        )
        .subquery("sent")
    )


def sends(db: Connection, asked: Asked) -> tuple[list[SendsRow], Position | None]:
    """One page of the sockets by their sends, and where the next begins."""
    key = asked.order.sort.key
    groups = Groups(
        _summed(asked), by={"first_ns": "earliest_ns", "last_ns": "latest_ns"}.get(key, key), falls=asked.order.falls, name=("socket_n",)
    )
    chosen = groups.page(db, asked)
    rows = db.execute(with_references(chosen, _s, _p).order_by(*groups.order(chosen))).all()
    shown = rows[: asked.limit]
    numbers = [row.socket_n for row in shown]
    at_once, buffers, backlogs = _at_once(db, asked, numbers), _buffers(db, numbers), _backlogs(db, numbers)
    return [_row(row, at_once, buffers, backlogs) for row in shown], groups.following(db, asked, rows)


def _row(row: Row[Any], at_once: dict[int, int], buffers: dict[int, int], backlogs: dict[int, int]) -> SendsRow:  # Any: columns of _summed
    return SendsRow(
        socket=socket_ref(row),
        process=process_ref(row),
        remote=row.remote,
        sends=row.sends,
        bytes=row.bytes,
        mean_bytes=row.mean_bytes,
        small_sends=row.small_sends,
        mean_gap_ns=row.mean_gap_ns,
        mean_latency_ns=row.mean_latency_ns,
        latency_ns=row.latency_ns,
        most_in_flight=at_once.get(row.socket_n, 0),
        send_buffer_bytes=buffers.get(row.socket_n),
        backlog_bytes=backlogs.get(row.socket_n),
        first_ns=row.earliest_ns,
        last_ns=row.latest_ns,
    )


def _summed(asked: Asked) -> Subquery:
    """The sends by socket, with what the process and the peer are called."""
    sent = _sent(asked).c
    sums = (
        select(sent.socket_n, func.count().label("sends"), func.sum(sent.bytes).label("bytes"))
        .add_columns(_whole(func.avg(sent.bytes)).label("mean_bytes"))
        .add_columns(number_where(sent.bytes.between(1, SMALL_BYTES)).label("small_sends"))
        .add_columns(_whole(func.avg(sent.gap)).label("mean_gap_ns"), _whole(func.avg(sent.took)).label("mean_latency_ns"))
        .add_columns(func.max(sent.took).label("latency_ns"))
        .add_columns(func.min(sent.posted_ns).label("earliest_ns"), func.max(sent.posted_ns).label("latest_ns"))
        .group_by(sent.socket_n)
        .subquery("sums")
    )
    return with_names(sums).where(*_of(asked, _OF_GROUP)).subquery("groups")


def _whole(value: ColumnElement[Any]) -> ColumnElement[int]:  # Any: a mean
    return cast(value, Integer)


def _at_once(db: Connection, asked: Asked, sockets: Sequence[int]) -> dict[int, int]:
    """The most sends of each socket that were posted and not completed."""
    sent = _sent(asked)
    steps = union_all(
        select(sent.c.socket_n, sent.c.posted_ns.label("t"), literal(1).label("step")).where(sent.c.completed_ns.is_not(None)),
        select(sent.c.socket_n, sent.c.completed_ns.label("t"), literal(-1).label("step")).where(sent.c.completed_ns.is_not(None)),
    ).subquery("steps")
    running = func.sum(steps.c.step).over(partition_by=steps.c.socket_n, order_by=(steps.c.t, steps.c.step))
    level = select(steps.c.socket_n, running.label("level")).where(steps.c.socket_n.in_(sockets)).subquery("level")
    return {row[0]: row[1] for row in db.execute(select(level.c.socket_n, func.max(level.c.level)).group_by(level.c.socket_n))}


def _buffers(db: Connection, sockets: Sequence[int]) -> dict[int, int]:
    """SO_SNDBUF of sockets as it was set last."""
    rows = db.execute(
        select(_option.c.socket_n, _option.c.value)
        .where(_option.c.trace_id == THIS_TRACE, _option.c.option == SO_SNDBUF, _option.c.socket_n.in_(sockets))
        .order_by(_option.c.t_ns, _option.c.n)
    )
    return {row.socket_n: row.value for row in rows}


def _backlogs(db: Connection, sockets: Sequence[int]) -> dict[int, int]:
    """The greatest send backlog that the transport spoke of, by socket."""
    most = func.max(func.json_extract(_event.c.fields, "$.send_backlog"))
    rows = db.execute(
        select(_event.c.socket_n, most.label("most"))
        .where(_event.c.trace_id == THIS_TRACE, _event.c.event == _BACKLOG, _event.c.socket_n.in_(sockets))
        .group_by(_event.c.socket_n)
    )
    return {row.socket_n: row.most for row in rows if row.most is not None}


def classes(db: Connection, asked: Asked) -> tuple[list[ClassRow], list[ClassRow]]:
    """The sends of the sockets listed by size, and by latency those whose latency is known; classes without any are left out."""
    sent = _sent(asked).c
    listed = sent.socket_n.in_(select(_summed(asked).c.socket_n)) if _of(asked, _OF_GROUP) else true()
    return _classes(db, sent, sent.bytes, SIZE_CLASSES, listed), _classes(db, sent, sent.took, LATENCY_CLASSES, listed)


def _classes(
    db: Connection,
    sent: Any,  # Any: the columns of _sent
    value: ColumnElement[Any],
    borders: tuple[int, ...],
    listed: ColumnElement[bool],
) -> list[ClassRow]:
    number = case(*((value >= low, place) for place, low in reversed(tuple(enumerate(borders)))), else_=0)
    chosen = select(number.label("place"), sent.bytes).where(value.is_not(None), listed).subquery("chosen").c
    rows = db.execute(select(chosen.place, func.count(), func.sum(chosen.bytes)).group_by(chosen.place).order_by(chosen.place))
    return [
        ClassRow(borders[place], borders[place + 1] if place + 1 < len(borders) else None, count, total or 0)
        for place, count, total in rows
    ]
