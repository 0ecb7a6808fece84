"""Some requests at once, in their order; one that takes long does not hold up the others."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from starlette.types import Receive, Scope, Send

from app.turns import AT_ONCE, Turns, _Queue, _Turn

SCOPE = {"type": "http", "method": "GET", "path": "/"}


class Pages:
    """An application whose requests end when they are told to."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.over: dict[int, asyncio.Event] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun.append(scope["number"])
        await self.over.setdefault(scope["number"], asyncio.Event()).wait()
        if scope["number"] == 99:
            raise RuntimeError("a page failed")


async def _receive() -> dict[str, object]:
    """A client that stays."""
    await asyncio.sleep(60)
    return {"type": "http.disconnect"}


async def _send(message: object) -> None:
    return None


class Client:
    """What one client sends: a request, and word that it left once `leave` is set."""

    def __init__(self) -> None:
        self.leave = asyncio.Event()
        self._messages = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive(self) -> dict[str, object]:
        if self._messages:
            return self._messages.pop(0)
        await self.leave.wait()
        return {"type": "http.disconnect"}


def played(steps: Callable[[Pages, Callable[..., asyncio.Task[None]]], Awaitable[None]], *, seconds: float = 60.0) -> None:
    """Run some steps with pages behind the middleware, and end what is left of them."""

    async def play() -> None:
        pages = Pages()
        turns = Turns(pages, seconds=seconds)
        asked: list[asyncio.Task[None]] = []

        def ask(number: int, *, receive: Receive = _receive, **parts: str) -> asyncio.Task[None]:
            task = asyncio.ensure_future(turns({**SCOPE, **parts, "number": number}, receive, _send))
            asked.append(task)
            return task

        await steps(pages, ask)
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)

    asyncio.run(asyncio.wait_for(play(), 20))


async def _settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_some_begin_at_once_and_the_rest_in_their_order() -> None:
    async def steps(pages: Pages, ask: Callable[..., asyncio.Task[None]]) -> None:
        for number in range(AT_ONCE + 3):
            ask(number)
        await _settled()
        assert pages.begun == list(range(AT_ONCE))
        for number in range(AT_ONCE + 3):
            pages.over.setdefault(number, asyncio.Event()).set()
            await _settled()
            assert pages.begun == list(range(min(AT_ONCE + 1 + number, AT_ONCE + 3)))

    played(steps)


def test_a_long_request_lets_the_next_begin() -> None:
    async def steps(pages: Pages, ask: Callable[..., asyncio.Task[None]]) -> None:
        long = [ask(number) for number in range(AT_ONCE)]
        ask(50)
        await _settled()
        assert 50 not in pages.begun
        while 50 not in pages.begun:
            await asyncio.sleep(0.005)
        assert not any(task.done() for task in long)
        # Their turns are used up: when they end they give no second one.
        for number in range(AT_ONCE):
            pages.over[number].set()
        await asyncio.gather(*long)

    played(steps, seconds=0.02)


def test_turns_come_back_from_requests_that_fail_or_are_given_up() -> None:
    async def steps(pages: Pages, ask: Callable[..., asyncio.Task[None]]) -> None:
        for number in (99, *range(AT_ONCE - 1)):
            ask(number)
        given_up = ask(60)
        ask(61)
        await _settled()
        given_up.cancel()
        pages.over.setdefault(99, asyncio.Event()).set()
        await _settled()
        assert 60 not in pages.begun
        assert 61 in pages.begun

    played(steps)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/t/abc/notes"),
        ("PUT", "/upload/abc"),
        ("GET", "/healthz"),
        ("GET", "/metrics"),
        ("GET", "/live/abc"),
        ("GET", "/static/a.js"),
    ],
)
def test_what_is_no_page_waits_for_nobody(method: str, path: str) -> None:
    async def steps(pages: Pages, ask: Callable[..., asyncio.Task[None]]) -> None:
        for number in range(AT_ONCE):
            ask(number)
        ask(50)
        for number in (70, 71, 72):
            ask(number, method=method, path=path)
        await _settled()
        assert pages.begun == [*range(AT_ONCE), 70, 71, 72]
        for number in (70, 71, 72):  # they have no turn to give
            pages.over[number].set()
        await _settled()
        assert 50 not in pages.begun

    played(steps)


def test_who_leaves_while_waiting_is_forgotten() -> None:
    async def steps(pages: Pages, ask: Callable[..., asyncio.Task[None]]) -> None:
        for number in range(AT_ONCE):
            ask(number)
        clients = {number: Client() for number in (50, 51)}
        gone, patient = (ask(number, receive=client.receive) for number, client in clients.items())
        await _settled()
        clients[50].leave.set()
        await gone
        pages.over[0].set()
        await _settled()
        assert 50 not in pages.begun
        assert 51 in pages.begun
        assert not patient.done()

    played(steps)


def test_what_a_client_sent_while_waiting_reaches_the_page() -> None:
    got: list[str] = []

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["number"] == 50:
            got.extend([(await receive())["type"], (await receive())["type"]])
        else:
            await over.wait()

    over = asyncio.Event()

    async def play() -> None:
        turns, client = Turns(page), Client()
        asked = [asyncio.ensure_future(turns({**SCOPE, "number": number}, _receive, _send)) for number in range(AT_ONCE)]
        asked.append(asyncio.ensure_future(turns({**SCOPE, "number": 50}, client.receive, _send)))
        await _settled()
        over.set()
        await _settled()
        client.leave.set()
        await asyncio.gather(*asked)

    asyncio.run(asyncio.wait_for(play(), 20))
    assert got == ["http.request", "http.disconnect"]


def test_a_server_that_stops_while_turns_are_given_loses_none() -> None:
    async def play() -> None:
        pages = Pages()
        turns = Turns(pages)
        asked = [asyncio.ensure_future(turns({**SCOPE, "number": number}, _receive, _send)) for number in range(AT_ONCE + 4)]
        await _settled()
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        again = [asyncio.ensure_future(turns({**SCOPE, "number": 80 + number}, _receive, _send)) for number in range(AT_ONCE)]
        await _settled()
        assert pages.begun[-AT_ONCE:] == [80 + number for number in range(AT_ONCE)]
        for task in again:
            task.cancel()
        await asyncio.gather(*again, return_exceptions=True)

    asyncio.run(asyncio.wait_for(play(), 20))


def test_a_turn_that_comes_in_the_moment_of_giving_up_is_passed_on() -> None:
    async def play() -> None:
        queue = _Queue(0)
        waiting = asyncio.ensure_future(_Turn(queue).begin())
        await _settled()
        queue.give_back()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert waiting.cancelled()
        assert queue.free == 1

    asyncio.run(play())


def test_an_ended_turn_is_not_given_twice() -> None:
    async def steps(pages: Pages, ask: Callable[..., asyncio.Task[None]]) -> None:
        for number in range(AT_ONCE):
            ask(number)
        await asyncio.sleep(0.1)  # their turns are over, they are not
        for number in range(AT_ONCE):
            pages.over[number].set()
        await _settled()
        more = range(10, 10 + AT_ONCE + 1)
        for number in more:
            ask(number)
        await _settled()
        assert [number for number in pages.begun if number in more] == list(more)[:AT_ONCE]

    played(steps, seconds=0.05)
