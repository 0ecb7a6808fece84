"""What the network stack itself says of a socket's connection: its sums, what happened, and which side that points to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from app import format as fmt
from app.queries.socket_moments import MAX_MOMENTS, Moment
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import TRANSPORT_DEEDS, TRANSPORT_SOURCES, word_at

__all__ = ["StackEvent", "StackSaid", "StackSum", "stack_events", "stack_moments", "stack_said", "stack_sums", "stack_words"]

_flow = TRACE.tables["transport_flow"]
_event = TRACE.tables["transport_event"]

_MOST_FLOWS = 200
"""Rows of one socket's connections that are searched; there is one a source, more in traces of very many connections."""
_RETRANSMITS = ("retransmit", "SYN retransmitted")
_RESETS = ("reset received", "refused by a reset", "ended by a SYN")
_GAVE_UP = (
    "connect timed out",
    "retransmissions gave up",
    "keep-alives gave up",
    "disconnect timed out",
    "closed window timed out",
    "FIN-WAIT-2 timed out",
)
_OWN_ABORTS = ("abort requested", "aborted by the system")


@dataclass(frozen=True, slots=True)
class StackSum:
    """A connection as one source counted it; None is what that source does not say."""

    source: str
    match: str
    bytes_sent: int
    bytes_received: int
    sends: int
    receives: int
    retransmits: int
    bytes_retransmitted: int | None
    rtt_ns: int | None
    min_rtt_ns: int | None
    max_rtt_ns: int | None
    first_ns: int
    last_ns: int


@dataclass(frozen=True, slots=True)
class StackEvent:
    """Something that happened to a connection. `match` says how sure it is that the connection is the socket's."""

    n: int
    t_ns: int
    deed: str
    source: str
    match: str
    event_id: int
    pid: int | None
    status: int | None
    state: int | None
    count: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class StackSaid:
    """What of it tells who ended a connection; the first of each. `is_sure` is whether addresses and process were equal."""

    retransmits: int
    last_retransmit_ns: int | None
    reset: StackEvent | None
    gave_up: StackEvent | None
    own_abort: StackEvent | None
    is_sure: bool


def stack_sums(db: Connection, socket_n: int) -> list[StackSum]:
    """The connection of a socket by source; empty where nothing of it was recorded, or several sockets shared its addresses."""
    f = _flow.c
    own = _own(db, socket_n)
    if not own:
        return []
    rows: Sequence[Any] = db.execute(  # Any: columns of several types
        select(
            f.source,
            func.max(f.match).label("match"),  # inferred is the greater word
            *(func.sum(f[name]).label(name) for name in ("bytes_sent", "bytes_received", "sends", "receives", "retransmits")),
            func.sum(f.bytes_retransmitted).label("bytes_retransmitted"),
            *(func.max(f[name]).label(name) for name in ("rtt_us", "max_rtt_us")),
            func.min(f.min_rtt_us).label("min_rtt_us"),
            func.min(f.first_ns).label("first_ns"),
            func.max(f.last_ns).label("last_ns"),
        )
        .where(f.trace_id == THIS_TRACE, f.n.in_(own))
        .group_by(f.source)
        .order_by(f.source)
    ).all()
    return [
        StackSum(
            source=word_at(TRANSPORT_SOURCES, row.source) or fmt.UNKNOWN,
            match=row.match,
            bytes_sent=row.bytes_sent,
            bytes_received=row.bytes_received,
            sends=row.sends,
            receives=row.receives,
            retransmits=row.retransmits,
            bytes_retransmitted=row.bytes_retransmitted,
            rtt_ns=_ns(row.rtt_us),
            min_rtt_ns=_ns(row.min_rtt_us),
            max_rtt_ns=_ns(row.max_rtt_us),
            first_ns=row.first_ns,
            last_ns=row.last_ns,
        )
        for row in rows
    ]


def _own(db: Connection, socket_n: int) -> Sequence[int]:
    """Numbers of the connections that are the socket's alone."""
    f = _flow.c
    return db.execute(select(f.n).where(f.trace_id == THIS_TRACE, f.socket_n == socket_n).limit(_MOST_FLOWS)).scalars().all()


def _ns(us: int | None) -> int | None:
    return None if us is None else us * 1_000


def _events(db: Connection, socket_n: int, *wanted: ColumnElement[bool], limit: int, is_latest: bool = False) -> list[StackEvent]:
    """Events of the socket's own connections, and those at addresses that several sockets had one after the other.

    The first `limit` that fit, or the last: by one search a connection, which ends there, as it goes along an index.
    """
    e, f = _event.c, _flow.c
    own = _own(db, socket_n)
    found: list[StackEvent] = []
    for one in (*(e.flow_n == n for n in own), e.socket_n == socket_n):
        rows: Sequence[Any] = db.execute(  # Any: columns of several types
            select(e.n, e.t_ns, e.deed, e.event, e.pid, e.status, e.state, e.count.label("times"), e.bytes, f.source, f.match)
            .join(_flow, (f.trace_id == THIS_TRACE) & (f.n == e.flow_n))
            .where(e.trace_id == THIS_TRACE, one, *wanted)
            .order_by(*((e.t_ns.desc(), e.n.desc()) if is_latest else (e.t_ns, e.n)))
            .limit(limit)
        ).all()
        found += [_event_of(row) for row in rows]
    found.sort(key=lambda event: (event.t_ns, event.n), reverse=is_latest)
    return found[:limit]


def _event_of(row: Any) -> StackEvent:  # Any: as above
    return StackEvent(
        n=row.n,
        t_ns=row.t_ns,
        deed=word_at(TRANSPORT_DEEDS, row.deed) or fmt.UNKNOWN,
        source=word_at(TRANSPORT_SOURCES, row.source) or fmt.UNKNOWN,
        match=row.match or "inferred",  # addresses used again are told apart by time
        event_id=row.event,
        pid=row.pid,
        status=row.status,
        state=row.state,
        count=row.times,
        bytes=row.bytes,
    )


def stack_events(db: Connection, socket_n: int, from_ns: int, to_ns: int, limit: int) -> list[StackEvent]:
    """What happened to a socket's connection in a range, in time order."""
    return _events(db, socket_n, _event.c.t_ns >= from_ns, _event.c.t_ns <= to_ns, limit=limit)


def _deeds(*words: str) -> ColumnElement[bool]:
    return _event.c.deed.in_([TRANSPORT_DEEDS.index(word) for word in words])


def stack_moments(db: Connection, socket_n: int, from_ns: int, to_ns: int) -> list[Moment]:
    """Retransmits, resets and timeouts of a range as moments of the timeline; at most MAX_MOMENTS of each."""
    here = (_event.c.t_ns >= from_ns, _event.c.t_ns <= to_ns)
    found = []
    for what, deeds in (("retransmit", _RETRANSMITS), ("reset", (*_RESETS, *_GAVE_UP, *_OWN_ABORTS))):
        events = _events(db, socket_n, *here, _deeds(*deeds), limit=MAX_MOMENTS)
        found += [Moment(what, event.t_ns, stack_words(event, with_source=True)) for event in events]
    return found


def stack_said(db: Connection, socket_n: int) -> StackSaid | None:
    """What the stack says of the end of a socket's connection; None where it says nothing."""
    sums = stack_sums(db, socket_n)
    last = _events(db, socket_n, _deeds(*_RETRANSMITS), limit=1, is_latest=True)
    retransmits = max((one.retransmits for one in sums), default=0)  # two sources tell of the same ones
    if last and not retransmits:  # at addresses that several sockets had
        retransmits = max(_shared_retransmits(db, socket_n))
    first = {}
    for name, deeds in (("reset", _RESETS), ("gave_up", _GAVE_UP), ("own_abort", _OWN_ABORTS)):
        events = _events(db, socket_n, _deeds(*deeds), limit=1)
        first[name] = events[0] if events else None
    known = [event for event in first.values() if event is not None]
    if not retransmits and not known:
        return None
    is_sure = bool(sums) and all(one.match == "exact" for one in sums)
    last_ns = last[0].t_ns if last else None
    return StackSaid(retransmits, last_ns, first["reset"], first["gave_up"], first["own_abort"], is_sure)


def _shared_retransmits(db: Connection, socket_n: int) -> Sequence[int]:
    """Retransmits of one socket of several that had its addresses, by source."""
    e, f = _event.c, _flow.c
    return (
        db.execute(
            select(func.count())
            .join_from(_event, _flow, (f.trace_id == THIS_TRACE) & (f.n == e.flow_n))
            .where(e.trace_id == THIS_TRACE, e.socket_n == socket_n, _deeds(*_RETRANSMITS))
            .group_by(f.source)
        )
        .scalars()
        .all()
    )


def stack_words(event: StackEvent, *, with_source: bool = False) -> str:
    """An event in words."""
    text = event.deed
    if event.deed == "state":
        text = "the connection changes its state"
    elif event.deed in _RETRANSMITS and event.count:
        text += f", number {fmt.count(event.count)}"
    if event.bytes is not None:
        text += f" of {fmt.bytes_text(event.bytes)}"
    if event.state is not None and event.deed in ("state", "there already"):
        text += f": {event.state} as the stack numbers them"
    if event.status:
        text += f": {fmt.status(fmt.Status(event.status))}"
    if with_source:
        text += f" ({event.source} {event.event_id})"
    return text if event.match == "exact" else f"{text} (inferred to be this socket)"
