"""What the store knows of those who count rows: they take rows on their way to the file, and give rows of their own at the end."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from collector.model.block import Lines

__all__ = ["INDEXED", "Counter", "Ending", "MakeCounter", "counter_named", "name_of"]

INDEXED = "indexed"
"""What a process of its own says when the models' tables are complete; before it inserts the rows of the counter it waits to be told."""


class Counter(Protocol):
    """Counts rows."""

    def take(self, rows: dict[str, Lines]) -> None:
        """Look at finished rows of any tables."""

    def finish(self, *, first_ns: int) -> Iterator[dict[str, Lines]]:
        """Rows of its own, in pieces, once all rows were taken; `first_ns` is the trace's first moment."""

    def close(self) -> None:
        """Give back what it holds."""


class MakeCounter(Protocol):
    """A class of counters, which a process of its own can make by its name; told the columns of all tables."""

    __module__: str
    __qualname__: str

    def __call__(self, columns: Mapping[str, tuple[str, ...]]) -> Counter: ...


@dataclass(frozen=True, slots=True)
class Ending:
    """What is to be done once all rows of the models are in the file."""

    first_ns: int
    """The trace's first moment."""
    indexes: tuple[str, ...]
    """Statements that make indexes of tables which get no more rows."""


def name_of(make: MakeCounter) -> tuple[str, str]:
    """Where a class is found again: its module and its name there."""
    return make.__module__, make.__qualname__


def counter_named(module: str, name: str, columns: Mapping[str, tuple[str, ...]]) -> Counter:
    """A counter of a class that `name_of` named."""
    make: MakeCounter = getattr(import_module(module), name)
    return make(columns)
