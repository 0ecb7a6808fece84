"""Builders of the modern events that move data (1003 to 1015)."""

from typing import Unpack

from collector.etlwriter.payloads import Value
from tests.build.afd_events import Where, socket_event
from tests.build.events import ENTER, EXIT, Event

__all__ = ["BUFFER", "KERNEL_BUFFER", "receive", "receive_from", "receive_message", "received", "send", "send_message", "send_to", "sent"]

BUFFER = 0x1D2_A446_0000
KERNEL_BUFFER = 0xFFFF_9A0C_3000_0100


def _transfer(
    name: str,
    at_us: float,
    enter_exit: int,
    buffer: int | None,
    buffer_count: int,
    length_bytes: int,
    status: int,
    address: str | bytes | None,
    where: Where,
) -> Event:
    where.setdefault("is_fast", not where.get("activity"))
    if buffer is None:
        buffer = BUFFER if where["is_fast"] else KERNEL_BUFFER
    values: dict[str, Value] = {"buffer_count": buffer_count, "buffer": buffer, "buffer_length": length_bytes, "status": status}
    if address is not None:
        name, values["address"] = name + "WithAddress", address
    return socket_event(name, at_us, enter_exit, where, values)


def send(
    *,
    at_us: float,
    enter_exit: int = ENTER,
    length_bytes: int = 512,
    buffer: int | None = None,
    buffer_count: int = 1,
    status: int = 0,
    **where: Unpack[Where],
) -> Event:
    return _transfer("AfdSend", at_us, enter_exit, buffer, buffer_count, length_bytes, status, None, where)


def receive(
    *,
    at_us: float,
    enter_exit: int = ENTER,
    length_bytes: int = 4096,
    buffer: int | None = None,
    buffer_count: int = 1,
    status: int = 0,
    **where: Unpack[Where],
) -> Event:
    return _transfer("AfdReceive", at_us, enter_exit, buffer, buffer_count, length_bytes, status, None, where)


def send_to(
    *,
    at_us: float,
    enter_exit: int = ENTER,
    length_bytes: int = 64,
    buffer: int | None = None,
    buffer_count: int = 1,
    status: int = 0,
    address: str | bytes | None = None,
    **where: Unpack[Where],
) -> Event:
    where.setdefault("is_datagram", True)
    return _transfer("AfdSendTo", at_us, enter_exit, buffer, buffer_count, length_bytes, status, address, where)


def receive_from(
    *,
    at_us: float,
    enter_exit: int = ENTER,
    length_bytes: int = 1500,
    buffer: int | None = None,
    buffer_count: int = 1,
    status: int = 0,
    address: str | bytes | None = None,
    **where: Unpack[Where],
) -> Event:
    where.setdefault("is_datagram", True)
    return _transfer("AfdReceiveFrom", at_us, enter_exit, buffer, buffer_count, length_bytes, status, address, where)


def send_message(
    *,
    at_us: float,
    enter_exit: int = ENTER,
    length_bytes: int = 64,
    buffer: int | None = None,
    buffer_count: int = 1,
    status: int = 0,
    address: str | bytes | None = None,
    **where: Unpack[Where],
) -> Event:
    where.setdefault("is_datagram", True)
    return _transfer("AfdSendMessage", at_us, enter_exit, buffer, buffer_count, length_bytes, status, address, where)


def receive_message(
    *,
    at_us: float,
    enter_exit: int = ENTER,
    length_bytes: int = 1500,
    buffer: int | None = None,
    buffer_count: int = 1,
    status: int = 0,
    address: str | bytes | None = None,
    **where: Unpack[Where],
) -> Event:
    where.setdefault("is_datagram", True)
    return _transfer("AfdReceiveMessage", at_us, enter_exit, buffer, buffer_count, length_bytes, status, address, where)


def sent(
    *, at_us: float, length_bytes: int = 512, buffer: int | None = None, duration_us: float = 1, **where: Unpack[Where]
) -> list[Event]:
    """A send and its successful end."""
    return [
        send(at_us=at_us, length_bytes=length_bytes, buffer=buffer, **where),
        send(at_us=at_us + duration_us, enter_exit=EXIT, length_bytes=length_bytes, buffer=buffer, **where),
    ]


def received(
    *,
    at_us: float,
    length_bytes: int = 4096,
    got_bytes: int | None = None,
    buffer: int | None = None,
    duration_us: float = 1,
    **where: Unpack[Where],
) -> list[Event]:
    """A receive and its successful end with `got_bytes`."""
    got = length_bytes if got_bytes is None else got_bytes
    return [
        receive(at_us=at_us, length_bytes=length_bytes, buffer=buffer, **where),
        receive(at_us=at_us + duration_us, enter_exit=EXIT, length_bytes=got, buffer=buffer, **where),
    ]
