"""Pages of long lists without counting and without row numbers in a URL.

A page begins after a *position*: the time of a row, and which of the rows of that very time it is. The row itself is looked up
again, and the next rows follow it in the order (sort value, n). `n` counts in time order, so a time is found by halving.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    and_,
    bindparam,
    func,
    or_,
    select,
    true,
    union_all,
)

from app.filters import Conditions, Filter, parse_conditions
from app.links import BadLink, parse_moment
from app.planning import without_index, without_joins
from app.queries.resolution import LONG_NS
from app.sort_groups import Place, SortGroups, numbers_by_group
from collector.errors import StoreSlow
from collector.store.tables import THIS_TRACE

__all__ = [
    "COUNT_CEILING",
    "MAX_FILE",
    "MAX_PAGE",
    "MAX_SHOWN",
    "PAGE_SIZE",
    "Asked",
    "BadPosition",
    "Fetched",
    "Moment",
    "Order",
    "Position",
    "Sort",
    "ask",
    "asked_limit",
    "count_up_to",
    "fetch",
    "number_at",
    "parse_order",
]

PAGE_SIZE = 100
MAX_PAGE = 1_000
MAX_SHOWN = 200
"""Rows of a page for people: a browser lays out no more without a pause, and the page stays light."""
MAX_FILE = 50_000
"""Rows of one CSV file; the answer's Link header leads to the next."""
COUNT_CEILING = 10_000
"""Lists are counted up to here; beyond, a page says "more than"."""

_AT_ONCE = 10_000  # numbers of one IN; SQLite binds at most 32,766 values
_POSITION = re.compile(r"(-?[0-9]{1,19})(?:\.([0-9]{1,9}))?")


class BadPosition(ValueError):
    """A page position or order that this list does not have."""


Moment = tuple[ColumnElement[int], ...]
"""The time by which a table's rows have their position: the first of these columns that is not NULL."""


@dataclass(frozen=True, slots=True)
class Sort:
    """A column that a list can be sorted by.

    `falls` says that its first click shows the greatest first; `is_time` that it is the time by which `n` counts: then `n` is the order.
    """

    key: str
    column: ColumnElement[Any]  # Any: columns of every type can be sorted by
    falls: bool = False
    is_time: bool = False
    groups: SortGroups | None = None


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

    ns: int
    place: int = 1

    def __str__(self) -> str:
        return str(self.ns) if self.place == 1 else f"{self.ns}.{self.place}"

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Raises BadPosition."""
        found = _POSITION.fullmatch(text)
        if not found:
            raise BadPosition(f"after={text}: a page position is a time in nanoseconds, as the link to the next page has it.")
        try:
            return cls(parse_moment(found[1]), int(found[2] or 1))
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
    limit = asked_limit(query, form)
    after = Position.parse(query["after"]) if query.get("after") else None
    return Asked(parse_conditions(filters, query), parse_order(sorts, query.get("sort")), after, limit)


def asked_limit(query: Mapping[str, str], form: str) -> int:
    """How many rows a page is to have. Raises BadPosition."""
    most = {"csv": MAX_FILE, "json": MAX_PAGE}.get(form, MAX_SHOWN)
    limit = MAX_FILE if form == "csv" else PAGE_SIZE
    as_data = f", as JSON up to {MAX_PAGE}, as CSV up to {MAX_FILE}" if form == "html" else ""
    if text := query.get("limit"):
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
            raise BadPosition(f"limit={text}: a page has 1 to {most} rows{as_data}.")
        limit = int(text)
    return limit


def fetch(
    db: Connection,
    rows: Select[Any],  # Any: each feature selects its own columns
    *,
    table: FromClause,
    moment: Moment,
    asked: Asked,
    are_moments: bool = False,
    long_lived: ColumnElement[bool] | None = None,
) -> Fetched:
    """One page of a list.

    `rows` selects, by `select_from`, from `table` and what it joins; `n` of `table` counts in the order of `moment`, which gives a
    row its position. `are_moments` says that a row is nothing but a moment, so that a time range is a range of `n`. `long_lived` is
    the condition of the index of the rows that live longer than LONG_NS, where the table has one.

    First the rows of the page are found, by as few columns as that takes, then they alone are read. Raises BadPosition when this copy
    of the trace has no row at the position.
    """
    order, key, n = asked.order, asked.order.sort.column, table.c.n
    after = None if asked.after is None else _place(db, rows, table, moment, order, asked.after)
    if order.sort.groups is not None and not asked.where.items:
        return _read(
            db,
            rows,
            table,
            moment,
            list(numbers_by_group(db, table, order.sort.groups, falls=order.falls, after=after, limit=asked.limit + 1)),
            asked.limit,
        )
    conditions = [table.c.trace_id == THIS_TRACE, *asked.where.clauses()]
    if after is not None:
        conditions.append(_beyond(order, n, after))
    counted = without_index(n) if asked.where.is_narrow else n
    narrow = without_joins(rows, table, [key, *conditions]).with_only_columns(n.label("n"), key.label("key")).where(*conditions)
    parts = [narrow.where(part) for part in _ranges(db, table, moment, asked.where, are_moments=are_moments, long_lived=long_lived)]
    numbers: list[int] = []
    if len(parts) == 1:
        numbers = list(db.execute(parts[0].order_by(*_directions(order, key, counted)).limit(asked.limit + 1)).scalars())
    else:
        limited = [part.order_by(*_directions(order, key, counted)).limit(asked.limit + 1).subquery() for part in parts]
        both = union_all(*(select(part.c.n, part.c.key) for part in limited)).subquery()
        numbers = list(db.execute(select(both.c.n).order_by(*_directions(order, both.c.key, both.c.n)).limit(asked.limit + 1)).scalars())
    return _read(db, rows, table, moment, numbers, asked.limit)


def _read(
    db: Connection,
    rows: Select[Any],  # Any: as above
    table: FromClause,
    moment: Moment,
    numbers: list[int],
    limit: int,
) -> Fetched:
    """The rows of these numbers; where there are more than the limit, the page ends before the last."""
    n = table.c.n
    has_more = len(numbers) > limit
    numbers = numbers[:limit]
    by_number: dict[int, Row[Any]] = {}  # Any: as above
    for begin in range(0, len(numbers), _AT_ONCE):
        some = numbers[begin : begin + _AT_ONCE]
        whole = rows.add_columns(n.label("_n"), _value(moment).label("_moment")).where(table.c.trace_id == THIS_TRACE, n.in_(some))
        by_number |= {row._n: row for row in db.execute(whole)}
    found = [by_number[number] for number in numbers]
    if not has_more:
        return Fetched(found, None)
    last = found[-1]
    return Fetched(found, Position(last._moment, _place_of(db, table, moment, last._moment, last._n)))


def _directions(order: Order, key: ColumnElement[Any], n: ColumnElement[Any]) -> tuple[ColumnElement[Any], ...]:  # Any: as above
    """Columns to order by."""
    by_number = n.desc() if order.falls else n.asc()
    if order.sort.is_time:
        return (by_number,)
    return (key.desc().nulls_last() if order.falls else key.asc().nulls_last(), by_number)


def _ranges(
    db: Connection,
    table: FromClause,
    moment: Moment,
    where: Conditions,
    *,
    are_moments: bool,
    long_lived: ColumnElement[bool] | None,
) -> list[ColumnElement[bool]]:
    """The time range as ranges of `n`, none of which leaves out a row of the range, and which have no row in common."""
    n, from_ns, to_ns = table.c.n, where.value("from"), where.value("to")
    upper = [] if to_ns is None else [n < number_at(db, table, moment, to_ns + 1)]
    if from_ns is None:
        return [and_(true(), *upper)]
    if are_moments:
        return [and_(n >= number_at(db, table, moment, from_ns), *upper)]
    if long_lived is None:
        return [and_(true(), *upper)]
    lower = number_at(db, table, moment, from_ns - LONG_NS)
    return [and_(n >= lower, *upper), and_(long_lived, without_index(n) < lower, *upper)]


def number_at(db: Connection, table: FromClause, moment: Moment, ns: int) -> int:
    """The first `n` of a table whose moment is not before a time; one past the last where all are before. `n` counts in time order."""
    n, own = table.c.n, table.c.trace_id == THIS_TRACE
    ends = db.execute(select(*(select(end(n)).where(own).scalar_subquery() for end in (func.min, func.max)))).one()
    if ends[0] is None:
        return 0
    low, high = int(ends[0]), int(ends[1]) + 1
    step = select(n, _value(moment)).where(own, n >= bindparam("middle")).order_by(n).limit(1)
    while low < high:
        middle = (low + high) // 2
        number, value = db.execute(step, {"middle": middle}).one()
        if value is None or value < ns:
            low = int(number) + 1
        else:
            high = middle
    return low


def _value(moment: Moment) -> ColumnElement[int]:
    return func.coalesce(*moment) if len(moment) > 1 else moment[0]


def _place_of(db: Connection, table: FromClause, moment: Moment, ns: int, number: int) -> int:
    """Which of the rows of its time a row is, from 1."""
    first = number_at(db, table, moment, ns)
    return int(db.execute(select(func.count()).where(table.c.trace_id == THIS_TRACE, table.c.n.between(first, number))).scalar_one())


def _place(
    db: Connection,
    rows: Select[Any],  # Any: as above
    table: FromClause,
    moment: Moment,
    order: Order,
    after: Position,
) -> Place:
    """The row at a position. Raises BadPosition."""
    n = table.c.n
    first = number_at(db, table, moment, after.ns)
    at = rows.with_only_columns(n, order.sort.column, _value(moment)).where(table.c.trace_id == THIS_TRACE, n >= first).order_by(n)
    found = db.execute(at.limit(1).offset(max(after.place, 1) - 1)).first()
    if found is None or found[2] != after.ns:
        raise BadPosition(f"after={after}: this copy of the trace has no such page. Begin with the first.")
    return Place(found[0], found[1])


def _beyond(order: Order, n: ColumnElement[int], place: Place) -> ColumnElement[bool]:
    """The condition of the rows that follow a place."""
    key, value = order.sort.column, place.value
    later: ColumnElement[bool] = n < place.number if order.falls else n > place.number
    if order.sort.is_time:
        return later
    if value is None:
        return and_(key.is_(None), later)
    further = key < value if order.falls else key > value
    return or_(further, and_(key == value, later), key.is_(None))


def count_up_to(
    db: Connection,
    rows: Select[Any],  # Any: as above
    *,
    table: FromClause,
    moment: Moment,
    where: Conditions,
    are_moments: bool = False,
    long_lived: ColumnElement[bool] | None = None,
) -> int | None:
    """How many rows a list has, at most COUNT_CEILING + 1, which means more; None when counting takes too long."""
    total = 0
    for part in _ranges(db, table, moment, where, are_moments=are_moments, long_lived=long_lived):
        conditions = [table.c.trace_id == THIS_TRACE, *where.clauses(), part]
        some = without_joins(rows, table, conditions).with_only_columns(table.c.n).where(*conditions)
        try:
            total += int(db.execute(select(func.count()).select_from(some.limit(COUNT_CEILING + 1 - total).subquery())).scalar_one())
        except StoreSlow:
            return None
    return total
