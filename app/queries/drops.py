"""Datagrams that arrived and were thrown away."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, func, select

from app.filters import Conditions, Filter, parse_bytes, parse_count
from app.format import bytes_text, words
from app.links import ProcessRef
from app.paging import Asked, Position, Sort, count_up_to, fetch
from app.queries.addresses import address_numbers, parse_address_range
from app.queries.connection import connection_filters
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
from collector.afdcodes import DATAGRAM_DROP_REASONS
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["FILTERS", "SORTS", "DropRow", "drops_by_reason", "drops_number", "drops_page"]

drop = TRACE.tables["drop"]
_s = socket_table()
_p = process_table()
_source = TRACE.tables["address"].alias("source")
_local = TRACE.tables["address"].alias("local")


@dataclass(frozen=True, slots=True)
class DropRow:
    """One dropped datagram."""

    t_ns: int
    socket: str | None
    process: ProcessRef | None
    local: str | None
    reason: str
    reason_certainty: str | None
    length: int | None
    source: str | None
    receives_outstanding: int
    receive_buffer_bytes: int | None


FILTERS = (
    owner_filter(drop.c.socket_n),
    socket_filter(drop.c.socket_n),
    *connection_filters(drop.c.socket_n, peer_n=drop.c.source_n),
    Filter(
        "reason",
        parse_count,
        lambda v: drop.c.reason == v,
        "for reason {}",
        "Reason",
        choices=tuple((str(number), f"{number} {words(reason.name)}") for number, reason in DATAGRAM_DROP_REASONS.items()),
    ),
    Filter("source", parse_address_range, lambda v: drop.c.source_n.in_(address_numbers(v)), "from {}", "Source", hint="IP or prefix"),
    Filter("min_bytes", parse_bytes, lambda v: drop.c.length >= v, "of {} or more", "Size from", show=bytes_text, hint="1 KiB"),
    Filter("max_bytes", parse_bytes, lambda v: drop.c.length <= v, "of {} or less", "Size to", show=bytes_text),
    *moment_filters(drop.c.t_ns),
)

_MOMENT = (drop.c.t_ns,)

SORTS = (
    Sort("t_ns", drop.c.t_ns, is_time=True),
    Sort("process", _p.c.image),
    Sort("local", _local.c.text),
    Sort("reason", drop.c.reason),
    Sort("length", drop.c.length, falls=True),
    Sort("source", _source.c.text),
    Sort("receive_buffer_bytes", drop.c.receive_buffer_bytes, falls=True),
    Sort("receives_outstanding", drop.c.receives_outstanding, falls=True),
)

_ROWS = select(
    *(
        drop.c[name]
        for name in ("t_ns", "reason", "reason_name", "reason_certainty", "length", "receives_outstanding", "receive_buffer_bytes")
    ),
    _source.c.text.label("source"),
    _local.c.text.label("local"),
    *socket_columns(_s),
    *process_columns(_p),
).select_from(
    drop.outerjoin(_s, and_(_s.c.trace_id == THIS_TRACE, _s.c.n == drop.c.socket_n))
    .outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == _s.c.process_n))
    .outerjoin(_source, and_(_source.c.trace_id == THIS_TRACE, _source.c.n == drop.c.source_n))
    .outerjoin(_local, and_(_local.c.trace_id == THIS_TRACE, _local.c.n == _s.c.local_n))
)


def _row(row: Row[Any]) -> DropRow:  # Any: the columns of _ROWS
    return DropRow(
        t_ns=row.t_ns,
        socket=socket_ref(row),
        process=process_ref(row),
        local=row.local,
        reason=f"{row.reason} {words(row.reason_name)}" if row.reason_name else f"{row.reason}",
        reason_certainty=row.reason_certainty,
        length=row.length,
        source=row.source,
        receives_outstanding=row.receives_outstanding,
        receive_buffer_bytes=row.receive_buffer_bytes,
    )


def drops_page(db: Connection, asked: Asked) -> tuple[list[DropRow], Position | None]:
    """One page of the drops, and where the next begins."""
    found = fetch(db, _ROWS, table=drop, moment=_MOMENT, asked=asked, are_moments=True)
    return [_row(row) for row in found.rows], found.next


def drops_number(db: Connection, where: Conditions) -> int | None:
    """How many drops there are, as `count_up_to`."""
    return count_up_to(db, _ROWS, table=drop, moment=_MOMENT, where=where, are_moments=True)


def drops_by_reason(db: Connection) -> list[tuple[str, int, int, int]]:
    """All drops of the trace by reason: (reason, number, first, last), the most frequent first."""
    rows = db.execute(
        select(drop.c.reason, drop.c.reason_name, func.count(), func.min(drop.c.t_ns), func.max(drop.c.t_ns))
        .where(drop.c.trace_id == THIS_TRACE)
        .group_by(drop.c.reason, drop.c.reason_name)
        .order_by(func.count().desc(), drop.c.reason)
    )
    return [(f"{number} {words(name)}" if name else str(number), count, first, last) for number, name, count, first, last in rows]
