"""Help and the description of the API."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, HTMLResponse, Response

from app.errors import NotFound
from app.glossary import TERMS
from app.manual import PAGES, manual_html, picture_file
from app.page import Crumb, Page
from app.recording import ALL_SOCKETS, HEAP, KERNEL, Command
from app.render import render

__all__ = ["DocsPage", "Endpoint", "HelpPage", "ManualPage", "Parameter", "router"]

router = APIRouter()


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpPage(Page):
    """Words and recording commands."""

    terms: dict[str, str]
    commands: tuple[Command, ...]
    manual: tuple[Crumb, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualPage(Page):
    """One page of the documentation."""

    html: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a path or query."""

    name: str
    place: str
    description: str
    allowed: tuple[str, ...]
    example: str | None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One page of the API."""

    path: str
    summary: str
    description: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocsPage(Page):
    """All pages of the API."""

    endpoints: tuple[Endpoint, ...]


@router.get("/help", name="help", summary="Help", response_class=HTMLResponse)
def help_page(request: Request) -> Response:
    """What the words mean, and how to record a trace."""
    page = HelpPage(
        title="Help",
        sentence="What the words on the pages mean, and how to record a trace.",
        crumbs=(Crumb("traces", request.app.state.urls("traces")),),
        terms=TERMS,
        commands=(ALL_SOCKETS, HEAP, KERNEL),
        manual=tuple(Crumb(title, request.app.state.urls("manual", name=name)) for name, title in PAGES.items()),
    )
    return render(request, "help.html", page)


@router.get("/help/{name}", name="manual", summary="A page of the documentation", response_class=HTMLResponse)
def manual(request: Request, name: str) -> Response:
    """One page of the documentation."""
    urls = request.app.state.urls
    try:
        html = manual_html(name)
    except (KeyError, FileNotFoundError) as error:
        raise NotFound(f"There is no page {name} in the help.", ways=(Crumb("help", urls("help")),)) from error
    page = ManualPage(
        title=PAGES[name],
        sentence="A page of the documentation that came with this version.",
        crumbs=(Crumb("traces", urls("traces")), Crumb("help", urls("help"))),
        html=html,
    )
    return render(request, "manual.html", page)


@router.get("/help/screenshots/{name}", name="picture", include_in_schema=False)
def picture(request: Request, name: str) -> Response:
    """A picture of the documentation."""
    try:
        path = picture_file(name)
    except FileNotFoundError as error:
        raise NotFound(f"There is no picture {name} in the help.", ways=(Crumb("help", request.app.state.urls("help")),)) from error
    return FileResponse(path, media_type="image/png", headers={"Cache-Control": "max-age=3600"})


@router.get("/docs", name="docs", summary="The API", response_class=HTMLResponse)
def docs(request: Request) -> Response:
    """Every page is also JSON, every table also CSV; this page lists them with their parameters."""
    described = request.app.openapi()["paths"]
    endpoints = tuple(_endpoint(path, methods["get"]) for path, methods in described.items() if "get" in methods)
    page = DocsPage(
        title="API",
        sentence="Every page is also JSON with ?format=json, and every table CSV with ?format=csv.",
        crumbs=(Crumb("traces", request.app.state.urls("traces")),),
        endpoints=endpoints,
    )
    return render(request, "docs.html", page)


def _endpoint(path: str, described: dict[str, Any]) -> Endpoint:  # Any: OpenAPI
    return Endpoint(
        path,
        described.get("summary", ""),
        described.get("description", ""),
        tuple(
            Parameter(
                one["name"],
                one["in"],
                one.get("description", ""),
                tuple(str(value) for value in one.get("schema", {}).get("enum", ())),
                one.get("example"),
            )
            for one in described.get("parameters", ())
        ),
    )
