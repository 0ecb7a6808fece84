"""The heap pages: processes with a traced heap, one process, one heap, and the timelines that their charts load."""

import json
from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app import format as fmt
from app.charts.figure import Figure
from app.charts.heap_timeline import heap_overview_figure, heap_timeline_figure
from app.deps import OpenTrace, ReadTrace
from app.errors import NotFound
from app.format import bytes_text, plural
from app.links import parse_heap, parse_process
from app.listing import Column, Listing, plain_listing
from app.page import Crumb, Page
from app.queries import heap_pages as queries
from app.queries import heap_window as windows
from app.queries.heap_timeline import HeapScope, HeapTimeline, heap_timeline, live_at_end
from app.queries.processes import ProcessRow, find_process, nearest_processes
from app.render import render
from app.views.heap_fill import FillPart, fill_part, fill_table
from app.views.lists import Empty, why_empty
from app.views.ranges import RangePart, asked_range, range_part, taints, whole_trace
from collector.errors import StoreSlow

__all__ = ["HeapPage", "HeapProcessPage", "HeapsPage", "WindowPart", "found_process", "router"]

router = APIRouter()

STACKS_SHOWN = 25
LINES_SHOWN = 8
MAX_BLOCKS = 1_500_000
"""Blocks of a range up to which its classes are counted; beyond, the page asks for a narrower range."""

PROCESS_COLUMNS = (
    Column("process", "Process", "heap_process", keeps=True),
    Column("live_bytes", "Held at the end", "bytes", keeps=True),
    Column("live_blocks", "Blocks held", "count"),
    Column("peak_bytes", "Peak", "bytes"),
    Column("peak_ns", "Peak at", "time"),
    Column("allocs", "Allocations", "count"),
    Column("frees", "Frees", "count"),
    Column("bytes_allocated", "Allocated", "bytes"),
    Column("heaps", "Heaps", "count"),
    Column("unknown_frees", "Frees of older blocks", "count"),
    Column("errors", "Wrong frees", "errors"),
)
HEAP_COLUMNS = (
    Column("handle", "Heap", "one_heap", keeps=True),
    Column("live_bytes", "Held at the end", "bytes", keeps=True),
    Column("live_blocks", "Blocks held", "count"),
    Column("committed", "Committed", "bytes"),
    Column("reserved", "Reserved", "bytes"),
    Column("free_space", "Free space", "bytes"),
    Column("created_ns", "Created", "before"),
    Column("destroyed_ns", "Destroyed", "ended"),
    Column("flags", "Flags", "optional"),
)
STACK_COLUMNS = (
    Column("callers", "Innermost callers", "held_callers", keeps=True, term="stack"),
    Column("held_bytes", "Held", "bytes", keeps=True),
    Column("held", "Blocks held", "count"),
    Column("allocated_bytes", "Allocated", "bytes"),
    Column("allocated", "Allocations", "count"),
    Column("first_ns", "First", "time"),
    Column("last_ns", "Last", "time"),
)
ANOMALY_COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("kind", "What", "words", keeps=True),
    Column("heap", "Heap", "address"),
    Column("address", "Address", "address"),
    Column("allocation", "Allocation", "allocation"),
    Column("tid", "Thread", "number"),
    Column("stack", "Stack", "stack"),
)
COUNTER_COLUMNS = (Column("name", "Counter", "words", keeps=True), Column("value", "Value", "count", keeps=True))


@dataclass(frozen=True, slots=True)
class WindowPart:
    """What happened with blocks between two times. `too_many` is set instead of the rest where counting would take too long."""

    classes: windows.WindowClasses | None = None
    stacks: Listing | None = None
    stacks_number: int = 0
    sizes: tuple[windows.ClassRow, ...] = ()
    lifetimes: tuple[windows.ClassRow, ...] = ()
    too_many: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeapsPage(Page):
    """Processes with a traced heap."""

    listing: Listing
    chart: Figure | None = field(default=None, metadata={"json": False})
    chart_words: str = field(default="", metadata={"json": False})
    empty: Empty | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeapScopePage(Page):
    """A heap timeline with its range and what the range answers for."""

    process: ProcessRow
    range: RangePart = field(metadata={"json": False})
    chart: Figure = field(metadata={"json": False})
    chart_href: str = field(metadata={"json": False})
    chart_words: str = field(metadata={"json": False})
    window: WindowPart
    live_bytes: int
    live_blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeapProcessPage(HeapScopePage):
    """The heap of one process."""

    peak_bytes: int | None
    peak_ns: int | None
    heaps: Listing
    fills: Listing
    counters: Listing
    anomalies: Listing
    more_anomalies: bool
    flame_href: str = field(metadata={"json": False})
    growth_href: str = field(metadata={"json": False})
    compare_href: str = field(metadata={"json": False})


@dataclass(frozen=True, slots=True, kw_only=True)
class HeapPage(HeapScopePage):
    """One life of one heap."""

    heap: queries.HeapRow
    fill: FillPart
    marks: tuple[tuple[int, str], ...]


@router.get("/t/{trace_key}/heap", name="heap", summary="Processes with heap", response_class=HTMLResponse)
def heap(request: Request, trace: ReadTrace) -> Response:
    """Processes whose heap was traced, those that hold the most at the end first."""
    rows = queries.heap_processes(trace.db)
    path = trace.urls("heap", trace_key=trace.key)
    whole = whole_trace(trace)
    lines = [(_short(row), heap_timeline(trace.db, HeapScope("process", row.n, row.n), *whole)) for row in rows[:LINES_SHOWN]]
    held = sum(row.live_bytes for row in rows)
    page = HeapsPage(
        title="Heap",
        sentence=(
            f"The heap of {plural(len(rows), 'process', 'processes')} was traced; together they hold {bytes_text(held)} at the end that "
            "they did not hold when the trace began."
            if rows
            else "No heap was traced."
        ),
        trace=trace.head,
        crumbs=trace.crumbs(),
        section="heap",
        listing=plain_listing("heap", path, PROCESS_COLUMNS, rows),
        chart=heap_overview_figure(lines, taints(trace)) if lines else None,
        chart_words="Live bytes of the processes that hold the most, as a change since the trace began.",
        empty=None if rows else why_empty(trace.db, nouns="heaps", needs=("heap",), otherwise="No heap was traced."),
    )
    return render(request, "heaps.html", page)


@router.get("/t/{trace_key}/heap/{process}", name="heap_process", summary="The heap of one process", response_class=HTMLResponse)
def heap_process(request: Request, trace: ReadTrace, process: str) -> Response:
    """The live heap of a process over time; `from` and `to` choose the window that the tables answer for."""
    n, row = found_process(trace, process)
    scope = HeapScope("process", n, n)
    whole = whole_trace(trace)
    shown = asked_range(request, whole)
    path = trace.urls("heap_process", trace_key=trace.key, process=row.process)
    counters = queries.heap_counters(trace.db, n)
    by_name = {counter.name: counter.value for counter in counters}
    anomalies, more = queries.heap_anomalies(trace.db, n, row.process, *shown)
    timeline = heap_timeline(trace.db, scope, *shown)
    live = live_at_end(trace.db, scope)
    heaps = queries.heaps_of(trace.db, n, row.process)
    moments = {"a": str(shown[0]), "b": str(shown[1])}
    page = HeapProcessPage(
        title=f"Heap of {row.name}",
        sentence=_sentence(live, by_name.get("peak_bytes"), by_name.get("peak_ns")),
        trace=trace.head,
        crumbs=trace.crumbs(Crumb("heap", trace.urls("heap", trace_key=trace.key))),
        section="heap",
        canonical=path,
        process=row,
        range=range_part(path, request.query_params, shown, whole),
        chart=heap_timeline_figure(timeline, losses=taints(trace)),
        chart_href=trace.urls("heap_process_timeline", trace_key=trace.key, process=row.process),
        chart_words=_chart_words(f"process {row.name}", shown),
        window=_window(trace, scope, timeline, path),
        live_bytes=live[0],
        live_blocks=live[1],
        peak_bytes=by_name.get("peak_bytes"),
        peak_ns=by_name.get("peak_ns"),
        heaps=plain_listing("heaps", path, HEAP_COLUMNS, heaps),
        fills=fill_table(trace, heaps, n, shown, path),
        counters=plain_listing("counters", path, COUNTER_COLUMNS, [one for one in counters if not one.name.startswith("peak")]),
        anomalies=plain_listing("anomalies", path, ANOMALY_COLUMNS, anomalies),
        more_anomalies=more,
        flame_href=trace.urls("heap_flame", {} if shown == whole else _as_query(shown), trace_key=trace.key, process=row.process),
        growth_href=trace.urls("heap_growth", {} if shown == whole else _as_query(shown), trace_key=trace.key, process=row.process),
        compare_href=trace.urls("heap_compare", {} if shown == whole else moments, trace_key=trace.key, process=row.process),
    )
    return render(request, "heap_process.html", page)


@router.get("/t/{trace_key}/heap/{process}/timeline", name="heap_process_timeline", summary="The heap timeline of one process in a range")
def heap_process_timeline(request: Request, trace: ReadTrace, process: str) -> Response:
    """The figure of a process's heap between `from` and `to` (nanoseconds), of bounded size; always JSON."""
    n, _ = found_process(trace, process)
    shown = asked_range(request, whole_trace(trace))
    return _figure_answer(heap_timeline_figure(heap_timeline(trace.db, HeapScope("process", n, n), *shown), losses=taints(trace)), shown)


@router.get("/t/{trace_key}/heap/{process}/{heap}", name="one_heap", summary="One heap", response_class=HTMLResponse)
def one_heap(request: Request, trace: ReadTrace, process: str, heap: str) -> Response:
    """One life of a heap handle, `0xHEAP@NS`: its live bytes beside what the allocator committed and reserved for it."""
    n, row = found_process(trace, process)
    found = _found_heap(trace, n, row, heap)
    scope = HeapScope("heap", found.n, n)
    whole = whole_trace(trace)
    shown = asked_range(request, whole)
    path = trace.urls("one_heap", trace_key=trace.key, process=row.process, heap=found.heap)
    timeline = heap_timeline(trace.db, scope, *shown)
    page = HeapPage(
        title=f"Heap {found.handle} of {row.name}",
        sentence=_heap_sentence(found),
        trace=trace.head,
        crumbs=trace.crumbs(
            Crumb("heap", trace.urls("heap", trace_key=trace.key)),
            Crumb(row.name, trace.urls("heap_process", trace_key=trace.key, process=row.process)),
        ),
        section="heap",
        canonical=path,
        process=row,
        range=range_part(path, request.query_params, shown, whole),
        chart=heap_timeline_figure(timeline, queries.heap_gauges(trace.db, found.n, *shown), taints(trace)),
        chart_href=trace.urls("one_heap_timeline", trace_key=trace.key, process=row.process, heap=found.heap),
        chart_words=_chart_words(f"heap {found.handle}", shown),
        window=_window(trace, scope, timeline, path),
        live_bytes=found.live_bytes,
        live_blocks=found.live_blocks,
        heap=found,
        fill=fill_part(trace, found, n, shown, path),
        marks=tuple(queries.heap_marks(trace.db, found.n, *shown)),
    )
    return render(request, "heap.html", page)


@router.get("/t/{trace_key}/heap/{process}/{heap}/timeline", name="one_heap_timeline", summary="The timeline of one heap in a range")
def one_heap_timeline(request: Request, trace: ReadTrace, process: str, heap: str) -> Response:
    """The figure of one heap between `from` and `to` (nanoseconds), of bounded size; always JSON."""
    n, row = found_process(trace, process)
    found = _found_heap(trace, n, row, heap)
    shown = asked_range(request, whole_trace(trace))
    timeline = heap_timeline(trace.db, HeapScope("heap", found.n, n), *shown)
    return _figure_answer(heap_timeline_figure(timeline, queries.heap_gauges(trace.db, found.n, *shown), taints(trace)), shown)


def found_process(trace: OpenTrace, text: str) -> tuple[int, ProcessRow]:
    """The process of a link, with its number. Raises NotFound with the nearest."""
    link = parse_process(text)
    found = find_process(trace.db, link)
    if found is None:
        near = nearest_processes(trace.db, link)
        ways = tuple(
            Crumb(f"{row.name} ({row.process})", trace.urls("heap_process", trace_key=trace.key, process=row.process)) for row in near
        )
        everything = (Crumb("all traced heaps", trace.urls("heap", trace_key=trace.key)),)
        raise NotFound(f"No process {text} is in this trace." + (" The nearest by time:" if ways else ""), ways=ways or everything)
    return found


def _found_heap(trace: OpenTrace, process_n: int, process: ProcessRow, text: str) -> queries.HeapRow:
    found = queries.find_heap(trace.db, process_n, process.process, parse_heap(text))
    if found is None:
        way = Crumb(f"the heaps of {process.name}", trace.urls("heap_process", trace_key=trace.key, process=process.process))
        raise NotFound(f"Process {process.name} has no heap {text} in this trace.", ways=(way,))
    return found


def _as_query(shown: tuple[int, int]) -> dict[str, str]:
    return {"from": str(shown[0]), "to": str(shown[1])}


def _figure_answer(figure: Figure, shown: tuple[int, int]) -> Response:
    body = {"from_ns": str(shown[0]), "to_ns": str(shown[1]), "figure": figure}
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Response(text, media_type="application/json", headers={"Cache-Control": "no-cache"})


def _short(row: queries.HeapProcessRow) -> str:
    return " ".join(str(part) for part in (row.process.image or "process", row.process.pid) if part is not None)


def _sentence(live: tuple[int, int], peak: int | None, peak_ns: int | None) -> str:
    held = f"It holds {bytes_text(live[0])} in {plural(live[1], 'block')} at the end that were not there when the trace began"
    most = f"; the most was {bytes_text(peak)} at {fmt.time(peak_ns)}" if peak else ""
    return f"{held}{most}. Blocks from before the trace are unknown."


def _heap_sentence(heap: queries.HeapRow) -> str:
    life = "is older than the trace" if heap.created_ns is None else f"was created at {fmt.time(heap.created_ns)}"
    held = f"{bytes_text(heap.live_bytes)} in {plural(heap.live_blocks, 'block')} that were not there when the trace began"
    if heap.destroyed_ns is not None:
        return f"This heap {life} and was destroyed at {fmt.time(heap.destroyed_ns)}."
    return f"This heap {life}; at the end it holds {held}."


def _chart_words(what: str, shown: tuple[int, int]) -> str:
    return (
        f"Live bytes of {what} from {fmt.time(shown[0])} to {fmt.time(shown[1])} as a change since the trace began, live blocks, "
        "and blocks allocated and released over time."
    )


def _window(trace: OpenTrace, scope: HeapScope, timeline: HeapTimeline, path: str) -> WindowPart:
    """The tables of a window [from, to); a window with too many blocks is answered with what to do."""
    t0, t1 = timeline.from_ns, timeline.to_ns
    blocks = sum(bucket.allocs for bucket in timeline.buckets)
    if blocks > MAX_BLOCKS:
        return WindowPart(
            too_many=f"{plural(blocks, 'block')} began in this range; up to {plural(MAX_BLOCKS, 'block')} are sorted into classes."
        )
    try:
        found = windows.heap_window(trace.db, scope, t0, t1, stacks=STACKS_SHOWN)
        return WindowPart(
            classes=found.classes,
            stacks=plain_listing("stacks", path, STACK_COLUMNS, found.stacks),
            stacks_number=found.stacks_number,
            sizes=found.sizes,
            lifetimes=found.lifetimes,
        )
    except StoreSlow:
        return WindowPart(too_many=f"Sorting the {plural(blocks, 'block')} of this range into classes takes too long.")
