"""A trace's page reads the partitions of its trace alone: the plan of each statement that it issues is looked at."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from app.main import create_app
from app.settings import Settings
from collector.store.server import TraceServer
from collector.store.tables import CATALOG, TRACE
from tests.build.imported import Imported
from tests.build.small_trace import KEY, small_folder
from tests.server.cluster import Cluster
from tests.server.moving import move
from tests.test_app_lists import CASES, LISTS, sorts_of
from tests.test_query_plans import paths_of, statements

NO_STORE = {"Cache-Control": "no-store"}
OWN = frozenset({*CATALOG.tables, "trace_load", "alembic_version"})


@pytest.fixture(scope="module")
def server(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, sample: Imported) -> Iterator[TraceServer]:
    """A server with two traces."""
    folder = tmp_path_factory.mktemp("shards")
    cluster.sql("CREATE DATABASE shards")
    with closing(TraceServer(cluster.url("shards"), building=folder / "building")) as server:
        move(small_folder(folder / "small"), server)
        move(sample.folder, server)
        yield server


def tables_in(plan: Any) -> Iterator[str]:  # Any: JSON
    """Names of the tables that a plan reads."""
    if isinstance(plan, list):
        for part in plan:
            yield from tables_in(part)
    elif isinstance(plan, dict):
        if "Relation Name" in plan:
            yield plan["Relation Name"]
        for part in plan.values():
            yield from tables_in(part)


def tables_read(engine: Engine, asked: list[tuple[str, Any]]) -> set[str]:  # Any: values of parameters
    """Names of the tables that statements read, by their plans."""
    found: set[str] = set()
    with engine.connect() as db:
        for statement, values in asked:
            if statement.startswith(("SELECT", "WITH")) and "pg_" not in statement:
                plan = db.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", values).scalar_one()
                found |= set(tables_in(plan if isinstance(plan, list) else json.loads(plan)))
    return found


def read_by(server: TraceServer, paths: list[str]) -> set[str]:
    """Tables that pages read."""
    with TestClient(create_app(Settings(database=server.address)), base_url="http://127.0.0.1") as client:
        client.get("/")
        with statements() as asked:
            for path in paths:
                assert client.get(path, headers=NO_STORE).status_code == 200, path
    return tables_read(server.catalog(), asked)


def test_every_page_of_a_trace_reads_the_partitions_of_that_trace(server: TraceServer, sample: Imported) -> None:
    key = sample.report.key
    number = server.number_of(key)
    orders = [f"/t/{key}/{name}?sort=-{sort.key}" for name, module in LISTS.items() if name != "events" for sort in sorts_of(module)]

    read = read_by(server, [*(path for path in paths_of(sample).values() if path != "/"), *orders]) - OWN

    assert read - {f"{table}_{number}" for table in TRACE.tables} == set()
    assert len(read) > 40


def test_every_filter_reads_the_partitions_of_one_trace(server: TraceServer) -> None:
    number = server.number_of(KEY)
    read = read_by(server, [f"/t/{KEY}/{name}?{query}" for name, query, *_ in CASES]) - OWN
    assert read - {f"{table}_{number}" for table in TRACE.tables} == set()
    assert len(read) > 20


def test_a_page_does_not_ask_again_what_the_server_is(server: TraceServer) -> None:
    with TestClient(create_app(Settings(database=server.address)), base_url="http://127.0.0.1") as client:
        client.get("/")
        with statements() as asked:
            assert client.get(f"/t/{KEY}", headers=NO_STORE).status_code == 200
    assert not any(name in statement for name in ("pg_tables", "alembic_version") for statement, _ in asked)
    # Whether the trace is there, in which state, the lock of its rows, and whether they still were the trace's then.
    assert sum("trace_load" in statement for statement, _ in asked) == 4


def test_two_traces_compared_are_read_one_by_one(server: TraceServer, sample: Imported) -> None:
    numbers = {server.number_of(KEY), server.number_of(sample.report.key)}
    read = read_by(server, [f"/compare?a={KEY}&b={sample.report.key}"]) - OWN
    assert {int(name.rpartition("_")[2]) for name in read} == numbers


def test_a_statement_that_names_no_trace_would_be_seen(server: TraceServer) -> None:
    numbers = {server.number_of(key) for key in server.trace_keys()}
    read = tables_read(server.catalog(), [("SELECT count(*) FROM socket", {})])
    assert read == {f"socket_{number}" for number in numbers}
