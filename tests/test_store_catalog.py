"""The catalog: states of traces, also of those whose collector died."""

import multiprocessing
import os
import shutil
from pathlib import Path

import pytest

from collector.errors import StoreError, StoreLocked
from collector.store import locks
from collector.store.catalog import Catalog
from collector.store.copies import FindingCopy, ProblemCopy
from collector.store.engine import TraceFolder
from tests.build.database import BUILT_KEY, built_database

KEY = "feedfacecafe"


def begin(catalog: Catalog, key: str = KEY) -> None:
    catalog.begin(key, name="loopback.etl", path="/traces/loopback.etl", size_bytes=4096, version="0.1.0")


def state(catalog: Catalog, key: str = KEY) -> tuple[str, str | None]:
    entry = catalog.find(key)
    return entry.state, entry.message


def test_a_trace_is_collecting_then_complete(tmp_path: Path) -> None:
    catalog = Catalog(TraceFolder(tmp_path))
    begin(catalog)
    catalog.progress(KEY, bytes_done=1024, bytes_total=4096, counts={"records": 10})
    entry = catalog.find(KEY)
    assert (entry.state, entry.bytes_done, entry.bytes_total, entry.records) == ("collecting", 1024, 4096, 10)
    assert entry.collector_pid == os.getpid()

    problem = ProblemCopy("lost_events", "data_loss", 3, 5, 9, None, "The session lost 3 events.", "e", "a")
    catalog.complete(KEY, {"records": 12, "sockets": 2}, [problem], [FindingCopy("abort", "high", 1, "A reset", "aborts")])
    entry = catalog.find(KEY)
    assert (entry.state, entry.records, entry.sockets, entry.collector_pid) == ("complete", 12, 2, None)
    with catalog.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT kind, count FROM catalog_problem").all() == [("lost_events", 3)]
        assert connection.exec_driver_sql("SELECT title, link FROM catalog_finding").all() == [("A reset", "aborts")]


def _collect_and_die(root: str, key: str) -> None:
    folder = TraceFolder(root)
    catalog = Catalog(folder)
    with locks.held(folder.lock_path(key), "busy"):
        begin(catalog, key)
        os._exit(9)  # as if killed: nothing is cleaned up


def _die(root: Path, key: str) -> None:
    child = multiprocessing.get_context("spawn").Process(target=_collect_and_die, args=(str(root), key))
    child.start()
    child.join(30)
    assert child.exitcode == 9


def test_a_dead_collector_leaves_an_interrupted_trace(tmp_path: Path) -> None:
    _die(tmp_path, KEY)
    catalog = Catalog(TraceFolder(tmp_path))
    assert state(catalog) == ("collecting", None)
    catalog.folder.part_path(KEY).write_bytes(b"half")

    assert catalog.settle() == 1
    assert state(catalog) == ("interrupted", "The collector ended before it was done. Collect the file again.")
    assert not catalog.folder.part_path(KEY).exists()
    assert catalog.settle() == 0


def test_a_dead_collector_leaves_the_older_trace_complete(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {})
    _die(tmp_path, BUILT_KEY)
    catalog = Catalog(folder)
    assert state(catalog, BUILT_KEY)[0] == "collecting"
    assert catalog.settle() == 1
    assert state(catalog, BUILT_KEY) == ("complete", None)
    assert folder.trace(BUILT_KEY)


def test_a_trace_file_from_a_teammate_is_entered(tmp_path: Path) -> None:
    theirs = built_database(
        tmp_path / "theirs",
        {
            "socket": [{"endpoint": 1}, {"endpoint": 2}],
            "problem": [{"kind": "lost_events", "severity": "data_loss", "count": 3, "text": "t"}],
            "finding": [{"kind": "aborted", "severity": "high", "title": "A reset", "link": "aborts"}],
        },
        name="theirs.etl",
    )
    folder = TraceFolder(tmp_path / "ours")
    catalog = Catalog(folder)
    shutil.copy(theirs.trace_path(BUILT_KEY), folder.trace_path(BUILT_KEY))
    (folder.traces_path / "junk.db").write_bytes(b"no database at all, whatever its name says" * 100)

    catalog.settle()

    (entry,) = [e for e in catalog.entries() if e.state == "complete"]
    assert (entry.key, entry.name, entry.sockets, entry.collected_utc) == (BUILT_KEY, "theirs.etl", 2, "2025-03-05T08:00:00+00:00")
    with catalog.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT kind, count FROM catalog_problem").all() == [("lost_events", 3)]
        assert connection.exec_driver_sql("SELECT title, link FROM catalog_finding").all() == [("A reset", "aborts")]


def test_a_collector_that_died_after_the_rename_leaves_a_complete_trace(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {"socket": [{"endpoint": 1}]}, name="second.etl")
    catalog = Catalog(folder)
    begin(catalog, BUILT_KEY)  # entered by a collector that is gone: nobody holds the lock

    assert catalog.settle() == 1
    entry = catalog.find(BUILT_KEY)
    assert (entry.state, entry.name, entry.sockets, entry.collector_pid) == ("complete", "second.etl", 1, None)


def test_a_living_collector_is_left_alone(tmp_path: Path) -> None:
    folder = TraceFolder(tmp_path)
    catalog = Catalog(folder)
    with locks.held(folder.lock_path(KEY), "busy"):
        begin(catalog)
        assert catalog.settle() == 0
        assert state(catalog)[0] == "collecting"
        with pytest.raises(StoreLocked, match="being collected"):
            catalog.remove(KEY)
        with pytest.raises(StoreLocked, match="busy"), locks.held(folder.lock_path(KEY), "busy"):
            pass
    assert not folder.lock_path(KEY).exists()


def test_a_trace_is_found_by_key_beginning_or_name(tmp_path: Path) -> None:
    catalog = Catalog(TraceFolder(tmp_path))
    begin(catalog)
    for word in (KEY, KEY[:4], "loopback.etl"):
        assert catalog.find(word).key == KEY
    with pytest.raises(StoreError, match="at least 4 characters"):
        catalog.find(KEY[:3])
    begin(catalog, "feed00000000")
    with pytest.raises(StoreError, match=r"several traces match .*feedface"):
        catalog.find("loopback.etl")


def test_removing_a_trace_keeps_its_notes(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {"problem": [{"kind": "k", "severity": "note", "count": 1, "text": "t"}]})
    catalog = Catalog(folder)
    with catalog.engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO note (key, object, text, created_utc) VALUES (?, 'overview', 'mine', '2025')", (BUILT_KEY,))
    catalog.remove(BUILT_KEY)

    assert catalog.entries() == []
    assert not folder.has_trace(BUILT_KEY)
    with catalog.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM catalog_problem").scalar_one() == 0
        assert connection.exec_driver_sql("SELECT object, text FROM v_notes").all() == [("overview", "mine")]
