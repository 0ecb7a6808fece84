"""Everything of a socket that has one time and no duration: aborts, options, drops, what the transport reported."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Table, and_, func, select
from sqlalchemy.sql.elements import ColumnElement

from app import format as fmt
from app.queries.record_words import arrival_words, backlog_words, request_words
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["ARRIVALS", "DISCONNECTS", "MAX_MOMENTS", "Moment", "moments", "side_of"]

_abort = TRACE.tables["abort"]
_option = TRACE.tables["option"]
_drop = TRACE.tables["drop"]
_event = TRACE.tables["socket_event"]
_address = TRACE.tables["address"]

MAX_MOMENTS = 400
"""Moments of one kind that are shown one by one; the rest are counted."""

# Socket events that are moments of a timeline, by event id.
ARRIVALS = (3003, 3004, 37, 38, 39)
DISCONNECTS = (3006, 41)
REQUESTS = (3000, 3001, 35, 36)
BACKLOGS = (3007,)
_PLURALS = {"arrival": "arrival", "disconnect": "disconnect", "request": "connection request", "backlog": "send backlog"}


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened at one time. `count` above 1 stands for that many from there on."""

    what: str
    t_ns: int
    text: str
    count: int = 1


def moments(db: Connection, socket_n: int, from_ns: int, to_ns: int) -> list[Moment]:
    """The moments of a socket in a range, save failed operations; of each kind at most MAX_MOMENTS, the others counted."""
    aborts = _rows(db, _abort, socket_n, from_ns, to_ns, _abort.c.reason, _abort.c.reason_name, _abort.c.initiator)
    options = _rows(db, _option, socket_n, from_ns, to_ns, _option.c.option, _option.c.name, _option.c.value)
    drops = _rows(db, _drop, socket_n, from_ns, to_ns, _drop.c.reason, _drop.c.reason_name, _drop.c.length)
    found = [Moment("abort", row.t_ns, _abort_text(row)) for row in aborts]
    found += [Moment("option", row.t_ns, f"{row.name or f'option {row.option}'} set to {row.value}") for row in options]
    found += [Moment("drop", row.t_ns, _drop_text(row)) for row in drops]
    for ids, what in ((ARRIVALS, "arrival"), (DISCONNECTS, "disconnect"), (REQUESTS, "request"), (BACKLOGS, "backlog")):
        found += _events(db, socket_n, from_ns, to_ns, ids, what)
    return found


def side_of(initiator: str) -> str:
    """Who aborted, in words."""
    return "this machine (Winsock)" if initiator == "afd" else "the transport (the peer or the network)"


def _abort_text(row: Row[Any]) -> str:  # Any: the columns asked for
    name = fmt.words(row.reason_name) if row.reason_name else "without a name"
    return f"aborted by {side_of(row.initiator)}, reason {row.reason}: {name}"


def _drop_text(row: Row[Any]) -> str:  # Any: the columns asked for
    why = fmt.words(row.reason_name) if row.reason_name else f"reason {row.reason}"
    return f"datagram of {fmt.bytes_text(row.length)} dropped: {why}"


def _rows(
    db: Connection, table: Table, socket_n: int, from_ns: int, to_ns: int, *columns: ColumnElement[Any]
) -> Sequence[Row[Any]]:  # Any: columns of several types
    c = table.c
    here = (c.trace_id == THIS_TRACE, c.socket_n == socket_n, c.t_ns >= from_ns, c.t_ns <= to_ns)
    return db.execute(select(c.t_ns, *columns).where(*here).order_by(c.t_ns, c.n).limit(MAX_MOMENTS)).all()


def _events(db: Connection, socket_n: int, from_ns: int, to_ns: int, ids: tuple[int, ...], what: str) -> list[Moment]:
    e = _event.c
    here = and_(e.trace_id == THIS_TRACE, e.socket_n == socket_n, e.t_ns >= from_ns, e.t_ns <= to_ns, e.event.in_(ids))
    rows = db.execute(
        select(e.t_ns, e.fields, _address.c.text.label("address"))
        .outerjoin(_address, and_(_address.c.trace_id == THIS_TRACE, _address.c.n == e.address_n))
        .where(here)
        .order_by(e.t_ns, e.n)
        .limit(MAX_MOMENTS + 1)
    ).all()
    if len(rows) <= MAX_MOMENTS:
        return [Moment(what, row.t_ns, _event_text(what, row.fields, row.address)) for row in rows]
    place = ((e.t_ns - from_ns) // max(1, (to_ns - from_ns) // MAX_MOMENTS)).label("place")
    groups = db.execute(select(func.min(e.t_ns), func.count(), place).where(here).group_by(place).order_by(place))
    return [Moment(what, t_ns, f"{fmt.plural(count, _PLURALS[what])} here", count) for t_ns, count, _ in groups]


def _event_text(what: str, fields: str | None, address: str | None) -> str:
    known = json.loads(fields) if fields else {}
    if what == "arrival":
        return arrival_words(known, address)
    if what == "disconnect":
        return "the peer disconnected"
    return request_words(known, address) if what == "request" else backlog_words(known)
