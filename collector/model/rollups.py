"""Socket activity and operations in flight, in sparse buckets, from the rows of the unfinished trace file."""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, func, literal, select

from collector import words
from collector.model.buckets import LEVELS, PAGE, Buckets, Cascade, finest
from collector.model.rows import Rows, rows_of
from collector.model.spool import STRETCH, TimeSpool
from collector.store.tables import FEW_OPERATIONS, operation, socket

__all__ = ["columns_of", "socket_rollups"]

Bools = NDArray[np.bool_]
Int64s = NDArray[np.int64]
Records = NDArray[np.void]

WOULD_BLOCK = 0xC00000A3
NEVER_POSTED = (15, 16, 25)
"""Completions for which no event of a post exists: their start is unknown wherever the trace begins."""

_ABSENT = -(1 << 63)
_CHUNK = 100_000
_SENDS = [words.OPERATION_KINDS.index(kind) for kind in ("send", "sendto", "sendmsg")]
_RECEIVES = [words.OPERATION_KINDS.index(kind) for kind in ("recv", "recvfrom", "recvmsg")]
_COMPLETED, _FAILED, _REJECTED, _SENT = (words.OUTCOMES.index(word) for word in ("completed", "failed", "rejected", "sent"))

_SUMS = ("sends", "receives", "bytes_sent", "bytes_received", "errors", "opened", "closed", "posted", "ended")
_POINT = np.dtype(
    [("t", "<i8"), ("socket", "<i4"), ("process", "<i4"), ("delta", "<i1")]
    + [(name, "<i8" if name.startswith("bytes") else "u1") for name in _SUMS]
)
_SCOPES = ("trace", "process", "socket")


def socket_rollups(connection: Connection, *, first_ns: int, few: int = FEW_OPERATIONS, stretch: int = STRETCH) -> Iterator[Rows]:
    """Rows of `socket_rollup`, in pieces.

    Args:
        first_ns: the trace's first moment.
        few: sockets with at most so many operations get no buckets of their own.
        stretch: how many points are in memory at once, about.

    An operation is in flight in [posted, ended); of unknown start, from the trace's first moment on, if its socket is that old.
    """
    highest_socket, highest_process = (
        connection.execute(select(func.max(column))).scalar() or 0 for column in (socket.c.n, socket.c.process_n)
    )
    with TimeSpool(_POINT, border=LEVELS[0], stretch=stretch) as spool:
        operations = np.zeros(highest_socket + 1, dtype=np.int64)
        for column in columns_of(connection, _operations(first_ns), _CHUNK):
            operations += np.bincount(column["socket_n"], minlength=operations.size)
            _spool_operations(spool, column)
        has_many = operations > few
        for column in columns_of(connection, _sockets(), _CHUNK):
            _spool_sockets(spool, column)
        cascades = {scope: Cascade() for scope in _SCOPES}
        carried = {
            scope: np.zeros((size, 1), dtype=np.int64)
            for scope, size in zip(_SCOPES, (1, highest_process + 1, highest_socket + 1), strict=True)
        }
        for points, until in spool.stretches():
            times, deltas = points["t"], points["delta"].astype(np.int64)[:, np.newaxis]
            sums = np.column_stack([points[name].astype(np.int64) for name in _SUMS])
            numbers = {
                "trace": np.zeros(points.size, dtype=np.int64),
                "process": points["process"].astype(np.int64),
                "socket": np.where(has_many[points["socket"]], points["socket"].astype(np.int64), -1),
            }
            for scope, cascade in cascades.items():
                mine = np.flatnonzero(numbers[scope] >= 0)
                fine = finest(numbers[scope][mine], times[mine], times[mine], sums[mine], deltas[mine], carried[scope])
                yield from _rows(scope, cascade.advance(fine, until))
        for scope, cascade in cascades.items():
            yield from _rows(scope, cascade.finish())


def columns_of(connection: Connection, query: "Select[tuple[int, ...]]", size: int) -> Iterator[dict[str, Int64s]]:
    """The result of a query of integers as columns, at most `size` rows at a time.

    Takes the driver's tuples: a row object for each, and an array out of tuples, would cost four times as much as the query.
    """
    result = connection.execute(query)
    names = list(result.keys())
    cursor = result.cursor
    assert cursor is not None, "a query has a result"
    while rows := cursor.fetchmany(size):
        table = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=len(rows) * len(names)).reshape(-1, len(names))
        yield {name: np.ascontiguousarray(table[:, i]) for i, name in enumerate(names)}
    result.close()


def _operations(first_ns: int) -> "Select[tuple[int, ...]]":
    o, s = operation.c, socket.c
    is_old = (s.create_seen.is_(False)) & func.coalesce(o.completed_event, 0).not_in(NEVER_POSTED)
    began = func.coalesce(o.posted_ns, func.iif(is_old, literal(first_ns), _ABSENT))
    return select(
        o.socket_n,
        func.coalesce(s.process_n, -1).label("process_n"),
        o.kind,
        o.outcome,
        o.bytes,
        func.coalesce(o.status, 0).label("status"),
        func.coalesce(o.posted_ns, _ABSENT).label("posted_ns"),
        began.label("began_ns"),
        func.coalesce(o.completed_ns, o.posted_ns, _ABSENT).label("counted_ns"),
        func.coalesce(o.end_ns, _ABSENT).label("end_ns"),
    ).join_from(operation, socket, (s.trace_id == o.trace_id) & (s.n == o.socket_n))


def _sockets() -> "Select[tuple[int, ...]]":
    s = socket.c
    return select(
        s.n.label("socket_n"),
        func.coalesce(s.process_n, -1).label("process_n"),
        func.coalesce(s.created_ns, _ABSENT).label("created_ns"),
        func.coalesce(s.closed_ns, _ABSENT).label("closed_ns"),
    )


def _spool_operations(spool: TimeSpool, column: dict[str, Int64s]) -> None:
    began, ended, counted = column["began_ns"], column["end_ns"], column["counted_ns"]
    flies = (began != _ABSENT) & ((ended == _ABSENT) | (ended > began))
    start, end, rest = _points(column, began), _points(column, ended), _points(column, counted)
    start["posted"] = column["posted_ns"] != _ABSENT
    start["delta"] = flies
    end["ended"] = 1
    end["delta"] = -flies.astype(np.int8)
    for points, rows in ((end, counted == ended), (rest, counted != ended)):
        _count(points, column, rows)
    spool.add(start[(began != _ABSENT) & (flies | (start["posted"] > 0))])
    spool.add(end[ended != _ABSENT])
    spool.add(rest[(counted != _ABSENT) & (counted != ended)])


def _count(points: Records, column: dict[str, Int64s], rows: Bools) -> None:
    """What the operations of some rows add to the sums at the moment at which they count."""
    is_done = rows & np.isin(column["outcome"], (_COMPLETED, _SENT))
    is_send, is_receive = np.isin(column["kind"], _SENDS), np.isin(column["kind"], _RECEIVES)
    points["sends"], points["receives"] = is_done & is_send, is_done & is_receive
    points["bytes_sent"] = np.where(rows & is_send, column["bytes"], 0)
    points["bytes_received"] = np.where(rows & is_receive, column["bytes"], 0)
    points["errors"] = rows & np.isin(column["outcome"], (_FAILED, _REJECTED)) & (column["status"] != WOULD_BLOCK)


def _spool_sockets(spool: TimeSpool, column: dict[str, Int64s]) -> None:
    for time, name in (("created_ns", "opened"), ("closed_ns", "closed")):
        points = _points(column, column[time])
        points[name] = 1
        spool.add(points[column[time] != _ABSENT])


def _points(column: dict[str, Int64s], t: Int64s) -> Records:
    points = np.zeros(t.size, dtype=_POINT)
    points["t"], points["socket"], points["process"] = t, column["socket_n"], column["process_n"]
    return points


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
        "in_flight_end": buckets.end[:, 0],
        "in_flight_min": buckets.low[:, 0],
        "in_flight_max": buckets.high[:, 0],
    }
    columns |= {name: buckets.sums[:, i] for i, name in enumerate(_SUMS)}
    return {"socket_rollup": rows_of("socket_rollup", columns, count=count)}
