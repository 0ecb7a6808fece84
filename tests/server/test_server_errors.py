"""What goes wrong with a server is said in a sentence, with what to do."""

import functools
from contextlib import closing
from pathlib import Path

import pytest

from app.cli import main
from collector import pipeline
from collector.errors import StoreError, StoreFull, StoreLocked, StoreReadOnly, StoreTooNew, StoreTooOld, StoreUnreachable
from collector.store import postgresql, server
from collector.store.server import TraceServer
from collector.store.writer import TraceWriter
from tests.server.cluster import Cluster


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Traces are built in a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("address", "status", "words"),
    [
        ("postgresql://u:secret@127.0.0.1:1/x", 1, "cannot be reached"),
        ("postgresql://u:secret@/x?host=/nonexistent", 1, "cannot be reached"),
        ("PostgreSQL://u:secret@127.0.0.1:1/x", 1, "cannot be reached"),
        ("postgresql://u:secret@127.0.0.1:1/x?frob=1", 2, "frob"),
        ("postgresql://u:secret@127.0.0.1:1/x?sslmode=frob", 2, 'invalid sslmode value: "frob"'),
        ("postgresql://u:secret@127.0.0.1:1/x?connect_timeout=soon", 2, "bad value for connect_timeout"),
        ("postgresql://u:secret@h:port/x", 2, "no address of a database server"),
        ("postgresql://u:secret@/x?host=h&port=port", 2, "no address of a database server"),
        ("://u:secret@h/x", 2, "no address of a database server"),
        ("postgresql://u:secret@127.0.0.1:0/x", 2, "0 is no port"),
        ("postgresql://u:secret@127.0.0.1:65536/x", 2, "65536 is no port"),
        ("postgresql://u:secret@127.0.0.1/x?host=127.0.0.1:1&host=127.0.0.2:99999", 2, "99999 is no port"),
        ("postgresql:u:secret@h/x", 2, "no address of a database server"),
        ("postgresql:/u:secret@h/x", 2, "no address of a database server"),
        ("postgresql//u:secret@h/x", 2, "no address of a database server"),
        ("host=h user=u password=secret dbname=x", 2, "no address of a database server"),
        ("postgresql://u@127.0.0.1:1/x?sslpassword=secret", 1, "cannot be reached"),
        ("postgresql://u@127.0.0.1:1/x?PASSWD=secret", 2, "invalid connection option"),
        ("mysql://u:secret@h/x", 2, "PostgreSQL alone is supported"),
        ("frob://u:secret@h/x", 2, "PostgreSQL alone is supported"),
        ("postgresql://u:p@secret@127.0.0.1:1/x", 2, "write it as %40"),
        ("postgresql://u:p@ss%secret@127.0.0.1:1/x", 2, "write it as %40"),
    ],
)
@pytest.mark.parametrize("verb", [["list"], ["serve", "--port", "0"], ["collect", "x.etl"]], ids=lambda verb: verb[0])
def test_a_wrong_address(capsys: pytest.CaptureFixture[str], verb: list[str], address: str, status: int, words: str) -> None:
    pytest.importorskip("psycopg")
    assert main([*verb, "--database", address]) == status

    said = capsys.readouterr().err
    assert words in said
    assert "secret" not in said
    assert said.count("\n") == 1


def test_without_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)

    with pytest.raises(StoreError, match=r"pip install 'sockscope\[postgresql\]'"):
        postgresql.server_url("postgresql://u@h/x")


@pytest.mark.parametrize(
    ("database", "user", "words"),
    [
        ("absent", "owner", '"absent" does not exist. Create it'),
        ("postgres", "nobody-here", '"nobody-here" does not exist. Create it'),
        ("postgres", "keyed", "does not let the role keyed in"),
        ("postgres", "keyed:wrong", "does not let the role keyed in"),
    ],
)
def test_who_is_not_let_in(cluster: Cluster, capsys: pytest.CaptureFixture[str], database: str, user: str, words: str) -> None:
    cluster.sql("DROP ROLE IF EXISTS keyed")
    cluster.sql("CREATE ROLE keyed LOGIN PASSWORD 'right'")

    assert main(["list", "--database", cluster.url(database, user)]) == 1

    said = capsys.readouterr().err
    assert words in said
    assert "wrong" not in said


def test_a_role_with_its_password_gets_in(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.sql("DROP ROLE IF EXISTS keyed")
    cluster.sql("CREATE ROLE keyed LOGIN PASSWORD 'right'")

    assert main(["list", "--database", cluster.url("postgres", "keyed:right")]) == 0

    said = capsys.readouterr().out
    assert "There are no traces in" in said
    assert "right" not in said


def test_a_database_of_another_encoding(cluster: Cluster) -> None:
    cluster.sql("DROP DATABASE IF EXISTS other_texts")
    cluster.sql("CREATE DATABASE other_texts ENCODING 'SQL_ASCII' TEMPLATE template0")

    with closing(TraceServer(cluster.url("other_texts"))) as store, pytest.raises(StoreError, match="SQL_ASCII"):
        store.check()


def test_a_server_that_is_too_old(server_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "OLDEST_SERVER", 990000)

    with closing(TraceServer(server_url)) as store, pytest.raises(StoreError, match="14 or newer is needed"):
        store.check()


def test_a_server_that_is_only_read(server_url: str, sample_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_only = f"{server_url}&options=-c%20default_transaction_read_only%3Don"

    assert main(["collect", str(sample_file), "--database", read_only]) == 1

    assert "this server may only be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("UPDATE sockscope.alembic_version SET version_num = 'c0000' WHERE version_num LIKE 'c%'", StoreTooOld),
        ("UPDATE sockscope.alembic_version SET version_num = 't9999' WHERE version_num LIKE 't%'", StoreTooNew),
        ("DROP TABLE sockscope.trace_entry CASCADE", StoreTooOld),
    ],
)
def test_tables_of_another_version(cluster: Cluster, database_name: str, server_url: str, change: str, kind: type[StoreError]) -> None:
    with closing(TraceServer(server_url)) as store:
        store.make()
        cluster.sql(change, database_name)

        with pytest.raises(kind), store.catalog().connect() as connection:
            connection.exec_driver_sql("SELECT count(*) FROM trace_entry")


def test_no_room_where_a_trace_is_built(
    server_url: str, sample_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline, "TraceWriter", functools.partial(TraceWriter, page_limit=80))

    assert main(["collect", str(sample_file), "--database", server_url]) == 1

    said = capsys.readouterr().err
    assert f"{tmp_path / 'cache'}/sockscope/building/" in said
    assert "no space is left on the disk. Free some there, where traces for a server are built" in said
    assert "or set XDG_CACHE_HOME to a folder with more room" in said
    assert "--database" not in said


def test_errors_that_no_test_can_make_here() -> None:
    errors = pytest.importorskip("psycopg.errors")
    url = postgresql.server_url("postgresql://u:secret@h/x")

    for error, kind in (
        (errors.DiskFull("could not extend file: No space left on device"), StoreFull),
        (errors.AdminShutdown("terminating connection due to administrator command"), StoreUnreachable),
        (errors.CannotConnectNow("the database system is starting up"), StoreUnreachable),
        (errors.TooManyConnections("sorry, too many clients already"), StoreUnreachable),
        (errors.LockNotAvailable("canceling statement due to lock timeout"), StoreLocked),
        (errors.InsufficientPrivilege("permission denied for table note"), StoreReadOnly),
    ):
        named = postgresql.error_of(error, url)
        assert type(named) is kind
        assert str(named).startswith("postgresql://u:***@h/x: ")
    assert postgresql.error_of(errors.SyntaxError("syntax error"), url) is None  # a fault of our own
    assert postgresql.error_of(ValueError("no database"), url) is None
