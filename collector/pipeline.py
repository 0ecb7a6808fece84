"""Imports one trace: the lock, the catalog's entry and the unfinished file around the stages."""

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterator
from functools import partial

from collector.errors import AlreadyCollected, CollectCancelled, NothingLeft, StoreError, StoreFull, TraceError
from collector.limits import Limits
from collector.model.counting import Counting
from collector.plain import storable
from collector.raw import Reader
from collector.readers import reader_for
from collector.room import advice_on_temporary_files, is_full
from collector.source import Source
from collector.stages import Import, ImportReport, Progress, ignore, never, program_version
from collector.store.catalog import Catalog
from collector.store.stores import TraceStore
from collector.store.writer import TraceWriter
from collector.symbols import Symbols

__all__ = ["ImportReport", "Progress", "import_so_far", "import_trace", "trace_key"]

_KEY_DIGITS = 12
_OBJECTS_BETWEEN_COLLECTIONS = 100_000
_BYTES_FOR_A_PROCESS = 16 << 20


def import_trace(
    source: Source,
    folder: TraceStore,
    on_progress: Callable[[Progress], None] = ignore,
    should_cancel: Callable[[], bool] = never,
    *,
    keep: bool = False,
    name: str | None = None,
    symbols: Symbols | None = None,
    limits: Limits | None = None,
    followed_as: str | None = None,
) -> ImportReport:
    """Read one trace and store its model under its key; an older trace of the same key is replaced when the new one is complete.

    Args:
        should_cancel: asked between windows and during long statements; once true, CollectCancelled is raised and nothing is stored.
        keep: refuse when the trace is there already.
        name: shown instead of the file's name.
        symbols: where names of functions come from.
        limits: what is stored of the trace; its key then gets a suffix, so that the whole can be there too.
        followed_as: the key under which it was shown while it was recorded, where another file was followed then.

    Raises: SourceError, FormatError, CollectCancelled, StoreError and what is below them; then the folder is as it was before.
    """
    started = time.monotonic()
    reader = _reader(source, should_cancel)
    limits = limits or Limits()
    key = trace_key(source, should_cancel) + limits.suffix
    name = storable(name or (f"{source.name} ({limits.words})" if limits else source.name))
    catalog = Catalog(folder)
    catalog.settle()
    if keep and folder.has_trace(key):
        raise AlreadyCollected(f"{source.name}: this file is collected already, as {key}. Leave out --keep to collect it again.")
    try:
        with folder.collecting(key, f"{source.name}: another collector is collecting this file now (trace {key})."):
            catalog.begin(key, name=name, path=storable(str(source.path.absolute())), size_bytes=source.size, version=program_version())
            try:
                with _writer(folder, key, source, should_cancel, limits) as writer:
                    job = Import(reader, writer, catalog, key, on_progress, should_cancel, symbols, limits, followed_as=followed_as)
                    report = job.run(name, started, size_bytes=source.told_by[1] if source.told_by else None)
            except BaseException as error:
                with contextlib.suppress(StoreError):  # what went wrong is said by the first error
                    catalog.interrupt(
                        key, storable(str(error)) if isinstance(error, TraceError) else f"The collector failed: {type(error).__name__}."
                    )
                raise
    except NothingLeft:
        if not folder.has_trace(key):
            catalog.remove(key)  # what was asked for is not in the trace: nothing began that could be interrupted
        raise
    return report


def import_so_far(
    source: Source,
    catalog: Catalog,
    key: str,
    on_progress: Callable[[Progress], None] = ignore,
    should_cancel: Callable[[], bool] = never,
    *,
    name: str,
    is_last: bool,
    symbols: Symbols | None = None,
    limits: Limits | None = None,
) -> ImportReport:
    """Read what a growing file holds now, and let that take the place of what was stored under the key before.

    Whoever asks holds the lock of the key and has entered the trace as `live`; `is_last` leaves it as `interrupted`. After an error the
    folder is as it was before. Raises as `import_trace`.
    """
    started = time.monotonic()
    reader = _reader(source, should_cancel)
    state = "interrupted" if is_last else "live"
    limits = limits or Limits()
    with _writer(catalog.folder, key, source, should_cancel, limits) as writer:
        return Import(reader, writer, catalog, key, on_progress, should_cancel, symbols, limits, state=state).run(name, started)


@contextlib.contextmanager
def _writer(folder: TraceStore, key: str, source: Source, should_cancel: Callable[[], bool], limits: Limits) -> Iterator[TraceWriter]:
    """The unfinished file of a trace."""
    counter = None if limits else Counting  # of a part, what is left of it is counted
    is_beside = _is_worth_a_process(source)
    try:
        with _rare_collections(), TraceWriter(folder, key, should_cancel=should_cancel, is_beside=is_beside, counter=counter) as writer:
            yield writer
    except OSError as error:  # what the database is refused has another name by now
        if is_full(error):
            raise StoreFull(advice_on_temporary_files()) from error
        raise


def trace_key(source: Source, should_cancel: Callable[[], bool] = never) -> str:
    """The key of a trace: the first 12 hex digits of the SHA-256 of its bytes. Raises SourceError, CollectCancelled."""
    return source.sha256(partial(_stop_if, should_cancel))[:_KEY_DIGITS]


def _reader(source: Source, should_cancel: Callable[[], bool]) -> Reader:
    """The reader of a file; it looks at the headers of all its buffers first, of which there may be millions."""
    with source.asking(partial(_stop_if, should_cancel)):
        return reader_for(source)


def _stop_if(should_cancel: Callable[[], bool]) -> None:
    if should_cancel():
        raise CollectCancelled("Cancelled. Nothing was stored.")


def _is_worth_a_process(source: Source) -> bool:
    """Whether a second process shall insert the rows: there is a processor for it, and enough to do that its start does not matter."""
    return source.size >= _BYTES_FOR_A_PROCESS and (os.cpu_count() or 1) > 1


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Look for garbage in cycles less often: rows and open requests hold none, and looking through them is a tenth of an import."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
