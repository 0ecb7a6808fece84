"""The rows of a table: which macro makes a cell, how often it is asked, and that nothing in a row gets past the escaping."""

from dataclasses import dataclass

import pytest
from jinja2 import Environment

from app.listing import Column, plain_listing
from app.rows import table_rows

MACROS = """
{% macro text_cell(value) %}{% if log.append(value) %}{% endif %}<i>{{ value }}</i>{% endmacro %}
{% macro pair_cell(value, trace, row) %}{{ value }}/{{ row.size }}{% endmacro %}
{% set CELLS = {"text": text_cell, "pair": pair_cell} %}
"""


@dataclass(frozen=True, slots=True)
class Row:
    name: str | None
    size: int


def html(rows: list[Row], *columns: Column, links: str = "", selected: str | None = None) -> tuple[str, list[object]]:
    """The rows as HTML, and the values for which the macro of text was asked."""
    log: list[object] = []
    module = Environment(autoescape=True).from_string(MACROS).make_module({"log": log})
    cells = module.CELLS  # type: ignore[attr-defined]  # what the template sets
    return str(table_rows(plain_listing("rows", "/", columns, rows, Row), cells, None, links, selected)), log


def test_equal_values_of_a_column_are_made_once_and_shown_in_each_row() -> None:
    shown, asked = html([Row("a", 1), Row("b", 2), Row("a", 3), Row(None, 4)], Column("name", "Name"))
    assert asked == ["a", "b", None]
    assert shown.count("<i>a</i>") == 2
    assert shown.count("<tr>") == 4


def test_values_that_are_equal_but_not_alike_are_told_apart() -> None:
    shown, _ = html([Row("1", 1), Row("1", True)], Column("size", "Size"))
    assert "<i>1</i>" in shown
    assert "<i>True</i>" in shown


def test_a_cell_that_asks_for_its_row_is_made_for_each() -> None:
    shown, _ = html([Row("a", 1), Row("a", 2)], Column("name", "Name", "pair"))
    assert "a/1" in shown
    assert "a/2" in shown


def test_a_kind_without_a_macro_is_text() -> None:
    assert "<i>a</i>" in html([Row("a", 1)], Column("name", "Name", "mono"))[0]


@pytest.mark.parametrize("hostile", ['<script>"', "a\"b'c&"])
def test_values_titles_and_links_are_escaped(hostile: str) -> None:
    shown, _ = html([Row(hostile, 1)], Column("name", hostile, "text"), links="name", selected=hostile)
    assert hostile not in shown
    assert 'aria-selected="true"' in shown
    assert "<script" not in shown


def test_a_number_far_above_its_column_is_marked() -> None:
    rows = [Row("a", size) for size in (1, 2, 1, 500)]
    shown, _ = html(rows, Column("size", "Size", "count", keeps=True))
    assert shown.count('class="k-count keep"') == 3
    assert shown.count('class="k-count keep standout"') == 1
