"""All records of one socket in time order: posts, completions, what was left out of the counts, everything else."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, literal_column, or_, select
from sqlalchemy.sql.elements import ColumnElement

from app import format as fmt
from app.format import Address, Status
from app.links import operation_link
from app.paging import Position
from app.queries.record_words import left_out_words, record_words
from app.queries.resolution import LONG_NS
from app.queries.socket_timeline import direction_of
from app.queries.transport import StackEvent, stack_events, stack_words
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import OPERATION_KINDS, word_at

__all__ = ["KINDS", "MAX_SEARCHED", "EventRow", "EventsPage", "socket_events"]

_operation = TRACE.tables["operation"]
_event = TRACE.tables["socket_event"]
_skipped = TRACE.tables["skipped"]
_address = TRACE.tables["address"]
_count = TRACE.tables["event_count"]

_AFD = "e53c6823-7bb8-44bb-90dc-3f86090d48a6"

MAX_SEARCHED = 10_000
"""Records that one page looks through for those that fit its filters."""

_BATCH = 500

_OF_KIND: dict[str, tuple[int, ...]] = {
    "life": (1, 13, 14, 1000, 1001, 1002),
    "bind": (2, 3, 40, 1029, 1030),
    "accept": (15, 16, 17, 35, 36, 1023, 1024, 1026, 1027, 1036, 1037, 3000, 3001, 4019),
    "connect": (4, 5, 6, 1017, 1018, 1020, 1021),
    "abort": (7, 8, 1032),
    "disconnect": (41, 3006),
    "arrival": (37, 38, 39, 3003, 3004),
    "backlog": (3007,),
    "drop": (33, 34, 1033),
    "option": (29, 32, 1035),
}
KINDS = ("post", "completion", *_OF_KIND, "network", "not counted", "other")
"""Kinds of records by which a list can be narrowed."""

_KIND_OF = {event: kind for kind, events in _OF_KIND.items() for event in events}


@dataclass(frozen=True, slots=True)
class EventRow:
    """One record. `operation` is the link of the operation that it posts or completes."""

    t_ns: int
    kind: str
    name: str
    event_id: int
    text: str
    operation: str | None
    direction: str | None
    status: Status | None
    bytes: int | None
    buffer: Address | None
    address: str | None
    tid: int | None
    header_pid: int | None
    cpu: int | None
    location: int | None
    fields: Mapping[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class EventsPage:
    """Some records, and where the next ones begin. `stopped_ns` is set where the search for fitting ones was cut short."""

    rows: tuple[EventRow, ...]
    next: Position | None
    stopped_ns: int | None


def socket_events(
    db: Connection,
    socket_n: int,
    *,
    from_ns: int,
    to_ns: int,
    closed_ns: int | None,
    kinds: tuple[str, ...] = (),
    text: str = "",
    after: Position | None = None,
    limit: int,
) -> EventsPage:
    """Records of a socket in [from_ns, to_ns] in time order, after a position, at most `limit` that fit.

    `kinds` are some of KINDS, `text` is looked for in what a row says, without regard to case.
    """
    rows: list[EventRow] = []
    names = _names(db)
    start = from_ns if after is None or after.ns is None else max(from_ns, after.ns)
    skip = after.place if after is not None and after.ns == start else 0
    place_ns, place = start, skip
    for searched, row in enumerate(_in_order(db, socket_n, names, start, to_ns, closed_ns, skip), start=1):
        fits = (not kinds or row.kind in kinds) and (not text or text.lower() in _searched(row))
        if fits and len(rows) == limit:
            return EventsPage(tuple(rows), Position(place_ns, place), None)
        place = place + 1 if row.t_ns == place_ns else 1
        place_ns = row.t_ns
        if fits:
            rows.append(row)
        if searched == MAX_SEARCHED:
            return EventsPage(tuple(rows), Position(place_ns, place), row.t_ns)
    return EventsPage(tuple(rows), None, None)


def _searched(row: EventRow) -> str:
    status = fmt.status(row.status) if row.status is not None else ""
    parts = (row.name, row.kind, row.text, status, row.address or "", str(row.buffer or ""), row.operation or "")
    return " ".join(parts).lower()


def _names(db: Connection) -> dict[int, str]:
    """Event names by id, as this trace's inventory knows them."""
    rows = db.execute(
        select(_count.c.event_id, _count.c.event_name).where(
            _count.c.trace_id == THIS_TRACE, _count.c.provider == _AFD, _count.c.event_name.is_not(None)
        )
    )
    return {row.event_id: row.event_name for row in rows}


def _in_order(
    db: Connection, socket_n: int, names: dict[int, str], from_ns: int, to_ns: int, closed_ns: int | None, skip: int
) -> Iterator[EventRow]:
    """Records from `from_ns` on in (time, record number) order, batch by batch; the first `skip` are left out."""
    wanted = skip + _BATCH
    while True:
        lists = [read(db, socket_n, from_ns, to_ns, wanted) for read in (_posts, _others, _left_out, _stack)]
        until = min((found[-1][0] for found in lists if len(found) == wanted), default=to_ns)
        lists.append(_completions(db, socket_n, from_ns, until, closed_ns, wanted))
        cuts = [found[-1][0] for found in lists if len(found) == wanted]
        # A list that was cut says nothing about its last time and what lies behind.
        batch = sorted((item for found in lists for item in found if not cuts or item[0] < min(cuts)), key=lambda item: item[:3])
        if cuts and not batch:  # more records of one time than a batch holds
            wanted *= 2
            continue
        for item in batch[skip:]:
            yield _event_row(item[3], names)
        if not cuts:
            return
        from_ns, skip, wanted = min(cuts), 0, _BATCH


_Item = tuple[int, int, int, tuple[str, Any]]
"""Time, record number, a tie-breaker, and the row with the name of its source. Any: rows of several tables."""

_OPERATION = (
    "kind", "status", "bytes", "buffer", "posted_len", "buffer_count", "posted_ns", "completed_ns", "posted_event", "posted_tid",
    "posted_pid", "posted_cpu", "posted_location", "posted_seq", "completed_event", "completed_tid", "completed_pid", "completed_cpu",
    "completed_location", "completed_seq", "completed_buffer", "completed_len", "fast_path", "n",
)  # fmt: skip


def _operations(db: Connection, socket_n: int, *wanted: ColumnElement[bool], order: ColumnElement[int], limit: int) -> list[Any]:
    o = _operation.c
    return list(
        db.execute(
            select(*(o[name] for name in _OPERATION), _address.c.text.label("address"))
            .select_from(_operation.outerjoin(_address, and_(_address.c.trace_id == THIS_TRACE, _address.c.n == o.peer_n)))
            .where(o.trace_id == THIS_TRACE, o.socket_n == socket_n, *wanted)
            .order_by(order, o.n)
            .limit(limit)
        )
    )


def _posts(db: Connection, socket_n: int, from_ns: int, to_ns: int, limit: int) -> list[_Item]:
    o = _operation.c
    rows = _operations(
        db, socket_n, o.posted_ns >= from_ns, o.posted_ns <= to_ns, o.posted_event.is_not(None), order=o.posted_ns, limit=limit
    )
    return [(row.posted_ns, row.posted_seq or 0, row.n, ("post", row)) for row in rows]


def _completions(db: Connection, socket_n: int, from_ns: int, to_ns: int, closed_ns: int | None, limit: int) -> list[_Item]:
    """Completions in a range, found by the operations' posts: shortly before, long before, unknown, or before a close."""
    o = _operation.c
    here = (o.completed_ns >= from_ns, o.completed_ns <= to_ns, o.completed_event.is_not(None))
    other_record = or_(o.posted_seq.is_(None), o.completed_seq.is_(None), o.completed_seq != o.posted_seq)
    long_lived: ColumnElement[bool] = literal_column(f"(operation.end_ns IS NULL OR operation.end_ns - operation.posted_ns > {LONG_NS})")
    before = from_ns - LONG_NS
    searches = [
        (o.posted_ns >= before, o.posted_ns <= to_ns),
        (long_lived, o.posted_ns < before),
        (o.posted_ns.is_(None),),
    ]
    if closed_ns is not None and closed_ns < before + LONG_NS:
        searches.append((o.posted_ns >= closed_ns - LONG_NS, o.posted_ns < before))
    found = {
        row.n: row
        for search in searches
        for row in _operations(db, socket_n, *search, *here, other_record, order=o.completed_ns, limit=limit)
    }
    items: list[_Item] = [(row.completed_ns, row.completed_seq or 0, row.n, ("completion", row)) for row in found.values()]
    return sorted(items, key=lambda item: item[:3])[:limit]


def _others(db: Connection, socket_n: int, from_ns: int, to_ns: int, limit: int) -> list[_Item]:
    e = _event.c
    rows = db.execute(
        select(
            e.n, e.t_ns, e.seq, e.cpu, e.pid, e.tid, e.event, e.enter_exit, e.location, e.status, e.fields, _address.c.text.label("address")
        )
        .select_from(_event.outerjoin(_address, and_(_address.c.trace_id == THIS_TRACE, _address.c.n == e.address_n)))
        .where(e.trace_id == THIS_TRACE, e.socket_n == socket_n, e.t_ns >= from_ns, e.t_ns <= to_ns)
        .order_by(e.t_ns, e.n)
        .limit(limit)
    )
    return [(row.t_ns, row.seq, row.n, ("event", row)) for row in rows]


def _left_out(db: Connection, socket_n: int, from_ns: int, to_ns: int, limit: int) -> list[_Item]:
    k = _skipped.c
    rows = db.execute(
        select(k.n, k.t_ns, k.kind, k.event, k.bytes, k.location, k.reason, k.cpu, k.pid, k.tid, k.buffer, k.status)
        .where(k.trace_id == THIS_TRACE, k.socket_n == socket_n, k.t_ns >= from_ns, k.t_ns <= to_ns)
        .order_by(k.t_ns, k.n)
        .limit(limit)
    )
    return [(row.t_ns, 1 << 62, row.n, ("skipped", row)) for row in rows]


def _stack(db: Connection, socket_n: int, from_ns: int, to_ns: int, limit: int) -> list[_Item]:
    """What the network stack says of the connection, by other providers."""
    return [(event.t_ns, 1 << 62, event.n, ("stack", event)) for event in stack_events(db, socket_n, from_ns, to_ns, limit)]


def _event_row(item: tuple[str, Any], names: dict[int, str]) -> EventRow:  # Any: rows of several tables
    source, row = item
    if source == "post":
        return _post_row(row, names)
    if source == "completion":
        return _completion_row(row, names)
    if source == "stack":
        return _stack_row(row)
    if source == "skipped":
        return _skipped_row(row, names)
    return _other_row(row, names)


def _name(names: dict[int, str], event: int | None) -> str:
    return names.get(event or 0, f"event {event}")


def _link(row: Any) -> tuple[str, str, str]:  # Any: a row of operations
    kind = word_at(OPERATION_KINDS, row.kind) or fmt.UNKNOWN
    return kind, operation_link(kind, row.buffer, row.posted_ns, row.completed_ns), direction_of(kind)


def _post_row(row: Any, names: dict[int, str]) -> EventRow:  # Any: as above
    kind, link, direction = _link(row)
    size = f" of {fmt.bytes_text(row.posted_len)}" if row.posted_len is not None else ""
    pieces = f" in {row.buffer_count} buffers" if (row.buffer_count or 0) > 1 else ""
    to = f" to {row.address}" if row.address and direction == "send" else ""
    return EventRow(
        t_ns=row.posted_ns,
        kind="post",
        name=_name(names, row.posted_event),
        event_id=row.posted_event,
        text=f"{kind}{size}{pieces} posted{to}",
        operation=link,
        direction=direction,
        status=None,
        bytes=row.posted_len,
        buffer=fmt.to_address(row.buffer),
        address=row.address,
        tid=row.posted_tid,
        header_pid=row.posted_pid,
        cpu=row.posted_cpu,
        location=row.posted_location,
        fields={"fast_path": row.fast_path},
    )


def _completion_row(row: Any, names: dict[int, str]) -> EventRow:  # Any: as above
    kind, link, direction = _link(row)
    status = fmt.to_status(row.status)
    failed = status is not None and status >= 0x8000_0000
    ended = f"failed: {fmt.status_name(status) or status}" if failed else f"completed with {fmt.bytes_text(row.bytes)}"
    if direction == "connect" and not failed:
        ended = "completed"
    took = f" after {fmt.duration(row.completed_ns - row.posted_ns)}" if row.posted_ns is not None else ", its post is not in the trace"
    return EventRow(
        t_ns=row.completed_ns,
        kind="completion",
        name=_name(names, row.completed_event),
        event_id=row.completed_event,
        text=f"{kind} {ended}{took}",
        operation=link,
        direction=direction,
        status=status,
        bytes=row.bytes,
        buffer=fmt.to_address(row.buffer if row.completed_buffer is None else row.completed_buffer),
        address=row.address,
        tid=row.completed_tid,
        header_pid=row.completed_pid,
        cpu=row.completed_cpu,
        location=row.completed_location,
        fields={},
    )


def _skipped_row(row: Any, names: dict[int, str]) -> EventRow:  # Any: as above
    return EventRow(
        t_ns=row.t_ns,
        kind="not counted",
        name=_name(names, row.event),
        event_id=row.event,
        text=left_out_words(row.kind, row.bytes, row.reason),
        operation=None,
        direction=None,
        status=fmt.to_status(row.status),
        bytes=row.bytes,
        buffer=fmt.to_address(row.buffer),
        address=None,
        tid=row.tid,
        header_pid=row.pid,
        cpu=row.cpu,
        location=row.location,
        fields={},
    )


def _stack_row(event: StackEvent) -> EventRow:
    return EventRow(
        t_ns=event.t_ns,
        kind="network",
        name=event.source,
        event_id=event.event_id,
        text=stack_words(event),
        operation=None,
        direction=None,
        status=None if event.status is None else fmt.to_status(event.status),
        bytes=event.bytes,
        buffer=None,
        address=None,
        tid=None,
        header_pid=event.pid,
        cpu=None,
        location=None,
        fields={"match": event.match},
    )


def _other_row(row: Any, names: dict[int, str]) -> EventRow:  # Any: as above
    fields = json.loads(row.fields) if row.fields else {}
    status = fmt.to_status(row.status)
    return EventRow(
        t_ns=row.t_ns,
        kind=_KIND_OF.get(row.event, "other"),
        name=_name(names, row.event),
        event_id=row.event,
        text=record_words(row.event, row.enter_exit, fields, row.address, status),
        operation=None,
        direction=None,
        status=status,
        bytes=None,
        buffer=None,
        address=row.address,
        tid=row.tid,
        header_pid=row.pid,
        cpu=row.cpu,
        location=row.location,
        fields=fields,
    )
