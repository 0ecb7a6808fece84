"""Finding of small sends that wait for a delayed acknowledgement."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, or_, select

from collector import words
from collector.afdcodes import SO_SNDBUF
from collector.model.finding import HAS_SOCKET, MAX_PER_RULE, MEDIUM, OPERATION_OF_SOCKET, POSSIBLE, About, Finding, said, span
from collector.store.tables import operation, option, socket

__all__ = ["small_write_stalls"]

Bools: TypeAlias = NDArray[np.bool_]
Int64s: TypeAlias = NDArray[np.int64]

_STREAM = 1
_SEND, _RECEIVE = words.OPERATION_KINDS.index("send"), words.OPERATION_KINDS.index("recv")
_COMPLETED = words.OUTCOMES.index("completed")

SMALL_WRITE_BYTES = 1_460
DELAYS_NS = ((35_000_000, 55_000_000), (180_000_000, 240_000_000))
"""Usual waits of a delayed acknowledgement: 40 ms and 200 ms, with some room."""
MIN_STALLS = 5
_SENDS_A_STALL = 5
_CANDIDATES = 500
_OPERATIONS_READ = 200_000


def small_write_stalls(about: About) -> Iterator[Finding]:
    """Q16: small sends that wait about 40 or 200 ms, again and again: Nagle's algorithm against a delayed acknowledgement."""
    o, s = operation.c, socket.c
    moment, shortest = func.coalesce(o.posted_ns, o.completed_ns), DELAYS_NS[0][0]
    # Waits that count begin at a send each and follow one another: most sockets sent too much in too short a time for a share of them.
    has_time = func.count() * shortest <= (func.max(moment) - func.min(moment) + shortest) * _SENDS_A_STALL
    query = (
        select(o.socket_n, s.process_n, s.loopback_peer_n.label("peer_n"), func.count().label("small"))
        .select_from(OPERATION_OF_SOCKET)
        .where(HAS_SOCKET, o.kind == _SEND, o.bytes.between(1, SMALL_WRITE_BYTES), or_(s.type == _STREAM, s.type.is_(None)))
        .group_by(o.socket_n, s.process_n, s.loopback_peer_n)
        .having(func.count() >= MIN_STALLS * 2, has_time)
        .order_by(func.count().desc())
        .limit(_CANDIDATES)
    )
    found = 0
    for row in about.rows(query):
        waits = _own_waits(_waits(about, row.socket_n), _waits(about, row.peer_n))
        if waits.shape[0] < MIN_STALLS or waits.shape[0] * _SENDS_A_STALL < row.small:
            continue
        found += 1
        if found > MAX_PER_RULE:
            return
        usual = int(np.median(waits[:, 1]))
        buffer = _send_buffer(about, row.socket_n)
        yield Finding(
            "small_write_stall",
            MEDIUM,
            waits.shape[0],
            row.process_n,
            row.socket_n,
            int(waits[0, 0]),
            f"{waits.shape[0]:,} small sends of {about.process(row.process_n).label} wait about {span(usual)} each",
            said(
                f"The waits add up to {span(int(waits[:, 1].sum()))}, the first at {span(int(waits[0, 0]))}.",
                "SO_SNDBUF was set to 0: a send then completes only when the peer has acknowledged it." if buffer == 0 else None,
                "Possible: this is the pattern of Nagle's algorithm against a delayed acknowledgement, not a proof.",
                "TCP_NODELAY is not traced. Next: send in one piece, or set TCP_NODELAY.",
            ),
            POSSIBLE,
            about.link("stalls", socket_n=row.socket_n),
            "Q16",
        )


def _own_waits(waits: Int64s, of_peer: Int64s) -> Int64s:
    """The waits of a socket without those that lie within another one, of its own or of the other end of a local connection: what begins
    before an earlier wait is over is that wait again, seen otherwise."""
    is_own = np.repeat([1, 0], [waits.shape[0], of_peer.shape[0]])
    rows = np.column_stack([np.concatenate([waits, of_peer]), is_own])
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    over = np.maximum.accumulate(rows[:, 0] + rows[:, 1])
    is_new = np.ones(rows.shape[0], np.bool_)
    is_new[1:] = rows[1:, 0] >= over[:-1]
    return np.asarray(rows[is_new & (rows[:, 2] == 1)][:, :2], dtype=np.int64)


def _waits(about: About, socket_n: int | None) -> Int64s:
    """(start, length) in ns of each wait of a small send of one socket; one wait may be here twice, as seen by either pattern.

    Either the send itself takes that long, or it follows another send and what comes back does, counted from that send on.
    """
    if socket_n is None:
        return np.empty((0, 2), np.int64)
    o = operation.c
    query = (
        select(
            o.kind,
            o.bytes,
            func.coalesce(o.posted_ns, o.completed_ns).label("posted"),
            func.coalesce(o.completed_ns, -1).label("completed"),
        )
        .where(o.trace_id == 1, o.socket_n == socket_n, o.kind.in_((_SEND, _RECEIVE)), o.outcome == _COMPLETED)
        .order_by(o.posted_ns)
        .limit(_OPERATIONS_READ)
    )
    rows = np.array([tuple(row) for row in about.connection.execute(query)], dtype=np.int64).reshape(-1, 4)
    is_send = rows[:, 0] == _SEND
    is_small = is_send & (rows[:, 1] > 0) & (rows[:, 1] <= SMALL_WRITE_BYTES)
    took = rows[:, 3] - rows[:, 2]
    slow = rows[is_small & _is_delay(took)]
    # A send happens when it is posted, a receive when it completes.
    moment = np.where(is_send, rows[:, 2], rows[:, 3])
    order = np.argsort(moment, kind="stable")
    sends, small, at = is_send[order], is_small[order], moment[order]
    answered = np.flatnonzero(sends[:-1] & ~sends[1:] & small[:-1])
    answered = answered[(answered > 0) & sends[answered - 1]]  # write, write, read
    gap = at[answered + 1] - at[answered]
    late = _is_delay(gap)
    return np.concatenate([np.column_stack([slow[:, 2], slow[:, 3] - slow[:, 2]]), np.column_stack([at[answered[late]], gap[late]])])


def _is_delay(ns: Int64s) -> Bools:
    (low, high), (lower, higher) = DELAYS_NS
    return ((ns >= low) & (ns <= high)) | ((ns >= lower) & (ns <= higher))


def _send_buffer(about: About, socket_n: int) -> int | None:
    """SO_SNDBUF as set last."""
    p = option.c
    query = select(p.value).where(p.trace_id == 1, p.socket_n == socket_n, p.option == SO_SNDBUF).order_by(p.t_ns.desc()).limit(1)
    found: int | None = about.connection.execute(query).scalar()
    return found
