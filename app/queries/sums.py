"""Counting the rows of a group that meet a condition."""

from typing import Any

from sqlalchemy import ColumnElement, Integer, case, func, type_coerce

__all__ = ["number_where"]


def number_where(condition: ColumnElement[Any]) -> ColumnElement[int]:  # Any: a condition, whose type SQLAlchemy does not always know
    """How many rows of a group meet a condition; NULL for a group without rows. A plain sum of conditions would come back as a boolean."""
    return type_coerce(func.sum(case((condition, 1), else_=0)), Integer)
