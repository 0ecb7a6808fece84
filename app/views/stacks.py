"""Call stacks: what each still holds, and the frames of one."""

from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.errors import NotFound
from app.format import plural
from app.listing import Column, Listing, plain_listing
from app.page import Crumb, Page
from app.queries import stacks as queries
from app.queries.stack_uses import stack_uses
from app.render import render
from app.views.grouped import grouped_listing, grouped_sentence
from app.views.lists import ListPage, asked_of, parameters, why_empty

__all__ = ["HELD_COLUMNS", "StackPage", "router"]

router = APIRouter()

HELD_COLUMNS = (
    Column("callers", "Innermost callers", "callers", keeps=True, term="stack"),
    Column("held_bytes", "Held", "bytes", keeps=True),
    Column("held_count", "Blocks held", "count"),
    Column("process", "Process", "process"),
    Column("allocations", "Allocations", "count"),
    Column("allocated_bytes", "Allocated", "bytes"),
    Column("first_ns", "First", "time"),
    Column("last_ns", "Last", "time"),
)

FRAME_COLUMNS = (
    Column("frame", "Frame", "number"),
    Column("module", "Module", "path", keeps=True),
    Column("symbol", "Function", "optional_text", keeps=True),
    Column("offset", "Offset", "optional"),
    Column("address", "Address", "hex_address"),
)

USE_COLUMNS = (
    Column("what", "What", "text", keeps=True),
    Column("times", "Times", "count", keeps=True),
    Column("first_ns", "First", "time"),
    Column("last_ns", "Last", "time"),
)

USER_COLUMNS = tuple(column for column in HELD_COLUMNS if column.key != "callers")


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPage(Page):
    """One call stack."""

    stack: str
    is_complete: bool
    frames: Listing
    users: Listing
    uses: Listing
    ways: tuple[Crumb, ...] = field(metadata={"json": False})


@router.get(
    "/t/{trace_key}/stacks",
    name="stacks",
    summary="Memory held by call stack",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def stacks(request: Request, trace: ReadTrace) -> Response:
    """Memory that was allocated while the trace ran and is still held at its end, by the stack that allocated it."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, has_more = queries.held_by_stack(trace.db, asked)
    table = grouped_listing(request, trace, asked, rows, name="stacks", columns=HELD_COLUMNS, filters=queries.FILTERS, sorts=queries.SORTS)
    empty = None
    if not rows:
        empty = why_empty(
            trace.db,
            nouns="stacks",
            needs=("heap", "stacks"),
            otherwise="No allocation of this trace has a stack.",
            clear_href=table.clear_href,
            narrowed=asked.where.in_words(),
        )
    page = ListPage(
        title="Stacks",
        sentence=grouped_sentence(len(rows), has_more, ("stack that allocates", "stacks that allocate"), asked, "most memory held first"),
        trace=trace.head,
        crumbs=trace.crumbs(),
        section="stacks",
        listing=table,
        empty=empty,
        facts=(
            "Held means: allocated in this trace and not freed when it ended. What was allocated before is unknown; held is not leaked.",
        ),
    )
    return render(request, "list.html", page)


@router.get("/t/{trace_key}/stacks/{stack}", name="stack", summary="One call stack", response_class=HTMLResponse)
def stack(request: Request, trace: ReadTrace, stack: str) -> Response:
    """The frames of a stack, by its hash, what it allocated, and what else it did."""
    found = queries.frames(trace.db, stack.lower())
    if found is None:
        raise NotFound(f"No stack {stack} is in this trace.", ways=(Crumb("all stacks", trace.urls("stacks", trace_key=trace.key)),))
    number, is_complete, frames = found
    path = trace.urls("stack", trace_key=trace.key, stack=stack)
    users, uses = queries.stack_users(trace.db, number), stack_uses(trace.db, number)
    ways = []
    if users:
        ways.append(Crumb("Allocations made by this stack", trace.urls("allocations", {"stack": stack}, trace_key=trace.key)))
    if any(use.what == "blocks freed" for use in uses):
        ways.append(Crumb("Allocations that it freed", trace.urls("allocations", {"freed_by": stack}, trace_key=trace.key)))
    missing = "" if is_complete else " Its definition never arrived: frames may be missing."
    page = StackPage(
        title=f"Stack {stack[:12]}",
        sentence=f"{plural(len(frames), 'frame')}, the innermost first.{missing}",
        trace=trace.head,
        crumbs=trace.crumbs(Crumb("stacks", trace.urls("stacks", trace_key=trace.key))),
        section="stacks",
        stack=stack,
        is_complete=is_complete,
        frames=plain_listing("frames", path, FRAME_COLUMNS, frames),
        users=plain_listing("users", path, USER_COLUMNS, users),
        uses=plain_listing("uses", path, USE_COLUMNS, uses),
        ways=tuple(ways),
    )
    return render(request, "stack.html", page)
