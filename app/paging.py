"""Pages of long lists without counting and without row numbers in a URL.

A page begins after a *position*: the time of a row, and which of the rows of that very time it is. The row itself is looked up
again, and the next rows follow it in the order (sort value, n), which an index gives without sorting.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, Row, Select, and_, func, or_, select

from app.filters import Conditions, Filter, parse_conditions
from app.links import BadLink, parse_moment
from collector.errors import StoreSlow

__all__ = [
    "COUNT_CEILING",
    "MAX_FILE",
    "MAX_PAGE",
    "PAGE_SIZE",
    "Asked",
    "BadPosition",
    "Fetched",
    "Moment",
    "Order",
    "Position",
    "Sort",
    "ask",
    "count_up_to",
    "fetch",
    "parse_order",
]

PAGE_SIZE = 100
MAX_PAGE = 1_000
MAX_FILE = 50_000
"""Rows of one CSV file; the answer's Link header leads to the next."""
COUNT_CEILING = 10_000
"""Lists are counted up to here; beyond, a page says "more than"."""

_POSITION = re.compile(r"(null|-?[0-9]{1,19})(?:\.([0-9]{1,9}))?")


class BadPosition(ValueError):
    """A page position or order that this list does not have."""


Moment = tuple[ColumnElement[int], ...]
"""The time by which a table's rows have their position: the first of these columns that is not NULL."""


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
class Asked:
    """One page of a list, as the query string asks for it."""

    where: Conditions
    order: Order
    after: Position | None
    limit: int


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


def ask(query: Mapping[str, str], filters: tuple[Filter, ...], sorts: tuple[Sort, ...], *, form: str = "html") -> Asked:
    """What a query string asks of a list; a file of CSV holds more rows than a page. Raises BadFilter, BadPosition."""
    most = MAX_FILE if form == "csv" else MAX_PAGE
    limit = MAX_FILE if form == "csv" else PAGE_SIZE
    if text := query.get("limit"):
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
            raise BadPosition(f"limit={text}: a page has 1 to {most} rows.")
        limit = int(text)
    after = Position.parse(query["after"]) if query.get("after") else None
    return Asked(parse_conditions(filters, query), parse_order(sorts, query.get("sort")), after, limit)


def fetch(db: Connection, rows: Select[Any], *, table: FromClause, moment: Moment, asked: Asked) -> Fetched:
    """One page of a list.

    `rows` selects, by `select_from`, from `table` and what it joins; `moment` is the time by which rows of `table` have their
    position. Raises BadPosition when this copy of the trace has no row at the position.
    """
    order, key = asked.order, asked.order.sort.column
    statement = rows.add_columns(table.c.n.label("_n"), _value(moment).label("_moment"))
    statement = statement.where(table.c.trace_id == 1, *asked.where.clauses())
    if asked.after is not None:
        statement = statement.where(_beyond(db, rows, table, moment, order, asked.after))
    directed = key.desc().nulls_last() if order.falls else key.asc().nulls_last()
    by_number = table.c.n.desc() if order.falls else table.c.n.asc()
    found = db.execute(statement.order_by(directed, by_number).limit(asked.limit + 1)).all()
    if len(found) <= asked.limit:
        return Fetched(list(found), None)
    last = found[asked.limit - 1]
    place = db.execute(
        select(func.count()).select_from(table).where(table.c.trace_id == 1, _is(moment, last._moment), table.c.n <= last._n)
    ).scalar_one()
    return Fetched(list(found[: asked.limit]), Position(last._moment, place))


def _value(moment: Moment) -> ColumnElement[int]:
    return func.coalesce(*moment) if len(moment) > 1 else moment[0]


def _is(moment: Moment, ns: int | None) -> ColumnElement[bool]:
    """The condition of the rows of one time, written so that an index of the first column serves."""
    if ns is None:
        return and_(*(column.is_(None) for column in moment))
    first, *others = moment
    return or_(first == ns, and_(first.is_(None), _is(tuple(others), ns))) if others else first == ns


def _beyond(
    db: Connection,
    rows: Select[Any],
    table: FromClause,
    moment: Moment,
    order: Order,
    after: Position,  # Any: as above
) -> ColumnElement[bool]:
    """The condition of the rows that follow a position."""
    key, n = order.sort.column, table.c.n
    place = select(n).where(table.c.trace_id == 1, _is(moment, after.ns)).order_by(n).limit(1).offset(max(after.place, 1) - 1)
    number = db.execute(place).scalar()
    found = db.execute(rows.with_only_columns(key).where(table.c.trace_id == 1, n == number)).first() if number is not None else None
    if found is None:
        raise BadPosition(f"after={after}: this copy of the trace has no such page. Begin with the first.")
    value = found[0]
    later: ColumnElement[bool] = n < number if order.falls else n > number
    if value is None:
        return and_(key.is_(None), later)
    further = key < value if order.falls else key > value
    return or_(further, and_(key == value, later), key.is_(None))


def count_up_to(db: Connection, rows: Select[Any], *, table: FromClause, where: Conditions, ceiling: int = COUNT_CEILING) -> int | None:
    """How many rows a list has, at most `ceiling` + 1, which means more; None when counting takes too long."""
    some = rows.with_only_columns(table.c.n).where(table.c.trace_id == 1, *where.clauses()).limit(ceiling + 1).subquery()
    try:
        return int(db.execute(select(func.count()).select_from(some)).scalar_one())
    except StoreSlow:
        return None
