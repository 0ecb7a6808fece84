"""Live heap in sparse buckets, per process and per heap, from the rows of the unfinished trace file.

A moment of the heap is a record: a record that ends one block and opens another, or ends many, changes the live bytes once.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, func, select

from collector.model.buckets import LEVELS, PAGE, Buckets, Cascade, finest
from collector.model.rollups import columns_of
from collector.model.rows import Rows, rows_of
from collector.model.spool import STRETCH, TimeSpool
from collector.store.tables import allocation, heap, resize

__all__ = ["heap_rollups"]

Int64s = NDArray[np.int64]

_ABSENT = -1
_CHUNK = 100_000
_POINT = np.dtype([("t", "<i8"), ("seq", "<i8"), ("process", "<i4"), ("heap", "<i4"), ("bytes", "<i8"), ("count", "<i1")])
_SCOPES = ("process", "heap")


def heap_rollups(connection: Connection, *, stretch: int = STRETCH) -> Iterator[Rows]:
    """Rows of `heap_rollup`, in pieces.

    `allocs` and `frees` are blocks that began and ended, whatever the reason; growth in place adds to `alloc_bytes`, shrinking to
    `free_bytes`. So bytes_end - bytes_start = alloc_bytes - free_bytes in every bucket.
    """
    highest = {
        scope: connection.execute(select(func.max(column))).scalar() or 0
        for scope, column in zip(_SCOPES, (allocation.c.process_n, heap.c.n), strict=True)
    }
    with TimeSpool(_POINT, border=LEVELS[0], stretch=stretch) as spool:
        for column in columns_of(connection, _allocations(), _CHUNK):
            _spool(spool, column, "first_ns", "first_seq", column["size_at_open"], 1)
            _spool(spool, column, "end_ns", "end_seq", -column["size"], -1)
        for column in columns_of(connection, _resizes(), _CHUNK):
            _spool(spool, column, "t_ns", "seq", column["size"] - column["old_size"], 0)
        cascades = {scope: Cascade() for scope in _SCOPES}
        carried = {scope: np.zeros((size + 1, 2), dtype=np.int64) for scope, size in highest.items()}
        for points, until in spool.stretches():
            deltas = np.column_stack([points["bytes"], points["count"].astype(np.int64)])
            grown, shrunk = np.maximum(points["bytes"], 0), np.maximum(-points["bytes"], 0)
            sums = np.column_stack([points["count"] > 0, points["count"] < 0, grown, shrunk]).astype(np.int64)
            for scope, cascade in cascades.items():
                fine = finest(points[scope].astype(np.int64), points["t"], points["seq"], sums, deltas, carried[scope])
                yield from _rows(scope, cascade.advance(fine, until))
        for scope, cascade in cascades.items():
            yield from _rows(scope, cascade.finish())


def _allocations() -> "Select[tuple[int, ...]]":
    a = allocation.c
    return select(
        a.process_n,
        a.heap_n,
        a.first_ns,
        a.first_seq,
        a.size_at_open,
        a.size,
        func.coalesce(a.end_ns, 0).label("end_ns"),
        func.coalesce(a.end_seq, _ABSENT).label("end_seq"),
    )


def _resizes() -> "Select[tuple[int, ...]]":
    a, r = allocation.c, resize.c
    return select(a.process_n, a.heap_n, r.t_ns, r.seq, r.size, r.old_size).join_from(
        resize, allocation, (a.trace_id == r.trace_id) & (a.n == r.allocation_n)
    )


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
