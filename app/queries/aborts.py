"""Connections that were torn down: who did it, why, and what was lost."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Integer, Row, and_, func, select, type_coerce

from app import format as fmt
from app.filters import Conditions, Filter, one_of, parse_bytes, parse_count, parse_duration, yes_no
from app.links import ProcessRef
from app.paging import Asked, Position, Sort, count_up_to, fetch
from app.queries.connection import connection_filters
from app.queries.stack_refs import stack_hash
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
from collector.afdcodes import ABORT_REASONS, SIDED_ABORTS, TRANSPORT_ABORTS
from collector.store.evidence import REST_NS, rest_before
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["FILTERS", "SORTS", "AbortRow", "aborts_number", "aborts_page"]

abort = TRACE.tables["abort"]
_s = socket_table()
_p = process_table()
_remote = TRACE.tables["address"].alias("remote")


@dataclass(frozen=True, slots=True)
class AbortRow:
    """One abort. `unread_bytes` is None where arriving data was not recorded; `initiator_inferred` says that the number of the reason alone
    tells the side."""

    t_ns: int
    socket: str | None
    process: ProcessRef | None
    remote: str | None
    reason: str
    reason_number: int
    reason_certainty: str | None
    meaning: str | None
    initiator: str
    initiator_inferred: bool
    during: str
    primary: bool
    on_listener: bool
    unread_bytes: int | None
    outstanding: int | None
    last_error: fmt.Status | None
    quiet_ns: int | None
    location: int | None
    stack: str | None


_quiet = abort.c.t_ns - abort.c.last_traffic_ns

FILTERS = (
    owner_filter(abort.c.socket_n),
    socket_filter(abort.c.socket_n),
    *connection_filters(abort.c.socket_n),
    Filter(
        "reason",
        parse_count,
        lambda v: abort.c.reason == v,
        "for reason {}",
        "Reason",
        choices=tuple((str(number), f"{number} {fmt.words(reason.name)}") for number, reason in ABORT_REASONS.items()),
    ),
    Filter(
        "initiator",
        one_of(("afd", "transport")),
        lambda v: abort.c.initiator.in_(v),
        "by {}",
        "By",
        show=" or ".join,
        choices=(("afd", "Winsock (afd)"), ("transport", "transport")),
    ),
    Filter(
        "during",
        one_of(("running", "close")),
        lambda v: abort.c.during.in_(v),
        "{}",
        "When",
        show=lambda v: " or ".join({"running": "while it was open", "close": "while it was being closed"}[word] for word in v),
        choices=(("running", "while open"), ("close", "while closing")),
    ),
    Filter(
        "primary",
        yes_no,
        lambda v: abort.c.is_primary if v else ~abort.c.is_primary,
        "that are {}",
        "Cause",
        show=lambda v: "the cause" if v else "a consequence",
        choices=(("yes", "the cause"), ("no", "a consequence")),
    ),
    Filter(
        "unread",
        yes_no,
        lambda v: abort.c.unread_bytes > 0 if v else func.coalesce(abort.c.unread_bytes, 0) == 0,
        "{} data unread",
        "Unread data",
        show=lambda v: "with" if v else "without known",
        choices=(("yes", "with"), ("no", "none known")),
    ),
    Filter(
        "listener",
        yes_no,
        lambda v: abort.c.on_listener if v else ~abort.c.on_listener,
        "{}",
        "At a listener",
        show=lambda v: "at a listener" if v else "of connections with a socket",
        choices=(("yes", "at a listener"), ("no", "of a connection's socket")),
    ),
    Filter(
        "stale",
        yes_no,
        lambda v: func.coalesce(rest_before(abort), 0) >= REST_NS if v else func.coalesce(rest_before(abort), 0) < REST_NS,
        "{} a long rest",
        "Used after a rest",
        show=lambda v: "soon after a use that followed" if v else "not after",
        choices=(("yes", "after a rest"), ("no", "not")),
    ),
    Filter(
        "status",
        parse_status,
        lambda v: status_condition(_s.c.last_error, v),
        "whose socket's last error is {}",
        "Last error",
        show=status_words,
        hint="10054, a name",
    ),
    Filter("min_unread", parse_bytes, lambda v: abort.c.unread_bytes >= v, "with {} unread or more", "Unread from", show=fmt.bytes_text),
    Filter("min_quiet", parse_duration, lambda v: _quiet >= v, "after {} of quiet or more", "Quiet from", show=fmt.duration, hint="10 s"),
    *moment_filters(abort.c.t_ns),
)

_MOMENT = (abort.c.t_ns,)

SORTS = (
    Sort("t_ns", abort.c.t_ns, is_time=True),
    Sort("process", _p.c.image),
    Sort("remote", _remote.c.text),
    Sort("reason", abort.c.reason),
    Sort("initiator", abort.c.initiator),
    Sort("during", abort.c.during),
    Sort("primary", type_coerce(abort.c.is_primary, Integer), falls=True),
    Sort("last_error", abort.c.last_error),
    Sort("location", abort.c.location),
    Sort("unread_bytes", abort.c.unread_bytes, falls=True),
    Sort("outstanding", abort.c.outstanding, falls=True),
    Sort("quiet_ns", _quiet, falls=True),
)

_ROWS = select(
    *(
        abort.c[name]
        for name in (
            "t_ns",
            "reason",
            "reason_name",
            "reason_certainty",
            "initiator",
            "event",
            "during",
            "is_primary",
            "on_listener",
            "unread_bytes",
            "outstanding",
            "last_error",
            "location",
        )
    ),
    _quiet.label("quiet_ns"),
    stack_hash(abort.c.stack_ref).label("stack"),
    _remote.c.text.label("remote"),
    *socket_columns(_s),
    *process_columns(_p),
).select_from(
    abort.outerjoin(_s, and_(_s.c.trace_id == THIS_TRACE, _s.c.n == abort.c.socket_n))
    .outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == _s.c.process_n))
    .outerjoin(_remote, and_(_remote.c.trace_id == THIS_TRACE, _remote.c.n == _s.c.remote_n))
)


def _row(row: Row[Any]) -> AbortRow:  # Any: the columns of _ROWS
    known = ABORT_REASONS.get(row.reason)
    return AbortRow(
        t_ns=row.t_ns,
        socket=socket_ref(row),
        process=process_ref(row),
        remote=row.remote,
        reason=f"{row.reason} {fmt.words(row.reason_name)}" if row.reason_name else f"{row.reason}",
        reason_number=row.reason,
        reason_certainty=row.reason_certainty,
        meaning=known.meaning if known else None,
        initiator="Winsock" if row.initiator == "afd" else row.initiator,
        initiator_inferred=row.event not in SIDED_ABORTS and row.reason in TRANSPORT_ABORTS,
        during=row.during,
        primary=row.is_primary,
        on_listener=row.on_listener,
        unread_bytes=row.unread_bytes,
        outstanding=row.outstanding,
        last_error=fmt.to_status(row.last_error),
        quiet_ns=row.quiet_ns,
        location=row.location,
        stack=row.stack,
    )


def aborts_page(db: Connection, asked: Asked) -> tuple[list[AbortRow], Position | None]:
    """One page of the aborts, and where the next begins."""
    found = fetch(db, _ROWS, table=abort, moment=_MOMENT, asked=asked, are_moments=True)
    return [_row(row) for row in found.rows], found.next


def aborts_number(db: Connection, where: Conditions) -> int | None:
    """How many aborts there are, as `count_up_to`."""
    return count_up_to(db, _ROWS, table=abort, moment=_MOMENT, where=where, are_moments=True)
