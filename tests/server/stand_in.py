"""`pytest --server`: whatever opens a folder of traces by its path gets a database of a PostgreSQL server with what is in the folder.

Tests build a folder as ever, and hand its path to the dashboard or to a verb. What the folder gets later is on the server before the next
question; what is written to the server stays there. The dashboard has a role that only reads, and writes notes and labels.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import Engine, delete, insert, select

from collector.store import stores
from collector.store.engine import QUERY_SECONDS, TraceFolder
from collector.store.server import TraceServer
from collector.store.server_tables import SERVER_CATALOG
from collector.store.stores import TraceStore, is_server
from collector.store.tables import CATALOG
from tests.server.cluster import Cluster, programs

__all__ = ["Databases", "end_server", "end_test", "stand_in"]

_DASHBOARD = "folders_dashboard"
_TEMPLATE = "made_for_folders"


class _Moved:
    """A folder and its database."""

    def __init__(self, folder: TraceFolder, server: "_Resting") -> None:
        self.folder, self.server = folder, server
        self.is_made = False
        self._lock = threading.Lock()
        self._seen: object = None
        self._traces: dict[str, object] = {}
        self._rows: dict[str, list[dict[str, object]]] = {name: [] for name in CATALOG.tables}

    def follow(self) -> None:
        """Bring what changed in the folder since the last time to the server."""
        with self._lock:
            seen = self._state()
            if seen == self._seen:
                return
            self._follow_traces()
            self._follow_catalog()
            self._seen = seen

    def _state(self) -> object:
        folder = self.folder
        catalog = (folder.catalog_path, folder.catalog_path.with_name("catalog.db-wal"))
        return [_identity(path) for path in (*catalog, *sorted(folder.traces_path.glob("*.db")), *sorted(folder.traces_path.glob("*-wal")))]

    def _follow_traces(self) -> None:
        there = {key: self._version(key) for key in self.folder.trace_keys()}
        for key, version in there.items():
            if self._traces.get(key) != version:
                with self.server.collecting(key, "busy"):
                    _copy(self.folder.trace_path(key), self.server.part_path(key))
                    self.server.place(key)
        for key in self._traces.keys() - there.keys():
            self.server.remove_trace(key)
        self._traces = there

    def _version(self, key: str) -> object:
        path = self.folder.trace_path(key)
        return _identity(path), _identity(path.with_name(f"{path.name}-wal"))

    def _follow_catalog(self) -> None:
        rows: dict[str, list[dict[str, object]]] = {name: [] for name in CATALOG.tables}
        if self.folder.has_catalog():
            with self.folder.catalog().connect() as here:
                rows = {table.name: [dict(row._mapping) for row in here.execute(select(table))] for table in CATALOG.sorted_tables}
        changed = [name for name in rows if rows[name] != self._rows[name]]
        with self.server.catalog(write=True).begin() as there:
            for name in changed:
                there.execute(delete(SERVER_CATALOG.tables[name]))
                if rows[name]:
                    there.execute(insert(SERVER_CATALOG.tables[name]), rows[name])
        self._rows = rows


class _Resting(TraceServer):
    """A server whose kept connections can be closed between two questions."""

    def rest(self) -> None:
        self._reader.dispose()


class _Followed(_Resting):
    """A server that has what is in a folder, whenever it is asked."""

    def __init__(self, moved: _Moved, address: str, *, limit_seconds: float, building: Path) -> None:
        self._moved = moved
        super().__init__(address, limit_seconds=limit_seconds, building=building)

    def make(self) -> None:
        self._moved.is_made = True

    def has_catalog(self) -> bool:
        self._moved.follow()
        return self._moved.is_made or self._moved.folder.has_catalog()

    def catalog(self, *, write: bool = False) -> Engine:
        self._moved.follow()
        return super().catalog(write=write)

    def trace(self, key: str) -> Engine:
        self._moved.follow()
        return super().trace(key)

    def number_of(self, key: str) -> int | None:
        self._moved.follow()
        return super().number_of(key)

    def trace_keys(self) -> list[str]:
        self._moved.follow()
        return super().trace_keys()

    def size_of(self, key: str) -> int:
        self._moved.follow()
        return super().size_of(key)

    def size_bytes(self) -> int:
        self._moved.follow()
        return super().size_bytes()

    def holds(self, path: Path) -> bool:
        """A file of the folder, too."""
        return self._moved.folder.holds(path) or super().holds(path)

    @contextmanager
    def collecting(self, key: str, busy: str) -> Iterator[None]:
        self._moved.follow()  # which takes the lock itself
        with super().collecting(key, busy):
            yield

    def is_being_collected(self, key: str) -> bool:
        """By a collector of the folder, too."""
        return self._moved.folder.is_being_collected(key) or super().is_being_collected(key)


class Databases:
    """A cluster with a database for each folder that was opened."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._cluster.sql(f"CREATE DATABASE {_TEMPLATE}")
        self._cluster.sql(f"CREATE ROLE {_DASHBOARD} LOGIN")
        with closing(TraceServer(self._cluster.url(_TEMPLATE))) as server:
            server.make()
            server.grant_to(_DASHBOARD)
        self._numbers = count(1)
        self._moved: dict[Path, tuple[str, _Moved]] = {}
        self._opened: list[_Resting] = []

    def open(self, root: Path, limit_seconds: float | None = None) -> TraceServer:
        """What has the traces of a folder; who limits the time of statements is the dashboard."""
        root = root.resolve()
        if root not in self._moved:
            name = f"folder{next(self._numbers)}"
            self._cluster.sql(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
            self._moved[root] = name, _Moved(TraceFolder(root), _Resting(self._cluster.url(name), building=self._building(name)))
        name, moved = self._moved[root]
        role = "owner" if limit_seconds is None else _DASHBOARD
        limit_seconds = limit_seconds or QUERY_SECONDS
        opened = _Followed(moved, self._cluster.url(name, role), limit_seconds=limit_seconds, building=self._building(name))
        self._opened += (moved.server, opened)
        return opened

    def _building(self, name: str) -> Path:
        return self._cluster.folder / "building" / name

    def close(self) -> None:
        """End the cluster."""
        self._cluster.close()

    def rest(self) -> None:
        """Close connections that nobody uses just now; who needs one again opens it."""
        for server in self._opened:
            server.rest()

    def drop(self) -> None:
        """Drop all databases: their tests are over."""
        self.rest()
        self._opened.clear()
        for name, _ in self._moved.values():
            self._cluster.sql(f"DROP DATABASE {name} WITH (FORCE)")
        self._moved.clear()


_databases: Databases | None = None


def _new_cluster() -> Cluster:
    found = programs()
    if found is None:
        raise pytest.UsageError("--server needs PostgreSQL, and it is not installed: apt-get install postgresql")
    return Cluster(found)


def stand_in() -> None:
    """Have paths of folders opened as databases from now on."""
    opened = stores.open_store

    def open_store(place: Path | str | None = None, *, limit_seconds: float | None = None) -> TraceStore:
        global _databases
        text = str(place) if place is not None else ""
        if not text or is_server(text):
            return opened(place, limit_seconds=limit_seconds or QUERY_SECONDS)
        _databases = _databases or Databases(_new_cluster())
        return _databases.open(Path(text).expanduser(), limit_seconds)

    stores.open_store = open_store


def end_test(*, is_last: bool) -> None:
    """Leave no connection behind; after the last test of a module no database either."""
    if _databases is not None:
        if is_last:
            _databases.drop()
        else:
            _databases.rest()


def end_server() -> None:
    """End the server; nothing is asked of it any more."""
    global _databases
    if _databases is not None:
        _databases.close()
        _databases = None


def _identity(path: Path) -> tuple[str, int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return path.name, stat.st_ino, stat.st_mtime_ns, stat.st_size


def _copy(path: Path, part: Path) -> None:
    """The file of a trace with what is beside it."""
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as source, closing(sqlite3.connect(part)) as target:
        source.backup(target)
