"""Stretches of a socket's life in a window: between records that change what the socket is, or that read what it has added up.

Inside a stretch the order of records that only move data matters to nobody but themselves, so they can be taken together.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.afdcodes import EnterExit
from collector.model.afd_table import AfdTable
from collector.model.transfers import TRANSFERS

__all__ = ["INDICATIONS", "MODERN", "REFUSED", "Stretches", "find_stretches", "id_table"]

Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

MODERN = 1000
"""First event id of the generation whose records can be plain."""
REFUSED = 0x80000000
"""Lowest status with which a request fails at its entry."""
INDICATIONS = (3003, 3004)

_ERROR = 0xC0000000
_IDS = 5000
_PASSES, _BORDERS, _BEGINS, _ENDS = range(4)
_CREATE, _CLOSE, _CLEANUP = 1000, 1001, 1002
_ACCEPTS = (1023, 1024, 1026, 1027)
_BORDER_IDS = (
    *(1017, 1018, 1020, 1021),  # connects
    *_ACCEPTS,
    *(1029, 1030, 1032, 1033, 1035, 1036, 1037),
    *(3000, 3001, 3006, 3007),
    *range(4000, 4021),
)


def id_table(ids: Iterable[int]) -> Bools:
    """Whether an event id is one of these, by id; shape (5000,). Larger ids are to be clipped, the last place is false."""
    table = np.zeros(_IDS, dtype=np.bool_)
    table[list(ids)] = True
    return table


def _roles() -> Int64s:
    """What an event does to the life of its socket, by event id; what is not listed may end anything."""
    roles = np.full(_IDS, _ENDS, dtype=np.int64)
    roles[list(_BORDER_IDS)] = _BORDERS
    roles[[*TRANSFERS, *INDICATIONS]] = _PASSES
    return roles


_ROLES: Final = _roles()
_IS_ACCEPT: Final = id_table(_ACCEPTS)


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """Records of a window in the order of endpoint and time; columns of shape (m,), with one more row for each accept, at the endpoint
    that it names besides its own."""

    at: Int64s
    """Places in the window."""
    endpoint: Int64s
    """Which endpoint of the window, counted from 0."""
    address: Int64s
    """By endpoint: its address."""
    first: Int64s
    """By endpoint: its first row."""
    number: Int64s
    """Which stretch, counted from 0."""
    run: Int64s
    """Which run of stretches without a begin or end of a life between them."""
    first_run: Int64s
    """By endpoint: the run of what the socket had when the window began."""
    passes: Bools
    """Records that only move data, or tell of data that has arrived."""
    is_even: Bools
    """Whether all records of the stretch that move data give away the same type of socket, or none does."""
    is_simple: Bools
    """By endpoint: whether one process uses it in the window, with events of the modern generation alone."""
    life: Int64s
    """1 after a create, 0 after an end, -1 where it is as when the window began."""
    closing: Int64s
    """1 where a life before this may be closed but not gone, 0 where none is, -1 where it is as when the window began."""


def find_stretches(t: AfdTable) -> Stretches:
    """The stretches of a window, of at least one record."""
    at, endpoint, is_other = _by_endpoint(t)
    role = _roles_of(t, at, endpoint)
    role[is_other] = _BORDERS
    # Of one tick nobody knows the order: a create may stand behind the first records of its socket.
    ns = t.ns[at]
    begins_late = np.concatenate([[False], (endpoint[1:] == endpoint[:-1]) & (ns[1:] == ns[:-1])]) | (ns == t.ns[0])
    role[(role == _BEGINS) & begins_late] = _ENDS
    is_first = np.concatenate([[True], endpoint[1:] != endpoint[:-1]])
    first = np.flatnonzero(is_first)
    index = np.cumsum(is_first) - 1

    process = t.process[at]
    is_simple = np.logical_and.reduceat((process == process[first][index]) & (t.id[at] >= MODERN), first) & (endpoint[first] != 0)

    sets = (role == _BEGINS) | (role == _ENDS)
    latest = np.maximum.accumulate(np.where(sets | is_first, np.arange(at.size), 0))
    life = np.where(role[latest] == _BEGINS, 1, np.where(role[latest] == _ENDS, 0, -1))
    is_gone = (t.id[at] == _CLOSE) & (t.enter_exit[at] == EnterExit.EXIT) & (role == _ENDS)
    ends = role == _ENDS
    latest = np.maximum.accumulate(np.where(ends | is_first, np.arange(at.size), 0))
    closing = np.where(ends[latest], ~is_gone[latest], -1)
    count = np.cumsum(sets)
    run = count + index
    passes = role == _PASSES
    begins = ~passes | is_first
    number = np.cumsum(begins) - 1
    heads = np.flatnonzero(begins)
    hint = t.type_hint[at]
    is_even = np.minimum.reduceat(np.where(passes, hint, 9), heads) >= np.maximum.reduceat(np.where(passes, hint, -1), heads)
    return Stretches(
        at=at,
        endpoint=index,
        address=endpoint[first],
        first=first,
        number=number,
        run=run,
        first_run=run[first] - sets[first],
        passes=passes,
        is_even=is_even[number],
        is_simple=is_simple,
        life=life,
        closing=closing,
    )


def _by_endpoint(t: AfdTable) -> tuple[Int64s, Int64s, Bools]:
    """Places in the order of endpoint and time, their endpoints, and which of them stand for the socket that an accept made."""
    accepts = np.flatnonzero(_IS_ACCEPT[np.minimum(t.id, _IDS - 1)] & (t.x != 0))
    if not accepts.size:
        order = np.argsort(t.endpoint, kind="stable")
        return order, t.endpoint[order], np.zeros(order.size, dtype=np.bool_)
    at = np.concatenate([np.arange(len(t)), accepts])
    endpoint = np.concatenate([t.endpoint, t.x[accepts]])
    order = np.lexsort((at, endpoint))
    return at[order], endpoint[order], order >= len(t)


def _roles_of(t: AfdTable, at: Int64s, endpoint: Int64s) -> Int64s:
    ids, status = t.id[at], t.status[at]
    role = _ROLES[np.minimum(ids, _IDS - 1)]
    rare = np.flatnonzero((ids >= _CREATE) & (ids <= _CLEANUP))
    number, state = ids[rare], status[rare]
    has, enter_exit = t.has_enter_exit[at[rare]], t.enter_exit[at[rare]]
    enters, exits = has & (enter_exit == EnterExit.ENTER), has & (enter_exit == EnterExit.EXIT)
    is_create = number == _CREATE
    begins = is_create & enters & (state < REFUSED) & (endpoint[rare] != 0)
    borders = is_create & ((enters & (state >= REFUSED)) | (exits & (state < _ERROR)))
    borders |= (number == _CLEANUP) & has & ~enters
    borders |= (number == _CLOSE) & has & ~enters & ~exits
    role[rare] = np.where(begins, _BEGINS, np.where(borders, _BORDERS, _ENDS))
    return role
