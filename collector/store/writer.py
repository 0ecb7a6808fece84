"""Fills the file of one trace beside the old one, and puts it in its place when it is complete."""

import contextlib
import errno
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from types import TracebackType

from sqlalchemy import Connection, Index, RootTransaction, Table
from sqlalchemy.schema import CreateIndex, CreateTable

from collector.errors import StoreError, StoreFull
from collector.limits import Limits
from collector.model.block import Block, Lines, Row, count_of
from collector.store import dialects
from collector.store.beside import Beside
from collector.store.counter import INDEXED, Counter, Ending, MakeCounter
from collector.store.limiting import counted_rows, limit
from collector.store.placing import copied, remove_part
from collector.store.stores import TraceStore
from collector.store.tables import ROW_COLUMNS, TRACE, TRACE_VERSION
from collector.store.views import create_views

__all__ = ["TraceWriter", "amended", "create_indexes", "create_tables", "stamp"]

_WIDTHS = {table: len(columns) for table, columns in ROW_COLUMNS.items()}


class TraceWriter:
    """The unfinished file of one trace; a context manager that throws the file away unless `finish` was called.

    Whoever makes one holds the trace's lock. Once `should_cancel` says so, a running statement ends with CollectCancelled.

    Args:
        is_beside: rows are inserted by a process of its own until somebody asks for the connection; starting it takes half a second.
        counter: sees all rows that are written before `count`, in that process where there is one.
        page_limit: bounds the file (pages of 4,096 bytes), for tests of a full disk.
    """

    def __init__(
        self,
        folder: TraceStore,
        key: str,
        *,
        should_cancel: Callable[[], bool] | None = None,
        is_beside: bool = False,
        counter: MakeCounter | None = None,
        page_limit: int | None = None,
    ) -> None:
        self.part = folder.part_path(key)
        self._place = partial(folder.place, key, should_cancel)
        self.counts: dict[str, int] = dict.fromkeys(ROW_COLUMNS, 0)
        """Rows written so far by table."""
        self._should_cancel = should_cancel
        self._finished = self._indexed = False
        self._checked: set[str] = set()  # tables that were read as a whole once they were complete
        self._has_index: set[str] = set()  # tables whose indexes were made early
        self._beside: Beside | None = None
        self._counter: Counter | None = None
        self._connection: Connection | None = None
        remove_part(self.part)
        self._engine = dialects.bulk_engine(self.part, should_cancel=should_cancel, page_limit=page_limit)
        try:
            with self.connection.begin():
                create_tables(self.connection)
                stamp(self.connection, TRACE_VERSION)
            if is_beside:
                self._disconnect()
                self._beside = Beside(self.part, ROW_COLUMNS, should_cancel=should_cancel, page_limit=page_limit, counter=counter)
            elif counter is not None:
                self._counter = counter(ROW_COLUMNS)
        except BaseException:
            self.discard()
            raise

    def __enter__(self) -> "TraceWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._finished:
            self.discard()

    @property
    def connection(self) -> Connection:
        """The one connection to the unfinished file; finishing passes read through it.

        Waits until all rows are in the file. Raises StoreFull, StoreError, CollectCancelled.
        """
        if self._beside is not None:
            self._beside.finish()
            self._beside = None
        if self._connection is None:
            self._connection = self._engine.connect()
            self._insert = dialects.inserter(self._connection, _WIDTHS, self.part)
        return self._connection

    @property
    def beside_pid(self) -> int | None:
        """Number of the process that inserts the rows, while there is one."""
        return None if self._beside is None else self._beside.pid

    def write(self, rows: Mapping[str, Sequence[Row | Block]]) -> None:
        """Append finished rows: one transaction, so the file is consistent between calls.

        Raises: StoreFull, StoreError, CollectCancelled; KeyError for a table that does not exist.
        """
        if not any(rows.values()):
            return
        counts = {table: self.counts[table] + count_of(lines) for table, lines in rows.items()}
        if self._beside is not None:
            self._beside.write(rows)
        else:
            _ = self.connection
            self._insert(rows)
            if self._counter is not None:
                self._counter.take({table: [*lines] for table, lines in rows.items()})
        self.counts |= counts

    @contextlib.contextmanager
    def counting(self, *, first_ns: int, changing: Collection[str] = ()) -> Iterator[Connection]:
        """Write the rows of the counter: behind those of the models, before the finishing passes. Tables that have rows get their indexes.

        The block reads those tables, and writes nothing. A process that inserts rows does so meanwhile, and those tables are checked.

        Args:
            first_ns: the trace's first moment.
            changing: tables that finishing passes change; they are checked later.

        Raises: StoreFull, StoreError, CollectCancelled.
        """
        tables = [table for table in TRACE.sorted_tables if self.counts.get(table.name)]
        indexes = [CreateIndex(index) for table in tables for index in _indexes_of(table)]
        if self._beside is not None:
            self._has_index = {table.name for table in tables}
            self._beside.end(Ending(first_ns, tuple(str(index.compile(self._engine)) for index in indexes)))
            self._beside.reach(INDEXED)
            settled = dialects.beside_engine(self.part, should_cancel=self._should_cancel)
            with settled.connect() as connection, settled.connect() as other:
                self._beside.go_on()
                with self._checking(other, self._has_index - set(changing)):
                    yield connection
                    for name, count in self._beside.finish().items():
                        self.counts[name] += count
            self._beside = None
            return
        if self._counter is not None:
            self._has_index = {table.name for table in tables}
            with self._transaction():
                for index in indexes:
                    self.connection.execute(index)
            for rows in self._counter.finish(first_ns=first_ns):
                self._insert(rows)
                self.counts |= {name: self.counts[name] + count_of(lines) for name, lines in rows.items()}
            self._counter.close()
            self._counter = None
        yield self.connection

    def limit(self, limits: Limits) -> Iterator[dict[str, Lines]]:
        """Take out what is not wanted; gives the rows of the tables that are counted, those that stay, in pieces.

        Raises NothingLeft, StoreFull, StoreError, CollectCancelled.
        """
        self.counts |= limit(self.connection, limits)
        self._checked.clear()
        yield from counted_rows(self.connection)

    def index(self) -> None:
        """Make the indexes, once the large tables are filled. Raises StoreFull, StoreError."""
        with self._transaction():
            create_indexes(self.connection, but=self._has_index)
            dialects.settle(self.connection)
        self._indexed = True

    @contextlib.contextmanager
    def checked(self) -> Iterator[None]:
        """Check the file in a thread while the block reads it; nothing may be written in the block. Few small tables come later.

        Raises at its end: StoreError for a damaged file, CollectCancelled.
        """
        dialects.let_others_read(self.connection)
        with self._engine.connect() as other, self._checking(other, TRACE.tables.keys() - self._checked):
            yield

    @contextlib.contextmanager
    def _checking(self, connection: Connection, tables: Collection[str]) -> Iterator[None]:
        """Check tables in a thread, through a connection that nobody else uses, until the block and the check are over."""
        with ThreadPoolExecutor(1) as threads:
            check = threads.submit(dialects.check_file, connection, self.part, tables)
            try:
                yield
            finally:
                wait([check])
        check.result()
        self._checked.update(tables)

    def finish(self) -> None:
        """Indexes if there are none yet, views, check, and the step that makes the trace visible.

        Raises StoreFull, StoreError, CollectCancelled.
        """
        if not self._indexed:
            self.index()
        with self._transaction():
            create_views(self.connection)
        dialects.check_file(self.connection, self.part, TRACE.tables.keys() - self._checked)
        self._close()
        self._place()
        self._finished = True

    def discard(self) -> None:
        """Close and remove the unfinished file; the old one stays."""
        self._close()
        remove_part(self.part)

    def _transaction(self) -> RootTransaction:
        """A transaction of its own, whatever a finishing pass has read before."""
        if self.connection.in_transaction():
            self.connection.commit()
        return self.connection.begin()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _close(self) -> None:
        if self._beside is not None:
            self._beside.kill()
            self._beside = None
        if self._counter is not None:
            self._counter.close()
            self._counter = None
        self._disconnect()
        self._engine.dispose()


@contextlib.contextmanager
def amended(folder: TraceStore, key: str, should_cancel: Callable[[], bool] | None = None) -> Iterator[Connection]:
    """A connection to a copy of a finished trace; what was committed there takes the trace's place when the block ends without an error.

    Whoever asks holds the trace's lock. Raises StoreFull, StoreError, CollectCancelled; StoreTooNew, StoreTooOld by its version.
    """
    part = folder.part_path(key)
    folder.trace(key)
    remove_part(part)
    try:
        try:
            with folder.fetched(key, should_cancel or (lambda: False)) as whole:
                copied(whole, part, should_cancel)
        except OSError as error:
            kind = StoreFull if error.errno == errno.ENOSPC else StoreError
            raise kind(f"{part}: a copy of the trace cannot be written ({error.strerror}). It stays as it was.") from error
        engine = dialects.bulk_engine(part, should_cancel=should_cancel)
        try:
            with engine.connect() as connection:
                yield connection
                connection.rollback()
                dialects.check_file(connection, part)
        finally:
            engine.dispose()
        folder.place(key, should_cancel)
    finally:
        remove_part(part)


def create_tables(connection: Connection) -> None:
    """All tables of a trace, without their indexes."""
    for table in TRACE.sorted_tables:
        connection.execute(CreateTable(table))


def create_indexes(connection: Connection, but: Collection[str] = ()) -> None:
    """The indexes of all tables of a trace but some: cheaper over complete tables than kept up to date row by row."""
    for table in TRACE.sorted_tables:
        if table.name not in but:
            for index in _indexes_of(table):
                connection.execute(CreateIndex(index))


def _indexes_of(table: Table) -> list[Index]:
    return sorted(table.indexes, key=lambda index: str(index.name))


def stamp(connection: Connection, version: str) -> None:
    """Write down the revision of a new database, as Alembic reads it."""
    connection.exec_driver_sql(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    connection.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (version,))
