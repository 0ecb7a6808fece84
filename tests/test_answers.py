"""Each of the questions that people bring to a trace is answered by a page of the sample; one test a question, named by its code."""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.answers import ANSWERS
from collector.errors import CollectCancelled
from collector.limits import Limits, parse_who
from collector.pipeline import import_trace
from collector.sample import write_sample
from collector.source import Source
from collector.stages import Progress
from collector.store.engine import TraceFolder
from tests.build.answers import text_of
from tests.build.database import BUILT_KEY, built_database
from tests.build.imported import Imported, collect
from tests.build.served import served
from tests.build.small_trace import KEY, small_folder

S = 1_000_000_000


class Pages:
    """Pages of the sample as JSON. Any: JSON."""

    def __init__(self, client: TestClient, key: str) -> None:
        self.client, self.key = client, key

    def page(self, path: str) -> dict[str, Any]:
        answer = self.client.get(f"/t/{self.key}/{path}".rstrip("/"), headers={"Accept": "application/json"})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def rows(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.page(path)["listing"]["rows"]
        return found

    def findings(self, code: str) -> list[dict[str, Any]]:
        return [finding for finding in self.page("")["findings"] if finding["code"] == code]


@pytest.fixture(scope="module")
def pages(sample: Imported) -> Iterator[Pages]:
    with served(sample.folder) as client:
        yield Pages(client, sample.report.key)


def link_of(code: str) -> str:
    """The page that the overview names for a question."""
    return next(answer.link for answer in ANSWERS if answer.code == code)


def test_q01_why_a_connection_ended_and_by_which_side(pages: Pages) -> None:
    aborts = {row["reason_number"]: row for row in pages.rows(f"{link_of('Q01')}?process=shopfront")}
    assert (aborts[4]["initiator"], aborts[4]["during"], aborts[4]["outstanding"], aborts[4]["remote"]) == (
        "transport",
        "running",
        1,
        "203.0.113.21:8080",
    )
    assert (aborts[7]["initiator"], aborts[7]["during"], aborts[7]["unread_bytes"]) == ("Winsock", "close", 1920)
    assert aborts[4]["reason_certainty"] == "possible"  # the number is recorded, its name is a reading
    assert pages.findings("Q01")


def test_q02_which_stacks_hold_the_memory(pages: Pages) -> None:
    first, second, *_ = pages.rows(f"{link_of('Q02')}?process=ledger")
    assert (first["held_count"], first["held_bytes"], first["allocations"]) == (29, 29 * 4096, 29)
    assert second["held_count"] == second["allocations"] > 400  # none was freed
    assert pages.page(f"stacks/{first['stack']}")["frames"]["rows"][0]["module"]


def test_q03_whether_the_data_can_be_trusted(pages: Pages) -> None:
    trust = pages.page(link_of("Q03"))
    assert {problem["kind"] for problem in trust["problems"]} == {"free_unknown", "sockets_without_create"}
    assert all(problem["effect"] for problem in trust["problems"])
    assert trust["unseen_creates"] == 1


def test_q04_which_operations_never_completed_or_too_late(pages: Pages) -> None:
    never = pages.rows(f"{link_of('Q04')}&process=shopfront")
    assert {row["outcome"] for row in never} == {"in_flight"}
    assert all(row["completed_ns"] is None for row in never)
    late = pages.rows("operations?late=yes&process=portstorm")
    assert len(late) == 90
    assert all(row["end_ns"] < row["completed_ns"] for row in late)


def test_q05_which_sockets_were_never_closed(pages: Pages) -> None:
    rows = pages.rows(f"{link_of('Q05')}&process=shopfront&address=198.51.100.33")
    assert len(rows) == 26
    assert {(row["create_seen"], row["closed_ns"]) for row in rows} == {(True, None)}
    assert pages.findings("Q05")


def test_q06_what_was_unread_or_in_flight_at_the_close(pages: Pages) -> None:
    rows = pages.rows(link_of("Q06"))
    assert [row["unread_bytes"] for row in rows if row["process"]["image"] == "shopfront.exe"] == [1920]
    assert {row["outstanding"] for row in rows if row["process"]["image"] == "portstorm.exe"} == {1}
    assert pages.findings("Q06")


def test_q07_a_page_has_a_ceiling_whatever_the_size(pages: Pages) -> None:
    listing = pages.page("operations")["listing"]
    assert len(listing["rows"]) == 100
    assert listing["next"] is not None
    assert pages.client.get(f"/t/{pages.key}/operations?limit=5000").status_code == 400
    assert len(pages.client.get(f"/t/{pages.key}/operations").text) < 300_000


def test_q07_a_large_trace_is_collected_with_progress_in_part_or_not_at_all(tmp_path: Path) -> None:
    write_sample(tmp_path / "sample.etl")
    folder, told = TraceFolder(tmp_path / "database"), list[Progress]()
    part = Limits((parse_who("ledger.exe"),), 30 * S, 40 * S)
    with pytest.raises(CollectCancelled), Source.open(tmp_path / "sample.etl") as source:
        import_trace(source, folder, should_cancel=lambda: True)
    assert list(folder.trace_keys()) == []

    with Source.open(tmp_path / "sample.etl") as source:
        key = import_trace(source, folder, told.append, limits=part).key
    with served(folder) as client:
        rows = Pages(client, key).rows("allocations?limit=1000")

    assert [progress.bytes_done for progress in told] == sorted(progress.bytes_done for progress in told)
    assert told[-1].bytes_done > 0
    assert {row["process"]["image"] for row in rows} == {"ledger.exe"}
    assert any(row["first_ns"] >= 30 * S for row in rows)
    assert all(row["first_ns"] <= 40 * S for row in rows)


def test_q08_one_socket_from_start_to_end(pages: Pages) -> None:
    (abort,) = (row for row in pages.rows("aborts?process=shopfront&reason=4"))
    socket = pages.page(f"sockets/{abort['socket']}")
    assert "203.0.113.21:8080" in str(socket)
    assert len(pages.rows(f"events?endpoint={abort['socket']}")) > 5


def test_q09_who_uses_up_the_ports(pages: Pages) -> None:
    ports = pages.page(link_of("Q09"))
    use = {row["process"]["image"]: row for row in ports["use"]["rows"] if row["process"]}
    assert use["portstorm.exe"]["peak_dynamic"] == 90
    assert use["portstorm.exe"]["bind_failures"] >= 40
    (storm,) = pages.rows("ports?process=portstorm")
    assert (storm["host"], storm["count"], storm["closed_here"]) == ("192.0.2.60", 90, 90)
    assert float(storm["per_second"]) > 40
    assert {row["status"] for row in ports["failures"]["rows"]} >= {"0xc0000209"}


def test_q10_whether_one_buffer_is_used_twice_at_once(pages: Pages) -> None:
    overlaps = pages.page(link_of("Q10"))
    rows = overlaps["listing"]["rows"]
    assert [(row["pair"], row["range"], row["severity"]) for row in rows][:2] == [
        ("send->recv", "partial", "high"),
        ("recv->send", "contained", "high"),
    ]
    assert "had a user address" in overlaps["facts"][0]
    first = pages.page(f"sockets/{rows[0]['first_socket']}/{rows[0]['first']}")
    assert [overlap["pair"] for overlap in first["overlaps"]] == ["send->recv"]


def test_q11_whether_a_buffer_was_freed_in_flight(pages: Pages) -> None:
    rows = pages.rows(link_of("Q11"))
    assert [row["kind"] for row in rows] == [
        "freed_in_flight",
        "reused_in_flight",
        "overruns_block",
        "posted_after_free",
        "shrunk_in_flight",
    ]
    assert rows[0]["free_stack"] is not None
    history = pages.page(f"address/{rows[0]['allocation_address']}")
    assert len(history["allocations"]["rows"]) >= 2
    assert rows[0]["operation"] in {row["operation"] for row in history["operations"]["rows"]}


def test_q12_why_sending_is_slow(pages: Pages) -> None:
    slowest = pages.rows(link_of("Q12"))
    latencies = [row["latency_ns"] for row in slowest if row["latency_ns"] is not None]
    assert latencies == sorted(latencies, reverse=True)
    assert slowest[0]["process"]["image"] == "skyrace.exe"
    assert 0.19 * S < latencies[0] < 0.25 * S
    assert slowest[0]["sends"] >= slowest[0]["small_sends"] > 0
    assert slowest[0]["mean_gap_ns"] > 0
    assert slowest[0]["most_in_flight"] >= 1
    single = pages.rows("operations?kind=send,sendto,sendmsg&sort=-latency_ns")
    assert single[0]["socket"] == slowest[0]["socket"]
    assert single[0]["latency_ns"] == latencies[0]


def test_q13_whether_the_listener_keeps_up(pages: Pages) -> None:
    (row,) = (row for row in pages.rows(link_of("Q13")) if row["local"] == "0.0.0.0:8443")
    assert (row["backlog_asked"], row["backlog_peak"]) == (8, 7)
    assert row["longest_wait_ns"] > 4 * S
    assert row["failed"] == len(pages.page(f"{link_of('Q13')}?process=catalogd")["failures"]["rows"]) == 5


def test_q14_what_is_in_the_file_and_why_a_view_is_empty(pages: Pages) -> None:
    inventory = pages.page(link_of("Q14").partition("#")[0])["listing"]["rows"]
    assert {"Microsoft-Windows-Winsock-AFD"} <= {row["provider_name"] for row in inventory}
    assert sum(row["count"] for row in inventory) == pages.page("")["recorded"]["records"]
    empty = pages.page("drops?process=ledger")["empty"]
    assert empty["reason"].startswith("No dropped datagrams of process ledger")


def test_q15_why_a_datagram_socket_reports_a_reset(pages: Pages) -> None:
    rows = pages.rows(f"{link_of('Q15')}&process=svchost")
    assert [(row["kind"], row["status"]) for row in rows] == [("recvmsg", "0xc000020d")]
    (finding,) = pages.findings("Q15")
    assert "the socket had sent to 3 addresses. SIO_UDP_CONNRESET was switched on." in finding["text"]
    socket = pages.page(f"sockets/{rows[0]['socket']}")
    assert [(row["name"], row["value"]) for row in socket["options"]["rows"]] == [("SIO_UDP_CONNRESET", 1)]
    earlier = f"operations?endpoint={rows[0]['socket']}&kind=sendmsg&to={rows[0]['completed_ns']}"
    assert rows[0]["peer"] in {row["peer"] for row in pages.rows(earlier)}


def test_q16_whether_small_sends_wait(pages: Pages) -> None:
    (row,) = pages.rows(link_of("Q16"))
    assert (row["process"]["image"], row["remote"]) == ("skyrace.exe", "203.0.113.11:5222")
    assert 0.19 * S < row["mean_ns"] < 0.22 * S
    assert row["lost_ns"] > 4 * S


def test_q17_both_ends_of_a_local_connection(pages: Pages) -> None:
    here, there = pages.rows(link_of("Q17"))
    assert (here["local"], here["remote"]) == (there["remote"], there["local"])
    assert (here["bytes_sent"], here["bytes_received"]) == (there["bytes_received"], there["bytes_sent"])
    html = pages.client.get(f"/t/{pages.key}/sockets/{here['socket']}").text
    assert 'id="socket-timeline"' in html
    assert 'id="peer-timeline"' in html
    path = f"/t/{pages.key}/sockets/{here['socket']}/timeline?from={S}&to={30 * S}"
    own, other = (pages.client.get(path + end).json()["figure"] for end in ("", "&end=other"))
    assert own["layout"]["meta"] == other["layout"]["meta"], "one axis for both"
    assert other == pages.client.get(path.replace(here["socket"], there["socket"])).json()["figure"]
    assert other != own


def test_q18_which_process_really_owns_a_socket(pages: Pages) -> None:
    first, second = (pages.page(f"processes/8412@{moment * S}")["process"]["image"] for moment in (40, 55))
    assert (first, second) == ("portstorm.exe", "notes.exe")  # one process id, two programs
    assert {row["process"]["image"] for row in pages.rows("sockets?process=8412")} == {"portstorm.exe", "notes.exe"}
    assert pages.page("operations?foreign=yes")["sentence"] == "No operations posted under another process id."


def test_q18_an_operation_shows_the_owner_and_the_process_in_whose_thread_it_was_posted(tmp_path: Path) -> None:
    with served(small_folder(tmp_path)) as client:
        small = Pages(client, KEY)
        (row,) = small.rows("operations?foreign=yes")
        html = client.get(f"/t/{KEY}/sockets/{row['socket']}/{row['operation']}").text
    assert (row["operation"], row["posted_pid"], row["process"]["pid"]) == ("recv:0x1f0100@1500000000", 4, 4242)
    assert "header pid 4 (differs from the owner's)" in text_of(html)


def test_q19_a_link_shows_the_same_in_another_copy(pages: Pages, tmp_path: Path) -> None:
    write_sample(tmp_path / "again.etl")
    again = collect(tmp_path / "again.etl", tmp_path)
    assert again.report.key == pages.key
    link = "operations?process=nightsafe&from=20000000000&to=28000000000&sort=-bytes&limit=5"
    following = pages.page(link)["listing"]["next"].partition(f"/t/{pages.key}/")[2]
    with served(again.folder) as client:
        copy = Pages(client, again.report.key)
        for path in (link, following, "aborts", "allocations?process=ledger&state=live"):
            assert copy.rows(path) == pages.rows(path)


def test_q20_schemas_come_with_the_program(pages: Pages) -> None:
    inventory = pages.rows("trust")
    ours = [row for row in inventory if row["provider_name"] == "Microsoft-Windows-Winsock-AFD"]
    assert all(row["known"] and row["event_name"] for row in ours)


def test_q21_which_datagrams_were_dropped_and_why(pages: Pages) -> None:
    drops = pages.page(f"{link_of('Q21')}?process=skyrace")
    assert any("2 no buffer space" in fact for fact in drops["facts"])
    row = drops["listing"]["rows"][0]
    assert (row["reason"], row["receive_buffer_bytes"], row["receives_outstanding"]) == ("2 no buffer space", 8192, 0)
    assert pages.findings("Q21")


def test_q22_which_receives_were_too_small(pages: Pages) -> None:
    rows = pages.rows(link_of("Q22"))
    assert [(row["posted_len"], row["arrived"], row["lost"], row["peer"]) for row in rows] == [(256, 900, 644, "203.0.113.40:27015")] * 3


def test_q23_whether_the_same_error_repeats(pages: Pages) -> None:
    rows = pages.rows(link_of("Q23"))
    assert all(row["first_ns"] <= row["last_ns"] for row in rows)
    reset = next(row for row in rows if row["status"] == "0xc000020d" and row["kind"] == "recv")
    assert reset["after_end"] == 1  # the receive failed because of the abort


def test_q24_how_each_heap_grows(pages: Pages) -> None:
    heap = pages.page(link_of("Q24"))
    assert "ledger.exe" in str(heap)
    process = next(row for row in pages.rows("processes") if row["image"] == "ledger.exe")
    assert process["peak_bytes"] > 6_000_000
    path = f"heap/{process['process']}"
    page = pages.page(path)
    figure = pages.client.get(f"/t/{pages.key}/{path}/timeline").json()["figure"]
    lines = {line["name"]: line for line in figure["data"]}
    assert lines["peak"]["y"] == [page["peak_bytes"]] == [process["peak_bytes"]]
    assert lines["live bytes"]["y"][-1] == page["live_bytes"] == sum(row["live_bytes"] for row in page["heaps"]["rows"])
    assert lines["live blocks"]["y"][-1] == page["live_blocks"]
    assert figure["layout"]["yaxis"]["title"]["text"] == "change since<br>the trace began"
    assert sum(lines["allocated"]["y"]) + sum(lines["released"]["y"]) == page["live_blocks"], "what came and went"


def test_q25_leak_or_fragmentation(pages: Pages) -> None:
    leak = {row["process"]["image"]: row for row in reversed(pages.rows("stacks"))}
    assert leak["ledger.exe"]["held_count"] == 29
    held = pages.rows("allocations?process=ledger&state=live&sort=-size")
    assert all(row["end_ns"] is None for row in held)
    page = pages.page(f"heap/{held[0]['process']['link']}")
    grown = page["fills"]["rows"][0]
    assert (grown["verdict"], grown["filled_percent"]) == ("fragmentation, or a peak kept", 2)
    assert grown["more_committed"] > 6_000_000 > 200_000 > grown["more_held"] > 0
    assert page["window"]["classes"]["stayed"] == len(held) + 340
    one = pages.page(f"heap/{grown['process']}/{grown['heap']}")
    assert one["fill"]["answer"]["verdict"] == "fragmented"


def test_every_question_is_reached_from_the_navigation_and_its_findings_from_there(pages: Pages) -> None:
    """The page of questions is one click from every page; it leads to each answer and to the findings of each."""
    html = pages.client.get(f"/t/{pages.key}/polls").text
    assert f'href="/t/{pages.key}/answers"' in html
    questions = pages.client.get(f"/t/{pages.key}/answers").text
    rows = {row["code"]: row for row in pages.rows("answers")}
    assert set(rows) == {answer.code for answer in ANSWERS}
    codes = {f"Q{number:02}" for number in range(1, 26)}
    assert codes - set(rows) == {"Q07", "Q19", "Q20"}  # asked of the program, not of a trace; the page leads to the manual for them
    for name in ("performance", "tour", "events"):
        assert f'href="/help/{name}"' in questions
        assert pages.client.get(f"/help/{name}").status_code == 200
    for code, row in rows.items():
        assert row["answer"] in ("in full", "in part"), code
        assert f'href="{escape("/t/" + pages.key + "/" + row["link"])}"' in questions, code
        assert pages.client.get(f"/t/{pages.key}/{row['link']}").status_code == 200, code
        found = pages.findings(code)
        assert row["findings"] >= len(found), code
        if found:
            assert row["worst"] in {finding["link"] for finding in found}, code


def test_every_finding_is_a_sentence_with_numbers_and_leads_to_its_evidence(pages: Pages) -> None:
    findings = pages.page("")["findings"]
    ranks = [("high", "medium", "low").index(finding["severity"]) for finding in findings]
    assert ranks == sorted(ranks)
    assert len(findings) > 10
    for finding in findings:
        assert re.search(r"[0-9]", finding["title"] + finding["text"]), finding
        assert finding["text"].rstrip().endswith("."), finding
        assert finding["code"] is None or finding["code"] in {answer.code for answer in ANSWERS}, finding
        assert finding["link"], finding
        assert pages.client.get(f"/t/{pages.key}/{finding['link']}").status_code in (200, 307), finding


def test_what_cannot_be_answered_says_what_to_record(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {})
    with served(folder) as client:
        page = Pages(client, BUILT_KEY).page("answers")
        html = client.get(f"/t/{BUILT_KEY}/answers").text
    rows = {row["code"]: row for row in page["listing"]["rows"]}
    assert (rows["Q01"]["answer"], rows["Q03"]["answer"]) == ("no", "in full")
    assert "records of aborts (ids 7, 8, 1032)" in rows["Q01"]["lacks"]
    assert any("logman start" in line for command in page["commands"] for line in command["lines"])
    assert "logman start" in html
