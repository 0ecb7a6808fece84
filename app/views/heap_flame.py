"""The page of what a process holds or allocated, by calls: an icicle and the same as a table from the top down."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.charts.figure import Figure
from app.charts.icicle import icicle_figure
from app.deps import OpenTrace, ReadTrace
from app.errors import BadRequest
from app.format import bytes_text, plural, time, time_span
from app.page import Crumb
from app.queries import heap_flame as queries
from app.queries.heap_flame import DEEPER, MAX_DEPTH, OTHERS, CallNode
from app.queries.heap_timeline import heap_timeline
from app.queries.heap_whole import covers_all
from app.render import render
from app.urls import with_query
from app.views.described import described
from app.views.heap import MAX_BLOCKS
from app.views.heap_subject import HeapSubject, SubjectPage, asked_subject
from app.views.ranges import RangePart, asked_moment, asked_range, half_open, range_part, whole_trace
from collector.errors import StoreSlow

__all__ = ["FlamePage", "TreeRow", "router"]

router = APIRouter()

ROWS_SHOWN = 300


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One frame of the tree, with what is counted at and below it; `self_` parts end in this very frame.

    `stack` is the hash of the stack with the most bytes of the `stacks` that go through it. `is_shown` says that the page's table has
    it; JSON has all.
    """

    depth: int
    frame: str
    bytes: int
    blocks: int
    self_bytes: int
    self_blocks: int
    percent: float
    stacks: int
    stack: str | None
    is_shown: bool = field(metadata={"json": False})
    allocations_href: str | None = field(metadata={"json": False})


@dataclass(frozen=True, slots=True, kw_only=True)
class FlamePage(SubjectPage):
    """What a process holds or allocated, by calls. `at_ns` is set when it is about one moment, not a range."""

    measure: str
    what: str
    at_ns: int | None
    bytes: int
    blocks: int
    rows: tuple[TreeRow, ...]
    rows_shown: int
    too_many: str
    facts: tuple[str, ...]
    range: RangePart = field(metadata={"json": False})
    kept: Mapping[str, str] = field(metadata={"json": False})
    chart: Figure | None = field(metadata={"json": False})
    chart_words: str = field(metadata={"json": False})
    ways: tuple[Crumb, ...] = field(metadata={"json": False})


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the query string asks for."""

    measure: str
    what: str
    at: int | None
    shown: tuple[int, int]
    window: tuple[int, int]
    """The range as [t0, t1)."""


@router.get(
    "/t/{trace_key}/heap/{process}/flame",
    name="heap_flame",
    summary="What a process holds, by calls",
    response_class=HTMLResponse,
    openapi_extra=described("from", "to", "at", "measure", "what", "heap", "format"),
)
def heap_flame(request: Request, trace: ReadTrace, process: str) -> Response:
    """A tree of calls with what they hold. `what` is `held` (allocated between `from` and `to`, still held at `to`) or `allocated`
    (freed since or not); `at` asks for all that is held at a moment instead. `measure` is `bytes` or `count`, `heap` names one heap."""
    subject = asked_subject(request, trace, process)
    row = subject.process
    whole = whole_trace(trace)
    shown = asked_range(request, whole)
    asked = _Asked(
        _one_of(request, "measure", ("bytes", "count")),
        _one_of(request, "what", ("held", "allocated")),
        asked_moment(request, "at"),
        shown,
        half_open(shown, whole),
    )
    path = trace.urls("heap_flame", trace_key=trace.key, process=row.process)
    root, too_many = _tree(trace, subject, asked)
    by = "bytes" if asked.measure == "bytes" else "blocks"
    rows = _rows(trace, root, by, subject, asked)
    kept = {key: value for key, value in request.query_params.items() if key != "at"}
    page = FlamePage(
        title=f"What {subject.name} {'allocated' if asked.what == 'allocated' and asked.at is None else 'holds'}, by calls",
        sentence=_sentence(root, asked),
        **subject.frame(trace, path),
        measure=asked.measure,
        what=asked.what,
        at_ns=asked.at,
        bytes=root.bytes,
        blocks=root.blocks,
        rows=rows,
        rows_shown=sum(one.is_shown for one in rows),
        too_many=too_many,
        facts=_facts(root),
        range=range_part(path, kept, asked.shown, whole),
        kept=kept,
        chart=icicle_figure(root, by=by) if root.blocks else None,
        chart_words="Memory by calls, callers above; the table below says the same.",
        ways=_ways(path, subject, asked, whole),
    )
    return render(request, "heap_flame.html", page)


def _one_of(request: Request, key: str, words: tuple[str, ...]) -> str:
    text = request.query_params.get(key) or words[0]
    if text not in words:
        raise BadRequest(f"{key}={text}: {' or '.join(words)}.")
    return text


def _tree(trace: OpenTrace, subject: HeapSubject, asked: _Asked) -> tuple[CallNode, str]:
    """The tree, or an empty one and why."""
    scope = subject.scope
    try:
        if asked.at is not None:
            return queries.held_tree(trace.db, scope, asked.at), ""
        blocks = sum(bucket.allocs for bucket in heap_timeline(trace.db, scope, *asked.shown).buckets)
        if blocks > MAX_BLOCKS and not covers_all(trace.db, scope, *asked.window):
            most = f"up to {plural(MAX_BLOCKS, 'block')} are sorted by their calls"
            return CallNode("all"), f"{plural(blocks, 'block')} began in this range; {most}. Choose a narrower range, or one moment."
        if asked.what == "allocated":
            return queries.allocated_tree(trace.db, scope, *asked.window), ""
        return queries.call_tree(trace.db, scope, *asked.window), ""
    except StoreSlow:
        return CallNode("all"), "Sorting the blocks by their calls takes too long. Choose a narrower range."


def _sentence(root: CallNode, asked: _Asked) -> str:
    if not root.blocks:
        return _nothing(asked)
    amount = f"{bytes_text(root.bytes)} in {plural(root.blocks, 'block')}"
    wide = "callers above, the width is what they hold"
    if asked.at is not None:
        return f"{amount} held at {time(asked.at)}, whenever they were allocated since the trace began: {wide}."
    span = time_span(*asked.shown)
    if asked.what == "allocated":
        return f"{amount} allocated {span}, freed since or not: callers above, the width is what they allocated."
    return f"{amount} allocated {span} and still held then: {wide}."


def _nothing(asked: _Asked) -> str:
    if asked.at is not None:
        return f"Nothing that was allocated since the trace began is held at {time(asked.at)}."
    span = time_span(*asked.shown)
    return f"Nothing was allocated {span}." if asked.what == "allocated" else f"Nothing that was allocated {span} is still held then."


def _facts(root: CallNode) -> tuple[str, ...]:
    """What the tree leaves out, said where it does."""
    nodes = [node for _, node in root.walk()]
    facts = []
    cut = [node for node in nodes if node.name == DEEPER]
    if cut:
        stacks = plural(sum(node.stacks for node in cut), "stack is", "stacks are")
        facts.append(f"{stacks} deeper than {MAX_DEPTH} frames; their inner frames are one node, “{DEEPER}”. The stack's page has all.")
    folded = [node for node in nodes if node.name == OTHERS]
    if folded:
        size = sum(node.bytes for node in folded)
        facts.append(f"“{OTHERS}” are calls too small to see: {bytes_text(size)} in all, counted in full.")
    return tuple(facts)


def _ways(path: str, subject: HeapSubject, asked: _Asked, whole: tuple[int, int]) -> tuple[Crumb, ...]:
    """The other views of the same."""
    in_range = {} if asked.shown == whole else {"from": str(asked.shown[0]), "to": str(asked.shown[1])}
    moment = {} if asked.at is None else {"at": str(asked.at)}
    what = {"what": asked.what} if asked.what != "held" else {}
    measure = {"measure": asked.measure} if asked.measure != "bytes" else {}
    found = []
    if asked.measure == "bytes":
        found.append(Crumb("by number of blocks", subject.href(path, in_range | moment | what | {"measure": "count"})))
    else:
        found.append(Crumb("by bytes", subject.href(path, in_range | moment | what)))
    if asked.at is not None or asked.what != "held":
        found.append(Crumb("allocated in the range and still held", subject.href(path, in_range | measure)))
    if asked.at is not None or asked.what != "allocated":
        found.append(Crumb("all that was allocated in the range", subject.href(path, in_range | measure | {"what": "allocated"})))
    if asked.at is None:
        found.append(Crumb("all that is held at its end", subject.href(path, in_range | measure | {"at": str(asked.shown[1])})))
    found.append(Crumb("the heap timeline of the range", with_query(subject.path, in_range)))
    return tuple(found)


def _rows(trace: OpenTrace, root: CallNode, by: str, subject: HeapSubject, asked: _Asked) -> tuple[TreeRow, ...]:
    """The tree from the top down, the biggest first; the biggest of all are those that the page shows."""

    def weight(node: CallNode) -> int:
        return node.bytes if by == "bytes" else node.blocks

    nodes = [(depth, node) for depth, node in root.walk(by=by) if depth]
    biggest = sorted(range(len(nodes)), key=lambda i: (-weight(nodes[i][1]), nodes[i][0], i))[:ROWS_SHOWN]
    shown = set(biggest)
    hashes = queries.stack_hashes(trace.db, (node.stack for _, node in nodes))
    narrowed = dict(subject.narrowed)
    if asked.at is not None:
        narrowed |= {"live_at": str(asked.at)}
    else:
        narrowed |= {"began_from": str(asked.shown[0])}
        narrowed |= {"live_at" if asked.what == "held" else "began_to": str(asked.window[1] - 1)}
    whole = max(weight(root), 1)
    rows = []
    for index, (depth, node) in enumerate(nodes):
        stack = hashes.get(node.stack)
        one = stack if stack is not None and node.stacks == 1 else "none" if node.stack is None and node.stacks == 1 else None
        href = trace.urls("allocations", narrowed | {"stack": one}, trace_key=trace.key) if one else None
        rows.append(
            TreeRow(
                depth=depth,
                frame=node.name,
                bytes=node.bytes,
                blocks=node.blocks,
                self_bytes=node.self_bytes,
                self_blocks=node.self_blocks,
                percent=round(100 * weight(node) / whole, 1),
                stacks=node.stacks,
                stack=stack,
                is_shown=index in shown,
                allocations_href=href,
            )
        )
    return tuple(rows)
