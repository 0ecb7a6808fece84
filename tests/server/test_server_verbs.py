"""The verbs of the command line with the address of a server."""

import gzip
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from collector.cli import main
from tests.server.cluster import Cluster


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Traces are built in a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_trace_from_collecting_to_deleting(
    server_url: str, sample_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOCKSCOPE_DATABASE", server_url)

    def run(*words: str) -> tuple[int, str, str]:
        status = main(words)
        said = capsys.readouterr()
        return status, said.out, said.err

    assert run("list") == (0, f"There are no traces in {server_url}. Collect one: sockscope collect FILE.etl\n", "")
    status, out, err = run("collect", str(sample_file), "--fail-on", "overlap")
    assert (status, "sample.etl: 20,101 records" in out) == (4, True), err
    key = out[:12]
    status, _, err = run("collect", "--keep", str(sample_file))
    assert (status, "this file is collected already" in err) == (1, True)
    assert run("label", key, "before", "the", "fix")[0] == 0
    (entry,) = json.loads(run("list", "--json")[1])
    assert (entry["key"], entry["state"], entry["label"], entry["has_file"]) == (key, "complete", "before the fix", True)

    assert run("export", key[:6], "-o", str(tmp_path / "whole.db"))[0] == 0
    with closing(sqlite3.connect(tmp_path / "whole.db")) as file:
        assert file.execute("SELECT count(*) FROM v_sockets").fetchone() == (entry["sockets"],)
    assert run("export", key, "--mask", "--process", "skyrace.exe", "-o", str(tmp_path / "part.db"))[0] == 0
    assert run("export", key, "--view", "v_sockets", "-o", str(tmp_path / "sockets.csv"))[0] == 0
    assert len((tmp_path / "sockets.csv").read_text(encoding="utf-8").splitlines()) == entry["sockets"] + 1
    assert run("export", key, "--as", "datasette", "-o", str(tmp_path / "datasette"))[0] == 0

    status, out, _ = run("prune", "--keep-bytes", "1", "--dry-run")
    assert (status, "it has the label" in out) == (1, True)
    status, _, err = run("backup", str(tmp_path / "backup"))
    assert (status, "pg_dump" in err) == (2, True)
    assert run("delete", key) == (0, f"Deleted {key}  sample.etl.\n", "")
    assert json.loads(run("list", "--json")[1]) == []
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_symbols_of_a_trace_whichever_its_number(
    server_url: str, project_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("symbolic", reason="the optional package that reads symbol files is not installed")
    from tests.test_symbols import EXPECTED, trace

    monkeypatch.setenv("SOCKSCOPE_DATABASE", server_url)
    pdb = tmp_path / "pool.pdb"
    pdb.write_bytes(gzip.decompress((project_root / "tests/data/pool.pdb.gz").read_bytes()))
    file = trace().write(tmp_path / "pool.etl")
    assert main(["collect", str(file)]) == main(["collect", str(file)]) == 0  # the second has the number 2

    assert main(["symbols", "pool.etl", str(pdb)]) == 0
    assert main(["symbols", "pool.etl", str(pdb)]) == 0

    assert re.findall(r"\d+ of \d+ frames have a name; .*", capsys.readouterr().out) == [
        "11 of 14 frames have a name; 1 symbol file used, 11 names new",
        "11 of 14 frames have a name; 1 symbol file used, 0 names new",
    ]
    assert main(["export", "pool.etl", "-o", str(tmp_path / "whole.db")]) == 0
    with closing(sqlite3.connect(tmp_path / "whole.db")) as db:
        assert [name for (name,) in db.execute("SELECT symbol FROM stack_frame ORDER BY stack_n, frame")] == EXPECTED


def test_a_role_that_reads(
    cluster: Cluster, server_url: str, database_name: str, sample_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    role = f"reader_{database_name}"
    cluster.sql(f"CREATE ROLE {role} LOGIN")
    theirs = cluster.url(database_name, role)
    assert main(["collect", str(sample_file), "--database", server_url]) == 0
    key = capsys.readouterr().out[:12]
    assert main(["list", "--database", theirs]) == 1
    assert "may not read the traces" in capsys.readouterr().err

    assert main(["migrate", "--database", server_url, "--grant-to", role]) == 0
    assert "the tables are current" in capsys.readouterr().out

    assert main(["list", "--database", theirs]) == 0
    assert main(["label", key, "seen", "--database", theirs]) == 0
    for verb in (["collect", str(sample_file)], ["delete", key]):
        capsys.readouterr()
        assert main([*verb, "--database", theirs]) == 1
        assert f"the role {role} may not do this" in capsys.readouterr().err
    cluster.sql("INSERT INTO sockscope.note (key, object, text, created_utc) VALUES ('k', '', 't', 'now')", database_name, role)
    cluster.sql("UPDATE sockscope.note SET text = 'u'", database_name, role)
    cluster.sql("DELETE FROM sockscope.note", database_name, role)
    cluster.sql("UPDATE sockscope.trace_entry SET state = 'collecting', bytes_total = 9, bytes_done = 9", database_name)
    cluster.sql("UPDATE sockscope.trace_load SET is_current = false", database_name)  # as a collector leaves it that is killed at its end
    capsys.readouterr()
    assert main(["list", "--database", theirs]) == 0
    assert re.search(rf"{key} +interrupted .*The collector ended before it was done", capsys.readouterr().out)
    assert main(["export", key, "--database", theirs]) == 1
    assert "not complete (interrupted)" in capsys.readouterr().err
    for statement in (
        "UPDATE sockscope.trace_entry SET state = 'live'",
        "DELETE FROM sockscope.operation",
        "CREATE TABLE sockscope.mine ()",
    ):
        with pytest.raises(RuntimeError, match="permission denied"):
            cluster.sql(statement, database_name, role)


def test_a_role_that_is_not_there(cluster: Cluster, server_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "--database", server_url, "--grant-to", 'nobody"; DROP SCHEMA sockscope; --']) == 1

    said = capsys.readouterr()
    assert "the tables are made" in said.out
    assert "does not exist" in said.err


def test_a_folder_is_granted_to_nobody(tmp_path: Path, sample_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", str(sample_file), "--database", str(tmp_path / "folder")]) == 0

    assert main(["migrate", "--database", str(tmp_path / "folder"), "--grant-to", "anybody"]) == 2

    assert "--grant-to is for a server" in capsys.readouterr().err
