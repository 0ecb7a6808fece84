"""Sparse buckets of time: what changed in each, and the level of a gauge at its borders and between them.

A bucket of level L is [k · 2^L, (k + 1) · 2^L) ns. Only buckets in which something happened exist; between them a gauge is constant.
Coarser levels are derived from finer ones, so every level is exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEVELS", "PAGE", "Buckets", "Cascade", "finest"]

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

LEVELS = (20, 24, 28, 32, 36)
"""About 1 ms, 17 ms, 0.27 s, 4.3 s and 69 s."""
PAGE = 20_000
"""Buckets that become rows at once: as Python objects they take ten times the room."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Buckets of one level, unique and sorted by (scope, bucket); n rows, k sums, g gauges."""

    scope: Int64s
    """What the bucket counts, shape (n,)."""
    bucket: Int64s
    """floor(t / 2^level), shape (n,)."""
    sums: Int64s
    """Shape (n, k)."""
    start: Int64s
    """Level of each gauge just before the bucket's first change, shape (n, g)."""
    end: Int64s
    low: Int64s
    """Lowest level in the bucket, its start included."""
    high: Int64s

    def __len__(self) -> int:
        return int(self.scope.size)

    def pages(self, size: int) -> "Iterator[Buckets]":
        """The rows in pieces of at most `size`."""
        for at in range(0, len(self), size):
            yield Buckets(*(getattr(self, name)[at : at + size] for name in self.__slots__))

    def where(self, rows: Bools) -> "Buckets":
        """Some of the rows."""
        return Buckets(*(getattr(self, name)[rows] for name in self.__slots__))

    def coarser(self, shift: int) -> "Buckets":
        """The same in buckets that are 2^shift times as wide."""
        return _merged(Buckets(self.scope, self.bucket >> np.int64(shift), self.sums, self.start, self.end, self.low, self.high))

    def then(self, later: "Buckets") -> "Buckets":
        """This and what happened later; a bucket that both have becomes one."""
        return _merged(Buckets(*(np.concatenate([getattr(self, name), getattr(later, name)]) for name in self.__slots__)))


def finest(scope: Int64s, t_ns: Int64s, order: Int64s, sums: Int64s, deltas: Int64s, carried: Int64s) -> Buckets:
    """Buckets of the finest level from single changes.

    Args:
        scope: int64, shape (n,), 0 or more.
        order: int64, shape (n,); changes of equal order are one: a gauge has no level between them. Never falls while t_ns rises.
        sums: int64, shape (k, n); what each change adds to the sums.
        deltas: int64, shape (g, n); what each change adds to the gauges.
        carried: int64, shape (more than the highest scope, g); levels before these changes, brought up to date in place.
    """
    if not scope.size:
        return Buckets(scope, t_ns, sums.T, deltas.T, deltas.T, deltas.T, deltas.T)
    by_scope = _by_scope(scope, order)
    if by_scope is not None:
        scope, t_ns, order = scope[by_scope], t_ns[by_scope], order[by_scope]
        sums, deltas = sums.take(by_scope, axis=1), deltas.take(by_scope, axis=1)
    is_new_scope = np.diff(scope, prepend=scope[0] - 1) != 0
    first_of_scope = np.flatnonzero(is_new_scope)
    last_of_scope = np.append(first_of_scope[1:], scope.size) - 1

    is_step = is_new_scope | (np.diff(order, prepend=order[0] - 1) != 0)
    first_of_step = np.flatnonzero(is_step)
    last_of_step = np.append(first_of_step[1:], scope.size) - 1
    scopes, buckets = scope[first_of_step], t_ns[last_of_step] >> np.int64(LEVELS[0])
    is_first = np.append(True, (np.diff(scopes) != 0) | (np.diff(buckets) != 0))
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], scopes.size) - 1

    gauges = []
    for delta, level in zip(deltas, carried.T, strict=True):  # column by column: as rows of two or nine numbers they take twice as long
        levels = np.cumsum(delta)
        before_scope = levels[first_of_scope] - delta[first_of_scope]
        levels += np.repeat(level[scope[first_of_scope]] - before_scope, last_of_scope - first_of_scope + 1)
        level[scope[first_of_scope]] = levels[last_of_scope]
        before, after = levels[first_of_step] - delta[first_of_step], levels[last_of_step]
        low, high = np.minimum.reduceat(np.minimum(before, after), first), np.maximum.reduceat(np.maximum(before, after), first)
        gauges.append((before[first], after[last], low, high))
    start, end, low, high = (np.stack(columns, axis=1) for columns in zip(*gauges, strict=True))
    added = np.stack([np.add.reduceat(column, first_of_step[first]) for column in sums], axis=1)
    return Buckets(scopes[first], buckets[first], added, start, end, low, high)


def _by_scope(scope: Int64s, order: Int64s) -> Int64s | None:
    """The order by scope and, within one, by order; None for changes that stand in it."""
    if not (order[1:] >= order[:-1]).all():
        return np.lexsort((order, scope))
    if (scope[1:] >= scope[:-1]).all():
        return None
    small = scope.astype(np.uint16) if scope.max() < 1 << 16 else scope  # numbers of two bytes are sorted in one pass
    return np.argsort(small, kind="stable")


class Cascade:
    """Buckets of one kind of scope on all levels, fed in time order; hands on what can no longer change."""

    def __init__(self) -> None:
        self._open: dict[int, Buckets] = {}

    def advance(self, fine: Buckets, until_ns: int) -> Iterator[tuple[int, Buckets]]:
        """Take the finest buckets up to `until_ns` (exclusive, a border of the finest level); yields (level, finished buckets)."""
        if len(fine):
            yield LEVELS[0], fine
        finished = fine
        for finer, level in pairwise(LEVELS):
            grown = finished.coarser(level - finer)
            if level in self._open:
                grown = self._open[level].then(grown)
            is_done = (grown.bucket + 1) << np.int64(level) <= until_ns
            self._open[level] = grown.where(~is_done)
            finished = grown.where(is_done)
            if len(finished):
                yield level, finished

    def finish(self) -> Iterator[tuple[int, Buckets]]:
        """The buckets that the end of the trace cuts."""
        finished: Buckets | None = None
        for finer, level in pairwise(LEVELS):
            grown = self._open.pop(level, None)
            if finished is not None:
                coarse = finished.coarser(level - finer)
                grown = grown.then(coarse) if grown is not None else coarse
            finished = grown
            if finished is not None and len(finished):
                yield level, finished


def _merged(rows: Buckets) -> Buckets:
    """Rows that share scope and bucket as one, in the order in which they stand."""
    if not len(rows):
        return rows
    order = np.lexsort((rows.bucket, rows.scope))  # stable: equal keys keep their order in time
    scope, bucket = rows.scope[order], rows.bucket[order]
    is_first = np.append(True, (np.diff(scope) != 0) | (np.diff(bucket) != 0))
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], scope.size) - 1
    return Buckets(
        scope[first],
        bucket[first],
        np.add.reduceat(rows.sums[order], first, axis=0),
        rows.start[order[first]],
        rows.end[order[last]],
        np.minimum.reduceat(rows.low[order], first, axis=0),
        np.maximum.reduceat(rows.high[order], first, axis=0),
    )
