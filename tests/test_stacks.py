"""Which event has which call stack, and what its frames are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.etlwriter import Record
from collector.etlwriter.items import Item, stack_trace
from collector.etlwriter.items import stack_key as key_item
from collector.model.stack_inside import LATE_USER_PART
from collector.model.stack_pieces import KERNEL_64, PieceKind, Pieces
from collector.raw import HeaderKind
from collector.schema import Ragged
from tests.build import Event, Trace, afd, system
from tests.build.events import ticks_at
from tests.build.imported import Imported, ImportTrace
from tests.heap_model import HEAP, PID, TID, Ran, Rec, alloc, define, free, realloc, run, stack, stack_key

A, B, C, D = 0x1A_1000, 0x1A_2000, 0x1A_3000, 0x1A_4000
APP, NTDLL, PLUG, KERNEL = 0x7FF6_A000_0000, 0x7FF8_B000_0000, 0x7FF8_C000_0000, 0xFFFF_F800_2140_0000
USER = (NTDLL + 0x12345, APP + 0x1120, APP + 0x1044)
OTHER = (NTDLL + 0x777, APP + 0x888)
IN_KERNEL = (KERNEL + 0x1234, KERNEL + 0x99)
KEY = 0xFFFF_BA80_0100_0000
SECOND = 10_000_000  # ticks


def image(what: str, ticks: int, base: int, size: int, file: str, *, pid: int = PID) -> Rec:
    fields: dict[str, int | str] = {"image_base": base, "image_size": size, "process_id": pid, "file_name": file}
    return Rec(f"Image{what}", ticks, fields, pid, TID)


def signed(frames: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(frame - (1 << 64) if frame >> 63 else frame for frame in frames)


def owner(ran: Ran) -> list[object]:
    return [frames for (frames,) in ran.blocks("owner_stack")]


def problems(ran: Ran) -> dict[str, int]:
    return {problem.kind.name: problem.count for problem in ran.problems}


def symbolic(ran: Ran, ref: int | None) -> list[str]:
    found = ran.stack_of(ref)
    assert found is not None
    frames = [row for row in ran.table("stack_frame") if row["stack_n"] == found["n"]]
    return [f"{f['module']}+{f['offset']:#x}" if f["module"] else f"{f['address'] % (1 << 64):#x}" for f in frames]


# ---------------------------------------------------------------------------------------------------- whose stack


def test_a_stack_belongs_to_the_event_of_its_time_process_and_thread() -> None:
    ran = run([alloc(10, A, tid=11), alloc(10, B, tid=12), alloc(10, C, pid=200), stack(13, 10, USER, tid=12)])

    assert owner(ran) == [None, USER, None]
    assert problems(ran) == {}


@pytest.mark.parametrize("cuts", [[], [1], [2], [1, 2]])
def test_it_may_come_in_a_later_window(cuts: list[int]) -> None:
    assert owner(run([alloc(10, A), free(2_000_000, A), stack(4_000_010, 10, USER)], cuts)) == [USER]


def test_it_may_stand_before_its_event_when_the_times_are_equal() -> None:
    assert owner(run([stack(10, 10, USER), alloc(10, A)], [1])) == [USER]


def test_a_second_is_as_long_as_it_may_take() -> None:
    for late, expected in ((SECOND, USER), (SECOND + 1, None)):
        records = [alloc(10, A), stack(10 + late, 10, USER)]

        assert owner(run(records)) == owner(run(records, [1])) == [expected]


def test_a_stack_without_an_event_is_counted() -> None:
    ran = run([alloc(10, A), stack(11, 9, USER), stack(12, 10, USER, tid=99)])

    assert owner(ran) == [None]
    assert problems(ran) == {"unmatched_stacks": 2}


def test_a_time_far_ahead_waits_for_nothing() -> None:
    ran = run([alloc(10, A), stack(11, (1 << 63) + 5, USER), stack(12, 1 << 62, USER), stack(13, 10, OTHER)], [1, 2, 3])

    assert owner(ran) == [OTHER]
    assert problems(ran) == {"unmatched_stacks": 2}


def test_stacks_of_other_events_are_not_missed() -> None:
    """A sampled profile has a record without a thread; its stack names it all the same."""
    ran = run([Rec("SampleProfile", 10, {}, pid=-1, tid=-1), alloc(20, A), stack(21, 10, USER), stack(22, 20, OTHER)])

    assert owner(ran) == [OTHER]
    assert problems(ran) == {}


def test_the_free_stack_is_that_of_the_free() -> None:
    ran = run([alloc(10, A), stack(11, 10, USER), free(20, A), stack(21, 20, OTHER)])

    assert ran.blocks("owner_stack", "free_stack") == [(USER, OTHER)]


def test_the_owner_is_who_last_set_the_size_and_has_a_stack() -> None:
    records = [alloc(10, A, 8), stack(11, 10, USER), realloc(20, A, A, 16, 8), stack(21, 20, OTHER), realloc(30, A, A, 4, 16), free(40, A)]

    for cuts in ([], [2], range(6)):
        assert owner(run(records, cuts)) == [OTHER]


def test_the_summary_of_a_move_brings_no_stack() -> None:
    ran = run([alloc(10, A, 8), alloc(20, B, 16), stack(20, 20, USER), free(21, A), realloc(22, B, A, 16, 8), stack(23, 22, OTHER)])

    assert owner(ran) == [None, USER]


def test_of_two_events_at_one_tick_the_last_one_with_stacks_has_it() -> None:
    both = [alloc(10, A), alloc(10, B), stack(11, 10, USER)]
    with_free = [alloc(10, A), free(10, B), stack(11, 10, USER)]

    assert owner(run(both)) == [None, USER]
    assert owner(run(with_free)) == [USER]  # frees seldom have stacks


def test_once_frees_have_shown_stacks_they_count_as_well() -> None:
    records = [alloc(1, A), free(5, A), stack(6, 5, OTHER), alloc(9, B), alloc(10, A), free(10, B), stack(11, 10, USER)]

    for cuts in ([], [3], [5]):
        assert run(records, cuts).blocks("owner_stack", "free_stack") == [(None, OTHER), (None, USER), (None, None)]


def test_stacks_of_two_events_at_one_tick_are_not_mixed() -> None:
    ran = run([alloc(10, A), alloc(10, B), stack(11, 10, USER), stack(12, 10, OTHER)])

    assert owner(ran) == [None, OTHER]


# ---------------------------------------------------------------------------------------------------- pieces


def test_kernel_frames_come_first_whatever_the_order_of_the_pieces() -> None:
    parts = [stack(11, 10, IN_KERNEL), stack(12, 10, USER)]

    for listed in (parts, parts[::-1], [*parts, parts[0]]):
        assert owner(run([alloc(10, A), *listed])) == [signed(IN_KERNEL) + USER]


def test_one_piece_may_hold_both_parts() -> None:
    ran = run([alloc(10, A), stack(11, 10, IN_KERNEL[:1] + USER), stack(12, 10, IN_KERNEL[1:])])

    assert owner(ran) == [signed(IN_KERNEL) + USER]


def test_in_a_32_bit_record_the_upper_half_is_the_kernel() -> None:
    ran = run([alloc(10, A), stack(11, 10, (0x40_1000,), pointer_size=4), stack(12, 10, (0x8123_4567,), pointer_size=4)])

    assert owner(ran) == [(0x8123_4567, 0x40_1000)]


def test_large_addresses_of_a_32_bit_process_on_64_bit_windows_are_its_own() -> None:
    ran = run([alloc(10, A), stack(11, 10, (0x40_1000,)), stack(12, 10, (0x8123_4567,))])

    assert owner(ran) == [(0x40_1000, 0x8123_4567)]


def test_deep_stacks_are_kept_whole() -> None:
    deep = tuple(APP + 16 * i for i in range(140))

    ran = run([alloc(10, A), stack(11, 10, deep)])

    assert owner(ran) == [deep]
    assert ran.table("stack")[0]["depth"] == 140


# ---------------------------------------------------------------------------------------------------- keys


def test_a_key_means_what_it_is_defined_as_next() -> None:
    records = [
        alloc(10, A), stack_key(11, 10, KEY), define(20, KEY, USER),
        alloc(30, B), stack_key(31, 30, KEY), define(40, KEY, OTHER, what="Rundown"),
    ]  # fmt: skip

    for cuts in ([], [2], [3], range(6)):
        assert owner(run(records, cuts)) == [USER, OTHER]


def test_the_definition_counts_from_the_stack_records_own_time() -> None:
    """The key is dropped between the event and the record that uses it: that record uses it anew."""
    records = [alloc(10, A), define(12, KEY, OTHER), stack_key(13, 10, KEY), define(20, KEY, USER)]

    for cuts in ([], [2], range(4)):
        assert owner(run(records, cuts)) == [USER]


def test_a_definition_of_the_very_tick_counts() -> None:
    records = [alloc(10, A), define(13, KEY, USER), stack_key(13, 10, KEY), define(20, KEY, OTHER)]

    for cuts in ([], [2], range(4)):
        assert owner(run(records, cuts)) == [USER]


def test_one_key_can_stand_for_a_kernel_and_a_user_stack() -> None:
    ran = run(
        [
            alloc(10, A), stack_key(11, 10, KEY, part="Kernel"), stack_key(12, 10, KEY, part="User"),
            define(20, KEY, USER), define(21, KEY, IN_KERNEL),
        ]
    )  # fmt: skip

    assert owner(ran) == [signed(IN_KERNEL) + USER]


def test_a_key_that_is_never_defined_leaves_the_stack_incomplete() -> None:
    ran = run([alloc(10, A), stack_key(11, 10, KEY), stack(12, 10, IN_KERNEL), alloc(20, B), stack_key(21, 20, KEY)])

    assert owner(ran) == [signed(IN_KERNEL), ()]
    assert [s["is_complete"] for s in ran.table("stack")] == [False, False]
    assert problems(ran) == {"undefined_stack_keys": 2}


def test_a_creation_defines_a_key_whose_end_is_missing() -> None:
    assert owner(run([define(5, KEY, USER, what="Create"), alloc(10, A), stack_key(11, 10, KEY)])) == [USER]


# ---------------------------------------------------------------------------------------------------- modules


def test_frames_are_named_by_the_images_loaded_at_that_time() -> None:
    plug = (NTDLL + 0x12345, PLUG + 0x400)
    ran = run(
        [
            image("DCStart", 0, APP, 0x10000, "\\Device\\HarddiskVolume3\\app.exe"),
            image("DCStart", 0, NTDLL, 0x20_0000, "\\Windows\\ntdll.dll"),
            image("DCStart", 0, KERNEL, 0x74_8000, "\\SystemRoot\\ntoskrnl.exe", pid=0),
            alloc(5, A), stack(6, 5, plug),
            image("Load", 7, PLUG, 0x8000, "plug.dll"),
            alloc(10, B), stack(11, 10, plug),
            image("Unload", 14, PLUG, 0x8000, "plug.dll"),
            alloc(15, C), stack(16, 15, plug),
            alloc(20, D), stack(21, 20, IN_KERNEL[:1] + USER),
        ]
    )  # fmt: skip

    assert [symbolic(ran, row["owner_stack_ref"]) for row in ran.table("allocation")] == [
        ["ntdll.dll+0x12345", "0x7ff8c0000400"],
        ["ntdll.dll+0x12345", "plug.dll+0x400"],
        ["ntdll.dll+0x12345", "0x7ff8c0000400"],
        ["ntoskrnl.exe+0x1234", "ntdll.dll+0x12345", "app.exe+0x1120", "app.exe+0x1044"],
    ]
    assert len(ran.table("stack")) == 3  # the first and the third are the same


def test_an_image_of_the_end_rundown_was_loaded_all_along() -> None:
    ran = run([alloc(10, A), stack(11, 10, (APP + 0x10,)), image("DCEnd", 90, APP, 0x1000, "app.exe")])

    assert symbolic(ran, ran.table("allocation")[0]["owner_stack_ref"]) == ["app.exe+0x10"]


def test_a_call_that_never_returns_can_be_the_last_of_its_image() -> None:
    """Return addresses point behind the call; the innermost frame is no return address."""
    end = APP + 0x1000
    ran = run([image("DCStart", 0, APP, 0x1000, "app.exe"), alloc(10, A), stack(11, 10, (end, end))])

    assert symbolic(ran, ran.table("allocation")[0]["owner_stack_ref"]) == [f"{end:#x}", "app.exe+0x1000"]


def test_a_stack_is_the_same_wherever_its_images_are_loaded() -> None:
    """Two processes, two bases, one program: one stack, so that it can be followed from trace to trace."""
    ran = run(
        [
            image("DCStart", 0, APP, 0x1000, "C:\\app.exe", pid=100), image("DCStart", 0, PLUG, 0x1000, "D:\\APP.EXE", pid=200),
            alloc(10, A, pid=100), stack(11, 10, (APP + 1,), pid=100), alloc(20, A, pid=200), stack(21, 20, (PLUG + 1,), pid=200),
        ]
    )  # fmt: skip

    assert len(ran.table("stack")) == 1
    assert len(ran.table("stack_ref")) == 2


def test_the_same_address_in_two_processes_is_two_stacks() -> None:
    ran = run(
        [
            image("DCStart", 0, APP, 0x1000, "one.exe", pid=100), image("DCStart", 0, APP, 0x1000, "two.exe", pid=200),
            alloc(10, A, pid=100), stack(11, 10, (APP + 1,), pid=100), alloc(20, A, pid=200), stack(21, 20, (APP + 1,), pid=200),
        ]
    )  # fmt: skip

    assert [symbolic(ran, row["owner_stack_ref"]) for row in ran.table("allocation")] == [["one.exe+0x1"], ["two.exe+0x1"]]


def test_each_distinct_stack_is_stored_once() -> None:
    records = [rec for i in range(50) for rec in (alloc(10 * i, HEAP + 16 * i), stack(10 * i + 1, 10 * i, (USER, OTHER)[i % 2]))]

    ran = run(records, [20, 40])

    assert [s["depth"] for s in ran.table("stack")] == [3, 2]
    assert len(ran.table("stack_frame")) == 5
    assert len({s["hash"] for s in ran.table("stack")}) == 2


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.booleans(), st.sampled_from([USER, OTHER, IN_KERNEL])), max_size=25),
    st.integers(1, 25),
)
def test_keys_are_bound_alike_in_any_windows(steps: list[tuple[int, bool, tuple[int, ...]]], cut: int) -> None:
    records: list[Rec] = []
    for i, (key, is_definition, frames) in enumerate(steps):
        if is_definition:
            records.append(define(10 * (i // 2), key, frames))
        else:
            part = "Kernel" if frames is IN_KERNEL else "User"
            records += [alloc(10 * (i // 2), HEAP + 16 * i, tid=i), stack_key(10 * (i // 2), 10 * (i // 2), key, part=part, tid=i)]
    if records:
        assert run(records, [cut, cut + 3]).plain() == run(records).plain()


def test_stacks_with_one_hash_are_told_apart() -> None:
    """Rows are grouped by a hash that adds up a number for each place; these two were made to give the same sum."""
    step = 0x9E3779B97F4A7C15
    one, two = (0x7FF6_0000_0001, 0x7FF6_0000_0002), ((0x7FF6_0000_0002 + step) % (1 << 64), (0x7FF6_0000_0001 - step) % (1 << 64))
    rows = Ragged(np.array([*one, *two, *one, 9], dtype=np.uint64), np.array([0, 2, 4, 6, 7, 7], dtype=np.int64))
    pieces = Pieces()

    found = pieces.intern(rows, np.full(5, 8, dtype=np.uint8)).tolist()

    assert [tuple(pieces.frames(piece)[0].tolist()) for piece in found] == [one, two, one, (9,), ()]
    assert found[0] == found[2]


def test_the_border_of_the_kernel() -> None:
    pieces = Pieces()
    rows = Ragged(np.array([KERNEL_64 - 1, KERNEL_64], dtype=np.uint64), np.array([0, 1, 2], dtype=np.int64))

    below, at = pieces.intern(rows, np.full(2, 8, dtype=np.uint8)).tolist()

    assert [set(pieces.parts(piece)) for piece in (below, at)] == [{PieceKind.USER}, {PieceKind.KERNEL}]


# ---------------------------------------------------------------------------------------------------- stacks inside records


def stacks_of(db: Imported) -> list[tuple[object, ...]]:
    """Frames and completeness of the stack of each operation."""
    frames: dict[str, list[int]] = {}
    for hashed, address in db.rows("select stack, address from v_stacks order by stack, frame"):
        frames.setdefault(hashed, []).append(int(address, 16))
    complete = dict(db.rows("select hash, is_complete from stack"))
    return [
        (None,) if stack is None else (tuple(frames.get(stack, ())), bool(complete[stack]))
        for (stack,) in db.rows("select stack from v_operations order by posted_ns")
    ]


def with_items(sent: Event, *items: Item) -> Event:
    return sent.with_header({"items": items})


def test_a_socket_event_carries_its_stack_inside(import_trace: ImportTrace) -> None:
    db = import_trace(
        Trace().cpu(0, afd.opened(at_us=0), afd.send(at_us=10, stack=IN_KERNEL + USER), afd.send(at_us=20), afd.send(at_us=30, stack=OTHER))
    )

    assert stacks_of(db) == [(IN_KERNEL + USER, True), (None,), (OTHER, True)]


def test_its_user_part_may_come_in_a_record_of_its_own(import_trace: ImportTrace) -> None:
    late = Record(
        kind=HeaderKind.EVENT64, ticks=ticks_at(15, Trace().clock), provider=LATE_USER_PART[0], event_id=LATE_USER_PART[1], opcode=24,
        items=(stack_trace(USER, match_id=77),),
    )  # fmt: skip
    started = with_items(afd.send(at_us=10), stack_trace(IN_KERNEL, match_id=77))
    unfinished = with_items(afd.send(at_us=20), stack_trace(IN_KERNEL, match_id=78))

    db = import_trace(Trace().cpu(0, afd.opened(at_us=0), started, late, unfinished))

    assert stacks_of(db) == [(IN_KERNEL + USER, True), (IN_KERNEL, False)]


def test_a_stack_inside_may_be_a_key(import_trace: ImportTrace) -> None:
    keyed = [with_items(afd.send(at_us=at_us), key_item(KEY)) for at_us in (10, 30)]
    db = import_trace(
        Trace().cpu(
            0, afd.opened(at_us=0), keyed, system.key_definition(at_us=20, key=KEY, frames=USER),
            system.key_definition(at_us=40, key=KEY, frames=OTHER),
        )
    )  # fmt: skip

    assert stacks_of(db) == [(USER, True), (OTHER, True)]
