"""Importing a trace: complete or not at all, whatever happens meanwhile."""

import functools
import hashlib
import itertools
import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from collector import pipeline, stages
from collector.errors import CollectCancelled, EmptyTrace, NotAnEtl, StoreError, StoreFull, StoreLocked, StoreTooNew, TraceError
from collector.etlwriter import Record
from collector.events.afd import AFD
from collector.model.kept import KeptRecords
from collector.pipeline import Progress, import_trace, trace_key
from collector.raw import HeaderKind
from collector.source import Source
from collector.store import dialects, locks
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.store.writer import TraceWriter
from tests.build import EXIT, Trace, afd, heap, system
from tests.build.imported import ImportTrace
from tests.odd.hostile import tiny_buffers

KEY_BYTES = 12
SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "traces"


def a_send() -> Trace:
    return Trace().cpu(
        0, afd.opened(at_us=10), afd.connected(at_us=50), afd.sent(at_us=100, length_bytes=512, buffer=0x1000, duration_us=240)
    )


def run(path: Path, folder: TraceFolder, **options: object) -> pipeline.ImportReport:
    with Source.open(path) as source:
        return import_trace(source, folder, **options)  # type: ignore[arg-type]  # passed on as they are


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return a_send().write(tmp_path / "loopback.etl")


@pytest.fixture
def folder(tmp_path: Path) -> TraceFolder:
    return TraceFolder(tmp_path / "database")


def states(folder: TraceFolder) -> list[tuple[str, str, str | None]]:
    return [(entry.name, entry.state, entry.message) for entry in Catalog(folder).entries()]


def test_a_send_is_posted_then_completed(import_trace: ImportTrace) -> None:
    db = import_trace(a_send())

    assert db.rows("SELECT kind, posted_ns, completed_ns, outcome, bytes FROM v_operations WHERE kind = 'send'") == [
        ("send", 100_000, 340_000, "completed", 512)
    ]
    assert db.rows("SELECT sends, bytes_sent, in_flight_max FROM socket_rollup WHERE scope = 'trace' AND level = 36") == [(1, 512, 1)]


def test_the_trace_says_what_it_is(file: Path, folder: TraceFolder) -> None:
    report = run(file, folder, name="my trace")

    (entry,) = Catalog(folder).entries()
    with folder.trace(report.key).connect() as connection:
        trace = connection.exec_driver_sql("SELECT * FROM v_trace").one()
        header = json.loads(connection.exec_driver_sql("SELECT header FROM trace").scalar_one())
    assert (trace.key, trace.name, trace.state, trace.clock, trace.pointer_size) == (report.key, "my trace", "complete", "qpc", 8)
    assert (entry.key, entry.name, entry.state, entry.records, entry.sockets) == (report.key, "my trace", "complete", trace.records, 1)
    assert entry.path == str(file)
    assert entry.size_bytes == file.stat().st_size
    assert trace.end_ns == 340_000  # the last record
    assert trace.records == report.counts["records"] == 1 + 6
    assert header["is_closed"] is True


def test_the_key_is_the_hash_of_the_bytes(file: Path, tmp_path: Path, folder: TraceFolder) -> None:
    copy = tmp_path / "another name.etl"
    copy.write_bytes(file.read_bytes())
    assert run(file, folder).key == hashlib.sha256(file.read_bytes()).hexdigest()[:KEY_BYTES]
    with Source.open(copy) as source:
        assert trace_key(source) == run(file, folder).key


def test_collecting_again_replaces_the_trace_and_keeps_the_notes(file: Path, folder: TraceFolder) -> None:
    first = run(file, folder, name="first")
    with Catalog(folder).engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO note (key, object, text, created_utc) VALUES (?, 'overview', 'mine', '2025')", (first.key,))
    second = run(file, folder, name="second")

    assert first.key == second.key
    assert states(folder) == [("second", "complete", None)]
    with folder.catalog().connect() as connection:
        assert connection.exec_driver_sql("SELECT text FROM v_notes").all() == [("mine",)]


def test_keep_refuses_what_is_there(file: Path, folder: TraceFolder) -> None:
    run(file, folder, name="first", keep=True)
    with pytest.raises(StoreError, match="collected already"):
        run(file, folder, name="second", keep=True)
    assert states(folder) == [("first", "complete", None)]


def test_collecting_twice_gives_the_same_rows(file: Path, folder: TraceFolder) -> None:
    def dump() -> list[str]:
        with sqlite3.connect(folder.trace_path(key)) as db:
            lines = [line for line in db.iterdump() if "INSERT" in line and "collected_utc" not in line]
        db.close()
        return [line for line in lines if not line.startswith('INSERT INTO "trace"') and "sqlite_stat" not in line]

    key = run(file, folder).key
    before = dump()
    run(file, folder)
    assert dump() == before


def test_a_process_that_inserts_the_rows_stores_the_same(folder: TraceFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = a_send().write(tmp_path / "loopback.etl")
    monkeypatch.setattr(stages, "now_utc", lambda: "2024-05-01T09:30:00+00:00")
    dumps = []
    for least in (1 << 40, 0):
        monkeypatch.setattr(pipeline, "_BYTES_FOR_A_PROCESS", least)
        with sqlite3.connect(folder.trace_path(run(file, folder).key)) as db:
            dumps.append(list(db.iterdump()))
        db.close()
    assert dumps[0] == dumps[1]


# -------------------------------------------------------------------------------------------------------- interrupted


def stop_at(stage: str) -> tuple[Callable[[Progress], None], Callable[[], bool]]:
    seen: list[str] = []
    return lambda progress: seen.append(progress.stage), lambda: stage in seen


@pytest.mark.parametrize(("stage", "is_beside"), [("reading", False), ("reading", True), ("joining", True), ("indexing", False)])
def test_cancelling_leaves_the_folder_as_it_was(
    file: Path, folder: TraceFolder, monkeypatch: pytest.MonkeyPatch, stage: str, *, is_beside: bool
) -> None:
    monkeypatch.setattr(pipeline, "_is_worth_a_process", lambda source: is_beside)
    on_progress, should_cancel = stop_at(stage)
    with pytest.raises(CollectCancelled, match="Nothing was stored"):
        run(file, folder, on_progress=on_progress, should_cancel=should_cancel)
    assert states(folder) == [("loopback.etl", "interrupted", "Cancelled. Nothing was stored.")]
    assert list(folder.traces_path.iterdir()) == []

    key = run(file, folder, name="old").key
    on_progress, should_cancel = stop_at(stage)
    with pytest.raises(CollectCancelled):
        run(file, folder, on_progress=on_progress, should_cancel=should_cancel)
    assert states(folder)[0][1] == "complete"
    assert [p.name for p in folder.traces_path.iterdir()] == [f"{key}.db"]
    with folder.trace(key).connect() as connection:
        assert connection.exec_driver_sql("SELECT name FROM v_trace").scalar_one() == "old"


def test_cancelling_ends_a_long_statement(tmp_path: Path) -> None:
    asked = iter([False] * 3 + [True] * 100)
    engine = dialects.bulk_engine(tmp_path / "x.db", should_cancel=lambda: next(asked))
    with engine.connect() as connection, pytest.raises(CollectCancelled):
        connection.exec_driver_sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")


def test_cancelling_while_the_file_is_hashed(file: Path) -> None:
    with Source.open(file) as source, pytest.raises(CollectCancelled):
        trace_key(source, lambda: True)


def test_cancelling_while_the_buffers_are_counted(tmp_path: Path, folder: TraceFolder) -> None:
    path = tmp_path / "many.etl"
    path.write_bytes(tiny_buffers(1 << 20))  # 14,000 buffers
    asked = itertools.count()
    with Source.open(path) as source:
        with pytest.raises(CollectCancelled):
            import_trace(source, folder, should_cancel=lambda: next(asked) == 5)
        assert next(asked) == 6
        assert not folder.has_catalog()
        assert source.read_at(0, 4)  # the file is as it was


def _die_at(path: str, root: str, stage: str) -> None:
    def die(progress: Progress) -> None:
        if progress.stage == stage:
            os._exit(9)  # as if killed: nothing is cleaned up

    run(Path(path), TraceFolder(root), on_progress=die)


@pytest.mark.parametrize("stage", ["reading", "checking"])
def test_a_killed_collector_leaves_the_old_trace(file: Path, folder: TraceFolder, stage: str) -> None:
    key = run(file, folder, name="old").key
    child = multiprocessing.get_context("spawn").Process(target=_die_at, args=(str(file), str(folder.root), stage))
    child.start()
    child.join(60)
    assert child.exitcode == 9

    assert folder.part_path(key).exists()  # what the dead collector left
    with folder.trace(key).connect() as connection:
        assert connection.exec_driver_sql("SELECT name FROM v_trace").scalar_one() == "old"
    run(file, folder, name="new")
    assert states(folder) == [("new", "complete", None)]
    assert [p.name for p in folder.traces_path.iterdir()] == [f"{key}.db"]


def test_two_collectors_of_one_file(file: Path, folder: TraceFolder) -> None:
    key = run(file, folder, name="old").key
    with locks.held(folder.lock_path(key), "taken"), pytest.raises(StoreLocked, match="another collector is collecting this file"):
        run(file, folder, name="new")
    assert states(folder) == [("old", "complete", None)]


def test_a_full_disk(file: Path, folder: TraceFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "TraceWriter", functools.partial(TraceWriter, page_limit=80))
    with pytest.raises(StoreFull, match="no space is left"):
        run(file, folder)
    (state,) = states(folder)
    assert state[1] == "interrupted"
    assert "no space is left" in str(state[2])
    assert list(folder.traces_path.iterdir()) == []


def test_a_locked_catalog(file: Path, folder: TraceFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    run(file, folder)
    monkeypatch.setattr(dialects, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect(folder.catalog_path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreLocked, match="another program holds this database"):
        run(file, folder)
    other.close()


def test_a_newer_catalog_is_refused_untouched(file: Path, folder: TraceFolder) -> None:
    run(file, folder)
    with sqlite3.connect(folder.catalog_path) as db:
        db.execute("UPDATE alembic_version SET version_num = 'c9999'")
    db.close()
    before = folder.catalog_path.read_bytes()
    with pytest.raises(StoreTooNew, match="Update sockscope"):
        run(file, folder)
    assert folder.catalog_path.read_bytes() == before


# -------------------------------------------------------------------------------------------------------- odd inputs


@pytest.mark.parametrize(
    ("content", "error"),
    [(b"", EmptyTrace), (b"a,b,c\n1,2,3\n" * 500, NotAnEtl), (bytes(10_000), TraceError), (os.urandom(100_000), TraceError)],
    ids=["empty", "text", "zeros", "noise"],
)
def test_what_is_no_trace_leaves_nothing_behind(tmp_path: Path, folder: TraceFolder, content: bytes, error: type[TraceError]) -> None:
    path = tmp_path / "odd.etl"
    path.write_bytes(content)
    with pytest.raises(error, match=r"odd\.etl"):
        run(path, folder)
    assert not folder.has_catalog()


def test_a_cut_file_is_stored_as_far_as_it_goes_and_says_so(tmp_path: Path, folder: TraceFolder) -> None:
    sends = [afd.sent(at_us=1000 + 10 * i, buffer=0x1000) for i in range(2000)]
    path = Trace().cpu(0, afd.opened(at_us=10), *sends).cut_at(-10_000).write(tmp_path / "cut.etl")
    report = run(path, folder)

    assert report.is_limited
    assert "truncated_file" in {p.kind for p in report.problems}
    assert 0 < report.counts["operation"] < 2000


def unknown_events(count: int) -> list[Record]:
    """Events of the socket provider with an id that nobody knows, a microsecond apart."""
    kind = HeaderKind.EVENT64
    first = Trace().clock.start_ticks + 500 * 10

    return [
        Record(kind=kind, ticks=first + 10 * i, payload=b"\1\2\3", provider=AFD, event_id=1999, version=4, pid=7, tid=8)
        for i in range(count)
    ]


def test_unknown_events_are_kept_as_bytes_and_named(import_trace: ImportTrace) -> None:
    db = import_trace(a_send().cpu(0, unknown_events(2)))

    assert db.rows("SELECT t_ns, event_id, version, pid, tid, why, payload FROM raw_event") == [
        (500_000, 1999, 4, 7, 8, "unknown", b"\1\2\3"),
        (501_000, 1999, 4, 7, 8, "unknown", b"\1\2\3"),
    ]
    ((count, first_ns, last_ns, text),) = db.rows("SELECT count, first_ns, last_ns, text FROM v_problems WHERE kind = 'unknown_events'")
    assert (count, first_ns, last_ns) == (2, 500_000, 501_000)
    assert "id 1999 version 4: 2" in text


def test_a_damaged_event_is_kept_and_is_damage(import_trace: ImportTrace) -> None:
    db = import_trace(a_send().cpu(0, replace(afd.send(at_us=500), cut=9)))

    assert db.rows("SELECT event_id, why, length(payload) FROM raw_event") == [(1003, "damaged", 44 - 9)]
    assert db.report.is_limited


def test_kept_records_have_a_cap_that_is_said(import_trace: ImportTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "KeptRecords", functools.partial(KeptRecords, cap=3))
    db = import_trace(a_send().cpu(0, unknown_events(5)))

    assert db.one("SELECT count(*) FROM raw_event") == 3
    assert db.rows("SELECT count FROM v_problems WHERE kind IN ('unknown_events', 'unknown_events_capped') ORDER BY count") == [(2,), (5,)]


@pytest.mark.parametrize(("end_s", "end_ns"), [(0, 340_000), (2, 2_000_000_000), (3600 * 24 * 30, 340_000)])
def test_the_header_may_end_the_trace_later_but_not_absurdly_so(import_trace: ImportTrace, end_s: int, end_ns: int) -> None:
    trace = a_send()
    db = import_trace(trace.with_session(end_ticks=trace.clock.start_ticks + end_s * trace.clock.ticks_per_second))
    assert db.one("SELECT end_ns FROM v_trace") == end_ns


def test_heap_and_processes_come_along(import_trace: ImportTrace) -> None:
    trace = Trace().cpu(
        0,
        system.process_start(at_us=1, image="ledger.exe"),
        heap.create(at_us=2),
        heap.alloc(at_us=10, size=100),
        heap.free(at_us=20),
        heap.alloc(at_us=30, size=40),
    )
    db = import_trace(trace)

    assert db.rows("SELECT t_ns, bytes, count FROM v_heap_timeline ORDER BY t_ns") == [(10_000, 100, 1), (20_000, 0, 0), (30_000, 40, 1)]
    assert db.rows("SELECT bytes_max, bytes_end, allocs, frees FROM heap_rollup WHERE scope = 'process' AND level = 36") == [
        (100, 40, 2, 1)
    ]
    assert db.one("SELECT image FROM v_processes") == "ledger.exe"


def test_two_processors_flushed_out_of_order_give_one_story(import_trace: ImportTrace) -> None:
    trace = (
        Trace().cpu(0, afd.opened(at_us=10), afd.send(at_us=100, buffer=0x1000)).cpu(1, afd.send(at_us=200, enter_exit=EXIT, buffer=0x1000))
    )
    db = import_trace(trace)
    assert db.rows("SELECT posted_ns, completed_ns FROM v_operations") == [(100_000, 200_000)]


# -------------------------------------------------------------------------------------------------------- reference traces


def _names(pattern: str) -> list[str]:
    return sorted(str(path.relative_to(SHARED).with_suffix("")) for path in SHARED.glob(pattern))


@pytest.mark.shared
@pytest.mark.parametrize("name", _names("worked/*.etl") + _names("*.etl"))
def test_a_reference_trace_equals_its_expectation(shared_dir: Path, import_trace: ImportTrace, name: str) -> None:
    path = shared_dir / "traces" / f"{name}.etl"
    db = import_trace(path)
    compared = subprocess.run(
        [sys.executable, shared_dir / "tools" / "compare.py", db.path, path.with_suffix(".expected.json")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert compared.returncode == 0, compared.stdout
    socket_records = "SELECT coalesce(sum(count), 0) FROM v_event_counts WHERE provider = ?"
    assert db.one("SELECT count(*) FROM v_socket_events") == db.one(socket_records, str(AFD))  # each once, none lost


@pytest.mark.shared
@pytest.mark.parametrize("name", _names("real/*.etl"))
def test_a_real_file_is_collected(shared_dir: Path, import_trace: ImportTrace, name: str) -> None:
    db = import_trace(shared_dir / "traces" / f"{name}.etl")
    assert db.one("SELECT records FROM v_trace") == db.one("SELECT sum(count) FROM v_event_counts")
    assert "damaged_events" not in {p.kind for p in db.report.problems}
    for (view,) in db.rows("SELECT name FROM sqlite_master WHERE type = 'view'"):
        db.rows(f"SELECT * FROM {view} LIMIT 100")
