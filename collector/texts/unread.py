"""Events of a text that are not taken over: why, how many and where first, so that a text of nothing else is refused with its reason."""

from collections import Counter
from typing import NamedTuple

__all__ = [
    "BAD_RECORD",
    "BAD_VALUE",
    "LONG_LINE",
    "NO_MOMENT",
    "OTHER_EVENT",
    "OTHER_LINE",
    "OTHER_MESSAGE",
    "OTHER_PROVIDER",
    "RAW_TIME",
    "ROUNDED_TIME",
    "SHORT_ROW",
    "STACK",
    "STRANGER",
    "NoMoment",
    "Reason",
    "Unread",
    "UnreadableEvent",
]

_AGAIN = "Write the text again from the .etl file, or better collect that file itself."
_FILE = "Collect the .etl file that the session wrote."


class Reason(NamedTuple):
    """Why events are not taken over, in words that follow "Why:", and what to do; damage or only not known."""

    words: str
    advice: str
    is_damage: bool = True


LONG_LINE = Reason("lines of more than a million characters", _AGAIN)
SHORT_ROW = Reason("another number of values than the header of the text names", _AGAIN)
BAD_VALUE = Reason("values that no tool writes", _AGAIN)
BAD_RECORD = Reason("records that the library cannot read", "Save the log again: wevtutil epl CHANNEL FILE.evtx.")
NO_MOMENT = Reason("times that are no date, or one before any session", _AGAIN)
ROUNDED_TIME = Reason(
    "times rounded like 1.33856E+17, as a spreadsheet saves them",
    "Write the text again from the .etl file, and save it in no spreadsheet.",
)
RAW_TIME = Reason("times that are raw counts, as tracerpt -rts writes them", "Write the file again without -rts.")
OTHER_LINE = Reason("lines that are cut, or whose time is written in another way", _AGAIN)
STRANGER = Reason("names of providers that are not known here", f"XML tells their identity (tracerpt -of XML). {_FILE}", is_damage=False)
OTHER_PROVIDER = Reason("providers other than Microsoft-Windows-Winsock-AFD, whose ids it does not tell", _FILE, is_damage=False)
OTHER_MESSAGE = Reason(
    "messages of the socket provider that are not known here, as of old events or in another language", _FILE, is_damage=False
)
OTHER_EVENT = Reason("kinds of events that are not read from this form", _FILE, is_damage=False)
STACK = Reason("call stacks, which do not say to which event they belong", _FILE, is_damage=False)


class UnreadableEvent(ValueError):
    """An event that cannot be taken over, and why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.words)
        self.reason = reason


class NoMoment(UnreadableEvent):
    """A text that is no moment."""

    def __init__(self) -> None:
        super().__init__(NO_MOMENT)


class Unread:
    """What was not taken over, counted by reason."""

    def __init__(self) -> None:
        self._counts: Counter[Reason] = Counter()
        self._first: dict[Reason, int] = {}

    def add(self, why: Reason | ValueError, line: int = 0, count: int = 1) -> None:
        """Count events of one reason; `line` counts from 1, 0 where the text has no lines."""
        reason = why if isinstance(why, Reason) else why.reason if isinstance(why, UnreadableEvent) else BAD_VALUE
        self._counts[reason] += count
        self._first.setdefault(reason, line)

    @property
    def damaged(self) -> int:
        """How many could not be read, without those that are only not known."""
        return sum(count for reason, count in self._counts.items() if reason.is_damage)

    def refusal(self) -> str:
        """Of a text that gives no event: how many it has, the most frequent reason, its first line, what to do; empty where it has none."""
        if not self._counts:
            return ""
        in_all = self._counts.total()
        ((reason, count),) = self._counts.most_common(1)
        events = "the only event of this file cannot be read" if in_all == 1 else f"none of the {in_all:,} events of this file can be read"
        share = "Why" if count == in_all else f"Why {count:,} of them"
        line = self._first[reason]
        place = f" ({'' if count == 1 else 'the first in '}line {line:,})" if line else ""
        return f"{events}. {share}: {reason.words}{place}. {reason.advice}"
