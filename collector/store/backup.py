"""A second folder with the same traces and notes: only what is new is copied, while collectors and servers work on the first."""

import contextlib
import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select

from collector.errors import CollectCancelled, StoreError, StoreFull
from collector.store import dialects, locks
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.store.tables import trace

__all__ = ["BackedUp", "back_up"]

_PIECE_BYTES = 4 << 20
_MARK = "backup-of.txt"
"""Says of which folder this is a back-up: nothing else is written over."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """Keys of the traces of a folder by what became of each in its back-up."""

    copied: tuple[str, ...]
    there_already: tuple[str, ...]
    left_out: tuple[str, ...]
    """Being collected, interrupted, without a file, or with one that is damaged; an older copy stays."""
    deleted: tuple[str, ...]
    """In the back-up alone."""


def back_up(folder: TraceFolder, target: TraceFolder, should_cancel: Callable[[], bool], *, drops_deleted: bool = False) -> BackedUp:
    """Bring a back-up up to date; each of its files is replaced whole or stays as it was.

    Raises StoreError where nothing is there to back up, StoreLocked while another process does the same, StoreFull, CollectCancelled.
    """
    _check(folder, target)
    _mark(folder, target)
    target.make()
    catalog = Catalog(folder, is_written=False)
    with locks.held(target.root / "backup.lock", f"{target.root}: another process writes this back-up."):
        snapshot = target.catalog_path.with_name("catalog.db.part")
        try:
            snapshot.unlink(missing_ok=True)
            with catalog.engine.connect() as connection:  # first: each trace that it calls complete has its file, now or soon after
                dialects.copy_into(connection, snapshot)
            done = _copy_traces(folder, catalog, target, should_cancel)
            if drops_deleted:
                for key in done.deleted:
                    target.trace_path(key).unlink(missing_ok=True)
            _place(snapshot, target.catalog_path)
        except OSError as error:
            raise _failure(target, error, "Traces that were copied until now are whole.") from error
        finally:
            with contextlib.suppress(OSError):
                snapshot.unlink(missing_ok=True)
    return done


def _check(folder: TraceFolder, target: TraceFolder) -> None:
    here, there = folder.root.resolve(), target.root.resolve()
    if here == there or here in there.parents or there in here.parents:
        raise StoreError(f"{target.root}: a back-up is a folder of its own, neither the database nor in it. Name another.")
    if not folder.has_catalog():
        raise StoreError(f"{folder.root}: there are no traces here yet.")
    if target.root.exists() and not target.root.is_dir():
        raise StoreError(f"{target.root}: this is a file. Name a folder for the back-up.")
    mark = target.root / _MARK
    if mark.is_file():
        other = mark.read_text("utf-8", "surrogateescape").strip()
        if other not in ("", str(here)):  # none: the disk was full when it was written
            raise StoreError(f"{target.root}: this is the back-up of {other}. Name another folder, or remove {mark} if both are the same.")
    elif target.root.is_dir() and any(path != _unfinished(mark) for path in target.root.iterdir()):
        raise StoreError(f"{target.root}: this folder is not empty, and no back-up. Name another, or an empty one.")
    for path in (target.catalog_path.with_name("catalog.db-wal"), target.catalog_path.with_name("catalog.db-shm")):
        if path.exists():
            raise StoreError(f"{target.root}: a program has this back-up open ({path.name} is there). End it, then try again.")


def _mark(folder: TraceFolder, target: TraceFolder) -> None:
    """Say of which folder this is a back-up, before anything else is in it. Raises StoreFull, StoreError."""
    mark, text = target.root / _MARK, f"{folder.root.resolve()}\n"
    part = _unfinished(mark)
    try:
        if mark.is_file() and mark.read_text("utf-8", "surrogateescape") == text:
            return
        target.root.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        with part.open("x", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        _place(part, mark)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise _failure(target, error, "Nothing was copied.") from error


def _unfinished(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _failure(target: TraceFolder, error: OSError, done: str) -> StoreError:
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    reason = "no space is left on that disk" if is_full else error.strerror or str(error)
    return (StoreFull if is_full else StoreError)(f"{target.root}: the back-up cannot be written ({reason}). {done}")


def _copy_traces(folder: TraceFolder, catalog: Catalog, target: TraceFolder, should_cancel: Callable[[], bool]) -> BackedUp:
    copied, there, left_out = [], [], []
    entries = catalog.entries()
    for entry in entries:
        source, copy = folder.trace_path(entry.key), target.trace_path(entry.key)
        if entry.state != "complete" or not _can_be_read(folder, entry.key):
            left_out.append(entry.key)
        elif _is_same(source, copy):
            there.append(entry.key)
        else:
            _copy(source, copy, should_cancel)
            copied.append(entry.key)
    known = {entry.key for entry in entries}
    deleted = tuple(key for key in target.trace_keys() if key not in known)
    return BackedUp(tuple(copied), tuple(there), tuple(left_out), deleted)


def _can_be_read(folder: TraceFolder, key: str) -> bool:
    """Whether a trace's file is there and is one: what is damaged must not take the place of a good copy."""
    try:
        with folder.trace(key).connect() as connection:
            return connection.execute(select(trace.c.key).where(trace.c.trace_id == 1)).scalar() is not None
    except StoreError:
        return False


def _is_same(source: Path, copy: Path) -> bool:
    """Whether a copy is of this very file: a trace's file is replaced, never changed."""
    if not copy.is_file():
        return False
    first, second = source.stat(), copy.stat()
    return (first.st_size, first.st_mtime_ns) == (second.st_size, second.st_mtime_ns)


def _copy(source: Path, copy: Path, should_cancel: Callable[[], bool]) -> None:
    part = _unfinished(copy)
    try:
        part.unlink(missing_ok=True)
        with source.open("rb") as whole, part.open("xb") as file:
            while piece := whole.read(_PIECE_BYTES):
                if should_cancel():
                    raise CollectCancelled("Cancelled. Traces that were copied until now are whole.")
                file.write(piece)
        shutil.copystat(source, part)
        _place(part, copy)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _place(part: Path, path: Path) -> None:
    with part.open("rb+") as handle:
        os.fsync(handle.fileno())
    part.replace(path)
