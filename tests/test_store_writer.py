"""Building a trace beside the old one: nothing is seen until it is complete, and failures leave no trace."""

import sqlite3
from pathlib import Path

import pytest

from collector.errors import StoreError, StoreFull
from collector.store.engine import TraceFolder
from collector.store.tables import ROW_COLUMNS, TRACE
from collector.store.views import TRACE_VIEWS
from collector.store.writer import TraceWriter
from tests.build.database import BUILT_KEY, TRACE_ROW, built_database, rows_from


def processes(count: int) -> dict[str, list[tuple[object, ...]]]:
    return {"process": rows_from("process", [{"pid": n, "image": "a" * 100} for n in range(count)])}


def counted(folder: TraceFolder) -> int:
    with folder.trace(BUILT_KEY).connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM process").scalar_one())


def test_an_unfinished_trace_is_not_seen(tmp_path: Path) -> None:
    folder = built_database(tmp_path, processes_as_dicts(2))
    with TraceWriter(folder, BUILT_KEY) as writer:
        writer.write(processes(5))
        assert writer.counts["process"] == 5
        assert counted(folder) == 2
    assert counted(folder) == 2
    assert not folder.part_path(BUILT_KEY).exists()


def processes_as_dicts(count: int) -> dict[str, list[dict[str, object]]]:
    return {"process": [{"pid": n} for n in range(count)]}


def test_an_error_leaves_the_old_trace(tmp_path: Path) -> None:
    folder = built_database(tmp_path, processes_as_dicts(2))
    with TraceWriter(folder, BUILT_KEY) as writer:
        writer.write(processes(5))
        with pytest.raises(KeyError, match="nonsense"):
            writer.write({"nonsense": [(1,)]})
    assert counted(folder) == 2
    assert not folder.part_path(BUILT_KEY).exists()


def test_a_killed_writer_leaves_the_old_trace_and_does_not_hinder_the_next(tmp_path: Path) -> None:
    folder = built_database(tmp_path, processes_as_dicts(2))
    abandoned = TraceWriter(folder, BUILT_KEY)
    abandoned.write(processes(5))
    abandoned.connection.close()  # the process is gone, the part file is still there
    assert folder.part_path(BUILT_KEY).exists()
    assert counted(folder) == 2

    with TraceWriter(folder, BUILT_KEY) as writer:
        writer.write(processes(7) | {"trace": rows_from("trace", [TRACE_ROW])})
        writer.finish()
    assert counted(folder) == 7
    assert not folder.part_path(BUILT_KEY).exists()


def test_a_full_disk_is_said_and_the_part_removed(tmp_path: Path) -> None:
    folder = built_database(tmp_path, processes_as_dicts(2))
    rows = rows_from("process", [{"n": n, "image": "a" * 100} for n in range(100_000)])
    with TraceWriter(folder, BUILT_KEY, page_limit=120) as writer, pytest.raises(StoreFull, match="no space is left"):
        writer.write({"process": rows})
    assert counted(folder) == 2
    assert not folder.part_path(BUILT_KEY).exists()


def test_a_full_disk_while_indexes_are_made(tmp_path: Path) -> None:
    folder = TraceFolder(tmp_path)
    folder.make()
    writer = TraceWriter(folder, BUILT_KEY)
    writer.write(processes(3000))
    pages = writer.connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    writer.connection.rollback()
    writer.connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 5}")
    with pytest.raises(StoreFull), writer:
        writer.finish()
    assert list(folder.traces_path.iterdir()) == []


def test_a_damaged_part_is_not_put_in_place(tmp_path: Path) -> None:
    folder = built_database(tmp_path, processes_as_dicts(2))
    with TraceWriter(folder, BUILT_KEY) as writer:
        writer.write(processes(2000))
        with writer.part.open("r+b") as handle:  # behind the writer's back, as a failing disk would
            handle.seek(-4096 * 20, 2)
            handle.write(b"\xa5" * 4096 * 10)
        writer.connection.exec_driver_sql("PRAGMA shrink_memory")
        with pytest.raises(StoreError):
            writer.finish()
    assert counted(folder) == 2


def test_rows_come_in_the_columns_order(tmp_path: Path) -> None:
    folder = TraceFolder(tmp_path)
    folder.make()
    with TraceWriter(folder, BUILT_KEY) as writer:
        for table, columns in ROW_COLUMNS.items():
            writer.write({table: [tuple(range(len(columns)))]})
        for table, columns in ROW_COLUMNS.items():
            row = writer.connection.execute(TRACE.tables[table].select()).one()
            values = dict(row._mapping)
            assert values.pop("trace_id") == 1
            stored = [v for v in values.values() if type(v) is int]
            assert stored == [i for i, name in enumerate(columns) if type(values[name]) is int]


def test_the_finished_file_has_indexes_views_and_statistics(tmp_path: Path) -> None:
    folder = built_database(tmp_path, processes_as_dicts(300))
    with sqlite3.connect(folder.trace_path(BUILT_KEY)) as db:
        kinds = dict(db.execute("SELECT type, count(*) FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' GROUP BY type"))
        plan = " ".join(row[3] for row in db.execute("EXPLAIN QUERY PLAN SELECT * FROM process WHERE trace_id = 1 AND pid = 4"))
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    assert kinds["index"] == sum(len(table.indexes) for table in TRACE.sorted_tables)
    assert kinds["view"] == len(TRACE_VIEWS)
    assert "ix_process_pid" in plan
