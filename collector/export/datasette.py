"""A trace as a folder that Datasette opens: tables with readable names and keys that lead from one to another, and what they hold in words.

Datasette shows foreign keys of single columns as links, and views have none; so the views become tables of a file of their own.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from collector.export.described import column_words, table_words
from collector.export.forms import Kind, Named
from collector.export.views import columns_of, opened
from collector.store import dialects
from collector.store.copying import Change, brings_notes, placed, prepared
from collector.store.stores import TraceStore
from collector.store.views import CATALOG_VIEWS, TRACE_VIEWS

__all__ = ["CALL_STACKS", "export_datasette"]

CALL_STACKS = "call_stacks"

_KEYS = {"sockets": "socket", "processes": "process", "allocations": "allocation", CALL_STACKS: "stack"}
"""Tables whose rows others name, and the column by which they do."""

_REFERENCES = {
    "socket": "sockets", "accepted": "sockets", "accepted_from": "sockets", "loopback_peer": "sockets", "first_socket": "sockets",
    "second_socket": "sockets", "process": "processes", "allocation": "allocations", "previous": "allocations", "stack": CALL_STACKS,
    "create_stack": CALL_STACKS, "close_stack": CALL_STACKS, "owner_stack": CALL_STACKS, "free_stack": CALL_STACKS,
}  # fmt: skip

_TYPES = {Kind.NUMBER: "INTEGER", Kind.FLAG: "INTEGER", Kind.TEXT: "TEXT"}
_STACK_COLUMNS = [Named("stack", Kind.TEXT), Named("depth", Kind.NUMBER), Named("is_complete", Kind.FLAG), Named("calls", Kind.TEXT)]
# A frame as the pages write it: its function, else the file and offset of its code, else its address.
_CALL = "coalesce(symbol, module || printf('+0x%x', \"offset\"), address)"
_STACKS = f"""
SELECT stack, depth, is_complete, group_concat(call, ' ← ') FROM (
    SELECT stack, depth, is_complete, {_CALL} AS call FROM source.v_stacks ORDER BY stack, frame)
GROUP BY stack
"""  # noqa: S608 - written here

_SHOWN: dict[str, dict[str, Any]] = {  # Any: JSON
    "processes": {"label_column": "image"},
    "sockets": {"label_column": "socket", "facets": ["type", "end"]},
    "operations": {"facets": ["kind", "outcome"]},
    "allocations": {"label_column": "allocation", "facets": ["origin", "end_reason"]},
    CALL_STACKS: {"label_column": "calls"},
    "findings": {"facets": ["severity"]},
}
_QUERIES = {
    "in_flight": ("Operations that were in flight when the trace ended", "SELECT * FROM operations WHERE outcome = 'in_flight'"),
    "busiest_sockets": (
        "Sockets that moved the most bytes",
        "SELECT socket, process, local, remote, bytes_sent, bytes_received FROM sockets "
        "ORDER BY bytes_sent + bytes_received DESC LIMIT 100",
    ),
    "errors": (
        "How often operations failed with which status",
        "SELECT kind, status, count(*) AS times FROM operations WHERE outcome IN ('failed', 'rejected') "
        "GROUP BY kind, status ORDER BY times DESC",
    ),
    "held_by_stack": (
        "Memory that is held when the trace ends, by the calls that allocated it",
        "SELECT owner_stack, count(*) AS blocks, sum(size) AS bytes FROM allocations WHERE end_ns IS NULL "
        "GROUP BY owner_stack ORDER BY bytes DESC LIMIT 100",
    ),
}


def export_datasette(folder: TraceStore, key: str, target: Path, should_cancel: Callable[[], bool], *changes: Change) -> dict[str, int]:
    """Write a finished trace to a new folder with a database and `metadata.json`; returns how many rows each table has.

    A key is declared where it is one: each row has it, and no two the same. Raises StoreFull, StoreError, StoreTooOld, StoreTooNew,
    CollectCancelled, and what the changes raise; then nothing is left behind.
    """
    with prepared(folder, key, should_cancel, *changes) as source, placed(target, is_folder=True) as part:
        reader = opened(source, should_cancel)
        with reader.connect() as connection:
            described = {view.removeprefix("v_"): columns_of(connection, view) for view in TRACE_VIEWS}
            (name,) = connection.exec_driver_sql("SELECT name FROM v_trace").scalars()
            if brings_notes(folder, *changes):
                described |= {"notes": columns_of(connection, "v_notes")}
        reader.dispose()
        engine = dialects.bulk_engine(part / f"{key}.db", should_cancel=should_cancel)
        try:
            with engine.connect() as connection:
                dialects.attach(connection, source, "source")
                numbers = _fill(connection, described)
                if not brings_notes(folder, *changes):
                    numbers["notes"] = _notes(connection, folder, key)
                connection.commit()
                dialects.detach(connection, "source")
        finally:
            engine.dispose()
        described["notes"] = described.get("notes") or [Named(one, Kind.TEXT) for one in _NOTE_COLUMNS]
        text = json.dumps(_metadata(key, str(name), described), indent=1, ensure_ascii=False)
        (part / "metadata.json").write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    return numbers


_NOTE_COLUMNS = ("object", "t_ns", "author", "text", "created_utc")


def _fill(connection: Connection, described: dict[str, list[Named]]) -> dict[str, int]:
    """Make the tables of what the source has; returns their numbers of rows."""
    numbers = {}
    keys = {table: column for table, column in _KEYS.items() if _is_key(connection, table, column)}
    for table, columns in [*described.items(), (CALL_STACKS, _STACK_COLUMNS)]:
        connection.exec_driver_sql(_declaration(table, columns, keys))
        names = ", ".join(f'"{column.name}"' for column in columns)
        select = _STACKS if table == CALL_STACKS else f"SELECT {names} FROM source.v_{table}"  # noqa: S608 - names of ours
        connection.exec_driver_sql(f'INSERT INTO "{table}" ({names}) {select}')
        numbers[table] = connection.exec_driver_sql(f'SELECT count(*) FROM "{table}"').scalar_one()  # noqa: S608 - see above
        for column in columns:
            if keys.get(_REFERENCES.get(column.name, "")) and column.name != keys.get(table):
                connection.exec_driver_sql(f'CREATE INDEX "ix_{table}_{column.name}" ON "{table}" ("{column.name}")')
    return numbers


def _is_key(connection: Connection, table: str, column: str) -> bool:
    """Whether each row has a value of its own; of a damaged trace two things may have one name."""
    if table == CALL_STACKS:
        return True  # grouped by it
    rows, values = connection.exec_driver_sql(f"SELECT count(*), count(DISTINCT {column}) FROM source.v_{table}").one()  # noqa: S608 - names of ours
    return bool(rows == values)


def _declaration(table: str, columns: list[Named], keys: dict[str, str]) -> str:
    def parts() -> Iterator[str]:
        for column in columns:
            own = " PRIMARY KEY" if keys.get(table) == column.name else ""
            yield f'"{column.name}" {_TYPES[column.kind]}{own}'
        for column in columns:
            other = _REFERENCES.get(column.name, "")
            if other in keys and keys.get(table) != column.name:
                yield f'FOREIGN KEY ("{column.name}") REFERENCES "{other}" ("{keys[other]}")'

    return f'CREATE TABLE "{table}" ({", ".join(parts())})'


def _notes(connection: Connection, folder: TraceStore, key: str) -> int:
    """The notes as the catalog has them; returns their number."""
    names = ", ".join(_NOTE_COLUMNS)
    with folder.catalog().connect() as catalog:
        (view,) = CATALOG_VIEWS
        rows = catalog.exec_driver_sql(f"SELECT {names} FROM {view} WHERE key = ?", (key,)).all()  # noqa: S608 - names of ours
    connection.exec_driver_sql("CREATE TABLE notes (object TEXT, t_ns INTEGER, author TEXT, text TEXT, created_utc TEXT)")
    for row in rows:
        connection.exec_driver_sql("INSERT INTO notes VALUES (?, ?, ?, ?, ?)", tuple(row))
    return len(rows)


def _metadata(database: str, name: str, described: dict[str, list[Named]]) -> dict[str, Any]:  # Any: JSON
    """What Datasette says of the tables; text of a trace is its title alone, which Datasette escapes."""
    tables: dict[str, Any] = {}  # Any: JSON
    for table, columns in described.items():
        words = {column.name: said for column in columns if (said := column_words(table, column.name))}
        tables[table] = {"description": table_words(table), "columns": words, "size": 50, **_SHOWN.get(table, {})}
    tables[CALL_STACKS] = {
        "description": "Each call stack in one row, the innermost call first.",
        "columns": {
            "stack": "hash of its frames",
            "depth": "number of frames",
            "is_complete": "1 where no frame lacks",
            "calls": "its frames",
        },
    } | _SHOWN[CALL_STACKS]
    queries = {name: {"title": title, "sql": sql} for name, (title, sql) in _QUERIES.items()}
    about = "A trace of sockets and heaps, by sockscope. Times are nanoseconds since it began; unknown is empty."
    return {"title": name, "description": about, "databases": {database: {"tables": tables, "queries": queries}}}
