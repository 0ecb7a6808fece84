"""Pages of a trace that is still being recorded: what they say, where its link leads afterwards, and what is left when following ends."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message

from app.busy import RequestLimit
from app.growth import Streams, growth_events
from app.living import version_of
from collector import pipeline
from collector.follow import follow
from collector.source import Source
from collector.stages import ImportReport
from collector.store import locks
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from tests.build.growing import Recording, Time
from tests.build.served import served
from tests.test_follow import BUFFER, QUICK, many_sends, never


@pytest.fixture
def folder(tmp_path: Path) -> TraceFolder:
    return TraceFolder(tmp_path / "database")


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording(tmp_path / "sockets.etl", many_sends())


def test_all_pages_are_there_while_it_grows(folder: TraceFolder, recording: Recording) -> None:
    client = served(folder)
    lengths: list[int] = []

    def look(report: ImportReport) -> None:
        path = f"/t/{report.key}"
        overview = client.get(path).text
        assert "Still recording." in overview
        assert 'data-state="live"' in overview
        assert "Not the whole trace" not in overview
        trace = client.get(f"{path}/operations?format=json").json()
        assert trace["trace"]["state"] == "live"
        lengths.append(client.get(f"{path}/operations", params={"format": "json", "kind": "send"}).json()["listing"]["total"])
        listed = client.get("/?format=json").json()["listing"]["rows"]
        assert [(one["key"], one["state"]) for one in listed] == [(report.key, "live")]
        assert client.get(f"{path}/trust").text.count("The session was still recording") == 1

    time = Time(recording.steps([10 * BUFFER, 0, 10 * BUFFER, 0, 0]))
    ended = follow(recording.path, folder, never, pace=QUICK, wait=time.wait, now=time.now, on_stored=look)
    assert len(lengths) >= 2
    assert lengths == sorted(set(lengths)), "no page is an old one"
    assert "Still recording" not in client.get(f"/t/{ended.report.key}").text


def test_a_link_to_the_growing_trace_leads_to_the_whole(folder: TraceFolder, recording: Recording) -> None:
    keys: list[str] = []
    time = Time(recording.steps([10 * BUFFER, 0, 0]))
    ended = follow(recording.path, folder, never, pace=QUICK, wait=time.wait, now=time.now, on_stored=lambda r: keys.append(r.key))
    answer = served(folder).get(f"/t/{keys[0]}/sockets?from=5&sort=-opened_ns")
    assert answer.status_code == 307
    assert answer.headers["location"] == f"/t/{ended.report.key}/sockets?from=5&sort=-opened_ns"


def test_several_files_of_one_session_are_told_apart(folder: TraceFolder, recording: Recording, tmp_path: Path) -> None:
    for n, data in enumerate((recording.whole, recording.whole[: 10 * BUFFER])):
        (tmp_path / f"{n}.etl").write_bytes(data)
        with Source.open(tmp_path / f"{n}.etl") as source:
            pipeline.import_trace(source, folder)
    first, second = Catalog(folder).entries()
    assert first.live_key == second.live_key
    answer = served(folder).get(f"/t/{first.live_key}")
    assert answer.status_code == 300
    assert first.key in answer.text
    assert second.key in answer.text


def test_what_was_followed_in_part_says_so(folder: TraceFolder, recording: Recording) -> None:
    recording.append(10 * BUFFER)
    time = Time(iter(()))
    key = follow(recording.path, folder, never, pace=QUICK, wait=time.wait, now=time.now, idle_seconds=2.0).report.key
    client = served(folder)
    page = client.get(f"/t/{key}").text
    assert "Not the whole trace." in page
    assert "Still recording." not in page
    assert "Following ended before the session did" in client.get("/").text
    assert ">Dismiss<" not in client.get("/").text


def test_a_follower_that_is_gone_is_not_believed(folder: TraceFolder, recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    recording.append(10 * BUFFER)
    keys: list[str] = []
    time = Time(iter(()))

    def killed(report: ImportReport) -> None:
        keys.append(report.key)
        monkeypatch.setattr(Catalog, "abandon", lambda *_: None)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        follow(recording.path, folder, never, pace=QUICK, wait=time.wait, now=time.now, on_stored=killed)
    client = served(folder)
    assert [one.state for one in Catalog(folder).entries()] == ["live"], "nobody has settled it yet"
    assert client.get("/?format=json").json()["listing"]["rows"][0]["state"] == "interrupted"
    assert client.get(f"/t/{keys[0]}?format=json").json()["trace"]["state"] == "interrupted"
    assert "Not the whole trace." in client.get(f"/t/{keys[0]}").text


# --------------------------------------------------------------------------------------------------- telling of growth


class Waited(Exception):
    """Enough of waiting."""


def told(
    folder: TraceFolder, key: str, since: str, *steps: Callable[[], object], became: str | None = None, streams: Streams | None = None
) -> str:
    """What a browser is sent while each step happens between two looks."""
    todo = iter(steps)

    async def sleep(seconds: float) -> None:
        step = next(todo, None)
        if step is None:
            raise Waited
        step()

    async def successor() -> str | None:
        return became

    async def all_of_it() -> str:
        sent: list[str] = []
        with contextlib.suppress(Waited):
            async for event in growth_events(folder, key, since, streams or Streams(), successor, sleep=sleep):
                sent += [event]
        return "".join(sent)

    return asyncio.run(all_of_it())


def test_each_new_state_is_told_once(folder: TraceFolder) -> None:
    key = "live-0123456789ab"
    folder.make()
    path = folder.trace_path(key)
    path.write_bytes(b"one")
    first = version_of(folder, key)

    def replaced() -> None:
        (path.with_suffix(".new")).write_bytes(b"another")
        path.with_suffix(".new").replace(path)

    with locks.held(folder.lock_path(key), "busy"):
        text = told(folder, key, first, nothing, nothing, replaced, nothing, nothing)
        assert text.count("event: grown") == 1
        assert json.loads(text.partition("data: ")[2].splitlines()[0]) == {"version": version_of(folder, key)}
        assert "event: ended" not in text
        assert told(folder, key, "an older one", nothing).count("event: grown") == 1
        assert told(folder, key, version_of(folder, key), *[nothing] * 40).count(": still there") == 2


def test_the_end_is_told_with_what_became_of_it(folder: TraceFolder) -> None:
    folder.make()
    assert told(folder, "live-0123456789ab", "", became="abc").endswith('event: ended\ndata: {"key": "abc"}\n\n')
    assert told(folder, "live-0123456789ab", "").endswith('event: ended\ndata: {"key": null}\n\n')


def test_streams_end_with_the_server_and_are_counted(folder: TraceFolder) -> None:
    key, streams = "live-0123456789ab", Streams(most=1)
    folder.make()
    with locks.held(folder.lock_path(key), "busy"):
        told(folder, key, "", lambda: counts.append((streams.open, streams.is_full)), streams.close, nothing, streams=streams)
    assert counts == [(1, True)]
    assert (streams.open, streams.is_full) == (0, False)


counts: list[tuple[int, bool]] = []


def nothing() -> None:
    """Lets time pass."""


def test_the_address_of_the_stream(folder: TraceFolder) -> None:
    client = served(folder)
    answer = client.get("/live/live-0123456789ab")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert "content-encoding" not in answer.headers
    assert answer.text.endswith('event: ended\ndata: {"key": null}\n\n')
    assert client.get("/live/0123456789ab").status_code == 404
    assert client.get("/live/live-%2e%2e").status_code == 404
    app: Any = client.app
    app.state.streams = Streams(most=0)
    refused = client.get("/live/live-0123456789ab")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")


def test_streams_take_no_place_of_requests(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def waiting(request: Request) -> Response:
        async def events() -> AsyncIterator[str]:
            yield ": begun\n\n"
            await release.wait()

        return StreamingResponse(events(), media_type="text/event-stream")

    async def run() -> list[int]:
        app = RequestLimit(Starlette(routes=[Route("/wait", waiting)]), most=2)
        statuses: list[int] = []

        async def ask() -> None:
            async def send(message: Message) -> None:
                if message["type"] == "http.response.start":
                    statuses.append(message["status"])

            async def receive() -> Message:
                await release.wait()
                return {"type": "http.disconnect"}

            scope = {"type": "http", "method": "GET", "path": "/wait", "query_string": b"", "headers": [], "root_path": ""}
            await app(scope, receive, send)

        tasks = []
        for _ in range(5):
            tasks.append(asyncio.create_task(ask()))
            while len(statuses) < len(tasks):
                await asyncio.sleep(0)
        release.set()
        await asyncio.gather(*tasks)
        return statuses

    assert asyncio.run(run()) == [200] * 5
