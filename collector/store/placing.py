"""Puts a finished file in its place, safe from a power failure, or throws it away; all of it can be cancelled, however large it is."""

import contextlib
import mmap
import os
from collections.abc import Callable
from pathlib import Path

from collector.errors import CollectCancelled, StoreError

__all__ = ["copied", "put_in_place", "remove_part"]

_AT_ONCE = 32 << 20
"""Bytes that are written between two looks at whether to cancel: less than a second also on a slow disk."""


def copied(source: Path, target: Path, should_cancel: Callable[[], bool] | None = None) -> None:
    """Copy a file. Raises OSError, CollectCancelled."""
    with source.open("rb") as old, target.open("wb") as new:
        while piece := old.read(_AT_ONCE):
            _stop_if(should_cancel)
            new.write(piece)


def put_in_place(part: Path, target: Path, should_cancel: Callable[[], bool] | None = None) -> None:
    """Make a finished file safe and let it take its place in one step. Raises StoreError; CollectCancelled before that step alone."""
    try:
        with part.open("rb+") as file:
            _write_through(file.fileno(), should_cancel)
            os.fsync(file.fileno())
        _stop_if(should_cancel)
        os.replace(part, target)  # noqa: PTH105 - one atomic step, the same on all systems
        _sync_folder(target.parent)
    except OSError as error:
        raise StoreError(
            f"{target}: the finished trace cannot be put in place ({error.strerror}). Close programs that have it open, and try again."
        ) from error


def remove_part(path: Path) -> None:
    """Remove an unfinished file and what SQLite keeps beside it, if they are there."""
    for each in (path, path.with_name(path.name + "-journal")):
        with contextlib.suppress(FileNotFoundError):
            each.unlink()


def _write_through(number: int, should_cancel: Callable[[], bool] | None) -> None:
    """Have the system write what it still holds of a file, in pieces, so that the one call which nothing interrupts has little left to do.

    A mapping is the way to speak of a piece; its memory is never touched. Raises CollectCancelled.
    """
    size = os.fstat(number).st_size
    for at in range(0, size, _AT_ONCE):
        _stop_if(should_cancel)
        try:
            with mmap.mmap(number, min(_AT_ONCE, size - at), offset=at) as piece:
                piece.flush()
        except OSError:
            return  # a file system that maps no files


def _stop_if(should_cancel: Callable[[], bool] | None) -> None:
    if should_cancel is not None and should_cancel():
        raise CollectCancelled("Cancelled. Nothing was stored.")


def _sync_folder(path: Path) -> None:
    """Make a rename in a folder survive a power failure, where the system has such a call."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
