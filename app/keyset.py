"""Pages of lists whose rows have a name of their own, such as the key of a trace: a page begins after the row of a name.

The row is looked up again and the next ones follow it in the order (sort value, name), so that rows which come and go move no page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, false, func, or_, select

from app.filters import Conditions, Filter, parse_conditions
from app.paging import COUNT_CEILING, BadPosition, Order, Sort, asked_limit, parse_order

__all__ = ["AskedByName", "Name", "NamedRows", "ask_by_name", "count_named", "fetch_named"]

_MARK, _UNKNOWN = "=", "-"  # before each part that is known; for one that is not
_BETWEEN = "\x1f"  # of the parts, in no name that is shown


@dataclass(frozen=True, slots=True)
class Name:
    """What a row is called: its parts as text, None for a part that is unknown."""

    parts: tuple[str | None, ...]

    def __str__(self) -> str:
        return ",".join(_UNKNOWN if part is None else f"{_MARK}{part.replace(',', _BETWEEN)}" for part in self.parts)

    @classmethod
    def parse(cls, text: str) -> "Name":
        """Raises BadPosition."""
        parts = text.split(",")
        if any(part != _UNKNOWN and not part.startswith(_MARK) for part in parts):
            raise BadPosition(f"after={text[:80]}: a page position is what the link to the next page has.")
        return cls(tuple(None if part == _UNKNOWN else part[1:].replace(_BETWEEN, ",") for part in parts))


@dataclass(frozen=True, slots=True)
class AskedByName:
    """One page of a list, as the query string asks for it."""

    where: Conditions
    order: Order
    after: Name | None
    limit: int


@dataclass(frozen=True, slots=True)
class NamedRows:
    """Rows of one page, and where the next one begins (None on the last)."""

    rows: list[Row[Any]]  # Any: each feature reads the columns that it selected
    next: Name | None


def ask_by_name(query: Mapping[str, str], filters: tuple[Filter, ...], sorts: tuple[Sort, ...], *, form: str) -> AskedByName:
    """What a query string asks of a list, as `paging.ask`. Raises BadFilter, BadPosition."""
    after = Name.parse(query["after"]) if query.get("after") else None
    return AskedByName(parse_conditions(filters, query), parse_order(sorts, query.get("sort")), after, asked_limit(query, form))


def fetch_named(
    db: Connection,
    rows: Select[Any],  # Any: each feature selects its own columns
    *,
    name: Sequence[ColumnElement[Any]],  # Any: text, or a number that is written as text
    asked: AskedByName,
    values: Mapping[str, object] | None = None,
) -> NamedRows:
    """One page of a list. `name` are the columns that name a row; `values` those of parameters in `rows` or the filters.

    Raises BadPosition when there is no row of the name any more.
    """
    key, falls = asked.order.sort.column, asked.order.falls
    labelled = rows.add_columns(key.label("_key"), *(part.label(f"_name{place}") for place, part in enumerate(name)))
    wanted = labelled.where(*asked.where.clauses())
    if asked.after is not None:
        start = _row_of(db, labelled, name, asked.after, values)
        wanted = wanted.where(_beyond(start, [key, *name], falls=falls))
    directions = [(part.desc() if falls else part.asc()).nulls_last() for part in (key, *name)]
    found = list(db.execute(wanted.order_by(*directions).limit(asked.limit + 1), values or {}).all())
    shown = found[: asked.limit]
    return NamedRows(shown, _name_of(shown[-1], len(name)) if len(found) > asked.limit else None)


def count_named(
    db: Connection,
    rows: Select[Any],  # Any: as above
    asked: AskedByName,
    values: Mapping[str, object] | None = None,
) -> int:
    """How many rows a list has, at most COUNT_CEILING + 1, which means more."""
    some = rows.where(*asked.where.clauses()).limit(COUNT_CEILING + 1).subquery()
    return int(db.execute(select(func.count()).select_from(some), values or {}).scalar_one())


def _name_of(row: Row[Any], parts: int) -> Name:  # Any: as above
    values = (row._mapping[f"_name{place}"] for place in range(parts))
    return Name(tuple(None if value is None else str(value) for value in values))


def _row_of(
    db: Connection,
    rows: Select[Any],  # Any: as above
    name: Sequence[ColumnElement[Any]],  # Any: as above
    after: Name,
    values: Mapping[str, object] | None,
) -> Row[Any]:  # Any: as above
    gone = BadPosition(f"after={after}: this list has no such page any more. Begin with the first.")
    if len(after.parts) != len(name):
        raise gone
    is_it = []
    for column, part in zip(name, after.parts, strict=True):
        is_number = column.type.python_type is int
        if part is not None and is_number and not (part.isascii() and part.isdigit() and len(part) < 19):
            raise gone
        is_it.append(column.is_not_distinct_from(int(part) if part is not None and is_number else part))
    found = db.execute(rows.where(*is_it).limit(1), values or {}).first()
    if found is None:
        raise gone
    return found


def _beyond(start: Row[Any], columns: Sequence[ColumnElement[Any]], *, falls: bool) -> ColumnElement[bool]:  # Any: as above
    """The condition of the rows that follow one; what is unknown comes last."""
    parts: list[ColumnElement[bool]] = []
    same: list[ColumnElement[bool]] = []
    known = [start._mapping["_key"], *(start._mapping[f"_name{place}"] for place in range(len(columns) - 1))]
    for column, value in zip(columns, known, strict=True):
        further = false() if value is None else or_(column < value if falls else column > value, column.is_(None))
        parts.append(and_(*same, further))
        same.append(column.is_not_distinct_from(value))
    return or_(*parts)
