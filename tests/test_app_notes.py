"""Notes: written, shown, listed, deleted; plain text; only by our own pages; kept beyond the trace's rows."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response
from sqlalchemy import select

from app.notes import MAX_TEXT
from app.queries import notes as queries
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.store.stores import open_store
from collector.store.tables import note
from tests.build.answers import as_json
from tests.build.served import served
from tests.build.small_trace import KEY, small_folder

SOCKET = "sockets/0xffff9a0c2a001010@10000000"
OBJECTS = (SOCKET, f"{SOCKET}/recv:0x1f0100@1500000000", "processes/4242@0", "heap/4242@0/0x1e0000:0x1f0000@100000000", "")
HOSTILE = "<script>alert(1)</script> {{ 7*7 }} \u202e& 'x' \"y\""


@pytest.fixture
def folder(tmp_path: Path) -> TraceFolder:
    return small_folder(tmp_path)


@pytest.fixture
def client(folder: TraceFolder) -> Iterator[TestClient]:
    with served(folder) as made:
        yield made


def token_of(client: TestClient, path: str = f"/t/{KEY}") -> str:
    """The token of a page's form; the client keeps the cookie that fits it."""
    found = re.search(r'name="form_token" value="([0-9a-f]+)"', client.get(path).text)
    assert found
    return found[1]


def write(
    client: TestClient,
    about: str = SOCKET,
    text: str = "looked at it",
    *,
    token: str | None = None,
    headers: dict[str, str] | None = None,
    **more: str,
) -> Response:
    form = {"form_token": token_of(client) if token is None else token, "object": about, "text": text, **more}
    return client.post(f"/t/{KEY}/notes", data=form, headers=headers)


def kept(folder: TraceFolder) -> list[tuple[object, ...]]:
    """The notes, wherever the dashboard keeps them."""
    n = note.c
    wanted = select(n.key, n.object, n.t_ns, n.author, n.text).order_by(n.created_utc, n.text)
    with open_store(folder.root).catalog().connect() as db:
        return [tuple(row) for row in db.execute(wanted)]


def test_a_page_says_that_it_shows_the_first_of_very_many_notes(
    client: TestClient, folder: TraceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "NOTES_SHOWN", 3)
    for number, is_cut in ((3, False), (4, True)):
        with Catalog(folder).engine.begin() as db:
            for _ in range(number - len(kept(folder))):
                queries.add(db, KEY, SOCKET, t_ns=None, author="", text="noted here")
        text = client.get(f"/t/{KEY}/{SOCKET}").text
        assert text.count("noted here") == 3
        assert ("These are the first 3 of 4 notes." in text) is is_cut
        assert as_json(client, f"/t/{KEY}/{SOCKET}")["notes"]["number"] == number


def test_the_newest_of_very_many_notes_say_how_to_have_all(client: TestClient, folder: TraceFolder) -> None:
    with Catalog(folder).engine.begin() as db:
        for _ in range(500):
            queries.add(db, KEY, SOCKET, t_ns=None, author="", text="noted here")
    assert as_json(client, f"/t/{KEY}/notes")["sentence"] == "500 notes on this trace and the things in it."
    with Catalog(folder).engine.begin() as db:
        queries.add(db, KEY, SOCKET, t_ns=None, author="", text="noted here")
    assert as_json(client, f"/t/{KEY}/notes")["sentence"] == (
        f"The newest 500 of 501 notes on this trace and the things in it. All of them are in the file that sockscope export {KEY} writes."
    )


@pytest.mark.parametrize("about", OBJECTS)
def test_a_note_hangs_on_its_object(client: TestClient, folder: TraceFolder, about: str) -> None:
    answer = write(client, about, "The peer gave up first.", author="Ada")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/t/{KEY}/{about}#notes")
    assert kept(folder) == [(KEY, about, None, "Ada", "The peer gave up first.")]
    for page in (f"/t/{KEY}/{about}".rstrip("/"), f"/t/{KEY}", f"/t/{KEY}/notes"):
        text = client.get(page).text
        assert "The peer gave up first." in text, page
        assert "Ada" in text, page
        rows = client.get(page, headers={"Accept": "application/json"}).json()["notes"]["rows"]
        assert [(row["object"], row["author"], row["text"]) for row in rows] == [(about, "Ada", "The peer gave up first.")]


MARKED = [
    (SOCKET, ["sockets", "aborts", "errors"]),
    (f"{SOCKET}/recv:0x1f0100@1500000000", ["operations", "overlaps", "in-flight-frees", "events"]),
    ("processes/4242@0", ["processes"]),
    ("heap/4242@0/0x1e0000:0x1f0000@100000000", ["allocations"]),
]


@pytest.mark.parametrize(("about", "lists"), MARKED)
def test_lists_mark_the_rows_on_whose_objects_people_wrote_notes(client: TestClient, about: str, lists: list[str]) -> None:
    for name in lists:
        assert client.get(f"/t/{KEY}/{name}?format=json").json()["listing"]["noted"] == [], name
        assert 'class="noted"' not in client.get(f"/t/{KEY}/{name}").text, name
    for text in ("one", "two"):
        write(client, about, text)
    for name in lists:
        listing = client.get(f"/t/{KEY}/{name}?format=json").json()["listing"]
        page = client.get(f"/t/{KEY}/{name}").text
        assert {(one["object"], one["notes"]) for one in listing["noted"]} == {(about, 2)}, name
        assert len(listing["noted"]) < len(listing["rows"]) or len(listing["rows"]) == 1, name
        assert page.count(f'href="/t/{KEY}/{about}#notes" title="2 notes here"') == len(listing["noted"]), name
        for one in listing["noted"]:
            words = json.dumps(listing["rows"][one["row"]])
            assert about.rpartition("/")[2] in words, name
    assert 'class="noted"' not in client.get(f"/t/{KEY}/drops").text


@pytest.mark.folder("a lock of a file")
def test_a_list_comes_without_marks_while_notes_cannot_be_read(client: TestClient, folder: TraceFolder) -> None:
    write(client)
    with closing(sqlite3.connect(folder.catalog_path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        answer = client.get(f"/t/{KEY}/sockets")
    assert answer.status_code == 200
    assert 'class="noted"' not in answer.text
    assert "Which rows carry notes is not known" in answer.text


def test_a_note_on_one_socket_is_not_on_another_page(client: TestClient) -> None:
    write(client, SOCKET, "only here")
    assert "only here" not in client.get(f"/t/{KEY}/processes/4242@0").text


def test_any_time_of_an_objects_life_names_it(client: TestClient, folder: TraceFolder) -> None:
    write(client, "sockets/0xffff9a0c2a001010@20000000")
    write(client, "processes/4242@7000")
    assert [row[1] for row in kept(folder)] == [SOCKET, "processes/4242@0"]


def test_a_moment_leads_to_its_place(client: TestClient, folder: TraceFolder) -> None:
    write(client, text="here", t_ns="1.5 s")
    assert kept(folder)[0][2] == 1_500_000_000
    overview = unescape(client.get(f"/t/{KEY}").text)
    assert f'href="/t/{KEY}/{SOCKET}?from=1499000000&to=1501000000#notes"' in overview
    assert client.get(f"/t/{KEY}/{SOCKET}?from=1499000000&to=1501000000").status_code == 200


def test_hostile_text_is_text_everywhere(client: TestClient) -> None:
    write(client, text=HOSTILE, author=HOSTILE[:40])
    for page in (f"/t/{KEY}/{SOCKET}", f"/t/{KEY}", f"/t/{KEY}/notes"):
        text = client.get(page).text
        assert "<script>alert" not in text
        assert "{{ 7*7 }}" in text
    assert client.get(f"/t/{KEY}/notes", headers={"Accept": "application/json"}).json()["notes"]["rows"][0]["text"] == HOSTILE
    formula = write(client, text="=HYPERLINK(1)")
    assert formula.status_code == 303
    assert "'=HYPERLINK(1)" in client.get(f"/t/{KEY}/notes?format=csv").text


def test_line_breaks_stay_and_control_characters_go(client: TestClient, folder: TraceFolder) -> None:
    write(client, text=" one\r\ntwo\x00\x1b[31m\tthree \n", author="A\nda\x07")
    assert kept(folder)[0][3:] == ("Ada", "one\ntwo[31m\tthree")


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"text": " \n\t"}, "is empty"),
        ({"text": "x" * (MAX_TEXT + 1)}, "4,001 characters; at most 4,000"),
        ({"text": "a note", "author": "n" * 81}, "81 characters; at most 80"),
        ({"text": "a note", "t_ns": "soon"}, "moment cannot be read"),
    ],
)
def test_a_note_that_cannot_be_kept_comes_back_with_its_text(
    client: TestClient, folder: TraceFolder, fields: dict[str, str], part: str
) -> None:
    answer = client.post(f"/t/{KEY}/notes", data={"form_token": token_of(client), "object": SOCKET, **fields})
    assert answer.status_code == 400
    assert part in answer.text
    assert fields["text"].strip() in unescape(answer.text)
    assert kept(folder) == []


def test_the_longest_text_is_kept(client: TestClient, folder: TraceFolder) -> None:
    assert write(client, text="é" * MAX_TEXT).status_code == 303
    assert kept(folder)[0][4] == "é" * MAX_TEXT


@pytest.mark.parametrize(
    ("about", "status"),
    [
        ("sockets/0x1@5", 404),
        ("sockets/nothing", 400),
        ("processes/4711@0", 404),
        (f"{SOCKET}/recv:0x1@5", 404),
        ("heap/4242@0/0x1e0000:0x5@0", 404),
        ("stacks/aaaabbbbccccdddd", 400),
        ("../../etc", 400),
        ("x" * 400, 400),
    ],
)
def test_a_note_needs_a_thing_of_the_trace(client: TestClient, folder: TraceFolder, about: str, status: int) -> None:
    assert write(client, about).status_code == status
    assert kept(folder) == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_another_site_cannot_write(client: TestClient, folder: TraceFolder, headers: dict[str, str]) -> None:
    answer = write(client, headers=headers)
    assert answer.status_code == 403
    assert "another site" in answer.text
    assert kept(folder) == []


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "same-origin", "Origin": "null"}, {"Origin": "http://127.0.0.1"}, {}])
def test_our_own_page_can_write(client: TestClient, headers: dict[str, str]) -> None:
    assert write(client, headers=headers).status_code == 303


def test_a_wrong_or_missing_token_keeps_the_text_in_the_form(client: TestClient, folder: TraceFolder) -> None:
    token_of(client)
    for token in ("", "0" * 64, "ü"):
        answer = write(client, text="do not lose me", token=token)
        assert answer.status_code == 403
        assert "do not lose me" in answer.text
    assert kept(folder) == []
    again = re.search(r'name="form_token" value="([0-9a-f]+)"', answer.text)
    assert again
    assert write(client, text="do not lose me", token=again[1]).status_code == 303


def test_a_token_without_its_cookie_is_nothing(client: TestClient, folder: TraceFolder) -> None:
    token = token_of(client)
    client.cookies.clear()
    assert write(client, token=token).status_code == 403
    assert kept(folder) == []


def test_reading_never_writes(client: TestClient, folder: TraceFolder) -> None:
    query = urlencode({"form_token": token_of(client), "object": SOCKET, "text": "by GET", "note": "1"})
    assert client.get(f"/t/{KEY}/notes?{query}").status_code == 400
    assert client.get(f"/t/{KEY}/notes/delete?{query}").status_code in (404, 405)
    assert kept(folder) == []


def test_only_a_short_plain_form_is_read(client: TestClient) -> None:
    token_of(client)
    assert client.post(f"/t/{KEY}/notes", json={"text": "x"}).status_code == 415
    assert client.post(f"/t/{KEY}/notes", data={"text": "x" * 70_000}).status_code == 413
    assert client.post(f"/t/{KEY}/notes", data={f"f{n}": "" for n in range(30)}).status_code == 400


def test_the_author_is_remembered_strictly(client: TestClient) -> None:
    answer = write(client, author='Zoë "Z" <z>; x')
    cookie = next(header for header in answer.headers.get_list("set-cookie") if header.startswith("sockscope_author="))
    assert "samesite=strict" in cookie.lower()
    assert "httponly" in cookie.lower()
    assert 'name="author" value="Zoë &#34;Z&#34; &lt;z&gt;; x"' in client.get(f"/t/{KEY}/{SOCKET}").text


def test_a_note_can_be_deleted_once(client: TestClient, folder: TraceFolder) -> None:
    write(client, text="first")
    write(client, "processes/4242@0", "second")
    page = client.get(f"/t/{KEY}/{SOCKET}").text
    number, created = re.search(r'name="note" value="(\d+)"', page), re.search(r'name="created_utc" value="([^"]+)"', page)
    assert number
    assert created
    form = {"form_token": token_of(client), "note": number[1], "created_utc": unescape(created[1])}
    assert client.post(f"/t/{KEY}/notes/delete", data=form | {"form_token": "x"}).status_code == 400
    assert client.post(f"/t/{KEY}/notes/delete", data=form, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.post(f"/t/{KEY}/notes/delete", data=form | {"created_utc": "2001-01-01T00:00:00+00:00"}).status_code == 404
    assert client.post(f"/t/{KEY}/notes/delete", data=form | {"note": "1 OR 1=1"}).status_code == 400
    assert len(kept(folder)) == 2
    gone = client.post(f"/t/{KEY}/notes/delete", data=form)
    assert (gone.status_code, gone.headers["location"]) == (303, f"/t/{KEY}/{SOCKET}#notes")
    assert [row[4] for row in kept(folder)] == ["second"]
    assert client.post(f"/t/{KEY}/notes/delete", data=form).status_code == 404


@pytest.mark.folder("a lock of a file")
def test_a_locked_catalog_loses_nothing(client: TestClient, folder: TraceFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    token = token_of(client)
    monkeypatch.setattr("collector.store.dialects.writing_engine.__kwdefaults__", {"busy_seconds": 0.05})
    with closing(sqlite3.connect(folder.catalog_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = write(client, text="typed with care", token=token, author="Ada")
        assert answer.status_code == 503
        assert "Nothing is lost" in answer.text
        assert "typed with care" in answer.text
        assert 'value="Ada"' in answer.text
        other.execute("ROLLBACK")
    assert kept(folder) == []
    assert write(client, text="typed with care").status_code == 303


@pytest.mark.folder("a lock of a file")
def test_a_page_comes_without_notes_while_they_cannot_be_read(client: TestClient, folder: TraceFolder) -> None:
    write(client)
    with closing(sqlite3.connect(folder.catalog_path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        answer = client.get(f"/t/{KEY}/{SOCKET}")
        assert answer.status_code == 200
        assert "The notes cannot be read now" in answer.text


def test_notes_survive_the_deletion_of_their_trace(client: TestClient, folder: TraceFolder) -> None:
    write(client, text="still here")
    Catalog(folder).remove(KEY)
    assert client.get(f"/t/{KEY}").status_code == 404
    assert [row[4] for row in kept(folder)] == ["still here"]
    small_folder(folder.root)
    assert "still here" in client.get(f"/t/{KEY}/{SOCKET}").text
