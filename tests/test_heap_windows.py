"""What blocks say about a stretch of time: window classes, held candidates, sizes and lifetimes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collector.model.heap_windows import (
    LIFETIME_CLASSES,
    NEVER,
    SIZE_CLASSES,
    UNKNOWN,
    BlockColumns,
    Held,
    held_at,
    held_candidates,
    lifetime_classes,
    size_classes,
    sizes_at,
    window_classes,
)
from collector.words import END_REASONS
from tests.build.imported import Imported, ImportTrace

FREED = END_REASONS.index("freed")
S1, S2 = 1, 2


def blocks(*rows: tuple[int | None, int | None, int], stack: tuple[int, ...] = (), first: int = 0, reason: int = FREED) -> BlockColumns:
    """Blocks of (start, end, size); None is unknown or never."""
    n = len(rows)
    start = np.array([UNKNOWN if s is None else s for s, _, _ in rows], dtype=np.int64)
    end = np.array([NEVER if e is None else e for _, e, _ in rows], dtype=np.int64)
    sizes = np.array([size for _, _, size in rows], dtype=np.int64)
    none = np.zeros(0, dtype=np.int64)
    return BlockColumns(
        start_ns=start,
        first_ns=np.where(start == UNKNOWN, first, start),
        end_ns=end,
        end_reason=np.where(end == NEVER, -1, reason),
        size_at_open=sizes,
        size=sizes,
        stack=np.array(stack or [S1] * n, dtype=np.int64),
        is_certain=np.ones(n, dtype=np.bool_),
        resized=none,
        resized_ns=none,
        resized_to=none,
    )


def resized(known: BlockColumns, *steps: tuple[int, int, int]) -> BlockColumns:
    """Resizes of (block, time, size), in the order of time."""
    index, ns, size = (np.array(column, dtype=np.int64) for column in zip(*steps, strict=True))
    last = known.size.copy()
    last[index] = size
    own = {name: getattr(known, name) for name in known.__slots__} | {"size": last}
    return BlockColumns(**own | {"resized": index, "resized_ns": ns, "resized_to": size})


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (20, 59, "AIFI"), (20, 60, "AIFO"), (20, None, "AIFO"), (59, None, "AIFO"),
        (19, 21, "AOFI"), (None, 59, "AOFI"), (19, 60, "AOFO"), (None, None, "AOFO"),
        (10, 20, None), (60, 70, None), (60, None, None),
    ],
)  # fmt: skip
def test_a_window_is_half_open_on_both_ends(start: int | None, end: int | None, expected: str | None) -> None:
    found = window_classes(blocks((start, end, 8)), 20, 60)

    assert {name for name, held in found.items() if held.count} == ({expected} if expected else set())


def test_bytes_are_those_at_the_end_or_as_of_the_windows_end() -> None:
    known = resized(blocks((10, 50, 1), (10, None, 1)), (0, 20, 2), (1, 20, 2), (1, 60, 4))

    assert window_classes(known, 0, 40) == {"AIFI": Held(0, 0), "AIFO": Held(2, 4), "AOFI": Held(0, 0), "AOFO": Held(0, 0)}
    assert window_classes(known, 0, 60)["AIFO"] == Held(1, 2)
    assert window_classes(known, 0, 61)["AIFO"] == Held(1, 4)
    assert window_classes(known, 0, 60)["AIFI"] == Held(1, 2)


def test_sizes_as_of_a_time() -> None:
    known = resized(blocks((10, None, 1)), (0, 20, 2), (0, 30, 4))

    assert [sizes_at(known, t)[0] for t in (19, 20, 29, 30)] == [1, 2, 2, 4]


def test_what_is_held_at_a_time_by_stack() -> None:
    known = blocks((10, 20, 1), (15, None, 2), (16, None, 4), stack=(S1, S1, S2))

    assert held_at(known, 16) == {S1: Held(2, 3), S2: Held(1, 4)}
    assert held_at(known, 20) == {S1: Held(1, 2), S2: Held(1, 4)}
    assert held_at(known, 9) == {}


def test_a_candidate_is_old_enough_and_says_how_much_of_its_stack_was_freed() -> None:
    known = blocks((10, None, 8), (20, None, 8), (12, 14, 8), (13, None, 99), (None, None, 8), stack=(S1, S1, S1, S2, S2))

    (second, first) = held_candidates(known, 10, 30, end_ns=40)
    assert (first.stack, first.held, first.first_ns, first.last_ns) == (S1, Held(2, 16), 10, 20)
    assert first.freed_share == pytest.approx(1 / 3)
    assert (second.stack, second.held, second.freed_share) == (S2, Held(1, 99), 0)
    assert [c.held.count for c in held_candidates(known, 10, 30, end_ns=40, min_age_ns=21)] == [1, 1]
    assert [c.held.count for c in held_candidates(known, 10, 30, end_ns=40, min_age_ns=28)] == [1]


def test_a_stack_that_grows_in_every_quarter_comes_first() -> None:
    steady = [(t, None, 1) for t in (5, 30, 55, 80)]
    jump = [(5, None, 1000), (6, None, 1000)]
    known = blocks(*steady, *jump, stack=(S1, S1, S1, S1, S2, S2))

    assert [(c.stack, c.grows_steadily) for c in held_candidates(known, 0, 100, end_ns=100)] == [(S1, True), (S2, False)]


def test_size_classes_at_their_borders() -> None:
    sizes = np.array([0, 1, 16, 17, 32, 33, 1 << 20, (1 << 20) + 1], dtype=np.int64)

    assert size_classes(sizes) == {"0": 1, "<=16": 2, "<=32": 2, "<=64": 1, "<=1048576": 1, ">1048576": 1}
    assert len(SIZE_CLASSES) == 19


@pytest.mark.parametrize(
    ("ns", "expected"),
    [(0, "<1us"), (999, "<1us"), (1000, "1-10us"), (99_999, "10-100us"), (10**9 - 1, "100ms-1s"), (10**9, "1-10s"), (10**10, ">=10s")],
)
def test_lifetimes_at_their_borders(ns: int, expected: str) -> None:
    assert lifetime_classes(blocks((5, 5 + ns, 1))) == {expected: 1}
    assert expected in LIFETIME_CLASSES


def test_lifetimes_are_of_blocks_whose_life_is_known() -> None:
    assert lifetime_classes(blocks((None, 10, 1), (5, None, 1))) == {}
    assert lifetime_classes(blocks((5, 10, 1), reason=END_REASONS.index("process_exit"))) == {}
    assert lifetime_classes(blocks((5, 10, 1), reason=END_REASONS.index("superseded"))) == {}
    assert lifetime_classes(blocks((5, 10, 1), reason=END_REASONS.index("heap_destroyed"))) == {"<1us": 1}


# ---------------------------------------------------------------------------------------------------- reference traces


def columns_of(db: Imported, where: str = "1") -> BlockColumns:
    """The blocks of a collected trace, of some processes."""
    rows = db.rows(
        "select a.n, a.start_ns, a.first_ns, a.end_ns, a.end_reason, a.size_at_open, a.size, r.stack_n, a.trust from allocation a"
        " join process p on p.n = a.process_n left join stack_ref r on r.ref = a.owner_stack_ref"
        f" where {where} order by a.n"
    )
    table = list(zip(*rows, strict=True)) or [()] * 9

    def column(i: int, unknown: int = 0) -> Any:  # an int64 array
        return np.array([unknown if value is None else value for value in table[i]], dtype=np.int64)

    index = {n: i for i, n in enumerate(table[0])}
    steps = [(index[n], ns, size) for n, ns, size in db.rows("select allocation_n, t_ns, size from resize order by n") if n in index]
    moved = np.array(steps, dtype=np.int64).reshape(-1, 3).T
    return BlockColumns(
        column(1, UNKNOWN), column(2), column(3, NEVER), column(4, -1), column(5), column(6), column(7, -1), column(8) == 0, *moved,
    )  # fmt: skip


def frames_by_stack(db: Imported) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {-1: ()}
    for stack, address in db.rows("select stack_n, address from stack_frame order by stack_n, frame"):
        found[stack] = (*found.get(stack, ()), address % (1 << 64))
    return found


def frames_of(label: str, stacks: dict[str, Any]) -> tuple[int, ...]:
    rows = stacks.get(label, [])
    return tuple(int(frame, 16) for frame in (rows["frames"] if isinstance(rows, dict) else rows))


TRACES = [*(f"worked/HT-{i:02}" for i in (1, 4, 5, 6, 7)), "story-mixed", "story-32"]


@pytest.mark.shared
@pytest.mark.parametrize("name", TRACES)
def test_windows_of_the_reference_traces(name: str, shared_dir: Path, import_trace: ImportTrace) -> None:
    document = json.loads((shared_dir / "traces" / f"{name}.expected.json").read_text())
    expected = document.get("heap") or document["expect"]
    db = import_trace(shared_dir / "traces" / f"{name}.etl")
    end_ns = document.get("length_ns") or max(event["t_ns"] for event in document["events"])
    stacks = frames_by_stack(db)

    for window in expected.get("windows", ()):
        found = window_classes(columns_of(db, f"p.pid = {window['pid']}"), window["t0_ns"], window["t1_ns"])
        assert {key: {"count": held.count, "bytes": held.bytes} for key, held in found.items()} == {key: window[key] for key in found}
    for wanted in expected.get("leak_candidates", ()):
        known = columns_of(db, f"p.pid = {wanted['pid']}")
        candidates = held_candidates(known, wanted["t0_ns"], wanted["t1_ns"], end_ns=end_ns, min_age_ns=wanted["min_age_ns"])
        groups = {frames_of(label, document["stacks"]): group for label, group in wanted["groups"].items()}
        trust = {"certain": "certain", "possible": "suspect"}
        assert {stacks[c.stack]: {"count": c.held.count, "bytes": c.held.bytes, "trust": trust[c.certainty]} for c in candidates} == groups
    everything = columns_of(db)
    checks: dict[str, Callable[[], dict[str, int]]] = {
        "lifetimes": lambda: lifetime_classes(everything), "size_classes": lambda: size_classes(everything.size_at_open),
    }  # fmt: skip
    for key, ask in checks.items():
        if key in expected:
            assert ask() == expected[key]
