"""Rows that a model hands to the store: tuples in the column order of their table, or blocks of columns that become tuples late."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.model.block import Block, Column, Lines, Row, count_of, unfolded
from collector.model.row_columns import names_of

__all__ = ["Block", "Column", "Lines", "Row", "Rows", "block_of", "columns_of", "count_of", "gathered", "rows_of", "signed", "unfolded"]

Rows: TypeAlias = dict[str, Lines]
"""Finished rows by table name; a table may be absent. Rows are never handed on twice and never changed later."""


def signed(value: int | None) -> int | None:
    """An unsigned 64-bit value as the two's complement that the database holds; None stays None."""
    return value - (1 << 64) if value is not None and value >> 63 else value


def block_of(
    table: str,
    columns: Mapping[str, Column],
    *,
    count: int,
    unknown: int | None = None,
    unstored: Mapping[str, NDArray[np.int64]] | None = None,
) -> Block:
    """Columns of one table as a block; columns that are not given are NULL.

    Args:
        columns: by column name, each of `count` values. uint64 values become two's complement.
        unknown: the number that stands for NULL in signed arrays, none if None.
        unstored: columns that the table does not have, for who counts the rows.

    Raises: KeyError for a column that the table does not have, ValueError for one of another length.
    """
    names = names_of(table)
    if strange := set(columns) - set(names):
        raise KeyError(f"table {table} has no column {sorted(strange)}")
    plain = [_plain(columns.get(name), unknown) for name in names]
    for name, (column, _) in zip(names, plain, strict=True):
        if column is not None and not isinstance(column, str | int) and len(column) != count:
            raise ValueError(f"column {name} of table {table} has {len(column)} values, the block has {count} rows")
    return Block(tuple(column for column, _ in plain), tuple(null for _, null in plain), count, unstored or {})


def rows_of(
    table: str,
    columns: Mapping[str, Column],
    *,
    count: int,
    unknown: int | None = None,
    unstored: Mapping[str, NDArray[np.int64]] | None = None,
) -> Lines:
    """As `block_of`, as rows to hand on; no block where there is no row."""
    block = block_of(table, columns, count=count, unknown=unknown, unstored=unstored)
    return [block] if count else []


def columns_of(lines: Iterable[Row | Block], table: str, names: Sequence[str], *, absent: int) -> Iterator[dict[str, NDArray[np.int64]]]:
    """Some columns of numbers of a table's rows: of each block, and of all tuples; `absent` stands for NULL, flags are 0 and 1."""
    own = names_of(table)
    places = [own.index(name) for name in names]
    tuples: list[Row] = []
    for line in lines:
        if isinstance(line, Block):
            yield {name: _numbers(line.columns[at], line.nulls[at], line.count, absent) for name, at in zip(names, places, strict=True)}
        else:
            tuples.append(line)
    if tuples:
        values = zip(*map(itemgetter(*places), tuples), strict=True)
        yield {name: _numbers(column, None, len(tuples), absent) for name, column in zip(names, values, strict=True)}


def _numbers(column: Column, null: NDArray[np.bool_] | None, count: int, absent: int) -> NDArray[np.int64]:
    if isinstance(column, np.ndarray):
        numbers = column.astype(np.int64)
        return numbers if null is None else np.where(null, np.int64(absent), numbers)
    if column is None or isinstance(column, int):
        return np.full(count, absent if column is None else column, dtype=np.int64)
    plain = (absent if value is None else value for value in column) if None in column else column
    return np.fromiter(plain, dtype=np.int64, count=count)


def gathered(parts: Iterable[Rows]) -> Rows:
    """Rows that come in pieces, as one."""
    everything: Rows = {}
    for part in parts:
        for table, lines in part.items():
            everything.setdefault(table, []).extend(lines)
    return everything


def _plain(column: Column, unknown: int | None) -> tuple[Column, NDArray[np.bool_] | None]:
    """A column without a mask, and which of its values are NULL."""
    if not isinstance(column, np.ndarray):
        return column, None
    null: NDArray[np.bool_] | None = None
    if isinstance(column, np.ma.MaskedArray):
        null, column = np.ma.getmaskarray(column), column.data
    if unknown is not None and column.dtype.kind == "i":
        null = column == unknown if null is None else null | (column == unknown)
    if column.dtype == np.uint64:
        column = column.view(np.int64)
    return column, null if null is not None and null.any() else None
