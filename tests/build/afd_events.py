"""What every modern socket event has: whose it is, and its header."""

from typing import TypedDict

from collector.etlwriter.events import HeaderValues, activity_of, afd_keyword, schema_of
from collector.etlwriter.payloads import Value
from tests.build.events import ENDPOINT, PID, PROCESS, TID, Event

__all__ = ["BY_AFD", "DATAGRAM", "INTERNAL", "TRANSPORT", "Where", "Who", "socket_event"]

DATAGRAM = 2

INTERNAL, TRANSPORT, BY_AFD = 2, 3, 4


class Who(TypedDict, total=False):
    """Whose event it is, and who the header says it is."""

    endpoint: int
    process: int
    pid: int
    tid: int


class Where(Who, total=False):
    """Who, and how the header looks."""

    location: int
    is_datagram: bool
    is_fast: bool
    is_buffered: bool
    activity: int
    keyword: int
    level: int
    stack: tuple[int, ...]


def socket_event(name: str, at_us: float, enter_exit: int, where: Where, values: dict[str, Value]) -> Event:
    """A modern event of a socket: the fields that all have, and `values`."""
    number = schema_of(name).number
    keyword = afd_keyword(
        number,
        is_datagram=where.get("is_datagram", False),
        is_fast=where.get("is_fast", False),
        is_buffered=where.get("is_buffered", False),
    )
    header = HeaderValues(pid=where.get("pid", PID), tid=where.get("tid", TID), keyword=where.get("keyword", keyword))
    if where.get("activity"):
        header["activity"] = activity_of(where["activity"])
    if "level" in where:
        header["level"] = where["level"]
    request: dict[str, Value] = {
        "enter_exit": enter_exit,
        "location": where.get("location", 0),
        "process": where.get("process", PROCESS),
        "endpoint": where.get("endpoint", ENDPOINT),
    }
    return Event(name=name, at_us=at_us, values={**request, **values}, header=header, stack=where.get("stack", ()))
