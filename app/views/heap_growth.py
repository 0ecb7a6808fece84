"""The page of stacks whose memory stays: candidates for a leak, with what speaks for and against it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.errors import BadRequest
from app.filters import parse_duration
from app.format import duration, plural, time_span
from app.page import Crumb
from app.queries import heap_growth as queries
from app.queries.heap_timeline import heap_timeline
from app.queries.heap_whole import covers_all
from app.render import render
from app.urls import with_query
from app.views.described import described
from app.views.heap import MAX_BLOCKS
from app.views.heap_subject import SubjectPage, asked_subject
from app.views.ranges import RangePart, asked_range, half_open, range_part, whole_trace

__all__ = ["GrowthPage", "router"]

router = APIRouter()

STACKS_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthPage(SubjectPage):
    """Stacks whose blocks of a range are held at the end of the trace. `selected` is the stack that the link is about."""

    selected: str | None
    min_age_ns: int
    borders: tuple[int, ...]
    rows: tuple[queries.GrowthRow, ...]
    number: int
    steady: int
    not_counted: str
    range: RangePart = field(metadata={"json": False})
    min_age: str = field(metadata={"json": False})
    narrowed: Mapping[str, str] = field(metadata={"json": False})
    ways: tuple[Crumb, ...] = field(metadata={"json": False})


@router.get(
    "/t/{trace_key}/heap/{process}/growth",
    name="heap_growth",
    summary="What grows steadily",
    response_class=HTMLResponse,
    openapi_extra=described("from", "to", "min_age", "stack", "heap", "format"),
)
def heap_growth(request: Request, trace: ReadTrace, process: str) -> Response:
    """Stacks whose blocks began between `from` and `to` and are held at the trace's end, those that rise in every quarter first.

    `min_age` leaves out blocks that are younger at the end; `stack` marks one; `heap` names one heap.
    """
    subject = asked_subject(request, trace, process)
    row, scope = subject.process, subject.scope
    whole = whole_trace(trace)
    shown = asked_range(request, whole)
    window = half_open(shown, whole)
    typed = request.query_params.get("min_age", "").strip()
    min_age = _min_age(typed)
    blocks = sum(bucket.allocs for bucket in heap_timeline(trace.db, scope, *shown).buckets)
    counts_freed = blocks <= MAX_BLOCKS or covers_all(trace.db, scope, *window)
    selected = request.query_params.get("stack", "").strip().lower() or None
    found = queries.growth(
        trace.db,
        scope,
        *window,
        end_ns=whole[1],
        min_age_ns=min_age,
        limit=STACKS_SHOWN,
        wanted=selected or "",
        counts_freed=counts_freed,
    )
    path = trace.urls("heap_growth", trace_key=trace.key, process=row.process)
    in_range = {} if shown == whole else {"from": str(shown[0]), "to": str(shown[1])}
    page = GrowthPage(
        title=f"What grows in {subject.name if subject.heap else 'the heap of ' + row.name}",
        sentence=_sentence(found, shown, min_age),
        **subject.frame(trace, path),
        selected=selected,
        min_age_ns=min_age,
        borders=found.borders,
        rows=found.rows,
        number=found.number,
        steady=found.steady,
        not_counted="" if counts_freed else _not_counted(blocks),
        range=range_part(path, request.query_params, shown, whole),
        min_age=typed,
        narrowed={**subject.narrowed, "state": "live", "began_from": str(shown[0]), "began_to": str(window[1] - 1)},
        ways=(
            Crumb("by calls", subject.href(trace.urls("heap_flame", trace_key=trace.key, process=row.process), in_range)),
            Crumb(
                "two moments against each other",
                subject.href(
                    trace.urls("heap_compare", trace_key=trace.key, process=row.process), {"a": str(shown[0]), "b": str(shown[1])}
                ),
            ),
            Crumb("the heap timeline", with_query(subject.path, in_range)),
        ),
    )
    return render(request, "heap_growth.html", page)


def _not_counted(blocks: int) -> str:
    most = f"how many of them were freed is counted up to {plural(MAX_BLOCKS, 'block')}"
    return f"{plural(blocks, 'block')} began in this range; {most}."


def _min_age(text: str) -> int:
    try:
        return parse_duration(text) if text else 0
    except ValueError as error:
        raise BadRequest(f"min_age={text}: {error}") from error


def _sentence(found: queries.Growth, shown: tuple[int, int], min_age: int) -> str:
    span = time_span(*shown)
    old = f" and at least {duration(min_age)} old then" if min_age else ""
    if not found.number:
        return f"No block allocated {span} is held at the end of the trace{old}."
    hold = plural(found.number, "stack holds", "stacks hold")
    rise = plural(found.steady, "rises", "rise") if found.steady else "none rises"
    return f"{hold} blocks allocated {span} that are held at the end of the trace{old}; {rise} in every quarter of that time."
