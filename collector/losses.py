"""Where records of a trace were lost."""

from dataclasses import dataclass, field

__all__ = ["Losses"]


@dataclass(slots=True)
class Losses:
    """Losses with a place on the clock, and whether some have none.

    A span `(first, last)` in raw ticks says that records were lost at some moment from `first` to `last`. `is_everywhere` is true
    when the header counts losses that no sign in the file places: then any moment may lack records.
    """

    spans: list[tuple[int, int]] = field(default_factory=list)
    is_everywhere: bool = False

    def between(self, first: int, last: int) -> bool:
        """Whether records may have been lost from tick `first` to tick `last`, both included."""
        return self.is_everywhere or any(first <= hi and lo <= last for lo, hi in self.spans)

    def after(self, ticks: int) -> bool:
        """Whether records may have been lost after a tick."""
        return self.is_everywhere or any(hi > ticks for _, hi in self.spans)
