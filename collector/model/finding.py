"""A finding, and what the rules share: names of processes and sockets, links, times and counts as words."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from sqlalchemy import Connection, Row, Select, func, select

from collector import ntstatus
from collector.store.tables import operation, process, socket

__all__ = [
    "CERTAIN",
    "HAS_SOCKET",
    "HIGH",
    "LOW",
    "MAX_PER_RULE",
    "MEDIUM",
    "OPERATION_OF_SOCKET",
    "POSSIBLE",
    "About",
    "Finding",
    "between",
    "counted",
    "said",
    "sized",
    "span",
    "status_text",
    "was",
    "worst_first",
]

HIGH, MEDIUM, LOW = "high", "medium", "low"
CERTAIN, POSSIBLE = "certain", "possible"
_NEAR_NS = 1_000_000_000
ANY_PROCESS = -1
MAX_PER_RULE = 20
"""A rule names the groups with most to show; what it leaves out is on the page that it links to."""

# Rules look for the few operations that went wrong, so all are read once, in their order. A plain join would let the database go through
# the sockets and fetch each operation by an index instead, which takes seven times as long.
OPERATION_OF_SOCKET = operation.outerjoin(socket, (socket.c.trace_id == operation.c.trace_id) & (socket.c.n == operation.c.socket_n))
"""Operations with their sockets, to be filtered by conditions on operations; goes with HAS_SOCKET."""
HAS_SOCKET = func.coalesce(socket.c.n, 0) > 0
"""Leaves out operations on what turned out to be no socket."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a program did and that is worth a look; fields are the columns of the table behind `n`.

    `text` says the fact, then how sure it is, then what to do. `link` is a path below /t/KEY/.
    """

    kind: str
    severity: str
    count: int
    process_n: int | None
    socket_n: int | None
    t_ns: int | None
    title: str
    text: str
    certainty: str
    link: str | None
    code: str | None


@dataclass(frozen=True, slots=True)
class Who:
    """How a process is called in a sentence, and its natural key."""

    label: str
    link: str | None


class About:
    """The trace that the rules ask, through the connection to its unfinished file."""

    def __init__(self, connection: Connection, *, end_ns: int, has_losses: bool) -> None:
        self.connection = connection
        self.end_ns = end_ns
        self.has_losses = has_losses
        self._processes: dict[int, Who] = {}

    def rows(self, query: "Select[Any]") -> list["Row[Any]"]:  # Any: each rule has columns of its own, read by their labels
        """All rows of a grouped, bounded query."""
        return list(self.connection.execute(query))

    def certainty(self, *, when_complete: str = CERTAIN) -> str:
        """How sure a conclusion is that rests on records being absent."""
        return POSSIBLE if self.has_losses else when_complete

    def doubt(self, when_complete: str, when_lost: str) -> str:
        """How sure a conclusion is that rests on records being absent, as a sentence."""
        return f"Possible: events were lost, and {when_lost}." if self.has_losses else f"Certain: {when_complete}."

    def process_end(self, n: int | None, *, near_ns: int) -> int | None:
        """When a process ended, if that was within a second of a moment."""
        p = process.c
        query = select(p.end_ns).where(p.trace_id == 1, p.n == n, p.end_ns.between(near_ns - _NEAR_NS, near_ns + _NEAR_NS))
        found: int | None = self.connection.execute(query).scalar()
        return found

    def process(self, n: int | None) -> Who:
        """`webproxy.exe (4120)`, or what is known instead."""
        if n is None:
            return Who("an unknown process", None)
        if n not in self._processes:
            self._processes[n] = self._look_up(n)
        return self._processes[n]

    def _look_up(self, n: int) -> Who:
        p = process.c
        row = self.connection.execute(select(p.pid, p.eprocess, p.image, p.start_ns, p.first_ns).where(p.trace_id == 1, p.n == n)).first()
        if row is None:
            return Who("an unknown process", None)
        identity = row.pid if row.pid is not None else _hex(row.eprocess or 0)
        since = row.start_ns if row.start_ns is not None else row.first_ns
        label = f"{_file_name(row.image)} ({identity})" if row.image else f"process {identity}"
        return Who(label, f"{identity}@{since}")

    def socket(self, n: int | None) -> str | None:
        """Natural key of a socket."""
        s = socket.c
        row = self.connection.execute(select(s.endpoint, s.created_ns, s.first_ns).where(s.trace_id == 1, s.n == n)).first()
        if row is None:
            return None
        return f"{_hex(row.endpoint)}@{row.created_ns if row.created_ns is not None else row.first_ns}"

    def socket_page(self, n: int) -> str | None:
        """Path of a socket's page."""
        key = self.socket(n)
        return f"sockets/{key}" if key else None

    def link(self, page: str, *, process_n: int | None = ANY_PROCESS, socket_n: int | None = None, **filters: object) -> str:
        """Path of a list page, filtered to one socket, else to one process or those without a known one, and by `filters` as the page
        spells them."""
        endpoint = self.socket(socket_n) if socket_n is not None else None
        if endpoint:
            whose: dict[str, object] = {"endpoint": endpoint}
        else:
            whose = {} if process_n == ANY_PROCESS else {"process": self.process(process_n).link or "unknown"}
        given = {key: value for key, value in {**whose, **filters}.items() if value is not None}
        return f"{page}?{urlencode(given, quote_via=quote, safe='@:,[]')}" if given else page


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 socket`, `1,204 sockets`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def was(count: int) -> str:
    """`was` of one, `were` of more."""
    return "was" if count == 1 else "were"


def sized(count: int) -> str:
    """Bytes as words: `4,096 bytes`, `12.4 MB`."""
    if count < 100_000:
        return counted(count, "byte")
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    raise AssertionError


def span(ns: int) -> str:
    """A time or duration in seconds or milliseconds, exact enough to find it: `6.255 s`, `41 ms`."""
    if abs(ns) < 1_000_000_000:
        return f"{ns / 1e6:,.0f} ms" if abs(ns) >= 1_000_000 else f"{ns / 1e3:,.0f} µs"
    return f"{ns / 1e9:,.3f} s"


def between(first_ns: int, last_ns: int) -> str:
    """`at 1.200 s`, `from 12.518 s to 13.968 s`."""
    return f"at {span(first_ns)}" if span(first_ns) == span(last_ns) else f"from {span(first_ns)} to {span(last_ns)}"


def status_text(status: int) -> str:
    """`STATUS_CONNECTION_RESET (0xC000020D)`."""
    name = ntstatus.name_of(status)
    return f"{name} (0x{status & 0xFFFFFFFF:08X})" if name else f"status 0x{status & 0xFFFFFFFF:08X}"


def said(*parts: str | None) -> str:
    """Sentences one behind the other; an absent or empty one is left out."""
    return " ".join(part for part in parts if part)


def worst_first(found: Iterable[Finding]) -> list[Finding]:
    """Findings as an overview shows them."""
    order = (HIGH, MEDIUM, LOW)
    return sorted(found, key=lambda f: (order.index(f.severity), -f.count, f.t_ns if f.t_ns is not None else 0))


def _hex(value: int) -> str:
    return f"0x{value & 0xFFFFFFFFFFFFFFFF:x}"


def _file_name(path: str) -> str:
    return path.replace("/", "\\").rsplit("\\", 1)[-1]
