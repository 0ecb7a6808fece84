"""Long lists in the order of a column that takes few values, read value by value instead of sorted."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, FromClause, Select, func, select

from app.planning import without_index
from collector.store.tables import THIS_TRACE

__all__ = ["Place", "SortGroups", "numbers_by_group"]

_FEW = 200_000  # rows of one value: to sort them takes a tenth of a second


@dataclass(frozen=True, slots=True)
class SortGroups:
    """The few values of a column that is looked up far from its list, so that the list can be read value by value instead of sorted.

    `values` selects each value once, other than NULL; `holds` is the condition, on the list's own table, of the rows that have a value, or
    have NULL.
    """

    values: Select[Any]  # Any: one column of texts
    holds: Callable[[str | None], ColumnElement[bool]]


class Place(NamedTuple):
    """Which row a page ended with: its number, and the value that the list is sorted by."""

    number: int
    value: Any  # as the columns of lists


def numbers_by_group(
    db: Connection, table: FromClause, groups: SortGroups, *, falls: bool, after: Place | None, limit: int
) -> Iterator[int]:
    """Numbers of the first rows behind a place, value by value: few rows are sorted, of many the first are met soon."""
    n, found = table.c.n, 0
    known: list[str] = sorted(db.execute(groups.values).scalars(), reverse=falls)
    values = [*known, None]
    if after is not None:
        values = values[values.index(after.value) :]  # it is one of them, as its row has it
    for value in values:
        conditions = [table.c.trace_id == THIS_TRACE, groups.holds(value)]
        number_of = db.execute(select(func.count()).select_from(select(n).where(*conditions).limit(_FEW + 1).subquery())).scalar_one()
        if not number_of:
            continue
        counted = without_index(n) if number_of <= _FEW else n
        if after is not None and value == after.value:
            conditions.append(counted < after.number if falls else counted > after.number)
        by_number = counted.desc() if falls else counted.asc()
        for number in db.execute(select(n).where(*conditions).order_by(by_number).limit(limit - found)).scalars():
            found += 1
            yield number
        if found == limit:
            return
