"""The list of all traces: filters, orders, pages, groups, and that thousands of traces cost no more than a page of them."""

import csv
import io
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlalchemy.engine import Engine

from app.keyset import Name
from app.paging import BadPosition
from app.queries import traces
from app.queries.traces import parse_day
from collector.store import locks
from collector.store.engine import TraceFolder
from tests.build.database import built_database
from tests.build.many import many_traces
from tests.build.served import served
from tests.build.small_trace import CLIENT, KEY, SMALL

ENTRIES: list[dict[str, object]] = [
    {"key": "aaaa00000001", "name": "good.etl", "label": "before the fix", "size_bytes": 5_000_000, "machine": "BUILD-7", "sockets": 4,
     "collected_utc": "2025-06-10T08:00:00+00:00"},
    {"key": "bbbb00000002", "name": "bad.etl", "findings": 3, "high_findings": 1, "losses": 1, "problems": 2, "machine": "build-7",
     "start_utc": "2025-06-04T23:59:59.999999Z", "collected_utc": "2025-06-11T08:00:00+00:00", "sockets": 9},
    {"key": "cccc00000003", "name": "100%_sure.etl", "state": "interrupted", "start_utc": None, "size_bytes": None,
     "message": "The collector ended before it was done.", "collected_utc": "2025-06-12T08:00:00+00:00", "names_left_out": None},
    {"key": "dddd00000004", "name": "bad.etl", "findings": 1, "machine": "laptop", "size_bytes": 70_000_000,
     "start_utc": "2025-06-05T00:00:00.000000Z", "collected_utc": "2025-06-09T08:00:00+00:00"},
]  # fmt: skip
ROWS: dict[str, list[dict[str, object]]] = {
    "catalog_program": [
        {"key": "aaaa00000001", "name": "client.exe", "processes": 1, "sockets": 4},
        {"key": "bbbb00000002", "name": "client.exe", "processes": 2, "sockets": 7},
        {"key": "bbbb00000002", "name": "svchost.exe", "processes": 40, "sockets": 0},
        {"key": "dddd00000004", "name": "server, new.exe", "processes": 1, "sockets": 0, "allocated": 5},
    ],
    "catalog_status": [
        {"key": "bbbb00000002", "status": 0xC000020D, "operations": 5, "binds": 0},
        {"key": "dddd00000004", "status": 0xC000020A, "operations": 0, "binds": 2},
    ],
    "catalog_abort": [
        {"key": "aaaa00000001", "reason": 4, "reason_name": "transport_disconnect", "aborts": 1},
        {"key": "bbbb00000002", "reason": 4, "reason_name": "transport_disconnect", "aborts": 3},
    ],
    "catalog_finding": [
        {"key": "bbbb00000002", "n": 1, "kind": "aborted", "severity": "high", "count": 2, "title": "2 connections were aborted"},
    ],
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with served(many_traces(tmp_path_factory.mktemp("traces"), ENTRIES, ROWS)) as made:
        yield made


def asked(client: TestClient, query: str) -> dict[str, Any]:
    """The page as JSON."""
    answer = client.get(f"/?{query}", headers={"Accept": "application/json"})
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


def letters(client: TestClient, query: str) -> str:
    """The first letters of the keys of the traces that are listed."""
    return "".join(row["key"][0] for row in asked(client, query)["listing"]["rows"])


# query string, words in the sentence, the traces that are left in their order; one line a filter
CASES = [
    ("text=bad", "with “bad” in their name, label or key", "bd"),
    ("text=BEFORE", "with “BEFORE”", "a"),
    ("text=cccc", "with “cccc”", "c"),
    ("text=0%25_s", "with “0%_s”", "c"),
    ("text=0000", "with “0000”", ""),
    ("state=interrupted", "that are interrupted", "c"),
    ("state=complete,live", "that are complete or live", "bad"),
    ("findings=yes", "with findings", "bd"),
    ("findings=high", "with findings of high severity", "b"),
    ("findings=no", "without findings", "ca"),
    ("finding=aborted", "with findings of kind aborted", "b"),
    ("status=10054", "STATUS_CONNECTION_RESET 0xC000020D", "b"),
    ("status=0xc0000001", "in which something failed with", ""),
    ("reason=4", "with aborts for reason 4", "ba"),
    ("losses=yes", "with lost or damaged data", "b"),
    ("losses=no", "without lost or damaged data", "cad"),
    ("from=2025-06-04", "recorded from 2025-06-04 on", "bd"),
    ("to=2025-06-04", "recorded to 2025-06-04", "ba"),
    ("day=2025-06-04", "recorded on day 2025-06-04", "b"),
    ("day=unknown", "recorded on day unknown", "c"),
    ("program=CLIENT", "with a process “CLIENT”", "ba"),
    ("machine=build-7", "of machine build-7", "ba"),
    ("machine=unknown", "of machine unknown", "c"),
    ("min_size=5 MB", "of 5.00 MB or more", "ad"),
    ("max_size=4 MB", "of 4.00 MB or less", "b"),
]


@pytest.mark.parametrize(("query", "words", "left"), CASES)
def test_each_filter_has_its_sql_and_its_words(client: TestClient, query: str, words: str, left: str) -> None:
    assert letters(client, query) == left
    page = asked(client, query)
    assert words in page["sentence"]
    assert page["listing"]["total"] == len(left)
    html = unescape(client.get(f"/?{query}", headers={"Accept": "text/html"}).text)
    assert words in html
    assert ("Show all" in html) == (not left)


def test_every_filter_is_tried() -> None:
    assert {query.partition("=")[0] for query, _, _ in CASES} == {one.key for one in traces.FILTERS}


@pytest.mark.parametrize("sort", [sign + one.key for one in traces.SORTS for sign in ("", "-")])
def test_each_order_visits_every_trace_once(client: TestClient, sort: str) -> None:
    whole = letters(client, f"sort={sort}")
    met, href = "", f"/?sort={sort}&limit=1"
    while href:
        listing = client.get(href, headers={"Accept": "application/json"}).json()["listing"]
        met += "".join(row["key"][0] for row in listing["rows"])
        href = listing["next"]
    assert met == whole
    assert sorted(met) == list("abcd")


@pytest.mark.parametrize(
    ("sort", "order"), [("", "cbad"), ("name", "cbda"), ("-size_bytes", "dabc"), ("-findings", "bdca"), ("-start_utc", "dbac")]
)
def test_orders_are_right_and_what_is_unknown_comes_last(client: TestClient, sort: str, order: str) -> None:
    assert letters(client, f"sort={sort}" if sort else "") == order


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("from=2025-06-31", "a day such as 2025-06-03"),
        ("from=2025-06-05&to=2025-06-04", "a range that runs forward"),
        ("state=gone", "one or some of collecting, live, complete, interrupted"),
        ("after=%3Dgone", "has no such page any more"),
        ("after=1", "a page position is what the link to the next page has"),
        ("after=%3Daaaa00000001,%3D1", "has no such page any more"),
        ("sort=mood", "this list sorts by"),
        ("finding=nope", "aborted or bind_failed or buffer_deregistered_in_use"),
        ("group=mood", "grouped by day, machine, program"),
        ("min_size=much", "a size such as"),
        ("colour=red", "no parameter of this name"),
    ],
)
def test_what_cannot_be_read_is_said(client: TestClient, query: str, words: str) -> None:
    answer = client.get(f"/?{query}")
    assert answer.status_code == 400
    assert words in unescape(answer.text)


def test_traces_are_grouped_by_day_machine_and_program_and_each_group_leads_to_its_traces(client: TestClient) -> None:
    wanted = {
        "day": [("2025-06-05", 1, 1, 0), ("2025-06-04", 1, 1, 1), ("2025-06-03", 1, 0, 0), (None, 1, 0, 0)],
        "machine": [("laptop", 1, 1, 0), ("build-7", 1, 1, 1), ("BUILD-7", 1, 0, 0), (None, 1, 0, 0)],
        "program": [("client.exe", 2, 1, 1), ("server, new.exe", 1, 1, 0)],
    }
    for by, groups in wanted.items():
        page = asked(client, f"group={by}")
        rows = page["listing"]["rows"]
        assert [(row["name"], row["traces"], row["with_findings"], row["with_losses"]) for row in rows] == groups
        assert page["listing"]["total"] == len(groups)
        for row in rows:
            behind = client.get(row["href"], headers={"Accept": "application/json"}).json()["listing"]["total"]
            assert behind == sum(other["traces"] for other in rows if (other["name"] or "").lower() == (row["name"] or "").lower())
    sentences = [asked(client, query)["sentence"] for query in ("group=program", "group=program&sort=traces", "group=day&losses=yes")]
    assert sentences == [
        "2 programs in traces, the one in the most traces first.",
        "2 programs in traces, the one in the fewest traces first.",
        "1 day with traces with lost or damaged data.",
    ]


@pytest.mark.parametrize("by", list(traces.GROUPINGS))
def test_groups_turn_pages_in_every_order_keep_filters_and_come_as_csv(client: TestClient, by: str) -> None:
    for sort in traces.GROUPINGS[by].sorts:
        for sign in ("", "-"):
            query = f"group={by}&sort={sign}{sort.key}"
            whole = [row["name"] for row in asked(client, query)["listing"]["rows"]]
            met, href = [], f"/?{query}&limit=1"
            while href:
                listing = client.get(href, headers={"Accept": "application/json"}).json()["listing"]
                met += [row["name"] for row in listing["rows"]]
                href = listing["next"]
            assert met == whole, query
    assert [row["traces"] for row in asked(client, f"group={by}&text=good")["listing"]["rows"]] == [1]
    page = unescape(client.get(f"/?group={by}&text=good", headers={"Accept": "text/html"}).text)
    assert f'<input type="hidden" name="group" value="{by}">' in page
    assert "text=good" in re.findall(r'<td class="k-group keep"[^>]*><a href="([^"]*)"', page)[0]
    rows = list(csv.DictReader(io.StringIO(client.get(f"/?group={by}&format=csv").text)))
    assert len(rows) == asked(client, f"group={by}")["listing"]["total"]


@pytest.mark.parametrize("path", ["/?", "/?group=day&", "/findings?", "/findings?table=kinds&"])
def test_a_file_without_rows_has_the_same_head(client: TestClient, path: str) -> None:
    full, bare = (client.get(f"{path}format=csv{more}").text.splitlines() for more in ("", "&text=zzz"))
    assert len(full) > 1
    assert bare == full[:1]


def test_a_position_is_read_as_it_is_written() -> None:
    for parts in (("aaaa",), (None,), ("a,b", "1"), ("=", None)):
        assert Name.parse(str(Name(parts))) == Name(parts)
    for text in ("aaaa", "", "=a,b"):
        with pytest.raises(BadPosition):
            Name.parse(text)


def test_days_have_a_next_one_until_the_last() -> None:
    assert traces.FILTERS[6].sql(parse_day("9999-12-31")) is not None
    with pytest.raises(ValueError, match="a day such as"):
        parse_day("20250603")


def test_traces_come_as_csv(client: TestClient) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get("/?format=csv&sort=key").text)))
    assert [row["key"][0] for row in rows] == list("abcd")
    assert rows[0]["label"] == "before the fix"


def test_the_state_that_is_filtered_by_is_the_one_that_is_shown(tmp_path: Path) -> None:
    folder = many_traces(tmp_path, [{"key": "eeee00000005", "state": "collecting"}, {"key": "ffff00000006", "state": "collecting"}])
    with served(folder) as client, locks.held(folder.lock_path("eeee00000005"), "busy"):
        assert letters(client, "state=collecting") == "e"
        assert letters(client, "state=interrupted") == "f"
        assert {row["state"] for row in asked(client, "state=interrupted")["listing"]["rows"]} == {"interrupted"}


def test_what_a_collected_trace_contains_is_in_the_catalog(tmp_path: Path) -> None:
    folder = built_database(tmp_path, SMALL, key=KEY)
    with served(folder) as client:
        page = asked(client, "program=client.exe")
        assert [row["key"] for row in page["listing"]["rows"]] == [KEY]
        names = [row["name"] for row in asked(client, "group=program")["listing"]["rows"]]
        assert "client.exe" in names
        assert "later.exe" not in names, "it has neither sockets nor a heap"
        assert client.get(f"/t/{KEY}/sockets/{CLIENT:#x}@10000000").status_code == 200


@pytest.fixture
def two_thousand(tmp_path: Path) -> TraceFolder:
    """Two thousand traces, each with a program."""
    entries = [
        {
            "key": f"{n:012x}",
            "name": f"run{n}.etl",
            "collected_utc": f"2025-06-{1 + n // 100:02}T08:{n % 60:02}:00+00:00",
            "findings": n % 7,
            "start_utc": f"2025-05-{1 + n % 28:02}T09:30:00Z",
        }
        for n in range(2_000)
    ]
    programs = [{"key": f"{n:012x}", "name": f"p{n % 30}.exe", "processes": 1, "sockets": 1} for n in range(2_000)]
    return many_traces(tmp_path, entries, {"catalog_program": programs})


@pytest.fixture
def statements() -> Iterator[list[tuple[str, Any]]]:
    """The statements of a test with their parameters."""
    statements: list[tuple[str, Any]] = []

    def note(_c: object, _cursor: object, statement: str, parameters: Any, _context: object, _many: object) -> None:
        statements.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    yield statements
    event.remove(Engine, "before_cursor_execute", note)


def test_two_thousand_traces_cost_few_statements_and_rows_of_one_page(two_thousand: TraceFolder, statements: list[tuple[str, Any]]) -> None:
    with served(two_thousand) as client:
        number = {}
        for query in ("", "findings=yes&sort=-findings", "group=day", "group=program"):
            client.get(f"/?{query}")
            statements.clear()
            page = asked(client, query)
            number[query] = len(statements)
            assert page["listing"]["total"] > 15
            assert len(page["listing"]["rows"]) <= 100
    assert max(number.values()) <= 5, number


@pytest.mark.folder("how SQLite finds the rows")
def test_the_newest_of_two_thousand_traces_are_found_by_an_index(two_thousand: TraceFolder, statements: list[tuple[str, Any]]) -> None:
    with served(two_thousand) as client:
        asked(client, "")
    page_of = [one for one in statements if "ORDER BY" in one[0]][-1]
    with two_thousand.catalog().connect() as db:
        plan = "\n".join(row[3] for row in db.exec_driver_sql(f"EXPLAIN QUERY PLAN {page_of[0]}", page_of[1]))
    assert "ix_trace_entry_collected_utc" in plan
    assert "TEMP B-TREE" not in plan
