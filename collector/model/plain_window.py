"""One window through the socket model: plain records in arrays, all others one by one, as if all had come in their order."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.model.afd_table import AfdTable, Event
from collector.model.connections import Connections
from collector.model.plain_choice import Model, PlainRecords, choose
from collector.model.plain_replay import PlainReplay
from collector.model.row_sink import RowSink
from collector.model.rows import Rows

__all__ = ["PLAIN_FROM", "Windows"]

Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


PLAIN_FROM = 512
"""Records that are worth looking for plain ones among."""

_GROWTH = 4  # the first parts of a trace are short: of sockets that are older than it nothing is known there
_LONGEST_PART = 1 << 20
_INFERRING = (1, 15, 16)  # documented creates and accepts, which change other sockets than their own


class Windows:
    """Takes in windows part by part. `handle` takes one record through the exact model.

    Parts of at least `plain_from` records go through arrays as far as they are plain; None: all goes one by one.
    """

    def __init__(
        self, model: Model, connections: Connections, sink: RowSink, handle: Callable[[Event], None], *, plain_from: int | None
    ) -> None:
        self.indications_traced = False
        """Whether the trace has told of arriving data so far."""
        self._model, self._connections, self._sink, self._handle = model, connections, sink, handle
        self._plain_from = plain_from
        self._length = plain_from or _LONGEST_PART

    def take(self, table: AfdTable) -> None:
        """Take in a window of at least one record."""
        begin = 0
        while begin < len(table):
            end = min(begin + self._length, len(table))
            first = int(table.ticks[begin])
            is_doubtful = self._model.operations.is_doubtful(first)
            if is_doubtful:
                end = min(end, int(np.searchsorted(table.ticks, first, side="right")))
            else:
                self._length = min(self._length * _GROWTH, _LONGEST_PART)
            self._take_part(table.part(begin, end), may_be_plain=not is_doubtful)
            begin = end

    def _take_part(self, t: AfdTable, *, may_be_plain: bool) -> None:
        is_usual = not (self._connections.guessed or np.isin(t.id, _INFERRING).any())
        if self._plain_from is not None and len(t) >= self._plain_from and is_usual and may_be_plain:
            chosen = choose(t, self._model, takes_indications=self.indications_traced)
            if chosen.is_plain.any():
                for table, lines in _replay(t, chosen, self._model, self._sink, self._handle).items():
                    self._sink.put_all(table, lines)
                return
        for e in t.events():
            self._handle(e)


class _Numbers:
    """Numbers of things that plain and other records make alike: those of a window's plain ones lie between those of the others."""

    def __init__(self, makes: Bools, others: Int64s) -> None:
        """`makes` says by place which plain records make one; `others` are the places of all records that are not plain."""
        self._makers = np.flatnonzero(makes)
        self._others = others
        self._before = np.searchsorted(self._makers, others)
        self.steps: list[int] = np.diff(self._before, prepend=0).tolist()
        """How many plain ones stand right before each of the others."""
        self.rest = self._makers.size - (int(self._before[-1]) if others.size else 0)
        """How many stand behind the last."""
        self.counted: list[int] = []
        """For the caller: the count just before each of the others, and then before the rest."""

    def of_plain(self) -> Int64s:
        """The numbers, once `counted` is complete."""
        made = np.array(self.counted, dtype=np.int64)
        made[:-1] -= self._before
        made[-1] -= self._before[-1] if self._others.size else 0
        return made[np.searchsorted(self._others, self._makers)] + np.arange(1, self._makers.size + 1)


def _replay(t: AfdTable, chosen: PlainRecords, model: Model, sink: RowSink, handle: Callable[[Event], None]) -> Rows:
    """Take in a window; rows of its plain records. `handle` takes any other record through the exact model."""
    others = np.flatnonzero(~chosen.is_plain)
    is_post = np.zeros(len(t), dtype=np.bool_)
    is_post[chosen.post] = True
    operations = _Numbers(is_post, others)
    told, skipped = _Numbers(chosen.is_indication, others), _Numbers(chosen.is_double, others)
    plain = PlainReplay(t, chosen, model.endpoints)
    before = chosen.threads.preceding[others]
    is_behind_plain = (before >= 0) & chosen.is_plain[np.maximum(before, 0)]
    taken, positions, exact = 0, [*plain.positions, len(t)], model.operations
    upcoming = positions[0]
    columns = (others.tolist(), is_behind_plain.tolist(), operations.steps, told.steps, skipped.steps)
    counts = sink.counts
    for e, place, is_behind, posts, events, skips in zip(t.events(others), *columns, strict=True):
        while upcoming < place:
            plain.take(taken)
            taken += 1
            upcoming = positions[taken]
        exact.count += posts
        operations.counted.append(exact.count)
        if events:
            counts["socket_event"] += events
        told.counted.append(counts["socket_event"])
        if skips:
            counts["skipped"] += skips
        skipped.counted.append(counts["skipped"])
        if is_behind:
            exact.passes(e.tid)
        handle(e)
    for number in range(taken, len(plain.positions)):
        plain.take(number)
    operations.counted.append(exact.count)
    exact.count += operations.rest
    for table, numbers in (("socket_event", told), ("skipped", skipped)):
        numbers.counted.append(counts[table])
        counts[table] += numbers.rest
    last = chosen.threads.last
    if remembered := set(exact.attempting()):
        for tid in remembered.intersection(t.tid[last[chosen.is_plain[last]]].tolist()):
            exact.passes(tid)
    return plain.rows(operations=operations.of_plain(), events=told.of_plain(), skipped=skipped.of_plain())
