"""A trace as one file for somebody else: a copy with the trace's notes, which is there in whole or not at all."""

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, Row, delete, insert, inspect, select
from sqlalchemy.schema import CreateTable

from collector.errors import CollectCancelled, StoreError, StoreFull
from collector.store import dialects
from collector.store.engine import TraceFolder
from collector.store.masking import mask_file
from collector.store.tables import CATALOG
from collector.store.views import CATALOG_VIEWS, create_catalog_views

__all__ = ["copy_trace", "notes_in"]

_PIECE_BYTES = 4 << 20
_note = CATALOG.tables["note"]


def copy_trace(folder: TraceFolder, key: str, target: Path, should_cancel: Callable[[], bool], *, mask_secret: bytes | None = None) -> int:
    """Write a finished trace to `target`, replacing what is there; returns how many notes went with it.

    With `mask_secret` everything in it that names a machine or its people is replaced (`store/masking`); that is done within the folder of
    traces, so that no original reaches the place of the target, whatever happens. The copy is built beside the target, reaches the disk,
    and then takes the target's name. Raises StoreFull, StoreError, CollectCancelled; then nothing is left behind and an older target is as
    it was.
    """
    target = Path(os.path.realpath(target))
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    masked = folder.trace_path(key).with_name(f"{key}.{os.getpid()}.masking")
    notes = _notes(folder, key)
    try:
        if mask_secret is not None:
            _copy(folder.trace_path(key), masked, should_cancel)
            _add_notes(masked, notes)
            mask_file(masked, mask_secret, should_cancel)
            _copy(masked, part, should_cancel)
        else:
            _copy(folder.trace_path(key), part, should_cancel)
            _add_notes(part, notes)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(part, target)  # noqa: PTH105 - one atomic step, the same on all systems
    except StoreFull as error:
        raise StoreFull(_full(target)) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoreFull(_full(target)) from error
        raise StoreError(f"{target}: cannot be written ({error.strerror}). Nothing was exported; name another place with -o.") from error
    finally:
        for left in (masked, masked.with_name(masked.name + "-journal"), part, part.with_name(part.name + "-journal")):
            with contextlib.suppress(OSError):
                left.unlink(missing_ok=True)
    return len(notes)


def notes_in(connection: Connection) -> list[dict[str, object]]:
    """The notes that came with a copy, without their numbers; none in a trace that was collected here."""
    if not inspect(connection).has_table(_note.name):
        return []
    wanted = [column for column in _note.c if column.name != "n"]
    return [dict(row._mapping) for row in connection.execute(select(*wanted).order_by(_note.c.n))]


def _full(target: Path) -> str:
    return f"{target}: no space is left on that disk. Nothing was exported; free some, or name another place with -o."


def _notes(folder: TraceFolder, key: str) -> list[Row[tuple[object, ...]]]:
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
