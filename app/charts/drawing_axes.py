"""The axes of a drawn figure: where values lie, which ticks are named, and how."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

from markupsafe import escape

from app.charts.figure import Figure
from app.format import THIN

__all__ = ["Scale", "axes", "scales"]

_PIXELS_PER_TICK = 95
_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` as pixels from `start` to `end`; what lies far outside lies a little outside."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Where a value lies."""
        part = (value - self.low) / (self.high - self.low)
        return self.start + min(max(part, -0.5), 1.5) * (self.end - self.start)


def scales(figure: Figure, width: int) -> tuple[Scale, dict[str, Scale]]:
    """The axis of time, and those of values by the names that traces call them."""
    layout = figure["layout"]
    margin = layout["margin"]
    left, right = _left(margin, width), width - margin["r"]
    top, bottom = margin["t"], layout["height"] - margin["b"]
    low, high = layout["xaxis"]["range"]
    ys = {}
    for name, axis in layout.items():
        if name.startswith("yaxis"):
            trace_name = name.replace("axis", "")
            values = _values(figure, trace_name) if "range" not in axis else axis["range"]
            span = _span(values, axis)
            foot, head = axis.get("domain", (0, 1))
            ys[trace_name] = Scale(*span, bottom - foot * (bottom - top), bottom - head * (bottom - top))
    return Scale(low, high, left, right), ys


def axes(layout: Mapping[str, Any], x: Scale, ys: Mapping[str, Scale], width: int) -> Iterator[str]:  # Any: plotly's JSON
    """Grids, ticks and titles."""
    bottom = layout["height"] - layout["margin"]["b"]
    top = layout["margin"]["t"]
    described = layout["xaxis"]
    for value, text in _x_ticks(described, x):
        at = x.at(value)
        yield f'<path d="M{at:.1f} {top}V{bottom + 4}" stroke="var(--line)"/>'
        yield f'<text x="{at:.1f}" y="{bottom + 17}" text-anchor="middle" fill="var(--quiet)">{escape(text)}</text>'
    yield f'<path d="M{x.start:.1f} {bottom}H{x.end:.1f}" stroke="var(--line)"/>'
    title = unescape(described["title"]["text"])
    yield f'<text x="{(x.start + x.end) / 2:.1f}" y="{bottom + 38}" text-anchor="middle" fill="var(--quiet)">{escape(title)}</text>'
    for name, y in ys.items():
        yield from _y_axis(layout[name.replace("y", "yaxis")], x, y, is_slim=width < 600)


def _y_axis(axis: Mapping[str, Any], x: Scale, y: Scale, *, is_slim: bool) -> Iterator[str]:  # Any: plotly's JSON
    for value, text in _y_ticks(axis, y):
        at = y.at(value)
        if axis.get("showgrid"):
            yield f'<path d="M{x.start:.1f} {at:.1f}H{x.end:.1f}" stroke="var(--line)"/>'
        yield f'<text x="{x.start - 5:.1f}" y="{at + 4:.1f}" text-anchor="end" fill="var(--quiet)">{escape(text)}</text>'
    title = axis.get("title", {}).get("text", "")
    if title and not is_slim:
        middle = (y.start + y.end) / 2
        lines = unescape(title.replace("<br>", "\n")).split("\n")
        for i, line in enumerate(lines):
            at = 12 + 14 * i
            yield (
                f'<text transform="translate({at} {middle:.1f}) rotate(-90)" text-anchor="middle" fill="var(--quiet)">{escape(line)}</text>'
            )


def _left(margin: Mapping[str, int], width: int) -> int:
    """Room for the names of ticks; on a small screen there is none for titles."""
    return margin["l"] if width >= 600 else 62


def _values(figure: Figure, axis: str) -> Sequence[float]:
    traces = [trace for trace in figure["data"] if str(trace.get("yaxis", "y")) == axis]
    return [value for trace in traces for value in trace["y"] if value is not None] or [0, 1]


def _span(values: Sequence[float], axis: Mapping[str, Any]) -> tuple[float, float]:  # Any: plotly's JSON
    """From the least to the most, with a little room where the axis does not say where it ends."""
    low, high = min(values), max(values)
    if "range" in axis:
        return (low, high) if low < high else (low - 0.5, low + 0.5)
    if axis.get("rangemode") == "tozero":
        low, high = min(low, 0), max(high, 0)
    if low == high:
        low, high = (0, high) if high > 0 else (low - 1, high + 1)
    room = (high - low) * 0.06
    return (low if low == 0 else low - room), high + room


def _x_ticks(axis: Mapping[str, Any], x: Scale) -> list[tuple[float, str]]:  # Any: plotly's JSON
    most = max(2, int((x.end - x.start) / _PIXELS_PER_TICK))
    if "tickvals" in axis:
        named = list(zip(axis["tickvals"], map(str, axis["ticktext"]), strict=True))
        return named[:: max(1, math.ceil(len(named) / most))]
    step = _step(x.high - x.low, most)
    decimals = max(0, -math.floor(math.log10(step)))
    return [(value, _number(value, decimals)) for value in _multiples(x.low, x.high, step)]


def _y_ticks(axis: Mapping[str, Any], y: Scale) -> list[tuple[float, str]]:  # Any: plotly's JSON
    if "tickvals" in axis:
        return [(value, unescape(str(text))) for value, text in zip(axis["tickvals"], axis["ticktext"], strict=True)]
    low, high = sorted((y.low, y.high))
    step = _step(high - low, int(axis.get("nticks", 4)))
    if "ticksuffix" not in axis:
        step = max(step, 1)  # these are counts
        return [(value, _number(value, 0)) for value in _multiples(low, high, step)]
    return [(value, _short(value) + axis["ticksuffix"]) for value in _multiples(low, high, step)]


def _step(span: float, most: int) -> float:
    """The smallest of 1, 2, 5, 10 … that gives no more ticks than that."""
    rough = span / max(most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)


def _multiples(low: float, high: float, step: float) -> list[float]:
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def _number(value: float, decimals: int) -> str:
    return f"{value:,.{decimals}f}".replace(",", THIN).replace("-", "−")


def _short(value: float) -> str:
    """A size with a prefix: 1.5M."""
    size, prefix = next(((size, prefix) for size, prefix in _SI if abs(value) >= size), (1, ""))
    return f"{value / size:g}{prefix}".replace("-", "−")
