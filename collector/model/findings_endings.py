"""Findings on how connections ended: aborted, closed with data unread or requests in flight, refused, used after a long rest."""

from collections.abc import Iterator

from sqlalchemy import case, distinct, func, or_, select

from collector import words
from collector.afdcodes import ABORT_REASONS, STATUS_WOULD_BLOCK, TRANSPORT_ABORTS
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
)
from collector.store.tables import abort, address, operation, socket

__all__ = ["aborted", "closed_in_flight", "connects_failed", "stale_connections", "unread_at_close"]

_KIND = words.OPERATION_KINDS.index
_OUTCOME = words.OUTCOMES.index
_SENDS = tuple(_KIND(kind) for kind in ("send", "sendto", "sendmsg"))
_RECEIVES = tuple(_KIND(kind) for kind in ("recv", "recvfrom", "recvmsg"))
_DATA = (*_SENDS, *_RECEIVES)
_ERRORS = (_OUTCOME("failed"), _OUTCOME("rejected"))

REST_NS = 5_000_000_000
"""A connection that was silent this long before its last use was probably kept in a pool."""
_SOON_NS = 2_000_000_000
_MARKS = {CERTAIN: "confirmed", POSSIBLE: "inferred"}
_MOMENTS = {"close": "closing"}


def aborted(about: About) -> Iterator[Finding]:
    """Q01: the first abort of each connection is its cause; grouped by process, side, moment and reason."""
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
        who = about.process(row.process_n).label
        name = f"reason {row.reason}, {reason.name}" if reason else f"reason {row.reason}, unnamed"
        ended = about.process_end(row.process_n, near_ns=row.last_ns) if row.during == "close" else None
        by_transport = row.initiator == "transport"
        if by_transport:
            title = f"{counted(row.times, 'connection')} of {who} {'was' if row.times == 1 else 'were'} reset by the network side"
        elif ended is not None:
            title = f"{who} ended with {counted(row.times, 'connection')} open"
        else:
            title = f"Winsock aborted {counted(row.times, 'connection')} of {who} while {_MOMENTS.get(row.during, row.during)}"
        yield Finding(
            "aborted",
            HIGH if by_transport and row.during == "running" else MEDIUM if row.during == "running" else LOW,
            row.times,
            row.process_n,
            row.socket_n if row.sockets == 1 else None,
            row.t_ns,
            title,
            said(
                f"{'The transport' if by_transport else 'Winsock'} reported it ({name}), {between(row.t_ns, row.last_ns)}.",
                f"The process ended at {span(ended)}." if ended is not None else reason.meaning if reason else None,
                _waiting(row.busy, row.times),
                f"Certain: the event was recorded; the meaning of its number is {_MARKS[reason.certainty] if reason else 'not known'}.",
                f"Next: {reason.next_step[:1].lower() + reason.next_step[1:] if reason else 'see the last operations before it.'}",
            ),
            CERTAIN if by_transport or (reason and reason.certainty == CERTAIN) else POSSIBLE,
            about.socket_page(row.socket_n)
            if row.sockets == 1
            else about.link("aborts", process_n=row.process_n, reason=row.reason, during=row.during),
            "Q01",
        )


def _waiting(busy: int, connections: int) -> str | None:
    if not busy:
        return None
    return "Requests were in flight." if connections == 1 else f"Requests were in flight on {busy:,} of them."


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
                f"{sized(row.unread)} had arrived and were never received, first at {span(row.t_ns)}.",
                "The peer got a reset instead of an orderly end.",
                about.doubt("indicated and received bytes differ", "a receive may be among them"),
                "Next: read to the end of the stream before closing.",
            ),
            about.certainty(),
            about.socket_page(row.socket_n) if row.times == 1 else about.link("aborts", process_n=row.process_n, during=row.during),
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
            else about.link("errors", process_n=row.process_n, kind="connect", status=f"0x{row.status or 0:08x}"),
            "Q23",
        )


def stale_connections(about: About) -> Iterator[Finding]:
    """Q01: a connection that rested, was used again, and was reset at once: the other end had given it up."""
    a, s = abort.c, socket.c
    query = (
        select(s.process_n, a.socket_n, a.t_ns)
        .join_from(abort, socket, (s.trace_id == a.trace_id) & (s.n == a.socket_n))
        .where(a.is_primary, ~a.on_listener, a.during == "running", a.reason.in_(TRANSPORT_ABORTS))
        .order_by(a.t_ns)
        .limit(2_000)
    )
    stale: dict[int | None, list[tuple[int, int, int]]] = {}
    for row in about.rows(query):
        rest = _rest_before(about, row.socket_n, row.t_ns)
        if rest is not None:
            stale.setdefault(row.process_n, []).append((row.t_ns, row.socket_n, rest))
    for process_n, found in stale.items():
        t_ns, socket_n, _ = found[0]
        one = socket_n if len(found) == 1 else None
        yield Finding(
            "stale_connection",
            MEDIUM,
            len(found),
            process_n,
            one,
            t_ns,
            f"{about.process(process_n).label} used {counted(len(found), 'connection')} that the other end had probably given up",
            said(
                f"After a rest of {span(min(r for *_, r in found))} or more a send was posted, and a reset came within {span(_SOON_NS)}.",
                "Possible: this is the pattern of a pooled connection used too late, not a proof.",
                "Next: compare the idle limit of the pool with that of the server.",
            ),
            POSSIBLE,
            about.socket_page(one)
            if one is not None
            else about.link("aborts", process_n=process_n, initiator="transport", during="running"),
            "Q01",
        )


def _rest_before(about: About, socket_n: int, t_ns: int) -> int | None:
    """How long a connection was silent before the sends that were answered by an abort; None for another pattern."""
    o = operation.c
    query = (
        select(o.kind, o.posted_ns, o.completed_ns)
        .where(o.trace_id == 1, o.socket_n == socket_n, o.posted_ns <= t_ns, o.kind.in_(_DATA))
        .where(or_(o.completed_ns.is_(None), o.completed_ns < t_ns) | o.kind.in_(_SENDS))
        .order_by(o.posted_ns.desc())
        .limit(8)
    )
    used = about.rows(query)
    recent = [row for row in used if row.kind in _SENDS and row.posted_ns >= t_ns - _SOON_NS]
    if not recent:
        return None
    again = min(row.posted_ns for row in recent)
    before = [moment for row in used for moment in (row.posted_ns, row.completed_ns) if moment is not None and moment < again]
    rest = again - max(before) if before else None
    return rest if rest is not None and rest >= REST_NS else None
