"""The file of a trace is copied to a server row by row."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from collector.errors import CollectCancelled
from collector.store import postgresql
from collector.store.loading import attach_partitions, load_rows
from collector.store.server_tables import SERVER_TRACE, create_schema, indexes_of, partition_name
from collector.store.tables import TRACE
from tests.build.imported import Imported
from tests.server.cluster import Cluster


def _load(url: str, path: Path, number: int) -> None:
    engine = postgresql.writing_engine(postgresql.server_url(url))
    with engine.begin() as connection:
        attach_partitions(connection, load_rows(connection, path, number, lambda: False), number)


@pytest.fixture
def database(server_url: str) -> str:
    """The address of a database with our tables."""
    with postgresql.writing_engine(postgresql.server_url(server_url)).begin() as connection:
        create_schema(connection)
    return server_url


def test_every_row_of_every_table_arrives(database: str, sample: Imported) -> None:
    _load(database, sample.path, 7)

    engine = postgresql.writing_engine(postgresql.server_url(database))
    filled = 0
    with engine.connect() as there, closing(sqlite3.connect(sample.path)) as here:
        for table in TRACE.sorted_tables:
            names = ", ".join(f'"{c.name}"' for c in table.columns if c.name != "trace_id")
            key = ", ".join(f'"{c.name}"' for c in table.primary_key.columns)
            wanted = here.execute(f'SELECT {names} FROM "{table.name}" ORDER BY {key}').fetchall()
            found = there.execute(text(f'SELECT {names} FROM "{table.name}" WHERE trace_id = 7 ORDER BY {key}')).all()
            assert [tuple(row) for row in found] == wanted, table.name
            filled += bool(wanted)
    assert filled > 40


def test_a_partition_has_the_indexes_of_its_table(database: str, sample: Imported, cluster: Cluster, database_name: str) -> None:
    _load(database, sample.path, 7)

    for table in ("socket", "operation", "allocation"):
        rows = cluster.sql(
            "SELECT c.relname, parent.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            "JOIN pg_inherits h ON h.inhrelid = c.oid "
            f"JOIN pg_class parent ON parent.oid = h.inhparent WHERE i.indrelid = 'sockscope.{partition_name(table, 7)}'::regclass",
            database_name,
        )
        wanted = {(f"{index.name}_7", str(index.name)) for index in indexes_of(SERVER_TRACE.tables[table])}
        assert {(own, parent) for own, parent in rows} == wanted | {(f"pk_{table}_7", f"pk_{table}")}


def test_texts_and_bytes_of_any_kind_arrive(database: str, sample: Imported, tmp_path: Path) -> None:
    texts = ["", "\\N", "\\", "a\tb\nc\rd\\t", "ü€😀", "'\"", "\\.", "x\x01y\x7f"]
    payloads = [None, b"", b"\\", bytes(range(256))]
    copy = tmp_path / "copy.db"
    copy.write_bytes(sample.path.read_bytes())
    with closing(sqlite3.connect(copy)) as file, file:
        file.execute("DELETE FROM raw_event")
        for n, words in enumerate(texts):
            row = (n, 0, words, words, "unknown", payloads[n % len(payloads)])
            file.execute("INSERT INTO raw_event (trace_id, n, t_ns, provider, place, why, payload) VALUES (1, ?, ?, ?, ?, ?, ?)", row)
        last = (-(1 << 63), "a\x00b")
        file.execute("INSERT INTO raw_event (trace_id, n, t_ns, provider, place, why) VALUES (1, 100, ?, ?, '', '')", last)

    _load(database, copy, 1)

    engine = create_engine(postgresql.server_url(database))
    with engine.connect() as connection:
        found = connection.execute(text("SELECT provider, place, payload, t_ns FROM sockscope.raw_event ORDER BY n")).all()
    engine.dispose()
    assert [tuple(row[:3]) for row in found[:-1]] == [(words, words, payloads[n % 4]) for n, words in enumerate(texts)]
    assert (found[-1].provider, found[-1].t_ns) == ("a\ufffdb", -(1 << 63))


def test_a_cancelled_load_leaves_nothing(database: str, sample: Imported, cluster: Cluster, database_name: str) -> None:
    engine = postgresql.writing_engine(postgresql.server_url(database))
    asked = iter([False] * 30)

    with pytest.raises(CollectCancelled), engine.begin() as connection:
        load_rows(connection, sample.path, 3, lambda: next(asked, True))

    assert cluster.sql("SELECT count(*) FROM pg_class WHERE relname LIKE '%\\_3'", database_name) == [["0"]]
