"""A back-up of a server by the server's own programs, and what is brought back from it."""

from contextlib import closing
from pathlib import Path

from sqlalchemy import insert

from collector.pipeline import import_trace
from collector.source import Source
from collector.store.catalog import Catalog
from collector.store.server import TraceServer
from collector.store.tables import note
from tests.build import Trace, afd
from tests.server.cluster import Cluster


def test_what_is_brought_back_is_what_was_there(server_url: str, cluster: Cluster, database_name: str, tmp_path: Path) -> None:
    file = Trace().cpu(0, afd.opened(at_us=10), afd.connected(at_us=50), afd.sent(at_us=100)).write(tmp_path / "small.etl")
    with closing(TraceServer(server_url, building=tmp_path / "building")) as server:
        with Source.open(file) as source:
            key = import_trace(source, server).key
        with server.catalog(write=True).begin() as connection:
            connection.execute(insert(note).values(key=key, object="", text="look here", created_utc="2026-01-01"))
        entries = Catalog(server).entries()
    cluster.sql(f"CREATE DATABASE {database_name}_again")

    saved = cluster.program("pg_dump", "--schema=sockscope", database_name)
    cluster.program("psql", "-q", "-v", "ON_ERROR_STOP=1", f"{database_name}_again", given=saved)

    with closing(TraceServer(cluster.url(f"{database_name}_again"), building=tmp_path / "building")) as again:
        catalog = Catalog(again)
        catalog.settle()
        assert catalog.entries() == entries
        with again.fetched(key, lambda: False) as fetched:
            assert fetched.stat().st_size > 0
        with Source.open(file) as source:
            assert import_trace(source, again).key == key
        with catalog.engine.begin() as connection:
            connection.execute(insert(note).values(key=key, object="", text="and here", created_utc="2026-01-02"))
    assert cluster.sql("SELECT n, text FROM sockscope.note ORDER BY n", f"{database_name}_again") == [["1", "look here"], ["2", "and here"]]
