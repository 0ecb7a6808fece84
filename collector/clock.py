"""Raw clock ticks to nanoseconds of the trace and to UTC.

The three clocks of an ETW session and their conversions are those of the log file header (ReservedFlags, PerfFreq,
CpuSpeedInMHz, StartTime). All arithmetic is on integers: the product of ticks and 10^9 passes 2^63, so quotient and
remainder are converted apart.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

__all__ = ["FILETIME_PER_SECOND", "NS_PER_SECOND", "Clock", "ClockKind", "filetime_to_datetime"]

NS_PER_SECOND = 1_000_000_000
FILETIME_PER_SECOND = 10_000_000
_FILETIME_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_MAX_FILETIME = 2_650_467_743_999_999_999  # the last moment of year 9999, the last that datetime can say

Int64s = NDArray[np.int64]


class ClockKind(StrEnum):
    """What the time stamps count; the session chose it."""

    QPC = "qpc"
    SYSTEM_TIME = "system_time"
    CPU_CYCLES = "cpu_cycles"


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of one trace.

    `start_ticks` is time 0 of the trace; `start_filetime` is the same moment as FILETIME (100 ns since 1601, UTC), 0 when the
    header does not say.
    """

    kind: ClockKind
    start_ticks: int
    ticks_per_second: int
    start_filetime: int

    def ns(self, ticks: Int64s) -> Int64s:
        """Nanoseconds since time 0, floored; int64 in, int64 out, same shape. Negative before time 0."""
        if NS_PER_SECOND % self.ticks_per_second == 0:  # the usual clock; the same without dividing
            return (ticks - np.int64(self.start_ticks)) * np.int64(NS_PER_SECOND // self.ticks_per_second)
        seconds, rest = np.divmod(ticks - np.int64(self.start_ticks), np.int64(self.ticks_per_second))
        return seconds * NS_PER_SECOND + rest * NS_PER_SECOND // np.int64(self.ticks_per_second)

    def ns_of(self, ticks: int) -> int:
        """As `ns`, for one value."""
        return (ticks - self.start_ticks) * NS_PER_SECOND // self.ticks_per_second

    def ticks_of(self, ns: int) -> int:
        """The first tick at or after a time of the trace in nanoseconds."""
        return self.start_ticks - (-ns * self.ticks_per_second // NS_PER_SECOND)

    def start_utc(self) -> datetime | None:
        """Time 0 in UTC, None where the header names no valid date."""
        return filetime_to_datetime(self.start_filetime)


def filetime_to_datetime(filetime: int) -> datetime | None:
    """A FILETIME (100 ns since 1601-01-01 UTC) as datetime; None for 0 and for what no calendar holds."""
    if not 0 < filetime <= _MAX_FILETIME:
        return None
    return _FILETIME_EPOCH + timedelta(microseconds=filetime // 10)
