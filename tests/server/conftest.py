"""Fixtures of the tests that need a PostgreSQL server; without one they are skipped."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.server.cluster import Cluster, programs

_numbers = count(1)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A running server."""
    pytest.importorskip("psycopg")
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    cluster = Cluster(found)
    yield cluster
    cluster.close()


@pytest.fixture
def server_url(cluster: Cluster) -> str:
    """The address of an empty database."""
    name = f"test{next(_numbers)}"
    cluster.sql(f"CREATE DATABASE {name}")
    return cluster.url(name)
