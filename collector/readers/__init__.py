"""The readers, and the choice among them by the first bytes of an input."""

from collections.abc import Callable
from typing import NamedTuple

from collector.errors import NotAnEtl
from collector.raw import Reader
from collector.readers.etl import EtlReader, is_etl
from collector.readers.etl_buffers import HEADER_BYTES
from collector.readers.foreign import looks_like
from collector.source import Source

__all__ = ["READERS", "ReaderKind", "reader_for"]

_SNIFF_BYTES = 512


class ReaderKind(NamedTuple):
    """One input format: whether a file that starts with some bytes (512 of them, or all) is of it, and its reader."""

    sniff: Callable[[bytes], bool]
    read: Callable[[Source], Reader]


READERS: tuple[ReaderKind, ...] = (ReaderKind(is_etl, EtlReader),)


def reader_for(source: Source) -> Reader:
    """The reader of an input. Raises FormatError (NotAnEtl where no reader knows the first bytes), SourceError."""
    start = source.read_at(0, _SNIFF_BYTES)
    for kind in READERS:
        if kind.sniff(start):
            return kind.read(source)
    found = looks_like(start)
    if len(start) < HEADER_BYTES and found is None:
        raise NotAnEtl(
            f"{source.name}: the file is too short for a trace: {source.size:,} bytes, the header of an ETW buffer alone takes "
            f"{HEADER_BYTES}. Copy it again from the machine that recorded it.",
            offset=source.size,
        )
    if found is None:
        raise NotAnEtl(
            f"{source.name}: this is not an ETL file: it begins with the bytes {start[:8].hex(' ')}, and an ETL file begins with the "
            "header of a buffer. Name the .etl file that the session wrote.",
            offset=0,
        )
    raise NotAnEtl(f"{source.name}: this is not an ETL file; it is {found}", offset=0)
