"""Statuses as people write them: names, hex, Winsock numbers and names."""

from typing import Any

from sqlalchemy import ColumnElement

from app import format as fmt
from collector.ntstatus import parse_status as known

__all__ = ["StatusSet", "parse_status", "status_condition", "status_words"]

StatusSet = tuple[int, ...]
"""Unsigned statuses that a text means; a Winsock error stands for several."""


def parse_status(text: str) -> StatusSet:
    """`STATUS_CONNECTION_RESET`, `0xC000020D`, `10054` or `WSAECONNRESET`. Raises ValueError for what is none of these."""
    found = known(text)
    if not found:
        raise ValueError("a status: its name, 0x… in hex, or a Winsock error such as 10054 or WSAECONNRESET.")
    return tuple(found)


def status_condition(column: ColumnElement[Any], values: StatusSet) -> ColumnElement[bool]:  # Any: an integer column
    """The condition that a status is one of some."""
    return column.in_(values)


def status_words(values: StatusSet) -> str:
    """Statuses in words."""
    return " or ".join(fmt.status(value) for value in values)
