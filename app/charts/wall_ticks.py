"""Where the axis of a chart names times of the wall clock: round times of the day, about eight of them."""

from datetime import datetime, timedelta

__all__ = ["wall_ticks"]

_SECOND = 1_000_000_000
_STEPS = tuple(step * 10**power for power in range(3, 9) for step in (1, 2, 5)) + tuple(
    seconds * _SECOND for seconds in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
)


def wall_ticks(from_ns: int, to_ns: int, start: datetime, *, most: int = 8) -> list[tuple[int, str]]:
    """(moment, text) in time order; none for a range too narrow for microseconds, too long for days, or outside the calendar."""
    step = next((step for step in _STEPS if (to_ns - from_ns) // step < most), 0)
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    offset = round((start - midnight) / timedelta(microseconds=1)) * 1000
    if not step or (to_ns - from_ns) // step < 1:
        return []
    first = -(-(from_ns + offset) // step) * step
    decimals = max((9 - len(str(step)) + 1) if step < _SECOND else 0, 0)
    ticks = []
    for since_midnight in range(first, to_ns + offset + 1, step):
        try:
            moment = midnight + timedelta(microseconds=since_midnight // 1000)
        except OverflowError:
            return []
        fraction = f".{moment.microsecond:06d}"[: decimals + 1] if decimals else ""
        ticks.append((since_midnight - offset, f"{moment:%H:%M:%S}{fraction}"))
    return ticks
