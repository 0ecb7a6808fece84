"""Links that do not say exactly what they mean, or name what this copy of a trace does not have: an answer, never a silent choice."""

from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.build import Trace, heap, system
from tests.build.database import built_database
from tests.build.imported import ImportTrace
from tests.build.served import served
from tests.build.small_trace import KEY, SMALL, small_folder

SOCKET = "0xffff9a0c2a001010"
UDP = "0xffff9a0c2a002020"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with served(small_folder(tmp_path_factory.mktemp("small"))) as made:
        yield made


def answer(client: TestClient, path: str) -> dict[str, Any]:  # Any: JSON
    """A page that says what went wrong, as JSON."""
    got = client.get(path, headers={"Accept": "application/json"})
    assert got.status_code >= 300
    found: dict[str, Any] = got.json()
    return found


def hrefs(page: dict[str, Any]) -> list[str]:  # Any: as above
    return [way["href"] for way in page["ways"]]


# ---------------------------------------------------------------------------------------------------- no time in the link


@pytest.mark.parametrize(
    ("bare", "whole"),
    [
        ("/processes/900", "/processes/900@5000000"),
        ("/processes/900?clock=utc", "/processes/900@5000000?clock=utc"),
        ("/processes/0xffff9a0c99999080", "/processes/0xffff9a0c99999080@7000000"),
        (f"/sockets/{UDP}?from=1s&kind=abort", f"/sockets/{UDP}@20000000?from=1s&kind=abort"),
        (f"/sockets/{UDP}/timeline?from=1&to=9", f"/sockets/{UDP}@20000000/timeline?from=1&to=9"),
        ("/heap/900/timeline?to=9", "/heap/900@5000000/timeline?to=9"),
        ("/heap/4242@0/0x1e0000?from=5", "/heap/4242@0/0x1e0000@0?from=5"),
        ("/heap/4242@0/0x1e0000:0x1f8000?format=json", "/heap/4242@0/0x1e0000:0x1f8000@200000000?format=json"),
    ],
)
def test_the_only_life_of_a_name_is_meant(client: TestClient, bare: str, whole: str) -> None:
    got = client.get(f"/t/{KEY}{bare}")
    assert (got.status_code, got.headers["location"]) == (307, f"/t/{KEY}{whole}")
    assert client.get(got.headers["location"]).status_code == 200


def test_a_process_id_of_two_processes_is_the_readers_choice(client: TestClient) -> None:
    page = answer(client, f"/t/{KEY}/processes/4242?clock=utc")
    assert page["status"] == 300
    assert page["sentence"].startswith("2 processes had the process id 4242 one after the other.")
    first, second, everything = page["ways"]
    assert first["href"] == f"/t/{KEY}/processes/4242@0?clock=utc"
    assert first["text"].startswith("client.exe 4242, from ")
    assert second["href"] == f"/t/{KEY}/processes/4242@55000000000?clock=utc"
    assert "later.exe" in second["text"]
    assert everything["href"] == f"/t/{KEY}/processes?clock=utc&pid=4242"
    assert client.get(everything["href"]).status_code == 200
    html = unescape(client.get(f"/t/{KEY}/processes/4242").text)
    assert "Choose one:" in html
    assert "later.exe 4242" in html


def test_a_choice_leads_to_the_same_page_of_the_chosen_process(client: TestClient) -> None:
    assert hrefs(answer(client, f"/t/{KEY}/heap/4242/flame?to=2s"))[0] == f"/t/{KEY}/heap/4242@0/flame?to=2s"


def test_an_endpoint_address_of_two_sockets_is_the_readers_choice(client: TestClient) -> None:
    page = answer(client, f"/t/{KEY}/sockets/{SOCKET}?from=1s")
    assert page["status"] == 300
    assert hrefs(page) == [
        f"/t/{KEY}/sockets/{SOCKET}@10000000?from=1s",
        f"/t/{KEY}/sockets/{SOCKET}@45000000000?from=1s",
        f"/t/{KEY}/sockets?endpoint={SOCKET}",
    ]
    assert "socket of client.exe 4242 to 198.51.100.7:443" in page["ways"][0]["text"]
    assert "there when the trace ended" in page["ways"][1]["text"]


def test_an_operation_says_which_socket_is_meant(client: TestClient) -> None:
    assert client.get(f"/t/{KEY}/sockets/{SOCKET}/recv:0x1f0100@1500000000").status_code == 200
    assert client.get(f"/t/{KEY}/sockets/{SOCKET}/send:0x0@45001000000").status_code == 200


def test_a_block_address_and_a_heap_handle_of_two_lives_are_the_readers_choice(import_trace: ImportTrace) -> None:
    imported = import_trace(
        Trace().cpu(
            0,
            system.process_start(at_us=1),
            heap.create(at_us=10),
            heap.alloc(at_us=20, address=heap.HEAP + 0x1000, size=64),
            heap.free(at_us=30, address=heap.HEAP + 0x1000),
            heap.alloc(at_us=40, address=heap.HEAP + 0x1000, size=96),
            heap.destroy(at_us=50),
            heap.create(at_us=60),
        )
    )
    process = imported.one("select process from v_heaps limit 1")
    with served(imported.folder) as client:
        path = f"/t/{imported.report.key}/heap/{process}/{heap.HEAP:#x}"
        blocks = answer(client, f"{path}:{heap.HEAP + 0x1000:#x}")
        heaps = answer(client, f"{path}?from=1&to=2")
        narrowed = answer(client, f"/t/{imported.report.key}/heap/{process}/flame?heap={heap.HEAP:#x}&to=90us")
        for page in (blocks, heaps, narrowed):
            assert page["status"] == 300
            assert [client.get(href).status_code for href in hrefs(page)] == [200, 200, 200]
    assert ["64 B" in way["text"] for way in blocks["ways"]] == [True, False, False]
    assert all("from=1&to=2" in href and f"{heap.HEAP:#x}@" in href for href in hrefs(heaps)[:2])
    assert all("to=90us" in href and f"heap={heap.HEAP:#x}@" in href for href in hrefs(narrowed)[:2])


# ---------------------------------------------------------------------------------------------------- the key of the trace


@pytest.mark.parametrize("path", ["", "/sockets?from=1s&to=2s", f"/sockets/{SOCKET}@10000000", "/stacks?format=json"])
def test_the_first_digits_of_a_key_lead_to_the_trace(client: TestClient, path: str) -> None:
    for digits in (6, 9, 11):
        got = client.get(f"/t/{KEY[:digits]}{path}")
        assert (got.status_code, got.headers["location"]) == (307, f"/t/{KEY}{path}")
    assert client.get(f"/t/{KEY[:5]}{path}").status_code == 404


def test_the_first_digits_of_two_keys_are_the_readers_choice(tmp_path: Path) -> None:
    folder = small_folder(tmp_path)
    built_database(tmp_path, SMALL, key="0123456fffff", name="other.etl")
    with served(folder) as client:
        page = answer(client, "/t/012345/sockets?from=1s")
        assert (page["status"], hrefs(page)) == (300, [f"/t/{KEY}/sockets?from=1s", "/t/0123456fffff/sockets?from=1s"])
        assert client.get("/t/0123456f/sockets").headers["location"] == "/t/0123456fffff/sockets"


def test_a_part_of_a_trace_answers_for_the_whole(tmp_path: Path) -> None:
    folder = small_folder(tmp_path)
    folder.trace_path(KEY).rename(folder.trace_path(f"{KEY}-abcdef"))
    with served(folder) as client:
        assert client.get(f"/t/{KEY}-abcdef/sockets").status_code == 200
    folder.catalog_path.unlink()
    with served(folder) as client:
        assert client.get(f"/t/{KEY}/sockets?from=1s").headers["location"] == f"/t/{KEY}-abcdef/sockets?from=1s"


@pytest.mark.parametrize(
    ("path", "view"),
    [
        ("", "the page “Overview of a trace”"),
        (f"/sockets/{SOCKET}@10000000?from=5s", f"the page “One socket” of {SOCKET}@10000000 with from=5s"),
        ("/operations?outcome=failed&sort=-bytes", "the page “Operations” with outcome=failed, sort=-bytes"),
    ],
)
def test_a_trace_that_is_not_here_says_what_the_link_asks_for(client: TestClient, path: str, view: str) -> None:
    page = answer(client, f"/t/fedcba987654{path}")
    assert page["status"] == 404
    assert page["sentence"].endswith(f"collect it here, and this link works. It asks for {view}.")
    assert hrefs(page) == [f"/t/{KEY}"]


@pytest.mark.parametrize("key", ["nonsense", "01234", "zz23456789ab", "live-1"])
def test_what_is_no_key_is_told_so(client: TestClient, key: str) -> None:
    assert "A key has 12 hex digits" in answer(client, f"/t/{key}")["sentence"]


# ---------------------------------------------------------------------------------------------------- not in this copy


def test_an_operation_that_is_not_there_leads_to_the_nearest_of_its_socket(client: TestClient) -> None:
    page = answer(client, f"/t/{KEY}/sockets/{SOCKET}@10000000/recv:0x1f0100@1600000000")
    assert page["status"] == 404
    assert "The nearest on this socket:" in page["sentence"]
    ways = hrefs(page)
    # on the same buffer, the nearer first; then of the same kind; then by time
    assert [way.rpartition("/")[2] for way in ways] == [
        "recv:0x1f0100@1500000000",
        "recv:0x1f0100@4000000000",
        "recv:0x0@4000000000",
        "send:0x1f0000@1000000000",
        f"{SOCKET}@10000000",
    ]
    assert [client.get(way).status_code for way in ways] == [200] * 5


@pytest.mark.parametrize("page_of", ["", "in-flight-frees/"])
def test_an_operation_of_a_socket_without_any_leads_to_the_nearest_in_time(client: TestClient, page_of: str) -> None:
    path = f"/t/{KEY}/{page_of or 'sockets/'}0xffff9a0c2a004040@40000000/send:0x0@5000000000"
    page = answer(client, path)
    assert page["status"] == 404
    assert "The nearest in this trace:" in page["sentence"]
    assert hrefs(page)[0] == f"/t/{KEY}/sockets/{UDP}@20000000/recvfrom:0xffff9a0c30000100@5000000000"
    assert len(page["ways"]) == 5


def test_a_stack_is_found_by_the_first_digits_of_its_hash(client: TestClient) -> None:
    got = client.get(f"/t/{KEY}/stacks/AAAABBBB")
    assert (got.status_code, got.headers["location"]) == (307, f"/t/{KEY}/stacks/aaaabbbbccccdddd")
    assert client.get(got.headers["location"]).status_code == 200


def test_a_stack_that_is_not_there_leads_to_those_that_hold_the_most(client: TestClient) -> None:
    page = answer(client, f"/t/{KEY}/stacks/ffffeeeedddd0000")
    assert page["status"] == 404
    assert hrefs(page) == [f"/t/{KEY}/stacks/1111222233334444", f"/t/{KEY}/stacks/aaaabbbbccccdddd", f"/t/{KEY}/stacks"]
    assert page["ways"][0]["text"].startswith("111122223333 holds 3.15 MB: ")


def test_hashes_that_begin_alike_are_the_readers_choice(tmp_path: Path) -> None:
    rows = dict(SMALL)
    rows["stack"] = [*SMALL["stack"], {"hash": "aaaabbbbcccceeee", "depth": 0, "is_complete": True}]
    with served(built_database(tmp_path, rows, key=KEY)) as client:
        page = answer(client, f"/t/{KEY}/stacks/aaaabbbb")
    assert (page["status"], hrefs(page)[:2]) == (300, [f"/t/{KEY}/stacks/aaaabbbbccccdddd", f"/t/{KEY}/stacks/aaaabbbbcccceeee"])
