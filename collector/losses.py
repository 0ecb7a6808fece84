"""Where records of a trace were lost."""

from bisect import bisect_right
from dataclasses import dataclass, field

__all__ = ["END_OF_TIME", "Losses"]

END_OF_TIME = (1 << 63) - 1
"""Last tick of a loss that reaches to the end of the trace."""


@dataclass(slots=True)
class Losses:
    """Losses with a place on the clock, and whether some have none.

    A span `(first, last)` in raw ticks says that records were lost at some moment from `first` to `last`; overlapping spans are kept
    as one, in time order. `is_everywhere` is true when the header counts losses that no sign in the file places: then any moment may
    lack records.
    """

    spans: list[tuple[int, int]] = field(default_factory=list)
    is_everywhere: bool = False

    def __post_init__(self) -> None:
        given, self.spans = sorted(self.spans), []
        for first, last in given:
            self.add(first, last)

    def add(self, first: int, last: int) -> None:
        """Note that records were lost at some moment from tick `first` to tick `last`, both included."""
        low = bisect_right(self.spans, first, key=lambda span: span[0])
        if low and self.spans[low - 1][1] >= first:
            low -= 1
        high = low
        while high < len(self.spans) and self.spans[high][0] <= last:
            first, last = min(first, self.spans[high][0]), max(last, self.spans[high][1])
            high += 1
        self.spans[low:high] = [(first, last)]

    @property
    def has_any(self) -> bool:
        """Whether records were lost at all."""
        return self.is_everywhere or bool(self.spans)

    @property
    def reaches_end(self) -> bool:
        """Whether a loss goes on to the end of the trace, so that its end is not known."""
        return bool(self.spans) and self.spans[-1][1] == END_OF_TIME

    def between(self, first: int, last: int) -> bool:
        """Whether records may have been lost from tick `first` to tick `last`, both included."""
        if self.is_everywhere:
            return True
        before = bisect_right(self.spans, last, key=lambda span: span[0])
        return before > 0 and self.spans[before - 1][1] >= first

    def after(self, ticks: int) -> bool:
        """Whether records may have been lost after a tick."""
        return self.is_everywhere or (bool(self.spans) and self.spans[-1][1] > ticks)
