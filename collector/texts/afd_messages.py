"""Messages of the socket provider, back to its events: what an event is called in its message, and what its values are called there.

From the message tables of ws2_32.dll, 6.1 to 10.0: `send: 0: Process 0x…, Endpoint 0x…, Buffer Count 1, …, Seq 3, Status 0x0`. Which of the
events of one name it is follows from the values that stand there. Messages that leave out what their event is about are not read.
"""

from collections.abc import Mapping

from collector.events import SCHEMAS
from collector.events.afd import AFD
from collector.schema import EventSchema, key_of
from collector.texts.values import plain_name

__all__ = ["event_of_message"]

_EVENTS: Mapping[str, tuple[int, ...]] = {
    "socket": (1000,),
    "closesocket": (1001,),
    "socket cleanup": (1002,),
    "send": (1003,),
    "recv": (1004,),
    "sendto": (1005, 1007),
    "recvfrom": (1006, 1009),
    "sendmsg": (1011, 1013),
    "recvmsg": (1012, 1015),
    "connect": (1017, 1018),
    "connectex": (1020, 1021),
    "accept": (1023, 1024),
    "acceptex": (1026, 1027),
    "bind": (1029, 1030),
    "connection aborted": (1032,),
    "datagram dropped": (1033,),
    "socket option": (1035,),
    "wait for listen": (1036,),
    "listen": (1037,),
    "connect indication": (3000, 3001),
    "data indication": (3003, 3004),
    "disconnect indicated": (3006,),
}
_LABELS: Mapping[str, str] = {
    "process": "process",
    "endpoint": "endpoint",
    "buffer count": "buffercount",
    "buffer": "buffer",
    "length": "bufferlength",
    "addr": "address",
    "address": "address",
    "seq": "location",
    "status": "status",
    "reason": "reason",
    "family": "addressfamily",
    "type": "sockettype",
    "protocol": "protocol",
    "accept endpoint": "acceptendpoint",
    "current backlog": "currentbacklog",
    "backlog count": "currentbacklog",
    "backlog": "backlog",
    "option": "option",
    "value": "value",
}
_LEFT_OUT: Mapping[int, tuple[str, ...]] = {1018: ("buffer", "bufferlength"), 1024: ("buffer", "bufferlength"), 3006: ("status",)}
"""Values that a message lacks and that its event is not about; they are read as 0."""
_MEASURED = "addresslen"
_MOST_PARTS = 16


def event_of_message(message: str) -> tuple[int, dict[str, str]] | None:
    """Event id and values by `plain_name`; None for a message of another event. Raises ValueError for one that is cut or damaged."""
    name, _, rest = message.partition(": ")
    ids = _EVENTS.get(name.strip().lower())
    if ids is None:
        return None
    enter_exit, _, rest = rest.partition(": ")
    parts = rest.split(", ", _MOST_PARTS)
    found = {"enterexit": _number(enter_exit)}
    for part in parts:
        label, _, value = part.strip().rpartition(" ") if not part.rstrip().endswith(")") else _with_words(part)
        field = _LABELS.get(label.strip().lower())
        if field is None or field in found:
            raise ValueError(f"a message that says {part[:40]!r}")
        found[field] = value
    if ids == (1000,):
        found["process"], found["processid"] = _process_and_id(found.get("process", ""))
    found = {field: value if field == "address" else _number(value) for field, value in found.items()}
    for event_id in ids:
        lacking = _LEFT_OUT.get(event_id, ())
        if set(found) == _names(event_id) - {_MEASURED, *lacking}:
            return event_id, found | dict.fromkeys(lacking, "0")
    raise ValueError(f"a message of {name} with other values")


def _with_words(part: str) -> tuple[str, str, str]:
    """`Type 1(SOCK_STREAM)` and `Process 0x… (4120)`: label, blank, value with what stands in brackets."""
    at = part.index("(")
    label, blank, value = part[:at].rstrip().rpartition(" ")
    return label, blank, value + part[at:].rstrip()


def _process_and_id(value: str) -> tuple[str, str]:
    process, bracket, number = value.partition("(")
    if not bracket:
        raise ValueError("a socket without the number of its process")
    return process, number.removesuffix(")")


def _number(value: str) -> str:
    """The number of `1(SOCK_STREAM)`, as values that have words are written."""
    return value.partition("(")[0].strip() if value[:1].isdecimal() else value.strip()


def _names(event_id: int) -> set[str]:
    (schema,) = _schemas(event_id)
    return {plain_name(field.name) for field in schema.fields}


def _schemas(event_id: int) -> tuple[EventSchema, ...]:
    return SCHEMAS[key_of(AFD, is_classic=False, event_id=event_id, opcode=0)]
