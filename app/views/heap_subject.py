"""What a heap page answers for: a process, or one heap of it that its link or its query string names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from fastapi import Request

from app.deps import OpenTrace
from app.errors import NotFound
from app.format import bytes_text, time
from app.links import parse_heap, parse_process
from app.page import Crumb, Page, TraceHead
from app.queries import heap_pages as queries
from app.queries.heap_timeline import HeapScope
from app.queries.processes import ProcessRow, find_process, nearest_processes
from app.urls import with_query
from app.views.lives import choose_heap, choose_process

__all__ = ["HeapChoice", "HeapForm", "HeapSubject", "SubjectPage", "asked_subject", "found_heap", "found_process"]


@dataclass(frozen=True, slots=True)
class HeapChoice:
    """One of the heaps that the page can be narrowed to: the value of `heap` in its query string, and words."""

    heap: str
    text: str


@dataclass(frozen=True, slots=True)
class HeapForm:
    """The choice of one heap of a process: `chosen` is empty for all of them, `kept` the rest of the query string."""

    choices: tuple[HeapChoice, ...]
    chosen: str
    kept: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectPage(Page):
    """A page about what a process holds, or one heap of it: `heap` is its link, None for all heaps."""

    process: ProcessRow
    heap: str | None
    heap_form: HeapForm = field(metadata={"json": False})


class _Frame(TypedDict):
    """What all such pages have of their subject."""

    trace: TraceHead
    crumbs: tuple[Crumb, ...]
    section: str
    canonical: str
    process: ProcessRow
    heap: str | None
    heap_form: HeapForm


@dataclass(frozen=True, slots=True)
class HeapSubject:
    """A process or one of its heaps. `path` is the page of its timeline, `query` what a link to a page of it must carry.

    `narrowed` are the filters of the list of allocations that have its blocks, `form` the choice of another heap.
    """

    scope: HeapScope
    process: ProcessRow
    heap: queries.HeapRow | None
    name: str
    path: str
    query: Mapping[str, str]
    narrowed: Mapping[str, str]
    crumbs: tuple[Crumb, ...]
    form: HeapForm

    def frame(self, trace: OpenTrace, path: str) -> _Frame:
        """The parts of a `SubjectPage` at `path` that come from its subject."""
        return _Frame(
            trace=trace.head,
            crumbs=trace.crumbs(*self.crumbs),
            section="heap",
            canonical=path,
            process=self.process,
            heap=self.query.get("heap"),
            heap_form=self.form,
        )

    def href(self, path: str, query: Mapping[str, str]) -> str:
        """A path that asks for the same heap."""
        return with_query(path, {**self.query, **query})


def asked_subject(request: Request, trace: OpenTrace, process: str) -> HeapSubject:
    """The process of a link, narrowed to the `heap` of the query string. Raises NotFound with what is near, BadLink."""
    n, row = found_process(trace, process)
    text = request.query_params.get("heap", "").strip()
    heap = found_heap(trace, n, row, text, in_query=True) if text else None
    process_path = trace.urls("heap_process", trace_key=trace.key, process=row.process)
    crumbs = [Crumb("heap", trace.urls("heap", trace_key=trace.key)), Crumb(row.name, process_path)]
    narrowed, path = {"process": row.process}, process_path
    if heap is not None:
        path = trace.urls("one_heap", trace_key=trace.key, process=row.process, heap=heap.heap)
        crumbs.append(Crumb(f"heap {heap.handle}", path))
        narrowed["heap"] = heap.heap
    return HeapSubject(
        scope=HeapScope("process", n, n) if heap is None else HeapScope("heap", heap.n, n),
        process=row,
        heap=heap,
        name=row.name if heap is None else f"heap {heap.handle} of {row.name}",
        path=path,
        query={} if heap is None else {"heap": heap.heap},
        narrowed=narrowed,
        crumbs=tuple(crumbs),
        form=HeapForm(
            choices=tuple(HeapChoice(one.heap, _choice(one)) for one in queries.heaps_of(trace.db, n, row.process)),
            chosen="" if heap is None else heap.heap,
            kept={key: value for key, value in request.query_params.items() if key != "heap"},
        ),
    )


def found_process(trace: OpenTrace, text: str) -> tuple[int, ProcessRow]:
    """The process of a link, with its number. Raises NotFound with the nearest; OtherName, SeveralFit for a link without a time."""
    link = parse_process(text)
    choose_process(trace, link)
    found = find_process(trace.db, link)
    if found is None:
        near = nearest_processes(trace.db, link)
        ways = tuple(
            Crumb(f"{row.name} ({row.process})", trace.urls("heap_process", trace_key=trace.key, process=row.process)) for row in near
        )
        everything = (Crumb("all traced heaps", trace.urls("heap", trace_key=trace.key)),)
        raise NotFound(f"No process {text} is in this trace." + (" The nearest by time:" if ways else ""), ways=ways or everything)
    return found


def found_heap(trace: OpenTrace, process_n: int, process: ProcessRow, text: str, *, in_query: bool = False) -> queries.HeapRow:
    """The heap of a link below its process. Raises NotFound, BadLink; OtherName, SeveralFit for a link without a time."""
    link = parse_heap(text)
    choose_heap(trace, process_n, process.process, link, in_query=in_query)
    found = queries.find_heap(trace.db, process_n, process.process, link)
    if found is None:
        near = queries.nearest_heaps(trace.db, process_n, process.process, link)
        ways = [Crumb(_life(one), trace.urls("one_heap", trace_key=trace.key, process=process.process, heap=one.heap)) for one in near]
        ways.append(Crumb(f"the heaps of {process.name}", trace.urls("heap_process", trace_key=trace.key, process=process.process)))
        raise NotFound(f"Process {process.name} has no heap {text} in this trace." + (" The nearest:" if near else ""), ways=tuple(ways))
    return found


def _life(heap: queries.HeapRow) -> str:
    ends = f"to {time(heap.destroyed_ns)}" if heap.destroyed_ns is not None else "there when the trace ended"
    return f"heap {heap.handle}, first seen at {time(heap.first_ns)}, {ends}"


def _choice(heap: queries.HeapRow) -> str:
    life = f", life {heap.life}" if heap.life > 1 else ""
    return f"{heap.handle}{life}: {bytes_text(heap.live_bytes)}"
