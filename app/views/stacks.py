"""Call stacks: what each still holds, and the frames of one."""

from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import OpenTrace, ReadTrace
from app.errors import Choice, NotFound, OtherName, SeveralFit
from app.format import bytes_text, plural
from app.links import NEAR_SHOWN
from app.listing import Column, Listing, plain_listing
from app.page import Crumb, Page
from app.paging import ask
from app.queries import stacks as queries
from app.queries.stack_uses import StackUse, stack_uses
from app.render import render
from app.views.described import described
from app.views.grouped import grouped_part, grouped_sentence
from app.views.lists import ListPage, asked_of, parameters
from collector.errors import StoreSlow

__all__ = ["HELD_COLUMNS", "StackPage", "router"]

router = APIRouter()

LEAST_DIGITS = 6
ALIKE_SHOWN = 20

HELD_COLUMNS = (
    Column("callers", "Innermost callers", "callers", keeps=True, term="stack"),
    Column("held_bytes", "Held", "bytes", keeps=True, term="held"),
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
    rows, following = queries.held_by_stack(trace.db, asked)
    table, empty = grouped_part(
        request,
        trace,
        asked,
        rows,
        following,
        name="stacks",
        columns=HELD_COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        row_type=queries.HeldRow,
        nouns="stacks",
        needs=("heap", "stacks"),
        otherwise="No allocation of this trace has a stack.",
    )
    page = ListPage(
        title="Stacks",
        sentence=grouped_sentence(len(rows), table, ("stack that allocates", "stacks that allocate"), asked, "most memory held first"),
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


@router.get(
    "/t/{trace_key}/stacks/{stack}", name="stack", summary="One call stack", response_class=HTMLResponse, openapi_extra=described("format")
)
def stack(request: Request, trace: ReadTrace, stack: str) -> Response:
    """The frames of a stack, by its hash, what it allocated, and what else it did."""
    stack = stack.lower()
    found = queries.frames(trace.db, stack)
    if found is None:
        raise _absent(trace, stack)
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
        frames=plain_listing("frames", path, FRAME_COLUMNS, frames, queries.FrameRow),
        users=plain_listing("users", path, USER_COLUMNS, users, queries.HeldRow),
        uses=plain_listing("uses", path, USE_COLUMNS, uses, StackUse),
        ways=tuple(ways),
    )
    return render(request, "stack.html", page)


def _absent(trace: OpenTrace, text: str) -> Exception:
    """What a stack's link leads to that has only the first digits of a hash, or one that this copy of the trace does not have."""
    everything = Crumb("all stacks", trace.urls("stacks", trace_key=trace.key))
    if len(text) >= LEAST_DIGITS and all(c in "0123456789abcdef" for c in text):
        alike = queries.stacks_beginning_with(trace.db, text, limit=ALIKE_SHOWN)
        if len(alike) == 1:
            return OtherName({"stack": alike[0][0]})
        if alike:
            choices = tuple(Choice(_stack_words(stack, callers), {"stack": stack}) for stack, callers in alike)
            return SeveralFit(f"Several stacks begin with {text}.", choices, ways=(everything,))
    asked = ask({"limit": str(NEAR_SHOWN)}, queries.FILTERS, queries.SORTS)
    try:
        largest, _ = queries.held_by_stack(trace.db, asked)
    except StoreSlow:
        largest = []
    ways = tuple(Crumb(_stack_words(row.stack, row.callers, row.held_bytes), _path(trace, row.stack)) for row in largest)
    return NotFound(
        f"No stack {text} is in this trace: its frames are other ones here, or nothing with this stack was stored."
        + (" Those that hold the most memory:" if ways else ""),
        ways=(*ways, everything),
    )


def _path(trace: OpenTrace, stack: str) -> str:
    return trace.urls("stack", trace_key=trace.key, stack=stack)


def _stack_words(stack: str, callers: str, held_bytes: int | None = None) -> str:
    held = f" holds {bytes_text(held_bytes)}" if held_bytes is not None else ""
    return f"{stack[:12]}{held}: {callers or 'no frames known'}"
