"""Connections torn down: who did it, by which reason, at what moment, and what was the matter then (winsock-semantics 8)."""

from collector.afdcodes import ABORT_REASONS, LISTENER_ABORTS, TRANSPORT_ABORTS, EnterExit
from collector.model.afd_table import Event
from collector.model.socket_state import Socket

__all__ = ["abort_row"]

_BY_WINSOCK, _BY_TRANSPORT = 7, 8
_PENDING_DATA = 7


def abort_row(socket: Socket, e: Event, *, indications_traced: bool) -> tuple[object, ...]:
    """A row of table `abort` without its number; marks the socket's connection as aborted.

    Args:
        indications_traced: whether the trace has told of arriving data so far; without, unread bytes are unknown.
    """
    reason = ABORT_REASONS.get(e.x)
    closed_ns = socket.destroyed_ns if socket.closed_ns is None else socket.closed_ns
    is_closing = closed_ns is not None and e.ns >= closed_ns
    is_lonely = e.x in LISTENER_ABORTS and not socket.connections and not socket.remote
    on_listener = socket.listener or is_lonely
    unread = None
    if indications_traced and e.x == _PENDING_DATA:
        unread = max(socket.connection_indicated - socket.connection_received, 0)
    row = (
        socket.n,
        e.ns,
        e.id,
        e.x & 0xFFFFFFFF,  # a status instead of a reason is shown as one
        None if reason is None else reason.name,
        None if reason is None else reason.certainty,
        _initiator(e),
        "close" if is_closing else "running",
        on_listener or not socket.is_aborted,
        on_listener,
        unread,
        len(socket.open),
        socket.last_error,
        socket.last_disconnect_ns,
        socket.last_traffic_ns,
        e.location,
        e.pid,
        e.tid,
        e.cpu,
        e.stack,
    )
    if not on_listener:
        socket.is_aborted = True
    return row


def _initiator(e: Event) -> str:
    if e.id == _BY_WINSOCK:
        return "afd"
    if e.id == _BY_TRANSPORT or e.x in TRANSPORT_ABORTS or e.enter_exit == EnterExit.TRANSPORT:
        return "transport"
    return "afd"
