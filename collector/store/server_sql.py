"""How statements that SQLite answers are spelled for PostgreSQL, so that both give the same rows in the same order.

Queries are written once. What differs is here, by the kind of expression: where NULL stands in an order, how texts are compared, how wide
integers are, how a number becomes one without decimals and a flag a number, how a member of a JSON text is read.
"""

from typing import Any

from sqlalchemy import Boolean, Column, FromClause, Integer, Join, Table, nulls_first, nulls_last
from sqlalchemy.dialects.postgresql.base import PGTypeCompiler
from sqlalchemy.dialects.postgresql.psycopg import PGCompiler_psycopg, PGDialect_psycopg
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import ClauseList, UnaryExpression, _label_reference
from sqlalchemy.sql.selectable import Alias, Select

__all__ = ["speak"]


def speak(dialect: Dialect) -> None:
    """Have an engine's statements spelled as this module says."""
    assert isinstance(dialect, PGDialect_psycopg)
    dialect.statement_compiler = _Compiler
    dialect.type_compiler_instance = _Types(dialect)


class _Types(PGTypeCompiler):
    """Integers have 64 bits, as in SQLite."""

    def visit_INTEGER(self, type_: Any, **kw: Any) -> str:
        return "BIGINT"


# Any and ignored types, below: SQLAlchemy's compilers are untyped.
class _Compiler(PGCompiler_psycopg):
    """The differences in statements."""

    def order_by_clause(self, select: Any, **kw: Any) -> str:
        """NULL comes first, in a falling order last, unless the statement says otherwise."""
        missing = _may_be_missing(select)
        parts = [self.process(_with_null_placed(part, missing), **kw) for part in select._order_by_clauses]
        return f" ORDER BY {', '.join(parts)}" if parts else ""

    def visit_over(self, over: Any, **kw: Any) -> str:
        """The same within a window."""
        if over.order_by is not None:
            over = over._clone()
            over.order_by = ClauseList(*(_with_null_placed(part, None) for part in over.order_by.clauses))
        return str(super().visit_over(over, **kw))  # type: ignore[no-untyped-call]

    def visit_bindparam(self, bindparam: Any, **kw: Any) -> str:  # type: ignore[override]  # more are handed through
        """Numbers of a list are written out: thousands of parameters take the server longer to read than to look up."""
        if bindparam.expanding and isinstance(bindparam.type, Integer):
            kw["literal_execute"] = True
        return str(super().visit_bindparam(bindparam, **kw))  # type: ignore[no-untyped-call]

    def visit_like_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Letters of ASCII are the same in either case."""
        return str(self.visit_ilike_op_binary(binary, operator, **kw))  # type: ignore[no-untyped-call]

    def visit_not_like_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """The same."""
        return str(self.visit_not_ilike_op_binary(binary, operator, **kw))  # type: ignore[no-untyped-call]

    def visit_cast(self, cast: Any, **kw: Any) -> str:
        """Decimals are cut off."""
        if isinstance(cast.type, Integer) and not isinstance(cast.clause.type, Integer):
            return f"CAST(trunc(CAST({self.process(cast.clause, **kw)} AS NUMERIC)) AS BIGINT)"
        return str(super().visit_cast(cast, **kw))  # type: ignore[no-untyped-call]

    def visit_type_coerce(self, type_coerce: Any, **kw: Any) -> str:
        """A flag that is taken for a number becomes one."""
        if isinstance(type_coerce.type, Integer) and isinstance(type_coerce.clause.type, Boolean):
            return f"CAST({self.process(type_coerce.clause, **kw)} AS INTEGER)"
        return str(super().visit_type_coerce(type_coerce, **kw))  # type: ignore[no-untyped-call]

    def visit_lag_func(self, function: Any, **kw: Any) -> str:
        """How many rows back, and where a part of a text begins, are integers of 32 bits."""
        value, *places = (self.process(part, **kw) for part in function.clauses)
        return f"{function.name}({', '.join((value, *(f'CAST({place} AS INTEGER)' for place in places)))})"

    visit_substr_func = visit_lag_func

    def visit_json_extract_func(self, function: Any, **kw: Any) -> str:
        """A number in a JSON text, by the name of its member."""
        text, path = (self.process(part, **kw) for part in function.clauses)
        return f"CAST(CAST({text} AS JSON) #>> string_to_array(substr({path}, 3), '.') AS BIGINT)"  # a path is $.NAME


def _with_null_placed(part: Any, missing: "set[FromClause] | None") -> Any:
    """A part of an order that says where NULL stands, or does not where it cannot be NULL: then an index gives the order."""
    inner, is_said, falls = part, False, False
    while isinstance(inner, _label_reference) or (isinstance(inner, UnaryExpression) and inner.modifier is not None):
        if isinstance(inner, UnaryExpression):
            is_said = is_said or inner.modifier in (operators.nulls_first_op, operators.nulls_last_op)
            falls = falls or inner.modifier is operators.desc_op
        inner = inner.element
    if _is_known(inner, missing):
        return inner.desc() if falls else inner
    if is_said:
        return part
    return nulls_last(part) if falls else nulls_first(part)


def _is_known(column: Any, missing: "set[FromClause] | None") -> bool:
    """Whether a column cannot be NULL in a row of the result."""
    if not isinstance(column, Column) or column.nullable or missing is None or column.table in missing:
        return False
    table = column.table.element if isinstance(column.table, Alias) else column.table
    return isinstance(table, Table)


def _may_be_missing(select: Any) -> "set[FromClause] | None":
    """Tables of a statement of which a row of the result may have none: those of outer joins; None where nobody can tell."""
    if not isinstance(select, Select):
        return None
    found: set[FromClause] = set()

    def look(source: FromClause, *, is_outer: bool) -> None:
        if isinstance(source, Join):
            look(source.left, is_outer=is_outer or source.full)
            look(source.right, is_outer=is_outer or source.isouter)
        elif is_outer:
            found.add(source)

    for source in select.get_final_froms():
        look(source, is_outer=False)
    return found
