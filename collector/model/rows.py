"""Rows that a model hands to the store: tuples in the column order of their table."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.store.tables import ROW_COLUMNS

__all__ = ["Row", "Rows", "gathered", "rows_of", "signed"]

Row: TypeAlias = tuple[object, ...]
Rows: TypeAlias = dict[str, list[Row]]
"""Finished rows by table name; a table may be absent. Rows are never handed on twice and never changed later."""


def signed(value: int | None) -> int | None:
    """An unsigned 64-bit value as the two's complement that the database holds; None stays None."""
    return value - (1 << 64) if value is not None and value >> 63 else value


def rows_of(
    table: str, columns: Mapping[str, NDArray[np.generic] | Sequence[object]], *, count: int, unknown: int | None = None
) -> list[Row]:
    """Columns of one table as row tuples; columns that are not given are NULL.

    Args:
        columns: by column name, each of `count` values. uint64 values become two's complement.
        unknown: the number that stands for NULL in signed arrays, none if None.

    Raises: KeyError for a column that the table does not have.
    """
    names = ROW_COLUMNS[table]
    if strange := set(columns) - set(names):
        raise KeyError(f"table {table} has no column {sorted(strange)}")
    lists: list[Sequence[object]] = []
    for name in names:
        column = columns.get(name)
        if column is None:
            lists.append([None] * count)
        elif isinstance(column, np.ndarray):
            signed = column.view(np.int64) if column.dtype == np.uint64 else column
            values = signed.tolist()
            lists.append([None if v == unknown else v for v in values] if unknown is not None and column.dtype.kind == "i" else values)
        else:
            lists.append(column)
    return list(zip(*lists, strict=True))


def gathered(parts: Iterable[Rows]) -> Rows:
    """Rows that come in pieces, as one."""
    everything: Rows = {}
    for part in parts:
        for table, rows in part.items():
            everything.setdefault(table, []).extend(rows)
    return everything
