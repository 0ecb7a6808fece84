"""The folder that holds the traces, and connections to its files.

`catalog.db` spans the traces; `traces/KEY.db` is one trace, complete in itself. A trace that is being collected is built as
`KEY.db.part` and takes the old file's place when it is finished.
"""

import contextlib
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import platformdirs
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from collector.errors import NotAFolder, StoreError, StoreTooNew, StoreTooOld
from collector.store import dialects, locks
from collector.store.placing import put_in_place, remove_part
from collector.store.tables import CATALOG_VERSION, TRACE_VERSION

__all__ = [
    "ENVIRONMENT_VARIABLE",
    "QUERY_SECONDS",
    "TraceFolder",
    "check_version",
    "default_root",
    "folder_of_file",
    "is_key",
    "stored_version",
]

ENVIRONMENT_VARIABLE = "SOCKSCOPE_DATABASE"
QUERY_SECONDS = 8.0
"""How long one statement of a reader may run."""
_CATALOG = "catalog.db"
_OF_CATALOG = tuple(_CATALOG + ending for ending in ("", "-wal", "-shm", "-journal"))


def default_root() -> Path:
    """The folder in which traces are kept when none is named: the environment's, else one in the user's data folder."""
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(named) if named else platformdirs.user_data_path("sockscope", appauthor=False)


class TraceFolder:
    """A folder of traces. Making one touches no file."""

    def __init__(self, root: Path | str | None = None, *, limit_seconds: float = QUERY_SECONDS) -> None:
        text = str(root) if root is not None else str(default_root())
        if "://" in text:
            raise StoreError("This is the address of a server, where a folder of traces is needed. Name a folder.")
        self.root = Path(text).expanduser()
        self.limit_seconds = limit_seconds
        self._readers: dict[Path, tuple[tuple[int, int, int], Engine]] = {}

    def __repr__(self) -> str:
        return f"TraceFolder({str(self.root)!r})"

    @property
    def address(self) -> Path:
        """What opens it again."""
        return self.root

    @property
    def title(self) -> str:
        """How messages name it."""
        return str(self.root)

    @property
    def catalog_path(self) -> Path:
        return self.root / _CATALOG

    @property
    def traces_path(self) -> Path:
        return self.root / "traces"

    def trace_path(self, key: str) -> Path:
        """The file of a trace. Raises StoreError for what cannot be a key, so that no path leaves the folder."""
        if not is_key(key):
            raise StoreError(f"{key!r} is not the key of a trace.")
        return self.traces_path / f"{key}.db"

    def part_path(self, key: str) -> Path:
        """The file in which a trace is built."""
        return self.trace_path(key).with_suffix(".db.part")

    def lock_path(self, key: str) -> Path:
        """The file that the collector of a trace holds locked."""
        return self.trace_path(key).with_suffix(".db.lock")

    def is_being_collected(self, key: str) -> bool:
        """Whether a living process collects a trace; its entry alone may be that of a collector that died."""
        return locks.is_held(self.lock_path(key))

    def check(self, *, must_exist: bool = False) -> None:
        """Look whether this can be a folder of traces, before anything is read or written.

        Raises: NotAFolder for a file, and with `must_exist` for nothing; StoreError for a folder that may not be read or that has other
        things where the traces belong.
        """
        try:
            if self.root.is_dir():
                if not os.access(self.root, os.R_OK | os.X_OK):
                    raise StoreError(f"{self.root}: this folder may not be read. Check its permissions, or name another with --database.")
                if self.catalog_path.exists() and not self.catalog_path.is_file():
                    raise StoreError(f"{self.catalog_path}: this must be a file, and is none. Move it away, or name another folder.")
                if self.traces_path.exists() and not self.traces_path.is_dir():
                    raise StoreError(f"{self.traces_path}: there is a file of this name; a folder is needed for the traces. Move it away.")
                return
            if self.root.exists():
                raise NotAFolder(f"{self.root}: this is a file. --database names the folder in which traces are kept.")
        except OSError as error:
            raise StoreError(f"{self.root}: this folder cannot be looked at ({error.strerror}). Name another with --database.") from error
        above = next((path for path in self.root.parents if path.exists()), self.root)
        if not above.is_dir():
            raise NotAFolder(f"{self.root}: {above} is a file, so there can be no folder below it. Name another with --database.")
        if must_exist:
            raise NotAFolder(
                f"{self.root}: there is no such folder. Name the folder of your traces with --database; sockscope collect makes a new one."
            )

    def make(self) -> None:
        """Create the folder. Raises StoreError where that is not possible."""
        try:
            self.traces_path.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise StoreError(f"{error.filename}: there is a file of this name; a folder is needed for the traces.") from error
        except OSError as error:
            raise StoreError(f"{self.root}: this folder cannot be created ({error.strerror}). Name another with --database.") from error

    def has_catalog(self) -> bool:
        return self.catalog_path.is_file()

    def catalog(self, *, write: bool = False) -> Engine:
        """Connections to the catalog; read-only and with a time limit unless `write`.

        Raises: StoreError when there is none; StoreTooNew, StoreTooOld by its version.
        """
        if not write:
            return self._reader(self.catalog_path, CATALOG_VERSION, "the catalog of this folder")
        if not self.has_catalog():
            raise StoreError(f"{self.root}: there are no traces here yet. Collect one: sockscope collect FILE.etl")
        engine = dialects.writing_engine(self.catalog_path)
        check_version(engine, self.catalog_path, CATALOG_VERSION)
        return engine

    def trace(self, key: str) -> Engine:
        """Read-only connections with a time limit to one finished trace.

        The engine is kept until the file is replaced. Raises: StoreError when there is no such trace; StoreTooNew, StoreTooOld.
        """
        return self._reader(self.trace_path(key), TRACE_VERSION, f"trace {key}")

    def has_trace(self, key: str) -> bool:
        """Whether the file of a finished trace is there."""
        return self.trace_path(key).is_file()

    def missing(self, keys: Collection[str]) -> list[str]:
        """Those of some keys that have no file, in their order."""
        return [key for key in keys if not self.has_trace(key)]

    def holds(self, path: Path) -> bool:
        """Whether a file that is written there would be one of this folder, however the path is spelled and wherever links lead."""
        real = Path(os.path.realpath(path))
        own = (self.root, self.traces_path, self.catalog_path, *self.traces_path.glob("*.db"))  # each may be a link to elsewhere
        return not {_identity(one) for one in own}.isdisjoint({_identity(one) for one in (real, *real.parents)} - {None})

    def size_of(self, key: str) -> int:
        """Bytes of a trace's file; 0 where there is none."""
        return _size(self.trace_path(key))

    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(_size(path) for path in (self.catalog_path, *self.traces_path.glob("*.db")))

    def version_of(self, key: str) -> str:
        """What tells one state of a trace from the next; empty where there is none."""
        try:
            state = self.trace_path(key).stat()
        except OSError:
            return ""
        return f"{state.st_ino:x}-{state.st_mtime_ns:x}"

    def files_of(self, key: str) -> tuple[Path, ...]:
        """The files that a page of a trace is made from, the trace's own first; their times tell when another page may be made."""
        return self.trace_path(key), self.catalog_path, self.catalog_path.with_name(f"{self.catalog_path.name}-wal")

    def whereabouts(self, key: str) -> str:
        """Where a trace would be, for messages."""
        return str(self.trace_path(key))

    def trace_keys(self) -> list[str]:
        """Keys of all trace files, whether or not the catalog knows them."""
        return sorted(path.stem for path in self.traces_path.glob("*.db"))

    # ------------------------------------------------------------------------------------------------ changing traces

    def unpacking_place(self) -> Path | None:
        """Beside the traces there is room for what is unpacked; before there are any, the system's place is as good."""
        return self.root if self.root.is_dir() else None

    def collecting(self, key: str, busy: str) -> contextlib.AbstractContextManager[None]:
        """Hold the lock of a trace; the system lets go of it when the process ends. Raises StoreLocked with the message `busy`."""
        return locks.held(self.lock_path(key), busy)

    def hold_still(self, key: str) -> None:
        """Nothing: the lock of a file is not lost."""

    def place(self, key: str, should_cancel: Callable[[], bool] | None = None) -> None:
        """Let the finished file take the trace's place. Whoever asks holds its lock. Raises StoreError, CollectCancelled."""
        put_in_place(self.part_path(key), self.trace_path(key), should_cancel)

    @contextlib.contextmanager
    def fetched(self, key: str, should_cancel: Callable[[], bool]) -> Iterator[Path]:
        """The file of a finished trace, to be read within the block and not to be changed."""
        yield self.trace_path(key)

    def remove_trace(self, key: str) -> None:
        """Delete the file of a trace, and what was left of one. Whoever asks holds its lock. Raises StoreError."""
        for path in (self.trace_path(key), self.part_path(key)):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise StoreError(f"{path}: this file cannot be deleted ({error.strerror}). Close programs that have it open.") from error

    def clear_part(self, key: str) -> None:
        """Remove the unfinished file of a trace whose collector died."""
        with contextlib.suppress(OSError):
            remove_part(self.part_path(key))

    def clear_locks(self) -> None:
        """Remove the lock files that killed processes have left."""
        for lock in self.traces_path.glob("*.db.lock"):
            locks.clear(lock)

    def close(self) -> None:
        """Nothing: a folder keeps no connection open."""

    def _reader(self, path: Path, version: str, what: str) -> Engine:
        try:
            stat = path.stat()
        except OSError as error:
            raise StoreError(f"{self.root}: {what} is not there. Collect a trace first: sockscope collect FILE.etl") from error
        identity = (stat.st_ino, stat.st_mtime_ns, stat.st_size) if path != self.catalog_path else (stat.st_ino, 0, 0)
        kept = self._readers.get(path)
        if kept is not None and kept[0] == identity:
            return kept[1]
        engine = dialects.reading_engine(path, limit_seconds=self.limit_seconds)
        check_version(engine, path, version)
        self._readers[path] = (identity, engine)
        return engine


def is_key(text: str) -> bool:
    """Whether a text can be the key of a trace, so that no path made of it leaves its folder."""
    return bool(text) and all(c.isascii() and (c.isalnum() or c in "-_") for c in text)


def folder_of_file(path: Path) -> Path | None:
    """The folder of traces of which a file is the catalog or a trace that is there, wherever links lead; None for any other file."""
    for one in (path.absolute(), Path(os.path.realpath(path))):
        beside, above = TraceFolder(one.parent), TraceFolder(one.parent.parent)
        if one.name in _OF_CATALOG and beside.has_catalog():
            return beside.root
        if one.parent == above.traces_path and one.exists() and above.has_catalog():
            return above.root
    return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file or folder a path leads to; None for one that is not there or may not be looked at."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def stored_version(engine: Engine, path: Path) -> str | None:
    """The revision that a database was brought to; None for one without tables. Raises StoreError for what is not a database."""
    with engine.connect() as connection:
        names = {row[0] for row in connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "alembic_version" not in names:
            if names:
                raise StoreError(f"{path}: this is not a database of sockscope.")
            return None
        version: str | None = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
        return version


def check_version(engine: Engine, path: Path, wanted: str) -> None:
    """Compare a database's version with the one that this program reads and writes.

    Raises: StoreTooNew, StoreTooOld.
    """
    try:
        found = stored_version(engine, path)
    except DBAPIError as error:
        raise StoreError(f"{path}: this database cannot be read ({error.orig}).") from error
    if found is None:
        raise StoreError(f"{path}: this database is empty. Move it away and collect the trace again.")
    if found == wanted:
        return
    if found > wanted:
        raise StoreTooNew(f"{path}: made by a newer version of sockscope (version {found}, this program knows {wanted}). Update sockscope.")
    raise StoreTooOld(
        f"{path}: made by an older version of sockscope (version {found}, this program needs {wanted}). Run: sockscope migrate"
    )
