"""Following a file that is still being written: what is shown meanwhile, and that the end is that of the finished file."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector import follow as following
from collector import pipeline
from collector.errors import CollectCancelled, FormatError, NotAnEtl, SourceError, StoreError, StoreLocked, TraceError
from collector.etlwriter import Compression
from collector.follow import Followed, Pace, follow
from collector.limits import Limits
from collector.pipeline import import_trace
from collector.readers.etl_growing import GrowingFile
from collector.source import Source
from collector.stages import ImportReport
from collector.store import locks
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from tests.build import Trace, afd, system
from tests.build.growing import Recording, Time

QUICK = Pace(look=0.5, pause=0.0, settle=3.0)
BUFFER = 4096


def many_sends(count: int = 300, **session: object) -> bytes:
    """Two processors with sends, some 40 buffers."""
    events = [afd.sent(at_us=200 + 20 * n, length_bytes=100 + n, buffer=0x1000 + n, duration_us=15) for n in range(count)]
    trace = Trace(buffer_size=BUFFER, **session).cpu(0, system.process_start(at_us=1))  # type: ignore[arg-type]
    return trace.cpu(0, afd.opened(at_us=10), afd.connected(at_us=50), *events[::2]).cpu(1, *events[1::2]).bytes()


@pytest.fixture(scope="module")
def sends() -> bytes:
    return many_sends()


@pytest.fixture
def folder(tmp_path: Path) -> TraceFolder:
    return TraceFolder(tmp_path / "database")


def never() -> bool:
    return False


def _ignore(value: object) -> None:
    """Takes what a call gives and does nothing with it."""


def run(recording: Recording, folder: TraceFolder, steps: Iterator[Callable[[], None]], **options: object) -> Followed:
    time = Time(steps)
    chosen = {"should_stop": never, "pace": QUICK, "wait": time.wait, "now": time.now} | options
    return follow(recording.path, folder, **chosen)  # type: ignore[arg-type]  # passed on as they are


def collected(path: Path, folder: TraceFolder) -> ImportReport:
    with Source.open(path) as source:
        return import_trace(source, folder)


def dump(folder: TraceFolder, key: str) -> list[str]:
    """Every row of a trace's file but when it was collected."""
    with closing(sqlite3.connect(folder.trace_path(key))) as db:
        db.execute("UPDATE trace SET collected_utc = ''")
        lines = list(db.iterdump())
        db.rollback()
    return lines


def states(folder: TraceFolder) -> list[tuple[str, str]]:
    return [(entry.key, entry.state) for entry in Catalog(folder).entries()]


def sent(folder: TraceFolder, key: str) -> int:
    with closing(sqlite3.connect(folder.trace_path(key))) as db:
        count: int = db.execute("SELECT count(*) FROM v_operations WHERE kind = 'send'").fetchone()[0]
    return count


# ------------------------------------------------------------------------------------------------------------ the end


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(st.one_of(st.just(0), st.integers(1, 3 * BUFFER), st.sampled_from([BUFFER, 40 * BUFFER])), max_size=40))
def test_the_end_is_that_of_the_finished_file(tmp_path_factory: pytest.TempPathFactory, sends: bytes, sizes: list[int]) -> None:
    place = tmp_path_factory.mktemp("piecewise")
    recording = Recording(place / "sockets.etl", sends)
    folder, plain = TraceFolder(place / "followed"), TraceFolder(place / "plain")

    ended = run(recording, folder, recording.steps(sizes))

    report = collected(recording.path, plain)
    assert ended.is_whole
    assert ended.report.key == report.key
    assert dump(folder, report.key) == dump(plain, report.key)
    assert states(folder) == [(report.key, "complete")]
    assert sorted(path.name for path in folder.traces_path.iterdir()) == [f"{report.key}.db"]


@pytest.mark.shared
@pytest.mark.parametrize("name", ["story-32.etl", "story-mixed.etl"])
def test_a_story_written_piece_by_piece(shared_dir: Path, tmp_path: Path, name: str) -> None:
    recording = Recording(tmp_path / name, (shared_dir / "traces" / name).read_bytes())
    folder, plain = TraceFolder(tmp_path / "followed"), TraceFolder(tmp_path / "plain")
    third = len(recording.whole) // 3
    stored: list[int] = []

    ended = run(
        recording, folder, recording.steps([100_001, third, 0, 77_777, 0, third]), on_stored=lambda r: stored.append(r.counts["records"])
    )

    report = collected(recording.path, plain)
    assert ended.report.key == report.key
    assert dump(folder, report.key) == dump(plain, report.key)
    assert len(stored) >= 3
    assert stored == sorted(stored)
    assert stored[0] < stored[-1] <= report.counts["records"]


def test_a_packed_file(tmp_path: Path, folder: TraceFolder) -> None:
    recording = Recording(tmp_path / "packed.etl", many_sends(compression=Compression.XPRESS))
    sizes = [len(recording.whole) // 7] * 6
    stored: list[ImportReport] = []

    ended = run(recording, folder, recording.steps(sizes), on_stored=stored.append)

    assert ended.report.counts["operation"] == collected(recording.path, TraceFolder(tmp_path / "plain")).counts["operation"]
    assert len(stored) > 2
    assert {p.kind for report in stored for p in report.problems if p.severity == "damage"} == set()


# ------------------------------------------------------------------------------------------------------- while it grows


def test_pages_show_what_is_there_so_far(tmp_path: Path, folder: TraceFolder, sends: bytes) -> None:
    recording = Recording(tmp_path / "sockets.etl", sends)
    seen: list[tuple[str, int, set[str]]] = []

    def look(report: ImportReport) -> None:
        ((key, state),) = states(folder)
        assert key == report.key
        seen.append((state, sent(folder, key), {p.kind for p in report.problems}))
        assert folder.is_being_collected(key)

    ended = run(recording, folder, recording.steps([10 * BUFFER, BUFFER // 2, 8 * BUFFER, 0, 0]), on_stored=look)

    assert [state for state, _, _ in seen] == ["live"] * len(seen)
    counts = [count for _, count, _ in seen]
    assert len(counts) >= 2
    assert counts == sorted(set(counts)), "each time there is more"
    assert 0 < counts[0] < counts[-1] < 300
    for _, _, kinds in seen:
        assert "still_recorded" in kinds
        assert not kinds & {"truncated_file", "buffers_missing", "unfinished_session"}
    assert "still_recorded" not in {p.kind for p in ended.report.problems}
    assert sent(folder, ended.report.key) == 300


def test_a_header_that_counts_too_early_is_not_believed(tmp_path: Path, folder: TraceFolder, sends: bytes) -> None:
    path = tmp_path / "sockets.etl"
    path.write_bytes(sends[: 10 * BUFFER])  # the counts of the whole, the buffers of a part

    with Source.open(path) as source:
        growth = GrowingFile().look(source)
        assert growth.is_ended
        assert growth.declared_buffers > growth.buffers == 10

    def finish() -> Iterator[Callable[[], None]]:
        yield from [lambda: None] * 3
        yield lambda: _ignore(path.write_bytes(sends))

    time = Time(finish())
    ended = follow(path, folder, never, pace=QUICK, wait=time.wait, now=time.now)
    assert sent(folder, ended.report.key) == 300


def test_buffers_that_never_come_are_waited_for_a_while(tmp_path: Path, folder: TraceFolder, sends: bytes) -> None:
    path = tmp_path / "sockets.etl"
    path.write_bytes(sends[: 10 * BUFFER])
    time = Time(iter(()))

    ended = follow(path, folder, never, pace=QUICK, wait=time.wait, now=time.now)

    assert QUICK.settle <= time.now_s <= QUICK.settle + 2
    assert "buffers_missing" in {p.kind for p in ended.report.problems}


def test_notes_and_links_go_over_to_the_whole(tmp_path: Path, folder: TraceFolder, sends: bytes) -> None:
    recording = Recording(tmp_path / "sockets.etl", sends)
    live: set[str] = set()

    def note(report: ImportReport) -> None:
        if not live:
            with Catalog(folder).engine.begin() as db:
                db.exec_driver_sql(
                    "INSERT INTO note (key, object, text, created_utc) VALUES (?, '', 'look here', '2025-01-01')", (report.key,)
                )
        live.add(report.key)

    ended = run(recording, folder, recording.steps([10 * BUFFER, 0, 0, 10 * BUFFER, 0, 0]), on_stored=note)

    assert len(live) == 1
    assert all(key.startswith("live-") and len(key) == 17 for key in live)
    with Catalog(folder).engine.connect() as db:
        assert db.exec_driver_sql("SELECT key, text FROM note").all() == [(ended.report.key, "look here")]
    (entry,) = Catalog(folder).entries()
    assert {entry.live_key} == live
    assert collected(recording.path, TraceFolder(tmp_path / "elsewhere")).key == ended.report.key
    (elsewhere,) = Catalog(TraceFolder(tmp_path / "elsewhere")).entries()
    assert elsewhere.live_key == entry.live_key, "known from the finished file alone"


def test_another_file_takes_the_place_of_what_was_followed(tmp_path: Path, folder: TraceFolder, sends: bytes) -> None:
    """As when a session is read in real time, with losses, and writes its own file, too."""
    recording, whole = Recording(tmp_path / "shown.etl", sends), tmp_path / "whole.etl"
    live: set[str] = set()

    def put_there(report: ImportReport) -> None:
        live.add(report.key)
        whole.write_bytes(many_sends(400, name="the files"))

    ended = run(recording, folder, recording.steps([10 * BUFFER, 0, 0]), whole=whole, on_stored=put_there)

    assert (ended.is_whole, ended.report.name) == (True, "whole.etl")
    assert states(folder) == [(ended.report.key, "complete")]
    assert sent(folder, ended.report.key) == 400
    (entry,) = Catalog(folder).entries()
    assert {entry.live_key} == live, "the old link leads there"
    folder.catalog_path.unlink()
    Catalog(folder).settle()
    (anew,) = Catalog(folder).entries()
    assert anew.live_key == entry.live_key, "the trace itself knows"


def test_a_stop_is_the_end_where_the_other_file_is_there(tmp_path: Path, folder: TraceFolder, sends: bytes) -> None:
    recording, whole = Recording(tmp_path / "shown.etl", sends), tmp_path / "whole.etl"

    def put_there(report: ImportReport) -> None:
        whole.write_bytes(many_sends(400, name="the files"))

    ended = run(recording, folder, recording.steps([10 * BUFFER, *[0] * 50]), whole=whole, on_stored=put_there, should_stop=whole.exists)

    assert (ended.is_whole, ended.report.name) == (True, "whole.etl")
    assert states(folder) == [(ended.report.key, "complete")]


def test_what_was_followed_is_collected_where_nothing_takes_its_place(tmp_path: Path, folder: TraceFolder, sends: bytes) -> None:
    recording = Recording(tmp_path / "shown.etl", sends)
    ended = run(recording, folder, recording.steps([len(sends)]), whole=tmp_path / "none.etl")
    assert (ended.is_whole, ended.report.name) == (True, "shown.etl")


def test_a_part_of_a_growing_trace(tmp_path: Path, folder: TraceFolder, sends: bytes) -> None:
    recording = Recording(tmp_path / "sockets.etl", sends)
    limits = Limits(from_ns=4_000_000)
    keys: list[str] = []

    ended = run(recording, folder, recording.steps([8 * BUFFER, 0, 30 * BUFFER, 0]), limits=limits, on_stored=lambda r: keys.append(r.key))

    assert set(keys) == {keys[0]}
    assert keys[0].endswith(limits.suffix)
    assert ended.report.key.endswith(limits.suffix)
    assert states(folder) == [(ended.report.key, "complete")]


# ---------------------------------------------------------------------------------------------------------- ends early


def test_stopping_leaves_what_is_there(tmp_path: Path, folder: TraceFolder, sends: bytes) -> None:
    recording = Recording(tmp_path / "sockets.etl", sends)
    stops: list[bool] = []
    steps = iter([lambda: recording.append(10 * BUFFER + 17), lambda: None, lambda: recording.append(BUFFER), lambda: stops.append(True)])

    ended = run(recording, folder, steps, should_stop=lambda: bool(stops))

    assert not ended.is_whole
    (entry,) = Catalog(folder).entries()
    assert (entry.key, entry.state) == (ended.report.key, "interrupted")
    assert entry.message is not None
    assert "what came later is not here" in entry.message
    with folder.trace(entry.key).connect() as db:
        assert db.exec_driver_sql("SELECT state FROM v_trace").scalar_one() == "interrupted"
    assert sent(folder, entry.key) > 0
    assert not folder.is_being_collected(entry.key)

    again = run(recording, folder, recording.steps([0, 0]))  # and it can be taken up again
    assert states(folder) == [(again.report.key, "complete")]


def test_stopping_while_the_finished_file_is_collected_says_what_is_there(tmp_path: Path, folder: TraceFolder, sends: bytes) -> None:
    recording = Recording(tmp_path / "sockets.etl", sends)
    stops: list[bool] = []
    steps = iter([lambda: recording.append(10 * BUFFER), *[lambda: None] * 3, recording.close])

    def should_stop() -> bool:
        if stops:  # asked at the look that finds the session ended, and again by the collection that follows
            return True
        if recording.is_closed:
            closed.append(True)
            if len(closed) > 1:
                stops.append(True)
        return False

    closed: list[bool] = []
    with pytest.raises(CollectCancelled, match=r"What was read before stays as trace live-\w+"):
        run(recording, folder, steps, should_stop=should_stop)

    live = [entry for entry in Catalog(folder).entries() if entry.key.startswith("live-")]
    assert [entry.state for entry in live] == ["interrupted"]
    assert "stays as trace" in (live[0].message or "")
    assert sent(folder, live[0].key) > 0


def test_a_second_interrupt_says_so_in_words(tmp_path: Path, folder: TraceFolder, sends: bytes) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    recording = Recording(tmp_path / "sockets.etl", sends)
    with pytest.raises(KeyboardInterrupt):
        run(recording, folder, iter([lambda: recording.append(10 * BUFFER), *[lambda: None] * 3, interrupt]))
    (entry,) = Catalog(folder).entries()
    assert (entry.state, (entry.message or "").partition(":")[0]) == ("interrupted", "Following was stopped at once")


@pytest.mark.parametrize(("option", "seconds"), [("for_seconds", 4.0), ("idle_seconds", 3.0)])
def test_limits_of_time_end_it(tmp_path: Path, folder: TraceFolder, sends: bytes, option: str, seconds: float) -> None:
    recording = Recording(tmp_path / "sockets.etl", sends)
    time = Time(iter([lambda: recording.append(10 * BUFFER)]))

    ended = follow(recording.path, folder, never, pace=QUICK, wait=time.wait, now=time.now, **{option: seconds})  # type: ignore[arg-type]

    assert not ended.is_whole
    assert seconds <= time.now_s <= seconds + 1
    assert [state for _, state in states(folder)] == ["interrupted"]


def test_nothing_is_stored_where_nothing_came(tmp_path: Path, folder: TraceFolder, sends: bytes) -> None:
    recording = Recording(tmp_path / "sockets.etl", sends)
    with pytest.raises(CollectCancelled, match="before the session had written anything"):
        run(recording, folder, iter([lambda: recording.append(100)]), idle_seconds=5.0)
    assert states(folder) == []


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda path: path.unlink(), SourceError, "no such file"),
        (lambda path: path.write_bytes(path.read_bytes()[:BUFFER]), FormatError, "became shorter"),
        (lambda path: path.write_bytes(b"PK" + bytes(3 * BUFFER)), NotAnEtl, "not an ETL file"),
        (lambda path: path.write_bytes(many_sends(boot_filetime=133_000_000_000_000_000)), FormatError, "another session"),
    ],
)
def test_a_file_that_goes_away_leaves_what_was_stored(
    tmp_path: Path, folder: TraceFolder, sends: bytes, change: Callable[[Path], object], error: type[TraceError], words: str
) -> None:
    recording = Recording(tmp_path / "sockets.etl", sends)
    steps = iter([lambda: recording.append(10 * BUFFER), lambda: None, lambda: None, lambda: _ignore(change(recording.path))])
    with pytest.raises(error, match=words):
        run(recording, folder, steps)
    (entry,) = Catalog(folder).entries()
    assert entry.state == "interrupted"
    assert entry.message is not None
    assert words in entry.message
    assert sent(folder, entry.key) > 0


def test_a_store_that_is_busy_is_tried_again(tmp_path: Path, folder: TraceFolder, sends: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording(tmp_path / "sockets.etl", sends)
    real, troubles, stored = pipeline.import_so_far, list[str](), list[ImportReport]()

    def refuse_once(*args: object, **options: object) -> ImportReport:
        if not troubles:
            raise StoreError("The finished trace cannot be put in place.")
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(following, "import_so_far", refuse_once)
    ended = run(recording, folder, recording.steps([9 * BUFFER, 0, 0, 0]), on_trouble=troubles.append, on_stored=stored.append)
    assert troubles == ["The finished trace cannot be put in place."]
    assert stored
    assert ended.is_whole


def test_two_collectors_of_one_session(tmp_path: Path, folder: TraceFolder, sends: bytes) -> None:
    recording = Recording(tmp_path / "sockets.etl", sends)
    refused: list[str] = []

    def second(report: ImportReport) -> None:
        with pytest.raises(StoreLocked) as error:
            run(recording, folder, iter(()))
        refused.append(str(error.value))

    ended = run(recording, folder, recording.steps([9 * BUFFER, 0, 0]), on_stored=second)
    assert "another collector is following this session" in refused[0]
    assert states(folder) == [(ended.report.key, "complete")]


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_a_killed_follower_leaves_a_marked_trace(tmp_path: Path, folder: TraceFolder, sends: bytes) -> None:
    recording = Recording(tmp_path / "sockets.etl", sends)
    recording.append(12 * BUFFER)
    command = [sys.executable, "-m", "collector.cli", "collect", "--follow", str(recording.path), "--database", str(folder.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        process.kill()
        assert "live-" in said, said + process.stderr.read()
    Catalog(folder).settle()
    (entry,) = Catalog(folder).entries()
    assert (entry.state, entry.collector_pid) == ("interrupted", None)
    assert entry.key in said
    assert sent(folder, entry.key) > 0
    assert not locks.is_held(folder.lock_path(entry.key))

    ended = run(recording, folder, recording.steps([0]))
    assert states(folder) == [(ended.report.key, "complete")]
