"""The page of one heap allocation: its history, its stacks, and who used it."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app import format as fmt
from app.deps import ReadTrace
from app.errors import NotFound
from app.links import parse_allocation
from app.listing import Column, Listing, plain_listing
from app.notes import notes_part
from app.page import Crumb, Page
from app.queries import allocation_page as queries
from app.queries.allocations import AllocationRow
from app.queries.processes import ProcessRow
from app.render import render
from app.views.described import described
from app.views.heap_subject import found_process
from app.views.lives import choose_allocation

__all__ = ["AllocationPage", "router"]

router = APIRouter()

USER_COLUMNS = (
    Column("operation", "Operation", "row_operation", keeps=True),
    Column("posted_ns", "Posted", "before", keeps=True),
    Column("socket", "Socket", "socket"),
    Column("outcome", "Outcome", "words"),
    Column("buffer", "Buffer", "address"),
    Column("posted_len", "Buffer size", "bytes"),
    Column("offset", "Offset", "count"),
    Column("buffer_class", "Memory", "words"),
    Column("bytes", "Moved", "bytes"),
    Column("conflict", "Conflict", "conflict"),
)
GENERATION_COLUMNS = (
    Column("generation", "Generation", "generation", keeps=True, term="generation"),
    Column("size", "Size", "bytes", keeps=True),
    Column("heap", "Heap", "hex_address"),
    Column("start_ns", "Allocated", "before"),
    Column("end_ns", "Ended", "ended"),
    Column("end_reason", "How", "optional_words"),
    Column("origin", "Origin", "words", term="origin"),
    Column("owner_stack", "Stack", "stack"),
)
RESIZE_COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("old_size", "From", "bytes", keeps=True),
    Column("size", "To", "bytes", keeps=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationPage(Page):
    """One heap allocation."""

    process: ProcessRow
    allocation: queries.AllocationWhole
    users: Listing
    generations: Listing
    resizes: Listing


@router.get(
    "/t/{trace_key}/heap/{process}/{heap}:{address}",
    name="allocation",
    summary="One allocation",
    response_class=HTMLResponse,
    openapi_extra=described("format"),
)
def allocation(request: Request, trace: ReadTrace, process: str, heap: str, address: str) -> Response:
    """One allocation, `0xHEAP:0xADDRESS@NS` under its process: any time in its life names it."""
    n, row = found_process(trace, process)
    link = parse_allocation(f"{heap}:{address}")
    choose_allocation(trace, n, row.process, link)
    whole = queries.find_allocation(trace.db, n, link)
    if whole is None:
        near = queries.nearest_allocations(trace.db, n, link)
        ways = tuple(
            Crumb(f"{one.allocation} ({fmt.time(one.first_ns)})", trace.urls.below(trace.key, f"heap/{row.process}/{one.allocation}"))
            for one in near
        )
        everything = (Crumb("its allocations", trace.urls("allocations", {"process": row.process}, trace_key=trace.key)),)
        raise NotFound(
            f"No allocation {link} of {row.name} is in this trace." + (" What lived at this address:" if ways else ""),
            ways=ways or everything,
        )
    path = trace.urls.below(trace.key, f"heap/{row.process}/{whole.row.allocation}")
    page = AllocationPage(
        title=f"{fmt.bytes_text(whole.row.size)} at {whole.row.address}",
        sentence=_sentence(whole),
        trace=trace.head,
        crumbs=trace.crumbs(
            Crumb("heap", trace.urls("heap", trace_key=trace.key)),
            Crumb(row.name, trace.urls("heap_process", trace_key=trace.key, process=row.process)),
        ),
        section="allocations",
        canonical=path,
        notes=notes_part(request, trace, f"heap/{row.process}/{whole.row.allocation}"),
        process=row,
        allocation=whole,
        users=plain_listing("users", path, USER_COLUMNS, queries.users(trace.db, whole), queries.UserRow),
        generations=plain_listing("generations", path, GENERATION_COLUMNS, queries.generations(trace.db, whole, n), AllocationRow),
        resizes=plain_listing("resizes", path, RESIZE_COLUMNS, queries.resizes(trace.db, whole), queries.ResizeRow),
    )
    return render(request, "allocation.html", page)


_ENDS = {
    "freed": "freed",
    "realloc_moved": "moved by a reallocation",
    "heap_destroyed": "gone with its heap",
    "process_exit": "gone with its process",
    "superseded": "handed out again: its free is not in the trace",
    "heap_superseded": "gone with its heap, whose destruction is not in the trace",
}


def _sentence(whole: queries.AllocationWhole) -> str:
    row = whole.row
    began = f"was allocated at {fmt.time(row.start_ns)}" if row.start_ns is not None else "is older than its first record"
    if row.end_ns is None:
        sure = "" if row.trust != "possible" else "; records were lost after it began, so it may have been freed"
        return f"This block {began} and is still held when the trace ends{sure}."
    end = f"{_ENDS.get(row.end_reason or '', 'over')} at {fmt.time(row.end_ns)}"
    inferred = " (inferred)" if whole.end_inferred else ""
    lasted = f" after {fmt.duration(row.life_ns)}" if row.start_ns is not None else ""
    return f"This block {began} and was {end}{inferred}{lasted}."
