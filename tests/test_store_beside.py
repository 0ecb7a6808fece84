"""Rows that a process of its own inserts: the same file, the same errors, nothing left behind by a kill on either side."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Connection, func, select

from collector.errors import CollectCancelled, StoreError, StoreFull
from collector.model.counting import Counting
from collector.model.rows import Block, Lines, Rows, block_of
from collector.store import beside, dialects
from collector.store.beside import Beside
from collector.store.bulk import Inserter, connected
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.store.tables import ROW_COLUMNS, TRACE, operation, socket_rollup
from collector.store.writer import TraceWriter
from tests.build.database import BUILT_KEY, TRACE_ROW, rows_from

SEVERAL: Rows = {
    "process": [
        (n, 4 * n, None, None, f"p{n}.exe" if n % 2 else None, None, 5, None, 5, True, n % 3 == 0, None, 1, None, 8) for n in range(130)
    ],
    "stack_ref": [
        (900, 1),
        block_of("stack_ref", {"ref": np.arange(700), "stack_n": np.ma.masked_array(np.arange(700), np.arange(700) < 0)}, count=700),
        (901, 2),
    ],
    "peer": [
        block_of(
            "peer",
            {
                "socket_n": np.arange(60),
                "address_n": np.array([2**64 - 1] * 60, np.uint64),
                "bytes_sent": np.arange(60) % 2 == 0,
                "bytes_received": [0] * 60,
                "sends": 3,
                "receives": range(60),
                "dropped": np.zeros(60, np.int8),
            },
            count=60,
        )
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> TraceFolder:
    made = TraceFolder(tmp_path)
    made.make()
    return made


def contents(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with sqlite3.connect(path) as db:
        found = {table: db.execute(f'SELECT * FROM "{table}" ORDER BY 1, 2, 3').fetchall() for table in ROW_COLUMNS}
    db.close()
    return found


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def within(seconds: float, *, pid: int) -> bool:
    """Whether a process ends in time."""
    until = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_alive(pid)


@pytest.mark.parametrize("is_beside", [False, True])
def test_both_ways_store_the_very_values(folder: TraceFolder, is_beside: bool) -> None:
    with TraceWriter(folder, BUILT_KEY, is_beside=is_beside) as writer:
        writer.write(SEVERAL)
        writer.write({"trace": rows_from("trace", [TRACE_ROW])})
        assert (writer.counts["process"], writer.counts["stack_ref"], writer.counts["peer"]) == (130, 702, 60)
        writer.finish()
    found = contents(folder.trace_path(BUILT_KEY))

    assert found["process"] == [(1, *map(as_stored, row)) for row in SEVERAL["process"] if isinstance(row, tuple)]
    assert found["stack_ref"] == [(1, n, n) for n in range(700)] + [(1, 900, 1), (1, 901, 2)]
    assert found["peer"] == [(1, n, -1, int(n % 2 == 0), 0, 3, n, 0) for n in range(60)]
    assert {type(value) for rows in found.values() for row in rows for value in row} == {int, str, type(None)}


def as_stored(value: object) -> object:
    return int(value) if isinstance(value, bool) else value


def test_numbers_that_stand_for_null_are_never_taken_for_it() -> None:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE t (trace_id, a INTEGER, b TEXT)")
    stand_ins = [-(1 << 63) + 11, -(1 << 62) - 13, -(1 << 61) - 17]
    for taken in range(4):
        values = [*stand_ins[:taken], None, 7]
        array = np.array([value or 0 for value in values])
        both = block_like(np.ma.masked_array(array, [value is None for value in values]), ["x"] * len(values))
        Inserter(db, {"t": 2}).insert({"t": [*((value, None) for value in values), both]})
        assert [row[0] for row in db.execute("SELECT a FROM t WHERE b IS NULL")] == values
        assert [row[0] for row in db.execute("SELECT a FROM t WHERE b = 'x'")] == values
        db.execute("DELETE FROM t")
    db.close()


def block_like(numbers: "np.ma.MaskedArray[tuple[int], np.dtype[np.int64]]", texts: list[str]) -> Block:
    return Block((numbers.data, texts), (np.ma.getmaskarray(numbers), None), len(texts))


def test_rows_of_another_width_are_refused() -> None:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE t (trace_id, a, b)")
    for lines in ([(1, 2, 3)], [(1, 2), (1,)], [Block((5,), (None,), 1)]):
        with pytest.raises(ValueError, match=r"t has 2 columns|argument 2"):
            Inserter(db, {"t": 2}).insert({"t": lines})
    db.close()


class Endless:
    """Counts for a minute."""

    def __init__(self, columns: Mapping[str, tuple[str, ...]]) -> None:
        assert columns == ROW_COLUMNS

    def take(self, rows: dict[str, Lines]) -> None:
        """Looks at nothing."""

    def finish(self, *, first_ns: int) -> Iterator[dict[str, Lines]]:
        time.sleep(60)
        yield {}

    def close(self) -> None:
        """Holds nothing."""


def operations() -> Rows:
    lines = [
        {
            "n": n,
            "socket_n": n % 3 + 1,
            "kind": 2,
            "outcome": 0,
            "posted_ns": n * 1000,
            "completed_ns": n * 1000 + 500,
            "end_ns": n * 1000 + 500,
        }
        for n in range(1, 2000)
    ]
    return {
        "operation": [*rows_from("operation", lines)],
        "socket": [*rows_from("socket", [{"n": n, "process_n": 1, "first_ns": 5, "sends": 9 - n} for n in (1, 2, 3)])],
    }


@pytest.mark.parametrize("is_beside", [False, True])
def test_rows_are_counted_on_their_way_on_either_side(folder: TraceFolder, is_beside: bool) -> None:
    with TraceWriter(folder, BUILT_KEY, is_beside=is_beside, counter=Counting) as writer:
        writer.write(operations())
        with writer.counting(first_ns=0):
            pass
        counts = dict(writer.counts)
        writer.write({"trace": rows_from("trace", [TRACE_ROW])})
        writer.finish()
    found = contents(folder.trace_path(BUILT_KEY))

    posted = {(row[1], row[3]): 0 for row in found["socket_rollup"]}
    names = ["trace_id", *ROW_COLUMNS["socket_rollup"]]
    for row in found["socket_rollup"]:
        posted[row[1], row[3]] += row[names.index("posted")]  # type: ignore[operator]  # a number
    assert set(posted.values()) == {1999}
    assert sum(row[-1] for row in found["operation_sum"]) == 1999  # type: ignore[misc]  # numbers
    assert counts["socket_rollup"] == len(found["socket_rollup"])
    with sqlite3.connect(folder.trace_path(BUILT_KEY)) as db:
        indexes = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")}
    db.close()
    assert indexes == {index.name for table in TRACE.sorted_tables for index in table.indexes}


@pytest.mark.parametrize("is_beside", [False, True])
def test_what_is_complete_is_read_while_counted_rows_are_inserted(folder: TraceFolder, is_beside: bool) -> None:
    with TraceWriter(folder, BUILT_KEY, is_beside=is_beside, counter=Counting) as writer:
        writer.write(operations())
        with writer.counting(first_ns=0) as settled:
            found = settled.execute(select(func.count(), func.max(operation.c.posted_ns)).select_from(operation)).one()
        assert (found, writer.connection.execute(select(func.count()).select_from(operation)).scalar_one()) == ((1999, 1_999_000), 1999)
        assert writer.counts["socket_rollup"] == writer.connection.execute(select(func.count()).select_from(socket_rollup)).scalar_one() > 0


def test_counted_rows_wait_until_the_file_was_opened(folder: TraceFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who opens a file that grows at that moment takes it for damaged."""
    found: list[int] = []
    go_on = Beside.go_on

    def going_on(self: Beside) -> None:
        time.sleep(0.5)
        with closing(sqlite3.connect(f"{folder.part_path(BUILT_KEY).as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            found.extend(db.execute("SELECT count(*) FROM socket_rollup").fetchone())
        go_on(self)

    monkeypatch.setattr(Beside, "go_on", going_on)
    with TraceWriter(folder, BUILT_KEY, is_beside=True, counter=Counting) as writer:
        writer.write(operations())
        with writer.counting(first_ns=0):
            pass
        assert found == [0]
        assert writer.counts["socket_rollup"] > 0


def damage(part: Path, table: str) -> None:
    """Overwrite the root page of a table."""
    with closing(sqlite3.connect(f"{part.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    with part.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 200)


def test_a_table_that_is_damaged_while_counted_rows_are_inserted_is_found(folder: TraceFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    reach = Beside.reach

    def reached(self: Beside, phase: str) -> None:
        reach(self, phase)
        damage(folder.part_path(BUILT_KEY), "operation")

    monkeypatch.setattr(Beside, "reach", reached)
    with TraceWriter(folder, BUILT_KEY, is_beside=True, counter=Counting) as writer:
        writer.write(operations())
        with pytest.raises(StoreError, match="is damaged"), writer.counting(first_ns=0):
            pass
    assert list(folder.traces_path.iterdir()) == []


@pytest.mark.parametrize(("is_beside", "table"), [(False, "operation"), (True, "operation"), (False, "socket"), (True, "socket_rollup")])
def test_a_table_that_is_damaged_later_is_found(folder: TraceFolder, is_beside: bool, table: str) -> None:
    with TraceWriter(folder, BUILT_KEY, is_beside=is_beside, counter=Counting) as writer:
        writer.write(operations())
        with writer.counting(first_ns=0, changing=("operation",)):
            pass
        writer.write({"trace": rows_from("trace", [TRACE_ROW])})
        writer.index()
        damage(writer.part, table)
        with pytest.raises(StoreError, match="is damaged"), writer.checked():
            pass
    assert list(folder.traces_path.iterdir()) == []


@pytest.mark.parametrize("is_beside", [False, True])
def test_every_table_is_checked_once(folder: TraceFolder, monkeypatch: pytest.MonkeyPatch, is_beside: bool) -> None:
    checked: list[str] = []
    check = dialects.check_file

    def counted(connection: Connection, path: Path, tables: Collection[str] | None = None) -> None:
        checked.extend(["all"] if tables is None else tables)
        check(connection, path, tables)

    monkeypatch.setattr(dialects, "check_file", counted)
    with TraceWriter(folder, BUILT_KEY, is_beside=is_beside, counter=Counting) as writer:
        writer.write(operations())
        with writer.counting(first_ns=0, changing=("socket",)):
            pass
        assert set(checked) == ({"operation"} if is_beside else set())
        writer.write({"trace": rows_from("trace", [TRACE_ROW])})
        writer.index()
        with writer.checked():
            pass
        writer.finish()
    assert sorted(checked) == sorted(TRACE.tables)


def fill(folder: TraceFolder, *pieces: Rows, page_limit: int | None = None, should_cancel: Callable[[], bool] = lambda: False) -> None:
    """Write pieces through a process and wait for it."""
    with TraceWriter(folder, BUILT_KEY, is_beside=True, page_limit=page_limit, should_cancel=should_cancel) as writer:
        for piece in pieces:
            writer.write(piece)
        assert writer.connection


def test_a_full_disk_is_said(folder: TraceFolder) -> None:
    rows: Rows = {"process": [*rows_from("process", [{"n": n, "image": "a" * 100} for n in range(20_000)])]}
    with pytest.raises(StoreFull, match="no space is left"):
        fill(folder, rows, page_limit=200)
    assert list(folder.traces_path.iterdir()) == []


def test_what_the_process_cannot_do_is_said(folder: TraceFolder) -> None:
    with pytest.raises(StoreError, match="writing the trace failed \\(ValueError"):
        fill(folder, {"process": [(1, 2)]})
    assert list(folder.traces_path.iterdir()) == []


def test_rows_wait_in_bounded_memory_and_waiting_can_be_cancelled(folder: TraceFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "WAITING_BYTES", 1000)
    piece: Rows = {"stack_ref": [block_of("stack_ref", {"ref": np.arange(200_000), "stack_n": 1}, count=200_000)]}
    with pytest.raises(CollectCancelled):
        fill(folder, *[piece] * 100, should_cancel=lambda: True)
    assert list(folder.traces_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_a_killed_writing_process_is_said_and_nothing_stays(folder: TraceFolder) -> None:
    with TraceWriter(folder, BUILT_KEY, is_beside=True) as writer:
        writer.write(SEVERAL)
        assert writer.beside_pid is not None
        os.kill(writer.beside_pid, signal.SIGKILL)
        with pytest.raises(StoreError, match=r"the process that writes the trace was ended \(exit status -9\)"):
            assert writer.connection
    assert list(folder.traces_path.iterdir()) == []


def test_counting_in_the_process_can_be_cancelled(folder: TraceFolder) -> None:
    begun = time.monotonic()
    with (
        pytest.raises(CollectCancelled),
        TraceWriter(folder, BUILT_KEY, is_beside=True, counter=Endless, should_cancel=lambda: time.monotonic() - begun > 1) as writer,
        writer.counting(first_ns=0),
    ):
        pass
    assert time.monotonic() - begun < 20
    assert list(folder.traces_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes where Linux has them")
@pytest.mark.parametrize("is_counting", [False, True])
def test_a_killed_collector_leaves_no_process_and_the_next_one_clears_up(folder: TraceFolder, is_counting: bool) -> None:
    code = f"""
        import sys, threading, time
        from collector.store.catalog import Catalog
        from collector.store.engine import TraceFolder
        from collector.store.writer import TraceWriter
        from tests.test_store_beside import Endless
        folder = TraceFolder({str(folder.root)!r})
        Catalog(folder).begin({BUILT_KEY!r}, name="x.etl", path="x.etl", size_bytes=1, version="0")
        writer = TraceWriter(folder, {BUILT_KEY!r}, is_beside=True, counter=Endless)
        writer.write({{"stack_ref": [(n, n) for n in range(50_000)]}})
        pid = writer.beside_pid
        if {is_counting}:
            threading.Thread(target=lambda: writer.counting(first_ns=0).__enter__(), daemon=True).start()
            time.sleep(2)
        print(pid, flush=True)
        time.sleep(60)
    """
    collector = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    assert collector.stdout is not None
    pid = int(collector.stdout.readline())
    assert is_alive(pid)
    collector.kill()
    collector.wait()
    collector.stdout.close()

    assert within(60, pid=pid)  # at once; on a busy machine it may still be starting
    assert not folder.has_trace(BUILT_KEY)
    assert Catalog(folder).settle() == 1
    assert not folder.part_path(BUILT_KEY).exists()


def test_a_file_that_was_cleared_away_is_not_made_again(tmp_path: Path) -> None:
    gone = tmp_path / "gone #1?.db.part"
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        connected(str(gone))
    assert not gone.exists()
    gone.touch()
    connected(str(gone)).close()
