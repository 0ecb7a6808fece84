"""A trace that was collected into a folder of its own, to be asked in SQL."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collector.pipeline import ImportReport, import_trace
from collector.source import Source
from collector.store.engine import TraceFolder
from tests.build.trace import Trace

__all__ = ["ImportTrace", "Imported", "collect"]


@dataclass(frozen=True)
class Imported:
    """The collected trace; `path` is its SQLite file."""

    path: Path
    folder: TraceFolder
    report: ImportReport

    # A cell may hold anything that SQLite has, so a row is compared rather than typed.
    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a query, in its order."""
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as connection:
            return connection.execute(sql, values).fetchall()

    def one(self, sql: str, *values: object) -> Any:
        """The only cell of the only row of a query."""
        ((cell,),) = self.rows(sql, *values)
        return cell


ImportTrace = Callable[[Trace | Path], Imported]


def collect(trace: Trace | Path, folder: Path) -> Imported:
    """Run the real pipeline over a trace. Raises TraceError as it does."""
    if isinstance(trace, Trace):
        trace = trace.write(folder / "built.etl")
    traces = TraceFolder(folder / "database")
    source = Source.open(trace)
    try:
        report = import_trace(source, traces)
    finally:
        source.close()
    return Imported(traces.trace_path(report.key), traces, report)
