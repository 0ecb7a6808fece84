"""Activity over time and the heap timelines as figures; and that plotly knows every figure we make."""

import json
import re
from typing import Any

import plotly.graph_objects as go
import pytest

from app.charts.activity import activity_figure
from app.charts.figure import Figure
from app.charts.heap_timeline import heap_overview_figure, heap_timeline_figure
from app.charts.memory import Area, Cut, memory_figure
from app.charts.socket_timeline import socket_timeline_figure
from app.format import Address, Status
from app.queries.activity import MAX_BUCKETS, Activity, ActivityPoint, HeapPoint
from app.queries.heap_gauges import GaugePoint
from app.queries.heap_timeline import HeapBucket, HeapStep, HeapTimeline
from app.queries.socket_moments import Moment
from app.queries.socket_page import Phase
from app.queries.socket_timeline import BandPoint, BytesPoint, OperationBar, Timeline

SECOND = 1_000_000_000
LOST = [(2 * SECOND, 3 * SECOND, "3 events lost")]


def point(second: int, **more: int) -> ActivityPoint:
    known = {"open": 1, "posted": 0, "bytes_sent": 0, "bytes_received": 0, "errors": 0, "aborts": 0, "in_flight_max": 0}
    return ActivityPoint(second * SECOND, (second + 1) * SECOND, **(known | more))


def activity(*points: ActivityPoint, heap: tuple[HeapPoint, ...] = ()) -> Activity:
    return Activity(0, 10 * SECOND, 30, 1, points, heap)


def named(figure: Figure, name: str) -> dict[str, Any]:  # Any: JSON
    found: dict[str, Any] = next(trace for trace in figure["data"] if trace.get("name") == name)
    return found


# ---------------------------------------------------------------------------------------------------- activity


def test_bytes_sent_rise_and_bytes_received_fall_in_bars_as_wide_as_their_bucket() -> None:
    figure = activity_figure(activity(point(1, bytes_sent=100, bytes_received=40), point(4, bytes_received=900)))

    assert (named(figure, "sent")["x"], named(figure, "sent")["y"], named(figure, "sent")["width"]) == ([1.5], [100], [1.0])
    assert (named(figure, "received")["x"], named(figure, "received")["y"]) == ([1.5, 4.5], [-40, -900])
    assert figure["layout"]["yaxis"]["ticktext"] == ["▲ 100 B", "0", "▼ 900 B"]


def test_open_sockets_and_live_heap_are_steps() -> None:
    figure = activity_figure(activity(point(1, open=4), point(5, open=2), heap=(HeapPoint(0, 10), HeapPoint(6 * SECOND, 70))))

    assert (named(figure, "sockets open")["x"], named(figure, "sockets open")["y"]) == ([0.0, 2.0, 6.0, 10.0], [1, 4, 2, 2])
    assert (named(figure, "live heap")["x"], named(figure, "live heap")["y"]) == ([0.0, 0.0, 6.0, 10.0], [10, 10, 70, 70])


def test_errors_and_aborts_are_marks_of_their_own() -> None:
    figure = activity_figure(activity(point(1, errors=3), point(7, aborts=1)))

    assert named(figure, "errors")["marker"]["symbol"] == "x-thin-open"
    assert named(figure, "aborts")["x"] == [7.5]
    assert named(figure, "errors")["customdata"][0] == ["1000000000", "3 failed operations in 1.00 s from +1.000\u202f000 s"]


def test_what_the_trace_does_not_tell_has_no_row() -> None:
    figure = activity_figure(Activity(0, 10 * SECOND, 30, 0, (point(1, open=0, posted=5),), ()))

    assert [trace["name"] for trace in figure["data"]] == ["operations posted"]


def test_lost_data_is_hatched_above_all_rows() -> None:
    figure = activity_figure(activity(point(1, posted=5)), LOST)

    assert named(figure, "data lost")["x"][:2] == [2.0, 3.0]
    assert figure["layout"]["yaxis"]["ticktext"] == ["data lost"]
    assert named(figure, "operations posted")["yaxis"] == "y3"


# ---------------------------------------------------------------------------------------------------- heap


def bucket(second: int, **more: int) -> HeapBucket:
    known = {"bytes_start": 0, "bytes_end": 50, "bytes_min": 0, "bytes_max": 900, "count_end": 1, "count_max": 9, "allocs": 9, "frees": 8,
             "alloc_bytes": 900, "free_bytes": 850}  # fmt: skip
    return HeapBucket(second * SECOND, (second + 1) * SECOND, **(known | more))


STEPS = HeapTimeline(0, 10 * SECOND, 20, 0, 0, (HeapStep(SECOND, 64, 1), HeapStep(4 * SECOND, 0, 0)), (bucket(1),), HeapStep(SECOND, 64, 1))
BUCKETS = HeapTimeline(0, 10 * SECOND, 28, 20, 2, None, (bucket(1), bucket(4, bytes_end=70)), HeapStep(SECOND, 900, 9))


def test_the_exact_heap_is_a_step_line_with_its_peak_marked() -> None:
    figure = heap_timeline_figure(STEPS)

    assert (named(figure, "live bytes")["x"], named(figure, "live bytes")["y"]) == ([0.0, 1.0, 4.0, 10.0], [0, 64, 0, 0])
    assert (named(figure, "peak")["x"], named(figure, "peak")["text"]) == ([1.0], ["peak 64 B"])
    assert named(figure, "live blocks")["yaxis"] == "y2"


def test_buckets_keep_the_peak_between_their_ends() -> None:
    figure = heap_timeline_figure(BUCKETS)

    assert named(figure, "most")["y"] == [20, 900, 50, 900, 70, 70]
    assert named(figure, "least")["y"] == [20, 0, 50, 0, 70, 70]
    assert named(figure, "live bytes")["y"] == [20, 20, 50, 50, 70, 70]


def test_blocks_come_upwards_and_go_downwards() -> None:
    figure = heap_timeline_figure(BUCKETS)

    assert named(figure, "allocated")["y"] == [9, 9]
    assert named(figure, "released")["y"] == [-8, -8]


def test_what_the_allocator_reports_stands_beside_the_blocks() -> None:
    figure = heap_timeline_figure(
        STEPS, [GaugePoint(-5, "create", 4096, 65536, None, None), GaugePoint(2 * SECOND, "expand", 8192, 65536, None, None)]
    )

    assert (named(figure, "committed")["x"], named(figure, "committed")["y"]) == ([0.0, 2.0, 10.0], [4096, 8192, 8192])
    assert named(figure, "reserved")["line"]["dash"] == "dot"


def test_reports_end_where_the_heap_does_and_reserved_memory_hides_no_blocks() -> None:
    near = heap_timeline_figure(STEPS, [GaugePoint(0, "create", 4096, 8192, None, None)], gone_ns=4 * SECOND)
    far = heap_timeline_figure(STEPS, [GaugePoint(0, "create", 4096, 1 << 22, None, None)])

    assert named(near, "committed")["x"] == [0.0, 4.0]
    assert "range" not in near["layout"]["yaxis"]
    bottom, top = far["layout"]["yaxis"]["range"]
    assert (bottom < 0, 4096 < top < 5000) == (True, True)


def test_processes_stand_above_each_other() -> None:
    figure = heap_overview_figure([("a.exe 1", STEPS), ("<b>.exe", BUCKETS)])

    assert [label["text"] for label in figure["layout"]["annotations"]] == ["a.exe 1", "&lt;b&gt;.exe"]
    assert named(figure, "&lt;b&gt;.exe")["yaxis"] == "y2"


# ---------------------------------------------------------------------------------------------------- all figures


def operation(kind: str, direction: str, **more: object) -> OperationBar:
    known: dict[str, Any] = {
        "link": "x", "outcome": "failed", "status": Status(0xC000020D), "bytes": 1, "posted_len": 2, "buffer": Address(0x10000),
        "space": "user", "from_ns": 0, "to_ns": SECOND, "overlaps": 1, "freed": 1,
    }  # fmt: skip
    return OperationBar(kind=kind, direction=direction, **(known | more))


MOMENTS = tuple(Moment(what, SECOND, "<i>") for what in ("error", "abort", "disconnect", "drop", "arrival", "request", "backlog", "option"))
BARS = (
    operation("send", "send"),
    operation("recv", "receive", to_ns=None),
    operation("connect", "connect", from_ns=None, outcome="completed"),
)
FIGURES = {
    "activity": activity_figure(
        activity(point(1, bytes_sent=1, bytes_received=1, errors=1, aborts=1, posted=1), heap=(HeapPoint(0, 1),)), LOST
    ),
    "nothing": activity_figure(Activity(0, 1, 20, 0, (), ())),
    "heap": heap_timeline_figure(STEPS, [GaugePoint(0, "create", 1, 2, 3, 4)], LOST),
    "heap buckets": heap_timeline_figure(BUCKETS, (), LOST),
    "heaps": heap_overview_figure([("a", STEPS), ("b", BUCKETS)], LOST),
    "memory": memory_figure(
        [Area("block", "b", 0, 99, None, SECOND, ""), Area("send", "s", 0, 9, 0, 9, ""), Area("shared", "x", 0, 5, 0, 5, "")],
        [Cut(7, "freed")],
    ),
    "socket": socket_timeline_figure(
        Timeline(0, 2 * SECOND, BARS, (), (BytesPoint(0, 1, 1),), MOMENTS, False, 3),
        (Phase("open", None, SECOND), Phase("closing", SECOND, None)),
        LOST,
    ),
    "band": socket_timeline_figure(Timeline(0, 2 * SECOND, (), (BandPoint(0, SECOND, 0, 5, 1),), (), (), True, 9), (), LOST),
}


@pytest.mark.parametrize("name", FIGURES)
def test_plotly_knows_every_part_of_a_figure(name: str) -> None:
    go.Figure(FIGURES[name])


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_has_markup_that_needs_a_style(name: str) -> None:
    """plotly turns <b>, <span style> and their like into style attributes, which our pages forbid; a line break needs none."""
    tags = set(re.findall(r"<(\w+)", json.dumps(FIGURES[name])))
    assert tags <= {"br", "extra"}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_plain_json_with_colours_by_meaning(name: str) -> None:
    text = json.dumps(FIGURES[name], allow_nan=False)
    assert not re.search(r"#[0-9A-Fa-f]{6}", text)
    assert set(re.findall(r"var\((--[a-z-]+)\)", text)) <= {
        "--send", "--receive", "--connect", "--heap", "--error", "--overlap", "--unknown", "--text", "--quiet", "--line", "--ground",
        "--mono",
    }  # fmt: skip


def test_a_full_activity_chart_is_small() -> None:
    points = tuple(point(i, bytes_sent=i, bytes_received=i, errors=1, aborts=1, posted=9) for i in range(MAX_BUCKETS))
    figure = activity_figure(Activity(0, MAX_BUCKETS * SECOND, 30, 0, points, tuple(HeapPoint(i * SECOND, i) for i in range(MAX_BUCKETS))))

    assert len(json.dumps(figure, ensure_ascii=False).encode()) < 300_000
