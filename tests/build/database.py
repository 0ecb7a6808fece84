"""Databases filled by hand: rows as dicts, everything a test does not speak of by default."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy import Boolean, Integer, LargeBinary, Table, Text

from collector.model.rows import Row
from collector.model.socket_sums import socket_sums
from collector.model.tallies import Tallies
from collector.store.catalog import Catalog
from collector.store.copies import FindingCopy, ProblemCopy
from collector.store.engine import TraceFolder
from collector.store.tables import ROW_COLUMNS, TRACE
from collector.store.writer import TraceWriter

__all__ = ["BUILT_KEY", "built_database", "rows_from"]

BUILT_KEY = "0123456789ab"

TRACE_ROW: dict[str, object] = {
    "key": BUILT_KEY,
    "name": "built.etl",
    "state": "complete",
    "start_utc": "2025-03-04T10:00:00.000000Z",
    "end_ns": 60_000_000_000,
    "clock": "qpc",
    "ticks_per_second": 10_000_000,
    "start_ticks": 0,
    "pointer_size": 8,
    "processors": 4,
    "os_build": "10.0.19045",
    "records": 0,
    "events_lost": 0,
    "buffers_lost": 0,
    "collected_utc": "2025-03-05T08:00:00+00:00",
    "collector_version": "0.1.0",
}


def built_database(
    root: Path, rows: Mapping[str, Sequence[Mapping[str, object]]], *, key: str = BUILT_KEY, name: str = "built.etl"
) -> TraceFolder:
    """A folder with one complete trace whose tables hold `rows`.

    A row needs only what the test speaks of: `n` counts from 1, required columns are 0, false or '', others NULL. The `trace` row is
    there without being named. Several traces: call again with another key.
    """
    folder = TraceFolder(root)
    catalog = Catalog(folder)
    trace_row = {**TRACE_ROW, "key": key, "name": name, **(rows["trace"][0] if rows.get("trace") else {})}
    filled = {table: rows_from(table, lines) for table, lines in rows.items() if table != "trace"}
    filled["trace"] = rows_from("trace", [trace_row])
    catalog.begin(key, name=name, path=f"C:\\traces\\{name}", size_bytes=1 << 20, version="0.1.0")
    with TraceWriter(folder, key) as writer:
        writer.write(filled)
        tallies = Tallies()
        tallies.take({table: [*lines] for table, lines in filled.items()})
        for sums in (*tallies.finish(), *socket_sums(writer.connection)):
            writer.write(sums)
        writer.finish()
    kept = ("start_utc", "end_ns", "records", "events_lost", "buffers_lost")
    counts = {
        f"{noun}s" if noun != "process" else "processes": len(filled.get(noun, ()))
        for noun in ("process", "socket", "operation", "allocation")
    }
    catalog.complete(
        key,
        {name: trace_row[name] for name in kept} | counts,
        [ProblemCopy(*row[1:]) for row in filled.get("problem", ())],  # type: ignore[arg-type]  # rows are untyped tuples
        [FindingCopy(row[1], row[2], row[3], row[7], row[10]) for row in filled.get("finding", ())],  # type: ignore[arg-type]
    )
    return folder


def rows_from(table: str, lines: Sequence[Mapping[str, object]]) -> list[Row]:
    """Dicts as row tuples of a table. Raises KeyError for a column that it does not have."""
    declared = TRACE.tables[table]
    names = ROW_COLUMNS[table]
    filled = []
    for number, line in enumerate(lines, start=1):
        if strange := set(line) - set(names):
            raise KeyError(f"table {table} has no column {sorted(strange)}")
        defaults = {name: _default(declared, name) for name in names}
        if "n" in defaults:
            defaults["n"] = number
        filled.append(tuple((defaults | dict(line))[name] for name in names))
    return filled


def _default(table: Table, name: str) -> object:
    column = table.columns[name]
    if column.nullable:
        return None
    if isinstance(column.type, Boolean):
        return False
    if isinstance(column.type, Text):
        return ""
    if isinstance(column.type, LargeBinary):
        return b""
    assert isinstance(column.type, Integer)
    return 0
