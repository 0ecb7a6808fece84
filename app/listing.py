"""A table as a page shows it: columns, rows, the filters that hold, its order, and the links that change them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from app.filters import Conditions, Filter
from app.format import plural
from app.keyset import Name
from app.paging import COUNT_CEILING, Order, Position, Sort
from app.urls import with_query

__all__ = ["Chip", "Column", "Head", "Input", "Listing", "Marks", "Noted", "listing", "plain_listing"]

NUMBERS = frozenset({"bytes", "count", "duration"})
_STANDS_OUT = 10  # times the median of its column


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the attribute of a row, its head, and the kind of cell that shows it (a macro of `_table.html`).

    `keeps` holds it beside the row's name on a small screen, where the others fold beneath. `term` is its entry of the glossary.
    """

    key: str
    title: str
    kind: str = "text"
    keeps: bool = False
    term: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """A column's head: the link that sorts by it, and how it is sorted now (`ascending`, `descending` or empty)."""

    column: Column
    href: str | None = None
    order: str = ""


@dataclass(frozen=True, slots=True)
class Input:
    """A filter in the form above a table, with what was typed."""

    filter: Filter
    text: str


@dataclass(frozen=True, slots=True)
class Chip:
    """A condition in words, and the link to the page without it."""

    words: str
    href: str


@dataclass(frozen=True, slots=True)
class Noted:
    """How many notes hang on what a row is about, a link below /t/KEY."""

    object: str
    notes: int


@dataclass(frozen=True, slots=True)
class Marks:
    """The rows of a table, by their place, on which people wrote notes; `trouble` says why that is not known."""

    rows: Mapping[int, Noted] = field(default_factory=dict)
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a table. `total` is None when nobody counted; with `total_is_more` it is where counting stopped.

    `row_type` is the dataclass of its rows, for the head of a file without rows.
    """

    name: str
    heads: tuple[Head, ...]
    rows: tuple[Any, ...]  # Any: each list has a row type of its own
    row_type: type
    where: Conditions
    order: Order | None = None
    inputs: tuple[Input, ...] = ()
    chips: tuple[Chip, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    total: int | None = None
    total_is_more: bool = False
    next_href: str | None = None
    first_href: str | None = None
    clear_href: str | None = None
    json_href: str = ""
    csv_href: str = ""
    standouts: frozenset[tuple[int, str]] = frozenset()
    marks: Marks = field(default_factory=Marks)
    is_in_own_order: bool = True

    @property
    def size(self) -> str:
        """How many rows there are, in words."""
        if self.total is None:
            return f"{plural(len(self.rows), 'row')} on this page" if self.next_href or self.first_href else plural(len(self.rows), "row")
        return f"more than {plural(self.total, 'row')}" if self.total_is_more else plural(self.total, "row")


def listing(
    name: str,
    path: str,
    columns: Sequence[Column],
    rows: Sequence[Any],  # Any: each list has a row type of its own
    *,
    filters: Sequence[Filter],
    sorts: Sequence[Sort],
    where: Conditions,
    order: Order,
    next_position: Position | Name | None,
    after: Position | Name | None,
    total: int | None,
    row_type: type,
    kept: Mapping[str, str] | None = None,
    marks: Marks | None = None,
) -> Listing:
    """A filtered, sorted and paged table at `path`; `kept` is what links to its other pages keep besides filters and order."""
    query = where.query()
    default = str(Order(sorts[0], sorts[0].falls))
    sorted_query = query if str(order) == default else query | {"sort": str(order)}
    by_key = {sort.key: sort for sort in sorts}

    def head(column: Column) -> Head:
        sort = by_key.get(column.key)
        if sort is None:
            return Head(column)
        is_now = order.sort.key == sort.key
        turned = Order(sort, not order.falls if is_now else sort.falls)
        ordered = query if str(turned) == default else query | {"sort": str(turned)}
        return Head(column, with_query(path, ordered), ("descending" if order.falls else "ascending") if is_now else "")

    given = {item.filter.key: item.text for item in where.items}
    whole = sorted_query | ({"after": str(after)} if after else {})
    paged = sorted_query | dict(kept or {})
    return Listing(
        name=name,
        heads=tuple(head(column) for column in columns),
        rows=tuple(rows),
        where=where,
        order=order,
        inputs=tuple(Input(one, given.get(one.key, "")) for one in filters),
        chips=tuple(
            Chip(item.in_words(), with_query(path, where.without(item.filter.key) | _order_of(order, default))) for item in where.items
        ),
        kept=_order_of(order, default),
        total=None if total is None else min(total, COUNT_CEILING),
        total_is_more=total is not None and total > COUNT_CEILING,
        next_href=with_query(path, paged | {"after": str(next_position)}) if next_position else None,
        first_href=with_query(path, paged) if after else None,
        clear_href=with_query(path, _order_of(order, default)) if where.is_narrowed else None,
        json_href=with_query(path, whole | {"format": "json"}),
        csv_href=with_query(path, sorted_query | {"format": "csv"}),
        standouts=_standouts(columns, rows),
        marks=marks or Marks(),
        is_in_own_order=str(order) == default,
        row_type=row_type,
    )


def plain_listing(
    name: str,
    path: str,
    columns: Sequence[Column],
    rows: Sequence[Any],  # Any: as above
    row_type: type,
) -> Listing:
    """A short table that shows all its rows in one order."""
    return Listing(
        name=name,
        heads=tuple(Head(column) for column in columns),
        rows=tuple(rows),
        where=Conditions(),
        total=len(rows),
        json_href=with_query(path, {"format": "json"}),
        csv_href=with_query(path, {"format": "csv", "table": name}),
        standouts=_standouts(columns, rows),
        row_type=row_type,
    )


def _order_of(order: Order, default: str) -> dict[str, str]:
    return {} if str(order) == default else {"sort": str(order)}


def _standouts(columns: Sequence[Column], rows: Sequence[Any]) -> frozenset[tuple[int, str]]:  # Any: as above
    """Cells whose number is ten times the median of its column or more."""
    found = set()
    for column in columns:
        if column.kind in NUMBERS:
            numbers = [(index, value) for index, row in enumerate(rows) if isinstance(value := getattr(row, column.key), int)]
            middle = median(value for _, value in numbers) if len(numbers) > 2 else 0
            if middle > 0:
                found |= {(index, column.key) for index, value in numbers if value >= _STANDS_OUT * middle}
    return frozenset(found)
