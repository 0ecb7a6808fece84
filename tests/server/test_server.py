"""A server in the place of a folder: collecting, replacing, exporting and deleting traces."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from collector.pipeline import import_trace
from collector.source import Source
from collector.store.catalog import Catalog
from collector.store.server import TraceServer
from collector.store.tables import TRACE
from tests.build.imported import Imported
from tests.server.cluster import Cluster


def _never() -> bool:
    return False


@pytest.fixture
def server(server_url: str, tmp_path: Path) -> Iterator[TraceServer]:
    """A server whose traces are built in a folder of the test's own."""
    with closing(TraceServer(server_url, building=tmp_path / "building")) as server:
        yield server


def _collect(server: TraceServer, file: Path) -> str:
    with Source.open(file) as source:
        return import_trace(source, server).key


def _partitions(cluster: Cluster, database: str) -> int:
    return int(cluster.sql("SELECT count(*) FROM pg_class WHERE relispartition AND relkind = 'r'", database)[0][0])


def _comes_to(server: TraceServer, cluster: Cluster, database: str, partitions: int) -> None:
    """A sweep leaves what takes too long, on a busy machine, to the next one."""
    for _ in range(20):
        if _partitions(cluster, database) == partitions:
            return
        Catalog(server).settle()
    raise AssertionError(f"there are {_partitions(cluster, database)} partitions, not {partitions}")


def test_a_collected_trace_is_the_same_as_in_a_folder(server: TraceServer, sample: Imported, sample_file: Path) -> None:
    key = _collect(server, sample_file)

    theirs, ours = Catalog(sample.folder).find(key), Catalog(server).find(key)
    assert ours.state == "complete"
    unlike = {name for name in theirs.__slots__ if getattr(theirs, name) != getattr(ours, name)}
    assert unlike <= {"collected_utc", "finished_utc"}
    with server.fetched(key, _never) as fetched, closing(sqlite3.connect(fetched)) as got, closing(sqlite3.connect(sample.path)) as wanted:
        for table in TRACE.sorted_tables:
            names = ", ".join(f'"{c.name}"' for c in table.columns if (table.name, c.name) != ("trace", "collected_utc"))
            question = f'SELECT {names} FROM "{table.name}" ORDER BY {", ".join(c.name for c in table.primary_key.columns)}'
            assert got.execute(question).fetchall() == wanted.execute(question).fetchall(), table.name
        schema = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1, 2"
        assert got.execute(schema).fetchall() == wanted.execute(schema).fetchall()
    assert not fetched.exists()


def test_a_trace_that_is_collected_again_replaces_the_old_one(
    server: TraceServer, sample_file: Path, cluster: Cluster, database_name: str
) -> None:
    key = _collect(server, sample_file)
    first, parts = server.number_of(key), _partitions(cluster, database_name)

    assert _collect(server, sample_file) == key

    assert server.number_of(key) not in (None, first)
    _comes_to(server, cluster, database_name, parts)


def test_a_deleted_trace_leaves_nothing(server: TraceServer, sample_file: Path, cluster: Cluster, database_name: str) -> None:
    key = _collect(server, sample_file)
    catalog = Catalog(server)

    catalog.remove(key)

    assert (catalog.entries(), server.trace_keys(), server.size_of(key)) == ([], [], 0)
    _comes_to(server, cluster, database_name, 0)


def test_statements_of_pages_are_not_compiled(server: TraceServer) -> None:
    server.make()

    with server.catalog().connect() as connection:
        assert connection.exec_driver_sql("SHOW jit").scalar_one() == "off"
