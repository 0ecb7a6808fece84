"""The readers, and the choice among them by the first bytes of an input."""

from collections.abc import Callable

from collector.raw import Reader
from collector.readers.etl import EtlReader
from collector.source import Source

__all__ = ["READERS", "reader_for"]

READERS: tuple[Callable[[Source], Reader], ...] = (EtlReader,)


def reader_for(source: Source) -> Reader:
    """The reader of an input. Raises FormatError for one that nobody reads, SourceError."""
    return READERS[0](source)
