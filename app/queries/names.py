"""Names of addresses: what programs asked for before they were answered with an address."""

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Select, select

from app import format as fmt
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["MAX_NAMES", "NameRow", "Named", "address_names", "named_addresses", "names_of", "numbers_of_names"]

_name = TRACE.tables["address_name"]
_address = TRACE.tables["address"]

MAX_NAMES = 20
"""Names of one address that a page shows."""
_AT_ONCE = 400
_MAX_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Named:
    """The name of an address that was answered last, and how many others there are."""

    name: str
    others: int
    words: str
    """Who says so, and when."""


@dataclass(frozen=True, slots=True)
class NameRow:
    """A name that led to an address. `pid` is the process that was answered last."""

    name: str
    source: str
    pid: int | None
    first_ns: int
    last_ns: int
    answers: int
    is_own: bool
    """Whether the process asked that the page is about."""


def ip_of(text: str) -> bytes | None:
    """The IP address in the text of a socket address, 16 bytes; None for other addresses."""
    host = text.partition("]")[0].removeprefix("[") if text.startswith("[") else text.rpartition(":")[0] if text.count(":") == 1 else text
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return ip.packed if ip.version == 6 else bytes(10) + b"\xff\xff" + ip.packed


def names_of(db: Connection, texts: Iterable[str]) -> Mapping[str, Named]:
    """Names by the text of a socket address, for those that have one; a trace without names costs one look at an empty table."""
    n = _name.c
    if db.execute(select(n.n).where(n.trace_id == THIS_TRACE).limit(1)).first() is None:
        return {}
    by_ip: defaultdict[bytes, list[str]] = defaultdict(list)
    for text in dict.fromkeys(texts):
        ip = ip_of(text)
        if ip is not None:
            by_ip[ip].append(text)
    ips = list(by_ip)
    found: dict[str, Named] = {}
    for start in range(0, len(ips), _AT_ONCE):
        rows = db.execute(
            select(n.ip, n.name, n.source, n.last_ns)
            .where(n.trace_id == THIS_TRACE, n.ip.in_(ips[start : start + _AT_ONCE]))
            .order_by(n.ip, n.last_ns.desc(), n.n)
            .limit(_MAX_ROWS)
        )
        grouped: defaultdict[bytes, list[tuple[str, str, int]]] = defaultdict(list)
        for row in rows:
            grouped[row.ip].append((row.name, row.source, row.last_ns))
        for ip, answers in grouped.items():
            name, source, last_ns = answers[0]
            others = list(dict.fromkeys(other for other, _, _ in answers if other.lower() != name.lower()))
            words = f"{name}: asked for by name, answered at {fmt.time(last_ns)} ({source})"
            if others:
                more = f" and {len(others) - 3} more" if len(others) > 3 else ""
                words += f"; the same address was the answer for {', '.join(others[:3])}{more}"
            found |= dict.fromkeys(by_ip[ip], Named(name, len(others), words))
    return found


def address_names(db: Connection, text: str | None, *, pid: int | None, before_ns: int | None) -> list[NameRow]:
    """The names of a socket's address, the likeliest first: asked for by its process, answered before it was used, answered last."""
    ip = None if text is None else ip_of(text)
    if ip is None:
        return []
    n = _name.c
    rows = [
        NameRow(row.name, row.source, row.pid, row.first_ns, row.last_ns, row.answers, pid is not None and row.pid == pid)
        for row in db.execute(
            select(n.name, n.source, n.pid, n.first_ns, n.last_ns, n.answers)
            .where(n.trace_id == THIS_TRACE, n.ip == ip)
            .order_by(n.last_ns.desc(), n.n)
            .limit(_MAX_ROWS)
        )
    ]
    rows.sort(key=lambda row: (not row.is_own, before_ns is not None and row.first_ns > before_ns))
    return rows[:MAX_NAMES]


def _like(text: str) -> ColumnElement[bool]:
    return _name.c.name.icontains(text, autoescape=True)


def numbers_of_names(text: str) -> Select[tuple[int]]:
    """Numbers of the addresses that a name with this text led to."""
    ips = select(_name.c.ip).where(_name.c.trace_id == THIS_TRACE, _like(text))
    return select(_address.c.n).where(_address.c.trace_id == THIS_TRACE, _address.c.ip.in_(ips))


def named_addresses(db: Connection, text: str, limit: int) -> list[tuple[str, int]]:
    """Names that have this text, and how many addresses each led to; those that begin with it first."""
    rows = db.execute(select(_name.c.name, _name.c.ip).where(_name.c.trace_id == THIS_TRACE, _like(text)).distinct().limit(_MAX_ROWS))
    ips: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        ips[row.name] += 1
    first = sorted(ips, key=lambda name: (not name.lower().startswith(text.lower()), len(name), name))
    return [(name, ips[name]) for name in first[:limit]]
