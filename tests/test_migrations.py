"""The history in migrations/ leads to the tables that the code declares."""

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, create_engine

from app.cli import main
from collector.errors import StoreError, StoreTooNew
from collector.store import dialects
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder, stored_version
from collector.store.migrate import history, migrations_path, upgrade, upgrade_trace
from collector.store.tables import CATALOG, CATALOG_VERSION, TRACE, TRACE_VERSION
from tests.build import Trace
from tests.build.database import BUILT_KEY, built_database
from tests.build.imported import ImportTrace
from tests.build.small_trace import KEY, SMALL
from tests.test_app_heap_random import anything

BRANCHES = [("catalog", CATALOG, CATALOG_VERSION), ("traces", TRACE, TRACE_VERSION)]


def declared(path: Path) -> dict[tuple[str, str], str]:
    """(type, name) → SQL without differences of spelling, of everything in a database."""
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' AND type != 'view'").fetchall()
    db.close()
    return {(kind, name): "".join((sql or "").split()).replace('"', "") for kind, name, sql in rows if name != "alembic_version"}


@pytest.mark.parametrize(("branch", "metadata", "version"), BRANCHES)
def test_a_migrated_database_equals_the_tables(tmp_path: Path, branch: str, metadata: MetaData, version: str) -> None:
    migrated, created = tmp_path / "migrated.db", tmp_path / "created.db"
    engine = dialects.writing_engine(migrated)
    upgrade(engine, f"{branch}@head")
    metadata.create_all(create_engine(f"sqlite:///{created}"))

    assert stored_version(engine, migrated) == version
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []
    assert declared(migrated) == declared(created)


def test_a_new_database_equals_a_migrated_one(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {})
    for path, branch in ((folder.catalog_path, "catalog"), (folder.trace_path(BUILT_KEY), "traces")):
        migrated = tmp_path / f"{branch}.migrated"
        upgrade(dialects.writing_engine(migrated), f"{branch}@head")
        assert declared(path) == declared(migrated)


def test_each_branch_is_one_line_and_ends_at_our_version() -> None:
    script = ScriptDirectory.from_config(history())
    for branch, _, version in BRANCHES:
        steps = list(script.iterate_revisions(f"{branch}@head", "base"))
        assert steps[0].revision == version
        assert [s.revision for s in steps] == sorted((s.revision for s in steps), reverse=True)  # versions compare as text
        assert all(s.revision.startswith(branch[0]) for s in steps)


def test_an_up_to_date_trace_is_left_alone(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {})
    before = folder.trace_path(BUILT_KEY).stat().st_mtime_ns
    assert upgrade_trace(folder, BUILT_KEY) is False
    assert folder.trace_path(BUILT_KEY).stat().st_mtime_ns == before


def test_a_newer_trace_or_catalog_is_not_touched(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {})
    for path in (folder.trace_path(BUILT_KEY), folder.catalog_path):
        with sqlite3.connect(path) as db:
            db.execute("UPDATE alembic_version SET version_num = 'z9999'")
        db.close()
    with pytest.raises(StoreTooNew):
        upgrade_trace(folder, BUILT_KEY)
    with pytest.raises(StoreTooNew):
        Catalog(TraceFolder(tmp_path))


_BEFORE_T0002 = """
    DROP TABLE heap_class; DROP TABLE heap_stack; DROP INDEX ix_socket_older; DROP INDEX ix_allocation_address;
    CREATE INDEX ix_allocation_address ON allocation (trace_id, process_n, address, first_ns);
    UPDATE alembic_version SET version_num = 't0001';
"""
_BEFORE_C0003 = """
    DROP TABLE catalog_program; DROP TABLE catalog_status; DROP TABLE catalog_abort;
    DROP INDEX ix_catalog_finding_kind; DROP INDEX ix_trace_entry_collected_utc; DROP INDEX ix_trace_entry_start_utc;
    ALTER TABLE trace_entry DROP COLUMN machine; ALTER TABLE trace_entry DROP COLUMN problems; ALTER TABLE trace_entry DROP COLUMN losses;
    ALTER TABLE trace_entry DROP COLUMN findings; ALTER TABLE trace_entry DROP COLUMN high_findings;
    ALTER TABLE trace_entry DROP COLUMN names_left_out; ALTER TABLE trace_entry DROP COLUMN statuses_left_out;
    ALTER TABLE trace_entry DROP COLUMN reasons_left_out;
    UPDATE alembic_version SET version_num = 'c0002';
"""
_SUMS = (
    "SELECT * FROM heap_class ORDER BY heap_n, what, place",
    "SELECT heap_n, stack_n, blocks, bytes, held, held_bytes, freed, first_ns, last_ns, is_suspect FROM heap_stack ORDER BY 1, 2",
)


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_heaps_are_made_for_traces_that_have_none(import_trace: ImportTrace, seed: int) -> None:
    made = import_trace(Trace().cpu(0, *anything(Random(seed))).lose_events(3))
    wanted = [made.rows(query) for query in _SUMS]
    with closing(sqlite3.connect(made.path)) as db:
        db.executescript(_BEFORE_T0002)

    assert upgrade_trace(made.folder, made.report.key) is True
    assert [made.rows(query) for query in _SUMS] == wanted
    assert {row[2] for row in wanted[0]} == {"size", "lifetime", "ended", "adopted"}
    assert any(row[-1] for row in wanted[1])


def test_a_trace_from_before_other_providers_were_read_gets_their_tables_empty(import_trace: ImportTrace) -> None:
    made = import_trace(Trace().cpu(0, *anything(Random(1))))
    tables = ("transport_flow", "transport_event", "address_name", "catalog_change", "virtual_memory")
    wanted = made.rows("SELECT name, sql FROM sqlite_master WHERE type IN ('index', 'view') ORDER BY name")
    with closing(sqlite3.connect(made.path)) as db:
        for (view,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
            db.execute(f"DROP VIEW {view}")
        for table in tables:
            db.execute(f"DROP TABLE {table}")
        db.execute("UPDATE alembic_version SET version_num = 't0002'")
        db.commit()

    assert upgrade_trace(made.folder, made.report.key) is True
    assert [made.one(f"SELECT count(*) FROM {table}") for table in tables] == [0, 0, 0, 0, 0]
    assert [name for name, _ in made.rows("SELECT name, sql FROM sqlite_master WHERE type IN ('index', 'view') ORDER BY name")] == [
        name for name, _ in wanted
    ]


def test_a_first_version_that_had_the_later_columns_already_is_taken(import_trace: ImportTrace) -> None:
    """As databases are that were made before these columns had a version of their own."""
    made = import_trace(Trace().cpu(0, *anything(Random(1))))
    wanted = [made.rows(query) for query in _SUMS]
    for path, first, since in ((made.path, "t0001", ""), (made.folder.catalog_path, "c0001", _BEFORE_C0003)):
        with closing(sqlite3.connect(path)) as db:
            db.executescript(since)
            db.execute("UPDATE alembic_version SET version_num = ?", [first])
            db.commit()

    folder = TraceFolder(made.folder.root)
    assert [entry.key for entry in Catalog(folder).entries()] == [made.report.key]
    assert stored_version(folder.catalog(), folder.catalog_path) == CATALOG_VERSION
    assert upgrade_trace(folder, made.report.key) is True
    assert stored_version(dialects.reading_engine(made.path, limit_seconds=60), made.path) == TRACE_VERSION
    assert [made.rows(query) for query in _SUMS] == wanted


def test_a_catalog_that_no_step_fits_is_an_error_in_words(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {})
    with closing(sqlite3.connect(folder.catalog_path)) as db:
        db.executescript("DROP TABLE trace_entry; UPDATE alembic_version SET version_num = 'c0001'")
    with pytest.raises(StoreError, match=r"catalog\.db: this database cannot be brought up to date"):
        Catalog(TraceFolder(tmp_path))
    with closing(sqlite3.connect(folder.catalog_path)) as db:
        assert db.execute("SELECT version_num FROM alembic_version").fetchall() == [("c0001",)]


def test_an_older_database_is_brought_up_to_date_with_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history with one more step, as a later version of this program has it."""
    folder = built_database(tmp_path, {"process": [{"pid": 4120}]})
    later = tmp_path / "migrations"
    for path in migrations_path().rglob("*.py"):
        (later / path.parent.relative_to(migrations_path())).mkdir(parents=True, exist_ok=True)
        (later / path.relative_to(migrations_path())).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    for branch, table, old, new in (("traces", "process", TRACE_VERSION, "t9998"), ("catalog", "note", CATALOG_VERSION, "c9998")):
        (later / branch / f"{new}_more.py").write_text(
            f"import sqlalchemy as sa\nfrom alembic import op\n\nrevision = {new!r}\ndown_revision = {old!r}\n\n\n"
            f"def upgrade() -> None:\n    op.add_column({table!r}, sa.Column('mood', sa.Text()))\n",
            encoding="utf-8",
        )
    monkeypatch.setattr("collector.store.migrate.migrations_path", lambda: later)
    for name in ("migrate", "engine", "catalog"):
        monkeypatch.setattr(f"collector.store.{name}.CATALOG_VERSION", "c9998")
        monkeypatch.setattr(f"collector.store.{name}.TRACE_VERSION", "t9998", raising=False)

    assert upgrade_trace(folder, BUILT_KEY) is True
    Catalog(TraceFolder(tmp_path))
    with TraceFolder(tmp_path).trace(BUILT_KEY).connect() as connection:
        assert connection.exec_driver_sql("SELECT pid, mood FROM process").all() == [(4120, None)]
        assert connection.exec_driver_sql("SELECT pid FROM v_processes").all() == [(4120,)]
    with TraceFolder(tmp_path).catalog().connect() as connection:
        assert connection.exec_driver_sql("SELECT mood FROM note").all() == []
        assert connection.exec_driver_sql("SELECT * FROM v_notes").all() == []
    assert not folder.part_path(BUILT_KEY).exists()


def test_a_catalog_learns_what_the_traces_contain_that_were_collected_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = built_database(tmp_path, SMALL, key=KEY)
    tables = ("trace_entry", "catalog_program", "catalog_status", "catalog_abort")
    with closing(sqlite3.connect(folder.catalog_path)) as db:
        wanted = {table: db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables}
        db.executescript(_BEFORE_C0003)
    assert all(wanted.values())

    catalog = Catalog(TraceFolder(tmp_path))
    (entry,) = catalog.entries()
    counted = (entry.problems, entry.losses, entry.findings, entry.high_findings)
    assert counted == (len(SMALL["problem"]), 1, len(SMALL["finding"]), sum(one["severity"] == "high" for one in SMALL["finding"]))
    assert entry.names_left_out is None, "nobody has looked yet"

    for said in (" What 1 of them contains was entered.", ""):
        assert main(["migrate", "--database", str(tmp_path)]) == 0
        assert capsys.readouterr().out == f"0 of 1 trace brought up to date; the catalog is current.{said}\n"
    with closing(sqlite3.connect(folder.catalog_path)) as db:
        assert {table: db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables} == wanted
