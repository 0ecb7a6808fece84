"""Copies the finished file of a trace to a PostgreSQL server: every row by COPY into partitions of its own, then their indexes.

All of it happens in the caller's transaction. What nobody can see yet needs no log of hint bits either: the rows are written frozen.
The lines that COPY takes are put together by SQLite itself, which is several times quicker than Python.
"""

# ruff: noqa: S608 - names of our own tables, and a number

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from sqlalchemy import BigInteger, Boolean, Column, Connection, Index, LargeBinary, Table
from sqlalchemy.schema import CreateColumn

from collector.errors import CollectCancelled, StoreError
from collector.store.postgresql import NUL_AND_STAND_IN, driver_of
from collector.store.server_tables import SERVER_TRACE, indexes_of, partition_name

__all__ = ["attach_partitions", "load_rows"]

_LINES_AT_ONCE = 2_000
_NUL, _STAND_IN = (text.encode() for text in NUL_AND_STAND_IN)


def load_rows(connection: Connection, path: Path, number: int, should_cancel: Callable[[], bool]) -> list[str]:
    """Copy a trace's file to partitions that belong to no table yet; gives the names of the tables that have rows.

    Raises CollectCancelled; StoreError when the file cannot be read, else what the driver raises.
    """
    filled = []
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
            file.text_factory = bytes
            for table in SERVER_TRACE.sorted_tables:
                if file.execute(f'SELECT 1 FROM "{table.name}" LIMIT 1').fetchone() is not None:
                    _load_table(connection, file, table, number, should_cancel)
                    filled.append(table.name)
    except sqlite3.Error as error:
        raise StoreError(f"{path}: the finished file cannot be read ({error}). Nothing was stored; check the disk.") from error
    return filled


def attach_partitions(connection: Connection, tables: list[str], number: int) -> None:
    """Make filled partitions part of their tables; readers are not held up."""
    for name in tables:
        part = partition_name(name, number)
        connection.exec_driver_sql(f'ALTER TABLE "{name}" ATTACH PARTITION "{part}" FOR VALUES IN ({number})')


def _load_table(connection: Connection, file: sqlite3.Connection, table: Table, number: int, should_cancel: Callable[[], bool]) -> None:
    part = partition_name(table.name, number)
    # The condition spares the server a look at every row when the partition is attached.
    is_its = f"CONSTRAINT ck_{part} CHECK (trace_id = {number})"
    # Its columns are written out, as LIKE would hold a lock on the table until all is loaded.
    columns = ", ".join(str(CreateColumn(column).compile(connection.engine)) for column in table.columns)
    connection.exec_driver_sql(f'CREATE TABLE "{part}" ({columns}, {is_its})')
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    with driver_of(connection).cursor() as cursor, cursor.copy(f'COPY "{part}" ({names}) FROM STDIN WITH (FREEZE)'.encode()) as copy:
        for lines in _lines(file, table, number):
            if should_cancel():
                raise CollectCancelled("Cancelled. Nothing was stored.")
            copy.write(lines)
    key = ", ".join(f'"{column.name}"' for column in table.primary_key.columns)
    connection.exec_driver_sql(f'ALTER TABLE "{part}" ADD CONSTRAINT "pk_{part}" PRIMARY KEY ({key})')
    for index in indexes_of(table):
        if should_cancel():
            raise CollectCancelled("Cancelled. Nothing was stored.")
        connection.exec_driver_sql(_index_of(index, part, number))
    connection.exec_driver_sql(f'ANALYZE "{part}"')


def _index_of(index: Index, part: str, number: int) -> str:
    """SQL for the index of a partition that is the parent's."""
    columns = ", ".join(f'"{column.name}"{" NULLS FIRST" if column.nullable else ""}' for column in index.columns)
    where = index.dialect_options["postgresql"]["where"]
    return f'CREATE INDEX "{index.name}_{number}" ON "{part}" ({columns})' + ("" if where is None else f" WHERE {where.text}")


def _lines(file: sqlite3.Connection, table: Table, number: int) -> Iterator[bytes]:
    """A table's rows as COPY takes them, in the order of its key."""
    columns = [column for column in table.columns if column.name != "trace_id"]
    cells = [f"'{number}'", *(_cell(column) for column in columns)]
    texts = [f'instr("{column.name}", char(0))' for column in columns if not isinstance(column.type, BigInteger | Boolean | LargeBinary)]
    if texts and file.execute(f'SELECT 1 FROM "{table.name}" WHERE {" OR ".join(texts)} LIMIT 1').fetchone():
        line = " || char(9) || ".join(cells)
    else:
        line = f"printf('{chr(9).join(['%s'] * len(cells))}', {', '.join(cells)})"  # half the time, but ends a text at a NUL
    key = ", ".join(f'"{column.name}"' for column in table.primary_key.columns)
    found = file.execute(f'SELECT {line} FROM "{table.name}" ORDER BY {key}')
    while rows := found.fetchmany(_LINES_AT_ONCE):
        yield b"".join(line + b"\n" for (line,) in rows).replace(_NUL, _STAND_IN)


def _cell(column: Column[object]) -> str:
    """SQL for a cell as COPY's text format writes it."""
    name = f'"{column.name}"'
    if isinstance(column.type, BigInteger | Boolean):
        cell = name
    elif isinstance(column.type, LargeBinary):
        return f"CASE WHEN {name} IS NULL THEN '\\N' ELSE '\\\\x' || hex({name}) END"  # hex of a NULL is no NULL
    else:
        cell = f"replace({name}, '\\', '\\\\')"
        for code, letter in ((9, "t"), (10, "n"), (13, "r")):
            cell = f"replace({cell}, char({code}), '\\{letter}')"
    return cell if not column.nullable else f"coalesce({cell}, '\\N')"
