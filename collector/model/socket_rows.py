"""The socket model's values as rows of their tables, in the order of the tables' columns."""

from collector.afdcodes import DATAGRAM_DROP_REASONS, option_name
from collector.model.afd_table import Event
from collector.model.rows import Row
from collector.model.socket_state import Socket

__all__ = ["SKIPPED_KINDS", "drop_row", "event_row", "option_row", "peer_rows", "skipped_row", "socket_row"]

SKIPPED_KINDS = {
    1003: "send",
    1004: "recv",
    1005: "sendto",
    1006: "recvfrom",
    1007: "sendto",
    1009: "recvfrom",
    1011: "sendmsg",
    1012: "recvmsg",
    1013: "sendmsg",
    1015: "recvmsg",
}
_NAMED_DROPS = 1033  # the one event whose drop reasons the manifest names


def event_row(socket_n: int | None, owner_n: int | None, e: Event) -> Row:
    """A row of `socket_event` without its number."""
    fields = e.fields
    if fields is None and e.buffer | e.length:
        fields = f'{{"buffer": "{e.buffer & 0xFFFFFFFFFFFFFFFF:#x}", "buffer_length": {e.length}}}'
    status = e.status if e.has_status else None
    return (
        socket_n,
        owner_n,
        e.ns,
        e.seq,
        e.cpu,
        e.pid,
        e.tid,
        e.id,
        e.enter_exit,
        e.location,
        status,
        e.address or None,
        fields,
        e.stack,
    )


def skipped_row(socket_n: int | None, e: Event, reason: str) -> Row:
    """A row of `skipped` without its number."""
    kind = SKIPPED_KINDS.get(e.id, "other")
    return (socket_n, e.ns, kind, e.id, e.length, e.location, reason, e.cpu, e.pid, e.tid, e.buffer or None, e.status)


def option_row(socket: Socket, e: Event) -> Row:
    """A row of `option` without its number."""
    return (socket.n, e.ns, e.x, option_name(e.x), e.y, e.status if e.has_status else None)


def drop_row(socket: Socket, e: Event) -> Row:
    """A row of `drop` without its number."""
    reason = DATAGRAM_DROP_REASONS.get(e.x)
    certainty = None if reason is None else "certain" if e.id == _NAMED_DROPS else "possible"
    name = None if reason is None else reason.name
    return (socket.n, e.ns, e.x, name, certainty, e.length, e.address or None, socket.receiving, socket.receive_buffer)


def peer_rows(socket: Socket) -> list[Row]:
    """Rows of `peer`."""
    return [
        (socket.n, address, p.bytes_sent, p.bytes_received, p.sends, p.receives, p.dropped) for address, p in (socket.peers or {}).items()
    ]


def socket_row(s: Socket, end: str, loopback_peer_n: int | None) -> Row:
    """A row of `socket`."""
    return (
        s.n,
        s.endpoint,
        s.owner.n,
        s.owner.process_n,
        s.family,
        s.type,
        s.protocol,
        s.type_inferred,
        s.create_seen,
        s.created_ns,
        s.closed_ns,
        s.destroyed_ns,
        s.first_ns,
        s.last_ns,
        end,
        s.local or None,
        s.remote or None,
        s.connections,
        s.listener,
        s.accepted_from,
        s.accept_inferred,
        loopback_peer_n,
        s.bytes_sent,
        s.bytes_received,
        s.bytes_indicated,
        s.sends,
        s.receives,
        s.errors,
        s.last_error,
        s.create_stack,
        s.close_stack,
        s.create_tid,
        s.close_tid,
        s.is_registered_io,
    )
