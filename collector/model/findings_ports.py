"""Findings on ports and listeners: no port left, a port taken, connections that came faster than they were accepted."""

from collections.abc import Iterator

from sqlalchemy import case, distinct, func, or_, select

from collector.model.finding import CERTAIN, HIGH, LOW, MAX_PER_RULE, MEDIUM, About, Finding, between, counted, said, span, status_text, was
from collector.store.evidence import failed_at_listener, is_reported_twice
from collector.store.tables import abort, address, bind_failure, listen_event, socket

__all__ = ["listener_overrun", "ports_exhausted", "ports_taken"]

DYNAMIC_PORTS = 49_152
PORTS_EXHAUSTED = 0xC0000209
"""STATUS_TOO_MANY_ADDRESSES."""


def ports_exhausted(about: About) -> Iterator[Finding]:
    """Q09: binds that failed because no port was left, and who held ports at that moment."""
    b, s = bind_failure.c, socket.c
    query = (
        select(
            s.process_n,
            func.count().label("times"),
            func.min(b.socket_n).label("socket_n"),
            func.min(b.t_ns).label("t_ns"),
            func.max(b.t_ns).label("last_ns"),
        )
        .join_from(bind_failure, socket, (s.trace_id == b.trace_id) & (s.n == b.socket_n), isouter=True)
        .where(b.status == PORTS_EXHAUSTED)
        .group_by(s.process_n)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        who = about.process(row.process_n).label
        holders = [(about.process(n).label, held) for n, held in _port_holders(about, row.t_ns)]
        held = "; ".join(f"{label} held {counted(count, 'port')}" for label, count in holders)
        yield Finding(
            "ports_exhausted",
            HIGH,
            row.times,
            row.process_n,
            row.socket_n if row.times == 1 else None,
            row.t_ns,
            f"{counted(row.times, 'bind')} of {who} failed because no port was left",
            said(
                f"The answer was {status_text(PORTS_EXHAUSTED)}, {between(row.t_ns, row.last_ns)}.",
                f"At that moment, of the ports seen to be bound, {held}." if held else None,
                "Certain: that status says so; sockets older than the trace, and ports that wait in the TCP layer, are not counted.",
                "Next: see who opens connections fastest, and whether they can be reused.",
            ),
            CERTAIN,
            about.link("ports", process_n=row.process_n, status=f"0x{PORTS_EXHAUSTED:08x}"),
            "Q09",
        )


def _port_holders(about: About, t_ns: int) -> list[tuple[int | None, int]]:
    """Processes by the number of dynamic ports that their sockets hold at a moment, most first."""
    s, a = socket.c, address.c
    query = (
        select(s.process_n, func.count(distinct(a.port)).label("times"))
        .join_from(socket, address, (a.trace_id == s.trace_id) & (a.n == s.local_n))
        .where(a.port >= DYNAMIC_PORTS, s.first_ns <= t_ns, or_(s.closed_ns.is_(None), s.closed_ns > t_ns))
        .group_by(s.process_n)
        .order_by(func.count(distinct(a.port)).desc())
        .limit(3)
    )
    return [(row.process_n, row.times) for row in about.rows(query)]


def ports_taken(about: About) -> Iterator[Finding]:
    """Q09: binds that failed for another reason, mostly a port that somebody has."""
    b, s, a = bind_failure.c, socket.c, address.c
    query = (
        select(
            s.process_n,
            b.status,
            func.count().label("times"),
            func.min(b.socket_n).label("socket_n"),
            func.min(b.t_ns).label("t_ns"),
            func.max(a.text).label("requested"),
        )
        .join_from(bind_failure, socket, (s.trace_id == b.trace_id) & (s.n == b.socket_n), isouter=True)
        .outerjoin(address, (a.trace_id == b.trace_id) & (a.n == b.requested_n))
        .where(b.status != PORTS_EXHAUSTED)
        .group_by(s.process_n, b.status)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        asked = f", the address asked for was {row.requested}" if row.requested and row.times == 1 else ""
        yield Finding(
            "bind_failed",
            LOW,
            row.times,
            row.process_n,
            row.socket_n if row.times == 1 else None,
            row.t_ns,
            f"{counted(row.times, 'bind')} of {about.process(row.process_n).label} failed with {status_text(row.status)}",
            said(
                f"First at {span(row.t_ns)}{asked}.",
                "Certain: the status was recorded; it is not the sign of exhausted ports. Next: see who has the port.",
            ),
            CERTAIN,
            about.socket_page(row.socket_n)
            if row.times == 1 and row.socket_n is not None
            else about.link("ports", process_n=row.process_n, status=f"0x{row.status:08x}"),
            "Q09",
        )


def listener_overrun(about: About) -> Iterator[Finding]:
    """Q13: a listener whose queue of connections filled up, or where some failed.

    A connection that fails is often recorded twice, as a failed request and as an abort at the listener right after; it counts once.
    """
    e, s, a = listen_event.c, socket.c, abort.c
    failed = case((failed_at_listener(), 1), else_=0)
    of_listener = (a.trace_id == e.trace_id, a.socket_n == e.socket_n, a.on_listener)
    aborts = select(func.count()).where(*of_listener, ~is_reported_twice()).scalar_subquery()
    confirmed = select(func.count()).where(*of_listener, is_reported_twice()).scalar_subquery()
    query = (
        select(
            e.socket_n,
            s.process_n,
            func.max(e.backlog_asked).label("asked"),
            func.max(e.backlog_now).label("reached"),
            func.sum(failed).label("failed"),
            func.max(e.wait_ns).label("wait_ns"),
            func.min(case((failed == 1, e.t_ns))).label("failed_ns"),
            aborts.label("aborted"),
            confirmed.label("confirmed"),
        )
        .join_from(listen_event, socket, (s.trace_id == e.trace_id) & (s.n == e.socket_n))
        .group_by(e.socket_n, s.process_n)
        .order_by(func.sum(failed).desc())
    )
    found = [row for row in about.rows(query) if row.failed or row.aborted or (row.asked and (row.reached or 0) >= row.asked)]
    for row in found[:MAX_PER_RULE]:
        lost = (row.failed or 0) + (row.aborted or 0)
        who = about.process(row.process_n).label
        at = row.failed_ns if row.failed_ns is not None else _first_abort(about, row.socket_n)
        yield Finding(
            "listener_overrun",
            HIGH if lost else MEDIUM,
            max(lost, 1),
            row.process_n,
            row.socket_n,
            at if lost else _first_full(about, row.socket_n, row.reached),
            f"{counted(lost, 'connection')} failed at a listener of {who}" if lost else f"The queue of a listener of {who} filled up",
            said(
                f"Up to {counted(row.reached, 'connection')} waited{f' of {row.asked:,} asked for' if row.asked else ''}."
                if row.reached is not None
                else None,
                f"The longest wait from a request to its accept was {span(row.wait_ns)}." if row.wait_ns else None,
                _failures(about, row.socket_n, row.failed) if row.failed else None,
                f"{row.confirmed:,} of these {'is' if row.confirmed == 1 else 'are'} also recorded as an abort at the listener."
                if row.confirmed
                else None,
                f"{counted(row.aborted, 'connection')} {was(row.aborted)} aborted at the listener without any other record."
                if row.aborted
                else None,
                "Certain: the listener's own records say so.",
                "Next: accept faster or keep more accepts posted, then ask for a longer backlog.",
            ),
            CERTAIN,
            about.link("listeners", socket_n=row.socket_n),
            "Q13",
        )


def _failures(about: About, socket_n: int, failed: int) -> str:
    """`5 incoming connections failed: 5 with STATUS_INSUFFICIENT_RESOURCES (0xC000009A).`"""
    e = listen_event.c
    query = (
        select(e.status, func.count().label("times"))
        .where(e.trace_id == 1, e.socket_n == socket_n, failed_at_listener())
        .group_by(e.status)
        .order_by(func.count().desc())
        .limit(4)
    )
    by_status = about.rows(query)
    if len(by_status) == 1:
        return f"{counted(failed, 'connection')} failed with {status_text(by_status[0].status)}."
    answers = ", ".join(f"{row.times:,} with {status_text(row.status)}" for row in by_status)
    return f"{counted(failed, 'connection')} failed: {answers}{' and others' if sum(r.times for r in by_status) < failed else ''}."


def _first_abort(about: About, socket_n: int) -> int | None:
    a = abort.c
    query = select(func.min(a.t_ns)).where(a.trace_id == 1, a.socket_n == socket_n, a.on_listener)
    found: int | None = about.connection.execute(query).scalar()
    return found


def _first_full(about: About, socket_n: int, reached: int | None) -> int | None:
    e = listen_event.c
    query = select(func.min(e.t_ns)).where(e.trace_id == 1, e.socket_n == socket_n, e.backlog_now == (reached or 0))
    found: int | None = about.connection.execute(query).scalar()
    return found
