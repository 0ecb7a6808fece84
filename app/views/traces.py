"""The start page: the traces of this database."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import Catalog
from app.format import plural
from app.living import living_entry
from app.page import Page
from app.queries import catalog
from app.render import render
from app.views.uploads import UploadPart, upload_part
from collector.store.engine import TraceFolder

__all__ = ["TracesPage", "router"]

router = APIRouter()


@dataclass(frozen=True, slots=True, kw_only=True)
class TracesPage(Page):
    """All traces, the one collected last first. `missing` are the keys of complete ones whose file is gone."""

    traces: tuple[catalog.EntryRow, ...]
    missing: tuple[str, ...]
    upload: UploadPart | None


@router.get("/", name="traces", summary="Traces", response_class=HTMLResponse)
def traces(request: Request, db: Catalog) -> Response:
    """The traces of this database with their state, problems and findings."""
    folder: TraceFolder = request.app.state.folder
    rows = [living_entry(folder, row) for row in (catalog.entries(db) if db is not None else [])]
    sentence = f"{plural(len(rows), 'trace')} in this database, the one collected last first." if rows else "No trace was collected yet."
    missing = tuple(row.key for row in rows if row.state == "complete" and not folder.has_trace(row.key))
    part = upload_part(request, {row.key for row in rows})
    page = TracesPage(title="Traces", sentence=sentence, traces=tuple(rows), missing=missing, upload=part)
    return render(request, "traces.html", page)


@router.get("/healthz", name="healthz", summary="Whether the server answers", response_class=Response)
def healthz(request: Request) -> Response:
    """`ok` while the server runs; says nothing about the traces."""
    return Response("ok\n", media_type="text/plain")
