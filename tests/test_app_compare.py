"""Two traces side by side: the numbers are those of each trace's own pages, what differs comes first, unknown stays unknown."""

import csv
import io
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.queries import compare_traces
from collector.limits import Limits, Who
from collector.problems import STORED_IN_PART
from collector.store.catalog import Catalog
from collector.store.tables import CATALOG
from tests.build.database import built_database
from tests.build.served import served
from tests.build.small_trace import KEY, SMALL

BAD, EMPTY, SOCKETS = "bbbb00000002", "cccc00000003", "dddd00000004"
TABLES = ("totals", "findings", "errors", "aborts", "operations", "latencies", "held")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = built_database(tmp_path_factory.mktemp("two"), SMALL, key=KEY, name="good.etl")
    more = {table: list(rows) for table, rows in SMALL.items()}
    more["abort"] = [*more["abort"], more["abort"][0], more["abort"][0]]
    more["operation"] = [*more["operation"], *[more["operation"][3]] * 4]  # failed receives
    more["operation"].append(more["operation"][1] | {"completed_ns": 9_000_000_000, "end_ns": 9_000_000_000})
    without_stack = {name: value for name, value in more["allocation"][1].items() if name != "owner_stack_ref"}
    more["allocation"] = [*more["allocation"], without_stack | {"address": 0x1FA000, "first_seq": 18}]
    more["finding"] = [
        *more["finding"],
        more["finding"][0] | {"kind": "buffer_overlap", "title": "A buffer was used twice", "link": "overlaps"},
    ]
    built_database(folder.root, more, key=BAD, name="bad.etl")
    built_database(folder.root, {}, key=EMPTY, name="empty.etl")
    without_heap = {
        table: rows for table, rows in SMALL.items() if table not in ("allocation", "finding", "heap", "operation_buffer", "io_finding")
    }
    without_heap["event_count"] = [
        row for row in SMALL["event_count"] if row["provider_name" if "provider_name" in row else "provider"] != "heap"
    ]
    built_database(folder.root, without_heap, key=SOCKETS, name="sockets.etl")
    with served(folder) as made:
        yield made


def compared(client: TestClient, query: str) -> dict[str, Any]:
    """The page as JSON."""
    answer = client.get(f"/compare?{query}", headers={"Accept": "application/json"})
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


def lines(page: dict[str, Any], table: str) -> dict[str, tuple[int | None, int | None]]:
    return {row["what"]: (row["a"], row["b"]) for row in page[table]["rows"]}


def test_numbers_of_both_stand_side_by_side_and_what_differs_comes_first(client: TestClient) -> None:
    page = compared(client, f"a={KEY}&b={BAD}")
    assert page["sentence"] == "good.etl (A) and bad.etl (B)."
    assert lines(page, "aborts") == {"4 transport disconnect": (1, 3), "77": (1, 1)}
    errors = page["errors"]["rows"]
    assert (errors[0]["what"][:23], errors[0]["a"], errors[0]["b"], errors[0]["difference"]) == ("STATUS_CONNECTION_RESET", 1, 5, 4)
    assert [row["difference"] for row in errors] == [4, 0, 0]
    assert page["operations"]["rows"][0]["what"] == "recv, failed"
    assert lines(page, "findings")["buffer overlap"][0] == 0
    assert lines(page, "totals")["Sockets"] == (6, 6)
    assert lines(page, "latencies")["send: 99 of 100 took at most"] == (1_000_000_000, 8_000_000_000)
    for table in TABLES:
        ranks = [0 if row["difference"] else 1 for row in page[table]["rows"]]
        assert ranks == sorted(ranks), table
    turned = compared(client, f"a={BAD}&b={KEY}")
    assert lines(turned, "aborts") == {"4 transport disconnect": (3, 1), "77": (1, 1)}


def test_each_number_leads_to_a_list_that_has_as_many(client: TestClient) -> None:
    page = compared(client, f"a={KEY}&b={BAD}")
    for table in ("aborts", "operations"):
        for row in page[table]["rows"]:
            for side, key in (("a", KEY), ("b", BAD)):
                answer = client.get(f"/t/{key}/{row[f'{side}_link']}", headers={"Accept": "application/json"}).json()
                assert answer["listing"]["total"] == row[side], row
    html = unescape(client.get(f"/compare?a={KEY}&b={BAD}", headers={"Accept": "text/html"}).text)
    assert f'<a href="/t/{BAD}/aborts?reason=4">3</a>' in html
    for href in set(re.findall(r'href="(/t/[^"]*)"', html)):
        assert client.get(href, headers={"Accept": "text/html"}, follow_redirects=True).status_code == 200, href


@pytest.mark.parametrize("process", ["", "client", "later.exe"])
def test_totals_are_the_sums_of_their_lists(client: TestClient, process: str) -> None:
    for side, key in enumerate((KEY, BAD)):

        def rows(path: str, key: str = key) -> list[dict[str, Any]]:
            query = f"{path}{'&' if '?' in path else '?'}process={process}" if process else path
            found: list[dict[str, Any]] = client.get(f"/t/{key}/{query}", headers={"Accept": "application/json"}).json()["listing"]["rows"]
            return found

        totals = {what: pair[side] for what, pair in lines(compared(client, f"a={KEY}&b={BAD}&process={process}"), "totals").items()}
        held = rows("allocations?state=live")
        assert totals["Failed operations, would-block answers left out"] == sum(row["count"] for row in rows("errors"))
        assert totals["Allocations"] == len(rows("allocations"))
        assert (totals["Blocks held at the end"], totals["Heap held at the end"]) == (len(held), sum(row["size"] for row in held))
        is_traced = process != "later.exe"
        assert totals["Bytes allocated, by the counters of the heap"] == (3_154_000 if is_traced else 0)


def test_a_process_filter_holds_in_both(client: TestClient) -> None:
    page = compared(client, f"a={KEY}&b={BAD}&process=client")
    assert page["sentence"] == "good.etl (A) and bad.etl (B), of process client."
    totals = lines(page, "totals")
    assert totals["Sockets"] == (2, 2)
    assert totals["Failed binds"] == (0, 0)
    assert [what[:23] for what in lines(page, "errors")] == ["STATUS_CONNECTION_RESET"]
    assert lines(page, "operations") == {}, "not summed by process"
    assert any("it is not known of one process" in fact for fact in page["facts"])
    link = page["errors"]["rows"][0]["b_link"]
    assert client.get(f"/t/{BAD}/{link}", headers={"Accept": "application/json"}).json()["listing"]["rows"][0]["count"] == 5
    nobody = compared(client, f"a={KEY}&b={BAD}&process=nobody.exe")
    assert "A has no process “nobody.exe”." in nobody["facts"]
    assert lines(nobody, "totals")["Sockets"] == (0, 0)


def test_what_was_not_recorded_is_unknown(client: TestClient) -> None:
    page = compared(client, f"a={KEY}&b={EMPTY}")
    for table in TABLES:
        for row in page[table]["rows"]:
            assert row["b"] is None, (table, row)
            assert row["difference"] is None
    assert lines(page, "totals")["Sockets"] == (6, None)
    no_heap = compared(client, f"a={KEY}&b={SOCKETS}")
    assert lines(no_heap, "totals")["Sockets"] == (6, 6)
    assert lines(no_heap, "totals")["Heap held at the end"][1] is None
    assert lines(no_heap, "findings")["freed in flight"][1] is None, "only the heap can show it"
    html = client.get(f"/compare?a={KEY}&b={EMPTY}", headers={"Accept": "text/html"}).text
    assert '<span class="unknown">unknown</span>' in html


NOBODY = Who("nobody.exe", image="nobody.exe")


@pytest.mark.parametrize(
    ("limits", "sockets", "heap"),
    [
        (Limits(only=("heap",)), None, 0),
        (Limits(only=("sockets",)), 0, None),
        (Limits(only=("heap",), processes=(NOBODY,)), None, None),
        (Limits(processes=(NOBODY,)), None, None),
        (Limits(to_ns=1), None, None),
    ],
)
def test_what_was_not_stored_is_unknown(tmp_path: Path, limits: Limits, sockets: int | None, heap: int | None) -> None:
    """B has no row of anything: what its limits left out may be anywhere in the whole trace."""
    folder = built_database(tmp_path, SMALL, key=KEY)
    text = STORED_IN_PART.text.format(what=limits.words)
    problem: dict[str, object] = {"kind": STORED_IN_PART.name, "severity": "limit", "count": 1, "text": text}
    built_database(tmp_path, {"event_count": SMALL["event_count"], "problem": [problem]}, key=BAD)
    with served(folder) as client:
        page = compared(client, f"a={KEY}&b={BAD}")
    assert any(fact.startswith(f"Only a part of B was stored: {limits.words}. ") for fact in page["facts"])
    of_heap = {"Heap held at the end", "Blocks held at the end", "Allocations", "Bytes allocated, by the counters of the heap"}
    for what, (_, b) in lines(page, "totals").items():
        assert b == (heap if what in of_heap else sockets), what
    for table in ("errors", "aborts", "operations"):
        assert {b for _, b in lines(page, table).values()} == {sockets}, table
    assert lines(page, "findings") == {"repeated errors": (4, sockets), "freed in flight": (1, None)}, "the second needs both"


def test_one_or_none_chosen_offers_the_choice(client: TestClient) -> None:
    for query in ("", f"a={KEY}", f"b={KEY}"):
        html = unescape(client.get(f"/compare?{query}", headers={"Accept": "text/html"}).text)
        assert "Choose two traces" in html
        assert html.count(f'<option value="{BAD}">') == 2
    start = client.get("/", headers={"Accept": "text/html"}).text
    assert start.count('form="compare"') == 8
    assert f'name="b" value="{KEY}"' in start
    assert f'href="/compare?b={KEY}"' in client.get(f"/t/{KEY}", headers={"Accept": "text/html"}).text


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        (f"a={KEY}&b={KEY}", 400, "this is one trace; choose two"),
        (f"a={KEY}&b=eeee00000009", 404, "is not in this database"),
        ("a=..%2F..%2Fetc", 404, "is not in this database"),
        (f"a={KEY}&c=1", 400, "no parameter of this name"),
        (f"a={KEY}&b={BAD}&c=1", 400, "It has a, b, format, process, table."),
        (f"a={KEY}&b={BAD}&table=aborts", 400, "ask for format=csv, too"),
        (f"a={KEY}&b={BAD}&format=csv", 400, "Name one with table="),
    ],
)
def test_what_cannot_be_compared_is_said(client: TestClient, query: str, status: int, words: str) -> None:
    answer = client.get(f"/compare?{query}")
    assert answer.status_code == status
    assert words in unescape(answer.text)


def test_a_trace_whose_file_is_gone_is_said(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = built_database(tmp_path_factory.mktemp("gone"), SMALL, key=KEY)
    built_database(folder.root, SMALL, key=BAD)
    folder.trace_path(BAD).unlink()
    with served(folder) as client:
        answer = client.get(f"/compare?a={KEY}&b={BAD}")
    assert answer.status_code == 404
    assert f"The file of trace {BAD} is not in this database" in answer.text


def test_tables_come_as_csv(client: TestClient) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get(f"/compare?a={KEY}&b={BAD}&format=csv&table=aborts").text)))
    assert [(row["what"], row["a"], row["b"], row["difference"]) for row in rows] == [
        ("4 transport disconnect", "1", "3", "2"), ("77", "1", "1", "0"),
    ]  # fmt: skip


def test_latencies_of_many_operations_are_those_of_some(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_traces, "SAMPLE", 9)
    page = compared(client, f"a={KEY}&b={BAD}")
    assert "Latencies of B are those of 9 operations picked at random." in page["facts"]
    assert not any(fact.startswith("Latencies of A") for fact in page["facts"]), "it has 8"
    assert page["latencies"] == compared(client, f"a={KEY}&b={BAD}")["latencies"], "the same ones each time"


def test_short_keys_and_those_of_live_traces_lead_to_the_whole(tmp_path: Path, client: TestClient) -> None:
    query = "process=client&format=json"
    answer = client.get(f"/compare?a={KEY[:6].upper()}&b={BAD[:7]}&{query}", follow_redirects=False)
    assert answer.status_code == 307
    assert answer.headers["location"] == f"/compare?{query}&a={KEY}&b={BAD}"
    assert client.get(f"/compare?a={KEY[:5]}", follow_redirects=False).status_code == 404, "too short"
    assert client.get("/compare?a=live-0000&format=json", follow_redirects=False).status_code == 404

    folder = built_database(tmp_path, {}, key="abcdef000001", name="one.etl")
    for key in ("abcdef000002", "bbbb00000002"):
        built_database(folder.root, {}, key=key, name=f"{key}.etl")
    with Catalog(folder).engine.begin() as connection:
        entry = CATALOG.tables["trace_entry"]
        connection.execute(entry.update().where(entry.c.key == "bbbb00000002").values(live_key="live-12ab"))
    with served(folder) as other:
        answer = other.get("/compare?a=abcdef000001&b=live-12ab", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (307, "/compare?a=abcdef000001&b=bbbb00000002")
        answer = other.get("/compare?a=abcdef&b=bbbb00000002", follow_redirects=False)
        assert answer.status_code == 300
        for key in ("abcdef000001", "abcdef000002"):
            assert f'href="/compare?b=bbbb00000002&a={key}"' in unescape(answer.text)
