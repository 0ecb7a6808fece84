"""Which records of a window are plain: nothing but they themselves depends on the order in which they are taken.

A plain transfer has its post and its completion in one stretch of a living socket, can be matched in one way only, has no part in a
fast attempt that something follows, meets no other memory in flight, and says nothing new of its process. An indication of data in such
a stretch is plain, and so is a double counted completion. Whatever is not surely plain goes through the exact model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.afdcodes import STATUS_PENDING, STATUS_WOULD_BLOCK, EnterExit
from collector.model.afd_table import USER_SPACE, AfdTable, PidSource
from collector.model.endpoints import Endpoints
from collector.model.operations import MAX_UNANSWERED, Operations
from collector.model.overlaps import Overlaps
from collector.model.owners import Owner, Owners
from collector.model.plain_attempts import Threads
from collector.model.plain_memory import FROM_BEFORE, WITHOUT_END, apart
from collector.model.plain_pairs import Pairs, certain_pairs
from collector.model.plain_stretches import INDICATIONS, REFUSED, Stretches, find_stretches, id_table
from collector.model.socket_state import Operation
from collector.model.transfers import DOCUMENTED_POSTS, OPTIONAL_EXITS, SENDING, TRANSFERS

__all__ = ["Model", "PlainRecords", "choose"]

Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

_FIRST_ERROR = 0xC0000000
_NO_SOURCE = 99
_IS_TRANSFER: Final = id_table(TRANSFERS)
_IS_INDICATION: Final = id_table(INDICATIONS)
_IS_OLD_POST: Final = id_table(DOCUMENTED_POSTS)
_IS_OPTIONAL: Final = id_table(OPTIONAL_EXITS)
_IS_SENDING: Final = id_table(number for number in TRANSFERS if SENDING[TRANSFERS[number]])


class Model(NamedTuple):
    """What the choice asks the exact model for."""

    owners: Owners
    endpoints: Endpoints
    operations: Operations
    overlaps: Overlaps


@dataclass(frozen=True, slots=True, eq=False)
class PlainRecords:
    """The plain records of a window; places are rows of its table."""

    stretches: Stretches
    is_plain: Bools
    post: Int64s
    """Posts of the plain transfers, ascending."""
    done: Int64s
    """Their completions."""
    match: Int64s
    is_indication: Bools
    """By place: plain indications of data."""
    is_double: Bools
    """By place: plain completions that are counted already."""
    threads: Threads


class _Known(NamedTuple):
    """What is known of each endpoint of a window when it begins."""

    is_simple: Bools
    is_alive: Bools
    has_closing: Bools
    pid: Int64s
    source: Int64s
    owners: Mapping[int, Owner]
    """Owners that do not change in the window, by process object."""
    carried: list[tuple[int, Operation]]
    """Transfers in flight, with the number of their endpoint."""


def choose(t: AfdTable, model: Model, *, takes_indications: bool) -> PlainRecords:
    """The plain records of a window of at least one record."""
    stretches = find_stretches(t)
    ids = np.minimum(t.id, _IS_TRANSFER.size - 1)
    known = _known(t, stretches, model)
    is_double = t.is_double & _IS_TRANSFER[ids]
    threads = Threads(t, is_double)

    life, closing, endpoint = stretches.life, stretches.closing, stretches.endpoint
    is_living = known.is_simple[endpoint] & ((life == 1) | ((life == -1) & known.is_alive[endpoint]))
    is_living &= (closing == 0) | ((closing == -1) & ~known.has_closing[endpoint])
    says_nothing = _says_nothing(t, stretches, known)
    good = np.zeros(len(t), dtype=np.bool_)
    good[stretches.at[stretches.passes & is_living & stretches.is_even & says_nothing]] = True

    pairs, place, lane = _pairs(t, stretches, is_living, known, ids)
    carried = len(known.carried)
    is_own = pairs.post >= carried
    post, done, match = place[pairs.post[is_own]], place[pairs.done[is_own]], pairs.match[is_own]
    stays, goes_on = threads.attempts(post, done)
    remembered = np.array(model.operations.attempting(), dtype=np.int64)
    number = np.zeros(len(t), dtype=np.int64)
    number[stretches.at[stretches.passes]] = stretches.number[stretches.passes]
    status = t.status[done]
    plain = good[post] & good[done] & (number[post] == number[done])
    plain &= ((status < _FIRST_ERROR) & (status != STATUS_PENDING)) | (status == STATUS_WOULD_BLOCK)
    plain &= ~stays & ~goes_on & ~threads.may_go_on(post, remembered)
    plain &= ~_is_crowded(t, ids, pairs, place, lane, known)[pairs.post[is_own]]

    ends = {
        known.carried[k][1].n: int(t.ticks[place[d]]) for k, d in zip(*(c[~is_own].tolist() for c in (pairs.post, pairs.done)), strict=True)
    }
    plain &= _is_apart(t, ids, model, known, post, done, goes_on, plain, ends)
    order = np.argsort(post[plain], kind="stable")
    post, done, match = (column[plain][order] for column in (post, done, match))

    is_indication = good & _IS_INDICATION[ids] if takes_indications else np.zeros(len(t), dtype=np.bool_)
    is_double &= good
    is_plain = is_indication | is_double
    is_plain[post] = is_plain[done] = True
    return PlainRecords(stretches, is_plain, post, done, match, is_indication, is_double, threads)


def _known(t: AfdTable, stretches: Stretches, model: Model) -> _Known:
    """Costs 1 µs an endpoint."""
    process = t.process[stretches.at[stretches.first]]
    owners = {number: owner for number in np.unique(process).tolist() if (owner := model.owners.settled(number, *_ends(t))) is not None}
    creates = np.flatnonzero(t.source == PidSource.CREATE)
    for number, pid in set(zip(t.process[creates].tolist(), t.x[creates].tolist(), strict=True)):
        if number in owners and owners[number].pid not in (None, pid):
            del owners[number]
    count = stretches.first.size
    is_simple, is_alive, has_closing = stretches.is_simple.copy(), np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    pids, sources = np.full(count, -1, dtype=np.int64), np.full(count, _NO_SOURCE, dtype=np.int64)
    carried: list[tuple[int, Operation]] = []
    chosen = np.flatnonzero(is_simple)
    for i, address, number in zip(chosen.tolist(), stretches.address[chosen].tolist(), process[chosen].tolist(), strict=True):
        owner = owners.get(number)
        if owner is None:
            is_simple[i] = False
            continue
        if owner.pid is not None and owner.source is not None:
            pids[i], sources[i] = owner.pid, owner.source
        has_closing[i] = model.endpoints.has_closing(address, number)
        socket = model.endpoints.latest(address)
        if socket is None or socket.is_over or socket.owner is not owner:
            continue
        is_alive[i] = True
        for operation in socket.open.values():
            if operation.is_transfer:
                carried.append((i, operation))
                if operation.is_documented:
                    is_simple[i] = False
    return _Known(is_simple, is_alive, has_closing, pids, sources, owners, carried)


def _ends(t: AfdTable) -> tuple[int, int]:
    return int(t.seq[0]), int(t.seq[-1])


def _says_nothing(t: AfdTable, stretches: Stretches, known: _Known) -> Bools:
    """By row of the stretches: whether the header says of the process object what is known already, or nothing."""
    source = t.source[stretches.at]
    said = (t.pid[stretches.at] == known.pid[stretches.endpoint]) & (source >= known.source[stretches.endpoint])
    found: Bools = (source == PidSource.NONE) | (said & (source > PidSource.CREATE))
    return found


def _pairs(t: AfdTable, stretches: Stretches, is_living: Bools, known: _Known, ids: Int64s) -> tuple[Pairs, Int64s, Int64s]:
    """Certain pairs of living sockets, as rows of columns that begin with what is in flight already; place in the window and lane of each
    row, -1 for the former."""
    at = stretches.at
    enters, exits = t.has_enter_exit & (t.enter_exit == EnterExit.ENTER), t.has_enter_exit & (t.enter_exit == EnterExit.EXIT)
    moves = _IS_TRANSFER[ids] & ((enters & (t.status < REFUSED)) | (exits & ~t.is_double))
    rows = np.flatnonzero(stretches.passes & is_living & moves[at])
    place = at[rows]
    lane = stretches.run[rows] * 2 + _IS_SENDING[ids[place]]
    activity = np.where(t.activity[place] == t.endpoint[place], 0, t.activity[place])
    old = known.carried
    lane = _behind([int(stretches.first_run[i]) * 2 + o.sending for i, o in old], lane)
    if not lane.size:
        none = np.zeros(0, dtype=np.int64)
        return Pairs(none, none, none), place, lane
    pairs = certain_pairs(
        lane=lane,
        is_post=_behind([1 for _ in old], enters[place]) != 0,
        activity=_behind([o.activity for _, o in old], activity),
        buffer=_behind([o.post.buffer for _, o in old], t.buffer[place]),
        tid=_behind([o.post.tid for _, o in old], t.tid[place]),
        fast=_behind([int(o.post.fast) for _, o in old], t.fast[place]) != 0,
    )
    return pairs, _behind([-1 for _ in old], place), lane


def _behind(older: list[int], column: NDArray[np.generic]) -> Int64s:
    return np.concatenate([np.array(older, dtype=np.int64), column.astype(np.int64)])


def _is_crowded(t: AfdTable, ids: Int64s, pairs: Pairs, place: Int64s, lane: Int64s, known: _Known) -> Bools:
    """By row: whether it is a datagram send in a lane where so many may wait for their exit that the oldest might be given up."""
    found = np.zeros(place.size, dtype=np.bool_)
    carried = len(known.carried)
    waits = np.concatenate([np.array([o.is_optional for _, o in known.carried], dtype=np.bool_), _IS_OPTIONAL[ids[place[carried:]]]])
    waits[carried:] &= t.enter_exit[place[carried:]] == EnterExit.ENTER
    if not waits.any():
        return found
    change = waits.astype(np.int64)
    ended = waits[pairs.post]
    change[pairs.done[ended]] = -1
    order = np.argsort(lane, kind="stable")
    heads = np.flatnonzero(np.concatenate([[True], np.diff(lane[order]) != 0]))
    depth = np.cumsum(change[order])
    before = np.concatenate([[0], depth[heads[1:] - 1]])
    most = np.maximum.reduceat(depth, heads) - before
    found[order] = np.repeat(most > MAX_UNANSWERED, np.diff(np.append(heads, lane.size)))
    found &= waits
    return found


def _is_apart(
    t: AfdTable,
    ids: Int64s,
    model: Model,
    known: _Known,
    post: Int64s,
    done: Int64s,
    goes_on: Bools,
    plain: Bools,
    ends: Mapping[int, int],
) -> Bools:
    """By pair: whether its memory meets no other in flight.

    Args:
        goes_on: pairs whose memory another request takes over.
        plain: pairs for which it matters.
        ends: ticks at which operations from before the window are certainly over, by number.
    """
    has_memory = (t.space == USER_SPACE) & (t.length != 0)
    answer: Bools = ~has_memory[post]
    asked = np.flatnonzero(plain & ~answer)
    if not asked.size:
        return answer
    opens = has_memory & ((_IS_TRANSFER[ids] & (t.enter_exit == EnterExit.ENTER) & (t.status < REFUSED)) | _IS_OLD_POST[ids])
    opens[post] = False
    others = np.flatnonzero(opens)
    mine = np.flatnonzero(~answer)
    at = np.concatenate([post[mine], others])
    end = np.concatenate([np.where(goes_on[mine], WITHOUT_END, t.ticks[done[mine]]), np.full(others.size, WITHOUT_END)])
    processes = np.unique(t.process[post[asked]])
    held = [
        (k, lo, hi - lo, ends.get(n, WITHOUT_END))
        for k, process in enumerate(processes.tolist())
        for lo, hi, n in (*model.overlaps.in_flight(known.owners[process].n), *model.operations.attempted(known.owners[process].n))
    ]
    process = np.searchsorted(processes, t.process[at])
    is_asked = processes[np.minimum(process, processes.size - 1)] == t.process[at]
    older = np.array(held, dtype=np.int64).reshape(-1, 4).T
    free = apart(
        np.concatenate([process[is_asked], older[0]]),
        np.concatenate([t.buffer[at[is_asked]], older[1]]),
        np.concatenate([t.length[at[is_asked]], older[2]]),
        np.concatenate([t.ticks[at[is_asked]], np.full(older.shape[1], FROM_BEFORE)]),
        np.concatenate([end[is_asked], older[3]]),
    )
    mine_asked = is_asked[: mine.size]
    answer[mine[mine_asked]] = free[: int(np.count_nonzero(mine_asked))]
    return answer
