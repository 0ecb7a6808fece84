"""The overview of a trace: what was recorded, what is worth a look, what this trace can answer."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.page import Page
from app.render import render

__all__ = ["OverviewPage", "router"]

router = APIRouter()


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewPage(Page):
    """What one trace is about."""


@router.get("/t/{trace_key}", name="overview", summary="Overview of a trace", response_class=HTMLResponse)
def overview(request: Request, trace: ReadTrace) -> Response:
    """What was recorded, and what is worth a look."""
    return render(request, "overview.html", OverviewPage(title="Overview", sentence="x", trace=trace.head, crumbs=trace.crumbs()[:1]))
