"""The operation of a link below its socket, or the operations nearest to it."""

from app import format as fmt
from app.deps import OpenTrace
from app.errors import NotFound
from app.links import SocketLink, parse_operation, parse_socket
from app.page import Crumb
from app.queries.nearest_operations import nearest_operations
from app.queries.operations import OperationRow, OperationWhole, find_operation
from app.queries.who import socket_number

__all__ = ["found_operation"]


def found_operation(trace: OpenTrace, socket: str, operation: str) -> OperationWhole:
    """The operation `KIND:0xBUFFER@NS` of a socket; its time says which socket, where that has none. Raises BadLink, NotFound."""
    link, action = parse_socket(socket), parse_operation(operation)
    if link.ns is None:
        link = SocketLink(link.endpoint, action.ns)
    found = find_operation(trace.db, socket_number(link), action)
    if found is not None:
        return found
    near = nearest_operations(trace.db, link, action)
    ways = [Crumb(_words(row), trace.urls.below(trace.key, f"sockets/{row.socket}/{row.operation}")) for row in near if row.socket]
    is_own = any(_endpoint(row.socket) == link.endpoint for row in near)
    where = "on this socket" if is_own else "in this trace"
    ways.append(Crumb("its socket", trace.urls.below(trace.key, f"sockets/{socket}")))
    raise NotFound(
        f"Socket {socket} has no operation {operation} in this trace." + (f" The nearest {where}:" if near else ""), ways=tuple(ways)
    )


def _endpoint(socket: str | None) -> int | None:
    return None if socket is None else parse_socket(socket).endpoint


def _words(row: OperationRow) -> str:
    size = f" of {fmt.bytes_text(row.posted_len)}" if row.posted_len is not None else ""
    buffer = f" at buffer {row.buffer}" if row.buffer else ""
    moment = f"posted {fmt.time(row.posted_ns)}" if row.posted_ns is not None else f"completed {fmt.time(row.completed_ns)}"
    return f"{row.kind}{size}{buffer}, {moment}"
