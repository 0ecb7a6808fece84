"""The stream of events behind the pages of a trace that is still being recorded."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from app.deps import LIVE_PREFIX, TraceKey
from app.errors import NotFound
from app.growth import Streams, growth_events
from app.queries import catalog
from collector.errors import StoreError
from collector.store.stores import TraceStore

__all__ = ["router"]

router = APIRouter()

Since = Annotated[
    str,
    Query(
        description="The version that a page shows, as `grown` or the page names it.",
        max_length=64,
        json_schema_extra={"example": "2f1a-18c0"},
    ),
]


@router.get("/live/{trace_key}", name="growth", summary="How a trace grows", response_class=StreamingResponse)
async def growth(request: Request, trace_key: TraceKey, since: Since = "") -> Response:
    """Server-sent events: `grown` when there is more than the page of version `since` shows, `ended` when no more comes."""
    folder: TraceStore = request.app.state.folder
    streams: Streams = request.app.state.streams
    key = trace_key.lower()
    if not key.startswith(LIVE_PREFIX) or not all(c.isascii() and (c.isalnum() or c in "-_") for c in key):
        raise NotFound(f"{key} is not the key of a trace that is being recorded.")

    async def became() -> str | None:
        return await run_in_threadpool(_became, folder, key)

    if streams.is_full:
        raise HTTPException(503, "This server tells as many pages as it can. Load the page again by its link.", {"Retry-After": "30"})
    events = growth_events(folder, key, since, streams, became)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # a proxy in front must hand each event on at once
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def _became(folder: TraceStore, key: str) -> str | None:
    """The trace that a followed one has become; the first of several."""
    try:
        with folder.catalog().connect() as db:
            found = catalog.became(db, key)
    except StoreError:
        return None
    return found[0].key if found else None
