"""Sending a trace from the browser: the form on the start page, the upload itself, its progress, cancelling it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from urllib.parse import unquote

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from app.access import MAY_WRITE
from app.errors import BadRequest, NotFound
from app.format import bytes_text
from app.forms import TOKEN_FIELD, TOKEN_HEADER, PostedForm, check_origin, has_token
from app.multipart import BadForm, FileForm, boundary_of
from app.page import Crumb, Page, ProblemLine
from app.queries import catalog
from app.render import render, wanted_form
from app.uploads import Busy, Job, NoSpace, Spool, TooLarge, UploadError, Uploads
from collector.errors import StoreError
from collector.store.stores import TraceStore

__all__ = ["SWITCHED_OFF", "FailedUpload", "UploadPage", "UploadPart", "pieces_of", "router", "status_of", "upload_part", "uploads_of"]

router = APIRouter()

RELOAD_SECONDS = 1
PIECE_BYTES = 1 << 20
IDLE_SECONDS = 60.0
SLOWEST_BYTES = 16 << 10
"""Bytes a second that a file must bring on average: nobody may hold one of the few places by sending a byte now and then."""

_now = time.monotonic
SWITCHED_OFF = "Uploads are switched off on this server. Collect the file where the server runs: sockscope collect FILE.etl"
_STALE = "This form was older than the server or came without its cookie. Load the start page again and send the file from there."
_STATUS = {Busy: 503, TooLarge: 413, NoSpace: 507}


@dataclass(frozen=True, slots=True)
class FailedUpload:
    """A file that was sent and could not be collected."""

    name: str
    key: str
    size_bytes: int
    message: str


@dataclass(frozen=True, slots=True)
class UploadPart:
    """The form on the start page; `is_busy` when another file would be refused now. `failed` are files of which nothing else is left."""

    limit_bytes: int
    is_busy: bool
    failed: tuple[FailedUpload, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPage(Page):
    """How far an upload is: `collecting`, `complete`, `failed` or `cancelled`."""

    id: str
    key: str
    state: str
    message: str
    size_bytes: int
    bytes_done: int | None
    bytes_total: int | None
    records: int | None
    problems: tuple[ProblemLine, ...]
    is_cancelling: bool
    href: str
    reload_seconds: int | None = field(metadata={"json": False})


def uploads_of(request: Request) -> Uploads | None:
    """The uploads of this server, None where they are switched off."""
    uploads: Uploads | None = request.app.state.uploads
    return uploads


def status_of(error: UploadError) -> int:
    """The status of an answer that refuses a file."""
    return _STATUS.get(type(error), 400)


def upload_part(request: Request, is_known: Callable[[str], bool]) -> UploadPart | None:
    """What the start page shows of uploads beside the traces of the database; `is_known` says whether a key is that of one.

    None where they are switched off, and for those who may only look.
    """
    uploads = uploads_of(request) if request.scope.get(MAY_WRITE, True) else None
    if uploads is None:
        return None
    failed = {job.key: FailedUpload(job.name, job.key, job.size_bytes, job.message) for job in uploads.failed() if not is_known(job.key)}
    return UploadPart(uploads.limit_bytes, uploads.is_busy, tuple(failed.values()))


@router.post("/uploads", name="upload", summary="Send a trace", response_class=HTMLResponse)
async def upload(request: Request) -> Response:
    """Take an .etl file, or a package with one or more inside, and collect it.

    Its bytes are the body as `application/octet-stream`, with its name in `X-File-Name` (percent-encoded) and the form's token in
    `X-Form-Token`; or a plain form sends it with the token before it. The answer leads to the page with its progress.
    """
    uploads = uploads_of(request)
    if uploads is None:
        raise HTTPException(403, SWITCHED_OFF)
    check_origin(request)
    try:
        with uploads.arriving(_declared(request)) as spool:
            name = await _receive(request, spool)
            job = await run_in_threadpool(uploads.collect, spool, name)
    except UploadError as error:
        raise HTTPException(status_of(error), str(error)) from error
    except BadForm as error:
        raise BadRequest(str(error)) from error
    except (ClientDisconnect, TimeoutError) as error:
        raise HTTPException(408, "The file did not arrive in full, so nothing was kept. Send it again.") from error
    href = request.app.state.urls("upload_progress", upload=job.id)
    if wanted_form(request) == "json":
        return JSONResponse({"id": job.id, "key": job.key, "href": href}, 201, {"Location": href})
    return RedirectResponse(href, 303)


@router.get("/uploads/{upload}", name="upload_progress", summary="Progress of an upload", response_class=HTMLResponse)
def upload_progress(request: Request, upload: str) -> Response:
    """How far a trace that was sent is collected; leads to the trace when it is complete."""
    job = _job(request, upload)
    urls = request.app.state.urls
    href = urls("overview", trace_key=job.trace_key)
    state = job.state  # read once, and before the message: another thread ends the job
    if state == "complete" and wanted_form(request) == "html":
        return RedirectResponse(href, 303)
    running = state == "collecting"
    uploads = uploads_of(request)
    if running and uploads is not None and not job.inner_key:
        uploads.find_trace(job)
    entry, problems = _known(request, job) if running else (None, ())
    page = UploadPage(
        title=job.name,
        sentence=_sentence(job, state, entry),
        crumbs=(Crumb("traces", urls("traces")),),
        id=job.id,
        key=job.key if state == "failed" else job.trace_key,
        state=state,
        message="" if running else job.message,
        size_bytes=job.size_bytes,
        bytes_done=entry.bytes_done if entry is not None else None,
        bytes_total=entry.bytes_total if entry is not None else None,
        records=entry.records if entry is not None else None,
        problems=problems,
        is_cancelling=running and job.is_cancelled,
        href=href,
        reload_seconds=RELOAD_SECONDS if running else None,
    )
    return render(request, "upload.html", page)


@router.post("/uploads/{upload}/cancel", name="cancel_upload", summary="Cancel an upload", response_class=HTMLResponse)
def cancel_upload(request: Request, upload: str, form: PostedForm) -> Response:
    """Stop collecting a trace that was sent; the form's token must come with it."""
    job = _job(request, upload)
    if not has_token(request, form.get(TOKEN_FIELD, "")):
        raise HTTPException(403, "This form was older than the server or came without its cookie. Load its page again and cancel there.")
    uploads = uploads_of(request)
    assert uploads is not None  # there is a job
    uploads.cancel(job)
    return RedirectResponse(request.app.state.urls("upload_progress", upload=job.id), 303)


@router.post("/uploads/dismiss", name="dismiss_upload", summary="Dismiss an upload that failed", response_class=HTMLResponse)
def dismiss_upload(request: Request, form: PostedForm) -> Response:
    """Forget a trace (`trace`, its key) whose collecting failed or was interrupted; the form's token must come with it."""
    uploads = uploads_of(request)
    if uploads is None:
        raise HTTPException(403, SWITCHED_OFF)
    if not has_token(request, form.get(TOKEN_FIELD, "")):
        raise HTTPException(
            403, "This form was older than the server or came without its cookie. Load its page again and dismiss it there."
        )
    key = form.get("trace", "")
    folder: TraceStore = request.app.state.folder
    entry = None
    if folder.has_catalog():
        with folder.catalog().connect() as db:
            entry = catalog.entry(db, key)
    if not any(job.key == key for job in uploads.failed()) and (entry is None or entry.state != "interrupted"):
        raise NotFound("There is nothing to dismiss: no trace of this key failed, or it was dismissed already.")
    uploads.dismiss(key)
    return RedirectResponse(request.app.state.urls("traces"), 303)


def _job(request: Request, name: str) -> Job:
    uploads = uploads_of(request)
    job = uploads.job(name) if uploads is not None else None
    if job is None:
        raise NotFound("This server knows no such upload; it may have been started since. See the list of traces.")
    return job


def _known(request: Request, job: Job) -> tuple[catalog.EntryRow | None, tuple[ProblemLine, ...]]:
    """What the catalog says of a trace that is being collected; nothing before the collector has begun, or while nobody can read it."""
    folder: TraceStore = request.app.state.folder
    if not folder.has_catalog():
        return None, ()
    try:
        with folder.catalog().connect() as db:
            entry = catalog.entry(db, job.trace_key)
            if entry is None or entry.state != "collecting":  # that of an older collection of the same file
                return None, ()
            return entry, tuple(catalog.problems(db, job.trace_key))
    except StoreError:
        return None, ()


def _declared(request: Request) -> int | None:
    text = request.headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


async def _receive(request: Request, spool: Spool) -> str:
    """Write the body's file to the disk as it arrives; returns its name. Raises HTTPException 403, 415; UploadError, BadForm."""
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() == "application/octet-stream":
        if not has_token(request, request.headers.get(TOKEN_HEADER, "")):
            raise HTTPException(403, _STALE)
        async for piece in pieces_of(request):
            await run_in_threadpool(spool.write, piece)
        return unquote(request.headers.get("x-file-name", ""))
    if kind.partition(";")[0].strip().lower() != "multipart/form-data":
        raise HTTPException(415, "Send the file as application/octet-stream, or with the form of the start page.")
    form = FileForm(boundary_of(kind))
    async for piece in pieces_of(request):
        for found in form.feed(piece):
            if not has_token(request, form.fields.get(TOKEN_FIELD, "")):
                raise HTTPException(403, _STALE)
            await run_in_threadpool(spool.write, found)
    if not form.is_complete:
        raise BadForm("The form ends in the middle, so nothing was kept. Send it again.")
    return form.file_name or ""


async def pieces_of(request: Request) -> AsyncIterator[bytes]:
    """The body in pieces of a megabyte. Raises TimeoutError when the sender is silent or too slow, ClientDisconnect when it is gone."""
    stream = request.stream()
    gathered = bytearray()
    began, arrived = _now(), 0
    while True:
        piece = await asyncio.wait_for(anext(stream, None), IDLE_SECONDS)
        if piece is not None:
            gathered += piece
            arrived += len(piece)
            if _now() - began > IDLE_SECONDS + arrived / SLOWEST_BYTES:
                raise TimeoutError
        if gathered and (piece is None or len(gathered) >= PIECE_BYTES):
            yield bytes(gathered)
            gathered.clear()
        if piece is None:
            return


def _sentence(job: Job, state: str, entry: catalog.EntryRow | None) -> str:
    if state == "failed" and job.inner_key:
        return "Not all of this package could be collected. What could is in the list of traces."
    if state == "failed":
        return "This file could not be collected. Nothing of it was kept."
    if state == "cancelled":
        return "Cancelled. Nothing was stored, and the file that was sent is deleted."
    if state == "complete":
        return "This trace is complete."
    if job.is_cancelled:
        return "The collector is asked to stop."
    if entry is None or not entry.bytes_total:
        return f"{bytes_text(job.size_bytes)} have arrived; the collector is starting."
    return f"This trace is being collected: {bytes_text(entry.bytes_done or 0)} of {bytes_text(entry.bytes_total)} read."
