"""Findings on how connections ended: aborted, closed with data unread or requests in flight, refused, used after a long rest."""

from collections.abc import Iterator

from sqlalchemy import case, distinct, func, select

from collector import words
from collector.afdcodes import ABORT_REASONS, STATUS_WOULD_BLOCK, AbortReason
from collector.model.finding import (
    CERTAIN,
    HAS_SOCKET,
    HIGH,
    LOW,
    MAX_PER_RULE,
    MEDIUM,
    OPERATION_OF_SOCKET,
    POSSIBLE,
    About,
    Finding,
    between,
    counted,
    said,
    sized,
    span,
    status_text,
    was,
)
from collector.store.evidence import REST_NS, SOON_NS, rest_before
from collector.store.tables import abort, address, operation, socket

__all__ = ["aborted", "closed_in_flight", "connects_failed", "stale_connections", "unread_at_close"]

_KIND = words.OPERATION_KINDS.index
_OUTCOME = words.OUTCOMES.index
_SENDS = tuple(_KIND(kind) for kind in ("send", "sendto", "sendmsg"))
_RECEIVES = tuple(_KIND(kind) for kind in ("recv", "recvfrom", "recvmsg"))
_DATA = (*_SENDS, *_RECEIVES)
_ERRORS = (_OUTCOME("failed"), _OUTCOME("rejected"))

_MOMENTS = {"close": "while {} being closed", "running": "while {} open"}
_ASKED_FOR = {2: "asked for the reset of {}", 3: "shut down receiving on {} with data unread"}
"""Reasons that say that the program, or a library in it, did it."""


def aborted(about: About) -> Iterator[Finding]:
    """Q01: the first abort of each connection is its cause; grouped by process, side, moment and reason.

    The number of a reason is recorded. What it means may be inferred: then the title only says "probably", and the badge "possible".
    """
    a, s = abort.c, socket.c
    query = (
        select(
            s.process_n,
            a.reason,
            a.initiator,
            a.during,
            func.count().label("times"),
            func.count(distinct(a.socket_n)).label("sockets"),
            func.min(a.socket_n).label("socket_n"),
            func.min(a.t_ns).label("t_ns"),
            func.sum(case((a.outstanding > 0, 1), else_=0)).label("busy"),
            func.max(a.t_ns).label("last_ns"),
        )
        .join_from(abort, socket, (s.trace_id == a.trace_id) & (s.n == a.socket_n))
        .where(a.is_primary, ~a.on_listener, func.coalesce(a.unread_bytes, 0) == 0)
        .group_by(s.process_n, a.reason, a.initiator, a.during)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        reason = ABORT_REASONS.get(row.reason)
        sure = reason.certainty if reason else CERTAIN  # the title then speaks of the number alone
        ended = about.process_end(row.process_n, near_ns=row.last_ns) if row.during == "close" else None
        by_transport = row.initiator == "transport"
        yield Finding(
            "aborted",
            HIGH if by_transport and row.during == "running" else MEDIUM if row.during == "running" else LOW,
            row.times,
            row.process_n,
            row.socket_n if row.sockets == 1 else None,
            row.t_ns,
            _abort_title(about.process(row.process_n).label, row.times, row.reason, during=row.during, at_exit=ended is not None),
            said(
                f"The abort{'' if row.times == 1 else 's'} came {between(row.t_ns, row.last_ns)}"
                f"{f', for reason {row.reason}' if reason else ''}.",
                (reason.meaning if sure == CERTAIN else f"Probably: {reason.meaning[:1].lower()}{reason.meaning[1:]}") if reason else None,
                f"The process ended at {span(ended)}, so that its end probably closed {_it(row.times)}." if ended is not None else None,
                _waiting(row.busy, row.times),
                _how_sure(reason),
                f"Next: {reason.next_step[:1].lower() + reason.next_step[1:] if reason else 'see the last operations before it.'}",
            ),
            sure,
            about.socket_page(row.socket_n)
            if row.sockets == 1
            else about.link(
                "aborts",
                process_n=row.process_n,
                reason=row.reason,
                initiator=row.initiator,
                during=row.during,
                primary="yes",
                unread="no",
                listener="no",
            ),
            "Q01",
        )


def _abort_title(who: str, times: int, number: int, *, during: str, at_exit: bool) -> str:
    """What happened, with a cause only where the number's meaning is confirmed."""
    connections = counted(times, "connection")
    when = "as it ended" if at_exit else _MOMENTS[during].format("it was" if times == 1 else "they were")
    reason = ABORT_REASONS.get(number)
    if reason is None:
        return f"{connections} of {who} {was(times)} aborted {when} (reason {number}, unnamed)"
    if reason.certainty != CERTAIN:
        return f"{connections} of {who} {was(times)} aborted {when} (reason {number}, probably: {reason.name.replace('_', ' ')})"
    if number in _ASKED_FOR:
        return f"{who} {_ASKED_FOR[number].format(connections)}"
    return f"Winsock aborted {connections} of {who} {when} ({reason.name.replace('_', ' ')})"


def _how_sure(reason: AbortReason | None) -> str:
    if reason is None:
        return "Certain: the event and its number were recorded; what the number means is not known."
    if reason.certainty == CERTAIN:
        return "Certain: the event and its number were recorded, and what the number means is confirmed."
    return "Possible: the event and its number were recorded; what the number means is inferred."


def _it(count: int) -> str:
    return "it" if count == 1 else "them"


def _waiting(busy: int, connections: int) -> str | None:
    if not busy:
        return None
    if connections == 1:
        return "Requests were in flight."
    return f"Requests were in flight on {'all' if busy == connections else format(busy, ',')} of them."


def unread_at_close(about: About) -> Iterator[Finding]:
    """Q06: data had arrived that the program never received, and its connection was aborted for it."""
    a, s = abort.c, socket.c
    query = (
        select(
            s.process_n,
            a.during,
            func.count().label("times"),
            func.sum(a.unread_bytes).label("unread"),
            func.min(a.socket_n).label("socket_n"),
            func.min(a.t_ns).label("t_ns"),
        )
        .join_from(abort, socket, (s.trace_id == a.trace_id) & (s.n == a.socket_n))
        .where(a.is_primary, a.unread_bytes > 0)
        .group_by(s.process_n, a.during)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        who = about.process(row.process_n).label
        verb = "closed" if row.during == "close" else "tore down"
        yield Finding(
            "unread_at_close",
            HIGH,
            row.times,
            row.process_n,
            row.socket_n if row.times == 1 else None,
            row.t_ns,
            f"{who} {verb} {counted(row.times, 'connection')} with {sized(row.unread)} unread",
            said(
                f"{sized(row.unread)} had arrived and {was(row.unread)} never received, first at {span(row.t_ns)}.",
                "Winsock aborted instead of closing in order, which sends a reset; what the peer saw is not in the trace.",
                about.doubt("indicated and received bytes differ", "a receive may be among them"),
                "Next: read to the end of the stream before closing.",
            ),
            about.certainty(),
            about.socket_page(row.socket_n)
            if row.times == 1
            else about.link("aborts", process_n=row.process_n, during=row.during, primary="yes", unread="yes"),
            "Q06",
        )


def closed_in_flight(about: About) -> Iterator[Finding]:
    """Q06: sends and receives that were still in flight when their socket was closed."""
    o, s = operation.c, socket.c
    is_send = o.kind.in_(_SENDS)
    query = (
        select(
            s.process_n,
            is_send.label("is_send"),
            func.count().label("times"),
            func.count(distinct(o.socket_n)).label("sockets"),
            func.min(o.socket_n).label("socket_n"),
            func.min(o.end_ns).label("t_ns"),
            func.sum(func.coalesce(o.posted_len, 0)).label("bytes"),
        )
        .select_from(OPERATION_OF_SOCKET)
        .where(HAS_SOCKET, o.outcome == _OUTCOME("ended_with_socket"), o.kind.in_(_DATA))
        .group_by(s.process_n, is_send)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        noun = "send" if row.is_send else "receive"
        who = about.process(row.process_n).label
        consequence = f"{sized(row.bytes)} may never have left." if row.is_send else "What they would have received is lost."
        yield Finding(
            "closed_in_flight",
            MEDIUM if row.is_send else LOW,
            row.times,
            row.process_n,
            row.socket_n if row.sockets == 1 else None,
            row.t_ns,
            f"{who} closed sockets with {counted(row.times, noun)} in flight",
            said(
                f"{counted(row.times, noun)} on {counted(row.sockets, 'socket')} had not completed at the close.",
                f"The first was closed at {span(row.t_ns)}.",
                consequence,
                about.doubt("no completion was recorded", "completions may be among them"),
                "Next: wait for the completion, or cancel and wait, before closing.",
            ),
            about.certainty(),
            about.link(
                "operations",
                process_n=row.process_n,
                socket_n=row.socket_n if row.sockets == 1 else None,
                kind=",".join(words.OPERATION_KINDS[kind] for kind in (_SENDS if row.is_send else _RECEIVES)),
                outcome="ended_with_socket",
            ),
            "Q06",
        )


def connects_failed(about: About) -> Iterator[Finding]:
    """Q23: connects that failed, by process, remote address and status."""
    o, s, r = operation.c, socket.c, address.c
    query = (
        select(
            s.process_n,
            o.status,
            r.text.label("remote"),
            func.count().label("times"),
            func.min(o.socket_n).label("socket_n"),
            func.min(o.posted_ns).label("t_ns"),
            func.max(o.completed_ns - o.posted_ns).label("longest"),
        )
        .select_from(OPERATION_OF_SOCKET)
        .outerjoin(address, (r.trace_id == o.trace_id) & (r.n == func.coalesce(o.peer_n, s.remote_n)))
        .where(HAS_SOCKET, o.kind == _KIND("connect"), o.outcome.in_(_ERRORS), func.coalesce(o.status, 0) != STATUS_WOULD_BLOCK)
        .group_by(s.process_n, o.status, r.text)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        who = about.process(row.process_n).label
        where = f" to {row.remote}" if row.remote else ""
        yield Finding(
            "connect_failed",
            MEDIUM if row.times < 10 else HIGH,
            row.times,
            row.process_n,
            row.socket_n if row.times == 1 else None,
            row.t_ns,
            f"{counted(row.times, 'connect')}{where} by {who} failed",
            said(
                f"The answer was {status_text(row.status or 0)}, first asked for at {span(row.t_ns or 0)}.",
                f"{'It' if row.times == 1 else 'The longest'} took {span(row.longest)}." if row.longest is not None else None,
                "Certain: the status was recorded. Next: see whether the other end listens there and answers.",
            ),
            CERTAIN,
            about.socket_page(row.socket_n)
            if row.times == 1
            else about.link(
                "errors", process_n=row.process_n, kind="connect", status=f"0x{row.status or 0:08x}", remote=row.remote or "unknown"
            ),
            "Q23",
        )


def stale_connections(about: About) -> Iterator[Finding]:
    """Q01: a connection that rested, was used again, and was reset at once: the other end had given it up."""
    a, s = abort.c, socket.c
    rested = (
        select(s.process_n, a.socket_n, a.t_ns, rest_before().label("rest"))
        .join_from(abort, socket, (s.trace_id == a.trace_id) & (s.n == a.socket_n))
        .subquery("rested")
    ).c
    query = (
        select(
            rested.process_n,
            func.count().label("times"),
            func.min(rested.socket_n).label("socket_n"),
            func.min(rested.t_ns).label("t_ns"),
            func.min(rested.rest).label("rest"),
        )
        .where(rested.rest >= REST_NS)
        .group_by(rested.process_n)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        one = row.socket_n if row.times == 1 else None
        yield Finding(
            "stale_connection",
            MEDIUM,
            row.times,
            row.process_n,
            one,
            row.t_ns,
            f"{about.process(row.process_n).label} used {counted(row.times, 'connection')} that the other end had probably given up",
            said(
                f"After a rest of {span(row.rest)}{'' if one else ' or more'} a send was posted, and an abort came within {span(SOON_NS)}.",
                "Possible: this is the pattern of a pooled connection used too late, not a proof.",
                "Next: compare the idle limit of the pool with that of the server.",
            ),
            POSSIBLE,
            about.socket_page(one) if one is not None else about.link("aborts", process_n=row.process_n, stale="yes"),
            "Q01",
        )
