"""Who uses ports: by process, by remote host, and binds that failed."""

from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.format import thin
from app.listing import Column, Listing, plain_listing
from app.queries import ports as queries
from app.render import render
from app.views.described import described
from app.views.grouped import grouped_part, grouped_sentence
from app.views.lists import ListPage, asked_of, parameters

__all__ = ["PortsPage", "router"]

router = APIRouter()

REMOTE_COLUMNS = (
    Column("host", "Remote host", "endpoint", keeps=True),
    Column("count", "Connections", "count", keeps=True),
    Column("process", "Process", "process"),
    Column("per_second", "Per second", "rate"),
    Column("open_at_end", "Not closed", "count"),
    Column("closed_here", "Closed here", "count"),
    Column("first_ns", "First", "time"),
    Column("last_ns", "Last", "time"),
    Column("bytes_sent", "Sent", "bytes"),
    Column("bytes_received", "Received", "bytes"),
)

USE_COLUMNS = (
    Column("process", "Process", "process", keeps=True),
    Column("opens", "Sockets", "count", keeps=True),
    Column("per_second", "Per second", "rate"),
    Column("open_at_end", "Not closed", "count"),
    Column("ports", "Local ports", "count"),
    Column("peak_dynamic", "Dynamic at once", "count", term="dynamic ports"),
    Column("peak_ns", "At", "ended"),
    Column("bind_failures", "Failed binds", "errors"),
)

FAILURE_COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("status", "Status", "status", keeps=True, term="status"),
    Column("requested", "Asked for", "endpoint"),
    Column("socket", "Socket", "socket"),
    Column("process", "Process", "process"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PortsPage(ListPage):
    """Port use by process and remote host."""

    use: Listing
    failures: Listing
    failures_note: str = ""
    note: str = field(default="")


@router.get(
    "/t/{trace_key}/ports",
    name="ports",
    summary="Ports",
    response_class=HTMLResponse,
    openapi_extra={"parameters": [*parameters(queries.FILTERS, queries.SORTS)["parameters"], *described("table")["parameters"]]},
)
def ports(request: Request, trace: ReadTrace) -> Response:
    """Ports in use by process, connections by remote host, and binds that failed."""
    asked = asked_of(request, queries.FILTERS, queries.SORTS)
    rows, following = queries.remotes(trace.db, asked)
    path = trace.urls("ports", trace_key=trace.key)
    table, empty = grouped_part(
        request,
        trace,
        asked,
        rows,
        following,
        name="ports",
        columns=REMOTE_COLUMNS,
        filters=queries.FILTERS,
        sorts=queries.SORTS,
        row_type=queries.RemoteRow,
        nouns="connections",
        needs=("connects",),
        otherwise="No socket of this trace connected to anything.",
    )
    low, high = queries.DYNAMIC_PORTS
    failed, more_failed = queries.bind_failures(trace.db, asked.where)
    page = PortsPage(
        title="Ports",
        sentence=grouped_sentence(len(rows), table, ("remote host", "remote hosts"), asked, "most connections first"),
        trace=trace.head,
        crumbs=trace.crumbs(),
        section="ports",
        listing=table,
        empty=empty,
        use=plain_listing("use", path, USE_COLUMNS, queries.port_use(trace.db, asked.where), queries.PortUseRow),
        failures=plain_listing("failures", path, FAILURE_COLUMNS, failed, queries.BindFailureRow),
        failures_note=f"The first {thin(queries.MAX_ROWS)} are shown; narrow the time or the process to see others." if more_failed else "",
        note=f"Dynamic ports are {thin(low)} to {thin(high)}, the range Windows uses unless it was changed. A port may stay taken "
        "after its socket is closed (TIME_WAIT); the records do not show that. Sockets that are older than the trace and silent are not "
        "counted.",
    )
    return render(request, "ports.html", page)
