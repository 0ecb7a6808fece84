"""Findings on how sockets are kept: never closed, requests that never complete, calls that keep failing."""

from collections.abc import Iterator

from sqlalchemy import and_, case, distinct, func, literal, or_, select

from collector import words
from collector.afdcodes import STATUS_WOULD_BLOCK
from collector.model.finding import (
    CERTAIN,
    HAS_SOCKET,
    HIGH,
    LOW,
    MAX_PER_RULE,
    MEDIUM,
    OPERATION_OF_SOCKET,
    About,
    Finding,
    between,
    counted,
    said,
    span,
    status_text,
)
from collector.store.evidence import half_closed as sockets_half_closed
from collector.store.evidence import is_left_open
from collector.store.tables import address, operation, socket

__all__ = ["half_closed", "never_completed", "repeated_errors", "unclosed"]

_KIND = words.OPERATION_KINDS.index
_OUTCOME = words.OUTCOMES.index
_SENDS = tuple(_KIND(kind) for kind in ("send", "sendto", "sendmsg"))
_RECEIVES = tuple(_KIND(kind) for kind in ("recv", "recvfrom", "recvmsg"))
_CONNECT = _KIND("connect")

MIN_UNCLOSED = 10
LONG_SEND_NS = 1_000_000_000
LONG_CONNECT_NS = 3_000_000_000
LONG_RECEIVE_NS = 10_000_000_000
MIN_REPEATED = 10


def unclosed(about: About) -> Iterator[Finding]:
    """Q05: connections opened in the trace to one address and still open at its end, most of those that were opened."""
    s, r = socket.c, address.c
    is_open = case((is_left_open(), 1), else_=0)
    query = (
        select(
            s.process_n,
            r.text.label("remote"),
            func.count().label("opened"),
            func.sum(is_open).label("times"),
            func.min(case((is_left_open(), s.created_ns))).label("t_ns"),
        )
        .join_from(socket, address, (r.trace_id == s.trace_id) & (r.n == s.remote_n))
        .where(s.create_seen, s.connections > 0, ~s.listener)
        .group_by(s.process_n, r.text)
        .having(and_(func.sum(is_open) >= MIN_UNCLOSED, func.sum(is_open) * 2 >= func.count()))
        .order_by(func.sum(is_open).desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        who = about.process(row.process_n).label
        yield Finding(
            "unclosed_sockets",
            HIGH if row.times >= 100 else MEDIUM,
            row.times,
            row.process_n,
            None,
            row.t_ns,
            f"{who} opened {counted(row.times, 'connection')} to {row.remote} and closed none of them"
            if row.times == row.opened
            else f"{who} left {row.times:,} of {row.opened:,} connections to {row.remote} open",
            said(
                f"They were opened from {span(row.t_ns)} on and are still open when the trace ends at {span(about.end_ns)}.",
                about.doubt("no close was recorded; a pool may keep them on purpose", "closes may be among them"),
                "Next: see the stack that creates them, and who should close them.",
            ),
            about.certainty(),
            about.link("sockets", process_n=row.process_n, remote=row.remote, kept="left_open", unused=""),
            "Q05",
        )


def half_closed(about: About) -> Iterator[Finding]:
    """Q05: the peer has finished and the program has not closed: the shape of what TCP calls CLOSE_WAIT."""
    kept = sockets_half_closed(literal(about.end_ns)).subquery("half_closed").c
    query = (
        select(
            kept.process_n,
            func.count().label("times"),
            func.min(kept.socket_n).label("socket_n"),
            func.min(kept.t_ns).label("t_ns"),
            func.max(kept.waited_ns).label("longest"),
            func.sum(kept.is_open).label("open"),
        )
        .group_by(kept.process_n)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        who = about.process(row.process_n).label
        yield Finding(
            "half_closed",
            MEDIUM if row.times < 20 else HIGH,
            row.times,
            row.process_n,
            row.socket_n if row.times == 1 else None,
            row.t_ns,
            f"The peer has finished {counted(row.times, 'connection')} that {who} kept open",
            said(
                f"After the peer's disconnect the {'socket' if row.times == 1 else 'sockets'} stayed open for {_up_to(row.times)}"
                f"{span(row.longest)}; {_still_open(row.open, row.times)} when the trace ends.",
                about.doubt("the disconnect was indicated and no close followed in that time", "closes may be among them"),
                "TCP states are not traced; netstat probably shows these as CLOSE_WAIT.",
                "Next: see whether the program reads the end of the stream and closes.",
            ),
            about.certainty(),
            about.socket_page(row.socket_n)
            if row.times == 1
            else about.link("sockets", process_n=row.process_n, kept="half_closed", unused=""),
            "Q05",
        )


def _up_to(times: int) -> str:
    return "" if times == 1 else "up to "


def _still_open(is_open: int, times: int) -> str:
    if times == 1:
        return f"it is {'still open' if is_open else 'closed'}"
    return "all are open" if is_open == times else f"{counted(is_open, 'is', 'are')} still open"


def never_completed(about: About) -> Iterator[Finding]:
    """Q04: requests in flight for long when the trace ends. A receive waits for its peer, so it takes longer to be worth a look."""
    o, s = operation.c, socket.c
    age = literal(about.end_ns) - o.posted_ns
    sort = case((o.kind.in_(_SENDS), 0), (o.kind == _CONNECT, 1), else_=2)
    query = (
        select(
            s.process_n,
            sort.label("sort"),
            func.count().label("times"),
            func.count(distinct(o.socket_n)).label("sockets"),
            func.min(o.socket_n).label("socket_n"),
            func.min(o.posted_ns).label("t_ns"),
        )
        .select_from(OPERATION_OF_SOCKET)
        .where(
            HAS_SOCKET,
            o.outcome == _OUTCOME("in_flight"),
            or_(
                o.kind.in_(_SENDS) & (age >= LONG_SEND_NS),
                (o.kind == _CONNECT) & (age >= LONG_CONNECT_NS),
                o.kind.in_(_RECEIVES) & (age >= LONG_RECEIVE_NS),
            ),
        )
        .group_by(s.process_n, sort)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        noun = ("send", "connect", "receive")[row.sort]
        who = about.process(row.process_n).label
        next_step = (
            "Next: see whether the peer reads, and the send buffer in force.",
            "Next: see whether the other end answers at all.",
            "A receive waits for its peer, which may be as wished. Next: see the last traffic on these sockets.",
        )[row.sort]
        yield Finding(
            "never_completed",
            (MEDIUM, MEDIUM, LOW)[row.sort],
            row.times,
            row.process_n,
            row.socket_n if row.sockets == 1 else None,
            row.t_ns,
            f"{counted(row.times, noun)} of {who} {'has' if row.times == 1 else 'have'} not completed when the trace ends",
            said(
                f"{'It' if row.times == 1 else 'The oldest'} was posted at {span(row.t_ns)} and had waited "
                f"{span(about.end_ns - row.t_ns)} by then{_of_sockets(row.sockets) if row.times > 1 else ''}.",
                about.doubt("no completion was recorded", "the completion may be among them"),
                next_step,
            ),
            about.certainty(),
            about.link(
                "operations",
                process_n=row.process_n,
                socket_n=row.socket_n if row.sockets == 1 else None,
                kind=",".join(words.OPERATION_KINDS[kind] for kind in (_SENDS, (_CONNECT,), _RECEIVES)[row.sort]),
                outcome="in_flight",
                to=about.end_ns - (LONG_SEND_NS, LONG_CONNECT_NS, LONG_RECEIVE_NS)[row.sort],
            ),
            "Q04",
        )


def _of_sockets(count: int) -> str:
    return f"; {counted(count, 'socket')} in all"


def repeated_errors(about: About) -> Iterator[Finding]:
    """Q23: the same failure again and again, by process, call and status. Connects and datagram resets have rules of their own."""
    o, s = operation.c, socket.c
    status = func.coalesce(o.status, 0)
    query = (
        select(
            s.process_n,
            o.kind,
            status.label("status"),
            func.count().label("times"),
            func.count(distinct(o.socket_n)).label("sockets"),
            func.min(o.socket_n).label("socket_n"),
            func.min(func.coalesce(o.completed_ns, o.posted_ns)).label("t_ns"),
            func.max(func.coalesce(o.completed_ns, o.posted_ns)).label("last_ns"),
        )
        .select_from(OPERATION_OF_SOCKET)
        .where(HAS_SOCKET, o.outcome.in_((_OUTCOME("failed"), _OUTCOME("rejected"))), status != STATUS_WOULD_BLOCK, o.kind != _CONNECT)
        .group_by(s.process_n, o.kind, status)
        .having(func.count() >= MIN_REPEATED)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        who = about.process(row.process_n).label
        kind = words.OPERATION_KINDS[row.kind]
        lasted = row.last_ns - row.t_ns
        rate = f", {row.times * 10**9 / lasted:,.1f} a second" if lasted >= 10**9 else ""
        yield Finding(
            "repeated_errors",
            MEDIUM,
            row.times,
            row.process_n,
            row.socket_n if row.sockets == 1 else None,
            row.t_ns,
            f"{who}: {kind} fails {counted(row.times, 'time')} with {status_text(row.status)}",
            said(
                f"That was {between(row.t_ns, row.last_ns)}, on {counted(row.sockets, 'socket')}{rate}. Certain: the status was recorded.",
                "Next: see whether the program goes on calling a connection that has ended.",
            ),
            CERTAIN,
            about.link(
                "errors",
                process_n=row.process_n,
                socket_n=row.socket_n if row.sockets == 1 else None,
                kind=kind,
                status=f"0x{row.status:08x}",
            ),
            "Q23",
        )
