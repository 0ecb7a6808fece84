"""What a view is handed: the trace it was asked about, open for reading, and the catalog."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Request
from sqlalchemy import Connection

from app import clockface
from app.errors import BadRequest, NotFound, StillCollecting
from app.filters import BadFilter, parse_time
from app.page import Crumb, TraceHead
from app.queries import catalog, trace
from app.urls import Urls
from collector.store.engine import TraceFolder

__all__ = ["Catalog", "OpenTrace", "ReadTrace", "TraceKey", "open_catalog", "open_trace"]

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


def open_trace(request: Request, trace_key: TraceKey) -> Iterator[OpenTrace]:
    """The trace of the URL. Raises NotFound, StillCollecting, BadFilter; StoreError when its file cannot be read."""
    folder: TraceFolder = request.app.state.folder
    urls: Urls = request.app.state.urls
    key = trace_key.lower()
    if not all(c.isascii() and (c.isalnum() or c in "-_") for c in key):
        _explain_absence(folder, urls, key)
    if not folder.has_trace(key):
        parts = [found for found in folder.trace_keys() if found.startswith(f"{key}-")]  # a part of the trace, where the whole is absent
        if not parts:
            _explain_absence(folder, urls, key)
        key = parts[0]
    with folder.trace(key).connect() as db:
        from_ns, to_ns = _time(request, "from"), _time(request, "to")  # on every page of a trace: the losses are those of the range
        if from_ns is not None and to_ns is not None and from_ns > to_ns:
            given = request.query_params
            raise BadFilter("to", given["to"], f"this is before from={given['from']}; give a range that runs forward.")
        head = trace.head(db, from_ns, to_ns)
        if head is None:
            raise NotFound(f"The file of trace {key} holds no trace. Delete it and collect the trace again.")
        try:
            clockface.shown_face(head.start_utc)
        except ValueError as error:
            raise BadRequest(str(error)) from error
        yield OpenTrace(key, db, head, urls)


def open_catalog(request: Request) -> Iterator[Connection | None]:
    """The catalog, None where nothing was collected yet."""
    folder: TraceFolder = request.app.state.folder
    if not folder.has_catalog():
        yield None
        return
    with folder.catalog().connect() as db:
        yield db


ReadTrace = Annotated[OpenTrace, Depends(open_trace)]
Catalog = Annotated[Connection | None, Depends(open_catalog)]


def _explain_absence(folder: TraceFolder, urls: Urls, key: str) -> None:
    """Say why a trace cannot be read. Raises StillCollecting or NotFound, with the traces whose keys are alike."""
    entries = []
    if folder.has_catalog():
        with folder.catalog().connect() as db:
            entries = catalog.entries(db)
    if any(entry.key == key for entry in entries):
        raise StillCollecting(key)
    alike = [entry for entry in entries if entry.key.startswith(key[:6])] or entries[:3]
    ways = tuple(Crumb(f"{entry.name} ({entry.key})", urls("overview", trace_key=entry.key)) for entry in alike)
    raise NotFound(
        f"Trace {key} is not in this database. The same file has the same key everywhere: collect it here, and this link works.",
        ways=ways,
    )


def _time(request: Request, key: str) -> int | None:
    """A time of the query string; what cannot be read is reported by the page's own filters."""
    text = request.query_params.get(key, "").strip()
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None
