"""The page of one socket: its story, its timeline, its records."""

import json
from dataclasses import dataclass, field
from typing import ClassVar

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app import format as fmt
from app.asked import refuse_unread
from app.charts.figure import Figure
from app.charts.socket_timeline import socket_timeline_figure
from app.deps import OpenTrace, ReadTrace
from app.errors import NotFound
from app.explain_socket import Claim, Known, as_text, claims, name_of, sentence_of
from app.links import parse_socket
from app.listing import Column, Listing, plain_listing
from app.notes import notes_part
from app.page import Crumb, Page
from app.queries import socket_tables as tables
from app.queries.names import NameRow, address_names
from app.queries.socket_events import KINDS
from app.queries.socket_page import SocketHead, find_socket, nearest_sockets, socket_phases
from app.queries.socket_timeline import timeline
from app.queries.transport import StackSum, stack_said, stack_sums
from app.render import render, wanted_form
from app.urls import with_query
from app.views.described import described
from app.views.lives import choose_socket
from app.views.ranges import RangePart, asked_range, range_part, taints
from app.views.socket_rows import EventsPart, events_part, operations_part, selected_operation

__all__ = ["SocketPage", "router"]

router = APIRouter()

ACCEPTED_SHOWN = 50
IN_REPORT = 10
"""Times as many rows are in a report: there is nowhere to ask for more."""

PEER_COLUMNS = (
    Column("peer", "Peer", "endpoint", keeps=True),
    Column("bytes_sent", "Sent", "bytes"),
    Column("bytes_received", "Received", "bytes"),
    Column("sends", "Sends", "count"),
    Column("receives", "Receives", "count"),
    Column("dropped", "Dropped", "count"),
)
OPTION_COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("name", "Option", "text", keeps=True),
    Column("value", "Value", "count"),
    Column("status", "Status", "status"),
)
ABORT_COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("reason", "Reason", "number"),
    Column("reason_name", "Name", "words", keeps=True),
    Column("reason_certainty", "The name is", "text", term="certainty"),
    Column("initiator", "By", "text"),
    Column("during", "During", "text", term="while"),
    Column("unread_bytes", "Unread", "bytes"),
    Column("outstanding", "In flight", "count"),
    Column("last_error", "Last failure", "status"),
    Column("location", "Location", "number"),
    Column("stack", "Stack", "stack"),
)
ACCEPTED_COLUMNS = (
    Column("socket", "Socket", "socket", keeps=True),
    Column("remote", "Remote", "endpoint", keeps=True),
    Column("first_ns", "First seen", "time"),
    Column("end", "End", "words"),
    Column("bytes_sent", "Sent", "bytes"),
    Column("bytes_received", "Received", "bytes"),
    Column("errors", "Errors", "errors"),
)


STACK_COLUMNS = (
    Column("source", "Source", keeps=True),
    Column("match", "Joined", "certainty"),
    Column("bytes_sent", "Sent", "bytes", keeps=True),
    Column("bytes_received", "Received", "bytes"),
    Column("sends", "Sends", "count"),
    Column("receives", "Receives", "count"),
    Column("retransmits", "Retransmits", "errors"),
    Column("bytes_retransmitted", "Sent again", "past"),
    Column("rtt_ns", "Round trip", "latency"),
    Column("min_rtt_ns", "Least", "latency"),
    Column("max_rtt_ns", "Most", "latency"),
)
NAME_COLUMNS = (
    Column("name", "Name", "text", keeps=True),
    Column("first_ns", "First answer", "time", keeps=True),
    Column("last_ns", "Last answer", "time"),
    Column("answers", "Answers", "count"),
    Column("pid", "Asked by process", "optional"),
    Column("is_own", "By this process", "flag"),
    Column("source", "Source", "text"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketPage(Page):
    """One socket."""

    has_report: ClassVar[bool] = True

    socket: SocketHead
    claims: tuple[Claim, ...]
    explanation: str
    range: RangePart = field(metadata={"json": False})
    chart: Figure = field(metadata={"json": False})
    chart_href: str = field(metadata={"json": False})
    chart_words: str = field(metadata={"json": False})
    peer_chart: Figure | None = field(default=None, metadata={"json": False})
    peer_chart_href: str = field(default="", metadata={"json": False})
    accepted_href: str = field(default="", metadata={"json": False})
    aborts: Listing
    options: Listing
    peers: Listing
    stack: Listing
    names: Listing
    accepted: Listing
    operations: Listing
    operations_href: str = field(metadata={"json": False})
    events: EventsPart
    event_kinds: tuple[str, ...] = field(default=KINDS, metadata={"json": False})
    selected: str | None
    added: str | None
    """The selected operation where its row stands below the first ones of the range."""


@router.get(
    "/t/{trace_key}/sockets/{socket}",
    name="socket",
    summary="One socket",
    response_class=HTMLResponse,
    openapi_extra=described("from", "to", "kind", "text", "after", "selected", "format"),
)
def socket(request: Request, trace: ReadTrace, socket: str) -> Response:
    """One socket, `0xENDPOINT@NS`: any time in its life names it. `from` and `to` narrow the timeline and the tables below it."""
    head = _found(trace, socket)
    if head.link != socket:
        return RedirectResponse(with_query(_path(trace, head.link), dict(request.query_params.items())), status_code=307)
    known = _known(trace, head)
    whole = _whole(trace, head)
    shown = asked_range(request, whole, what="socket")
    path = _path(trace, head.link)
    said = claims(known)
    query = request.query_params
    times = IN_REPORT if wanted_form(request) == "report" else 1
    accepted = tables.socket_accepted(trace.db, head.n, limit=ACCEPTED_SHOWN + 1) if head.listener else []
    selected = selected_operation(trace, head, shown, query.get("selected", ""))
    operations, added = operations_part(trace, head, path, shown, selected, times=times)
    page = SocketPage(
        title=name_of(head),
        sentence=sentence_of(known),
        trace=trace.head,
        crumbs=trace.crumbs(Crumb("sockets", trace.urls("sockets", trace_key=trace.key))),
        section="sockets",
        socket=head,
        claims=tuple(said),
        explanation=as_text(said),
        range=range_part(path, query, shown, whole),
        chart=_figure(trace, head, known, shown),
        chart_href=trace.urls("socket_timeline", trace_key=trace.key, socket=head.link),
        chart_words=_chart_words(head, shown),
        aborts=plain_listing("aborts", path, ABORT_COLUMNS, known.aborts, tables.AbortRow),
        options=plain_listing("options", path, OPTION_COLUMNS, tables.socket_options(trace.db, head.n), tables.OptionRow),
        peers=plain_listing("peers", path, PEER_COLUMNS, tables.socket_peers(trace.db, head.n) if head.is_datagram else [], tables.PeerRow),
        stack=plain_listing("stack", path, STACK_COLUMNS, stack_sums(trace.db, head.n), StackSum),
        names=plain_listing("names", path, NAME_COLUMNS, known.names, NameRow),
        addresses=tuple(text for text in (head.local, head.remote) if text is not None),
        accepted=plain_listing("accepted", path, ACCEPTED_COLUMNS, accepted[:ACCEPTED_SHOWN], tables.AcceptedRow),
        accepted_href=_accepted_href(trace, head) if len(accepted) > ACCEPTED_SHOWN else "",
        operations=operations,
        operations_href=trace.urls("operations", {"endpoint": head.link, "from": str(shown[0]), "to": str(shown[1])}, trace_key=trace.key),
        events=events_part(request, trace, head, path, shown, selected, times=times),
        selected=query.get("selected"),
        added=added,
        peer_chart=_peer_chart(trace, head, shown),
        peer_chart_href=trace.urls("socket_timeline", {"end": "other"}, trace_key=trace.key, socket=head.link),
        notes=notes_part(request, trace, f"sockets/{head.link}"),
    )
    return render(request, "socket.html", page)


@router.get(
    "/t/{trace_key}/sockets/{socket}/timeline",
    name="socket_timeline",
    summary="The timeline of one socket in a range",
    openapi_extra=described("from", "to", "end"),
)
def socket_timeline(request: Request, trace: ReadTrace, socket: str) -> Response:
    """The figure of a socket's timeline between `from` and `to` (nanoseconds), of bounded size; always JSON.

    `end=other` gives the other end of a local connection at that time.
    """
    head = _found(trace, socket)
    shown = asked_range(request, _whole(trace, head), what="socket")
    end = request.query_params.get("end")
    refuse_unread(request)
    figure = _peer_chart(trace, head, shown) if end == "other" else _figure(trace, head, None, shown)
    if figure is None:
        raise NotFound(f"The other end of socket {head.link} is not in this trace.", ways=(Crumb("this end", _path(trace, head.link)),))
    body = {"socket": head.link, "from_ns": str(shown[0]), "to_ns": str(shown[1]), "figure": figure}
    return Response(
        json.dumps(body, separators=(",", ":"), ensure_ascii=False, allow_nan=False),
        media_type="application/json",
        headers={"Cache-Control": "no-cache"},
    )


def _path(trace: OpenTrace, link: str) -> str:
    return trace.urls("socket", trace_key=trace.key, socket=link)


def _found(trace: OpenTrace, text: str) -> SocketHead:
    link = parse_socket(text)
    choose_socket(trace, link)
    head = find_socket(trace.db, link)
    if head is None:
        near = nearest_sockets(trace.db, link)
        ways = tuple(Crumb(one, _path(trace, one)) for one in near)
        everything = (Crumb("all sockets of this trace", trace.urls("sockets", trace_key=trace.key)),)
        raise NotFound(
            f"No socket {text} is in this trace." + (" The nearest at this endpoint address:" if ways else ""), ways=ways or everything
        )
    return head


def _known(trace: OpenTrace, head: SocketHead) -> Known:
    db = trace.db
    overlaps, freed = tables.memory_conflicts(db, head.n)
    return Known(
        head=head,
        phases=tuple(socket_phases(db, head)),
        aborts=tuple(tables.socket_aborts(db, head.n)),
        open_operations=tables.socket_open_operations(db, head),
        last_failure=tables.socket_last_failure(db, head),
        disconnect_ns=tables.socket_disconnect_ns(db, head.n),
        indications_traced=tables.indications_traced(db),
        overlaps=overlaps,
        freed=freed,
        peers=len(tables.socket_peers(db, head.n)) if head.is_datagram else 0,
        dropped=tables.socket_dropped(db, head.n) if head.is_datagram else 0,
        listened=tables.socket_listened(db, head.n) if head.listener else None,
        stack=stack_said(db, head.n),
        names=tuple(_names(db, head)),
    )


def _names(db: Connection, head: SocketHead) -> list[NameRow]:
    """Names that led to its peer."""
    pid = None if head.process is None else head.process.pid
    return address_names(db, head.remote, pid=pid, before_ns=head.until_ns)


def _whole(trace: OpenTrace, head: SocketHead) -> tuple[int, int]:
    """The life of a socket with a little room around it."""
    is_open = head.end in ("open_at_end", "closing_at_end")
    until = max(head.until_ns, trace.head.end_ns or head.until_ns) if is_open else head.until_ns
    room = max((until - head.first_ns) // 50, 1_000)
    first, last = min(head.first_ns, 0), max(until, trace.head.end_ns or until)
    return max(head.first_ns - room, first), min(until + room, last)


def _figure(trace: OpenTrace, head: SocketHead, known: Known | None, shown: tuple[int, int]) -> Figure:
    phases = known.phases if known is not None else socket_phases(trace.db, head)
    return socket_timeline_figure(timeline(trace.db, head.n, *shown), phases, taints(trace))


def _chart_words(head: SocketHead, shown: tuple[int, int]) -> str:
    """What the chart shows, for those who do not see it."""
    return (
        f"Timeline of socket {head.link} {fmt.time_span(*shown)}: its life, operations from posted to "
        "completed, errors, aborts and other moments, bytes sent and received so far. The tables below say the same."
    )


def _peer_chart(trace: OpenTrace, head: SocketHead, shown: tuple[int, int]) -> Figure | None:
    """The other end of a local connection, at the same time."""
    peer = find_socket(trace.db, parse_socket(head.loopback_peer)) if head.loopback_peer is not None else None
    return None if peer is None else _figure(trace, peer, None, shown)


def _accepted_href(trace: OpenTrace, head: SocketHead) -> str:
    """The sockets of a listener's process at its port, the listener among them."""
    port = (head.local or "").rpartition(":")[2]
    query = {"process": head.process.link} if head.process is not None else {}
    return trace.urls("sockets", query | ({"port": port} if port.isdecimal() else {}), trace_key=trace.key)
