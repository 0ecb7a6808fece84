"""Operations of a socket that are too many to draw one by one: how many were in flight, and how many of each direction completed."""

from collections.abc import Sequence
from typing import Any

from app import format as fmt
from app.charts.figure import COLOURS, Row, TimeAxis
from app.queries.socket_timeline import BandPoint

__all__ = ["DIRECTION_WORDS", "completions_row", "in_flight_row"]

BAND_PIXELS = 130

DIRECTION_WORDS = {"send": "sends ▲", "receive": "receives ▼", "connect": "connects, accepts ◇"}


def in_flight_row(time: TimeAxis, band: Sequence[BandPoint]) -> tuple[Row | None, list[dict[str, Any]]]:  # Any: JSON
    """Operations in flight as a band from the fewest to the most in each bucket."""
    if not band:
        return None, []
    x: list[float] = []
    low: list[int] = []
    high: list[int] = []
    for point in band:
        x += [time.clipped(point.from_ns, point.from_ns), time.clipped(point.to_ns, point.to_ns)]
        low += [point.low, point.end]
        high += [point.high, point.end]
    x.append(time.at(time.to_ns))
    low.append(band[-1].end)
    high.append(band[-1].end)
    line = {"type": "scatter", "mode": "lines", "x": x, "line": {"shape": "hv", "width": 1, "color": COLOURS["ink"]}}
    said = [[a, b] for a, b in zip(low, high, strict=True)]
    fewest = line | {"y": low, "name": "fewest", "hoverinfo": "skip"}
    most = line | {
        "y": high,
        "name": "most",
        "fill": "tonexty",
        "fillcolor": COLOURS["line"],
        "meta": {"holds": "operations"},  # the selected one is outlined here
        "customdata": said,
        "hovertemplate": "%{customdata[0]} to %{customdata[1]} operations in flight<extra></extra>",
    }
    top = max(high)
    row = Row({"range": [0, top * 1.08 + 0.5], "title": {"text": "in flight", "standoff": 4}, "nticks": 4}, BAND_PIXELS)
    return row, [fewest, most]


def completions_row(time: TimeAxis, band: Sequence[BandPoint]) -> tuple[Row | None, list[dict[str, Any]]]:  # Any: JSON
    """Operations completed in each bucket of a band: sends upwards, receives downwards."""
    traces = []
    most = 0
    for direction, sign in (("send", 1), ("receive", -1)):
        mine = [(point, count) for point in band if (count := point.sends if sign > 0 else point.receives)]
        if not mine:
            continue
        most = max(most, *(count for _, count in mine))
        ends = [(time.clipped(point.from_ns, point.from_ns), time.clipped(point.to_ns, point.to_ns)) for point, _ in mine]
        traces.append(
            {
                "type": "bar",
                "name": f"completed {DIRECTION_WORDS[direction]}",
                "x": [(low + high) / 2 for low, high in ends],
                "width": [high - low for low, high in ends],
                "y": [sign * count for _, count in mine],
                "marker": {"color": COLOURS[direction], "line": {"width": 1, "color": COLOURS[direction]}},
                "customdata": [
                    f"{fmt.count(count)} {DIRECTION_WORDS[direction]} completed in {fmt.duration(point.to_ns - point.from_ns)} "
                    f"from {fmt.time(point.from_ns)}"
                    for point, count in mine
                ],
                "hovertemplate": "%{customdata}<extra></extra>",
            }
        )
    if not traces:
        return None, []
    axis = {
        "range": [-most * 1.08, most * 1.08],
        "title": {"text": "completed", "standoff": 4},
        "tickvals": [-most, 0, most],
        "ticktext": [f"{fmt.count(most)} ▼", "0", f"{fmt.count(most)} ▲"],
        "zeroline": True,
        "zerolinecolor": COLOURS["line"],
    }
    return Row(axis, BAND_PIXELS), traces
