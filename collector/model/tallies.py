"""Sums over all operations and all allocations, made while their rows pass, so that no page has to read all of them."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from collector import words
from collector.afdcodes import STATUS_WOULD_BLOCK
from collector.model.groups import Groups, Int64s
from collector.model.heap_sums import HEAP_COLUMNS, HeapSums
from collector.model.rows import Lines, Rows, columns_of, rows_of

__all__ = ["Tallies"]

Bools = NDArray[np.bool_]

_ABSENT = -(1 << 63)
_NEVER = (1 << 63) - 1
_DATA = [words.OPERATION_KINDS.index(kind) for kind in ("send", "recv", "sendto", "recvfrom", "sendmsg", "recvmsg")]
_ERRORS = [words.OUTCOMES.index(outcome) for outcome in ("failed", "rejected")]

_OPERATION = (
    "socket_n", "kind", "outcome", "match", "status", "space", "posted_ns", "completed_ns", "end_ns", "posted_stack_ref",
    "completed_stack_ref",
)  # fmt: skip
_ALLOCATION = (*HEAP_COLUMNS, "free_stack_ref")
# Fields of one number that says what an operation is like: how many values each of them has, NULL being 0.
_LIKENESS = (16, 16, 16, 4, 2, 2)

_USES = (
    ("socket", "create_stack_ref", "created_ns", "sockets created"),
    ("socket", "close_stack_ref", "closed_ns", "sockets closed"),
    ("socket_event", "stack_ref", "t_ns", "other socket events"),
    ("abort", "stack_ref", "t_ns", "aborts"),
    ("heap_anomaly", "stack_ref", "t_ns", "heap records that do not fit"),
)
_WHAT = ("blocks freed", "operations posted", "operations completed", *(what for *_, what in _USES))


class Tallies:
    """Takes the rows of a trace on their way to the store; gives those of `operation_sum`, `failure`, `stack_use`, and of HeapSums."""

    def __init__(self) -> None:
        self._alike = np.zeros(int(np.prod(_LIKENESS)), dtype=np.int64)
        self._failures = Groups(keys=3, lows=1, highs=1)
        self._blocks = HeapSums(_ABSENT)
        self._used = Groups(keys=2, lows=1, highs=1)
        self._stacks: list[dict[str, Int64s]] = []

    def take(self, rows: Rows) -> None:
        """Look at finished rows of any tables."""
        for column in columns_of(rows.get("operation", ()), "operation", _OPERATION, absent=_ABSENT):
            self._take_operations(column)
        for column in columns_of(rows.get("allocation", ()), "allocation", _ALLOCATION, absent=_ABSENT):
            self._blocks.take(column)
            self._use("blocks freed", column["free_stack_ref"], column["end_ns"])
        for table, ref, time, what in _USES:
            for column in columns_of(rows.get(table, ()), table, (ref, time), absent=_ABSENT):
                self._use(what, column[ref], column[time])
        self._stacks += columns_of(rows.get("stack_ref", ()), "stack_ref", ("ref", "stack_n"), absent=_ABSENT)

    def _take_operations(self, column: dict[str, Int64s]) -> None:
        posted, completed, ended = column["posted_ns"], column["completed_ns"], column["end_ns"]
        is_posted = posted != _ABSENT
        waits = np.isin(column["kind"], _DATA) & is_posted & ((ended == _ABSENT) | (ended > posted))
        match, space = (np.where(column[name] == _ABSENT, 0, column[name] + 1) for name in ("match", "space"))
        fields = (column["kind"], column["outcome"], match, space, is_posted.astype(np.int64), waits.astype(np.int64))
        self._alike += np.bincount(np.ravel_multi_index(fields, _LIKENESS), minlength=self._alike.size)
        failed = np.isin(column["outcome"], _ERRORS) & (column["status"] != STATUS_WOULD_BLOCK)
        moment = np.where(completed == _ABSENT, posted, completed)[failed]
        self._failures.add(keys=tuple(column[name][failed] for name in ("socket_n", "kind", "status")), lows=(moment,), highs=(moment,))
        self._use("operations posted", column["posted_stack_ref"], posted)
        self._use("operations completed", column["completed_stack_ref"], completed)

    def _use(self, what: str, ref: Int64s, moment: Int64s) -> None:
        chosen = ref != _ABSENT
        if chosen.any():
            low, high = np.where(moment == _ABSENT, _NEVER, moment)[chosen], moment[chosen]
            self._used.add(keys=(ref[chosen], np.full(high.size, _WHAT.index(what))), lows=(low,), highs=(high,))

    def finish(self) -> Iterator[Rows]:
        """All sums, once all rows were taken; references of stacks are resolved."""
        yield {"operation_sum": self._operation_sums()}
        yield {"failure": self._failure_rows()}
        yield from self._stack_rows()

    def _operation_sums(self) -> Lines:
        codes = np.flatnonzero(self._alike)
        fields = [field.tolist() for field in np.unravel_index(codes, _LIKENESS)]
        lines = zip(*fields, self._alike[codes].tolist(), strict=True)
        return [
            (n, kind, outcome, match - 1 if match else None, space - 1 if space else None, bool(posted), bool(waits), count)
            for n, (kind, outcome, match, space, posted, waits, count) in enumerate(lines, 1)
        ]

    def _failure_rows(self) -> Lines:
        """Those that failed most often first, so that the first page of them is a search."""
        socket, kind, status, count, first, last = self._failures.columns()
        order = np.lexsort((socket, first, -count))
        lines = zip(*(column[order].tolist() for column in (socket, kind, status, count, first, last)), strict=True)
        return [(n, socket, kind, None if status == _ABSENT else status, *rest) for n, (socket, kind, status, *rest) in enumerate(lines, 1)]

    def _stack_rows(self) -> Iterator[Rows]:
        refs = np.concatenate([part["ref"] for part in self._stacks] or [np.zeros(0, dtype=np.int64)])
        stacks = np.concatenate([part["stack_n"] for part in self._stacks] or [np.zeros(0, dtype=np.int64)])
        order = np.argsort(refs)
        refs, stacks = refs[order], stacks[order]

        def stack_of(wanted: Int64s) -> tuple[Int64s, Bools]:
            at = np.minimum(np.searchsorted(refs, wanted), max(refs.size - 1, 0))
            known = refs[at] == wanted if refs.size else np.zeros(wanted.size, dtype=np.bool_)
            return stacks[at[known]], known

        yield from self._blocks.finish(stack_of)
        used = Groups(keys=2, sums=1, lows=1, highs=1)
        ref, what, times, first, last = self._used.columns()
        stack, known = stack_of(ref)
        used.add(keys=(stack, what[known]), sums=(times[known],), lows=(first[known],), highs=(last[known],))
        stack, what, _, times, first, last = used.columns()
        first = np.where(first == _NEVER, _ABSENT, first)
        said = [_WHAT[each] for each in what.tolist()]
        columns_used = {"stack_n": stack, "what": said, "times": times, "first_ns": first, "last_ns": last}
        yield {"stack_use": rows_of("stack_use", columns_used, count=stack.size, unknown=_ABSENT)}
