"""The tables of a server are made and brought up to date by one process at a time."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect
from sqlalchemy.pool import NullPool

from collector.cli import main
from collector.errors import StoreTooNew, StoreTooOld
from collector.store import migrate, server_migrating
from collector.store import server as server_module
from collector.store.server import TraceServer
from collector.store.server_tables import SCHEMA, SERVER_CATALOG, SERVER_TRACE
from tests.server.cluster import Cluster

_STEP = '''"""A step that no version has."""

import sqlalchemy as sa
from alembic import op

revision = "t9000"
down_revision = "t0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("operation", sa.Column("mood", sa.BigInteger()))
'''


@pytest.fixture
def server(server_url: str, tmp_path: Path) -> Iterator[TraceServer]:
    """A server with our tables."""
    with closing(TraceServer(server_url, building=tmp_path / "building")) as server:
        server.make()
        yield server


@pytest.fixture
def newer_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on the program knows one step more."""
    history = tmp_path / "migrations"
    shutil.copytree(migrate.migrations_path(), history)
    (history / "traces" / "t9000_mood.py").write_text(_STEP)
    monkeypatch.setattr(migrate, "migrations_path", lambda: history)
    monkeypatch.setattr(server_module, "TRACE_VERSION", "t9000")
    monkeypatch.setattr(server_migrating, "TRACE_VERSION", "t9000")


def test_what_is_made_is_what_is_declared(server: TraceServer) -> None:
    engine = create_engine(server.url, poolclass=NullPool)
    with engine.connect() as connection:
        found = inspect(connection)
        for metadata in (SERVER_CATALOG, SERVER_TRACE):
            for table in metadata.sorted_tables:
                columns = {column["name"]: (str(column["type"]), column["nullable"]) for column in found.get_columns(table.name, SCHEMA)}
                dialect = connection.dialect
                wanted = {c.name: (c.type.compile(dialect), c.nullable) for c in table.columns}
                assert columns == wanted, table.name
                indexes = {index["name"] for index in found.get_indexes(table.name, SCHEMA)}
                assert indexes == {index.name for index in table.indexes}, table.name


def test_a_step_is_run_once(
    server: TraceServer, server_url: str, newer_program: None, capsys: pytest.CaptureFixture[str], cluster: Cluster, database_name: str
) -> None:
    with pytest.raises(StoreTooOld, match="sockscope migrate"):
        server.catalog()

    assert main(["migrate", "--database", server_url]) == 0
    assert "brought up to date" in capsys.readouterr().out
    assert main(["migrate", "--database", server_url]) == 0
    assert "current" in capsys.readouterr().out

    versions = cluster.sql("SELECT version_num FROM sockscope.alembic_version ORDER BY 1", database_name)
    assert versions == [["c0003"], ["t9000"]]
    assert cluster.sql("SELECT count(mood) FROM sockscope.operation", database_name) == [["0"]]
    server.catalog()


def test_several_processes_migrate_at_once(server: TraceServer, server_url: str, newer_program: None, tmp_path: Path) -> None:
    others = [TraceServer(server_url, building=tmp_path / "building") for _ in range(4)]
    changed: list[bool] = []
    threads = [threading.Thread(target=lambda one=other: changed.append(one.migrate())) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(changed) == [False, False, False, True]


def test_several_processes_make_the_tables_at_once(server_url: str, tmp_path: Path) -> None:
    others = [TraceServer(server_url, building=tmp_path / "building") for _ in range(4)]
    failed: list[BaseException] = []

    def make(one: TraceServer) -> None:
        try:
            one.make()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=make, args=(other,)) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    assert others[0].has_catalog()


def test_tables_of_a_newer_program_are_left_alone(server: TraceServer, cluster: Cluster, database_name: str) -> None:
    cluster.sql("UPDATE sockscope.alembic_version SET version_num = 't9999' WHERE version_num LIKE 't%'", database_name)

    with pytest.raises(StoreTooNew, match="Update sockscope"):
        server.migrate()
