"""Adds up rows by key as they pass, in memory that follows the number of keys."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Groups", "Int64s"]

Int64s = NDArray[np.int64]

_PENDING = 1 << 16
_LARGEST = 1 << 62


class Groups:
    """Number of rows, sums, least and greatest values by key. All values are int64.

    Rows are kept as they come until there are some ten thousand, then those of one key become one.
    """

    def __init__(self, *, keys: int, sums: int = 0, lows: int = 0, highs: int = 0) -> None:
        self._spans = (keys, 1 + sums, lows, highs)
        self._parts: list[Int64s] = []
        self._pending = 0
        self._most = _PENDING

    def add(
        self, *, keys: tuple[Int64s, ...], sums: tuple[Int64s, ...] = (), lows: tuple[Int64s, ...] = (), highs: tuple[Int64s, ...] = ()
    ) -> None:
        """Take rows in, as columns of one length."""
        if not keys[0].size:
            return
        part = self._joined(np.stack([*keys, np.ones(keys[0].size, dtype=np.int64), *sums, *lows, *highs]))
        self._parts.append(part)
        self._pending += part.shape[1]
        if self._pending > self._most:
            self.columns()

    def columns(self) -> Int64s:
        """Keys, number of rows, sums, least and greatest values, a column each key, in the order of the keys."""
        whole = np.concatenate(self._parts, axis=1) if self._parts else np.zeros((sum(self._spans), 0), dtype=np.int64)
        if len(self._parts) > 1:
            whole = self._joined(whole)
        self._parts = [whole]
        self._pending = whole.shape[1]
        self._most = _PENDING + 2 * self._pending  # so that joining costs a constant share, however many keys there are
        return whole

    def _joined(self, rows: Int64s) -> Int64s:
        """Rows of the same key as one."""
        keys, adds, lows, highs = self._spans
        if rows.shape[1] < 2:
            return rows
        code = _one_number(rows[:keys])
        rows = rows.take(np.lexsort(rows[:keys][::-1]) if code is None else np.argsort(code), axis=1)
        is_first = np.ones(rows.shape[1], dtype=np.bool_)
        is_first[1:] = (rows[:keys, 1:] != rows[:keys, :-1]).any(axis=0)
        first = np.flatnonzero(is_first)
        end_of_sums, end_of_lows = keys + adds, keys + adds + lows
        return np.concatenate(
            [
                rows[:keys, first],
                np.add.reduceat(rows[keys:end_of_sums], first, axis=1),
                np.minimum.reduceat(rows[end_of_sums:end_of_lows], first, axis=1) if lows else rows[:0, first],
                np.maximum.reduceat(rows[end_of_lows:], first, axis=1) if highs else rows[:0, first],
            ]
        )


def _one_number(keys: Int64s) -> Int64s | None:
    """Keys of several columns as one number with the same order, which is sorted in a third of the time; None where it would not fit."""
    lows, highs = keys.min(axis=1).tolist(), keys.max(axis=1).tolist()
    code, size = np.zeros(keys.shape[1], dtype=np.int64), 1
    for key, low, high in zip(keys, lows, highs, strict=True):
        span = high - low + 1
        size *= span
        if size > _LARGEST:
            return None
        code = code * span + (key - low)
    return code
