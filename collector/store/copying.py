"""A trace as one file for somebody else: a copy with the trace's notes, which is there in whole or not at all."""

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import Connection, Row, delete, func, insert, inspect, select
from sqlalchemy.schema import CreateTable

from collector.errors import CollectCancelled, StoreDamaged, StoreError, StoreFull, StoreTooNew, StoreTooOld
from collector.store import dialects, locks
from collector.store.engine import TraceFolder
from collector.store.stores import TraceStore
from collector.store.tables import CATALOG
from collector.store.views import CATALOG_VIEWS, create_catalog_views

__all__ = ["Change", "brings_notes", "copy_trace", "notes_in", "placed", "prepared"]

_PIECE_BYTES = 4 << 20
_COPY = ".export"
_OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_note = CATALOG.tables["note"]


Change = Callable[[Path], None]
"""What is done to the working copy of a trace's file: a part cut out of it, names masked."""


def copy_trace(folder: TraceStore, key: str, target: Path, should_cancel: Callable[[], bool], *changes: Change) -> int:
    """Write a finished trace to `target`, replacing what is there; returns how many notes went with it.

    The copy is built beside the target, reaches the disk, and then takes the target's name. Raises StoreFull, StoreError,
    CollectCancelled, and what the changes raise; then nothing is left behind and an older target is as it was.
    """
    with prepared(folder, key, should_cancel, *changes) as source, placed(target) as part:
        _copy(source, part, should_cancel)
        if not changes:
            _add_notes(part, _notes(folder, key))
        return _notes_number(part)


@contextlib.contextmanager
def _naming(folder: TraceStore, key: str) -> Iterator[None]:
    """Say of damage which trace has it: the copy in which it was met is gone by then. What is no database at all is never copied."""
    try:
        with contextlib.suppress(StoreTooOld, StoreTooNew):  # a copy of them is as good
            folder.trace(key)
        yield
    except StoreDamaged as error:
        if not isinstance(folder, TraceFolder) or error.file == str(folder.catalog_path):
            raise
        words = f"{key}: the file of this trace is damaged ({error.reason}). Collect its file again, then export it."
        raise StoreDamaged(words, file=str(folder.trace_path(key)), reason=error.reason) from error


def brings_notes(folder: TraceStore, *changes: Change) -> bool:
    """Whether the file that `prepared` gives has the trace's notes, as every copy has; else the catalog alone has them."""
    return bool(changes) or not isinstance(folder, TraceFolder)


@contextlib.contextmanager
def prepared(folder: TraceStore, key: str, should_cancel: Callable[[], bool], *changes: Change) -> Iterator[Path]:
    """The file of a trace to read from: its own, or, where something is to be changed, a copy with its notes that has been.

    The copy is made within the folder of traces, so that no original reaches the place of an export, whatever happens, and is removed in
    the end. Raises StoreFull, StoreError, CollectCancelled, and what the changes raise.
    """
    with _naming(folder, key), _changed(folder, key, should_cancel, *changes) as path:
        yield path


@contextlib.contextmanager
def _changed(folder: TraceStore, key: str, should_cancel: Callable[[], bool], *changes: Change) -> Iterator[Path]:
    if not changes:
        with folder.fetched(key, should_cancel) as whole:
            if brings_notes(folder):
                _add_notes(whole, _notes(folder, key))
            yield whole
        return
    copy = folder.part_path(key).with_name(f"{key}.{os.getpid()}{_COPY}")
    with folder.fetched(key, should_cancel) as whole, locks.held(_lock_of(copy), f"{copy}: this copy is being made already."):
        _clear_copies(copy.parent)
        try:
            try:
                _copy(whole, copy, should_cancel)
                _add_notes(copy, _notes(folder, key))
                for change in changes:
                    change(copy)
            except StoreFull as error:
                raise StoreFull(_no_room(copy.parent)) from error
            except OSError as error:
                if error.errno in _OUT_OF_SPACE:
                    raise StoreFull(_no_room(copy.parent)) from error
                raise StoreError(
                    f"{copy.parent}: no copy of the trace can be made there ({error.strerror}). Nothing was exported."
                ) from error
            yield copy
        finally:
            _remove(copy)


def _clear_copies(place: Path) -> None:
    """Remove what exports that were killed have left: it may be as large as a trace."""
    for copy in place.glob(f"*{_COPY}"):
        if not locks.is_held(_lock_of(copy)):
            _remove(copy)
            locks.clear(_lock_of(copy))


def _lock_of(copy: Path) -> Path:
    return copy.with_name(copy.name + ".lock")


def _remove(path: Path) -> None:
    for left in (path, path.with_name(path.name + "-journal")):
        with contextlib.suppress(OSError):
            left.unlink(missing_ok=True)


@contextlib.contextmanager
def placed(target: Path, *, is_folder: bool = False) -> Iterator[Path]:
    """A name beside `target` to write to; what is there when the block ends reaches the disk and takes the target's name in one step.

    With `is_folder` it is a new folder, and takes the place of an empty or absent one only. Raises StoreFull, StoreError for what the
    block or the renaming meets; then nothing is left behind and an older target is as it was.
    """
    target = Path(os.path.realpath(target))
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        if is_folder:
            part.mkdir()
        yield part
        for file in part.iterdir() if is_folder else (part,):
            with file.open("rb+") as handle:
                os.fsync(handle.fileno())
        os.replace(part, target)  # noqa: PTH105 - one atomic step, the same on all systems
    except StoreFull as error:
        raise StoreFull(_full(target)) from error
    except OSError as error:
        if error.errno in _OUT_OF_SPACE:
            raise StoreFull(_full(target)) from error
        raise StoreError(
            f"{target}: cannot be written ({error.strerror or error}). Nothing was exported; name another place with -o."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            if is_folder:
                shutil.rmtree(part, ignore_errors=True)
            _remove(part)


def notes_in(connection: Connection) -> list[dict[str, object]]:
    """The notes that came with a copy, without their numbers; none in a trace that was collected here."""
    if not inspect(connection).has_table(_note.name):
        return []
    wanted = [column for column in _note.c if column.name != "n"]
    return [dict(row._mapping) for row in connection.execute(select(*wanted).order_by(_note.c.n))]


def _full(target: Path) -> str:
    return f"{target}: no space is left on that disk. Nothing was exported; free some, or name another place with -o."


def _no_room(place: Path) -> str:
    return f"{place}: no space is left there for the copy of the trace that the export is made from. Nothing was exported; free some."


def _notes_number(path: Path) -> int:
    engine = dialects.reading_engine(path, limit_seconds=60)
    try:
        with engine.connect() as connection:
            return connection.execute(select(func.count()).select_from(_note)).scalar_one()
    finally:
        engine.dispose()


def _notes(folder: TraceStore, key: str) -> list[Row[tuple[object, ...]]]:
    with folder.catalog().connect() as connection:
        return list(connection.execute(select(*_note.c).where(_note.c.key == key).order_by(_note.c.n)).all())


def _copy(source: Path, part: Path, should_cancel: Callable[[], bool]) -> None:
    with source.open("rb") as whole, part.open("xb") as file:
        while piece := whole.read(_PIECE_BYTES):
            if should_cancel():
                raise CollectCancelled("Cancelled. Nothing was exported.")
            file.write(piece)


def _add_notes(part: Path, notes: list[Row[tuple[object, ...]]]) -> None:
    """The notes as the catalog has them, in a table and a view of the same names."""
    engine = dialects.writing_engine(part)
    try:
        with engine.begin() as connection:
            connection.execute(CreateTable(_note, if_not_exists=True))
            connection.execute(delete(_note))  # those of an export that became a trace of this database
            for name in CATALOG_VIEWS:
                connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")
            create_catalog_views(connection)
            if notes:
                connection.execute(insert(_note), [dict(note._mapping) for note in notes])
    finally:
        engine.dispose()
