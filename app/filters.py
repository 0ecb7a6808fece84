"""What a list can be narrowed by: one row a filter gives its key in the URL, its SQL and its English.

Query string → `Conditions` → SQL and words, so that a heading cannot disagree with the rows beneath it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement

from app import clockface
from app import format as fmt
from app.links import BadLink, parse_address, parse_moment

__all__ = [
    "BadFilter",
    "Condition",
    "Conditions",
    "Filter",
    "one_of",
    "one_word",
    "parse_address",
    "parse_bytes",
    "parse_conditions",
    "parse_count",
    "parse_duration",
    "parse_text",
    "parse_time",
    "yes_no",
]

MAX_TEXT = 300
_SIZE_UNITS = {"": 1, "b": 1, "k": 1000, "kb": 1000, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9, "t": 10**12, "tb": 10**12,
               "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}  # fmt: skip
_TIME_UNITS = {
    "": 1,
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_WALL = re.compile(
    r"(?:([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]|$))?"
    r"(?:([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?)? ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2})?",
    re.IGNORECASE,
)
_GROUPED = re.compile(r"[^0-9,]?[0-9]{1,3}(,[0-9]{3})+(?![0-9])[^,]*")
_QUANTITY = re.compile(r"([+-]?)([0-9]{1,19})(?:\.([0-9]{1,18}))?([a-zµμ]*)")
_TIMES = "nanoseconds since time 0, a number with a unit such as 12.345 s or 250 ms, or a time in UTC such as 2025-06-03T09:30:12.5Z."
_MAX = 1 << 62  # sums of two values fit 63 bits


class BadFilter(ValueError):
    """A value that a filter cannot use: which filter, what was given, what is allowed."""

    def __init__(self, key: str, text: str, allowed: str) -> None:
        super().__init__(f"{key}={text}: {allowed}")
        self.key, self.text, self.allowed = key, text, allowed


@dataclass(frozen=True, slots=True)
class Filter:
    """One way to narrow a list.

    `parse` turns the URL's text into a value and raises ValueError with what is allowed. `sql` turns the value into a condition.
    `words` is the English with a `{}` for the value as `show` writes it. `choices` are (value, text) pairs of a select box. `default`
    is the text that holds while the URL says nothing; where it is set, the URL's empty value switches the filter off.
    `is_narrow` says that few rows fit, which an index finds: then they are sorted, not met on a walk through all.
    """

    key: str
    parse: Callable[[str], Any]  # Any: each filter has a value type of its own, which parse and sql share
    sql: Callable[[Any], ColumnElement[bool]]
    words: str
    label: str
    show: Callable[[Any], str] = str
    choices: tuple[tuple[str, str], ...] = ()
    hint: str = ""
    default: str | None = None
    is_narrow: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter with the value it was given."""

    filter: Filter
    text: str
    value: Any  # Any: see Filter.parse

    def in_words(self) -> str:
        return self.filter.words.format(self.filter.show(self.value))


@dataclass(frozen=True, slots=True)
class Conditions:
    """All conditions of a request, in the order of their declaration."""

    items: tuple[Condition, ...] = ()
    switched_off: tuple[str, ...] = ()

    def clauses(self) -> list[ColumnElement[bool]]:
        """The SQL conditions; all must hold."""
        return [item.filter.sql(item.value) for item in self.items]

    def in_words(self) -> str:
        """The conditions in English, empty when there are none."""
        return ", ".join(item.in_words() for item in self.items)

    def query(self) -> dict[str, str]:
        """The part of the query string that says the same; defaults are left out."""
        said = {item.filter.key: item.text for item in self.items if item.text != item.filter.default}
        return said | dict.fromkeys(self.switched_off, "")

    def value(self, key: str) -> Any:  # Any: see Filter.parse
        """The value of a filter, None where it does not hold."""
        return next((item.value for item in self.items if item.filter.key == key), None)

    def without(self, key: str) -> dict[str, str]:
        """The query string with one filter switched off."""
        query = self.query()
        query.pop(key, None)
        if any(item.filter.key == key and item.filter.default is not None for item in self.items):
            query[key] = ""
        return query

    @property
    def is_narrow(self) -> bool:
        """Whether a condition holds that few rows fit."""
        return any(item.filter.is_narrow for item in self.items)

    @property
    def is_narrowed(self) -> bool:
        """Whether more than the defaults holds."""
        return any(item.text != item.filter.default for item in self.items)


def parse_conditions(filters: tuple[Filter, ...], query: Mapping[str, str]) -> Conditions:
    """The conditions that a query string asks for. Raises BadFilter; other keys are not looked at."""
    items, off = [], []
    for one in filters:
        text = query.get(one.key)
        if text is None:
            text = one.default or ""
        elif not text.strip() and one.default is not None:
            off.append(one.key)
        text = text.strip()
        if not text:
            continue
        if len(text) > MAX_TEXT:
            raise BadFilter(one.key, text[:40] + "…", f"at most {MAX_TEXT} characters.")
        try:
            items.append(Condition(one, text, one.parse(text)))
        except ValueError as error:
            raise BadFilter(one.key, text, str(error)) from error
    _check_ranges(items)
    return Conditions(tuple(items), tuple(off))


def _check_ranges(items: list[Condition]) -> None:
    """Raises BadFilter for a range that runs backward: no row can lie in it."""
    by_key = {item.filter.key: item for item in items}
    for item in items:
        key = item.filter.key
        other = by_key.get("to" if key == "from" else f"max_{key.removeprefix('min_')}" if key.startswith("min_") else "")
        if other is not None and item.value > other.value:
            end = "before" if key == "from" else "less than"
            raise BadFilter(other.filter.key, other.text, f"this is {end} {key}={item.text}; give a range that runs forward.")


def parse_text(text: str) -> str:
    """Any text. Raises ValueError for control characters."""
    if any(ord(c) < 32 for c in text):
        raise ValueError("text without control characters.")
    return text


def _ungrouped(number: str) -> str:
    """A number without the commas between its thousands; any other comma stays, and no number has one: `12,5` may mean either."""
    return number.replace(",", "") if _GROUPED.fullmatch(number) else number


def _quantity(text: str, units: Mapping[str, int], allowed: str) -> int:
    compact = _ungrouped("".join(text.split())).replace(fmt.THIN, "").replace(fmt.MINUS, "-").lower()
    found = _QUANTITY.fullmatch(compact)
    if not found or found[4] not in units:
        raise ValueError(allowed)
    sign, whole, decimals, unit = found[1], found[2], found[3] or "", units[found[4]]
    if decimals and unit == 1:  # `12.000` is as likely seconds with their decimals as a number with grouped thousands
        raise ValueError(f"{allowed} A number with decimals needs a unit that can be divided.")
    value = int(whole) * unit + (int(decimals) * unit // 10 ** len(decimals) if decimals else 0)
    if value > _MAX:
        raise ValueError(allowed)
    return -value if sign == "-" else value


def parse_bytes(text: str) -> int:
    """A size: `1500`, `64 KiB`, `1.5 MB`. Raises ValueError."""
    value = _quantity(text, _SIZE_UNITS, "a size such as 1500, 64 KiB or 1.5 MB.")
    if value < 0:
        raise ValueError("a size of 0 or more.")
    return value


def parse_count(text: str) -> int:
    """A whole number from 0. Raises ValueError."""
    compact = _ungrouped("".join(text.split()))
    if not compact.isascii() or not compact.isdigit() or int(compact) > _MAX:
        raise ValueError("a whole number from 0.")
    return int(compact)


def parse_time(text: str) -> int:
    """A moment of the trace in nanoseconds: `1500`, with a unit (`12.345 s`, `-3 ms`), or the wall clock's, in UTC unless it says
    another zone (`2025-06-03T09:30:12.5Z`; without a date, on the day on which the trace began). Raises ValueError.
    """
    try:
        return parse_moment(text)
    except BadLink:
        compact = text.replace(fmt.THIN, "").strip()
        found = _WALL.fullmatch(compact) if ":" in compact or compact[4:5] == "-" else None
        return _wall_ns(found) if found else _quantity(text, _TIME_UNITS, _TIMES)


def _wall_ns(found: re.Match[str]) -> int:
    """The moment that a date or a time of day means. Raises ValueError."""
    start = clockface.start()
    if start is None:
        raise ValueError("this trace does not say when it began: nanoseconds since time 0, or a number with a unit such as 12.345 s.")
    date, hour, minute, second, fraction, zone = found.groups()
    midnight = datetime.fromisoformat(date) if date else datetime.combine(start.date(), datetime.min.time())
    if int(hour or 0) > 23 or int(minute or 0) > 59 or int(second or 0) > 59:
        raise ValueError(_TIMES)
    west = timedelta()
    if zone and zone[0] in "+-":
        digits = zone[1:].replace(":", "")
        west = timedelta(hours=int(digits[:2]), minutes=int(digits[2:])) * (-1 if zone[0] == "-" else 1)
    of_day = timedelta(hours=int(hour or 0), minutes=int(minute or 0), seconds=int(second or 0))
    since = midnight.replace(tzinfo=UTC) - start - west + of_day
    value = (since // timedelta(microseconds=1)) * 1000 + int((fraction or "").ljust(9, "0"))
    if abs(value) > _MAX:
        raise ValueError(_TIMES)
    return value


def parse_duration(text: str) -> int:
    """A time span in nanoseconds, or with a unit. Raises ValueError."""
    value = _quantity(text, _TIME_UNITS, "nanoseconds, or a number with a unit such as 200 ms.")
    if value < 0:
        raise ValueError("a time span of 0 or more.")
    return value


def one_of(words: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """A parser for one or some of a vocabulary's words, parted by commas."""

    def parse(text: str) -> tuple[str, ...]:
        chosen = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
        unknown = [word for word in chosen if word not in words]
        if unknown or not chosen:
            raise ValueError(f"one or some of {', '.join(words)}.")
        return chosen

    return parse


def one_word(words: tuple[str, ...]) -> Callable[[str], str]:
    """A parser for one word of a vocabulary whose words exclude each other."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"{' or '.join(words)}; leave it empty for all.")
        return text

    return parse


def yes_no(text: str) -> bool:
    """`yes` or `no`. Raises ValueError."""
    if text not in ("yes", "no"):
        raise ValueError("yes or no.")
    return text == "yes"
