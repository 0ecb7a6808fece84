"""Fixtures of the tests that need a PostgreSQL server; without one they are skipped."""

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from tests.build.imported import Imported
from tests.server.cluster import Cluster, programs

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
