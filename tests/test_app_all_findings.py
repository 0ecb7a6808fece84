"""Findings over all traces, and a search that asks the catalog about all of them."""

import csv
import io
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.queries import all_findings
from tests.build.database import built_database
from tests.build.many import many_traces
from tests.build.served import served
from tests.build.small_trace import KEY, SMALL
from tests.test_app_traces import ENTRIES, ROWS

FOUND: list[dict[str, object]] = [
    {"key": "bbbb00000002", "n": 1, "kind": "aborted", "severity": "high", "count": 2, "title": "2 connections were aborted",
     "link": "aborts?reason=4"},
    {"key": "bbbb00000002", "n": 2, "kind": "buffer_overlap", "severity": "medium", "count": 7, "title": "A buffer was used twice",
     "link": "overlaps"},
    {"key": "bbbb00000002", "n": 3, "kind": "aborted", "severity": "low", "count": 1, "title": "A listener aborted a connection"},
    {"key": "dddd00000004", "n": 1, "kind": "aborted", "severity": "medium", "count": 30, "title": "30 connections were aborted",
     "link": "aborts"},
]  # fmt: skip


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = many_traces(tmp_path_factory.mktemp("found"), ENTRIES, ROWS | {"catalog_finding": FOUND})
    built_database(folder.root, SMALL, key=KEY)
    with served(folder) as made:
        yield made


def asked(client: TestClient, path: str) -> dict[str, Any]:
    """The page as JSON."""
    answer = client.get(path, headers={"Accept": "application/json"})
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


def numbers(client: TestClient, query: str) -> list[int]:
    """How often each finding that is listed occurred, those of the small trace left out."""
    return [row["count"] for row in asked(client, f"/findings?{query}")["listing"]["rows"] if row["key"] != KEY]


CASES = [
    ("kind=aborted", "of kind aborted", [2, 30, 1]),
    ("kind=aborted,buffer_overlap", "of kind aborted or buffer_overlap", [2, 7, 30, 1]),
    ("severity=medium", "of severity medium", [7, 30]),
    ("text=TWICE", "that say “TWICE”", [7]),
    ("text=buffer overlap", "that say “buffer overlap”", [7]),
    ("trace=bad", "in traces with “bad” in their name, label or key", [2, 7, 30, 1]),
    ("trace=dddd", "in traces with “dddd”", [30]),
    ("from=2025-06-05", "recorded from 2025-06-05 on", [30]),
    ("to=2025-06-04", "recorded to 2025-06-04", [2, 7, 1]),
    ("day=2025-06-04", "recorded on day 2025-06-04", [2, 7, 1]),
    ("machine=laptop", "of machine laptop", [30]),
]


@pytest.mark.parametrize(("query", "words", "left"), CASES)
def test_each_filter_has_its_sql_and_its_words(client: TestClient, query: str, words: str, left: list[int]) -> None:
    assert numbers(client, query) == left
    assert words in asked(client, f"/findings?{query}")["sentence"]


def test_every_filter_is_tried() -> None:
    assert {query.partition("=")[0] for query, _, _ in CASES} == {one.key for one in all_findings.FILTERS}


@pytest.mark.parametrize("sort", [sign + one.key for one in all_findings.SORTS for sign in ("", "-")])
def test_each_order_visits_every_finding_once(client: TestClient, sort: str) -> None:
    whole = [(row["key"], row["title"]) for row in asked(client, f"/findings?sort={sort}")["listing"]["rows"]]
    met: list[tuple[str, str]] = []
    href = f"/findings?sort={sort}&limit=2"
    while href and len(met) < 20:
        listing = asked(client, href)["listing"]
        met += [(row["key"], row["title"]) for row in listing["rows"]]
        href = listing["next"]
    assert met == whole
    assert len(set(met)) == len(FOUND) + len(SMALL["finding"])


def test_the_head_says_in_how_many_traces_each_kind_occurs(client: TestClient) -> None:
    kinds = {row["kind"]: row for row in asked(client, "/findings")["kinds"]["rows"]}
    assert (kinds["aborted"]["traces"], kinds["aborted"]["findings"], kinds["aborted"]["severity"]) == (2, 3, "high")
    assert kinds["aborted"]["last_utc"] == "2025-06-05T00:00:00.000000Z"
    narrowed = {row["kind"]: row["traces"] for row in asked(client, "/findings?trace=bbbb&kind=buffer_overlap")["kinds"]["rows"]}
    assert narrowed == {"aborted": 1, "buffer_overlap": 1}, "the other filters hold, that of the kind does not"
    assert numbers(client, kinds["aborted"]["href"].partition("?")[2]) == [2, 30, 1]


def test_each_finding_leads_to_its_evidence(client: TestClient) -> None:
    page = unescape(client.get("/findings", headers={"Accept": "text/html"}).text)
    links = re.findall(r'<td class="k-evidence keep"[^>]*><a href="([^"]*)"', page)
    assert {f"/t/{KEY}/in-flight-frees", "/t/bbbb00000002/aborts?reason=4", "/t/bbbb00000002"} <= set(links)
    assert client.get(f"/t/{KEY}/in-flight-frees").status_code == 200


def test_findings_come_as_csv_and_say_why_there_are_none(client: TestClient) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get("/findings?format=csv&severity=low&trace=bbbb").text)))
    assert [row["title"] for row in rows] == ["A listener aborted a connection"]
    kinds = list(csv.DictReader(io.StringIO(client.get("/findings?format=csv&table=kinds").text)))
    assert {row["kind"] for row in kinds} >= {"aborted", "buffer_overlap"}
    assert "No findings of kind half_closed." in unescape(client.get("/findings?kind=half_closed").text)
    unknown = client.get("/findings?kind=aborted,nope")
    assert (unknown.status_code, "one or some of aborted, bind_failed, buffer_deregistered_in_use" in unknown.text) == (400, True)
    for query in ("severity=bad", "after=%3Dbbbb00000002", "after=%3Dbbbb00000002,%3Dx", "kind=,", "day=1"):
        assert client.get(f"/findings?{query}").status_code == 400, query


def test_an_empty_database_has_no_findings_and_says_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    with served(many_traces(tmp_path_factory.mktemp("none"), [{"key": "aaaa00000001"}])) as client:
        assert "No trace of this database has a finding." in client.get("/findings").text


@pytest.mark.parametrize(
    ("text", "title", "keys", "href"),
    [
        ("WSAECONNRESET", "Traces with errors “WSAECONNRESET”", "b0", "/?status=WSAECONNRESET"),
        ("0xc000020a", "Traces with STATUS_ADDRESS_ALREADY_EXISTS", "d", "/?status=0xc000020a"),
        ("client.exe", "Traces with a process “client.exe”", "ba0", "/?program=client.exe"),
        ("reason 4", "Traces with aborts for reason 4", "ba0", "/?reason=4"),
        ("overlap", "Traces with findings that say “overlap”", "b", "/findings?text=overlap"),
    ],
)
def test_a_search_says_which_of_all_traces_show_it(client: TestClient, text: str, title: str, keys: str, href: str) -> None:
    page = client.get("/search", params={"q": text}, headers={"Accept": "application/json"}).json()
    (part,) = [one for one in page["across"] if one["title"].startswith(title)]
    assert "".join(row["key"][0] for row in part["rows"]) == keys
    assert part["traces"] == len(keys)
    assert part["href"] == href
    if href.startswith("/?"):
        assert {row["key"] for row in asked(client, href)["listing"]["rows"]} == {row["key"] for row in part["rows"]}
    html = unescape(client.get("/search", params={"q": text}, headers={"Accept": "text/html"}).text)
    assert title in html
    assert f'<a href="{href}">All of them</a>' in html


def test_a_search_within_a_trace_asks_no_other(client: TestClient) -> None:
    page = client.get("/search", params={"q": "client.exe", "trace": KEY}, headers={"Accept": "application/json"}).json()
    assert page["across"] == []
    assert [one["key"] for one in page["found"]] == [KEY]


def test_a_search_says_of_which_traces_the_catalog_knows_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    entries: list[dict[str, object]] = [{"key": "aaaa00000001", "names_left_out": None}, {"key": "bbbb00000002"}]
    with served(many_traces(tmp_path_factory.mktemp("old"), entries)) as client:
        page = asked(client, "/search?q=client.exe")
        assert page["gaps"] == "What 1 trace of this database contains is not entered yet: run sockscope migrate where the files are."
        assert page["gaps"] in client.get("/search?q=client.exe", headers={"Accept": "text/html"}).text
    with served(many_traces(tmp_path_factory.mktemp("new"), entries[1:])) as client:
        assert asked(client, "/search?q=client.exe")["gaps"] == ""
