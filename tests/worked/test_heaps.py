"""Ten worked traces of heaps, from the records of the allocator to the rows of the views.

The numbers are those of the heap model's notes; times are ticks of 100 ns since the start of the trace.
"""

from typing import TypedDict

from collector.etlwriter.records import record_bytes
from tests.build import Event, Trace, documented, heap, system
from tests.build.afd_events import Who
from tests.build.events import ticks_at
from tests.build.imported import Imported, ImportTrace
from tests.worked.expected import Row, frames_of, live_by_stack

PID, THREAD = 100, 11
PROCESS_HEAP, PRIVATE_HEAP = 0x1A_0000, 0x2B_0000
# Stacks are labels in the notes; any distinct frames will do.
S1, S2, S3, S4, S5, S9 = ((0x7FF6_A000_1000 + n, 0x7FF6_A000_2000) for n in (1, 2, 3, 4, 5, 9))
NO_STACK = None


class At(TypedDict, total=False):
    """Time, thread and stack of an event."""

    at_us: float
    pid: int
    tid: int
    stack: tuple[int, ...]


def at(tick: int, stack: tuple[int, ...] = (), *, pid: int = PID, tid: int = THREAD) -> At:
    return At(at_us=tick / 10, pid=pid, tid=tid, stack=stack)


def ns(tick: int) -> int:
    return 100 * tick


def link(address: int, tick: int, handle: int = PROCESS_HEAP) -> str:
    return f"{handle:#x}:{address:#x}@{ns(tick)}"


def block(
    address: int,
    size: int,
    start: int | None,
    end: int | None,
    reason: str | None,
    stack: tuple[int, ...] | None,
    *,
    handle: int = PROCESS_HEAP,
    generation: int = 1,
    origin: str = "alloc",
    inferred: int = 0,
    pid: int = PID,
) -> Row:
    times = (None if start is None else ns(start), None if end is None else ns(end))
    return (pid, f"{handle:#x}", f"{address:#x}", generation, size, *times, reason, inferred, origin, stack)


def blocks(db: Imported) -> list[Row]:
    """All allocations in the order in which they were opened."""
    rows = db.rows(
        "select pid, heap, address, generation, size, start_ns, end_ns, end_reason, end_inferred, origin, owner_stack"
        " from v_allocations order by coalesce(start_ns, first_ns)"
    )
    return [(*row[:-1], frames_of(db, row[-1])) for row in rows]


def timeline(db: Imported, pid: int = PID) -> list[Row]:
    """Ticks, bytes and count after each change."""
    return db.rows("select t_ns / 100, bytes, count from v_heap_timeline where pid = ? order by t_ns", pid)


def counters(db: Imported, pid: int = PID) -> dict[str, int]:
    return dict(db.rows("select name, value from v_heap_counters where pid = ? and value <> 0", pid))


def peak(tick: int, size: int) -> dict[str, int]:
    return {"peak_ns": ns(tick), "peak_bytes": size}


def anomalies(db: Imported) -> list[Row]:
    return db.rows("select kind, t_ns / 100, heap, address, allocation from v_heap_anomalies order by t_ns")


def window_classes(db: Imported, first: int, last: int) -> dict[str, tuple[int, int]]:
    """Count and bytes by class in `[first, last)`; the class says whether an allocation began and ended inside."""
    rows = db.rows(
        "with lives as (select size, size_at_open, allocation, start_ns is not null and start_ns >= ?1 as inside,"
        "   end_ns is not null and end_ns < ?2 as over from v_allocations"
        "   where coalesce(start_ns, first_ns) < ?2 and (end_ns is null or end_ns > ?1))"
        " select case inside when 1 then 'AI' else 'AO' end || case over when 1 then 'FI' else 'FO' end, count(*), sum(size)"
        " from lives group by 1",
        ns(first),
        ns(last),
    )
    return {name: (count, size) for name, count, size in rows}


def leaks(db: Imported, first: int, last: int, *, min_age: int = 0) -> dict[tuple[int, ...] | None, tuple[int, int, str]]:
    """Count, bytes and certainty of what was allocated in a window and still lives at the end, by owner stack."""
    rows = db.rows(
        "select owner_stack, count(*), sum(size), max(trust) from v_allocations where end_ns is null and start_ns >= ?1"
        " and start_ns < ?2 and (select end_ns from v_trace) - start_ns >= ?3 group by 1",
        ns(first),
        ns(last),
        ns(min_age),
    )
    return {frames_of(db, stack): (count, size, trust) for stack, count, size, trust in rows}


def test_ht01_allocate_free_and_allocate_again(import_trace: ImportTrace) -> None:
    trace = Trace().cpu(
        0,
        heap.create(flags=2, **at(1000)),
        heap.alloc(address=0x1A_1000, size=64, **at(1010, S1)),
        heap.alloc(address=0x1A_2000, size=256, **at(1020, S2)),
        heap.free(address=0x1A_1000, **at(1030)),
        heap.alloc(address=0x1A_3000, size=1024, **at(1040, S1)),
        heap.alloc(address=0x1A_1000, size=32, **at(1050, S3)),
        heap.free(address=0x1A_3000, **at(1060)),
        heap.alloc(address=0x1A_4000, size=16, **at(1100, S2)),
    )
    trace.with_session(end_ticks=ticks_at(110, trace.clock))

    db = import_trace(trace)

    assert blocks(db) == [
        block(0x1A_1000, 64, 1010, 1030, "freed", S1),
        block(0x1A_2000, 256, 1020, None, None, S2),
        block(0x1A_3000, 1024, 1040, 1060, "freed", S1),
        block(0x1A_1000, 32, 1050, None, None, S3, generation=2),
        block(0x1A_4000, 16, 1100, None, None, S2),
    ]
    assert timeline(db) == [(1010, 64, 1), (1020, 320, 2), (1030, 256, 1), (1040, 1280, 2), (1050, 1312, 3), (1060, 288, 2), (1100, 304, 3)]
    assert live_by_stack(db, ns(1050)) == {S2: 256, S1: 1024, S3: 32}
    assert counters(db) == {"allocs": 5, "frees": 2, "bytes_allocated": 1392, "bytes_freed": 1088, **peak(1050, 1312)}
    assert anomalies(db) == []
    assert window_classes(db, 1020, 1060) == {"AIFO": (3, 1312), "AOFI": (1, 64)}
    assert window_classes(db, 1031, 1055) == {"AIFO": (2, 1056), "AOFO": (1, 256)}
    assert window_classes(db, 1000, 1101) == {"AIFI": (2, 1088), "AIFO": (3, 304)}
    assert leaks(db, 1000, 1101) == {S2: (2, 272, "certain"), S3: (1, 32, "certain")}


def test_ht02_a_moving_realloc_is_counted_once(import_trace: ImportTrace) -> None:
    """Alloc and Free say all; the summary only labels and links. Both blocks live for a moment: that is the peak."""
    old, new = 0x1A_1000, 0x1A_5000
    trace = Trace().cpu(
        0,
        heap.alloc(address=old, size=308, **at(1000, S1)),
        heap.alloc(address=new, size=564, **at(18_062, S2)),
        heap.free(address=old, **at(18_096)),
        heap.realloc(new=new, old=old, new_size=564, old_size=308, **at(18_100, S9)),
    )

    db = import_trace(trace)

    assert blocks(db) == [
        block(old, 308, 1000, 18_096, "realloc_moved", S1),
        block(new, 564, 18_062, None, None, S2, origin="realloc_move"),
    ]
    assert db.rows("select allocation, previous from v_allocations where previous is not null") == [(link(new, 18_062), link(old, 1000))]
    assert timeline(db) == [(1000, 308, 1), (18_062, 872, 2), (18_096, 564, 1)]
    assert live_by_stack(db, ns(18_062)) == {S1: 308, S2: 564}
    assert counters(db) == {"allocs": 2, "frees": 1, "reallocs": 1, "bytes_allocated": 872, "bytes_freed": 308, **peak(18_062, 872)}
    assert anomalies(db) == []


def test_ht03_reallocs_in_place_failed_and_alone(import_trace: ImportTrace) -> None:
    one, two = 0x1A_1000, 0x1A_8000
    trace = Trace().cpu(
        0,
        heap.create(flags=2, **at(1000)),
        heap.alloc(address=one, size=100, **at(1010, S1)),
        heap.realloc(new=one, old=one, new_size=160, old_size=100, **at(1020, S2)),
        heap.realloc(new=one, old=one, new_size=40, old_size=160, **at(1030)),
        heap.realloc(new=0, old=one, new_size=1_000_000, old_size=40, **at(1040, S3)),
        heap.realloc(new=two, old=one, new_size=300, old_size=40, **at(1050, S4)),
        heap.free(address=one, **at(1060)),
        heap.realloc(new=two, old=two, new_size=320, old_size=296, **at(1070, S5)),
        heap.free(address=two, **at(1080)),
    )

    db = import_trace(trace)

    assert blocks(db) == [
        block(one, 40, 1010, 1050, "realloc_moved", S2, inferred=1),
        block(two, 320, 1050, 1080, "freed", S5, origin="realloc_standalone"),
    ]
    assert db.rows("select previous from v_allocations where origin = 'realloc_standalone'") == [(link(one, 1010),)]
    assert db.rows("select allocation, t_ns / 100, size from v_resizes order by t_ns") == [
        (link(one, 1010), 1020, 160),
        (link(one, 1010), 1030, 40),
        (link(two, 1050), 1070, 320),
    ]
    assert timeline(db) == [(1010, 100, 1), (1020, 160, 1), (1030, 40, 1), (1050, 300, 1), (1070, 320, 1), (1080, 0, 0)]
    assert live_by_stack(db, ns(1070)) == {S5: 320}
    assert counters(db) == {
        "allocs": 1,
        "failed_reallocs": 1,
        "frees": 2,
        "reallocs": 4,
        "bytes_allocated": 480,
        "bytes_freed": 480,
        **peak(1070, 320),
    }
    assert anomalies(db) == [("size_mismatch", 1070, "0x1a0000", "0x1a8000", link(two, 1050))]


def test_ht04_a_heap_older_than_the_trace(import_trace: ImportTrace) -> None:
    """What was allocated before the trace is unknown, not wrong; in a heap that the trace saw being created it is wrong."""
    adopted, moved = 0x1A_2000, 0x1A_4000
    trace = Trace().cpu(
        0,
        heap.free(address=0x1A_1000, **at(1000)),
        heap.realloc(new=adopted, old=adopted, new_size=500, old_size=400, **at(1010, S1)),
        heap.alloc(address=moved, size=64, **at(1020, S2)),
        heap.free(address=0x1A_3000, **at(1030)),
        heap.realloc(new=moved, old=0x1A_3000, new_size=64, old_size=48, **at(1031, S2)),
        heap.create(heap=PRIVATE_HEAP, flags=4098, **at(1040)),
        heap.free(heap=PRIVATE_HEAP, address=0x2B_1000, **at(1050)),
        heap.free(address=adopted, **at(1060)),
    )

    db = import_trace(trace)

    assert blocks(db) == [
        block(adopted, 500, None, 1060, "freed", S1, origin="adopted"),
        block(moved, 64, 1020, None, None, S2, origin="realloc_move"),
    ]
    assert db.rows("select first_ns / 100 from v_allocations where origin = 'adopted'") == [(1010,)]
    assert timeline(db) == [(1010, 500, 1), (1020, 564, 2), (1060, 64, 1)]
    assert live_by_stack(db, ns(1020)) == {S1: 500, S2: 64}
    assert counters(db) == {
        "allocs": 1,
        "frees": 1,
        "realloc_unknown_old": 1,
        "reallocs": 2,
        "unknown_frees": 2,
        "unmatched_frees": 3,
        "bytes_allocated": 564,
        "bytes_freed": 500,
        **peak(1020, 564),
    }
    assert anomalies(db) == [
        ("free_unknown", 1000, "0x1a0000", "0x1a1000", None),
        ("free_unknown", 1030, "0x1a0000", "0x1a3000", None),
        ("free_never_allocated", 1050, "0x2b0000", "0x2b1000", None),
    ]
    assert window_classes(db, 1005, 1065) == {"AIFO": (1, 64), "AOFI": (1, 500)}
    assert leaks(db, 1000, 1065) == {S2: (1, 64, "certain")}


def test_ht05_a_destroyed_heap_ends_its_blocks_alone(import_trace: ImportTrace) -> None:
    trace = Trace().cpu(
        0,
        heap.create(heap=PRIVATE_HEAP, flags=4098, **at(1000)),
        heap.alloc(heap=PRIVATE_HEAP, address=0x2B_1000, size=100, **at(1010, S1)),
        heap.alloc(heap=PRIVATE_HEAP, address=0x2B_2000, size=200, **at(1011, S1)),
        heap.alloc(address=0x1A_1000, size=50, **at(1012, S2)),
        heap.destroy(heap=PRIVATE_HEAP, **at(1020)),
        heap.free(heap=PRIVATE_HEAP, address=0x2B_1000, **at(1021)),
        heap.create(heap=PRIVATE_HEAP, flags=4098, **at(1030)),
        heap.alloc(heap=PRIVATE_HEAP, address=0x2B_1000, size=300, **at(1040, S3)),
        heap.destroy(heap=PRIVATE_HEAP, **at(1050)),
        heap.create(heap=PRIVATE_HEAP, flags=4098, **at(1060)),
        heap.alloc(heap=PRIVATE_HEAP, address=0x2B_3000, size=10, **at(1070, S3)),
        heap.create(heap=PRIVATE_HEAP, flags=4098, **at(1080)),
    )

    db = import_trace(trace)

    assert blocks(db) == [
        block(0x2B_1000, 100, 1010, 1020, "heap_destroyed", S1, handle=PRIVATE_HEAP),
        block(0x2B_2000, 200, 1011, 1020, "heap_destroyed", S1, handle=PRIVATE_HEAP),
        block(0x1A_1000, 50, 1012, None, None, S2),
        block(0x2B_1000, 300, 1040, 1050, "heap_destroyed", S3, handle=PRIVATE_HEAP, generation=2),
        block(0x2B_3000, 10, 1070, 1080, "heap_superseded", S3, handle=PRIVATE_HEAP, inferred=1),
    ]
    assert timeline(db) == [
        (1010, 100, 1),
        (1011, 300, 2),
        (1012, 350, 3),
        (1020, 50, 1),
        (1040, 350, 2),
        (1050, 50, 1),
        (1070, 60, 2),
        (1080, 50, 1),
    ]
    assert live_by_stack(db, ns(1012)) == {S1: 300, S2: 50}
    assert counters(db) == {
        "allocs": 5,
        "destroyed_blocks": 3,
        "unmatched_frees": 1,
        "bytes_allocated": 660,
        "bytes_freed": 610,
        **peak(1012, 350),
    }
    assert [row[:4] for row in anomalies(db)] == [
        ("free_after_destroy", 1021, "0x2b0000", "0x2b1000"),
        ("implicit_destroy", 1080, "0x2b0000", None),
    ]
    assert db.rows("select life, created_ns / 100, destroyed_ns / 100, create_seen from v_heaps where heap = '0x2b0000' order by life") == [
        (1, 1000, 1020, 1),
        (2, 1030, 1050, 1),
        (3, 1060, None, 1),  # nobody saw its end
        (4, 1080, None, 1),
    ]


def test_ht06_lost_events_make_suspects(import_trace: ImportTrace) -> None:
    trace = (
        Trace()
        .cpu(0, heap.create(flags=2, **at(1000)))
        .cpu(0, heap.alloc(address=0x1A_1000, size=64, **at(1010, S1)))
        .cpu(0, heap.alloc(address=0x1A_2000, size=80, **at(1011, S1)))
        .lose_events(3, at_us=102)
        .cpu(0, heap.alloc(address=0x1A_1000, size=48, **at(1030, S2)))
        .cpu(0, heap.free(address=0x1A_3000, **at(1040)))
        .cpu(0, heap.free(address=0x1A_1000, **at(1050)))
    )

    db = import_trace(trace)

    assert blocks(db) == [
        block(0x1A_1000, 64, 1010, 1030, "superseded", S1, inferred=1),
        block(0x1A_2000, 80, 1011, None, None, S1),
        block(0x1A_1000, 48, 1030, 1050, "freed", S2, generation=2),
    ]
    assert timeline(db) == [(1010, 64, 1), (1011, 144, 2), (1030, 128, 2), (1050, 80, 1)]
    assert counters(db) == {
        "allocs": 3,
        "frees": 1,
        "implicit_frees": 1,
        "unmatched_frees": 1,
        "bytes_allocated": 192,
        "bytes_freed": 112,
        **peak(1011, 144),
    }
    assert anomalies(db) == [
        ("implicit_free", 1030, "0x1a0000", "0x1a1000", link(0x1A_1000, 1010)),
        ("free_unmatched_after_loss", 1040, "0x1a0000", "0x1a3000", None),
    ]
    assert leaks(db, 1000, 1051) == {S1: (1, 80, "possible")}
    assert db.one("select events_lost from v_trace") == 3


def test_ht07_errors_of_the_program(import_trace: ImportTrace) -> None:
    first, empty = 0x1A_1000, 0x1A_2000
    trace = Trace().cpu(
        0,
        heap.create(flags=2, **at(1000)),
        heap.create(heap=PRIVATE_HEAP, flags=4098, **at(1001)),
        heap.alloc(address=first, size=64, **at(1010)),
        heap.free(address=first, **at(1020)),
        heap.free(address=first, **at(1030, tid=12)),
        heap.alloc(address=empty, size=0, **at(1040)),
        heap.free(heap=PRIVATE_HEAP, address=empty, **at(1050)),
        heap.free(address=empty, **at(1060)),
        heap.alloc(address=0, size=1 << 32, **at(1070)),
        heap.free(address=0, **at(1080)),
        heap.free(address=0x1A_9000, **at(1090)),
    )

    db = import_trace(trace)

    assert blocks(db) == [block(first, 64, 1010, 1020, "freed", NO_STACK), block(empty, 0, 1040, 1060, "freed", NO_STACK)]
    assert timeline(db) == [(1010, 64, 1), (1020, 0, 0), (1040, 0, 1), (1060, 0, 0)]
    assert counters(db) == {
        "allocs": 2,
        "double_frees": 1,
        "failed_allocs": 1,
        "frees": 2,
        "unmatched_frees": 2,
        "wrong_heap_frees": 1,
        "bytes_allocated": 64,
        "bytes_freed": 64,
        **peak(1010, 64),
    }
    assert anomalies(db) == [
        ("double_free", 1030, "0x1a0000", "0x1a1000", link(first, 1010)),
        ("free_wrong_heap", 1050, "0x2b0000", "0x1a2000", link(empty, 1040)),
        ("free_never_allocated", 1090, "0x1a0000", "0x1a9000", None),
    ]
    assert db.rows("select tid from v_heap_anomalies where kind = 'double_free'") == [(12,)]


HT08_RECORDS = (
    "020002c03c002110460000005c110000e803000000000000000000000000000000001d0000000000500000000000000030121d000000000002000000",
    "020001c03000211050000000b3150000f203000000000000000000000000000000001d005000000030121d0002000000",
    "020002c034002410470000005c110000fc03000000000000000000000000000000001d000000000030121d000000000002000000",
    "020001c03800221050000000b31500000604000000000000000000000000000000001d0030121d0030121d00600000005000000003000000",
    "030002c044002010460000005c1100001004000000000000000000000000000000002d000000000002100000000010000000000000200000000000004007000000000000",
)
"""The records of the trace below as bytes, documented with the layout of the events; their clock starts at 0."""


def ht08_events() -> list[Event]:
    """Two processes with the same heap handle, one of them of 32 bits."""
    handle, address = 0x1D_0000, 0x1D_1230
    create = heap.create(heap=0x2D_0000, flags=4098, version=3, **at(1040, pid=4444, tid=70))
    return [
        heap.alloc(heap=handle, address=address, size=80, **at(1000, pid=4444, tid=70)),
        heap.alloc(heap=handle, address=address, size=80, pointer_size=4, **at(1010, pid=5555, tid=80)),
        heap.free(heap=handle, address=address, **at(1020, pid=4444, tid=71)),
        heap.realloc(heap=handle, new=address, old=address, new_size=96, old_size=80, pointer_size=4, **at(1030, pid=5555, tid=80)),
        create.with_values(reserved_space=0x10_0000, committed_space=0x2000, allocated_space=0x740),
    ]


def test_ht08_the_writer_packs_records_as_documented() -> None:
    trace = Trace().cpu(0, ht08_events())
    start = trace.clock.start_ticks

    written = [bytearray(record_bytes(record)) for _, record in trace.records()]

    for record in written:
        ticks = int.from_bytes(record[16:24], "little") - start
        record[16:24] = ticks.to_bytes(8, "little")
    assert [record.hex() for record in written] == list(HT08_RECORDS)


def test_ht08_a_heap_belongs_to_its_process_and_a_record_has_its_own_pointer_size(import_trace: ImportTrace) -> None:
    handle, address = 0x1D_0000, 0x1D_1230

    db = import_trace(Trace().cpu(0, ht08_events()))

    assert blocks(db) == [
        block(address, 80, 1000, 1020, "freed", NO_STACK, handle=handle, pid=4444),
        block(address, 96, 1010, None, None, NO_STACK, handle=handle, pid=5555),
    ]
    assert timeline(db, 4444) == [(1000, 80, 1), (1020, 0, 0)]
    assert timeline(db, 5555) == [(1010, 80, 1), (1030, 96, 1)]
    assert counters(db, 4444) == {"allocs": 1, "frees": 1, "bytes_allocated": 80, "bytes_freed": 80, **peak(1000, 80)}
    assert counters(db, 5555) == {"allocs": 1, "reallocs": 1, "bytes_allocated": 96, **peak(1030, 96)}


def test_ht09_stacks_in_pieces_and_by_key(import_trace: ImportTrace) -> None:
    """Kernel frames first; a key is defined after its use and may then mean another stack; modules are those of that moment."""
    app, ntdll, plug, kernel = 0x7FF6_A000_0000, 0x7FF8_B000_0000, 0x7FF8_C000_0000, 0xFFFF_F800_2140_0000
    one_key, other_key = 0xFF_FFBA_8001, 0xFF_FFBA_8002

    def raw(tick: int) -> int:
        return ticks_at(tick / 10, trace.clock)

    def alloc(tick: int, address: int, tid: int = THREAD) -> Event:
        return heap.alloc(address=address, size=64, **at(tick, tid=tid))

    trace = Trace()
    trace.cpu(
        0,
        system.image(base=app, size=0x1_0000, file="app.exe", pid=PID),
        system.image(base=ntdll, size=0x20_0000, file="ntdll.dll", pid=PID),
        system.image(base=kernel, size=7_634_944, file="ntoskrnl.exe", pid=0),
        system.image("Load", at_us=50, base=plug, size=0x8000, file="plug.dll", pid=PID),
        alloc(1000, 0x1A_1000),
        system.stack(at_us=100.3, of_ticks=raw(1000), frames=(ntdll + 0x1_2345, app + 0x1120, app + 0x1044), pid=PID, tid=THREAD),
        alloc(1100, 0x1A_2000),
        system.stack_by_key(at_us=110.4, of_ticks=raw(1100), key=one_key, pid=PID, tid=THREAD),
        system.key_definition(at_us=120, key=one_key, frames=(ntdll + 0x1_2345, plug + 0x400)),
        alloc(1300, 0x1A_3000, tid=12),
        system.stack_by_key(at_us=130.5, of_ticks=raw(1300), key=one_key, pid=PID, tid=12),
        system.stack(at_us=130.2, of_ticks=raw(1300), frames=(kernel + 0x1234,), pid=PID, tid=12),
        system.image("Unload", at_us=140, base=plug, size=0x8000, file="plug.dll", pid=PID),
        alloc(1500, 0x1A_4000),
        system.stack_by_key(at_us=150.1, of_ticks=raw(1500), key=other_key, pid=PID, tid=THREAD),
        heap.free(address=0x1A_1000, **at(1600)),
        system.stack(at_us=160.1, of_ticks=raw(1599), frames=(ntdll + 0x1_2345,), pid=PID, tid=THREAD),
    ).cpu(
        1,
        system.key_definition(at_us=900, key=one_key, frames=(ntdll + 0x1_2399, app + 0x1200), what="Rundown"),
        system.key_definition(at_us=900, key=other_key, frames=(ntdll + 0x1_2345, plug + 0x400), what="Rundown"),
    )

    db = import_trace(trace)

    rows = db.rows(
        'select start_ns / 100, s.address, module, "offset" from v_allocations a join v_stacks s on s.stack = a.owner_stack'
        " order by start_ns, frame"
    )
    named: dict[int, list[str]] = {}
    for tick, address, module, offset in rows:
        number = int(offset, 16) if isinstance(offset, str) else offset
        named.setdefault(tick, []).append(f"{module}+{number:#x}" if module else address)
    assert named == {
        1000: ["ntdll.dll+0x12345", "app.exe+0x1120", "app.exe+0x1044"],
        1100: ["ntdll.dll+0x12345", "plug.dll+0x400"],
        1300: ["ntoskrnl.exe+0x1234", "ntdll.dll+0x12399", "app.exe+0x1200"],
        1500: ["ntdll.dll+0x12345", "0x7ff8c0000400"],
    }
    assert db.rows("select free_stack from v_allocations where end_ns is not null") == [(None,)]


def test_ht10_socket_buffers_and_the_blocks_behind_them(import_trace: ImportTrace) -> None:
    """Containment, offsets, a release in flight, a chained buffer, a stack and memory that nobody knows."""
    big, small = 0x1A_1000, 0x1A_8000
    endpoint = Who(endpoint=0xFFFF_FA80_05A2_2010, process=0xFFFF_FA80_04C3_B060, pid=PID, tid=THREAD)

    def post(kind: str, tick: int, buffer: int, length: int, count: int = 1) -> Event:
        return documented.posted(kind, at_us=tick / 10, buffer=buffer, length_bytes=length, buffer_count=count, **endpoint)

    def complete(kind: str, tick: int, buffer: int, length: int) -> Event:
        return documented.completed(kind, at_us=tick / 10, buffer=buffer, length_bytes=length, **endpoint)

    trace = Trace().cpu(
        0,
        system.thread(pid=PID, tid=THREAD, user_stack_limit=0x9_0000, user_stack_base=0xA_0000),
        heap.ranges(ranges=((0x1A_0000, 0x6_0000),), process_id=PID, **at(1)),
        heap.alloc(address=big, size=4096, **at(1000, S1)),
        heap.alloc(address=small, size=512, **at(1001, S2)),
        post("Send", 1010, big, 1024),
        complete("Send", 1020, big, 1024),
        post("Recv", 1030, big + 0x800, 2048),
        heap.free(address=big, **at(1040, tid=12)),
        heap.alloc(address=big, size=4096, **at(1050, S3, tid=12)),
        complete("Recv", 1060, big + 0x800, 2048),
        post("Send", 1070, small, 700, count=2),
        complete("Send", 1080, small, 700),
        post("Recv", 1090, 0x9_F000, 256),
        post("Recv", 1100, 0x1C_0000, 64),
        post("Recv", 1110, small + 0x1C0, 65),
        heap.free(address=small, **at(1120)),
        post("Send", 1130, small + 0x10, 16),
    )

    db = import_trace(trace)

    assert blocks(db) == [
        block(big, 4096, 1000, 1040, "freed", S1),
        block(small, 512, 1001, 1120, "freed", S2),
        block(big, 4096, 1050, None, None, S3, generation=2),
    ]
    assert timeline(db) == [(1000, 4096, 1), (1001, 4608, 2), (1040, 512, 1), (1050, 4608, 2), (1120, 4096, 1)]
    assert counters(db) == {"allocs": 3, "frees": 2, "bytes_allocated": 8704, "bytes_freed": 4608, **peak(1001, 4608)}
    assert db.rows(
        "select posted_ns / 100, kind, buffer_class, allocation, allocation_offset, outcome from v_operations order by posted_ns"
    ) == [
        (1010, "send", "heap", link(big, 1000), 0, "completed"),
        (1030, "recv", "heap", link(big, 1000), 2048, "completed"),
        (1070, "send", "heap_chained", link(small, 1001), 0, "completed"),
        (1090, "recv", "stack", None, None, "in_flight"),
        (1100, "recv", "heap_untracked", None, None, "in_flight"),
        (1110, "recv", "heap_overrun", link(small, 1001), 448, "in_flight"),
        (1130, "send", "freed_block", None, None, "in_flight"),
    ]
    assert db.rows("select kind, t_ns / 100, operation_posted_ns / 100, allocation, reason, by_bytes from v_io_findings order by t_ns") == [
        ("freed_in_flight", 1040, 1030, link(big, 1000), "freed", None),
        ("reused_in_flight", 1050, 1030, link(big, 1050), None, None),
        ("overruns_block", 1110, 1110, link(small, 1001), None, 1),
        ("freed_in_flight", 1120, 1110, link(small, 1001), "freed", None),
        ("posted_after_free", 1130, 1130, link(small, 1001), "freed", None),
    ]
