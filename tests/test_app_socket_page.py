"""The page of one socket: what it says of built traces, what its links mean, how large it gets."""

import re
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.queries.socket_timeline import MAX_BARS
from tests.build import ENTER, EXIT, Trace, afd, heap, system
from tests.build.answers import as_json, figure_in, text_of
from tests.build.database import BUILT_KEY, built_database
from tests.build.imported import ImportTrace, collect
from tests.build.served import served

RESET = 0xC000_020D
SECOND = 1_000_000_000
LINK = "0xffff9a0c2a001010@10000"


def client_of(import_trace: ImportTrace, trace: Trace) -> tuple[TestClient, str]:
    """A client of the dashboard, and the path of the built trace."""
    imported = import_trace(trace)
    return served(imported.folder), f"/t/{imported.report.key}"


def connection(*more: object) -> Trace:
    """A connection of app.exe: one send, one receive, and what the test adds."""
    return Trace().cpu(
        0,
        system.process_start(at_us=1),
        afd.opened(at_us=10),
        afd.connected(at_us=100, address="203.0.113.10:443"),
        afd.sent(at_us=1_000, length_bytes=512, buffer=0x1F_0000),
        afd.received(at_us=2_000, length_bytes=4096, got_bytes=1460, buffer=0x2F_0000, duration_us=500),
        *more,  # type: ignore[arg-type]  # events or lists of them
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[TestClient, str]:
    """The plain connection, closed in the end."""
    imported = collect(connection(afd.abort(at_us=8_999, reason=4), afd.closed(at_us=9_000)), tmp_path_factory.mktemp("told"))
    return served(imported.folder), f"/t/{imported.report.key}"


# ---------------------------------------------------------------------------------------------------- what it says


def test_a_closed_connection_is_told_from_start_to_end(import_trace: ImportTrace) -> None:
    client, trace = client_of(import_trace, connection(afd.closed(at_us=9_000)))
    page = as_json(client, f"{trace}/sockets/{LINK}")

    assert page["title"] == "app.exe → 203.0.113.10:443"
    assert page["explanation"] == (
        "This TCP socket at endpoint 0xffff9a0c2a001010 belongs to app.exe (process id 4120). "
        "It was created at +0.000\u202f010 s and was connected at +0.000\u202f110 s to 203.0.113.10:443. "
        "It sent 512 B in 1 operation and received 1.46 kB in 1 operation. "
        "The program closed it at +0.009\u202f000 s; no abort was recorded. Whether the peer had finished before was not recorded. "
        "(possible, not certain)"
    )
    assert [claim["side"] for claim in page["claims"] if claim["about"] == "end"] == ["this program"]


def test_q01_a_reset_names_the_side_the_number_and_how_sure_its_name_is(import_trace: ImportTrace) -> None:
    client, trace = client_of(
        import_trace,
        connection(
            afd.receive(at_us=3_000, enter_exit=ENTER, length_bytes=4096),
            afd.abort(at_us=5_000, reason=4),
            afd.receive(at_us=5_010, enter_exit=EXIT, length_bytes=0, status=RESET),
            afd.closed(at_us=9_000),
        ),
    )
    page = as_json(client, f"{trace}/sockets/{LINK}")
    end = next(claim for claim in page["claims"] if claim["about"] == "end")

    assert end["side"] == "peer or network"
    assert end["text"].startswith(
        "The transport ended the connection at +0.005\u202f000 s (reason 4, transport disconnect; the name is inferred). "
    )
    assert "1 operation was in flight" in end["text"]
    assert end["evidence"][0]["moment_ns"] == 5_000_000
    assert "errors" not in [claim["about"] for claim in page["claims"]]  # what fails after an abort is its consequence


def test_a_failure_is_said_with_its_status_and_leads_to_its_operation(import_trace: ImportTrace) -> None:
    failed = afd.receive(at_us=3_010, enter_exit=EXIT, length_bytes=0, status=RESET)
    client, trace = client_of(import_trace, connection(afd.receive(at_us=3_000, length_bytes=4096), failed))
    errors = next(claim for claim in as_json(client, f"{trace}/sockets/{LINK}")["claims"] if claim["about"] == "errors")

    assert errors["text"] == (
        "1 operation failed with STATUS_CONNECTION_RESET 0xC000020D · WSAECONNRESET 10054 in a recv at +0.003\u202f010 s."
    )
    assert client.get(f"{trace}/sockets/{LINK}/{errors['evidence'][0]['operation']}").status_code == 200


def test_an_abort_in_close_is_this_machines(import_trace: ImportTrace) -> None:
    trace = connection(
        afd.data_indication(at_us=1_900, length_bytes=4000),
        afd.cleanup(at_us=9_000),
        afd.abort(at_us=9_001, reason=7),
        afd.cleanup(at_us=9_002, enter_exit=EXIT),
    )
    client, path = client_of(import_trace, trace)
    end = next(claim for claim in as_json(client, f"{path}/sockets/{LINK}")["claims"] if claim["about"] == "end")

    assert (end["side"], end["certainty"]) == ("this machine", "certain")
    assert "while the program closed the socket (reason 7, pending data at disconnect)" in end["text"]
    assert "2.54 kB had arrived and were not read" in end["text"]


def test_a_peer_that_finished_first_is_said(import_trace: ImportTrace) -> None:
    client, trace = client_of(import_trace, connection(afd.disconnect(at_us=8_000), afd.closed(at_us=9_000)))
    end = next(claim for claim in as_json(client, f"{trace}/sockets/{LINK}")["claims"] if claim["about"] == "end")

    assert end["side"] == "peer"
    assert end["text"] == ("The peer ended the connection in good order at +0.008\u202f000 s; the program closed the socket 1.00 ms later.")


def test_q04_an_operation_that_never_completed_is_said_and_linked(import_trace: ImportTrace) -> None:
    client, trace = client_of(import_trace, connection(afd.receive(at_us=3_000, length_bytes=4096, buffer=0x3F_0000)))
    page = as_json(client, f"{trace}/sockets/{LINK}")
    unfinished = next(claim for claim in page["claims"] if claim["about"] == "unfinished")

    assert unfinished["text"] == "1 receive was in flight when the trace ends, the oldest since +0.003\u202f000 s."
    assert client.get(f"{trace}/{unfinished['evidence'][0]['link']}").status_code == 200


def test_q10_and_q11_overlaps_and_frees_are_counted_and_drawn(import_trace: ImportTrace) -> None:
    block = 0x1A_1000
    trace = connection(
        heap.alloc(at_us=2_900, address=block, size=8192),
        afd.receive(at_us=3_000, length_bytes=4096, buffer=block),
        afd.send(at_us=3_100, length_bytes=1024, buffer=block),
        heap.free(at_us=3_200, address=block),
        afd.send(at_us=3_300, enter_exit=EXIT, length_bytes=1024, buffer=block),
        afd.receive(at_us=3_400, enter_exit=EXIT, length_bytes=100, buffer=block),
    )
    client, path = client_of(import_trace, trace)
    answer = client.get(f"{path}/sockets/{LINK}").text

    assert "A buffer was handed to a second operation while a first still used it, once." in text_of(answer)
    assert "was freed, moved or handed out again, twice." in text_of(answer)
    hatched = next(t for t in figure_in(answer, "socket-timeline")["data"] if t.get("name") == "overlap, freed in flight")
    assert len(hatched["x"]) == 2


def test_what_arrived_what_was_set_and_what_waits_are_moments_of_the_timeline(import_trace: ImportTrace) -> None:
    """Indications, options and the send backlog stand on the timeline at their time, with what they say."""
    trace = connection(
        afd.option(at_us=1_500, option=7, value=65536),
        afd.data_indication(at_us=1_900, length_bytes=4000),
        afd.send_backlog(at_us=2_600, backlog_bytes=131_072),
        afd.disconnect(at_us=8_000),
        afd.closed(at_us=9_000),
    )
    client, path = client_of(import_trace, trace)
    figure = figure_in(client.get(f"{path}/sockets/{LINK}").text, "socket-timeline")
    said = {point[0]: point[1] for one in figure["data"] for point in one.get("customdata") or [] if len(point) == 2}
    for ns, words in ((1_500_000, "SO_SNDBUF"), (1_900_000, "4.00 kB"), (2_600_000, "send backlog 131 kB"), (8_000_000, "disconnect")):
        assert words in said.get(str(ns), ""), (ns, said)


def test_a_hostile_name_is_text_in_the_page_and_in_the_figure(import_trace: ImportTrace) -> None:
    name = "<img src=x onerror=alert(1)>.exe"
    trace = Trace().cpu(0, system.process_start(at_us=1, image=name), afd.opened(at_us=10), afd.sent(at_us=1_000))
    client, path = client_of(import_trace, trace)
    answer = client.get(f"{path}/sockets/{LINK}").text

    assert "<img" not in answer
    assert "&lt;img src=x onerror=alert(1)&gt;.exe" in answer


# ---------------------------------------------------------------------------------------------------- its link


@pytest.mark.parametrize(
    "link", ["0xffff9a0c2a001010@10000", "0xffff9a0c2a001010@5000000", "FFFF9A0C2A001010@5000000", "0xffff9a0c2a001010"]
)
def test_any_time_in_its_life_names_a_socket(told: tuple[TestClient, str], link: str) -> None:
    client, trace = told
    answer = client.get(f"{trace}/sockets/{link}?from=1000")

    if link == LINK:
        assert answer.status_code == 200
    else:
        assert (answer.status_code, answer.headers["location"]) == (307, f"{trace}/sockets/{LINK}?from=1000")


def test_a_link_outside_its_life_leads_to_the_nearest(told: tuple[TestClient, str]) -> None:
    client, trace = told
    answer = client.get(f"{trace}/sockets/0xffff9a0c2a001010@99000000000")

    assert answer.status_code == 404
    assert f'href="{trace}/sockets/{LINK}"' in answer.text


def test_a_reused_endpoint_address_is_another_socket(import_trace: ImportTrace) -> None:
    client, trace = client_of(import_trace, connection(afd.closed(at_us=9_000), afd.opened(at_us=20_000), afd.sent(at_us=21_000)))

    assert as_json(client, f"{trace}/sockets/0xffff9a0c2a001010@20000000")["socket"]["bytes_sent"] == 512
    assert client.get(f"{trace}/sockets/0xffff9a0c2a001010@15000000").status_code == 404


# ---------------------------------------------------------------------------------------------------- its range


def test_the_range_of_the_url_chooses_chart_operations_and_records(told: tuple[TestClient, str]) -> None:
    client, trace = told
    answer = client.get(f"{trace}/sockets/{LINK}?from=1900000&to=2600000").text
    page = as_json(client, f"{trace}/sockets/{LINK}?from=1900000&to=2600000")

    assert [row["kind"] for row in page["operations"]["rows"]] == ["recv"]
    assert [row["text"] for row in page["events"]["rows"]] == ["recv of 4.10 kB posted", "recv completed with 1.46 kB after 500 µs"]
    meta = figure_in(answer, "socket-timeline")["layout"]["meta"]
    assert (meta["from_ns"], meta["to_ns"]) == ("1900000", "2600000")
    chart = client.get(f"{trace}/sockets/{LINK}/timeline?from=1900000&to=2600000").json()
    assert (chart["from_ns"], chart["figure"]) == ("1900000", figure_in(answer, "socket-timeline"))


def test_the_links_beside_a_range_lead_half_of_it_away_or_around_its_middle(told: tuple[TestClient, str]) -> None:
    client, trace = told
    html = client.get(f"{trace}/sockets/{LINK}?kind=post&from=1900000&to=2600000&after=2000000").text
    links = dict(re.findall(r'<a href="([^"]*)" data-range>[^a-z]*([a-z ]+)', html))

    assert {words.strip(): unescape(href).partition("?")[2] for href, words in links.items()} == {
        "earlier": "kind=post&from=1550000&to=2250000",
        "later": "kind=post&from=2250000&to=2950000",
        "closer": "kind=post&from=2075000&to=2425000",
        "wider": "kind=post&from=1550000&to=2950000",
        "all of it": "kind=post",
    }


def test_bytes_in_a_late_range_count_from_the_sockets_start(import_trace: ImportTrace) -> None:
    client, trace = client_of(import_trace, connection(afd.sent(at_us=4_000_000, length_bytes=100)))
    figure = client.get(f"{trace}/sockets/{LINK}/timeline?from=3999000000&to=4001000000").json()["figure"]
    line = next(t for t in figure["data"] if t.get("name") == "bytes of sends ▲")

    assert line["y"] == [512, 612, 612]


@pytest.mark.parametrize(("query", "says"), [("from=soon", "from=soon"), ("from=5&to=5", "runs forward"), ("kind=nothing", "kind=nothing")])
def test_a_range_that_cannot_be_is_refused_with_what_is_allowed(told: tuple[TestClient, str], query: str, says: str) -> None:
    client, trace = told
    answer = client.get(f"{trace}/sockets/{LINK}?{query}")

    assert answer.status_code == 400
    assert says in answer.text


@pytest.mark.parametrize(
    ("query", "says"), [("from=2000s", "from=2000s begins after its end"), ("to=-2000s", "to=-2000s ends before it begins")]
)
def test_a_range_with_one_end_beyond_the_life_says_how_long_that_is(told: tuple[TestClient, str], query: str, says: str) -> None:
    client, trace = told
    answer = client.get(f"{trace}/sockets/{LINK}?{query}", headers={"Accept": "application/json"})

    assert answer.status_code == 400
    assert answer.json()["sentence"].startswith("The socket lasts from ")
    assert says in answer.json()["sentence"]


# ---------------------------------------------------------------------------------------------------- its records


def test_q08_records_come_in_time_order_with_what_they_say(import_trace: ImportTrace) -> None:
    trace = connection(afd.option(at_us=1_500, option=7, value=65536), afd.abort(at_us=3_000, reason=4), afd.closed(at_us=9_000))
    client, path = client_of(import_trace, trace)
    rows = as_json(client, f"{path}/sockets/{LINK}")["events"]["rows"]

    assert [row["t_ns"] for row in rows] == sorted(row["t_ns"] for row in rows)
    assert [row["kind"] for row in rows] == [
        "life", "life", "post", "completion", "post", "completion", "option", "post", "completion", "abort", "life", "life", "life", "life",
    ]  # fmt: skip
    post, completion = (row for row in rows if row["operation"] == "send:0x1f0000@1000000")
    assert (post["text"], completion["text"]) == ("send of 512 B posted", "send completed with 512 B after 1.00 µs")


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("kind=abort", ["abort"]),
        ("text=SO_SNDBUF", []),
        ("text=1460", []),
        ("text=0x1f0000", ["post", "completion"]),
        ("kind=post&text=recv", ["post"]),
    ],
)
def test_records_are_filtered_by_kind_and_text(told: tuple[TestClient, str], query: str, kinds: list[str]) -> None:
    client, path = told

    assert [row["kind"] for row in as_json(client, f"{path}/sockets/{LINK}?{query}")["events"]["rows"]] == kinds


def test_records_are_paged_without_gaps_even_within_one_moment(tmp_path: Path) -> None:
    times = [SECOND] * 150 + [2 * SECOND] * 30 + list(range(3 * SECOND, 3 * SECOND + 90))
    events = [{"socket_n": 1, "t_ns": t, "seq": i, "event": 3003, "fields": f'{{"buffer_length": {i}}}'} for i, t in enumerate(times)]
    folder = built_database(tmp_path, {"socket": [one_socket(last_ns=5 * SECOND)], "socket_event": events})
    seen, path = [], f"/t/{BUILT_KEY}/sockets/0x10@0"
    with served(folder) as client:
        while path:
            part = as_json(client, path)["events"]
            seen += [row["fields"]["buffer_length"] for row in part["rows"]]
            path = (part["next_href"] or "").partition("#")[0]

    assert seen == list(range(270))


def test_a_selected_operation_has_its_rows_where_the_lists_end_before_it(tmp_path: Path) -> None:
    """The 90th of 120 receives: its row stands below the first 50, the records begin with its post."""
    posted_ns = 89 * SECOND // 2
    link, path = f"recv:0x1f0000@{posted_ns}", f"/t/{BUILT_KEY}/sockets/0x10@0"
    with served(built_database(tmp_path, many_operations(120))) as client:
        page = as_json(client, f"{path}?selected={link}")
        html = client.get(f"{path}?selected={link}").text
        first = as_json(client, page["events"]["first_href"].partition("#")[0])
        among = as_json(client, f"{path}?selected={page['operations']['rows'][3]['operation']}")
        outside = as_json(client, f"{path}?selected={link}&to=10s")

    assert [row["posted_ns"] for row in page["operations"]["rows"]] == [i * SECOND // 2 for i in (*range(50), 89)]
    assert "The first 50, and the selected one." in text_of(html)
    assert [row["operation"] for row in page["events"]["rows"][:2]] == [link, link]
    assert html.count('aria-selected="true"') == 3, "the operation, its post and its completion"
    assert (first["events"]["rows"][0]["t_ns"], first["selected"]) == (0, link)
    assert (len(among["operations"]["rows"]), among["added"], among["events"]["turned_to"]) == (50, None, None)
    assert (outside["added"], outside["events"]["turned_to"]) == (None, None)


@pytest.mark.parametrize(("query", "is_turned"), [("kind=completion", True), ("text=posted", True), ("kind=abort", False)])
def test_the_records_of_a_selected_operation_are_found_through_a_filter(tmp_path: Path, query: str, is_turned: bool) -> None:
    link = f"recv:0x1f0000@{199 * SECOND // 4}"
    with served(built_database(tmp_path, many_operations(240))) as client:
        rows = as_json(client, f"/t/{BUILT_KEY}/sockets/0x10@0?selected={link}&{query}")["events"]["rows"]

    assert [row["operation"] for row in rows[:1]] == [link] * is_turned


@pytest.mark.parametrize("selected", ["", "nothing", "recv:0x1f0000", "recv:0x1f0000@7", "<b>:0x1@1"])
def test_a_selection_that_is_not_there_changes_nothing(told: tuple[TestClient, str], selected: str) -> None:
    client, path = told
    page, plain = (as_json(client, f"{path}/sockets/{LINK}{query}") for query in (f"?selected={selected}", ""))
    assert page["added"] is None
    assert [page[part]["rows"] for part in ("operations", "events")] == [plain[part]["rows"] for part in ("operations", "events")]


# ---------------------------------------------------------------------------------------------------- its size


def one_socket(**more: object) -> dict[str, object]:
    return {"endpoint": 0x10, "end": "open_at_end", "first_ns": 0, "last_ns": 60 * SECOND, "create_seen": True, "created_ns": 0} | more


def many_operations(number: int, *, lasting_ns: int = 2_500_000) -> dict[str, list[dict[str, object]]]:
    """A socket with `number` receives in a minute, each in flight for 2.5 ms, and their roll-ups."""
    width = 60 * SECOND // number
    operations: list[dict[str, object]] = [
        {
            "socket_n": 1,
            "kind": 3,
            "posted_ns": i * width,
            "completed_ns": i * width + lasting_ns,
            "end_ns": i * width + lasting_ns,
            "bytes": 100,
            "space": 1,
            "buffer": 0x1F0000,
            "posted_len": 4096,
            "posted_event": 1004,
            "completed_event": 1004,
            "posted_seq": 2 * i,
            "completed_seq": 2 * i + 1,
        }
        for i in range(number)
    ]
    each = {"posted": 1, "ended": 1, "receives": 1, "bytes_received": 100, "in_flight_min": 2, "in_flight_max": 3, "in_flight_end": 2}
    rollups: list[dict[str, object]] = [
        {"scope": "socket", "scope_n": 1, "level": level, "bucket": bucket} | each
        for level in (28, 32, 36)
        for bucket in range((60 * SECOND >> level) + 1)
    ]
    return {"socket": [one_socket()], "operation": operations, "socket_rollup": rollups}


def test_many_operations_become_a_band_and_a_closer_look_brings_the_bars_back(tmp_path: Path) -> None:
    with served(built_database(tmp_path, many_operations(3_000))) as client:
        path = f"/t/{BUILT_KEY}/sockets/0x10@0/timeline"
        whole, closer = client.get(path), client.get(f"{path}?from=30000000000&to=32000000000")

    names = {trace.get("name") for trace in whole.json()["figure"]["data"]}
    assert {"fewest", "most"} <= names
    assert "receives ▼" not in names
    bars = next(t for t in closer.json()["figure"]["data"] if t.get("name") == "receives ▼")
    assert len(bars["x"]) == 101
    assert len(whole.content) < 500_000


def test_a_page_with_as_many_bars_as_are_drawn_stays_below_its_limit(tmp_path: Path) -> None:
    with served(built_database(tmp_path, many_operations(MAX_BARS))) as client:
        page = client.get(f"/t/{BUILT_KEY}/sockets/0x10@0")
        chart = client.get(f"/t/{BUILT_KEY}/sockets/0x10@0/timeline")

    assert page.status_code == 200
    assert len(chart.content) < 500_000
    assert len(page.content) < 300_000
