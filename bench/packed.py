"""How large the stored columns of a trace would be as packed binary: what a database file is measured against.

A column of numbers takes the fewest bytes of 1, 2, 4 and 8 that hold all its values, a text or blob its bytes and four for its length, and
each column that has NULLs a bit a row; a column of NULL alone takes nothing.
"""

import sqlite3
from contextlib import closing

__all__ = ["packed_bytes"]


def packed_bytes(path: str) -> int:
    """Bytes of all rows of all tables of a trace file; trace_id, which is always 1, is left out."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
        return sum(_table(db, table) for table in tables)


def _table(db: sqlite3.Connection, table: str) -> int:
    columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")') if row[1] != "trace_id"]
    asked = [
        part.format(f'"{column}"')
        for column in columns
        for part in (
            "count({0})",
            "min({0})",
            "max({0})",
            "sum(CASE WHEN typeof({0}) IN ('text', 'blob') THEN length(CAST({0} AS BLOB)) END)",
        )
    ]
    found = db.execute(f'SELECT count(*), {", ".join(asked)} FROM "{table}"').fetchone()  # noqa: S608 - names of our own tables
    rows, size = found[0], 0
    for i in range(1, len(found), 4):
        present, low, high, text_bytes = found[i : i + 4]
        if present:
            size += text_bytes + 4 * present if text_bytes is not None else _width(low, high) * present
            size += rows // 8 if present < rows else 0
    return size


def _width(low: int, high: int) -> int:
    """Fewest bytes of a number, signed or not."""
    for width in (1, 2, 4):
        if (low >= 0 and high < 1 << 8 * width) or (low >= -(1 << 8 * width - 1) and high < 1 << 8 * width - 1):
            return width
    return 8
