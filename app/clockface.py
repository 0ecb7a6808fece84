"""How moments are written in the answer to one request: as time since the trace began, or as the wall clock's (`?clock=utc`).

The choice belongs to a request and reaches every text that names a moment, in tables, sentences and charts, and every link to another
page of the trace. It is held in a context variable, so that what writes a moment needs no further argument. The face is set before the
request is routed and learns the trace's start when the trace is opened; both happen in contexts that share the one object.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["CLOCK", "FACES", "ClockFaces", "current", "shown_face", "start", "start_of"]

CLOCK = "clock"
"""The key of the query string."""

FACES = ("trace", "utc")
"""Its values; the first is meant where the query names none."""


@dataclass(slots=True)
class _Face:
    """`asked` is what the query says; `start` the trace's start once it is known, None where a trace does not say it."""

    asked: str
    start: datetime | None = None


_face: ContextVar[_Face | None] = ContextVar("clockface", default=None)


class ClockFaces:
    """Gives each request the clock face that its query asks for."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = dict(parse_qsl(scope["query_string"].decode("latin-1"))).get(CLOCK, FACES[0])
        token = _face.set(_Face(asked))
        try:
            await self._app(scope, receive, send)
        finally:
            _face.reset(token)


def start_of(text: str | None) -> datetime | None:
    """The stored start of a trace, in UTC; None for one that says nothing readable."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def shown_face(start_utc: str | None) -> None:
    """From now on the moments of this request are those of a trace with this start. Raises ValueError for a face that there is not."""
    face = _face.get()
    if face is None:
        return
    if face.asked not in FACES:
        raise ValueError(f"{CLOCK}={face.asked}: moments are shown as {' or '.join(FACES)}.")
    face.start = start_of(start_utc)


def start() -> datetime | None:
    """The start of the trace that this request is about, whichever clock it asks for; None where it is unknown."""
    face = _face.get()
    return face.start if face is not None else None


def current() -> datetime | None:
    """The start of the trace when moments are to be written in UTC; None when they count from it."""
    face = _face.get()
    return face.start if face is not None and face.asked == "utc" else None
