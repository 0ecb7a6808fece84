"""Links without a time: the only life of the name answers, and where there were several the reader chooses."""

from collections.abc import Mapping, Sequence

from app import format as fmt
from app.deps import OpenTrace
from app.errors import Choice, OtherName, SeveralFit
from app.links import AllocationLink, HeapLink, ProcessLink, SocketLink
from app.page import Crumb
from app.queries import lives as queries
from app.queries.lives import Life

__all__ = ["LIVES_SHOWN", "choose_allocation", "choose_heap", "choose_process", "choose_socket"]

LIVES_SHOWN = 50


def choose_process(trace: OpenTrace, link: ProcessLink) -> None:
    """Raises OtherName for the only instance of a link without a time, SeveralFit for several; returns for none, or with a time."""
    if link.ns is not None:
        return
    query = {"pid": str(link.pid)} if link.pid is not None else None
    way = Crumb("all of them in the list of processes", trace.urls("processes", query, trace_key=trace.key))
    lives = queries.process_lives(trace.db, link, limit=LIVES_SHOWN + 1)
    name = f"process id {link.pid}" if link.pid is not None else f"process object {link.eprocess}"
    _choose(lives, [{"process": life.link} for life in lives], f"the {name}", "processes", way)


def choose_socket(trace: OpenTrace, link: SocketLink) -> None:
    """As `choose_process`, for an endpoint address."""
    if link.ns is not None:
        return
    way = Crumb("all of them in the list of sockets", trace.urls("sockets", {"endpoint": str(link.endpoint)}, trace_key=trace.key))
    lives = queries.socket_lives(trace.db, link, limit=LIVES_SHOWN + 1)
    _choose(lives, [{"socket": life.link} for life in lives], f"the endpoint address {link.endpoint}", "sockets", way)


def choose_heap(trace: OpenTrace, process_n: int, process: str, link: HeapLink, *, in_query: bool) -> None:
    """As `choose_process`, for a heap handle of a process; where the query string names it (`in_query`) its only life is good as it is."""
    if link.ns is not None:
        return
    way = Crumb("all heaps of the process", trace.urls("heap_process", trace_key=trace.key, process=process))
    lives = queries.heap_lives(trace.db, process_n, link, limit=LIVES_SHOWN + 1)
    if len(lives) == 1 and in_query:
        return
    _choose(lives, [{"heap": life.link} for life in lives], f"the heap handle {link.handle}", "heaps", way, in_query=in_query)


def choose_allocation(trace: OpenTrace, process_n: int, process: str, link: AllocationLink) -> None:
    """As `choose_process`, for a heap's address."""
    if link.ns is not None:
        return
    query = {"process": process, "address": str(link.address)}
    way = Crumb("all that held this address, in the list of allocations", trace.urls("allocations", query, trace_key=trace.key))
    lives = queries.allocation_lives(trace.db, process_n, link, limit=LIVES_SHOWN + 1)
    parts = [dict(zip(("heap", "address"), life.link.split(":"), strict=True)) for life in lives]
    _choose(lives, parts, f"the address {link.address} of heap {link.heap}", "blocks", way)


def _choose(
    lives: Sequence[Life], parts: Sequence[Mapping[str, str]], name: str, nouns: str, way: Crumb, *, in_query: bool = False
) -> None:
    if not lives:
        return
    if len(lives) == 1:
        raise OtherName(parts[0])
    shown = lives[:LIVES_SHOWN]
    number = f"{len(lives)} {nouns}" if len(lives) <= LIVES_SHOWN else f"More than {LIVES_SHOWN} {nouns} (the first are below)"
    choices = tuple(
        Choice(_words(life), {} if in_query else part, part if in_query else {}) for life, part in zip(shown, parts, strict=False)
    )
    sentence = f"{number} had {name} one after the other. A time in the link says which, as in {shown[0].link}."
    raise SeveralFit(sentence, choices, ways=(way,))


def _words(life: Life) -> str:
    began = f"from {fmt.time(life.began_ns)}" if life.began_ns is not None else f"first seen at {fmt.time(life.first_ns)}"
    if life.ended_ns is None:
        return f"{life.what}, {began}, there when the trace ended"
    lasted = f" ({fmt.duration(life.ended_ns - life.began_ns)})" if life.began_ns is not None else ""
    return f"{life.what}, {began} to {fmt.time(life.ended_ns)}{lasted}"
