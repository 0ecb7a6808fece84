"""Stack records and the events that they belong to: the same raw time, process and thread.

A stack that names several events belongs to the last of them whose kind has stacks in this trace.
"""

from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Expected", "Matcher", "StackRecords", "names_a_record", "who_of"]

Bools: TypeAlias = NDArray[np.bool_]
Int64s: TypeAlias = NDArray[np.int64]

UNKNOWN = -1
_MAX_CANDIDATES = 8


@dataclass(frozen=True, slots=True)
class Expected:
    """Events that may have a stack, in their order; columns of length n."""

    ticks: Int64s
    seqs: Int64s
    who: Int64s
    contexts: Int64s
    kinds: Int64s

    def columns(self) -> tuple[Int64s, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True, slots=True)
class StackRecords:
    """Stack records in their order; columns of length n."""

    event_ticks: Int64s
    who: Int64s
    pieces: Int64s
    ticks: Int64s

    def columns(self) -> tuple[Int64s, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def only(self, chosen: Bools) -> "StackRecords":
        """Some of the records."""
        return StackRecords(*(column[chosen] for column in self.columns()))


def who_of(pids: Int64s, tids: Int64s) -> Int64s:
    """Process and thread id as one number, UNKNOWN where the header has no thread."""
    who = (pids << np.int64(32)) | (tids & np.int64(0xFFFFFFFF))
    return np.where((tids < 0) | (tids == 0xFFFFFFFF), np.int64(UNKNOWN), who)


class Matcher:
    """Finds the event of each stack record. It remembers which kinds of events have been seen with a stack of their own."""

    def __init__(self, usual_kinds: frozenset[int]) -> None:
        self._usual = usual_kinds
        self._first_seen: dict[int, int] = {}
        """Time of the first event of a kind that surely had a stack."""

    def match(self, events: Expected, records: StackRecords) -> tuple[Int64s, Bools]:
        """The event of each stack record.

        Args:
            events: all events from the earliest to the latest time that the records name.

        Returns: index of the event or -1, int64, shape of the records; and by record whether several events could have been meant.
        """
        found = np.full(records.who.size, -1, dtype=np.int64)
        is_shared = np.zeros(records.who.size, dtype=np.bool_)
        if not events.ticks.size or not found.size:
            return found, is_shared
        order = _order(events)
        ticks, who = events.ticks[order], events.who[order]
        is_head = np.ones(ticks.size, dtype=np.bool_)
        is_head[1:] = (ticks[1:] != ticks[:-1]) | (who[1:] != who[:-1])
        heads = np.flatnonzero(is_head)
        group = _find(ticks[heads], who[heads], records)
        sizes = np.diff(np.append(heads, ticks.size))
        hit = np.flatnonzero(group >= 0)
        found[hit] = order[heads[group[hit]]]
        alone = hit[sizes[group[hit]] == 1]
        self._learn(events, found[alone])
        shared = hit[sizes[group[hit]] > 1]
        is_shared[shared] = True
        chosen: dict[int, int] = {}
        for i in shared.tolist():  # several events of a thread at one tick: 2 µs each
            g = int(group[i])
            if g not in chosen:
                chosen[g] = self._choose(events, order[heads[g] : heads[g] + sizes[g]])
            found[i] = chosen[g]
        return found, is_shared

    def _learn(self, events: Expected, matched: Int64s) -> None:
        for kind in np.unique(events.kinds[matched]).tolist():
            ticks = int(events.ticks[matched[events.kinds[matched] == kind]].min())
            self._first_seen[kind] = min(self._first_seen.get(kind, ticks), ticks)

    def _choose(self, events: Expected, candidates: Int64s) -> int:
        """The last event whose kind has stacks; where that is not known yet, of a kind that usually has."""
        own = sorted(candidates.tolist())
        ticks = int(events.ticks[own[0]])
        seen = [i for i in own if self._first_seen.get(int(events.kinds[i]), ticks + 1) <= ticks]
        usual = [i for i in own if int(events.kinds[i]) in self._usual]
        return int((seen or usual or own)[-1])


def names_a_record(ticks: Int64s, who: Int64s, records: StackRecords) -> Bools:
    """Whether some record of the trace has the time, process and thread that a stack names.

    Args:
        ticks, who: of the trace's records, ascending in time; a record without a thread in its header fits any.
    """
    low = np.searchsorted(ticks, records.event_ticks, side="left")
    high = np.searchsorted(ticks, records.event_ticks, side="right")
    named = high - low > _MAX_CANDIDATES  # so many records of one tick that the clock is too coarse to tell
    for i in range(_MAX_CANDIDATES):
        at = np.minimum(low + i, max(ticks.size - 1, 0))
        named |= (low + i < high) & ((who[at] == records.who) | (who[at] == UNKNOWN)) if ticks.size else False
    return np.asarray(named)


def _order(events: Expected) -> Int64s:
    """The order by (time, who, record); events come by (time, record), so only those of one tick are moved."""
    order = np.arange(events.ticks.size)
    equal = events.ticks[1:] == events.ticks[:-1]
    if equal.any():
        tied = np.flatnonzero(np.concatenate([equal, [False]]) | np.concatenate([[False], equal]))
        order[tied] = tied[np.lexsort((events.who[tied], events.ticks[tied]))]
    return order


def _find(ticks: Int64s, who: Int64s, records: StackRecords) -> Int64s:
    """Index of the (time, who) that each record names, -1 where there is none; keys ascend and are unique."""
    low = np.searchsorted(ticks, records.event_ticks, side="left")
    high = np.searchsorted(ticks, records.event_ticks, side="right")
    found = np.full(records.who.size, -1, dtype=np.int64)
    for i in range(_MAX_CANDIDATES):
        at = low + i
        going = np.flatnonzero((at < high) & (found < 0))
        if not going.size:
            return found
        hit = going[who[at[going]] == records.who[going]]
        found[hit] = at[hit]
    left = np.flatnonzero((high - low > _MAX_CANDIDATES) & (found < 0))
    if left.size:  # a coarse clock: many events of one tick
        index = {key: i for i, key in enumerate(zip(ticks.tolist(), who.tolist(), strict=True))}
        for i in left.tolist():
            found[i] = index.get((int(records.event_ticks[i]), int(records.who[i])), -1)
    return found
