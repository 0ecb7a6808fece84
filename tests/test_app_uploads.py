"""Uploads: a file that a browser sends is collected by a process of its own, or refused with a clear message, and nothing is left over."""

import hashlib
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from fastapi.testclient import TestClient
from httpx2 import Response
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from app.main import create_app
from app.multipart import BadForm, FileForm, boundary_of
from app.settings import Settings, SettingsError
from app.uploads import AT_ONCE, Busy, Uploads, safe_name
from collector.etlwriter import EtlWriter, Session
from collector.etlwriter.bulk import record_block, write_blocks
from collector.room import ROOM_BYTES
from collector.sample import write_sample
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from tests.build.packages import zip_of

SECONDS = 60.0


def serving(root: Path, **more: Any) -> TestClient:  # Any: fields of the settings
    Catalog(TraceFolder(root))  # `serve` makes one before it listens
    return TestClient(create_app(Settings(database=root, **more)), base_url="http://127.0.0.1", follow_redirects=False)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with serving(tmp_path / "database") as made:
        yield made


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "database" / "spool"


@pytest.fixture(scope="module")
def sample_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("upload") / "sample.etl"
    write_sample(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def long_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A trace that takes some seconds to collect."""
    path = tmp_path_factory.mktemp("upload") / "long.etl"
    session, n = Session(processors=1), 600_000
    columns: dict[str, ArrayLike] = {
        "heap_handle": 0x1A_0000,
        "alloc_size": 64,
        "alloc_address": 0x1A_1000 + 64 * np.arange(n),
        "source_id": 2,
    }
    ticks = session.clock.start_ticks + 1_000 + np.arange(n, dtype=np.int64)
    with path.open("w+b") as out:
        writer = EtlWriter(out, session)
        write_blocks(writer, 0, [record_block("HeapAlloc", ticks, columns, pids=100, tids=7, pointer_size=8)])
        writer.close()
    return path.read_bytes()


def token_of(client: TestClient) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]+)"', client.get("/").text)
    assert found
    return found[1]


def send(client: TestClient, content: bytes | Iterator[bytes], name: str = "trace.etl", **headers: str) -> Response:
    """Send a file as the page's script does."""
    said = {
        "Content-Type": "application/octet-stream",
        "X-File-Name": quote(name),
        "X-Form-Token": token_of(client),
        "Accept": "application/json",
    }
    return client.post("/uploads", content=content, headers=said | {key.replace("_", "-"): value for key, value in headers.items()})


def send_form(client: TestClient, content: bytes, name: str = "trace.etl", token: str | None = None) -> Response:
    """Send a file as the plain form does."""
    boundary = "----WebKitFormBoundaryq1"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="form_token"\r\n\r\n{token_of(client) if token is None else token}\r\n'
    head += (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: application/octet-stream\r\n\r\n'
    )
    body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
    return client.post(
        "/uploads", content=body, headers={"Content-Type": f"multipart/form-data; boundary={boundary}", "Accept": "text/html"}
    )


def progress(client: TestClient, href: str) -> dict[str, Any]:  # Any: JSON
    answer = client.get(href, headers={"Accept": "application/json"})
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def wait(client: TestClient, href: str, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:  # Any: JSON
    """The progress of an upload once it is as wanted."""
    deadline = time.monotonic() + SECONDS
    while not until(page := progress(client, href)):
        assert time.monotonic() < deadline, page
        time.sleep(0.02)
    return page


def is_over(page: dict[str, Any]) -> bool:  # Any: JSON
    return bool(page["state"] != "collecting")


def states(root: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(root / "catalog.db")) as db:
        return db.execute("SELECT name, state FROM trace_entry").fetchall()


# ------------------------------------------------------------------------------------------------ taking a trace


def test_a_trace_is_sent_collected_and_shown(client: TestClient, spool: Path, sample_bytes: bytes) -> None:
    answer = send(client, sample_bytes, "sample.etl")
    assert answer.status_code == 201, answer.text
    key = hashlib.sha256(sample_bytes).hexdigest()[:12]
    assert answer.json()["key"] == key
    page = wait(client, answer.json()["href"], is_over)
    assert (page["state"], page["message"], page["key"]) == ("complete", "", key)
    away = client.get(answer.json()["href"])
    assert (away.status_code, away.headers["location"]) == (303, f"/t/{key}")
    overview = client.get(f"/t/{key}")
    assert overview.status_code == 200
    assert "sample.etl" in overview.text
    assert list(spool.iterdir()) == []


def test_the_trace_of_a_package_is_shown(client: TestClient, spool: Path, sample_bytes: bytes) -> None:
    packed = zip_of({"notes.txt": b"what was done", "inner/bug.etl": sample_bytes})
    sent = send(client, packed, "bug.etl.zip")
    page = wait(client, sent.json()["href"], is_over)
    key = hashlib.sha256(sample_bytes).hexdigest()[:12]
    assert (page["state"], page["key"], page["name"] if "name" in page else page["title"]) == ("complete", key, "bug.etl.zip")
    assert client.get(sent.json()["href"]).headers["location"] == f"/t/{key}"
    assert "bug.etl (in bug.etl.zip)" in client.get(f"/t/{key}").text
    assert not any(spool.iterdir())
    digest = hashlib.sha256(packed).hexdigest()
    assert client.get(f"/uploads/files/{digest}").json()["key"] == key  # `sockscope send` asks so


def test_a_package_without_a_trace_says_what_is_in_it(client: TestClient) -> None:
    page = wait(client, send(client, zip_of({"notes.txt": b"what was done"}), "bug.zip").json()["href"], is_over)
    assert page["state"] == "failed"
    assert page["message"].startswith("bug.zip: there is no trace in this zip archive. It holds notes.txt.")


def test_the_plain_form_works_without_a_script(client: TestClient, spool: Path, sample_bytes: bytes) -> None:
    page = client.get("/").text
    assert 'enctype="multipart/form-data"' in page
    assert page.index('name="form_token"', page.index('id="upload"')) < page.index('type="file"')  # it must arrive before the file
    answer = send_form(client, sample_bytes, "C:\\traces\\sample.etl")
    assert answer.status_code == 303, answer.text
    href = answer.headers["location"]
    assert 'http-equiv="refresh"' in client.get(href).text
    assert wait(client, href, is_over)["state"] == "complete"
    assert states(spool.parent) == [("sample.etl", "complete")]
    assert list(spool.iterdir()) == []


def test_a_trace_shows_what_is_known_while_it_is_collected_and_can_be_cancelled(client: TestClient, spool: Path, long_bytes: bytes) -> None:
    answer = send(client, long_bytes, "long.etl")
    assert answer.status_code == 201
    href, key = answer.json()["href"], answer.json()["key"]
    page = wait(client, href, lambda page: is_over(page) or bool(page["bytes_done"]))
    assert page["state"] == "collecting"
    assert page["bytes_total"] == len(long_bytes)
    assert page["records"] > 0
    shown = client.get(f"/t/{key}", headers={"Accept": "text/html"})
    assert shown.status_code == 200
    assert "is being collected" in shown.text
    assert f'action="{href}/cancel"' in shown.text
    assert "Records so far" in shown.text
    assert client.get(f"/t/{key}/sockets").status_code == 503
    cancelled = client.post(f"{href}/cancel", data={"form_token": token_of(client)})
    assert (cancelled.status_code, cancelled.headers["location"]) == (303, href)
    page = wait(client, href, is_over)
    assert page["state"] == "cancelled"
    root = spool.parent
    assert states(root) == []
    assert [path.name for path in (root / "traces").iterdir()] == []
    assert list(spool.iterdir()) == []
    assert client.get(f"/t/{key}").status_code == 404
    assert "long.etl" not in client.get("/").text


def test_what_failed_stays_with_its_reason_until_it_is_dismissed(client: TestClient) -> None:
    answer = send(client, b"PK not a trace" * 500, "archive.etl")
    message = wait(client, answer.json()["href"], is_over)["message"]
    key = answer.json()["key"]
    page = client.get("/", headers={"Accept": "text/html"}).text
    assert "archive.etl" in page
    assert 'action="/uploads/dismiss"' in page
    failed = client.get("/", headers={"Accept": "application/json"}).json()["upload"]["failed"]
    assert [(one["name"], one["message"]) for one in failed] == [("archive.etl", message)]
    assert message

    assert client.post("/uploads/dismiss", data={"form_token": "x", "trace": key}).status_code == 403
    form = {"form_token": token_of(client), "trace": key}
    assert client.post("/uploads/dismiss", data=form, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert "archive.etl" in client.get("/").text
    dismissed = client.post("/uploads/dismiss", data=form)
    assert (dismissed.status_code, dismissed.headers["location"]) == (303, "/")
    assert "archive.etl" not in client.get("/").text
    assert client.post("/uploads/dismiss", data=form).status_code == 404
    assert client.get("/uploads/dismiss").status_code == 404


def test_an_interrupted_trace_is_dismissed_and_a_complete_one_is_not(client: TestClient, spool: Path, sample_bytes: bytes) -> None:
    catalog = Catalog(TraceFolder(spool.parent))
    catalog.begin("fedcba987654", name="half.etl", path="half.etl", size_bytes=1, version="1")
    catalog.interrupt("fedcba987654", "The disk is full.")
    sent = send(client, sample_bytes, "sample.etl").json()
    wait(client, sent["href"], is_over)
    page = client.get("/", headers={"Accept": "text/html"}).text
    assert page.count('action="/uploads/dismiss"') == 1
    assert "The disk is full." in page
    token = token_of(client)
    assert client.post("/uploads/dismiss", data={"form_token": token, "trace": sent["key"]}).status_code == 404
    assert client.post("/uploads/dismiss", data={"form_token": token, "trace": "fedcba987654"}).status_code == 303
    assert states(spool.parent) == [("sample.etl", "complete")]


def test_a_job_never_fails_without_its_reason(client: TestClient) -> None:
    for n in range(3):
        href = send(client, b"no trace %d" % n * 50).json()["href"]
        assert wait(client, href, is_over)["message"]


def test_the_server_stops_its_collectors_when_it_ends(tmp_path: Path, long_bytes: bytes) -> None:
    root = tmp_path / "database"
    with serving(root) as client:
        href = send(client, long_bytes, "long.etl").json()["href"]
        wait(client, href, lambda page: is_over(page) or bool(page["bytes_done"]))
    assert states(root) == [("long.etl", "interrupted")]
    assert list((root / "spool").iterdir()) == []


# ------------------------------------------------------------------------------------------------ hostile files and names


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"PK\x03\x04" + b"not a trace" * 1_000, "archive.etl"),
        (b"\x00", "one.etl"),
        (b"<script>alert(1)</script>", "<script>alert(1)<script>.etl"),
        (bytes(range(1, 251)) * 400, "../../etc/passwd"),
    ],
)
def test_what_is_no_trace_ends_in_a_message(client: TestClient, spool: Path, content: bytes, name: str) -> None:
    answer = send(client, content, name)
    assert answer.status_code == 201
    page = wait(client, answer.json()["href"], is_over)
    assert page["state"] == "failed"
    assert str(spool) not in page["message"]
    assert "Traceback" not in page["message"]
    html = client.get(answer.json()["href"]).text
    assert "<script>alert" not in html
    assert "could not be collected" in html
    assert list(spool.iterdir()) == []
    assert list((spool.parent / "traces").iterdir()) == []


def test_a_cut_trace_is_collected_as_far_as_it_goes(client: TestClient, sample_bytes: bytes) -> None:
    answer = send(client, sample_bytes[: len(sample_bytes) // 2 + 1_234])
    assert wait(client, answer.json()["href"], is_over)["state"] == "complete"


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("trace.etl", "trace.etl"),
        ("C:\\Users\\me\\My Trace.etl", "My Trace.etl"),
        ("../../etc/passwd", "passwd.etl"),
        ("", "trace.etl"),
        ("...", "trace.etl"),
        ("-rf.etl", "rf.etl"),
        ("CON.etl", "_CON.etl"),
        ("a\x00b\n\u202ec.etl", "abc.etl"),
        ('a<b>:"|?*.etl', "a_b______.etl"),
        ("größe – 測試.etl", "größe – 測試.etl"),
        ("x" * 5_000 + ".etl", "x" * 120 + ".etl"),
    ],
)
def test_a_name_is_made_safe(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@given(st.text(max_size=300))
def test_any_name_is_a_plain_file_name(name: str) -> None:
    safe = safe_name(name)
    assert 0 < len(safe.encode()) <= 160
    assert "/" not in safe
    assert "\\" not in safe
    assert safe not in (".", "..")
    assert not safe.startswith("-")
    assert safe.isprintable()


# ------------------------------------------------------------------------------------------------ limits


def test_a_file_that_is_too_large_is_refused_at_once_and_while_it_arrives(tmp_path: Path) -> None:
    root = tmp_path / "database"
    with serving(root, upload_bytes=3_000_000) as client:
        at_once = send(client, b"x" * 4_200_000)
        assert at_once.status_code == 413
        assert "at most 3,000,000 bytes" in at_once.json()["sentence"]
        while_arriving = send(client, (b"x" * 500_000 for _ in range(7)))  # no length is declared
        assert while_arriving.status_code == 413
        in_a_form = send_form(client, b"x" * 3_000_001)
        assert in_a_form.status_code == 413
        exactly = send(client, b"x" * 3_000_000)
        assert exactly.status_code == 201
        wait(client, exactly.json()["href"], is_over)
    assert list((root / "spool").iterdir()) == []


def test_a_package_that_unpacks_to_more_than_may_be_sent_is_refused(tmp_path: Path, sample_bytes: bytes) -> None:
    root = tmp_path / "database"
    bomb = zip_of({"sample.etl": sample_bytes + bytes(5 << 20)})
    assert len(bomb) < 1 << 20 < len(sample_bytes) + (5 << 20)
    with serving(root, upload_bytes=1 << 20) as client:
        page = wait(client, send(client, bomb, "bomb.zip").json()["href"], is_over)
        assert page["state"] == "failed"
        assert page["message"].startswith("bomb.zip: more than 1,048,576 bytes come out of this package, more than is taken here.")
    assert list((root / "spool").iterdir()) == []
    assert states(root) == []
    assert sorted(path.name for path in root.iterdir() if path.is_file() and "catalog" not in path.name) == []


def test_a_package_may_take_half_of_the_free_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uploads = Uploads(TraceFolder(tmp_path), limit_bytes=1_000_000)
    for free, most in ((1 << 40, 1_000_000), (ROOM_BYTES + 600_001, 300_000), (ROOM_BYTES, 0), (0, 0)):
        monkeypatch.setattr("app.uploads.shutil.disk_usage", lambda place, free=free: SimpleNamespace(free=free))
        assert uploads.most_unpacked() == most


def test_an_empty_file_is_refused(client: TestClient, spool: Path) -> None:
    assert send(client, b"").status_code == 400
    refused = send_form(client, b"", name="")
    assert refused.status_code == 400
    assert "none was chosen" in refused.text
    assert list(spool.iterdir()) == []


def test_only_some_are_taken_at_once(tmp_path: Path) -> None:
    uploads = Uploads(TraceFolder(tmp_path), limit_bytes=1_000)
    with uploads.arriving(None), uploads.arriving(None):
        assert AT_ONCE == 2
        busy = uploads.is_busy
        assert busy
        with pytest.raises(Busy, match="as many as it takes at once"):
            uploads.arriving(None).__enter__()
    assert not uploads.is_busy
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_collector_that_takes_too_long_is_stopped(tmp_path: Path, long_bytes: bytes) -> None:
    folder = TraceFolder(tmp_path / "database")
    Catalog(folder)
    uploads = Uploads(folder, limit_bytes=1 << 30, limit_seconds=0.2)
    with uploads.arriving(None) as spool:
        spool.write(long_bytes)
        job = uploads.collect(spool, "long.etl")
    deadline = time.monotonic() + SECONDS
    while job.state == "collecting" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert job.state == "failed"
    assert "longer than this server allows" in job.message
    assert list((tmp_path / "database" / "spool").iterdir()) == []


def test_a_sender_that_is_too_slow_does_not_keep_its_place(client: TestClient, spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.views.uploads.SLOWEST_BYTES", 1 << 40)
    now = iter(range(0, 10_000, 40))
    monkeypatch.setattr("app.views.uploads._now", lambda: float(next(now)))
    answer = send(client, iter([b"a" * 1000] * 20))
    monkeypatch.undo()
    assert answer.status_code == 408
    assert list(spool.iterdir()) == []


def test_a_disk_without_room_is_said(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.uploads.ROOM_BYTES", 1 << 62)
    answer = send(client, b"x")
    assert answer.status_code == 507
    assert "Free some space" in answer.json()["sentence"]


def test_what_a_killed_server_left_is_swept(tmp_path: Path) -> None:
    old, young = tmp_path / "spool" / "old", tmp_path / "spool" / "young"
    for place in (old, young):
        place.mkdir(parents=True)
        (place / "trace.etl").write_bytes(b"x")
    os.utime(old, (1, 1))
    with Uploads(TraceFolder(tmp_path), limit_bytes=1_000).arriving(None):
        pass
    assert [path.name for path in (tmp_path / "spool").iterdir()] == ["young"]


# ------------------------------------------------------------------------------------------------ who may send


@pytest.mark.parametrize("headers", [{"Sec_Fetch_Site": "cross-site"}, {"Origin": "http://evil.example"}, {"X_Form_Token": "0" * 64}])
def test_another_site_cannot_send(client: TestClient, spool: Path, headers: dict[str, str]) -> None:
    assert send(client, b"x", **headers).status_code == 403
    assert not spool.exists() or list(spool.iterdir()) == []


def test_a_form_with_a_wrong_token_is_refused(client: TestClient, spool: Path) -> None:
    assert send_form(client, b"x" * 100_000, token="0" * 64).status_code == 403
    assert list(spool.iterdir()) == []


def test_cancelling_needs_our_own_page(client: TestClient, sample_bytes: bytes) -> None:
    href = send(client, sample_bytes).json()["href"]
    assert client.post(f"{href}/cancel", data={"form_token": "x"}).status_code == 403
    assert client.post(f"{href}/cancel", data={"form_token": token_of(client)}, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.get(f"{href}/cancel").status_code == 405
    assert wait(client, href, is_over)["state"] == "complete"


@pytest.mark.parametrize("kind", ["text/plain", "application/json", ""])
def test_other_bodies_are_refused(client: TestClient, kind: str) -> None:
    assert send(client, b"x", Content_Type=kind).status_code == 415


def test_an_unknown_upload_is_said(client: TestClient) -> None:
    assert client.get("/uploads/0123456789abcdef").status_code == 404


def test_uploads_can_be_switched_off(tmp_path: Path) -> None:
    with serving(tmp_path, uploads=False) as client:
        assert "Send a trace" not in client.get("/").text
        refused = client.post("/uploads", content=b"x", headers={"Content-Type": "application/octet-stream"})
    assert refused.status_code == 403
    assert "switched off" in refused.text
    assert not (tmp_path / "spool").exists()


def test_uploads_are_on_only_where_nobody_else_reaches_the_server() -> None:
    token = "0123456789abcdef"
    assert Settings().takes_uploads
    assert not Settings(host="192.0.2.1", token=token).takes_uploads
    assert Settings(host="192.0.2.1", token=token, uploads=True).takes_uploads
    assert not Settings(uploads=False).takes_uploads
    with pytest.raises(SettingsError, match="more than 0 bytes"):
        Settings(upload_bytes=0).check()


# ------------------------------------------------------------------------------------------------ forms with a file


def form_of(parts: list[tuple[str, bytes]], boundary: bytes) -> bytes:
    heads = (f"Content-Disposition: form-data; {head}\r\n\r\n".encode() for head, _ in parts)
    return (
        b"".join(b"--" + boundary + b"\r\n" + head + body + b"\r\n" for head, (_, body) in zip(heads, parts, strict=True))
        + b"--"
        + boundary
        + b"--\r\n"
    )


@settings(max_examples=200)
@given(
    content=st.lists(st.sampled_from([b"\r\n", b"--", b"--bound", b"\r\n--boun", b"a", b"\r", b"\n", b"\x00\xff"]), max_size=12).map(
        b"".join
    ),
    size=st.integers(1, 60),
)
def test_a_file_in_a_form_is_found_however_it_is_cut(content: bytes, size: int) -> None:
    body = form_of([('name="form_token"', b"tok"), ('name="file"; filename="a \u00fc.etl"', content), ('name="more"', b"")], b"boundary")
    form = FileForm(b"boundary")
    found = b"".join(piece for at in range(0, len(body), size) for piece in form.feed(body[at : at + size]))
    assert form.is_complete
    assert found == content
    assert form.fields == {"form_token": "tok", "more": ""}
    assert form.file_name == "a ü.etl"


@given(st.binary(max_size=400), st.integers(1, 50))
def test_any_bytes_end_in_a_form_or_a_message(body: bytes, size: int) -> None:
    form = FileForm(b"b")
    try:
        for at in range(0, len(body), size):
            list(form.feed(body[at : at + size]))
    except BadForm:
        pass


def test_forms_have_limits() -> None:
    for body in (
        b"--b\r\n" + b"x" * 9_000,
        form_of([('name="field"', b"x" * 5_000)], b"b"),
        form_of([('name="field"', b"x")] * 21, b"b"),
        b"--bxx",
    ):
        with pytest.raises(BadForm):
            list(FileForm(b"b").feed(body))


def test_only_the_first_file_counts() -> None:
    form = FileForm(b"b")
    assert b"".join(form.feed(form_of([('name="f"; filename="1"', b"one"), ('name="g"; filename="2"', b"two")], b"b"))) == b"one"
    assert form.file_name == "1"


def test_a_boundary_is_read_from_the_content_type() -> None:
    assert boundary_of('multipart/form-data; boundary="a b"') == b"a b"
    assert boundary_of("multipart/form-data; boundary=----x; charset=utf-8") == b"----x"
    with pytest.raises(BadForm):
        boundary_of("multipart/form-data")
