"""The natural names of things in URLs: written, read, never a row number.

`X@NS` means the instance of X whose life contains NS; the canonical NS is its start, or its first sight.
"""

import re
from dataclasses import dataclass

from app.format import Address

__all__ = [
    "NEAR_SHOWN",
    "AllocationLink",
    "BadLink",
    "HeapLink",
    "OperationLink",
    "ProcessLink",
    "ProcessRef",
    "SocketLink",
    "allocation_link",
    "heap_link",
    "operation_link",
    "parse_address",
    "parse_allocation",
    "parse_heap",
    "parse_moment",
    "parse_operation",
    "parse_process",
    "parse_socket",
    "process_link",
    "socket_link",
]

NEAR_SHOWN = 4
"""How many others are offered where this copy of a trace does not have what a link names."""

_HEX = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,16})")
_MOMENT = re.compile(r"[+-]?[0-9]{1,19}")
_PID = re.compile(r"[0-9]{1,10}")
_MAX_NS = 1 << 62  # 146 years: sums of two times fit 63 bits


class BadLink(ValueError):
    """A part of a URL that names nothing; the message says what is allowed."""


@dataclass(frozen=True, slots=True)
class SocketLink:
    """One lifetime of an endpoint address; without a time, its latest."""

    endpoint: Address
    ns: int | None

    def __str__(self) -> str:
        return f"{self.endpoint}" if self.ns is None else f"{self.endpoint}@{self.ns}"


@dataclass(frozen=True, slots=True)
class ProcessLink:
    """One instance of a process, by process id or, while that is unknown, by its kernel object."""

    pid: int | None
    eprocess: Address | None
    ns: int | None

    def __str__(self) -> str:
        name = str(self.eprocess) if self.pid is None else str(self.pid)
        return name if self.ns is None else f"{name}@{self.ns}"


@dataclass(frozen=True, slots=True)
class HeapLink:
    """A heap handle of a process, and a time in one of its lives."""

    handle: Address
    ns: int | None

    def __str__(self) -> str:
        return f"{self.handle}" if self.ns is None else f"{self.handle}@{self.ns}"


@dataclass(frozen=True, slots=True)
class AllocationLink:
    """One allocation, under its process."""

    heap: Address
    address: Address
    ns: int | None

    def __str__(self) -> str:
        name = f"{self.heap}:{self.address}"
        return name if self.ns is None else f"{name}@{self.ns}"


@dataclass(frozen=True, slots=True)
class OperationLink:
    """One operation, under its socket; NS is its post, or its completion when the post is unknown."""

    kind: str
    buffer: Address | None
    ns: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.buffer if self.buffer is not None else '0x0'}@{self.ns}"


@dataclass(frozen=True, slots=True)
class ProcessRef:
    """A process as a row of another table names it."""

    link: str
    pid: int | None
    image: str | None

    def __str__(self) -> str:
        return self.link


def socket_link(endpoint: int, created_ns: int | None, first_ns: int) -> str:
    """The canonical link of a socket; `endpoint` as stored or unsigned."""
    return f"{endpoint & (1 << 64) - 1:#x}@{first_ns if created_ns is None else created_ns}"


def process_link(pid: int | None, eprocess: int | None, start_ns: int | None, first_ns: int) -> str:
    """The canonical link of a process."""
    ns = first_ns if start_ns is None else start_ns
    return f"{pid}@{ns}" if pid is not None else f"{(eprocess or 0) & (1 << 64) - 1:#x}@{ns}"


def allocation_link(heap: int, address: int, start_ns: int | None, first_ns: int) -> str:
    """The canonical link of an allocation."""
    mask = (1 << 64) - 1
    return f"{heap & mask:#x}:{address & mask:#x}@{first_ns if start_ns is None else start_ns}"


def heap_link(handle: int, created_ns: int | None, first_ns: int) -> str:
    """The canonical link of one life of a heap handle, below its process; `handle` as stored or unsigned."""
    return f"{handle & (1 << 64) - 1:#x}@{first_ns if created_ns is None else created_ns}"


def operation_link(kind: str, buffer: int | None, posted_ns: int | None, completed_ns: int | None) -> str:
    """The canonical link of an operation."""
    ns = completed_ns if posted_ns is None else posted_ns
    return f"{kind}:{(buffer or 0) & (1 << 64) - 1:#x}@{ns}"


def parse_address(text: str) -> Address:
    """A hex number with or without `0x`. Raises BadLink."""
    found = _HEX.fullmatch(text.strip())
    if not found:
        raise BadLink(f"{text!r} is not an address: write up to 16 hex digits, such as 0xffffe00112345678.")
    return Address(int(found[1], 16))


def parse_moment(text: str) -> int:
    """Nanoseconds since time 0. Raises BadLink."""
    if not _MOMENT.fullmatch(text) or not -_MAX_NS <= int(text) <= _MAX_NS:
        raise BadLink(f"{text!r} is not a time: write whole nanoseconds since the trace's time 0.")
    return int(text)


def _parts(text: str) -> tuple[str, int | None]:
    name, at, moment = text.partition("@")
    return name, parse_moment(moment) if at else None


def parse_socket(text: str) -> SocketLink:
    """`0xENDPOINT@NS` or `0xENDPOINT`. Raises BadLink."""
    name, ns = _parts(text)
    return SocketLink(parse_address(name), ns)


def parse_process(text: str) -> ProcessLink:
    """`PID@NS`, `0xEPROCESS@NS`, or either without a time. Raises BadLink."""
    name, ns = _parts(text)
    if _PID.fullmatch(name):
        return ProcessLink(int(name), None, ns)
    if name[:2].lower() == "0x":
        return ProcessLink(None, parse_address(name), ns)
    raise BadLink(f"{text!r} names no process: write its id and a time, such as 4242@0.")


def parse_heap(text: str) -> HeapLink:
    """`0xHEAP@NS` or `0xHEAP`. Raises BadLink."""
    name, ns = _parts(text)
    return HeapLink(parse_address(name), ns)


def parse_allocation(text: str) -> AllocationLink:
    """`0xHEAP:0xADDRESS@NS`, or without a time. Raises BadLink."""
    name, ns = _parts(text)
    heap, colon, address = name.partition(":")
    if not colon:
        raise BadLink(f"{text!r} names no allocation: write 0xHEAP:0xADDRESS@NS.")
    return AllocationLink(parse_address(heap), parse_address(address), ns)


def parse_operation(text: str) -> OperationLink:
    """`KIND:0xBUFFER@NS`. Raises BadLink."""
    name, ns = _parts(text)
    kind, colon, buffer = name.partition(":")
    if not colon or ns is None or not kind.isalpha():
        raise BadLink(f"{text!r} names no operation: write KIND:0xBUFFER@NS, such as recv:0x1f0000@1000.")
    return OperationLink(kind, parse_address(buffer), ns)
