"""The picture of memory in use by operations: addresses upwards, time to the right."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app import format as fmt
from app.charts.figure import COLOURS, Figure, Row, TimeAxis, layout, plain

__all__ = ["Area", "Cut", "memory_figure"]


@dataclass(frozen=True, slots=True)
class Area:
    """Bytes [lo, hi) from a time to a time, open where None. `role` is `send`, `receive`, `block` or `shared`."""

    role: str
    name: str
    lo: int
    hi: int
    from_ns: int | None
    to_ns: int | None
    words: str


@dataclass(frozen=True, slots=True)
class Cut:
    """A moment that ends something, drawn across all addresses: a free, a move."""

    t_ns: int
    words: str


_LOOKS: dict[str, tuple[str, float, str]] = {
    "block": ("loss", 0.25, ""),
    "send": ("send", 0.35, ""),
    "receive": ("receive", 0.35, ""),
    "shared": ("overlap", 1.0, "/"),
}
"""Colour, how solid, and hatching by role."""

PIXELS = 340


def memory_figure(areas: Sequence[Area], cuts: Sequence[Cut] = ()) -> Figure:
    """Rectangles in the order given, the later over the earlier, with their bounds written at the left edge.

    Addresses are drawn as bytes above the lowest shown, since a script's numbers would lose the last digits of an address; the labels
    hold the exact ones.
    """
    shown = [area for area in areas if area.hi > area.lo]
    floor = min((area.lo for area in shown), default=0)
    top = max((area.hi for area in shown), default=1) - floor
    time = _axis(shown, cuts)
    data = [_rectangle(time, area, floor) for area in shown]
    data += [_line(time, cut, top) for cut in cuts]
    ticks = _ticks(shown, floor, top)
    axis = {
        "range": [-top * 0.04, top * 1.06],
        "tickvals": [value - floor for value in ticks],
        "ticktext": [f"{value:#x}" for value in ticks],
        "tickfont": {"family": "var(--mono)", "size": 11},
        "showgrid": True,
        "gridcolor": COLOURS["line"],
    }
    return {"data": data, "layout": layout(time, [Row(axis, PIXELS)], left=140)}


def _axis(areas: Sequence[Area], cuts: Sequence[Cut]) -> TimeAxis:
    """All known moments with room at both sides; the room also shows what has no end there."""
    moments = [t for area in areas if area.role != "block" for t in (area.from_ns, area.to_ns) if t is not None] + [
        cut.t_ns for cut in cuts
    ]
    if not moments:
        moments = [t for area in areas for t in (area.from_ns, area.to_ns) if t is not None] or [0]
    low, high = min(moments), max(moments)
    room = max((high - low) // 8, 100)
    return TimeAxis.over(low - room, high + room)


def _ticks(areas: Sequence[Area], floor: int, top: int) -> list[int]:
    """The bounds of the areas; of bounds too close to be told apart the first."""
    bounds = sorted({bound for area in areas if area.role != "shared" for bound in (area.lo, area.hi)})
    chosen: list[int] = []
    for bound in bounds:
        if not chosen or bound - chosen[-1] >= top / 18:
            chosen.append(bound)
    return chosen or [floor]


def _rectangle(time: TimeAxis, area: Area, floor: int) -> dict[str, Any]:  # Any: JSON
    colour, solid, hatching = _LOOKS[area.role]
    left, right = time.clipped(area.from_ns, time.from_ns), time.clipped(area.to_ns, time.to_ns)
    low, high = area.lo - floor, area.hi - floor
    looks: dict[str, Any] = {"fillcolor": COLOURS[colour]}
    if hatching:
        looks = {
            "fillcolor": "rgba(0,0,0,0)",
            "fillpattern": {"shape": hatching, "fgcolor": COLOURS[colour], "bgcolor": "rgba(0,0,0,0)", "size": 8, "solidity": 0.35},
        }
    return {
        "type": "scatter",
        "mode": "lines+text",
        "name": area.name,
        "x": [left, right, right, left, left],
        "y": [low, low, high, high, low],
        "text": [plain(f"  {area.name}"), "", "", "", ""],
        "textposition": "top right",
        "textfont": {"size": 11, "color": COLOURS["ink"]},
        "fill": "toself",
        "opacity": 1 if hatching else 0.35 + solid,
        "line": {"color": COLOURS[colour], "width": 2 if area.role != "block" else 1, "dash": "solid" if _is_whole(area) else "dash"},
        "hoveron": "fills",
        "hoverinfo": "text",
        "hovertext": plain(area.words),
        "xaxis": "x",
        "yaxis": "y",
        **looks,
    }


def _is_whole(area: Area) -> bool:
    return area.from_ns is not None and area.to_ns is not None


def _line(time: TimeAxis, cut: Cut, top: int) -> dict[str, Any]:  # Any: JSON
    at = time.at(cut.t_ns)
    return {
        "type": "scatter",
        "mode": "lines+text",
        "name": "freed",
        "x": [at, at],
        "y": [0, top],
        "text": ["", plain(cut.words)],
        "textposition": "top center",
        "textfont": {"size": 11, "color": COLOURS["overlap"]},
        "line": {"color": COLOURS["overlap"], "width": 2},
        "hovertext": f"{plain(cut.words)} at {fmt.time(cut.t_ns)}",
        "hoverinfo": "text",
        "cliponaxis": False,
        "xaxis": "x",
        "yaxis": "y",
    }
