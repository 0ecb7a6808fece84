"""A row of values with marks between them, where texts stand in quotes that are not doubled inside."""

import re

__all__ = ["Cells"]


class Cells:
    """Splits rows; a quoted text ends at a quote with a mark or the end behind it."""

    def __init__(self, mark: str, most: int) -> None:
        self._mark, self._most = mark, most
        self._closing = re.compile(rf'"[ \t]*(?:{re.escape(mark)}|\Z)')

    def split(self, row: str) -> list[str]:
        """The values without blanks around them and without their quotes. Raises ValueError for more than `most`."""
        row = row.rstrip()
        if not row:
            return []
        if row.count(self._mark) >= self._most:
            raise ValueError("more values than any event has")
        if '"' not in row:
            return [part.strip() for part in row.split(self._mark)]
        values, at, has_closing = [], 0, True
        while at <= len(row):
            while row[at : at + 1] in (" ", "\t"):
                at += 1
            if row[at : at + 1] == '"' and has_closing:
                closing = self._closing.search(row, at + 1)
                if closing is not None:
                    values.append(row[at + 1 : closing.start()])
                    at = closing.end()
                    if not closing[0].endswith(self._mark):
                        break
                    continue
                has_closing = False  # none behind here: each part is looked through once
            end = row.find(self._mark, at)
            end = len(row) if end < 0 else end
            values.append(row[at:end].strip())
            at = end + 1
        return values
