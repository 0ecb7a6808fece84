"""A PostgreSQL server that holds the traces, and connections to it.

A trace is built as a SQLite file in a local folder, like one of a folder of traces. Its rows are then copied to the server into new
partitions, and one transaction makes these the trace's. What they replace is taken off and dropped afterwards; what a process that was
killed has left of that is dropped by the next.
"""

import contextlib
import os
import secrets
import time
import weakref
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from sqlalchemy import Connection, Engine, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from collector.errors import StoreError, StoreLocked, StoreReadOnly, StoreTooNew, StoreTooOld, StoreUnreachable
from collector.store import locks, postgresql
from collector.store.building import building_folder
from collector.store.distributing import Distributed, distribute, is_distributed, one_after_another
from collector.store.engine import QUERY_SECONDS, is_key
from collector.store.fetching import fetch_rows
from collector.store.loading import attach_partitions, load_rows
from collector.store.placing import remove_part
from collector.store.server_locks import SCHEMA_CHANGES, Lock, hold_in_transaction, is_held, lock_of, try_hold
from collector.store.server_migrating import grant_reading, upgrade_server
from collector.store.server_reading import engine_of_trace, held_number, reading_engine
from collector.store.server_tables import SCHEMA, create_schema, partition_name, revision, trace_load, trace_number
from collector.store.sweeping import sweep
from collector.store.tables import CATALOG_VERSION, TRACE_VERSION

__all__ = ["TraceServer"]

OLDEST_SERVER = 140000
"""PostgreSQL 14: the first that takes a partition off while others read."""
_FETCHED = ".fetched"
_TRIES = 50  # a lock held at each of them is busy
_TRY_SECONDS = 0.02


class TraceServer:
    """A database of a PostgreSQL server. Making one connects to nothing."""

    def __init__(self, address: str, *, limit_seconds: float = QUERY_SECONDS, building: Path | None = None) -> None:
        self.url = postgresql.server_url(address)
        self.limit_seconds = limit_seconds
        self._building = building or building_folder(self.title)
        self._held: dict[str, Connection] = {}
        self._writer = postgresql.writing_engine(self.url)
        self._bulk = postgresql.bulk_engine(self.url)
        self._reader = reading_engine(self.url, limit_seconds=limit_seconds)
        self._is_checked = False
        self._finish = weakref.finalize(self, self._reader.dispose)  # a verb that is done says nothing

    def __repr__(self) -> str:
        return f"TraceServer({self.title!r})"

    @property
    def address(self) -> str:
        return self.url.render_as_string(hide_password=False)

    @property
    def title(self) -> str:
        return postgresql.shown(self.url)

    def close(self) -> None:
        """Close the connections that wait for the next question."""
        self._finish()

    # ------------------------------------------------------------------------------------------------ the database

    def check(self, *, must_exist: bool = False) -> None:
        """Connect once. Raises StoreUnreachable, StoreError for a server that is too old or holds other texts than UTF-8."""
        with self._bulk.connect() as connection:
            number = int(connection.exec_driver_sql("SHOW server_version_num").scalar_one())
            if number < OLDEST_SERVER:
                version = connection.exec_driver_sql("SHOW server_version").scalar_one()
                raise StoreError(f"{self.title}: this server is PostgreSQL {version}; 14 or newer is needed.")
            encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
            if encoding != "UTF8":
                raise StoreError(f"{self.title}: texts of this database are {encoding}. Create one with: createdb --encoding=UTF8")

    def make(self) -> None:
        """Create the tables in a database without them; one process at a time. Raises StoreError."""
        if self.has_catalog():
            return
        with self._bulk.begin() as connection:
            hold_in_transaction(connection, SCHEMA_CHANGES)
            if not _has_catalog(connection):
                create_schema(connection)

    def migrate(self) -> bool:
        """Bring the tables to the version of this program; returns whether there was something to do. Raises StoreTooNew, StoreError."""
        with self._bulk.begin() as connection:
            hold_in_transaction(connection, SCHEMA_CHANGES)
            return upgrade_server(connection, self.title)

    def grant_to(self, role: str) -> None:
        """Let a role read everything and write notes and labels, as the dashboard needs. Raises StoreError."""
        with self._bulk.begin() as connection:
            hold_in_transaction(connection, SCHEMA_CHANGES)
            grant_reading(connection, role)

    def distribute(self, shards: int | None = None) -> Distributed:
        """Spread the tables over the servers of a Citus cluster. Raises StoreError where the database is no part of one."""
        with self._bulk.begin() as connection:
            hold_in_transaction(connection, SCHEMA_CHANGES)
            return distribute(connection, self.title, shards)

    def has_catalog(self) -> bool:
        if not self._is_checked:  # each page asks
            with self._reader.connect() as connection:
                return _has_catalog(connection)
        return True

    def catalog(self, *, write: bool = False) -> Engine:
        self._check_version()
        return self._writer if write else self._reader

    def _check_version(self) -> None:
        """Compare the versions of the tables with those that this program knows. Raises StoreError, StoreTooOld, StoreTooNew."""
        if self._is_checked:
            return
        with self._bulk.connect() as connection:
            if not _has_catalog(connection):
                raise StoreError(f"{self.title}: there are no traces here yet. Collect one: sockscope collect FILE.etl")
            if not connection.exec_driver_sql("SELECT has_schema_privilege(%s, 'USAGE')", (SCHEMA,)).scalar_one():
                raise StoreReadOnly(
                    f"{self.title}: the role {self.url.username or 'of this user'} may not read the traces. "
                    "Have their owner run: sockscope migrate --grant-to ROLE"
                )
            found = sorted(connection.execute(select(revision.c.version_num)).scalars())
        wanted = [CATALOG_VERSION, TRACE_VERSION]
        if found == wanted:
            self._is_checked = True
            return
        versions = f"{', '.join(found)}; this program has {', '.join(wanted)}"
        if any(one > other for one, other in zip(found, wanted, strict=False)):
            raise StoreTooNew(f"{self.title}: made by a newer version of sockscope ({versions}). Update sockscope.")
        raise StoreTooOld(f"{self.title}: made by an older version of sockscope ({versions}). Run: sockscope migrate")

    # ------------------------------------------------------------------------------------------------ finished traces

    def trace(self, key: str) -> Engine:
        """The first statement of a connection asks for the trace, and raises StoreError where it is not there."""
        self._check_version()
        return engine_of_trace(self._reader, key)

    def number_of(self, key: str) -> int | None:
        """The trace_id that the rows of a trace have now."""
        wanted = select(trace_load.c.number).where(trace_load.c.key == key, trace_load.c.is_current)
        with self._reader.connect() as connection:
            number: int | None = connection.execute(wanted).scalar()
        return number

    def has_trace(self, key: str) -> bool:
        return self.number_of(key) is not None

    def missing(self, keys: Collection[str]) -> list[str]:
        wanted = select(trace_load.c.key).where(trace_load.c.key.in_(keys), trace_load.c.is_current)
        with self._reader.connect() as connection:
            found = set(connection.execute(wanted).scalars())
        return [key for key in keys if key not in found]

    def trace_keys(self) -> list[str]:
        with self._reader.connect() as connection:
            return list(connection.execute(select(trace_load.c.key).where(trace_load.c.is_current).order_by(trace_load.c.key)).scalars())

    def size_of(self, key: str) -> int:
        wanted = select(func.coalesce(func.max(trace_load.c.size_bytes), 0)).where(trace_load.c.key == key, trace_load.c.is_current)
        with self._reader.connect() as connection:
            return int(connection.execute(wanted).scalar_one())

    def size_bytes(self) -> int:
        """Bytes of the whole database."""
        with self._reader.connect() as connection:
            return int(connection.execute(select(func.pg_database_size(func.current_database()))).scalar_one())

    def version_of(self, key: str) -> str:
        return str(self.number_of(key) or "")

    def files_of(self, key: str) -> tuple[Path, ...]:
        return ()

    def whereabouts(self, key: str) -> str:
        return f"{key} of {self.title}"

    @contextlib.contextmanager
    def fetched(self, key: str, should_cancel: Callable[[], bool]) -> Iterator[Path]:
        """A local file with the rows of a trace, which is removed at the block's end."""
        self._make_building()
        path = self._building / f"{key}.{os.getpid()}.{secrets.token_hex(4)}{_FETCHED}"
        with locks.held(_beside(path), f"{path}: this file is being made already."):
            try:
                with self._named(), self._bulk.begin() as connection:
                    number = held_number(connection, key)
                    with postgresql.ended_by(connection, should_cancel, "Cancelled. Nothing was exported."):
                        fetch_rows(connection, number, path, should_cancel)
                yield path
            finally:
                remove_part(path)

    def remove_trace(self, key: str) -> None:
        with self._bulk.begin() as connection:
            connection.execute(update(trace_load).where(trace_load.c.key == key, trace_load.c.is_current).values(is_current=False))
        self._sweep()

    # ------------------------------------------------------------------------------------------------ collecting

    @contextlib.contextmanager
    def collecting(self, key: str, busy: str) -> Iterator[None]:
        """The lock is on the server, by the connection that will place the trace: who loses it places nothing."""
        self._make_building()
        with locks.held(self._lock_path(key), busy), self._bulk.connect() as connection:
            if not _hold_soon(connection, lock_of(key)):
                raise StoreLocked(busy)
            if connection.exec_driver_sql(f"SELECT to_regclass('{SCHEMA}.{trace_number.name}') IS NULL").scalar_one():
                raise StoreReadOnly(f"{self.title}: this database only shows the traces of other servers. Collect and delete there.")
            connection.commit()
            self._held[key] = connection
            try:
                yield
            finally:
                del self._held[key]
                with contextlib.suppress(StoreError):
                    connection.invalidate()  # the server lets go of the lock

    def is_being_collected(self, key: str) -> bool:
        with self._reader.connect() as connection:
            return is_held(connection, lock_of(key))

    def place(self, key: str, should_cancel: Callable[[], bool] | None = None) -> None:
        """Copy the rows of the local file to the server, and make them the trace's."""
        should_cancel = should_cancel or (lambda: False)
        connection = self._held[key]
        with self._named():
            self.hold_still(key)
            with connection.begin(), postgresql.ended_by(connection, should_cancel, "Cancelled. Nothing was stored."):
                if is_distributed(connection):
                    one_after_another(connection)
                number = int(connection.execute(select(trace_number.next_value())).scalar_one())
                tables = load_rows(connection, self.part_path(key), number, should_cancel)
                connection.execute(update(trace_load).where(trace_load.c.key == key, trace_load.c.is_current).values(is_current=False))
                load = {"number": number, "key": key, "is_current": True, "size_bytes": _size_of(connection, tables, number)}
                connection.execute(insert(trace_load).values(load))
                attach_partitions(connection, tables, number)
        remove_part(self.part_path(key))
        self._sweep()

    def hold_still(self, key: str) -> None:
        connection = self._held[key]
        if not connection.invalidated:  # else it was lost before, and the server was away since
            with contextlib.suppress(StoreUnreachable):
                connection.exec_driver_sql("SELECT 1")
                return connection.commit()
            connection.invalidate()
        connection.rollback()
        if not try_hold(connection, lock_of(key)):
            connection.invalidate()
            connection.rollback()
            raise StoreLocked(f"{key}: the server was restarted, and another collector collects this trace now.")
        connection.commit()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Give our words to errors that the driver raises while it copies."""
        try:
            yield
        except Exception as error:
            named = postgresql.error_of(error, self.url)
            if named is None:
                raise
            raise named from error

    def _sweep(self) -> None:
        """Drop what was replaced; whatever keeps this from it, the next one does it."""
        with contextlib.suppress(StoreError, SQLAlchemyError), postgresql.sweeping_engine(self.url).connect() as connection:
            sweep(connection)

    # ------------------------------------------------------------------------------------------------ local files

    def part_path(self, key: str) -> Path:
        return self._local(key, ".db.part")

    def _lock_path(self, key: str) -> Path:
        return self._local(key, ".db.lock")

    def _local(self, key: str, ending: str) -> Path:
        if not is_key(key):
            raise StoreError(f"{key!r} is not the key of a trace.")
        return self._building / f"{key}{ending}"

    def unpacking_place(self) -> Path | None:
        self._make_building()
        return self._building

    def holds(self, path: Path) -> bool:
        real, own = Path(os.path.realpath(path)), Path(os.path.realpath(self._building))
        return real == own or own in real.parents

    def clear_part(self, key: str) -> None:
        """Nothing: `clear_locks` removes it, where it is on this machine."""

    def clear_locks(self) -> None:
        """Remove also local files that nobody works on any more, and drop what was replaced."""
        for lock in self._building.glob("*.lock"):
            if not locks.is_held(lock):
                with contextlib.suppress(OSError, StoreError), locks.held(lock, ""):
                    remove_part(lock.with_suffix(".part" if lock.name.endswith(".db.lock") else ""))
        self._sweep()

    def _make_building(self) -> None:
        try:
            self._building.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{self._building}: this folder, in which a trace is built, cannot be created ({error.strerror}). "
                "Set XDG_CACHE_HOME to another place."
            ) from error


def _has_catalog(connection: Connection) -> bool:
    """Whether our tables are there."""
    found = "SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'alembic_version')"
    return bool(connection.exec_driver_sql(found, (SCHEMA,)).scalar_one())


def _hold_soon(connection: Connection, lock: Lock) -> bool:
    """Take a lock; the server may see a moment late that the connection that had it is closed."""
    for _ in range(_TRIES):
        if try_hold(connection, lock):
            return True
        connection.rollback()
        time.sleep(_TRY_SECONDS)
    return try_hold(connection, lock)


def _size_of(connection: Connection, tables: list[str], number: int) -> int:
    parts = [partition_name(table, number) for table in tables]
    summed = "SELECT coalesce(sum(pg_total_relation_size(format('%%I', one)::regclass)), 0)::bigint FROM unnest(%s::text[]) one"
    return int(connection.exec_driver_sql(summed, (parts,)).scalar_one())


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".lock")
