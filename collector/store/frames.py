"""How rows travel from the collector to the process that inserts them: a pickle and, beside it, the arrays as they lie in memory.

The last frame is `FINISHED` and, behind it, a pickle of what is to be done then.
"""

import marshal
import pickle
import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import IO, Self, TypeAlias

from collector.model.block import Block, Lines, Row

__all__ = ["FINISHED", "Part", "RowsAside", "plain_tuples", "read_frame", "rows_frame", "write_frame"]

Part: TypeAlias = bytes | bytearray | memoryview
FINISHED = b"finished"

_COUNT, _SIZE = struct.Struct("<I"), struct.Struct("<Q")
_KEPT_IN_MEMORY = 16 << 20


class RowsAside:
    """Rows that cannot be written yet, in their order: some megabytes in memory, more in a temporary file; a context manager."""

    def __init__(self) -> None:
        self._kept = tempfile.SpooledTemporaryFile(_KEPT_IN_MEMORY)  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._kept.close()

    def put(self, rows: Mapping[str, Sequence[Row | Block]]) -> None:
        """Put rows aside."""
        write_frame(self._kept, rows_frame(rows))

    def taken(self) -> Iterator[dict[str, Lines]]:
        """All of them, once; the last use."""
        self._kept.seek(0)
        while (frame := read_frame(self._kept)) is not None:
            yield plain_tuples(pickle.loads(frame[0], buffers=frame[1:]))


def rows_frame(rows: Mapping[str, Sequence[Row | Block]]) -> list[Part]:
    """Parts of a frame: the pickle first, then its arrays, which must not be changed until they are written."""
    arrays: list[pickle.PickleBuffer] = []
    packed = {table: _packed(lines) for table, lines in rows.items() if lines}
    body = pickle.dumps(packed, protocol=5, buffer_callback=arrays.append)
    return [body, *(array.raw() for array in arrays)]


def plain_tuples(packed: Mapping[str, Iterable[Block | bytes]]) -> dict[str, Lines]:
    """The rows of a frame; marshal reads what `rows_frame` wrote."""
    rows: dict[str, Lines] = {}
    for table, pieces in packed.items():
        lines: Lines = []
        for piece in pieces:
            if isinstance(piece, Block):
                lines.append(piece)
            else:
                lines += marshal.loads(piece)
        rows[table] = lines
    return rows


def _packed(lines: Sequence[Row | Block]) -> list[Block | bytes]:
    """Blocks as they are, tuples between them in marshal's bytes, which are made five times as fast as pickle's."""
    packed: list[Block | bytes] = []
    tuples: list[Row] = []
    for line in lines:
        if isinstance(line, Block):
            if tuples:
                packed.append(marshal.dumps(tuples))
                tuples = []
            packed.append(line)
        else:
            tuples.append(line)
    if tuples:
        packed.append(marshal.dumps(tuples))
    return packed


def write_frame(stream: IO[bytes], parts: Sequence[Part]) -> None:
    """Write a frame. Raises OSError when the other side is gone."""
    stream.write(_COUNT.pack(len(parts)) + b"".join(_SIZE.pack(len(part)) for part in parts))
    for part in parts:
        stream.write(part)


def read_frame(stream: IO[bytes]) -> list[Part] | None:
    """The parts of the next frame; None at the end of the stream, wherever that cuts a frame."""
    head = stream.read(_COUNT.size)
    if len(head) < _COUNT.size:
        return None
    (count,) = _COUNT.unpack(head)
    sizes = stream.read(_SIZE.size * count)
    if len(sizes) < _SIZE.size * count:
        return None
    parts: list[Part] = []
    for (size,) in _SIZE.iter_unpack(sizes):
        part = bytearray(size)
        if stream.readinto(part) < size:  # type: ignore[attr-defined] # a buffered stream reads until it has all, BinaryIO says nothing of it
            return None
        parts.append(part)
    return parts
