"""The timeline of one socket: its life, its operations in lanes, moments, and bytes so far."""

from collections.abc import Iterable, Sequence
from typing import Any

from app import format as fmt
from app.charts.figure import COLOURS, Figure, Row, TimeAxis, bytes_axis, layout, plain, taint_trace
from app.charts.lanes import pack
from app.queries.socket_moments import Moment
from app.queries.socket_page import Phase
from app.queries.socket_timeline import BandPoint, BytesPoint, OperationBar, Timeline

__all__ = ["socket_timeline_figure"]

LANE_PIXELS = 22
MAX_LANE_PIXELS = 420
BAND_PIXELS = 130
_HALF = {"send": (0.02, 0.46), "receive": (-0.46, -0.02), "connect": (-0.11, 0.11)}
"""Where in its lane an operation lies: sends in the upper half, receives in the lower, connects and accepts thin in the middle."""

_WORDS = {"send": "sends ▲", "receive": "receives ▼", "connect": "connects, accepts ◇"}

# what: (row label, symbol, colour, size)
_MOMENTS = {
    "error": ("errors", "x-thin-open", "error", 9),
    "abort": ("aborts", "diamond", "error", 10),
    "disconnect": ("disconnects", "triangle-left-open", "error", 9),
    "drop": ("drops", "triangle-down-open", "error", 9),
    "arrival": ("arrived", "triangle-down", "receive", 6),
    "request": ("requests", "diamond-open", "connect", 8),
    "backlog": ("backlog", "line-ns-open", "send", 9),
    "option": ("options", "square-open", "soft", 8),
}
_LIFE = {"open": "line", "bound": "soft", "listening": "connect", "connected": "connect", "closing": "soft"}


def socket_timeline_figure(
    timeline: Timeline, phases: Sequence[Phase], losses: Iterable[tuple[int | None, int | None, str]] = ()
) -> Figure:
    """The figure for a range of a socket's time; points carry the link of their operation in `customdata`."""
    time = TimeAxis.over(timeline.from_ns, timeline.to_ns)
    life, life_traces = _life(time, phases)
    middle, middle_traces = _band(time, timeline.band) if timeline.is_band else _bars(time, timeline.bars)
    marks, mark_traces = _moments(time, timeline.moments)
    sizes, size_traces = _bytes(time, timeline.bytes)
    parts = [(life, life_traces), (middle, middle_traces), (marks, mark_traces), (sizes, size_traces)]
    rows, data = [], []
    for row, traces in parts:
        if row is None:
            continue
        rows.append(row)
        axis = "y" if len(rows) == 1 else f"y{len(rows)}"
        data += [trace | {"xaxis": "x", "yaxis": axis} for trace in traces]
        if row is middle:
            low, high = row.axis["range"]
            data += _taint(time, losses, (min(low, high), max(low, high)), axis)
    return {"data": data, "layout": layout(time, rows) | {"uniformtext": {"minsize": 9, "mode": "hide"}}}


def _taint(
    time: TimeAxis, losses: Iterable[tuple[int | None, int | None, str]], y: tuple[float, float], axis: str
) -> list[dict[str, Any]]:  # Any: JSON
    ranges = list(losses)
    return [taint_trace(time, ranges, y=y, yaxis=axis) | {"xaxis": "x"}] if ranges else []


def _life(time: TimeAxis, phases: Sequence[Phase]) -> tuple[Row, list[dict[str, Any]]]:  # Any: JSON
    shown = [phase for phase in phases if _touches(time, phase)]
    solid = {
        "type": "bar",
        "orientation": "h",
        "base": [time.clipped(phase.from_ns, time.from_ns) for phase in shown],
        "x": [time.length(time.inside(phase.to_ns, time.to_ns) - time.inside(phase.from_ns, time.from_ns)) for phase in shown],
        "y": [0] * len(shown),
        "width": [0.9] * len(shown),
        "marker": {
            "color": [COLOURS[_LIFE[phase.name]] for phase in shown],
            "opacity": [0.45 if phase.name in ("bound", "closing", "open") else 0.7 for phase in shown],
            "pattern": {"shape": ["/" if phase.from_ns is None else "" for phase in shown], "size": 6, "solidity": 0.2},
        },
        "text": [phase.name for phase in shown],
        "textposition": "inside",
        "insidetextanchor": "start",
        "insidetextfont": {"color": COLOURS["ink"], "size": 11},
        "textangle": 0,
        "customdata": [_phase_words(phase) for phase in shown],
        "hovertemplate": "%{customdata}<extra></extra>",
        "name": "life",
    }
    on = [phase for phase in shown if phase.to_ns is None]
    arrows = _markers(
        [time.at(time.to_ns)] * len(on), [0] * len(on), "triangle-right", "connect", 9, ["still open when the trace ends"] * len(on)
    )
    row = Row({"range": [-0.5, 0.5], "tickvals": [0], "ticktext": ["life"]}, 24)
    return row, [solid, arrows] if on else [solid]


def _phase_words(phase: Phase) -> str:
    since = "since before the trace" if phase.from_ns is None else f"from {fmt.time(phase.from_ns)}"
    until = "to the end of the trace" if phase.to_ns is None else f"to {fmt.time(phase.to_ns)}"
    lasted = f" ({fmt.duration(phase.to_ns - phase.from_ns)})" if phase.from_ns is not None and phase.to_ns is not None else ""
    return f"{phase.name} {since} {until}{lasted}"


def _touches(time: TimeAxis, phase: Phase) -> bool:
    return (phase.from_ns is None or phase.from_ns <= time.to_ns) and (phase.to_ns is None or phase.to_ns >= time.from_ns)


def _bars(time: TimeAxis, bars: Sequence[OperationBar]) -> tuple[Row | None, list[dict[str, Any]]]:  # Any: JSON
    if not bars:
        return None, []
    # An operation whose post is unknown is drawn at its completion alone: nobody knows how long it was.
    ends = [(time.inside(bar.from_ns, bar.to_ns or time.from_ns), time.inside(bar.to_ns, time.to_ns)) for bar in bars]
    order = sorted(range(len(bars)), key=lambda i: ends[i])
    gap = (time.to_ns - time.from_ns) // 600  # so that two bars of one lane can be told apart
    lane_of = dict(zip(order, pack([ends[i] for i in order], gap=gap), strict=True))
    lanes = max(lane_of.values()) + 1
    traces = []
    for direction, (low, high) in _HALF.items():
        mine = [i for i in range(len(bars)) if bars[i].direction == direction]
        if mine:
            traces.append(
                _bar_trace(time, [bars[i] for i in mine], [ends[i] for i in mine], [lane_of[i] for i in mine], low, high, direction)
            )
    marked = [i for i in range(len(bars)) if bars[i].overlaps or bars[i].freed]
    if marked:
        traces.append(_hatched(time, [bars[i] for i in marked], [ends[i] for i in marked], [lane_of[i] for i in marked]))
    traces += _open_ends(time, bars, ends, lane_of)
    step = max(1, lanes // 8)
    row = Row(
        {
            "range": [-0.6, lanes - 0.4],
            "tickvals": list(range(0, lanes, step)),
            "ticktext": [str(lane + 1) for lane in range(0, lanes, step)],
            "title": {"text": "in flight", "standoff": 4},
        },
        max(48, min(MAX_LANE_PIXELS, LANE_PIXELS * lanes + 12)),
    )
    return row, traces


def _bar_trace(
    time: TimeAxis,
    bars: Sequence[OperationBar],
    ends: Sequence[tuple[int, int]],
    lanes: Sequence[int],
    low: float,
    high: float,
    direction: str,
) -> dict[str, Any]:  # Any: JSON
    colour = COLOURS[direction]
    failed = [bar.outcome in ("failed", "rejected", "cancelled") for bar in bars]
    return {
        "type": "bar",
        "orientation": "h",
        "name": _WORDS[direction],
        "base": [time.at(start) for start, _ in ends],
        "x": [time.length(end - start) for start, end in ends],
        "y": [round(lane + (low + high) / 2, 3) for lane in lanes],
        "width": round(high - low, 3),
        # The outline gives an operation of no width one pixel; a failed one is hollow.
        "marker": {
            "color": colour,
            "opacity": [0.35 if no else 1 for no in failed] if any(failed) else 1,
            "line": {"width": 1, "color": colour},
        },
        "customdata": [[bar.link, _bar_words(bar)] for bar in bars],
        "hovertemplate": "%{customdata[1]}<extra></extra>",
        "meta": {"selects": True},
    }


def _bar_words(bar: OperationBar) -> str:
    posted = "posted before it was seen" if bar.from_ns is None else f"posted {fmt.time(bar.from_ns)}"
    size = f"{fmt.bytes_text(bar.bytes)}" + (f" of {fmt.bytes_text(bar.posted_len)}" if bar.posted_len not in (None, bar.bytes) else "")
    lines = [f"{plain(bar.kind)} {fmt.words(bar.outcome)}, {size}", posted]
    if bar.to_ns is None:
        lines.append("in flight when the trace ends")
    elif bar.from_ns is not None:
        lines.append(f"ended {fmt.time(bar.to_ns)} after {fmt.duration(bar.to_ns - bar.from_ns)}")
    else:
        lines.append(f"completed {fmt.time(bar.to_ns)}")
    if bar.status:
        lines.append(plain(fmt.status(bar.status)))
    if bar.buffer is not None and bar.space == "user":
        lines.append(f"buffer {bar.buffer}")
    if bar.overlaps:
        lines.append(f"{fmt.plural(bar.overlaps, 'buffer overlap')}")
    if bar.freed:
        lines.append("its memory changed while it was in flight")
    return "<br>".join(lines)


def _hatched(
    time: TimeAxis, bars: Sequence[OperationBar], ends: Sequence[tuple[int, int]], lanes: Sequence[int]
) -> dict[str, Any]:  # Any: JSON
    """Hatching over operations whose buffer is shared or was freed, with how often beside it."""
    middles = [sum(_HALF[bar.direction]) / 2 for bar in bars]
    return {
        "type": "bar",
        "orientation": "h",
        "name": "overlap, freed in flight",
        "base": [time.at(start) for start, _ in ends],
        "x": [time.length(end - start) for start, end in ends],
        "y": [round(lane + middle, 3) for lane, middle in zip(lanes, middles, strict=True)],
        "width": [round(_HALF[bar.direction][1] - _HALF[bar.direction][0], 3) for bar in bars],
        "marker": {
            "color": "rgba(0,0,0,0)",
            "line": {"width": 2, "color": COLOURS["overlap"]},
            "pattern": {"shape": "/", "fgcolor": COLOURS["overlap"], "bgcolor": "rgba(0,0,0,0)", "size": 6, "solidity": 0.4},
        },
        "hoverinfo": "skip",
    }


def _open_ends(
    time: TimeAxis, bars: Sequence[OperationBar], ends: Sequence[tuple[int, int]], lane_of: dict[int, int]
) -> list[dict[str, Any]]:  # Any: JSON
    """An arrow where a bar goes on after the trace, an open one where its post is unknown."""
    traces = []
    for symbol, side, said, indexes in (
        ("triangle-right", 1, "in flight when the trace ends", [i for i, bar in enumerate(bars) if bar.to_ns is None]),
        ("triangle-left-open", 0, "its post is not in the trace", [i for i, bar in enumerate(bars) if bar.from_ns is None]),
    ):
        if indexes:
            y = [round(lane_of[i] + sum(_HALF[bars[i].direction]) / 2, 3) for i in indexes]
            trace = _markers([time.at(ends[i][side]) for i in indexes], y, symbol, "ink", 8, [said] * len(indexes))
            trace["marker"]["color"] = [COLOURS[bars[i].direction] for i in indexes]
            traces.append(trace)
    return traces


def _band(time: TimeAxis, band: Sequence[BandPoint]) -> tuple[Row | None, list[dict[str, Any]]]:  # Any: JSON
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
        "customdata": said,
        "hovertemplate": "%{customdata[0]} to %{customdata[1]} operations in flight<extra></extra>",
    }
    top = max(high)
    row = Row({"range": [0, top * 1.08 + 0.5], "title": {"text": "in flight", "standoff": 4}, "nticks": 4}, BAND_PIXELS)
    return row, [fewest, most]


def _moments(time: TimeAxis, moments: Sequence[Moment]) -> tuple[Row | None, list[dict[str, Any]]]:  # Any: JSON
    inside = [moment for moment in moments if time.from_ns <= moment.t_ns <= time.to_ns]
    kinds = [kind for kind in _MOMENTS if any(moment.what == kind for moment in inside)]
    if not kinds:
        return None, []
    traces = []
    for place, kind in enumerate(kinds):
        label, symbol, colour, size = _MOMENTS[kind]
        mine = [moment for moment in inside if moment.what == kind]
        said = [f"{fmt.time(moment.t_ns)} {plain(moment.text)}" for moment in mine]
        x, y = [time.at(moment.t_ns) for moment in mine], [-place] * len(mine)
        trace = _markers(x, y, symbol, colour, size, said) | {"name": label}
        del trace["hovertext"], trace["hoverinfo"]
        trace["customdata"] = [[str(moment.t_ns), text] for moment, text in zip(mine, said, strict=True)]
        trace["hovertemplate"] = "%{customdata[1]}<extra></extra>"
        if kind == "abort" and len(mine) <= 3:
            trace |= {"mode": "markers+text", "text": [plain(_short(moment.text)) for moment in mine]}
            middle = (time.at(time.from_ns) + time.at(time.to_ns)) / 2
            trace["textposition"] = ["middle left" if at > middle else "middle right" for at in x]
            trace["textfont"] = {"color": COLOURS["error"], "size": 11}
        traces.append(trace)
    row = Row(
        {
            "range": [-len(kinds) + 0.4, 0.6],
            "tickvals": [-place for place in range(len(kinds))],
            "ticktext": [_MOMENTS[kind][0] for kind in kinds],
            "showgrid": True,
            "gridcolor": COLOURS["line"],
        },
        18 * len(kinds) + 4,
    )
    return row, traces


def _short(text: str) -> str:
    """The reason of an abort, for the place beside its mark."""
    return text.partition(", ")[2] or text


def _markers(
    x: Sequence[float], y: Sequence[float], symbol: str, colour: str, size: int, said: Sequence[str]
) -> dict[str, Any]:  # Any: JSON
    return {
        "type": "scatter",
        "mode": "markers",
        "x": list(x),
        "y": list(y),
        "marker": {
            "symbol": symbol,
            "color": COLOURS[colour],
            "size": size,
            "line": {"width": 2 if "thin" in symbol or "line" in symbol else 1},
        },
        "hovertext": list(said),
        "hoverinfo": "text",
        "cliponaxis": False,
    }


def _bytes(time: TimeAxis, points: Sequence[BytesPoint]) -> tuple[Row | None, list[dict[str, Any]]]:  # Any: JSON
    """Bytes sent and received so far, two step lines."""
    if not points or not (points[-1].sent or points[-1].received):
        return None, []
    x = [time.clipped(point.t_ns, point.t_ns) for point in points] + [time.at(time.to_ns)]
    traces = []
    for name, values in (("send", [point.sent for point in points]), ("receive", [point.received for point in points])):
        if values[-1]:
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": f"bytes of {_WORDS[name]}",
                    "x": x,
                    "y": [*values, values[-1]],
                    "line": {"shape": "hv", "width": 1.5, "color": COLOURS[name], "dash": "solid" if name == "send" else "dot"},
                    "hovertemplate": f"%{{y:.3s}}B {'sent' if name == 'send' else 'received'} so far<extra></extra>",
                }
            )
    return Row(bytes_axis("bytes so far"), 110), traces
