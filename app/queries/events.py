"""All records of our providers' sockets in time order: posts, completions, what was not counted, the rest, what could not be decoded.

Four tables hold them. Each is asked for its next records by an index; completions, which have no index by time, are looked for only
up to the time that the others reach.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, false, func, literal_column, or_, select

from app import format as fmt
from app.filters import Conditions, Filter, parse_bytes, parse_count
from app.links import operation_link
from app.paging import Asked, BadPosition, Position, Sort, number_at
from app.planning import without_index
from app.queries.connection import connection_condition, connection_filters
from app.queries.event_rows import EventRow, event_names
from app.queries.resolution import LONG_NS
from app.queries.statuses import parse_status, status_condition, status_words
from app.queries.who import (
    moment_filters,
    owner_filter,
    process_columns,
    process_filter,
    process_ref,
    process_table,
    socket_columns,
    socket_filter,
    socket_ref,
    socket_table,
)
from app.recording import AFD
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import OPERATION_KINDS, word_at

__all__ = ["FILTERS", "SORTS", "events_page"]

_operation = TRACE.tables["operation"]
_event = TRACE.tables["socket_event"]
_skipped = TRACE.tables["skipped"]
_raw = TRACE.tables["raw_event"]
_owner = TRACE.tables["owner"]
_address = TRACE.tables["address"]

_s = socket_table()
_p = process_table()

_references = func.json_extract(_event.c.fields, "$.references")
"""How many requests refer to a buffer of registered I/O, where a record says so."""
_SIDES = {0: "enter", 1: "exit", 2: "internal", 3: "transport", 4: "afd"}
_LAST = 1 << 62
_MAX_PLACE = 100_000


# The filters stand for conditions on several tables: `sql` is that of the table of plain records, the others are made by key below.
FILTERS = (
    process_filter(_owner.c.process_n),
    socket_filter(_event.c.socket_n),
    *connection_filters(_event.c.socket_n),
    Filter("event", parse_count, lambda v: _event.c.event == v, "with event id {}", "Event id", hint="1032"),
    Filter("tid", parse_count, lambda v: _event.c.tid == v, "of thread {}", "Thread"),
    Filter("header_pid", parse_count, lambda v: _event.c.pid == v, "under process id {}", "Header process id"),
    Filter("references", parse_count, lambda v: _references >= v, "with references from {} on", "References from", hint="registered I/O"),
    Filter("min_bytes", parse_bytes, lambda v: false(), "of {} or more", "Bytes from", show=fmt.bytes_text, hint="64 KiB"),
    Filter("max_bytes", parse_bytes, lambda v: false(), "of {} or less", "Bytes to", show=fmt.bytes_text),
    Filter("status", parse_status, partial(status_condition, _event.c.status), "with status {}", "Status", show=status_words, hint="10054"),
    *moment_filters(_event.c.t_ns),
)

SORTS = (Sort("time", _event.c.t_ns),)
"""Records come in time order alone."""


_Item = tuple[int, int, int, EventRow]
"""Time, record number, a tie-breaker, and the row."""

_Wanted = list[ColumnElement[bool]]


def events_page(db: Connection, asked: Asked) -> tuple[list[EventRow], Position | None]:
    """Records in time order after a position, and where the next ones begin. Raises BadPosition."""
    if asked.order.falls:
        raise BadPosition("sort=-time: records come in time order; begin later with from.")
    where, after = asked.where, asked.after
    start = where.value("from")
    skip = 0
    if after is not None:
        if after.place > _MAX_PLACE:
            raise BadPosition(f"after={after}: this copy of the trace has no such page. Begin with the first.")
        start, skip = after.ns, after.place
    until = where.value("to")
    names = event_names(db)
    wanted = asked.limit + skip + 1
    lists = [read(db, where, names, start, until, wanted) for read in (_posts, _plain, _left_out, _undecoded)]
    reached = min((found[-1][0] for found in lists if len(found) == wanted), default=until)
    lists.append(_completions(db, where, names, start, reached, wanted))
    cuts = [found[-1][0] for found in lists if len(found) == wanted]
    # Of a list that was cut only what lies before its last time is complete; that time itself is as complete as its limit allows.
    limit = min(cuts, default=_LAST)
    merged = sorted((item for found in lists for item in found if item[0] <= limit), key=lambda item: item[:3])
    shown = merged[skip : skip + asked.limit]
    rows = [item[3] for item in shown]
    if len(merged) <= skip + asked.limit or not shown:
        return rows, None
    last = shown[-1][0]
    place = sum(1 for item in shown if item[0] == last) + (skip if last == start else 0)
    return rows, Position(last, place)


def _conditions(
    where: Conditions,
    *,
    process_n: ColumnElement[Any] | None,  # Any: nullable integers
    socket_n: ColumnElement[Any] | None,
    event: ColumnElement[Any],
    tid: ColumnElement[Any],
    status: ColumnElement[Any] | None,
) -> _Wanted:
    """What the filters ask of one table; a table that lacks a column has no fitting row."""
    made: _Wanted = []
    of_table = {column.key: column for column in event.table.c}
    header_pid = of_table.get("pid", of_table.get(str(event.key).replace("_event", "_pid")))

    def add(key: str, column: ColumnElement[Any] | None, sql: Callable[[Any, Any], ColumnElement[bool]]) -> None:
        value = where.value(key)
        if value is not None:
            made.append(false() if column is None else sql(column, value))

    add("process", process_n, lambda column, value: (owner_filter if column is socket_n else process_filter)(column).sql(value))
    add("endpoint", socket_n, lambda column, value: socket_filter(column).sql(value))
    for key in ("address", "port", "protocol"):
        add(key, socket_n, partial(connection_condition, key))
    add("event", event, lambda column, value: column == value)
    add("tid", tid, lambda column, value: column == value)
    add("header_pid", header_pid, lambda column, value: column == value)
    add("references", _references if event is _event.c.event else None, lambda column, value: column >= value)
    add("status", status, status_condition)
    size = of_table.get("posted_len" if event.key == "posted_event" else "bytes")
    add("min_bytes", size, lambda column, value: column >= value)
    add("max_bytes", size, lambda column, value: column <= value)
    return made


def _from_number(db: Connection, table: Table, where: Conditions, from_ns: int | None) -> _Wanted:
    """Where a time range begins by number, which needs no index by time; a socket's records have one, by socket and time."""
    if from_ns is None or where.is_narrow:
        return []
    return [table.c.n >= number_at(db, table, (table.c.t_ns,), from_ns)]


def _in_time_order(table: Table, where: Conditions) -> tuple[ColumnElement[Any], ...]:  # Any: as above
    return (without_index(table.c.t_ns), table.c.n) if where.is_narrow else (table.c.n,)


def _in_range(column: ColumnElement[Any], from_ns: int | None, to_ns: int | None) -> _Wanted:  # Any: as above
    return ([] if from_ns is None else [column >= from_ns]) + ([] if to_ns is None else [column <= to_ns])


def _operations(
    db: Connection, *wanted: ColumnElement[bool], order: ColumnElement[Any], limit: int
) -> list[Any]:  # Any: rows of operations
    o = _operation.c
    names = (
        "n", "kind", "status", "bytes", "buffer", "posted_len", "posted_ns", "completed_ns", "posted_event", "posted_tid", "posted_pid",
        "posted_cpu", "posted_location", "posted_seq", "completed_event", "completed_tid", "completed_pid", "completed_cpu",
        "completed_location", "completed_seq", "completed_buffer", "outcome",
    )  # fmt: skip
    return list(
        db.execute(
            select(*(o[name] for name in names), _address.c.text.label("address"), *socket_columns(_s), *process_columns(_p))
            .select_from(
                _operation.outerjoin(_s, and_(_s.c.trace_id == THIS_TRACE, _s.c.n == o.socket_n))
                .outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == _s.c.process_n))
                .outerjoin(_address, and_(_address.c.trace_id == THIS_TRACE, _address.c.n == o.peer_n))
            )
            .where(o.trace_id == THIS_TRACE, *wanted)
            .order_by(order, o.n)
            .limit(limit)
        )
    )


def _side(row: Row[Any], side: str, names: dict[int, str]) -> EventRow:  # Any: as above
    """The record that posts or completes an operation."""
    values = row._mapping
    kind = word_at(OPERATION_KINDS, row.kind) or fmt.UNKNOWN
    is_post = side == "posted"
    one_record = row.posted_seq is not None and row.posted_seq == row.completed_seq
    buffer = row.buffer if is_post or row.completed_buffer is None else row.completed_buffer
    return EventRow(
        t_ns=values[f"{side}_ns"],
        event_id=values[f"{side}_event"],
        name=names.get(values[f"{side}_event"]),
        what=f"{kind} {'posted and over' if one_record else side}",
        socket=socket_ref(row),
        process=process_ref(row),
        operation=operation_link(kind, row.buffer, row.posted_ns, row.completed_ns),
        bytes=row.posted_len if is_post else row.bytes,
        buffer=fmt.to_address(buffer),
        status=None if is_post and not one_record else fmt.to_status(row.status),
        address=row.address,
        location=values[f"{side}_location"],
        tid=values[f"{side}_tid"],
        header_pid=values[f"{side}_pid"],
        cpu=values[f"{side}_cpu"],
        fields=None,
    )


def _posts(db: Connection, where: Conditions, names: dict[int, str], from_ns: int | None, to_ns: int | None, limit: int) -> list[_Item]:
    o = _operation.c
    asked = _conditions(where, process_n=o.socket_n, socket_n=o.socket_n, event=o.posted_event, tid=o.posted_tid, status=None)
    posted = without_index(o.posted_ns) if where.is_narrow else o.posted_ns
    rows = _operations(db, *asked, *_in_range(posted, from_ns, to_ns), o.posted_event.is_not(None), order=posted, limit=limit)
    return [(row.posted_ns, row.posted_seq or 0, row.n, _side(row, "posted", names)) for row in rows]


def _completions(
    db: Connection, where: Conditions, names: dict[int, str], from_ns: int | None, to_ns: int | None, limit: int
) -> list[_Item]:
    """Completions in a range, found by the posts of their operations: shortly before, long before, unknown, or of a closed socket."""
    o = _operation.c
    asked = _conditions(where, process_n=o.socket_n, socket_n=o.socket_n, event=o.completed_event, tid=o.completed_tid, status=o.status)
    other_record = or_(o.posted_seq.is_(None), o.completed_seq.is_(None), o.completed_seq != o.posted_seq)
    here = [*asked, *_in_range(o.completed_ns, from_ns, to_ns), o.completed_event.is_not(None), other_record]
    posted = without_index(o.posted_ns) if where.is_narrow else o.posted_ns
    before_end = _in_range(posted, None, to_ns)
    if from_ns is None:
        searches: list[_Wanted] = [[o.posted_ns.is_(None)], [o.posted_ns.is_not(None), *before_end]]
    else:
        before = from_ns - LONG_NS
        long_lived: ColumnElement[bool] = literal_column(
            f"(operation.end_ns IS NULL OR operation.end_ns - operation.posted_ns > {LONG_NS})"
        )
        s = socket_table("closed_before")
        closed = select(s.c.n).where(s.c.trace_id == THIS_TRACE, s.c.closed_ns < from_ns, s.c.last_ns >= from_ns)
        searches = [
            [o.posted_ns.is_(None)],
            [posted >= before, *before_end],
            [long_lived, without_index(o.posted_ns) < before],
            [o.socket_n.in_(closed), o.completed_ns > o.end_ns, without_index(o.posted_ns) < before],
        ]
    found = {row.n: row for search in searches for row in _operations(db, *search, *here, order=o.completed_ns, limit=limit)}
    items: list[_Item] = [(row.completed_ns, row.completed_seq or 0, row.n, _side(row, "completed", names)) for row in found.values()]
    return sorted(items, key=lambda item: item[:3])[:limit]


def _plain(db: Connection, where: Conditions, names: dict[int, str], from_ns: int | None, to_ns: int | None, limit: int) -> list[_Item]:
    e = _event.c
    process_n = _owner.c.process_n
    asked = _conditions(where, process_n=process_n, socket_n=e.socket_n, event=e.event, tid=e.tid, status=e.status)
    columns = (e.n, e.t_ns, e.seq, e.cpu, e.pid, e.tid, e.event, e.enter_exit, e.location, e.status, e.fields)
    rows = db.execute(
        select(*columns, _address.c.text.label("address"), *socket_columns(_s), *process_columns(_p))
        .select_from(
            _event.outerjoin(_s, and_(_s.c.trace_id == THIS_TRACE, _s.c.n == e.socket_n))
            .outerjoin(_owner, and_(_owner.c.trace_id == THIS_TRACE, _owner.c.n == e.owner_n))
            .outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == process_n))
            .outerjoin(_address, and_(_address.c.trace_id == THIS_TRACE, _address.c.n == e.address_n))
        )
        .where(e.trace_id == THIS_TRACE, *asked, *_in_range(e.t_ns, from_ns, to_ns), *_from_number(db, _event, where, from_ns))
        .order_by(*_in_time_order(_event, where))
        .limit(limit)
    )
    return [
        (
            row.t_ns,
            row.seq,
            row.n,
            EventRow(
                t_ns=row.t_ns,
                event_id=row.event,
                name=names.get(row.event),
                what=_SIDES.get(row.enter_exit, "event"),
                socket=socket_ref(row),
                process=process_ref(row),
                operation=None,
                bytes=None,
                buffer=None,
                status=fmt.to_status(row.status),
                address=row.address,
                location=row.location,
                tid=row.tid,
                header_pid=row.pid,
                cpu=row.cpu,
                fields=row.fields,
            ),
        )
        for row in rows
    ]


def _left_out(db: Connection, where: Conditions, names: dict[int, str], from_ns: int | None, to_ns: int | None, limit: int) -> list[_Item]:
    k = _skipped.c
    asked = _conditions(where, process_n=k.socket_n, socket_n=k.socket_n, event=k.event, tid=k.tid, status=k.status)
    rows = db.execute(
        select(k.n, k.t_ns, k.kind, k.event, k.bytes, k.location, k.reason, k.cpu, k.pid, k.tid, k.buffer, k.status)
        .add_columns(*socket_columns(_s), *process_columns(_p))
        .select_from(
            _skipped.outerjoin(_s, and_(_s.c.trace_id == THIS_TRACE, _s.c.n == k.socket_n)).outerjoin(
                _p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == _s.c.process_n)
            )
        )
        .where(k.trace_id == THIS_TRACE, *asked, *_in_range(k.t_ns, from_ns, to_ns), *_from_number(db, _skipped, where, from_ns))
        .order_by(*_in_time_order(_skipped, where))
        .limit(limit)
    )
    return [
        (
            row.t_ns,
            _LAST,
            row.n,
            EventRow(
                t_ns=row.t_ns,
                event_id=row.event,
                name=names.get(row.event),
                what=f"{row.kind}, not counted: {fmt.words(row.reason)}",
                socket=socket_ref(row),
                process=process_ref(row),
                operation=None,
                bytes=row.bytes,
                buffer=fmt.to_address(row.buffer),
                status=fmt.to_status(row.status),
                address=None,
                location=row.location,
                tid=row.tid,
                header_pid=row.pid,
                cpu=row.cpu,
                fields=None,
            ),
        )
        for row in rows
    ]


def _undecoded(db: Connection, where: Conditions, names: dict[int, str], from_ns: int | None, to_ns: int | None, limit: int) -> list[_Item]:
    r = _raw.c
    asked = _conditions(where, process_n=None, socket_n=None, event=r.event_id, tid=r.tid, status=None)
    columns = (r.n, r.t_ns, r.provider, r.event_id, r.opcode, r.version, r.cpu, r.pid, r.tid, r.why)
    rows = db.execute(
        select(*columns).where(r.trace_id == THIS_TRACE, *asked, *_in_range(r.t_ns, from_ns, to_ns)).order_by(r.t_ns, r.n).limit(limit)
    )
    return [
        (
            row.t_ns,
            _LAST,
            row.n,
            EventRow(
                t_ns=row.t_ns,
                event_id=row.event_id,
                name=names.get(row.event_id) if row.provider == AFD else None,
                what=f"{row.why}, version {row.version}, opcode {row.opcode}",
                socket=None,
                process=None,
                operation=None,
                bytes=None,
                buffer=None,
                status=None,
                address=None,
                location=None,
                tid=row.tid,
                header_pid=row.pid,
                cpu=row.cpu,
                fields=None,
            ),
        )
        for row in rows
    ]
