"""Rows of table `operation`, in the order of its columns."""

from collector.model.afd_table import Event
from collector.model.rows import Row
from collector.model.socket_state import Kind, Operation, Socket

__all__ = ["UNPOSTED", "operation_row", "unposted_row"]

UNPOSTED = 0
"""The match of a completion that found no request: index of "none" in words.MATCHES."""
_NOTHING = (None,) * 6


def operation_row(
    o: Operation,
    outcome: int,
    match: int | None,
    length: int,
    status: int | None,
    end_ns: int | None,
    done: Event | None,
    accepted: int | None,
) -> Row:
    """A request whose post is known.

    Args:
        length: bytes that it moved.
        end_ns: end of its being in flight, None where it goes on.
        done: the record that completed it, or None.
        accepted: number of the socket that an accept made.
    """
    is_transfer = o.kind >= Kind.SEND
    began, post, memory = o.began, o.post, o.memory
    is_inferred = o.is_inferred
    return (
        o.n,
        o.socket.n,
        o.kind,
        outcome,
        match,
        length,
        status,
        memory.buffer or None,
        began.length if is_transfer else began.length or None,
        memory.buffer_count,
        memory.space if is_transfer else None,
        post.fast,
        is_inferred,
        began.ns,
        None if done is None else done.ns,
        end_ns,
        o.peer or None,
        accepted,
        *_columns_of(began),
        *(_NOTHING if done is None else _columns_of(done)),
        done.buffer if done is not None and done.buffer and done.buffer != memory.buffer else None,
        done.length if done is not None and done is not began and is_transfer else None,
        post.buffer or None if is_inferred else None,
        post.activity or None,
        began.stack,
        None if done is None or done is began else done.stack,
    )


def unposted_row(
    n: int, socket: Socket, kind: int, outcome: int, length: int, end_ns: int, done: Event, peer: int, accepted: int | None
) -> Row:
    """A completion whose post is unknown: the trace began later, or its record was lost."""
    is_transfer = kind >= Kind.SEND
    return (
        n,
        socket.n,
        kind,
        outcome,
        UNPOSTED,
        length,
        done.status,
        done.buffer or None,
        None,
        done.buffer_count,
        done.space if is_transfer else None,
        done.fast,
        False,
        None,
        done.ns,
        end_ns,
        peer or None,
        accepted,
        *_NOTHING,
        *_columns_of(done),
        None,
        done.length if is_transfer else None,
        None,
        done.activity or None,
        None,
        done.stack,
    )


def _columns_of(e: Event) -> tuple[int | None, ...]:
    """What a record says of itself: event, thread, process, processor, location, record number."""
    return (e.id, e.tid, e.pid, e.cpu, e.location, e.seq)
