"""Packs intervals into lanes, so that two which overlap never share one."""

import heapq
from collections.abc import Sequence

__all__ = ["pack"]


def pack(intervals: Sequence[tuple[float, float]], *, gap: float = 0.0) -> list[int]:
    """The lane of each interval: the lowest that is free at its start.

    Args:
        intervals: (start, end), sorted by start; an end before its start counts as the start.
        gap: how much must be free behind an interval before the next may share its lane.

    Intervals are half-open: one may begin where another ends. The number of lanes is the greatest number of intervals that overlap.
    """
    lanes: list[int] = []
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    opened = 0
    for start, end in intervals:
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, opened = opened, opened + 1
        heapq.heappush(busy, (max(start, end) + gap, lane))
        lanes.append(lane)
    return lanes
