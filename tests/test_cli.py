"""The command line: one clear line for each wrong input, exit statuses, and nothing slow for a help text."""

import importlib
import io
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Callable
from pathlib import Path

import httpx2 as httpx
import pytest

from app.cli import main
from collector import cli
from tests.build import Trace, afd

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def file(tmp_path: Path) -> str:
    trace = Trace().cpu(0, afd.opened(at_us=10), afd.connected(at_us=50), afd.sent(at_us=100))
    return str(trace.write(tmp_path / "loopback.etl"))


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line against a database of the test's own; gives exit status, stdout and stderr."""
    (tmp_path / "database").mkdir()

    def run(verb: str, *words: str) -> tuple[int, str, str]:
        database = () if verb == "inspect" else ("--database", str(tmp_path / "database"))
        status = main([verb, *words, *database])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def key_of(out: str) -> str:
    return out.split()[0]


def test_collect_prints_a_line_and_its_problems(run: Run, file: str) -> None:
    status, out, err = run("collect", file)

    assert status == 0
    assert re.fullmatch(r"[0-9a-f]{12}  loopback\.etl: \d+ records, 1 process, 1 socket, 2 operations in \d+\.\d s\n", out)
    assert "loopback.etl: limit: There is no process event in this trace." in err
    assert "note" not in err


def test_list_shows_what_was_collected(run: Run, file: str) -> None:
    assert run("list")[1].startswith("There are no traces in ")
    key = key_of(run("collect", file, "--name", "my trace")[1])

    _, out, _ = run("list")
    assert re.search(rf"^{key} +complete +\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d +\d+ +1  my trace$", out, re.MULTILINE)
    (entry,) = json.loads(run("list", "--json")[1])
    assert (entry["key"], entry["name"], entry["state"], entry["sockets"]) == (key, "my trace", "complete", 1)


def test_list_marks_what_is_not_whole(run: Run, tmp_path: Path) -> None:
    events = [afd.opened(at_us=10), *(afd.sent(at_us=100 + n) for n in range(2000))]
    lossy = Trace().cpu(0, *events).lose_events(3).write(tmp_path / "lossy.etl")
    whole = Trace().cpu(0, *events).write(tmp_path / "whole.etl")
    cut = tmp_path / "cut.etl"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 2 // 3])
    for path, status in ((lossy, 3), (whole, 0), (cut, 3)):
        assert run("collect", str(path))[0] == status
    lines = {name: line for line in run("list")[1].splitlines() for name in ("lossy", "whole", "cut") if f"{name}.etl" in line}
    assert lines["lossy"].endswith("lossy.etl (data lost)")
    assert lines["whole"].endswith("whole.etl")
    assert "damaged" in lines["cut"].partition("cut.etl")[2]
    entries = {entry["name"]: entry for entry in json.loads(run("list", "--json")[1])}
    assert (entries["lossy.etl"]["limits"], entries["whole.etl"]["limits"]) == (["data_loss"], [])
    assert "damage" in entries["cut.etl"]["limits"]


@pytest.mark.folder("files of it that are taken away")
def test_list_marks_a_trace_whose_file_is_missing(run: Run, file: str, tmp_path: Path) -> None:
    key = key_of(run("collect", file)[1])
    (tmp_path / "database" / "traces" / f"{key}.db").unlink()

    assert "loopback.etl (its file is missing: collect it again)" in run("list")[1]
    assert [entry["has_file"] for entry in json.loads(run("list", "--json")[1])] == [False]


def test_delete_by_beginning_of_the_key(run: Run, file: str) -> None:
    key = key_of(run("collect", file)[1])
    assert run("delete", key[:5]) == (0, f"Deleted {key}  loopback.etl.\n", "")
    assert run("list")[1].startswith("There are no traces in ")
    status, _, err = run("delete", key)
    assert (status, err.count("\n")) == (1, 1)


def test_export_writes_one_file_that_any_sqlite_tool_reads(run: Run, file: str, tmp_path: Path) -> None:
    run("collect", file)
    target = tmp_path / "mine.db"
    assert run("export", "loopback.etl", "-o", str(target))[0] == 0
    with sqlite3.connect(target) as db:
        assert db.execute("SELECT sends FROM v_sockets").fetchall() == [(1,)]
    db.close()

    status, _, err = run("export", "loopback.etl", "-o", str(target))
    assert status == 1
    assert "is there already" in err
    assert run("export", "loopback.etl", "-o", str(target), "--force")[0] == 0


@pytest.mark.folder("the versions of files")
def test_migrate_says_how_many(run: Run, file: str) -> None:
    assert run("migrate")[0] == 1
    run("collect", file)
    assert run("migrate") == (0, "0 of 1 trace brought up to date; the catalog is current.\n", "")


def test_inspect_reports_without_a_database(run: Run, file: str, tmp_path: Path) -> None:
    status, out, _ = run("inspect", file)
    assert status == 0
    assert "AfdSend" in out
    assert json.loads(run("inspect", file, "--json")[1])["file"]["name"] == "loopback.etl"
    assert not any((tmp_path / "database").iterdir())


@pytest.mark.parametrize("verb", ["collect", "inspect"])
@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("nothing.etl", None, "there is no such file"),
        ("", None, "this is a folder"),
        ("empty.etl", b"", "the file is empty"),
        ("report.csv", b"a,b,c\n1,2,3\n" * 1000, "text"),
        ("zeros.etl", bytes(65536), "zeros.etl"),
        ("noise.etl", bytes(range(7, 251)) * 400, "noise.etl"),
    ],
)
def test_wrong_input_is_one_clear_line(run: Run, tmp_path: Path, verb: str, name: str, content: bytes | None, says: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    status, out, err = run(verb, str(path))

    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert says in err
    assert "Traceback" not in err


def test_a_cut_file_is_stored_with_damage(run: Run, tmp_path: Path) -> None:
    trace = Trace().cpu(0, afd.opened(at_us=10), *[afd.sent(at_us=100 + 10 * n) for n in range(500)]).cut_at(-3000)
    status, out, err = run("collect", str(trace.write(tmp_path / "cut.etl")))

    assert status == 3
    assert "cut.etl" in out
    assert "damage: The file ends inside a buffer" in err


def test_some_files_good_and_some_not(run: Run, file: str, tmp_path: Path) -> None:
    status, out, err = run("collect", str(tmp_path / "nothing.etl"), file)
    assert status == 1
    assert out.count("\n") == 1
    assert "there is no such file" in err


@pytest.mark.parametrize(
    "words",
    [[], ["dance"], ["collect"], ["collect", "--nonsense", "x.etl"], ["collect", "a.etl", "b.etl", "--name", "x"], ["serve", "--port", "x"],
     ["serve", "--port", "99999"], ["serve", "--root-path", "no-slash"],
     *(["serve", "--upload-limit", size] for size in ("nan", "inf", "-1", "0", "1e300", "x"))],
)  # fmt: skip
def test_wrong_usage_is_status_2(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOCKSCOPE_DATABASE", str(tmp_path))
    assert main(words) == 2
    assert capsys.readouterr().err


@pytest.mark.folder("what cannot be a folder")
def test_a_folder_that_cannot_be_made(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "traces").write_text("")
    assert main(["collect", file, "--database", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_port_in_use_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port), "--database", str(tmp_path)]) == 1
    assert f"127.0.0.1:{port} cannot be listened on" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["collect", "inspect", "list", "symbols", "delete", "export", "migrate", "serve", "demo"])
def test_each_help_shows_a_worked_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert f"example:\n  sockscope {verb}" in capsys.readouterr().out


def test_help_and_version_load_nothing_heavy() -> None:
    code = (
        "import sys; from app.cli import main; main(['--help']); main(['--version']); main(['collect', '--help']);"
        "heavy = {'numpy', 'sqlalchemy', 'fastapi', 'uvicorn', 'tqdm', 'alembic', 'plotly', 'jinja2'} & set(sys.modules);"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_an_interrupt_while_modules_are_loaded_shows_no_traceback() -> None:
    code = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'collector.cli':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from app.start import main\n"
        "sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_console_script_runs_the_command_line(monkeypatch: pytest.MonkeyPatch, project_root: Path) -> None:
    script = tomllib.loads((project_root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]["sockscope"]
    module, _, name = script.partition(":")
    monkeypatch.setattr(sys, "argv", ["sockscope", "dance"])
    assert getattr(importlib.import_module(module), name)() == 2


def test_the_first_interrupt_asks_and_the_second_stops() -> None:
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)  # a program started in the background inherits none
    try:
        with cli._cancelling() as should_cancel:
            assert not should_cancel()
            signal.raise_signal(signal.SIGINT)
            assert should_cancel()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, inherited)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="a system without terminals that hang up")
def test_a_closed_terminal_asks_too_unless_it_is_to_be_ignored() -> None:
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with cli._cancelling() as should_cancel:
            signal.raise_signal(signal.SIGHUP)
            assert should_cancel()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with cli._cancelling() as should_cancel:
            signal.raise_signal(signal.SIGHUP)
            assert not should_cancel()
    finally:
        signal.signal(signal.SIGHUP, inherited)


class Terminal(io.StringIO):
    """What a user sees, with all that was drawn over."""

    def isatty(self) -> bool:
        return True


def test_the_progress_bar_shows_each_stage(run: Run, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("LINES", "50")

    assert run("collect", file)[0] == 0
    drawn = re.findall(r"(\w+), [\d,]+ events, [\d,]+/s\]", terminal.getvalue())
    assert list(dict.fromkeys(drawn)) == ["reading", "joining", "indexing", "checking"]


def test_an_interrupt_while_collecting_stores_nothing(run: Run, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from collector.stages import Import

    whole = Import.join

    def interrupted(job: Import) -> None:
        signal.raise_signal(signal.SIGINT)
        whole(job)

    monkeypatch.setattr(Import, "join", interrupted)
    assert run("collect", file) == (1, "", "Cancelled. Nothing was stored.\n")
    assert "interrupted" in run("list")[1]


def test_an_interrupt_among_several_files_leaves_what_was_stored(
    run: Run, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from collector.stages import Import

    other, third = (str(Trace().cpu(0, afd.opened(at_us=n)).write(tmp_path / f"{n}.etl")) for n in (20, 30))
    whole, imports = Import.join, []

    def interrupted(job: Import) -> None:
        imports.append(job)
        if len(imports) == 2:
            signal.raise_signal(signal.SIGINT)
        whole(job)

    monkeypatch.setattr(Import, "join", interrupted)
    status, out, err = run("collect", file, other, third)
    assert (status, out.count("\n")) == (1, 1)
    assert err.splitlines()[-2:] == ["Cancelled.", f"1 stored: {file}; 1 not stored: {other}; 1 not tried: {third}"]
    assert "Nothing was stored" not in err


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with the collected sample."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "demo", "--no-serve", "--database", folder],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "sample.etl" in done.stdout
    return str(folder)


@pytest.mark.folder("a process of its own, which opens a folder as a folder")
def test_serve_prints_its_address_and_stops_when_asked(demo: str) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SOCKSCOPE_")}
    server = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--database", demo], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert address, line
        with urllib.request.urlopen(f"{address[0]}healthz", timeout=30) as answer:
            assert answer.status == 200
        server.send_signal(signal.SIGINT)
        assert server.wait(30) == 0
    finally:
        server.kill()
        server.communicate()


@pytest.mark.folder("a process of its own, which opens a folder as a folder")
def test_where_other_machines_reach_it_a_token_is_made_up_and_printed_once(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SOCKSCOPE_")} | {"PYTHONUNBUFFERED": "1"}
    words = [sys.executable, "-m", "app.cli", "serve", "--host", "0.0.0.0", "--port", "0", "--log-requests", "--database", str(tmp_path)]
    tokens = set()
    for _ in range(2):
        server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            printed = re.search(r"http://0\.0\.0\.0:(\d+)/\?token=([\w-]{32})\s", line)
            assert printed, line
            address, token = f"http://127.0.0.1:{printed[1]}/", printed[2]
            with httpx.Client(timeout=30, follow_redirects=True) as client:
                statuses = [client.get(f"{address}{query}").status_code for query in ("", f"?token={'0' * 32}", f"?token={token}", "")]
            assert statuses == [401, 401, 200, 200]
            server.send_signal(signal.SIGINT)
            out, err = server.communicate(timeout=30)
        finally:
            server.kill()
            server.communicate()
        assert "GET /" in err
        assert token not in out + err
        tokens.add(token)
    assert len(tokens) == 2


VERBS_WITH_A_FOLDER = [
    ["list"],
    ["delete", "abcd"],
    ["export", "abcd"],
    ["symbols", "abcd", "."],
    ["migrate"],
    ["collect", "x.etl"],
    ["serve"],
    ["demo"],
]


@pytest.mark.folder("what cannot be a folder")
@pytest.mark.parametrize("words", VERBS_WITH_A_FOLDER, ids=lambda words: str(words[0]))
@pytest.mark.parametrize("below", ["", "sub"])
def test_a_file_is_no_folder_of_traces(words: list[str], below: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("")
    assert main([*words, "--database", str(tmp_path / "taken" / below)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "is a file" in err


@pytest.mark.folder("a folder that is not there")
@pytest.mark.parametrize("words", VERBS_WITH_A_FOLDER[:5], ids=lambda words: str(words[0]))
def test_a_folder_that_is_named_must_be_there_for_verbs_that_only_look(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--database", str(tmp_path / "nothing")]) == 2
    assert "there is no such folder" in capsys.readouterr().err
    assert not (tmp_path / "nothing").exists()


@pytest.mark.folder("damage of a file")
@pytest.mark.parametrize("words", [*VERBS_WITH_A_FOLDER[:5], ["serve", "--port", "0"]], ids=lambda words: str(words[0]))
@pytest.mark.parametrize("state", ["no database", "newer", "a folder"])
def test_a_catalog_that_cannot_be_read_stops_every_verb(
    words: list[str], state: str, demo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = tmp_path / "catalog.db"
    if state == "no database":
        catalog.write_text("a text, and no database")
    elif state == "a folder":
        catalog.mkdir()
    else:
        shutil.copyfile(Path(demo) / "catalog.db", catalog)
        with sqlite3.connect(catalog) as db:
            db.execute("UPDATE alembic_version SET version_num = 'c9999'")
        db.close()
    assert main([*words, "--database", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert str(catalog) in err


def test_a_line_names_what_became_of_each_file(run: Run, file: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "nothing.etl")
    cut = Trace().cpu(0, afd.opened(at_us=10), *[afd.sent(at_us=100 + 10 * n) for n in range(500)]).cut_at(-3000)
    cut_file = str(cut.write(tmp_path / "cut.etl"))
    status, _, err = run("collect", file, missing, cut_file)
    assert status == 1
    assert err.endswith(f"1 stored: {file}; 1 stored with loss or damage: {cut_file}; 1 not stored: {missing}\n")
    status, _, err = run("collect", "--keep", file, cut_file)
    assert (status, err.count("is collected already")) == (1, 2)


@pytest.mark.folder("a file that is put into a folder")
def test_an_export_takes_the_notes_along_and_brings_them_back(run: Run, file: str, tmp_path: Path) -> None:
    key = key_of(run("collect", file)[1])
    with sqlite3.connect(tmp_path / "database" / "catalog.db") as db:
        for about, text in ((f"{key}", "hello"), ("other", "not mine")):
            db.execute("INSERT INTO note (key, object, text, created_utc) VALUES (?, '', ?, '2025-01-01')", (about, text))
    db.close()
    status, out, _ = run("export", key, "-o", str(tmp_path))
    assert (status, out.endswith("with 1 note.\n")) == (0, True)
    with sqlite3.connect(tmp_path / f"{key}.db") as db:
        assert db.execute("SELECT key, text FROM v_notes").fetchall() == [(key, "hello")]
    db.close()

    other = tmp_path / "other"
    (other / "traces").mkdir(parents=True)
    shutil.copyfile(tmp_path / f"{key}.db", other / "traces" / f"{key}.db")
    (other / "catalog.db").touch()
    assert main(["list", "--database", str(other)]) == 0
    with sqlite3.connect(other / "catalog.db") as db:
        assert db.execute("SELECT key, text FROM v_notes").fetchall() == [(key, "hello")]
    db.close()
    assert main(["export", key, "-o", str(tmp_path / "again.db"), "--database", str(other)]) == 0, "an export of an export"


@pytest.mark.folder("a process of its own, which opens a folder as a folder")
@pytest.mark.skipif(sys.platform == "win32", reason="limits on files are set by the shell")
def test_an_export_to_a_full_disk_leaves_nothing_and_keeps_what_was_there(demo: str, tmp_path: Path) -> None:
    target = tmp_path / "mine.db"
    target.write_text("older")
    command = f'ulimit -f 200; "{sys.executable}" -m app.cli export sample.etl --force -o "{target}" --database "{demo}"'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"{target}: no space is left" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.db"]
    assert target.read_text() == "older"


@pytest.mark.folder("files of it")
@pytest.mark.parametrize(
    "target",
    [
        "catalog.db",
        "traces/KEY.db",
        "traces/other.db",
        "traces/new.db.part",
        "catalog.db-wal",
        "",
        "traces",
        "../database/./traces/../catalog.db",
    ],
)
@pytest.mark.parametrize("words", [[], ["--view", "v_sockets", "--as", "csv"], ["--as", "csv"]], ids=["sqlite", "view", "folder"])
def test_an_export_never_replaces_what_is_in_the_database(run: Run, file: str, target: str, words: list[str], tmp_path: Path) -> None:
    key = key_of(run("collect", file)[1])
    root = tmp_path / "database"
    (root / "traces" / "other.db").write_text("another trace")
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    status, out, err = run("export", key, "--force", *words, "-o", str(root / target.replace("KEY", key)))
    is_of_a_file = words == ["--as", "csv"] and target.endswith(".db")  # which no folder is called
    refused, says = (2, "this is the name of a file") if is_of_a_file else (1, "this is within the database itself")
    assert (status, out, says in err) == (refused, "", True)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.folder("the files of a folder")
@pytest.mark.parametrize("target", ["catalog.db", "catalog.db-wal", "traces/KEY.db", "link.db"])
def test_no_export_replaces_a_file_of_another_database(run: Run, file: str, target: str, tmp_path: Path) -> None:
    key = key_of(run("collect", file)[1])
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "database", other)
    if target == "link.db":
        if sys.platform == "win32":
            pytest.skip("links need rights there")
        (tmp_path / "link.db").symlink_to(other / "traces" / f"{key}.db")
    before = {path: path.read_bytes() for path in other.rglob("*") if path.is_file()}
    place = tmp_path / target if target == "link.db" else other / target.replace("KEY", key)
    status, out, err = run("export", key, "--force", "-o", str(place))
    assert (status, out, f"this is a file of another database, {other}" in err) == (1, "", True)
    assert {path: path.read_bytes() for path in other.rglob("*") if path.is_file()} == before
    assert run("export", key, "--mask", "-o", str(other / "traces" / f"{key}-masked.db"))[0] == 0


@pytest.mark.folder("files of it")
@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_no_link_leads_an_export_into_the_database(run: Run, file: str, tmp_path: Path) -> None:
    key = key_of(run("collect", file)[1])
    root = tmp_path / "database"
    large = tmp_path / "large"
    (root / "traces").rename(large)
    (root / "traces").symlink_to(large)
    (tmp_path / "to-catalog").symlink_to(root / "catalog.db")
    (tmp_path / "to-nothing-yet").symlink_to(root / "new.db")
    (tmp_path / "to-database").symlink_to(root)
    (tmp_path / "elsewhere.db").write_text("a trace on another disk")
    (large / "linked.db").symlink_to(tmp_path / "elsewhere.db")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for target in ("to-catalog", "to-nothing-yet", "to-database/x.db", "large/other.db", f"large/{key}.db", "elsewhere.db"):
        status, _, err = run("export", key, "--force", "-o", str(tmp_path / target))
        assert (status, "this is within the database itself" in err) == (1, True), target
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    status, _, err = run("export", key, "--force", "-o", os.devnull)
    assert (status, "no ordinary file" in err) == (1, True)


@pytest.mark.skipif(sys.platform == "win32", reason="a system on which nothing tells a program to stop")
def test_a_run_of_tests_that_is_told_to_stop_ends_and_blames_no_test(tmp_path: Path, project_root: Path) -> None:
    """A collect within a test took the signal of `timeout` for its own, and its test failed for lack of a trace."""
    file = tmp_path / "test_one.py"
    file.write_text(
        "import signal\n"
        "from collector.cli import _cancelling\n"
        "def test_one():\n"
        "    with _cancelling() as asked:\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "        assert not asked()\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(file)]
    done = subprocess.run(command, cwd=project_root, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGTERM, done.stdout + done.stderr
    assert "told to stop by SIGTERM" in done.stdout
    assert "failed" not in done.stdout
