"""Connections that read a PostgreSQL server: read-only, with a limit on the time of a statement, and those of a trace with its number.

A transaction that reads a trace finds the number of the trace's rows and holds its lock, shared, until it ends: who drops partitions
takes that lock alone, so that what is read stays to the end.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, ClauseElement, Connection, Engine, create_engine, event

from collector.errors import StoreError
from collector.store import server_sql
from collector.store.postgresql import connect_arguments, name_errors, take_any_text
from collector.store.server_locks import TRACE_LOCKS
from collector.store.tables import THIS_TRACE

if TYPE_CHECKING:
    import psycopg

__all__ = ["TRACE_LOCKS", "engine_of_trace", "held_number", "reading_engine"]

_KEY = "trace_key"
_NUMBER = "trace_number"
_CONNECTIONS = 4  # that are kept; more are opened while they are needed
_MOST_BESIDES = 60
_WAIT_SECONDS = 10
_TRIES = 5  # a trace is replaced seldom, and never twice within a millisecond

_FIND = "SELECT number, pg_advisory_xact_lock_shared(%(locks)s, number::integer) FROM trace_load WHERE key = %(key)s AND is_current"
_IS_CURRENT = "SELECT EXISTS (SELECT FROM trace_load WHERE number = %s AND is_current)"


def reading_engine(url: URL, *, limit_seconds: float) -> Engine:
    """An engine that reads the catalog; a statement that runs longer than the limit raises StoreSlow."""
    # A page's statements have many expressions and few rows: compiling them took ten times as long as running them.
    limits = {
        "default_transaction_read_only": "on",
        "statement_timeout": f"{max(1, round(limit_seconds * 1000))}ms",
        "jit": "off",
    }
    # Not prepared: a plan that fits every trace would look at the partitions of all.
    arguments: dict[str, Any] = {**connect_arguments(url, **limits), "prepare_threshold": None}  # Any: texts, and that
    engine = create_engine(
        url,
        connect_args=arguments,
        pool_size=_CONNECTIONS,
        max_overflow=_MOST_BESIDES,
        pool_timeout=_WAIT_SECONDS,
        pool_pre_ping=True,
        pool_recycle=600,
    )
    server_sql.speak(engine.dialect)
    name_errors(engine, url)
    take_any_text(engine)
    event.listen(engine, "connect", _connected)
    event.listen(engine, "begin", _begun)
    event.listen(engine, "before_execute", _name_trace, retval=True)
    return engine


def engine_of_trace(engine: Engine, key: str) -> Engine:
    """An engine, with the connections of one that reads the catalog, whose statements read a trace. Connecting raises StoreError."""
    return engine.execution_options(**{_KEY: key})


def held_number(connection: Connection, key: str) -> int:
    """The number of a trace's rows, which stay until the transaction ends. Raises StoreError for a trace that is not there."""
    for _ in range(_TRIES):
        found = connection.exec_driver_sql(_FIND, {"locks": TRACE_LOCKS, "key": key}).first()
        if found is None:
            break
        if connection.exec_driver_sql(_IS_CURRENT, (found[0],)).scalar_one():  # else it was replaced while we waited
            return int(found[0])
    raise StoreError(f"Trace {key} is not in this database. Collect it first: sockscope collect FILE.etl")


def _connected(driver: "psycopg.Connection[Any]", _record: object) -> None:
    """Sums come as integers."""
    from psycopg.adapt import Loader

    class Number(Loader):
        def load(self, data: Any) -> int | float:  # Any: a buffer
            text = bytes(data)
            return float(text) if b"." in text or text in (b"NaN", b"Infinity", b"-Infinity") else int(text)

    driver.adapters.register_loader("numeric", Number)


def _begun(connection: Connection) -> None:
    connection.info.pop(_NUMBER, None)  # whatever an earlier transaction read


def _name_trace(
    connection: Connection,
    statement: ClauseElement,
    several: Sequence[Mapping[str, Any]],
    one: Mapping[str, Any],
    _options: Mapping[str, Any],
) -> tuple[ClauseElement, Sequence[Mapping[str, Any]], Mapping[str, Any]]:  # Any: values of parameters
    """Say in each statement which trace it reads."""
    key = connection.get_execution_options().get(_KEY)
    if key is None:
        return statement, several, one
    if not connection.in_transaction() or _NUMBER not in connection.info:
        connection.info[_NUMBER] = held_number(connection, key)
    own = {THIS_TRACE.key: connection.info[_NUMBER]}
    return statement, [{**values, **own} for values in several], one if several else {**one, **own}
