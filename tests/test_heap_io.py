"""The memory behind the buffers of operations, and blocks that end while an operation uses them."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Text, create_engine

from collector.losses import Losses
from collector.model.heap_io import join_buffers
from collector.model.rows import Rows, unfolded
from collector.store.tables import ROW_COLUMNS, TRACE
from collector.words import BUFFER_CLASSES, END_REASONS
from tests.build import ENTER, EXIT, Event, Trace, afd, heap, system
from tests.build.afd_events import Who
from tests.build.imported import Imported, ImportTrace
from tests.raw_events import CLOCK

A, B = 0x1A_1000, 0x1A_8000
LINK_A = f"0x1a0000:{A:#x}@1000"
CANCELLED = 0xC000_0120
MANY = 1 << 40  # records


@pytest.fixture
def collect(import_trace: ImportTrace) -> Callable[..., Imported]:
    """A trace with one block of 4,096 bytes at A, allocated at 1 µs, and these events."""

    def run(*events: Event | list[Event], lost_at_us: float | None = None) -> Imported:
        trace = Trace().cpu(0, afd.opened(at_us=0), heap.alloc(at_us=1, address=A, size=4096), *events)
        return import_trace(trace if lost_at_us is None else trace.lose_events(1, at_us=lost_at_us))

    return run


def receive(at_us: float, *, buffer: int = A, size: int = 1024, count: int = 1, enter_exit: int = ENTER, status: int = 0) -> Event:
    return afd.receive(
        at_us=at_us, buffer=buffer, length_bytes=size, is_fast=True, buffer_count=count, enter_exit=enter_exit, status=status
    )


def receives(at_us: float, until_us: float, *, buffer: int = A, size: int = 1024) -> list[Event]:
    return afd.received(at_us=at_us, duration_us=until_us - at_us, buffer=buffer, length_bytes=size, is_fast=True)


def classes(db: Imported) -> list[tuple[object, ...]]:
    return db.rows("select buffer_class, allocation, allocation_offset from v_operations where kind = 'recv' order by posted_ns")


def found(db: Imported) -> list[tuple[object, ...]]:
    return db.rows("select kind, t_ns, allocation, reason, by_bytes, certainty from v_io_findings order by t_ns")


# ---------------------------------------------------------------------------------------------------- classes


def test_a_buffer_inside_a_block(collect: Callable[..., Imported]) -> None:
    db = collect(receives(10, 20, buffer=A + 16))

    assert classes(db) == [("heap", LINK_A, 16)]
    assert found(db) == []


@pytest.mark.parametrize(("size", "expected"), [(4095, "heap"), (4096, "heap"), (4097, "heap_overrun")])
def test_a_buffer_may_reach_to_the_end_of_its_block(collect: Callable[..., Imported], size: int, expected: str) -> None:
    db = collect(receives(10, 20, size=size))

    assert classes(db) == [(expected, LINK_A, 0)]
    assert found(db) == ([("overruns_block", 10_000, LINK_A, None, 1, "certain")] if size == 4097 else [])


def test_of_a_chain_only_the_first_address_is_known(collect: Callable[..., Imported]) -> None:
    db = collect(receive(10, size=1 << 20, count=3))

    assert classes(db) == [("heap_chained", LINK_A, 0)]
    assert found(db) == []


def test_a_kernel_address_has_no_class(collect: Callable[..., Imported]) -> None:
    assert classes(collect(afd.receive(at_us=10, activity=7))) == [(None, None, None)]


def test_the_youngest_of_nested_blocks_holds_the_buffer(collect: Callable[..., Imported]) -> None:
    """A program may cut a block of one heap into blocks of its own heap."""
    inner = heap.alloc(at_us=2, address=A + 256, size=64, heap=0x2B_0000)

    assert classes(collect(inner, receives(10, 20, buffer=A + 260, size=8)))[0][1:] == (f"0x2b0000:{A + 256:#x}@2000", 4)


def test_static_data_and_stacks(collect: Callable[..., Imported]) -> None:
    db = collect(
        system.image(base=0x7FF6_0000_0000, size=0x1000, file="app.exe"),
        system.thread(user_stack_base=0xA_0000, user_stack_limit=0x9_0000),
        heap.ranges(at_us=0.5, ranges=((0x1A_0000, 0x6_0000),)),
        receive(10, buffer=0x7FF6_0000_0FFF), receive(11, buffer=0x7FF6_0000_1000), receive(12, buffer=0x9_0000),
        receive(13, buffer=0xA_0000), receive(14, buffer=0x1C_0000),
    )  # fmt: skip

    assert [name for name, _, _ in classes(db)] == ["image", "unknown", "stack", "unknown", "heap_untracked"]


def test_an_image_counts_while_it_is_loaded(collect: Callable[..., Imported]) -> None:
    base, size = 0x7FF6_0000_0000, 0x1000
    db = collect(
        receive(10, buffer=base),
        system.image("Load", at_us=20, base=base, size=size), receive(30, buffer=base),
        system.image("Unload", at_us=40, base=base, size=size), receive(50, buffer=base),
    )  # fmt: skip

    assert [name for name, _, _ in classes(db)] == ["unknown", "image", "unknown"]


def test_a_buffer_in_a_freed_block(collect: Callable[..., Imported]) -> None:
    db = collect(heap.free(at_us=5, address=A), receives(10, 20, buffer=A + 8))

    assert classes(db) == [("freed_block", None, None)]
    assert found(db) == [("posted_after_free", 10_000, LINK_A, "freed", None, "certain")]


def test_what_was_a_block_may_be_a_stack_now(collect: Callable[..., Imported]) -> None:
    db = collect(
        heap.free(at_us=5, address=A),
        system.thread("Start", at_us=6, tid=99, user_stack_base=A + 4096, user_stack_limit=A),
        receives(10, 20),
    )

    assert classes(db)[0][0] == "stack"
    assert found(db) == []


def test_a_zero_length_operation_touches_nothing(collect: Callable[..., Imported]) -> None:
    db = collect(
        receive(10, size=0), heap.free(at_us=20, address=A), receive(30, size=0),
        heap.alloc(at_us=40, address=B, size=0), receive(50, buffer=B, size=0), receive(60, buffer=B, size=1),
    )  # fmt: skip

    assert [name for name, _, _ in classes(db)] == ["heap", "unknown", "heap", "unknown"]
    assert found(db) == []


def test_a_process_without_heap_records_gets_no_classes(collect: Callable[..., Imported]) -> None:
    other = Who(endpoint=0xFFFF_9A0C_2A00_2020, process=0xFFFF_9A0C_1122_9090, pid=999)
    db = collect(afd.opened(at_us=5, **other), afd.receive(at_us=10, buffer=A, is_fast=True, **other))

    assert classes(db) == [(None, None, None)]


# ---------------------------------------------------------------------------------------------------- in flight


def test_a_block_freed_while_a_receive_is_in_flight(collect: Callable[..., Imported]) -> None:
    db = collect(receives(10, 30), heap.free(at_us=20, address=A, tid=77, stack=(0x7FF6_0000_0001,)))

    assert found(db) == [("freed_in_flight", 20_000, LINK_A, "freed", None, "certain")]
    assert db.rows("select operation_kind, operation_posted_ns, free_stack is not null from v_io_findings") == [("recv", 10_000, 1)]


def test_a_free_after_the_completion_is_legal(collect: Callable[..., Imported]) -> None:
    assert found(collect(receives(10, 20), heap.free(at_us=20.1, address=A))) == []


def test_a_free_before_the_post_is_no_free_in_flight(collect: Callable[..., Imported]) -> None:
    db = collect(heap.free(at_us=5, address=A), heap.alloc(at_us=6, address=A, size=4096), receives(10, 20))

    assert found(db) == []


def test_at_the_tick_of_the_completion_the_order_of_records_decides_and_is_said_to(collect: Callable[..., Imported]) -> None:
    before = collect(receive(10), heap.free(at_us=20, address=A), receive(20, enter_exit=EXIT))
    after = collect(receive(10), receive(20, enter_exit=EXIT), heap.free(at_us=20, address=A))

    assert [row[-1] for row in found(before)] == ["possible"]
    assert found(after) == []


def test_the_freed_memory_is_handed_out_again(collect: Callable[..., Imported]) -> None:
    db = collect(
        receives(10, 50, buffer=A + 64, size=64), heap.free(at_us=20, address=A),
        heap.alloc(at_us=25, address=A, size=64), heap.alloc(at_us=30, address=A + 64, size=1),
        heap.alloc(at_us=31, address=A + 80, size=1),
    )  # fmt: skip

    assert found(db) == [
        ("freed_in_flight", 20_000, LINK_A, "freed", None, "certain"),
        ("reused_in_flight", 30_000, f"0x1a0000:{A + 64:#x}@30000", None, None, "certain"),
    ]


def test_memory_handed_out_after_the_completion_is_no_reuse(collect: Callable[..., Imported]) -> None:
    db = collect(receives(10, 30), heap.free(at_us=20, address=A), heap.alloc(at_us=40, address=A, size=4096))

    assert [kind for kind, *_ in found(db)] == ["freed_in_flight"]


def test_a_moving_realloc_says_its_reason(collect: Callable[..., Imported]) -> None:
    db = collect(
        receives(10, 50), heap.alloc(at_us=20, address=B, size=8192), heap.free(at_us=21, address=A),
        heap.realloc(at_us=22, new=B, old=A, new_size=8192, old_size=4096),
    )  # fmt: skip

    assert found(db) == [("freed_in_flight", 21_000, LINK_A, "realloc_moved", None, "certain")]


def test_a_heap_destroyed_in_flight(collect: Callable[..., Imported]) -> None:
    assert [row[3] for row in found(collect(receives(10, 50), heap.destroy(at_us=20)))] == ["heap_destroyed"]


def test_a_process_that_ends_is_no_finding(collect: Callable[..., Imported]) -> None:
    db = collect(system.process_rundown(), receive(10), system.process_end(at_us=20))

    assert found(db) == []
    assert db.one("select end_reason from v_allocations") == "process_exit"


def test_a_block_that_shrinks_below_its_buffer(collect: Callable[..., Imported]) -> None:
    db = collect(
        receives(10, 50, size=1024), heap.realloc(at_us=20, new=A, old=A, new_size=8192, old_size=4096),
        heap.realloc(at_us=30, new=A, old=A, new_size=1024, old_size=8192),
        heap.realloc(at_us=40, new=A, old=A, new_size=1000, old_size=1024),
    )  # fmt: skip

    assert found(db) == [("shrunk_in_flight", 40_000, LINK_A, None, 24, "certain")]


def test_a_buffer_in_the_part_that_a_resize_added(collect: Callable[..., Imported]) -> None:
    grown = heap.realloc(at_us=5, new=A, old=A, new_size=8192, old_size=4096)
    shrunk = heap.realloc(at_us=30, new=A, old=A, new_size=16, old_size=8192)
    db = collect(grown, receives(10, 20, buffer=A + 5000), shrunk, receives(40, 50, buffer=A + 5000))

    assert classes(db) == [("heap", LINK_A, 5000), ("unknown", None, None)]


@pytest.mark.parametrize(
    ("events", "certainty"),
    [
        ([receive(10)], "possible"),  # in flight at the end: no completion was seen
        ([receive(10), receive(30, enter_exit=EXIT, status=CANCELLED)], "certain"),
    ],
)
def test_a_completion_makes_it_certain(collect: Callable[..., Imported], events: list[Event], certainty: str) -> None:
    assert found(collect(events, heap.free(at_us=20, address=A))) == [("freed_in_flight", 20_000, LINK_A, "freed", None, certainty)]


@pytest.mark.parametrize(("lost_at_us", "certainty"), [(5, "certain"), (15, "possible"), (25, "possible"), (40, "certain")])
def test_a_loss_while_it_is_in_flight_makes_it_possible(collect: Callable[..., Imported], lost_at_us: float, certainty: str) -> None:
    db = collect(receives(10, 30), heap.free(at_us=20, address=A), lost_at_us=lost_at_us)

    assert [row[-1] for row in found(db)] == [certainty]


def test_a_free_between_close_and_completion_is_possible(collect: Callable[..., Imported]) -> None:
    db = collect(
        receive(10), afd.cleanup(at_us=20), heap.free(at_us=30, address=A), receive(40, enter_exit=EXIT, status=CANCELLED),
        afd.cleanup(at_us=41, enter_exit=EXIT),
    )  # fmt: skip

    assert [(kind, certainty) for kind, *_, certainty in found(db)] == [("freed_in_flight", "possible")]


def test_a_free_after_a_close_without_completion_is_none(collect: Callable[..., Imported]) -> None:
    assert found(collect(receive(10, enter_exit=ENTER), afd.closed(at_us=20), heap.free(at_us=30, address=A))) == []


# ---------------------------------------------------------------------------------------------------- any sequence


@dataclass
class Known:
    """Rows of an unfinished file: one process, socket 0."""

    blocks: list[tuple[int, int, int, int | None, int]] = field(default_factory=list)
    """Address, size, first and end record, end reason; in the order of opening."""
    posts: list[tuple[int, int, int, int | None, int]] = field(default_factory=list)
    """Address, length, post and completion record, number of buffers."""


def store(connection: Connection, known: Known) -> None:
    names = ("allocation", "heap", "heap_range", "module", "operation", "resize", "socket", "thread")
    TRACE.create_all(connection, tables=[TRACE.tables[name] for name in names])

    def insert(table: str, **values: object) -> None:
        columns = TRACE.tables[table].columns
        row = {c.name: None if c.nullable else "" if isinstance(c.type, Text) else False for c in columns} | values
        connection.execute(TRACE.tables[table].insert().values(**row | {"trace_id": 1}))

    insert("heap", n=0, process_n=0, handle=1)
    insert("socket", n=0, process_n=0)
    for n, (address, size, first, end, reason) in enumerate(known.blocks):
        insert(
            "allocation", n=n, process_n=0, heap_n=0, address=address, generation=1, size=size, size_at_open=size, first_ns=100 * first,
            end_ns=None if end is None else 100 * end, end_reason=None if end is None else reason, first_seq=first, end_seq=end,
        )  # fmt: skip
    for n, (address, length, post, end, count) in enumerate(known.posts):
        ns = None if end is None else 100 * end
        insert(
            "operation", n=n, socket_n=0, kind=3, outcome=8 if end is None else 0, bytes=0, buffer=address, posted_len=length,
            buffer_count=count, space=1, posted_ns=100 * post, completed_ns=ns, end_ns=ns, posted_seq=post, completed_seq=end,
        )  # fmt: skip


@st.composite
def traces(draw: st.DrawFn) -> Known:
    """Blocks and operations that begin and end at records of their own, in any order."""
    count = draw(st.integers(1, 24))
    order = draw(st.permutations(range(2 * count)))
    out, live = Known(), set()
    for i in range(count):
        first, end = sorted(order[2 * i : 2 * i + 2])
        last = None if draw(st.booleans()) and draw(st.booleans()) else end
        address = draw(st.integers(1, 12))
        if draw(st.booleans()):
            live.add((first, last, address))
            out.blocks.append((address, draw(st.integers(0, 6)), first, last, draw(st.integers(0, 3))))
        else:
            out.posts.append((address, draw(st.integers(0, 4)), first, last, draw(st.integers(1, 2))))
    out.blocks.sort(key=lambda block: block[2])
    return out


def by_the_rules(known: Known) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Classes and findings, by looking at every pair."""
    classed: list[tuple[object, ...]] = []
    findings: list[tuple[object, ...]] = []
    for n, (address, length, post, end, count) in enumerate(known.posts):
        until = MANY if end is None else end
        holds = [
            (i, b) for i, b in enumerate(known.blocks)
            if (b[0] <= address < b[0] + b[1] or (not b[1] and not length and b[0] == address)) and b[2] < post
        ]  # fmt: skip
        live = [(i, b) for i, b in holds if b[3] is None or b[3] > post]
        gone = [(i, b) for i, b in holds if b[3] is not None and b[3] < post and b[1]]
        if not live:
            if gone and length:
                i, _ = max(gone, key=lambda pair: pair[1][3] or 0)
                classed.append((n, "freed_block", None))
                findings.append((post, "posted_after_free", n, i))
            else:
                classed.append((n, "unknown", None))
            continue
        i, (low, size, _, gone_at, reason) = max(live, key=lambda pair: pair[1][2])
        over = address + length > low + size and length > 0
        classed.append((n, "heap_chained" if count > 1 else "heap_overrun" if over else "heap", i))
        if not length:
            continue
        if over and count == 1:
            findings.append((post, "overruns_block", n, i))
        if gone_at is not None and gone_at < until and END_REASONS[reason] != "process_exit":
            findings.append((gone_at, "freed_in_flight", n, i))
            last = address + (1 if count > 1 else length)
            later = [
                (b[2], j) for j, b in enumerate(known.blocks)
                if gone_at < b[2] < until and b[1] and b[0] < last and address < b[0] + b[1]
            ]  # fmt: skip
            if later:
                findings.append((min(later)[0], "reused_in_flight", n, min(later)[1]))
    return classed, sorted(findings, key=repr)


@settings(max_examples=80, deadline=None)
@given(traces(), st.sampled_from([3, 1_000_000]))
def test_any_sequence_is_joined_by_the_rules(known: Known, stretch: int) -> None:
    rows: Rows = {}
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        store(connection, known)
        for part in join_buffers(connection, CLOCK, Losses(), stretch=stretch):
            for table, own in part.items():
                rows.setdefault(table, []).extend(own)
    engine.dispose()

    buffers = [dict(zip(ROW_COLUMNS["operation_buffer"], row, strict=True)) for row in unfolded(rows.get("operation_buffer", []))]
    findings = [dict(zip(ROW_COLUMNS["io_finding"], row, strict=True)) for row in unfolded(rows.get("io_finding", []))]
    classed, expected = by_the_rules(known)
    if known.posts:
        got = sorted((b["operation_n"], BUFFER_CLASSES[int(str(b["buffer_class"]))], b["allocation_n"]) for b in buffers)
        assert got == classed
    assert sorted(((int(str(f["t_ns"])) // 100, f["kind"], f["operation_n"], f["allocation_n"]) for f in findings), key=repr) == expected
    assert [f["t_ns"] for f in findings] == sorted(int(str(f["t_ns"])) for f in findings)
