"""Which part of a trace a user wants stored or exported: processes, sockets, a range of time, kinds of data."""

import re
from dataclasses import dataclass, field
from hashlib import sha256

from collector.errors import NothingLeft

__all__ = ["KINDS", "Limits", "WhichSocket", "Who", "kinds_in_words", "parse_moment", "parse_which_socket", "parse_who"]

KINDS = ("sockets", "heap")
_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000}
_MOMENT = re.compile(r"(-?\d+)(?:\.(\d{1,9}))?\s*(ns|us|µs|ms|s|min)?")
_MAX_NS = 1 << 62
_SUFFIX_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Who:
    """A process as a user names it: by pid, by pid and a moment of its life, or by the name of its image."""

    text: str
    pid: int | None = None
    ns: int | None = None
    image: str | None = None


@dataclass(frozen=True, slots=True)
class WhichSocket:
    """A socket as links name it: by the address of its endpoint, and a moment of its life; without one all sockets of that address."""

    text: str
    endpoint: int
    """Unsigned."""
    ns: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What is stored; nothing given is everything. Times are ns since time 0, both ends included."""

    processes: tuple[Who, ...] = ()
    from_ns: int | None = None
    to_ns: int | None = None
    only: tuple[str, ...] = ()
    """Of KINDS."""
    sockets: tuple[WhichSocket, ...] = ()
    done: str = field(default="stored", compare=False)
    """What becomes of what is left, in the words of an error."""

    def __bool__(self) -> bool:
        return bool(self.processes or self.sockets or self.only or self.from_ns is not None or self.to_ns is not None)

    def wants(self, kind: str) -> bool:
        """Whether a kind of data is stored."""
        return not self.only or kind in self.only

    @property
    def words(self) -> str:
        """What is stored, in words; empty for everything."""
        parts = [" and ".join(self.only)] if self.only else []
        parts += [f"process {', '.join(who.text for who in self.processes)}"] if self.processes else []
        parts += [f"socket {', '.join(which.text for which in self.sockets)}"] if self.sockets else []
        parts += [self._range] if self._range else []
        return ", ".join(parts)

    def check(self, first_ns: int, end_ns: int) -> None:
        """Hold the range against the time of a trace. Raises NothingLeft when they do not meet."""
        is_after = self.from_ns is not None and self.from_ns > end_ns
        if is_after or (self.to_ns is not None and self.to_ns < first_ns):
            raise NothingLeft(
                f"The trace lasts from {_seconds(first_ns)} to {_seconds(end_ns)}: nothing of it is {self._range}, "
                f"so nothing was {self.done}."
            )

    @property
    def _range(self) -> str:
        parts = [f"from {_seconds(self.from_ns)}"] if self.from_ns is not None else []
        return ", ".join([*parts, *([f"to {_seconds(self.to_ns)}"] if self.to_ns is not None else [])])

    @property
    def suffix(self) -> str:
        """What the key of the whole trace gets, so that both can be there; empty for everything."""
        return f"-{sha256(self.words.encode()).hexdigest()[:_SUFFIX_DIGITS]}" if self else ""


def kinds_in_words(words: str) -> tuple[frozenset[str], bool]:
    """Read back `Limits.words`: the kinds of data that are stored, and whether only some processes, sockets or times of them are."""
    first, _, rest = words.partition(", ")
    kinds = frozenset(first.split(" and "))
    return (kinds, bool(rest)) if kinds <= frozenset(KINDS) else (frozenset(KINDS), True)


def parse_moment(text: str) -> int:
    """Nanoseconds since time 0, or a number with a unit: `1500000`, `1.5 s`, `-20ms`. Raises ValueError."""
    found = _MOMENT.fullmatch(text.strip())
    whole, part, unit = found.groups() if found else ("", None, None)
    if not found or (part is not None and unit is None):
        raise ValueError(f"{text!r} is not a time: write nanoseconds since time 0, or a number with a unit, such as 12.5s or 300ms.")
    scale = _UNITS[unit or "ns"]
    ns = abs(int(whole)) * scale + (int(part.ljust(9, "0")) * scale // 1_000_000_000 if part else 0)
    if ns > _MAX_NS:
        raise ValueError(f"{text!r} is longer than any trace.")
    return -ns if whole.startswith("-") else ns


def parse_who(text: str) -> Who:
    """`4120`, `4120@1500000` or `webproxy.exe`. Raises ValueError."""
    found = re.fullmatch(r"(\d{1,10})(?:@(-?\d{1,19}))?", text.strip())
    if found:
        pid, ns = found.groups()
        if int(pid) >= 1 << 32:
            raise ValueError(f"{text!r} is not a process id: they have at most 32 bits.")
        return Who(text.strip(), pid=int(pid), ns=None if ns is None else int(ns))
    if not text.strip() or "@" in text:
        raise ValueError(
            f"{text!r} is not a process: write its id, its id and a moment of its life as PID@NS, or its image, such as app.exe."
        )
    return Who(text.strip(), image=text.strip().lower())


def parse_which_socket(text: str) -> WhichSocket:
    """`0xffffe000a1b2c3d4@1500000`, the `0x` and the moment may be left out. Raises ValueError."""
    found = re.fullmatch(r"(?:0[xX])?([0-9a-fA-F]{1,16})(?:@(-?\d{1,19}))?", text.strip())
    if not found:
        raise ValueError(f"{text!r} is not a socket: write it as its page's address has it, 0xENDPOINT@NS.")
    endpoint, ns = int(found[1], 16), found[2]
    if ns is not None and abs(int(ns)) > _MAX_NS:
        raise ValueError(f"{text!r}: the moment is longer than any trace.")
    return WhichSocket(f"0x{endpoint:x}" + (f"@{int(ns)}" if ns is not None else ""), endpoint, None if ns is None else int(ns))


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:.9f}".rstrip("0").rstrip(".") + " s"
