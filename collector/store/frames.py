"""How rows travel from the collector to the process that inserts them: a pickle and, beside it, the arrays as they lie in memory.

The last frame is `FINISHED` and, behind it, a pickle of what is to be done then.
"""

import marshal
import pickle
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, TypeAlias

from collector.model.block import Block, Lines, Row

__all__ = ["FINISHED", "Part", "plain_tuples", "read_frame", "rows_frame", "write_frame"]

Part: TypeAlias = bytes | bytearray | memoryview
FINISHED = b"finished"

_COUNT, _SIZE = struct.Struct("<I"), struct.Struct("<Q")


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
