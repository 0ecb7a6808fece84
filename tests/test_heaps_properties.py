"""Properties of the heap model that hold for any sequence of records."""

from itertools import accumulate
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.events.heap import HEAP_EVENTS
from collector.model.rows import unfolded
from collector.schema import FieldType
from tests.heap_model import (
    HEAP,
    OTHER_HEAP,
    Ran,
    Rec,
    alloc,
    create,
    define,
    destroy,
    end_process,
    free,
    heap_record,
    realloc,
    run,
    stack,
    stack_key,
)
from tests.heap_reference import replay

ADDRESSES = [0x1A_1000, 0x1A_2000, 0x1A_3000]
HEAPS = st.sampled_from([HEAP, HEAP, HEAP, OTHER_HEAP])
PIDS = st.sampled_from([100, 100, 100, 200])
TIDS = st.sampled_from([11, 12])
PLACES = st.sampled_from([*ADDRESSES, 0])
SIZES = st.integers(0, 3)
STEPS = st.sampled_from([0, 1, 1, 50, 5_000_000])


@st.composite
def records(draw: st.DrawFn) -> list[Rec]:
    """Any records of two processes with two heaps and three addresses, many of them in the order in which a program writes them."""
    ticks, out = 1_000, []
    gone: set[int] = set()
    for _ in range(draw(st.integers(1, 40))):
        ticks += draw(STEPS)
        pid, heap, tid = draw(PIDS), draw(HEAPS), draw(TIDS)
        if pid in gone:
            continue
        where: dict[str, int] = {"heap": heap, "pid": pid}
        new, old, size = draw(PLACES), draw(PLACES), draw(SIZES)
        match draw(st.integers(0, 19)):
            case 0:
                out.append(create(ticks, **where))
            case 1:
                out.append(destroy(ticks, **where))
            case 2 if draw(st.booleans()):
                out.append(end_process(ticks, pid=pid))
                gone.add(pid)
            case 3:
                out.append(heap_record("Lock", ticks, **where))
            case 4 | 5:
                out.append(realloc(ticks, new, new, size, draw(SIZES), tid=tid, **where))
            case 6 | 7:
                out.append(realloc(ticks, new, old, size, draw(SIZES), tid=tid, **where))
            case 8 | 9 | 10:
                moved = [
                    alloc(ticks, new, size, tid=tid, **where),
                    free(ticks + 1, old, tid=tid, **where),
                    realloc(ticks + 2, new, old, size, draw(SIZES), tid=tid, **where),
                ]
                ticks += 2
                out += [record for record in moved if draw(st.integers(0, 5))]
            case 11 | 12 | 13 | 14:
                out.append(free(ticks, new, tid=tid, **where))
            case _:
                out.append(alloc(ticks, new, size, tid=tid, **where))
    return out


def pids(ran: Ran) -> dict[int, int]:
    return {row["n"]: row["pid"] for row in ran.table("process")}


def points(ran: Ran) -> list[tuple[int, int, int, int]]:
    """The timeline of each process from its rows alone: record number, process id, live bytes, live blocks."""
    deltas: dict[tuple[int, int], list[int]] = {}

    def add(process: int, seq: int, size: int, count: int) -> None:
        delta = deltas.setdefault((process, seq), [0, 0])
        delta[0] += size
        delta[1] += count

    owner = {}
    for block in ran.table("allocation"):
        owner[block["n"]] = block["process_n"]
        add(block["process_n"], block["first_seq"], block["size_at_open"], 1)
        if block["end_seq"] is not None:
            add(block["process_n"], block["end_seq"], -block["size"], -1)
    for resize in ran.table("resize"):
        add(owner[resize["allocation_n"]], resize["seq"], resize["size"] - resize["old_size"], 0)
    out: list[tuple[int, int, int, int]] = []
    names = pids(ran)
    for process in sorted({process for process, _ in deltas}):
        own = sorted((seq, *delta) for (p, seq), delta in deltas.items() if p == process)
        levels = accumulate(((size, count) for _, size, count in own), lambda a, b: (a[0] + b[0], a[1] + b[1]))
        out += [(seq, names[process], *level) for (seq, size, count), level in zip(own, levels, strict=True) if size or count]
    return sorted(out)


@settings(max_examples=150, deadline=None)
@given(records(), st.lists(st.integers(0, 40), max_size=6))
def test_the_model_follows_the_rules(listed: list[Rec], cuts: list[int]) -> None:
    ran, expected = run(listed, cuts), replay(listed)
    names = pids(ran)

    got = [
        (
            (names[b["process_n"]], next(h["handle"] for h in ran.table("heap") if h["n"] == b["heap_n"]), b["address"]),
            b["generation"], b["size"], b["first_seq"], b["end_seq"], b["previous_n"], b["start_ns"] is None, b["end_inferred"],
        )
        for b in ran.table("allocation")
    ]  # fmt: skip
    assert got == [
        (
            b.place, b.generation, b.size, b.seq, b.end_seq, None if b.previous is None else b.previous.number, b.origin == "adopted",
            b.is_inferred,
        )
        for b in expected.blocks
    ]  # fmt: skip
    assert ran.blocks("origin", "end_reason") == [(b.origin, b.reason) for b in expected.blocks]
    assert points(ran) == sorted(expected.points)
    numbers = {pid: n for n, pid in names.items()}
    for pid, counter in expected.counters.items():
        counted = {k: v for k, v in ran.counters(numbers[pid]).items() if not k.startswith(("bytes", "peak"))}
        assert counted == {name: count for name, count in counter.items() if count}
    assert ran.anomalies() == [(kind, address or None, number) for _, kind, address, number in expected.anomalies]


@settings(max_examples=60, deadline=None)
@given(records())
def test_live_is_allocated_less_freed_and_never_negative(listed: list[Rec]) -> None:
    ran = run(listed)

    line = points(ran)
    assert all(size >= 0 and count >= 0 for _, _, size, count in line)
    for process, pid in pids(ran).items():
        counters = ran.counters(process)
        own = [point for point in line if point[1] == pid]
        if own:
            assert counters["bytes_allocated"] - counters["bytes_freed"] == own[-1][2]
            assert counters["peak_bytes"] == max(size for _, _, size, _ in own)
    for block in ran.table("allocation"):
        assert block["end_seq"] is None or block["end_seq"] > block["first_seq"]


@st.composite
def with_stacks(draw: st.DrawFn) -> list[Rec]:
    """Records, some of them followed by their stack, at once or much later."""
    out = draw(records())
    for record in list(out):
        if record.name.startswith("Heap") and draw(st.booleans()):
            late = draw(st.sampled_from([0, 1, 60, 4_000_000]))
            frames = (0x7FF6_0000_0000 + draw(st.integers(0, 3)), 0x7FF6_0000_1000)
            out.append(stack(record.ticks + late, record.ticks, frames, pid=record.pid, tid=record.tid))
    return sorted(out, key=lambda record: record.ticks)


@settings(max_examples=60, deadline=None)
@given(with_stacks(), st.lists(st.integers(0, 80), max_size=8))
def test_windows_may_be_cut_anywhere(listed: list[Rec], cuts: list[int]) -> None:
    assert run(listed, cuts).plain() == run(listed).plain()


@settings(max_examples=15, deadline=None)
@given(with_stacks())
def test_one_record_a_window_gives_the_same(listed: list[Rec]) -> None:
    assert run(listed, range(len(listed))).plain() == run(listed).plain()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_rows_are_handed_on_once(count: int) -> None:
    listed = [
        rec for i in range(200) for rec in (alloc(1000 + 30_000_000 * i, 0x1000 * (i + 1)), free(1001 + 30_000_000 * i, 0x1000 * (i + 1)))
    ]

    numbers: list[Any] = [row["n"] for row in run(listed, range(0, 400, count)).table("allocation")]

    assert numbers == list(range(200))


def program(seed: int, count: int) -> list[Rec]:
    """What a program with three threads and two heaps writes; now and then a record is missing, or it makes a mistake."""
    random = Random(seed)
    held: list[tuple[int, int, int]] = []  # heap, address, size
    out: list[Rec] = [create(1000)]
    ticks = 1001
    while len(out) < count:
        ticks += random.choice([1, 1, 3, 20, 200_000])
        tid, heap = random.choice([11, 12, 13]), random.choice([HEAP, HEAP, OTHER_HEAP])
        address, size = 0x1A_0000 + 16 * random.randrange(60), random.randrange(200)
        free_addresses = [a for a in range(0x1A_0000, 0x1A_0000 + 960, 16) if all((h, b) != (heap, a) for h, b, _ in held)]
        action, steps = random.random(), []
        if action < 0.45 and free_addresses:
            address = random.choice(free_addresses[:8])
            held.append((heap, address, size))
            steps = [alloc(ticks, address, size, heap=heap, tid=tid)]
        elif action < 0.8 and held:
            own, address, _ = held.pop(random.randrange(len(held)))
            steps = [free(ticks, address, heap=own, tid=tid)]
        elif action < 0.86 and held:
            i = random.randrange(len(held))
            own, address, old_size = held[i]
            held[i] = own, address, size
            steps = [realloc(ticks, address, address, size, old_size, heap=own, tid=tid)]
        elif action < 0.95 and held and free_addresses:
            own, old, old_size = held.pop(random.randrange(len(held)))
            new = next((a for a in free_addresses if all((h, b) != (own, a) for h, b, _ in held) and a != old), None)
            if new is None:
                continue
            held.append((own, new, size))
            steps = [alloc(ticks, new, size, heap=own, tid=tid), free(ticks + 1, old, heap=own, tid=tid)]
            steps.append(realloc(ticks + 2, new, old, size, old_size, heap=own, tid=tid))
            ticks += 2
        elif action < 0.97:
            steps = [free(ticks, address, heap=heap, tid=tid)]
        elif action < 0.98 and heap == OTHER_HEAP:
            held = [h for h in held if h[0] != OTHER_HEAP]
            steps = [destroy(ticks, heap=heap), create(ticks + 1, heap=heap)]
            ticks += 1
        out += [step for step in steps if random.random() > 0.01]
    return out


@pytest.mark.parametrize("seed", range(12))
def test_a_busy_program_is_replayed_by_the_rules(seed: int) -> None:
    """Most places go the fast way here, a good part the exact one, and they change over from window to window."""
    listed = program(seed, 1500)
    expected, cuts = replay(listed), Random(seed).sample(range(1500), 12)

    ran = run(listed, cuts)

    assert ran.blocks("address", "generation", "size", "first_seq", "end_seq", "previous_n", "origin", "end_reason", "free_tid") == [
        (
            b.place[2], b.generation, b.size, b.seq, b.end_seq, None if b.previous is None else b.previous.number, b.origin, b.reason,
            b.free_tid,
        )
        for b in expected.blocks
    ]  # fmt: skip
    assert points(ran) == sorted(expected.points)
    assert [(row["seq"], row["size"]) for row in ran.table("resize")] == sorted(step for b in expected.blocks for step in b.sizes)
    assert ran.anomalies() == [(kind, address or None, number) for _, kind, address, number in expected.anomalies]
    counted = {k: v for k, v in ran.counters().items() if not k.startswith(("bytes", "peak"))}
    assert counted == {name: count for name, count in expected.counters[100].items() if count}


NUMBERS = [0, 1, 0x1000, HEAP, HEAP + 0x1000, 1 << 31, (1 << 32) - 1, 1 << 47, (1 << 47) - 1, 1 << 63, (1 << 64) - 1, 0xFFFF_8000_0000_0000]


def anything(seed: int) -> list[Rec]:
    """Records of every heap event with any numbers, of any process, and stacks of anything."""
    random = Random(seed)
    schemas = {schema.name: schema for schema in HEAP_EVENTS if any(field.name in ("heap_handle", "heap") for field in schema.fields)}
    out: list[Rec] = []
    ticks = 0
    for _ in range(150):
        ticks += random.choice([0, 1, 100, 10_000_000])
        pid, tid = random.choice([-1, 0, 100, (1 << 32) - 1]), random.choice([-1, 0, 11, (1 << 32) - 1])
        frames = tuple(random.choices(NUMBERS, k=random.randrange(4)))
        asked = random.choice([ticks, 0, 1 << 63])
        match random.randrange(10):
            case 0:
                out.append(stack(ticks, asked, frames, pid=pid % (1 << 32), tid=tid % (1 << 32)))
            case 1:
                out.append(stack_key(ticks, asked, random.choice(NUMBERS), pid=pid % (1 << 32), tid=tid % (1 << 32)))
            case 2:
                out.append(define(ticks, random.choice(NUMBERS), frames, what=random.choice(["Create", "Delete", "Rundown"])))
            case _:
                schema = random.choice(list(schemas.values()))
                values: dict[str, int | str | tuple[int, ...]] = {}
                for field in schema.fields:
                    number = random.choice(NUMBERS)
                    is_list = field.type is FieldType.RANGES
                    values[field.name] = (number, 4096) if is_list else number % (1 << 32) if field.type is FieldType.U32 else number
                out.append(Rec(schema.name, ticks, values, pid, tid))
    return out


@pytest.mark.parametrize("seed", range(10))
def test_any_numbers_end_in_rows_that_a_database_takes(seed: int) -> None:
    ran = run(anything(seed), [30, 60, 90])

    cells = [cell for rows in ran.rows.values() for row in unfolded(rows) for cell in row]
    assert {type(cell) for cell in cells} <= {int, str, bool, type(None)}
    assert all(-(1 << 63) <= cell < 1 << 63 for cell in cells if isinstance(cell, int))
