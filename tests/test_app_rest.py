"""Nothing that a page leaves out is left out without a word, and the way to the rest is a link."""

import re
from html import unescape

import pytest
from fastapi.testclient import TestClient

from tests.build import EXIT, Trace, afd, heap, system
from tests.build.answers import as_json
from tests.build.events import PID
from tests.build.imported import Imported, ImportTrace
from tests.build.served import served


def html_of(client: TestClient, path: str) -> str:
    answer = client.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    return answer.text


def test_binds_that_failed_beyond_those_shown_are_mentioned(import_trace: ImportTrace) -> None:
    pairs = [
        (
            afd.bind(at_us=100 + 4 * n, endpoint=0xE000 + n, address="0.0.0.0:80"),
            afd.bind(at_us=101 + 4 * n, endpoint=0xE000 + n, enter_exit=EXIT, address=None, status=0xC000_0209),
        )
        for n in range(201)
    ]
    trace = import_trace(Trace().cpu(0, *(event for pair in pairs for event in pair)))
    with served(trace.folder) as client:
        page = as_json(client, f"/t/{trace.report.key}/ports")
        fewer = as_json(client, f"/t/{trace.report.key}/ports?from=110000")
    assert len(page["failures"]["rows"]) == 200
    assert page["failures_note"] == "The first 200 are shown; narrow the time or the process to see others."
    assert fewer["failures_note"] == ""


def test_an_address_with_many_lives_leads_to_all_of_them(import_trace: ImportTrace) -> None:
    events = [
        event
        for n in range(130)
        for event in (heap.alloc(at_us=10 + 10 * n, address=0x5000, size=64), heap.free(at_us=15 + 10 * n, address=0x5000))
    ]
    trace = import_trace(Trace().cpu(0, system.process_start(at_us=1, pid=PID), *events))
    with served(trace.folder) as client:
        page = html_of(client, f"/t/{trace.report.key}/address/0x5010")
        found = re.search(r'href="([^"]*)">All allocations at this address<', page)
        assert found is not None
        listed = as_json(client, unescape(found[1]) + "&limit=1000")
    assert len(listed["listing"]["rows"]) == 130


def test_the_side_of_an_abort_is_marked_where_the_number_tells_it(sample: Imported) -> None:
    ((modern,),) = sample.rows("SELECT count(*) FROM abort WHERE event NOT IN (7, 8) AND reason IN (4, 18)")
    assert modern > 0
    with served(sample.folder) as client:
        rows = as_json(client, f"/t/{sample.report.key}/aborts?limit=1000")["listing"]["rows"]
        page = html_of(client, f"/t/{sample.report.key}/aborts?reason=4")
        other = html_of(client, f"/t/{sample.report.key}/aborts?reason=7")
    assert {row["initiator"] for row in rows if row["initiator_inferred"]} == {"transport"}
    assert sum(row["initiator_inferred"] for row in rows) == modern
    assert page.count(">inferred</span>") >= modern
    assert 'data-label="By">Winsock</td>' in other


def test_a_window_of_the_heap_is_summed_by_module_too(sample: Imported) -> None:
    ((process,),) = sample.rows("SELECT process FROM v_allocations GROUP BY process ORDER BY count(*) DESC LIMIT 1")
    path = f"/t/{sample.report.key}/heap/{process}"
    with served(sample.folder) as client:
        window = as_json(client, path)["window"]
        shown = html_of(client, path)
    modules = window["modules"]["rows"]
    assert "The same by module" in shown
    assert [row["held_bytes"] for row in modules] == sorted((row["held_bytes"] for row in modules), reverse=True)
    assert sum(row["held"] for row in modules) == window["classes"]["stayed"]
    assert sum(row["held_bytes"] for row in modules) == window["classes"]["stayed_bytes"]


def test_notes_are_one_click_from_every_page(sample: Imported) -> None:
    key = sample.report.key
    with served(sample.folder) as client:
        for path in ("", "/sockets", "/heap", "/trust"):
            assert f'href="/t/{key}/notes"' in html_of(client, f"/t/{key}{path}")
        assert 'aria-current="page">Notes<' in html_of(client, f"/t/{key}/notes")


@pytest.mark.parametrize(("form", "most"), [("html", 200), ("json", 1000)])
def test_a_page_has_no_more_rows_than_can_be_shown(sample: Imported, form: str, most: int) -> None:
    with served(sample.folder) as client:
        path = f"/t/{sample.report.key}/operations?format={form}"
        assert client.get(f"{path}&limit={most + 1}").status_code == 400
        whole = client.get(f"{path}&limit={most}")
    assert whole.status_code == 200
    if form == "html":
        assert whole.text.count("<tr") == most + 1
        assert len(whole.content) < 450_000
    else:
        assert len(whole.json()["listing"]["rows"]) == most


def test_errors_that_an_abort_brought_are_told_apart_from_none(sample: Imported) -> None:
    reset = sample.rows("SELECT socket FROM v_aborts WHERE reason = 4 AND on_listener = 0 ORDER BY t_ns")[0][0]
    calm = sample.rows("SELECT socket FROM v_sockets WHERE errors = 0 AND last_error IS NULL AND sends > 0")[0][0]
    with served(sample.folder) as client:
        page = html_of(client, f"/t/{sample.report.key}/sockets/{reset}")
        assert "none of its own; the abort ended operations with STATUS_CONNECTION_RESET" in page
        assert "<dt>Errors</dt><dd>none</dd>" in html_of(client, f"/t/{sample.report.key}/sockets/{calm}")


def test_a_listener_shows_who_connected(sample: Imported) -> None:
    listener = sample.rows("SELECT accepted_from FROM v_sockets WHERE accepted_from IS NOT NULL")[0][0]
    with served(sample.folder) as client:
        operations = as_json(client, f"/t/{sample.report.key}/sockets/{listener}")["operations"]["rows"]
        page = html_of(client, f"/t/{sample.report.key}/sockets/{listener}")
    assert operations[0]["peer"]
    assert 'data-label="Peer"' in page


def test_a_finding_says_once_how_sure_it_is(sample: Imported) -> None:
    with served(sample.folder) as client:
        page = html_of(client, f"/t/{sample.report.key}")
    found = re.findall(r"<li>\s*<span class=\"severity.*?</li>", page, re.DOTALL)
    assert len(found) > 20
    for one in found:
        assert len(re.findall(r"(?:Certain|Possible):|class=\"certainty", one)) == 1, one
