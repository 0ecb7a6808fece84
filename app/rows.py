"""The rows of a table as HTML. A page has thousands of cells: what is alike in a column is made once, by the macro of its kind."""

from collections.abc import Callable, Mapping
from typing import Any

from jinja2.runtime import Macro
from markupsafe import Markup, escape

from app.listing import Column, Listing
from app.page import TraceHead

__all__ = ["table_rows"]

_Cell = Callable[[Any, Any], str]  # Any: a value, and the row that it is of


def table_rows(
    listing: Listing, cells: Mapping[str, Macro], trace: TraceHead | None, links: str = "", selected: str | None = None
) -> Markup:
    """The rows of a listing.

    `cells` are macros by the kind of a column, of a value, the trace and the row, or the first of these; one that does not ask for the row
    is asked once for each value of a column; the one called `noted` marks rows with notes.
    `links` names the attribute of a row that is its object's link.
    """
    shown = [head.column for head in listing.heads]
    columns = [(column.key, *_openings(column), _cell(cells.get(column.kind, cells["text"]), trace)) for column in shown]
    standouts, marked = listing.standouts, listing.marks.rows
    made: list[str] = []
    for place, row in enumerate(listing.rows):
        if links:
            link = getattr(row, links)
            selects = ' aria-selected="true"' if link == selected else ""
            made.append(f'<tr data-link="{escape(link)}"{selects}>')
        else:
            made.append("<tr>")
        noted = cells["noted"](marked[place], trace) if place in marked else ""
        for key, opening, opening_of_standout, cell in columns:
            made += (opening_of_standout if standouts and (place, key) in standouts else opening, cell(getattr(row, key), row), noted)
            made.append("</td>")
            noted = ""  # the mark stands in the first cell
        made.append("</tr>\n")
    return Markup("".join(made))


def _openings(column: Column) -> tuple[str, str]:
    """What stands before a cell, and before one that stands out."""
    first = f'<td class="k-{escape(column.kind)}{" keep" if column.keeps else ""}'
    last = f'" data-label="{escape(column.title)}">'
    return first + last, first + " standout" + last


def _cell(macro: Macro, trace: TraceHead | None) -> _Cell:
    """What makes the cells of one column."""
    number = len(macro.arguments)
    if number > 2:
        return lambda value, row: macro(value, trace, row)
    known: dict[tuple[type, Any], str] = {}  # Any: the values of a column

    def cell(value: Any, row: Any) -> str:  # Any: as above
        made = known.get((type(value), value))
        if made is None:
            made = known[type(value), value] = macro(value, trace) if number > 1 else macro(value)
        return made

    return cell
