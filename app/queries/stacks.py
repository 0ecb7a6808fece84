"""Call stacks: their frames, and which allocations they still hold at the end of the trace."""

import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Subquery, and_, case, func, select

from app import format as fmt
from app.filters import Filter, parse_bytes, parse_text
from app.links import ProcessRef
from app.paging import Asked, Position, Sort
from app.queries.grouping import Groups
from app.queries.who import moment_filters, process_columns, process_filter, process_ref, process_table
from collector.store.tables import THIS_TRACE, TRACE

__all__ = [
    "ALLOCATORS",
    "FILTERS",
    "SORTS",
    "FrameRow",
    "HeldRow",
    "callers_of",
    "frame_text",
    "frames",
    "function_of",
    "held_by_stack",
    "is_allocator",
    "module_file",
    "stack_users",
    "stacks_beginning_with",
]

_stack = TRACE.tables["stack"]
_frame = TRACE.tables["stack_frame"]
_ref = TRACE.tables["stack_ref"]
_allocation = TRACE.tables["allocation"]
_sum = TRACE.tables["stack_sum"]
_p = process_table()

_SHOWN_FRAMES = 3
ALLOCATORS = ("ntdll.dll", "ucrtbase.dll", "ucrtbased.dll", "msvcrt.dll", "kernelbase.dll", "verifier.dll", "vcruntime140.dll")
"""Modules whose frames at the inner end of a stack are the allocator's own, in lower case."""

_HEAP_FUNCTIONS = re.compile(r"heap|RtlpHp|LowFrag|Lfh|(Local|Global)(Re)?Alloc|EtwTrace|CaptureStack", re.IGNORECASE)
"""Functions of the system that hand out memory, or note that they did."""

_ALLOCATING = re.compile(
    r"operator new|std::_Allocate|std::allocator<|std::_Default_allocate_traits|_*aligned_(offset_)?(malloc|realloc|recalloc)"
    r"|_*(malloc|calloc|realloc|recalloc|expand)(_base|_dbg|_crt|_impl)*$"
)
"""The malloc family and operator new: also inside programs that bring their own copy."""


@dataclass(frozen=True, slots=True)
class FrameRow:
    """One frame; frame 0 is the innermost."""

    frame: int
    module: str | None
    symbol: str | None
    offset: str | None
    address: fmt.Address


@dataclass(frozen=True, slots=True)
class HeldRow:
    """What one stack of one process allocated and did not free."""

    stack: str
    callers: str
    process: ProcessRef | None
    held_bytes: int
    held_count: int
    allocations: int
    allocated_bytes: int
    first_ns: int
    last_ns: int


_is_held = _allocation.c.end_ns.is_(None)
_held_bytes = func.sum(case((_is_held, _allocation.c.size), else_=0))
_held_count = func.sum(case((_is_held, 1), else_=0))


def _has_frame(text: str) -> Any:  # Any: a condition
    named = _frame.c.module.icontains(text, autoescape=True) | _frame.c.symbol.icontains(text, autoescape=True)
    return _stack.c.n.in_(select(_frame.c.stack_n).where(_frame.c.trace_id == THIS_TRACE, named))


FILTERS = (
    process_filter(_allocation.c.process_n),
    Filter("frame", parse_text, _has_frame, "with “{}” in a frame", "Module or symbol", hint="name"),
    Filter("min_size", parse_bytes, lambda v: _allocation.c.size >= v, "counting blocks of {} or more", "Blocks from", show=fmt.bytes_text),
    Filter("max_size", parse_bytes, lambda v: _allocation.c.size <= v, "counting blocks of {} or less", "Blocks to", show=fmt.bytes_text),
    *moment_filters(_allocation.c.first_ns),
)

SORTS = tuple(
    Sort(name, _allocation.c.n, falls=name not in ("first_ns", "process"))
    for name in ("held_bytes", "held_count", "process", "allocations", "allocated_bytes", "first_ns", "last_ns")
)
"""By the columns of the rows, which are sums; the columns given here are not used."""


def held_by_stack(db: Connection, asked: Asked) -> tuple[list[HeldRow], Position | None]:
    """One page of the stacks in the order asked for, and where the next begins.

    Allocations are summed by the reference of their stack first: references are few, and the stacks behind them are joined to the sums.
    """
    key = asked.order.sort.key
    groups = Groups(
        _of_stacks(asked),
        by={"first_ns": "earliest_ns", "last_ns": "latest_ns"}.get(key, key),
        falls=asked.order.falls,
        name=("hash", "process_n"),
    )
    chosen = groups.page(db, asked)
    rows = db.execute(
        select(chosen, *process_columns(_p))
        .select_from(chosen.outerjoin(_p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == chosen.c.process_n)))
        .order_by(*groups.order(chosen))
    ).all()
    shown = rows[: asked.limit]
    callers = callers_of(db, [row.stack_n for row in shown])
    return [_held(row, callers.get(row.stack_n, "")) for row in shown], groups.following(db, asked, rows)


def _of_stacks(asked: Asked) -> Subquery:
    """The sums of the stacks that the filters leave, with their hashes and what their processes are called."""
    is_all = all(item.filter.key in ("frame", "process") for item in asked.where.items)
    of_allocations = [item.filter.sql(item.value) for item in asked.where.items if item.filter.key != "frame"]
    of_stacks = [item.filter.sql(item.value) for item in asked.where.items if item.filter.key == "frame"]
    sums = _summed(asked) if is_all else _sums_of(of_allocations)
    p = process_table("named_process")
    return (
        select(sums.c.process_n, *(sums.c[name] for name in ("held_bytes", "held_count", "allocations", "allocated_bytes")))
        .add_columns(sums.c.first_ns.label("earliest_ns"), sums.c.last_ns.label("latest_ns"))
        .add_columns(_stack.c.n.label("stack_n"), _stack.c.hash, p.c.image.label("process"))
        .select_from(
            sums.join(_stack, and_(_stack.c.trace_id == THIS_TRACE, _stack.c.n == sums.c.stack_n)).outerjoin(
                p, and_(p.c.trace_id == THIS_TRACE, p.c.n == sums.c.process_n)
            )
        )
        .where(*of_stacks)
        .subquery("groups")
    )


def _summed(asked: Asked) -> Subquery:
    """The sums that the collector has made, of all blocks of the processes asked for."""
    of_process = [process_filter(_sum.c.process_n).sql(item.value) for item in asked.where.items if item.filter.key == "process"]
    return select(_sum).where(_sum.c.trace_id == THIS_TRACE, *of_process).subquery("summed")


def _sums_of(conditions: list[ColumnElement[bool]]) -> Subquery:
    """The same of some blocks: by the reference of their stack first, as references are few, then by stack."""
    by_ref = (
        select(
            _allocation.c.owner_stack_ref,
            _allocation.c.process_n,
            _held_bytes.label("held_bytes"),
            _held_count.label("held_count"),
            func.count().label("allocations"),
            func.sum(_allocation.c.size_at_open).label("allocated_bytes"),
            func.min(_allocation.c.first_ns).label("first_ns"),
            func.max(_allocation.c.first_ns).label("last_ns"),
        )
        .where(_allocation.c.trace_id == THIS_TRACE, _allocation.c.owner_stack_ref.is_not(None), *conditions)
        .group_by(_allocation.c.owner_stack_ref, _allocation.c.process_n)
        .subquery("by_ref")
    )
    r = by_ref.c
    return (
        select(
            _ref.c.stack_n,
            r.process_n,
            *(func.sum(r[name]).label(name) for name in ("held_bytes", "held_count", "allocations", "allocated_bytes")),
            func.min(r.first_ns).label("first_ns"),
            func.max(r.last_ns).label("last_ns"),
        )
        .select_from(by_ref.join(_ref, and_(_ref.c.trace_id == THIS_TRACE, _ref.c.ref == r.owner_stack_ref)))
        .group_by(_ref.c.stack_n, r.process_n)
        .subquery("summed")
    )


def _held(row: Any, callers: str) -> HeldRow:  # Any: a row with the columns selected above
    return HeldRow(
        row.hash,
        callers,
        process_ref(row),
        row.held_bytes,
        row.held_count,
        row.allocations,
        row.allocated_bytes,
        row.earliest_ns,
        row.latest_ns,
    )


def callers_of(db: Connection, stacks: list[int]) -> dict[int, str]:
    """The innermost frames of stacks outside the allocator, as one line each, by the stack's number."""
    lines: dict[int, list[str]] = {}
    rows = db.execute(
        select(_frame.c.stack_n, _frame.c.module, _frame.c.symbol, _frame.c.offset, _frame.c.address)
        .where(_frame.c.trace_id == THIS_TRACE, _frame.c.stack_n.in_(stacks))
        .order_by(_frame.c.stack_n, _frame.c.frame)
    )
    for row in rows:
        shown = lines.setdefault(row.stack_n, [])
        if len(shown) < _SHOWN_FRAMES and not is_allocator(row.module, row.symbol):
            shown.append(frame_text(row.module, row.symbol, row.offset, row.address))
    return {stack: " ← ".join(shown) for stack, shown in lines.items()}


def is_allocator(module: str | None, symbol: str | None) -> bool:
    """Whether a frame at the inner end of a stack is the allocator's own: by its function where that is known, else by its module."""
    function = (function_of(symbol) or "").partition(" [")[0]
    is_system = module_file(module).lower() in ALLOCATORS
    if not function:
        return is_system
    return bool(_ALLOCATING.match(function) or (is_system and _HEAP_FUNCTIONS.search(function)))


def module_file(module: str | None) -> str:
    """The file name of a module's path; empty for none."""
    return (module or "").replace("/", "\\").rpartition("\\")[2]


def frame_text(module: str | None, symbol: str | None, offset: int | None, address: int) -> str:
    """A frame in one line: `client.exe!main+0x1f`, without symbols `client.exe+0x1f04`, without a module its address."""
    if module is None:
        return fmt.address(address)
    if symbol:
        return f"{module_file(module)}!{symbol}"
    return f"{module_file(module)}+{fmt.hexadecimal(offset)}" if offset is not None else module_file(module)


def function_of(symbol: str | None) -> str | None:
    """The function in a frame's name, `grow` in `grow+0x1c [pool.cpp:17]`: calls of it from several places are one in a tree."""
    return symbol and (symbol.partition("+0x")[0] or symbol)


def frames(db: Connection, stack_hash: str) -> tuple[int, bool, list[FrameRow]] | None:
    """A stack by its hash: its number, whether all its frames are known, and the frames, innermost first."""
    found = db.execute(
        select(_stack.c.n, _stack.c.is_complete).where(_stack.c.trace_id == THIS_TRACE, _stack.c.hash == stack_hash).limit(1)
    ).first()
    if found is None:
        return None
    rows = db.execute(
        select(_frame.c.frame, _frame.c.module, _frame.c.symbol, _frame.c.offset, _frame.c.address)
        .where(_frame.c.trace_id == THIS_TRACE, _frame.c.stack_n == found.n)
        .order_by(_frame.c.frame)
    )
    mask = (1 << 64) - 1
    return (
        found.n,
        found.is_complete,
        [
            FrameRow(
                row.frame,
                row.module,
                row.symbol,
                None if row.offset is None else fmt.hexadecimal(row.offset),
                fmt.Address(row.address & mask),
            )
            for row in rows
        ],
    )


def stacks_beginning_with(db: Connection, text: str, *, limit: int) -> list[tuple[str, str]]:
    """Hashes that begin with some hex digits, and the innermost callers of each; `text` is lower case."""
    rows = db.execute(
        select(_stack.c.n, _stack.c.hash)
        .where(_stack.c.trace_id == THIS_TRACE, _stack.c.hash >= text, _stack.c.hash < text + "g")
        .order_by(_stack.c.hash)
        .limit(limit)
    ).all()
    callers = callers_of(db, [row.n for row in rows])
    return [(row.hash, callers.get(row.n, "")) for row in rows]


def stack_users(db: Connection, stack_n: int) -> list[HeldRow]:
    """What a stack allocated, by process."""
    rows = db.execute(
        select(_stack.c.hash, *(_sum.c[name] for name in ("held_bytes", "held_count", "allocations", "allocated_bytes")))
        .add_columns(_sum.c.first_ns.label("earliest_ns"), _sum.c.last_ns.label("latest_ns"), *process_columns(_p))
        .select_from(
            _sum.join(_stack, and_(_stack.c.trace_id == THIS_TRACE, _stack.c.n == _sum.c.stack_n)).outerjoin(
                _p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == _sum.c.process_n)
            )
        )
        .where(_sum.c.trace_id == THIS_TRACE, _sum.c.stack_n == stack_n)
        .order_by(_sum.c.held_bytes.desc(), _sum.c.process_n)
        .limit(50)
    )
    return [_held(row, "") for row in rows]
