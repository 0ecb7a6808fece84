"""The timeline of a heap: live bytes with their extremes, live blocks, and how fast blocks come and go."""

from collections.abc import Iterable, Sequence
from typing import Any

from app import format as fmt
from app.charts.figure import COLOURS, Figure, Row, TimeAxis, bytes_axis, layout, plain, taint_trace
from app.queries.heap_gauges import GaugePoint
from app.queries.heap_timeline import HeapBucket, HeapTimeline

__all__ = ["ProcessLine", "heap_overview_figure", "heap_timeline_figure"]

_FAR_ABOVE = 3
SINCE = "change since<br>the trace began"

ProcessLine = tuple[str, HeapTimeline]
"""A process's name and its live heap."""


def heap_timeline_figure(
    timeline: HeapTimeline,
    gauges: Sequence[GaugePoint] = (),
    losses: Iterable[tuple[int | None, int | None, str]] = (),
    *,
    gone_ns: int | None = None,
) -> Figure:
    """Live bytes, live blocks and rates of one process or one heap.

    `gauges` are what the allocator reports about the heap, up to `gone_ns` where it was destroyed. Reserved memory far above all else
    is left out of the picture, as what is live would be a flat line under it.
    """
    time = TimeAxis.over(timeline.from_ns, timeline.to_ns)
    x, low, high, end, counts = _line(time, timeline)
    traces = _band(x, low, high) if timeline.steps is None else []
    traces.append(
        _steps(
            x, end, "heap", [f"■ {fmt.bytes_text(size)} in {fmt.plural(blocks, 'block')}" for size, blocks in zip(end, counts, strict=True)]
        )
        | {"name": "live bytes"}
    )
    traces += _peak(time, timeline)
    traces += _gauges(time, gauges, gone_ns)
    ranges = list(losses)
    if ranges:
        top = max([*high, *(gauge.committed or 0 for gauge in gauges), 1])
        traces.append(taint_trace(time, ranges, y=(min(0, *low), top)))
    blocks = _steps(x, counts, "soft", [fmt.plural(count, "live block") for count in counts]) | {"name": "live blocks"}
    rows = [
        Row(_live_axis(low, high, gauges), 190),
        Row({"title": {"text": "blocks", "standoff": 4}, "nticks": 3, "showgrid": True, "gridcolor": COLOURS["line"]}, 70),
    ]
    data = [trace | {"xaxis": "x", "yaxis": "y"} for trace in traces] + [blocks | {"xaxis": "x", "yaxis": "y2"}]
    busy = [bucket for bucket in timeline.buckets if bucket.allocs or bucket.frees]
    if busy:
        rows.append(_rate_row(busy))
        data += [trace | {"xaxis": "x", "yaxis": "y3"} for trace in _rates(time, busy)]
    return {"data": data, "layout": layout(time, rows, left=84)}


def _line(time: TimeAxis, timeline: HeapTimeline) -> tuple[list[float], list[int], list[int], list[int], list[int]]:
    """Positions, and from each on: the least, the most and the last known live bytes, and the live blocks."""
    x, low, high = [time.at(time.from_ns)], [timeline.bytes_before], [timeline.bytes_before]
    end, counts = [timeline.bytes_before], [timeline.count_before]
    if timeline.steps is not None:
        for step in timeline.steps:
            x.append(time.at(step.t_ns))
            for values, value in ((low, step.bytes), (high, step.bytes), (end, step.bytes), (counts, step.count)):
                values.append(value)
    else:
        for bucket in timeline.buckets:
            x += [time.clipped(bucket.from_ns, bucket.from_ns), time.clipped(bucket.to_ns, bucket.to_ns)]
            low += [bucket.bytes_min, bucket.bytes_end]
            high += [bucket.bytes_max, bucket.bytes_end]
            end += [end[-1], bucket.bytes_end]
            counts += [counts[-1], bucket.count_end]
    x.append(time.at(time.to_ns))
    for series in (low, high, end, counts):
        series.append(series[-1])
    return x, low, high, end, counts


def _steps(x: Sequence[float], y: Sequence[int], colour: str, said: Sequence[str]) -> dict[str, Any]:  # Any: JSON
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(x),
        "y": list(y),
        "line": {"shape": "hv", "width": 1.5, "color": COLOURS[colour]},
        "hovertext": list(said),
        "hoverinfo": "text",
    }


def _band(x: Sequence[float], low: Sequence[int], high: Sequence[int]) -> list[dict[str, Any]]:  # Any: JSON
    """Between the least and the most live bytes of each bucket."""
    edge = {
        "type": "scatter",
        "mode": "lines",
        "x": list(x),
        "line": {"shape": "hv", "width": 0.5, "color": COLOURS["heap"]},
        "hoverinfo": "skip",
    }
    return [
        edge | {"y": list(low), "name": "least"},
        edge | {"y": list(high), "name": "most", "fill": "tonexty", "fillcolor": COLOURS["line"]},
    ]


def _peak(time: TimeAxis, timeline: HeapTimeline) -> list[dict[str, Any]]:  # Any: JSON
    peak = timeline.peak
    if peak is None or peak.bytes <= 0:
        return []
    late = peak.t_ns > (time.from_ns + time.to_ns) // 2
    return [
        {
            "type": "scatter",
            "mode": "markers+text",
            "name": "peak",
            "x": [time.clipped(peak.t_ns, peak.t_ns)],
            "y": [peak.bytes],
            "text": [f"peak {fmt.bytes_text(peak.bytes)}"],
            "textposition": "top left" if late else "top right",
            "textfont": {"color": COLOURS["heap"], "size": 11},
            "marker": {"symbol": "square", "size": 7, "color": COLOURS["heap"]},
            "hovertext": [f"the most in this range: {fmt.bytes_text(peak.bytes)} at {fmt.time(peak.t_ns)}"],
            "hoverinfo": "text",
            "cliponaxis": False,
        }
    ]


def _live_axis(low: Sequence[int], high: Sequence[int], gauges: Sequence[GaugePoint]) -> dict[str, Any]:  # Any: JSON
    """The axis of live bytes; with a range of its own where reserved memory is far above."""
    axis = bytes_axis(SINCE) | {"rangemode": "normal"}
    top = max([*high, *(gauge.committed or 0 for gauge in gauges)])
    if top > 0 and any((gauge.reserved or 0) > _FAR_ABOVE * top for gauge in gauges):
        bottom = min(0, *low)
        return axis | {"range": [bottom - (top - bottom) * 0.05, top + (top - bottom) * 0.12]}
    return axis


def _gauges(time: TimeAxis, gauges: Sequence[GaugePoint], gone_ns: int | None) -> list[dict[str, Any]]:  # Any: JSON
    """What the allocator reports: absolute sizes, so they begin where the heap really is."""
    traces = []
    for name, dash in (("committed", "dash"), ("reserved", "dot")):
        known = [(gauge.t_ns, getattr(gauge, name)) for gauge in gauges if getattr(gauge, name) is not None]
        if known:
            until = time.to_ns if gone_ns is None else gone_ns
            x = [time.clipped(t_ns, t_ns) for t_ns, _ in known] + [time.clipped(until, until)]
            y = [size for _, size in known] + [known[-1][1]]
            line = _steps(x, y, "soft", [f"{name} {fmt.bytes_text(size)}" for size in y])
            traces.append(line | {"name": name, "line": {"shape": "hv", "width": 1, "dash": dash, "color": COLOURS["soft"]}})
    return traces


def _rate_row(busy: Sequence[HeapBucket]) -> Row:
    most, fewest = max(bucket.allocs for bucket in busy), max(bucket.frees for bucket in busy)
    whole = most + fewest
    ticks = [(0, "0")] + [(most, f"+{fmt.count(most)}")] * (most * 5 >= whole) + [(-fewest, fmt.count(-fewest))] * (fewest * 5 >= whole)
    axis = {
        "range": [-fewest * 1.08 - 0.01, most * 1.08 + 0.01],
        "tickvals": [value for value, _ in ticks],
        "ticktext": [text for _, text in ticks],
        "title": {"text": "came, went", "standoff": 4},
        "showgrid": True,
        "gridcolor": COLOURS["line"],
    }
    return Row(axis, 80)


def _rates(time: TimeAxis, busy: Sequence[HeapBucket]) -> list[dict[str, Any]]:  # Any: JSON
    """Blocks that came, upwards, and blocks that went, downwards, in each bucket."""
    traces = []
    for name, sign, sizes, words in (("allocs", 1, "alloc_bytes", "allocated"), ("frees", -1, "free_bytes", "released")):
        mine = [bucket for bucket in busy if getattr(bucket, name)]
        traces.append(
            {
                "type": "bar",
                "name": words,
                "x": [time.at((bucket.from_ns + bucket.to_ns) // 2) for bucket in mine],
                "y": [sign * getattr(bucket, name) for bucket in mine],
                "width": [time.length(bucket.to_ns - bucket.from_ns) for bucket in mine],
                "marker": {"color": COLOURS["heap"], "opacity": 1 if sign > 0 else 0.5, "line": {"width": 0}},
                "hovertext": [
                    f"{fmt.plural(getattr(bucket, name), 'block')}, {fmt.bytes_text(getattr(bucket, sizes))}, {words} in "
                    f"{fmt.duration(bucket.to_ns - bucket.from_ns)} from {fmt.time(bucket.from_ns)}"
                    for bucket in mine
                ],
                "hoverinfo": "text",
            }
        )
    return [trace for trace in traces if trace["x"]]


def heap_overview_figure(lines: Sequence[ProcessLine], losses: Iterable[tuple[int | None, int | None, str]] = ()) -> Figure:
    """Live bytes of several processes above each other on one axis of time; all ranges must be equal."""
    time = TimeAxis.over(lines[0][1].from_ns, lines[0][1].to_ns) if lines else TimeAxis.over(0, 1)
    ranges = list(losses)
    data, rows, names = [], [], []
    for place, (name, timeline) in enumerate(lines, start=1):
        axis = "y" if place == 1 else f"y{place}"
        x, low, high, end, counts = _line(time, timeline)
        said = [f"{plain(name)}: {fmt.bytes_text(size)} in {fmt.plural(blocks, 'block')}" for size, blocks in zip(end, counts, strict=True)]
        traces = _band(x, low, high) if timeline.steps is None else []
        traces.append(_steps(x, end, "heap", said) | {"name": plain(name)})
        if ranges:
            traces.append(taint_trace(time, ranges, y=(min(0, *low), max(1, *high))))
        data += [trace | {"xaxis": "x", "yaxis": axis} for trace in traces]
        rows.append(Row(bytes_axis("") | {"nticks": 3, "rangemode": "normal"}, 64))
        names.append(
            {
                "xref": "x domain",
                "yref": f"{axis} domain",
                "x": 0,
                "y": 1,
                "xanchor": "left",
                "yanchor": "bottom",
                "text": plain(name),
                "showarrow": False,
                "font": {"size": 11, "color": COLOURS["ink"]},
            }
        )
    laid = layout(time, rows) if rows else layout(time, [Row({}, 40)])
    return {"data": data, "layout": laid | {"annotations": names}}
