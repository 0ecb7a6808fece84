"""Rows of a model on their way to the store: numbered per table, handed on once."""

from collections import defaultdict

from collector.model.rows import Lines, Row, Rows

__all__ = ["RowSink"]


class RowSink:
    """Collects rows and numbers them from 1."""

    def __init__(self) -> None:
        self._rows: Rows = {}
        self.counts: defaultdict[str, int] = defaultdict(int)
        """Numbers given so far by table. Rows that come another way get theirs when a caller raises it."""

    def add(self, table: str, row: Row) -> int:
        """Add a row without its number; returns the number."""
        n = self.counts[table] = self.counts[table] + 1
        self._rows.setdefault(table, []).append((n, *row))
        return n

    def put(self, table: str, row: Row) -> None:
        """Add a row that has its number or other key."""
        self._rows.setdefault(table, []).append(row)

    def put_all(self, table: str, lines: Lines) -> None:
        """Add finished rows."""
        self._rows.setdefault(table, []).extend(lines)

    def take(self) -> Rows:
        """All rows since the last call."""
        rows, self._rows = self._rows, {}
        return rows
