"""Whose turn it is: making pages holds the interpreter's lock most of the time, so many at once take longer than one after another.

Fifty pages at once in as many threads came out at 36 a second, two at a time at 60, and 95 of 100 in less than half the time.
"""

import asyncio
from collections import deque
from weakref import WeakKeyDictionary

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["AT_ONCE", "TURN_SECONDS", "Turns"]

AT_ONCE = 2
"""Requests that are worked on at the same time: while one waits for the database the other has the processor."""

TURN_SECONDS = 0.25
"""How long a turn lasts at most: a request that takes longer, mostly in one long statement, goes on while the next begins."""


_READING = ("GET", "HEAD")
_WITHOUT = ("/healthz", "/metrics", "/live/", "/static/")


class Turns:
    """Lets requests for pages begin in the order in which they came, some at once.

    Whatever else is asked for takes no turn: forms and uploads, which wait for what a browser sends, streams, static files, and whether
    the server answers at all. Who leaves while waiting is forgotten.
    """

    def __init__(self, app: ASGIApp, at_once: int = AT_ONCE, seconds: float = TURN_SECONDS) -> None:
        self._app, self._at_once, self._seconds = app, at_once, seconds
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in _READING or scope["path"].startswith(_WITHOUT):
            await self._app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        turn = _Turn(self._queues.setdefault(loop, _Queue(self._at_once)))
        waiting = _Waiting(receive)
        try:
            if turn.begin_at_once() or await waiting.for_turn(turn):
                timer = loop.call_later(self._seconds, turn.end)
                try:
                    await self._app(scope, waiting.receive, send)
                finally:
                    timer.cancel()
        finally:
            turn.end()


class _Queue:
    """Turns that are free, and who waits for one; of one event loop."""

    def __init__(self, free: int) -> None:
        self.free = free
        self.waiting: deque[asyncio.Future[None]] = deque()

    def give_back(self) -> None:
        """Give a turn to who has waited longest."""
        while self.waiting:
            next_one = self.waiting.popleft()
            if not next_one.done():  # done: whoever waited is gone
                next_one.set_result(None)
                return
        self.free += 1


class _Turn:
    def __init__(self, queue: _Queue) -> None:
        self._queue, self._is_mine = queue, False

    def begin_at_once(self) -> bool:
        """Take a turn if one is free."""
        if not self._queue.free:
            return False
        self._queue.free -= 1
        self._is_mine = True
        return True

    async def begin(self) -> None:
        """Wait for a turn; whoever is cancelled meanwhile passes it on."""
        given = asyncio.get_running_loop().create_future()
        self._queue.waiting.append(given)
        try:
            await given
        except asyncio.CancelledError:
            if not given.cancelled():
                self._queue.give_back()
            raise
        self._is_mine = True

    def end(self) -> None:
        """Pass the turn on, once."""
        if self._is_mine:
            self._is_mine = False
            self._queue.give_back()


class _Waiting:
    """What a client sends while it waits for its turn: the application gets it later."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._come: deque[Message] = deque()

    async def for_turn(self, turn: _Turn) -> bool:
        """Wait for a turn; False when the client left before that."""
        begun, gone = asyncio.ensure_future(turn.begin()), asyncio.ensure_future(self._until_gone())
        try:
            await asyncio.wait((begun, gone), return_when=asyncio.FIRST_COMPLETED)
            return begun.done()
        finally:
            for task in (begun, gone):
                task.cancel()
            await asyncio.gather(begun, gone, return_exceptions=True)

    async def _until_gone(self) -> None:
        while True:
            message = await self._receive()
            self._come.append(message)
            if message["type"] == "http.disconnect":
                return

    async def receive(self) -> Message:
        """What came already, then what comes."""
        return self._come.popleft() if self._come else await self._receive()
