"""Copies a trace from a PostgreSQL server back to a SQLite file of the same tables, indexes and views."""

# ruff: noqa: S608 - names of our own tables, and a number

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Boolean, Connection, Table

from collector.errors import CollectCancelled
from collector.store import dialects
from collector.store.postgresql import driver_of
from collector.store.server_tables import SERVER_TRACE
from collector.store.tables import TRACE_VERSION
from collector.store.views import create_views
from collector.store.writer import create_indexes, create_tables, stamp

__all__ = ["fetch_rows"]

_ROWS_AT_ONCE = 5_000


def fetch_rows(connection: Connection, number: int, path: Path, should_cancel: Callable[[], bool]) -> None:
    """Write the rows of a trace to a new file. The caller sees to it that they stay meanwhile.

    Raises CollectCancelled, StoreFull, StoreError, and what the driver raises.
    """
    engine = dialects.bulk_engine(path, should_cancel=should_cancel)
    try:
        with engine.connect() as file, file.begin():
            create_tables(file)
            stamp(file, TRACE_VERSION)
            for table in SERVER_TRACE.sorted_tables:
                _fetch_table(connection, file, table, number, should_cancel)
            create_indexes(file)
            dialects.settle(file)
            create_views(file)
    finally:
        engine.dispose()


def _fetch_table(connection: Connection, file: Connection, table: Table, number: int, should_cancel: Callable[[], bool]) -> None:
    columns = [column for column in table.columns if column.name != "trace_id"]
    names = ", ".join(f'"{column.name}"' for column in columns)
    # COPY gives rows as they come, whatever their number; a flag is a number in a file.
    asked = ", ".join(f'"{c.name}"::int::bigint' if isinstance(c.type, Boolean) else f'"{c.name}"' for c in columns)
    key = ", ".join(f'"{column.name}"' for column in table.primary_key.columns)
    put = f'INSERT INTO "{table.name}" (trace_id, {names}) VALUES (1, {", ".join("?" * len(columns))})'
    types = [
        "int8" if column.type.python_type in (int, bool) else "bytea" if column.type.python_type is bytes else "text" for column in columns
    ]
    with driver_of(connection).cursor() as cursor:
        question = f'COPY (SELECT {asked} FROM "{table.name}" WHERE trace_id = {number} ORDER BY {key}) TO STDOUT (FORMAT BINARY)'
        with cursor.copy(question.encode()) as copy:
            copy.set_types(types)
            rows: list[tuple[object, ...]] = []
            for row in copy.rows():
                rows.append(row)
                if len(rows) == _ROWS_AT_ONCE:
                    _put(file, put, rows, should_cancel)
            _put(file, put, rows, should_cancel)


def _put(file: Connection, statement: str, rows: list[tuple[object, ...]], should_cancel: Callable[[], bool]) -> None:
    """Insert rows and forget them."""
    if should_cancel():
        raise CollectCancelled("Cancelled. Nothing was exported.")
    if rows:
        file.exec_driver_sql(statement, rows)
        rows.clear()
