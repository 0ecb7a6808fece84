"""Which ranges of memory in flight meet no other: a sweep over arrays, where the exact model keeps an index."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["FROM_BEFORE", "WITHOUT_END", "apart"]

Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

FROM_BEFORE = np.iinfo(np.int64).min
WITHOUT_END = np.iinfo(np.int64).max
_PROCESS_SHIFT = 48  # user addresses are shorter


def apart(process: Int64s, lo: Int64s, length: Int64s, begin: Int64s, end: Int64s) -> Bools:
    """Which ranges certainly meet no other of their process in time; bool, shape (n,).

    Args:
        process: small numbers.
        lo: user addresses; `length` is above 0.
        begin: ticks, from when on; `end`, until when (that tick excluded).
    """
    free = np.ones(lo.size, dtype=np.bool_)
    if lo.size < 2:
        return free
    key = process << _PROCESS_SHIFT | lo
    order = np.argsort(key, kind="stable")
    low, high = key[order], (key + length)[order]
    reach = np.maximum.accumulate(high)
    is_first = np.concatenate([[True], low[1:] >= reach[:-1]])
    cluster = np.empty(lo.size, dtype=np.int64)
    cluster[order] = np.cumsum(is_first)

    by_time = np.lexsort((-end, begin, cluster))
    place, since, until = cluster[by_time], begin[by_time], end[by_time]
    same = place[1:] == place[:-1]
    meets = np.zeros(lo.size, dtype=np.bool_)
    meets[:-1] = same & (since[1:] < until[:-1])
    meets[1:] |= same & (since[1:] < _latest(place, until)[:-1])
    free[by_time] = ~meets
    return free


def _latest(cluster: Int64s, end: Int64s) -> Int64s:
    """The latest end so far in each cluster; clusters ascend."""
    rank = np.argsort(np.argsort(end, kind="stable"), kind="stable")
    best = np.maximum.accumulate(cluster * end.size + rank)
    latest: Int64s = np.sort(end)[best % end.size]
    return latest
