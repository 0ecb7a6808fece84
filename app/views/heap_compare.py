"""The page of what a process holds at one moment against another: what grew, shrank, came and went."""

from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.errors import BadRequest
from app.format import bytes_text, count, plural, time
from app.listing import Column, Listing, plain_listing
from app.page import Crumb
from app.queries import heap_compare as queries
from app.render import render
from app.urls import with_query
from app.views.described import described
from app.views.heap_subject import HeapSubject, SubjectPage, asked_subject
from app.views.ranges import asked_moment, whole_trace
from collector.errors import StoreSlow

__all__ = ["ComparePage", "router"]

router = APIRouter()

STACKS_SHOWN = 40
MODULES_SHOWN = 100

STACK_COLUMNS = (
    Column("callers", "Innermost callers", "held_callers", keeps=True, term="stack"),
    Column("more_bytes", "Change", "more_bytes", keeps=True),
    Column("more_blocks", "Blocks", "more_count"),
    Column("change", "What", "words"),
    Column("bytes_a", "Held at A", "bytes"),
    Column("blocks_a", "Blocks at A", "count"),
    Column("bytes_b", "Held at B", "bytes"),
    Column("blocks_b", "Blocks at B", "count"),
)
MODULE_COLUMNS = (
    Column("module", "Module", "path", keeps=True),
    *(column for column in STACK_COLUMNS if column.key not in ("callers", "change")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePage(SubjectPage):
    """Two moments of the heap of one process. `too_slow` is set where the comparison would take too long."""

    a_ns: int
    b_ns: int
    bytes_a: int
    blocks_a: int
    bytes_b: int
    blocks_b: int
    numbers: dict[str, int]
    grown: Listing
    shrunk: Listing
    modules: Listing
    sizes: tuple[queries.ClassChange, ...]
    ages: tuple[queries.ClassChange, ...]
    too_slow: bool
    lighter: tuple[Crumb, ...] = field(metadata={"json": False})
    offers: tuple[Crumb, ...] = field(metadata={"json": False})
    ways: tuple[Crumb, ...] = field(metadata={"json": False})


_NOTHING = queries.Comparison(0, 0, 0, 0, dict.fromkeys(queries.CHANGES, 0), (), (), (), (), ())


@router.get(
    "/t/{trace_key}/heap/{process}/compare",
    name="heap_compare",
    summary="The heap at two times",
    response_class=HTMLResponse,
    openapi_extra=described("a", "b", "heap", "format"),
)
def heap_compare(request: Request, trace: ReadTrace, process: str) -> Response:
    """What a process holds at time `b` against time `a`: by stack, by size, by age, by module. Without them: the trace's middle and end.

    `heap` names one heap.
    """
    subject = asked_subject(request, trace, process)
    row = subject.process
    start, end = whole_trace(trace)
    a, b = asked_moment(request, "a"), asked_moment(request, "b")
    a, b = (start + end) // 2 if a is None else a, end if b is None else b
    if a >= b:
        raise BadRequest(f"a={a} is not before b={b}: A is the earlier moment.")
    try:
        found, too_slow = queries.compare(trace.db, subject.scope, a, b, stacks=STACKS_SHOWN), False
    except StoreSlow:
        found, too_slow = _NOTHING, True
    path = trace.urls("heap_compare", trace_key=trace.key, process=row.process)
    flame = trace.urls("heap_flame", trace_key=trace.key, process=row.process)
    in_range = {"from": str(a), "to": str(b)}
    page = ComparePage(
        title=f"Heap {'' if subject.heap else 'of '}{subject.name.removeprefix('heap ') if subject.heap else subject.name}: what changed",
        sentence="" if too_slow else _sentence(found, a, b),
        **subject.frame(trace, path),
        a_ns=a,
        b_ns=b,
        bytes_a=found.bytes_a,
        blocks_a=found.blocks_a,
        bytes_b=found.bytes_b,
        blocks_b=found.blocks_b,
        numbers=found.numbers,
        grown=plain_listing("grown", path, STACK_COLUMNS, found.grown, queries.StackChange),
        shrunk=plain_listing("shrunk", path, STACK_COLUMNS, found.shrunk, queries.StackChange),
        modules=plain_listing("modules", path, MODULE_COLUMNS, found.modules[:MODULES_SHOWN], queries.ModuleChange),
        sizes=found.sizes,
        ages=found.ages,
        too_slow=too_slow,
        lighter=_lighter(path, subject, start, a, b),
        offers=_offers(path, subject, start, end),
        ways=(
            Crumb("allocated between and still held, by calls", subject.href(flame, in_range)),
            Crumb("all held at B, by calls", subject.href(flame, {"at": str(b)})),
            Crumb("the heap timeline between", with_query(subject.path, in_range)),
            Crumb("what grows steadily", subject.href(trace.urls("heap_growth", trace_key=trace.key, process=row.process), {})),
        ),
    )
    return render(request, "heap_compare.html", page)


def _sentence(found: queries.Comparison, a: int, b: int) -> str:
    size, blocks = found.bytes_b - found.bytes_a, found.blocks_b - found.blocks_a
    if (size, blocks) == (0, 0):
        change = f"As much is held at {time(b)} (B) as at {time(a)} (A)"
    else:
        more = "more" if (size, blocks) > (0, 0) else "less"
        change = f"{bytes_text(abs(size))} {more} is held"
        if blocks:
            change += f", in {count(abs(blocks))} {'more' if blocks > 0 else 'fewer'} {'block' if abs(blocks) == 1 else 'blocks'},"
        change += f" at {time(b)} (B) than at {time(a)} (A)"
    first = f"{bytes_text(found.bytes_a)} in {plural(found.blocks_a, 'block')}"
    second = f"{bytes_text(found.bytes_b)} in {plural(found.blocks_b, 'block')}"
    return f"{change}: {first} at A, {second} at B. Still held is not leaked: caches and singletons are held too."


def _lighter(path: str, subject: HeapSubject, start: int, a: int, b: int) -> tuple[Crumb, ...]:
    """What takes less than a comparison that takes too long: earlier moments, at which less is held, and a part of the timeline."""
    earlier = {"a": str(start + (a - start) // 4), "b": str(start + (b - start) // 4)}
    part = {"from": str(a), "to": str(a + max((b - a) // 10, 1))}
    return (
        Crumb("earlier moments", subject.href(path, earlier)),
        Crumb("the heap timeline of the first tenth between them", with_query(subject.path, part)),
    )


def _offers(path: str, subject: HeapSubject, start: int, end: int) -> tuple[Crumb, ...]:
    """The trace's start, middle and end against each other."""
    middle = (start + end) // 2
    pairs = (("start → middle", start, middle), ("middle → end", middle, end), ("start → end", start, end))
    return tuple(Crumb(words, subject.href(path, {"a": str(a), "b": str(b)})) for words, a, b in pairs if a < b)
