"""Signs of lost records in an ETL file, and where they place the loss.

Signs (etl-format S2.1, S6, S14): counters of the log file header, flags of buffers, marker records, gaps in the sequence numbers,
fewer buffers than the header counts, and the damage met while reading. One loss shows in several signs, so the header's counters are
never added to the others.
"""

import numpy as np

from collector.errors import Problem
from collector.losses import END_OF_TIME, Losses
from collector.raw import Int64s
from collector.readers.etl_index import BufferIndex
from collector.readers.etl_order import BufferOrder, sequence_gaps
from collector.readers.problems import LOST_BUFFERS, LOST_EVENTS, SEQUENCE_GAP, ProblemLog

__all__ = ["MARKER_OPCODES", "LossSigns"]

MARKER_OPCODES = range(32, 35)
"""Lost event, lost buffer, lost file."""
_LOST_EVENT_OPCODE = 32


class LossSigns:
    """Collects the signs of one file; `losses` is what they say so far."""

    def __init__(
        self, index: BufferIndex, order: BufferOrder, *, events_lost: int, buffers_lost: int, buffers_missing: int, log: ProblemLog
    ) -> None:
        self.losses = Losses()
        self._events = _Count(events_lost)
        self._buffers = _Count(buffers_lost)
        gaps = sequence_gaps(index, order)
        holes = index.holes
        for gap in gaps:
            place = f"buffers {gap.before:,} and {gap.after:,} (sequence {index.sequence[gap.before]:,}, {index.sequence[gap.after]:,})"
            log.add(SEQUENCE_GAP, count=gap.missing, first_ticks=gap.first_ticks, last_ticks=gap.last_ticks, place=place)
            if buffers_lost or holes or buffers_missing:
                self.losses.add(gap.first_ticks, END_OF_TIME if gap.last_ticks is None else gap.last_ticks)
            if buffers_lost:
                self._buffers.widen(gap.first_ticks, gap.last_ticks)
        missing = sum(gap.missing for gap in gaps)
        is_cut = index.missing_bytes > 0 or buffers_missing > missing
        if is_cut and len(index) > 1:
            # What was cut off may belong to any processor, from its last buffer on.
            cpus = index.cpu[1:]
            last = [order.start[1:][cpus == cpu].max() for cpu in np.unique(cpus)]
            self.losses.add(int(min(last)), END_OF_TIME)
        is_unplaced = (
            (events_lost > 0 and not index.has_lost_events.any())
            or (buffers_lost > 0 and not (index.has_lost_buffers.any() or missing))
            or holes > missing
            or (buffers_missing > 0 and len(index) == 1)
        )
        self.losses.is_everywhere = bool(is_unplaced)

    def flagged(self, first: int, last: int, *, has_events: bool, has_buffers: bool, markers: Int64s) -> None:
        """A buffer whose flags say that something was lost while it was being filled, from tick `first` to `last`.

        `markers` are the time stamps of marker records in it: they say the same, more precisely.
        """
        if markers.size:
            return
        self.losses.add(first, last)
        if has_events:
            self._events.see(first, last)
        if has_buffers:
            self._buffers.see(first, last)

    def marker(self, ticks: int, opcode: int) -> None:
        """A marker record: something was lost right here."""
        self.losses.add(ticks, ticks)
        (self._events if opcode == _LOST_EVENT_OPCODE else self._buffers).see(ticks, ticks)

    def damage(self, first: int, last: int) -> None:
        """Records from tick `first` to `last` could not be read."""
        self.losses.add(first, max(first, last))

    def problems(self) -> list[Problem]:
        """The losses as problems; times only where signs give them."""
        counts = ((LOST_EVENTS, self._events), (LOST_BUFFERS, self._buffers))
        return [Problem(kind, count.total, count.first, count.last) for kind, count in counts if count.total]


class _Count:
    """How many were lost: the header's number, or at least one for each sign."""

    def __init__(self, declared: int) -> None:
        self._declared = declared
        self._signs = 0
        self.first: int | None = None
        self.last: int | None = None

    @property
    def total(self) -> int:
        return max(self._declared, self._signs)

    def see(self, first: int, last: int) -> None:
        self._signs += 1
        self.widen(first, last)

    def widen(self, first: int, last: int | None) -> None:
        self.first = first if self.first is None else min(self.first, first)
        if last is not None:
            self.last = last if self.last is None else max(self.last, last)
