"""The history of an address: what lived there and what happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.format import Address
from app.links import parse_address
from app.listing import Column, Listing, plain_listing
from app.page import Page
from app.queries import address_history as queries
from app.queries.allocations import AllocationRow
from app.queries.memory_calls import MemoryCall, memory_calls_at
from app.queries.operations import OperationRow
from app.queries.overlaps import OverlapRow
from app.queries.sockets import SocketRow
from app.render import render
from app.urls import with_query
from app.views.allocations import COLUMNS as ALLOCATION_COLUMNS
from app.views.described import described
from app.views.operations import COLUMNS as OPERATION_COLUMNS
from app.views.overlaps import COLUMNS as OVERLAP_COLUMNS
from app.views.sockets import COLUMNS as SOCKET_COLUMNS

__all__ = ["AddressPage", "router"]

router = APIRouter()

RANGE_COLUMNS = (
    Column("what", "What", keeps=True),
    Column("name", "Name", "path", keeps=True),
    Column("process", "Process", "process"),
    Column("low", "From", "hex_address"),
    Column("high", "To", "hex_address"),
    Column("from_ns", "Since", "before"),
    Column("until_ns", "Until", "ended"),
)


MEMORY_COLUMNS = (
    Column("t_ns", "Time", "time", keeps=True),
    Column("what", "Call", keeps=True),
    Column("how", "How"),
    Column("process", "Process", "process"),
    Column("low", "From", "hex_address"),
    Column("high", "To", "hex_address"),
    Column("size", "Size", "bytes"),
    Column("tid", "Thread", "number"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPage(Page):
    """One address. Of the kinds in `cut` only the first `most` are here; `all_hrefs` are the lists of everything of such a kind."""

    address: Address
    sockets: Listing
    allocations: Listing
    operations: Listing
    overlaps: Listing
    ranges: Listing
    memory: Listing
    most: int
    cut: tuple[str, ...]
    all_hrefs: Mapping[str, str] = field(metadata={"json": False})


@router.get(
    "/t/{trace_key}/address/{address}",
    name="address",
    summary="History of an address",
    response_class=HTMLResponse,
    openapi_extra=described("format"),
)
def address(request: Request, trace: ReadTrace, address: str) -> Response:
    """What lived and what happened at an address: endpoints, allocations, buffers of operations, overlaps, ranges, virtual memory."""
    value = parse_address(address)
    path = trace.urls("address", trace_key=trace.key, address=value)
    kinds_of_rows: dict[str, tuple[Sequence[Column], type]] = {
        "sockets": (SOCKET_COLUMNS, SocketRow),
        "allocations": (ALLOCATION_COLUMNS, AllocationRow),
        "operations": (OPERATION_COLUMNS, OperationRow),
        "overlaps": (OVERLAP_COLUMNS, OverlapRow),
        "ranges": (RANGE_COLUMNS, queries.RangeRow),
        "memory": (MEMORY_COLUMNS, MemoryCall),
    }
    there: dict[str, Sequence[Any]] = {  # Any: each kind has a row type of its own
        "sockets": queries.sockets_at(trace.db, value),
        "allocations": queries.allocations_at(trace.db, value),
        "operations": queries.operations_at(trace.db, value),
        "overlaps": queries.overlaps_at(trace.db, value),
        "ranges": queries.ranges_at(trace.db, value),
        "memory": memory_calls_at(trace.db, value, queries.MAX_ROWS + 1),
    }
    found = {
        name: plain_listing(name, path, columns, there[name][: queries.MAX_ROWS], row_type)
        for name, (columns, row_type) in kinds_of_rows.items()
    }
    cut = tuple(name for name, rows in there.items() if len(rows) > queries.MAX_ROWS)
    text = str(value)
    lists = {
        "sockets": {"endpoint": text, "unused": ""},
        "allocations": {"address": text},
        "operations": {"buffer": text},
        "overlaps": {"address": text},
    }
    hrefs = {name: with_query(trace.urls(name, trace_key=trace.key), query) for name, query in lists.items() if name in cut}
    kinds = ["virtual memory" if name == "memory" else name for name, listing in found.items() if listing.rows]
    sentence = f"At this address: {', '.join(kinds)}." if kinds else "Nothing in this trace lived at this address or used it."
    page = AddressPage(
        title=f"Address {value}",
        sentence=sentence,
        trace=trace.head,
        crumbs=trace.crumbs(),
        canonical=path,
        address=value,
        most=queries.MAX_ROWS,
        cut=cut,
        all_hrefs=hrefs,
        sockets=found["sockets"],
        allocations=found["allocations"],
        operations=found["operations"],
        overlaps=found["overlaps"],
        ranges=found["ranges"],
        memory=found["memory"],
    )
    return render(request, "address.html", page)
