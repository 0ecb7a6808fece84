"""The timeline of a socket as a figure."""

import json

from app.charts.socket_timeline import socket_timeline_figure
from app.format import Address, Status
from app.queries.socket_moments import Moment
from app.queries.socket_page import Phase
from app.queries.socket_timeline import MAX_BARS, BandPoint, BytesPoint, OperationBar, Timeline

SECOND = 1_000_000_000
PHASES = (Phase("open", 0, SECOND), Phase("connected", SECOND, None))


def bar(kind: str, direction: str, from_ns: int | None, to_ns: int | None, **more: object) -> OperationBar:
    known = {
        "link": f"{kind}:0x10@{from_ns if from_ns is not None else to_ns}",
        "outcome": "completed",
        "status": Status(0),
        "bytes": 100,
        "posted_len": 4096,
        "buffer": Address(0x1F0000),
        "space": "user",
        "overlaps": 0,
        "freed": 0,
    }
    return OperationBar(kind=kind, direction=direction, from_ns=from_ns, to_ns=to_ns, **(known | more))  # type: ignore[arg-type]


def timeline(*bars: OperationBar, moments: tuple[Moment, ...] = (), points: tuple[BytesPoint, ...] = ()) -> Timeline:
    return Timeline(0, 10 * SECOND, bars, (), points, moments, False, len(bars))


def trace_named(figure: dict, name: str) -> dict:  # type: ignore[type-arg]  # JSON
    return next(trace for trace in figure["data"] if trace.get("name") == name)


def test_sends_lie_in_the_upper_half_of_a_lane_and_receives_in_the_lower() -> None:
    figure = socket_timeline_figure(
        timeline(
            bar("send", "send", SECOND, 2 * SECOND), bar("recv", "receive", SECOND, 3 * SECOND), bar("connect", "connect", 0, SECOND // 2)
        ),
        PHASES,
    )

    send, receive, connect = (trace_named(figure, name) for name in ("sends ▲", "receives ▼", "connects, accepts ◇"))
    assert (send["base"], send["x"]) == ([1.0], [1.0])
    assert send["y"][0] % 1 == 0.24
    assert receive["y"] == [0.76]
    assert connect["width"] == 0.22
    assert send["marker"]["color"] == "var(--send)"
    assert receive["customdata"][0][0] == "recv:0x10@1000000000"


def test_bars_in_flight_together_have_lanes_of_their_own() -> None:
    sends = [bar("send", "send", start * SECOND, (start + 3) * SECOND) for start in range(4)]
    figure = socket_timeline_figure(timeline(*sends), PHASES)

    assert trace_named(figure, "sends ▲")["y"] == [0.24, 1.24, 2.24, 3.24]


def test_a_bar_too_narrow_for_the_pointer_is_met_through_an_unseen_point() -> None:
    figure = socket_timeline_figure(timeline(bar("send", "send", SECOND, SECOND + 2_000)), ())

    assert trace_named(figure, "sends ▲")["hoverinfo"] == "skip"
    target = trace_named(figure, "sends ▲, narrow")
    assert (target["x"], target["marker"]["opacity"], target["meta"]) == ([1.000001], 0, {"selects": True})
    assert target["customdata"][0][0] == trace_named(figure, "sends ▲")["customdata"][0][0] == "send:0x10@1000000000"


def test_an_operation_in_flight_at_the_end_reaches_it_and_has_an_arrow() -> None:
    figure = socket_timeline_figure(timeline(bar("recv", "receive", SECOND, None, outcome="in_flight")), ())

    receive = trace_named(figure, "receives ▼")
    assert receive["base"][0] + receive["x"][0] == 10.0
    arrow = next(trace for trace in figure["data"] if trace["type"] == "scatter" and trace["marker"]["symbol"] == "triangle-right")
    assert (arrow["x"], arrow["hovertext"]) == ([10.0], ["in flight when the trace ends"])


def test_an_operation_whose_post_is_unknown_is_drawn_at_its_completion_alone() -> None:
    figure = socket_timeline_figure(timeline(bar("recv", "receive", None, 4 * SECOND)), ())

    assert (trace_named(figure, "receives ▼")["base"], trace_named(figure, "receives ▼")["x"]) == ([4.0], [0.0])


def test_overlaps_and_frees_are_hatched() -> None:
    figure = socket_timeline_figure(
        timeline(bar("recv", "receive", SECOND, 2 * SECOND, overlaps=2), bar("send", "send", 0, SECOND, freed=1)), ()
    )

    hatched = trace_named(figure, "overlap, freed in flight")
    assert len(hatched["x"]) == 2
    assert hatched["marker"]["pattern"]["shape"] == "/"
    assert "2 buffer overlaps" in trace_named(figure, "receives ▼")["customdata"][0][1]


def test_a_moment_has_its_own_row_mark_and_exact_time() -> None:
    moments = (Moment("abort", 9_007_199_254, "aborted by the transport, reason 4: transport <b>"), Moment("error", SECOND, "recv failed"))
    figure = socket_timeline_figure(timeline(moments=moments), PHASES)

    abort = trace_named(figure, "aborts")
    assert abort["customdata"][0][0] == "9007199254"
    assert abort["marker"]["symbol"] == "diamond"
    assert abort["text"] == ["reason 4: transport &lt;b&gt;"]
    assert trace_named(figure, "errors")["marker"]["symbol"] == "x-thin-open"


def test_bytes_are_steps_that_run_on_to_the_end() -> None:
    figure = socket_timeline_figure(timeline(points=(BytesPoint(0, 0, 0), BytesPoint(2 * SECOND, 500, 0))), ())

    line = trace_named(figure, "bytes of sends ▲")
    assert (line["x"], line["y"], line["line"]["shape"]) == ([0.0, 2.0, 10.0], [0, 500, 500], "hv")


def test_too_many_operations_become_a_band() -> None:
    band = (BandPoint(0, SECOND, 0, 40, 3), BandPoint(4 * SECOND, 5 * SECOND, 1, 70, 0))
    figure = socket_timeline_figure(Timeline(0, 10 * SECOND, (), band, (), (), True, 90_000), ())

    most, fewest = trace_named(figure, "most"), trace_named(figure, "fewest")
    assert most["x"] == [0.0, 1.0, 4.0, 5.0, 10.0]
    assert most["y"] == [40, 3, 70, 0, 0]
    assert fewest["y"] == [0, 3, 1, 0, 0]
    assert most["fill"] == "tonexty"
    assert not [trace for trace in figure["data"] if str(trace.get("name")).startswith("completed")]


def test_a_band_tells_sends_from_receives() -> None:
    band = (BandPoint(0, SECOND, 0, 40, 3, 30, 7), BandPoint(4 * SECOND, 5 * SECOND, 1, 70, 0, 0, 1_200))
    figure = socket_timeline_figure(Timeline(0, 10 * SECOND, (), band, (), (), True, 90_000), ())

    sends, receives = trace_named(figure, "completed sends ▲"), trace_named(figure, "completed receives ▼")
    assert (sends["x"], sends["width"], sends["y"]) == ([0.5], [1.0], [30])
    assert (receives["x"], receives["y"]) == ([0.5, 4.5], [-7, -1_200])
    assert receives["customdata"][1].startswith("1\u202f200 receives ▼ completed in 1.00 s from +4.")
    assert (sends["marker"]["color"], receives["marker"]["color"]) == ("var(--send)", "var(--receive)")
    axis = figure["layout"][sends["yaxis"].replace("y", "yaxis")]
    assert axis["ticktext"] == ["1\u202f200 ▼", "0", "1\u202f200 ▲"]


def test_a_life_older_than_the_trace_is_hatched_and_an_open_end_has_an_arrow() -> None:
    figure = socket_timeline_figure(timeline(), (Phase("connected", None, None),))

    life = trace_named(figure, "life")
    assert life["marker"]["pattern"]["shape"] == ["/"]
    assert life["customdata"] == ["connected since before the trace to the end of the trace"]


def test_a_full_chart_stays_below_its_limit() -> None:
    bars = [
        bar("recvmsg", "receive", i * 12_345_678, i * 12_345_678 + 9_999_999_999, overlaps=1, status=Status(0xC000020D), outcome="failed")
        for i in range(MAX_BARS)
    ]
    moments = tuple(Moment(what, i * 1_000_003, "x" * 60) for what in ("arrival", "option", "drop", "abort", "error") for i in range(400))
    points = tuple(BytesPoint(i * 1_000_003, i * 99_999, i * 88_888) for i in range(MAX_BARS))
    whole = Timeline(0, 10 * SECOND, tuple(bars), (), points, moments, False, len(bars))

    assert len(json.dumps(socket_timeline_figure(whole, PHASES), separators=(",", ":"), ensure_ascii=False).encode()) < 500_000
