"""Which traces of a folder go when it is to stay small: by age and by size, the oldest first, and what is kept all the same."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

__all__ = ["Candidate", "Choice", "Plan", "parse_age", "parse_amount", "plan"]

_AGES = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_AMOUNTS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
            "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}  # fmt: skip
_MOST_DAYS = 100_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A trace: when it was collected, the bytes of its file (0 where there is none), its notes, and whether a collector works on it."""

    key: str
    name: str
    label: str | None
    collected: datetime
    size_bytes: int
    notes: int
    is_busy: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """A trace and why it goes, or why it stays although it is too old or too much."""

    trace: Candidate
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes, in its order, what of the rest is spared, and how many bytes the folder has before and after."""

    goes: tuple[Choice, ...]
    spared: tuple[Choice, ...]
    bytes_before: int
    bytes_after: int


def parse_age(text: str) -> timedelta:
    """`30d`, `12h`, `2w`. Raises ValueError."""
    found = re.fullmatch(r"([0-9]{1,6})\s*([hdw])", text.strip().lower())
    if not found or (age := int(found[1]) * _AGES[found[2]]) > timedelta(days=_MOST_DAYS):
        raise ValueError(f"{text}: an age such as 30d, 12h or 2w")
    return age


def parse_amount(text: str) -> int:
    """Bytes: `20GB`, `1.5 GiB`, `0`. Raises ValueError."""
    found = re.fullmatch(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?\s*([a-z]*)", text.strip().lower())
    if not found or found[3] not in _AMOUNTS or (found[2] and _AMOUNTS[found[3]] == 1):
        raise ValueError(f"{text}: an amount such as 20GB, 500 MiB or 0")
    unit = _AMOUNTS[found[3]]
    return int(found[1]) * unit + (int(found[2]) * unit // 10 ** len(found[2]) if found[2] else 0)


def plan(
    traces: Iterable[Candidate], *, now: datetime, older_than: timedelta | None, keep_bytes: int | None, also_labelled: bool = False
) -> Plan:
    """Choose what goes: all that is older, then the oldest of the rest until at most `keep_bytes` are left.

    Traces that are being collected stay in any case, those with a label or notes unless `also_labelled`.
    """
    oldest_first = sorted(traces, key=lambda one: (one.collected, one.key))
    left = bytes_before = sum(one.size_bytes for one in oldest_first)
    goes: list[Choice] = []
    spared: list[Choice] = []
    rest: list[Candidate] = []
    for one in oldest_first:
        if older_than is None or now - one.collected <= older_than:
            rest.append(one)
            continue
        reason = _kept(one, also_labelled=also_labelled)
        if reason:
            spared.append(Choice(one, reason))
        else:
            goes.append(Choice(one, f"collected {(now - one.collected).days} days ago"))
            left -= one.size_bytes
    for one in rest:
        if keep_bytes is None or left <= keep_bytes:
            break
        reason = _kept(one, also_labelled=also_labelled)
        if reason:
            spared.append(Choice(one, reason))
        elif one.size_bytes:
            goes.append(Choice(one, "the oldest of what is too much"))
            left -= one.size_bytes
    return Plan(tuple(goes), tuple(spared), bytes_before, left)


def _kept(trace: Candidate, *, also_labelled: bool) -> str:
    """Why a trace stays; empty where nothing speaks for it."""
    if trace.is_busy:
        return "it is being collected"
    if also_labelled:
        return ""
    if trace.label:
        return f"it has the label “{trace.label}”"
    return f"it has {trace.notes} note{'' if trace.notes == 1 else 's'}" if trace.notes else ""
