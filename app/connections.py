"""Which connections a server keeps: none that makes it wait. A request must arrive, and an answer be taken, at a pace that people have.

Without this, whoever sends a request byte by byte, or asks for a long answer and reads nothing of it, holds a connection for good.
"""

import asyncio
import socket
import struct
import sys
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["MAX_HEAD_BYTES", "PATIENCE", "Patience", "protocol"]

MAX_HEAD_BYTES = 32 << 10
"""Of the address and the headers of a request together, up to twice that in one piece; for `h11_max_incomplete_event_size` of uvicorn."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a server waits. A connection that stays below this is ended, with an answer where it said a part of a request.

    One that waits for its next request is kept for `idle_seconds`, which are uvicorn's to count: longer than clients keep theirs, so that
    a request does not meet a connection that is just being closed.

    A head must be whole after `head_seconds`. Of a body, `body_bytes` must arrive, and of an answer, `answer_bytes` must be taken in each
    `pace_seconds`. There are at most `connections`; one more ends the one that has been without a request for the longest time.
    """

    head_seconds: float = 10.0
    pace_seconds: float = 20.0
    idle_seconds: int = 60
    body_bytes: int = 2_000
    answer_bytes: int = 20_000
    connections: int = 500


PATIENCE = Patience()

_AT_ONCE = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
_LOOKS = 4  # in the shortest of the times
_TOO_LONG = (
    f"The address or the headers of this request are too long: at most {MAX_HEAD_BYTES:,} bytes together. "
    "Clear the cookies of this server, or leave parts of the address out."
)


def protocol(patience: Patience = PATIENCE) -> type[asyncio.Protocol]:
    """The class of connections that a server is to use."""

    class Kept(_Connection):
        _patience = patience

    return Kept


class _Connection(H11Protocol):
    """A connection with an eye on its pace."""

    _patience: Patience

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # Any: what uvicorn hands over, of no concern here
        super().__init__(*args, **kwargs)
        self._watch: asyncio.TimerHandle | None = None
        self._since = self._idle_since = self.loop.time()
        self._doing = ""
        self._arrived = self._left = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        if len(self.connections) >= self._patience.connections:
            self._make_room()
        super().connection_made(transport)
        self._since = self._idle_since = self.loop.time()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        doing = self._now_doing()
        if doing == "head" and self._is_idle():
            self._doing = ""  # a head begins
        self._begin(doing)
        self._arrived += len(data)
        for begin in range(0, len(data), MAX_HEAD_BYTES):  # a head is measured between pieces, a whole one in one piece never
            if not self.transport.is_closing():
                super().data_received(data[begin : begin + MAX_HEAD_BYTES])

    def resume_writing(self) -> None:
        self._since = self.loop.time()
        super().resume_writing()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        self._doing = ""  # the next head has a time of its own
        super().on_response_complete()

    def _now_doing(self) -> str:
        """What the connection waits for: `head`, `body`, `reader`; empty while it waits for this server."""
        if self.transport.get_write_buffer_size():
            return "reader"
        if self.cycle is None or self.cycle.response_complete:
            return "head"
        return "body" if self.cycle.more_body and not self.flow.read_paused else ""

    def _is_idle(self) -> bool:
        """Whether a request was answered and nothing of the next has come."""
        return self.cycle is not None and not self.conn.trailing_data[0]

    def _begin(self, doing: str) -> None:
        if self._doing != doing:
            self._doing, self._since = doing, self.loop.time()
            self._arrived, self._left = 0, self.transport.get_write_buffer_size()

    def _look(self) -> None:
        """Look whether the connection moves, now and then until it ends."""
        patience, now = self._patience, self.loop.time()
        self._begin(self._now_doing())
        if self._doing == "head":
            if now - self._since >= patience.head_seconds and not self._is_idle():
                self._end()
                return
        elif self._doing == "body":
            if self._arrived >= patience.body_bytes:
                self._since, self._arrived = now, 0
        elif self._doing == "reader":
            left = self.transport.get_write_buffer_size()
            if left <= self._left - patience.answer_bytes:
                self._since = now
                self._left = left
            self._left = max(self._left, left)
        if self._doing in ("body", "reader") and now - self._since >= patience.pace_seconds:
            self._end()
            return
        self._watch = self.loop.call_later(min(patience.head_seconds, patience.pace_seconds) / _LOOKS, self._look)

    def send_400_response(self, msg: str) -> None:
        if len(self.conn.trailing_data[0]) > MAX_HEAD_BYTES:
            self._refuse(431, "Request Header Fields Too Large", _TOO_LONG)
        else:
            self._refuse(400, "Bad Request", "This is no request of HTTP.")

    def _end(self) -> None:
        """End the connection, with an answer where a part of a request came that has none yet."""
        if self._doing == "body" or (self._doing == "head" and self.conn.trailing_data[0]):
            self._refuse(408, "Request Timeout", "The request did not arrive in time.")
        else:
            self._drop()

    def _drop(self) -> None:
        """End the connection at once: without the option the system would go on for minutes to send what is in its own buffers."""
        connection = self.transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.transport.abort()

    def _refuse(self, status: int, phrase: str, sentence: str) -> None:
        """Answer past the application, unless it has begun to, and close."""
        is_answered = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if is_answered or self.transport.is_closing():
            self._drop()
            return
        if self.cycle is not None:
            self.cycle.disconnected = True  # what the application says from now on goes nowhere
        said = f"{sentence}\n".encode()
        head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: text/plain; charset=utf-8\r\nx-content-type-options: nosniff\r\n"
        self.transport.write(f"{head}connection: close\r\ncontent-length: {len(said)}\r\n\r\n".encode() + said)
        self.transport.close()

    def _make_room(self) -> None:
        """End the connection that has been without a request for the longest time."""
        idle = [one for one in self.connections if isinstance(one, _Connection) and one._now_doing() in ("head", "reader")]
        if idle:
            min(idle, key=lambda one: one._idle_since)._drop()
