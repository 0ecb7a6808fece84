"""Which posts and completions of a window belong together whatever else happens: those that the matching rules can take in one way only.

The rules are those of `matching`. A lane is one direction of one life of a socket.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.model.matching import Match

__all__ = ["Pairs", "certain_pairs"]

Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


class Pairs(NamedTuple):
    """Pairs as rows of the columns that were given, and by which rule the completion finds its post."""

    post: Int64s
    done: Int64s
    match: Int64s


def certain_pairs(*, lane: Int64s, is_post: Bools, activity: Int64s, buffer: Int64s, tid: Int64s, fast: Bools) -> Pairs:
    """Pairs among all posts and completions of some lanes.

    Columns have shape (n,), each lane in order of time: first what was posted earlier and is open still, then all records of the window.
    `activity` is 0 where it says nothing. In a lane with a completion that is no part of a pair, nothing is certain.
    """
    by_buffer = np.lexsort((buffer, lane))
    at = _by_buffer(by_buffer, lane, is_post, activity, buffer, tid, fast)
    post, done = by_buffer[at], by_buffer[at + 1]
    same_thread = (tid[post] == tid[done]) & (fast[done] | (buffer[done] == 0))
    match = np.where(same_thread, Match.THREAD, np.where(buffer[done] != 0, Match.BUFFER, Match.FIFO))
    bound = np.flatnonzero(activity != 0)
    if bound.size:
        order = bound[np.lexsort((activity[bound], lane[bound]))]
        is_first = _first(lane[order], activity[order])
        at = _alternating(is_post[order], is_first, np.ones(order.size, dtype=np.bool_))
        post, done = np.concatenate([post, order[at]]), np.concatenate([done, order[at + 1]])
        match = np.concatenate([match, np.full(at.size, Match.ACTIVITY)])
    is_left = ~is_post
    is_left[done] = False
    doubtful = np.unique(lane[is_left])
    if doubtful.size:
        good = ~np.isin(lane[post], doubtful)
        post, done, match = post[good], done[good], match[good]
    return Pairs(post, done, match)


def _by_buffer(order: Int64s, lane: Int64s, is_post: Bools, activity: Int64s, buffer: Int64s, tid: Int64s, fast: Bools) -> Int64s:
    """Places in an order by lane and buffer of posts without an activity whose completion stands next.

    Either no two requests with the buffer are in flight together, or the completion asks for the newest of its thread.
    """
    posts, activity, tid = is_post[order], activity[order], tid[order]
    is_first = _first(lane[order], buffer[order])
    is_certain = np.zeros(order.size, dtype=np.bool_)
    agrees = np.concatenate([[True], activity[1:] == activity[:-1]])
    is_certain[_alternating(posts, is_first, agrees)] = True
    is_next = posts[:-1] & ~posts[1:] & ~is_first[1:] & (activity[1:] == 0)
    is_certain[:-1] |= is_next & (tid[1:] == tid[:-1]) & (fast[order[1:]] | (buffer[order[1:]] == 0))
    return np.flatnonzero(is_certain & (activity == 0))


def _first(lane: Int64s, key: Int64s) -> Bools:
    """Which rows of sorted columns begin a group."""
    return np.concatenate([[True], (lane[1:] != lane[:-1]) | (key[1:] != key[:-1])]) if lane.size else np.zeros(0, dtype=np.bool_)


def _alternating(posts: Bools, is_first: Bools, agrees: Bools) -> Int64s:
    """Places of posts whose completion stands next, in groups that are post, completion, post … from their begin to there.

    `agrees` says of each row whether it could be the completion of the row before.
    """
    if not posts.size:
        return np.zeros(0, dtype=np.int64)
    index = np.arange(posts.size)
    start = np.maximum.accumulate(np.where(is_first, index, 0))
    is_odd = ((index - start) & 1).astype(np.bool_)
    worst = np.maximum.accumulate(np.where((posts == is_odd) | (is_odd & ~agrees), index, -1))
    good = worst < start
    return np.flatnonzero(good[1:] & is_odd[1:])
