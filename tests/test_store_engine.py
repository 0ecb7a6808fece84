"""Trace folders: reading is safe, bounded in time, and says plainly what is wrong."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from collector.errors import StoreError, StoreLocked, StoreSlow, StoreTooNew, StoreTooOld, StoreWaited
from collector.store.catalog import Catalog
from collector.store.engine import ENVIRONMENT_VARIABLE, TraceFolder, default_root
from tests.build.database import BUILT_KEY, built_database


def stamp(path: Path, version: str) -> None:
    with sqlite3.connect(path) as db:
        db.execute("UPDATE alembic_version SET version_num = ?", (version,))
    db.close()


def names(folder: TraceFolder, key: str = BUILT_KEY) -> list[str]:
    with folder.trace(key).connect() as connection:
        return [str(row[0]) for row in connection.exec_driver_sql("SELECT name FROM v_trace")]


def test_a_trace_is_one_file_that_can_be_read(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {}, name="loopback.etl")

    assert names(folder) == ["loopback.etl"]
    assert folder.trace_keys() == [BUILT_KEY]
    assert sorted(p.name for p in tmp_path.rglob("*")) == [f"{BUILT_KEY}.db", "catalog.db", "traces"]


def test_readers_cannot_write(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {})
    for engine in (folder.trace(BUILT_KEY), folder.catalog()):
        with engine.connect() as connection, pytest.raises(StoreError, match="may not be written"):
            connection.exec_driver_sql("CREATE TABLE x (y)")


def test_a_long_question_is_stopped(tmp_path: Path) -> None:
    built_database(tmp_path, {})
    folder = TraceFolder(tmp_path, limit_seconds=0.05)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with folder.trace(BUILT_KEY).connect() as connection:
        with pytest.raises(StoreSlow, match="Narrow the time range"):
            connection.exec_driver_sql(endless)
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1  # the next question has its own time


def test_a_question_that_mostly_waits_is_said_to_be_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built_database(tmp_path, {})
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)  # as if others had the processors all the time
    with TraceFolder(tmp_path, limit_seconds=1.0).trace(BUILT_KEY).connect() as connection:
        with pytest.raises(StoreWaited, match="given up after 1 s, most of which it waited") as error:
            connection.exec_driver_sql(endless)
        assert isinstance(error.value, StoreSlow)


def test_a_replaced_trace_is_read_anew(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {}, name="first.etl")
    assert names(folder) == ["first.etl"]
    built_database(tmp_path, {}, name="second.etl")
    assert names(folder) == ["second.etl"]


def test_an_open_reader_does_not_hinder_the_replacement(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {"process": [{"pid": n} for n in range(500)]})
    with folder.trace(BUILT_KEY).connect() as connection:
        rows = connection.exec_driver_sql("SELECT pid FROM v_processes")
        assert rows.fetchone() is not None
        built_database(tmp_path, {}, name="second.etl")
        assert len(rows.fetchall()) == 499  # the old file, to its end
    assert names(folder) == ["second.etl"]


@pytest.mark.parametrize("open_it", [lambda f: f.trace(BUILT_KEY), lambda f: f.catalog()])
def test_a_newer_database_is_refused(tmp_path: Path, open_it: Callable[[TraceFolder], object]) -> None:
    folder = built_database(tmp_path, {})
    stamp(folder.trace_path(BUILT_KEY), "t9000")
    stamp(folder.catalog_path, "c9000")
    with pytest.raises(StoreTooNew, match=r"newer version .*9000.* Update sockscope"):
        open_it(TraceFolder(tmp_path))


@pytest.mark.parametrize("open_it", [lambda f: f.trace(BUILT_KEY), lambda f: f.catalog()])
def test_an_older_database_names_the_verb_that_helps(tmp_path: Path, open_it: Callable[[TraceFolder], object]) -> None:
    folder = built_database(tmp_path, {})
    stamp(folder.trace_path(BUILT_KEY), "t0000")
    stamp(folder.catalog_path, "c0000")
    with pytest.raises(StoreTooOld, match="sockscope migrate"):
        open_it(TraceFolder(tmp_path))


def test_what_is_not_a_database_is_said_plainly(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {})
    folder.trace_path(BUILT_KEY).write_bytes(b"this is text, not a database " * 100)
    with pytest.raises(StoreError, match="not a database of sockscope"):
        TraceFolder(tmp_path).trace(BUILT_KEY)


def test_a_foreign_database_is_refused(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {})
    folder.trace_path(BUILT_KEY).unlink()
    with sqlite3.connect(folder.trace_path(BUILT_KEY)) as db:
        db.execute("CREATE TABLE places (url TEXT)")
    db.close()
    with pytest.raises(StoreError, match="not a database of sockscope"):
        folder.trace(BUILT_KEY)


def test_a_missing_trace_and_a_missing_folder_name_the_way_out(tmp_path: Path) -> None:
    folder = TraceFolder(tmp_path / "nothing")
    with pytest.raises(StoreError, match="sockscope collect"):
        folder.trace(BUILT_KEY)
    with pytest.raises(StoreError, match="sockscope collect"):
        folder.catalog()
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("key", ["", "..", "../catalog", "a/b", "a\\b", "C:x", "k\x00", "ü"])
def test_no_key_leaves_the_folder(tmp_path: Path, key: str) -> None:
    with pytest.raises(StoreError, match="not the key of a trace"):
        TraceFolder(tmp_path).trace_path(key)


def test_the_address_of_a_server_is_no_folder() -> None:
    with pytest.raises(StoreError, match="address of a server"):
        TraceFolder("postgresql://db/traces")


def test_a_file_in_the_way_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(StoreError, match="taken"):
        TraceFolder(tmp_path / "taken").make()


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path))
    assert default_root() == tmp_path
    monkeypatch.delenv(ENVIRONMENT_VARIABLE)
    assert default_root().name == "sockscope"


def test_names_with_odd_characters_are_paths_like_others(tmp_path: Path) -> None:
    folder = built_database(tmp_path / "a b#c?d%20é", {})
    assert names(folder) == ["built.etl"]


def test_a_locked_catalog_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.store.dialects.BUSY_SECONDS", 0.05)
    folder = built_database(tmp_path, {})
    other = sqlite3.connect(folder.catalog_path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreLocked, match="another program holds this database"):
        Catalog(TraceFolder(tmp_path)).entries()
    other.execute("ROLLBACK")
    other.close()
    assert [e.key for e in Catalog(folder).entries()] == [BUILT_KEY]
