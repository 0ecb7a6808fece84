"""What a process holds at two moments, and what of it grows: as the definitions of the collector say it, and as pages."""

import json
from pathlib import Path

import pytest
from sqlalchemy import Connection

from app.queries.heap_compare import CHANGES, Comparison, compare
from app.queries.heap_growth import borders_of, growth
from app.queries.heap_held import OLDER, held_by_ref, held_parts
from app.queries.heap_scan import LIFETIMES, SIZES, by_stack
from app.queries.heap_timeline import HeapScope, live_before
from app.queries.stack_modules import MAX_STACKS, OTHERS
from collector.model.heap_windows import NEVER, UNKNOWN, held_at, held_candidates, sizes_at
from tests.build import Trace, heap, system
from tests.build.answers import as_json, text_of
from tests.build.imported import Imported, ImportTrace
from tests.build.served import served
from tests.test_heap_windows import columns_of, frames_by_stack, frames_of

APP, LIB, NTDLL = 0x7FF6_A000_0000, 0x7FF6_C000_0000, 0x7FF8_B000_0000
BLOCK = heap.HEAP + 0x1000
GROWS, STAYS, COMES, GOES = ((NTDLL + 0x10, APP + 0x100 * place, APP + 0x10) for place in range(1, 5))
LIBRARY = (NTDLL + 0x10, LIB + 0x40, APP + 0x10)

STORIES = [*(f"worked/HT-{i:02}" for i in (1, 2, 3, 4, 5, 6, 7)), "story-mixed", "story-32"]


def scope_of(db: Imported) -> HeapScope:
    n = db.one("select distinct process_n from allocation")
    return HeapScope("process", n, n)


def opened(db: Imported) -> Connection:
    return db.folder.trace(db.report.key).connect()


def story() -> Trace:
    """At 10 ms and at 90 ms: one stack grows by reallocation, one is the same, one comes, one goes; a library allocates alone."""
    return Trace().cpu(
        0,
        system.process_start(at_us=1),
        system.image("Load", at_us=2, base=APP, file="app.exe"),
        system.image("Load", at_us=3, base=LIB, file="C:\\app\\pool.dll"),
        system.image("Load", at_us=4, base=NTDLL, size=0x20_0000, file="C:\\Windows\\System32\\ntdll.dll"),
        heap.alloc(at_us=1_000, address=BLOCK, size=100, stack=GROWS),
        heap.alloc(at_us=2_000, address=BLOCK + 0x1000, size=20, stack=STAYS),
        heap.alloc(at_us=3_000, address=BLOCK + 0x2000, size=4_000, stack=GOES),
        heap.alloc(at_us=4_000, address=BLOCK + 0x3000, size=50, stack=LIBRARY),
        heap.realloc(at_us=5_000, new=BLOCK + 0x8000, old=BLOCK + 0x8000, new_size=70, old_size=60),  # older than the trace
        heap.realloc(at_us=50_000, new=BLOCK, old=BLOCK, new_size=700, old_size=100),
        heap.free(at_us=60_000, address=BLOCK + 0x2000),
        heap.alloc(at_us=70_000, address=BLOCK + 0x4000, size=30, stack=COMES),
        heap.alloc(at_us=71_000, address=BLOCK + 0x5000, size=30, stack=COMES),
        heap.realloc(at_us=99_000, new=BLOCK, old=BLOCK, new_size=9_000, old_size=700),
        heap.alloc(at_us=99_900, address=BLOCK + 0x6000, size=1, stack=STAYS),
    )


def compared(db: Imported, a: int, b: int) -> Comparison:
    with opened(db) as connection:
        return compare(connection, scope_of(db), a, b, stacks=50)


# ---------------------------------------------------------------------------------------------------- two moments


def test_q02_each_stack_says_what_it_did_between_two_moments(import_trace: ImportTrace) -> None:
    found = compared(import_trace(story()), 10_000_000, 90_000_000)

    assert [(row.change, row.more_bytes, row.more_blocks, row.bytes_a, row.bytes_b) for row in found.grown] == [
        ("grew", 600, 0, 100, 700),
        ("new", 60, 2, 0, 60),
    ]
    assert [(row.change, row.more_bytes, row.more_blocks, row.bytes_a, row.bytes_b) for row in found.shrunk] == [
        ("gone", -4_000, -1, 4_000, 0)
    ]
    assert found.numbers == {"grew": 1, "shrank": 0, "new": 1, "gone": 1}
    assert (found.bytes_a, found.blocks_a, found.bytes_b, found.blocks_b) == (4_240, 5, 900, 6)


def test_moments_are_compared_by_module_by_size_and_by_age(import_trace: ImportTrace) -> None:
    found = compared(import_trace(story()), 10_000_000, 90_000_000)

    assert [(row.module, row.more_bytes, row.bytes_a, row.bytes_b) for row in found.modules] == [
        ("app.exe", -3_340, 4_120, 780),
        ("(no stack)", 0, 70, 70),
        ("pool.dll", 0, 50, 50),
    ]
    assert [(row.low, row.high, row.blocks_a, row.bytes_a, row.blocks_b, row.bytes_b) for row in found.sizes] == [
        (17, 32, 1, 20, 3, 80),
        (33, 64, 1, 50, 1, 50),
        (65, 128, 2, 170, 2, 770),
        (2_049, 4_096, 1, 4_000, 0, 0),
    ]
    assert [(row.low, row.high, row.blocks_a, row.blocks_b) for row in found.ages] == [
        (None, None, 1, 1),
        (1_000_000, 10_000_000, 4, 0),
        (10_000_000, 100_000_000, 0, 5),
    ]


def test_a_moment_has_all_changes_at_it(import_trace: ImportTrace) -> None:
    db = import_trace(story())
    freed_ns = db.one("select end_ns from allocation where end_ns is not null")

    assert compared(db, freed_ns - 1, freed_ns).numbers["gone"] == 1
    assert compared(db, freed_ns, freed_ns + 1).numbers == dict.fromkeys(CHANGES, 0)


def test_stacks_beyond_the_limit_are_one_module_with_the_true_sum(import_trace: ImportTrace) -> None:
    number = MAX_STACKS + 3
    allocs = [heap.alloc(at_us=100 + i, address=BLOCK + 0x100 * i, size=number - i, stack=(APP + 0x1000 + i,)) for i in range(number)]
    db = import_trace(Trace().cpu(0, system.process_start(at_us=1), system.image("Load", at_us=2, base=APP, file="app.exe"), *allocs))
    found = compared(db, 0, 1 << 40)

    assert {row.module: (row.more_bytes, row.more_blocks) for row in found.modules} == {
        "app.exe": (number * (number + 1) // 2 - 6, MAX_STACKS),
        OTHERS: (6, 3),
    }
    assert (found.numbers["new"], len(found.grown)) == (number, 50)


@pytest.mark.shared
@pytest.mark.parametrize("name", STORIES)
def test_what_is_held_equals_its_definition(name: str, shared_dir: Path, import_trace: ImportTrace) -> None:
    """At the begin, the end and the moments of blocks of each process of the reference traces: by stack, by class, in all."""
    db = import_trace(shared_dir / "traces" / f"{name}.etl")
    with opened(db) as connection:
        for (n,) in db.rows("select distinct process_n from allocation order by 1"):
            known, scope = columns_of(db, f"p.n = {n}"), HeapScope("process", n, n)
            times = {t for t in [*known.first_ns.tolist(), *known.end_ns.tolist(), *known.resized_ns.tolist()] if t != NEVER}
            some = [*sorted(times)[:: max(1, len(times) // 25)], max(times)]
            for t in sorted({t + d for t in some for d in (-1, 0)}):
                held = {stack: (one.count, one.bytes) for stack, one in held_at(known, t).items()}
                groups = by_stack(connection, held_by_ref(connection, scope, t))
                assert {-1 if s is None else s: (g.held, g.held_bytes) for s, g in groups.items()} == held
                total = (sum(b for _, b in held.values()), sum(c for c, _ in held.values()))
                assert total == live_before(connection, scope, t + 1)
                live = (known.first_ns <= t) & (known.end_ns > t)
                parts = held_parts(connection, scope, t)
                assert sum(part.blocks for part in parts) == total[1]
                assert sum(part.bytes for part in parts) == int(sizes_at(known, t)[live].sum())
                for place, limit in enumerate(SIZES):
                    small = live & (known.size_at_open <= limit)
                    assert sum(part.blocks for part in parts if part.size_class <= place) == int(small.sum())
                young = live & (known.start_ns != UNKNOWN)
                for place, limit in enumerate(LIFETIMES):
                    ages = young & (t - known.first_ns < limit)
                    assert sum(part.blocks for part in parts if OLDER < part.age_class <= place) == int(ages.sum())


def test_the_page_of_two_moments(import_trace: ImportTrace) -> None:
    db = import_trace(story())
    process = db.one("select distinct process from v_allocations")
    with served(db.folder) as client:
        path = f"/t/{db.report.key}/heap/{process}/compare"
        page = as_json(client, f"{path}?a=10 ms&b=90 ms")
        text = text_of(client.get(f"{path}?a=10 ms&b=90 ms").text)
        plain = client.get(path)
        linked = client.get(f"/t/{db.report.key}/heap/{process}")
        refused = [client.get(f"{path}?{query}").status_code for query in ("a=5&b=5", "a=9&b=5", "a=soon")]

    assert page["sentence"].startswith("3.34 kB less is held, in 1 more block, at +0.090")
    assert [row["change"] for row in page["grown"]["rows"]] == ["grew", "new"]
    assert [row["change"] for row in page["shrunk"]["rows"]] == ["gone"]
    assert (page["a_ns"], page["b_ns"]) == (10_000_000, 90_000_000)
    assert "+ 600 B" in text
    assert "Still held is not leaked" in text
    assert "start → middle" in plain.text
    assert "middle → end" in plain.text
    assert plain.status_code == 200
    assert "/compare" in linked.text
    assert "/growth" in linked.text
    assert "/flame" in linked.text
    assert refused == [400, 400, 400]


# ---------------------------------------------------------------------------------------------------- growth


@pytest.mark.shared
@pytest.mark.parametrize(
    "name", ["worked/HT-01", "worked/HT-04", "worked/HT-05", "worked/HT-06", "worked/HT-07", "story-mixed", "story-32"]
)
def test_growth_candidates_equal_the_expected_ones(name: str, shared_dir: Path, import_trace: ImportTrace) -> None:
    document = json.loads((shared_dir / "traces" / f"{name}.expected.json").read_text())
    expected = document.get("heap") or document["expect"]
    db = import_trace(shared_dir / "traces" / f"{name}.etl")
    end_ns = document.get("length_ns") or max(event["t_ns"] for event in document["events"])
    stacks = frames_by_stack(db)
    of_hash = {hashed: stacks[n] for n, hashed in db.rows("select n, hash from stack")} | {None: ()}
    for wanted in expected.get("leak_candidates", ()):
        (n,) = {
            row[0] for row in db.rows("select process_n from allocation a join process p on p.n = process_n where pid = ?", wanted["pid"])
        }
        window = (wanted["t0_ns"], wanted["t1_ns"])
        with opened(db) as connection:
            found = growth(
                connection,
                HeapScope("process", n, n),
                *window,
                end_ns=end_ns,
                min_age_ns=wanted["min_age_ns"],
                limit=1_000,
                counts_freed=True,
            )
        groups = {frames_of(label, document["stacks"]): group for label, group in wanted["groups"].items()}
        assert {
            of_hash[row.stack]: {"count": row.held, "bytes": row.held_bytes, "trust": "suspect" if row.is_suspect else "certain"}
            for row in found.rows
        } == groups
        defined = held_candidates(columns_of(db, f"p.n = {n}"), *window, end_ns=end_ns, min_age_ns=wanted["min_age_ns"])
        assert [(of_hash[row.stack], row.first_ns, row.last_ns, row.is_steady) for row in found.rows] == [
            (stacks[one.stack], one.first_ns, one.last_ns, one.grows_steadily) for one in defined
        ]
        assert [(row.freed or 0) / (row.allocated or 1) for row in found.rows] == pytest.approx([one.freed_share for one in defined])
        assert (found.number, found.steady) == (len(defined), sum(one.grows_steadily for one in defined))


def growing() -> Trace:
    """100 ms: one stack holds one block more each quarter and frees one, one holds much from the first."""
    steady = [heap.alloc(at_us=5_000 + 25_000 * i, address=BLOCK + 0x1000 * i, size=10, stack=GROWS) for i in range(4)]
    return Trace().cpu(
        0,
        system.process_start(at_us=1),
        heap.alloc(at_us=1_000, address=BLOCK + 0x9000, size=10_000, stack=STAYS),
        heap.alloc(at_us=2_000, address=BLOCK + 0xA000, size=10, stack=GROWS),
        heap.free(at_us=3_000, address=BLOCK + 0xA000),
        *steady,
        heap.alloc(at_us=100_000, address=BLOCK + 0xB000, size=1, stack=COMES),
    )


def test_a_stack_that_rises_in_every_quarter_comes_first_with_its_evidence(import_trace: ImportTrace) -> None:
    db = import_trace(growing())
    with opened(db) as connection:
        found = growth(connection, scope_of(db), 0, 100_000_000, end_ns=100_000_000, limit=2, counts_freed=True)

    steady, much = found.rows
    assert [(level.bytes, level.blocks) for level in steady.levels] == [(0, 0), (10, 1), (20, 2), (30, 3), (40, 4)]
    assert (steady.is_steady, steady.held, steady.allocated, steady.freed, steady.freed_percent) == (True, 4, 5, 1, 20.0)
    assert (much.is_steady, much.held_bytes) == (False, 10_000)
    assert (found.number, found.steady, found.borders) == (2, 1, borders_of(0, 100_000_000))
    assert borders_of(0, 10) == (0, 2, 5, 7, 10)


def test_a_stack_that_is_asked_for_is_given_whatever_its_rank(import_trace: ImportTrace) -> None:
    db = import_trace(growing())
    with opened(db) as connection:
        everything = growth(connection, scope_of(db), 0, 200_000_000, end_ns=100_000_000, limit=9, counts_freed=False)
        last = everything.rows[-1].stack
        found = growth(connection, scope_of(db), 0, 200_000_000, end_ns=100_000_000, limit=1, wanted=last or "", counts_freed=False)

    assert [row.stack for row in found.rows] == [everything.rows[0].stack, last]
    assert (found.rows[0].freed, found.rows[0].freed_percent) == (None, None)


def test_the_page_of_growth(import_trace: ImportTrace) -> None:
    db = import_trace(growing())
    process = db.one("select distinct process from v_allocations")
    with served(db.folder) as client:
        path = f"/t/{db.report.key}/heap/{process}/growth"
        page = as_json(client, f"{path}?from=0&to=100000000")
        stack = page["rows"][1]["stack"]
        marked = client.get(f"{path}?from=0&to=100000000&stack={stack}").text
        old = as_json(client, f"{path}?min_age=60 ms")
        none = client.get(f"{path}?from=100&to=200")
        refused = client.get(f"{path}?min_age=old")

    assert page["sentence"].startswith("2 stacks hold blocks")
    assert page["sentence"].endswith("1 rises in every quarter of that time.")
    assert [row["is_steady"] for row in page["rows"]] == [True, False]
    assert marked.count('aria-selected="true"') == 1
    assert "Still held is not leaked" in marked
    assert "20.0 %" in marked
    assert sum(row["held"] for row in old["rows"]) == 3
    assert "Nothing that was allocated in this range" in none.text
    assert refused.status_code == 400
