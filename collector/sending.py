"""Sends trace files to a dashboard elsewhere, in pieces, and goes on where a broken connection left off.

One request at a time and no more than a piece in memory.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from collector.dashboard import Answer, Link, Target, Unreached, stop_if
from collector.errors import SendError
from collector.source import Source

__all__ = ["GIVE_UP_SECONDS", "Sent", "send_file"]

GIVE_UP_SECONDS = 600.0
"""Without a byte more having arrived."""
_LONGEST_PAUSE = 30.0
_PIECE_BYTES = 4 << 20
_MOST_BEGINNINGS = 1
_TO_SEND = ("absent", "arriving", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a file: `collecting` or `complete`; `address` is that of its page."""

    key: str
    state: str
    address: str


def send_file(
    path: str | Path,
    target: Target,
    should_cancel: Callable[[], bool] = lambda: False,
    *,
    name: str | None = None,
    wait_for_pages: bool = True,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    on_trouble: Callable[[str], None] = lambda sentence: None,
    give_up_seconds: float = GIVE_UP_SECONDS,
    wait: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> Sent:
    """Send a file that is finished, and wait until it is collected there.

    A broken connection and a busy server are waited for, up to `give_up_seconds` without a byte more; then a later call goes on where this
    one left off, also from another process, as the server knows the file by its content.

    Args:
        name: shown instead of the file's name.
        wait_for_pages: wait until the trace is complete there; else return when the whole file has arrived.
        on_progress: told how many bytes of how many have arrived.
        on_trouble: told in a sentence what is waited for.

    Raises: SourceError, SendError, CollectCancelled.
    """
    with Source.open(path) as source:
        link = Link(target, source.sha256(lambda: stop_if(should_cancel)), source.name, should_cancel)
        return _Sending(source, link, name or source.name, should_cancel, on_progress, on_trouble, give_up_seconds, wait, now).run(
            wait_for_pages=wait_for_pages
        )


@dataclass(slots=True)
class _Sending:
    """One file on its way."""

    source: Source
    link: Link
    name: str
    should_cancel: Callable[[], bool]
    on_progress: Callable[[int, int], None]
    on_trouble: Callable[[str], None]
    give_up_seconds: float
    wait: Callable[[float], None]
    now: Callable[[], float]
    beginnings: int = 0
    """How often it was sent from its beginning because what had arrived was not the file, or was gone."""
    has_arrived: bool = False
    """Whether something has, so that what the server says of it is of this time and not of an earlier one."""

    def run(self, *, wait_for_pages: bool) -> Sent:
        state = self._patiently(self.link.state)
        if state.state in _TO_SEND:  # also where it failed there before: something may have changed
            state = self._rest(state)
        while state.state != "complete" and (wait_for_pages or state.state != "collecting"):
            match state.state:
                case "failed":
                    reason = state.sentence.removeprefix(f"{self.name}: ")
                    raise SendError(f"{self.name}: it has arrived and cannot be collected there: {reason}")
                case "cancelled":
                    raise SendError(f"{self.name}: it had arrived, and somebody cancelled it there. Send it anew to have it collected.")
                case "collecting":
                    self._pause(1.0)
                    state = self._patiently(self.link.state)
                case _:
                    self._begin_anew("what had arrived there is gone, as when its server is started anew.")
                    state = self._rest(state)
        return Sent(state.key, state.state, self.link.page(state.href))

    def _rest(self, state: Answer) -> Answer:
        """Send what is missing; returns the state behind it."""
        size = self.source.size
        offset = min(state.offset, size) if state.state == "arriving" else 0
        most = min(state.piece_bytes or _PIECE_BYTES, _PIECE_BYTES)
        since, pause = self.now(), 1.0
        while True:
            stop_if(self.should_cancel)
            self.on_progress(offset, size)
            piece = self.source.read_at(offset, min(most, size - offset))
            if len(piece) < min(most, size - offset):
                raise SendError(f"{self.name}: the file became shorter while it was sent. Send it when nothing writes it any more.")
            try:
                answer = self.link.append(piece, offset=offset, size=size, name=self.name)
            except Unreached as error:
                self._give_up_or_wait(error, since, pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                there = self._patiently(self.link.state)
                if there.state not in _TO_SEND or (there.state in ("failed", "cancelled") and self.has_arrived):
                    return there
            else:
                self.has_arrived = self.has_arrived or answer.status in (200, 201)
                if answer.status == 201:
                    self.on_progress(size, size)
                    return self._patiently(self.link.state)
                if answer.status == 422:
                    self._begin_anew(f"{answer.sentence or 'it arrives as another file.'} Does something still write it?")
                elif answer.offset <= offset:
                    self._give_up_or_wait(Unreached("Nothing more arrives there."), since, pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                there = answer
            if there.offset > offset:
                since, pause = self.now(), 1.0
            offset = min(there.offset, size)

    def _begin_anew(self, reason: str) -> None:
        """Count that it is sent from its beginning again. Raises SendError where that has happened before."""
        self.beginnings += 1
        if self.beginnings > _MOST_BEGINNINGS:
            raise SendError(f"{self.name}: {reason}")
        self.on_trouble(f"{self.name}: {reason}")
        self._pause(1.0)

    def _patiently(self, ask: Callable[[], Answer]) -> Answer:
        """An answer, however long the server needs to give one. Raises SendError, CollectCancelled."""
        since, pause = self.now(), 1.0
        while True:
            try:
                return ask()
            except Unreached as error:
                self._give_up_or_wait(error, since, pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _give_up_or_wait(self, error: Unreached, since: float, pause: float) -> None:
        if self.now() - since >= self.give_up_seconds:
            raise SendError(f"{self.name}: {error} Given up. If something has arrived, it stays for a day: send it again.") from error
        self.on_trouble(str(error))
        self._pause(max(pause, min(error.seconds or 0.0, _LONGEST_PAUSE)))

    def _pause(self, seconds: float) -> None:
        ends = self.now() + seconds
        while (left := ends - self.now()) > 0:
            stop_if(self.should_cancel)
            self.wait(min(left, 0.2))
