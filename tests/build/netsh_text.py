"""The events of an ETL file as text, as `netsh trace convert` writes it: the message tables of the socket provider, inserts by position."""

from pathlib import Path

from collector.clock import filetime_to_datetime
from collector.provider_names import WELL_KNOWN
from tests.build.told import Number, ToldEvent, told_events

__all__ = ["netsh_text"]

_TRANSFER = "Process %3, Endpoint %4, Buffer Count %5, Buffer %6, Length %7, Seq %2, Status %8"
_TRANSFER_TO = "Process %3, Endpoint %4, Buffer Count %5, Buffer %6, Length %7, Addr %10, Seq %2, Status %8"
_STATUS = "Process %3, Endpoint %4, Seq %2, Status %5"
_EX = "Process %3, Endpoint %4, Buffer %5, Length %6, Address %9, "
MESSAGES = {
    1000: "socket: %1: Process %3 (%8), Endpoint %4, Family %5, Type %6, Protocol %7, Seq %2, Status %9",
    1001: f"closesocket: %1: {_STATUS}", 1002: f"socket cleanup: %1: {_STATUS}",
    1003: f"send: %1: {_TRANSFER}", 1004: f"recv: %1: {_TRANSFER}", 1005: f"sendto: %1: {_TRANSFER}", 1006: f"recvfrom: %1: {_TRANSFER}",
    1007: f"sendto: %1: {_TRANSFER_TO}", 1009: f"recvfrom: %1: {_TRANSFER_TO}",
    1011: f"sendmsg: %1: {_TRANSFER}", 1012: f"recvmsg: %1: {_TRANSFER}",
    1013: f"sendmsg: %1: {_TRANSFER_TO}", 1015: f"recvmsg: %1: {_TRANSFER_TO}",
    1017: f"connect: %1: {_STATUS}", 1018: "connect: %1: Process %3, Endpoint %4, Address %9, Seq %2, Status %7",
    1020: f"ConnectEx: %1: {_STATUS}", 1021: f"ConnectEx: %1: {_EX}Seq %2, Status %7",
    1023: f"accept: %1: {_STATUS}",
    1024: "accept: %1: Process %3, Endpoint %4, Address %9, Accept Endpoint %10, Current Backlog %11, Seq %2, Status %7",
    1026: f"AcceptEx: %1: {_STATUS}", 1027: f"AcceptEx: %1: {_EX}Accept Endpoint %10, Current Backlog %11, Seq %2, Status %7",
    1029: f"bind: %1: {_STATUS}", 1030: "bind: %1: Process %3, Endpoint %4, Address %7, Seq %2, Status %5",
    1032: "connection aborted: %1: Process %3, Endpoint %4, Seq %2, Reason %5",
    1033: "datagram dropped: %1: Process %3, Endpoint %4, Buffer %5, Length %6, Address %8, Seq %2, Reason %9",
    1035: "Socket option: %1: Process %3, Endpoint %4, Option %5, Value %6, Seq %2, Status %7",
    1036: f"Wait for listen: %1: {_STATUS}", 1037: "Listen: %1: Process %3, Endpoint %4, Backlog %5, Seq %2, Status %6",
    3000: f"Connect indication: %1: {_STATUS}",
    3001: "Connect indication: %1: Process %3, Endpoint %4, Address %7, Backlog Count %8, Seq %2, Status %5",
    3003: "Data indication: %1: Process %3, Endpoint %4, Buffer %5, Length %6, Seq %2",
    3004: "Data indication: %1: Process %3, Endpoint %4, Buffer %5, Length %6, Address %8, Seq %2",
    3006: "disconnect indicated: %1: Process %3, Endpoint %4, Seq %2",
    3007: "Transport send backlog: Process %1, Endpoint %2, Send Backlog %5",
}  # fmt: skip
_WORDS = {"socket_type": {"1": "1(SOCK_STREAM)", "2": "2(SOCK_DGRAM)"}}


def netsh_text(
    path: Path, *, digits: int = 9, style: str = "{:%Y/%m/%d-%H:%M:%S}", blank: str = "", has_words: bool = True, number: Number = str
) -> str:
    """The text; `digits` of a second, `style` of a moment, `blank` between provider and message, as pktmon has one."""
    header, told = told_events(path, number=number)
    moment = filetime_to_datetime(header.clock.start_filetime)
    about = (
        f"Header, PointerSize: {header.pointer_size}, EventsLost: {header.events_lost}, BuffersLost: {header.buffers_lost}, LogFileName: a"
    )
    lines = [f"[0]0000.0000::{moment:%Y/%m/%d-%H:%M:%S}.000000000 [MSNT_SystemTrace]{blank}{about}"]
    for event in told[1:]:
        moment = filetime_to_datetime(event.filetime)
        part = f"{event.filetime % 10_000_000:07d}00"[:digits]
        name = WELL_KNOWN.get(event.provider, "Unknown")
        message = _message(event, has_words=has_words)
        lines.append(f"[{event.cpu}]{event.pid:04X}.{event.tid:04X}::{style.format(moment)}.{part} [{name}]{blank}{message}")
    return "\r\n".join([*lines, ""])


def _message(event: ToldEvent, *, has_words: bool) -> str:
    text = MESSAGES.get(event.event_id, "%1 of another event") if event.is_manifest else "a message of others:\r\nits second line"
    for n, (field, value) in reversed(list(enumerate(event.values or (), 1))):
        shown = _WORDS.get(field.name, {}).get(value, value) if has_words else value
        text = text.replace(f"%{n}", str(int(value, 16)) if field.name == "process_id" else shown)
    return text
