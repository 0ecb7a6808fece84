"""What the heap pages say about any window of any trace equals its definition, for processes and for single heaps."""

from random import Random

import pytest

from app.queries.heap_compare import compare
from app.queries.heap_flame import allocated_tree, call_tree, held_tree
from app.queries.heap_growth import growth
from app.queries.heap_timeline import HeapScope, heap_timeline, live_before
from app.queries.heap_window import heap_window
from collector.model.heap_windows import NEVER, UNKNOWN, BlockColumns, Held, held_at, window_classes
from tests.build import Event, Trace, heap, system
from tests.build.imported import ImportTrace
from tests.test_heap_windows import columns_of

HEAPS = (heap.HEAP, 0x2B_0000)
ADDRESSES = [heap.HEAP + 0x100 * i for i in range(6)]
PIDS = (100, 200)


def anything(random: Random) -> list[Event]:
    """Allocations, frees, reallocations, creations and destructions of two processes, fitting each other or not."""
    at_us, events = 10, [system.process_rundown(at_us=1, pid=pid, eprocess=0xFFFF_9A0C_0000_0000 + pid) for pid in PIDS]
    for _ in range(random.randrange(20, 120)):
        at_us += random.choice([1, 2, 50, 900_000])
        where = heap.Where(pid=random.choice(PIDS), tid=random.choice([11, 12]), heap=random.choice(HEAPS))
        where["stack"] = random.choice([(), (0x7FF6_0000 + random.randrange(3), 0x7FF6_1000)])
        one, other = random.sample(ADDRESSES, 2)
        size = random.choice([0, 16, 128, 256])
        match random.randrange(20):
            case 0:
                events.append(heap.create(at_us=at_us, **where))
            case 1:
                events.append(heap.destroy(at_us=at_us, **where))
            case 2 | 3 | 4:
                events.append(heap.realloc(at_us=at_us, new=one, old=one, new_size=size, old_size=16, **where))
            case 5 | 6:
                events.append(heap.realloc(at_us=at_us, new=one, old=other, new_size=size, old_size=16, **where))
            case 7 | 8 | 9 | 10:
                events.append(heap.free(at_us=at_us, address=one, **where))
            case _:
                events.append(heap.alloc(at_us=at_us, address=one, size=size, **where))
    return events


def held(known: BlockColumns, ns: int) -> tuple[int, int]:
    """Bytes and blocks that are held at a moment, all changes at it included."""
    found = held_at(known, ns).values()
    return sum(one.bytes for one in found), sum(one.count for one in found)


@pytest.mark.parametrize("seed", range(5))
def test_any_window_equals_its_definition(seed: int, import_trace: ImportTrace) -> None:
    random = Random(seed)
    db = import_trace(Trace(pointer_size=random.choice([4, 8])).cpu(0, *anything(random)))
    end_ns = db.one("select end_ns from v_trace")
    scopes = [(HeapScope("process", n, n), f"p.n = {n}") for (n,) in db.rows("select distinct process_n from allocation")]
    scopes += [(HeapScope("heap", n, p), f"a.heap_n = {n}") for n, p in db.rows("select distinct heap_n, process_n from allocation")]
    with db.folder.trace(db.report.key).connect() as connection:
        for scope, condition in scopes:
            known = columns_of(db, condition)
            times = [t for t in [*known.first_ns.tolist(), *known.end_ns.tolist()] if t != NEVER]
            for _ in range(3):
                t0, t1 = sorted(random.choice(times) + random.choice([-1, 0, 1, 700]) for _ in range(2))
                t1 += t0 == t1
                classes = heap_window(connection, scope, t0, t1, stacks=9).classes
                expected = window_classes(known, t0, t1)
                names = {"stayed": "AIFO", "passed": "AIFI", "released": "AOFI", "steady": "AOFO"}
                assert {
                    theirs: Held(getattr(classes, ours), getattr(classes, f"{ours}_bytes")) for ours, theirs in names.items()
                } == expected
                two = compare(connection, scope, t0, t1, stacks=9)
                assert ((two.bytes_a, two.blocks_a), (two.bytes_b, two.blocks_b)) == (held(known, t0), held(known, t1))
                assert sum(one.blocks_b for one in two.ages) == sum(one.blocks_b for one in two.sizes) == two.blocks_b
                assert sum(one.bytes_a for one in two.modules) == two.bytes_a
                moment, kept = held_tree(connection, scope, t1), call_tree(connection, scope, t0, t1)
                assert (moment.bytes, moment.blocks) == held(known, t1)
                assert Held(kept.blocks, kept.bytes) == expected["AIFO"]
                began = (known.start_ns != UNKNOWN) & (known.start_ns >= t0) & (known.start_ns < t1)
                made = allocated_tree(connection, scope, t0, t1)
                assert (made.blocks, made.bytes) == (int(began.sum()), int(known.size_at_open[began].sum()))
                rows = growth(connection, scope, t0, t1, end_ns=end_ns, limit=99, counts_freed=True).rows
                stay = began & (known.end_ns == NEVER)
                assert (sum(row.held for row in rows), sum(row.held_bytes for row in rows)) == (
                    int(stay.sum()),
                    int(known.size[stay].sum()),
                )
                line = heap_timeline(connection, scope, t0, t1)
                assert live_before(connection, scope, t1) == held(known, t1 - 1)
                assert (line.bytes_before, line.count_before) == held(known, t0 - 1)
