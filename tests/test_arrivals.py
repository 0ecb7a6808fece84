"""Files that arrive in pieces: appended where they end, kept over a restart, refused with the reason, and collected when they are whole."""

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response

from app import arrivals
from app.arrivals import MOST_ARRIVALS, STALE_SECONDS
from app.uploads import NoSpace
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from tests.build import Trace, afd
from tests.test_app_uploads import serving

WHOLE = Trace().cpu(0, afd.opened(at_us=10), afd.sent(at_us=100, length_bytes=512)).bytes()
DIGEST = hashlib.sha256(WHOLE).hexdigest()
KEY = DIGEST[:12]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "database"


@pytest.fixture
def client(root: Path) -> Iterator[TestClient]:
    with serving(root) as made:
        yield made


def state(client: TestClient, digest: str = DIGEST) -> dict[str, Any]:  # Any: JSON
    answer = client.get(f"/uploads/files/{digest}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def send(
    client: TestClient, piece: bytes | Iterator[bytes], offset: int, size: int = len(WHOLE), digest: str = DIGEST, **headers: str
) -> Response:
    said = {
        "Content-Type": "application/octet-stream",
        "Upload-Offset": str(offset),
        "Upload-Length": str(size),
        "X-File-Name": "a%20b.etl",
    }
    said |= {"Accept": "application/json"} | {key.replace("_", "-"): value for key, value in headers.items()}
    return client.patch(f"/uploads/files/{digest}", content=piece, headers=said)


def complete(client: TestClient) -> dict[str, Any]:  # Any: JSON
    deadline = time.monotonic() + 60
    while (found := state(client))["state"] == "collecting":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def test_a_file_in_three_pieces(client: TestClient, root: Path) -> None:
    assert state(client)["state"] == "absent"
    for at in range(0, len(WHOLE), third := len(WHOLE) // 3 + 1):
        assert state(client)["offset"] == at
        answer = send(client, WHOLE[at : at + third], at)
    assert answer.status_code == 201
    assert answer.json()["key"] == KEY
    assert answer.headers["location"] == answer.json()["href"]
    found = complete(client)
    assert (found["state"], found["href"]) == ("complete", f"/t/{KEY}")
    (entry,) = Catalog(TraceFolder(root)).entries()
    assert (entry.key, entry.name, entry.state) == (KEY, "a b.etl", "complete")
    assert list((root / "arriving").iterdir()) == []


def test_what_came_is_kept_over_a_restart(root: Path) -> None:
    with serving(root) as client:
        assert send(client, WHOLE[:1000], 0).json() == {"state": "arriving", "offset": 1000}
    with serving(root) as client:
        assert (state(client)["state"], state(client)["offset"]) == ("arriving", 1000)
        assert send(client, WHOLE[1000:], 1000).status_code == 201
        assert complete(client)["state"] == "complete"


def test_a_piece_at_another_place_is_not_taken(client: TestClient) -> None:
    send(client, WHOLE[:1000], 0)
    for offset in (0, 999, 1001):
        answer = send(client, b"x", offset)
        assert (answer.status_code, answer.json()["offset"]) == (409, 1000)
    assert send(client, WHOLE[1000:], 1000).status_code == 201


def test_other_content_is_not_kept(client: TestClient, root: Path) -> None:
    answer = send(client, bytes(len(WHOLE)), 0)
    assert (answer.status_code, answer.json()["offset"]) == (422, 0)
    assert state(client)["state"] == "absent"
    assert list((root / "arriving").iterdir()) == []


def test_another_size_begins_anew(client: TestClient) -> None:
    send(client, WHOLE[:1000], 0, size=5000)
    assert send(client, WHOLE[:10], 1000).json()["offset"] == 0
    assert send(client, WHOLE, 0).status_code == 201


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"size": 0}, 400, "empty"),
        ({"size": 10}, 400, "announced with 10 bytes"),
        ({"size": (8 << 30) + 1}, 413, "at most 8,589,934,592 bytes"),
        ({"digest": "x" * 64}, 400, "64 of the digits"),
        ({"digest": DIGEST[:12]}, 400, "64 of the digits"),
        ({"Content_Type": "text/plain"}, 415, "application/octet-stream"),
        ({"Upload_Offset": "-1"}, 400, "Upload-Offset must be a number"),
        ({"Upload_Length": "9" * 19}, 400, "Upload-Length must be a number"),
        ({"Origin": "http://elsewhere.example"}, 403, "another site"),
        ({"Sec_Fetch_Site": "cross-site"}, 403, "another site"),
    ],
)
def test_refusals(client: TestClient, root: Path, change: dict[str, Any], status: int, words: str) -> None:  # Any: of several types
    answer = send(client, WHOLE[:100], 0, **change)
    assert answer.status_code == status
    assert words in answer.json()["sentence"]
    assert not list((root / "arriving").glob("*/arriving")) or (root / "arriving" / DIGEST / "arriving").stat().st_size == 0


def test_switched_off(root: Path) -> None:
    client = serving(root, uploads=False)
    assert client.get(f"/uploads/files/{DIGEST}").status_code == 403
    assert send(client, WHOLE, 0).status_code == 403


def test_tokens(root: Path) -> None:
    client = serving(root, token="w" * 16, view_token="v" * 16)
    assert send(client, WHOLE, 0).status_code == 401
    assert send(client, WHOLE, 0, Authorization=f"Bearer {'v' * 16}").status_code == 403
    with client:
        assert send(client, WHOLE, 0, Authorization=f"Bearer {'w' * 16}").status_code == 201


def test_too_many_files_at_once(client: TestClient, root: Path) -> None:
    for n in range(MOST_ARRIVALS):
        assert send(client, b"x", 0, digest=f"{n:064x}").status_code == 200
    answer = send(client, b"x", 0)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert send(client, b"y", 1, digest=f"{0:064x}").status_code == 200, "those that are there go on"

    old = time.time() - STALE_SECONDS - 60
    os.utime(root / "arriving" / f"{3:064x}" / "arriving", (old, old))
    assert send(client, WHOLE[:5], 0).status_code == 200, "one whose sender is gone makes room"


def test_a_busy_server_keeps_the_file(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.uploads.AT_ONCE", 0)
    assert send(client, WHOLE, 0).status_code == 503
    assert (state(client)["state"], state(client)["offset"]) == ("arriving", len(WHOLE))
    monkeypatch.undo()
    assert send(client, b"", len(WHOLE)).status_code == 201


def test_one_request_at_a_time_brings_a_file(client: TestClient) -> None:
    inner: list[int] = []

    def pieces() -> Iterator[bytes]:
        yield WHOLE[:500]

    app: Any = client.app
    with app.state.arrivals.opened(DIGEST, size=len(WHOLE), name="x", offset=0):
        inner.append(send(client, pieces(), 0).status_code)
    assert inner == [503]
    assert send(client, pieces(), 0).json()["offset"] == 500


def test_a_full_disk_is_said(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(place: Path, size: int) -> None:
        raise NoSpace("The server's disk has 5 bytes free.")

    monkeypatch.setattr(arrivals, "check_room", full)
    answer = send(client, WHOLE, 0)
    assert answer.status_code == 507
    assert "5 bytes free" in answer.json()["sentence"]


def test_what_cannot_be_collected_is_said_and_may_be_sent_again(client: TestClient) -> None:
    bad = b"PK" + bytes(3000)
    digest = hashlib.sha256(bad).hexdigest()
    assert send(client, bad, 0, size=len(bad), digest=digest).status_code == 201
    deadline = time.monotonic() + 60
    while (found := state(client, digest))["state"] == "collecting":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert found["state"] == "failed"
    assert "not an ETL file" in found["message"]
    assert send(client, bad[:5], 0, size=len(bad), digest=digest).status_code == 200
