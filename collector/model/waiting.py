"""Columns that wait for their time: appended by windows in ascending time, taken from the front up to a time."""

from collections import deque
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Waiting"]

Int64s: TypeAlias = NDArray[np.int64]


class Waiting:
    """A queue of rows in columns; the first column is the time in ticks."""

    def __init__(self, columns: int) -> None:
        self._parts: deque[tuple[Int64s, ...]] = deque()
        self._columns = columns
        self.count = 0

    def add(self, *columns: Int64s) -> None:
        """Append rows, none earlier than those that wait; all int64, shape (n,). They are not copied."""
        if columns[0].size:
            self._parts.append(columns)
            self.count += int(columns[0].size)

    def take(self, until: int, *, at_most: int | None = None) -> tuple[Int64s, ...]:
        """Cut off the rows up to a time (included), or the first of them."""
        taken: list[tuple[Int64s, ...]] = []
        left = self.count if at_most is None else at_most
        while left > 0 and self._parts and self._parts[0][0][0] <= until:
            part = self._parts.popleft()
            cut = min(int(np.searchsorted(part[0], until, side="right")), left)
            left -= cut
            taken.append(tuple(column[:cut] for column in part))
            if cut < part[0].size:
                self._parts.appendleft(tuple(column[cut:] for column in part))
                break
        if not taken:
            return tuple(np.zeros(0, dtype=np.int64) for _ in range(self._columns))
        rows = taken[0] if len(taken) == 1 else tuple(np.concatenate(columns) for columns in zip(*taken, strict=True))
        self.count -= int(rows[0].size)
        return rows

    def ticks_at(self, back: int) -> int:
        """Time of the row that has `back` rows behind it; there must be one."""
        for part in reversed(self._parts):
            if back < part[0].size:
                return int(part[0][part[0].size - 1 - back])
            back -= int(part[0].size)
        raise IndexError(back)
