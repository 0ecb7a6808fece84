"""How people write what they look for: a word before a value, a colon before a port, a debugger's tick, the beginning of an IP address."""

import re
from dataclasses import dataclass

from collector.ntstatus import STATUSES

__all__ = ["Typed", "statuses_in_words", "typed"]

_KINDS = {
    "port": "port", "pid": "process", "process": "process", "process id": "process", "error": "error", "status": "error", "ip": "internet",
    "host": "internet", "address": "", "socket": "", "endpoint": "", "module": "name", "stack": "name", "reason": "reason",
}  # fmt: skip
_LABELLED = re.compile(rf"({'|'.join(sorted(_KINDS, key=len, reverse=True))})[\s:=#]+(\S.*)", re.IGNORECASE)
_TICK = re.compile(r"(?<=[0-9a-f])`(?=[0-9a-f])", re.IGNORECASE)
_NAMED_PROCESS = re.compile(r"(\S.*?)\s+\(?(\d{1,10})\)?")
_FRAME = re.compile(r"([^\s+]+)\+0x([0-9a-f]{1,16})", re.IGNORECASE)
_BEGINNING = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?\.?")
_MOMENT = re.compile(r"\+\d[\d\s]*(?:\.[\d\s]*)?s?|\d[\d\s]*(?:\.[\d\s]*)?s")
_MOST_STATUSES = 60
_LEAST_LETTERS = 4


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed, taken apart. `kind` is `port`, `process`, `error`, `internet`, `name` or `reason` where it says so, else empty.

    `text` is the value alone; `named` a process by name and id, `frame` a module and an offset in it, `network` the network that the
    beginning of an IP address stands for, `moment_ns` a time of the trace.
    """

    text: str
    kind: str = ""
    named: tuple[str, int] | None = None
    frame: tuple[str, int] | None = None
    network: str | None = None
    moment_ns: int | None = None

    def may_be(self, kind: str) -> bool:
        """Whether it can be meant as this kind of thing."""
        return self.kind in ("", kind)


def typed(text: str) -> Typed:
    """What a text says about itself."""
    text = _TICK.sub("", text.strip())
    kind = ""
    if labelled := _LABELLED.fullmatch(text):
        kind, text = _KINDS[labelled[1].lower()], labelled[2]
    elif re.fullmatch(r":\d{1,5}", text):
        kind, text = "port", text[1:]
    named, frame = _NAMED_PROCESS.fullmatch(text), _FRAME.fullmatch(text)
    return Typed(
        text=text,
        kind=kind,
        named=(named[1], int(named[2])) if named else None,
        frame=(frame[1], int(frame[2], 16)) if frame else None,
        network=_network(text),
        moment_ns=_moment(text) if not kind else None,
    )


def statuses_in_words(text: str) -> tuple[int, ...]:
    """Statuses whose names have these words: `connection reset`, `timeout`. None for words that too many have, or for too few letters."""
    words = re.sub(r"[\s-]+", "_", text.strip()).upper()
    if len(words) < _LEAST_LETTERS or not re.fullmatch(r"[A-Z_]+", words):
        return ()
    found = tuple(number for number, known in STATUSES.items() if words in known.name)
    return found if len(found) <= _MOST_STATUSES else ()


def _network(text: str) -> str | None:
    """`203.0.113` is 203.0.113.0/24."""
    begun = _BEGINNING.fullmatch(text)
    if begun is None:
        return None
    parts = [part for part in begun.groups() if part is not None]
    if any(int(part) > 255 for part in parts):
        return None
    return f"{'.'.join(parts + ['0'] * (4 - len(parts)))}/{8 * len(parts)}"


def _moment(text: str) -> int | None:
    """`+9.418 133 s` as pages write it, `9.418 s`, `9s`, `+9.418`: the nanoseconds since the trace began."""
    if not _MOMENT.fullmatch(text):
        return None
    whole, _, fraction = re.sub(r"[\s+s]", "", text).partition(".")
    return int(whole) * 1_000_000_000 + int(f"{fraction[:9]:0<9}") if len(whole) < 10 else None
