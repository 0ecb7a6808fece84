"""What PostgreSQL needs that SQLite does not: its address, connections for writing, words for its errors."""

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, ExceptionContext, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from collector.errors import (
    CollectCancelled,
    NotAServer,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreSlow,
    StoreTooOld,
    StoreUnreachable,
    TraceError,
)
from collector.store.server_locks import CATALOG_WRITES, hold_in_transaction
from collector.store.server_tables import SCHEMA

if TYPE_CHECKING:
    import psycopg
    from psycopg.abc import Buffer

__all__ = [
    "NUL_AND_STAND_IN",
    "bulk_engine",
    "driver_of",
    "ended_by",
    "error_of",
    "server_url",
    "shown",
    "sweeping_engine",
    "take_any_text",
    "writing_engine",
]

NUL_AND_STAND_IN = ("\0", "\ufffd")
"""PostgreSQL's texts have no NUL: what is stored instead."""
_CONNECT_SECONDS = 10
_BUSY_SECONDS = 5
_LOOK_SECONDS = 0.1
_DRIVER = "postgresql+psycopg"
_KEEPALIVE = {"keepalives_idle": "60", "keepalives_interval": "10", "keepalives_count": "6"}

_FOR_LONG_WORK = {
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "maintenance_work_mem": "128MB",
    # A collector whose machine is gone holds its lock no longer than two minutes.
    "tcp_keepalives_idle": "60",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "6",
    "client_connection_check_interval": "10s",
}

_SLOW = "This question takes too long. Narrow the time range or filter by process, socket or heap."
_NO_ADDRESS = "This is no address of a database server. It is written postgresql://USER@HOST/DATABASE, or name a folder."
_WRONG_OPTION = re.compile(r"invalid connection option|bad value for|invalid [a-z_ ]+ (value|number)\b|.*connection info string")
"""What libpq and its Python driver say of an address with which nothing is tried."""
_LOCKED_OUT = ("password authentication failed", "no password supplied", "no pg_hba.conf entry", "authentication failed")


def server_url(text: str) -> URL:
    """The address of a server with the driver that we use. Raises NotAServer for what can be none, StoreError without the driver."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise NotAServer(_NO_ADDRESS) from error
    url = url.set(drivername=url.drivername.lower())
    if "@" in (url.host or ""):
        raise NotAServer("The name or password in this address has an @ of its own: write it as %40, and a % as %25.")
    if url.drivername not in ("postgresql", "postgres", _DRIVER):
        raise NotAServer(f"{shown(url)}: of servers, PostgreSQL alone is supported: postgresql://USER@HOST/DATABASE. Or name a folder.")
    try:
        import psycopg  # noqa: F401 - an optional extra
    except ImportError as error:
        raise StoreError(f"{shown(url)}: for a PostgreSQL server install the extra: pip install 'sockscope[postgresql]'") from error
    url = url.set(drivername=_DRIVER)
    _check_ports(url)
    return url


def _check_ports(url: URL) -> None:
    """Look at them here: the driver would first ask for the address of the host. Raises NotAServer."""
    try:
        named = url.get_dialect()().create_connect_args(url)[1].get("port", "")  # no port for 0, and its host would get the default one
    except ArgumentError as error:
        raise NotAServer(_NO_ADDRESS) from error
    for port in filter(None, [*str(named).split(","), "0" if url.port == 0 else ""]):
        if not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise NotAServer(f"{shown(url)}: {port} is no port: ports are numbers from 1 to 65535.")


def shown(url: URL) -> str:
    """The address as messages show it, without a password of any kind, also where it is called so by mistake."""
    plain = url.difference_update_query([name for name in url.query if "pass" in name.lower()]).set(
        drivername=url.drivername.partition("+")[0]
    )
    return plain.render_as_string(hide_password=True).replace("%2F", "/")


def connect_arguments(url: URL, **settings: str) -> dict[str, str]:
    """What every connection is opened with; `settings` are parameters of the server for its session."""
    options = " ".join(f"-c {name}={value}" for name, value in ({"search_path": SCHEMA} | settings).items())
    given = {name: value for name, value in url.query.items() if isinstance(value, str)}
    defaults = {"connect_timeout": str(_CONNECT_SECONDS), "application_name": "sockscope", "client_encoding": "utf8"} | _KEEPALIVE
    own = {name: value for name, value in defaults.items() if name not in given}
    return own | {"options": f"{given.get('options', '')} {options}".strip()}


def writing_engine(url: URL) -> Engine:
    """An engine for short transactions on the catalog: one at a time in the whole database, as in a folder."""
    engine = create_engine(url, poolclass=NullPool, connect_args=connect_arguments(url, lock_timeout=f"{_BUSY_SECONDS}s"))
    name_errors(engine, url)
    take_any_text(engine)

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        hold_in_transaction(connection, CATALOG_WRITES)

    return engine


def bulk_engine(url: URL) -> Engine:
    """An engine for what takes long: copying rows, changing tables. Nothing ends it but its errors."""
    engine = create_engine(url, poolclass=NullPool, connect_args=connect_arguments(url, **_FOR_LONG_WORK))
    name_errors(engine, url)
    return engine


def sweeping_engine(url: URL) -> Engine:
    """An engine without transactions, for dropping what nobody needs; what it waits for too long is left to the next time."""
    arguments = connect_arguments(url, statement_timeout=f"{_BUSY_SECONDS}s", lock_timeout=f"{_BUSY_SECONDS}s")
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=arguments)
    name_errors(engine, url)
    return engine


def name_errors(engine: Engine, url: URL) -> None:
    """Have an engine raise our errors in the place of the server's."""

    @event.listens_for(engine, "handle_error")
    def failed(context: ExceptionContext) -> None:
        if context.is_pre_ping:
            return  # a kept connection that died is replaced by a new one
        error = error_of(context.original_exception, url)
        if error is not None:
            raise error from context.original_exception


def take_any_text(engine: Engine) -> None:
    """Have an engine take texts with a NUL, which PostgreSQL does not have, for those that are stored in their place."""

    @event.listens_for(engine, "connect")
    def connected(driver: "psycopg.Connection[Any]", _record: object) -> None:  # Any: rows of any statement
        from psycopg.types.string import StrDumperUnknown

        class WithoutNul(StrDumperUnknown):
            def dump(self, obj: str) -> "Buffer | None":
                return super().dump(obj.replace(*NUL_AND_STAND_IN))

        driver.adapters.register_dumper(str, WithoutNul)


def driver_of(connection: Connection) -> "psycopg.Connection[Any]":  # Any: rows of any statement
    """The driver's connection behind a connection, which can COPY."""
    import psycopg

    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver


@contextlib.contextmanager
def ended_by(connection: Connection, should_cancel: Callable[[], bool], words: str) -> Iterator[None]:
    """End the statement that runs in the block once `should_cancel` says so, as where it waits for a lock or sorts for an index.

    Raises CollectCancelled with these words.
    """
    import psycopg

    driver, is_over, is_ended = driver_of(connection), threading.Event(), threading.Event()

    def watch() -> None:
        while not is_over.wait(_LOOK_SECONDS):
            if should_cancel():
                is_ended.set()
                with contextlib.suppress(psycopg.Error):
                    driver.cancel_safe(timeout=_BUSY_SECONDS)

    watcher = threading.Thread(target=watch, name="cancelling", daemon=True)
    watcher.start()
    try:
        yield
    except (StoreSlow, psycopg.errors.QueryCanceled) as error:
        if not is_ended.is_set():
            raise
        raise CollectCancelled(words) from error
    finally:
        is_over.set()
        watcher.join()


def error_of(error: BaseException, url: URL) -> TraceError | None:
    """Our word for an error of the server or its driver; None for what only our own fault can cause."""
    import psycopg

    if not isinstance(error, psycopg.Error):
        return None
    where, said = shown(url), _first_line(str(error))
    code = error.sqlstate
    if code is None:
        if _WRONG_OPTION.match(said):
            return NotAServer(f"{where}: {said}.")
        return _unreachable(where, said, url) if isinstance(error, psycopg.OperationalError) else None
    if code == "57014":
        return StoreSlow(_SLOW)
    if code in ("55P03", "40P01", "40001"):
        return StoreLocked(f"{where}: another program holds this database ({said}). Try again in a moment.")
    if code in ("53100", "58030") and ("space" in said or code == "53100"):
        return StoreFull(f"{where}: no space is left on the disk of this server. Free some there, or name another database.")
    if code == "42501":
        return StoreReadOnly(
            f"{where}: the role {url.username or 'of this user'} may not do this ({said}). Connect as the role that collects; "
            "to read, have that one run: sockscope migrate --grant-to ROLE"
        )
    if code == "25006":
        return StoreReadOnly(f"{where}: this server may only be read ({said}). Connect to the one that is written.")
    if code[:2] in ("08", "57", "28", "3D") or code in ("53300", "53400"):
        return _unreachable(where, said, url)
    if code in ("42P01", "42703", "3F000"):
        return StoreTooOld(f"{where}: there are no tables of this version of sockscope here ({said}). Run: sockscope migrate")
    if code == "0A000":
        return StoreError(f"{where}: this server cannot do that ({said}).")
    if code == "42704":
        return StoreError(f"{where}: {said}.")
    if code[:2] in ("XX", "58"):
        return StoreDamaged(f"{where}: the server reports damage ({said}). See its log.", file=where, reason=said)
    if code[:2] == "53":
        return StoreError(f"{where}: the server has not enough of what this needs ({said}).")
    return None


def _unreachable(where: str, said: str, url: URL) -> StoreError:
    """Why nobody gets in, by what the server or the driver says."""
    if any(words in said for words in _LOCKED_OUT):
        return StoreUnreachable(
            f"{where}: the server does not let the role {url.username or 'of this user'} in ({said}). Check its password."
        )
    if "does not exist" in said:
        return StoreUnreachable(f"{where}: {said}. Create it first: createdb, createuser.")
    if re.search(r"too many (clients|connections)|remaining connection slots", said):
        return StoreUnreachable(f"{where}: the server has no connection left ({said}). Try again in a moment.")
    if re.search(r"starting up|shutting down|recovery|terminating connection|closed the connection|connection is (closed|lost)", said):
        return StoreUnreachable(f"{where}: the server ended the connection or is not ready ({said}). Try again when it runs.")
    return StoreUnreachable(f"{where}: the server cannot be reached ({said}). Check the address, and that it runs.")


def _first_line(text: str) -> str:
    """What the server says, without the address that the driver repeats before it."""
    line = text.strip().partition("\n")[0].strip().rstrip(".")
    return re.sub(r"^(connection (failed|is bad): )?(connection to server (at|on socket) .*? failed: )?(FATAL: +)?", "", line)
