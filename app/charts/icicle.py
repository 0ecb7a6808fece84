"""A tree of calls as an icicle: callers above, what they hold as width."""

from app import format as fmt
from app.charts.figure import COLOURS, Figure, plain
from app.queries.heap_flame import CallNode

__all__ = ["icicle_figure"]

ROW_PIXELS = 24
MAX_PIXELS = 1_400


def icicle_figure(root: CallNode, *, by: str) -> Figure:
    """The figure; `by` is `bytes` or `blocks`. A click on a frame brings it to the full width, one on the top goes back."""
    ids: list[str] = []
    labels: list[str] = []
    parents: list[str] = []
    values: list[int] = []
    said: list[str] = []
    path: list[str] = []
    deepest = 0
    whole = max(root.bytes if by == "bytes" else root.blocks, 1)
    for number, (depth, node) in enumerate(root.walk(by=by)):
        del path[depth:]
        size = node.bytes if by == "bytes" else node.blocks
        ids.append(str(number))
        labels.append(plain(node.name))
        parents.append(path[-1] if path else "")
        values.append(size)
        said.append(
            f"{plain(node.name)}<br>{fmt.bytes_text(node.bytes)} in {fmt.plural(node.blocks, 'block')}, {100 * size / whole:.1f} % of all"
            + (f"<br>{fmt.bytes_text(node.self_bytes)} of it by itself" if node.self_bytes and node.children else "")
            + (f"<br>{fmt.plural(node.stacks, 'stack')}" if node.stacks > 1 else "")
        )
        path.append(str(number))
        deepest = max(deepest, depth)
    return {
        "data": [
            {
                "type": "icicle",
                "ids": ids,
                "labels": labels,
                "parents": parents,
                "values": values,
                "branchvalues": "total",
                "sort": False,
                "tiling": {"orientation": "v", "pad": 1},
                "pathbar": {"visible": False},
                "root": {"color": COLOURS["line"]},
                "marker": {
                    "colors": [COLOURS["line"]] + [COLOURS["heap"]] * (len(ids) - 1),
                    "line": {"width": 0.5, "color": COLOURS["ground"]},
                },
                "leaf": {"opacity": 1},
                "textposition": "middle left",
                "textfont": {"size": 11, "color": [COLOURS["ink"]] + [COLOURS["ground"]] * (len(ids) - 1)},
                "hovertext": said,
                "hoverinfo": "text",
            }
        ],
        "layout": {
            "height": min(MAX_PIXELS, ROW_PIXELS * (deepest + 1) + 8),
            "margin": {"l": 0, "r": 0, "t": 4, "b": 4},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "font": {"size": 11, "color": COLOURS["ink"]},
            "uniformtext": {"minsize": 9, "mode": "hide"},
            "hoverlabel": {
                "bgcolor": COLOURS["ground"],
                "bordercolor": COLOURS["soft"],
                "font": {"size": 12, "color": COLOURS["ink"]},
                "align": "left",
            },
        },
    }
