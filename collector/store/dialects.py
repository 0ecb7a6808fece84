"""What each database needs that the others do not: connections, pragmas, error codes, spellings of SQL.

Nothing outside this module relies on SQLite.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event
from sqlalchemy.pool import NullPool

from collector.errors import (
    CollectCancelled,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreSlow,
    StoreWaited,
    TraceError,
)
from collector.model.block import Block, Row
from collector.store.building import advice_on_room
from collector.store.bulk import PRAGMAS, Inserter

__all__ = [
    "attach",
    "beside_engine",
    "bulk_engine",
    "check_file",
    "copy_into",
    "detach",
    "error_of",
    "hex_text",
    "inserter",
    "json_object",
    "let_others_read",
    "reading_engine",
    "settle",
    "shrink",
    "writing_engine",
]

BUSY_SECONDS = 5.0
"""How long a statement waits for another process's transaction; the catalog's transactions take milliseconds."""

_WAITING_SECONDS = 1.0  # a shorter limit says nothing about how busy a machine is
_STEPS_BETWEEN_LOOKS = 20_000  # virtual machine steps between two looks at the clock: about a millisecond

_FULL = (sqlite3.SQLITE_FULL,)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_NOT_OURS = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
_DENIED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_LACKS = ("no such table", "no such column")


def reading_engine(
    path: Path, *, limit_seconds: float, busy_seconds: float = 1.0, should_cancel: Callable[[], bool] | None = None
) -> Engine:
    """An engine that only reads one file; a statement that runs longer than the limit raises StoreSlow.

    With `should_cancel` there is no limit, and a statement ends with CollectCancelled once that says so.

    Connections are opened per use: a replaced or deleted file is never held open, and opening costs a fraction of a millisecond.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    began = threading.local()
    engine = _engine(path, uri, busy_seconds, (lambda: _too_slow(began, limit_seconds)) if should_cancel is None else _cancelled_reading)

    @event.listens_for(engine, "connect")
    def connected(dbapi: sqlite3.Connection, record: Any) -> None:  # Any: SQLAlchemy's pool record, unused
        if should_cancel is not None:
            dbapi.set_progress_handler(should_cancel, _STEPS_BETWEEN_LOOKS)
            return
        deadline = record.info["deadline"] = [float("inf")]
        dbapi.set_progress_handler(lambda: time.monotonic() > deadline[0], _STEPS_BETWEEN_LOOKS)

    @event.listens_for(engine, "before_cursor_execute")
    def started(connection: Connection, *_: object) -> None:
        if should_cancel is None:
            began.clock, began.worked = time.monotonic(), time.thread_time()
            connection.info["deadline"][0] = began.clock + limit_seconds

    return engine


def writing_engine(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> Engine:
    """An engine for short transactions on one file, which it creates; the write lock is taken when a transaction begins."""
    engine = _engine(path, f"{path.absolute().as_uri()}?mode=rwc", busy_seconds)

    @event.listens_for(engine, "connect")
    def connected(dbapi: sqlite3.Connection, _record: object) -> None:
        dbapi.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def bulk_engine(path: Path, *, should_cancel: Callable[[], bool] | None = None, page_limit: int | None = None) -> Engine:
    """An engine that fills a file which nobody else sees and which is thrown away when anything fails.

    No journal and no waiting for the disk: the caller makes the finished file safe. Once `should_cancel` says so, a running statement ends
    with CollectCancelled. `page_limit` bounds the file's size in pages.
    """
    engine = _engine(path, f"{path.absolute().as_uri()}?mode=rwc", BUSY_SECONDS, _cancelled)

    @event.listens_for(engine, "connect")
    def connected(dbapi: sqlite3.Connection, _record: object) -> None:
        for pragma in PRAGMAS:
            dbapi.execute(f"PRAGMA {pragma}")
        if should_cancel is not None:
            dbapi.set_progress_handler(should_cancel, _STEPS_BETWEEN_LOOKS)
        if page_limit is not None:
            dbapi.execute(f"PRAGMA max_page_count = {int(page_limit)}")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def beside_engine(path: Path, *, should_cancel: Callable[[], bool] | None = None) -> Engine:
    """An engine that reads what stays as it is in a file of `bulk_engine`, while another process writes to other tables of it.

    It takes no lock and looks for none: whoever asks knows which tables nobody writes to. Connections are made while nobody writes to the
    file; each sees it as it was then, to its end.
    """
    engine = _engine(path, f"{path.absolute().as_uri()}?mode=ro&immutable=1", BUSY_SECONDS, _cancelled)

    @event.listens_for(engine, "connect")
    def connected(dbapi: sqlite3.Connection, _record: object) -> None:
        dbapi.execute("BEGIN")
        dbapi.execute("SELECT count(*) FROM sqlite_master").fetchone()  # from now on neither header nor size of the file is looked at
        if should_cancel is not None:
            dbapi.set_progress_handler(should_cancel, _STEPS_BETWEEN_LOOKS)

    return engine


def attach(connection: Connection, path: Path, name: str) -> None:
    """Let a connection read another file as well, its tables and views called `name.…`."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    driver.execute(f"ATTACH DATABASE ? AS {name}", (f"{path.absolute().as_uri()}?mode=ro",))


def detach(connection: Connection, name: str) -> None:
    """Let go of such a file, between two transactions."""
    connection.commit()
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    driver.execute(f"DETACH DATABASE {name}")


def inserter(connection: Connection, widths: Mapping[str, int], path: Path) -> Callable[[Mapping[str, Sequence[Row | Block]]], None]:
    """What appends rows through a connection of `bulk_engine`, in a transaction of its own, with the errors of that engine."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    bulk = Inserter(driver, widths)

    def insert(rows: Mapping[str, Sequence[Row | Block]]) -> None:
        if connection.in_transaction():
            connection.commit()  # a finishing pass has read before
        try:
            bulk.insert(rows)
        except sqlite3.Error as error:
            named = _named(error, path, _cancelled)
            raise named or error from error

    return insert


def settle(connection: Connection) -> None:
    """Give the planner its statistics: without them it takes `trace_id = 1` for a narrow condition."""
    connection.exec_driver_sql("PRAGMA analysis_limit = 1000")
    connection.exec_driver_sql("ANALYZE")


def let_others_read(connection: Connection) -> None:
    """Let go of the file between transactions, so that a second connection can read it while this one does."""
    if connection.in_transaction():
        connection.commit()
    connection.exec_driver_sql("PRAGMA locking_mode = NORMAL")
    connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar()  # the next access is what lets go
    connection.commit()


def shrink(connection: Connection) -> None:
    """Give the space of deleted rows back to the disk."""
    if connection.in_transaction():
        connection.commit()
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    driver.execute("VACUUM")


def check_file(connection: Connection, path: Path, tables: Collection[str] | None = None) -> None:
    """Read every page once, or those of some tables and their indexes. Raises StoreError when the file is damaged."""
    for what in ("1",) if tables is None else [f'"{table}"' for table in tables]:
        found = connection.exec_driver_sql(f"PRAGMA quick_check({what})").scalar()
        if found != "ok":
            raise StoreError(f"{path.name}: the finished file is damaged ({found}). Nothing was stored; check the disk and collect again.")


def copy_into(connection: Connection, path: Path) -> None:
    """Write what the database holds at this moment to a new file, while others write to the database. Raises StoreError, StoreFull."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    try:
        driver.execute("VACUUM INTO ?", (str(path),))
    except sqlite3.Error as error:
        raise _named(error, path, _too_slow) or error from error


def hex_text(expression: str) -> str:
    """SQL for an address as `0x…` text; NULL stays NULL."""
    return f"CASE WHEN {expression} IS NOT NULL THEN printf('0x%x', {expression}) END"


def json_object(**members: str) -> str:
    """SQL for a JSON object of SQL expressions, those that are NULL left out."""
    pairs = ", ".join(f"'{name}', {expression}" for name, expression in members.items())
    return f"json_patch('{{}}', json_object({pairs}))"


def _too_slow(began: threading.local | None = None, limit_seconds: float = 0.0) -> TraceError:
    """Why a statement was interrupted; `began` has the clock and the processor time of this thread at its beginning."""
    if began is not None and limit_seconds >= _WAITING_SECONDS:
        took, worked = time.monotonic() - began.clock, time.thread_time() - began.worked
        if worked < took / 2:
            return StoreWaited(
                f"This question was given up after {took:.0f} s, most of which it waited: this server or its disk is busy. "
                "Load the page again in a moment, or narrow the time range."
            )
    return StoreSlow("This question takes too long. Narrow the time range or filter by process, socket or heap.")


def _cancelled() -> TraceError:
    return CollectCancelled("Cancelled. Nothing was stored.")


def _cancelled_reading() -> TraceError:
    return CollectCancelled("Cancelled. Nothing was exported.")


def _engine(path: Path, uri: str, busy_seconds: float, interrupted: Callable[[], TraceError] = _too_slow) -> Engine:
    def connect() -> sqlite3.Connection:
        # isolation_level None: transactions begin where we say so. check_same_thread: a request may move between pool threads.
        return sqlite3.connect(uri, uri=True, timeout=busy_seconds, isolation_level=None, check_same_thread=False)

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "handle_error")
    def failed(context: ExceptionContext) -> None:
        error = _named(context.original_exception, path, interrupted)
        if error is not None:
            raise error from context.original_exception

    return engine


def _named(error: BaseException, path: Path, interrupted: Callable[[], TraceError]) -> TraceError | None:
    """Our word for an error of SQLite, None for what only our own fault can cause."""
    if not isinstance(error, sqlite3.Error):
        return None
    return error_of(getattr(error, "sqlite_errorcode", 0), str(error), path, interrupted)


def error_of(code: int, text: str, path: Path, interrupted: Callable[[], TraceError] = _cancelled) -> TraceError | None:
    """Our word for an error of SQLite by its code; `text` is SQLite's own."""
    code &= 0xFF
    if code in _FULL:
        return StoreFull(f"{path}: no space is left on the disk. {advice_on_room(path)}")
    if code in _BUSY:
        return StoreLocked(f"{path}: another program holds this database. Close it and try again.")
    if code == sqlite3.SQLITE_INTERRUPT:
        return interrupted()
    if code in _NOT_OURS:
        return StoreDamaged(
            f"{path}: this is not a database of sockscope, or it is damaged ({text}). Move it away and collect the trace again.",
            file=str(path),
            reason=text,
        )
    if code in _DENIED:
        return StoreReadOnly(f"{path}: this database may not be written ({text}). Check the permissions of its folder.")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreError(f"{path}: this database cannot be opened. Check that its folder exists and may be read.")
    if code == sqlite3.SQLITE_IOERR:
        return StoreError(f"{path}: reading or writing failed ({text}). Check the disk.")
    if text.startswith(_LACKS):
        return StoreError(f"{path}: this database was made by another version of sockscope ({text}). Collect the trace again.")
    return None
