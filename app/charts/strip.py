"""A strip of moments: one row a kind, all on one axis of time."""

from collections.abc import Sequence
from typing import Any

from app import format as fmt
from app.charts.figure import COLOURS, Figure, Row, TimeAxis, layout, plain
from app.queries.around import KINDS, AroundRow

__all__ = ["strip_figure"]

_LOOKS = {
    "abort": ("diamond", "error"),
    "error": ("x-thin-open", "error"),
    "bind failure": ("x-thin-open", "error"),
    "drop": ("triangle-down-open", "error"),
    "freed in flight": ("square", "overlap"),
    "overlap": ("square-open", "overlap"),
    "module unloaded": ("line-ns-open", "ink"),
    "process started": ("triangle-right-open", "ink"),
    "process ended": ("triangle-left", "ink"),
}


def strip_figure(rows: Sequence[AroundRow], from_ns: int, to_ns: int, at_ns: int) -> Figure:
    """Marks of what happened in a range, and a line at the moment that was asked about."""
    time = TimeAxis.over(from_ns, to_ns)
    kinds = [kind for kind in KINDS if any(row.kind == kind for row in rows)]
    data: list[dict[str, Any]] = []  # Any: JSON
    for place, kind in enumerate(kinds):
        symbol, colour = _LOOKS[kind]
        mine = [row for row in rows if row.kind == kind]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": kind,
                "x": [time.at(row.t_ns) for row in mine],
                "y": [-place] * len(mine),
                "marker": {
                    "symbol": symbol,
                    "color": COLOURS[colour],
                    "size": 9,
                    "line": {"width": 2 if "thin" in symbol or "line" in symbol else 1},
                },
                "customdata": [[row.link, f"{fmt.time(row.t_ns)} {plain(row.text)}"] for row in mine],
                "hovertemplate": "%{customdata[1]}<extra></extra>",
                "meta": {"selects": True},
                "cliponaxis": False,
                "xaxis": "x",
                "yaxis": "y",
            }
        )
    height = max(len(kinds), 1)
    data.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": "the moment",
            "x": [time.at(at_ns)] * 2,
            "y": [0.6, 0.4 - height],
            "line": {"color": COLOURS["soft"], "width": 1, "dash": "dot"},
            "hoverinfo": "skip",
            "xaxis": "x",
            "yaxis": "y",
        }
    )
    axis = {
        "range": [0.4 - height, 0.6],
        "tickvals": [-place for place in range(len(kinds))],
        "ticktext": kinds,
        "showgrid": True,
        "gridcolor": COLOURS["line"],
    }
    return {"data": data, "layout": layout(time, [Row(axis, 20 * height + 6)], left=116)}
