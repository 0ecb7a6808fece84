"""Bytes in: the only module of the collector that opens an input file."""

import contextlib
import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from collector.errors import EmptyTrace, Problem, SourceError

__all__ = ["Source", "nameless_file"]

_HASH_PIECE = 1 << 20


class Source:
    """One input file, read piece by piece and never held in memory as a whole.

    Not mapped into memory on purpose: a mapped file that another program cuts short would kill the process, a read gives an error.
    One thread at a time may use it.
    """

    is_growing = False
    """Whether these are only the first bytes of a file that is still being written."""

    def __init__(
        self,
        file: io.FileIO,
        path: Path,
        size: int,
        *,
        name: str = "",
        digest: str | None = None,
        problems: Iterable[Problem] = (),
        told_by: tuple[str, int] | None = None,
    ) -> None:
        """`path` is the file that a user named.

        Of bytes that were taken out of it or made of several files, `name` is what they are called, `digest` their identity where that is
        not the hash of the bytes, and `problems` what was wrong on the way.
        `told_by` is the form and the bytes of a text whose events these are: what a container says beside them, no recording has said.
        """
        self.path = path
        self.name = name or path.name
        self.size = size
        self.problems = tuple(problems)
        self.told_by = told_by
        self._file = file
        self._digest = digest
        self._before_read: Callable[[], None] = _nothing

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a file for reading. Raises SourceError where its bytes cannot be had, EmptyTrace for a file of no bytes."""
        path = Path(path)
        try:
            if path.is_dir():
                raise SourceError(f"{path}: this is a folder. Name one .etl file.")
            if path.exists() and not path.is_file():  # opening a pipe would wait for its writer
                raise SourceError(f"{path}: this is no ordinary file. Copy the trace to a file first.")
            file = io.FileIO(path, "r")
        except FileNotFoundError as error:
            raise SourceError(f"{path}: there is no such file.") from error
        except PermissionError as error:
            raise SourceError(
                f"{path}: reading is not permitted. Check the owner, or copy the file; a running session locks it."
            ) from error
        except (OSError, ValueError) as error:
            raise SourceError(f"{path}: cannot be opened: {_reason(error)}.") from error
        try:
            size = file.seek(0, io.SEEK_END)
        except OSError as error:
            file.close()
            raise SourceError(f"{path}: this is no ordinary file: {_reason(error)}. Copy the trace to a file first.") from error
        if size == 0:
            file.close()
            raise EmptyTrace(
                f"{path.name}: the file is empty (0 bytes). Stop the session (logman stop NAME -ets) and copy it again.", offset=0
            )
        return cls(file, path, size)

    def first(self, size: int) -> Self:
        """The first bytes of a file that is still being written, as a source of its own: what comes behind them is not there yet.

        Both share the open file. `size` is at most that of this source.
        """
        part = type(self)(self._file, self.path, size)
        part.is_growing = True
        return part

    @contextlib.contextmanager
    def asking(self, before_read: Callable[[], None]) -> Iterator[None]:
        """Have something called before each read of the block; what it raises ends the block."""
        self._before_read = before_read
        try:
            yield
        finally:
            self._before_read = _nothing

    def read_at(self, offset: int, size: int) -> bytes:
        """`size` bytes from `offset` on; fewer only at the end of the file. Raises SourceError."""
        self._before_read()
        if self.is_growing:
            size = max(0, min(size, self.size - offset))
        try:
            self._file.seek(offset)
            piece = self._file.read(size)
            # A read may stop early without being at the end, above all beyond 2 GB or on a network drive.
            while len(piece) < size and (more := self._file.read(size - len(piece))):
                piece += more
        except OSError as error:
            raise SourceError(f"{self.name}: reading {size:,} bytes at byte {offset:,} failed: {_reason(error)}.") from error
        except ValueError as error:
            raise SourceError(f"{self.name}: the file was closed while it was being read.") from error
        return piece

    def read_into(self, offset: int, memory: memoryview) -> int:
        """Fill some memory with the bytes from `offset` on; gives how many, fewer only at the end of the file. Raises SourceError."""
        self._before_read()
        done = 0
        if self.is_growing:
            memory = memory[: max(0, self.size - offset)]
        try:
            self._file.seek(offset)
            while done < len(memory) and (more := self._file.readinto(memory[done:])):
                done += more
        except OSError as error:
            raise SourceError(f"{self.name}: reading {len(memory):,} bytes at byte {offset:,} failed: {_reason(error)}.") from error
        except ValueError as error:
            raise SourceError(f"{self.name}: the file was closed while it was being read.") from error
        return done

    def sha256(self, before_piece: Callable[[], None] | None = None) -> str:
        """Hex digest of the whole file; reads it once, in pieces. `before_piece` may raise to stop it. Raises SourceError."""
        if self._digest is not None:
            return self._digest
        digest = hashlib.sha256()
        for offset in range(0, self.size, _HASH_PIECE):
            if before_piece is not None:
                before_piece()
            digest.update(self.read_at(offset, min(_HASH_PIECE, self.size - offset)))
        return digest.hexdigest()

    def changed_ns(self) -> int:
        """When the file was written last, as its system says; ns. Raises SourceError."""
        try:
            return os.fstat(self._file.fileno()).st_mtime_ns
        except (OSError, ValueError) as error:
            raise SourceError(f"{self.name}: the file cannot be looked at: {_reason(error)}.") from error

    def close(self) -> None:
        """Give the file back; reading afterwards is an error."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def nameless_file(place: Path | None) -> io.FileIO:
    """A new file for reading and writing that nobody else sees and that is gone when it is closed, which whoever asked for it does.

    `place` is the folder whose disk it takes; the system's choice where there is none. Raises OSError.
    """
    return tempfile.TemporaryFile(buffering=0, dir=place)  # on Windows an object with the same methods


def _nothing() -> None:
    """What is called before a read where nobody asked for anything."""


def _reason(error: Exception) -> str:
    """The system's own words for an error, without its number and file name."""
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).rstrip(".")
