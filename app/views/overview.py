"""The overview of a trace: what was recorded, what is worth a look, what this trace can answer."""

from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.charts.activity import activity_figure
from app.charts.figure import Figure
from app.deps import ReadTrace
from app.errors import NotFound
from app.format import absolute, duration, iso_utc, plural
from app.listing import Listing, plain_listing
from app.notes import notes_part
from app.page import Page
from app.queries import findings as finding_queries
from app.queries import overview as queries
from app.queries import processes as process_queries
from app.queries.activity import activity
from app.queries.contents import Contents, contents
from app.queries.trace import TraceRow, trace_row
from app.recording import Command
from app.render import render
from app.views.answers import Answerable, answerables, commands_for
from app.views.described import described
from app.views.labels import LabelPart, label_part
from app.views.processes import COLUMNS as PROCESS_COLUMNS
from app.views.ranges import taints, whole_trace

__all__ = ["OverviewPage", "router"]

router = APIRouter()

FINDINGS_SHOWN = 40
PROCESSES_SHOWN = 10
NOTES_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewPage(Page):
    """What one trace is about."""

    recorded: TraceRow
    label: LabelPart
    contents: Contents
    counts: queries.Counts
    findings: tuple[finding_queries.FindingRow, ...]
    findings_number: int
    processes: Listing
    answerable: tuple[Answerable, ...]
    partly: tuple[Answerable, ...]
    unanswerable: tuple[Answerable, ...]
    commands: tuple[Command, ...]
    activity: Figure = field(metadata={"json": False})
    activity_words: str = field(
        default="Bytes sent and received, sockets open, operations posted, failures, aborts and live heap over the time of the trace.",
        metadata={"json": False},
    )


@router.get(
    "/t/{trace_key}", name="overview", summary="Overview of a trace", response_class=HTMLResponse, openapi_extra=described("format")
)
def overview(request: Request, trace: ReadTrace) -> Response:
    """What was recorded, what is worth a look, and which questions this trace can answer."""
    recorded = trace_row(trace.db)
    if recorded is None:
        raise NotFound(f"The file of trace {trace.key} holds no trace.")
    counts = queries.counts(trace.db)
    findings, number = finding_queries.findings(trace.db, limit=FINDINGS_SHOWN)
    path = trace.urls("overview", trace_key=trace.key)
    asked = answerables(trace)
    unanswerable = tuple(one for one in asked if one.missing)
    page = OverviewPage(
        title=trace.head.name,
        sentence=_sentence(recorded, counts),
        trace=trace.head,
        crumbs=trace.crumbs()[:1],
        section="overview",
        notes=notes_part(request, trace, "", all_below=True, limit=NOTES_SHOWN),
        recorded=recorded,
        label=label_part(request, trace.key),
        contents=contents(trace.db),
        counts=counts,
        findings=tuple(findings),
        findings_number=number,
        processes=plain_listing(
            "top-processes",
            path,
            [column for column in PROCESS_COLUMNS if column.key not in ("parent_pid", "end_ns", "command_line")],
            process_queries.top_processes(trace.db, limit=PROCESSES_SHOWN),
            process_queries.ProcessRow,
        ),
        answerable=tuple(one for one in asked if not one.missing and not one.lacking),
        partly=tuple(one for one in asked if not one.missing and one.lacking),
        unanswerable=unanswerable,
        commands=commands_for(trace, asked),
        activity=activity_figure(activity(trace.db, *whole_trace(trace)), taints(trace)),
    )
    return render(request, "overview.html", page)


def _sentence(recorded: TraceRow, counts: queries.Counts) -> str:
    """`4 min recorded from 2025-03-04 10:00:00 UTC: 12 processes, 340 sockets, …`"""
    when = f" from {iso_utc(recorded.start_utc)}" if absolute(0, recorded.start_utc) else ""
    what = [plural(number, *noun) for number, noun in (
        (counts.processes, ("process", "processes")), (counts.sockets, ("socket",)), (counts.operations, ("operation",)),
        (counts.allocations, ("allocation",)),
    ) if number]  # fmt: skip
    return f"{duration(recorded.end_ns)} recorded{when}: {', '.join(what) if what else 'nothing that this program knows'}."
