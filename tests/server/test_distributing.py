"""`migrate --distribute`: the statements that prepare a Citus cluster, on a server that writes them down and distributes nothing.

Citus itself is not there: `citus.sql` stands in for the functions that are called. What that leaves unproven is in docs/scale.md.
"""

from pathlib import Path

import pytest

from collector.cli import main
from collector.store.tables import CATALOG, TRACE
from tests.server.cluster import Cluster

_STAND_IN = (Path(__file__).parent / "citus.sql").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Traces are built in a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def coordinator_url(cluster: Cluster, database_name: str, server_url: str) -> str:
    """The address of an empty database that seems to be the coordinator of two other servers."""
    cluster.sql(_STAND_IN, database_name)
    return server_url


def _asked(cluster: Cluster, name: str) -> list[str]:
    """The calls, in their order; all with one connection to each server, as a transaction with tables of both kinds must."""
    rows = cluster.sql("SELECT call, mode FROM citus.asked ORDER BY n", name)
    assert {mode for _, mode in rows} == {"sequential"}
    return [call for call, _ in rows]


def test_traces_are_distributed_by_their_number_and_the_catalog_is_everywhere(
    cluster: Cluster, database_name: str, coordinator_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate", "--database", coordinator_url, "--distribute"]) == 0

    said = capsys.readouterr()
    assert said.out.splitlines()[1:] == [
        f"Distributed {len(TRACE.tables)} tables of traces over 2 shards, and copied {len(CATALOG.tables)} of the catalog to every server."
    ]
    asked = _asked(cluster, database_name)
    catalog, traces = asked[: len(CATALOG.tables)], asked[len(CATALOG.tables) :]
    assert sorted(catalog) == sorted(f"create_reference_table(sockscope.{name})" for name in CATALOG.tables)
    assert traces[0] == "create_distributed_table(sockscope.trace, trace_id, hash, none, 2)"
    assert sorted(traces[1:]) == sorted(
        f"create_distributed_table(sockscope.{name}, trace_id, hash, sockscope.trace, )" for name in TRACE.tables if name != "trace"
    )

    assert main(["migrate", "--database", coordinator_url, "--distribute"]) == 0
    assert "distributed already, over 2 shards" in capsys.readouterr().out
    assert _asked(cluster, database_name) == asked


def test_in_how_many_parts_can_be_said(cluster: Cluster, database_name: str, coordinator_url: str) -> None:
    assert main(["migrate", "--database", coordinator_url, "--distribute", "--shards", "5"]) == 0

    assert "create_distributed_table(sockscope.trace, trace_id, hash, none, 5)" in _asked(cluster, database_name)


def test_what_is_not_distributed_yet_is(cluster: Cluster, database_name: str, coordinator_url: str) -> None:
    assert main(["migrate", "--database", coordinator_url, "--distribute"]) == 0
    known = "('sockscope.peer'::regclass, 'sockscope.note'::regclass)"
    cluster.sql(f"DELETE FROM pg_dist_partition WHERE logicalrelid IN {known}; DELETE FROM citus.asked", database_name)

    assert main(["migrate", "--database", coordinator_url, "--distribute"]) == 0

    assert _asked(cluster, database_name) == [
        "create_reference_table(sockscope.note)",
        "create_distributed_table(sockscope.peer, trace_id, hash, sockscope.trace, )",
    ]


def test_a_trace_is_collected_replaced_and_deleted_there(
    cluster: Cluster, database_name: str, coordinator_url: str, sample_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate", "--database", coordinator_url, "--distribute"]) == 0
    cluster.sql("DELETE FROM citus.asked", database_name)
    partitions = "SELECT count(*) FROM pg_class WHERE relispartition AND relkind = 'r'"
    capsys.readouterr()

    assert main(["collect", str(sample_file), "--database", coordinator_url]) == 0
    key = capsys.readouterr().out[:12]
    attached = _asked(cluster, database_name)
    assert cluster.sql(partitions, database_name) == [[str(len(attached))]]
    assert all(call.startswith("ALTER TABLE") and "ATTACH PARTITION" in call for call in attached)

    assert main(["collect", str(sample_file), "--database", coordinator_url]) == 0
    assert cluster.sql(partitions, database_name) == [[str(len(attached))]]
    assert main(["delete", key, "--database", coordinator_url]) == 0
    assert cluster.sql(partitions, database_name) == [["0"]]


def test_a_database_without_citus_is_left_as_it_is(
    cluster: Cluster, database_name: str, server_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate", "--database", server_url, "--distribute"]) == 1

    assert "the extension citus is not in this database" in capsys.readouterr().err
    assert cluster.sql("SELECT to_regclass('pg_dist_partition') IS NULL", database_name) == [["t"]]


def test_what_citus_refuses_is_said_and_nothing_is_changed(
    cluster: Cluster, database_name: str, coordinator_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate", "--database", coordinator_url]) == 0
    cluster.sql("INSERT INTO pg_dist_partition VALUES ('sockscope.trace'::regclass, 'n', NULL, 7, 't')", database_name)

    assert main(["migrate", "--database", coordinator_url, "--distribute"]) == 1

    assert "Citus does not distribute the table abort (relation sockscope.trace is not distributed)" in capsys.readouterr().err
    assert cluster.sql("SELECT count(*) FROM citus.asked", database_name) == [["0"]]


def test_an_old_citus_is_refused(cluster: Cluster, database_name: str, coordinator_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.sql("UPDATE pg_extension SET extversion = '11.3-1' WHERE extname = 'citus'", database_name)

    assert main(["migrate", "--database", coordinator_url, "--distribute"]) == 1

    assert "this is Citus 11.3-1; 12 or newer is needed" in capsys.readouterr().err
    assert cluster.sql("SELECT count(*) FROM citus.asked", database_name) == [["0"]]


def test_what_makes_no_sense_is_refused(tmp_path: Path, sample_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "folder")
    assert main(["collect", str(sample_file), "--database", folder]) == 0

    assert main(["migrate", "--database", folder, "--distribute"]) == 2
    assert "--distribute is for a server" in capsys.readouterr().err
    assert main(["migrate", "--database", folder, "--shards", "4"]) == 2
    assert "--shards goes with --distribute" in capsys.readouterr().err
    assert main(["migrate", "--database", folder, "--distribute", "--shards", "0"]) == 2
    assert "from 1 to 64000" in capsys.readouterr().err
