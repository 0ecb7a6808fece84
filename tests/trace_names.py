"""Which trace tables a statement reads, and whether it says of each of them which trace it means; read from the SQL itself."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ClauseElement, event
from sqlalchemy.engine import Engine

from collector.store.tables import TRACE

__all__ = ["asked", "nameless"]

_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|(?P<open>\()|(?P<close>\))|\b(?P<word>UNION|OR|WHERE\s+false)\b"""
    r"""|\b(?:FROM|JOIN)\s+"?(?P<table>[a-z_]+)"?(?:\s+AS\s+"?(?P<alias>\w+)"?)?"""
    r"""|"?(?P<named>\w+)"?\.trace_id\s=\s:this_trace\b"""
)


@dataclass
class _Part:
    """What stands between two parentheses, or one SELECT of it: tables by the names they have there, and those whose trace is said."""

    tables: dict[str, str] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    has_or: bool = False
    is_empty: bool = False

    def nameless(self) -> set[str]:
        said = set() if self.has_or else self.named
        return set() if self.is_empty else {table for name, table in self.tables.items() if table in TRACE.tables and name not in said}


@contextmanager
def asked() -> Iterator[list[str]]:
    """The SQL that is asked of any database meanwhile, its parameters as names."""
    heard: list[str] = []

    def built(_connection: object, element: ClauseElement, *_: object) -> None:
        heard.append(str(element))

    def written(
        _connection: object, _cursor: object, statement: str, _values: object, context: Any, *_: object
    ) -> None:  # Any: SQLAlchemy's
        if context.compiled is None:  # Any: of SQLAlchemy
            heard.append(statement)

    event.listen(Engine, "before_execute", built)
    event.listen(Engine, "before_cursor_execute", written)
    try:
        yield heard
    finally:
        event.remove(Engine, "before_execute", built)
        event.remove(Engine, "before_cursor_execute", written)


def nameless(sql: str) -> set[str]:
    """Trace tables that a statement reads somewhere without a condition on the trace that holds whatever else does."""
    found: set[str] = set()
    parts = [_Part()]
    for token in _TOKEN.finditer(sql):
        now = parts[-1]
        if token["open"]:
            parts.append(_Part())
        elif token["close"]:
            inner = parts.pop()
            found |= inner.nameless()
            if not inner.tables and not inner.has_or:
                parts[-1].named |= inner.named
        elif token["word"] == "UNION":
            found |= now.nameless()
            parts[-1] = _Part()
        elif token["word"] == "OR":
            now.has_or = True
        elif token["word"]:
            now.is_empty = True  # no row can fit
        elif token["table"]:
            now.tables[token["alias"] or token["table"]] = token["table"]
        elif token["named"]:
            now.named.add(token["named"])
    return found.union(*(part.nameless() for part in parts))
