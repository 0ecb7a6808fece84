"""What every kind of package is read as: its files one after the other, each in pieces; and its bytes as the libraries want them."""

import io
from collections.abc import Iterator
from typing import NamedTuple

from collector.errors import SourceError, TraceError
from collector.source import Source

__all__ = ["MOST_MEMBERS", "PIECE_BYTES", "Broken", "Encrypted", "Member", "PackedBytes"]

PIECE_BYTES = 256 << 10
MOST_MEMBERS = 10_000
"""Files in one package; what holds a trace has a few hundred."""
_MOST_AT_ONCE = 8 << 20  # a directory of 10,000 files has 1 MB


class Broken(Exception):
    """A package cannot be read on from here; the text says why, as the end of a sentence."""


class Encrypted(Broken):
    """It would need a password."""


class Member(NamedTuple):
    """One file of a package. Its pieces can be had until the next member is asked for; they raise Broken.

    Where `is_on_the_way`, they must be unpacked to come to the next one.
    """

    name: str
    pieces: Iterator[bytes]
    is_on_the_way: bool = False


class PackedBytes(io.RawIOBase):
    """The bytes of a source as a file that libraries can read; `failure` is what went wrong below them, where they do not hand it on."""

    def __init__(self, source: Source) -> None:
        self._source, self._at = source, 0
        self.failure: SourceError | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}[whence]
        if start + offset < 0:
            raise OSError("it points before its own beginning")  # what libraries expect of a file
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(self._source.size - self._at, 0)
        size = left if size < 0 else min(size, left)
        if size > _MOST_AT_ONCE:
            raise Broken(f"its directory has more than {_MOST_AT_ONCE:,} bytes")
        piece = self._source.read_at(self._at, size)
        self._at += len(piece)
        return piece

    def readinto(self, memory: "memoryview") -> int:  # type: ignore[override]  # any buffer; a library in C calls it, which raises nothing
        try:
            piece = self.read(min(len(memory), _MOST_AT_ONCE))
        except TraceError as error:
            self.failure = error if isinstance(error, SourceError) else None
            return 0
        memory[: len(piece)] = piece
        return len(piece)
