"""The list of processes, and the page of one."""

from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.charts.activity import activity_figure
from app.charts.figure import Figure
from app.deps import OpenTrace, ReadTrace
from app.errors import NotFound
from app.filters import parse_conditions
from app.format import plural
from app.links import parse_process
from app.listing import Column, Listing, plain_listing
from app.notes import notes_part
from app.page import Crumb, Page
from app.paging import Asked, parse_order
from app.queries import findings as finding_queries
from app.queries import processes as queries
from app.queries import sockets as socket_queries
from app.queries.activity import activity
from app.render import render
from app.views import sockets as socket_views
from app.views.described import described
from app.views.lists import asked_of, list_page, parameters
from app.views.lives import choose_process
from app.views.ranges import taints, whole_trace

__all__ = ["COLUMNS", "ProcessPage", "router"]

router = APIRouter()

COLUMNS = (
    Column("process", "Process", "process_link", keeps=True, term="process"),
    Column("image", "Image", keeps=True),
    Column("pid", "Process id", "number"),
    Column("parent_pid", "Parent", "number"),
    Column("first_ns", "First seen", "time", term="first seen"),
    Column("end_ns", "Ended", "ended"),
    Column("sockets", "Sockets", "count"),
    Column("bytes_sent", "Sent", "bytes"),
    Column("bytes_received", "Received", "bytes"),
    Column("errors", "Errors", "errors"),
    Column("peak_bytes", "Heap peak", "bytes"),
    Column("bytes_allocated", "Allocated", "bytes"),
    Column("command_line", "Command line", "path"),
)

MODULE_COLUMNS = (
    Column("file", "File", "path", keeps=True),
    Column("base", "Base", "address", keeps=True),
    Column("size_bytes", "Size", "bytes"),
    Column("loaded_ns", "Loaded", "before"),
    Column("unloaded_ns", "Unloaded", "ended"),
    Column("pdb_name", "PDB", "optional"),
)

SOCKETS_SHOWN = 20
FINDINGS_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessPage(Page):
    """One process: who it is, its findings, its sockets, its modules."""

    process: queries.ProcessRow
    owners: tuple[queries.OwnerRow, ...]
    findings: tuple[finding_queries.FindingRow, ...]
    sockets: Listing
    modules: Listing
    activity: Figure = field(metadata={"json": False})
    activity_words: str = field(
        default="Bytes sent and received, sockets open, operations posted, failures, aborts and live heap of this process over time.",
        metadata={"json": False},
    )


@router.get(
    "/t/{trace_key}/processes",
    name="processes",
    summary="Processes",
    response_class=HTMLResponse,
    openapi_extra=parameters(queries.FILTERS, queries.SORTS),
)
def processes(request: Request, trace: ReadTrace) -> Response:
    """Process instances with what their sockets and heaps did."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.processes_page(trace.db, asked)
    page = list_page(
        request,
        trace,
        asked,
        rows,
        following,
        queries.processes_number(trace.db, asked.where),
        title="Processes",
        noun=("process", "processes"),
        columns=COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        section="processes",
        needs=(),
        otherwise="No record of this trace names a process.",
        row_type=queries.ProcessRow,
    )
    return render(request, "list.html", page)


@router.get(
    "/t/{trace_key}/processes/{process}",
    name="process",
    summary="One process",
    response_class=HTMLResponse,
    openapi_extra=described("format"),
)
def process(request: Request, trace: ReadTrace, process: str) -> Response:
    """One process: `PID@NS`, the instance that lived at that time, or `0xEPROCESS@NS` while its id is unknown."""
    link = parse_process(process)
    choose_process(trace, link)
    found = queries.find_process(trace.db, link)
    if found is None:
        raise _unknown(trace, process)
    n, row = found
    path = trace.urls("process", trace_key=trace.key, process=row.process)
    shown = Asked(
        parse_conditions(socket_queries.FILTERS, {"process": row.process}),
        parse_order(socket_queries.SORTS, "-bytes_sent"),
        None,
        SOCKETS_SHOWN,
    )
    sockets, _ = socket_queries.sockets_page(trace.db, shown)
    page = ProcessPage(
        title=row.name,
        sentence=_sentence(row),
        trace=trace.head,
        crumbs=trace.crumbs(Crumb("processes", trace.urls("processes", trace_key=trace.key))),
        section="processes",
        canonical=path,
        notes=notes_part(request, trace, f"processes/{row.process}"),
        process=row,
        owners=tuple(queries.owners(trace.db, n)),
        findings=tuple(finding_queries.findings(trace.db, limit=FINDINGS_SHOWN, process_n=n)[0]),
        sockets=plain_listing("sockets", path, [c for c in socket_views.COLUMNS if c.key != "process"], sockets, socket_queries.SocketRow),
        modules=plain_listing("modules", path, MODULE_COLUMNS, queries.modules(trace.db, n), queries.ModuleRow),
        activity=activity_figure(activity(trace.db, *whole_trace(trace), process_n=n), taints(trace)),
    )
    return render(request, "process.html", page)


def _sentence(row: queries.ProcessRow) -> str:
    parts = []
    if row.sockets:
        parts.append(f"{plural(row.sockets, 'socket')}, {plural(row.errors, 'failed operation')}")
    if row.bytes_allocated is not None:
        parts.append("a traced heap")
    lived = "It ended while the trace ran." if row.end_ns is not None else "It was still running when the trace ended, as far as it says."
    return f"This process has {' and '.join(parts)}. {lived}" if parts else f"No socket and no heap of this process was traced. {lived}"


def _unknown(trace: OpenTrace, text: str) -> NotFound:
    link = parse_process(text)
    alike = queries.nearest_processes(trace.db, link)
    ways = tuple(Crumb(f"{row.name} ({row.process})", trace.urls("process", trace_key=trace.key, process=row.process)) for row in alike)
    everything = (Crumb("all processes of this trace", trace.urls("processes", trace_key=trace.key)),)
    return NotFound(f"No process {text} is in this trace." + (" The nearest by time:" if ways else ""), ways=ways or everything)
