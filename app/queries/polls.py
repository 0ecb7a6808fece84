"""Select and poll calls: calls of a process without a socket."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, select

from app import format as fmt
from app.filters import Conditions, Filter, parse_count, parse_duration
from app.links import ProcessRef
from app.paging import Asked, Position, Sort, count_up_to, fetch
from app.queries.statuses import parse_status, status_condition, status_words
from app.queries.who import life_filters, process_columns, process_filter, process_ref, process_table
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["FILTERS", "SORTS", "PollRow", "polls_number", "polls_page"]

poll = TRACE.tables["poll"]
_owner = TRACE.tables["owner"]
_p = process_table()
_took = poll.c.completed_ns - poll.c.posted_ns


@dataclass(frozen=True, slots=True)
class PollRow:
    """One call. `timeout_raw` is as recorded; its unit is not documented."""

    posted_ns: int | None
    completed_ns: int | None
    took_ns: int | None
    process: ProcessRef | None
    tid: int | None
    handles: int | None
    timeout_raw: int | None
    error: fmt.Status | None


FILTERS = (
    process_filter(_owner.c.process_n),
    Filter("tid", parse_count, lambda v: poll.c.tid == v, "of thread {}", "Thread"),
    Filter("status", parse_status, lambda v: status_condition(poll.c.error, v), "with status {}", "Status", show=status_words),
    Filter("min_latency", parse_duration, lambda v: _took >= v, "that took {} or longer", "Took from", show=fmt.duration, hint="200 ms"),
    Filter("max_latency", parse_duration, lambda v: _took <= v, "that took {} or less", "Took to", show=fmt.duration),
    Filter("min_handles", parse_count, lambda v: poll.c.handles >= v, "of {} handles or more", "Handles from"),
    *life_filters(poll.c.posted_ns, poll.c.completed_ns),
)

_MOMENT = (poll.c.posted_ns, poll.c.completed_ns)

SORTS = (
    Sort("posted_ns", poll.c.posted_ns, is_time=True),
    Sort("took_ns", _took, falls=True),
    Sort("process", _p.c.image),
    Sort("tid", poll.c.tid),
    Sort("timeout_raw", poll.c.timeout_raw, falls=True),
    Sort("handles", poll.c.handles, falls=True),
    Sort("error", poll.c.error),
)

_ROWS = select(
    *(poll.c[name] for name in ("posted_ns", "completed_ns", "tid", "handles", "timeout_raw", "error")),
    _took.label("took_ns"),
    *process_columns(_p),
).select_from(
    poll.outerjoin(_owner, and_(_owner.c.trace_id == THIS_TRACE, _owner.c.n == poll.c.owner_n)).outerjoin(
        _p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == _owner.c.process_n)
    )
)


def _row(row: Row[Any]) -> PollRow:  # Any: the columns of _ROWS
    return PollRow(
        posted_ns=row.posted_ns,
        completed_ns=row.completed_ns,
        took_ns=row.took_ns,
        process=process_ref(row),
        tid=row.tid,
        handles=row.handles,
        timeout_raw=row.timeout_raw,
        error=fmt.to_status(row.error),
    )


def polls_page(db: Connection, asked: Asked) -> tuple[list[PollRow], Position | None]:
    """One page of the polls, and where the next begins."""
    found = fetch(db, _ROWS, table=poll, moment=_MOMENT, asked=asked)
    return [_row(row) for row in found.rows], found.next


def polls_number(db: Connection, where: Conditions) -> int | None:
    """How many polls there are, as `count_up_to`."""
    return count_up_to(db, _ROWS, table=poll, moment=_MOMENT, where=where)
