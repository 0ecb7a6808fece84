"""A lock that ends with its holder: one collector a trace, and a way to see that a collector is gone."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from collector.errors import StoreError, StoreLocked

__all__ = ["clear", "held", "is_held"]

_TRIES = 50  # a lock held at each of them is busy: `is_held` and `clear` take a free one for a moment
_TRY_SECONDS = 0.002
_REPLACED_TIMES = 1000  # how often the file may be replaced between our opening and locking it

if sys.platform == "win32":
    import msvcrt

    def _take(handle: IO[bytes]) -> None:
        msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(handle: IO[bytes]) -> None:
        fcntl.flock(handle.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def held(path: Path, busy: str) -> Iterator[None]:
    """Hold the lock file `path`; the system lets go of it when the process ends, however it ends.

    The file is removed afterwards. Raises StoreLocked with the message `busy` when another process holds it.
    """
    handle = _taken(path, busy)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows refuses while it is open; an old lock file does no harm
            path.unlink()
        handle.close()


def is_held(path: Path) -> bool:
    """Whether a living process holds the lock."""
    if not path.exists():
        return False
    with _open(path) as handle:
        try:
            _take(handle)
        except OSError:
            return True
        return False


def clear(path: Path) -> None:
    """Remove a lock file that a killed process has left; one that is held, or may not be removed, stays."""
    if not path.exists():
        return
    with contextlib.suppress(OSError, StoreError), _open(path) as handle:
        _take(handle)
        if _is_current(handle, path):
            path.unlink()


def _taken(path: Path, busy: str) -> IO[bytes]:
    """The lock file, open and locked."""
    for _ in range(_REPLACED_TIMES):  # its former holder, or `clear`, may remove the file between our opening and locking it
        handle = _open(path)
        try:
            _take_soon(handle, busy)
        except StoreLocked:
            handle.close()
            raise
        if _is_current(handle, path):
            return handle
        handle.close()
    raise StoreLocked(busy)


def _take_soon(handle: IO[bytes], busy: str) -> None:
    for remaining in reversed(range(_TRIES)):
        try:
            return _take(handle)
        except OSError as error:
            if not remaining:
                raise StoreLocked(busy) from error
            time.sleep(_TRY_SECONDS)


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("ab")
    except OSError as error:
        raise StoreError(f"{path}: this file cannot be written ({error.strerror}). Check the permissions of its folder.") from error


def _is_current(handle: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle.fileno()), path.stat())
    except OSError:
        return False
