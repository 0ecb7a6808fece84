"""A file that is written while it is followed: a finished trace, put on the disk piece by piece, its header made final last."""

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from collector.readers.etl_buffers import HEADER_BYTES
from collector.readers.etl_logfile import SYSTEM_HEADER_BYTES

__all__ = ["Recording", "Time"]

# Fields of the log file header (etl-format S5.1) that a session writes when it ends.
_END_FILETIME = (HEADER_BYTES + SYSTEM_HEADER_BYTES + 0x10, struct.Struct("<q"))
_BUFFERS_WRITTEN = (HEADER_BYTES + SYSTEM_HEADER_BYTES + 0x24, struct.Struct("<I"))


@dataclass
class Time:
    """A clock that stands still but for those who wait; each wait lets something happen."""

    steps: Iterator[Callable[[], None]]
    now_s: float = 0.0
    waits: int = 0
    most_waits: int = 10_000

    def wait(self, seconds: float) -> None:
        self.waits += 1
        assert self.waits <= self.most_waits, "following does not end"
        self.now_s += seconds
        next(self.steps, lambda: None)()

    def now(self) -> float:
        return self.now_s


@dataclass
class Recording:
    """The bytes of a finished file on their way to the disk."""

    path: Path
    whole: bytes
    written: int = 0
    is_closed: bool = field(default=False)

    def __post_init__(self) -> None:
        self.path.write_bytes(b"")

    @property
    def open_bytes(self) -> bytes:
        """The file as it is before the session ends: the same, but for the end in its header."""
        data = bytearray(self.whole)
        for at, form in (_END_FILETIME, _BUFFERS_WRITTEN):
            form.pack_into(data, at, 0)
        return bytes(data)

    def append(self, size: int) -> None:
        """Some bytes more."""
        with self.path.open("ab") as out:
            out.write(self.open_bytes[self.written : self.written + size])
        self.written = min(self.written + size, len(self.whole))

    def close(self) -> None:
        """The rest, and the final header."""
        self.append(len(self.whole))
        with self.path.open("r+b") as out:
            out.write(self.whole[: struct.unpack_from("<I", self.whole)[0]])
        self.is_closed = True

    def steps(self, sizes: Iterable[int]) -> Iterator[Callable[[], None]]:
        """Pieces of these sizes, one a wait (0: nothing happens), then the end."""
        for size in sizes:
            yield lambda size=size: self.append(size)  # type: ignore[misc]  # binds the size now
        yield self.close
