"""Pages of long lists without counting and without row numbers in a URL.

A page begins after a *position*: the time of a row, and which of the rows of that very time it is. The row itself is looked up
again, and the next rows follow it in the order (sort value, n), which an index gives without sorting.
"""

import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, and_, func, or_, select

from app.filters import Conditions
from app.links import BadLink, parse_moment

__all__ = [
    "COUNT_CEILING",
    "MAX_PAGE",
    "PAGE_SIZE",
    "BadPosition",
    "Fetched",
    "Order",
    "Position",
    "Sort",
    "count_up_to",
    "fetch",
    "parse_order",
]

PAGE_SIZE = 100
MAX_PAGE = 1_000
COUNT_CEILING = 10_000
"""Lists are counted up to here; beyond, a page says "more than"."""

_POSITION = re.compile(r"(null|-?[0-9]{1,19})(?:\.([0-9]{1,9}))?")


class BadPosition(ValueError):
    """A page position or order that this list does not have."""


@dataclass(frozen=True, slots=True)
class Sort:
    """A column that a list can be sorted by. `falls` says that its first click shows the greatest first."""

    key: str
    column: ColumnElement[Any]  # Any: columns of every type can be sorted by
    falls: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """A sort and its direction; in a URL `bytes` or, falling, `-bytes`."""

    sort: Sort
    falls: bool

    def __str__(self) -> str:
        return ("-" if self.falls else "") + self.sort.key


@dataclass(frozen=True, slots=True)
class Position:
    """The row that a page ended with: its time, and its place among the rows of that time, from 1."""

    ns: int | None
    place: int = 1

    def __str__(self) -> str:
        moment = "null" if self.ns is None else str(self.ns)
        return moment if self.place == 1 else f"{moment}.{self.place}"

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Raises BadPosition."""
        found = _POSITION.fullmatch(text)
        if not found:
            raise BadPosition(f"after={text}: a page position is a time in nanoseconds, as the link to the next page has it.")
        try:
            return cls(None if found[1] == "null" else parse_moment(found[1]), int(found[2] or 1))
        except BadLink as error:
            raise BadPosition(f"after={text}: {error}") from error


@dataclass(frozen=True, slots=True)
class Fetched:
    """Rows of one page, and where the next one begins (None on the last)."""

    rows: list[Row[Any]]  # Any: each feature reads the columns that it selected
    next: Position | None


def parse_order(sorts: tuple[Sort, ...], text: str | None) -> Order:
    """The order a URL asks for, the list's first without one. Raises BadPosition."""
    if not text:
        return Order(sorts[0], sorts[0].falls)
    name = text.removeprefix("-")
    for sort in sorts:
        if sort.key == name:
            return Order(sort, text.startswith("-"))
    raise BadPosition(f"sort={text}: this list sorts by {', '.join(sort.key for sort in sorts)}; a minus before it turns the order round.")


def fetch(
    db: Connection,
    rows: Select[Any],  # Any: each feature selects its own columns
    *,
    table: Table,
    moment: ColumnElement[Any],  # Any: an integer column or an expression of one
    where: Conditions,
    order: Order,
    after: Position | None,
    limit: int,
) -> Fetched:
    """One page of a list.

    `rows` selects from `table` and what it joins; `moment` is the time by which rows of `table` have their position. `limit` is at
    most MAX_PAGE unless the caller writes a file. Raises BadPosition when this copy of the trace has no such row.
    """
    key = order.sort.column
    statement = rows.add_columns(table.c.n.label("_n"), moment.label("_moment")).where(table.c.trace_id == 1, *where.clauses())
    if after is not None:
        statement = statement.where(_beyond(db, rows, table, moment, order, after))
    directed = key.desc().nulls_last() if order.falls else key.asc().nulls_last()
    by_number = table.c.n.desc() if order.falls else table.c.n.asc()
    ordering = (by_number,) if key is table.c.n else (directed, by_number)
    found = db.execute(statement.order_by(*ordering).limit(limit + 1)).all()
    if len(found) <= limit:
        return Fetched(list(found), None)
    last = found[limit - 1]
    place = db.execute(
        select(func.count()).select_from(table).where(table.c.trace_id == 1, _is(moment, last._moment), table.c.n <= last._n)
    ).scalar_one()
    return Fetched(list(found[:limit]), Position(last._moment, place))


def _is(moment: ColumnElement[Any], ns: int | None) -> ColumnElement[bool]:  # Any: as above
    return moment.is_(None) if ns is None else moment == ns


def _beyond(
    db: Connection,
    rows: Select[Any],
    table: Table,
    moment: ColumnElement[Any],
    order: Order,
    after: Position,  # Any: as above
) -> ColumnElement[bool]:
    """The condition of the rows that follow a position."""
    key, n = order.sort.column, table.c.n
    place = (
        select(n).where(table.c.trace_id == 1, _is(moment, after.ns)).order_by(n).limit(1).offset(max(after.place, 1) - 1).scalar_subquery()
    )
    found = db.execute(rows.with_only_columns(n, key).where(table.c.trace_id == 1, n == place)).first()
    if found is None:
        raise BadPosition(f"after={after}: this copy of the trace has no such page. Begin with the first.")
    number, value = found
    later: ColumnElement[bool] = n < number if order.falls else n > number
    if key is n:
        return later
    if value is None:
        return and_(key.is_(None), later)
    further = key < value if order.falls else key > value
    return or_(further, and_(key == value, later), key.is_(None))


def count_up_to(
    db: Connection, rows: Select[Any], *, table: Table, where: Conditions, ceiling: int = COUNT_CEILING
) -> int:  # Any: as above
    """How many rows a list has, at most `ceiling` + 1, which means more."""
    some = rows.with_only_columns(table.c.n).where(table.c.trace_id == 1, *where.clauses()).limit(ceiling + 1).subquery()
    return int(db.execute(select(func.count()).select_from(some)).scalar_one())
