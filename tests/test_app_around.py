"""The page around a moment: what happened near it, in whatever process."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from app.filters import parse_time
from tests.build import EXIT, Trace, afd, heap, system
from tests.build.answers import as_json, figure_in
from tests.build.imported import collect
from tests.build.served import served
from tests.build.small_trace import KEY, small_folder

OTHER, OTHER_OBJECT = 5000, 0xFFFF_9A0C_1199_9080


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> tuple[TestClient, str]:
    """At 10 ms a connection is reset; before it a block was freed under a receive, after it a module goes and another process ends."""
    trace = Trace().cpu(
        0,
        system.process_start(at_us=1, image="app.exe"),
        system.process_start(at_us=2, image="other.exe", pid=OTHER, eprocess=OTHER_OBJECT),
        system.image("Load", at_us=3, base=0x7FF8_0000_0000, file="plug.dll"),
        afd.opened(at_us=10),
        afd.connected(at_us=100),
        heap.alloc(at_us=200, address=heap.HEAP + 0x1000, size=4096),
        afd.receive(at_us=8_000, length_bytes=4096, buffer=heap.HEAP + 0x1000),
        heap.free(at_us=9_000, address=heap.HEAP + 0x1000),
        afd.receive(at_us=9_900, enter_exit=EXIT, length_bytes=0, buffer=heap.HEAP + 0x1000, status=0xC000_020D),
        afd.abort(at_us=10_000, reason=4),
        system.image("Unload", at_us=11_000, base=0x7FF8_0000_0000, file="plug.dll"),
        system.process_end(at_us=12_000, pid=OTHER, eprocess=OTHER_OBJECT),
        afd.abort(at_us=9_000_000, reason=7),
    )
    imported = collect(trace, tmp_path_factory.mktemp("around"))
    return served(imported.folder), f"/t/{imported.report.key}"


def test_everything_near_a_moment_is_listed_in_time_order(busy: tuple[TestClient, str]) -> None:
    client, trace = busy
    rows = as_json(client, f"{trace}/around/10000000?within=5ms")["listing"]["rows"]

    assert [(row["t_ns"], row["kind"]) for row in rows] == [
        (9_000_000, "freed in flight"),
        (9_900_000, "error"),
        (10_000_000, "abort"),
        (11_000_000, "module unloaded"),
        (12_000_000, "process ended"),
    ]
    assert rows[2]["text"] == "connection aborted by the transport, reason 4: transport disconnect"
    for row in rows:
        assert client.get(f"{trace}/{row['link']}").status_code == 200, row


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with served(small_folder(tmp_path_factory.mktemp("small"))) as client:
        yield client


@pytest.mark.parametrize(
    ("moment", "kind", "text", "link"),
    [
        ("7.1s", "drop", "datagram of 1.20 kB dropped: no buffer space", "sockets/0xffff9a0c2a002020@20000000"),
        ("2.4s", "overlap", "a recv shares 744 B with a send in flight",
         "overlaps/0xffff9a0c2a001010@10000000/send:0x1f0000@1000000000/0xffff9a0c2a001010@10000000/recv:0x1f0100@1500000000"),
        ("1.04s", "bind failure", "bind failed: STATUS_TOO_MANY_ADDRESSES 0xC0000209 · WSAENOBUFS 10055",
         "sockets/0xffff9a0c2a004040@40000000"),
        ("54s", "process started", "process started", "processes/4242@55000000000"),
        ("51s", "process ended", "process ended", "processes/900@5000000"),
    ],
)  # fmt: skip
def test_what_is_a_second_away_is_near(small: TestClient, moment: str, kind: str, text: str, link: str) -> None:
    ns = int(parse_time(moment))
    rows = [row for row in as_json(small, f"/t/{KEY}/around/{ns}")["listing"]["rows"] if row["kind"] == kind]

    assert [(row["text"], row["link"]) for row in rows] == [(text, link)]
    for far in (rows[0]["t_ns"] - 1_000_000_001, rows[0]["t_ns"] + 1_000_000_001):
        assert kind not in [row["kind"] for row in as_json(small, f"/t/{KEY}/around/{far}")["listing"]["rows"]]


def test_the_strip_has_a_row_a_kind_and_a_line_at_the_moment(busy: tuple[TestClient, str]) -> None:
    client, trace = busy
    figure = figure_in(client.get(f"{trace}/around/10000000?within=5ms").text, "around-chart")

    assert figure["layout"]["yaxis"]["ticktext"] == ["abort", "error", "freed in flight", "module unloaded", "process ended"]
    assert next(t for t in figure["data"] if t["name"] == "the moment")["x"] == [10.0, 10.0]
    assert next(t for t in figure["data"] if t["name"] == "error")["y"] == [-1]


def test_a_moment_with_nothing_near_it_says_so(busy: tuple[TestClient, str]) -> None:
    client, trace = busy
    answer = client.get(f"{trace}/around/5000000000")

    assert answer.status_code == 200
    assert "is known near this moment" in answer.text


@pytest.mark.parametrize("path", ["soon", "1000?within=2h", "1000?within=0"])
def test_what_is_no_moment_is_refused(busy: tuple[TestClient, str], path: str) -> None:
    client, trace = busy
    assert client.get(f"{trace}/around/{path}").status_code == 400
    moment, span = client.get(f"{trace}/around/abc"), client.get(f"{trace}/around/5?within=abc")
    assert "around/abc cannot be read; it is nanoseconds since time 0" in moment.text
    assert "within=abc cannot be read; it is " in span.text
