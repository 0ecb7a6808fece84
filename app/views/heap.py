"""The heap pages: processes with a traced heap, one process, one heap, and the timelines that their charts load."""

import json
from dataclasses import dataclass, field
from typing import ClassVar

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app import format as fmt
from app.asked import refuse_unread
from app.charts.figure import Figure
from app.charts.heap_timeline import heap_overview_figure, heap_timeline_figure
from app.deps import OpenTrace, ReadTrace
from app.format import bytes_text, plural
from app.listing import Column, Listing, plain_listing
from app.page import Crumb, Page
from app.queries import heap_pages as queries
from app.queries import heap_window as windows
from app.queries.heap_gauges import heap_gauges, heap_marks
from app.queries.heap_timeline import HeapScope, HeapTimeline, heap_timeline, live_at_end
from app.queries.heap_whole import covers_all
from app.queries.processes import ProcessRow
from app.render import render
from app.views.described import described
from app.views.heap_fill import FillPart, fill_part, fill_table
from app.views.heap_subject import found_heap, found_process
from app.views.lists import Empty, why_empty
from app.views.ranges import RangePart, asked_range, half_open, range_part, taints, whole_trace
from collector.errors import StoreSlow

__all__ = ["HeapPage", "HeapProcessPage", "HeapsPage", "WindowPart", "router"]

router = APIRouter()

STACKS_SHOWN = 25
MODULES_SHOWN = 50
LINES_SHOWN = 8
MARKS_SHOWN = 100
MAX_BLOCKS = 300_000
"""Blocks of a part of a trace that a page reads one by one, in a second; the whole trace is added up once, by the collector."""

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
    Column("committed", "Committed", "bytes", term="committed"),
    Column("reserved", "Reserved", "bytes", term="reserved"),
    Column("free_space", "Free space", "bytes", term="free space"),
    Column("created_ns", "Created", "before"),
    Column("destroyed_ns", "Destroyed", "ended"),
    Column("flags", "Flags", "optional"),
)
STACK_COLUMNS = (
    Column("callers", "Innermost callers", "held_callers", keeps=True, term="stack"),
    Column("held_bytes", "Held", "bytes", keeps=True, term="held"),
    Column("held", "Blocks held", "count"),
    Column("allocated_bytes", "Allocated", "bytes"),
    Column("allocated", "Allocations", "count"),
    Column("first_ns", "First", "time"),
    Column("last_ns", "Last", "time"),
)
MODULE_COLUMNS = (
    Column("module", "Module", "path", keeps=True),
    *(column for column in STACK_COLUMNS if column.key in ("held_bytes", "held", "allocated_bytes", "allocated")),
)
ANOMALY_COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("kind", "What", "label", keeps=True),
    Column("heap", "Heap", "address"),
    Column("address", "Address", "address"),
    Column("allocation", "Allocation", "allocation"),
    Column("tid", "Thread", "number"),
    Column("stack", "Stack", "stack"),
)
COUNTER_COLUMNS = (Column("name", "Counter", "label", keeps=True), Column("value", "Value", "count", keeps=True))


@dataclass(frozen=True, slots=True)
class WindowPart:
    """What happened with blocks between two times. `too_many` is set instead of the rest where counting would take too long."""

    classes: windows.WindowClasses | None = None
    stacks: Listing | None = None
    stacks_number: int = 0
    modules: Listing | None = None
    modules_number: int = 0
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

    has_report: ClassVar[bool] = True

    process: ProcessRow
    range: RangePart = field(metadata={"json": False})
    chart: Figure = field(metadata={"json": False})
    chart_href: str = field(metadata={"json": False})
    chart_words: str = field(metadata={"json": False})
    window: WindowPart
    live_bytes: int
    live_blocks: int
    ways: tuple[Crumb, ...] = field(metadata={"json": False})


@dataclass(frozen=True, slots=True, kw_only=True)
class HeapProcessPage(HeapScopePage):
    """The heap of one process."""

    peak_bytes: int | None
    peak_ns: int | None
    heaps: Listing
    fills: Listing
    counters: Listing
    anomalies: Listing
    anomaly_numbers: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeapPage(HeapScopePage):
    """One life of one heap."""

    heap: queries.HeapRow
    fill: FillPart
    marks: tuple[tuple[int, str], ...]
    marks_number: int


@router.get(
    "/t/{trace_key}/heap", name="heap", summary="Processes with heap", response_class=HTMLResponse, openapi_extra=described("format")
)
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
        listing=plain_listing("heap", path, PROCESS_COLUMNS, rows, queries.HeapProcessRow),
        chart=heap_overview_figure(lines, taints(trace)) if lines else None,
        chart_words="Live bytes of the processes that hold the most, as a change since the trace began.",
        empty=None if rows else why_empty(trace.db, nouns="heaps", needs=("heap",), otherwise="No heap was traced."),
    )
    return render(request, "heaps.html", page)


@router.get(
    "/t/{trace_key}/heap/{process}",
    name="heap_process",
    summary="The heap of one process",
    response_class=HTMLResponse,
    openapi_extra=described("from", "to", "format"),
)
def heap_process(request: Request, trace: ReadTrace, process: str) -> Response:
    """The live heap of a process over time; `from` and `to` choose the window that the tables answer for."""
    n, row = found_process(trace, process)
    scope = HeapScope("process", n, n)
    whole = whole_trace(trace)
    shown = asked_range(request, whole)
    path = trace.urls("heap_process", trace_key=trace.key, process=row.process)
    counters = queries.heap_counters(trace.db, n)
    by_name = {counter.name: counter.value for counter in counters}
    anomalies, anomaly_numbers = queries.heap_anomalies(trace.db, n, row.process, *shown)
    timeline = heap_timeline(trace.db, scope, *shown)
    live = live_at_end(trace.db, scope)
    heaps = queries.heaps_of(trace.db, n, row.process)
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
        window=_window(trace, scope, timeline, half_open(shown, whole), path),
        live_bytes=live[0],
        live_blocks=live[1],
        peak_bytes=by_name.get("peak_bytes"),
        peak_ns=by_name.get("peak_ns"),
        heaps=plain_listing("heaps", path, HEAP_COLUMNS, heaps, queries.HeapRow),
        fills=fill_table(trace, heaps, n, shown, path),
        counters=plain_listing(
            "counters", path, COUNTER_COLUMNS, [one for one in counters if not one.name.startswith("peak")], queries.CounterRow
        ),
        anomalies=plain_listing("anomalies", path, ANOMALY_COLUMNS, anomalies, queries.AnomalyRow),
        anomaly_numbers=anomaly_numbers,
        ways=_ways(trace, row, None, shown, whole),
    )
    return render(request, "heap_process.html", page)


@router.get(
    "/t/{trace_key}/heap/{process}/timeline",
    name="heap_process_timeline",
    summary="The heap timeline of one process in a range",
    openapi_extra=described("from", "to"),
)
def heap_process_timeline(request: Request, trace: ReadTrace, process: str) -> Response:
    """The figure of a process's heap between `from` and `to` (nanoseconds), of bounded size; always JSON."""
    n, _ = found_process(trace, process)
    shown = asked_range(request, whole_trace(trace))
    refuse_unread(request)
    return _figure_answer(heap_timeline_figure(heap_timeline(trace.db, HeapScope("process", n, n), *shown), losses=taints(trace)), shown)


@router.get(
    "/t/{trace_key}/heap/{process}/{heap}",
    name="one_heap",
    summary="One heap",
    response_class=HTMLResponse,
    openapi_extra=described("from", "to", "format"),
)
def one_heap(request: Request, trace: ReadTrace, process: str, heap: str) -> Response:
    """One life of a heap handle, `0xHEAP@NS`: its live bytes beside what the allocator committed and reserved for it."""
    n, row = found_process(trace, process)
    found = found_heap(trace, n, row, heap)
    scope = HeapScope("heap", found.n, n)
    whole = whole_trace(trace)
    shown = asked_range(request, whole)
    path = trace.urls("one_heap", trace_key=trace.key, process=row.process, heap=found.heap)
    timeline = heap_timeline(trace.db, scope, *shown)
    marks = heap_marks(trace.db, found.n, *shown, limit=MARKS_SHOWN)
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
        chart=_heap_figure(trace, found, timeline, shown),
        chart_href=trace.urls("one_heap_timeline", trace_key=trace.key, process=row.process, heap=found.heap),
        chart_words=_chart_words(f"heap {found.handle}", shown),
        window=_window(trace, scope, timeline, half_open(shown, whole), path),
        live_bytes=found.live_bytes,
        live_blocks=found.live_blocks,
        ways=_ways(trace, row, found, shown, whole),
        heap=found,
        fill=fill_part(trace, found, n, shown, path),
        marks=tuple(marks[0]),
        marks_number=marks[1],
    )
    return render(request, "heap.html", page)


@router.get(
    "/t/{trace_key}/heap/{process}/{heap}/timeline",
    name="one_heap_timeline",
    summary="The timeline of one heap in a range",
    openapi_extra=described("from", "to"),
)
def one_heap_timeline(request: Request, trace: ReadTrace, process: str, heap: str) -> Response:
    """The figure of one heap between `from` and `to` (nanoseconds), of bounded size; always JSON."""
    n, row = found_process(trace, process)
    found = found_heap(trace, n, row, heap)
    shown = asked_range(request, whole_trace(trace))
    refuse_unread(request)
    timeline = heap_timeline(trace.db, HeapScope("heap", found.n, n), *shown)
    return _figure_answer(_heap_figure(trace, found, timeline, shown), shown)


def _heap_figure(trace: OpenTrace, heap: queries.HeapRow, timeline: HeapTimeline, shown: tuple[int, int]) -> Figure:
    return heap_timeline_figure(timeline, heap_gauges(trace.db, heap.n, *shown), taints(trace), gone_ns=heap.destroyed_ns)


def _ways(
    trace: OpenTrace, process: ProcessRow, heap: queries.HeapRow | None, shown: tuple[int, int], whole: tuple[int, int]
) -> tuple[Crumb, ...]:
    """The other pages of the same process or heap, in the same range."""
    own = {} if heap is None else {"heap": heap.heap}
    in_range = {} if shown == whole else {"from": str(shown[0]), "to": str(shown[1])}
    moments = {} if shown == whole else {"a": str(shown[0]), "b": str(shown[1])}

    def to(name: str, query: dict[str, str]) -> str:
        return trace.urls(name, own | query, trace_key=trace.key, process=process.process)

    of_process = {"process": process.process}
    found = [] if heap else [Crumb("The process", trace.urls("process", trace_key=trace.key, process=process.process))]
    found += [
        Crumb("What it holds in this range, by calls", to("heap_flame", in_range)),
        Crumb("What grows steadily in this range", to("heap_growth", in_range)),
        Crumb("Two moments against each other", to("heap_compare", moments)),
    ]
    if heap is None:
        found.append(Crumb("All its heaps, to filter and sort", trace.urls("heaps", of_process, trace_key=trace.key)))
        found.append(Crumb("All its stacks that hold memory", trace.urls("stacks", of_process, trace_key=trace.key)))
    found.append(Crumb("All its allocations", trace.urls("allocations", of_process | own, trace_key=trace.key)))
    return tuple(found)


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
        f"Live bytes of {what} {fmt.time_span(*shown)} as a change since the trace began, live blocks, "
        "and blocks allocated and released over time."
    )


def _window(trace: OpenTrace, scope: HeapScope, timeline: HeapTimeline, window: tuple[int, int], path: str) -> WindowPart:
    """The tables of a window [from, to); a window with too many blocks is answered with what to do."""
    blocks = sum(bucket.allocs for bucket in timeline.buckets)
    if blocks > MAX_BLOCKS and not covers_all(trace.db, scope, *window):
        return WindowPart(
            too_many=f"{plural(blocks, 'block')} began in this range; up to {plural(MAX_BLOCKS, 'block')} are sorted into classes."
        )
    try:
        found = windows.heap_window(trace.db, scope, *window, stacks=STACKS_SHOWN)
        return WindowPart(
            classes=found.classes,
            stacks=plain_listing("stacks", path, STACK_COLUMNS, found.stacks, windows.HeldByStack),
            stacks_number=found.stacks_number,
            modules=plain_listing("modules", path, MODULE_COLUMNS, found.modules[:MODULES_SHOWN], windows.HeldByModule),
            modules_number=len(found.modules),
            sizes=found.sizes,
            lifetimes=found.lifetimes,
        )
    except StoreSlow:
        return WindowPart(too_many=f"Sorting the {plural(blocks, 'block')} of this range into classes takes too long.")
