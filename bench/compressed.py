"""Writes a compressed trace with the contents of a plain one, for measuring how quickly compressed buffers are read.

Packing is slow in Python, so few buffers are packed, and each is written for many processors: the records stay in order.
"""

import io
import struct
from pathlib import Path

from collector.etlwriter import EtlWriter, Session
from collector.etlwriter.compression import xpress
from collector.etlwriter.session import Compression

__all__ = ["write_compressed"]

_HEADER_BYTES = 72
_SIZE, _SEQUENCE, _PROCESSOR, _FILLED, _FLAGS = 0, 24, 40, 48, 52  # places in the header of a buffer
_COMPRESSED = 0x0040


def write_compressed(plain: Path, target: Path, *, buffers: int = 24, copies: int = 32) -> int:
    """Write `buffers` buffers of a plain trace `copies` times, packed; gives the bytes that they have when they are expanded."""
    expanded = 0
    header = io.BytesIO()
    EtlWriter(header, Session(processors=64, compression=Compression.XPRESS)).close()
    with plain.open("rb") as source, target.open("wb") as out:
        out.write(header.getvalue())
        size = int.from_bytes(source.read(4), "little")
        packed = []
        for number in range(1, buffers + 1):
            source.seek(number * size)
            content = source.read(size)
            filled = struct.unpack_from("<I", content, _FILLED)[0]
            if filled > _HEADER_BYTES:
                packed.append((bytearray(content[:_HEADER_BYTES]), xpress(content[_HEADER_BYTES:filled]), filled))
        for copy in range(copies):
            for number, (head, body, filled) in enumerate(packed):
                (processor,) = struct.unpack_from("<H", packed[number][0], _PROCESSOR)
                written = bytearray(head)
                struct.pack_into("<I", written, _SIZE, _HEADER_BYTES + len(body))
                struct.pack_into("<q", written, _SEQUENCE, 1 + copy * len(packed) + number)
                struct.pack_into("<H", written, _PROCESSOR, (processor + copy * 8) & 0x07FF)
                struct.pack_into("<H", written, _FLAGS, struct.unpack_from("<H", head, _FLAGS)[0] | _COMPRESSED)
                out.write(written + body)
                expanded += filled
    return expanded
