"""How much an import does, counted instead of timed: the same on a busy machine and on an idle one."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from collector import stages
from collector.packages import traces_in
from collector.pipeline import import_trace
from collector.source import Source
from collector.store import dialects
from collector.store.engine import TraceFolder

__all__ = ["Work", "work_of"]

_OURS = str(Path(__file__).parents[2] / "collector")
_STEPS = 100
"""Steps of SQLite's machine between two looks at whether to cancel, which are what is counted."""
_ARRAYS = (
    "arange", "argsort", "array", "bincount", "concatenate", "cumsum", "diff", "empty", "flatnonzero", "frombuffer", "full", "isin",
    "lexsort", "ones", "repeat", "searchsorted", "stack", "unique", "where", "zeros",
)  # fmt: skip


@dataclass
class Work:
    """What one import did."""

    lines: int = 0
    """Lines of the collector that were run."""
    elements: int = 0
    """Elements of the arrays that NumPy's functions made of others."""
    bytes_read: int = 0
    sql: int = 0
    """Hundreds of steps of SQLite's machine, and other moments at which cancelling would have been heard."""


def work_of(content: bytes, folder: Path, patch: pytest.MonkeyPatch) -> Work:
    """Collect a file of these bytes into a database of its own, in this process, and count."""
    folder.mkdir()
    path = folder / "counted.etl"
    path.write_bytes(content)
    work = Work()

    def ask() -> bool:
        work.sql += 1
        return False

    with patch.context() as context:
        context.setattr(dialects, "_STEPS_BETWEEN_LOOKS", _STEPS)
        context.setattr(stages, "_SECONDS_BETWEEN_NOTES", float("inf"))  # the catalog is told of progress by the clock
        _count_reads(work, context)
        _count_elements(work, context)
        with _counted_lines(work):
            for source in traces_in(path, should_cancel=ask):
                with source:
                    import_trace(source, TraceFolder(folder / "database"), should_cancel=ask)
    return work


@contextmanager
def _counted_lines(work: Work) -> Iterator[None]:
    is_ours: dict[object, bool] = {}

    def look(frame: FrameType, event: str, _: object) -> "Callable[..., Any] | None":
        code = frame.f_code
        if (ours := is_ours.get(code)) is None:
            ours = is_ours[code] = code.co_filename.startswith(_OURS)
        return count if ours else None

    def count(_frame: FrameType, event: str, _: object) -> "Callable[..., Any]":
        if event == "line":
            work.lines += 1
        return count

    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(before)


def _count_reads(work: Work, context: pytest.MonkeyPatch) -> None:
    at, into = Source.read_at, Source.read_into

    def read_at(source: Source, offset: int, size: int) -> bytes:
        piece = at(source, offset, size)
        work.bytes_read += len(piece)
        return piece

    def read_into(source: Source, offset: int, memory: memoryview) -> int:
        count = into(source, offset, memory)
        work.bytes_read += count
        return count

    context.setattr(Source, "read_at", read_at)
    context.setattr(Source, "read_into", read_into)


def _count_elements(work: Work, context: pytest.MonkeyPatch) -> None:
    def counted(function: Callable[..., Any]) -> Callable[..., Any]:  # Any: whatever it takes and gives
        def wrapper(*args: Any, **kwargs: Any) -> Any:  # Any: see above
            made = function(*args, **kwargs)
            for one in made if isinstance(made, tuple) else (made,):
                work.elements += int(np.size(one))
            return made

        return wrapper

    for name in _ARRAYS:
        context.setattr(np, name, counted(getattr(np, name)))
