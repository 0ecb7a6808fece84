"""Operations and blocks in one order of time: which block a buffer lies in, and what happens to it while the operation uses it.

Everything moves forward once: blocks and operations begin in the order of their records, and end when their end is due. Buffers that
start at the same address of a process share a spot; a block holds a stretch of spots, kept in a segment tree, so that finding the
youngest block around an address takes as many steps as the number of spots has bits.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from collector.clock import Clock
from collector.model.heap_losses import LossIndex
from collector.words import BUFFER_CLASSES, END_REASONS

__all__ = ["Block", "Finding", "Operation", "Resize", "Sweep"]

FREED_IN_FLIGHT, REUSED_IN_FLIGHT, SHRUNK_IN_FLIGHT = "freed_in_flight", "reused_in_flight", "shrunk_in_flight"
OVERRUNS_BLOCK, POSTED_AFTER_FREE = "overruns_block", "posted_after_free"
_CHAINED, _OVERRUN, _HEAP, _FREED = (BUFFER_CLASSES.index(word) for word in ("heap_chained", "heap_overrun", "heap", "freed_block"))
_PROCESS_EXIT = END_REASONS.index("process_exit")
_NOT_HEAP = -1
_NEVER = (1 << 63) - 1


@dataclass(slots=True, eq=False)
class Block:
    """A heap block, from its row; `spots` are the first and behind the last spot inside it."""

    n: int
    process: int
    lo: int
    size: int
    ns: int
    seq: int
    end_ns: int
    end_seq: int
    reason: int
    is_inferred: bool
    free_stack_ref: int | None
    spots: tuple[int, int]
    zero_spot: int
    """The spot at its address, -1 none: where a block of size 0 is found."""
    operations: "dict[Operation, None]" = field(default_factory=dict)
    """Operations in flight whose buffer starts in it."""

    @property
    def hi(self) -> int:
        return self.lo + self.size


@dataclass(slots=True, eq=False)
class Operation:
    """An operation with a user-mode buffer, from its row. `end_*` is its completion, or the end that is known without one."""

    n: int
    socket_n: int
    process: int
    spot: int
    lo: int
    size: int
    is_chained: bool
    ns: int
    seq: int
    end_ns: int
    end_seq: int
    closed_ns: int
    """When it stopped being in flight for its socket; earlier than its end where the completion came after close."""
    is_completion_seen: bool
    block: Block | None = None
    freed_by: Block | None = None
    is_shrunk: bool = False

    @property
    def hi(self) -> int:
        """Behind the last byte that is known to be used: of a chain only the first buffer's start is."""
        return self.lo + (1 if self.is_chained else self.size)


@dataclass(frozen=True, slots=True)
class Resize:
    """A reallocation in place."""

    block_n: int
    ns: int
    seq: int
    size: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of table io_finding, without its number; `is_certain` as the heap notes say."""

    kind: str
    ns: int
    operation: Operation
    block: Block
    reason: str | None = None
    by_bytes: int | None = None
    is_certain: bool = True


class _Tree:
    """Blocks by the spots that they hold.

    A stretch of spots is a few nodes, one for each aligned run of a power of two; most blocks hold one spot, so most levels are empty.
    """

    def __init__(self, spots: int) -> None:
        self._leaves = 1 << max(spots - 1, 0).bit_length()
        self._live: dict[int, dict[int, Block]] = {}
        self._ended: dict[int, Block] = {}
        self._live_levels: dict[int, int] = {}
        """Number of nodes with live blocks by level; the spots themselves are level 0."""
        self._ended_levels: set[int] = set()

    def enter(self, block: Block) -> None:
        for level, node in self._nodes(block.spots):
            held = self._live.get(node)
            if held is None:
                self._live[node] = {block.n: block}
                self._live_levels[level] = self._live_levels.get(level, 0) + 1
                continue
            is_youngest = next(reversed(held)) < block.n
            held[block.n] = block
            if not is_youngest:  # it was resized: keep the order of opening
                self._live[node] = dict(sorted(held.items()))

    def leave(self, block: Block, *, has_ended: bool) -> None:
        for level, node in self._nodes(block.spots):
            held = self._live[node]
            del held[block.n]
            if not held:
                del self._live[node]
                self._live_levels[level] -= 1
                if not self._live_levels[level]:
                    del self._live_levels[level]
            if has_ended:
                self._ended[node] = block
                self._ended_levels.add(level)

    def youngest(self, spot: int) -> Block | None:
        best: Block | None = None
        leaf = spot + self._leaves
        for level in self._live_levels:
            held = self._live.get(leaf >> level)
            if held is not None:
                block = held[next(reversed(held))]
                if best is None or block.n > best.n:
                    best = block
        return best

    def last_ended(self, spot: int) -> Block | None:
        best: Block | None = None
        leaf = spot + self._leaves
        for level in self._ended_levels:
            block = self._ended.get(leaf >> level)
            if block is not None and (best is None or (block.end_seq, block.n) > (best.end_seq, best.n)):
                best = block
        return best

    def _nodes(self, spots: tuple[int, int]) -> list[tuple[int, int]]:
        """Levels and nodes."""
        low, high = spots[0] + self._leaves, spots[1] + self._leaves
        if high - low == 1:
            return [(0, low)]
        nodes, level = [], 0
        while low < high:
            if low & 1:
                nodes.append((level, low))
                low += 1
            if high & 1:
                high -= 1
                nodes.append((level, high))
            low >>= 1
            high >>= 1
            level += 1
        return nodes


class Sweep:
    """Feed it with everything in the order of (ns, record number); about 5 µs each."""

    def __init__(self, spots: int, spots_of: Callable[[int, int, int], tuple[int, int]], clock: Clock, losses: LossIndex) -> None:
        """`spots_of` gives the first and behind the last spot of a process from an address to another; `spots` is how many there are."""
        self._spots_of, self._clock, self._losses = spots_of, clock, losses
        self._tree = _Tree(spots)
        self._empty: dict[int, dict[int, Block]] = {}
        """Live blocks of size 0 by the spot at their address."""
        self._live: dict[int, Block] = {}
        self._due: list[tuple[int, int, int, Block | Operation]] = []
        self._exposed: dict[int, list[tuple[int, int, Operation]]] = {}
        """Per process the operations in flight whose block has ended, sorted by address."""
        self._longest: dict[int, int] = {}
        self._count = 0
        self.findings: list[Finding] = []
        """In the order of time; whoever reads them may clear the list."""

    def open(self, block: Block) -> None:
        self._move(block.ns, block.seq)
        self._live[block.n] = block
        self._place(block)
        self._schedule(block.end_ns, block.end_seq, block)
        self._reuse(block)

    def resize(self, resize: Resize) -> None:
        self._move(resize.ns, resize.seq)
        block = self._live.get(resize.block_n)
        if block is None:
            return
        is_smaller = resize.size < block.size
        self._unplace(block, has_ended=False)
        block.size, block.spots = resize.size, self._spots_of(block.process, block.lo, block.lo + resize.size)
        self._place(block)
        if is_smaller:
            for operation in block.operations:
                if operation.hi > block.hi and not operation.is_shrunk:
                    operation.is_shrunk = True
                    self._find(SHRUNK_IN_FLIGHT, resize.ns, operation, block, by_bytes=operation.hi - block.hi)

    def post(self, operation: Operation) -> tuple[int, int | None, int | None]:
        """Begin an operation: index of its buffer class, or -1 when heaps do not know it; block and offset."""
        self._move(operation.ns, operation.seq)
        self._schedule(operation.end_ns, operation.end_seq, operation)
        block = self._tree.youngest(operation.spot)
        if not operation.size:
            empty = self._empty.get(operation.spot)
            if empty and (block is None or next(reversed(empty)) > block.n):
                block = empty[next(reversed(empty))]
        if block is None:
            ended = self._tree.last_ended(operation.spot) if operation.size else None
            if ended is None:
                return _NOT_HEAP, None, None
            operation.freed_by = ended
            return _FREED, None, None
        if operation.size:
            operation.block = block
            block.operations[operation] = None
        offset = operation.lo - block.lo
        if operation.is_chained:
            return _CHAINED, block.n, offset
        by_bytes = operation.lo + operation.size - block.hi
        if by_bytes > 0 and operation.size:
            lost = self._lost(block.ns, operation.ns)
            self.findings.append(Finding(OVERRUNS_BLOCK, operation.ns, operation, block, by_bytes=by_bytes, is_certain=not lost))
            return _OVERRUN, block.n, offset
        return _HEAP, block.n, offset

    def posted_after_free(self, operation: Operation) -> None:
        """Report an operation whose buffer turned out to be in a freed block and in nothing else."""
        block = operation.freed_by
        assert block is not None
        certain = not self._lost(block.end_ns, operation.ns) and block.end_ns != operation.ns and not block.is_inferred
        self.findings.append(Finding(POSTED_AFTER_FREE, operation.ns, operation, block, END_REASONS[block.reason], is_certain=certain))

    def finish(self) -> None:
        """Let everything end that is still due."""
        self._move(_NEVER, _NEVER)

    # ------------------------------------------------------------------------------------------------ time

    def _schedule(self, ns: int, seq: int, what: Block | Operation) -> None:
        if ns < _NEVER:
            self._count += 1
            heappush(self._due, (ns, seq, self._count, what))

    def _move(self, ns: int, seq: int) -> None:
        """End what is due before the record, or by it: what a record ends is over before what it begins."""
        while self._due and self._due[0][:2] <= (ns, seq):
            end_ns, _, _, what = heappop(self._due)
            if isinstance(what, Block):
                self._end_block(what, end_ns)
            else:
                self._end_operation(what)

    def _end_block(self, block: Block, ns: int) -> None:
        del self._live[block.n]
        self._unplace(block, has_ended=True)
        if block.reason == _PROCESS_EXIT:
            return
        for operation in block.operations:
            self._find(FREED_IN_FLIGHT, ns, operation, block, reason=END_REASONS[block.reason], is_inferred=block.is_inferred)
            insort(self._exposed.setdefault(block.process, []), (operation.lo, operation.n, operation))
            self._longest[block.process] = max(self._longest.get(block.process, 0), operation.size)
            operation.freed_by = block
        block.operations.clear()

    def _end_operation(self, operation: Operation) -> None:
        if operation.block is not None:
            operation.block.operations.pop(operation, None)
        if operation.freed_by is not None:
            self._hide(operation)

    # ------------------------------------------------------------------------------------------------ places

    def _place(self, block: Block) -> None:
        if block.size:
            self._tree.enter(block)
        elif block.zero_spot >= 0:
            self._empty.setdefault(block.zero_spot, {})[block.n] = block

    def _unplace(self, block: Block, *, has_ended: bool) -> None:
        if block.size:
            self._tree.leave(block, has_ended=has_ended)
        elif block.zero_spot >= 0:
            self._empty[block.zero_spot].pop(block.n)

    def _reuse(self, block: Block) -> None:
        """A new block over the buffer of an operation whose own block is gone."""
        exposed = self._exposed.get(block.process)
        if not exposed or not block.size:
            return
        first = bisect_left(exposed, (block.lo - self._longest[block.process], -1))
        for _, _, operation in self._over(exposed, first, block):
            self._hide(operation)
            freed = operation.freed_by
            self._find(REUSED_IN_FLIGHT, block.ns, operation, block, is_inferred=freed is not None and freed.is_inferred)

    @staticmethod
    def _over(exposed: list[tuple[int, int, Operation]], first: int, block: Block) -> Iterable[tuple[int, int, Operation]]:
        last = bisect_left(exposed, (block.hi, -1))
        return [entry for entry in exposed[first:last] if entry[2].hi > block.lo]

    def _hide(self, operation: Operation) -> None:
        exposed = self._exposed.get(operation.process, [])
        at = bisect_left(exposed, (operation.lo, operation.n))
        if at < len(exposed) and exposed[at][2] is operation:
            del exposed[at]

    # ------------------------------------------------------------------------------------------------ findings

    def _find(
        self,
        kind: str,
        ns: int,
        operation: Operation,
        block: Block,
        *,
        reason: str | None = None,
        by_bytes: int | None = None,
        is_inferred: bool = False,
    ) -> None:
        """Something that happened while the operation was in flight.

        It is certain only when the completion was seen and came later, nothing was lost in between, and no equal times leave the order
        open.
        """
        is_certain = (
            operation.is_completion_seen
            and not is_inferred
            and operation.ns < ns < operation.end_ns
            and ns < operation.closed_ns
            and not self._lost(operation.ns, operation.end_ns)
        )
        self.findings.append(Finding(kind, ns, operation, block, reason, by_bytes, is_certain))

    def _lost(self, first_ns: int, last_ns: int) -> bool:
        return bool(self._losses) and self._losses.between(self._clock.ticks_of(first_ns), self._clock.ticks_of(last_ns))
