"""What of a query string a page reads: the rest is refused, since a part that nobody reads would be ignored without a word."""

from difflib import get_close_matches
from urllib.parse import unquote_to_bytes

from starlette.datastructures import QueryParams
from starlette.requests import Request

from app.clockface import CLOCK
from app.filters import BadFilter

__all__ = ["AskedQuery", "note_what_is_asked", "refuse_unread"]

EVERYWHERE = frozenset({"format", "token", CLOCK})
"""Parts that all pages share: the form of the answer, what lets a browser in, and how moments are written."""

_MOST_NAMED = 40


class AskedQuery(QueryParams):
    """A query string that remembers which of its parts were asked for, there or not. To go through all of them asks for none."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.asked: set[str] = set()
        self.repeated: set[str] = set()

    def __getitem__(self, key: str) -> str:
        self.asked.add(key)
        return super().__getitem__(key)

    def getlist(self, key: str) -> list[str]:
        self.asked.add(key)
        self.repeated.add(key)
        return super().getlist(key)


def note_what_is_asked(request: Request) -> None:
    """Let the request remember what its page reads. Raises BadFilter for a query string that is no text."""
    raw: bytes = request.scope["query_string"]
    for part in raw.split(b"&"):
        name = part.partition(b"=")[0].decode("ascii", "replace")
        try:
            text = unquote_to_bytes(part.replace(b"+", b" ")).decode()
        except UnicodeDecodeError as error:
            raise BadFilter(name, part.decode("ascii", "replace").partition("=")[2], "this is no text in UTF-8.") from error
        if "\0" in text:
            raise BadFilter(name, "…", "text without control characters.")
    request._query_params = AskedQuery(
        raw.decode("latin-1")
    )  # where Starlette keeps it; there is no other way to hand it a kind of one's own


def refuse_unread(request: Request) -> None:
    """Compare what the query string holds with what the page has read by now. Raises BadFilter for a part that it does not have."""
    query = request.query_params
    if not isinstance(query, AskedQuery):
        return
    known = query.asked | EVERYWHERE
    for key, values in _by_key(query).items():
        if key not in known:
            raise BadFilter(key, values[0][:40], _advice(key, query.asked))
        if len(values) > 1 and key not in query.repeated:
            raise BadFilter(key, values[0][:40], f"given {len(values)} times; once is enough.")


def _by_key(query: QueryParams) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, value in query.multi_items():
        found.setdefault(key, []).append(value)
    return found


def _advice(key: str, asked: set[str]) -> str:
    """What the page has instead."""
    names = sorted(asked | {"format"})
    near = get_close_matches(key.lower(), names, n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    return f"this page has no parameter of this name.{meant} It has {', '.join(names[:_MOST_NAMED])}."
