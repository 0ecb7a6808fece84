"""The rules of heap blocks, one by one."""

import pytest

from collector.losses import Losses
from collector.words import CERTAINTIES
from tests.heap_model import HEAP, OTHER_HEAP, alloc, create, destroy, end_process, free, realloc, run

A, B, C = 0x1A_1000, 0x1A_2000, 0x1A_3000
SECOND = 10_000_000  # ticks


def test_an_address_is_handed_out_again_as_the_next_generation() -> None:
    ran = run([alloc(10, A, 64), free(20, A), alloc(30, A, 32)])

    assert ran.blocks("address", "generation", "size", "end_reason") == [(A, 1, 64, "freed"), (A, 2, 32, None)]


def test_generations_go_on_in_the_next_life_of_a_heap() -> None:
    ran = run([create(1), alloc(10, A), destroy(20), create(30), alloc(40, A)])

    assert ran.blocks("generation", "heap_n", "end_reason") == [(1, 0, "heap_destroyed"), (2, 1, None)]


def test_times_threads_and_records_of_a_block() -> None:
    ran = run([alloc(10, A, tid=11), free(25, A, tid=12)])

    columns = ("start_ns", "first_ns", "end_ns", "tid", "free_tid", "first_seq", "end_seq", "source_id")
    assert ran.blocks(*columns) == [(1000, 1000, 2500, 11, 12, 0, 1, 2)]


def test_a_failed_allocation_opens_nothing() -> None:
    ran = run([alloc(10, 0, 1 << 32)])

    assert ran.blocks("n") == []
    assert ran.counters() == {"failed_allocs": 1, "bytes_allocated": 0, "bytes_freed": 0}


def test_a_block_of_no_byte_is_a_block() -> None:
    ran = run([alloc(10, A, 0), free(20, A)])

    assert ran.blocks("size", "end_reason") == [(0, "freed")]
    assert ran.counters()["peak_bytes"] == 0


def test_free_of_null_is_nothing() -> None:
    assert run([create(1), free(10, 0)]).anomalies() == []


def test_a_size_that_no_address_space_holds_is_damage() -> None:
    ran = run([alloc(10, A, (1 << 47) - 1), alloc(20, B, 1 << 47), realloc(30, C, C, (1 << 64) - 1)])

    assert ran.blocks("address") == [(A,)]
    assert [(p.kind.name, p.count) for p in ran.problems] == [("heap_size_impossible", 2)]


def test_a_record_without_a_process_is_counted_alone() -> None:
    ran = run([alloc(10, A, pid=-1), alloc(20, B)])

    assert ran.blocks("address") == [(B,)]
    assert [(p.kind.name, p.count) for p in ran.problems] == [("heap_process_unknown", 1)]


def test_one_handle_in_two_processes_is_two_heaps() -> None:
    ran = run([alloc(10, A, 1, pid=100), alloc(20, A, 2, pid=200), free(30, A, pid=100)])

    assert ran.blocks("size", "generation", "end_reason") == [(1, 1, "freed"), (2, 1, None)]


# ---------------------------------------------------------------------------------------------------- frees


def test_frees_of_blocks_from_before_the_trace_are_normal() -> None:
    ran = run([free(10, A), free(20, B)])

    assert ran.anomalies() == [("free_unknown", A, None), ("free_unknown", B, None)]
    assert ran.counters() == {"unknown_frees": 2, "unmatched_frees": 2, "bytes_allocated": 0, "bytes_freed": 0}


def test_in_a_heap_that_the_trace_saw_made_they_are_errors() -> None:
    ran = run([create(1), free(10, A)])

    assert ran.anomalies() == [("free_never_allocated", A, None)]


def test_a_double_free_names_the_block() -> None:
    ran = run([create(1), alloc(10, A), alloc(11, B), free(20, B), free(30, B)])

    assert ran.anomalies() == [("double_free", B, 1)]
    assert ran.counters()["double_frees"] == ran.counters()["unmatched_frees"] == 1


def test_a_free_through_the_wrong_heap_leaves_the_block_alone() -> None:
    ran = run([alloc(10, A, heap=HEAP), free(20, A, heap=OTHER_HEAP), free(30, A, heap=HEAP)])

    assert ran.anomalies() == [("free_wrong_heap", A, 0)]
    assert ran.blocks("end_reason", "end_ns") == [("freed", 3000)]


def test_the_wrong_heap_is_found_windows_later() -> None:
    records = [alloc(10, A, heap=HEAP), alloc(11, B, heap=HEAP), free(20, A, heap=OTHER_HEAP)]

    assert run(records, [1, 2]).anomalies() == run(records).anomalies() == [("free_wrong_heap", A, 0)]


def test_of_two_owners_the_younger_block_is_named() -> None:
    third = 0x3C_0000
    ran = run([alloc(10, A, heap=HEAP), alloc(20, A, heap=OTHER_HEAP), free(30, A, heap=third)])

    assert ran.anomalies() == [("free_wrong_heap", A, 1)]


def test_a_free_after_the_heap_is_gone() -> None:
    ran = run([create(1), alloc(10, A), destroy(20), free(30, A)])

    assert ran.anomalies() == [("free_after_destroy", A, None)]


# ---------------------------------------------------------------------------------------------------- reallocations


def test_a_realloc_in_place_resizes_the_block() -> None:
    ran = run([alloc(10, A, 100), realloc(20, A, A, 160, 100), realloc(30, A, A, 40, 160)])

    assert ran.blocks("size", "size_at_open", "origin") == [(40, 100, "alloc")]
    assert [(r["t_ns"], r["seq"], r["size"], r["old_size"]) for r in ran.table("resize")] == [(2000, 1, 160, 100), (3000, 2, 40, 160)]
    assert ran.counters() == {
        "allocs": 1, "reallocs": 2, "bytes_allocated": 160, "bytes_freed": 120, "peak_bytes": 160, "peak_ns": 2000,
    }  # fmt: skip


def test_a_realloc_of_an_unknown_block_adopts_it() -> None:
    ran = run([realloc(10, A, A, 500, 400), free(20, A)])

    assert ran.blocks("start_ns", "first_ns", "origin", "end_reason") == [(None, 1000, "adopted", "freed")]
    assert ran.counters()["bytes_allocated"] == 500


def test_the_summary_of_a_move_counts_nothing_again() -> None:
    ran = run([alloc(10, A, 8), alloc(20, B, 16), free(21, A), realloc(22, B, A, 16, 8)])

    assert ran.blocks("origin", "end_reason", "previous_n", "start_ns") == [
        ("alloc", "realloc_moved", None, 1000), ("realloc_move", None, 0, 2000),
    ]  # fmt: skip
    assert ran.counters() == {
        "allocs": 2,
        "frees": 1,
        "reallocs": 1,
        "bytes_allocated": 24,
        "bytes_freed": 8,
        "peak_bytes": 24,
        "peak_ns": 2000,
    }


@pytest.mark.parametrize("cuts", [[], [1], [2], [3], [1, 2, 3]])
def test_a_move_may_be_cut_by_windows(cuts: list[int]) -> None:
    records = [alloc(10, A, 8), alloc(20, B, 16), free(21, A), realloc(22, B, A, 16, 8)]

    assert run(records, cuts).blocks("origin", "end_reason", "previous_n") == [("alloc", "realloc_moved", None), ("realloc_move", None, 0)]


def test_another_thread_may_take_the_old_address_before_the_summary() -> None:
    ran = run([alloc(10, A, 8), alloc(20, B, 16), free(21, A), alloc(22, A, 4, tid=12), realloc(23, B, A, 16, 8)])

    assert ran.blocks("address", "size", "end_reason", "previous_n") == [
        (A, 8, "realloc_moved", None),
        (B, 16, None, 0),
        (A, 4, None, None),
    ]


def test_a_summary_of_another_thread_or_size_is_no_pair() -> None:
    for other in (realloc(30, B, A, 16, 8, tid=12), realloc(30, B, A, 17, 8)):
        ran = run([alloc(10, A, 8), alloc(20, B, 16), other])

        assert ran.blocks("origin", "end_reason") == [("alloc", "realloc_moved"), ("alloc", "superseded"), ("realloc_standalone", None)]


def test_a_block_is_claimed_by_one_summary_only() -> None:
    ran = run([alloc(10, A, 8), alloc(20, B, 16), free(21, A), realloc(22, B, A, 16, 8), realloc(23, B, C, 16, 8)])

    assert ran.blocks("origin", "end_reason") == [("alloc", "realloc_moved"), ("realloc_move", "superseded"), ("realloc_standalone", None)]


def test_a_move_without_its_free_ends_the_older_block_there() -> None:
    ran = run([alloc(10, A, 8), alloc(20, B, 16), realloc(30, B, A, 16, 8), free(40, A)])

    assert ran.blocks("end_reason", "end_inferred", "end_ns", "previous_n") == [("realloc_moved", True, 3000, None), (None, False, None, 0)]
    assert ran.anomalies() == []  # the free came late
    assert ran.counters()["frees"] == 1


def test_a_younger_block_at_the_old_address_belongs_to_someone_else() -> None:
    ran = run([alloc(20, B, 16), alloc(21, A, 8, tid=12), realloc(30, B, A, 16, 8)])

    assert ran.blocks("end_reason") == [(None,), (None,)]
    assert ran.counters()["realloc_unknown_old"] == 1


def test_a_summary_a_second_after_its_free_comes_too_late_to_relabel() -> None:
    for late, reason in ((SECOND - 1, "realloc_moved"), (SECOND, "freed")):
        records = [alloc(10, A, 8), alloc(20, B, 16), free(21, A), realloc(21 + late, B, A, 16, 8)]

        assert run(records, [3]).blocks("end_reason") == run(records).blocks("end_reason") == [(reason,), (None,)]


def test_a_realloc_of_nothing_is_an_allocation() -> None:
    paired, alone = run([alloc(10, A, 8), realloc(11, A, 0, 8, 0)]), run([realloc(11, A, 0, 8, 0)])

    assert paired.blocks("origin") == [("realloc_move",)]
    assert alone.blocks("origin") == [("realloc_standalone",)]
    assert "realloc_unknown_old" not in paired.counters() | alone.counters()


def test_a_standalone_move_is_one_point() -> None:
    ran = run([alloc(10, A, 8), realloc(20, B, A, 16, 8)])

    assert ran.blocks("first_seq", "end_seq") == [(0, 1), (1, None)]
    assert ran.counters()["peak_bytes"] == 16


# ---------------------------------------------------------------------------------------------------- heaps and processes


def test_a_destroy_ends_all_blocks_by_one_record() -> None:
    ran = run([create(1), alloc(10, A, 1), alloc(11, B, 2), alloc(12, C, 4, heap=OTHER_HEAP), destroy(20), destroy(21)], [3])

    assert ran.blocks("end_reason", "end_seq", "free_tid") == [("heap_destroyed", 4, 11), ("heap_destroyed", 4, 11), (None, None, None)]
    assert ran.counters()["destroyed_blocks"] == 2
    assert [(h["create_seen"], h["destroyed_ns"]) for h in ran.table("heap")] == [(True, 2000), (False, None)]


def test_a_create_over_live_blocks_tells_of_a_lost_destroy() -> None:
    ran = run([create(1), alloc(10, A), create(20), alloc(30, A)], [2])

    assert ran.blocks("end_reason", "end_inferred", "end_ns", "heap_n") == [("heap_superseded", True, 2000, 0), (None, False, None, 1)]
    assert ran.anomalies() == [("implicit_destroy", None, None)]


def test_an_alloc_in_a_destroyed_heap_begins_a_life_of_unknown_origin() -> None:
    ran = run([create(1), destroy(10), alloc(20, A), free(30, B)], [2])

    assert [(h["life"], h["create_seen"], h["created_ns"], h["first_ns"]) for h in ran.table("heap")] == [
        (1, True, 100, 100), (2, False, None, 2000),
    ]  # fmt: skip
    assert ran.anomalies() == [("free_unknown", B, None)]


def test_blocks_end_with_their_process() -> None:
    ran = run([alloc(10, A, 64), alloc(11, B, 32, pid=200), end_process(20)], [1])

    assert ran.blocks("end_reason", "end_ns", "free_tid") == [("process_exit", 2000, None), (None, None, None)]
    assert ran.counters() == {"allocs": 1, "bytes_allocated": 64, "bytes_freed": 64, "peak_bytes": 64, "peak_ns": 1000}


def test_a_process_id_used_again_is_another_process() -> None:
    ran = run([alloc(10, A), end_process(20), alloc(30, A), free(40, A)], [2])

    assert ran.blocks("process_n", "generation", "end_reason") == [(0, 1, "process_exit"), (1, 1, "freed")]


def test_an_address_handed_out_while_live_tells_of_a_lost_free() -> None:
    ran = run([alloc(10, A, 64), alloc(20, A, 32)])

    assert ran.blocks("end_reason", "end_inferred", "end_seq", "first_seq") == [("superseded", True, 1, 0), (None, False, None, 1)]
    assert ran.anomalies() == [("implicit_free", A, 0)]
    assert ran.counters()["implicit_frees"] == 1


# ---------------------------------------------------------------------------------------------------- losses


def test_after_a_loss_unmatched_frees_are_no_errors() -> None:
    records = [create(1), alloc(10, A), free(20, A), free(40, A), free(50, B)]

    assert [kind for kind, _, _ in run(records).anomalies()] == ["double_free", "free_never_allocated"]
    assert [kind for kind, _, _ in run(records, losses=Losses([(30, 30)])).anomalies()] == ["free_unmatched_after_loss"] * 2
    assert [kind for kind, _, _ in run(records, losses=Losses([(45, 45)])).anomalies()] == ["double_free", "free_unmatched_after_loss"]


@pytest.mark.parametrize(
    ("losses", "trust"),
    [
        (Losses(), ["certain", "certain"]),
        (Losses([(15, 15)]), ["possible", "certain"]),
        (Losses([(1, 20)]), ["possible", "certain"]),
        (Losses([(1, 21)]), ["possible", "possible"]),
        (Losses(is_everywhere=True), ["possible", "possible"]),
    ],
)
def test_a_live_block_is_certain_when_nothing_was_lost_after_its_opening(losses: Losses, trust: list[str]) -> None:
    ran = run([alloc(10, A), alloc(20, B), alloc(21, C), free(22, C)], losses=losses)

    assert [CERTAINTIES[row["trust"]] for row in ran.table("allocation")[:2]] == trust
    assert ran.table("allocation")[2]["trust"] is None
