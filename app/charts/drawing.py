"""A figure as a picture that needs no script: SVG of the few kinds of marks that our charts use, in the colours of the style sheet."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

from markupsafe import Markup, escape

from app.charts.drawing_axes import Scale, axes, scales
from app.charts.figure import Figure
from collector.plain import visible_text

__all__ = ["drawing"]

_PLACEHOLDER = re.compile(r"%\{customdata(?:\[(\d+)\])?\}")
_FIELD = re.compile(r"%\{")
_LETTER_PIXELS = 6.6
_DASHES = {"dash": "7 4", "dot": "2 3"}
# Half of a mark's size is 1; what ends in -open is an outline.
_SHAPES = {
    "circle": "M-1 0A1 1 0 1 0 1 0A1 1 0 1 0-1 0Z",
    "diamond": "M0-1.3L1.3 0L0 1.3L-1.3 0Z",
    "square": "M-1-1H1V1H-1Z",
    "triangle-left": "M-1 0L1-1.1V1.1Z",
    "triangle-right": "M1 0L-1-1.1V1.1Z",
    "triangle-down": "M0 1L-1.1-1H1.1Z",
    "x-thin": "M-1-1L1 1M-1 1L1-1",
    "line-ns": "M0-1.4V1.4",
}

Values = Mapping[str, Any]  # Any: plotly's JSON


def drawing(figure: Figure, name: str, words: str, *, width: int, kind: str) -> Markup:
    """The picture, `width` pixels wide before the page scales it.

    Args:
        name: names the picture's patterns, unlike any other on the page.
        words: what it shows, for those who do not see it.
        kind: its class besides `drawing`.
    """
    layout = figure["layout"]
    height = int(layout["height"])
    x, ys = scales(figure, width)
    parts = list(axes(layout, x, ys, width))
    patterns: dict[tuple[str, str], str] = {}
    before: Values = {}
    for trace in figure["data"]:
        y = ys[str(trace.get("yaxis", "y"))]
        canvas = _Canvas(name, f"{name}-{trace.get('yaxis', 'y')}", x, y, patterns)
        parts += _bars(trace, canvas) if trace["type"] == "bar" else _scatter(trace, before, canvas)
        before = trace
    defs = "".join(_definition(shape, colour, key) for (shape, colour), key in patterns.items())
    defs += "".join(_window(f"{name}-{axis}", x, y) for axis, y in ys.items())
    said = escape(visible_text(words))
    return Markup(
        f'<svg class="drawing {escape(kind)}" role="img" aria-label="{said}" viewBox="0 0 {width} {height}" font-size="12">'
        f"<defs>{defs}</defs>{''.join(parts)}</svg>"
    )


@dataclass(frozen=True, slots=True)
class _Canvas:
    """Where a trace is drawn."""

    name: str
    window: str
    """What cuts off lines that leave the plot."""
    x: Scale
    y: Scale
    patterns: dict[tuple[str, str], str]

    def pattern(self, shape: str, colour: str) -> str:
        """The name of a hatching."""
        return self.patterns.setdefault((shape, colour), f"{self.name}-p{len(self.patterns)}")


def _bars(trace: Values, canvas: _Canvas) -> Iterator[str]:
    """Bars that lie from a base to the right, or stand on zero."""
    x, y = canvas.x, canvas.y
    lies = trace.get("orientation") == "h"
    marker, said = trace["marker"], _words(trace)
    line, hatch = marker.get("line", {}), marker.get("pattern", {})
    for i, (at, to) in enumerate(zip(trace["x"], trace["y"], strict=True)):
        breadth = _of(trace["width"], i)
        if lies:
            base = trace["base"][i]
            left, right, top, bottom = x.at(base), x.at(base + at), y.at(to + breadth / 2), y.at(to - breadth / 2)
        else:
            left, right, top, bottom = x.at(at - breadth / 2), x.at(at + breadth / 2), y.at(max(to, 0)), y.at(min(to, 0))
        box = f'x="{left:.1f}" y="{top:.1f}" width="{max(right - left, 0.5):.1f}" height="{max(bottom - top, 0.5):.1f}"'
        fill, opacity = _of(marker["color"], i), _of(marker.get("opacity", 1), i)
        stroke = f' stroke="{_colour(line["color"])}" stroke-width="{line["width"]}"' if line.get("width") and "color" in line else ""
        title = f"<title>{escape(said[i])}</title>" if said[i] else ""
        yield f'<rect {box} fill="{_colour(fill)}" opacity="{opacity}"{stroke}>{title}</rect>'
        if shape := _of(hatch.get("shape", ""), i):
            colour = _of(hatch.get("fgcolor", "var(--quiet)"), i)
            yield f'<rect {box} fill="url(#{canvas.pattern(shape, colour)})" pointer-events="none"/>'
        text = str(_of(trace.get("text", ""), i) or "")
        if text and len(text) * _LETTER_PIXELS < right - left:
            yield _text(left + 4, (top + bottom) / 2 + 4, text, "var(--text)", 11)


def _scatter(trace: Values, before: Values, canvas: _Canvas) -> Iterator[str]:
    """Lines, what they enclose, marks and words."""
    x, y = canvas.x, canvas.y
    mode = trace.get("mode", "lines")
    if "lines" in mode:
        yield f'<g clip-path="url(#{canvas.window})">{"".join(_line(trace, before, canvas))}</g>'
    if "markers" in mode:
        yield from _marks(trace, x, y)
    if "text" in mode:
        font = trace.get("textfont", {})
        for i, text in enumerate(trace["text"]):
            place = str(_of(trace.get("textposition", "middle right"), i))
            is_left, lift = "left" in place, -6 if "top" in place else 4
            across = x.at(trace["x"][i]) + (-8 if is_left else 8)
            across_at = "end" if is_left else "start"
            yield _text(across, y.at(trace["y"][i]) + lift, text, str(font.get("color", "var(--text)")), 11, across_at)


def _line(trace: Values, before: Values, canvas: _Canvas) -> Iterator[str]:
    x, y = canvas.x, canvas.y
    line, fill = trace.get("line", {}), trace.get("fill")
    path = _path(trace, x, y, is_stepped=line.get("shape") == "hv")
    if fill == "toself":
        hatch = trace["fillpattern"]
        said = next((text for text in trace.get("text", ()) if text), "")
        fill = f"url(#{canvas.pattern(hatch['shape'], hatch['fgcolor'])})"
        yield f'<path d="{path}" fill="{fill}"><title>{escape(_unmarked(said))}</title></path>'
        return
    if fill == "tonexty" and before:
        back = _points(before, x, y, is_stepped=line.get("shape") == "hv")[::-1]
        enclosed = path + "".join(f"L{px:.1f} {py:.1f}" for px, py in back if px == px) + "Z"  # not a number: a gap
        yield f'<path d="{enclosed}" fill="{_colour(trace["fillcolor"])}"/>'
    if line.get("width", 1):
        dash = f' stroke-dasharray="{_DASHES[line["dash"]]}"' if line.get("dash") in _DASHES else ""
        colour = _colour(line.get("color", "var(--text)"))
        yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{line.get("width", 1)}"{dash}/>'


def _points(trace: Values, x: Scale, y: Scale, *, is_stepped: bool) -> list[tuple[float, float]]:
    """Pixels of a line's points, those of its steps among them; not-a-number between two pieces."""
    points: list[tuple[float, float]] = []
    for at, value in zip(trace["x"], trace["y"], strict=True):
        if at is None or value is None:
            points.append((float("nan"), float("nan")))
            continue
        here = (x.at(at), y.at(value))
        if is_stepped and points and points[-1][0] == points[-1][0] and points[-1] != here:
            points.append((here[0], points[-1][1]))
        points.append(here)
    return points


def _path(trace: Values, x: Scale, y: Scale, *, is_stepped: bool) -> str:
    letters, verb = [], "M"
    for px, py in _points(trace, x, y, is_stepped=is_stepped):
        if px != px:
            verb = "M"
            continue
        letters.append(f"{verb}{px:.1f} {py:.1f}")
        verb = "L"
    return "".join(letters)


def _marks(trace: Values, x: Scale, y: Scale) -> Iterator[str]:
    marker, said = trace["marker"], _words(trace)
    symbol = str(marker.get("symbol", "circle"))
    is_open = symbol.endswith("-open")
    shape = _SHAPES.get(symbol.removesuffix("-open"), _SHAPES["circle"])
    half = marker.get("size", 6) / 2
    hidden = ' opacity="0"' if marker.get("opacity") == 0 else ""
    for i, (at, value) in enumerate(zip(trace["x"], trace["y"], strict=True)):
        colour = _colour(_of(marker["color"], i))
        ink = f'fill="none" stroke="{colour}" stroke-width="{1.6 / half:.2f}"' if is_open else f'fill="{colour}"'
        title = f"<title>{escape(said[i])}</title>" if said[i] else ""
        yield f'<path transform="translate({x.at(at):.1f} {y.at(value):.1f}) scale({half:g})" d="{shape}" {ink}{hidden}>{title}</path>'


def _words(trace: Values) -> list[str]:
    """What is said of each mark where a pointer rests on it."""
    count = len(trace["x"])
    if trace.get("hoverinfo") == "skip":
        return [""] * count
    if "hovertext" in trace:
        return [_unmarked(str(text)) for text in trace["hovertext"]]
    template = str(trace.get("hovertemplate", "")).replace("<extra></extra>", "")
    data = trace.get("customdata")
    if not data or _FIELD.search(_PLACEHOLDER.sub("", template)):
        return [""] * count

    def filled(one: Any) -> str:  # Any: JSON
        return _unmarked(_PLACEHOLDER.sub(lambda found: str(one if found[1] is None else one[int(found[1])]), template))

    return [filled(one) for one in data]


def _unmarked(text: str) -> str:
    """Text as plotly would show it: its line breaks as such, its escapes as what they stand for."""
    return unescape(text.replace("<br>", "\n"))


def _text(px: float, py: float, text: str, colour: str, size: int, anchor: str = "start") -> str:
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{px:.1f}" y="{py:.1f}" font-size="{size}" fill="{_colour(colour)}"{side}>{escape(_unmarked(text))}</text>'


def _of(values: Any, i: int) -> Any:  # Any: JSON
    """The value of one mark, where each has its own."""
    return values[i] if isinstance(values, Sequence) and not isinstance(values, str) else values


def _colour(colour: object) -> str:
    """A colour of ours. Nothing of a trace becomes one."""
    return str(escape(str(colour)))


def _window(key: str, x: Scale, y: Scale) -> str:
    box = f'x="{x.start:.1f}" y="{y.end - 1:.1f}" width="{x.end - x.start:.1f}" height="{y.start - y.end + 2:.1f}"'
    return f'<clipPath id="{escape(key)}"><rect {box}/></clipPath>'


def _definition(_shape: str, colour: str, key: str) -> str:
    """Diagonal lines, the only hatching that our charts have."""
    return (
        f'<pattern id="{escape(key)}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path d="M-1 1L1-1M0 6L6 0M5 7L7 5" stroke="{_colour(colour)}" stroke-width="1"/></pattern>'
    )
