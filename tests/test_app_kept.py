"""Pages of a finished trace are made once; whatever they depend on has them made anew."""

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from app.kept import KeptAnswers
from collector.store.engine import TraceFolder
from tests.build.database import BUILT_KEY, built_database
from tests.build.served import served

PAGE = f"/t/{BUILT_KEY}/sockets"
_LONG_AGO_NS = 1_700_000_000_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> TraceFolder:
    made = built_database(tmp_path / "database", {"socket": [{"endpoint": 0xE1, "first_ns": 5, "last_ns": 9, "end": "closed"}]})
    age(made)
    return made


@pytest.fixture
def client(folder: TraceFolder) -> Iterator[TestClient]:
    with served(folder) as made:
        yield made


@pytest.fixture
def asked() -> Iterator[list[str]]:
    """The statements that reach a database."""
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield statements
    event.remove(Engine, "before_cursor_execute", note)


def age(folder: TraceFolder) -> None:
    """Let all files look as if nobody had written them for long, as what was just written may be written again within one tick."""
    for path in folder.root.rglob("*.db*"):
        os.utime(path, ns=(_LONG_AGO_NS, _LONG_AGO_NS))


def token_in(text: str) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]+)"', text)
    assert found
    return found[1]


def test_a_page_is_made_once(client: TestClient, asked: list[str]) -> None:
    first = client.get(PAGE, headers={"Accept": "application/json"})
    assert asked
    asked.clear()

    again = client.get(PAGE, headers={"Accept": "application/json"})

    assert not asked
    assert (again.status_code, again.json(), again.headers["content-type"]) == (200, first.json(), first.headers["content-type"])


@pytest.mark.parametrize(("status", "made"), [(200, 1), (404, 20)])
def test_what_many_ask_for_at_once_is_made_once_where_it_can_be_kept(folder: TraceFolder, status: int, made: int) -> None:
    pages = 0

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal pages
        pages += 1
        await asyncio.sleep(0.01)
        await Response("a page", status)(scope, receive, send)

    async def ask_all() -> list[httpx.Response]:
        transport = httpx.ASGITransport(KeptAnswers(page, folder, b""))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await asyncio.gather(*(client.get(PAGE) for _ in range(20)))

    answers = asyncio.run(ask_all())

    assert [(answer.status_code, answer.text) for answer in answers] == [(status, "a page")] * 20
    assert pages == made


def test_nobody_waits_for_the_browser_of_another(folder: TraceFolder) -> None:
    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.01)
        await Response("a page")(scope, receive, send)

    async def never(message: Message) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def ask() -> httpx.Response:
        app = KeptAnswers(page, folder, b"")

        async def app_with_a_slow_browser(scope: Scope, receive: Receive, send: Send) -> None:
            await app(scope, receive, never if ("x-slow", "1") in Headers(scope=scope).items() else send)

        async with httpx.AsyncClient(transport=httpx.ASGITransport(app_with_a_slow_browser), base_url="http://127.0.0.1") as client:
            slow = asyncio.create_task(client.get(PAGE, headers={"X-Slow": "1"}))
            await asyncio.sleep(0)
            answer = await asyncio.wait_for(client.get(PAGE), 30)
            assert not slow.done()
            slow.cancel()
            return answer

    assert asyncio.run(ask()).text == "a page"


def test_what_still_holds_is_not_sent_again(client: TestClient) -> None:
    first = client.get(PAGE, headers={"Accept": "application/json"})

    again = client.get(PAGE, headers={"Accept": "application/json", "If-None-Match": first.headers["etag"]})

    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"].removeprefix("W/") == first.headers["etag"].removeprefix("W/")


@pytest.mark.parametrize(("given", "status"), [("*", 304), ('"x", {tag}', 304), ('"x"', 200), ("{tag}x", 200), ("", 200)])
def test_a_browser_names_what_it_has_in_each_way_that_http_knows(client: TestClient, given: str, status: int) -> None:
    tag = client.get(PAGE, headers={"Accept": "application/json"}).headers["etag"]

    again = client.get(PAGE, headers={"Accept": "application/json", "If-None-Match": given.replace("{tag}", tag)})

    assert again.status_code == status


@pytest.mark.parametrize(
    "other", [{"Accept": "text/html"}, {"Accept": "text/csv"}, {"Cookie": "sockscope_author=Ada", "Accept": "text/html"}]
)
def test_other_forms_and_browsers_get_their_own(client: TestClient, other: dict[str, str]) -> None:
    tag = client.get(PAGE, headers={"Accept": "application/json"}).headers["etag"]

    answer = client.get(PAGE, headers={**other, "If-None-Match": tag})

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(other["Accept"])


def test_a_new_file_of_the_trace_is_read(client: TestClient, folder: TraceFolder, asked: list[str]) -> None:
    tag = client.get(PAGE, headers={"Accept": "application/json"}).headers["etag"]
    built_database(folder.root, {"socket": []})
    age(folder)
    asked.clear()

    answer = client.get(PAGE, headers={"Accept": "application/json", "If-None-Match": tag})

    assert (answer.status_code, answer.json()["listing"]["rows"]) == (200, [])
    assert asked


def test_a_page_can_be_had_anew(client: TestClient, asked: list[str]) -> None:
    client.get(PAGE)
    asked.clear()

    client.get(PAGE, headers={"Cache-Control": "no-store"})

    assert asked


def test_each_answer_has_a_token_of_its_own_and_a_note_shows_at_once(client: TestClient, asked: list[str]) -> None:
    page = f"/t/{BUILT_KEY}/notes"
    overview = f"/t/{BUILT_KEY}"
    client.get(overview)  # the browser gets its cookie
    client.get(overview)
    asked.clear()
    first, second = (token_in(client.get(overview).text) for _ in range(2))
    assert not asked
    assert first != second

    sent = client.post(page, data={"form_token": second, "object": "", "text": "seen by Ada"}, follow_redirects=False)

    assert sent.status_code == 303
    assert "seen by Ada" in client.get(overview).text


def test_a_browser_without_a_cookie_gets_one_from_a_kept_page(folder: TraceFolder, asked: list[str]) -> None:
    with served(folder) as client:
        client.get(f"/t/{BUILT_KEY}")
        asked.clear()
        client.cookies.clear()

        answer = client.get(f"/t/{BUILT_KEY}")

        assert not asked
        assert "sockscope_form=" in answer.headers["set-cookie"]
        assert "etag" not in answer.headers


def held(folder: TraceFolder, body: bytes) -> tuple[KeptAnswers, TestClient]:
    """What keeps the answers of a server that always gives the same."""
    kept = KeptAnswers(Response(body, media_type="text/plain"), folder, b"a secret")
    return kept, TestClient(kept, base_url="http://127.0.0.1")


def test_answers_made_before_a_note_are_not_held_any_more(folder: TraceFolder) -> None:
    kept, client = held(folder, b"x" * 1000)
    for round_ in range(3):
        for number in range(5):
            client.get(f"{PAGE}?limit={number}")
        assert (len(kept._kept), kept._bytes) == (5, 5000)
        time_ns = _LONG_AGO_NS + 1_000_000 * (round_ + 1)
        os.utime(folder.catalog_path, ns=(time_ns, time_ns))
    client.get(PAGE)
    assert (len(kept._kept), kept._bytes) == (1, 1000)


def test_the_answers_that_are_held_stay_in_bounds(folder: TraceFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.kept._MOST_BYTES", 10_000)
    monkeypatch.setattr("app.kept._MOST_OF_ONE", 3_000)
    kept, client = held(folder, b"x" * 3000)
    for number in range(20):
        assert client.get(f"{PAGE}?limit={number}").content == b"x" * 3000
    assert (len(kept._kept), kept._bytes) == (3, 9000)
    too_large, client = held(folder, b"x" * 3001)
    client.get(PAGE)
    assert (len(too_large._kept), too_large._bytes) == (0, 0)
