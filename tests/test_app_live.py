"""Pages of a trace that is still being recorded: what they say, where its link leads afterwards, and what is left when following ends."""

from pathlib import Path

import pytest

from collector import pipeline
from collector.follow import follow
from collector.source import Source
from collector.stages import ImportReport
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
        listed = client.get("/?format=json").json()["traces"]
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
    assert client.get("/?format=json").json()["traces"][0]["state"] == "interrupted"
    assert client.get(f"/t/{keys[0]}?format=json").json()["trace"]["state"] == "interrupted"
    assert "Not the whole trace." in client.get(f"/t/{keys[0]}").text
