"""What a window's blocks hold, as a tree of calls: the outermost frame on top, the allocating one at the bottom."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from app.queries.heap_scan import Group, by_stack, scan
from app.queries.heap_timeline import HeapScope
from app.queries.stacks import ALLOCATORS, frame_text, function_of, module_file
from collector.store.tables import TRACE

__all__ = ["MAX_DEPTH", "MAX_NODES", "MAX_STACKS", "CallNode", "call_tree", "tree_of"]

_frame = TRACE.tables["stack_frame"]

MAX_STACKS = 2_000
"""Stacks that the tree is made of, those that hold the most; the rest is one node."""

MAX_NODES = 1_500
MAX_DEPTH = 90
"""Frames below which a stack is cut: recursion may go hundreds deep."""

_SMALLEST = 1_000
"""A node smaller than the whole's part in this many is folded into its caller."""

_CHUNK = 500

NO_STACK, OTHERS, DEEPER = "(no stack recorded)", "(other stacks)", "(deeper frames)"


@dataclass(slots=True)
class CallNode:
    """One frame and what was allocated below it and is still held; `self_bytes` and `self_blocks` end in this very frame."""

    name: str
    bytes: int = 0
    blocks: int = 0
    self_bytes: int = 0
    self_blocks: int = 0
    children: dict[str, "CallNode"] = field(default_factory=dict)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, "CallNode"]]:
        """This node and all below it with their depth, the biggest first among siblings."""
        waiting = [(depth, self)]
        while waiting:
            at, node = waiting.pop()
            yield at, node
            waiting += [(at + 1, child) for child in sorted(node.children.values(), key=lambda child: child.bytes)]


def call_tree(db: Connection, scope: HeapScope, t0: int, t1: int) -> CallNode:
    """The blocks that began in [t0, t1) and are still held at t1, by their calls. Recursion stays as deep as it was, up to MAX_DEPTH."""
    groups = {n: group for n, group in by_stack(db, scan(db, scope, t0, t1).by_ref).items() if group.held}
    biggest = sorted(groups, key=lambda n: groups[n].held_bytes, reverse=True)[:MAX_STACKS]
    paths = _paths(db, [n for n in biggest if n is not None])
    shown = [(paths.get(n, [NO_STACK]) if n is not None else [NO_STACK], groups[n]) for n in biggest]
    rest = [([OTHERS], groups[n]) for n in groups.keys() - set(biggest)]
    return tree_of([*shown, *rest])


def tree_of(stacks: Iterable[tuple[list[str], Group]]) -> CallNode:
    """A tree from stacks (outermost frame first) and what they hold, without the nodes that are too small to see."""
    root = CallNode("all")
    for path, group in stacks:
        node = root
        _add(node, group)
        for name in path:
            node = node.children.setdefault(name, CallNode(name))
            _add(node, group)
        node.self_bytes += group.held_bytes
        node.self_blocks += group.held
    _prune(root)
    return root


def _add(node: CallNode, group: Group) -> None:
    node.bytes += group.held_bytes
    node.blocks += group.held


def _prune(root: CallNode) -> None:
    """Fold into their callers the nodes that are small both by bytes and by blocks, and the smallest beyond MAX_NODES.

    A caller is at least as big as what it calls, and comes first among equals, so no node is kept without its caller.
    """

    def weight(node: CallNode) -> int:
        return max(node.bytes, node.blocks * root.bytes // max(root.blocks, 1))

    ranked = sorted(((-weight(node), depth, id(node)) for depth, node in root.walk() if weight(node) * _SMALLEST >= root.bytes))
    kept = {identity for _, _, identity in ranked[:MAX_NODES]}
    for _, node in list(root.walk()):
        for name, child in list(node.children.items()):
            if id(child) not in kept:
                del node.children[name]
                node.self_bytes += child.bytes
                node.self_blocks += child.blocks


def _paths(db: Connection, stacks: list[int]) -> dict[int, list[str]]:
    """The frames of stacks, outermost first, without the allocator's own at the inner end."""
    f = _frame.c
    frames: dict[int, list[tuple[str | None, str]]] = {}
    for start in range(0, len(stacks), _CHUNK):
        rows = db.execute(
            select(f.stack_n, f.module, f.symbol, f.offset, f.address)
            .where(f.trace_id == 1, f.stack_n.in_(stacks[start : start + _CHUNK]))
            .order_by(f.stack_n, f.frame)
        )
        for row in rows:
            text = frame_text(row.module, function_of(row.symbol), row.offset, row.address)
            frames.setdefault(row.stack_n, []).append((row.module, text))
    return {n: _path(inner_first) for n, inner_first in frames.items()}


def _path(inner_first: list[tuple[str | None, str]]) -> list[str]:
    kept = list(inner_first)
    while len(kept) > 1 and module_file(kept[0][0]).lower() in ALLOCATORS:
        kept.pop(0)
    names = [text for _, text in reversed(kept)]
    return names if len(names) <= MAX_DEPTH else [*names[: MAX_DEPTH - 1], DEEPER]
