"""How far reading in real time is behind what happens.

Clocks of sessions and of this program are not compared: a record that came faster after its time stamp than any other came at once, and
what is later than that is late.
"""

from collections.abc import Sequence

from collector.record.backlog import Copied

__all__ = ["LATE_SECONDS", "Lag"]

LATE_SECONDS = 5.0
"""A session hands its buffers on every second; much later than that reading does not keep up."""
_IN_TIME_SECONDS = 2.0
_TICKS_AT, _TICKS_END = 16, 24


class Lag:
    """Seconds between a record's time stamp and its being read; one thread looks, another may ask."""

    def __init__(self, ticks_per_second: int = 0) -> None:
        self.ticks_per_second = ticks_per_second
        """0: not known yet, and nothing is late."""
        self.seconds = 0.0
        self._least: float | None = None
        self._told = 0.0

    def see(self, records: Sequence[Copied], now: float) -> None:
        """Look at records that are read now, in seconds of any clock that goes steadily; none are in time."""
        if not records or not self.ticks_per_second:
            self.seconds = 0.0
            return
        some = (records[0], records[len(records) // 2], records[-1])  # those of one session may be late while others are not
        ages = [now - int.from_bytes(head[_TICKS_AT:_TICKS_END], "little", signed=True) / self.ticks_per_second for head, _, _ in some]
        self._least = min(*ages, self._least if self._least is not None else ages[0])
        self.seconds = max(ages) - self._least

    def news(self) -> float:
        """The seconds where they should be told: when they become many, and each time that they have doubled; else 0."""
        seconds = self.seconds
        if seconds < _IN_TIME_SECONDS:
            self._told = 0.0
        if seconds < max(LATE_SECONDS, 2 * self._told):
            return 0.0
        self._told = seconds
        return seconds
