"""A trace for Datasette: readable tables with keys, described, and shown by Datasette itself (`make datasette`)."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from collector.export.datasette import CALL_STACKS, export_datasette
from collector.export.described import column_words, table_words
from collector.store.views import TRACE_VIEWS
from tests.build.database import built_database
from tests.build.hostile import HOSTILE_TEXT, hostile_rows
from tests.build.imported import Imported
from tests.build.small_trace import KEY, SMALL


@pytest.fixture(scope="module")
def exported(sample: Imported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("datasette") / "sample"
    words = ["export", sample.report.key, "--as", "datasette", "-o", str(target), "--database", str(sample.folder.root)]
    assert main(words) == 0
    return target


def rows_of(folder: Path, sql: str) -> list[tuple[Any, ...]]:  # Any: a cell
    (path,) = folder.glob("*.db")
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def test_tables_are_the_views(sample: Imported, exported: Path) -> None:
    for view in TRACE_VIEWS:
        table = view.removeprefix("v_")
        assert sorted(rows_of(exported, f'SELECT * FROM "{table}"'), key=repr) == sorted(sample.rows(f"SELECT * FROM {view}"), key=repr)
    assert sorted(path.name for path in exported.iterdir()) == [f"{sample.report.key}.db", "metadata.json"]


def test_keys_lead_from_table_to_table(exported: Path) -> None:
    def keys(table: str) -> set[tuple[str, str, str]]:
        return {(row[3], row[2], row[4]) for row in rows_of(exported, f"PRAGMA foreign_key_list({table})")}

    assert keys("operations") == {
        ("socket", "sockets", "socket"), ("process", "processes", "process"), ("accepted", "sockets", "socket"),
        ("stack", CALL_STACKS, "stack"), ("allocation", "allocations", "allocation"),
    }  # fmt: skip
    assert {("first_socket", "sockets", "socket"), ("second_socket", "sockets", "socket")} <= keys("overlaps")
    assert {("process", "processes", "process"), ("owner_stack", CALL_STACKS, "stack")} <= keys("allocations")
    assert ("loopback_peer", "sockets", "socket") in keys("sockets")
    assert rows_of(exported, "PRAGMA foreign_key_check") == []
    assert rows_of(exported, "SELECT count(*) FROM operations JOIN sockets USING (socket)") == rows_of(
        exported, "SELECT count(*) FROM operations"
    )


def test_a_call_stack_is_one_row_with_its_frames(sample: Imported, exported: Path) -> None:
    for stack, depth, calls in rows_of(exported, f"SELECT stack, depth, calls FROM {CALL_STACKS}"):
        frames = sample.rows("SELECT symbol, module, offset, address FROM v_stacks WHERE stack = ? ORDER BY frame", stack)
        assert len(frames) == depth
        shown = [symbol or (f"{module}+0x{offset:x}" if module else address) for symbol, module, offset, address in frames]
        assert calls == " ← ".join(shown)


def test_what_tables_and_columns_hold_is_said(sample: Imported, exported: Path) -> None:
    metadata = json.loads((exported / "metadata.json").read_text(encoding="utf-8"))
    (database,) = metadata["databases"].items()
    assert database[0] == sample.report.key
    tables = database[1]["tables"]
    for table in ("sockets", "operations", "overlaps", "allocations", "processes"):
        names = [row[1] for row in rows_of(exported, f"PRAGMA table_info({table})")]
        assert [name for name in names if not tables[table]["columns"].get(name)] == [], table
    for table, said in tables.items():
        assert said["description"], table
        assert set(said["columns"]) <= {row[1] for row in rows_of(exported, f"PRAGMA table_info({table})")}
        assert not [words for words in said["columns"].values() if "words." in words]
    assert "ns since the trace began" in tables["operations"]["columns"]["posted_ns"]
    for query in database[1]["queries"].values():
        assert rows_of(exported, query["sql"]) != []


def test_every_view_is_described() -> None:
    for view in TRACE_VIEWS:
        assert table_words(view.removeprefix("v_")), view
    assert column_words("sockets", "end") != ""


def test_two_things_of_one_name_are_both_there(tmp_path: Path) -> None:
    rows = {name: [dict(row) for row in rows] for name, rows in SMALL.items()}
    rows["socket"].append(dict(rows["socket"][0]))
    folder = built_database(tmp_path / "twins", rows, key=KEY)
    numbers = export_datasette(folder, KEY, tmp_path / "out", lambda: False)
    assert numbers["sockets"] == len(rows["socket"])
    assert [row[2] for row in rows_of(tmp_path / "out", "PRAGMA foreign_key_list(operations)") if row[2] == "sockets"] == []
    assert "processes" in [row[2] for row in rows_of(tmp_path / "out", "PRAGMA foreign_key_list(operations)")]


def test_notes_and_masks_go_along(tmp_path: Path) -> None:
    folder = built_database(tmp_path / "notes", SMALL, key=KEY)
    with sqlite3.connect(folder.catalog_path) as db:
        db.execute(
            "INSERT INTO note (key, object, text, created_utc) VALUES (?, '', '198.51.100.7 hung up', '2025-01-01T00:00:00Z')", (KEY,)
        )
    db.close()
    for name, words in (("plain", []), ("masked", ["--mask"])):
        target = str(tmp_path / name)
        assert main(["export", KEY, "--as", "datasette", *words, "-o", target, "--database", str(folder.root)]) == 0
    assert rows_of(tmp_path / "plain", "SELECT text FROM notes") == [("198.51.100.7 hung up",)]
    ((masked,),) = rows_of(tmp_path / "masked", "SELECT text FROM notes")
    assert masked.endswith(" hung up")
    content = b"".join(path.read_bytes() for path in (tmp_path / "masked").iterdir())
    assert b"198.51.100.7" not in content
    assert b"client.exe" not in content


def test_wrong_usage_is_said(sample: Imported, exported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", sample.report.key, "--as", "datasette", "--database", str(sample.folder.root)]
    assert main([*words, "--view", "v_sockets"]) == 2
    assert "Datasette gets all views as tables" in capsys.readouterr().err
    assert main([*words, "-o", str(exported.parent)]) == 0, "into a folder that is there"
    assert main([*words, "-o", str(exported.parent)]) == 1
    assert "what is in a folder is never replaced" in capsys.readouterr().err


@pytest.fixture(scope="module")
def command() -> str:
    """Datasette's command: of the environment that `make datasette` makes inside this one, else the one on the path."""
    inside = Path(sys.prefix) / "datasette" / ("Scripts" if sys.platform == "win32" else "bin")
    found = shutil.which("datasette", path=str(inside)) or shutil.which("datasette")
    if found is None:
        pytest.skip("Datasette is not installed: make datasette")
    return found


def shown(command: str, folder: Path, path: str) -> str:
    """What Datasette answers to a path, with a status of 200."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}  # it has packages of its own
    done = subprocess.run([command, str(folder), "--get", path], capture_output=True, text=True, encoding="utf-8", check=False, env=env)
    assert done.returncode == 0, f"{path}: {done.stdout[:500]} {done.stderr[-2000:]}"
    return done.stdout


def test_datasette_shows_it(command: str, exported: Path, sample: Imported) -> None:
    key = sample.report.key
    text = shown(command, exported, f"/{key}/operations?_size=5")
    assert f'<a href="/{key}/sockets/' in text, "a socket leads to its row"
    assert "ns since the trace began" in text
    assert "Operations that were in flight when the trace ended" in shown(command, exported, f"/{key}")
    (row, *_) = rows_of(exported, "SELECT socket FROM operations WHERE allocation IS NOT NULL LIMIT 1")
    text = shown(command, exported, f"/{key}/sockets/{row[0].replace('@', '~40')}")
    assert "operations" in text, "what refers to a row is listed beside it"
    assert json.loads(shown(command, exported, f"/{key}/held_by_stack.json?_shape=array"))[0]["bytes"] > 0


def test_hostile_text_stays_text(command: str, tmp_path: Path) -> None:
    folder = built_database(tmp_path / "hostile", hostile_rows(), key=KEY, name=HOSTILE_TEXT)
    export_datasette(folder, KEY, tmp_path / "out", lambda: False)
    for path in ("/", f"/{KEY}", f"/{KEY}/processes", f"/{KEY}/findings", f"/{KEY}/{CALL_STACKS}"):
        assert "<script>alert(1)" not in shown(command, tmp_path / "out", path), path
