"""What leaves as tables: the same rows as in the views, in every form, masked or of a part, in whole or not at all."""

import csv
import importlib.util
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from app.cli import main
from collector.export.forms import FORMS, Kind, Named, write_form
from collector.export.slicing import SUMS
from collector.export.views import VIEWS, columns_of, export_views, opened
from collector.limits import Limits, Who, parse_which_socket
from collector.pipeline import import_trace
from collector.plain import inert_cell
from collector.sample import write_sample
from collector.source import Source
from collector.store import locks
from collector.store.engine import TraceFolder
from collector.store.masking import mask_file
from collector.store.stores import open_store
from collector.store.tables import TRACE
from tests.build.database import built_database
from tests.build.imported import Imported
from tests.build.small_trace import KEY, SMALL

Run = Callable[..., tuple[int, str, str]]
SECOND = 1_000_000_000
HOSTILE = "=cmd|' /c calc'!A1.exe"
LARGE = (1 << 63) - 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> TraceFolder:
    """The small trace with a formula for a name, a number that no double holds, and a note."""
    rows = {name: [dict(row) for row in rows] for name, rows in SMALL.items()}
    rows["process"][0] |= {"image": HOSTILE, "command_line": 'a "quoted", line\r\nand\ttab \u202e'}
    rows["socket"][0]["bytes_sent"] = LARGE
    made = built_database(tmp_path_factory.mktemp("export"), rows, key=KEY, name="small.etl")
    with sqlite3.connect(made.catalog_path) as db:
        for key, text in ((KEY, "look at this"), ("other", "not mine")):
            db.execute("INSERT INTO note (key, object, text, created_utc) VALUES (?, '', ?, '2025-01-01T00:00:00Z')", (key, text))
    db.close()
    return made


@pytest.fixture
def run(folder: TraceFolder, capsys: pytest.CaptureFixture[str]) -> Run:
    def export(*words: object) -> tuple[int, str, str]:
        status = main(["export", KEY, "--database", str(folder.root), *map(str, words)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return export


def rows_of(path: Path, sql: str) -> list[tuple[Any, ...]]:  # Any: a cell
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def read(path: Path, form: str) -> list[dict[str, Any]]:  # Any: a cell
    """The rows of a file that was written, as the form has them."""
    if form == "csv":
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    if form == "jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    table: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return table


def expected(columns: list[Named], row: tuple[Any, ...], form: str) -> dict[str, Any]:
    """What a form makes of a row of a view."""

    def cell(value: Any, kind: Kind) -> Any:
        if form == "csv":
            return "" if value is None else inert_cell(value) if kind is Kind.TEXT else str(value)
        if value is None or kind is Kind.TEXT:
            return value
        if kind is Kind.FLAG:
            return bool(value)
        return str(value) if form == "jsonl" and abs(value) >= 1 << 53 else value

    return {column.name: cell(value, column.kind) for column, value in zip(columns, row, strict=True)}


@pytest.mark.parametrize("form", FORMS)
def test_every_view_in_every_form_has_the_rows_of_the_view(sample: Imported, form: str, tmp_path: Path) -> None:
    key = sample.report.key
    numbers = export_views(sample.folder, key, VIEWS, form, tmp_path / "all", lambda: False)

    assert {path.name for path in (tmp_path / "all").iterdir()} == {f"{view}.{form}" for view in VIEWS}
    engine = opened(sample.path, lambda: False)
    with engine.connect() as connection:
        for view in VIEWS:
            if view == "v_notes":
                continue
            columns = columns_of(connection, view)
            names = ", ".join(f'"{column.name}"' for column in columns)
            rows = sample.rows(f"SELECT {names} FROM {view}")
            assert read(tmp_path / "all" / f"{view}.{form}", form) == [expected(columns, row, form) for row in rows], view
            assert numbers[view] == len(rows)
    assert sum(numbers.values()) > 20_000
    assert [path.name for path in tmp_path.iterdir()] == ["all"]


def test_what_a_column_holds_is_what_its_view_says(sample: Imported) -> None:
    kinds = {Kind.NUMBER: int, Kind.FLAG: int, Kind.TEXT: str}
    with opened(sample.path, lambda: False).connect() as connection:
        for view in VIEWS[:-1]:
            columns = columns_of(connection, view)
            for row in sample.rows(f"SELECT * FROM {view}"):
                for column, value in zip(columns, row, strict=True):
                    assert value is None or type(value) is kinds[column.kind], (view, column)


@pytest.mark.parametrize("form", FORMS)
def test_large_numbers_are_exact_and_texts_stay_texts(run: Run, form: str, tmp_path: Path) -> None:
    for view in ("v_sockets", "v_processes"):
        assert run("--view", view, "-o", tmp_path / f"{view}.{form}")[0] == 0
    socket = max(read(tmp_path / f"v_sockets.{form}", form), key=lambda row: int(row["bytes_sent"]))
    process = next(row for row in read(tmp_path / f"v_processes.{form}", form) if row["command_line"])
    assert int(socket["bytes_sent"]) == LARGE
    assert type(socket["bytes_sent"]) is (int if form == "parquet" else str)
    assert socket["endpoint"].startswith("0xffff")
    assert process["image"] == ("'" + HOSTILE if form == "csv" else HOSTILE)
    assert process["command_line"] == 'a "quoted", line\r\nand\ttab \u202e'


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", " =1", "|x", "%x"])
def test_no_cell_of_csv_is_a_formula(cell: str, tmp_path: Path) -> None:
    with (tmp_path / "x.csv").open("wb") as file, write_form("csv", [Named("a", Kind.TEXT), Named("b", Kind.NUMBER)], file) as table:
        table.write([(cell, -1)])
    assert read(tmp_path / "x.csv", "csv") == [{"a": "'" + cell, "b": "-1"}]


def test_notes_of_the_trace_alone(run: Run, tmp_path: Path) -> None:
    assert run("--view", "v_notes", "-o", tmp_path / "n.jsonl")[0] == 0
    assert [(row["key"], row["text"]) for row in read(tmp_path / "n.jsonl", "jsonl")] == [(KEY, "look at this")]


@pytest.mark.parametrize("form", FORMS)
def test_a_masked_view_is_the_view_of_the_masked_trace(folder: TraceFolder, form: str, tmp_path: Path) -> None:
    def mask(path: Path) -> None:
        mask_file(path, b"one secret", lambda: False)

    from collector.store.copying import copy_trace

    copy_trace(folder, KEY, tmp_path / "masked.db", lambda: False, mask)
    export_views(folder, KEY, VIEWS, form, tmp_path / "views", lambda: False, mask)
    with opened(tmp_path / "masked.db", lambda: False).connect() as connection:
        for view in VIEWS:
            columns = columns_of(connection, view)
            rows = rows_of(tmp_path / "masked.db", f"SELECT * FROM {view}")
            assert read(tmp_path / "views" / f"{view}.{form}", form) == [expected(columns, row, form) for row in rows], view
    written = b"".join(path.read_bytes() for path in (tmp_path / "views").iterdir())
    for secret in (b"calc", b"quoted", b"198.51.100.7"):
        assert secret not in written


class Parts:
    """The sample, whole and collected in part, in one folder."""

    def __init__(self, root: Path) -> None:
        self.file = root / "sample.etl"
        write_sample(self.file)
        self.folder = TraceFolder(root / "database")
        self.key = self.collect(Limits())

    def collect(self, limits: Limits) -> str:
        with Source.open(self.file) as source:
            return import_trace(source, self.folder, limits=limits).key


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return Parts(tmp_path_factory.mktemp("parts"))


@pytest.mark.parametrize(
    "limits",
    [
        Limits((Who("shopfront.exe", image="shopfront.exe"),)),
        Limits(from_ns=2 * SECOND, to_ns=4 * SECOND),
        Limits((Who("5024", pid=5024), Who("4312", pid=4312)), from_ns=SECOND),
    ],
    ids=["process", "range", "both"],
)
def test_a_part_of_a_stored_trace_is_what_collecting_that_part_gives(parts: Parts, limits: Limits, tmp_path: Path) -> None:
    from collector.export.slicing import cut
    from collector.store.copying import copy_trace

    copy_trace(parts.folder, parts.key, tmp_path / "part.db", lambda: False, lambda path: cut(path, limits, lambda: False))
    collected = parts.folder.trace_path(parts.collect(limits))

    fewer = {"address", "address_name", "stack", "stack_frame", "stack_ref"}  # those that nothing in the part names left the file
    for table in TRACE.tables:
        mine, theirs = (set(rows_of(path, f'SELECT * FROM "{table}"')) for path in (tmp_path / "part.db", collected))
        if table in fewer:
            assert mine <= theirs, table
        elif table == "problem":
            assert {row[2:9] for row in mine} == {row[2:9] for row in theirs}  # the advice is another
        elif table == "trace":
            names = [column.name for column in TRACE.tables["trace"].c if column.name != "collected_utc"]
            sql = f"SELECT {', '.join(names)} FROM trace"
            assert rows_of(tmp_path / "part.db", sql) == rows_of(collected, sql)
        else:
            assert mine == theirs, table
    for view in VIEWS[:-1]:
        if view not in ("v_trace", "v_problems", "v_stacks"):
            assert sorted(rows_of(tmp_path / "part.db", f"SELECT * FROM {view}"), key=repr) == sorted(
                rows_of(collected, f"SELECT * FROM {view}"), key=repr
            ), view
    assert set(SUMS) <= set(TRACE.tables)


def test_one_socket_with_what_it_touched(sample: Imported, tmp_path: Path) -> None:
    (link,) = sample.rows("SELECT socket FROM v_operations WHERE allocation IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1")[0]
    target = tmp_path / "one.db"
    words = ["export", sample.report.key, "--socket", link, "-o", str(target), "--database", str(sample.folder.root)]
    assert main(words) == 0

    def both(sql: str) -> None:
        """A query has the same answer in the part and in the whole."""
        assert rows_of(target, sql) == sample.rows(sql) != []

    both(f"SELECT * FROM v_sockets WHERE socket = '{link}'")
    both(f"SELECT * FROM v_operations WHERE socket = '{link}' ORDER BY posted_ns, buffer")
    both(f"SELECT * FROM v_socket_events WHERE socket = '{link}' ORDER BY t_ns, seq")
    (blocks,) = sample.rows(f"SELECT group_concat(DISTINCT quote(allocation)) FROM v_operations WHERE socket = '{link}'")[0]
    both(f"SELECT * FROM v_allocations WHERE allocation IN ({blocks}) ORDER BY allocation")
    both(
        "SELECT stack, frame, symbol, module FROM v_stacks WHERE stack IN "
        f"(SELECT stack FROM v_operations WHERE socket = '{link}') ORDER BY 1, 2"
    )
    assert rows_of(target, "SELECT socket FROM v_sockets") == [(link,)]
    assert rows_of(target, f"SELECT count(*) FROM v_allocations WHERE allocation NOT IN ({blocks})") == [(0,)]
    remotes = {row[0] for row in rows_of(target, "SELECT text FROM address")}
    assert len(remotes) < 10 < len({row[0] for row in sample.rows("SELECT text FROM address")})
    assert rows_of(target, "SELECT count(*) FROM v_findings WHERE socket IS NOT NULL AND socket <> ?".replace("?", f"'{link}'")) == [(0,)]


def test_a_part_opens_in_the_dashboard_and_says_that_it_is_one(sample: Imported, tmp_path: Path) -> None:
    from collector.store.catalog import Catalog
    from tests.build.served import served

    (link,) = sample.rows("SELECT socket FROM v_operations WHERE allocation IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1")[0]
    limits = Limits(sockets=(parse_which_socket(link),))
    elsewhere = TraceFolder(tmp_path / "elsewhere")
    elsewhere.make()
    target = elsewhere.trace_path(sample.report.key + limits.suffix)
    assert main(["export", sample.report.key, "--socket", link, "-o", str(target), "--database", str(sample.folder.root)]) == 0
    assert Catalog(elsewhere).settle() == 1
    with served(elsewhere) as client:
        page = client.get(f"/t/{sample.report.key}/sockets/{link}", follow_redirects=True)
        assert (page.status_code, limits.suffix in page.url.path) == (200, True)
        for name in ("", "/trust", "/processes", "/sockets", "/operations", "/heap", "/allocations", "/stacks", "/overlaps", "/events"):
            assert client.get(f"/t/{sample.report.key}{limits.suffix}{name}").status_code == 200, name
        assert f"Only a part of this trace was stored: socket {link}." in client.get(f"/t/{sample.report.key}{limits.suffix}/trust").text


def test_what_the_machine_knew_of_other_sockets_stays_at_home(tmp_path: Path) -> None:
    """Names of their addresses, what the network stack said of them, memory of the process."""
    ips = [bytes(10) + b"\xff\xff" + bytes((192, 0, 2, last)) for last in (1, 2)]
    flow = {"first_ns": 1, "last_ns": 5, "local": "10.0.0.5:1", "protocol": 6}
    rows: dict[str, list[dict[str, object]]] = {
        "process": [{"pid": 4120}],
        "address": [{"text": f"192.0.2.{n}:443", "ip": ip, "port": 443} for n, ip in enumerate(ips, 1)],
        "socket": [
            {"endpoint": 0xE0 + n, "process_n": 1, "first_ns": 0, "created_ns": 0, "last_ns": 9, "end": "open_at_end", "remote_n": n}
            for n in (1, 2)
        ],
        "address_name": [
            {"ip": ip, "address": f"192.0.2.{n}", "name": f"host{n}.example", "source": "x", "first_ns": 0, "last_ns": 0}
            for n, ip in enumerate(ips, 1)
        ],
        "transport_flow": [flow | {"socket_n": n, "remote_ip": ips[(n or 2) - 1]} for n in (1, 2, None)],
        "transport_event": [{"flow_n": n, "t_ns": 3} for n in (1, 2, 3)],
        "virtual_memory": [{"t_ns": 3, "process_n": 1}],
        "catalog_change": [{"t_ns": 3, "what": "installed"}],
    }
    folder = built_database(tmp_path / "neighbours", rows, key=KEY)
    target = tmp_path / "one.db"
    assert main(["export", KEY, "--socket", "0xe1@0", "-o", str(target), "--database", str(folder.root)]) == 0
    assert rows_of(target, "SELECT name FROM v_address_names") == [("host1.example",)]
    assert rows_of(target, "SELECT socket FROM v_transport_flows") == [("0xe1@0",)]
    assert rows_of(target, "SELECT flow_n FROM transport_event") == [(1,)]
    assert rows_of(target, "SELECT count(*) FROM virtual_memory") == [(0,)]
    assert rows_of(target, "SELECT count(*) FROM catalog_change") == [(0,)]
    assert b"host2" not in target.read_bytes()
    assert rows_of(folder.trace_path(KEY), "SELECT count(*) FROM v_address_names") == [(2,)], "the trace itself stays as it was"


def test_notes_on_other_things_stay_at_home(sample: Imported, tmp_path: Path) -> None:
    links = [row[0] for row in sample.rows("SELECT socket FROM v_sockets LIMIT 2")]
    objects = ("", f"sockets/{links[0]}", f"sockets/{links[1]}")
    with sqlite3.connect(sample.folder.catalog_path) as db:
        for about in objects:
            db.execute(
                "INSERT INTO note (key, object, text, created_utc) VALUES (?, ?, 'a note', '2025-01-01T00:00:00Z')",
                (sample.report.key, about),
            )
    db.close()
    target = tmp_path / "one.db"
    words = ["export", sample.report.key, "--socket", links[0], "-o", str(target), "--database", str(sample.folder.root)]
    assert main(words) == 0
    with sqlite3.connect(sample.folder.catalog_path) as db:
        db.execute("DELETE FROM note WHERE text = 'a note'")
    db.close()
    assert [row[0] for row in rows_of(target, "SELECT object FROM v_notes ORDER BY object")] == ["", f"sockets/{links[0]}"]
    key = rows_of(target, "SELECT key FROM v_trace")[0]
    assert set(rows_of(target, "SELECT key FROM v_notes")) == {key}


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("--view", "v_nothing"), 2, "v_nothing: there is no such view. There are v_trace, "),
        (("--view", "v_sockets", "--as", "sqlite"), 2, "--view is for csv, jsonl and parquet"),
        (("--view", "v_sockets", "-o", "x.db", "--as", "sqlite"), 2, "--view is for csv"),
        (("--from", "2s", "--to", "1s"), 2, "--to is before --from"),
        (("--socket", "nothing"), 2, "'nothing' is not a socket"),
        (("--socket", "0x12@5"), 1, "No socket of this trace is 0x12@5, so nothing was exported."),
        (("--process", "nobody.exe"), 1, "No process of this trace is 'nobody.exe', so nothing was exported."),
        (("--from", "5000s"), 1, "nothing of it is from 5000 s, so nothing was exported."),
        (("--view", "v_sockets", "-o", "x.db"), 2, "a SQLite file has all views. Leave it out, or name the form with --as."),
        (("--view", "v_sockets", "-o", "x.SQLITE"), 2, "--view is for csv"),
        (("--view", "v_sockets", "--view", "v_operations", "-o", "two.csv"), 2, "two.csv: this is the name of a file, and a folder of"),
        (("--view", "v_sockets", "-o", "y.xlsx"), 2, "y.xlsx: .xlsx is the end of no form of a view. There are .csv,"),
        (("-o", "all.csv"), 2, "Leave .csv out, or name one --view."),
        (("--as", "datasette", "-o", "x.db"), 2, "x.db: this is the name of a file"),
        (("--as", "tar"), 2, "invalid choice: 'tar'"),
        (("--view", "v_sockets", "-o", "missing/x.csv"), 1, "cannot be written (No such file or directory)"),
    ],
)
def test_what_cannot_be_is_said_and_leaves_nothing(
    run: Run, folder: TraceFolder, words: tuple[str, ...], status: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(folder.traces_path.iterdir())
    got, out, err = run(*words)
    assert (got, out) == (status, "")
    assert says in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
    assert sorted(folder.traces_path.iterdir()) == before


def test_a_form_that_is_named_goes_before_the_end_of_the_name(run: Run, tmp_path: Path) -> None:
    assert run("--view", "v_sockets", "--as", "csv", "-o", tmp_path / "x.db")[0] == 0
    assert (tmp_path / "x.db").read_text(encoding="utf-8").startswith("socket,")
    assert run("--view", "v_sockets", "--as", "csv", "-o", tmp_path / "x.txt")[0] == 0
    (tmp_path / "of.may").mkdir()
    assert run("--view", "v_sockets", "-o", tmp_path / "of.may")[0] == 0, "a folder may have any name"
    assert run("--view", "v_sockets", "--view", "v_operations", "-o", tmp_path / "two.may")[0] == 0, "also one that is made"
    (tmp_path / "a.csv").mkdir()
    assert run("--as", "csv", "-o", tmp_path / "a.csv")[0] == 0, "a folder that is there may have any name"


WAYS = [[], ["--mask"], ["--process", "4242"], ["--view", "v_sockets", "--as", "csv"], ["--as", "csv"], ["--as", "datasette"]]


@pytest.mark.parametrize("words", WAYS, ids=" ".join)
@pytest.mark.parametrize("damage", ["text", "pages"])
@pytest.mark.folder("damage of a file")
def test_a_damaged_trace_is_named_and_not_the_copy_of_it(
    damage: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = built_database(tmp_path / "database", SMALL, key=KEY, name="small.etl")
    whole = made.trace_path(KEY).read_bytes()
    made.trace_path(KEY).write_bytes(b"a text, and no database " * 400 if damage == "text" else whole[:100] + b"\xff" * (len(whole) - 100))
    assert main(["export", KEY, *words, "-o", str(tmp_path / "out"), "--database", str(made.root)]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"{KEY}: the file of this trace is damaged (" in err
    assert "Collect its file again, then export it." in err
    assert ".part" not in err
    assert ".export" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["database"]


@pytest.mark.folder("damage of a file")
def test_damage_that_only_its_copy_meets_is_the_traces(folder: TraceFolder, tmp_path: Path) -> None:
    from collector.errors import StoreDamaged
    from collector.store.copying import copy_trace

    def meet(path: Path) -> None:
        path.write_bytes(b"no database " * 400)
        mask_file(path, b"one secret", lambda: False)

    with pytest.raises(StoreDamaged, match=rf"^{KEY}: the file of this trace is damaged \("):
        copy_trace(folder, KEY, tmp_path / "x.db", lambda: False, meet)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("verb", "then"), [(["export"], "export it"), (["report", "--process", "4242"], "report on it")], ids=["export", "report"]
)
@pytest.mark.parametrize("is_whole", [True, False])
def test_a_trace_without_its_file_says_so(
    verb: list[str], then: str, is_whole: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = built_database(tmp_path / "database", SMALL, key=KEY, name="small.etl")
    made.trace_path(KEY).unlink()
    if not is_whole:
        with sqlite3.connect(made.catalog_path) as db:
            db.execute("UPDATE trace_entry SET state = 'interrupted'")
        db.close()
    name, *words = verb
    assert main([name, KEY, *words, "-o", str(tmp_path / "out"), "--database", str(made.root)]) == 1
    err = capsys.readouterr().err
    missing = f"the file of this trace is missing: {open_store(made.root).whereabouts(KEY)}. Collect small.etl again, then {then}."
    assert (missing if is_whole else f"this trace is not complete (interrupted). Collect its file again, then {then}.") in err


def test_an_empty_view_is_a_file_with_a_head_and_a_word(run: Run, tmp_path: Path) -> None:
    status, out, err = run("--view", "v_resizes", "--process", "4242", "--from", "59s", "-o", tmp_path / "r.csv")
    assert status == 0
    assert out.endswith("(0 rows).\n")
    assert "v_resizes: nothing of this is in that part of the trace." in err
    assert (tmp_path / "r.csv").read_text() == "allocation,t_ns,size,old_size\n"


def test_files_are_replaced_by_force_alone_and_folders_never(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "s.csv"
    target.write_text("older")
    status, _, err = run("--view", "v_sockets", "-o", target)
    assert (status, "is there already" in err, target.read_text()) == (1, True, "older")
    assert run("--view", "v_sockets", "-o", target, "--force")[0] == 0
    assert target.read_text().startswith("socket,")
    assert run("--as", "jsonl", "-o", tmp_path)[0] == 0
    made = tmp_path / f"{KEY}-jsonl"
    assert len(list(made.iterdir())) == len(VIEWS)
    status, _, err = run("--as", "jsonl", "-o", tmp_path, "--force")
    assert (status, "what is in a folder is never replaced" in err) == (1, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [made.name, "s.csv"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.skipif(sys.platform == "win32", reason="limits on files are set by the shell")
def test_a_full_disk_leaves_nothing_and_keeps_what_was_there(sample: Imported, form: str, masked: bool, tmp_path: Path) -> None:
    target = tmp_path / f"mine.{form}"
    target.write_text("older")
    kept = sorted(sample.folder.traces_path.iterdir())
    words = f'export {sample.report.key} --force {"--mask" if masked else ""} --view v_socket_events -o "{target}"'
    limit = {"parquet": 40, "csv": 200, "jsonl": 200}[form]  # blocks of 512 bytes
    command = f'ulimit -f {limit}; exec "{sys.executable}" -m app.cli {words} --database "{sample.folder.root}"'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "no space is left" in done.stderr
    assert done.stderr.count("\n") == 1, "one line, no traceback"
    assert ([path.name for path in tmp_path.iterdir()], target.read_text()) == ([target.name], "older")
    assert sorted(sample.folder.traces_path.iterdir()) == kept


@pytest.mark.parametrize("form", FORMS)
def test_cancelling_leaves_nothing(sample: Imported, form: str, tmp_path: Path) -> None:
    from collector.errors import CollectCancelled

    looks = iter([False])
    with pytest.raises(CollectCancelled, match="Nothing was exported"):
        export_views(sample.folder, sample.report.key, ["v_socket_events"], form, tmp_path / "x", lambda: next(looks, True))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.folder("files beside a trace's")
def test_what_a_killed_export_left_goes_with_the_next(folder: TraceFolder, run: Run, tmp_path: Path) -> None:
    left = folder.traces_path / f"{KEY}.99.export"
    held = folder.traces_path / f"{KEY}.98.export"
    for path in (left, left.with_name(left.name + ".lock"), held):
        path.write_bytes(b"x")
    with locks.held(held.with_name(held.name + ".lock"), "busy"):
        assert run("--view", "v_sockets", "--mask", "-o", tmp_path / "s.csv")[0] == 0
        assert [path.name for path in folder.traces_path.glob("*.export")] == [held.name], "what another process makes now stays"
    assert run("--view", "v_sockets", "--mask", "-o", tmp_path / "t.csv")[0] == 0
    assert list(folder.traces_path.glob("*.export*")) == []


def test_without_pyarrow_parquet_says_what_to_install(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    status, _, err = run("--view", "v_sockets", "-o", tmp_path / "s.parquet")
    assert (status, 'pip install "sockscope[parquet]"' in err) == (1, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.folder("the version of a file")
def test_a_trace_of_an_older_version_is_named(folder: TraceFolder, run: Run, tmp_path: Path) -> None:
    path = folder.trace_path(KEY)
    before = path.read_bytes()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE alembic_version SET version_num = 't0001'")
    db.close()
    try:
        status, _, err = run("--view", "v_sockets", "-o", tmp_path / "s.csv")
    finally:
        path.write_bytes(before)
    assert (status, "sockscope migrate" in err, list(tmp_path.iterdir())) == (1, True, [])


@pytest.mark.parametrize("text", ["0x12@5", "12@5", "0X12", "ffffe000a1b2c3d4@-7"])
def test_sockets_as_links_name_them(text: str) -> None:
    which = parse_which_socket(text)
    assert which == parse_which_socket(which.text)
    assert which.text.startswith("0x")


@pytest.mark.parametrize("text", ["", "@5", "0x", "xyz", "0x1ffffffffffffffff", "0x12@", "0x12@5.5", "0x12@9999999999999999999"])
def test_what_names_no_socket(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a socket|longer than any trace"):
        parse_which_socket(text)
