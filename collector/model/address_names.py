"""Names of addresses: which name a program asked for, and which addresses it was answered with.

Many names lead to one address, so a name beside an address is what somebody asked for, not who is there. Loops over answers (some µs each):
a trace has as many as lookups.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from collector.errors import Problem, ProblemKind, Severity
from collector.model.process_events import numbers_of
from collector.model.rows import Rows, rows_of
from collector.schema import DecodedBatch, EventColumns
from collector.sockaddr import from_ip

__all__ = ["MAX_NAMES", "NAMES_LEFT_OUT", "AddressNames", "addresses_in"]

MAX_NAMES = 50_000
"""Names of addresses that are kept, by process and source; more are counted."""
_LONGEST_NAME = 255
_MOST_ADDRESSES = 64
"""Addresses of one answer that are taken."""
_LONGEST_ADDRESS = 80
_REMEMBERED, _MOST_REMEMBERED = 1_000, 4_096
"""Characters of an answer whose reading is remembered, and how many of them: 10 MB at most."""
_POINTER = 12
"""Query type of the way back, from an address to its name."""
_MAPPED = bytes(10) + b"\xff\xff"
_BACK = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.in-addr\.arpa\.?", re.IGNORECASE)
_NAMED = re.compile(r"type:\s*12\s+(\S{1,300})")

_DNS, _WINSOCK = "Microsoft-Windows-DNS-Client", "Microsoft-Windows-Winsock-NameResolution"
# Event name → source, fields of the name, of the results and of the status.
_ANSWERS = {
    "DnsQueryCompleted": (_DNS, "query_name", "query_results", "query_status"),
    "DnsCacheLookup": (_DNS, "query_name", "query_results", "status"),
    "DnsQueryResponse": (_DNS, "query_name", "query_results", "status"),
    "WinsockGaiEnd": (_WINSOCK, "node_name", "result", "status"),
    "WinsockGaiExEnd": (_WINSOCK, "node_name", "result", "status"),
}

NAMES_LEFT_OUT = ProblemKind(
    "names_left_out",
    Severity.NOTE,
    "More names of addresses than are kept: answers left out: {count}.",
    effect=f"The first {MAX_NAMES:,} names of addresses are shown and found; addresses may lack a name that the file has.",
    advice="Record a shorter time when a name is missing.",
)

_Key = tuple[bytes, str, str, int]
"""Address, name, source, process id."""


class AddressNames:
    """The names of one trace."""

    def __init__(self, most: int = MAX_NAMES) -> None:
        self._most = most
        self._known: dict[_Key, list[int]] = {}  # first answer, last answer, how many
        self._left_out = 0
        self._read: dict[tuple[str, str], tuple[str | None, list[bytes]]] = {}  # what was read of an answer; they come again and again

    def advance(self, batch: DecodedBatch) -> Rows:
        """Take in the answers of a window; hands on no rows, as a name may be answered again."""
        for name, (source, asked, results, status) in _ANSWERS.items():
            columns = batch.get(name)
            if columns is not None:
                self._take(batch, columns, source, asked, results, status)
        return {}

    def finish(self) -> Rows:
        """Rows of the table address_name, in the order of their first answers."""
        names = sorted(self._known.items(), key=lambda item: (item[1][0], item[0]))
        if not names:
            return {}
        keys, lives = [key for key, _ in names], [life for _, life in names]
        columns = {
            "n": range(1, len(names) + 1),
            "ip": [ip for ip, _, _, _ in keys],
            "address": [from_ip(ip, 0).text.rpartition(":")[0].strip("[]") for ip, _, _, _ in keys],
            "name": [name for _, name, _, _ in keys],
            "source": [source for _, _, source, _ in keys],
            "pid": [pid if pid >= 0 else None for _, _, _, pid in keys],
            "first_ns": [first for first, _, _ in lives],
            "last_ns": [last for _, last, _ in lives],
            "answers": [answers for _, _, answers in lives],
        }
        return {"address_name": rows_of("address_name", columns, count=len(names))}

    @property
    def problems(self) -> list[Problem]:
        return [Problem(NAMES_LEFT_OUT, count=self._left_out)] if self._left_out else []

    def _take(self, batch: DecodedBatch, columns: EventColumns, source: str, asked: str, results: str, status: str) -> None:
        moments, pids = batch.ns[columns.rows].tolist(), batch.raw.pid[columns.rows].tolist()
        statuses = columns.numbers(status).tolist()
        rows = zip(columns.texts(asked), columns.texts(results), statuses, numbers_of(columns)("query_type"), moments, pids, strict=True)
        for name, text, failed, kind, t_ns, pid in rows:
            if failed or not text:
                continue
            if kind == _POINTER:
                back = _way_back(name, text)
                if back is not None:
                    self._learn((back[0], back[1], source, pid), t_ns)
                continue
            called, ips = self._reading(name, text)
            if called is not None:
                for ip in ips:
                    self._learn((ip, called, source, pid), t_ns)

    def _reading(self, name: str, text: str) -> tuple[str | None, list[bytes]]:
        """A name as it is kept, and the addresses of its answer."""
        known = self._read.get((name, text))
        if known is None:
            called = _shown(name)
            known = called, addresses_in(text) if called is not None else []
            if len(name) + len(text) <= _REMEMBERED:
                if len(self._read) >= _MOST_REMEMBERED:
                    self._read.clear()
                self._read[name, text] = known
        return known

    def _learn(self, key: _Key, t_ns: int) -> None:
        known = self._known.get(key)
        if known is not None:
            known[1], known[2] = max(known[1], t_ns), known[2] + 1
        elif len(self._known) < self._most:
            self._known[key] = [t_ns, t_ns, 1]
        else:
            self._left_out += 1


def addresses_in(results: str) -> list[bytes]:
    """The addresses of an answer, each once, 16 bytes (IPv4 mapped); records of other types, and what is no address, are passed over."""
    found: dict[bytes, None] = {}
    for part in results.split(";", _MOST_ADDRESSES)[:_MOST_ADDRESSES]:
        ip = _address(part.strip()) if len(part) <= _LONGEST_ADDRESS else None
        if ip is not None and any(ip[12:]):
            found[ip] = None
    return list(found)


def _address(text: str) -> bytes | None:
    """An IP address, perhaps with a port or a zone; None for other text."""
    if not text or text[0] not in "[:0123456789abcdefABCDEF":
        return None
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return IPv6Address(text.partition("%")[0]).packed if ":" in text else _MAPPED + IPv4Address(text).packed
    except AddressValueError:
        return None


def _shown(name: str) -> str | None:
    """A name as it is kept: without the dot at its end, cut where it is longer than any name; None for none, and for an address."""
    called = name[: _LONGEST_NAME + 2].strip().rstrip(".")
    if not called or _address(called) is not None:
        return None
    return called if len(called) <= _LONGEST_NAME else called[:_LONGEST_NAME] + "…"


def _way_back(asked: str, results: str) -> tuple[bytes, str] | None:
    """The address that was asked about, and its name."""
    back, named = _BACK.fullmatch(asked), _NAMED.search(results[:1_000])
    called = _shown(named[1].rstrip(";")) if named else None
    if back is None or called is None or any(int(part) > 255 for part in back.groups()):
        return None
    return _MAPPED + bytes(int(part) for part in reversed(back.groups())), called
