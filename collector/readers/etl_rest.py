"""What is left of a buffer when a window ends in the middle of its records."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from collector.raw import Int32s, Int64s, UInt8s

__all__ = ["Cut", "OpenBuffer"]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a window ends: before the records of the buffer of this rank, which begins at this time."""

    ticks: int
    rank: int

    def side(self, rank: int) -> Literal["left", "right"]:
        """At the very tick of the cut only records of buffers before it in rank are ahead of it."""
        return "right" if rank < self.rank else "left"


@dataclass(slots=True, eq=False)
class OpenBuffer:
    """Records that no window has had yet, in arrays of their own."""

    number: int
    """Index of the buffer in the file."""
    rank: int
    cpu: int
    data: UInt8s
    """Bytes of the expanded buffer from `data_at` on, at least up to the end of its last record."""
    data_at: int
    """A multiple of 8."""
    offsets: Int64s
    """Starts of its records in the expanded buffer, in the order of `ticks`."""
    sizes: Int64s
    ticks: Int64s
    forms: Int32s
    taken: int = 0
    """Records that windows have had."""

    def upto(self, cut: Cut | None) -> int:
        """How many of its records stand before a cut, those already taken included."""
        return self.ticks.size if cut is None else int(np.searchsorted(self.ticks, cut.ticks, cut.side(self.rank)))

    def piece(self, upto: int) -> tuple[int, UInt8s]:
        """The bytes of the records not taken yet before `upto`, of which there is at least one; and where in the buffer they begin."""
        chosen = slice(self.taken, upto)
        low = int(self.offsets[chosen].min())
        high = int((self.offsets[chosen] + self.sizes[chosen]).max())
        return low, self.data[low - self.data_at : high - self.data_at]

    def take(self, upto: int) -> None:
        """Let go of records, and of their memory once they are most of the buffer."""
        self.taken = upto
        if self.is_done or 2 * upto < self.ticks.size:
            return
        low = int(self.offsets[upto:].min())
        self.data, self.data_at = self.data[low - self.data_at :].copy(), low
        self.offsets, self.sizes = self.offsets[upto:].copy(), self.sizes[upto:].copy()
        self.ticks, self.forms = self.ticks[upto:].copy(), self.forms[upto:].copy()
        self.taken = 0

    @property
    def is_done(self) -> bool:
        """Whether windows have had all."""
        return self.taken >= self.ticks.size
