"""Live heap in sparse buckets, per process and per heap, from the rows on their way to the trace file.

A moment of the heap is a record: a record that ends one block and opens another, or ends many, changes the live bytes once.
"""

from collections.abc import Iterable, Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from collector.model.buckets import LEVELS, PAGE, Buckets, Cascade, finest
from collector.model.rows import Block, Rows, columns_of, rows_of
from collector.model.spool import STRETCH, TimeSpool

__all__ = ["HeapRollups"]

Int64s = NDArray[np.int64]

_ABSENT = -1
_POINT = np.dtype([("t", "<i8"), ("seq", "<i8"), ("process", "<i4"), ("heap", "<i4"), ("bytes", "<i8"), ("count", "<i1")])
_RESIZE = ("t_ns", "seq", "size", "old_size")
_ALLOCATION = ("process_n", "heap_n", "first_ns", "first_seq", "size_at_open", "size", "end_ns", "end_seq")
_SCOPES = ("process", "heap")


class HeapRollups:
    """Takes the rows of allocations on their way to the store, and makes the rows of `heap_rollup` of them; a context manager.

    `allocs` and `frees` are blocks that began and ended, whatever the reason; growth in place adds to `alloc_bytes`, shrinking to
    `free_bytes`. So bytes_end - bytes_start = alloc_bytes - free_bytes in every bucket.
    """

    def __init__(self, *, stretch: int = STRETCH) -> None:
        """`stretch`: how many changes are in memory at once, about."""
        self._spool = TimeSpool(_POINT, border=LEVELS[0], stretch=stretch)
        self._highest = dict.fromkeys(_SCOPES, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the disk space back."""
        self._spool.close()

    def take(self, rows: Rows) -> None:
        """Look at finished rows of any tables; resizes count where they say in which heap the block is."""
        for column in columns_of(rows.get("allocation", ()), "allocation", _ALLOCATION, absent=_ABSENT):
            for scope in _SCOPES:
                self._highest[scope] = max(self._highest[scope], int(column[f"{scope}_n"].max()))
            _spool(self._spool, column, "first_ns", "first_seq", column["size_at_open"], 1)
            _spool(self._spool, column, "end_ns", "end_seq", -column["size"], -1)
        told = [line for line in rows.get("resize", ()) if isinstance(line, Block) and line.unstored]
        for block, column in zip(told, columns_of(told, "resize", _RESIZE, absent=_ABSENT), strict=True):
            _spool(self._spool, {**column, **block.unstored}, "t_ns", "seq", column["size"] - column["old_size"], 0)

    def finish(self) -> Iterator[Rows]:
        """Rows of `heap_rollup`, in pieces, once all rows were taken."""
        cascades = {scope: Cascade() for scope in _SCOPES}
        carried = {scope: np.zeros((highest + 1, 2), dtype=np.int64) for scope, highest in self._highest.items()}
        for points, until in self._spool.stretches():
            deltas = np.stack([points["bytes"], points["count"].astype(np.int64)])
            grown, shrunk = np.maximum(points["bytes"], 0), np.maximum(-points["bytes"], 0)
            sums = np.stack([points["count"] > 0, points["count"] < 0, grown, shrunk])
            for scope, cascade in cascades.items():
                fine = finest(points[scope].astype(np.int64), points["t"], points["seq"], sums, deltas, carried[scope])
                yield from _rows(scope, cascade.advance(fine, until))
        for scope, cascade in cascades.items():
            yield from _rows(scope, cascade.finish())


def _spool(spool: TimeSpool, column: dict[str, Int64s], time: str, seq: str, change: Int64s, count: int) -> None:
    points = np.empty(change.size, dtype=_POINT)
    points["t"], points["seq"], points["process"], points["heap"] = column[time], column[seq], column["process_n"], column["heap_n"]
    points["bytes"], points["count"] = change, count
    spool.add(points[points["seq"] != _ABSENT])


def _rows(scope: str, finished: Iterable[tuple[int, Buckets]]) -> Iterator[Rows]:
    for level, buckets in finished:
        yield from (_page(scope, level, page) for page in buckets.pages(PAGE))


def _page(scope: str, level: int, buckets: Buckets) -> Rows:
    count = len(buckets)
    columns: dict[str, Int64s | list[object]] = {
        "scope": [scope] * count,
        "scope_n": buckets.scope,
        "level": [level] * count,
        "bucket": buckets.bucket,
        "bytes_start": buckets.start[:, 0],
        "bytes_end": buckets.end[:, 0],
        "bytes_min": buckets.low[:, 0],
        "bytes_max": buckets.high[:, 0],
        "count_end": buckets.end[:, 1],
        "count_min": buckets.low[:, 1],
        "count_max": buckets.high[:, 1],
        "allocs": buckets.sums[:, 0],
        "frees": buckets.sums[:, 1],
        "alloc_bytes": buckets.sums[:, 2],
        "free_bytes": buckets.sums[:, 3],
    }
    return {"heap_rollup": rows_of("heap_rollup", columns, count=count)}
