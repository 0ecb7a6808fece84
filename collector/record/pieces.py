"""The files of a session that begins a new one whenever one is full: which of them nothing writes any more.

Windows begins the next file, writes the end into the header of the one before, and closes it. So a file is finished when a newer one is
there and its header has its end; one whose header never gets it, when two newer ones are there.
"""

from collections.abc import Sequence
from pathlib import Path

from collector.errors import TraceError
from collector.readers.etl_growing import GrowingFile
from collector.source import Source

__all__ = ["finished"]


def finished(files: Sequence[Path]) -> list[Path]:
    """Those of a session's files that are whole while it goes on.

    Args:
        files: in the order in which they were begun.
    """
    return [file for n, file in enumerate(files[:-1]) if n < len(files) - 2 or _has_ended(file)]


def _has_ended(file: Path) -> bool:
    try:
        with Source.open(file) as source:
            return GrowingFile().look(source).is_ended
    except TraceError:  # not yet to be read; if it never can be, whoever takes it says so
        return False
