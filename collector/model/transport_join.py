"""Which socket each connection of the network stack is: a pass over the unfinished file, by addresses, process and time.

Both addresses and the process being equal is exact. A socket may know less than the stack does (it was bound to no address of its own, or
was accepted by a listener on all of them), so ports, the other side, process and time may do; that is inferred, and only where one
socket fits. Addresses that several sockets had one after the other are told apart by time, event by event.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, bindparam, func, select, update

from collector.model.transport_keys import TCP
from collector.store.tables import address, process, socket, transport_event, transport_flow

__all__ = ["join_transport"]

_FLOWS_AT_ONCE = 100_000
_MAX_CANDIDATES = 64
"""Sockets that one connection is compared with; more at the same ports and time are nothing that could be told apart."""
_NEVER = (1 << 62) - 1
_EARLIER_NS = 1_000_000_000
"""The stack may know a connection before its socket has a record: it is accepted first, and the endpoint made for it later."""
_LATER_NS = 240_000_000_000
"""After its close a connection still sends what is left, and waits twice the longest life of a segment."""
_ANY = (bytes(16), bytes(10) + b"\xff\xff" + bytes(4))
_DATAGRAM = 2

_Key: TypeAlias = tuple[Any, ...]  # Any: parts of addresses, of three kinds of keys


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A socket that may be the one; its local IP is None where it has none of its own."""

    n: int
    first_ns: int
    last_ns: int
    local_ip: bytes | None
    pid: int | None


def join_transport(connection: Connection) -> None:
    """Fill in the sockets of `transport_flow` and `transport_event`; a trace without such rows costs one query.

    Raises: StoreFull, StoreError, CollectCancelled.
    """
    last: int = connection.execute(select(func.coalesce(func.max(transport_flow.c.n), 0))).scalar_one()
    for low in range(1, last + 1, _FLOWS_AT_ONCE):
        _join(connection, low, low + _FLOWS_AT_ONCE - 1)
    connection.commit()


def _join(connection: Connection, low: int, high: int) -> None:
    """Join the flows with these numbers."""
    f = transport_flow.c
    flows = connection.execute(
        select(f.n, f.protocol, f.pid, f.local_ip, f.local_port, f.remote_ip, f.remote_port, f.first_ns, f.last_ns)
        .where(f.trace_id == 1, f.n.between(low, high))
        .order_by(f.n)
    ).all()
    wanted = {key for flow in flows for key in _keys(flow.protocol, flow.pid, flow.local_port, flow.remote_ip, flow.remote_port)}
    candidates = _candidates(connection, wanted)
    found = []
    shared: dict[int, list[_Candidate]] = {}
    for flow in flows:
        fitting, match = _fitting(flow, candidates)
        if fitting:
            only = fitting[0].n if len(fitting) == 1 else None
            found.append({"flow": flow.n, "count": len(fitting), "socket": only, "how": match if only is not None else None})
            if only is None:
                shared[flow.n] = fitting
    if found:
        connection.execute(
            update(transport_flow)
            .where(f.trace_id == 1, f.n == bindparam("flow"))
            .values(sockets=bindparam("count"), socket_n=bindparam("socket"), match=bindparam("how")),
            found,
        )
    _tell_apart(connection, shared)


def _keys(protocol: int, pid: int | None, local_port: int, remote_ip: bytes | None, remote_port: int | None) -> Iterator[_Key]:
    """What the sockets of a flow are looked up by, the surest first."""
    if protocol != TCP:
        if local_port and pid is not None:
            yield "local", pid, local_port
        return
    if remote_port and local_port:
        yield "both", remote_ip, remote_port, local_port
    if remote_port and pid is not None:
        yield "remote", pid, remote_ip, remote_port


def _candidates(connection: Connection, wanted: set[_Key]) -> dict[_Key, list[_Candidate]]:
    """Sockets by these keys. Loops over all sockets once (2 µs each)."""
    s, near, far, p = socket.c, address.alias("near"), address.alias("far"), process.c
    rows = connection.execute(
        select(
            s.n, s.type, s.first_ns, s.last_ns, s.closed_ns, s.destroyed_ns, p.pid,
            near.c.ip.label("local_ip"), near.c.port.label("local_port"), far.c.ip.label("remote_ip"), far.c.port.label("remote_port"),
        )
        .select_from(
            socket.outerjoin(near, (near.c.trace_id == 1) & (near.c.n == s.local_n))
            .outerjoin(far, (far.c.trace_id == 1) & (far.c.n == s.remote_n))
            .outerjoin(process, (p.trace_id == 1) & (p.n == s.process_n))
        )
        .where(s.trace_id == 1)
        .order_by(s.first_ns, s.n)
    )  # fmt: skip
    found: defaultdict[_Key, list[_Candidate]] = defaultdict(list)
    for row in rows:
        if row.type == _DATAGRAM:
            keys: list[_Key] = [("local", row.pid, row.local_port)]
        elif row.remote_port and row.local_port:
            keys = [("both", row.remote_ip, row.remote_port, row.local_port)]
        elif row.remote_port:
            keys = [("remote", row.pid, row.remote_ip, row.remote_port)]
        else:
            continue
        for key in keys:
            if key in wanted:
                until = _NEVER if row.closed_ns is None else max(row.last_ns, row.destroyed_ns or row.closed_ns)
                local = None if row.local_ip in _ANY else row.local_ip
                found[key].append(_Candidate(row.n, row.first_ns, until, local, row.pid))
    return found


def _fitting(flow: Any, candidates: dict[_Key, list[_Candidate]]) -> tuple[list[_Candidate], str]:  # Any: a row
    """The sockets that had the addresses of a flow, in time order, and how sure that is."""
    for key in _keys(flow.protocol, flow.pid, flow.local_port, flow.remote_ip, flow.remote_port):
        near = [
            one
            for one in candidates.get(key, ())
            if one.first_ns - _EARLIER_NS <= flow.last_ns and flow.first_ns <= min(one.last_ns + _LATER_NS, _NEVER)
        ]
        exact = [one for one in near if one.local_ip == flow.local_ip and flow.pid in (None, one.pid)]
        if exact:
            return exact[:_MAX_CANDIDATES], "exact"
        loose = [one for one in near if _may_be(one, flow, key[0])]
        if key[0] == "remote":  # nothing tells connections of one process to one peer apart but their time
            loose = [one for one in loose if one.first_ns <= flow.first_ns <= one.last_ns]
            loose = loose if len(loose) == 1 else []
        if loose:
            return loose[:_MAX_CANDIDATES], "inferred"
    return [], "inferred"


def _may_be(one: _Candidate, flow: Any, kind: str) -> bool:  # Any: as above
    """Whether a socket that knows less than the flow, or is said to be of another process, may be it."""
    if one.local_ip not in (None, flow.local_ip) and not (kind == "local" and _is_group(flow.local_ip)):
        return False
    return one.local_ip is not None or flow.pid is None or one.pid in (None, flow.pid)


def _is_group(ip: bytes) -> bool:
    """Whether datagrams to this address are for many: multicast, or the broadcast of a network."""
    return ip[0] == 0xFF or (ip.startswith(_ANY[1][:12]) and (0xE0 <= ip[12] <= 0xEF or ip[15] == 0xFF))


def _tell_apart(connection: Connection, shared: dict[int, list[_Candidate]]) -> None:
    """Events of addresses that several sockets had: each belongs to the socket that lived then, or that it lies nearest to."""
    e = transport_event.c
    found = []
    for flow_n, candidates in shared.items():
        for n, t_ns in connection.execute(select(e.n, e.t_ns).where(e.trace_id == 1, e.flow_n == flow_n)):
            one = min(candidates, key=lambda one: max(one.first_ns - t_ns, t_ns - one.last_ns, 0))
            found.append({"event_n": n, "socket": one.n})
    if found:
        connection.execute(
            update(transport_event).where(e.trace_id == 1, e.n == bindparam("event_n")).values(socket_n=bindparam("socket")), found
        )
