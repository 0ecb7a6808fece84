"""User memory in flight in one process instance: address ranges, found by intersection, and the posts that have touched each.

Operations in flight on the same range form one group. A post is noted once in each group that it touches, and an operation of the group
finds its pairs there when it ends: those noted since it joined. So many identical buffers cost no more than one, and only pairs of
different ranges cost a step each.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy as np

from collector.model.sorted_keys import Key, SortedKeys

__all__ = ["MAX_RECENT", "InFlight", "Membership", "Post", "Range", "RecentPosts"]

MAX_RECENT = 1 << 14
"""Operations of the trace that a datagram send can look back at when its exit comes."""

_MAX_NOTES = 40_000  # posts noted in all groups of a process instance; more are counted
_FEW_RANGES = 12  # below this a plain scan is quicker than the index
_FEW_POSTS = 12  # below this a plain scan is quicker than arrays


class Post(NamedTuple):
    """An operation as one half of a pair. Of a chain of buffers only the first byte is known: `known_hi` is behind it."""

    n: int
    ticks: int
    ns: int
    lo: int
    hi: int
    known_hi: int
    sending: bool
    is_inferred: bool
    socket_n: int


class Range:
    """Operations in flight on one range, and the posts that touched it since the oldest of them."""

    __slots__ = ("count", "hi", "lo", "members", "posts")

    def __init__(self, lo: int, hi: int) -> None:
        self.lo = lo
        self.hi = hi
        self.members: OrderedDict[int, int] = OrderedDict()
        """By operation number, the `count` when it joined. (A dict would look for its first entry past all that left.)"""
        self.count = 0
        """Posts that touched it so far."""
        self.posts: list[tuple[int, Post]] = []
        """Those kept, each with its number."""

    def leave(self, n: int) -> int:
        """Take an operation out, and forget posts from before the oldest one that stays; how many were forgotten."""
        del self.members[n]
        before = len(self.posts)
        if not before:
            return 0
        oldest = next(iter(self.members.values()), self.count)
        if oldest > self.posts[-1][0]:
            self.posts.clear()
        elif before > 64 and oldest > self.posts[before // 2][0]:
            self.posts = [entry for entry in self.posts if entry[0] >= oldest]
        return before - len(self.posts)


class RecentPosts:
    """The last posts of a process instance, for datagram sends to look back at."""

    __slots__ = ("_bounds", "_posts", "count")

    def __init__(self) -> None:
        self.count = 0
        """Posts so far."""
        self._posts: list[Post] = []
        self._bounds = np.zeros((2, 64), dtype=np.int64)

    def add(self, post: Post) -> None:
        """The next post."""
        place = self.count % MAX_RECENT
        if place < len(self._posts):
            self._posts[place] = post
        else:
            self._posts.append(post)
            if place >= self._bounds.shape[1]:
                self._bounds = np.concatenate([self._bounds, np.zeros_like(self._bounds)], axis=1)
        self._bounds[0, place] = post.lo
        self._bounds[1, place] = post.hi
        self.count += 1

    def touching(self, lo: int, hi: int, first: int, beyond: int, *, newest: int) -> list[Post]:
        """Posts number `first` to `beyond` (excluded) that intersect [lo, hi), of the last operations up to number `newest`."""
        first = max(first, self.count - MAX_RECENT)
        oldest = newest - MAX_RECENT
        if beyond - first <= _FEW_POSTS:
            posts = [self._posts[number % MAX_RECENT] for number in range(first, beyond)]
            return [post for post in posts if post.lo < hi and lo < post.hi and post.n > oldest]
        places = np.arange(first, beyond) % MAX_RECENT
        bounds = self._bounds[:, places]
        posts = [self._posts[i] for i in places[(bounds[0] < hi) & (lo < bounds[1])].tolist()]
        return [post for post in posts if post.n > oldest]


class Membership:
    """An operation's place: waiting for the clock to go on, in a group or among the recent posts, or over."""

    __slots__ = ("frozen", "group", "is_over", "joined", "recent")

    def __init__(self) -> None:
        self.group: Range | None = None
        self.recent: RecentPosts | None = None
        self.joined = 0
        self.frozen: int | None = None
        self.is_over = False


class InFlight:
    """The ranges in flight of one process instance."""

    __slots__ = ("_levels", "_notes", "ranges", "recent")

    def __init__(self) -> None:
        self.ranges: dict[Key, Range] = {}
        self.recent: RecentPosts | None = None
        self._levels: dict[int, SortedKeys] | None = None
        self._notes = 0

    def touching(self, lo: int, hi: int) -> list[Range]:
        """Ranges that intersect [lo, hi)."""
        if self._levels is None:
            return [r for r in self.ranges.values() if r.lo < hi and lo < r.hi]
        found = []
        for level, keys in self._levels.items():
            # Ranges of this level are at most 2^level long, so those that begin further below cannot reach `lo`. Of those that begin
            # within that distance, half of them overlap each other, so looking at one in vain was paid for by their own pairs.
            found += [self.ranges[key] for key in keys.between(lo - (1 << level) + 1, hi) if key[1] > lo]
        return found

    def note(self, touched: list[Range], post: Post) -> None:
        """A post touches what is in flight."""
        for group in touched:
            if self._notes < _MAX_NOTES:
                group.posts.append((group.count, post))
                self._notes += 1
            group.count += 1

    def join(self, membership: Membership, n: int, lo: int, hi: int) -> None:
        """Put an operation in flight."""
        group = self.ranges.get((lo, hi))
        if group is None:
            group = self.ranges[lo, hi] = Range(lo, hi)
            if self._levels is not None:
                self._add_to_level((lo, hi))
            elif len(self.ranges) > _FEW_RANGES:
                self._levels = {}
                for key in self.ranges:
                    self._add_to_level(key)
        membership.group = group
        membership.joined = group.members[n] = group.count

    def leave(self, group: Range, n: int) -> None:
        """Take an operation out of flight."""
        self._notes -= group.leave(n)
        if group.members:
            return
        key = (group.lo, group.hi)
        del self.ranges[key]
        if self._levels is not None:
            level = _level(key)
            self._levels[level].remove(key)
            if not self._levels[level]:
                del self._levels[level]
            if not self._levels:
                self._levels = None

    def _add_to_level(self, key: Key) -> None:
        assert self._levels is not None
        level = _level(key)
        keys = self._levels.get(level)
        if keys is None:
            keys = self._levels[level] = SortedKeys()
        keys.add(key)


def _level(key: Key) -> int:
    return (key[1] - key[0] - 1).bit_length()
