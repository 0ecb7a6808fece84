"""The rows of a socket's page that answer for its range: operations and records, those of the selected operation among them."""

from dataclasses import dataclass

from fastapi import Request

from app.deps import OpenTrace
from app.errors import BadRequest
from app.filters import parse_text
from app.links import BadLink, parse_operation
from app.listing import Column, Listing, plain_listing
from app.paging import Position
from app.queries.operations import OperationRow, find_operation, operation, operation_rows
from app.queries.socket_events import KINDS, EventRow, EventsPage, socket_events
from app.queries.socket_page import SocketHead
from app.queries.socket_timeline import operation_numbers
from app.urls import with_query

__all__ = ["EventsPart", "events_part", "operations_part", "selected_operation"]

EVENTS_SHOWN = 100
OPERATIONS_SHOWN = 50

OPERATION_COLUMNS = (
    Column("posted_ns", "Posted", "before", keeps=True, term="posted"),
    Column("kind", "Kind", "operation_kind", keeps=True, term="operation"),
    Column("outcome", "Outcome", "words", term="outcome"),
    Column("latency_ns", "Latency", "latency", term="latency"),
    Column("bytes", "Moved", "bytes", term="bytes"),
    Column("posted_len", "Buffer size", "bytes"),
    Column("buffer", "Buffer", "optional_address", term="buffer"),
    Column("status", "Status", "status", term="status"),
    Column("peer", "Peer", "optional_endpoint"),
    Column("posted_tid", "Thread", "number"),
)


@dataclass(frozen=True, slots=True)
class EventsPart:
    """Some records of the socket. `stopped_ns` says how far the search for fitting ones got.

    `turned_to` is the position from which they are shown for the sake of the selected operation.
    """

    rows: tuple[EventRow, ...]
    kinds: tuple[str, ...]
    text: str
    next_href: str | None
    first_href: str | None
    stopped_ns: int | None
    turned_to: str | None


def selected_operation(trace: OpenTrace, head: SocketHead, shown: tuple[int, int], text: str) -> OperationRow | None:
    """The operation that the URL selects, where this socket has it in the range shown."""
    try:
        found = find_operation(trace.db, head.n, parse_operation(text))
    except BadLink:
        return None
    if found is None:
        return None
    row = found.row
    starts, ends = (row.posted_ns, row.end_ns) if row.posted_ns is not None else (row.completed_ns, row.completed_ns)
    return row if (starts or 0) <= shown[1] and (ends is None or ends >= shown[0]) else None


def _columns(head: SocketHead) -> list[Column]:
    return [c for c in OPERATION_COLUMNS if c.key != "peer" or head.is_datagram or head.listener]


def operations_part(
    trace: OpenTrace, head: SocketHead, path: str, shown: tuple[int, int], selected: OperationRow | None, *, times: int
) -> tuple[Listing, str | None]:
    """The first operations of a range, `times` as many as a page has, and the selected one below them; its link, if it is none of them."""
    limit = OPERATIONS_SHOWN * times
    numbers = operation_numbers(trace.db, head.n, *shown, limit=limit)
    rows = operation_rows(trace.db, operation.c.n.in_(numbers), limit=limit)
    if selected is None or any(row.operation == selected.operation for row in rows):
        return plain_listing("operations", path, _columns(head), rows, OperationRow), None
    return plain_listing("operations", path, _columns(head), [*rows, selected], OperationRow), selected.operation


def events_part(
    request: Request,
    trace: OpenTrace,
    head: SocketHead,
    path: str,
    shown: tuple[int, int],
    selected: OperationRow | None,
    *,
    times: int,
) -> EventsPart:
    """Records of a range, `times` as many as a page has: from the URL's position on, else the first, else the selected operation's."""
    query = request.query_params
    kinds = tuple(kind for kind in query.getlist("kind") if kind)
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise BadRequest(f"kind={unknown[0]}: one of {', '.join(KINDS)}.")
    try:
        text = parse_text(query.get("text", "").strip())[:200]
    except ValueError as error:
        raise BadRequest(f"text: {error}") from error
    after = Position.parse(query["after"]) if query.get("after") else None

    def some(after: Position | None) -> EventsPage:
        return socket_events(
            trace.db,
            head.n,
            from_ns=shown[0],
            to_ns=shown[1],
            closed_ns=head.closed_ns,
            kinds=kinds,
            text=text,
            after=after,
            limit=EVENTS_SHOWN * times,
        )

    found, turned_to = some(after), None
    if selected is not None and after is None and not _has(found, selected):
        for position in (Position(ns, place=0) for ns in (selected.posted_ns, selected.completed_ns) if ns is not None):
            turned = some(position)
            if _has(turned, selected):
                found, turned_to = turned, str(position)
                break
    kept = {key: value for key, value in query.items() if key != "after"}
    # Without a position, this link would turn to the selected operation again.
    first = kept | ({"after": str(Position(shown[0], place=0))} if selected is not None else {})
    return EventsPart(
        rows=found.rows,
        kinds=kinds,
        text=text,
        next_href=with_query(path, kept | {"after": str(found.next)}) + "#events" if found.next else None,
        first_href=with_query(path, first) + "#events" if after or turned_to else None,
        stopped_ns=found.stopped_ns,
        turned_to=turned_to,
    )


def _has(found: EventsPage, selected: OperationRow) -> bool:
    return any(row.operation == selected.operation for row in found.rows)
