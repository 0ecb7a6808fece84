"""Puts the server together: routers, static files, error pages, safety."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import Depends, FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app import errors, render
from app.access import TokenCheck
from app.arrivals import Arrivals
from app.asked import note_what_is_asked
from app.assets import plotly_script, static_folder
from app.busy import RequestLimit
from app.clockface import ClockFaces
from app.forms import FormTokens
from app.growth import Streams
from app.kept import KeptAnswers
from app.observing import Observed, Observer, note_in_log
from app.proxy import BasePath, Forwarded, networks_of
from app.safety import HostCheck, SafeHeaders
from app.settings import Settings, SettingsError
from app.transfer import Compressed, HeadRequests
from app.turns import Turns
from app.uploads import Uploads
from app.urls import Urls
from app.views import (
    aborts,
    addresses,
    all_findings,
    allocation_page,
    allocations,
    answers,
    around,
    collecting,
    compare_traces,
    drops,
    events,
    failures,
    frees,
    heap,
    heap_compare,
    heap_flame,
    heap_growth,
    heaps,
    help,
    labels,
    listeners,
    live,
    memory_conflicts,
    notes,
    operations,
    overlaps,
    overview,
    polls,
    ports,
    processes,
    search,
    sending,
    sends,
    small_receives,
    socket_page,
    sockets,
    stacks,
    stalls,
    traces,
    trust,
    uploads,
)

# The routers, in the order in which their pages are found in the navigation. A new view is a line here and a line in ROUTERS.
from app.views.described import DescribedApi
from collector.store.engine import TraceFolder
from collector.store.stores import open_store

__all__ = ["ROUTERS", "create_app"]

ROUTERS = (
    traces.router,
    all_findings.router,
    compare_traces.router,
    uploads.router,
    sending.router,
    search.router,
    help.router,
    overview.router,
    labels.router,
    answers.router,
    notes.router,
    trust.router,
    processes.router,
    events.router,
    around.router,
    sockets.router,
    socket_page.router,
    operations.router,
    failures.router,
    aborts.router,
    sends.router,
    stalls.router,
    overlaps.router,
    frees.router,
    memory_conflicts.router,
    listeners.router,
    ports.router,
    drops.router,
    small_receives.router,
    polls.router,
    allocation_page.router,  # before heap: its link is a heap's with an address behind it
    heap_flame.router,
    heap_compare.router,
    heap_growth.router,
    heap.router,
    heaps.router,
    live.router,
    allocations.router,
    stacks.router,
    addresses.router,
)

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class PageSettings:
    """What templates may know of the settings."""

    has_plotly: bool


class KeptFiles(StaticFiles):
    """Static files that a browser keeps: for good when the link has their version, else for a minute."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        versioned = b"v=" in scope["query_string"]
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if versioned else "public, max-age=60"
        return response


@asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    """Collectors of uploads end with the server, and so do connections to the database."""
    yield
    app.state.folder.close()
    if app.state.uploads is not None:
        await run_in_threadpool(app.state.uploads.close)


def _own_places(app: FastAPI) -> set[str]:
    """The first parts of the paths of all pages, such as `/t`."""
    routes = [*app.routes, *(route for router in ROUTERS for route in router.routes)]
    paths = {path for route in routes if (path := getattr(route, "path", ""))}
    return {f"/{path.split('/')[1]}" for path in paths if path.startswith("/") and path != "/"}


def _names_of_pages(app: FastAPI) -> frozenset[str]:
    """What tells pages apart: the second part of a path, below a trace's the fourth."""
    paths = [path.split("/") for route in (*app.routes, *(route for router in ROUTERS for route in router.routes))
             if (path := getattr(route, "path", "")).startswith("/")]  # fmt: skip
    parts = {path[3] if path[1] == "t" and len(path) > 3 else path[1] for path in paths}
    return frozenset(part for part in parts if part and not part.startswith("{")) | {"static"}


def create_app(settings: Settings) -> FastAPI:
    """The server for one folder of traces, or for those of a database server. Raises SettingsError, StoreError for what cannot be named."""
    settings.check()
    app = DescribedApi(
        title="sockscope", description="Socket and heap traces of Windows programs.", docs_url=None, redoc_url=None, lifespan=_life
    )
    app.state.settings = settings
    folder = app.state.folder = open_store(settings.database, limit_seconds=settings.query_seconds)
    app.state.form_tokens = FormTokens(settings.secret)
    app.state.uploads = None
    if settings.takes_uploads and isinstance(folder, TraceFolder):  # on a database server the dashboard's role writes no traces
        app.state.uploads = Uploads(folder, limit_bytes=settings.upload_bytes)
    app.state.arrivals = Arrivals(app.state.uploads) if app.state.uploads is not None else None
    app.state.streams = Streams()
    app.state.urls = Urls(app, settings.base_path)
    app.state.templates = render.environment()
    script = plotly_script()
    app.state.page_settings = PageSettings(has_plotly=script is not None)
    for router in ROUTERS:
        app.include_router(router, dependencies=[Depends(note_what_is_asked)], responses=errors.ANSWERS)

    if script is not None:
        plotly = script

        @app.get("/static/vendor/plotly.min.js", include_in_schema=False)
        def plotly_js(request: Request) -> Response:
            return FileResponse(plotly, media_type="text/javascript", headers={"Cache-Control": "public, max-age=86400"})

    observers: list[Observer] = [note_in_log] if settings.logs_requests else []
    if settings.has_metrics:
        from app.metrics import Metrics  # prometheus-client is an extra

        metrics = Metrics(app.state.folder, _names_of_pages(app))
        app.add_api_route("/metrics", metrics.answer, include_in_schema=False)
        observers.append(metrics.take)
    app.mount("/static", KeptFiles(directory=static_folder()), name="static")
    errors.install(app, render.render)
    collecting.install(app)
    app.add_middleware(Turns)
    app.add_middleware(KeptAnswers, folder=app.state.folder, secret=settings.secret)
    app.add_middleware(Compressed)
    if settings.token is not None:
        app.add_middleware(TokenCheck, token=settings.token, view_token=settings.view_token, base_path=settings.base_path)
    app.add_middleware(HostCheck, hosts=(*LOCAL_HOSTS, settings.host, *settings.allowed_hosts))
    app.add_middleware(ClockFaces)
    if settings.base_path:
        if any(settings.base_path == own or settings.base_path.startswith(f"{own}/") for own in _own_places(app)):
            raise SettingsError(f"{settings.base_path}: pages of this server have this path themselves. Choose another base path.")
        app.add_middleware(BasePath, base_path=settings.base_path)
    if settings.trusted_proxies:
        app.add_middleware(Forwarded, trusted=networks_of(settings.trusted_proxies))
    app.add_middleware(RequestLimit)
    if observers:
        app.add_middleware(Observed, observers=observers)
    app.add_middleware(SafeHeaders)
    app.add_middleware(HeadRequests)
    return app
