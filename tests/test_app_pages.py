"""What each page says: its values as JSON, its text escaped, its reasons where it is empty."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.answers import ANSWERS
from app.labels import LABELS, label
from app.recording import AREAS
from app.sections import SECTIONS
from collector.store import locks
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.words import MATCHES
from tests.build.database import built_database
from tests.build.served import served
from tests.build.small_trace import HOSTILE, KEY, SMALL, path_of, small_folder

LISTS = (
    "processes", "sockets", "operations", "errors", "aborts", "stalls", "overlaps", "in-flight-frees", "listeners", "ports", "drops",
    "polls", "events", "allocations", "stacks",
)  # fmt: skip
RECEIVE = "sockets/0xffff9a0c2a001010@10000000/recv:0x1f0100@1500000000"
PAGES = (
    "", "/trust", *(f"/{name}" for name in LISTS), "/processes/4242@0", "/processes/900@5000000", "/processes/0xffff9a0c99999080@7000000",
    "/stacks/aaaabbbbccccdddd", "/address/0x1f0100", "/address/0xffff9a0c2a001010", f"/{RECEIVE}",
)  # fmt: skip


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with served(small_folder(tmp_path_factory.mktemp("small"))) as made:
        yield made


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A trace in which nothing was recorded."""
    with served(built_database(tmp_path_factory.mktemp("bare"), {})) as made:
        yield made


def page(client: TestClient, path: str) -> dict[str, Any]:
    """A page as JSON. Any: JSON."""
    answer = client.get(path, headers={"Accept": "application/json"})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("path", PAGES)
def test_a_page_answers_in_html_and_json(client: TestClient, path: str) -> None:
    html = client.get(f"/t/{KEY}{path}")
    assert html.status_code == 200
    assert html.headers["content-type"].startswith("text/html")
    assert page(client, f"/t/{KEY}{path}")["title"] in html.text.replace("&lt;", "<").replace("&gt;", ">")


@pytest.mark.parametrize("path", ["/", "/search", "/search?q=x", "/help", "/docs", "/healthz", "/openapi.json"])
def test_a_page_without_a_trace_answers(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", PAGES)
def test_hostile_names_are_text(client: TestClient, path: str) -> None:
    assert "<script>alert" not in client.get(f"/t/{KEY}{path}").text
    assert "<script>alert" not in client.get(f"/search?q={HOSTILE}").text


def test_a_hostile_name_is_shown_in_full(client: TestClient) -> None:
    assert "&lt;script&gt;alert(1)&lt;/script&gt;.exe" in client.get(f"/t/{KEY}/processes").text
    assert page(client, f"/t/{KEY}/processes?pid=900")["listing"]["rows"][0]["image"] == HOSTILE


def test_addresses_and_statuses_are_text_in_json(client: TestClient) -> None:
    row = page(client, f"/t/{KEY}/sockets")["listing"]["rows"][0]
    assert row["socket"] == "0xffff9a0c2a001010@10000000"
    assert row["endpoint"] == "0xffff9a0c2a001010"
    assert row["last_error"] == "0xc000020d"
    assert row["process"] == {"link": "4242@0", "pid": 4242, "image": "client.exe"}
    assert (row["first_ns"], row["bytes_sent"], row["aborted"], row["protocol"]) == (10_000_000, 12_400_000, True, "TCP")


def test_no_number_of_a_page_is_too_long_for_a_script(client: TestClient) -> None:
    def numbers(value: object) -> Iterator[int]:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from numbers(item)
        elif isinstance(value, int):
            yield value

    for path in PAGES:
        assert all(abs(number) <= (1 << 53) - 1 for number in numbers(page(client, f"/t/{KEY}{path}")))


def test_the_list_of_traces_says_what_was_found(client: TestClient) -> None:
    (trace,) = page(client, "/")["listing"]["rows"]
    assert (trace["key"], trace["name"], trace["state"]) == (KEY, "small.etl", "complete")
    assert (trace["problems"], trace["losses"], trace["findings"], trace["high_findings"]) == (2, 1, 2, 1)


def test_the_overview_shows_the_worst_finding_first_and_links_its_evidence(client: TestClient) -> None:
    overview = page(client, f"/t/{KEY}")
    assert [finding["severity"] for finding in overview["findings"]] == ["high", "low"]
    assert overview["findings"][0]["link"] == "in-flight-frees"
    assert f'href="/t/{KEY}/in-flight-frees"' in client.get(f"/t/{KEY}").text
    assert [row["process"] for row in overview["processes"]["rows"]] == ["4242@0", "900@5000000"]


def test_the_overview_says_which_questions_the_trace_answers(client: TestClient, bare: TestClient) -> None:
    def codes(overview: dict[str, Any], part: str) -> set[str]:
        return {one["answer"]["code"] for one in overview[part]}

    full, empty = page(client, f"/t/{KEY}"), page(bare, f"/t/{KEY}")
    assert {"Q01", "Q10", "Q11", "Q21"} <= codes(full, "answerable") | codes(full, "partly")
    assert codes(full, "unanswerable") == {"Q25"}
    assert codes(empty, "answerable") == {"Q03", "Q14"}
    assert len(codes(empty, "unanswerable")) == len(ANSWERS) - 2
    assert any("logman start" in line for command in empty["commands"] for line in command["lines"])


def test_answers_lead_to_pages_and_need_known_records(client: TestClient) -> None:
    for answer in ANSWERS:
        assert set(answer.needs) | set(answer.helps) <= set(AREAS), answer.code
        if answer.link != "heap":
            assert client.get(f"/t/{KEY}/{answer.link}").status_code == 200, answer.code


def test_the_navigation_leads_to_pages(client: TestClient) -> None:
    links = [section.link for group in SECTIONS for section in group.sections if section.link != "heap"]
    assert all(client.get(f"/t/{KEY}/{link}".rstrip("/")).status_code == 200 for link in links)
    current = client.get(f"/t/{KEY}/aborts").text
    assert f'<a href="/t/{KEY}/aborts" aria-current="page">Aborts</a>' in current


WITHOUT_RANGE = {
    "", "/answers", "/notes", "/trust", "/heap", "/heap/{process}/compare", "/heap/{process}/{heap}:{address}", "/processes/{process}",
    "/around/{at}", "/sockets/{socket}/{operation}", "/overlaps/{first_socket}/{first}/{second_socket}/{second}",
    "/in-flight-frees/{socket}/{operation}", "/stacks/{stack}", "/address/{address}",
}  # fmt: skip
"""Pages that show a thing whole, not what happened in a range of time."""


def test_loss_is_said_on_every_page_whose_range_it_touches(client: TestClient) -> None:
    """Between 2 s and 3 s records were lost."""
    documented = client.get("/openapi.json").json()["paths"]
    routes = {route: methods["get"] for route, methods in documented.items() if route.startswith("/t/") and "get" in methods}
    without_range = set()
    for route in [route for route, get in routes.items() if "text/html" in get["responses"]["200"].get("content", {})]:
        path = path_of(route).replace("/around/0", "/around/2500000000") + "?"
        assert "Data was lost in this range" in client.get(path).text, path
        for query, is_lost in (("from=2.5s&to=9s", True), ("from=2s&to=2.5s", True), ("from=4s&to=9s", False), ("from=500ms&to=1s", False)):
            answer = client.get(path + query)
            if answer.status_code == 400:
                assert "no parameter of this name" in answer.text, path
                without_range.add(route.removeprefix("/t/{trace_key}"))
            else:
                assert ("Data was lost in this range" in answer.text) == is_lost, path + query
    assert without_range == WITHOUT_RANGE


@pytest.mark.parametrize(
    ("query", "is_lost"), [("2500000000", True), ("3900000000", True), ("50000000000", False), ("3900000000?within=1ms", False)]
)
def test_loss_is_said_around_a_moment_that_is_near_it(client: TestClient, query: str, is_lost: bool) -> None:
    assert ("Data was lost in this range" in client.get(f"/t/{KEY}/around/{query}").text) == is_lost


def test_the_trust_page_lists_problems_and_the_whole_file(client: TestClient) -> None:
    trust = page(client, f"/t/{KEY}/trust")
    assert [problem["kind"] for problem in trust["problems"]] == ["lost_events", "unknown_events"]
    assert trust["unmatched"]["without_post"] == 1
    assert (trust["unknown_owners"], trust["unseen_creates"]) == (1, 1)
    foreign = [row for row in trust["listing"]["rows"] if row["provider"].startswith("1111")]
    assert [(row["count"], row["known"]) for row in foreign] == [(12, False)]
    assert [name for name, _ in trust["heap"] if name.startswith("peak")] == []  # the peaks of two processes have no sum
    assert trust["heap"]


def test_a_classic_event_is_told_by_its_type_and_not_by_an_unknown_id(client: TestClient) -> None:
    (row,) = (row for row in page(client, f"/t/{KEY}/trust")["listing"]["rows"] if row["event_name"] == "HeapAlloc")
    assert (row["event_id"], row["opcode"], row["header_kind"]) == (None, 0x21, "perfinfo")
    text = client.get(f"/t/{KEY}/trust").text
    line = text[text.index("HeapAlloc") :].partition("</tr>")[0]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", line, re.DOTALL)
    assert "–" in cells[0]
    assert ">unknown<" not in cells[0] + cells[1]
    assert "33" in cells[1]
    assert "Classic (MOF) events have no id" in text


def test_a_process_is_the_instance_that_lived_then(client: TestClient) -> None:
    assert page(client, f"/t/{KEY}/processes/4242@30000000000")["process"]["image"] == "client.exe"
    assert page(client, f"/t/{KEY}/processes/4242@56000000000")["process"]["image"] == "later.exe"


def test_a_link_whose_object_is_absent_leads_to_the_nearest(client: TestClient) -> None:
    answer = client.get(f"/t/{KEY}/processes/900@55000000000")
    assert answer.status_code == 404
    assert f'href="/t/{KEY}/processes/900@5000000"' in answer.text
    assert client.get(f"/t/{KEY}/processes/77777@0").status_code == 404
    assert client.get(f"/t/{KEY}/processes/nobody").status_code == 400
    assert client.get(f"/t/{KEY}/stacks/ffff").status_code == 404
    assert client.get(f"/t/{KEY}/{RECEIVE.replace('1500000000', '9')}").status_code == 404
    assert client.get(f"/t/{KEY}/address/house").status_code == 400


def test_an_unknown_trace_is_explained(client: TestClient) -> None:
    answer = client.get("/t/0123456789ff/sockets")
    assert answer.status_code == 404
    assert "collect it here, and this link works. It asks for the page “Sockets”." in answer.text
    assert f'href="/t/{KEY}"' in answer.text
    assert client.get("/t/..%2F..%2Fetc").status_code == 404
    assert client.get("/t/%00").status_code == 404
    assert client.get(f"/t/{KEY.upper()}").status_code == 200


def test_an_operation_has_a_page_with_its_allocation_and_its_overlaps(client: TestClient) -> None:
    operation = page(client, f"/t/{KEY}/{RECEIVE}")
    assert operation["sentence"] == "This recv of 4.10 kB moved 4.10 kB after 1.50 s."
    assert operation["allocation"]["address"] == "0x1f0000"
    assert operation["allocation_offset"] == 0x100
    assert [overlap["pair"] for overlap in operation["overlaps"]] == ["send->recv"]


def test_the_history_of_an_address_joins_sockets_heap_and_operations(client: TestClient) -> None:
    history = page(client, f"/t/{KEY}/address/1f0100")
    assert [row["address"] for row in history["allocations"]["rows"]] == ["0x1f0000"]
    assert [row["kind"] for row in history["operations"]["rows"]] == ["send", "recv", "recv"]
    assert len(history["overlaps"]["rows"]) == 1
    large = page(client, f"/t/{KEY}/address/0x6fffff")
    assert [row["size"] for row in large["allocations"]["rows"]] == [3 << 20]
    assert [row["what"] for row in page(client, f"/t/{KEY}/address/0x550000")["ranges"]["rows"]] == ["stack"]
    (module,) = page(client, f"/t/{KEY}/address/0x7ffa00001000")["ranges"]["rows"]
    assert module["name"] == "C:\\Windows\\System32\\ntdll.dll"
    endpoint = page(client, f"/t/{KEY}/address/0xffff9a0c2a001010")
    assert len(endpoint["sockets"]["rows"]) == 2
    assert "Nothing in this trace" in page(client, f"/t/{KEY}/address/0x10")["sentence"]


def test_groups_of_errors_leave_would_block_out(client: TestClient) -> None:
    rows = page(client, f"/t/{KEY}/errors?sort=first_ns")["listing"]["rows"]
    assert [(row["kind"], row["status"], row["count"]) for row in rows] == [("recvfrom", "0x80000005", 1), ("recv", "0xc000020d", 1)]


def test_a_listener_shows_how_it_keeps_up(client: TestClient) -> None:
    (row,) = page(client, f"/t/{KEY}/listeners")["listing"]["rows"]
    assert (row["backlog_asked"], row["backlog_peak"], row["indications"], row["accepted"]) == (5, 4, 1, 1)
    assert (row["accepted_unused"], row["longest_wait_ns"]) == (1, 1_000_000)


def test_a_connection_that_failed_without_an_abort_has_no_reason(tmp_path: Path) -> None:
    failed = {"socket_n": 3, "t_ns": 46 * 10**9, "what": "accept_failed", "status": 0xC000009A}
    rows = {**SMALL, "listen_event": [*SMALL["listen_event"], failed]}
    with served(built_database(tmp_path, rows, key=KEY)) as made:
        assert [row["reason"] for row in page(made, f"/t/{KEY}/listeners")["failures"]["rows"]] == ["77", None]
        html = made.get(f"/t/{KEY}/listeners").text
    assert '<td class="k-drop_reason" data-label="Abort reason"><span class="unknown">–</span></td>' in html


def test_ports_are_counted_at_their_peak(client: TestClient) -> None:
    ports = page(client, f"/t/{KEY}/ports")
    use = {row["process"]["image"]: row for row in ports["use"]["rows"] if row["process"]}
    assert (use["client.exe"]["peak_dynamic"], use["client.exe"]["peak_ns"]) == (1, 10_000_000)
    assert (use[HOSTILE]["opens"], use[HOSTILE]["open_at_end"]) == (3, 3)
    assert [(row["host"], row["count"], row["closed_here"]) for row in ports["listing"]["rows"]] == [("198.51.100.7", 2, 1)]
    assert [(row["status"], row["requested"]) for row in ports["failures"]["rows"]] == [("0xc0000209", "0.0.0.0:8080")]


def test_overlaps_say_how_many_operations_they_can_know(client: TestClient) -> None:
    assert page(client, f"/t/{KEY}/overlaps")["facts"][0].startswith("3 operations of 5 that were in flight")
    assert page(client, f"/t/{KEY}/in-flight-frees")["facts"][0].endswith("of the others nothing can be said here.")
    assert f'<a href="/t/{KEY}/operations?memory=heap">1 buffer in a heap block</a>' in client.get(f"/t/{KEY}/in-flight-frees").text


def test_held_memory_is_by_stack_without_the_allocator(client: TestClient) -> None:
    rows = page(client, f"/t/{KEY}/stacks")["listing"]["rows"]
    assert [(row["callers"], row["held_bytes"], row["held_count"]) for row in rows] == [
        ("0x7ff600003000", 3 << 20, 1),
        ("client.exe!send_all", 64, 1),
    ]


@pytest.mark.parametrize("name", LISTS)
def test_an_empty_list_says_why_and_how_to_record(bare: TestClient, name: str) -> None:
    empty = page(bare, f"/t/{KEY}/{name}")["empty"]
    if name == "processes":
        assert empty["command"] is None
        return
    assert any("-start HeapSession" in line or "logman start" in line for line in empty["command"]["lines"])
    assert "<figure" in bare.get(f"/t/{KEY}/{name}").text


def test_an_empty_list_names_what_was_left_out(tmp_path: Path) -> None:
    network_profile = {1000: "AfdCreate", 1001: "AfdClose", 1003: "AfdSend", 1004: "AfdReceive"}
    counts = [row for row in SMALL["event_count"] if row.get("event_id") in network_profile]
    with served(built_database(tmp_path, {"event_count": counts})) as client:
        drops, sends = page(client, f"/t/{KEY}/drops")["empty"], page(client, f"/t/{KEY}/operations")["empty"]
    assert "no records of dropped datagrams (ids 33, 34, 1033)" in drops["reason"]
    assert sends["reason"] == "No operation was recorded."


def test_a_filter_that_leaves_nothing_offers_the_way_out(client: TestClient) -> None:
    empty = page(client, f"/t/{KEY}/aborts?reason=9")["empty"]
    assert empty == {"reason": "No aborts for reason 9.", "ways": [{"text": "Show all", "href": f"/t/{KEY}/aborts"}], "command": None}


def test_csv_is_safe_to_open_in_a_spreadsheet(client: TestClient) -> None:
    answer = client.get(f"/t/{KEY}/processes?format=csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == f'attachment; filename="{KEY}-processes.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert rows[1]["command_line"] == "'=cmd|' /C calc'!A0"
    assert rows[1]["image"] == HOSTILE
    assert rows[0]["eprocess"] == "0xffff9a0c11223080"
    assert rows[0]["bytes_sent"] == "12400000"
    assert rows[2]["pid"] == ""


@pytest.mark.parametrize("name", LISTS)
def test_each_list_is_csv_with_the_same_rows(client: TestClient, name: str) -> None:
    answer = client.get(f"/t/{KEY}/{name}?format=csv")
    assert answer.status_code == 200
    assert len(list(csv.reader(io.StringIO(answer.text)))) - 1 == len(page(client, f"/t/{KEY}/{name}")["listing"]["rows"])


def test_csv_beyond_its_ceiling_links_the_next_file(client: TestClient) -> None:
    answer = client.get(f"/t/{KEY}/sockets?format=csv&limit=2")
    assert answer.headers["link"].endswith('>; rel="next"')
    assert "limit=2&format=csv&after=20000000>" in answer.headers["link"]


def test_the_form_of_an_answer_follows_the_accept_header(client: TestClient) -> None:
    browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    for accept, kind in ((browser, "text/html"), ("application/json", "application/json"), ("text/csv", "text/csv"), ("*/*", "text/html")):
        assert client.get(f"/t/{KEY}/sockets", headers={"Accept": accept}).headers["content-type"].startswith(kind)
    assert client.get(f"/t/{KEY}?format=csv").status_code == 400


def test_a_trace_that_is_being_collected_shows_its_progress(tmp_path: Path) -> None:
    folder = TraceFolder(tmp_path)
    catalog = Catalog(folder)
    catalog.begin("aaaabbbbcccc", name="big.etl", path="big.etl", size_bytes=4_000_000_000, version="0.1.0")
    with locks.held(folder.lock_path("aaaabbbbcccc"), "busy"), served(folder) as client:
        answer = client.get("/t/aaaabbbbcccc")
        assert answer.status_code == 200
        assert "being collected" in answer.text
        assert 'http-equiv="refresh"' in answer.text
        assert client.get("/t/aaaabbbbcccc/sockets").status_code == 503
        assert page(client, "/")["listing"]["rows"][0]["state"] == "collecting"


def test_without_traces_the_start_page_says_how_to_begin(tmp_path: Path) -> None:
    with served(TraceFolder(tmp_path / "none")) as client:
        assert "sockscope collect FILE.etl" in client.get("/").text
        assert client.get("/t/aaaabbbbcccc").status_code == 404
        assert client.get("/search?q=80").status_code == 200


def test_a_slow_question_is_an_answer(tmp_path: Path) -> None:
    rows = [{"pid": number, "image": f"p{number}.exe", "first_ns": number} for number in range(60_000)]
    with served(built_database(tmp_path, {"process": rows}), query_seconds=0.000_001) as client:
        answer = client.get(f"/t/{KEY}/processes?name=nothing-like-this")
    assert answer.status_code == 503
    assert "Narrow the time range" in answer.text
    assert answer.headers["retry-after"] == "2"


@pytest.mark.folder("damage of a file")
def test_a_damaged_trace_file_is_a_page_that_says_so(tmp_path: Path) -> None:
    folder = small_folder(tmp_path)
    folder.trace_path(KEY).write_bytes(b"this is no database" * 1000)
    with served(folder) as client:
        answer = client.get(f"/t/{KEY}/sockets")
    assert answer.status_code == 503
    assert "not a database of sockscope" in answer.text


@pytest.mark.parametrize(
    ("text", "group", "link"),
    [
        ("10054", "Errors", "operations?status=0xc000020d"),
        ("WSAECONNRESET", "Errors", "operations?status=0xc000020d"),
        ("0xC000020D", "Errors", "operations?status=0xc000020d"),
        ("STATUS_CONNECTION_RESET", "Errors", "operations?status=0xc000020d"),
        ("443", "Port", "sockets?address=198.51.100.7:443&unused="),
        ("198.51.100.0/24", "Addresses", "sockets?address=198.51.100.7:443&unused="),
        ("2001:db8::1", "Addresses", "sockets?address=%5B2001:db8::1%5D:53&unused="),
        ("900", "Processes by id", "processes/900@5000000"),
        ("CLIENT.EXE", "Processes by name", "processes/4242@0"),
        ("ffff9a0c2a001010", "Sockets", "sockets/0xffff9a0c2a001010@10000000"),
        ("0xffff9a0c11223080", "Process objects", "processes/4242@0"),
        ("0x1f0100", "Address", "address/0x1f0100"),
        ("ntdll", "Modules", "address/0x7ffa00000000"),
        ("aaaabbbb", "Stacks", "stacks/aaaabbbbccccdddd"),
        ("send_all", "Stacks", "stacks?frame=send_all"),
        ("port 443", "Port", "sockets?address=198.51.100.7:443&unused="),
        ("198.51.100", "Addresses", "sockets?address=198.51.100.7:443&unused="),
        ("client.exe 4242", "Processes by name and id", "processes/4242@0"),
        ("4242@0", "Process", "processes/4242@0"),
        ("ffff9a0c`2a001010", "Sockets", "sockets/0xffff9a0c2a001010@10000000"),
        ("0xffff9a0c2a001010@10000000", "Socket", "sockets/0xffff9a0c2a001010@10000000"),
        ("connection reset", "Errors", "operations?status=0xc000020d"),
        ("%2B1.5 s", "Moment", "around/1500000000"),
    ],
)
def test_the_search_box_understands_every_spelling(client: TestClient, text: str, group: str, link: str) -> None:
    found = page(client, f"/search?q={text}&trace={KEY}")["found"][0]["groups"]
    hits = {one["title"]: [hit["link"] for hit in one["hits"]] for one in found}
    assert link in hits[group]
    assert client.get(f"/t/{KEY}/{link}").status_code in ((200, 404) if group == "Sockets" else (200,))


def test_a_search_from_a_trace_stays_in_it_until_it_is_told_otherwise(client: TestClient) -> None:
    answer = client.get(f"/search?q=443&trace={KEY}").text
    assert answer.count(f'<input type="hidden" name="trace" value="{KEY}">') == 2
    assert f'<a href="/t/{KEY}">small.etl</a>' in answer.partition("<main")[0]
    assert 'name="trace"' not in client.get("/search?q=443").text


def test_a_search_says_where_it_looked_and_what_it_left_out(client: TestClient) -> None:
    nowhere = page(client, "/search?q=0xffff9a0c77777777")
    assert nowhere["sentence"] == "Nothing begins at “0xffff9a0c77777777” in 1 trace, but it may lie inside of something."
    assert [hit["is_offer"] for group in nowhere["found"][0]["groups"] for hit in group["hits"]] == [True]
    assert page(client, "/search?q=0xffff9a0c2a001010")["sentence"] == "2 matches for “0xffff9a0c2a001010” in 1 trace."
    assert page(client, "/search?q=zzz")["sentence"] == "Nothing matches “zzz” in 1 trace."
    assert page(client, "/search?q=small")["named"] == [{"text": "small.etl", "href": f"/t/{KEY}"}]
    assert page(client, "/search?q=zzz&trace=abc")["sentence"] == "Nothing matches “zzz” in trace abc, which is not in this database."


def test_what_is_not_in_a_trace_is_said_among_the_pages_of_the_trace(client: TestClient) -> None:
    answer = client.get(f"/t/{KEY}/sockets/0xffff@5")
    assert answer.status_code == 404
    assert f'href="/t/{KEY}/aborts"' in answer.text
    assert "data-share" not in answer.text, "there is no view to share"
    elsewhere = client.get("/t/000000000000/sockets")
    assert elsewhere.status_code == 404
    assert "/aborts" not in elsewhere.text


def test_every_matching_rule_and_odd_heap_record_has_a_label() -> None:
    known = {*MATCHES} - {"none"} | {"double_free", "free_wrong_heap", "free_never_allocated", "free_after_destroy", "free_unknown"}
    assert known <= {*LABELS}
    assert label("double_frees") == "double frees"


def test_a_search_has_what_is_called_so_before_what_has_the_text_in_it(tmp_path: Path) -> None:
    names = ["myapp.exe", "app-helper.exe", "wrapper.exe", "App.exe", *(f"app{number}.exe" for number in range(9))]
    modules = ["C:\\a\\apphelp.dll", "C:\\b\\app.dll", "C:\\app\\other.dll"]
    rows = {
        "process": [{"pid": 10 + number, "image": name, "first_ns": number} for number, name in enumerate(names)],
        "module": [{"process_n": 1, "base": number << 20, "size_bytes": 4096, "file": file} for number, file in enumerate(modules)],
    }
    with served(built_database(tmp_path, rows, key=KEY)) as client:
        groups = {one["title"]: one["hits"] for one in page(client, f"/search?q=app&trace={KEY}")["found"][0]["groups"]}
    assert [hit["text"].split()[0] for hit in groups["Processes by name"]][:3] == ["App.exe", "app-helper.exe", "app0.exe"]
    assert groups["Modules"][0]["text"] == modules[1]


def test_the_api_page_describes_every_filter(client: TestClient) -> None:
    docs = client.get("/docs").text
    assert "/t/{trace_key}/sockets" in docs
    assert "min_latency" in docs
    paths = client.get("/openapi.json").json()["paths"]
    names = {one["name"] for one in paths["/t/{trace_key}/sockets"]["get"]["parameters"]}
    assert {"process", "port", "from", "sort", "after", "format"} <= names
    assert "cdn" not in docs.lower()


def test_the_description_of_the_api_explains_everything_with_examples(client: TestClient) -> None:
    """Each page says what it does, each part of its link what it means, with an example that the page can read."""
    paths = client.get("/openapi.json").json()["paths"]
    tried = 0
    for path, methods in paths.items():
        for method, one in methods.items():
            assert one["summary"], path
            assert one["description"], path
            for part in one.get("parameters", ()):
                assert part["description"], (path, part["name"])
                assert "example" in part or "enum" in part["schema"], (path, part["name"])
            content = one["responses"].get("200", {}).get("content", {})
            if method != "get" or not path.startswith("/t/") or "text/html" not in content:
                continue
            assert {"application/json", "text/csv"} <= set(content), path
            if path.count("{") == 1:
                for part in one["parameters"]:
                    if part["in"] == "query" and "example" in part and part["name"] not in ("after", "table", "format"):
                        answer = client.get(path.format(trace_key=KEY), params={part["name"]: part["example"]})
                        assert answer.status_code == 200, (path, part, answer.text)
                        tried += 1
    assert tried > 100
    example = paths["/t/{trace_key}/sockets"]["get"]["responses"]["200"]["content"]["application/json"]["example"]
    listing = page(client, f"/t/{KEY}/sockets?port=443")["listing"]
    assert set(example["listing"]) == set(listing)
    assert set(example["listing"]["rows"][0]) <= set(listing["rows"][0])


@pytest.mark.parametrize(
    ("path", "tables"),
    [
        ("", {"top-processes"}),
        ("/sockets/0xffff9a0c2a001010@10000000", {"operations", "aborts", "peers", "options", "accepted"}),
        ("/heap/4242@0", {"stacks"}),
        ("/stacks/aaaabbbbccccdddd", {"frames", "users", "uses"}),
        ("/ports", {"ports", "use", "failures"}),
        ("/address/0x1f0100", {"sockets", "allocations", "operations", "overlaps", "ranges"}),
    ],
)
def test_each_table_of_a_page_is_csv(client: TestClient, path: str, tables: set[str]) -> None:
    """The page links each of its tables that has rows; one that it does not have is refused with those that it has."""
    refused = client.get(f"/t/{KEY}{path}?format=csv&table=nothing")
    assert refused.status_code == 400
    names = re.search(r"Name one with table=…: ([a-z, -]+)\.", refused.text)
    assert names is not None
    assert tables <= set(names[1].split(", "))
    html = client.get(f"/t/{KEY}{path}").text
    for name in names[1].split(", "):
        answer = client.get(f"/t/{KEY}{path}?format=csv&table={name}")
        assert answer.status_code == 200
        assert answer.headers["content-disposition"] == f'attachment; filename="{KEY}-{name}.csv"'
        has_rows = answer.text.count("\r\n") > 1
        if path != "/ports":  # a list has its links at its end
            assert (f'href="/t/{KEY}{path}?format=csv&amp;table={name}"' in html) == has_rows
    assert client.get(f"/t/{KEY}{path}?table=nothing").status_code == 400


def test_json_of_a_page_is_plain_json(client: TestClient) -> None:
    json.loads(client.get(f"/t/{KEY}/events?format=json").text)
