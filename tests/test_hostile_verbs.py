"""Whatever names of files, folders and things in a trace say, each verb prints one line a thing and nothing that steers a terminal."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import update

from app.cli import main
from collector.store.stores import open_store
from collector.store.tables import trace_entry
from tests.build import Trace, afd, heap, system
from tests.build.hostile import HOSTILE_TEXT, is_free_of_marks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no such file names there")

TEXT = HOSTILE_TEXT.replace("\x00", "")
NAME = "\x1b[2J\x1b]0;owned\x07exe\u202elte\nforged\u2066\x9b31m"
BASE = 0x7FF6_A000_0000

Run = Callable[..., tuple[int, str, str]]


def hostile(path: Path) -> Path:
    """A trace whose names are hostile: of processes, threads, modules, symbol files, and of the session."""
    identity = [
        system.pdb(base=BASE, guid=UUID(int=7), name=f"C:\\{TEXT}.pdb"),
        system.pdb(base=BASE + 0x100_0000, guid=UUID(int=8), name=NAME),
    ]
    images = [
        system.image(base=BASE, size=0x4000, file=f"C:\\{TEXT}"),
        system.image(base=BASE + 0x100_0000, size=0x4000, file=f"C:\\{NAME}"),
        system.image(base=BASE + 0x200_0000, size=0x4000, file=f"C:\\other{NAME}"),
    ]
    stack = (BASE + 0x100, BASE + 0x100_0200, BASE + 0x200_0300)
    trace = Trace(name=TEXT, file_name=NAME).cpu(
        0,
        system.process_rundown(image=NAME, command_line=TEXT),
        system.thread(name=TEXT),
        identity,
        images,
        afd.opened(at_us=100),
        afd.connected(at_us=200),
        heap.alloc(at_us=300, stack=stack),
        afd.closed(at_us=900),
    )
    return trace.lose_events(3, at_us=500).write(path)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of a hostile name."""
    (tmp_path / NAME).mkdir()
    return tmp_path / NAME


@pytest.fixture
def run(place: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line on the database in that folder; what it says is held to the rule."""

    def run(*words: str | Path, has_database: bool = True) -> tuple[int, str, str]:
        try:
            status = main([*map(str, words), *(["--database", str(place / "database")] if has_database else [])])
        except SystemExit as error:
            status = int(str(error.code))
        said = capsys.readouterr()
        for text in (said.out, said.err):
            assert is_free_of_marks(text.replace("\r", "")), words[0]
            assert all(c.isprintable() or c == "\n" for c in text.replace("\r", "")), words[0]
            assert "Traceback" not in text
            assert not any(line.startswith(("forged", "sockscope: forged")) for line in text.splitlines()), words[0]
        return status, said.out, said.err

    return run


def test_inspect_shows_names_as_text(run: Run, place: Path) -> None:
    path = hostile(place / f"{NAME}.etl")
    status, out, _ = run("inspect", path, has_database=False)
    assert status == 3
    assert "\\x1b[2J" in out
    assert "\\u202e" in out
    status, out, _ = run("inspect", path, "--json", has_database=False)
    assert status == 3
    assert "\\u001b" in out


def test_the_verbs_of_a_trace_show_names_as_text(run: Run, place: Path, tmp_path: Path) -> None:
    pytest.importorskip("symbolic", reason="the optional package that reads symbol files is not installed")
    path = hostile(place / f"{NAME}.etl")
    pdbs = place / "pdbs"
    pdbs.mkdir()
    (pdbs / f"{NAME}.pdb").write_bytes(b"no symbol file")
    status, out, err = run("collect", path, "--symbols", pdbs)
    assert status == 3
    assert len(out.splitlines()) == 1
    assert "data loss: Events lost by the session: 3" in err
    assert "symbols: " in err
    key = out.split()[0]
    status, out, err = run("symbols", key, pdbs)
    assert status == 1
    assert len(out.splitlines()) == 1
    assert "\\x1b[2J" in out + err
    assert run("symbols", key, place / "absent")[0] in (1, 2)
    assert run("symbols", NAME, pdbs)[0] == 1

    status, out, _ = run("list")
    assert (status, len(out.splitlines())) == (0, 2)
    assert "\\x1b[2J" in out
    status, out, _ = run("list", "--json")
    assert "\\u001b" in out
    assert run("export", key, "--output", place / f"{NAME}.db")[0] == 0
    assert run("export", key, "--output", place / f"{NAME}.db")[0] == 1
    assert run("export", key, "--mask", "--output", tmp_path / f"{NAME}-masked.db")[0] == 0
    assert run("collect", path, "--process", "other.exe")[0] == 1, "the message names processes of the trace"
    assert run("collect", path, "--keep")[0] == 1
    assert run("delete", NAME)[0] == 1
    assert run("delete", key)[0] == 0


def test_a_state_that_the_list_explains_is_text(run: Run, place: Path) -> None:
    path = hostile(place / f"{NAME}.etl")
    assert run("collect", path)[0] == 3
    with open_store(place / "database").catalog(write=True).begin() as db:
        db.execute(update(trace_entry).values(state="interrupted", message=TEXT, label=NAME))
    status, out, _ = run("list")
    assert (status, len(out.splitlines())) == (0, 2)


@pytest.mark.folder("damage of a file")
def test_migrate_shows_names_as_text(run: Run, place: Path) -> None:
    path = hostile(place / f"{NAME}.etl")
    key = run("collect", path)[1].split()[0]
    assert run("migrate")[:2] == (0, "0 of 1 trace brought up to date; the catalog is current.\n")
    (place / "database" / "traces" / f"{key}.db").write_bytes(b"no database at all, but some bytes of text" * 40)
    status, _, err = run("migrate")
    assert status == 1
    assert "\\x1b[2J" in err
    assert len(err.splitlines()) == 1
    shutil.rmtree(place / "database")
    assert run("migrate")[0] in (1, 2)


@pytest.mark.parametrize("verb", ["inspect", "collect", "list", "migrate", "delete", "export", "symbols", "serve", "demo", NAME])
def test_wrong_words_are_shown_as_text(run: Run, verb: str) -> None:
    assert run(verb, NAME, NAME, f"--{NAME}", has_database=False)[0] in (1, 2)


@pytest.mark.parametrize("option", ["--process", "--from", "--to", "--only", "--name"])
def test_wrong_values_are_shown_as_text(run: Run, place: Path, option: str) -> None:
    path = hostile(place / f"{NAME}.etl")
    run("collect", path, option, f"@{NAME}")
