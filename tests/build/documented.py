"""Builders of the documented socket events (ids 1 to 41)."""

from typing import Unpack

from collector.etlwriter.addresses import split_address
from collector.etlwriter.events import HeaderValues, afd_keyword, schema_of
from collector.etlwriter.payloads import Value
from tests.build.afd_events import Who
from tests.build.events import ENDPOINT, PID, PROCESS, TID, Event

__all__ = [
    "BUFFER",
    "Where",
    "aborted",
    "accepted",
    "bind",
    "bind_failed",
    "cleanup",
    "close",
    "completed",
    "connect",
    "connect_completed",
    "connect_indicated",
    "create",
    "data_indicated",
    "disconnect_indicated",
    "dropped",
    "failed",
    "option",
    "posted",
    "select",
    "selected",
]

BUFFER = 0x2A_0000


class Where(Who, total=False):
    """Whose event it is, and its stack."""

    stack: tuple[int, ...]


def _event(name: str, at_us: float, where: Where, values: dict[str, Value], *, endpoint_field: str | None = "endpoint") -> Event:
    header = HeaderValues(pid=where.get("pid", PID), tid=where.get("tid", TID), keyword=afd_keyword(schema_of(name).number))
    socket: dict[str, Value] = {"process": where.get("process", PROCESS)}
    if endpoint_field:
        socket[endpoint_field] = where.get("endpoint", ENDPOINT)
    return Event(name=name, at_us=at_us, values={**socket, **values}, header=header, stack=where.get("stack", ()))


def _at_peer(name: str, at_us: float, where: Where, address: str, values: dict[str, Value], *, endpoint_field: str = "endpoint") -> Event:
    """The IPv4 or IPv6 form of an event, by its address."""
    host, port, _ = split_address(address)
    values = {**values, "address": host.packed, "port": port}
    return _event(f"{name}V{host.version}", at_us, where, values, endpoint_field=endpoint_field)


def create(
    *, at_us: float, family: int = 2, socket_type: int = 1, protocol: int = 6, user_mode_pid: int | None = None, **where: Unpack[Where]
) -> Event:
    pid = where.get("pid", PID) if user_mode_pid is None else user_mode_pid
    values: dict[str, Value] = {"address_family": family, "socket_type": socket_type, "protocol": protocol, "user_mode_pid": pid}
    return _event("SocketCreate", at_us, where, values)


def bind(*, at_us: float, address: str = "0.0.0.0:50000", status: int = 0, **where: Unpack[Where]) -> Event:
    return _at_peer("SocketBind", at_us, where, address, {"status": status})


def bind_failed(*, at_us: float, error: int = 0xC000_0209, **where: Unpack[Where]) -> Event:
    return _event("BindFailed", at_us, where, {"error": error})


def connect(*, at_us: float, address: str = "192.0.2.10:8080", **where: Unpack[Where]) -> Event:
    return _at_peer("SocketConnect", at_us, where, address, {})


def connect_completed(*, at_us: float, error: int = 0, **where: Unpack[Where]) -> Event:
    return _event("ConnectCompleted", at_us, where, {"error": error})


def accepted(*, at_us: float, address: str = "203.0.113.5:61000", status: int = 0, **where: Unpack[Where]) -> Event:
    return _at_peer("SocketAccept", at_us, where, address, {"status": status})


def connect_indicated(*, at_us: float, address: str = "203.0.113.5:61000", **where: Unpack[Where]) -> Event:
    return _at_peer("ConnectIndicated", at_us, where, address, {}, endpoint_field="listen_endpoint")


def aborted(*, at_us: float, reason: int = 4, by_transport: bool = True, **where: Unpack[Where]) -> Event:
    return _event("TransportInitiatedAbort" if by_transport else "AfdInitiatedAbort", at_us, where, {"reason": reason})


def close(*, at_us: float, error: int = 0, **where: Unpack[Where]) -> Event:
    return _event("SocketClose", at_us, where, {"error": error})


def cleanup(*, at_us: float, error: int = 0, **where: Unpack[Where]) -> Event:
    return _event("SocketCleanup", at_us, where, {"error": error})


def posted(
    kind: str,
    *,
    at_us: float,
    length_bytes: int = 512,
    buffer: int = BUFFER,
    buffer_count: int = 1,
    is_fast: bool = True,
    address: str | None = None,
    **where: Unpack[Where],
) -> Event:
    """`kind` is Send, Recv, RecvFrom or SendTo; the last one needs an address."""
    values: dict[str, Value] = {"fast_path": is_fast, "buffer_count": buffer_count, "buffer": buffer, "buffer_length": length_bytes}
    if address is None:
        return _event(f"{kind}Posted", at_us, where, values)
    return _at_peer(f"{kind}Posted", at_us, where, address, values)


def completed(
    kind: str, *, at_us: float, length_bytes: int = 512, buffer: int = BUFFER, address: str | None = None, **where: Unpack[Where]
) -> Event:
    """`kind` is Recv, Send, SendMsg, SendTo or RecvFrom; the last one needs an address."""
    values: dict[str, Value] = {"buffer": buffer, "buffer_length": length_bytes}
    if address is None:
        return _event(f"{kind}Completed", at_us, where, values)
    return _at_peer(f"{kind}Completed", at_us, where, address, {**values, "buffer_count": 1})


def failed(kind: str, *, at_us: float, error: int = 0xC000_020D, **where: Unpack[Where]) -> Event:
    """`kind` is Send, SendMsg, Recv, RecvFrom or Accept."""
    return _event(f"{kind}Failed", at_us, where, {"error": error})


def option(*, at_us: float, option: int, value: int, **where: Unpack[Where]) -> Event:
    return _event("SocketOption", at_us, where, {"option": option, "value": value})


def select(*, at_us: float, handle_count: int = 1, timeout: int = -1, **where: Unpack[Where]) -> Event:
    return _event("SelectPosted", at_us, where, {"handle_count": handle_count, "timeout": timeout}, endpoint_field=None)


def selected(*, at_us: float, error: int = 0, **where: Unpack[Where]) -> Event:
    return _event("SelectCompleted", at_us, where, {"error": error})


def dropped(
    *, at_us: float, reason: int = 2, length_bytes: int = 900, address: str = "198.51.100.200:9999", **where: Unpack[Where]
) -> Event:
    return _at_peer("DatagramDropped", at_us, where, address, {"packet_size": length_bytes, "reason": reason})


def data_indicated(*, at_us: float, length_bytes: int = 1460, address: str | None = None, **where: Unpack[Where]) -> Event:
    if address is None:
        return _event("DataIndicated", at_us, where, {"bytes_indicated": length_bytes})
    return _at_peer("DataIndicatedFrom", at_us, where, address, {"bytes_indicated": length_bytes})


def disconnect_indicated(*, at_us: float, **where: Unpack[Where]) -> Event:
    return _event("DisconnectIndicated", at_us, where, {})
