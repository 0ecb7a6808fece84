"""Traces as NumPy arrays: the views' values, exact, unknown where unknown; the examples of the documentation; clear errors."""

import gc
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collector
from collector.errors import NothingLeft, PackageError, SourceError, StoreError
from collector.export.views import hex_columns
from collector.sample import write_sample
from collector.store.tables import TRACE
from collector.store.views import TRACE_VIEWS
from tests.build import Trace, afd
from tests.build.imported import Imported


@pytest.fixture(scope="module")
def read(sample: Imported) -> Iterator[collector.ReadTrace]:
    with collector.open_trace(sample.path) as trace:
        yield trace


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Trace().cpu(0, afd.opened(at_us=10), afd.connected(at_us=50), afd.sent(at_us=100)).write(tmp_path / "small.etl")


def plain(value: Any) -> Any:  # Any: a cell
    """What SQL would give for a cell of an array; addresses as numbers."""
    return None if value is np.ma.masked or value is None else value if isinstance(value, str) else int(value)


@pytest.mark.parametrize("view", TRACE_VIEWS)
def test_columns_are_those_of_the_view(sample: Imported, read: collector.ReadTrace, view: str) -> None:
    table = read[view.removeprefix("v_")]
    rows = sample.rows(f"SELECT * FROM {view}")
    assert table.count == len(rows)
    names = [row[1] for row in sample.rows(f"PRAGMA table_info({view})")]
    assert list(table) == names
    for place, name in enumerate(names):
        numbers = name in hex_columns(view)
        expected = [int(row[place], 16) if numbers and row[place] is not None else row[place] for row in rows]
        assert [plain(cell) for cell in table[name]] == expected, name
        assert table[name].dtype in ([np.uint64] if numbers else [np.int64, np.bool_, object])


def test_what_the_views_write_as_hex_is_a_number(sample: Imported) -> None:
    """Every text column of a view whose values all look like one number is read as one, links and hashes apart."""
    for view in TRACE_VIEWS:
        for name in [row[1] for row in sample.rows(f"PRAGMA table_info({view})")]:
            values = [row[0] for row in sample.rows(f'SELECT DISTINCT "{name}" FROM {view} WHERE "{name}" IS NOT NULL')]
            looks = bool(values) and all(isinstance(value, str) and re.fullmatch("0x[0-9a-f]+", value) for value in values)
            assert looks <= (name in hex_columns(view)), (view, name)


def test_kernel_addresses_are_exact(read: collector.ReadTrace) -> None:
    sockets = read["sockets"]
    assert sockets["endpoint"].dtype == np.uint64
    assert int(sockets["endpoint"].max()) > 1 << 63
    for endpoint, link in zip(sockets["endpoint"], sockets["socket"], strict=True):
        assert f"0x{endpoint:x}" == link.partition("@")[0]


def test_reading_a_file_gives_what_collecting_it_gives(sample: Imported, read: collector.ReadTrace, tmp_path: Path) -> None:
    write_sample(tmp_path / "sample.etl")
    with collector.read_trace(tmp_path / "sample.etl", scratch=tmp_path) as trace:
        assert trace.key == read.key == sample.report.key
        for name in trace:
            if name != "trace":
                rows, others = trace[name].structured(), read[name].structured()
                assert rows.dtype == others.dtype
                assert rows.tolist() == others.tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["sample.etl"], "what it took on disk is given back"


def test_some_columns_alone(read: collector.ReadTrace) -> None:
    some = read.table("operations", columns=("bytes", "posted_ns"))
    assert list(some) == ["bytes", "posted_ns"]
    assert np.ma.allequal(some["bytes"], read["operations"]["bytes"])


def test_no_columns_are_a_table_of_its_count(read: collector.ReadTrace) -> None:
    none = read.table("operations", columns=[])
    assert (list(none), none.count) == ([], read["operations"].count)
    assert none.where(np.zeros(none.count, dtype=bool)).count == 0
    assert none.structured().shape == (none.count,)


@pytest.mark.parametrize(("one", "pids"), [("shopfront.exe", {4312}), (4312, {4312}), ("4312", {4312})])
def test_one_process_needs_no_list(one: str | int, pids: set[int], tmp_path: Path) -> None:
    write_sample(tmp_path / "sample.etl")
    with collector.read_trace(tmp_path / "sample.etl", processes=one) as part:
        assert set(part["processes"]["pid"]) == pids


def test_rows_by_a_condition(sample: Imported, read: collector.ReadTrace) -> None:
    operations = read["operations"]
    large = operations.where(operations["bytes"] > 4000)
    assert large.count == sample.one("SELECT count(*) FROM v_operations WHERE bytes > 4000") > 0
    open_ = operations.where(np.ma.getmaskarray(operations["completed_ns"]))
    assert open_.count == sample.one("SELECT count(*) FROM v_operations WHERE completed_ns IS NULL") > 0
    assert open_.where(open_["completed_ns"] > 0).count == 0, "unknown is not greater than anything"
    with pytest.raises(ValueError, match=r"the condition has the shape \(2,\), operations has 3,059 rows"):
        operations.where(np.array([True, False]))


def test_rows_as_a_structured_array(read: collector.ReadTrace) -> None:
    operations = read["operations"]
    rows = operations.structured()
    assert rows.shape == (operations.count,)
    known = rows["completed_ns_known"]
    assert (known == ~np.ma.getmaskarray(operations["completed_ns"])).all()
    assert (rows["completed_ns"][known] == np.ma.compressed(operations["completed_ns"])).all()
    assert "posted_cpu" in (rows.dtype.names or ())


def test_tables_without_rows_have_their_columns(file: Path) -> None:
    with collector.read_trace(file) as trace:
        table = trace["allocations"]
        assert table.count == 0
        assert [table[name].dtype.kind for name in ("size", "address", "process", "end_inferred")] == ["i", "u", "O", "b"]
        assert table.structured().shape == (0,)
        assert trace["sockets"].count == 1


def test_a_part_of_a_trace(tmp_path: Path) -> None:
    write_sample(tmp_path / "sample.etl")
    with collector.read_trace(tmp_path / "sample.etl", processes=["shopfront.exe"], from_time="1s", to_time=2_000_000_000) as trace:
        assert set(trace["processes"]["image"]) == {"shopfront.exe"}
        assert trace["socket_events"].count > 0
        assert trace["socket_events"]["t_ns"].max() <= 2_000_000_000


def test_examples_of_the_documentation(project_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (project_root / "docs" / "api.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```\n", re.sub(r"\n\n[^`]*?\n\n(?=```text)", "\n\n", text), re.DOTALL)
    assert len(examples) == text.count("```python") >= 5
    monkeypatch.chdir(tmp_path)
    write_sample(tmp_path / "sample.etl")
    (tmp_path / "notes.txt").write_text("not a recording\n")
    names: dict[str, object] = {}
    for code, printed in examples:
        out = StringIO()
        with redirect_stdout(out):
            exec(code, names)  # noqa: S102 - our own documentation
        assert out.getvalue() == printed, code


def test_a_package_with_several_traces_asks_which(file: Path, tmp_path: Path) -> None:
    other = Trace().cpu(0, afd.opened(at_us=10), afd.sent(at_us=30)).write(tmp_path / "other.etl")
    package = tmp_path / "both.zip"
    with zipfile.ZipFile(package, "w") as made:
        for each in (file, other):
            made.write(each, each.name)
    with pytest.raises(PackageError, match=r"several traces in it: small\.etl, other\.etl"):
        collector.read_trace(package)
    with collector.read_trace(package, inside="other.etl") as trace, collector.read_trace(other) as alone:
        assert trace.key == alone.key
    with pytest.raises(PackageError, match=r"no trace in it is called 'third\.etl'\. There are small\.etl, other\.etl\."):
        collector.read_trace(package, inside="third.etl")


def test_what_is_wrong_is_said_and_leaves_nothing(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    cut = tmp_path / "cut.etl"
    cut.write_bytes(file.read_bytes()[:100])
    with pytest.raises(SourceError, match="there is no such file"):
        collector.read_trace(tmp_path / "missing.etl")
    with pytest.raises(collector.TraceError, match=r"cut\.etl"):
        collector.read_trace(cut)
    with pytest.raises(NothingLeft, match=r"No process of this trace is 'nobody\.exe'"):
        collector.read_trace(file, processes=["nobody.exe"])
    with pytest.raises(ValueError, match=r"^to_time is before from_time; give a range that runs forward\.$"):
        collector.read_trace(file, from_time="2s", to_time="1s")
    with pytest.raises(ValueError, match="'soon' is not a time"):
        collector.read_trace(file, from_time="soon")
    with pytest.raises(StoreError, match="nothing can be written there"):
        collector.read_trace(file, scratch=tmp_path / "missing")
    with pytest.raises(StoreError, match="read_trace takes recordings"):
        collector.open_trace(tmp_path / "missing.db")
    with pytest.raises(StoreError, match="not a database of sockscope"):
        collector.open_trace(file)
    assert list(scratch.iterdir()) == []


def test_names_that_there_are_not_list_those_there_are(read: collector.ReadTrace) -> None:
    with pytest.raises(KeyError, match=r"there is no table 'socket'\. There are trace, "):
        read["socket"]
    with pytest.raises(KeyError, match=r"sockets has no column 'port'\. It has socket, "):
        read["sockets"]["port"]
    with pytest.raises(KeyError, match="sockets has no column 'x'"):
        read.table("sockets", columns=["x"])
    assert "sockets" in read
    assert "socket" not in read
    assert len(read) == len(list(read)) == len(TRACE_VIEWS)


def test_what_is_forgotten_gives_its_place_back(file: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    trace = collector.read_trace(file, scratch=scratch)
    table = trace["sockets"]
    assert len(list(scratch.iterdir())) == 1
    del trace
    gc.collect()
    assert list(scratch.iterdir()) == []
    assert table["sends"][0] == 1


def test_losses_are_told(file: Path, tmp_path: Path) -> None:
    lossy = Trace().cpu(0, afd.opened(at_us=10), *(afd.sent(at_us=100 + n) for n in range(2000))).lose_events(3)
    with collector.read_trace(lossy.write(tmp_path / "lossy.etl")) as trace, collector.read_trace(file) as whole:
        assert (trace.is_limited, whole.is_limited) == (True, False)


def test_importing_loads_nothing_until_something_is_asked_for() -> None:
    code = (
        "import sys, collector; assert not {'numpy', 'sqlalchemy'} & set(sys.modules); collector.read_trace; "
        "assert 'numpy' in sys.modules; assert set(collector.__all__) <= {*dir(collector), *collector.__all__}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    with pytest.raises(AttributeError, match="'collector' has no attribute 'read_traces'"):
        collector.read_traces  # noqa: B018 - it is not there


def test_a_copy_elsewhere_opens(sample: Imported, tmp_path: Path) -> None:
    shutil.copy(sample.path, tmp_path / "copy.db")
    with collector.open_trace(str(tmp_path / "copy.db")) as trace:
        assert trace["trace"].count == 1
        assert repr(trace) == f"<trace {sample.report.key}: copy.db>"
        assert repr(trace["trace"]).startswith("<trace: 1 rows of key, name")
    assert set(TRACE.tables)
