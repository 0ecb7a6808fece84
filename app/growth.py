"""Tells whoever looks at a trace that is still being recorded when more of it is there: one server-sent event for each new state."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager

from starlette.concurrency import run_in_threadpool

from app.living import version_of
from collector.store.stores import TraceStore, is_alive

__all__ = ["MOST_STREAMS", "Streams", "growth_events"]

MOST_STREAMS = 100
"""Pages that are told at once; a server has 500 connections."""
_LOOK_SECONDS = 1.0
_QUIET_SECONDS = 15.0
"""After so long without an event something is sent that says nothing: else nobody notices that the browser is gone."""
_RETRY_MS = 3000


class Streams:
    """How many pages of a server are told now, and whether it is about to stop."""

    def __init__(self, most: int = MOST_STREAMS) -> None:
        self._most, self.open = most, 0
        self.is_closing = False

    @property
    def is_full(self) -> bool:
        """Whether another page would be one too many."""
        return self.open >= self._most

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Count one more."""
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1

    def close(self) -> None:
        """Let all of them end within a second."""
        self.is_closing = True


async def growth_events(
    folder: TraceStore,
    key: str,
    since: str,
    streams: Streams,
    became: Callable[[], Awaitable[str | None]],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[str]:
    """Events of one trace from now on, as text/event-stream.

    `grown` (`version`) when another state of it than `since` is there, and `ended` (`key`, null where it became no other trace) when nobody
    follows it any more; that is the last one. `became` gives the key of the trace that it became.
    """
    with streams.opened():
        yield f"retry: {_RETRY_MS}\n\n"
        quiet = 0.0
        while not streams.is_closing:
            # Before the version: the last one is there when the collector goes.
            lives = await run_in_threadpool(is_alive, folder, key)
            version = await run_in_threadpool(version_of, folder, key)
            if version and version != since:
                since, quiet = version, 0.0
                yield _event("grown", version=version)
            if not lives:
                yield _event("ended", key=await became())
                return
            if quiet >= _QUIET_SECONDS:
                quiet = 0.0
                yield ": still there\n\n"
            await sleep(_LOOK_SECONDS)
            quiet += _LOOK_SECONDS


def _event(kind: str, **values: str | None) -> str:
    return f"event: {kind}\ndata: {json.dumps(values)}\n\n"
