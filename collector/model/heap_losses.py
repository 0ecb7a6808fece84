"""Whether records may be missing between two times, asked often."""

from bisect import bisect_right
from itertools import accumulate

from collector.losses import Losses

__all__ = ["LossIndex"]


class LossIndex:
    """The losses of a trace as they are known now; the same answers as `Losses.between`, by search."""

    def __init__(self, losses: Losses) -> None:
        spans = sorted(losses.spans)
        self._is_everywhere = losses.is_everywhere
        self._begins = [first for first, _ in spans]
        self._latest_ends = list(accumulate((last for _, last in spans), max))

    def __bool__(self) -> bool:
        return self._is_everywhere or bool(self._begins)

    def between(self, first: int, last: int) -> bool:
        """Whether records may have been lost from tick `first` to tick `last`, both included."""
        if self._is_everywhere:
            return True
        i = bisect_right(self._begins, last)
        return i > 0 and self._latest_ends[i - 1] >= first
