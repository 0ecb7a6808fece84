"""Virtual memory that programs reserved, committed or gave back around an address."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, literal_column, select

from app import format as fmt
from app.links import ProcessRef
from app.planning import without_index
from app.queries.who import process_columns, process_ref, process_table
from collector.store.tables import LARGE_BYTES, THIS_TRACE, TRACE

__all__ = ["MemoryCall", "memory_calls_at"]

_memory = TRACE.tables["virtual_memory"]
_p = process_table()

# Written as the index has it, since a partial index is used only for its very condition.
_is_large: ColumnElement[bool] = literal_column(f"(virtual_memory.size_bytes > {LARGE_BYTES})")
_NAMES = {0x1000: "commit", 0x2000: "reserve", 0x4000: "decommit", 0x8000: "release", 0x80000: "reset", 0x20000000: "large pages"}


@dataclass(frozen=True, slots=True)
class MemoryCall:
    """One VirtualAlloc or VirtualFree whose range holds the address."""

    t_ns: int
    what: str
    how: str
    process: ProcessRef | None
    low: fmt.Address
    high: fmt.Address
    size: int
    tid: int | None


def memory_calls_at(db: Connection, address: int, limit: int) -> list[MemoryCall]:
    """Calls whose range holds the address, in time order; at most `limit`."""
    stored, m = fmt.stored_address(address), _memory.c
    holds = m.base + m.size_bytes > stored
    near = (m.base.between(stored - LARGE_BYTES, stored), holds)
    far = (_is_large, without_index(m.base) < stored - LARGE_BYTES, holds)
    found: list[MemoryCall] = []
    for conditions in (near, far):
        rows = db.execute(
            select(m.t_ns, m.is_free, m.flags, m.base, m.size_bytes, m.tid, *process_columns(_p))
            .select_from(_memory.outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == m.process_n)))
            .where(m.trace_id == THIS_TRACE, *conditions)
            .order_by(m.t_ns, m.n)
            .limit(limit)
        )
        for row in rows:
            low = row.base & (1 << 64) - 1
            found.append(
                MemoryCall(
                    t_ns=row.t_ns,
                    what="VirtualFree" if row.is_free else "VirtualAlloc",
                    how=_flags(row.flags),
                    process=process_ref(row),
                    low=fmt.Address(low),
                    high=fmt.Address(min(low + row.size_bytes, (1 << 64) - 1)),
                    size=row.size_bytes,
                    tid=row.tid,
                )
            )
    return sorted(found, key=lambda call: call.t_ns)[:limit]


def _flags(flags: int) -> str:
    """The flags of a call in words, others as a number."""
    rest = flags & ~sum(_NAMES)
    words = [name for bit, name in _NAMES.items() if flags & bit]
    return ", ".join(words + ([f"{rest:#x}"] if rest else [])) or "nothing"
