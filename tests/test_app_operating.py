"""What somebody who operates a server sees of it: its log, and its numbers."""

import asyncio
import json
import logging
import re
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from app.cli import main
from app.logs import JsonFormatter, PlainFormatter
from app.main import create_app
from app.metrics import Metrics
from app.observing import Observed, Seen, note_in_log
from app.settings import Settings
from collector.store.engine import TraceFolder
from tests.build.database import BUILT_KEY, built_database
from tests.test_app_workers import ask, serving

TOKEN = "a-token-of-sixteen-characters"


@pytest.fixture
def folder(tmp_path: Path) -> TraceFolder:
    return built_database(tmp_path / "database", {"socket": [{"endpoint": 0xE1, "first_ns": 5, "last_ns": 9, "end": "closed"}]})


def numbers(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample of a scrape."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of_page(page: str, status: int, method: str = "GET") -> tuple[str, frozenset[tuple[str, str]]]:
    return "sockscope_requests_total", frozenset({("page", page), ("method", method), ("status", str(status))})


# ---------------------------------------------------------------------------------------------------- metrics


def test_requests_are_counted_by_page(folder: TraceFolder) -> None:
    with TestClient(create_app(Settings(database=folder.root, has_metrics=True)), base_url="http://127.0.0.1") as client:
        for path in ("/", f"/t/{BUILT_KEY}", f"/t/{BUILT_KEY}/sockets", f"/t/{BUILT_KEY}/sockets/0xe1@5", f"/t/{BUILT_KEY}/sockets?sort=x"):
            client.get(path)
        client.get("/nowhere/at/all")
        client.request("BREW", "/")
        answer = client.get("/metrics")

    found = numbers(answer.text)
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["cache-control"] == "no-store"
    assert found[of_page("traces", 200)] == found[of_page("overview", 200)] == 1
    assert found[of_page("sockets", 200)] == 2
    assert found[of_page("sockets", 400)] == 1
    assert found[of_page("other", 404)] == 1
    assert found[of_page("traces", 405, "other")] == 1
    assert found["sockscope_request_duration_seconds_count", frozenset({("page", "sockets")})] == 3
    assert found["sockscope_traces", frozenset({("state", "complete")})] == 1
    assert found["sockscope_notes", frozenset()] == 0
    assert found["sockscope_database_size_bytes", frozenset()] > 0


@pytest.mark.folder("the size of files")
def test_the_size_of_a_database_is_that_of_its_files(folder: TraceFolder) -> None:
    found = numbers(_scraped(Metrics(folder, frozenset())))

    size = sum(path.stat().st_size for path in (folder.catalog_path, *folder.traces_path.glob("*.db")))
    assert found["sockscope_database_size_bytes", frozenset()] == size


def test_whatever_is_asked_for_there_are_few_names_of_pages(folder: TraceFolder) -> None:
    metrics = Metrics(folder, frozenset({"sockets", "help"}))
    for path in ("/a", "//", "/t/", "/t/x/y", "/t/x/sockets", "/t", "", "/help/x", *(f"/{n}" for n in range(100)), "/t/k/\x1b[0m"):
        metrics.take(Seen("GET", path, "", "", 200, 0.1))

    pages = {dict(labels)["page"] for name, labels in numbers(_scraped(metrics)) if name == "sockscope_requests_total"}

    assert pages == {"other", "sockets", "help", "overview", "traces"}


def _scraped(metrics: Metrics) -> str:
    return bytes(metrics.answer(Request({"type": "http"})).body).decode()


def test_a_folder_without_traces_has_numbers_too(tmp_path: Path) -> None:
    found = numbers(_scraped(Metrics(TraceFolder(tmp_path / "none"), frozenset())))

    assert found["sockscope_database_size_bytes", frozenset()] == 0
    assert not [name for name, _ in found if name == "sockscope_notes"]


def test_numbers_are_shown_only_where_asked_for_and_only_to_who_may_look(folder: TraceFolder) -> None:
    with TestClient(create_app(Settings(database=folder.root)), base_url="http://127.0.0.1") as client:
        assert client.get("/metrics").status_code == 404
    guarded = create_app(Settings(database=folder.root, has_metrics=True, token=TOKEN))
    with TestClient(guarded, base_url="http://127.0.0.1") as client:
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes by /proc")
def test_several_processes_add_their_numbers_up(folder: TraceFolder) -> None:
    with serving(folder.root, 2, "--metrics") as (_, address):
        for _ in range(30):
            assert ask(address, f"/t/{BUILT_KEY}/sockets")[0] == 200

        seen = {numbers(ask(address, "/metrics")[2])[of_page("sockets", 200)] for _ in range(6)}

    assert seen == {30.0}


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    assert main(["serve", "--metrics", "--database", str(tmp_path / "database")]) == 2
    assert 'pip install "sockscope[metrics]"' in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------- log


class _Kept(logging.Handler):
    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__()
        self.records = records

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """What the server writes of requests."""
    kept: list[logging.LogRecord] = []
    handler = _Kept(kept)
    log = logging.getLogger("sockscope.requests")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield kept
    log.removeHandler(handler)
    log.setLevel(logging.NOTSET)


def test_a_request_is_a_line_without_secrets_and_without_forged_lines(folder: TraceFolder, records: list[logging.LogRecord]) -> None:
    app = create_app(Settings(database=folder.root, logs_requests=True, token=TOKEN))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        client.get(f"/t/{BUILT_KEY}/sockets?token={TOKEN}&state=open", follow_redirects=False)
        client.get("/x%0a2030-01-01%1b[0m", headers={"Authorization": f"Bearer {TOKEN}"})

    lines = [PlainFormatter().format(record) for record in records]
    assert len(lines) == 2
    assert re.search(rf"INFO sockscope\.requests: GET /t/{BUILT_KEY}/sockets\?token=hidden&state=open 303 \d+ ms testclient$", lines[0])
    assert r"/x\n2030-01-01\x1b[0m 404" in lines[1]
    assert not any(TOKEN in line or "\n" in line for line in lines)


def test_json_lines_have_fields(records: list[logging.LogRecord]) -> None:
    note_in_log(Seen("GET", "/t/\u202ex", "q=a\nb&Token=secret&next=/t?token=secret", "10.0.0.1", 200, 0.0123))
    try:
        raise ValueError("bad\nname")
    except ValueError:
        broken = logging.getLogger("sockscope").makeRecord("sockscope", logging.ERROR, "", 0, "failed", (), sys.exc_info())

    first, second = (JsonFormatter().format(record) for record in (records[0], broken))

    assert "\n" not in first + second
    assert (first + second).isascii()
    entry = json.loads(first)
    assert entry.pop("time").endswith("+00:00")
    assert entry.pop("message").startswith("GET /t/")
    assert entry == {
        "level": "INFO", "logger": "sockscope.requests", "method": "GET", "path": "/t/\u202ex",
        "query": "q=a%0Ab&Token=hidden&next=/t%3Ftoken%3Dhidden",
        "status": 200, "milliseconds": 12.3, "client": "10.0.0.1",
    }  # fmt: skip
    assert "ValueError: bad\nname" in json.loads(second)["exception"]


def test_what_fails_and_what_nobody_waits_for_is_seen_once() -> None:
    seen: list[Seen] = []

    async def fails(_request: Request) -> Response:
        raise RuntimeError("a fault of ours")

    async def streams(_request: Request) -> Response:
        async def news() -> AsyncIterator[bytes]:
            yield b"data: 1\n\n"
            assert [one.path for one in seen] == ["/fails", "/live"]  # told when it began

        return StreamingResponse(news(), media_type="text/event-stream")

    async def waits(_request: Request) -> Response:
        await asyncio.Event().wait()
        return Response()

    app = Observed(Starlette(routes=[Route("/fails", fails), Route("/live", streams), Route("/waits", waits)]), [seen.append])

    async def ask_all() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url="http://x") as client:
            await client.get("/fails")
            await client.get("/live")
            waiting = asyncio.create_task(client.get("/waits"))
            await asyncio.sleep(0.05)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    asyncio.run(ask_all())

    assert [(one.path, one.status) for one in seen] == [("/fails", 500), ("/live", 200), ("/waits", 499)]


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes by /proc")
def test_a_server_writes_the_log_that_was_asked_for(folder: TraceFolder) -> None:
    with serving(folder.root, 1, "--log-requests", "--log-format", "json") as (server, address):
        ask(address, "/healthz")
        server.terminate()
        _, err = server.communicate(timeout=60)

    entries = [json.loads(line) for line in err.splitlines()]
    assert [(entry["path"], entry["status"], entry["client"]) for entry in entries] == [("/healthz", 200, "127.0.0.1")]
