"""Rows of a model on their way to the store: numbered per table, handed on once."""

from collector.model.rows import Lines, Row, Rows

__all__ = ["RowSink"]


class RowSink:
    """Collects rows and numbers them from 1."""

    def __init__(self) -> None:
        self._rows: Rows = {}
        self._counts: dict[str, int] = {}

    def add(self, table: str, row: Row) -> int:
        """Add a row without its number; returns the number."""
        n = self._counts[table] = self._counts.get(table, 0) + 1
        self._rows.setdefault(table, []).append((n, *row))
        return n

    def put(self, table: str, row: Row) -> None:
        """Add a row that has its number or other key."""
        self._rows.setdefault(table, []).append(row)

    def put_all(self, table: str, lines: Lines) -> None:
        """Add finished rows."""
        self._rows.setdefault(table, []).extend(lines)

    def leave_out(self, table: str, count: int) -> int:
        """Give the next numbers to rows that come another way; returns how many numbers are given now."""
        n = self._counts[table] = self._counts.get(table, 0) + count
        return n

    def take(self) -> Rows:
        """All rows since the last call."""
        rows, self._rows = self._rows, {}
        return rows

    def count(self, table: str) -> int:
        """How many rows were numbered so far."""
        return self._counts.get(table, 0)
