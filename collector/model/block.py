"""Finished rows as they travel: tuples, or blocks of columns. Knows no tables: a process that only inserts rows starts quickly."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Block", "Column", "Lines", "Row", "count_of", "unfolded"]

Row: TypeAlias = tuple[object, ...]
Column: TypeAlias = NDArray[np.generic] | Sequence[object] | str | int | None
"""Values of one column: an array (NULL where it is masked), a sequence, or one text or number (or NULL) that all rows have."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Finished rows of one table as columns, in the order of the table's columns; nothing in it may be changed later.

    Made by `rows.block_of`. An array takes 8 bytes a value, as an object in a tuple it would take 40, and an array is cheap to hand on.
    """

    columns: tuple[Column, ...]
    """Arrays and sequences of `count` values; uint64 became two's complement, masked arrays became plain ones."""
    nulls: tuple[NDArray[np.bool_] | None, ...]
    """Beside each column, which of its values are NULL; None if none is."""
    count: int
    unstored: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """What the table has no column for, and who counts the rows must know; by name, each of `count` values."""

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


def unfolded(lines: Iterable[Row | Block]) -> Iterator[Row]:
    """All rows as tuples, in their order."""
    for line in lines:
        if isinstance(line, Block):
            yield from line.rows()
        else:
            yield line


def count_of(lines: Iterable[Row | Block]) -> int:
    """How many rows there are, those in blocks included."""
    return sum(line.count if isinstance(line, Block) else 1 for line in lines)
