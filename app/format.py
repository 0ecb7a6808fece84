"""How numbers, addresses, times and statuses look: the one place where values become text.

Every function takes a stored value and returns text; None (what the data does not say) becomes "unknown" where a page shows it.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, timedelta

from app import clockface
from collector.ntstatus import name_of, winsock_of

__all__ = [
    "FILTERS",
    "UNKNOWN",
    "Address",
    "Status",
    "absolute",
    "address",
    "breakable",
    "bytes_exact",
    "bytes_text",
    "clock_time",
    "count",
    "duration",
    "duration_exact",
    "fields",
    "flag",
    "hexadecimal",
    "iso_utc",
    "other_clock",
    "per_second",
    "plural",
    "prose",
    "range_ends",
    "since_start",
    "spelled",
    "status",
    "status_name",
    "status_short",
    "stored_address",
    "time",
    "time_exact",
    "time_span",
    "time_whole",
    "to_address",
    "to_status",
    "words",
]

UNKNOWN = "unknown"
THIN = "\N{NARROW NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"

_MASK = (1 << 64) - 1
_SHORT_SPAN_NS = 10_000
_GROUPS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_BREAKS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[:\\/_])(?=[^:\\/_])")
_SHORT = 15
_SPELLED = {"ipv4": "IPv4", "ipv6": "IPv6", "tcp": "TCP", "udp": "UDP", "icmp": "ICMP", "icmpv6": "ICMPv6", "dgram": "datagram"}
_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_TIME_UNITS = (
    (86_400_000_000_000, "d"),
    (3_600_000_000_000, "h"),
    (60_000_000_000, "min"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "µs"),
)


class Address(int):
    """A 64-bit address or handle; its text, in pages as in JSON, is `0x…`."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{int(self):#x}"


class Status(int):
    """An NTSTATUS, unsigned 32-bit; its text is `0x…`."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{int(self):#x}"


def to_address(stored: int | None) -> Address | None:
    """The address behind a signed 64-bit number of the database."""
    return None if stored is None else Address(stored & _MASK)


def stored_address(value: int) -> int:
    """An address as the database holds it: two's complement of 64 bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


def to_status(stored: int | None) -> Status | None:
    """The status behind a number of the database."""
    return None if stored is None else Status(stored & 0xFFFF_FFFF)


def thin(value: int) -> str:
    """Digits in groups of three, parted by thin spaces."""
    text = f"{abs(value):,}".replace(",", THIN)
    return MINUS + text if value < 0 else text


def count(value: int | None) -> str:
    """A count or a number without a unit."""
    return UNKNOWN if value is None else thin(value)


def per_second(count: int, span_ns: int) -> str | None:
    """How often something came in each second of the time from its first to its last; None where that is under a second: no rate then."""
    if count < 2 or span_ns < 1_000_000_000:
        return None
    rate = (count - 1) * 1_000_000_000 / span_ns
    return f"{rate:.0f}" if rate >= 100 else f"{rate:.3g}"


def plural(value: int, one: str, many: str | None = None) -> str:
    """A count with its noun: `1 socket`, `2 sockets`."""
    return f"{thin(value)} {one if value == 1 else many or one + 's'}"


def prose(text: str) -> str:
    """A stored sentence with its numbers grouped as pages group them: `1,920 bytes` as `1 920 bytes`."""
    return _GROUPS.sub(THIN, text)


def _three_digits(numerator: int, denominator: int) -> str:
    """A positive ratio of at least 1 with three digits, rounded half up: 1.23, 12.3, 123; above 999 whole."""
    hundredths = (200 * numerator + denominator) // (2 * denominator)  # whole numbers alone: a page has thousands of these
    if hundredths < 1000:
        return f"{hundredths // 100}.{hundredths % 100:02d}"
    tenths = (20 * numerator + denominator) // (2 * denominator)
    if tenths < 1000:
        return f"{tenths // 10}.{tenths % 10}"
    return thin((2 * numerator + denominator) // (2 * denominator))


def bytes_text(value: int | None) -> str:
    """A size with three digits in powers of 1000: `12.4 MB`; below 1000 exact."""
    if value is None:
        return UNKNOWN
    size, sign = abs(value), MINUS if value < 0 else ""
    power = 0
    while power < len(_BYTE_UNITS) - 1 and size * 2 >= 1999 * 1000**power:  # 999.5 kB is 1.00 MB
        power += 1
    if power == 0 or size < 1000:
        return f"{sign}{size} B"
    return f"{sign}{_three_digits(size, 1000**power)} {_BYTE_UNITS[power]}"


def bytes_exact(value: int | None) -> str:
    """The exact size, for the hover text."""
    return UNKNOWN if value is None else plural(value, "byte")


def address(value: int | None) -> str:
    """An address in full: `0x…`."""
    return UNKNOWN if value is None else f"{value & _MASK:#x}"


def hexadecimal(value: int | None) -> str:
    """A number that is read in hex: flags, locations."""
    return UNKNOWN if value is None else f"{value:#x}"


def time(ns: int | None) -> str:
    """A moment of the trace to the microsecond: `+12.345 678 s`, or `09:30:12.345 678 UTC` where the request asks for the wall clock's.

    It is never rounded up into a moment that was not.
    """
    if ns is None:
        return UNKNOWN
    return since_start(ns) if clockface.current() is None else f"{clock_time(ns)} UTC"


def time_whole(ns: int | None) -> str:
    """The same without leaving anything out: to the nanosecond where the moment is no whole microsecond."""
    text = time(ns)
    if ns is None or ns % 1000 == 0:
        return text
    rest = (-ns if text.startswith(MINUS) else ns) % 1000
    number, _, unit = text.rpartition(" ")
    return f"{number}{THIN}{rest:03d} {unit}"


def time_span(from_ns: int, to_ns: int) -> str:
    """A range in words, `from +1.000 000 s to +2.000 000 s`; one that is too short for microseconds to the nanosecond."""
    return "from {} to {}".format(*range_ends(from_ns, to_ns))


def range_ends(from_ns: int, to_ns: int) -> tuple[str, str]:
    """The two ends of a range, told apart."""
    write = time_whole if to_ns - from_ns < _SHORT_SPAN_NS else time
    return write(from_ns), write(to_ns)


def clock_time(ns: int | None) -> str:
    """The same for the cell of a table: without the word UTC, which stands above."""
    start = clockface.current()
    if ns is None:
        return UNKNOWN
    if start is None:
        return since_start(ns)
    try:
        moment = start + timedelta(microseconds=ns // 1000)
    except OverflowError:
        return since_start(ns)
    date = "" if moment.date() == start.date() else f"{moment:%Y-%m-%d} "
    return f"{date}{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}{THIN}{moment.microsecond % 1000:03d}"


def since_start(ns: int | None) -> str:
    """A moment as time since the trace began, whatever the request asks for."""
    if ns is None:
        return UNKNOWN
    sign, value = ("+", ns) if ns >= 0 else (MINUS, -ns)
    seconds, rest = divmod(value // 1000, 1_000_000)
    return f"{sign}{thin(seconds)}.{rest // 1000:03d}{THIN}{rest % 1000:03d} s"


def other_clock(ns: int | None, start_utc: str | None) -> str:
    """A moment on the clock that the request does not ask for, for the hover text."""
    return since_start(ns) if clockface.current() is not None else absolute(ns, start_utc) or "no date known"


def time_exact(ns: int | None) -> str:
    """The exact nanoseconds of a moment, as URLs have them."""
    return UNKNOWN if ns is None else f"{thin(ns)} ns"


def duration(ns: int | None) -> str:
    """A time span in the largest unit, with three digits: `12.3 ms`; nanoseconds exact."""
    if ns is None:
        return UNKNOWN
    sign, value = ("", ns) if ns >= 0 else (MINUS, -ns)
    for unit_ns, unit in _TIME_UNITS:
        if value >= unit_ns:
            return f"{sign}{_three_digits(value, unit_ns)} {unit}"
    return f"{sign}{value} ns"


def duration_exact(ns: int | None) -> str:
    """The exact span, for the hover text."""
    return UNKNOWN if ns is None else f"{thin(ns)} ns"


def absolute(ns: int | None, start_utc: str | None) -> str | None:
    """A moment of the trace as date and time in UTC to the microsecond; None where the trace does not say when it began."""
    start = clockface.start_of(start_utc)
    if ns is None or start is None:
        return None
    try:
        moment = start + timedelta(microseconds=ns // 1000)
    except OverflowError:
        return None
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond:06d} UTC"


def iso_utc(stored: str | None) -> str:
    """A stored UTC time as people read it, to the second."""
    moment = clockface.start_of(stored)
    return UNKNOWN if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def status_name(value: int | None) -> str | None:
    """The name of a status, None for one without."""
    return None if value is None else name_of(value & 0xFFFF_FFFF)


def status_short(value: int | None) -> str:
    """A status where room is scarce: its name without the prefix that all have, else hex; the whole is on hover."""
    if value is None:
        return UNKNOWN
    name = name_of(value & 0xFFFF_FFFF)
    return name.removeprefix("STATUS_") if name else f"0x{value & 0xFFFF_FFFF:08X}"


def status(value: int | None) -> str:
    """A status in all its spellings: `STATUS_CONNECTION_RESET 0xC000020D · WSAECONNRESET 10054`."""
    if value is None:
        return UNKNOWN
    number = value & 0xFFFF_FFFF
    parts = [part for part in (name_of(number), f"0x{number:08X}") if part]
    winsock = winsock_of(number)
    return " ".join(parts) + (f" · {winsock.name} {winsock.number}" if winsock is not None else "")


def breakable(value: object) -> list[str]:
    """A value in the pieces between which a line may break: the words of a name, an address and its port, the folders of a path.

    A short one has one piece.
    """
    text = str(value)
    return _BREAKS.split(text) if len(text) > _SHORT else [text]


def fields(stored: str | Mapping[str, object]) -> str:
    """The fields that a record has besides those with a column, from its JSON: `address family 2, protocol 6`."""
    known = json.loads(stored) if isinstance(stored, str) else stored
    return ", ".join(f"{words(name)} {value}" for name, value in known.items() if value is not None)


def spelled(name: str) -> str:
    """An address family, a protocol or a type of socket as it is written: `ipv4` as `IPv4`."""
    return _SPELLED.get(name, name)


def flag(value: bool | None) -> str:
    """Yes, no, or unknown."""
    return UNKNOWN if value is None else "yes" if value else "no"


def words(name: str | None) -> str:
    """A word of our vocabularies as a page shows it: `open_at_end` as `open at end`."""
    return UNKNOWN if name is None else name.replace("_", " ")


FILTERS = {
    "address": address,
    "absolute": absolute,
    "breakable": breakable,
    "bytes_exact": bytes_exact,
    "bytes_text": bytes_text,
    "clock_time": clock_time,
    "count": count,
    "duration": duration,
    "duration_exact": duration_exact,
    "fields": fields,
    "flag": flag,
    "hexadecimal": hexadecimal,
    "iso_utc": iso_utc,
    "other_clock": other_clock,
    "plural": plural,
    "prose": prose,
    "spelled": spelled,
    "status": status,
    "status_name": status_name,
    "status_short": status_short,
    "time": time,
    "time_exact": time_exact,
    "time_whole": time_whole,
    "words": words,
}
"""What a template may call, by name."""
