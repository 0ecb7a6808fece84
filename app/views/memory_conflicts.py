"""One overlap and one operation whose memory was freed under it, each as a picture of addresses against time."""

from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app import format as fmt
from app.charts.figure import Figure
from app.charts.memory import Area, Cut, memory_figure
from app.deps import OpenTrace, ReadTrace
from app.errors import NotFound
from app.links import NEAR_SHOWN
from app.page import Crumb, Page
from app.queries.allocations import AllocationRow, allocation, allocation_rows
from app.queries.frees import FreeRow, frees_of
from app.queries.operations import OperationWhole
from app.queries.overlaps import OverlapRow, overlaps_of
from app.render import render
from app.views.described import described
from app.views.found_operation import found_operation

__all__ = ["ConflictPage", "OverlapPage", "router"]

router = APIRouter()

MAX_OVERLAPS = 1_000

_MEANING = {
    "send->send": "Two sends share memory. That is harmless if the content stays the same until both are over, and often intended.",
    "recv->recv": "Two receives share memory: the data that arrives later wins, and the program reads a mixture.",
    "recv->send": "A send was posted over a receive in flight: the program sends bytes that the receive may be changing.",
    "send->recv": "A receive was posted over a send in flight: incoming data may overwrite bytes that are not sent yet.",
}
_CONFLICTS = {
    "freed_in_flight": "The memory was given back while the operation was using it.",
    "reused_in_flight": "The memory was handed out again while the operation was still using it: corruption is likely.",
    "shrunk_in_flight": "The memory was shrunk below the buffer's end while the operation was using it.",
    "overruns_block": "The buffer reaches past the end of its block.",
    "posted_after_free": "The operation was posted on memory that had been given back before.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapPage(Page):
    """Two operations that shared memory."""

    overlap: OverlapRow
    meaning: str
    first: OperationWhole
    second: OperationWhole
    block: AllocationRow | None
    chart: Figure = field(metadata={"json": False})
    chart_words: str = field(metadata={"json": False})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictPage(Page):
    """An operation and the heap blocks that got in its way."""

    operation: OperationWhole
    conflicts: tuple[FreeRow, ...]
    meanings: tuple[str, ...]
    blocks: tuple[AllocationRow, ...]
    chart: Figure = field(metadata={"json": False})
    chart_words: str = field(metadata={"json": False})


@router.get(
    "/t/{trace_key}/overlaps/{first_socket}/{first}/{second_socket}/{second}",
    name="overlap",
    summary="One overlap",
    response_class=HTMLResponse,
    openapi_extra=described("format"),
)
def overlap(request: Request, trace: ReadTrace, first_socket: str, first: str, second_socket: str, second: str) -> Response:
    """Two operations, each `KIND:0xBUFFER@NS` under its socket `0xENDPOINT@NS`, the one posted first before the other."""
    one, other = found_operation(trace, first_socket, first), found_operation(trace, second_socket, second)
    rows = overlaps_of(trace.db, one.n, limit=MAX_OVERLAPS)
    shared = [row for row in rows if row.second == other.row.operation and row.second_socket == other.row.socket]
    if not shared:
        raise _no_overlap(trace, one, other)
    row = shared[0]
    block = _block(trace, other.allocation_n if one.allocation_n is None else one.allocation_n)
    areas = [_block_area(block)] if block else []
    areas += [_operation_area(one, "first"), _operation_area(other, "second")]
    ends = [whole.row.end_ns for whole in (one, other) if whole.row.end_ns is not None]
    areas.append(
        Area("shared", f"{fmt.bytes_text(row.shared_bytes)} shared", row.lo, row.hi, row.t_ns, min(ends, default=None), _shared_words(row))
    )
    page = OverlapPage(
        title=f"{row.first_kind} and {row.second_kind} share {fmt.bytes_text(row.shared_bytes)}",
        sentence=(
            f"A {row.second_kind} was posted at {fmt.time(row.t_ns)} while a {row.first_kind} still used "
            f"{fmt.plural(row.shared_bytes, 'byte')} of the same memory. {row.certainty.capitalize()}."
        ),
        trace=trace.head,
        crumbs=trace.crumbs(Crumb("overlaps", trace.urls("overlaps", trace_key=trace.key))),
        section="overlaps",
        canonical=_path(trace, row),
        overlap=row,
        meaning=_MEANING.get(row.pair, ""),
        first=one,
        second=other,
        block=block,
        chart=memory_figure(areas, _cuts([block] if block else [])),
        chart_words=_shared_words(row),
    )
    return render(request, "overlap.html", page)


@router.get(
    "/t/{trace_key}/in-flight-frees/{socket}/{operation}",
    name="in_flight_free",
    summary="Memory freed under one operation",
    response_class=HTMLResponse,
    openapi_extra=described("format"),
)
def in_flight_free(request: Request, trace: ReadTrace, socket: str, operation: str) -> Response:
    """One operation, `KIND:0xBUFFER@NS` under its socket, and what happened to the memory that it was using."""
    whole = found_operation(trace, socket, operation)
    conflicts = frees_of(trace.db, whole.n)
    if not conflicts:
        everything = Crumb("all such conflicts of this trace", trace.urls("in_flight_frees", trace_key=trace.key))
        raise NotFound(
            "Nothing was seen to happen to the memory of this operation while it was in flight.", ways=(_way_to(trace, whole), everything)
        )
    blocks = _blocks(trace, whole, conflicts)
    areas = [_block_area(block) for block in blocks] + [_operation_area(whole, "")]
    first = conflicts[0]
    page = ConflictPage(
        title=f"{first.operation_kind} of {fmt.bytes_text(first.posted_len)}, {fmt.words(first.kind)}",
        sentence=f"{_CONFLICTS.get(first.kind, '')} {first.certainty.capitalize()}, at {fmt.time(first.t_ns)}.",
        trace=trace.head,
        crumbs=trace.crumbs(Crumb("freed in flight", trace.urls("in_flight_frees", trace_key=trace.key))),
        section="in-flight-frees",
        canonical=trace.urls("in_flight_free", trace_key=trace.key, socket=whole.row.socket, operation=whole.row.operation),
        operation=whole,
        conflicts=tuple(conflicts),
        meanings=tuple(_CONFLICTS.get(conflict.kind, "") for conflict in conflicts),
        blocks=tuple(blocks),
        chart=memory_figure(areas, _cuts(blocks)),
        chart_words="The operation's buffer and the heap blocks at its addresses, from their start to their end.",
    )
    return render(request, "in_flight_free.html", page)


def _path(trace: OpenTrace, row: OverlapRow) -> str:
    sockets = {"first_socket": row.first_socket, "second_socket": row.second_socket}
    return trace.urls("overlap", trace_key=trace.key, first=row.first, second=row.second, **sockets)


def _no_overlap(trace: OpenTrace, one: OperationWhole, other: OperationWhole) -> NotFound:
    """Says that two operations share nothing, with what each of them shares with others, and with themselves."""
    near = {_path(trace, row): row for whole in (one, other) for row in overlaps_of(trace.db, whole.n, limit=NEAR_SHOWN)}
    ways = [Crumb(_shared_words(row), path) for path, row in [*near.items()][:NEAR_SHOWN]]
    ways += [_way_to(trace, one), _way_to(trace, other)]
    ways.append(Crumb("all overlaps of this trace", trace.urls("overlaps", trace_key=trace.key)))
    said = " One of them shares memory here:" if near else ""
    return NotFound(f"These two operations share no memory in this trace.{said}", ways=tuple(ways))


def _way_to(trace: OpenTrace, whole: OperationWhole) -> Crumb:
    row = whole.row
    return Crumb(f"the {row.kind} itself", trace.urls.below(trace.key, f"sockets/{row.socket}/{row.operation}"))


def _block(trace: OpenTrace, n: int | None) -> AllocationRow | None:
    rows = allocation_rows(trace.db, allocation.c.n == n, limit=1) if n is not None else []
    return rows[0] if rows else None


def _blocks(trace: OpenTrace, whole: OperationWhole, conflicts: list[FreeRow]) -> list[AllocationRow]:
    """The blocks of the conflicts and the one that the buffer lies in, oldest first."""
    numbers = {conflict.allocation_n for conflict in conflicts} | {whole.allocation_n}
    return allocation_rows(trace.db, allocation.c.n.in_([n for n in numbers if n is not None]), limit=20)


def _operation_area(whole: OperationWhole, place: str) -> Area:
    row = whole.row
    lo = row.buffer or 0
    kind = "send" if row.kind.startswith("send") else "receive"
    ends = f"to {fmt.time(row.end_ns)}" if row.end_ns is not None else "to the end of the trace"
    return Area(
        kind,
        f"{place} {row.kind}".strip(),
        lo,
        lo + (row.posted_len or 0),
        row.posted_ns,
        row.end_ns,
        f"{row.kind} of {fmt.bytes_text(row.posted_len)} at {row.buffer}, from {fmt.time(row.posted_ns)} {ends}",
    )


def _block_area(block: AllocationRow) -> Area:
    ends = f"to {fmt.time(block.end_ns)}" if block.end_ns is not None else "to the end of the trace"
    since = f"from {fmt.time(block.start_ns)}" if block.start_ns is not None else "from before the trace"
    return Area(
        "block",
        f"heap block of {fmt.bytes_text(block.size)}",
        block.address,
        block.address + block.size,
        block.start_ns,
        block.end_ns,
        f"heap block {block.address} of {fmt.bytes_text(block.size)}, {since} {ends}",
    )


def _cuts(blocks: list[AllocationRow]) -> list[Cut]:
    return [Cut(block.end_ns, fmt.words(block.end_reason or "ended")) for block in blocks if block.end_ns is not None]


def _shared_words(row: OverlapRow) -> str:
    pair = f"a {row.first_kind} and a {row.second_kind}"
    return f"{fmt.bytes_text(row.shared_bytes)} from {row.lo} to {row.hi} shared by {pair} from {fmt.time(row.t_ns)}"
