"""The history of an address: what lived there and what happened."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.deps import ReadTrace
from app.format import Address
from app.links import parse_address
from app.listing import Column, Listing, plain_listing
from app.page import Page
from app.queries import address_history as queries
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPage(Page):
    """One address. `all_hrefs` are the lists of everything of a kind there, for kinds of which only the first are shown."""

    address: Address
    sockets: Listing
    allocations: Listing
    operations: Listing
    overlaps: Listing
    ranges: Listing
    most: int
    all_hrefs: Mapping[str, str] = field(metadata={"json": False})


@router.get(
    "/t/{trace_key}/address/{address}",
    name="address",
    summary="History of an address",
    response_class=HTMLResponse,
    openapi_extra=described("format"),
)
def address(request: Request, trace: ReadTrace, address: str) -> Response:
    """What lived and what happened at an address: endpoints, allocations, buffers of operations, overlaps, modules, thread stacks."""
    value = parse_address(address)
    path = trace.urls("address", trace_key=trace.key, address=value)
    found = {
        "sockets": plain_listing("sockets", path, SOCKET_COLUMNS, queries.sockets_at(trace.db, value)),
        "allocations": plain_listing("allocations", path, ALLOCATION_COLUMNS, queries.allocations_at(trace.db, value)),
        "operations": plain_listing("operations", path, OPERATION_COLUMNS, queries.operations_at(trace.db, value)),
        "overlaps": plain_listing("overlaps", path, OVERLAP_COLUMNS, queries.overlaps_at(trace.db, value)),
        "ranges": plain_listing("ranges", path, RANGE_COLUMNS, queries.ranges_at(trace.db, value)),
    }
    text = str(value)
    lists = {
        "sockets": {"endpoint": text, "unused": ""},
        "allocations": {"address": text},
        "operations": {"buffer": text},
        "overlaps": {"address": text},
    }
    hrefs = {
        name: with_query(trace.urls(name, trace_key=trace.key), query)
        for name, query in lists.items()
        if len(found[name].rows) >= queries.MAX_ROWS
    }
    kinds = [name for name, listing in found.items() if listing.rows]
    sentence = f"At this address: {', '.join(kinds)}." if kinds else "Nothing in this trace lived at this address or used it."
    page = AddressPage(
        title=f"Address {value}",
        sentence=sentence,
        trace=trace.head,
        crumbs=trace.crumbs(),
        canonical=path,
        address=value,
        most=queries.MAX_ROWS,
        all_hrefs=hrefs,
        sockets=found["sockets"],
        allocations=found["allocations"],
        operations=found["operations"],
        overlaps=found["overlaps"],
        ranges=found["ranges"],
    )
    return render(request, "address.html", page)
