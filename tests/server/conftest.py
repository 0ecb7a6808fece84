"""Fixtures of the tests that need a PostgreSQL server; without one they are skipped."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest

from collector.store.server import TraceServer
from tests.build.imported import Imported
from tests.build.small_trace import small_folder
from tests.server.cluster import Cluster, programs
from tests.server.moving import move

_numbers = count(1)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A running server."""
    pytest.importorskip("psycopg")
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    with closing(Cluster(found)) as cluster:
        yield cluster


@pytest.fixture
def database_name(cluster: Cluster) -> str:
    """The name of an empty database."""
    name = f"test{next(_numbers)}"
    cluster.sql(f"CREATE DATABASE {name}")
    return name


@pytest.fixture
def server_url(cluster: Cluster, database_name: str) -> str:
    """The address of an empty database."""
    return cluster.url(database_name)


@pytest.fixture(scope="session")
def sample_file(sample: Imported) -> Path:
    """The sample trace."""
    return sample.folder.root.parent / "sample.etl"


@pytest.fixture
def filled(server_url: str, tmp_path: Path) -> Iterator[TraceServer]:
    """A server with one small trace."""
    with closing(TraceServer(server_url, building=tmp_path / "building")) as server:
        move(small_folder(tmp_path / "small"), server)
        yield server


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends dashboards."""
    with ExitStack() as ends:
        yield ends
