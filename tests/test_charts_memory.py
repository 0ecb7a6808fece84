"""The pictures of memory in use: overlaps and frees in flight."""

from app.charts.memory import Area, Cut, memory_figure

MS = 1_000_000


def areas(shared: int = 0x800) -> list[Area]:
    first = Area("send", "first send", 0x10000, 0x20000, 100 * MS, 160 * MS, "send")
    second = Area("receive", "second recv", 0x20000 - shared, 0x21000, 120 * MS, 175 * MS, "recv")
    both = Area("shared", "shared", 0x20000 - shared, 0x20000, 120 * MS, 160 * MS, "shared")
    return [first, second, both]


def test_the_shared_bytes_are_hatched_where_addresses_and_times_intersect() -> None:
    figure = memory_figure(areas())

    inside = next(trace for trace in figure["data"] if trace["name"] == "shared" and "fillpattern" in trace)
    meta = figure["layout"]["meta"]
    assert inside["fillpattern"]["shape"] == "/"
    assert [int(meta["base_ns"]) + round(x * int(meta["unit_ns"])) for x in inside["x"][:2]] == [120 * MS, 160 * MS]
    assert inside["y"][2] - inside["y"][1] == 0x800


def test_addresses_are_written_in_full_at_the_edge() -> None:
    high = 0xFFFF_FFFF_FFFF_0000
    figure = memory_figure([Area("send", "a", high, high + 0x100, 0, 10, ""), Area("receive", "b", high + 0x80, high + 0x180, 5, 15, "")])

    assert figure["layout"]["yaxis"]["ticktext"] == ["0xffffffffffff0000", "0xffffffffffff0080", "0xffffffffffff0100", "0xffffffffffff0180"]
    assert max(figure["layout"]["yaxis"]["tickvals"]) < 0x1000


def test_a_small_shared_part_is_brought_near_and_what_is_cut_says_so() -> None:
    names = [label["text"] for label in memory_figure(areas())["layout"]["annotations"]]
    assert names == ["first send (goes on)", "second recv", "shared"]


def test_a_large_shared_part_needs_no_cut() -> None:
    names = [label["text"] for label in memory_figure(areas(shared=0x8000))["layout"]["annotations"]]
    assert names == ["first send", "second recv", "shared"]


def test_a_free_is_a_line_across_and_a_far_one_is_left_out() -> None:
    block = Area("block", "heap block", 0x10000, 0x22000, None, 150 * MS, "")
    figure = memory_figure([block, *areas()], [Cut(150 * MS, "freed"), Cut(90_000 * MS, "moved")])

    lines = [trace["name"] for trace in figure["data"] if trace["name"] in ("freed", "moved")]
    assert lines == ["freed"]


def test_unknown_ends_are_dashed() -> None:
    figure = memory_figure([Area("receive", "recv", 0, 100, 0, None, "")])

    edge = next(trace for trace in figure["data"] if trace.get("line", {}).get("dash"))
    assert edge["line"]["dash"] == "dash"


def test_names_are_text() -> None:
    figure = memory_figure([Area("receive", "<i>x", 0, 100, 0, 10, "<b>")])
    assert figure["layout"]["annotations"][0]["text"] == "&lt;i&gt;x"
