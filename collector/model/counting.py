"""All that is counted from rows on their way to the file, as one: roll-ups and sums."""

from collections.abc import Iterator
from typing import Self

from collector.model.heap_rollups import HeapRollups
from collector.model.rollups import SocketRollups
from collector.model.row_columns import Columns, tell
from collector.model.rows import Rows
from collector.model.tallies import Tallies

__all__ = ["Counting"]


class Counting:
    """Takes the rows of a trace, each once, in the order in which models hand them on; a context manager, as some of it waits on disk."""

    def __init__(self, columns: Columns | None = None) -> None:
        """`columns`: those of the tables, for who does not import their definition."""
        if columns is not None:
            tell(columns)
        self._sockets, self._heaps, self._tallies = SocketRollups(), HeapRollups(), Tallies()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the disk space back."""
        self._sockets.close()
        self._heaps.close()

    def take(self, rows: Rows) -> None:
        """Look at finished rows of any tables."""
        for counted in (self._sockets, self._heaps, self._tallies):
            counted.take(rows)

    def finish(self, *, first_ns: int) -> Iterator[Rows]:
        """Rows of the roll-ups and sums, in pieces; `first_ns` is the trace's first moment."""
        yield from self._sockets.finish(first_ns=first_ns)
        yield from self._tallies.finish()
        yield from self._heaps.finish()
