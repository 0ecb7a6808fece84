"""What `pytest --server` puts in the place of a folder has what the folder has."""

from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest
from sqlalchemy import select

from collector.errors import StoreReadOnly
from collector.store.catalog import Catalog
from collector.store.tables import TRACE
from tests.build.database import built_database
from tests.build.small_trace import KEY, SMALL, small_folder
from tests.server.cluster import Cluster
from tests.server.left_out import LEFT_OUT, is_left_out
from tests.server.stand_in import Databases

OTHER = "aaaa00000001"


def test_what_a_folder_gets_is_on_the_server_before_the_next_question(cluster: Cluster, tmp_path: Path) -> None:
    databases = Databases(cluster)
    with closing(databases.open(tmp_path)) as owners, closing(databases.open(tmp_path, 8.0)) as dashboards:
        assert not dashboards.has_catalog()
        folder = small_folder(tmp_path)
        with dashboards.trace(KEY).connect() as db:
            assert db.execute(select(TRACE.tables["process"].c.n)).scalars().all() == [1, 2, 3, 4]

        Catalog(owners).find(KEY)
        built_database(tmp_path, SMALL, key=OTHER)
        folder.trace_path(KEY).unlink()

        assert (dashboards.trace_keys(), dashboards.missing([KEY, OTHER])) == ([OTHER], [KEY])
        assert {entry.key for entry in Catalog(dashboards, is_written=False).entries()} == {KEY, OTHER}
        with pytest.raises(StoreReadOnly):
            dashboards.remove_trace(OTHER)
    databases.drop()
    assert cluster.sql("SELECT count(*) FROM pg_database WHERE datname ~ '^folder[0-9]+$'") == [["0"]]


def test_whatever_is_left_out_is_there(project_root: Path) -> None:
    for pattern in chain(*LEFT_OUT.values()):
        assert any((project_root / "tests").glob(pattern)), pattern
    assert is_left_out(project_root / "tests" / "test_store_engine.py")
    assert not is_left_out(project_root / "tests" / "test_app_pages.py")
