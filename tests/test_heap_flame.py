"""What a process holds, by calls: the tree, its limits, its picture and its page."""

from collections.abc import Iterable

import plotly.graph_objects as go

from app.charts.icicle import icicle_figure
from app.format import time_span
from app.queries.heap_flame import MAX_DEPTH, MAX_NODES, OTHERS, CallNode, tree_of
from tests.build import Trace, heap, system
from tests.build.answers import as_json, figure_in
from tests.build.imported import ImportTrace
from tests.build.served import served

APP, NTDLL = 0x7FF6_A000_0000, 0x7FF8_B000_0000


def held(size: int, blocks: int = 1) -> tuple[int, int]:
    return size, blocks


def tree(stacks: Iterable[tuple[list[str], tuple[int, int]]]) -> CallNode:
    return tree_of((path, size, blocks, number) for number, (path, (size, blocks)) in enumerate(stacks))


def shape(node: CallNode) -> list[tuple[int, str, int]]:
    return [(depth, one.name, one.bytes) for depth, one in node.walk()]


def test_stacks_that_share_their_callers_share_their_nodes() -> None:
    root = tree([(["main", "load", "alloc"], held(100)), (["main", "draw"], held(300, 3)), (["main", "load"], held(50))])

    assert shape(root) == [(0, "all", 450), (1, "main", 450), (2, "draw", 300), (2, "load", 150), (3, "alloc", 100)]
    load = root.children["main"].children["load"]
    assert (load.self_bytes, load.self_blocks, load.blocks) == (50, 1, 2)


def test_recursion_stays_as_deep_as_it_was() -> None:
    assert [name for _, name, _ in shape(tree([(["f"] * 40, held(1))]))] == ["all"] + ["f"] * 40


def test_each_node_holds_its_own_and_its_childrens() -> None:
    root = tree([([f"m{i % 7}", f"f{i % 13}", f"g{i}"], held(i + 1)) for i in range(900)])

    for _, node in root.walk():
        assert node.bytes == node.self_bytes + sum(child.bytes for child in node.children.values())
        assert node.blocks == node.self_blocks + sum(child.blocks for child in node.children.values())
    assert root.bytes == sum(range(1, 901))


def test_nodes_too_small_to_see_are_one_in_their_caller() -> None:
    root = tree([(["main", "big"], held(1_000_000, 5_000)), (["main", "tiny", "deep"], held(10)), (["main", "small"], held(7, 2))])

    assert list(root.children["main"].children) == ["big", OTHERS]
    others = root.children["main"].children[OTHERS]
    assert (others.bytes, others.blocks, others.self_bytes, others.stacks, others.stack) == (17, 3, 17, 2, 1)
    assert root.children["main"].self_bytes == 0


def test_the_tree_has_a_greatest_size() -> None:
    root = tree([([f"a{i}", f"b{i}", f"c{i}"], held(1_000_000 + i)) for i in range(900)])

    assert MAX_NODES <= sum(1 for _ in root.walk()) <= 2 * MAX_NODES
    assert root.bytes == sum(1_000_000 + i for i in range(900))


def test_the_icicle_gives_each_frame_its_width() -> None:
    figure = icicle_figure(tree([(["<main>", "load"], held(100)), (["<main>", "draw"], held(300, 2))]), by="bytes")
    trace = figure["data"][0]

    assert trace["labels"] == ["all", "&lt;main&gt;", "draw", "load"]
    assert trace["parents"] == ["", "0", "1", "1"]
    assert (trace["values"], trace["branchvalues"]) == ([400, 400, 300, 100], "total")
    assert icicle_figure(tree([(["a"], held(5, 2))]), by="blocks")["data"][0]["values"] == [2, 2]
    go.Figure(figure)


def test_q02_the_page_shows_the_calls_of_a_window_without_the_allocators_frames(import_trace: ImportTrace) -> None:
    load, draw = APP + 0x1120, APP + 0x2240
    trace = Trace().cpu(
        0,
        system.process_start(at_us=1),
        system.image("Load", at_us=2, base=APP, file="app.exe"),
        system.image("Load", at_us=3, base=NTDLL, size=0x20_0000, file="C:\\Windows\\System32\\ntdll.dll"),
        heap.alloc(at_us=1_000, address=heap.HEAP + 0x1000, size=100, stack=(NTDLL + 0x10, load, APP + 0x100)),
        heap.alloc(at_us=2_000, address=heap.HEAP + 0x2000, size=300, stack=(NTDLL + 0x10, draw, APP + 0x100)),
        heap.alloc(at_us=9_000, address=heap.HEAP + 0x3000, size=7, stack=(load,)),
    )
    imported = import_trace(trace)
    process = imported.one("select distinct process from v_allocations")
    with served(imported.folder) as client:
        path = f"/t/{imported.report.key}/heap/{process}/flame"
        page = as_json(client, f"{path}?from=0&to=5000000")
        figure = figure_in(client.get(f"{path}?from=0&to=5000000&measure=count").text, "flame-chart")
        refused = client.get(f"{path}?measure=weight")
        empty = client.get(f"{path}?from=10&to=20")

    assert [(row["depth"], row["frame"], row["bytes"]) for row in page["rows"]] == [
        (1, "app.exe+0x100", 400),
        (2, "app.exe+0x2240", 300),
        (2, "app.exe+0x1120", 100),
    ]
    assert figure["data"][0]["values"] == [2, 2, 1, 1]
    assert refused.status_code == 400
    assert f"Nothing that was allocated {time_span(10, 20)} is still held then." in empty.text


def test_very_deep_stacks_are_cut_and_say_so(import_trace: ImportTrace) -> None:
    frames = tuple(APP + 0x1000 + i for i in range(MAX_DEPTH + 60))
    trace = Trace().cpu(0, system.process_start(at_us=1), heap.alloc(at_us=1_000, address=heap.HEAP + 0x1000, size=100, stack=frames))
    imported = import_trace(trace)
    process = imported.one("select distinct process from v_allocations")
    with served(imported.folder) as client:
        rows = as_json(client, f"/t/{imported.report.key}/heap/{process}/flame")["rows"]

    assert len(rows) == MAX_DEPTH
    assert rows[-1]["frame"] == "(deeper frames)"
