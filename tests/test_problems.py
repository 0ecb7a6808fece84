"""What a whole trace lacks, told by what occurs in it."""

from uuid import UUID

import pytest

from collector.clock import Clock, ClockKind
from collector.errors import Problem, Severity
from collector.events.afd import AFD
from collector.events.heap import HEAP
from collector.events.system import IMAGE, PROCESS
from collector.problems import PROBLEM_KINDS, Misread, decoding_problems, inventory_problems, problem_rows
from tests.build import Trace, afd, documented, heap, system
from tests.build.imported import ImportTrace

FULL = {(AFD, number): 1 for number in (1000, 1001, 1002, 1003, 1004, 3003)} | {(HEAP, 0x21): 1, (PROCESS, 1): 1, (IMAGE, 10): 1}


def names(seen: dict[tuple[UUID, int], int], *, has_stacks: bool = True) -> set[str]:
    return {problem.kind.name for problem in inventory_problems(seen, has_stacks=has_stacks)}


def afd_ids(*ids: int) -> dict[tuple[UUID, int], int]:
    """A full trace with other socket events."""
    return {(AFD, number): 1 for number in ids} | {key: count for key, count in FULL.items() if key[0] != AFD}


def test_a_full_trace_lacks_nothing() -> None:
    assert names(FULL) == set()


@pytest.mark.parametrize(
    ("seen", "missing"),
    [
        (afd_ids(), {"no_socket_events"}),
        (afd_ids(1, 2, 4, 6, 13), {"socket_level_too_low"}),
        (afd_ids(1, 4, 6, 18, 24, 13), set()),
        (afd_ids(1032, 1033), {"socket_failures_only"}),
        (afd_ids(1000, 1003, 1004, 1002, 1001), {"no_transport_indications"}),
        (afd_ids(3001, 3003, 3006), {"no_socket_calls"}),
        (afd_ids(1, 4, 18, 3003), set()),
        (afd_ids(1000, 1003, 1001, 1005, 3001), {"no_cleanup_events"}),
        (afd_ids(1000, 1001, 1003, 1004, 1021, 1030), {"ids_filtered", "no_transport_indications"}),
        ({key: n for key, n in FULL.items() if key[0] != HEAP}, {"no_heap_events"}),
        ({key: n for key, n in FULL.items() if key[0] != PROCESS}, {"no_process_events"}),
        ({key: n for key, n in FULL.items() if key[0] != IMAGE}, {"no_image_events"}),
        ({(PROCESS, 1): 5}, {"no_socket_events", "no_heap_events"}),
        ({}, {"no_socket_events", "no_heap_events"}),
    ],
)
def test_each_gap_has_its_problem(seen: dict[tuple[UUID, int], int], missing: set[str]) -> None:
    assert names(seen) == missing


def test_modules_matter_only_where_there_are_stacks() -> None:
    without_images = {key: n for key, n in FULL.items() if key[0] != IMAGE}
    assert names(without_images, has_stacks=False) == {"no_stacks"}


def test_a_count_of_none_is_not_seen() -> None:
    assert "no_heap_events" in names(FULL | {(HEAP, 0x21): 0})


def test_what_was_misread_is_summed_with_the_most_frequent_first() -> None:
    unknown = [Misread(f"id {n}", n, 100 - n, 200 + n, f"buffer {n}") for n in (1, 5, 3, 2, 4)]
    (problem,) = decoding_problems(damaged=[], unknown=unknown, newer=[], longer=[], kept=15, left_out=0)

    assert problem.count == 15
    assert (problem.first_ticks, problem.last_ticks, problem.place) == (95, 205, "buffer 5")
    assert "id 5: 5, id 4: 4, id 3: 3, id 2: 2 and 1 more kinds" in problem.text


def test_descriptions_that_cannot_be_read_are_a_problem() -> None:
    (problem,) = decoding_problems(damaged=[], unknown=[], newer=[], longer=[], kept=0, left_out=0, layouts=3)

    assert (problem.kind.name, problem.count) == ("damaged_layouts", 3)
    assert problem.text.endswith(": 3.")


def test_damage_comes_first_and_times_are_in_ns() -> None:
    clock = Clock(ClockKind.QPC, start_ticks=1000, ticks_per_second=10_000_000, start_filetime=0)
    problems = decoding_problems(
        damaged=[Misread("id 1", 1, 1010, 1020, "buffer 2")],
        unknown=[],
        newer=[Misread("id 2", 1, 1000, 1000, "x")],
        longer=[],
        kept=1,
        left_out=7,
    )
    rows = problem_rows([*reversed(problems), *inventory_problems({}, has_stacks=False)], clock)

    ranks = [list(Severity).index(Severity(row.severity)) for row in rows]
    assert ranks == sorted(ranks)
    assert (rows[0].kind, rows[0].first_ns, rows[0].last_ns, rows[0].place) == ("damaged_events", 1000, 2000, "buffer 2")


@pytest.mark.parametrize("kind", PROBLEM_KINDS, ids=lambda kind: kind.name)
def test_each_kind_says_what_it_means_and_what_to_do(kind: object) -> None:
    problem = Problem(kind, details={"kept": 3, "which": "id 7: 1", "what": "heap"})  # type: ignore[arg-type]  # one of PROBLEM_KINDS
    assert problem.text.endswith(".")
    assert problem.kind.effect.endswith(".")
    assert problem.kind.advice
    assert (problem.kind.severity in (Severity.DAMAGE, Severity.DATA_LOSS)) == (problem.kind.name == "damaged_events")


@pytest.mark.parametrize("needle", ["logman start", "0xffffffffffffffff 5"])
def test_a_trace_without_sockets_gives_the_command_that_records_them(import_trace: ImportTrace, needle: str) -> None:
    db = import_trace(Trace().cpu(0, heap.alloc(at_us=10)))
    assert needle in db.one("SELECT advice FROM v_problems WHERE kind = 'no_socket_events'")


def test_problems_of_all_stages_meet_in_one_table_and_in_the_catalog(import_trace: ImportTrace) -> None:
    trace = Trace().cpu(0, system.process_start(at_us=1), documented.create(at_us=10), documented.close(at_us=90)).lose_events(3, at_us=50)
    db = import_trace(trace)

    stored = db.rows("SELECT kind, severity FROM v_problems")
    assert ("lost_events", "data_loss") in stored  # the container
    assert ("socket_level_too_low", "limit") in stored  # the inventory
    with db.folder.catalog().connect() as connection:
        copied = connection.exec_driver_sql("SELECT kind, severity FROM catalog_problem ORDER BY n").all()
    assert [tuple(row) for row in copied] == stored
    assert db.report.is_limited


def test_a_send_after_a_loss_is_only_possibly_never_completed(import_trace: ImportTrace) -> None:
    trace = Trace().cpu(
        0, afd.opened(at_us=10), afd.connected(at_us=50), afd.send(at_us=100, buffer=0x1000), afd.option(at_us=5_000_000, option=7, value=0)
    )
    sure, unsure = import_trace(trace), import_trace(trace.lose_events(1))
    sql = "SELECT certainty FROM v_findings WHERE kind = 'never_completed'"
    assert (sure.one(sql), unsure.one(sql)) == ("certain", "possible")
