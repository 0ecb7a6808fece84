"""The picture of memory in use by operations: addresses upwards, time to the right."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from app import format as fmt
from app.charts.figure import COLOURS, Figure, Row, TimeAxis, layout, plain

__all__ = ["Area", "Cut", "memory_figure"]

PIXELS = 340
_BLOCK_LABELS = (0.88, 0.76, 0.64)
"""Where in a block its name stands, from its foot: blocks that follow each other on a small screen have theirs at different heights."""
_FOCUS_PART = 8
"""The shared bytes fill at least about one part in this many of the picture's height; else the picture is cut around them."""


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


_COLOUR = {"block": "loss", "send": "send", "receive": "receive", "shared": "overlap"}


def memory_figure(areas: Sequence[Area], cuts: Sequence[Cut] = ()) -> Figure:
    """Rectangles in the order given, the later over the earlier, with their bounds written at the left edge.

    Addresses are drawn as bytes above the lowest shown, since a script's numbers would lose the last digits of an address; the labels
    hold the exact ones. What reaches beyond the picture is cut at its edge.
    """
    used = [area for area in areas if area.hi > area.lo]
    time, near = _axis(used, cuts)
    floor, top = _window(used)
    shown = [_cut(area, floor, top) for area in used if area.lo < top and area.hi > floor and _touches(time, area)]
    height = top - floor
    data = [trace for area in shown for trace in _rectangle(time, area, floor)]
    data += [_line(time, cut, height) for cut in near]
    ticks = _ticks(used, floor, top)
    axis = {
        "range": [-height * 0.03, height * 1.1],
        "tickvals": [value - floor for value in ticks],
        "ticktext": [f"{value:#x}" for value in ticks],
        "tickfont": {"family": "var(--mono)", "size": 11},
        "showgrid": True,
        "gridcolor": COLOURS["line"],
    }
    laid = layout(time, [Row(axis, PIXELS)], left=140)
    return {"data": data, "layout": laid | {"annotations": _labels(time, shown, floor)}}


def _axis(areas: Sequence[Area], cuts: Sequence[Cut]) -> tuple[TimeAxis, list[Cut]]:
    """The time of the operations with room at both sides, and the cuts that lie near it; the room shows what goes on there."""
    moments = [t for area in areas if area.role != "block" for t in (area.from_ns, area.to_ns) if t is not None]
    moments = moments or [t for area in areas for t in (area.from_ns, area.to_ns) if t is not None] or [0]
    low, high = min(moments), max(moments)
    reach = max(high - low, 100)
    near = [cut for cut in cuts if low - reach <= cut.t_ns <= high + reach]
    low, high = min([low, *(cut.t_ns for cut in near)]), max([high, *(cut.t_ns for cut in near)])
    room = max((high - low) // 6, 100)
    return TimeAxis.over(low - room, high + room), near


def _window(areas: Sequence[Area]) -> tuple[int, int]:
    """The addresses shown: all that operations use, or so much around the shared bytes that these can be seen."""
    operations = [area for area in areas if area.role in ("send", "receive")] or list(areas)
    if not operations:
        return 0, 1
    low, high = min(area.lo for area in operations), max(area.hi for area in operations)
    shared = next((area for area in areas if area.role == "shared"), None)
    if shared is not None and (shared.hi - shared.lo) * _FOCUS_PART < high - low:
        room = (shared.hi - shared.lo) * (_FOCUS_PART // 2)
        return max(low, shared.lo - room), min(high, shared.hi + room)
    room = max((high - low) // 8, 1)
    blocks = [area for area in areas if area.role == "block"]
    return max(low - room, min([low, *(area.lo for area in blocks)])), min(high + room, max([high, *(area.hi for area in blocks)]))


def _cut(area: Area, floor: int, top: int) -> Area:
    if floor <= area.lo and area.hi <= top:
        return area
    return replace(area, lo=max(area.lo, floor), hi=min(area.hi, top), name=f"{area.name} (goes on)")


def _touches(time: TimeAxis, area: Area) -> bool:
    return (area.from_ns is None or area.from_ns <= time.to_ns) and (area.to_ns is None or area.to_ns >= time.from_ns)


def _ticks(areas: Sequence[Area], floor: int, top: int) -> list[int]:
    """The bounds of the areas within the picture; of bounds too close to be told apart the first."""
    bounds = sorted({bound for area in areas for bound in (area.lo, area.hi) if floor <= bound <= top})
    chosen: list[int] = []
    for bound in bounds:
        if not chosen or (bound - chosen[-1]) * 18 >= top - floor:
            chosen.append(bound)
    return chosen or [floor]


def _rectangle(time: TimeAxis, area: Area, floor: int) -> list[dict[str, Any]]:  # Any: JSON
    """A pale or hatched inside and a clear edge, dashed where a begin or an end is unknown."""
    colour = COLOURS[_COLOUR[area.role]]
    left, right = time.clipped(area.from_ns, time.from_ns), time.clipped(area.to_ns, time.to_ns)
    low, high = area.lo - floor, area.hi - floor
    outline = {
        "type": "scatter",
        "mode": "lines",
        "name": area.name,
        "x": [left, right, right, left, left],
        "y": [low, low, high, high, low],
        "xaxis": "x",
        "yaxis": "y",
    }
    inside: dict[str, Any] = {"fillcolor": colour, "opacity": 0.25}
    if area.role == "shared":
        hatching = {"shape": "/", "fgcolor": colour, "bgcolor": "rgba(0,0,0,0)", "size": 9, "solidity": 0.35}
        inside = {"fillcolor": "rgba(0,0,0,0)", "fillpattern": hatching}
    whole = area.from_ns is not None and area.to_ns is not None
    edge = {"color": colour, "width": 1 if area.role == "block" else 2, "dash": "solid" if whole else "dash"}
    return [
        outline
        | {"fill": "toself", "line": {"width": 0, "color": colour}, "hoveron": "fills", "hoverinfo": "text", "text": plain(area.words)}
        | inside,
        outline | {"line": edge, "hoverinfo": "skip"},
    ]


def _line(time: TimeAxis, cut: Cut, height: int) -> dict[str, Any]:  # Any: JSON
    at = time.at(cut.t_ns)
    return {
        "type": "scatter",
        "mode": "lines+text",
        "name": cut.words,
        "x": [at, at],
        "y": [0, height],
        "text": ["", plain(cut.words)],
        "textposition": "top center",
        "textfont": {"size": 12, "color": COLOURS["overlap"]},
        "line": {"color": COLOURS["overlap"], "width": 2},
        "hovertext": f"{plain(cut.words)} at {fmt.time(cut.t_ns)}",
        "hoverinfo": "text",
        "cliponaxis": False,
        "xaxis": "x",
        "yaxis": "y",
    }


def _labels(time: TimeAxis, areas: Sequence[Area], floor: int) -> list[dict[str, Any]]:  # Any: JSON
    """The areas' names inside them, each where the others leave room."""
    shared = next((area for area in areas if area.role == "shared"), None)
    labels = []
    blocks = 0
    for area in areas:
        lo, hi, at = area.lo, area.hi, time.clipped(area.from_ns, time.from_ns)
        if shared is not None and area is not shared:  # the larger part beside the shared bytes
            lo, hi = max(((lo, shared.lo), (shared.hi, hi)), key=lambda part: part[1] - part[0])
            if hi <= lo:
                lo, hi = area.lo, area.hi
        place = {"block": _BLOCK_LABELS[blocks % len(_BLOCK_LABELS)], "shared": 0.5}.get(area.role, 0.5 if shared is not None else 0.3)
        blocks += area.role == "block"
        labels.append(
            {
                "x": at,
                "y": lo - floor + (hi - lo) * place,
                "xanchor": "left",
                "xshift": 4,
                "text": plain(area.name),
                "showarrow": False,
                "font": {"size": 12, "color": COLOURS["ink"]},
                "bgcolor": COLOURS["ground"],
                "borderpad": 2,
                "opacity": 0.9,
            }
        )
    return labels
