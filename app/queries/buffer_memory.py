"""Which memory lay behind the buffers of operations: the words for it, and the filter that finds operations by it."""

from sqlalchemy import ColumnElement, exists

from app.filters import Filter, one_of
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import BUFFER_CLASSES

__all__ = ["MEMORY_FILTER", "MEMORY_WORDS"]

_operation = TRACE.tables["operation"]
_buffer = TRACE.tables["operation_buffer"]

MEMORY_WORDS = {
    "kernel": "kernel memory",
    "heap": "a heap block",
    "heap_chained": "a heap block, the first of a chain",
    "heap_overrun": "a heap block, reaching past its end",
    "freed_block": "a freed heap block",
    "heap_untracked": "a heap, in no known block",
    "image": "a loaded module",
    "stack": "a thread's stack",
    "virtual": "virtual memory",
    "zero_length": "no memory, as the length is 0",
    "unknown": "memory of unknown use",
}


def _lies_in(chosen: tuple[str, ...]) -> ColumnElement[bool]:
    numbers = [BUFFER_CLASSES.index(word) for word in chosen]
    return exists().where(_buffer.c.trace_id == THIS_TRACE, _buffer.c.operation_n == _operation.c.n, _buffer.c.buffer_class.in_(numbers))


MEMORY_FILTER = Filter(
    "memory",
    one_of(BUFFER_CLASSES),
    _lies_in,
    "whose buffer lies in {}",
    "Buffer's memory",
    show=lambda chosen: " or ".join(MEMORY_WORDS[word] for word in chosen),
    choices=tuple(MEMORY_WORDS.items()),
)
"""Operations by the memory behind their user-mode buffer; those whose process has no heap records have none."""
