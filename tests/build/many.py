"""Many traces at once: entries of a catalog without files behind them, as quickly made as read."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy import insert

from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.store.tables import CATALOG

__all__ = ["many_traces"]

ENTRY: dict[str, object] = {
    "name": "run.etl",
    "label": None,
    "state": "complete",
    "size_bytes": 1_000_000,
    "start_utc": "2025-06-03T09:30:00.000000Z",
    "end_ns": 1_000_000_000,
    "records": 100,
    "collected_utc": "2025-06-10T08:00:00+00:00",
    "problems": 0,
    "losses": 0,
    "findings": 0,
    "high_findings": 0,
    "machine": None,
    "names_left_out": 0,
    "statuses_left_out": 0,
    "reasons_left_out": 0,
}


def many_traces(
    root: Path, entries: Sequence[Mapping[str, object]], rows: Mapping[str, Sequence[Mapping[str, object]]] | None = None
) -> TraceFolder:
    """A folder whose catalog has an entry for each of `entries`, which need a key, and the `rows` of its other tables."""
    folder = TraceFolder(root)
    with Catalog(folder).engine.begin() as connection:
        for table, lines in {"trace_entry": [ENTRY | dict(entry) for entry in entries], **(rows or {})}.items():
            nothing = {column.name: None for column in CATALOG.tables[table].columns}
            connection.execute(insert(CATALOG.tables[table]), [nothing | dict(line) for line in lines])
    return folder
