"""Rows that a model hands to the store: tuples in the column order of their table, or blocks of columns that become tuples late."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.store.tables import ROW_COLUMNS

__all__ = ["Block", "Column", "Lines", "Row", "Rows", "block_of", "count_of", "gathered", "rows_of", "signed", "unfolded"]

Row: TypeAlias = tuple[object, ...]
Column: TypeAlias = NDArray[np.generic] | Sequence[object] | str | int | None
"""Values of one column: an array (NULL where it is masked), a sequence, or one text or number (or NULL) that all rows have."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Finished rows of one table as columns, in the order of the table's columns; nothing in it may be changed later.

    Made by `block_of`. An array takes 8 bytes a value, as an object in a tuple it would take 40, and an array is cheap to hand on.
    """

    columns: tuple[Column, ...]
    """Arrays and sequences of `count` values; uint64 became two's complement, masked arrays became plain ones."""
    nulls: tuple[NDArray[np.bool_] | None, ...]
    """Beside each column, which of its values are NULL; None if none is."""
    count: int

    def __len__(self) -> int:
        return self.count

    def rows(self) -> Iterator[Row]:
        """The rows as tuples of plain values."""
        return zip(*(self._values(column, null) for column, null in zip(self.columns, self.nulls, strict=True)), strict=True)

    def _values(self, column: Column, null: NDArray[np.bool_] | None) -> Iterable[object]:
        if column is None or isinstance(column, str | int):
            return repeat(column, self.count)
        if not isinstance(column, np.ndarray):
            return column
        if null is None:
            values: list[object] = column.tolist()
            return values
        objects = column.astype(object)
        objects[null] = None
        return objects


Lines: TypeAlias = list[Row | Block]
Rows: TypeAlias = dict[str, Lines]
"""Finished rows by table name; a table may be absent. Rows are never handed on twice and never changed later."""


def signed(value: int | None) -> int | None:
    """An unsigned 64-bit value as the two's complement that the database holds; None stays None."""
    return value - (1 << 64) if value is not None and value >> 63 else value


def block_of(table: str, columns: Mapping[str, Column], *, count: int, unknown: int | None = None) -> Block:
    """Columns of one table as a block; columns that are not given are NULL.

    Args:
        columns: by column name, each of `count` values. uint64 values become two's complement.
        unknown: the number that stands for NULL in signed arrays, none if None.

    Raises: KeyError for a column that the table does not have, ValueError for one of another length.
    """
    names = ROW_COLUMNS[table]
    if strange := set(columns) - set(names):
        raise KeyError(f"table {table} has no column {sorted(strange)}")
    plain = [_plain(columns.get(name), unknown) for name in names]
    for name, (column, _) in zip(names, plain, strict=True):
        if column is not None and not isinstance(column, str | int) and len(column) != count:
            raise ValueError(f"column {name} of table {table} has {len(column)} values, the block has {count} rows")
    return Block(tuple(column for column, _ in plain), tuple(null for _, null in plain), count)


def rows_of(table: str, columns: Mapping[str, Column], *, count: int, unknown: int | None = None) -> Lines:
    """As `block_of`, as rows to hand on; no block where there is no row."""
    block = block_of(table, columns, count=count, unknown=unknown)
    return [block] if count else []


def unfolded(lines: Iterable[Row | Block]) -> Iterator[Row]:
    """All rows as tuples, in their order."""
    for line in lines:
        if isinstance(line, Block):
            yield from line.rows()
        else:
            yield line


def count_of(lines: Iterable[Row | Block]) -> int:
    """How many rows there are, those in blocks included."""
    return sum(len(line) if isinstance(line, Block) else 1 for line in lines)


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
