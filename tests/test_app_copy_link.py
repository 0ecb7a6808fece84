"""The link that a page gives to others: canonical, absolute, with its state, below a proxy's path."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from collector.store.engine import TraceFolder
from tests.build.served import served
from tests.build.small_trace import KEY, small_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> TraceFolder:
    return small_folder(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def client(folder: TraceFolder) -> Iterator[TestClient]:
    with served(folder) as made:
        yield made


def links(client: TestClient, path: str) -> tuple[str, str, str]:
    """The canonical link of the head, that of the preview, and the visible one."""
    text = client.get(path).text
    found = [
        re.search(pattern, text)
        for pattern in (r'rel="canonical" href="([^"]*)"', r'og:url" content="([^"]*)"', r'<a href="([^"]*)" data-share')
    ]
    assert all(found), text[:2_000]
    head, preview, visible = (unescape(one[1]) for one in found if one)
    return head, preview, visible


@pytest.mark.parametrize(
    ("asked", "canonical"),
    [
        ("", ""),
        ("/sockets?sort=-bytes_sent&port=443", "/sockets?sort=-bytes_sent&port=443"),
        ("/processes/4242@7000", "/processes/4242@0"),
        ("/processes/900@7000000?clock=utc", "/processes/900@5000000?clock=utc"),
        (
            "/sockets/0xffff9a0c2a001010@10000000/recv:0x01f0100@1500000000",
            "/sockets/0xffff9a0c2a001010@10000000/recv:0x1f0100@1500000000",
        ),
        (
            "/sockets/0xffff9a0c2a001010@10000000?kind=post&kind=abort&text=a+b",
            "/sockets/0xffff9a0c2a001010@10000000?kind=post&kind=abort&text=a+b",
        ),
        ("/heap/4242@7000?from=5&to=9", "/heap/4242@0?from=5&to=9"),
        ("/heap/4242@7000/0x1e0000:0x1f0000@100000900", "/heap/4242@0/0x1e0000:0x1f0000@100000000"),
        ("/address/0x001f0100", "/address/0x1f0100"),
        ("/around/1.5s?within=50ms", "/around/1500000000?within=50ms"),
        ("/sockets?unused=&format=html", "/sockets?unused="),
    ],
)
def test_a_page_knows_its_canonical_link(client: TestClient, asked: str, canonical: str) -> None:
    head, preview, visible = links(client, f"/t/{KEY}{asked}")
    assert visible == f"/t/{KEY}{canonical}"
    assert head == preview == f"http://127.0.0.1/t/{KEY}{canonical}"
    assert client.get(visible).status_code == 200


def test_a_socket_leads_to_its_canonical_link_with_its_state(client: TestClient) -> None:
    away = client.get(f"/t/{KEY}/sockets/0xffff9a0c2a001010@20000000?from=5&to=9")
    assert (away.status_code, away.headers["location"]) == (307, f"/t/{KEY}/sockets/0xffff9a0c2a001010@10000000?from=5&to=9")


def test_the_link_lies_below_a_proxys_path(folder: TraceFolder) -> None:
    with served(folder, base_path="/tools/sockscope/") as client:
        head, _, visible = links(client, f"/t/{KEY}/sockets?port=443")
    assert visible == f"/tools/sockscope/t/{KEY}/sockets?port=443"
    assert head == f"http://127.0.0.1{visible}"


def test_the_link_names_the_host_that_was_asked(client: TestClient) -> None:
    text = client.get(f"/t/{KEY}/sockets", headers={"Host": "localhost:8350"}).text
    assert f'rel="canonical" href="http://localhost:8350/t/{KEY}/sockets"' in text


def test_a_hostile_query_is_text_in_the_link(client: TestClient) -> None:
    text = client.get(f"/t/{KEY}/sockets", params={"remote": '"><script>alert(1)</script>'}).text
    assert "<script>alert" not in text


def test_pages_without_a_trace_have_nothing_to_share(client: TestClient) -> None:
    assert "data-share" not in client.get("/").text


def test_the_token_is_not_shared(tmp_path: Path) -> None:
    with served(small_folder(tmp_path), token="0123456789abcdef") as client:
        assert client.get("/?token=0123456789abcdef").status_code == 303
        moved = client.get(f"/t/{KEY}/sockets?port=443&token=0123456789abcdef")
        assert (moved.status_code, moved.headers["location"]) == (303, f"/t/{KEY}/sockets?port=443")
        assert "token" not in links(client, moved.headers["location"])[0]
