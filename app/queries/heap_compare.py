"""What a process holds at one moment against another: by stack, by size, by age, by module."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection

from app.queries.heap_flame import stack_hashes
from app.queries.heap_held import OLDER, HeldPart, held_by_ref, held_parts
from app.queries.heap_scan import LIFETIMES, SIZES, Group, by_stack
from app.queries.heap_timeline import HeapScope
from app.queries.stack_modules import MAX_STACKS, NO_STACK, OTHERS, modules_of
from app.queries.stacks import callers_of
from collector.store.tables import TRACE

__all__ = ["CHANGES", "ClassChange", "Comparison", "ModuleChange", "StackChange", "compare", "word_of"]

_frame = TRACE.tables["stack_frame"]

CHANGES = ("grew", "shrank", "new", "gone")
"""What a stack did between two moments: `new` held nothing at the first, `gone` nothing at the second."""


@dataclass(frozen=True, slots=True)
class StackChange:
    """What one stack holds at two moments. `stack` is None for blocks without a stack."""

    stack: str | None
    callers: str
    change: str
    more_bytes: int
    more_blocks: int
    bytes_a: int
    blocks_a: int
    bytes_b: int
    blocks_b: int
    is_suspect: bool


@dataclass(frozen=True, slots=True)
class ClassChange:
    """Blocks of one class at two moments; `low` is its lower limit, `high` its upper (None: open).

    Both are None for the class of blocks that are older than the trace.
    """

    low: int | None
    high: int | None
    blocks_a: int
    bytes_a: int
    blocks_b: int
    bytes_b: int


@dataclass(frozen=True, slots=True)
class ModuleChange:
    """Blocks of the stacks whose innermost frame outside the allocator is in one module."""

    module: str
    more_bytes: int
    more_blocks: int
    bytes_a: int
    blocks_a: int
    bytes_b: int
    blocks_b: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two moments. `grown` are the stacks that hold more at the second, the most first, `shrunk` those that hold less.

    `numbers` says how many stacks did each of CHANGES.
    """

    bytes_a: int
    blocks_a: int
    bytes_b: int
    blocks_b: int
    numbers: dict[str, int]
    grown: tuple[StackChange, ...]
    shrunk: tuple[StackChange, ...]
    sizes: tuple[ClassChange, ...]
    ages: tuple[ClassChange, ...]
    modules: tuple[ModuleChange, ...]


Pair = tuple[Group, Group]


def compare(db: Connection, scope: HeapScope, a: int, b: int, *, stacks: int) -> Comparison:
    """What is held at `a` and at `b`, all changes at these moments included; `stacks` is how many stacks to give of each direction."""
    before, after = (by_stack(db, held_by_ref(db, scope, ns)) for ns in (a, b))
    pairs = {n: (before.get(n, Group()), after.get(n, Group())) for n in before.keys() | after.keys()}
    changed = {n: pair for n, pair in pairs.items() if word_of(pair)}
    ranked = sorted(changed, key=lambda n: (_more(changed[n]), -1 if n is None else n))
    grown = [n for n in reversed(ranked) if _rises(changed[n])]
    shrunk = [n for n in ranked if not _rises(changed[n])]
    parts = (held_parts(db, scope, a), held_parts(db, scope, b))
    return Comparison(
        bytes_a=sum(one.held_bytes for one, _ in pairs.values()),
        blocks_a=sum(one.held for one, _ in pairs.values()),
        bytes_b=sum(one.held_bytes for _, one in pairs.values()),
        blocks_b=sum(one.held for _, one in pairs.values()),
        numbers={word: sum(word_of(pair) == word for pair in pairs.values()) for word in CHANGES},
        grown=tuple(_changes(db, grown[:stacks], pairs)),
        shrunk=tuple(_changes(db, shrunk[:stacks], pairs)),
        sizes=_classes(parts, SIZES, closed=True),
        ages=_classes(parts, LIFETIMES, closed=False),
        modules=tuple(_modules(db, pairs)),
    )


def word_of(pair: Pair) -> str:
    """What a stack did: one of CHANGES, empty when it holds the same."""
    before, after = pair
    if not before.held:
        return "new" if after.held else ""
    if not after.held:
        return "gone"
    return "" if _more(pair) == (0, 0) else "grew" if _rises(pair) else "shrank"


def _more(pair: Pair) -> tuple[int, int]:
    """Bytes and blocks that came."""
    return pair[1].held_bytes - pair[0].held_bytes, pair[1].held - pair[0].held


def _rises(pair: Pair) -> bool:
    return _more(pair) > (0, 0)


def _changes(db: Connection, numbers: list[int | None], pairs: dict[int | None, Pair]) -> Iterable[StackChange]:
    known = [n for n in numbers if n is not None]
    hashes, lines = stack_hashes(db, known), callers_of(db, known)
    for n in numbers:
        before, after = pairs[n]
        size, blocks = _more(pairs[n])
        yield StackChange(
            stack=hashes.get(n),
            callers="" if n is None else lines.get(n, ""),
            change=word_of(pairs[n]),
            more_bytes=size,
            more_blocks=blocks,
            bytes_a=before.held_bytes,
            blocks_a=before.held,
            bytes_b=after.held_bytes,
            blocks_b=after.held,
            is_suspect=before.is_suspect or after.is_suspect,
        )


def _classes(parts: tuple[list[HeldPart], list[HeldPart]], limits: tuple[int, ...], *, closed: bool) -> tuple[ClassChange, ...]:
    """The classes that have blocks at either moment. `closed` limits belong to the class below (sizes), others to the one above (ages)."""
    sums: dict[int, list[int]] = {}
    for side, found in enumerate(parts):
        for part in found:
            cells = sums.setdefault(part.size_class if closed else part.age_class, [0] * 4)
            cells[2 * side] += part.blocks
            cells[2 * side + 1] += part.bytes
    rows = []
    for index in sorted(sums):
        low: int | None = None
        if index != OLDER:
            low = (limits[index - 1] + (1 if closed else 0)) if index else 0
        rows.append(ClassChange(low, limits[index] if 0 <= index < len(limits) else None, *sums[index]))
    return tuple(rows)


def _modules(db: Connection, pairs: dict[int | None, Pair]) -> list[ModuleChange]:
    """By module, those that changed most first."""
    ranked = sorted((n for n in pairs if n is not None), key=lambda n: max(abs(_more(pairs[n])[0]), pairs[n][1].held_bytes), reverse=True)
    owners = modules_of(db, ranked[:MAX_STACKS])
    sums: dict[str, Pair] = {}
    for n, pair in pairs.items():
        name = NO_STACK if n is None else owners.get(n, OTHERS)
        total = sums.setdefault(name, (Group(), Group()))
        for side in (0, 1):
            total[side].add(pair[side])
    found = [
        ModuleChange(name, *_more(pair), pair[0].held_bytes, pair[0].held, pair[1].held_bytes, pair[1].held) for name, pair in sums.items()
    ]
    return sorted(found, key=lambda one: (-abs(one.more_bytes), -one.bytes_b, one.module))
