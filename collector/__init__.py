"""Reads traces of sockets and heaps; programs of one's own begin at `collector.read_trace(path)` (docs/api.md)."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collector.api import ReadTrace, Table, open_trace, read_trace
    from collector.errors import TraceError

__all__ = ["ReadTrace", "Table", "TraceError", "open_trace", "read_trace"]


def __getattr__(name: str) -> Any:  # Any: a function or a class
    """What is asked for is loaded then: the command line imports this package, and its help must not wait for NumPy."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("collector.errors" if name == "TraceError" else "collector.api"), name)
