"""Verbs that read a trace of a server name it in each statement, as pages do; read from the server's own log, COPY included."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from app.cli import main
from collector.store.server import TraceServer
from collector.store.tables import TRACE
from tests.build.imported import Imported
from tests.build.small_trace import CLIENT, KEY, small_folder
from tests.server.cluster import Cluster
from tests.server.moving import move
from tests.trace_names import nameless

_ENTRY = re.compile(r"^\d{4}-\d\d-\d\d [\d:.]+ \w+ \[\d+\] (\w+):  ", re.MULTILINE)
_STATEMENT = re.compile(r"(?:statement|execute [^:]*): (.*)", re.DOTALL)
_PARAMETER = re.compile(r"(\$\d+) = (?:'((?:[^']|'')*)'|NULL)")
_BARE = re.compile(r'FROM "(\w+)" WHERE trace_id')
_NAMED = re.compile(r"trace_id = (\$?\d+)(?:::\w+)?")
_READS = re.compile(rf'\b(?:FROM|JOIN)\s+"?({"|".join(TRACE.tables)})\b')


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Traces are built in a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def server(cluster: Cluster, database_name: str, tmp_path: Path, sample: Imported) -> Iterator[TraceServer]:
    """A server with two traces that writes every statement to its log."""
    with closing(TraceServer(cluster.url(database_name), building=tmp_path / "building")) as server:
        move(small_folder(tmp_path / "small"), server)
        move(sample.folder, server)
        cluster.sql(f"ALTER DATABASE {database_name} SET log_statement = 'all'")
        yield server


@contextmanager
def logged(cluster: Cluster) -> Iterator[list[str]]:
    """Statements that the server runs meanwhile, the numbers of traces written out."""
    log, found = cluster.folder / "log", list[str]()
    begin = log.stat().st_size
    yield found
    parts = _ENTRY.split(log.read_bytes()[begin:].decode())[1:]
    entries = list(zip(parts[::2], parts[1::2], strict=True))
    for (kind, text), (following, detail) in zip(entries, [*entries[1:], ("", "")], strict=True):
        if kind == "LOG" and (statement := _STATEMENT.match(text)):
            values = dict(_PARAMETER.findall(detail)) if following == "DETAIL" else {}
            found.append(_NAMED.sub(lambda part, values=values: f"trace_id = {values.get(part[1], part[1])}", statement[1]))


def unbound(statements: list[str], number: int) -> set[str]:
    """Statements that read a trace table without saying that they mean this trace."""
    said = [_BARE.sub(r'FROM "\1" WHERE \1.trace_id', one) for one in statements]
    return {one for one in said if nameless(re.sub(rf"trace_id = {number}\b", "trace_id = :this_trace", one))}


@pytest.mark.parametrize(
    "words",
    [
        ("export", KEY, "-o", "whole.db"),
        ("export", KEY, "--mask", "-o", "masked.db"),
        ("export", KEY, "--process", "client.exe", "-o", "part.db"),
        ("export", KEY, "--view", "v_sockets", "-o", "sockets.csv"),
        ("export", KEY, "--as", "datasette", "-o", "datasette"),
        ("report", KEY, "--socket", f"{CLIENT:#x}@10000000", "-o", "socket.html"),
        ("report", KEY, "--process", "4242@0", "-o", "process.html"),
        ("symbols", KEY, "."),
    ],
    ids=lambda words: " ".join(words[:1] + words[2:-2]),
)
def test_every_verb_that_reads_a_trace_names_it(
    cluster: Cluster, server: TraceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    number = server.number_of(KEY)
    assert number is not None

    with logged(cluster) as statements:
        status = main([*words, "--database", str(server.address)])

    read = {table for one in statements for table in _READS.findall(one)}
    assert status == (words[0] == "symbols")  # nothing is named, as there are no symbol files
    assert read
    assert unbound(statements, number) == set()


def test_verbs_about_all_traces_read_no_rows_of_any(cluster: Cluster, server: TraceServer) -> None:
    with logged(cluster) as statements:
        for words in (("list",), ("label", KEY, "new"), ("prune", "--keep-bytes", "1", "--dry-run"), ("delete", KEY), ("migrate",)):
            main([*words, "--database", str(server.address)])

    assert len(statements) > 10
    assert {one for one in statements if _READS.search(one)} == set()


def test_a_statement_that_names_none_would_be_seen(cluster: Cluster, server: TraceServer, database_name: str) -> None:
    number = server.number_of(KEY)
    assert number is not None
    with logged(cluster) as statements:
        for condition in ("", f"WHERE trace_id = {number + 1} ", f"WHERE trace_id = {number} "):
            cluster.sql(f'SET search_path TO sockscope; COPY (SELECT n FROM "socket" {condition}ORDER BY n) TO STDOUT', database_name)

    assert len(statements) == 3
    assert len(unbound(statements, number)) == 2
