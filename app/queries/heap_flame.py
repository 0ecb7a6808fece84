"""What a process holds or allocated, as a tree of calls: the outermost frame on top, the allocating one at the bottom."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from app.queries.heap_held import held_by_ref
from app.queries.heap_scan import Group, by_stack
from app.queries.heap_timeline import HeapScope
from app.queries.heap_whole import blocks_of
from app.queries.stacks import frame_text, function_of, is_allocator
from collector.store.tables import THIS_TRACE, TRACE

__all__ = [
    "DEEPER",
    "MAX_DEPTH",
    "MAX_NODES",
    "MAX_STACKS",
    "NO_STACK",
    "OTHERS",
    "CallNode",
    "Leaf",
    "allocated_tree",
    "call_tree",
    "held_tree",
    "stack_hashes",
    "tree_of",
]

_frame = TRACE.tables["stack_frame"]
_stack = TRACE.tables["stack"]

MAX_STACKS = 2_000
"""Stacks that the tree is made of, those that hold the most; the rest is one node."""

MAX_NODES = 1_000
"""Nodes that are kept, the biggest; what is too small below each of them is one node more."""

MAX_DEPTH = 90
"""Frames below which a stack is cut: recursion may go hundreds deep."""

_SMALLEST = 1_000
"""A node smaller than the whole's part in this many is one of the others."""

_CHUNK = 500

NO_STACK, OTHERS, DEEPER = "(no stack)", "…others", "(deeper frames)"


@dataclass(slots=True)
class CallNode:
    """One frame and what is counted at and below it; `self_bytes` and `self_blocks` end in this very frame.

    `stacks` is how many stacks go through it, `stack` the number of the one with the most bytes.
    """

    name: str
    bytes: int = 0
    blocks: int = 0
    self_bytes: int = 0
    self_blocks: int = 0
    stacks: int = 0
    stack: int | None = None
    children: dict[str, "CallNode"] = field(default_factory=dict)

    def walk(self, *, by: str = "bytes") -> Iterator[tuple[int, "CallNode"]]:
        """This node and all below it with their depth, the biggest first among siblings; `by` is `bytes` or `blocks`."""

        def weight(node: CallNode) -> int:
            return node.bytes if by == "bytes" else node.blocks

        waiting = [(0, self)]
        while waiting:
            at, node = waiting.pop()
            yield at, node
            waiting += [(at + 1, child) for child in sorted(node.children.values(), key=weight)]


Leaf = tuple[list[str], int, int, int | None]
"""A stack: its frames, outermost first, bytes, blocks, and its number."""


def call_tree(db: Connection, scope: HeapScope, t0: int, t1: int) -> CallNode:
    """The blocks that began in [t0, t1) and are still held at t1, by their calls."""
    return _tree(db, blocks_of(db, scope, t0, t1).groups, lambda group: (group.held_bytes, group.held))


def allocated_tree(db: Connection, scope: HeapScope, t0: int, t1: int) -> CallNode:
    """All blocks that began in [t0, t1), freed since or not, with the size they began with."""
    return _tree(db, blocks_of(db, scope, t0, t1).groups, lambda group: (group.allocated_bytes, group.allocated))


def held_tree(db: Connection, scope: HeapScope, ns: int) -> CallNode:
    """All blocks that are held at a moment, whenever they began."""
    return _tree(db, by_stack(db, held_by_ref(db, scope, ns)), lambda group: (group.held_bytes, group.held))


def _tree(db: Connection, groups: dict[int | None, Group], counted: Callable[[Group], tuple[int, int]]) -> CallNode:
    """The tree of all stacks with blocks. Recursion stays as deep as it was, up to MAX_DEPTH."""
    sums = {n: counted(group) for n, group in groups.items()}
    ranked = sorted((n for n, (_, blocks) in sums.items() if blocks), key=lambda n: sums[n], reverse=True)
    paths = _paths(db, [n for n in ranked[:MAX_STACKS] if n is not None])
    leaves: list[Leaf] = [(paths.get(n, [NO_STACK]) if n is not None else [NO_STACK], *sums[n], n) for n in ranked[:MAX_STACKS]]
    return tree_of([*leaves, *(([OTHERS], *sums[n], n) for n in ranked[MAX_STACKS:])])


def tree_of(stacks: Iterable[Leaf]) -> CallNode:
    """A tree from stacks; the nodes that are too small to see are one node in their caller. The stacks come by falling bytes."""
    root = CallNode("all")
    for path, size, blocks, number in stacks:
        node = root
        _add(node, size, blocks, 1, number)
        for name in path:
            node = node.children.setdefault(name, CallNode(name))
            _add(node, size, blocks, 1, number)
        node.self_bytes += size
        node.self_blocks += blocks
    _fold(root)
    return root


def _add(node: CallNode, size: int, blocks: int, stacks: int, number: int | None) -> None:
    node.bytes += size
    node.blocks += blocks
    if not node.stacks:
        node.stack = number
    node.stacks += stacks


def _fold(root: CallNode) -> None:
    """Join under each caller the nodes that are small both by bytes and by blocks, and the smallest beyond MAX_NODES.

    A caller is at least as big as what it calls, and comes first among equals, so no node is kept without its caller.
    """

    def weight(node: CallNode) -> int:
        return max(node.bytes, node.blocks * root.bytes // max(root.blocks, 1))

    ranked = sorted(((-weight(node), depth, id(node)) for depth, node in root.walk() if weight(node) * _SMALLEST >= root.bytes))
    kept = {identity for _, _, identity in ranked[:MAX_NODES]} | {id(root)}
    for node in [node for _, node in root.walk() if id(node) in kept]:
        small = [(name, child) for name, child in node.children.items() if id(child) not in kept]
        if not small:
            continue
        others = node.children.get(OTHERS) if id(node.children.get(OTHERS)) in kept else None
        others = others or CallNode(OTHERS)
        for name, child in small:
            del node.children[name]
            _add(others, child.bytes, child.blocks, child.stacks, child.stack)
            others.self_bytes += child.bytes
            others.self_blocks += child.blocks
        node.children[OTHERS] = others


def _paths(db: Connection, stacks: list[int]) -> dict[int, list[str]]:
    """The frames of stacks, outermost first, without the allocator's own at the inner end."""
    f = _frame.c
    frames: dict[int, list[tuple[str, bool]]] = {}
    for start in range(0, len(stacks), _CHUNK):
        rows = db.execute(
            select(f.stack_n, f.module, f.symbol, f.offset, f.address)
            .where(f.trace_id == THIS_TRACE, f.stack_n.in_(stacks[start : start + _CHUNK]))
            .order_by(f.stack_n, f.frame)
        )
        for row in rows:
            text = frame_text(row.module, function_of(row.symbol), row.offset, row.address)
            known = frames.setdefault(row.stack_n, [])
            known.append((text, is_allocator(row.module, row.symbol)))
    return {n: _path(inner_first) for n, inner_first in frames.items()}


def _path(inner_first: list[tuple[str, bool]]) -> list[str]:
    """Without the allocator's frames, of which one stays where there is nothing else."""
    skipped = 0
    while skipped < len(inner_first) - 1 and inner_first[skipped][1]:
        skipped += 1
    names = [text for text, _ in reversed(inner_first[skipped:])]
    return names if len(names) <= MAX_DEPTH else [*names[: MAX_DEPTH - 1], DEEPER]


def stack_hashes(db: Connection, numbers: Iterable[int | None]) -> dict[int | None, str]:
    """The hashes of stacks, which are their links."""
    wanted = sorted({n for n in numbers if n is not None})
    found: dict[int | None, str] = {}
    for start in range(0, len(wanted), _CHUNK):
        some = wanted[start : start + _CHUNK]
        rows = db.execute(select(_stack.c.n, _stack.c.hash).where(_stack.c.trace_id == THIS_TRACE, _stack.c.n.in_(some)))
        found |= {row.n: row.hash for row in rows}
    return found
