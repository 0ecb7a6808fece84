"""What a view is handed: the trace it was asked about, open for reading, and the catalog."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from fastapi import Depends, Path, Request
from sqlalchemy import Connection, Engine

from app import clockface
from app.errors import BadRequest, Choice, NotFound, OtherName, SeveralFit, StillCollecting
from app.filters import BadFilter, parse_time
from app.living import living_head, version_of
from app.page import Crumb, TraceHead
from app.queries import catalog, names, trace
from app.urls import Urls
from collector.errors import StoreUnreachable
from collector.store.stores import TraceStore

__all__ = ["LEAST_DIGITS", "LIVE_PREFIX", "Catalog", "OpenTrace", "ReadTrace", "TraceKey", "meant_by", "open_catalog", "open_trace"]

KEY_DIGITS = 12
LIVE_PREFIX = "live-"
"""How the key of a trace begins while its session records; afterwards it leads to the trace that it became."""
LEAST_DIGITS = 6
"""Digits of a key that stand for it where no other trace begins with them."""

TraceKey = Annotated[str, Path(description="First 12 hex digits of the SHA-256 of the trace's bytes.", max_length=64)]


@dataclass(frozen=True, slots=True)
class OpenTrace:
    """One trace for the time of one request."""

    key: str
    db: Connection
    head: TraceHead
    urls: Urls

    def crumbs(self, *more: Crumb) -> tuple[Crumb, ...]:
        """The way to a page of this trace; the page itself is not on it."""
        return (Crumb("traces", self.urls("traces")), Crumb(self.head.name, self.urls("overview", trace_key=self.key)), *more)

    def head_within(self, from_ns: int, to_ns: int) -> TraceHead:
        """The head with the losses of a range that the page chose itself."""
        found = trace.head(self.db, from_ns, to_ns)
        return self.head if found is None else replace(self.head, losses=found.losses)


def open_trace(request: Request, trace_key: TraceKey) -> Iterator[OpenTrace]:
    """The trace of the URL.

    Raises NotFound, StillCollecting, BadFilter; OtherName, SeveralFit where the key is that of a part of the trace, or shortened;
    StoreError when its file cannot be read.
    """
    folder: TraceStore = request.app.state.folder
    urls: Urls = request.app.state.urls
    key = trace_key.lower()
    if not all(c.isascii() and (c.isalnum() or c in "-_") for c in key) or not folder.has_trace(key):
        _explain_absence(request, key)
    version = version_of(folder, key)  # before it is opened: a newer state is then asked for once too often, never too rarely
    with _reading(folder.trace(key)) as db:
        try:
            clockface.shown_face(trace.start_utc(db))  # before any time is read: it may be the wall clock's
        except ValueError as error:
            raise BadRequest(str(error)) from error
        from_ns, to_ns = _time(request, "from"), _time(request, "to")  # on every page of a trace: the losses are those of the range
        if from_ns is not None and to_ns is not None and from_ns > to_ns:
            given = request.query_params
            raise BadFilter("to", given["to"], f"this is before from={given['from']}; give a range that runs forward.")
        head = trace.head(db, from_ns, to_ns)
        if head is None:
            raise NotFound(f"The file of trace {key} holds no trace. Move it away and collect the trace again.")
        head = replace(living_head(folder, head), version=version)
        request.state.names_of = partial(names.names_of, db)
        request.state.trace_head = head  # what goes wrong from here on is said among the pages of this trace
        request.state.range_ns = (0 if from_ns is None else from_ns, (head.end_ns or 0) if to_ns is None else to_ns)
        yield OpenTrace(key, db, head, urls)


def open_catalog(request: Request) -> Iterator[Connection | None]:
    """The catalog, None where nothing was collected yet."""
    folder: TraceStore = request.app.state.folder
    if not folder.has_catalog():
        yield None
        return
    with _reading(folder.catalog()) as db:
        yield db


@contextmanager
def _reading(engine: Engine) -> Iterator[Connection]:
    """A connection; where its server went away after the page had its answers, that is no fault of the page."""
    db = engine.connect()
    try:
        yield db
    finally:
        with suppress(StoreUnreachable):
            db.close()


def meant_by(db: Connection, key: str) -> list[catalog.EntryRow]:
    """The traces that a key stands for which none has: what a live one became, or all whose keys begin with it."""
    if key.startswith(LIVE_PREFIX):
        return catalog.became(db, key)
    entries = {entry.key: entry for entry in catalog.entries(db)}
    return [entries[one] for one in _beginning_with(entries, key)]


ReadTrace = Annotated[OpenTrace, Depends(open_trace)]
Catalog = Annotated[Connection | None, Depends(open_catalog)]


def _explain_absence(request: Request, key: str) -> None:
    """Say why a trace cannot be read. Raises StillCollecting, NotFound; OtherName, SeveralFit for the first digits of keys."""
    folder: TraceStore = request.app.state.folder
    urls: Urls = request.app.state.urls
    entries, followers = [], []
    if folder.has_catalog():
        with folder.catalog().connect() as db:
            entries = catalog.entries(db)
            followers = catalog.became(db, key) if key.startswith(LIVE_PREFIX) else []
    entry = next((one for one in entries if one.key == key), None)
    if entry is not None and entry.state == "complete":
        raise NotFound(
            f"Trace {key} ({entry.label or entry.name}) was collected, but its file traces/{key}.db is no longer in this database. "
            f"Put the file back, or collect {entry.name} again: its key and this link stay the same. It asks for {_view_of(request)}.",
            ways=(Crumb("all traces", urls("traces")),),
        )
    if entry is not None:
        raise StillCollecting(key)
    if len(followers) == 1:
        raise OtherName({"trace_key": followers[0].key})
    if followers:
        choices = tuple(Choice(f"{one.label or one.name} ({one.key})", {"trace_key": one.key}) for one in followers)
        raise SeveralFit(f"{len(followers)} traces are of the session that was followed as {key}.", choices)
    names = dict.fromkeys(folder.trace_keys(), "") | {entry.key: entry.label or entry.name for entry in entries}
    meant = _beginning_with(names, key)  # also a part of the trace, where the whole is absent
    if len(meant) == 1:
        raise OtherName({"trace_key": meant[0]})
    if meant:
        choices = tuple(Choice(f"{names[one] or 'trace'} ({one})", {"trace_key": one}) for one in meant)
        raise SeveralFit(f"The keys of {len(meant)} traces begin with {key}.", choices)
    near = [one for one in names if one[:LEAST_DIGITS] == key[:LEAST_DIGITS]] or list(names)[:3]
    ways = tuple(Crumb(f"{names[one] or 'trace'} ({one})", urls("overview", trace_key=one)) for one in near)
    if len(key) < KEY_DIGITS or not _is_hex(key[:KEY_DIGITS]):
        raise NotFound(
            f"No trace of this database has the key {key}. A key has {KEY_DIGITS} hex digits, the first of the SHA-256 of the file's "
            f"bytes; {LEAST_DIGITS} of them do where only one trace begins with them.",
            ways=ways,
        )
    raise NotFound(
        f"Trace {key} is not in this database. The key is made of the file's content and is the same everywhere: get the .etl file from "
        f"whoever sent the link, collect it here, and this link works. It asks for {_view_of(request)}.",
        ways=ways,
    )


def _beginning_with(keys: Iterable[str], key: str) -> list[str]:
    """The keys that the first digits of one stand for, in their order; none for fewer than LEAST_DIGITS."""
    return sorted(one for one in keys if one.startswith(key)) if len(key) >= LEAST_DIGITS and _is_hex(key) else []


def _is_hex(text: str) -> bool:
    return all(c in "0123456789abcdef" for c in text)


def _view_of(request: Request) -> str:
    """What a link asks for, in words: the name of its page, and the object and the state that it names."""
    route = request.scope["route"]
    named = [value for name, value in request.path_params.items() if name != "trace_key"]
    query = [f"{key}={value}" for key, value in request.query_params.multi_items() if key not in ("format", "token")]
    return f"the page “{route.summary}”" + (f" of {' '.join(named)}" if named else "") + (f" with {', '.join(query)}" if query else "")


def _time(request: Request, key: str) -> int | None:
    """A time of the query string; what cannot be read is reported by the page's own filters."""
    text = next((value for name, value in request.query_params.multi_items() if name == key), "").strip()  # pages without times have none
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None
