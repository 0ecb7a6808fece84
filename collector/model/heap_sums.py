"""What the pages of a heap say of a whole trace, added up while its blocks pass: by stack, by size, by lifetime."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from collector.amounts import LIFETIME_LIMITS, SIZE_LIMITS
from collector.model.groups import Groups, Int64s
from collector.model.rows import Rows, rows_of
from collector.words import CERTAINTIES, END_REASONS, ORIGINS

__all__ = ["HEAP_COLUMNS", "HeapSums", "StackOf"]

Bools = NDArray[np.bool_]
StackOf = Callable[[Int64s], tuple[Int64s, Bools]]
"""Numbers of the stacks behind those references that have one, and which of them have."""

HEAP_COLUMNS = (
    "process_n", "heap_n", "size", "size_at_open", "first_ns", "end_ns", "end_reason", "origin", "trust", "owner_stack_ref",
)  # fmt: skip
"""Columns of allocations that are looked at."""

_ADOPTED = ORIGINS.index("adopted")
_POSSIBLE = CERTAINTIES.index("possible")
_LIFETIME_ENDS = [END_REASONS.index(word) for word in ("freed", "realloc_moved", "heap_destroyed")]
_WHAT = ("size", "lifetime", "ended", "adopted")
_SIZE, _LIFETIME, _ENDED, _OLD = range(len(_WHAT))


class HeapSums:
    """Takes allocations; then gives the rows of `stack_sum`, `heap_stack` and `heap_class`."""

    def __init__(self, absent: int) -> None:
        """`absent` stands for NULL in the columns that are taken."""
        self._absent = absent
        self._blocks = Groups(keys=2, sums=5, lows=2, highs=1)  # heap and whether adopted in one number, reference of the stack
        self._classes = Groups(keys=3, sums=3)

    def take(self, column: dict[str, Int64s]) -> None:
        """Some finished allocations, as columns."""
        heap, size, opened, first, end = (column[name] for name in ("heap_n", "size", "size_at_open", "first_ns", "end_ns"))
        is_adopted, is_held = column["origin"] == _ADOPTED, end == self._absent
        held, held_bytes = is_held.astype(np.int64), size * is_held
        is_freed = np.isin(column["end_reason"], _LIFETIME_ENDS)
        suspect = is_held & (column["trust"] == _POSSIBLE)
        self._blocks.add(
            keys=(2 * heap + is_adopted, column["owner_stack_ref"]),
            sums=(held_bytes, held, opened, suspect.astype(np.int64), is_freed.astype(np.int64)),
            lows=(first, column["process_n"]),
            highs=(first,),
        )
        ours, over = ~is_adopted, ~is_held & ~is_adopted
        freed, old = ours & is_freed, is_adopted & ~is_held
        lived = np.searchsorted(LIFETIME_LIMITS, (end - first)[freed], side="right")
        nothing = np.zeros_like(size)
        self._count(_SIZE, heap[ours], np.searchsorted(SIZE_LIMITS, opened[ours], side="left"), opened[ours], held[ours], held_bytes[ours])
        self._count(_LIFETIME, heap[freed], lived, opened[freed], nothing[freed], nothing[freed])
        self._count(_ENDED, heap[over], nothing[over], size[over], nothing[over], nothing[over])
        self._count(_OLD, heap[old], nothing[old], size[old], nothing[old], nothing[old])

    def _count(self, what: int, heap: Int64s, place: Int64s, size: Int64s, held: Int64s, held_bytes: Int64s) -> None:
        self._classes.add(keys=(heap, np.full(heap.size, what), place), sums=(size, held, held_bytes))

    def finish(self, stack_of: StackOf) -> Iterator[Rows]:
        """All rows, once all allocations were taken."""
        heaps, refs, count, held_bytes, held, opened, suspects, freed, first, process, last = self._blocks.columns()
        stacks, known = stack_of(refs)
        stack = np.full(refs.size, self._absent)
        stack[known] = stacks
        yield _stack_sums(stack, process, (held_bytes, held, opened, count), first, last, known)
        ours = heaps % 2 == 0
        by_stack = Groups(keys=2, sums=6, lows=1, highs=1)
        by_stack.add(
            keys=((heaps >> 1)[ours], stack[ours]),
            sums=tuple(column[ours] for column in (count, opened, held, held_bytes, freed, suspects)),
            lows=(first[ours],),
            highs=(last[ours],),
        )
        heap, stack, _, *sums, suspects, first, last = by_stack.columns()
        names = ("heap_n", "stack_n", "blocks", "bytes", "held", "held_bytes", "freed", "first_ns", "last_ns", "is_suspect")
        columns = dict(zip(names, (heap, stack, *sums, first, last, (suspects > 0).astype(np.int64)), strict=True))
        columns |= {"n": np.arange(heap.size)}
        yield {"heap_stack": rows_of("heap_stack", columns, count=heap.size, unknown=self._absent)}
        yield self._class_rows()

    def _class_rows(self) -> Rows:
        heap, what, *rest = self._classes.columns()
        words = [_WHAT[each] for each in what.tolist()]
        columns = dict(zip(("place", "blocks", "bytes", "held", "held_bytes"), rest, strict=True))
        return {"heap_class": rows_of("heap_class", {"heap_n": heap, "what": words, **columns}, count=heap.size)}


def _stack_sums(stack: Int64s, process: Int64s, sums: tuple[Int64s, ...], first: Int64s, last: Int64s, known: Bools) -> Rows:
    """Rows of `stack_sum`: all blocks with a stack, by process."""
    owned = Groups(keys=2, sums=4, lows=1, highs=1)
    owned.add(keys=(stack[known], process[known]), sums=tuple(s[known] for s in sums), lows=(first[known],), highs=(last[known],))
    stack, process, _, held_bytes, held, opened, count, first, last = owned.columns()
    names = ("stack_n", "process_n", "held_bytes", "held_count", "allocations", "allocated_bytes", "first_ns", "last_ns")
    columns = dict(zip(names, (stack, process, held_bytes, held, count, opened, first, last), strict=True))
    return {"stack_sum": rows_of("stack_sum", columns, count=stack.size)}
