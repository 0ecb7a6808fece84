"""A trace's activity over time: bytes, sockets, operations, errors and live heap on one axis."""

from collections.abc import Iterable
from typing import Any

from app import format as fmt
from app.charts.figure import COLOURS, Figure, Row, TimeAxis, bytes_axis, layout, taint_trace
from app.queries.activity import Activity, ActivityPoint

__all__ = ["activity_figure"]


def activity_figure(activity: Activity, losses: Iterable[tuple[int | None, int | None, str]] = ()) -> Figure:
    """The figure; rows about which the trace says nothing are left out."""
    time = TimeAxis.over(activity.from_ns, activity.to_ns)
    parts = [
        _bytes(time, activity),
        _open(time, activity),
        _operations(time, activity),
        _moments(time, activity.points),
        _heap(time, activity),
    ]
    rows, data = [], []
    for part in parts:
        if part is None:
            continue
        row, traces = part
        rows.append(row)
        axis = "y" if len(rows) == 1 else f"y{len(rows)}"
        data += [trace | {"xaxis": "x", "yaxis": axis} for trace in traces]
    ranges = list(losses)
    if ranges and rows:
        rows.insert(0, Row({"range": [0, 1], "tickvals": [0.5], "ticktext": ["data lost"]}, 14))
        data = [trace | {"yaxis": f"y{int(trace['yaxis'][1:] or 1) + 1}"} for trace in data]
        data.append(taint_trace(time, ranges, y=(0, 1)) | {"xaxis": "x"})
    if not rows:
        rows = [Row({"range": [0, 1], "tickvals": []}, 40)]
    return {"data": data, "layout": layout(time, rows)}


_Part = tuple[Row, list[dict[str, Any]]] | None
"""A plot and its traces; None when there is nothing to show. Any: JSON."""


def _columns(
    time: TimeAxis, points: Iterable[ActivityPoint], heights: Iterable[float], said: Iterable[str], colour: str
) -> dict[str, Any]:  # Any: JSON
    """Thin bars, each as wide as its bucket."""
    chosen = list(points)
    return {
        "type": "bar",
        "x": [time.at((point.from_ns + point.to_ns) // 2) for point in chosen],
        "y": list(heights),
        "width": [time.length(point.to_ns - point.from_ns) for point in chosen],
        "marker": {"color": COLOURS[colour], "line": {"width": 0}},
        "customdata": [[str(point.from_ns), text] for point, text in zip(chosen, said, strict=True)],
        "hovertemplate": "%{customdata[1]}<extra></extra>",
    }


def _when(point: ActivityPoint) -> str:
    return f"{fmt.duration(point.to_ns - point.from_ns)} from {fmt.time(point.from_ns)}"


def _bytes(time: TimeAxis, activity: Activity) -> _Part:
    """Bytes a bucket, sent upwards and received downwards."""
    sent = [point for point in activity.points if point.bytes_sent]
    received = [point for point in activity.points if point.bytes_received]
    if not sent and not received:
        return None
    up = _columns(
        time,
        sent,
        [point.bytes_sent for point in sent],
        [f"▲ {fmt.bytes_text(point.bytes_sent)} sent in {_when(point)}" for point in sent],
        "send",
    )
    down = _columns(
        time,
        received,
        [-point.bytes_received for point in received],
        [f"▼ {fmt.bytes_text(point.bytes_received)} received in {_when(point)}" for point in received],
        "receive",
    )
    highest, lowest = max((p.bytes_sent for p in sent), default=0), max((p.bytes_received for p in received), default=0)
    ticks = [highest, 0, -lowest]
    axis = {
        "range": [-lowest * 1.08, highest * 1.08],
        "tickvals": ticks,
        "ticktext": [f"▲ {fmt.bytes_text(highest)}" if highest else "", "0", f"▼ {fmt.bytes_text(lowest)}" if lowest else ""],
        "title": {"text": "", "standoff": 4},
        "showgrid": True,
        "gridcolor": COLOURS["line"],
    }
    return Row(axis, 120), [up | {"name": "sent"}, down | {"name": "received"}]


def _steps(time: TimeAxis, first: float, points: Iterable[tuple[int, float, str]], colour: str) -> dict[str, Any]:  # Any: JSON
    """A step line from the range's start to its end."""
    x, y, said = [time.at(time.from_ns)], [first], [""]
    for at, value, text in points:
        x.append(time.clipped(at, at))
        y.append(value)
        said.append(text)
    x.append(time.at(time.to_ns))
    y.append(y[-1])
    said.append(said[-1])
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "line": {"shape": "hv", "width": 1.5, "color": COLOURS[colour]},
        "hovertext": said,
        "hoverinfo": "text",
    }


def _open(time: TimeAxis, activity: Activity) -> _Part:
    if not activity.open_before and not any(point.open for point in activity.points):
        return None
    points = [(point.to_ns, point.open, f"{fmt.plural(point.open, 'socket')} open at {fmt.time(point.to_ns)}") for point in activity.points]
    line = _steps(time, activity.open_before, points, "connect")
    axis = {"title": {"text": "open", "standoff": 4}, "rangemode": "tozero", "nticks": 3, "showgrid": True, "gridcolor": COLOURS["line"]}
    return Row(axis, 60), [line | {"name": "sockets open"}]


def _operations(time: TimeAxis, activity: Activity) -> _Part:
    busy = [point for point in activity.points if point.posted]
    if not busy:
        return None
    bars = _columns(
        time,
        busy,
        [point.posted for point in busy],
        [f"{fmt.plural(point.posted, 'operation')} posted in {_when(point)}" for point in busy],
        "soft",
    )
    axis = {"title": {"text": "posted", "standoff": 4}, "rangemode": "tozero", "nticks": 3, "showgrid": True, "gridcolor": COLOURS["line"]}
    return Row(axis, 60), [bars | {"name": "operations posted"}]


def _moments(time: TimeAxis, points: Iterable[ActivityPoint]) -> _Part:
    marks = []
    chosen = list(points)
    for what, symbol, noun in (("errors", "x-thin-open", "failed operation"), ("aborts", "diamond", "abort")):
        mine = [(point, getattr(point, what)) for point in chosen if getattr(point, what)]
        if mine:
            marks.append((what, symbol, [(point, count, f"{fmt.plural(count, noun)} in {_when(point)}") for point, count in mine]))
    if not marks:
        return None
    traces = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": what,
            "x": [time.at((point.from_ns + point.to_ns) // 2) for point, _, _ in mine],
            "y": [-place] * len(mine),
            "marker": {"symbol": symbol, "color": COLOURS["error"], "size": 9, "line": {"width": 2 if what == "errors" else 1}},
            "customdata": [[str(point.from_ns), text] for point, _, text in mine],
            "hovertemplate": "%{customdata[1]}<extra></extra>",
            "cliponaxis": False,
        }
        for place, (what, symbol, mine) in enumerate(marks)
    ]
    axis = {
        "range": [-len(marks) + 0.4, 0.6],
        "tickvals": [-place for place in range(len(marks))],
        "ticktext": [what for what, _, _ in marks],
        "showgrid": True,
        "gridcolor": COLOURS["line"],
    }
    return Row(axis, 18 * len(marks) + 4), traces


def _heap(time: TimeAxis, activity: Activity) -> _Part:
    if not activity.heap:
        return None
    points = [
        (point.t_ns, point.bytes, f"■ {fmt.bytes_text(point.bytes)} live at {fmt.time(point.t_ns)}, since the trace began")
        for point in activity.heap
    ]
    line = _steps(time, activity.heap[0].bytes, points, "heap")
    return Row(bytes_axis("heap change"), 80), [line | {"name": "live heap"}]
