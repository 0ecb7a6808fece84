"""Traces without what a page needs: the page says which records are missing and how to record them; the inventory says what is there."""

from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from fastapi.testclient import TestClient

from collector.etlwriter import Record
from collector.events.afd import AFD_EVENTS
from collector.raw import HeaderKind
from collector.recording import HEAP_LINES, SOCKET_LINES
from tests.build import Trace, afd, documented
from tests.build.answers import text_of
from tests.build.imported import collect
from tests.build.served import served

TCPIP = UUID("2f07e2ee-15db-40f1-90ef-9d7ba282188a")
LISTS = ("sockets", "operations", "aborts", "overlaps", "listeners", "drops", "heap", "allocations", "in-flight-frees")


def foreign(count: int) -> list[Record]:
    clock = Trace().clock
    return [
        Record(
            kind=HeaderKind.EVENT64, ticks=clock.start_ticks + 10 + n, pid=4120, provider=TCPIP, event_id=1300 + n % 3, payload=bytes(40)
        )
        for n in range(count)
    ]


TRACES = {
    "only the protocol driver": Trace().cpu(0, foreign(30)),
    "sockets at level 2": Trace().cpu(0, afd.abort(at_us=10), afd.abort(at_us=20, reason=5), afd.drop(at_us=30)),
    "sockets without transfers": Trace().cpu(0, afd.opened(at_us=10), afd.closed(at_us=500)),
    "sockets without keyword 0x8": Trace().cpu(0, afd.opened(at_us=10), afd.sent(at_us=50, length_bytes=9), afd.closed(at_us=500)),
    "sockets without keyword 0x4": Trace().cpu(0, afd.data_indication(at_us=10, length_bytes=9), afd.disconnect(at_us=500)),
    "older sockets at level 4": Trace().cpu(0, documented.create(at_us=10), documented.bind(at_us=20), documented.close(at_us=90)),
}


@contextmanager
def shown(trace: Trace, folder: Path) -> Iterator[tuple[TestClient, str]]:
    imported = collect(trace, folder)
    with served(imported.folder) as client:
        yield client, f"/t/{imported.report.key}"


def problems(client: TestClient, base: str) -> dict[str, dict[str, Any]]:  # cells of JSON
    return {one["kind"]: one for one in client.get(f"{base}/trust?format=json").json()["problems"]}


@pytest.mark.parametrize("name", list(TRACES))
def test_every_list_that_is_empty_says_what_is_missing_or_that_it_was_looked_for(tmp_path: Path, name: str) -> None:
    with shown(TRACES[name], tmp_path) as (client, base):
        for part in LISTS:
            page = client.get(f"{base}/{part}")
            assert page.status_code == 200, part
            said = text_of(page.text)
            if 'class="empty"' not in page.text and "<tbody" not in page.text:
                raise AssertionError(f"{part} is neither a table nor a reason")
            if 'class="empty"' in page.text:
                assert "There is no" in said or "has no" in said or "was not recorded" in said or "No " in said, part


@pytest.mark.parametrize(
    ("name", "kind", "words", "advice"),
    [
        ("only the protocol driver", "no_socket_events", "no event of the Winsock provider", "Microsoft-Windows-Winsock-AFD"),
        ("sockets at level 2", "socket_failures_only", "level 2", "level 5"),
        ("sockets without transfers", "absent_socket_events", "1006", "level 5"),
        ("sockets without keyword 0x8", "no_transport_indications", "keyword 0x8 was probably not enabled", "0xffffffffffffffff 5"),
        ("sockets without keyword 0x4", "no_socket_calls", "keyword 0x4 was probably not enabled", "0xffffffffffffffff 5"),
        ("older sockets at level 4", "socket_level_too_low", "level 4", "level 5"),
    ],
)
def test_the_trust_page_names_the_level_the_keyword_or_the_ids_and_the_command(
    tmp_path: Path, name: str, kind: str, words: str, advice: str
) -> None:
    with shown(TRACES[name], tmp_path) as (client, base):
        found = problems(client, base)[kind]
        assert words in found["text"]
        assert advice in found["advice"]
        assert found["advice"].split(".")[0] in unescape(client.get(f"{base}/trust").text)


@pytest.mark.parametrize(("part", "lines"), [("operations", SOCKET_LINES), ("sockets", SOCKET_LINES), ("heap", HEAP_LINES)])
def test_a_page_without_its_records_gives_the_command_that_records_them(tmp_path: Path, part: str, lines: tuple[str, ...]) -> None:
    with shown(TRACES["only the protocol driver"], tmp_path) as (client, base):
        page = unescape(client.get(f"{base}/{part}").text)
    assert 'class="empty"' in page
    for line in lines:
        assert line in page


@pytest.mark.parametrize(
    ("name", "part", "ids"),
    [
        ("sockets without transfers", "operations", "1003 to 1015"),
        ("sockets without transfers", "aborts", "1032"),
        ("sockets without transfers", "drops", "1033"),
        ("sockets at level 2", "operations", "1003 to 1015"),
        ("sockets at level 2", "listeners", "1037"),
        ("sockets without keyword 0x4", "operations", "with keyword 0x8 alone the newer ones"),
        ("sockets without keyword 0x4", "aborts", "level 5 with all keywords, the newer ones with 0x4"),
        ("older sockets at level 4", "operations", "18 to 28"),
        ("older sockets at level 4", "overlaps", "18 to 28"),
    ],
)
def test_a_list_names_the_ids_or_the_keyword_that_it_would_need(tmp_path: Path, name: str, part: str, ids: str) -> None:
    with shown(TRACES[name], tmp_path) as (client, base):
        page = client.get(f"{base}/{part}").text
    assert 'class="empty"' in page
    assert ids in page
    assert "level" in page
    assert SOCKET_LINES[0] in unescape(page)


@pytest.mark.parametrize(("name", "number"), [("sockets at level 2", 1), ("older sockets at level 4", 1), ("sockets without transfers", 0)])
def test_a_socket_of_which_little_is_known_is_not_taken_for_unused(tmp_path: Path, name: str, number: int) -> None:
    with shown(TRACES[name], tmp_path) as (client, base):
        assert len(client.get(f"{base}/sockets?format=json").json()["listing"]["rows"]) == number
        assert len(client.get(f"{base}/sockets?format=json&unused=").json()["listing"]["rows"]) == 1


def test_the_inventory_lists_what_is_there(tmp_path: Path) -> None:
    with shown(TRACES["only the protocol driver"], tmp_path) as (client, base):
        rows = client.get(f"{base}/trust?format=json").json()["listing"]["rows"]
        counts = {(row["provider"], row["event_id"]): row["count"] for row in rows}
        assert {counts[str(TCPIP), 1300 + n] for n in range(3)} == {10}
        assert "1300" in client.get(f"{base}/trust").text


def test_descriptions_in_the_file_make_no_difference_to_what_is_decoded(tmp_path: Path) -> None:
    """The same trace from a machine whose files bring their own descriptions, and from one whose files do not."""
    rows = []
    for has_metadata in (False, True):
        trace = Trace(has_metadata=has_metadata).cpu(0, afd.opened(at_us=10), afd.sent(at_us=50, length_bytes=9), foreign(4))
        folder = tmp_path / str(has_metadata)
        folder.mkdir()
        imported = collect(trace, folder)
        names = imported.rows(
            "SELECT event_id, event_name, known, count FROM v_event_counts WHERE provider LIKE 'e53c6823%' ORDER BY event_id"
        )
        kept = imported.rows("SELECT event_id, count, known FROM v_event_counts WHERE provider = ? ORDER BY event_id", str(TCPIP))
        rows.append((names, kept, imported.rows("SELECT kind, bytes, outcome FROM v_operations")))
    assert rows[0] == rows[1]
    assert [row[0] for row in rows[0][0]] == [1000, 1003]
    assert {row[1] for row in rows[0][0]} <= {schema.name for schema in AFD_EVENTS}
    assert [row[:2] for row in rows[0][1]] == [(1300, 2), (1301, 1), (1302, 1)]
