"""A page as one file that needs no server: its words, tables and pictures, and nothing that asks for anything.

What the page's template says is taken over element by element; links, forms and scripts stay behind. Only elements and attributes that
are named here come through, so whatever a trace says is text here as well.
"""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html.parser import HTMLParser

from markupsafe import Markup, escape

from app.assets import static_folder
from app.charts.drawing import drawing
from app.charts.figure import Figure
from app.format import bytes_text, iso_utc
from app.page import Page, TraceHead
from collector.plain import visible_text

__all__ = ["MOST_BYTES", "Drawings", "report", "report_policy"]

WIDE_PIXELS, SLIM_PIXELS = 1100, 380
MOST_BYTES = 4 << 20
"""Of all but pictures and styles: rows and notes beyond it stay behind, and the head says how many."""

_VOID = frozenset({"br", "hr", "wbr", "col", "input", "link", "meta", "img", "source", "embed", "base", "area", "track"})
_KEPT = frozenset({
    "main", "aside", "section", "div", "h1", "h2", "h3", "h4", "p", "span", "strong", "em", "b", "code", "pre", "bdi", "abbr", "mark",
    "ul", "ol", "li", "dl", "dt", "dd", "figure", "figcaption", "table", "caption", "thead", "tbody", "tr", "th", "td", "details",
    "summary", "br", "hr", "wbr",
})  # fmt: skip
_UNWRAPPED = frozenset({"a", "label"})
_REPEATED = frozenset({"tr", "li"})
_LEFT_CLASSES = frozenset({"skip", "top", "view", "ways", "steps", "filters", "note-new", "note-delete", "live", "evidence"})
_WITHOUT_LINKS = frozenset({"pager", "empty", "trust"})
"""What says where to go on; there is nowhere to go from a file."""
_ATTRIBUTES = frozenset({"class", "id", "title", "role", "scope", "data-label", "colspan", "rowspan", "open", "dir", "lang"})

_STYLES = """
.drawing { display: block; width: 100%; height: auto; font-family: var(--sans); }
.drawing.slim { display: none; }
.report-head { padding: 0.5rem var(--pad); border-bottom: 1px solid var(--line); color: var(--quiet); overflow-wrap: anywhere; }
.report-head p { margin: 0; }
@media (max-width: 640px) { .drawing.wide { display: none; } .drawing.slim { display: block; } }
"""


class Drawings:
    """The pictures of a report: a template leaves a place for each, which the report fills."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def place(self, figure: Figure, name: str, words: str) -> Markup:
        """The place of a picture, once for wide and once for small screens."""
        sizes = (("wide", WIDE_PIXELS), ("slim", SLIM_PIXELS))
        self.made.append("".join(drawing(figure, f"{name}-{size}", words, width=width, kind=size) for size, width in sizes))
        return Markup('<div data-drawing="{}"></div>').format(len(self.made) - 1)


def report(html: str, page: Page, drawings: Drawings, link: str) -> str:
    """The document. `html` is the page as a template made it with these drawings, `link` its place in a dashboard."""
    filtered = _Kept(drawings.made)
    filtered.feed(html)
    filtered.close()
    assert page.trace is not None
    title = f"{page.title} – {page.trace.name} – sockscope report"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(report_policy())}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(visible_text(title))}</title>\n<style>{_styles()}</style>\n</head>\n<body>\n"
        f"{_head(page.trace, link, filtered.left_out)}\n{''.join(filtered.parts)}\n</body>\n</html>\n"
    )


def report_policy() -> str:
    """What a browser may do for a report: show it, in our style, and ask for nothing."""
    digest = b64encode(sha256(_styles().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'none'; base-uri 'none'"


def _head(trace: TraceHead, link: str, left_out: int) -> str:
    most = f"<p>Rows and notes that are left out, as a report has at most {bytes_text(MOST_BYTES)} of them: {left_out:,}.</p>"
    began = f", recorded from {iso_utc(trace.start_utc)}" if trace.start_utc else ""
    return (
        '<header class="report-head"><p><strong>sockscope</strong> report of '
        f"<bdi>{escape(visible_text(trace.name))}</bdi> <code>{escape(trace.key)}</code>{escape(began)}. "
        f"In a dashboard that has this trace, this is <code>{escape(visible_text(link))}</code>.</p>{most if left_out else ''}</header>"
    )


@cache
def _styles() -> str:
    """Our style sheets in one, without their comments."""
    files = [static_folder() / "css" / name for name in ("sockscope.css", "charts.css")]
    text = "".join(file.read_text(encoding="utf-8") for file in files) + _STYLES
    return re.sub(r"/\*.*?\*/\s*", "", text, flags=re.DOTALL)


class _Kept(HTMLParser):
    """Takes over what a report has of a page."""

    def __init__(self, drawings: list[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.left_out = 0
        self._size = 0
        self._drawings = drawings
        self._open: list[tuple[str, bool]] = []  # elements with whether their tags are written
        self._left = 0  # depth below the element that stays behind
        self._without_links = 0
        self._in_body = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        classes = set((given.get("class") or "").split())
        if tag == "body":
            self._in_body = True
            return
        if not self._in_body:
            return
        if self._left:
            self._left += tag not in _VOID
            return
        place = given.get("data-drawing")
        if place is not None:
            self.parts.append(self._drawings[int(place)])
        is_too_much = tag in _REPEATED and self._size > MOST_BYTES
        self.left_out += is_too_much
        stays_behind = is_too_much or tag not in _KEPT | _UNWRAPPED or classes & _LEFT_CLASSES or (tag == "a" and self._without_links)
        if stays_behind:
            self._left = int(tag not in _VOID)
            return
        is_written = tag in _KEPT
        if is_written:
            kept = "".join(
                f" {name}" if value is None else f' {name}="{escape(value)}"'
                for name, value in attrs
                if name in _ATTRIBUTES or name.startswith("aria-")
            )
            self._take(f"<{tag}{kept}>")
        if tag not in _VOID:
            self._open.append((tag, is_written))
            self._without_links += bool(self._without_links or classes & _WITHOUT_LINKS)

    def handle_endtag(self, tag: str) -> None:
        if not self._in_body or tag in _VOID or tag == "body":
            return
        if self._left:
            self._left -= 1
            return
        if not self._open:
            return
        opened, is_written = self._open.pop()
        assert opened == tag, f"<{opened}> ends as </{tag}>: a template of ours does not close what it opens"
        self._without_links -= bool(self._without_links)
        if is_written:
            self._take(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self._in_body and not self._left:
            self._take(str(escape(data)))

    def _take(self, part: str) -> None:
        self.parts.append(part)
        self._size += len(part.encode("utf-8", "replace"))
