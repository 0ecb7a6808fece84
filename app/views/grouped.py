"""A page whose table is a grouping: sums in the order asked for."""

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from app.deps import OpenTrace
from app.filters import Filter
from app.format import plural
from app.listing import Column, Listing, listing
from app.notes import noted_rows
from app.paging import Asked, Position, Sort
from app.views.lists import Empty, kept_parts, order_words, why_empty

__all__ = ["grouped_part", "grouped_sentence"]


def grouped_part(
    request: Request,
    trace: OpenTrace,
    asked: Asked,
    rows: Sequence[Any],  # Any: each list has a row type of its own
    following: Position | None,
    *,
    name: str,
    columns: Sequence[Column],
    filters: Sequence[Filter],
    sorts: Sequence[Sort],
    row_type: type,
    nouns: str,
    needs: tuple[str, ...],
    otherwise: str,
) -> tuple[Listing, Empty | None]:
    """A filtered, sorted and paged table of groups, which are counted where they fit one page, and why it is empty where it is.

    `nouns`, `needs` and `otherwise` are those of `why_empty`.
    """
    table = listing(
        name,
        trace.urls.here(request),
        columns,
        rows,
        filters=filters,
        sorts=sorts,
        where=asked.where,
        order=asked.order,
        next_position=following,
        after=asked.after,
        total=len(rows) if following is None and asked.after is None else None,
        kept=kept_parts(request),
        marks=noted_rows(request, trace, rows),
        row_type=row_type,
    )
    if rows:
        return table, None
    narrowed = asked.where.in_words()
    return table, why_empty(trace.db, nouns=nouns, needs=needs, otherwise=otherwise, clear_href=table.clear_href, narrowed=narrowed)


def grouped_sentence(rows: int, listing: Listing, noun: tuple[str, str], asked: Asked, order: str) -> str:
    """`The first 100 groups of process a.exe, by count.`; `order` says the list's own order in words."""
    is_part = listing.next_href is not None or listing.first_href is not None
    which = "The next" if listing.first_href is not None else "The first"
    size = f"{which} {plural(rows, *noun)}" if is_part else plural(rows, *noun) if rows else f"No {noun[1]}"
    narrowed = asked.where.in_words()
    columns = [head.column for head in listing.heads]
    order = order if listing.is_in_own_order else order_words(columns, asked)
    return f"{size}{' ' + narrowed if narrowed else ''}{', ' + order if rows > 1 else ''}."
