"""The page of what a process holds, by calls: an icicle and the same as a table from the top down."""

from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.charts.figure import Figure
from app.charts.icicle import icicle_figure
from app.deps import ReadTrace
from app.errors import BadRequest
from app.format import bytes_text, plural, time
from app.page import Crumb, Page
from app.queries.heap_flame import CallNode, call_tree
from app.queries.heap_timeline import HeapScope, heap_timeline
from app.queries.processes import ProcessRow
from app.render import render
from app.urls import with_query
from app.views.heap import MAX_BLOCKS, found_process
from app.views.ranges import RangePart, asked_range, range_part, whole_trace

__all__ = ["FlamePage", "TreeRow", "router"]

router = APIRouter()

ROWS_SHOWN = 300


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One frame of the tree, with what was allocated below it and is still held; `self_` parts end in this very frame."""

    depth: int
    frame: str
    bytes: int
    blocks: int
    self_bytes: int
    self_blocks: int
    percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FlamePage(Page):
    """What a process holds, by calls."""

    process: ProcessRow
    by: str
    rows: tuple[TreeRow, ...]
    more: bool
    too_many: str
    range: RangePart = field(metadata={"json": False})
    chart: Figure | None = field(metadata={"json": False})
    chart_words: str = field(metadata={"json": False})
    ways: tuple[Crumb, ...] = field(metadata={"json": False})


@router.get("/t/{trace_key}/heap/{process}/flame", name="heap_flame", summary="What a process holds, by calls", response_class=HTMLResponse)
def heap_flame(request: Request, trace: ReadTrace, process: str) -> Response:
    """Blocks allocated between `from` and `to` and still held at `to`, as a tree of calls; `by` is `bytes` or `blocks`."""
    n, row = found_process(trace, process)
    by = request.query_params.get("by", "bytes")
    if by not in ("bytes", "blocks"):
        raise BadRequest(f"by={by}: bytes or blocks.")
    whole = whole_trace(trace)
    shown = asked_range(request, whole)
    path = trace.urls("heap_flame", trace_key=trace.key, process=row.process)
    scope = HeapScope("process", n, n)
    blocks = sum(bucket.allocs for bucket in heap_timeline(trace.db, scope, *shown).buckets)
    too_many = ""
    if blocks > MAX_BLOCKS:
        most = f"up to {plural(MAX_BLOCKS, 'block')} are sorted by their calls"
        too_many = f"{plural(blocks, 'block')} began in this range; {most}. Choose a narrower range."
    root = CallNode("all") if too_many else call_tree(trace.db, scope, *shown)
    rows = _rows(root, by)
    kept = dict(request.query_params)
    range_query = {key: value for key, value in kept.items() if key in ("from", "to")}
    heap_path = trace.urls("heap_process", trace_key=trace.key, process=row.process)
    page = FlamePage(
        title=f"What {row.name} holds, by calls",
        sentence=(
            f"{bytes_text(root.bytes)} in {plural(root.blocks, 'block')} allocated from {time(shown[0])} to {time(shown[1])} and "
            "still held then: callers above, the width is what they hold."
        ),
        trace=trace.head,
        crumbs=trace.crumbs(Crumb("heap", trace.urls("heap", trace_key=trace.key)), Crumb(row.name, heap_path)),
        section="heap",
        canonical=path,
        process=row,
        by=by,
        rows=tuple(rows[:ROWS_SHOWN]),
        more=len(rows) > ROWS_SHOWN,
        too_many=too_many,
        range=range_part(path, kept, shown, whole),
        chart=icicle_figure(root, by=by) if root.blocks else None,
        chart_words="Memory held by calls, callers above; the table below says the same.",
        ways=(
            Crumb("by bytes", with_query(path, range_query)),
            Crumb("by blocks", with_query(path, range_query | {"by": "blocks"})),
            Crumb("the heap timeline of this range", with_query(heap_path, range_query)),
        ),
    )
    return render(request, "heap_flame.html", page)


def _rows(root: CallNode, by: str) -> list[TreeRow]:
    """The tree from the top down, the biggest first."""
    whole = max(root.bytes if by == "bytes" else root.blocks, 1)
    return [
        TreeRow(
            depth=depth,
            frame=node.name,
            bytes=node.bytes,
            blocks=node.blocks,
            self_bytes=node.self_bytes,
            self_blocks=node.self_blocks,
            percent=round(100 * (node.bytes if by == "bytes" else node.blocks) / whole, 1),
        )
        for depth, node in root.walk()
        if depth
    ]
