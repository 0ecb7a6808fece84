"""What all charts share: exact time, labels, text that stays text."""

import pytest

from app.charts.figure import Row, TimeAxis, layout, plain, taint_trace
from app.charts.lanes import pack


def test_a_long_range_counts_seconds_since_the_trace_began() -> None:
    axis = TimeAxis.over(0, 60_000_000_000)

    assert (axis.base_ns, axis.unit, axis.title) == (0, "s", "seconds since the trace began")
    assert axis.at(1_500_000_000) == 1.5


def test_a_short_range_late_in_the_trace_counts_from_a_round_moment_before_it() -> None:
    axis = TimeAxis.over(26_987_500_000, 27_087_500_000)

    assert (axis.base_ns, axis.unit, axis.title) == (26_900_000_000, "ms", "milliseconds since +26.900\u202f000 s")
    assert axis.at(27_000_000_000) == 100.0


def test_a_short_range_at_the_start_counts_from_the_start() -> None:
    assert TimeAxis.over(0, 300_000).title == "microseconds since the trace began"


@pytest.mark.parametrize("late_ns", [0, 86_400_000_000_000, 9_000_000_000_000_000])
@pytest.mark.parametrize("width_ns", [1, 999, 10_000, 5_000_000, 2_000_000_000])
def test_positions_keep_the_nanosecond(late_ns: int, width_ns: int) -> None:
    axis = TimeAxis.over(late_ns, late_ns + width_ns)

    for ns in (late_ns, late_ns + width_ns // 3, late_ns + width_ns):
        assert axis.base_ns + round(axis.at(ns) * axis.unit_ns) == ns


def test_exact_times_travel_as_text() -> None:
    meta = TimeAxis.over(9_007_199_254_740_993, 9_007_199_254_741_993).meta()

    assert meta["from_ns"] == "9007199254740993"
    assert all(isinstance(value, str) for value in meta.values())


def test_an_empty_range_is_a_nanosecond_wide() -> None:
    assert TimeAxis.over(5, 5).to_ns == 6


def test_plots_stand_above_each_other_and_share_the_time() -> None:
    made = layout(TimeAxis.over(0, 10), [Row({"title": {"text": "a"}}, 100), Row({}, 50)])

    assert made["yaxis"]["domain"] == [0.3976, 1.0]
    assert made["yaxis2"]["domain"] == [0.0, 0.3012]
    assert made["xaxis"]["anchor"] == "y2"
    assert made["height"] == 16 + 46 + 100 + 50 + 16


def test_markup_in_a_name_is_shown_not_read() -> None:
    assert plain('<a href="https://x">&amp;') == '&lt;a href="https://x"&gt;&amp;amp;'


def test_lost_time_is_hatched_over_its_range_and_at_least_visible() -> None:
    trace = taint_trace(TimeAxis.over(0, 3_000_000_000), [(1_000_000_000, 1_000_000_001, "<lost>"), (None, None, "all")], y=(0, 1))

    assert trace["x"][:2] == [1.0, 1.01]
    assert trace["x"][6:8] == [0.0, 3.0]
    assert trace["text"][0] == "&lt;lost&gt;"
    assert trace["fillpattern"]["shape"] == "/"


def test_intervals_that_overlap_never_share_a_lane() -> None:
    assert pack([(0, 10), (1, 3), (2, 4), (3, 5), (10, 12)]) == [0, 1, 2, 1, 0]


def test_a_gap_keeps_short_intervals_apart() -> None:
    assert pack([(0, 1), (1, 2), (5, 6)], gap=2) == [0, 1, 0]


def test_an_end_before_its_start_takes_no_room() -> None:
    assert pack([(5, 3), (5, 9)]) == [0, 0]
