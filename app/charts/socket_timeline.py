"""The timeline of one socket: its life, its operations in lanes, moments, and bytes so far."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from app import format as fmt
from app.charts.figure import COLOURS, Figure, Row, TimeAxis, bytes_axis, layout, plain, taint_trace
from app.charts.lanes import pack
from app.charts.socket_band import DIRECTION_WORDS, completions_row, in_flight_row
from app.queries.socket_moments import Moment
from app.queries.socket_page import Phase
from app.queries.socket_timeline import BytesPoint, OperationBar, Timeline

__all__ = ["socket_timeline_figure"]

LANE_PIXELS = 22
MAX_LANE_PIXELS = 420
_HALF = {"send": (0.02, 0.46), "receive": (-0.46, -0.02), "connect": (-0.11, 0.11)}
"""Where in its lane an operation lies: sends in the upper half, receives in the lower, connects and accepts thin in the middle."""

# what: (row label, symbol, colour, size)
_MOMENTS = {
    "error": ("errors", "x-thin-open", "error", 9),
    "abort": ("aborts", "diamond", "error", 10),
    "disconnect": ("disconnects", "triangle-left-open", "error", 9),
    "reset": ("network", "star-open", "error", 10),
    "retransmit": ("resent", "line-ew-open", "send", 9),
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
    middle, middle_traces = in_flight_row(time, timeline.band) if timeline.is_band else _bars(time, timeline.bars)
    marks, mark_traces = _moments(time, timeline.moments)
    sizes, size_traces = _bytes(time, timeline.bytes)
    done, done_traces = completions_row(time, timeline.band)
    parts = [(life, life_traces), (middle, middle_traces), (done, done_traces), (marks, mark_traces), (sizes, size_traces)]
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


@dataclass(frozen=True, slots=True)
class _Placed:
    """An operation with the part of it that the range shows, and its lane."""

    bar: OperationBar
    start_ns: int
    end_ns: int
    lane: int

    @property
    def y(self) -> float:
        low, high = _HALF[self.bar.direction]
        return round(self.lane + (low + high) / 2, 3)

    @property
    def height(self) -> float:
        low, high = _HALF[self.bar.direction]
        return round(high - low, 3)


def _bars(time: TimeAxis, bars: Sequence[OperationBar]) -> tuple[Row | None, list[dict[str, Any]]]:  # Any: JSON
    if not bars:
        return None, []
    # An operation whose post is unknown is drawn at its completion alone: nobody knows how long it was.
    ends = sorted(
        ((time.inside(bar.from_ns, bar.to_ns or time.from_ns), time.inside(bar.to_ns, time.to_ns), bar) for bar in bars),
        key=lambda end: end[:2],
    )
    gap = (time.to_ns - time.from_ns) // 600  # so that two bars of one lane can be told apart
    packed = pack([(start, end) for start, end, _ in ends], gap=gap)
    placed = [_Placed(bar, start, end, lane) for (start, end, bar), lane in zip(ends, packed, strict=True)]
    lanes = max(packed) + 1
    narrow = (time.to_ns - time.from_ns) // 150  # too narrow for a pointer to meet
    traces = []
    for direction in _HALF:
        mine = [one for one in placed if one.bar.direction == direction]
        wide, thin = (
            [one for one in mine if one.end_ns - one.start_ns >= narrow],
            [one for one in mine if one.end_ns - one.start_ns < narrow],
        )
        if wide:
            traces.append(
                _bar_trace(time, wide, direction)
                | {"customdata": [[one.bar.link, _bar_words(one.bar)] for one in wide], "hovertemplate": "%{customdata[1]}<extra></extra>"}
            )
        if thin:
            traces.append(_bar_trace(time, thin, direction) | {"customdata": [[one.bar.link] for one in thin], "hoverinfo": "skip"})
            traces.append(_targets(time, thin, direction))
    marked = [one for one in placed if one.bar.overlaps or one.bar.freed]
    if marked:
        traces.append(_hatched(time, marked))
    traces += _open_ends(time, placed)
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


def _bar_trace(time: TimeAxis, placed: Sequence[_Placed], direction: str) -> dict[str, Any]:  # Any: JSON
    colour = COLOURS[direction]
    failed = [one.bar.outcome in ("failed", "rejected", "cancelled") for one in placed]
    return {
        "type": "bar",
        "orientation": "h",
        "name": DIRECTION_WORDS[direction],
        "base": [time.at(one.start_ns) for one in placed],
        "x": [time.length(one.end_ns - one.start_ns) for one in placed],
        "y": [one.y for one in placed],
        "width": placed[0].height,
        # The outline gives an operation of no width one pixel; a failed one is pale.
        "marker": {
            "color": colour,
            "opacity": [0.35 if no else 1 for no in failed] if any(failed) else 1,
            "line": {"width": 1, "color": colour},
        },
        "meta": {"selects": True},
    }


def _targets(time: TimeAxis, placed: Sequence[_Placed], direction: str) -> dict[str, Any]:  # Any: JSON
    """Unseen points on bars that are too narrow for a pointer: a point is met from some pixels away."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{DIRECTION_WORDS[direction]}, narrow",
        "x": [time.at((one.start_ns + one.end_ns) // 2) for one in placed],
        "y": [one.y for one in placed],
        "marker": {"size": 8, "opacity": 0, "color": COLOURS[direction]},
        "customdata": [[one.bar.link, _bar_words(one.bar)] for one in placed],
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


def _hatched(time: TimeAxis, placed: Sequence[_Placed]) -> dict[str, Any]:  # Any: JSON
    """Hatching over operations whose buffer is shared or was freed."""
    return {
        "type": "bar",
        "orientation": "h",
        "name": "overlap, freed in flight",
        "base": [time.at(one.start_ns) for one in placed],
        "x": [time.length(one.end_ns - one.start_ns) for one in placed],
        "y": [one.y for one in placed],
        "width": [one.height for one in placed],
        "marker": {
            "color": "rgba(0,0,0,0)",
            "line": {"width": 2, "color": COLOURS["overlap"]},
            "pattern": {"shape": "/", "fgcolor": COLOURS["overlap"], "bgcolor": "rgba(0,0,0,0)", "size": 6, "solidity": 0.4},
        },
        "hoverinfo": "skip",
    }


def _open_ends(time: TimeAxis, placed: Sequence[_Placed]) -> list[dict[str, Any]]:  # Any: JSON
    """An arrow where a bar goes on after the trace, an open one where its post is unknown."""
    traces = []
    for symbol, said, mine in (
        ("triangle-right", "in flight when the trace ends", [(one, one.end_ns) for one in placed if one.bar.to_ns is None]),
        ("triangle-left-open", "its post is not in the trace", [(one, one.start_ns) for one in placed if one.bar.from_ns is None]),
    ):
        if mine:
            trace = _markers([time.at(at) for _, at in mine], [one.y for one, _ in mine], symbol, "ink", 8, [said] * len(mine))
            trace["marker"]["color"] = [COLOURS[one.bar.direction] for one, _ in mine]
            traces.append(trace)
    return traces


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
                    "name": f"bytes of {DIRECTION_WORDS[name]}",
                    "x": x,
                    "y": [*values, values[-1]],
                    "line": {"shape": "hv", "width": 1.5, "color": COLOURS[name], "dash": "solid" if name == "send" else "dot"},
                    "hovertemplate": f"%{{y:.3s}}B {'sent' if name == 'send' else 'received'} so far<extra></extra>",
                }
            )
    return Row(bytes_axis("bytes so far"), 110), traces
