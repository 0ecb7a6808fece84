"""Fast attempts and what follows them in their thread: which transfers the rule about attempts leaves alone (winsock-semantics 7.10).

Each record of a thread, double counted exits apart, ends what the record before it has attempted; a slow post may go on with it.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.afdcodes import STATUS_PENDING, STATUS_WOULD_BLOCK, EnterExit
from collector.model.afd_table import USER_SPACE, AfdTable
from collector.model.plain_stretches import MODERN

__all__ = ["Threads"]

Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

_NONE = -1
_SHORT = 1 << 16


class Threads:
    """The records of a window by thread. `transparent` marks those that change nothing of an attempt."""

    def __init__(self, t: AfdTable, transparent: Bools) -> None:
        self._t = t
        rows = np.flatnonzero(~transparent)
        tid = t.tid[rows]
        small = rows.size and int(tid.min()) >= 0 and int(tid.max()) < _SHORT
        order = np.argsort(tid.astype(np.uint16) if small else tid, kind="stable")  # 16 bits are sorted by radix
        rows, tid = rows[order], tid[order]
        same = np.flatnonzero(tid[1:] == tid[:-1])
        self.following = np.full(len(t), _NONE, dtype=np.int64)
        """The next record of the same thread, -1 for none."""
        self.preceding = np.full(len(t), _NONE, dtype=np.int64)
        """The one before."""
        self.following[rows[same]] = rows[same + 1]
        self.preceding[rows[same + 1]] = rows[same]
        self.last = rows[np.flatnonzero(np.concatenate([tid[1:] != tid[:-1], [True]]))] if rows.size else rows
        """The last record of each thread."""

    def attempts(self, post: Int64s, done: Int64s) -> tuple[Bools, Bools]:
        """Of pairs, which attempt something that stays to be remembered behind the window, and which are gone on with by a slow post."""
        t = self._t
        follows = self.following[post]
        is_answered = (follows == done) & _is_answer(t, done)
        second = np.where(follows == done, np.where(is_answered, self.following[done], _NONE), follows)
        is_attempt = _is_attempt(t, post)
        stays = is_attempt & is_answered & (second == _NONE)
        next_post = np.maximum(second, 0)
        goes_on = (second >= 0) & ~t.fast[next_post] & _is_entry(t, next_post)
        goes_on &= (t.endpoint[next_post] == t.endpoint[post]) & (t.length[next_post] == t.length[post])
        return stays, is_attempt & goes_on

    def may_go_on(self, post: Int64s, remembered: Int64s) -> Bools:
        """Which posts may be the slow entry of what their thread has attempted; `remembered` are threads with an attempt from before."""
        t = self._t
        before = self.preceding[post]
        prior = np.maximum(before, 0)
        after_attempt = _is_attempt(t, prior) & (t.length[prior] == t.length[post]) & _is_entry(t, prior)
        after_answer = ~_is_entry(t, prior) & _is_answer(t, prior)
        found = (before >= 0) & (t.endpoint[prior] == t.endpoint[post]) & (after_attempt | after_answer)
        if remembered.size:
            found |= (before == _NONE) & np.isin(t.tid[post], remembered)
        result: Bools = found & ~t.fast[post]
        return result


def _is_attempt(t: AfdTable, at: Int64s) -> Bools:
    found: Bools = t.fast[at] & (t.space[at] == USER_SPACE) & (t.length[at] != 0)
    return found


def _is_answer(t: AfdTable, at: Int64s) -> Bools:
    status = t.status[at]
    found: Bools = (status == STATUS_WOULD_BLOCK) | (status == STATUS_PENDING)
    return found


def _is_entry(t: AfdTable, at: Int64s) -> Bools:
    found: Bools = (t.id[at] < MODERN) | (t.enter_exit[at] == EnterExit.ENTER)
    return found
