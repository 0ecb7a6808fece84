"""What the allocator says of heaps besides blocks: lives, sizes, marks, ranges; and totals over many windows."""

import json

from tests.heap_model import HEAP, PID, Rec, alloc, create, destroy, end_process, free, heap_record, run, start_process

A = 0x1A_1000
TOTALS = {"free_space": 100, "committed_space": 8192, "reserved_space": 65536}


def reserve(ticks: int, lo: int, size: int, *, name: str = "Reserve") -> Rec:
    return heap_record(f"Range{name}", ticks, hr_address=lo, hr_size=size)


def rundown(ticks: int, *ranges: tuple[int, int], hr_pid: int = PID, pid: int = 4) -> Rec:
    flat = tuple(number for pair in ranges for number in pair)
    return Rec("HeapRangeRundown", ticks, {"heap_handle": HEAP, "hr_pid": hr_pid, "ranges": flat}, pid)


def test_a_heap_without_create_begins_with_its_first_record() -> None:
    (heap,) = run([heap_record("Lock", 5), alloc(10, A)]).table("heap")

    assert (heap["handle"], heap["life"], heap["create_seen"], heap["created_ns"], heap["first_ns"]) == (HEAP, 1, False, None, 500)


def test_sizes_are_gauges_and_the_last_ones_stay_with_the_heap() -> None:
    ran = run(
        [create(1), heap_record("Expand", 10, **TOTALS, no_of_ucrs=3), heap_record("Contract", 20, **TOTALS | {"committed_space": 4096})]
    )

    gauges = ran.table("heap_gauge")
    assert [(g["what"], g["t_ns"], g["committed"], g["reserved"], g["free_space"], g["allocated"]) for g in gauges] == [
        ("create", 100, None, None, None, None),
        ("expand", 1000, 8192, 65536, 100, None),
        ("contract", 2000, 4096, 65536, 100, None),
    ]
    assert json.loads(gauges[1]["fields"]) == {"no_of_ucrs": 3, "tid": 11}
    (heap,) = ran.table("heap")
    assert (heap["flags"], heap["committed"], heap["reserved"], heap["free_space"]) == (2, 4096, 65536, 100)


def test_locks_validations_and_subsegments_are_marks() -> None:
    names = ("Lock", "Unlock", "Validate", "Walk")  # and the first range of a heap
    records = [heap_record(name, 10 + i) for i, name in enumerate(names)]
    records.append(heap_record("SubsegmentAlloc", 20, sub_segment=0x1A_8000, sub_segment_size=4096, block_size=32))
    records.append(heap_record("RangeCreate", 21, first_range_size=65536, hr_create_flags=2))
    ran = run(records)

    what = [g["what"] for g in ran.table("heap_gauge")]
    assert what == ["lock", "unlock", "validate", "walk", "subsegment_alloc", "range_create"]
    assert json.loads(ran.table("heap_gauge")[4]["fields"])["sub_segment"] == "0x1a8000"
    assert ran.table("allocation") == []


def test_a_snapshot_names_its_process_in_the_payload() -> None:
    ran = run(
        [
            heap_record("SnapShot", 10, pid=4, process_id=PID, heap_flags=2, **TOTALS),
            heap_record("SnapShot", 20, pid=200, process_id=0, heap_flags=4098, **TOTALS),
        ]
    )

    pids = {p["n"]: p["pid"] for p in ran.table("process")}
    assert [(pids[h["process_n"]], h["flags"]) for h in ran.table("heap")] == [(PID, 2), (200, 4098)]


def test_sizes_written_while_a_heap_is_made_belong_to_its_life() -> None:
    ran = run([heap_record("Commit", 10, block=A, size=4096, caller=1), create(11), free(20, A)])

    assert [(h["create_seen"], h["created_ns"], h["first_ns"]) for h in ran.table("heap")] == [(True, 1100, 1000)]
    assert ran.anomalies() == [("free_never_allocated", A, None)]


def test_a_heap_that_a_snapshot_shows_was_there_before_a_later_create() -> None:
    ran = run([heap_record("SnapShot", 10, process_id=0, **TOTALS), create(20)])

    assert [(h["life"], h["create_seen"]) for h in ran.table("heap")] == [(1, False), (2, True)]


def test_marks_belong_to_the_life_of_their_time() -> None:
    records = [create(1), heap_record("Lock", 2), destroy(10), heap_record("Unlock", 11), create(20), heap_record("Lock", 21)]

    for cuts in ([], [3], [4], range(6)):
        assert [g["heap_n"] for g in run(records, cuts).table("heap_gauge")] == [0, 0, 0, 0, 1, 1]


def test_ranges_open_and_close() -> None:
    ran = run(
        [
            rundown(1, (0x1A_0000, 0x6_0000)),
            reserve(10, 0x50_0000, 0x1000),
            reserve(20, 0x50_0000, 0x1000, name="Release"),
            reserve(30, 0x60_0000, 0x1000),
            heap_record("RangeDestroy", 40),
        ]
    )

    got = [(r["lo"], r["hi"], r["from_ns"], r["until_ns"], r["handle"]) for r in ran.table("heap_range")]
    assert got == [
        (0x1A_0000, 0x20_0000, None, 4000, HEAP), (0x50_0000, 0x50_1000, 1000, 2000, HEAP), (0x60_0000, 0x60_1000, 3000, 4000, HEAP),
    ]  # fmt: skip


def test_a_release_can_take_the_middle_of_a_range() -> None:
    ran = run([reserve(10, 0x50_0000, 0x3000), reserve(20, 0x50_1000, 0x1000, name="Release")])

    assert [(r["lo"], r["hi"], r["from_ns"], r["until_ns"]) for r in ran.table("heap_range")] == [
        (0x50_0000, 0x50_3000, 1000, 2000), (0x50_0000, 0x50_1000, 2000, None), (0x50_2000, 0x50_3000, 2000, None),
    ]  # fmt: skip


def test_a_rundown_belongs_to_the_process_it_names_and_ends_with_it() -> None:
    ran = run([rundown(1, (0x1A_0000, 0x1000), hr_pid=PID, pid=4), end_process(50)])

    pids = {p["n"]: p["pid"] for p in ran.table("process")}
    assert [(pids[r["process_n"]], r["until_ns"]) for r in ran.table("heap_range")] == [(PID, 5000)]


def test_places_of_ended_processes_are_forgotten() -> None:
    """Forty processes, one after the other, each with two thousand addresses: together more than are kept of processes that ended."""
    records = []
    for i in range(40):
        records.append(start_process(3000 * i))
        records += [alloc(3000 * i + j, 0x1000 * j, 8) for j in range(1, 2001)]
        records.append(free(3000 * i + 2500, 0x1000))
        records.append(end_process(3000 * i + 2600))
    ran = run(records, range(0, len(records), 10_000))

    blocks = ran.table("allocation")
    assert len(blocks) == 80_000
    assert {block["generation"] for block in blocks} == {1}
    assert ran.anomalies() == []
    assert {(c["name"], c["value"]) for c in ran.table("heap_counter") if not c["name"].startswith("peak")} == {
        ("allocs", 2000), ("frees", 1), ("bytes_allocated", 16_000), ("bytes_freed", 16_000),
    }  # fmt: skip
