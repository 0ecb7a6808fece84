"""Builders of modern socket events (ids 1000 and up): one function an event, or a pair of events."""

from typing import Unpack

from collector.etlwriter.payloads import Value
from tests.build.afd_events import BY_AFD, DATAGRAM, INTERNAL, TRANSPORT, Where, Who, socket_event
from tests.build.afd_transfers import (
    BUFFER,
    KERNEL_BUFFER,
    receive,
    receive_from,
    receive_message,
    received,
    send,
    send_message,
    send_to,
    sent,
)
from tests.build.events import ENTER, EXIT, PID, Event

__all__ = [
    "BUFFER",
    "KERNEL_BUFFER",
    "Where",
    "Who",
    "abort",
    "accept",
    "accept_ex",
    "bind",
    "cleanup",
    "close",
    "closed",
    "connect",
    "connect_ex",
    "connect_indication",
    "connected",
    "create",
    "data_indication",
    "disconnect",
    "drop",
    "listen",
    "opened",
    "option",
    "receive",
    "receive_from",
    "receive_message",
    "received",
    "send",
    "send_backlog",
    "send_message",
    "send_to",
    "sent",
    "wait_for_listen",
]


# ---------------------------------------------------------------------------------------------------- life


def create(
    *,
    at_us: float,
    enter_exit: int = ENTER,
    family: int = 2,
    socket_type: int = 1,
    protocol: int | None = None,
    process_id: int | None = None,
    status: int = 0,
    **where: Unpack[Where],
) -> Event:
    protocol = (17 if socket_type == DATAGRAM else 6) if protocol is None else protocol
    where.setdefault("is_datagram", socket_type == DATAGRAM)
    where.setdefault("location", 1013 if enter_exit else 1006)
    pid = where.get("pid", PID) if process_id is None else process_id
    values: dict[str, Value] = {
        "address_family": family,
        "socket_type": socket_type,
        "protocol": protocol,
        "process_id": pid,
        "status": status,
    }
    return socket_event("AfdCreate", at_us, enter_exit, where, values)


def opened(*, at_us: float, family: int = 2, socket_type: int = 1, protocol: int | None = None, **where: Unpack[Where]) -> list[Event]:
    """A create's enter, and its exit 1 µs later."""
    return [
        create(at_us=at_us + i, enter_exit=i, family=family, socket_type=socket_type, protocol=protocol, **where) for i in (ENTER, EXIT)
    ]


def cleanup(*, at_us: float, enter_exit: int = ENTER, status: int = 0, **where: Unpack[Where]) -> Event:
    where.setdefault("location", 2003 if enter_exit else 2002)
    return socket_event("AfdCleanup", at_us, enter_exit, where, {"status": status})


def close(*, at_us: float, enter_exit: int = ENTER, status: int = 0, **where: Unpack[Where]) -> Event:
    where.setdefault("location", 2001 if enter_exit else 2000)
    return socket_event("AfdClose", at_us, enter_exit, where, {"status": status})


def closed(*, at_us: float, **where: Unpack[Where]) -> list[Event]:
    """Cleanup and close, enter and exit, 1 µs apart: the socket is closed at `at_us` and destroyed 3 µs later."""
    return [
        cleanup(at_us=at_us, **where),
        cleanup(at_us=at_us + 1, enter_exit=EXIT, **where),
        close(at_us=at_us + 2, **where),
        close(at_us=at_us + 3, enter_exit=EXIT, **where),
    ]


# ---------------------------------------------------------------------------------------------------- connections


def _connection(name: str, at_us: float, enter_exit: int, status: int, address: str | bytes | None, where: Where) -> Event:
    if address is None:
        return socket_event(name, at_us, enter_exit, where, {"status": status})
    values: dict[str, Value] = {"buffer": 0, "buffer_length": 0, "status": status, "address": address}
    return socket_event(name + "WithAddress", at_us, enter_exit, where, values)


def connect(*, at_us: float, enter_exit: int = ENTER, status: int = 0, address: str | bytes | None = None, **where: Unpack[Where]) -> Event:
    """1017 without, 1018 with an address."""
    return _connection("AfdConnect", at_us, enter_exit, status, address, where)


def connect_ex(
    *, at_us: float, enter_exit: int = ENTER, status: int = 0, address: str | bytes | None = None, **where: Unpack[Where]
) -> Event:
    """1020 without, 1021 with an address."""
    return _connection("AfdConnectEx", at_us, enter_exit, status, address, where)


def connected(*, at_us: float, address: str | bytes = "192.0.2.1:80", duration_us: float = 10, **where: Unpack[Where]) -> list[Event]:
    """A connect and its success in a thread of the system."""
    elsewhere: Where = {**where, "pid": 4, "tid": 0}
    return [
        connect(at_us=at_us, address=address, **where),
        connect(at_us=at_us + duration_us, enter_exit=EXIT, **elsewhere),
    ]


def bind(
    *, at_us: float, enter_exit: int = ENTER, status: int = 0, address: str | bytes | None = "0.0.0.0:0", **where: Unpack[Where]
) -> Event:
    """1030 with an address, 1029 (address None) as failures have it."""
    where.setdefault("location", 7022 if enter_exit else 7010)
    if address is None:
        return socket_event("AfdBind", at_us, enter_exit, where, {"status": status})
    return socket_event("AfdBindWithAddress", at_us, enter_exit, where, {"status": status, "address": address})


def listen(*, at_us: float, enter_exit: int = ENTER, backlog: int = 200, status: int = 0, **where: Unpack[Where]) -> Event:
    return socket_event("AfdListen", at_us, enter_exit, where, {"backlog": backlog, "status": status})


def wait_for_listen(*, at_us: float, enter_exit: int = ENTER, status: int = 0, **where: Unpack[Where]) -> Event:
    return socket_event("AfdWaitForListen", at_us, enter_exit, where, {"status": status})


def _accept(
    name: str, at_us: float, enter_exit: int, status: int, accepted: int, address: str | bytes | None, backlog: int, where: Where
) -> Event:
    if address is None:
        return socket_event(name, at_us, enter_exit, where, {"status": status})
    values: dict[str, Value] = {
        "buffer": 0,
        "buffer_length": 0,
        "status": status,
        "address": address,
        "accept_endpoint": accepted,
        "current_backlog": backlog,
    }
    return socket_event(name + "WithAddress", at_us, enter_exit, where, values)


def accept(
    *,
    at_us: float,
    enter_exit: int = ENTER,
    status: int = 0,
    accepted: int = 0,
    address: str | bytes | None = None,
    backlog: int = 0,
    **where: Unpack[Where],
) -> Event:
    """1023 without, 1024 with the peer's address; `endpoint` is the listener, `accepted` the socket that it becomes."""
    return _accept("AfdAccept", at_us, enter_exit, status, accepted, address, backlog, where)


def accept_ex(
    *,
    at_us: float,
    enter_exit: int = ENTER,
    status: int = 0,
    accepted: int = 0,
    address: str | bytes | None = None,
    backlog: int = 0,
    **where: Unpack[Where],
) -> Event:
    """1026 without, 1027 with the peer's address."""
    if enter_exit:
        where.setdefault("location", 6101)
    return _accept("AfdAcceptEx", at_us, enter_exit, status, accepted, address, backlog, where)


# ---------------------------------------------------------------------------------------------------- what else happens


def abort(*, at_us: float, reason: int = 4, enter_exit: int = INTERNAL, **where: Unpack[Where]) -> Event:
    return socket_event("AfdAbort", at_us, enter_exit, where, {"reason": reason})


def drop(
    *, at_us: float, reason: int = 2, length_bytes: int = 900, address: str | bytes = "198.51.100.200:9999", **where: Unpack[Where]
) -> Event:
    where.setdefault("is_datagram", True)
    values: dict[str, Value] = {"buffer": 0, "buffer_length": length_bytes, "address": address, "reason": reason}
    return socket_event("AfdDatagramDropWithAddress", at_us, BY_AFD, where, values)


def option(*, at_us: float, option: int, value: int, status: int = 0, enter_exit: int = BY_AFD, **where: Unpack[Where]) -> Event:
    return socket_event("AfdOption", at_us, enter_exit, where, {"option": option, "value": value, "status": status})


def connect_indication(
    *, at_us: float, status: int = 0, address: str | bytes | None = "203.0.113.5:61000", backlog: int = 0, **where: Unpack[Where]
) -> Event:
    where.setdefault("pid", 0)
    if address is None:
        return socket_event("AfdConnectIndication", at_us, TRANSPORT, where, {"status": status})
    values: dict[str, Value] = {"status": status, "address": address, "current_backlog": backlog}
    return socket_event("AfdConnectIndicationWithAddress", at_us, TRANSPORT, where, values)


def data_indication(
    *, at_us: float, length_bytes: int = 1460, buffer: int = 0, address: str | bytes | None = None, **where: Unpack[Where]
) -> Event:
    where.setdefault("pid", 0)
    values: dict[str, Value] = {"buffer": buffer, "buffer_length": length_bytes}
    if address is None:
        return socket_event("AfdDataIndication", at_us, TRANSPORT, where, values)
    where.setdefault("is_datagram", True)
    return socket_event("AfdDataIndicationWithAddress", at_us, TRANSPORT, where, {**values, "address": address})


def disconnect(*, at_us: float, status: int = 0, enter_exit: int = TRANSPORT, **where: Unpack[Where]) -> Event:
    where.setdefault("pid", 0)
    return socket_event("AfdDisconnect", at_us, enter_exit, where, {"status": status})


def send_backlog(*, at_us: float, backlog_bytes: int, **where: Unpack[Where]) -> Event:
    where.setdefault("pid", 0)
    return socket_event("AfdSendBackLog", at_us, TRANSPORT, where, {"send_backlog": backlog_bytes})
