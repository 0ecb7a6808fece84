"""Socket activity and operations in flight, in sparse buckets, from the rows on their way to the trace file."""

from collections.abc import Iterable, Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from collector import words
from collector.amounts import FEW_OPERATIONS
from collector.model.buckets import LEVELS, PAGE, Buckets, Cascade, finest
from collector.model.rows import Rows, columns_of, rows_of
from collector.model.spool import STRETCH, TimeSpool

__all__ = ["SocketRollups"]

Bools = NDArray[np.bool_]
Int64s = NDArray[np.int64]
Records = NDArray[np.void]

WOULD_BLOCK = 0xC00000A3
NEVER_POSTED = (15, 16, 25)
"""Completions for which no event of a post exists: their start is unknown wherever the trace begins."""

_ABSENT = -(1 << 63)
_SENDS = [words.OPERATION_KINDS.index(kind) for kind in ("send", "sendto", "sendmsg")]
_RECEIVES = [words.OPERATION_KINDS.index(kind) for kind in ("recv", "recvfrom", "recvmsg")]
_COMPLETED, _FAILED, _REJECTED, _SENT = (words.OUTCOMES.index(word) for word in ("completed", "failed", "rejected", "sent"))

_SUMS = ("sends", "receives", "bytes_sent", "bytes_received", "errors", "opened", "closed", "posted", "ended")
_POINT = np.dtype(
    [("t", "<i8"), ("socket", "<i4"), ("delta", "<i1")] + [(name, "<i8" if name.startswith("bytes") else "u1") for name in _SUMS]
)
_OPERATION = ("socket_n", "kind", "outcome", "bytes", "status", "posted_ns", "completed_ns", "end_ns", "completed_event")
_SOCKET = ("n", "process_n", "create_seen", "created_ns", "closed_ns")
_SCOPES = ("trace", "process", "socket")


class SocketRollups:
    """Takes the rows of operations and sockets on their way to the store, and makes the rows of `socket_rollup` of them; a context manager.

    Reading them back from the file would cost more than the buckets.
    """

    def __init__(self, *, few: int = FEW_OPERATIONS, stretch: int = STRETCH) -> None:
        """`few`: sockets with at most so many operations get no buckets of their own; `stretch`: points in memory at once, about."""
        self._few = few
        self._spool = TimeSpool(_POINT, border=LEVELS[0], stretch=stretch)
        self._counts: Int64s = np.zeros(0, dtype=np.int64)
        self._unposted: list[dict[str, Int64s]] = []
        self._sockets: list[dict[str, Int64s]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the disk space back."""
        self._spool.close()

    def take(self, rows: Rows) -> None:
        """Look at finished rows of any tables."""
        for column in columns_of(rows.get("operation", ()), "operation", _OPERATION, absent=_ABSENT):
            highest = int(column["socket_n"].max())
            if highest >= self._counts.size:
                self._counts = np.append(self._counts, np.zeros(highest + 1, dtype=np.int64))
            self._counts += np.bincount(column["socket_n"], minlength=self._counts.size)
            began = column["posted_ns"]
            _spool_operations(self._spool, column, began)
            unposted = (began == _ABSENT) & ~np.isin(column["completed_event"], NEVER_POSTED)
            if unposted.any():
                self._unposted.append({name: column[name][unposted] for name in ("socket_n", "end_ns")})
        for column in columns_of(rows.get("socket", ()), "socket", _SOCKET, absent=_ABSENT):
            self._sockets.append(column)
            _spool_sockets(self._spool, column)

    def finish(self, *, first_ns: int) -> Iterator[Rows]:
        """Rows of `socket_rollup`, in pieces, once all rows were taken; `first_ns` is the trace's first moment.

        An operation is in flight in [posted, ended); of unknown start, from the trace's first moment on, if its socket is that old.
        """
        names = {name: np.concatenate([column[name] for column in self._sockets] or [np.zeros(0, dtype=np.int64)]) for name in _SOCKET}
        size = int(max(names["n"].max(initial=0), self._counts.size - 1)) + 1
        process_of, is_old, is_socket = np.full(size, -1, dtype=np.int64), np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
        is_socket[names["n"]] = True  # operations may be on what turned out to be none
        process_of[names["n"]] = np.where(names["process_n"] == _ABSENT, -1, names["process_n"])
        is_old[names["n"]] = names["create_seen"] == 0
        has_many = np.zeros(size, dtype=np.bool_)
        has_many[: self._counts.size] = self._counts > self._few
        for unposted in self._unposted:
            _spool_unposted(self._spool, unposted, is_old, first_ns)
        cascades = {scope: Cascade() for scope in _SCOPES}
        sizes = (1, int(process_of.max(initial=0)) + 1, size)
        carried = {scope: np.zeros((count, 1), dtype=np.int64) for scope, count in zip(_SCOPES, sizes, strict=True)}
        for stretch, until in self._spool.stretches():
            points = stretch[is_socket[stretch["socket"]]]
            times, deltas = points["t"], points["delta"].astype(np.int64)[np.newaxis]
            sums = np.stack([points[name].astype(np.int64) for name in _SUMS])
            sockets = points["socket"].astype(np.int64)
            numbers = {
                "trace": np.zeros(points.size, dtype=np.int64),
                "process": process_of[sockets],
                "socket": np.where(has_many[sockets], sockets, -1),
            }
            for scope, cascade in cascades.items():
                mine = np.flatnonzero(numbers[scope] >= 0) if scope != "trace" else slice(None)
                fine = finest(numbers[scope][mine], times[mine], times[mine], sums[:, mine], deltas[:, mine], carried[scope])
                yield from _rows(scope, cascade.advance(fine, until))
        for scope, cascade in cascades.items():
            yield from _rows(scope, cascade.finish())


def _spool_operations(spool: TimeSpool, column: dict[str, Int64s], began: Int64s) -> None:
    ended, completed = column["end_ns"], column["completed_ns"]
    counted = np.where(completed == _ABSENT, began, completed)
    flies = (began != _ABSENT) & ((ended == _ABSENT) | (ended > began))
    start, end, rest = _points(column, began), _points(column, ended), _points(column, counted)
    start["posted"] = began != _ABSENT
    start["delta"] = flies
    end["ended"] = 1
    end["delta"] = -flies.astype(np.int8)
    for points, rows in ((end, counted == ended), (rest, counted != ended)):
        _count(points, column, rows)
    spool.add(start[began != _ABSENT])
    spool.add(end[ended != _ABSENT])
    spool.add(rest[(counted != _ABSENT) & (counted != ended)])


def _spool_unposted(spool: TimeSpool, column: dict[str, Int64s], is_old: Bools, first_ns: int) -> None:
    """Operations whose post is not in the trace are in flight from its first moment on."""
    ended = column["end_ns"]
    flies = is_old[column["socket_n"]] & ((ended == _ABSENT) | (ended > first_ns))
    start, end = _points(column, np.full(ended.size, first_ns)), _points(column, ended)
    start["delta"], end["delta"] = 1, -1
    spool.add(start[flies])
    spool.add(end[flies & (ended != _ABSENT)])


def _count(points: Records, column: dict[str, Int64s], rows: Bools) -> None:
    """What the operations of some rows add to the sums at the moment at which they count."""
    status = np.where(column["status"] == _ABSENT, 0, column["status"])
    is_done = rows & np.isin(column["outcome"], (_COMPLETED, _SENT))
    is_send, is_receive = np.isin(column["kind"], _SENDS), np.isin(column["kind"], _RECEIVES)
    points["sends"], points["receives"] = is_done & is_send, is_done & is_receive
    points["bytes_sent"] = np.where(rows & is_send, column["bytes"], 0)
    points["bytes_received"] = np.where(rows & is_receive, column["bytes"], 0)
    points["errors"] = rows & np.isin(column["outcome"], (_FAILED, _REJECTED)) & (status != WOULD_BLOCK)


def _spool_sockets(spool: TimeSpool, column: dict[str, Int64s]) -> None:
    for time, name in (("created_ns", "opened"), ("closed_ns", "closed")):
        points = _points({"socket_n": column["n"]}, column[time])
        points[name] = 1
        spool.add(points[column[time] != _ABSENT])


def _points(column: dict[str, Int64s], t: Int64s) -> Records:
    points = np.zeros(t.size, dtype=_POINT)
    points["t"], points["socket"] = t, column["socket_n"]
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
