"""Charts of traces so long that even the coarsest buckets are many: as many points as of others, and the same sums."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.queries import activity, heap_timeline, socket_timeline
from app.queries.activity import activity as activity_of
from app.queries.heap_timeline import HeapScope
from app.queries.resolution import LEVELS, joined
from collector.store.engine import TraceFolder
from tests.build.database import BUILT_KEY, built_database

TOP = LEVELS[-1]
BUCKETS = 7001
"""Five and a half days of the coarsest buckets, in every one of which something happens."""
END = (BUCKETS << TOP) - 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> TraceFolder:
    buckets = [
        {"scope": scope, "scope_n": n, "level": TOP, "bucket": bucket, "opened": bucket % 3, "closed": bucket % 2, "posted": 2, "ended": 2,
         "sends": 1, "receives": 1, "bytes_sent": bucket, "bytes_received": 1, "errors": bucket % 5 == 0, "in_flight_min": bucket % 7,
         "in_flight_max": 10 + bucket % 11, "in_flight_end": 5}
        for scope, n in (("trace", 0), ("socket", 1)) for bucket in range(BUCKETS)
    ]  # fmt: skip
    heap = [
        {"scope": "process", "scope_n": 1, "level": TOP, "bucket": bucket, "bytes_start": bucket, "bytes_end": bucket + 1,
         "bytes_min": -bucket, "bytes_max": 3 * bucket, "count_end": bucket, "count_max": bucket + 2,
         "allocs": 2, "frees": 1, "alloc_bytes": 8, "free_bytes": 4}
        for bucket in range(BUCKETS)
    ]  # fmt: skip
    return built_database(
        tmp_path_factory.mktemp("long"),
        {
            "process": [{"pid": 4120}],
            "socket": [{"endpoint": 0xE1, "first_ns": 5, "last_ns": END, "end": "open_at_end", "process_n": 1}],
            "socket_rollup": [{key: int(value) if isinstance(value, bool) else value for key, value in row.items()} for row in buckets],
            "heap_rollup": heap,
        },
    )


def test_the_activity_of_days_has_few_points_and_all_sums(folder: TraceFolder) -> None:
    with folder.trace(BUILT_KEY).connect() as db:
        found = activity_of(db, 0, END)
    assert 100 < len(found.points) <= activity.MAX_BUCKETS + 1
    assert len(found.heap) <= activity.MAX_BUCKETS + 2
    assert sum(point.posted for point in found.points) == 2 * BUCKETS
    assert sum(point.bytes_sent for point in found.points) == sum(range(BUCKETS))
    assert sum(point.errors for point in found.points) == len(range(0, BUCKETS, 5))
    assert {point.in_flight_max for point in found.points} == {20}
    assert found.points[-1].open == 1 + sum(bucket % 3 - bucket % 2 for bucket in range(BUCKETS)), "one is older than the trace"
    assert found.heap[-1].bytes == BUCKETS
    assert all(first.to_ns <= later.from_ns for first, later in zip(found.points, found.points[1:], strict=False))
    assert found.points[0].from_ns == 0
    assert found.points[-1].to_ns == BUCKETS << TOP


def test_the_heap_of_days_has_few_buckets_and_all_sums(folder: TraceFolder) -> None:
    with folder.trace(BUILT_KEY).connect() as db:
        found = heap_timeline.heap_timeline(db, HeapScope("process", 1, 1), 0, END)
    assert 100 < len(found.buckets) <= heap_timeline.MAX_BUCKETS + 1
    assert sum(bucket.allocs for bucket in found.buckets) == 2 * BUCKETS
    assert min(bucket.bytes_min for bucket in found.buckets) == -(BUCKETS - 1)
    assert max(bucket.bytes_max for bucket in found.buckets) == 3 * (BUCKETS - 1)
    assert (found.buckets[0].bytes_start, found.buckets[-1].bytes_end) == (0, BUCKETS)
    assert found.peak is not None
    assert found.peak.bytes == 3 * (BUCKETS - 1)


def test_the_band_of_a_socket_of_days_has_few_points(folder: TraceFolder) -> None:
    with folder.trace(BUILT_KEY).connect() as db:
        points, posted = socket_timeline._band(db, 1, 0, END, TOP)
        counted = socket_timeline._bytes_by_buckets(db, 1, 0, END, TOP)
        errors = socket_timeline._errors_by_buckets(db, 1, 0, END, TOP)
    assert 100 < len(points) <= socket_timeline.MAX_BUCKETS + 2
    assert posted == 2 * BUCKETS
    assert sum(point.sends for point in points) == BUCKETS
    assert ({point.low for point in points}, {point.high for point in points}) == ({0}, {20})
    assert len(counted) <= socket_timeline.MAX_BUCKETS + 2
    assert counted[-1].sent == sum(range(BUCKETS))
    assert len(errors) <= socket_timeline.MAX_BUCKETS + 2
    assert sum(moment.count or 0 for moment in errors) == len(range(0, BUCKETS, 5))


@given(st.lists(st.integers(0, 1 << 62), max_size=200), st.integers(1, 50))
def test_points_of_any_times_are_few_and_lose_nothing(times: list[int], most: int) -> None:
    points = [(at >> TOP << TOP, 1) for at in sorted(times)]
    end = 1 << 62
    found = joined(points, 0, end, most=most, at=lambda point: point[0], join=lambda first, later: (first[0], first[1] + later[1]))
    assert len(found) <= most + 1
    assert sum(count for _, count in found) == len(times)
    assert found == sorted(found)


def test_few_buckets_are_left_as_they_are() -> None:
    points = [(n << TOP, n) for n in range(20)]
    assert joined(points, 0, 20 << TOP, most=21, at=lambda point: point[0], join=lambda first, _: first) == points
