"""What happens to the database while it is served: held by another program, gone, replaced, too slow. Each gets a page that says so."""

import re
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from tests.build.small_trace import KEY, small_folder

FORMS = ("html", "json", "csv")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return small_folder(tmp_path / "served").root


@contextmanager
def browser(root: Path, *, query_seconds: float = 8.0) -> Iterator[TestClient]:
    app = create_app(Settings(database=root, query_seconds=query_seconds))
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
        yield client


def note(client: TestClient, text: str) -> tuple[int, str]:
    """Write a note on the trace as its page does."""
    token = re.search(r'name="form_token" value="(\w+)"', client.get(f"/t/{KEY}/notes").text)
    assert token is not None
    form = {"form_token": token[1], "object": "", "text": text, "author": "tester"}
    answer = client.post(f"/t/{KEY}/notes", data=form)
    return answer.status_code, answer.text


def notes(root: Path) -> list[str]:
    with closing(sqlite3.connect(root / "catalog.db")) as db:
        return [text for (text,) in db.execute("SELECT text FROM v_notes ORDER BY text")]


def test_a_note_waits_for_another_program_and_is_kept(root: Path) -> None:
    with browser(root) as client, closing(sqlite3.connect(root / "catalog.db", isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        let_go = threading.Timer(0.5, lambda: other.execute("COMMIT"))
        token = re.compile(r'name="form_token" value="(\w+)"')
        let_go.start()
        found = token.search(client.get(f"/t/{KEY}/notes").text)
        assert found is not None
        answer = client.post(f"/t/{KEY}/notes", data={"form_token": found[1], "object": "", "text": "late", "author": ""})
        let_go.join()
    assert answer.status_code == 303
    assert notes(root) == ["late"]


def test_a_note_that_cannot_be_kept_comes_back_and_can_be_sent_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.store.dialects.writing_engine.__kwdefaults__", {"busy_seconds": 0.2}, raising=True)
    with browser(root) as client:
        assert note(client, "first")[0] == 303
        with closing(sqlite3.connect(root / "catalog.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            status, text = note(client, "kept by the form <b>")
            other.execute("COMMIT")
        assert status == 503
        assert "kept by the form &lt;b&gt;" in text
        assert "Nothing is lost" in text
        assert note(client, "kept by the form <b>")[0] == 303
    assert notes(root) == ["first", "kept by the form <b>"]


def test_many_notes_at_once_are_all_kept(root: Path) -> None:
    with browser(root) as client, ThreadPoolExecutor(8) as pool:
        token = re.search(r'name="form_token" value="(\w+)"', client.get(f"/t/{KEY}/notes").text)
        assert token is not None
        forms = [{"form_token": token[1], "object": "", "text": f"note {number:02}", "author": ""} for number in range(24)]
        answers = [answer.status_code for answer in pool.map(lambda form: client.post(f"/t/{KEY}/notes", data=form), forms)]
    assert answers == [303] * 24
    assert notes(root) == [f"note {number:02}" for number in range(24)]


@pytest.mark.parametrize("form", FORMS)
def test_a_folder_that_vanishes_is_said_and_its_return_is_seen(root: Path, tmp_path: Path, form: str) -> None:
    paths = ["/", f"/t/{KEY}", f"/t/{KEY}/sockets", f"/t/{KEY}/events", "/search?q=443"]
    with browser(root) as client:
        before = [client.get(path, params={"format": form} if "?" not in path else None).status_code for path in paths]
        root.rename(tmp_path / "away")
        gone = [client.get(path, params={"format": form} if "?" not in path else None) for path in paths]
        assert all(answer.status_code in (200, 400, 404, 503) for answer in gone)
        assert [answer.status_code for answer in gone[1:4]] == [404, 404, 404]
        assert KEY in gone[2].text
        (tmp_path / "away").rename(root)
        assert [client.get(path, params={"format": form} if "?" not in path else None).status_code for path in paths] == before


def test_a_note_on_a_folder_that_vanishes_is_refused_with_a_page(root: Path, tmp_path: Path) -> None:
    with browser(root) as client:
        token = re.search(r'name="form_token" value="(\w+)"', client.get(f"/t/{KEY}/notes").text)
        assert token is not None
        (root / "catalog.db").rename(tmp_path / "catalog.db")
        answer = client.post(f"/t/{KEY}/notes", data={"form_token": token[1], "object": "", "text": "typed", "author": ""})
        assert answer.status_code == 503
        assert "typed" in answer.text
        assert not (root / "catalog.db").exists()


def test_a_trace_that_is_deleted_is_not_found_and_one_that_is_replaced_is_read_anew(root: Path, tmp_path: Path) -> None:
    file = root / "traces" / f"{KEY}.db"
    with browser(root) as client:
        assert client.get(f"/t/{KEY}/sockets").status_code == 200
        shutil.copy(file, tmp_path / "other.db")
        with closing(sqlite3.connect(tmp_path / "other.db")) as db:
            db.execute("UPDATE trace SET name = 'replaced.etl'")
            db.commit()
        (tmp_path / "other.db").replace(file)
        assert "replaced.etl" in client.get(f"/t/{KEY}/sockets").text
        file.unlink()
        answer = client.get(f"/t/{KEY}/sockets")
        assert answer.status_code in (404, 503)
        assert "Traceback" not in answer.text


@pytest.mark.parametrize("content", [b"", b"no database at all, but some bytes of text" * 40, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_trace_file_that_is_no_database_is_said(root: Path, content: bytes) -> None:
    (root / "traces" / f"{KEY}.db").write_bytes(content)
    with browser(root) as client:
        for path in (f"/t/{KEY}", f"/t/{KEY}/sockets?format=json", f"/t/{KEY}/events?format=csv"):
            answer = client.get(path)
            assert answer.status_code == 503, path
            assert "cannot be read" in answer.text or "no database" in answer.text or "is empty" in answer.text


@pytest.mark.parametrize("change", ["ALTER TABLE socket RENAME TO other", "ALTER TABLE socket RENAME COLUMN create_seen TO other"])
def test_a_trace_file_with_other_tables_is_said_with_what_to_do(root: Path, change: str) -> None:
    with closing(sqlite3.connect(root / "traces" / f"{KEY}.db")) as db:
        for (view,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
            db.execute(f"DROP VIEW {view}")
        db.execute(change)
    with browser(root) as client:
        answer = client.get(f"/t/{KEY}/sockets")
    assert answer.status_code == 503
    assert "made by another version of sockscope" in answer.text
    assert "Collect the trace again." in answer.text


def test_a_query_over_its_time_is_answered_and_the_server_goes_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with browser(root, query_seconds=1e-9) as client:
        monkeypatch.setattr("collector.store.dialects._STEPS_BETWEEN_LOOKS", 1)  # so that also a small trace takes too long
        with ThreadPoolExecutor(60) as pool:  # more than there are threads for pages
            answers = list(pool.map(lambda number: client.get(f"/t/{KEY}/sockets?format={FORMS[number % 2]}"), range(60)))
        assert {answer.status_code for answer in answers} == {503}
        assert all("too long" in answer.text and "Narrow the time range" in answer.text for answer in answers)
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("form", ["html", "json", "csv", "xml"])
def test_a_trace_that_cannot_be_read_yet_says_so_in_every_form(root: Path, form: str) -> None:
    (root / "traces" / f"{KEY}.db").unlink()
    with closing(sqlite3.connect(root / "catalog.db")) as db:
        if not db.execute("UPDATE trace_entry SET state = 'collecting'").rowcount:
            db.execute("INSERT INTO trace_entry (key, name, state, collected_utc) VALUES (?, 'x.etl', 'collecting', '2026-01-01')", (KEY,))
        db.commit()
    with browser(root) as client:
        answer = client.get(f"/t/{KEY}/sockets?format={form}")
    assert answer.status_code == 503
    assert "collect" in answer.text.lower()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", ["", "/sockets", "/sockets/0xffff9a0c2a001010@10000000"])
def test_a_complete_trace_whose_file_is_gone_is_not_found_and_says_what_to_do(root: Path, path: str, form: str) -> None:
    (root / "traces" / f"{KEY}.db").unlink()
    with browser(root) as client:
        answer = client.get(f"/t/{KEY}{path}", params={"format": form} if form != "html" else {})
        start = client.get("/")
    assert answer.status_code == 404
    assert f"traces/{KEY}.db is no longer in this database" in answer.text
    assert "being collected" not in answer.text
    assert "its file is missing" in start.text
