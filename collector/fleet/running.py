"""Has the workers of a cluster collect files: hands the orders out, hears how far each is, cancels, and gives their answers."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from distributed import Client, Event, Future, KilledWorker
from distributed.client import FutureCancelledError

from collector.collecting import Outcome
from collector.errors import FleetError
from collector.fleet.cluster import LOOK_SECONDS, connected, quiet
from collector.fleet.orders import Answer, Order, carry_out
from collector.stages import Progress

__all__ = ["Watcher", "carried_out"]

_STOP_SECONDS = 10.0
"""How long workers that are told to stop are waited for."""
_SECONDS_BETWEEN_COUNTS = 2.0


class Watcher(Protocol):
    """Who is told how a run goes."""

    def note(self, sentence: str) -> None:
        """Something that the user should know."""

    def begun(self, order: Order, worker: str) -> None:
        """A worker is at a file now, perhaps for another that was lost."""

    def moved(self, order: Order, progress: Progress) -> None:
        """How far it is."""

    def answered(self, order: Order, answer: Answer) -> bool:
        """What became of a file; returns whether there is no sense in beginning with others."""


def carried_out(
    address: str, orders: Sequence[Order], should_cancel: Callable[[], bool], watcher: Watcher, *, wait_seconds: float
) -> tuple[dict[int, Answer], str]:
    """The answers to the orders by their numbers, and why some have none; empty where nothing more than a cancelling is to be said.

    An order without an answer was not begun, or nobody knows what became of it. Raises FleetError, CollectCancelled before anything began.
    """
    with quiet():
        return asyncio.run(_carried_out(address, orders, should_cancel, watcher, wait_seconds))


async def _carried_out(
    address: str, orders: Sequence[Order], should_cancel: Callable[[], bool], watcher: Watcher, wait_seconds: float
) -> tuple[dict[int, Answer], str]:
    async with connected(address, should_cancel, wait_seconds=wait_seconds, on_note=watcher.note) as client:
        run = _Run(client, address, orders, watcher, wait_seconds)
        return await run.all(should_cancel), run.trouble


class _Run:
    """One run: the orders that are out, and what has become of the others."""

    def __init__(self, client: Client, address: str, orders: Sequence[Order], watcher: Watcher, wait_seconds: float) -> None:
        self.trouble = ""
        self._client, self._address, self._watcher, self._wait_seconds = client, address, watcher, wait_seconds
        self._orders = {order.number: order for order in orders}
        self._topic = orders[0].run
        self._answers: dict[int, Answer] = {}
        self._futures: dict[int, Future[Answer]] = {}
        self._is_ending = False
        self._counted = self._had_workers = time.monotonic()

    async def all(self, should_cancel: Callable[[], bool]) -> dict[int, Answer]:
        """Hand out all orders and wait until each has its answer or will have none."""
        self._client.subscribe_topic(self._topic, self._hear)
        for order in sorted(self._orders.values(), key=_size, reverse=True):  # a large one that begins last would be waited for
            self._futures[order.number] = self._client.submit(carry_out, order, key=f"{self._topic}-{order.number}", pure=False)
        left = {asyncio.ensure_future(self._answer_of(number, future)) for number, future in self._futures.items()}
        stopped_at: float | None = None
        while left:
            done, left = await asyncio.wait(left, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await self._take(*task.result())
            if stopped_at is None and should_cancel():
                stopped_at = time.monotonic()
                with contextlib.suppress(OSError):  # the scheduler is gone, which stops the workers, too
                    await Event(self._topic, client=self._client).set()
                await self._call_back_what_waits()
            if stopped_at is not None and time.monotonic() - stopped_at > _STOP_SECONDS:
                self.trouble = f"{self._address}: {len(left)} files are still open at workers that did not answer; they stop by themselves."
                break
            if stopped_at is None and await self._has_no_workers():
                self.trouble = f"{self._address}: the scheduler has lost all its workers, for {self._wait_seconds:g} s now."
                break
        for task in left:
            task.cancel()
        if stopped_at is not None and not left:
            with contextlib.suppress(OSError):
                await Event(self._topic, client=self._client).clear()  # nobody asks for it any more
        return self._answers

    async def _answer_of(self, number: int, future: "Future[Answer]") -> tuple[int, Answer | None]:
        """What became of an order; None when it was called back, or the scheduler is gone."""
        order = self._orders[number]
        try:
            answer: Answer = await future
        except FutureCancelledError:
            if not self._is_ending:
                self.trouble = (
                    f"{self._address}: the scheduler was lost. Its workers stop; sockscope list shows what they had stored before."
                )
            return number, None
        except KilledWorker as error:
            return number, _failed(
                order,
                f"{order.word}: {error.allowed_failures + 1} workers ended while they collected it, the last of them "
                f"{error.last_worker.address}; it is not tried again. See that they have memory enough, and what they logged.",
            )
        except Exception as error:  # a fault of ours, or of the cluster; one file's may not end the others
            return number, _failed(order, f"{order.word}: the worker failed ({type(error).__name__}: {error}).")
        return number, answer

    async def _take(self, number: int, answer: Answer | None) -> None:
        if answer is None or not answer.outcomes:
            return
        self._answers[number] = answer
        if self._watcher.answered(self._orders[number], answer) and not self._is_ending:
            await self._call_back_what_waits()

    async def _call_back_what_waits(self) -> None:
        """Have no more files begun. What workers have is left to them, who know better than we what they have begun."""
        self._is_ending = True
        with contextlib.suppress(OSError):
            processing: Any = self._client.processing()  # Any: an awaitable, since the client is asynchronous
            theirs = {key for keys in (await processing).values() for key in keys}
            await self._client.cancel([future for future in self._futures.values() if future.key not in theirs])

    async def _has_no_workers(self) -> bool:
        """Whether there has been no worker for as long as one is waited for."""
        now = time.monotonic()
        if now - self._counted < _SECONDS_BETWEEN_COUNTS:
            return False
        self._counted = now
        try:
            if await asyncio.wait_for(self._client.nthreads(), _SECONDS_BETWEEN_COUNTS):
                self._had_workers = now
        except OSError:
            return False  # the scheduler is gone, which the futures tell
        return now - self._had_workers > self._wait_seconds

    def _hear(self, event: tuple[float, Mapping[str, Any]]) -> None:  # Any: numbers and texts
        """A message of a worker, see `there`."""
        _, message = event
        order = self._orders[message["number"]]
        if "begun_by" in message:
            self._watcher.begun(order, message["begun_by"])
        elif order.number not in self._answers:
            self._watcher.moved(order, Progress(*message["progress"]))


def _failed(order: Order, why: str) -> Answer:
    return Answer((Outcome(order.word, error=FleetError(why)),))


def _size(order: Order) -> int:
    """Bytes of the file; 0 where it is not seen from here."""
    try:
        return Path(order.file).stat().st_size
    except OSError:
        return 0
