"""What all charts share: the axis of time, colours by meaning, and text that stays text.

A figure is plotly's own structure as plain values. Colours are names of the style sheet's custom properties (`var(--send)`); the
browser puts the values of the light or dark theme in their place.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from app import clockface
from app import format as fmt
from app.charts.wall_ticks import wall_ticks
from collector.plain import visible_text

__all__ = ["COLOURS", "Figure", "Row", "TimeAxis", "bytes_axis", "layout", "plain", "rows_layout", "taint_trace"]

Figure: TypeAlias = dict[str, Any]
"""`data` and `layout` as plotly wants them. Any: the values are JSON."""

COLOURS = {
    "send": "var(--send)",
    "receive": "var(--receive)",
    "connect": "var(--connect)",
    "heap": "var(--heap)",
    "error": "var(--error)",
    "overlap": "var(--overlap)",
    "loss": "var(--unknown)",
    "ink": "var(--text)",
    "soft": "var(--quiet)",
    "line": "var(--line)",
    "ground": "var(--ground)",
}
"""Colour by meaning."""

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_NAMES = {"s": "seconds", "ms": "milliseconds", "µs": "microseconds", "ns": "nanoseconds"}


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """A range of the trace's time, and the unit and zero in which a chart counts it.

    Positions are numbers of `unit_ns` since `base_ns`, so that a plot keeps its precision however late in the trace it is; the exact
    nanoseconds stay in `layout.meta` as text.
    """

    from_ns: int
    to_ns: int
    base_ns: int
    unit_ns: int

    @classmethod
    def over(cls, from_ns: int, to_ns: int) -> "TimeAxis":
        """The axis for a range; an empty one becomes one nanosecond wide."""
        to_ns = max(to_ns, from_ns + 1)
        width = to_ns - from_ns
        unit_ns = next(size for size, _ in _UNITS if width >= 2 * size or size == 1)
        base_ns = 0
        if unit_ns < _UNITS[0][0] and abs(from_ns) > 10 * width:
            step = 10 ** len(str(width - 1))  # a round zero at or before the range, of no more digits than needed
            base_ns = from_ns // step * step
        return cls(from_ns, to_ns, base_ns, unit_ns)

    def at(self, ns: int) -> float:
        """Where a moment lies."""
        return (ns - self.base_ns) / self.unit_ns

    def length(self, ns: int) -> float:
        """How long a span is."""
        return ns / self.unit_ns

    def inside(self, ns: int | None, otherwise: int) -> int:
        """A moment, moved to the range's nearer end when it is outside; `otherwise` stands for an unknown one."""
        return min(max(otherwise if ns is None else ns, self.from_ns), self.to_ns)

    def clipped(self, ns: int | None, otherwise: int) -> float:
        """Where `inside` lies."""
        return self.at(self.inside(ns, otherwise))

    @property
    def unit(self) -> str:
        return next(name for size, name in _UNITS if size == self.unit_ns)

    @property
    def title(self) -> str:
        since = "the trace began" if self.base_ns == 0 else fmt.time_whole(self.base_ns)
        return f"{_NAMES[self.unit]} since {since}"

    def meta(self) -> dict[str, str]:
        """The exact values, as text: a script's number would lose their last digits."""
        return {
            "base_ns": str(self.base_ns),
            "unit_ns": str(self.unit_ns),
            "unit": self.unit,
            "from_ns": str(self.from_ns),
            "to_ns": str(self.to_ns),
        }

    def layout(self, *, anchor: str = "y") -> dict[str, Any]:
        """plotly's description of the axis."""
        start = clockface.current()
        ticks = wall_ticks(self.from_ns, self.to_ns, start) if start is not None else []
        face: dict[str, Any] = {"nticks": 8}
        if start is not None and ticks:
            face = {"tickvals": [self.at(ns) for ns, _ in ticks], "ticktext": [text for _, text in ticks]}
        return {
            "title": {
                "text": f"UTC, {start + timedelta(microseconds=self.from_ns // 1000):%Y-%m-%d}" if ticks and start else self.title,
                "standoff": 8,
            },
            "range": [self.at(self.from_ns), self.at(self.to_ns)],
            "anchor": anchor,
            "showgrid": True,
            "gridcolor": COLOURS["line"],
            "zeroline": False,
            "showline": True,
            "linecolor": COLOURS["line"],
            "ticks": "outside",
            "tickcolor": COLOURS["line"],
            **face,
            "exponentformat": "none",
            "separatethousands": True,
            "showspikes": True,
            "spikemode": "across",
            "spikesnap": "cursor",
            "spikethickness": 1,
            "spikedash": "solid",
            "spikecolor": COLOURS["soft"],
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One of the plots that share a figure's time axis, from the top: its height in pixels and plotly's description of its y axis."""

    axis: dict[str, Any]
    pixels: int


_TOP, _BOTTOM, _GAP = 16, 46, 16


def layout(time: TimeAxis, rows: Sequence[Row], *, left: int = 76) -> dict[str, Any]:
    """The layout of plots above each other that share the axis of time."""
    described = rows_layout(rows)
    names = [name for name in described if name.startswith("yaxis")]
    bottom = names[-1].replace("axis", "")
    meta: dict[str, Any] = dict(time.meta())
    return (
        _ground(height=_TOP + _BOTTOM + sum(row.pixels for row in rows) + _GAP * (len(rows) - 1), left=left)
        | {"xaxis": time.layout(anchor=bottom), "meta": meta}
        | described
    )


def rows_layout(rows: Sequence[Row]) -> dict[str, Any]:
    """The y axes of plots above each other, the first on top, in parts of the plot's height."""
    whole = sum(row.pixels for row in rows) + _GAP * (len(rows) - 1)
    described, top = {}, whole
    for number, row in enumerate(rows, start=1):
        name = "yaxis" if number == 1 else f"yaxis{number}"
        low, high = max(0.0, (top - row.pixels) / whole), top / whole
        described[name] = _Y | row.axis | {"domain": [round(low, 4), round(high, 4)], "anchor": "x"}
        top -= row.pixels + _GAP
    return described


_Y: dict[str, Any] = {
    "fixedrange": True,
    "zeroline": False,
    "showgrid": False,
    "showline": False,
    "ticks": "",
    "automargin": False,
}


def _ground(*, height: int, left: int) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": left, "r": 16, "t": _TOP, "b": _BOTTOM, "pad": 0},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 12, "color": COLOURS["soft"]},
        "hoverlabel": {
            "bgcolor": COLOURS["ground"],
            "bordercolor": COLOURS["soft"],
            "font": {"size": 12, "color": COLOURS["ink"]},
            "align": "left",
            "namelength": -1,
        },
        "hovermode": "closest",
        "hoverdistance": 12,
        "dragmode": "zoom",
        "showlegend": False,
        "separators": f".{fmt.THIN}",
        "bargap": 0,
        "barmode": "overlay",
    }


def bytes_axis(title: str = "bytes") -> dict[str, Any]:
    """A y axis of sizes."""
    return {
        "title": {"text": title, "standoff": 4},
        "showgrid": True,
        "gridcolor": COLOURS["line"],
        "rangemode": "tozero",
        "nticks": 4,
        "tickformat": "~s",
        "ticksuffix": "B",
    }


def plain(text: str) -> str:
    """Text that plotly shows as it is: what it would read as markup is escaped."""
    return visible_text(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def taint_trace(
    time: TimeAxis, ranges: Iterable[tuple[int | None, int | None, str]], *, y: tuple[float, float], yaxis: str = "y"
) -> Figure:
    """Diagonal grey lines over the time in which data was lost; ranges are (first_ns, last_ns, words), open where None."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    said: list[str | None] = []
    narrowest = (time.to_ns - time.from_ns) / time.unit_ns / 300
    for first, last, words in ranges:
        left, right = time.clipped(first, time.from_ns), time.clipped(last, time.to_ns)
        if right - left < narrowest:
            right = left + narrowest
        xs += [left, right, right, left, left, None]
        ys += [y[0], y[0], y[1], y[1], y[0], None]
        said += [plain(words)] * 5 + [None]
    return {
        "type": "scatter",
        "name": "data lost",
        "x": xs,
        "y": ys,
        "yaxis": yaxis,
        "mode": "lines",
        "line": {"width": 0, "color": COLOURS["loss"]},
        "fill": "toself",
        "fillcolor": "rgba(0,0,0,0)",
        "fillpattern": {"shape": "/", "fgcolor": COLOURS["loss"], "bgcolor": "rgba(0,0,0,0)", "size": 8, "solidity": 0.15},
        "text": said,
        "hoverinfo": "text",
        "hoveron": "fills",
    }
