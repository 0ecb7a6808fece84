"""Pages of groups, with the same positions as pages of rows have, though a group has no number of its own.

A group's position is the time of its first member, and which of the groups of that very time it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, Row, Subquery, and_, false, func, or_, select

from app.paging import Asked, BadPosition, Position

__all__ = ["Groups"]


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups as the rows of `table`, whose column `earliest_ns` is the time of the first member.

    They are ordered by the column `by`, then by that time, then by the columns `name`, which together name a group. With `is_numbered`
    the column `n` counts in the very order asked for.
    """

    table: Subquery
    by: str
    falls: bool
    name: tuple[str, ...]
    is_numbered: bool = False

    def page(self, db: Connection, asked: Asked) -> Subquery:
        """The groups of one page and one more, as a table with the same columns. Raises BadPosition for a page that is not there."""
        wanted = select(self.table)
        if asked.after is not None:
            at = asked.after
            same = self._at(at.ns)
            start = db.execute(select(same).where(same.c.place == at.place)).first()
            if start is None:
                raise BadPosition(f"after={at}: this copy of the trace has no such page. Begin with the first.")
            wanted = wanted.where(self._beyond(start))
        return wanted.order_by(*self.order(self.table)).limit(asked.limit + 1).subquery("chosen")

    def order(self, table: FromClause) -> list[ColumnElement[Any]]:  # Any: columns of several types
        """What to order by, of a table that has the columns of the groups."""
        if self.is_numbered:
            return [table.c.n]
        return [(table.c[name].desc() if falls else table.c[name].asc()).nulls_last() for name, falls in self._columns()]

    def following(self, db: Connection, asked: Asked, rows: Sequence[Row[Any]]) -> Position | None:  # Any: rows with the columns of `table`
        """Where the next page begins, by the rows of this one and one more; None on the last page."""
        if len(rows) <= asked.limit:
            return None
        last = rows[asked.limit - 1]
        same = self._at(last.earliest_ns)
        is_it = (same.c[name].is_not_distinct_from(last._mapping[name]) for name in self.name)
        return Position(last.earliest_ns, db.execute(select(same.c.place).where(*is_it)).scalar_one())

    def _at(self, ns: int) -> Subquery:
        """The groups that begin at a moment, each with its place among them."""
        place = func.row_number().over(order_by=[self.table.c[name].asc().nulls_last() for name in self.name])
        return select(self.table, place.label("place")).where(self.table.c.earliest_ns == ns).subquery("same")

    def _columns(self) -> tuple[tuple[str, bool], ...]:
        """The columns of the order, and whether each falls."""
        return ((self.by, self.falls), ("earliest_ns", False), *((name, False) for name in self.name))

    def _beyond(self, start: Row[Any]) -> ColumnElement[bool]:  # Any: as above
        """The condition of the groups that follow one; what is unknown comes last."""
        if self.is_numbered:
            numbered: ColumnElement[bool] = self.table.c.n > start.n
            return numbered
        parts: list[ColumnElement[bool]] = []
        same: list[ColumnElement[bool]] = []
        for name, falls in self._columns():
            column, value = self.table.c[name], start._mapping[name]
            further = false() if value is None else or_(column < value if falls else column > value, column.is_(None))
            parts.append(and_(*same, further))
            same.append(column.is_not_distinct_from(value))
        return or_(*parts)
