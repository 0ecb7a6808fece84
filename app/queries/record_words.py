"""What a record of a socket says, in plain words: the call or the report, the side, and the fields that it has."""

from collections.abc import Callable, Mapping
from typing import Any

from app import format as fmt
from collector.afdcodes import ABORT_REASONS, DATAGRAM_DROP_REASONS, option_name
from collector.words import FAMILIES, PROTOCOLS, SOCKET_TYPES

__all__ = ["arrival_words", "backlog_words", "left_out_words", "record_words", "request_words"]

_Fields = Mapping[str, Any]  # Any: JSON

_ENTER, _EXIT = 0, 1
_SIDES = {_ENTER: "call begins", _EXIT: "call ends", 2: "by Winsock itself", 3: "by the transport", 4: "by AFD"}
_TRANSPORT = 3
_CALLS = {
    "creation": (1, 1000),
    "close": (13, 1001),
    "cleanup": (14, 1002),
    "bind": (2, 3, 40, 1029, 1030),
    "listen": (1037,),
}
_CALL_OF = {event: call for call, events in _CALLS.items() for event in events}
_BIND_FAILED = 40
_LEFT_OUT = {"double_count": "the transport's part of a send that is counted"}
_DONE = {"creation": "created", "close": "closed", "cleanup": "cleanup done", "bind": "bound", "listen": "listening"}


def record_words(event: int, side: int | None, fields: _Fields, address: str | None, status: fmt.Status | None) -> str:
    """The record in words. `side` is that of the manifest: 0 a call begins, 1 it ends, 2 to 4 who else wrote it; older events have none."""
    call = _CALL_OF.get(event)
    if call is not None:
        return _call(call, event, side, fields, address, status)
    said = _REPORTS.get(event)
    text = said(event, side, fields, address) if said is not None else _plain(side, fields, address)
    return f"{text}: {fmt.status(status)}" if status else text


def _call(call: str, event: int, side: int | None, fields: _Fields, address: str | None, status: fmt.Status | None) -> str:
    details = _details(fields)
    if side == _ENTER:
        to = f" to {address}" if address else ""
        return f"{call} begins{to}" + (f": {details}" if details else "")
    if status or event == _BIND_FAILED:
        to = f" to {address}" if address else ""
        return f"{call}{to} failed" + (f": {fmt.status(status)}" if status else "")
    to = f" to {address}" if address else ""
    return f"{_DONE[call]}{to}" + (f": {details}" if details else "")


def _details(fields: _Fields) -> str:
    """What kind of socket is made and for whom, or what is asked for; numbers that have a name by their name."""
    named = {"address_family": FAMILIES, "socket_type": SOCKET_TYPES, "protocol": PROTOCOLS}
    said = []
    for name, value in fields.items():
        if value is None:
            continue
        word = named.get(name, {}).get(value)
        said.append(fmt.spelled(word) if word is not None else f"{fmt.words(name)} {value}")
    return ", ".join(said)


def _plain(side: int | None, fields: _Fields, address: str | None) -> str:
    """A record without words of its own: its side and its fields."""
    parts = [_SIDES.get(-1 if side is None else side), fmt.fields(fields) or None, address]
    return ", ".join(part for part in parts if part)


def arrival_words(fields: _Fields, address: str | None) -> str:
    """Data that the transport indicated."""
    size = fields.get("buffer_length", fields.get("bytes_indicated"))
    return (f"{fmt.bytes_text(size)} arrived" if isinstance(size, int) else "data arrived") + (f" from {address}" if address else "")


def request_words(fields: _Fields, address: str | None) -> str:
    """A connection request that the transport indicated."""
    backlog = fields.get("current_backlog")
    return f"connection request from {address or fmt.UNKNOWN}" + (f", backlog {backlog}" if backlog is not None else "")


def backlog_words(fields: _Fields) -> str:
    """The bytes that the transport would like to have in flight."""
    return f"send backlog {fmt.bytes_text(fields.get('send_backlog'))}"


def left_out_words(kind: str, size: int | None, reason: str) -> str:
    """A record that no sum counts, and why."""
    return f"{kind} of {fmt.bytes_text(size)}, not counted: {_LEFT_OUT.get(reason, fmt.words(reason))}"


def _abort(event: int, side: int | None, fields: _Fields, address: str | None) -> str:
    by = "the transport" if event == 8 or side == _TRANSPORT else "Winsock"
    number = fields.get("reason")
    reason = ABORT_REASONS.get(number) if isinstance(number, int) else None
    name = f": {'' if reason.certainty == 'certain' else 'probably '}{fmt.words(reason.name)}" if reason is not None else ""
    return f"aborted by {by}, reason {fmt.UNKNOWN if number is None else number}{name}"


def _drop(event: int, side: int | None, fields: _Fields, address: str | None) -> str:
    size = fields.get("buffer_length", fields.get("packet_size"))
    number = fields.get("reason")
    reason = DATAGRAM_DROP_REASONS.get(number) if event == 1033 and isinstance(number, int) else None  # older events name none
    what = f"datagram of {fmt.bytes_text(size)}" if isinstance(size, int) else "datagram"
    why = f", reason {number}" if number is not None else ""
    return f"{what}{f' from {address}' if address else ''} dropped{why}{f': {fmt.words(reason.name)}' if reason else ''}"


def _option(event: int, side: int | None, fields: _Fields, address: str | None) -> str:
    number, value = fields.get("option"), fields.get("value")
    name = (option_name(number) if isinstance(number, int) else None) or f"option {number}"
    return f"{name} set to {fmt.UNKNOWN if value is None else value}"


_REPORTS: dict[int, Callable[[int, int | None, _Fields, str | None], str]] = {
    **dict.fromkeys((7, 8, 1032), _abort),
    **dict.fromkeys((33, 34, 1033), _drop),
    **dict.fromkeys((29, 1035), _option),
    **dict.fromkeys((37, 38, 39, 3003, 3004), lambda event, side, fields, address: arrival_words(fields, address)),
    **dict.fromkeys((35, 36, 3000, 3001), lambda event, side, fields, address: request_words(fields, address)),
    **dict.fromkeys((41, 3006), lambda event, side, fields, address: "the peer disconnected"),
    3007: lambda event, side, fields, address: backlog_words(fields),
}
