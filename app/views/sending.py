"""Sending a trace from a program, in pieces: what is there of a file, and more of it. `sockscope send` speaks this."""

import re
from typing import Annotated
from urllib.parse import unquote

from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from app.arrivals import PIECE_BYTES, Arrivals, OtherContent, WrongPlace
from app.errors import BadRequest
from app.forms import check_origin
from app.uploads import UploadError, Uploads
from app.views.uploads import SWITCHED_OFF, pieces_of, status_of, uploads_of
from collector.store.stores import TraceStore

__all__ = ["router"]

router = APIRouter()

KEY_DIGITS = 12
_DIGEST = re.compile(r"[0-9a-f]{64}")

Digest = Annotated[str, Path(description="SHA-256 of the file's bytes, 64 hex digits.", max_length=64)]


@router.get("/uploads/files/{digest}", name="sent_file", summary="What is there of a file", response_class=JSONResponse)
def sent_file(request: Request, digest: Digest) -> Response:
    """`absent`, `arriving` with the number of bytes that are there, `collecting`, `complete`, `failed` with the reason, or `cancelled`."""
    uploads, arrivals = _open(request, digest)
    folder: TraceStore = request.app.state.folder
    key = digest[:KEY_DIGITS]
    urls = request.app.state.urls
    said: dict[str, object] = {"key": key, "offset": arrivals.offset(digest) or 0, "piece_bytes": PIECE_BYTES}
    said["limit_bytes"] = uploads.limit_bytes
    job = uploads.job_of_trace(key)
    done = uploads.complete(key)
    ended = uploads.ended_early(key)
    if job is not None:
        said |= {"state": "collecting", "href": urls("upload_progress", upload=job.id)}
    elif folder.is_being_collected(key):  # by a collector that outlived its server, or at a command line
        said |= {"state": "collecting", "href": urls("overview", trace_key=key)}
    elif arrivals.offset(digest) is not None:
        said["state"] = "arriving"
    elif folder.has_trace(key):
        said |= {"state": "complete", "href": urls("overview", trace_key=key)}
    elif done is not None and folder.has_trace(done.trace_key):  # a package: its trace has a key of its own
        said |= {"state": "complete", "key": done.trace_key, "href": urls("overview", trace_key=done.trace_key)}
    elif ended is not None:
        said |= {"state": ended.state, "message": ended.message}
    else:
        said["state"] = "absent"
    return JSONResponse(said, headers={"Cache-Control": "no-store"})


@router.patch("/uploads/files/{digest}", name="send_piece", summary="Send a piece of a file", response_class=JSONResponse)
async def send_piece(request: Request, digest: Digest) -> Response:
    """Append the body (`application/octet-stream`) to a file, and collect the file when it is whole.

    `Upload-Offset` is where the piece begins, `Upload-Length` the size of the whole file, `X-File-Name` its name, percent-encoded. What has
    arrived of a piece stays when the connection breaks. 409 says in `offset` where to go on.
    """
    check_origin(request)  # and no page of another site can send PATCH, or these headers, without being let
    _, arrivals = _open(request, digest)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/octet-stream":
        raise HTTPException(415, "Send the piece as application/octet-stream.")
    offset, size = _number(request, "upload-offset"), _number(request, "upload-length")
    if size == 0:
        raise BadRequest("The file is empty.")
    name = unquote(request.headers.get("x-file-name", ""))
    try:
        with arrivals.opened(digest, size=size, name=name, offset=offset) as arrival:
            async for piece in pieces_of(request):
                await run_in_threadpool(arrival.write, piece)
            if not arrival.is_whole:
                return JSONResponse({"state": "arriving", "offset": arrival.offset})
            job = await run_in_threadpool(arrivals.collect, arrival)
    except WrongPlace as error:
        return JSONResponse({"sentence": str(error), "offset": error.offset}, 409)
    except OtherContent as error:
        return JSONResponse({"sentence": str(error), "offset": 0}, 422)
    except UploadError as error:
        status = status_of(error)
        raise HTTPException(status, str(error), {"Retry-After": "2"} if status == 503 else None) from error
    except (ClientDisconnect, TimeoutError) as error:
        raise HTTPException(408, "The piece did not arrive in full; what came of it is kept. Ask how much is there, and go on.") from error
    href = request.app.state.urls("upload_progress", upload=job.id)
    return JSONResponse({"state": "collecting", "key": job.key, "href": href, "offset": arrival.offset}, 201, {"Location": href})


def _open(request: Request, digest: str) -> tuple[Uploads, Arrivals]:
    """The uploads of this server. Raises HTTPException 403 where they are switched off, BadRequest for what is no digest."""
    uploads = uploads_of(request)
    if uploads is None:
        raise HTTPException(403, SWITCHED_OFF)
    if not _DIGEST.fullmatch(digest):
        raise BadRequest("A file is named by the SHA-256 of its bytes: 64 of the digits 0-9 and a-f.")
    arrivals: Arrivals = request.app.state.arrivals
    return uploads, arrivals


def _number(request: Request, header: str) -> int:
    text = request.headers.get(header, "")
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadRequest(f"The header {header.title()} must be a number of bytes.")
    return int(text)
