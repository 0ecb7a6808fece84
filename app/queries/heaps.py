"""All heaps of a trace, one life of a handle a row, with what each holds at the end."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, ScalarSelect, and_, func, select

from app import format as fmt
from app.filters import Filter, one_word, parse_address, parse_bytes
from app.links import ProcessRef, heap_link
from app.paging import Asked, Position, Sort
from app.queries.grouping import Groups
from app.queries.heap_pages import flags_in_words
from app.queries.resolution import LEVELS
from app.queries.who import life_filters, process_columns, process_filter, process_ref, process_table
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["FILTERS", "SORTS", "ListedHeapRow", "heaps_page"]

_heap = TRACE.tables["heap"]
_rollup = TRACE.tables["heap_rollup"]
_p = process_table()


@dataclass(frozen=True, slots=True)
class ListedHeapRow:
    """One life of a heap handle in the list. Bytes and blocks held are changes since the trace began."""

    heap: str
    process: ProcessRef | None
    handle: fmt.Address
    life: int
    flags: str | None
    created_ns: int | None
    first_ns: int
    destroyed_ns: int | None
    live_bytes: int
    live_blocks: int
    committed: int | None
    reserved: int | None
    free_space: int | None
    allocated: int | None


def _at_end(name: str) -> ScalarSelect[Any]:  # Any: a number
    """A column of the last bucket of a heap."""
    r = _rollup.c
    mine = (r.trace_id == THIS_TRACE, r.scope == "heap", r.scope_n == _heap.c.n, r.level == LEVELS[-1])
    return select(r[name]).where(*mine).order_by(r.bucket.desc()).limit(1).correlate(_heap).scalar_subquery()


_COLUMNS = ("process_n", "handle", "life", "flags", "created_ns", "destroyed_ns", "committed", "reserved", "free_space", "allocated")

_heaps = (
    select(
        *(_heap.c[name] for name in _COLUMNS),
        _heap.c.first_ns.label("earliest_ns"),
        func.coalesce(_at_end("bytes_end"), 0).label("live_bytes"),
        func.coalesce(_at_end("count_end"), 0).label("live_blocks"),
        _p.c.image.label("process"),
    )
    .select_from(_heap.outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == _heap.c.process_n)))
    .where(_heap.c.trace_id == THIS_TRACE)
    .subquery("heaps")
)
_h = _heaps.c

FILTERS = (
    process_filter(_h.process_n),
    Filter("heap", parse_address, lambda v: _h.handle == fmt.stored_address(v), "with handle {}", "Heap", hint="0x…"),
    Filter(
        "state",
        one_word(("there", "destroyed")),
        lambda v: _h.destroyed_ns.is_(None) if v == "there" else _h.destroyed_ns.is_not(None),
        "{}",
        "State",
        show=lambda v: "there at the end" if v == "there" else "destroyed before the end",
        choices=(("there", "there at the end"), ("destroyed", "destroyed before the end")),
    ),
    Filter("min_held", parse_bytes, lambda v: _h.live_bytes >= v, "that hold {} or more", "Held from", show=fmt.bytes_text, hint="1 MiB"),
    Filter("max_held", parse_bytes, lambda v: _h.live_bytes <= v, "that hold {} or less", "Held to", show=fmt.bytes_text),
    Filter("min_committed", parse_bytes, lambda v: _h.committed >= v, "of {} committed or more", "Committed from", show=fmt.bytes_text),
    Filter("max_committed", parse_bytes, lambda v: _h.committed <= v, "of {} committed or less", "Committed to", show=fmt.bytes_text),
    *life_filters(_h.earliest_ns, _h.destroyed_ns),
)

SORTS = (
    Sort("live_bytes", _h.live_bytes, falls=True),
    Sort("live_blocks", _h.live_blocks, falls=True),
    Sort("process", _h.process),
    Sort("handle", _h.handle),
    Sort("committed", _h.committed, falls=True),
    Sort("reserved", _h.reserved, falls=True),
    Sort("free_space", _h.free_space, falls=True),
    Sort("first_ns", _h.earliest_ns),
    Sort("created_ns", _h.created_ns),
    Sort("destroyed_ns", _h.destroyed_ns),
)


def heaps_page(db: Connection, asked: Asked) -> tuple[list[ListedHeapRow], Position | None]:
    """One page of the heaps, and where the next begins."""
    key = asked.order.sort.key
    groups = Groups(
        select(_heaps).where(*asked.where.clauses()).subquery("groups"),
        by={"first_ns": "earliest_ns"}.get(key, key),
        falls=asked.order.falls,
        name=("process_n", "handle", "life"),
    )
    chosen = groups.page(db, asked)
    joined = chosen.outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == chosen.c.process_n))
    rows = db.execute(select(chosen, *process_columns(_p)).select_from(joined).order_by(*groups.order(chosen))).all()
    return [_row(row) for row in rows[: asked.limit]], groups.following(db, asked, rows)


def _row(row: Any) -> ListedHeapRow:  # Any: the columns of _heaps, and those of its process
    return ListedHeapRow(
        heap=heap_link(row.handle, row.created_ns, row.earliest_ns),
        process=process_ref(row),
        handle=fmt.Address(row.handle & (1 << 64) - 1),
        life=row.life,
        flags=flags_in_words(row.flags),
        created_ns=row.created_ns,
        first_ns=row.earliest_ns,
        destroyed_ns=row.destroyed_ns,
        live_bytes=row.live_bytes,
        live_blocks=row.live_blocks,
        committed=row.committed,
        reserved=row.reserved,
        free_space=row.free_space,
        allocated=row.allocated,
    )
