"""Fills tables of a SQLite file quickly: what is bound to a statement costs more than what SQLite does with it.

The driver takes 0.3 µs to bind a NULL or a truth value and 0.03 µs to bind a number. So flags become numbers, columns of NULL alone
stand in the statement, and a NULL among numbers is a number that the statement turns back. That halves the time of an insert.
This module imports no more than the driver and NumPy: a process of its own runs it.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from collector.model.block import Block, Column, Row

__all__ = ["PRAGMAS", "PRAGMAS_TO_INDEX", "PRAGMA_TO_APPEND", "Inserter", "connected"]

PRAGMAS = ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -65536", "threads = 2")
"""For a file that nobody else sees and that is thrown away when anything fails."""

PRAGMA_TO_APPEND = "cache_size = -32768"
"""While rows come in nearly the order of their keys, and no page is needed again soon."""

PRAGMAS_TO_INDEX = ("cache_size = -16384", "threads = 0", "shrink_memory")
"""While another thread has the second processor: sorting takes as long as with the above, in 40 MB instead of 200."""

ROWS_AT_ONCE = 50
"""Rows of a statement; more gain nothing and take longer to prepare."""
_CELLS_AT_ONCE = 40_000
_TUPLES_AT_ONCE = 1000  # what the processor's cache holds: turning rows into columns touches all of them
_STATEMENTS = 256
_STANDS_FOR_NULL = (-(1 << 63) + 11, -(1 << 62) - 13, -(1 << 61) - 17)

_Cells: TypeAlias = "Sequence[object] | np.ndarray[tuple[int, ...], np.dtype[np.generic]]"
_NULL, _PLAIN = "NULL", "?"


class Inserter:
    """Inserts rows into the tables of an open connection; `widths` says how many columns each has behind trace_id, which is 1."""

    def __init__(self, connection: sqlite3.Connection, widths: Mapping[str, int]) -> None:
        self._connection = connection
        self._widths = widths
        variables = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
        self._at_once = {table: max(1, min(ROWS_AT_ONCE, variables // width)) for table, width in widths.items()}

    def insert(self, rows: Mapping[str, Iterable[Row | Block]]) -> None:
        """Append rows of any tables in one transaction, so that the file is consistent between calls.

        Raises: sqlite3.Error; KeyError for a table that does not exist, ValueError for rows of another width.
        """
        self._connection.execute("BEGIN")
        try:
            for table, lines in rows.items():
                for columns, count in _columns(lines, self._widths[table], table):
                    self._put(table, columns, count)
        except BaseException:
            if self._connection.in_transaction:  # with the journal off nothing is undone: the file is thrown away
                self._connection.execute("COMMIT")
            raise
        self._connection.execute("COMMIT")

    def _put(self, table: str, columns: Sequence[tuple[str, _Cells]], count: int) -> None:
        """Insert columns, each with the term that stands for its values in the statement."""
        row = f"(1, {', '.join(term for term, _ in columns)})"
        bound = [cells for term, cells in columns if term != _NULL]
        width, execute = len(bound), self._connection.execute
        step = max(1, _CELLS_AT_ONCE // max(width, 1))
        for first in range(0, count, step):
            rows = min(step, count - first)
            cells: list[object] = [None] * (rows * width)
            for i, column in enumerate(bound):
                part = column if rows == count else column[first : first + rows]
                cells[i::width] = part.tolist() if isinstance(part, np.ndarray) else part  # as objects values take five times the room
            at_once = self._at_once[table]
            many = f'INSERT INTO "{table}" VALUES {", ".join([row] * at_once)}'  # noqa: S608 - a name of our own tables, and terms of ours
            whole = rows - rows % at_once
            for at in range(0, whole, at_once):
                execute(many, cells[at * width : (at + at_once) * width])
            if whole < rows:
                one = f'INSERT INTO "{table}" VALUES {row}'  # noqa: S608 - see above
                self._connection.executemany(one, (cells[at * width : (at + 1) * width] for at in range(whole, rows)))


def connected(path: str, *, page_limit: int | None = None) -> sqlite3.Connection:
    """A connection that fills a file quickly, for one thread after another. Raises sqlite3.Error, also where there is no such file.

    What a collector that was killed had begun may be cleared away before this process opens it: it shall not be there again.
    """
    uri = f"{Path(path).absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, cached_statements=_STATEMENTS, check_same_thread=False)
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    if page_limit is not None:
        connection.execute(f"PRAGMA max_page_count = {int(page_limit)}")
    return connection


def _columns(lines: Iterable[Row | Block], width: int, table: str) -> Iterator[tuple[list[tuple[str, _Cells]], int]]:
    """Terms and values of the columns of each block, and of all tuples that follow each other."""
    tuples: list[Row] = []
    for line in lines:
        if isinstance(line, Block):
            if tuples:
                yield _of_tuples(tuples, width, table), len(tuples)
                tuples = []
            if len(line.columns) != width:
                raise ValueError(f"table {table} has {width} columns, a block has {len(line.columns)}")
            yield [_of_block(column, null, line.count) for column, null in zip(line.columns, line.nulls, strict=True)], line.count
        else:
            tuples.append(line)
            if len(tuples) == _TUPLES_AT_ONCE:
                yield _of_tuples(tuples, width, table), len(tuples)
                tuples = []
    if tuples:
        yield _of_tuples(tuples, width, table), len(tuples)


def _of_tuples(tuples: Sequence[Row], width: int, table: str) -> list[tuple[str, _Cells]]:
    columns = list(zip(*tuples, strict=True))
    if len(columns) != width:
        raise ValueError(f"table {table} has {width} columns, a row has {len(columns)}")
    return [_of_values(column) for column in columns]


def _of_block(column: Column, null: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None", count: int) -> tuple[str, _Cells]:
    if column is None or (null is not None and null.all()):
        return _NULL, ()
    if isinstance(column, str | int):
        return _PLAIN, [int(column) if isinstance(column, int) else column] * count
    if not isinstance(column, np.ndarray):
        return _of_values(column)
    numbers = column.view(np.uint8) if column.dtype == np.bool_ else column
    if null is None:
        return _PLAIN, numbers
    stands = _stand_in(numbers) if numbers.dtype.kind in "iu" else None
    if stands is None:
        objects = column.astype(object)
        objects[null] = None
        return _of_values(objects.tolist())
    return _back(stands), np.where(null, np.int64(stands), numbers.astype(np.int64, copy=False))


def _of_values(values: Sequence[object]) -> tuple[str, _Cells]:
    """The term of values of any kind, and what is bound for them."""
    missing = values.count(None)
    if missing == len(values):
        return _NULL, ()
    if isinstance(next(value for value in values if value is not None), bool):
        values = [int(value) if value is True or value is False else value for value in values]
    if not missing:
        return _PLAIN, values
    stands = _stand_in(values)
    if stands is None:
        return _PLAIN, values
    return _back(stands), [stands if value is None else value for value in values]


def _back(stands: int) -> str:
    return f"nullif(?, {stands})"


def _stand_in(values: "Sequence[object] | np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> int | None:
    """A number that is none of the values; None if all that we know are."""
    if isinstance(values, np.ndarray):
        return next((number for number in _STANDS_FOR_NULL if not (values == np.int64(number)).any()), None)
    return next((number for number in _STANDS_FOR_NULL if number not in values), None)
