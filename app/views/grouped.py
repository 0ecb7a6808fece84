"""A page whose table is a grouping: no pages to turn, the first rows in the order asked for."""

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from app.deps import OpenTrace
from app.filters import Filter
from app.format import plural
from app.listing import Column, Listing, listing
from app.paging import Asked, Sort

__all__ = ["grouped_listing", "grouped_sentence"]


def grouped_listing(
    request: Request,
    trace: OpenTrace,
    asked: Asked,
    rows: Sequence[Any],  # Any: each list has a row type of its own
    *,
    name: str,
    columns: Sequence[Column],
    filters: Sequence[Filter],
    sorts: Sequence[Sort],
) -> Listing:
    """A filtered and sorted table without further pages."""
    return listing(
        name,
        trace.urls.here(request),
        columns,
        rows,
        filters=filters,
        sorts=sorts,
        where=asked.where,
        order=asked.order,
        next_position=None,
        after=None,
        total=len(rows),
    )


def grouped_sentence(rows: int, has_more: bool, noun: tuple[str, str], asked: Asked, order: str) -> str:
    """`The first 100 groups of process a.exe, by count.`"""
    size = f"The first {plural(rows, *noun)}" if has_more else plural(rows, *noun) if rows else f"No {noun[1]}"
    narrowed = asked.where.in_words()
    return f"{size}{' ' + narrowed if narrowed else ''}{', ' + order if rows > 1 else ''}."
