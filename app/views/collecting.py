"""A trace that cannot be read yet: how far its collecting is, and what is known so far."""

from dataclasses import dataclass, field

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from app.errors import BadRequest, StillCollecting
from app.format import bytes_text
from app.living import living_entry
from app.page import Crumb, Page, ProblemLine
from app.queries import catalog
from app.render import render
from app.uploads import Uploads
from collector.errors import StoreError
from collector.store.stores import UNFINISHED, TraceStore

__all__ = ["CollectingPage", "install"]

RELOAD_SECONDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectingPage(Page):
    """Progress of one trace."""

    entry: catalog.EntryRow
    problems: tuple[ProblemLine, ...]
    cancel_href: str = field(default="", metadata={"json": False})
    reload_seconds: int | None


def install(app: FastAPI) -> None:
    """Answer with progress where a trace is asked for that is not complete."""
    app.add_exception_handler(StillCollecting, _answer)


def _answer(request: Request, error: Exception) -> Response:
    assert isinstance(error, StillCollecting)
    folder: TraceStore = request.app.state.folder
    try:
        with folder.catalog().connect() as db:
            entry = catalog.entry(db, error.key)
            problems = tuple(catalog.problems(db, error.key))
    except StoreError as trouble:
        return PlainTextResponse(f"{trouble}\n", 503, {"Retry-After": str(RELOAD_SECONDS)})
    if entry is None:  # deleted in the meantime
        return PlainTextResponse(f"Trace {error.key} is no longer in this database.\n", 404)
    entry = living_entry(folder, entry)
    running = entry.state in UNFINISHED
    uploads: Uploads | None = request.app.state.uploads
    job = uploads.job_of_trace(error.key) if running and uploads is not None else None
    if running and entry.bytes_total:
        done = f"{bytes_text(entry.bytes_done or 0)} of {bytes_text(entry.bytes_total)}"
        sentence = f"This trace is being collected: {done} read. Its pages open when it is complete."
    elif running:
        sentence = "This trace is being collected. Its pages open when it is complete."
    else:
        sentence = f"Collecting this trace was interrupted{': ' + entry.message if entry.message else ''}. Collect the file again."
    page = CollectingPage(
        title=entry.name,
        sentence=sentence,
        crumbs=(Crumb("traces", request.app.state.urls("traces")),),
        entry=entry,
        problems=problems,
        cancel_href=request.app.state.urls("cancel_upload", upload=job.id) if job is not None else "",
        reload_seconds=RELOAD_SECONDS if running else None,
    )
    headers = {"Retry-After": str(RELOAD_SECONDS)} if running else {}
    is_overview = request.url.path.rstrip("/").endswith(f"/t/{error.key}")
    try:
        return render(request, "collecting.html", page, status_code=200 if is_overview else 503, headers=headers, reads_query=False)
    except BadRequest as refused:  # the form, which this page does not come in
        return PlainTextResponse(f"{sentence} {refused}\n", 503, headers)
