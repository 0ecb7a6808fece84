"""Follows a file that its session still writes: what is there is collected anew now and then, and the whole when the session has ended.

Why anew each time: what is open has its rows only at the end, so a part of a trace is a trace of its own, not a half-filled one. A new
collection begins after a pause as long as the last one took: it costs half of one processor at most, and a page is behind the file by at
most about three times what collecting takes.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from collector.errors import CollectCancelled, EmptyTrace, NothingLeft, SourceError, StoreError, StoreFull, TraceError
from collector.limits import Limits
from collector.model.trace_row import live_key
from collector.pipeline import import_so_far, import_trace
from collector.plain import storable
from collector.readers import reader_for
from collector.readers.etl_growing import GrowingFile, Growth
from collector.source import Source
from collector.stages import ImportReport, never, program_version
from collector.store.catalog import Catalog
from collector.store.stores import TraceStore
from collector.symbols import Symbols

__all__ = ["PACE", "Followed", "Pace", "follow"]


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a file is looked at, in seconds."""

    look: float = 0.5
    """Between two looks. What one look finds is read at the next, when it has surely been written."""
    pause: float = 2.0
    """At least between the end of one collection and the beginning of the next."""
    settle: float = 5.0
    """How long a file may lack buffers that its header counts once the session has ended."""


PACE = Pace()


@dataclass(frozen=True, slots=True)
class Followed:
    """How following ended."""

    report: ImportReport
    is_whole: bool
    """Whether the session ended, so that the trace is the whole file's; else it ends where following did."""


def follow(
    path: str | Path,
    folder: TraceStore,
    should_stop: Callable[[], bool],
    *,
    name: str | None = None,
    symbols: Symbols | None = None,
    limits: Limits | None = None,
    whole: str | Path | None = None,
    for_seconds: float | None = None,
    idle_seconds: float | None = None,
    on_stored: Callable[[ImportReport], None] = lambda report: None,
    on_trouble: Callable[[str], None] = lambda sentence: None,
    pace: Pace = PACE,
    wait: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> Followed:
    """Collect a growing file until its session has ended, or until `should_stop`, `for_seconds` or `idle_seconds` without growth say so.

    While it grows, the trace has a key of its own (`live-…`) and the state `live`; when the session has ended that trace is replaced by the
    one of the whole file, with the key and the content that collecting the finished file gives. What ends earlier stays under the first key
    as `interrupted`.

    Args:
        whole: the file that is collected in the end, where it is there then; the followed one shows only what could be shown meanwhile.
        on_stored: told of each collection.
        on_trouble: told in a sentence what kept a collection from being stored; the next one tries again.
        wait, now: how to let time pass, and what time it is, in seconds.

    Raises: SourceError, FormatError, StoreError, and CollectCancelled where nothing was stored.
    """
    followed, last = Path(path), Path(whole) if whole is not None else None
    wanted = _Wanted(
        followed, last, folder, should_stop, name, symbols, limits or Limits(), for_seconds, idle_seconds, on_stored, on_trouble
    )
    catalog = Catalog(folder)
    catalog.settle()
    with contextlib.ExitStack() as stack:
        return _Following(wanted, catalog, stack, pace, wait, now).run()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be followed, and how."""

    path: Path
    whole: Path | None
    folder: TraceStore
    should_stop: Callable[[], bool]
    name: str | None
    symbols: Symbols | None
    limits: Limits
    for_seconds: float | None
    idle_seconds: float | None
    on_stored: Callable[[ImportReport], None]
    on_trouble: Callable[[str], None]

    @property
    def shown_name(self) -> str:
        """Name of the trace while it is followed."""
        return storable(self.name or (f"{self.path.name} ({self.limits.words})" if self.limits else self.path.name))


class _Following:
    """What is known of the file from one look to the next."""

    def __init__(
        self,
        wanted: _Wanted,
        catalog: Catalog,
        stack: contextlib.ExitStack,
        pace: Pace,
        wait: Callable[[float], None],
        now: Callable[[], float],
    ) -> None:
        self._wanted, self._catalog, self._stack = wanted, catalog, stack
        self._pace, self._wait, self._now = pace, wait, now
        self._file = GrowingFile()
        self._began = self._grew = self._now()
        self._next = self._began
        self._seen: Growth | None = None
        self._stored: str | None = None
        self._ended: float | None = None
        self._trouble = ""
        self.key: str | None = None
        """Set once the trace is entered under it."""

    def run(self) -> Followed:
        """Look until there is an end. Raises what `follow` raises; the trace is then left as interrupted."""
        try:
            while True:
                found = self._look()
                if found is not None:
                    return found
                self._wait(self._pace.look)
        except BaseException as error:
            if self.key is not None:
                said = storable(str(error)) if isinstance(error, TraceError) else _why(error)
                with contextlib.suppress(StoreError):
                    self._catalog.abandon(self.key, said)
            raise

    def _look(self) -> Followed | None:
        """Look once, and collect where that is due."""
        wanted, now = self._wanted, self._now()
        is_over = wanted.should_stop() or (wanted.for_seconds is not None and now - self._began >= wanted.for_seconds)
        try:
            source = Source.open(wanted.path)
        except EmptyTrace:
            self._check_patience(now, is_over=is_over)
            return None
        with source:
            growth = self._file.look(source)
            if not growth.whole_bytes:
                self._check_patience(now, is_over=is_over)
                return None
            before, self._seen = self._seen, growth
            if before is None or before.mark != growth.mark:
                self._grew = now
            if self._is_ended(growth, before, now):
                return self._whole()
            if is_over or self._is_idle(now):
                return self._whole(is_over=True) if self._has_whole else self._last(source, growth)
            if before is not None and before.mark != self._stored and now >= self._next:
                try:
                    self._so_far(source.first(min(before.whole_bytes, growth.whole_bytes)), before.mark)
                except CollectCancelled:
                    return self._last(source, growth)
        return None

    def _check_patience(self, now: float, *, is_over: bool) -> None:
        """Raises CollectCancelled where nothing came and no more is waited for."""
        if is_over or self._is_idle(now):
            raise CollectCancelled(
                f"{self._wanted.path.name}: following ended before the session had written anything. Nothing was stored."
            )

    def _is_idle(self, now: float) -> bool:
        limit = self._wanted.idle_seconds
        return limit is not None and now - self._grew >= limit

    def _is_ended(self, growth: Growth, before: Growth | None, now: float) -> bool:
        """Whether the session has ended and its file has come to rest."""
        if not growth.is_ended or before is None or before.mark != growth.mark:
            self._ended = None
            return False
        if self._ended is None:
            self._ended = now
        return growth.buffers >= growth.declared_buffers or now - self._ended >= self._pace.settle

    def _enter(self, source: Source) -> str:
        """Take the key of the session, and enter the trace under it. Raises StoreLocked where another collector follows the session."""
        if self.key is None:
            wanted = self._wanted
            key = live_key(reader_for(source).header) + wanted.limits.suffix
            busy = f"{source.name}: another collector is following this session now (trace {key})."
            self._stack.enter_context(wanted.folder.collecting(key, busy))
            where = storable(str(source.path.absolute()))
            self._catalog.begin(
                key, name=self._wanted.shown_name, path=where, size_bytes=source.size, version=program_version(), state="live"
            )
            self.key = key
        return self.key

    def _so_far(self, source: Source, mark: str) -> None:
        """Collect what is there, and show it."""
        wanted, began = self._wanted, self._now()
        key = self._enter(source)
        try:
            report = import_so_far(
                source,
                self._catalog,
                key,
                should_cancel=wanted.should_stop,
                name=self._wanted.shown_name,
                is_last=False,
                symbols=wanted.symbols,
                limits=wanted.limits,
            )
        except (EmptyTrace, NothingLeft):  # later there may be something
            pass
        except (StoreFull, SourceError):
            raise
        except StoreError as error:  # such as a program that holds the file for a moment
            if self._trouble != str(error):
                self._trouble = str(error)
                wanted.on_trouble(self._trouble)
        else:
            self._stored = mark
            wanted.on_stored(report)
        ended = self._now()
        self._next = ended + max(self._pace.pause, ended - began)

    def _last(self, source: Source, growth: Growth) -> Followed:
        """Collect what is there for the last time."""
        part = source.first(growth.whole_bytes)
        key = self._enter(part)
        report = import_so_far(
            part, self._catalog, key, name=self._wanted.shown_name, is_last=True, symbols=self._wanted.symbols, limits=self._wanted.limits
        )
        return Followed(report, is_whole=False)

    @property
    def _has_whole(self) -> bool:
        """Whether another file is there to take the place of the followed one."""
        return self._wanted.whole is not None and self._wanted.whole.exists()

    def _whole(self, *, is_over: bool = False) -> Followed:
        """The session has ended: collect the file as any other, in the place of what was shown so far; `is_over`: that is asked for."""
        wanted = self._wanted
        path = wanted.whole if wanted.whole is not None and self._has_whole else wanted.path
        with Source.open(path) as source:
            try:
                report = import_trace(
                    source,
                    wanted.folder,
                    should_cancel=never if is_over else wanted.should_stop,
                    name=wanted.name,
                    symbols=wanted.symbols,
                    limits=wanted.limits,
                    followed_as=self.key,
                )
            except CollectCancelled as cancelled:
                if self._stored is None:
                    raise
                raise CollectCancelled(
                    f"{source.name}: cancelled while the finished file was collected. What was read before stays as trace {self.key}; "
                    "collect the file again for all of it."
                ) from cancelled
        if self.key is not None:
            key, self.key = self.key, None
            try:
                self._catalog.close_live(key, report.key)
            except StoreError as error:
                wanted.on_trouble(str(error))
        return Followed(report, is_whole=True)


def _why(error: BaseException) -> str:
    """What a trace says whose following ended out of turn."""
    if isinstance(error, KeyboardInterrupt):
        return "Following was stopped at once: what came later is not here. Collect the file when the session has ended."
    return f"Following ended: {type(error).__name__}."
