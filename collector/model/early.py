"""Completions that stand before their post: at one tick, nobody knows which of two processors wrote first.

The order of records decides nothing there (winsock-semantics 1.1), so a completion that finds no request waits until the clock goes on.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from collector.model.afd_table import Event
from collector.model.rows import Row
from collector.model.socket_state import Operation, Socket

__all__ = ["MAX_EARLY", "Early", "EarlyCompletions", "Kinds"]

Kinds: TypeAlias = tuple[tuple[int, ...], ...]
"""Groups of kinds of which a failure without a buffer may end one; the first group that has any counts."""

MAX_EARLY = 64
"""Completions of one tick that wait; with a coarse clock a tick may have many that never find a post."""


class Early(NamedTuple):
    """One of them, and what becomes of it without a post."""

    socket: Socket
    e: Event
    kind: int
    kinds: Kinds
    accepted: int | None
    length: int
    row: Row


class EarlyCompletions:
    """Those of the present tick."""

    def __init__(self, give_up: Callable[[Early], None]) -> None:
        """`give_up` is told of each that has no post after all."""
        self.waiting: list[Early] = []
        self._give_up = give_up

    def add(self, early: Early) -> None:
        """One more, of this tick or a later one."""
        if self.waiting and (self.waiting[0].e.ticks != early.e.ticks or len(self.waiting) >= MAX_EARLY):
            self.pass_on()
        self.waiting.append(early)

    def met(self, operation: Operation, find: Callable[[Early], Operation | None]) -> Early | None:
        """Takes the completion of a request that was just posted, if it is one of them.

        Args:
            find: the request that a completion would end now.
        """
        post = operation.post
        if self.waiting[0].e.ticks != post.ticks:
            self.pass_on()
            return None
        for at, early in enumerate(self.waiting):
            if early.e.cpu != post.cpu and early.socket is operation.socket and find(early) is operation:
                return self.waiting.pop(at)
        return None

    def pass_on(self) -> None:
        """The clock has gone on."""
        for early in self.waiting:
            self._give_up(early)
        self.waiting.clear()
