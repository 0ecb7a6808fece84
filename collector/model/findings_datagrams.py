"""Findings on datagram sockets: drops, resets, receives too small for what arrived."""

from collections.abc import Iterator

from sqlalchemy import case, distinct, func, select

from collector import words
from collector.afdcodes import DATAGRAM_DROP_REASONS
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
from collector.store.tables import drop, operation, option, peer, socket

__all__ = ["datagram_resets", "datagrams_dropped", "receives_too_small"]

_RECEIVES = tuple(words.OPERATION_KINDS.index(kind) for kind in ("recv", "recvfrom", "recvmsg"))
_ERRORS = tuple(words.OUTCOMES.index(word) for word in ("failed", "rejected"))

_DATAGRAM = 2
TOO_SMALL = (0x80000005, 0xC0000023)
"""STATUS_BUFFER_OVERFLOW, which delivers what fits, and STATUS_BUFFER_TOO_SMALL."""
RESETS = (0xC000020D, 0xC000023F, 0xC000023C, 0xC000023D)
"""Connection reset, and port, network and host unreachable: what a datagram sent earlier met."""
SIO_UDP_CONNRESET = 11
FULL_BUFFER = (2, 4)


def datagrams_dropped(about: About) -> Iterator[Finding]:
    """Q21: datagrams that arrived and were thrown away, by socket and reason."""
    d, s = drop.c, socket.c
    query = (
        select(
            s.process_n,
            d.socket_n,
            d.reason,
            func.max(case((d.reason_certainty == CERTAIN, 1), else_=0)).label("is_named"),
            func.count().label("times"),
            func.min(d.t_ns).label("t_ns"),
            func.max(d.t_ns).label("last_ns"),
            func.sum(func.coalesce(d.length, 0)).label("bytes"),
            func.max(d.receives_outstanding).label("outstanding"),
            func.max(d.receive_buffer_bytes).label("buffer"),
            func.count(distinct(d.source_n)).label("sources"),
        )
        .join_from(drop, socket, (s.trace_id == d.trace_id) & (s.n == d.socket_n), isouter=True)
        .group_by(s.process_n, d.socket_n, d.reason)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        reason = DATAGRAM_DROP_REASONS.get(row.reason)
        name = f"reason {row.reason}, {reason.name.replace('_', ' ')}" if reason else f"reason {row.reason}, unnamed"
        slow = row.reason in FULL_BUFFER
        yield Finding(
            "datagrams_dropped",
            HIGH if slow and row.times >= 100 else MEDIUM if slow else LOW,
            row.times,
            row.process_n,
            row.socket_n,
            row.t_ns,
            f"{counted(row.times, 'datagram')} to {about.process(row.process_n).label} {was(row.times)} dropped",
            said(
                f"{sized(row.bytes)} from {_senders(row.sources)} {was(row.bytes)} thrown away, {between(row.t_ns, row.last_ns)} ({name}).",
                reason.meaning if reason else None,
                f"The receive buffer in force was {sized(row.buffer)}." if row.buffer is not None else None,
                _waiting(row.outstanding or 0) if slow else None,
                "Certain: the driver recorded each drop and its reason."
                if row.is_named
                else "Possible: each drop was recorded, but what the number means in these events is inferred.",
                "Next: keep more receives posted, or raise SO_RCVBUF." if slow else "Next: see who sends to this socket.",
            ),
            CERTAIN if row.is_named else POSSIBLE,
            about.link("drops", process_n=row.process_n, socket_n=row.socket_n, reason=row.reason),
            "Q21",
        )


def _senders(count: int) -> str:
    return counted(count, "sender") if count else "unknown senders"


def _waiting(receives: int) -> str:
    return f"At most {counted(receives, 'receive')} waited at those moments." if receives else "No receive waited at those moments."


def datagram_resets(about: About) -> Iterator[Finding]:
    """Q15: receives on datagram sockets that failed because an earlier send met a closed port."""
    o, s, p = operation.c, socket.c, option.c
    asked = (
        select(func.max(p.value)).where(p.trace_id == o.trace_id, p.socket_n == o.socket_n, p.option == SIO_UDP_CONNRESET).scalar_subquery()
    )
    peers = select(func.count()).where(peer.c.trace_id == o.trace_id, peer.c.socket_n == o.socket_n, peer.c.sends > 0).scalar_subquery()
    moment = func.coalesce(o.completed_ns, o.posted_ns)
    query = (
        select(
            s.process_n,
            o.socket_n,
            o.status,
            func.count().label("times"),
            func.min(moment).label("t_ns"),
            asked.label("asked"),
            peers.label("peers"),
        )
        .join_from(operation, socket, (s.trace_id == o.trace_id) & (s.n == o.socket_n))
        .where(s.type == _DATAGRAM, o.kind.in_(_RECEIVES), o.outcome.in_(_ERRORS), o.status.in_(RESETS))
        .group_by(s.process_n, o.socket_n, o.status)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        setting = {
            None: "SIO_UDP_CONNRESET was not set in this trace, so resets are reported",
            0: "SIO_UDP_CONNRESET was set to 0 at some time",
        }.get(row.asked, "SIO_UDP_CONNRESET was switched on")
        yield Finding(
            "datagram_reset",
            MEDIUM,
            row.times,
            row.process_n,
            row.socket_n,
            row.t_ns,
            f"{counted(row.times, 'datagram receive')} of {about.process(row.process_n).label} failed with {status_text(row.status)}",
            said(
                f"{'It failed' if row.times == 1 else 'The first failed'} at {span(row.t_ns)};",
                f"the socket had sent to {counted(row.peers or 0, 'address', 'addresses')}.",
                f"{setting}.",
                "The status is recorded. Possible: an earlier datagram of this socket probably met a closed port, or no way to its address;"
                " the ICMP message that would say so is not traced.",
                "Next: see which peer no longer listens, or switch the report off with SIO_UDP_CONNRESET.",
            ),
            POSSIBLE,
            about.link(
                "errors",
                socket_n=row.socket_n,
                kind=",".join(words.OPERATION_KINDS[kind] for kind in _RECEIVES),
                status=f"0x{row.status:08x}",
            ),
            "Q15",
        )


def receives_too_small(about: About) -> Iterator[Finding]:
    """Q22: receives that were shorter than their datagram."""
    o, s = operation.c, socket.c
    query = (
        select(
            s.process_n,
            o.socket_n,
            func.count().label("times"),
            func.min(func.coalesce(o.completed_ns, o.posted_ns)).label("t_ns"),
            func.min(o.posted_len).label("shortest"),
            func.max(o.posted_len).label("longest"),
            o.status,
        )
        .select_from(OPERATION_OF_SOCKET)
        .where(HAS_SOCKET, o.kind.in_(_RECEIVES), o.status.in_(TOO_SMALL))
        .group_by(s.process_n, o.socket_n, o.status)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        lengths = (
            "unknown length"
            if row.longest is None
            else sized(row.longest)
            if row.shortest == row.longest
            else f"{row.shortest:,} to {sized(row.longest)}"
        )
        yield Finding(
            "receive_too_small",
            MEDIUM,
            row.times,
            row.process_n,
            row.socket_n,
            row.t_ns,
            f"{counted(row.times, 'receive')} of {about.process(row.process_n).label} had too little room for the datagram",
            said(
                f"{'It' if row.times == 1 else 'They'} offered {lengths} and {was(row.times)} answered with",
                f"{status_text(row.status)}, {'' if row.times == 1 else 'first '}at {span(row.t_ns)}.",
                "Certain: the status was recorded; it says that what did not fit is lost.",
                "Next: post receives of the largest datagram that the protocol allows.",
            ),
            CERTAIN,
            about.link(
                "operations",
                socket_n=row.socket_n,
                kind=",".join(words.OPERATION_KINDS[kind] for kind in _RECEIVES),
                status=f"0x{row.status:08x}",
            ),
            "Q22",
        )
