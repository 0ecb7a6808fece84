"""The pages of docs/ as they are shown under /help: Markdown whose raw HTML stays text."""

import re
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

from app.assets import manual_folder

__all__ = ["PAGES", "manual_html", "picture_file"]

PAGES = {
    "tour": "The main pages in pictures",
    "recording": "How to record a trace",
    "formats": "Files that can be collected, and what each of them lost",
    "windows-checklist": "Recording: what was proven, and what only Windows can show",
    "cli": "The command line",
    "api": "Traces in Python, as NumPy arrays",
    "events": "The events that are decoded",
    "schema": "The tables and views of a trace's file",
    "performance": "What collecting costs, and how fast pages answer",
    "reliability": "What was tried to break it",
    "architecture": "How it is built",
    "dependencies": "What it stands on",
    "licences": "Licences of what it stands on",
    "operating": "A server for a team",
    "scale": "A server for the traces, a fleet that collects",
    "safety": "Hostile traces, who may look, what a trace gives away",
}
"""Names of the pages in the order in which they are listed, with their titles."""


_PICTURE = re.compile(r"[a-z0-9-]{1,60}\.png")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@cache
def manual_html(name: str) -> str:
    """The page as HTML, safe to put into ours. Raises KeyError for no page, FileNotFoundError where docs are absent."""
    if name not in PAGES:
        raise KeyError(name)
    text = (manual_folder() / f"{name}.md").read_text("utf-8")
    body = _COMMENT.sub("", text).lstrip()
    body = body.partition("\n")[2] if body.startswith("# ") else body  # our page has a heading of its own
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(body)
    for token in tokens:
        token.attrs.pop("style", None)  # how a column is aligned: our pages allow no inline style
        for child in token.children or []:
            href = child.attrGet("href") if child.type == "link_open" else None
            if isinstance(href, str) and (stem := href.partition("#")[0].removesuffix(".md")) in PAGES:
                child.attrSet("href", href.replace(f"{stem}.md", stem, 1))
    rendered: str = parser.renderer.render(tokens, parser.options, {})
    return rendered


def picture_file(name: str) -> Path:
    """A picture of the documentation. Raises FileNotFoundError."""
    path = manual_folder() / "screenshots" / name
    if not _PICTURE.fullmatch(name) or not path.is_file():
        raise FileNotFoundError(name)
    return path
