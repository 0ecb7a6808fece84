"""Notes on the things of a trace: what may be written, and the part of a page that shows them."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from app.deps import OpenTrace
from app.filters import parse_time
from app.listing import Marks, Noted
from app.page import NotesPart
from app.queries import notes as queries
from collector.errors import StoreError
from collector.store.stores import TraceStore

__all__ = ["MAX_AUTHOR", "MAX_NOTES", "MAX_TEXT", "BadNote", "Draft", "noted_rows", "notes_part"]

MAX_TEXT = 4_000
MAX_AUTHOR = 80
MAX_NOTES = 5_000
"""Notes of one trace; a page must stay readable, and a script that went wrong must end."""

_MAX_NS = (1 << 63) - 1


class BadNote(ValueError):
    """A note that cannot be kept as it is; the message says what is allowed."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A note as it was typed."""

    text: str = ""
    author: str = ""
    moment: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> "Draft":
        """The fields of a form, without what is no text: control characters, and blanks around it."""
        text = _plain(fields.get("text", "").replace("\r\n", "\n").replace("\r", "\n"), keep="\n\t").strip()
        return cls(text, _plain(fields.get("author", ""), keep="").strip(), fields.get("t_ns", "").strip()[:100])

    @property
    def t_ns(self) -> int | None:
        """The moment. Raises BadNote."""
        if not self.moment:
            return None
        try:
            ns = parse_time(self.moment)
        except ValueError as error:
            raise BadNote(f"The moment cannot be read: {error}") from error
        if not -_MAX_NS <= ns <= _MAX_NS:
            raise BadNote("The moment lies outside of every trace.")
        return ns

    def check(self) -> None:
        """Raises BadNote for what is empty or too long."""
        if not self.text:
            raise BadNote("The note is empty: write a text.")
        if len(self.text) > MAX_TEXT:
            raise BadNote(f"The note has {len(self.text):,} characters; at most {MAX_TEXT:,} are kept.")
        if len(self.author) > MAX_AUTHOR:
            raise BadNote(f"The name has {len(self.author):,} characters; at most {MAX_AUTHOR} are kept.")


def notes_part(request: Request, trace: OpenTrace, about: str, *, all_below: bool = False, limit: int = queries.NOTES_SHOWN) -> NotesPart:
    """The notes on the object `about`, a canonical link below /t/KEY; with `all_below` those on everything in the trace.

    A page does not depend on the catalog: without one, or while it is locked, the page comes without notes.
    """
    folder: TraceStore = request.app.state.folder
    if not folder.has_catalog():
        return NotesPart(about, ())
    try:
        with folder.catalog().connect() as db:
            if all_below:
                return NotesPart(
                    about, tuple(queries.notes_of_trace(db, trace.key, limit=limit)), total=queries.notes_number(db, trace.key)
                )
            return NotesPart(about, tuple(queries.notes_of(db, trace.key, about)), number=queries.notes_number(db, trace.key, about))
    except StoreError as error:
        return NotesPart(about, (), trouble=f"The notes cannot be read now: {error}")


def noted_rows(request: Request, trace: OpenTrace, rows: Sequence[Any]) -> Marks:  # Any: each list has a row type of its own
    """The rows whose objects have notes. A list does not depend on the catalog: without it, no row is marked."""
    folder: TraceStore = request.app.state.folder
    if not rows or not folder.has_catalog():
        return Marks()
    try:
        with folder.catalog().connect() as db:
            number = queries.noted_objects(db, trace.key)
    except StoreError as error:
        return Marks(trouble=f"Which rows carry notes is not known: the notes cannot be read now. {error}")
    found = {}
    for place, row in enumerate(rows) if number else ():
        about = next((one for one in _objects_of(row) if one in number), None)
        if about is not None:
            found[place] = Noted(about, number[about])
    return Marks(found)


def _objects_of(row: Any) -> Iterator[str]:  # Any: as above
    """What a row is about and notes can hang on, the most special first: operations, an allocation, a socket, a process."""
    for socket, operation in (("socket", "operation"), ("first_socket", "first"), ("second_socket", "second")):
        if getattr(row, socket, None) and getattr(row, operation, None):
            yield f"sockets/{getattr(row, socket)}/{getattr(row, operation)}"
    process = getattr(row, "process", None)
    if getattr(row, "allocation", None) and process is not None:
        yield f"heap/{process}/{row.allocation}"
    if getattr(row, "socket", None):
        yield f"sockets/{row.socket}"
    if isinstance(process, str):  # the process itself, not the one that the row's object belongs to
        yield f"processes/{process}"


def _plain(text: str, *, keep: str) -> str:
    """Text without control characters and lone surrogates, except those to keep."""
    return "".join(c for c in text if c in keep or unicodedata.category(c) not in ("Cc", "Cs"))
