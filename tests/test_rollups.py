"""Roll-ups: every level agrees with a slow count of the same rows, wherever the stretches are cut."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.queries.socket_timeline import timeline
from collector.model import heap_rollups, rollups, spool
from collector.model.buckets import LEVELS
from collector.model.heap_resizes import resizes_with_heap
from collector.model.rows import Lines, Rows, block_of, unfolded
from collector.store.engine import TraceFolder
from collector.store.tables import FEW_OPERATIONS, ROW_COLUMNS
from collector.store.writer import TraceWriter
from tests.build.database import BUILT_KEY, rows_from

Row = Mapping[str, object]
RollUp = Callable[..., dict[str, list[dict[str, object]]]]
SOCKETS = [
    {"n": 1, "endpoint": 0x10, "process_n": 1, "create_seen": True, "created_ns": 5, "first_ns": 5, "closed_ns": 3 << 20},
    {"n": 2, "endpoint": 0x20, "process_n": 1, "first_ns": 100},
    {"n": 3, "endpoint": 0x30, "first_ns": 100},
]
SEND, RECV, CONNECT = 2, 3, 0
COMPLETED, FAILED, SENT, IN_FLIGHT = 0, 1, 4, 8


@pytest.fixture
def roll_up(tmp_path: Path) -> RollUp:
    folder = TraceFolder(tmp_path)
    folder.make()
    number = iter(range(1_000_000))

    def run(rows: Mapping[str, Sequence[Row]], *, first_ns: int = 0, few: int = 0) -> dict[str, list[dict[str, object]]]:
        with TraceWriter(folder, f"{next(number):012x}") as writer:
            filled: Rows = {table: [*rows_from(table, lines)] for table, lines in rows.items()}
            writer.write(filled)
            made: dict[str, list[dict[str, object]]] = {"socket_rollup": [], "heap_rollup": []}
            with rollups.SocketRollups(few=few) as sockets, heap_rollups.HeapRollups() as heaps:
                sockets.take(filled)
                heaps.take(filled)
                for resizes in resizes_with_heap(writer.connection):
                    heaps.take(resizes)
                for piece in chain(sockets.finish(first_ns=first_ns), heaps.finish()):
                    for table, lines in piece.items():
                        made[table] += [dict(zip(ROW_COLUMNS[table], line, strict=True)) for line in unfolded(lines)]
            return made

    return run


def pick(rows: Sequence[Row], level: int, scope: str, scope_n: int, *names: str) -> list[tuple[object, ...]]:
    found = [r for r in rows if (r["level"], r["scope"], r["scope_n"]) == (level, scope, scope_n)]
    return sorted(tuple(r[name] for name in ("bucket", *names)) for r in found)


def test_an_operation_counts_where_it_completes_and_is_in_flight_until_it_ends(roll_up: RollUp) -> None:
    operation = {
        "socket_n": 1, "kind": SEND, "outcome": COMPLETED, "bytes": 70, "posted_ns": 10, "completed_ns": (2 << 20) + 1,
        "end_ns": (2 << 20) + 1,
    }  # fmt: skip
    made = roll_up({"socket": SOCKETS, "operation": [operation]})["socket_rollup"]

    assert pick(made, 20, "socket", 1, "posted", "ended", "sends", "bytes_sent", "in_flight_min", "in_flight_max", "in_flight_end") == [
        (0, 1, 0, 0, 0, 0, 1, 1),
        (2, 0, 1, 1, 70, 0, 1, 0),
        (3, 0, 0, 0, 0, 0, 0, 0),  # closed here
    ]
    assert pick(made, 24, "trace", 0, "sends", "opened", "closed", "in_flight_max") == [(0, 1, 1, 1, 1)]
    assert pick(made, 36, "process", 1, "bytes_sent", "receives") == [(0, 70, 0)]
    assert pick(made, 36, "process", 2, "bytes_sent") == []


def test_what_was_posted_before_the_trace_is_in_flight_from_its_start(roll_up: RollUp) -> None:
    def ended(socket: int, completed_event: int) -> Row:
        return {"socket_n": socket, "kind": RECV, "outcome": COMPLETED, "bytes": 1, "completed_ns": 5 << 20, "end_ns": 5 << 20,
                "completed_event": completed_event}  # fmt: skip

    made = roll_up({"socket": SOCKETS, "operation": [ended(2, 1004), ended(1, 1004), ended(3, 25)]})["socket_rollup"]

    assert pick(made, 20, "socket", 2, "in_flight_end", "in_flight_max") == [(0, 1, 1), (5, 0, 1)]
    assert pick(made, 20, "socket", 1, "in_flight_max")[-1] == (5, 0)  # its socket began later: no start is known
    assert pick(made, 20, "socket", 3, "in_flight_max") == [(5, 0)]  # no event says when such a send was posted


def test_an_operation_of_no_length_is_never_in_flight(roll_up: RollUp) -> None:
    sent = {"socket_n": 1, "kind": SEND, "outcome": SENT, "bytes": 9, "posted_ns": 50, "end_ns": 50}
    follows = {"socket_n": 1, "kind": RECV, "outcome": COMPLETED, "bytes": 1, "posted_ns": 40, "completed_ns": 50, "end_ns": 50}
    again = {"socket_n": 1, "kind": RECV, "outcome": IN_FLIGHT, "posted_ns": 50}
    made = roll_up({"socket": SOCKETS, "operation": [sent, follows, again]})["socket_rollup"]

    assert pick(made, 20, "socket", 1, "in_flight_min", "in_flight_max", "in_flight_end", "bytes_sent", "posted", "ended")[0] == (
        0, 0, 1, 1, 9, 3, 2,
    )  # fmt: skip


def test_errors_leave_would_block_out(roll_up: RollUp) -> None:
    def failed(status: int) -> Row:
        return {"socket_n": 1, "kind": RECV, "outcome": FAILED, "status": status, "posted_ns": 1, "completed_ns": 2, "end_ns": 2}

    made = roll_up({"socket": SOCKETS, "operation": [failed(0xC00000A3), failed(0xC000020D)]})["socket_rollup"]

    assert pick(made, 36, "socket", 1, "errors", "receives") == [(0, 1, 0)]


def test_a_short_peak_of_the_heap_is_kept_on_every_level(roll_up: RollUp) -> None:
    heap = [{"n": 7, "process_n": 4, "handle": 0x1000}]
    blocks = [
        {"process_n": 4, "heap_n": 7, "address": 1, "size": 100, "size_at_open": 100, "first_ns": 1, "first_seq": 1},
        {
            "process_n": 4,
            "heap_n": 7,
            "address": 2,
            "size": 9000,
            "size_at_open": 9000,
            "first_ns": 10,
            "first_seq": 2,
            "end_ns": 11,
            "end_seq": 3,
        },
        {"process_n": 4, "heap_n": 7, "address": 3, "size": 60, "size_at_open": 40, "first_ns": 1 << 37, "first_seq": 4},
    ]
    resize = [{"allocation_n": 3, "t_ns": (1 << 37) + 5, "seq": 6, "size": 60, "old_size": 40}]
    made = roll_up({"heap": heap, "allocation": blocks, "resize": resize})["heap_rollup"]

    for level in LEVELS:
        assert pick(made, level, "process", 4, "bytes_start", "bytes_end", "bytes_min", "bytes_max", "allocs", "frees", "count_end") == [
            (0, 0, 100, 0, 9100, 2, 1, 1),
            ((1 << 37) >> level, 100, 160, 100, 160, 1, 0, 2),
        ]
    assert pick(made, 36, "heap", 7, "alloc_bytes", "free_bytes", "count_max") == [(0, 9100, 9000, 2), (2, 60, 0, 2)]


def test_one_record_is_one_moment(roll_up: RollUp) -> None:
    heap = [{"n": 1, "process_n": 1, "handle": 0x1000}]
    moved = [
        {
            "process_n": 1,
            "heap_n": 1,
            "address": 1,
            "size": 40,
            "size_at_open": 40,
            "first_ns": 0,
            "first_seq": 1,
            "end_ns": 9,
            "end_seq": 2,
        },
        {"process_n": 1, "heap_n": 1, "address": 2, "size": 30, "size_at_open": 30, "first_ns": 9, "first_seq": 2},
    ]
    made = roll_up({"heap": heap, "allocation": moved})["heap_rollup"]

    assert pick(made, 20, "process", 1, "bytes_max", "bytes_end", "count_max") == [(0, 40, 30, 1)]


def test_a_socket_with_few_operations_has_no_buckets_of_its_own(roll_up: RollUp) -> None:
    operations = [{"socket_n": n, "kind": SEND, "bytes": 5, "posted_ns": 9, "completed_ns": 9, "end_ns": 9} for n in (1, 2, 2)]
    made = roll_up({"socket": SOCKETS, "operation": operations}, few=1)["socket_rollup"]

    assert {r["scope_n"] for r in made if r["scope"] == "socket"} == {2}
    assert pick(made, 36, "socket", 2, "sends", "bytes_sent") == [(0, 2, 10)]
    assert pick(made, 36, "process", 1, "sends", "bytes_sent", "opened", "closed") == [(0, 3, 15, 1, 1)]
    assert pick(made, 36, "trace", 0, "sends", "bytes_sent") == [(0, 3, 15)]


TIMES = st.integers(0, 40 << 20)
LIVES = st.lists(st.tuples(st.integers(1, 3), TIMES, st.none() | st.integers(0, 20 << 20), st.integers(0, 500)), max_size=40)


def operations_of(lives: Sequence[tuple[int, int, int | None, int]]) -> list[Row]:
    return [
        {
            "socket_n": socket, "kind": RECV, "posted_ns": posted, "bytes": size if lasts is not None else 0,
            "outcome": IN_FLIGHT if lasts is None else COMPLETED, "completed_ns": None if lasts is None else posted + lasts,
            "end_ns": None if lasts is None else posted + lasts,
        }
        for socket, posted, lasts, size in lives
    ]  # fmt: skip


def in_a_block(rows: Sequence[tuple[object, ...]]) -> Lines:
    """Tuples of numbers as a model hands them on in columns."""
    if not rows:
        return []
    columns = {
        name: np.ma.masked_array([0 if v is None else v for v in values], [v is None for v in values])
        for name, values in zip(ROW_COLUMNS["operation"], zip(*rows, strict=True), strict=True)
    }
    return [block_of("operation", columns, count=len(rows))]


@given(lives=LIVES, stretch=st.sampled_from([2, 7, 1000]), cut=st.integers(0, 40))
@settings(max_examples=40, deadline=None)
def test_buckets_equal_a_slow_count(lives: list[tuple[int, int, int | None, int]], stretch: int, cut: int) -> None:
    operations = rows_from("operation", operations_of(lives))
    with rollups.SocketRollups(few=0, stretch=stretch) as counted:
        counted.take({"operation": [*operations[: cut % 41]]})
        counted.take({"operation": in_a_block(operations[cut % 41 :]), "socket": [*rows_from("socket", SOCKETS)]})
        made = [
            dict(zip(ROW_COLUMNS["socket_rollup"], line, strict=True))
            for piece in counted.finish(first_ns=0)
            for line in unfolded(piece["socket_rollup"])
        ]
    for level in LEVELS:
        assert slow(lives, level) == {
            (r["scope_n"], r["bucket"]): (r["bytes_received"], r["in_flight_min"], r["in_flight_max"], r["in_flight_end"])
            for r in made
            if (r["level"], r["scope"]) == (level, "socket") and (r["posted"] or r["ended"])
        }
        assert len({(r["scope"], r["scope_n"], r["bucket"]) for r in made if r["level"] == level}) == len(
            [r for r in made if r["level"] == level]
        )


def slow(lives: list[tuple[int, int, int | None, int]], level: int) -> dict[tuple[int, int], tuple[int, int, int, int]]:
    """(socket, bucket) → bytes received, and fewest, most and last operations in flight, by looking at every moment."""
    moments: dict[tuple[int, int], set[int]] = defaultdict(set)
    received: dict[tuple[int, int], int] = defaultdict(int)
    for socket, posted, lasts, size in lives:
        moments[socket, posted >> level].add(posted)
        if lasts is not None:
            moments[socket, (posted + lasts) >> level].add(posted + lasts)
            received[socket, (posted + lasts) >> level] += size

    def flying(socket: int, at: int) -> int:
        return sum(s == socket and p <= at and (lasts is None or at < p + lasts) for s, p, lasts, _ in lives)

    made = {}
    for (socket, bucket), times in moments.items():
        levels = [flying(socket, min(times) - 1), *(flying(socket, t) for t in sorted(times))]
        made[socket, bucket] = (received[socket, bucket], min(levels), max(levels), levels[-1])
    return made


def test_stretches_come_in_order_and_cut_no_bucket() -> None:
    dtype = np.dtype([("t", "<i8"), ("x", "<i4")])
    times = np.random.default_rng(5).integers(-(1 << 30), 1 << 30, 5000)
    with spool.TimeSpool(dtype, border=20, stretch=700) as timed:
        for i in range(0, 5000, 300):
            piece = np.zeros(min(300, 5000 - i), dtype=dtype)
            piece["t"] = times[i : i + 300]
            timed.add(piece)
        pieces = [(records["t"].copy(), until) for records, until in timed.stretches()]
    assert np.concatenate([t for t, _ in pieces]).tolist() == sorted(times.tolist())
    assert len(pieces) > 4
    for (t, until), (after, _) in pairwise(pieces):
        assert until % (1 << 20) == 0
        assert t.max() < until <= after.min()


@given(lives=LIVES, begin=TIMES)
@settings(max_examples=30, deadline=None)
def test_a_timeline_is_the_same_with_and_without_buckets(
    tmp_path_factory: pytest.TempPathFactory, lives: list[tuple[int, int, int | None, int]], begin: int
) -> None:
    folder = TraceFolder(tmp_path_factory.mktemp("timelines"))
    folder.make()
    timelines = []
    for few in (0, FEW_OPERATIONS):
        with TraceWriter(folder, BUILT_KEY) as writer:
            filled: Rows = {"socket": [*rows_from("socket", SOCKETS)], "operation": [*rows_from("operation", operations_of(lives))]}
            writer.write(filled)
            with rollups.SocketRollups(few=few) as counted:
                counted.take(filled)
                for piece in counted.finish(first_ns=0):
                    writer.write(piece)
            writer.index()
            timelines.append([timeline(writer.connection, socket, begin, begin + (9 << 20)) for socket in (1, 2, 3)])
            own = writer.connection.exec_driver_sql("SELECT count(*) FROM socket_rollup WHERE scope = 'socket'").scalar_one()
            assert bool(own) == bool(lives and not few)
    assert timelines[0] == timelines[1]
