"""How answers travel: heads alone, compressed text, and what must stay as it is."""

import asyncio
import re
import zlib
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from app.transfer import Compressed
from tests.build.served import served
from tests.build.small_trace import KEY, small_folder

PLAIN = {"Accept-Encoding": "identity"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with served(small_folder(tmp_path_factory.mktemp("small"))) as made:
        yield made


@pytest.mark.parametrize(
    "path", ["/", f"/t/{KEY}", f"/t/{KEY}/sockets?format=csv", "/healthz", "/help", "/static/css/sockscope.css", "/none"]
)
def test_a_head_is_that_of_the_page_without_its_body(client: TestClient, path: str) -> None:
    head, whole = client.head(path, headers=PLAIN), client.get(path, headers=PLAIN)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert head.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", [f"/t/{KEY}", f"/t/{KEY}/sockets?format=json", "/static/css/sockscope.css"])
def test_text_is_compressed_for_those_who_can_read_that(client: TestClient, path: str) -> None:
    packed, plain = client.get(path, headers={"Accept-Encoding": "gzip"}), client.get(path, headers=PLAIN)
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert len(packed.text) == len(plain.text)
    assert all("Accept-Encoding" in answer.headers["vary"] for answer in (packed, plain))
    assert "content-encoding" not in client.get(path, headers={"Accept-Encoding": "gzip;q=0, br"}).headers


def test_a_short_answer_stays_as_it_is(client: TestClient) -> None:
    assert "content-encoding" not in client.get("/healthz", headers={"Accept-Encoding": "gzip"}).headers


def test_a_file_that_is_known_already_is_not_sent_again(client: TestClient) -> None:
    first = client.get("/static/css/sockscope.css", headers={"Accept-Encoding": "gzip"})
    again = client.get("/static/css/sockscope.css", headers={"Accept-Encoding": "gzip", "If-None-Match": first.headers["etag"]})
    assert first.headers["etag"].startswith("W/")
    assert (again.status_code, again.content) == (304, b"")


def test_a_part_of_a_file_is_not_compressed(client: TestClient) -> None:
    part = client.get("/static/css/sockscope.css", headers={"Accept-Encoding": "gzip", "Range": "bytes=0-999"})
    assert (part.status_code, len(part.content)) == (206, 1000)
    assert "content-encoding" not in part.headers


def test_pieces_go_on_as_they_come() -> None:
    pieces = [b"a,b\r\n" * 10, b"1,2\r\n" * 10]
    unpack = zlib.decompressobj(16 + zlib.MAX_WBITS)
    got: list[bytes] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/csv")]})
        for number, piece in enumerate(pieces):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            assert got[number] == piece, "this piece has left before the next is made"
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body" and message["body"]:
            got.append(unpack.decompress(message["body"]))

    async def receive() -> Message:
        raise AssertionError("nobody asks")

    scope: Scope = {"type": "http", "method": "GET", "headers": [(b"accept-encoding", b"gzip")]}
    asyncio.run(Compressed(app)(scope, receive, send))
    assert unpack.eof
    assert b"".join(got) == b"".join(pieces)


def test_no_two_pages_hold_the_same_token_and_each_one_works(client: TestClient) -> None:
    """The length of a compressed page would tell a text that stands in it twice: once as a secret, once as a guess in the query."""
    tokens = [re.findall(r'name="form_token" value="([0-9a-f]+)"', client.get(f"/t/{KEY}").text)[0] for _ in range(3)]
    assert len(set(tokens)) == 3
    parts = [{token[n : n + 8] for n in range(len(token) - 7)} for token in tokens]
    assert not parts[0] & parts[1]
    for token in tokens:
        form = {"form_token": token, "object": "", "text": "kept"}
        assert client.post(f"/t/{KEY}/notes", data=form).status_code == 303
        half = len(token) // 2
        for wrong in (token[:-1], token[:half], token[half:] + token[:half][:-2] + "zz", token[:-1] + ("0" if token[-1] != "0" else "1")):
            assert client.post(f"/t/{KEY}/notes", data=form | {"form_token": wrong}).status_code == 403
