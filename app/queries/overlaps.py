"""Memory handed to a second operation while the first was still using it."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, and_, or_, select

from app import format as fmt
from app.filters import Conditions, Filter, one_of, parse_address, parse_bytes
from app.links import ProcessRef, operation_link
from app.paging import Asked, Position, Sort, count_up_to, fetch
from app.queries.connection import connection_condition, connection_filters
from app.queries.who import (
    moment_filters,
    process_columns,
    process_filter,
    process_ref,
    process_table,
    socket_columns,
    socket_ref,
    socket_table,
)
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import OPERATION_KINDS, word_at

__all__ = ["FILTERS", "SORTS", "OverlapRow", "overlap_rows", "overlaps_number", "overlaps_of", "overlaps_page"]

overlap = TRACE.tables["overlap"]
_operation = TRACE.tables["operation"]
_first, _second = _operation.alias("o1"), _operation.alias("o2")
_s1, _s2 = socket_table("s1"), socket_table("s2")
_p = process_table()

_PAIRS = ("send->send", "recv->recv", "recv->send", "send->recv")
_PAIR_WORDS = {
    "send->send": "two sends",
    "recv->recv": "two receives",
    "recv->send": "a send over a receive",
    "send->recv": "a receive over a send",
}


@dataclass(frozen=True, slots=True)
class OverlapRow:
    """One pair of operations. `lo` and `hi` bound the shared bytes; the operations are links below their sockets."""

    t_ns: int
    severity: str
    certainty: str
    pair: str
    process: ProcessRef | None
    lo: fmt.Address
    hi: fmt.Address
    shared_bytes: int
    range: str
    scope: str
    first_socket: str | None
    first_kind: str
    first: str
    first_posted_ns: int | None
    first_end_ns: int | None
    second_socket: str | None
    second_kind: str
    second: str
    second_posted_ns: int | None


def _of_either(key: str, value: Any) -> ColumnElement[bool]:  # Any: what the filter of this key parses
    return or_(*(connection_condition(key, s.c.n, value) for s in (_s1, _s2)))


_connected = tuple(replace(one, sql=partial(_of_either, one.key)) for one in connection_filters(_s1.c.n, address_key="ip"))

FILTERS = (
    process_filter(_s1.c.process_n),
    Filter(
        "endpoint",
        parse_address,
        lambda v: or_(_s1.c.endpoint == fmt.stored_address(v), _s2.c.endpoint == fmt.stored_address(v)),
        "on endpoint {}",
        "Endpoint",
        hint="0x…",
    ),
    Filter(
        "address",
        parse_address,
        lambda v: and_(overlap.c.lo <= fmt.stored_address(v), overlap.c.hi > fmt.stored_address(v)),
        "that share the byte at {}",
        "Address",
        hint="0x…",
    ),
    *_connected,
    Filter(
        "pair",
        one_of(_PAIRS),
        lambda v: overlap.c.pair.in_(v),
        "of {}",
        "Pair",
        show=lambda v: " or ".join(_PAIR_WORDS[word] for word in v),
        choices=tuple(_PAIR_WORDS.items()),
    ),
    Filter(
        "range",
        one_of(("exact", "contained", "partial")),
        lambda v: overlap.c.range.in_(v),
        "whose ranges are {}",
        "Range",
        show=" or ".join,
        choices=tuple((word, word) for word in ("exact", "contained", "partial")),
    ),
    Filter(
        "scope",
        one_of(("same_socket", "cross_socket")),
        lambda v: overlap.c.scope.in_(v),
        "{}",
        "Scope",
        show=lambda v: " or ".join({"same_socket": "on one socket", "cross_socket": "on two sockets"}[word] for word in v),
        choices=(("same_socket", "one socket"), ("cross_socket", "two sockets")),
    ),
    Filter(
        "severity",
        one_of(("high", "low")),
        lambda v: overlap.c.severity.in_(v),
        "of {} severity",
        "Severity",
        show=" or ".join,
        choices=(("high", "high"), ("low", "low")),
    ),
    Filter(
        "certainty",
        one_of(("certain", "possible")),
        lambda v: overlap.c.certainty.in_(v),
        "that are {}",
        "Certainty",
        show=" or ".join,
        choices=(("certain", "certain"), ("possible", "possible")),
    ),
    Filter(
        "min_bytes", parse_bytes, lambda v: overlap.c.hi - overlap.c.lo >= v, "that share {} or more", "Shared from", show=fmt.bytes_text
    ),
    Filter("max_bytes", parse_bytes, lambda v: overlap.c.hi - overlap.c.lo <= v, "that share {} or less", "Shared to", show=fmt.bytes_text),
    *moment_filters(overlap.c.t_ns),
)

_shared = overlap.c.hi - overlap.c.lo

_MOMENT = (overlap.c.t_ns,)

SORTS = (
    Sort("severity", overlap.c.severity),  # high before low
    Sort("t_ns", overlap.c.t_ns, is_time=True),
    Sort("process", _p.c.image),
    Sort("shared_bytes", _shared, falls=True),
    Sort("lo", overlap.c.lo),
    Sort("pair", overlap.c.pair),
    Sort("certainty", overlap.c.certainty),
    Sort("range", overlap.c.range),
    Sort("scope", overlap.c.scope),
)


def _of(o: FromClause, name: str) -> tuple[Any, ...]:  # Any: labelled columns
    return tuple(o.c[column].label(f"{name}_{column}") for column in ("kind", "buffer", "posted_ns", "completed_ns", "end_ns"))


_ROWS = select(
    *(overlap.c[name] for name in ("t_ns", "lo", "hi", "pair", "range", "certainty", "scope", "severity")),
    *_of(_first, "o1"),
    *_of(_second, "o2"),
    *socket_columns(_s1, "s1"),
    *socket_columns(_s2, "s2"),
    *process_columns(_p),
).select_from(
    overlap.outerjoin(_first, and_(_first.c.trace_id == THIS_TRACE, _first.c.n == overlap.c.first_n))
    .outerjoin(_second, and_(_second.c.trace_id == THIS_TRACE, _second.c.n == overlap.c.second_n))
    .outerjoin(_s1, and_(_s1.c.trace_id == THIS_TRACE, _s1.c.n == _first.c.socket_n))
    .outerjoin(_s2, and_(_s2.c.trace_id == THIS_TRACE, _s2.c.n == _second.c.socket_n))
    .outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == _s1.c.process_n))
)


def _row(row: Any) -> OverlapRow:  # Any: a row with the columns of _ROWS
    first, second = word_at(OPERATION_KINDS, row.o1_kind) or "", word_at(OPERATION_KINDS, row.o2_kind) or ""
    mask = (1 << 64) - 1
    return OverlapRow(
        t_ns=row.t_ns,
        severity=row.severity,
        certainty=row.certainty,
        pair=row.pair,
        process=process_ref(row),
        lo=fmt.Address(row.lo & mask),
        hi=fmt.Address(row.hi & mask),
        shared_bytes=row.hi - row.lo,
        range=row.range,
        scope=row.scope,
        first_socket=socket_ref(row, "s1"),
        first_kind=first,
        first=operation_link(first, row.o1_buffer, row.o1_posted_ns, row.o1_completed_ns),
        first_posted_ns=row.o1_posted_ns,
        first_end_ns=row.o1_end_ns,
        second_socket=socket_ref(row, "s2"),
        second_kind=second,
        second=operation_link(second, row.o2_buffer, row.o2_posted_ns, row.o2_completed_ns),
        second_posted_ns=row.o2_posted_ns,
    )


def overlaps_page(db: Connection, asked: Asked) -> tuple[list[OverlapRow], Position | None]:
    """One page of the overlaps, and where the next begins."""
    found = fetch(db, _ROWS, table=overlap, moment=_MOMENT, asked=asked, are_moments=True)
    return [_row(row) for row in found.rows], found.next


def overlaps_number(db: Connection, where: Conditions) -> int | None:
    """How many overlaps there are, as `count_up_to`."""
    return count_up_to(db, _ROWS, table=overlap, moment=_MOMENT, where=where, are_moments=True)


def overlaps_of(db: Connection, operation_n: int, *, limit: int = 50) -> list[OverlapRow]:
    """Overlaps that an operation takes part in, in time order."""
    part = or_(overlap.c.first_n == operation_n, overlap.c.second_n == operation_n)
    return [
        _row(row)
        for row in db.execute(_ROWS.where(overlap.c.trace_id == THIS_TRACE, part).order_by(overlap.c.t_ns, overlap.c.n).limit(limit))
    ]


def overlap_rows(db: Connection, *conditions: ColumnElement[bool], limit: int) -> list[OverlapRow]:
    """Rows that meet conditions on the columns of `overlap`, in time order."""
    rows = db.execute(_ROWS.where(overlap.c.trace_id == THIS_TRACE, *conditions).order_by(overlap.c.t_ns, overlap.c.n).limit(limit))
    return [_row(row) for row in rows]
