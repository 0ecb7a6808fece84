"""Statements written so that the planner reads less of a long list."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnClause, ColumnElement, FromClause, Integer, Join, Select, select, type_coerce
from sqlalchemy.sql.visitors import iterate

__all__ = ["without_index", "without_joins"]


def without_index(n: ColumnElement[Any]) -> ColumnElement[Any]:  # Any: an integer
    """A number that no index gives the planner: it is to find the rows by another one."""
    return type_coerce(n, Integer).op("+")(0)


def without_joins(rows: Select[Any], table: FromClause, wanted: Sequence[ColumnElement[Any]]) -> Select[Any]:  # Any: as callers select
    """The select without the look-ups from which nothing comes that is wanted: each costs millions of steps."""
    if rows.whereclause is not None:
        return rows
    used = {owner for part in wanted for owner in _owners(part)}
    return select(table.c.n).select_from(*(_needed(source, used) for source in rows.get_final_froms()))


def _needed(source: FromClause, used: set[FromClause]) -> FromClause:
    """A join without the outer joins on its right that no column is used of; what those that stay are joined by is used."""
    if not isinstance(source, Join):
        return source
    if source.isouter and not isinstance(source.right, Join) and source.right not in used:
        return _needed(source.left, used)
    return _needed(source.left, used | set(_owners(source.onclause))).join(source.right, source.onclause, isouter=source.isouter)


def _owners(part: ColumnElement[Any] | None) -> Iterator[FromClause]:  # Any: as above
    """The tables and aliases of the columns in an expression."""
    for column in iterate(part) if part is not None else ():
        if isinstance(column, ColumnClause) and column.table is not None:
            yield column.table
