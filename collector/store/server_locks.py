"""Locks of a PostgreSQL server that end with the connection that holds them, or with its transaction.

One for each trace that is collected, one for changes of the tables, one for dropping what was replaced, one for writing to the catalog,
and one for each number of a trace, which whoever reads its rows shares, and whoever drops them must have alone.
"""

import hashlib
from typing import TypeAlias

from sqlalchemy import Connection

__all__ = [
    "CATALOG_WRITES",
    "SCHEMA_CHANGES",
    "SWEEPING",
    "TRACE_LOCKS",
    "Lock",
    "hold_in_transaction",
    "is_held",
    "lock_of",
    "readers_of",
    "release",
    "try_hold",
]

Lock: TypeAlias = tuple[int, int]
"""Two signed 32-bit numbers, as pg_advisory_lock takes them."""

_OURS = 0x736F_0000
TRACE_LOCKS = 0x736F_636C
"""The group of the locks that the numbers of traces have."""
CATALOG_WRITES: Lock = (_OURS, 1)
SCHEMA_CHANGES: Lock = (_OURS, 2)
SWEEPING: Lock = (_OURS, 3)
_COLLECTORS = _OURS + 2


def lock_of(key: str) -> Lock:
    """The lock of whoever collects a trace."""
    hashed = hashlib.blake2b(key.encode(), digest_size=5).digest()
    return _COLLECTORS + hashed[0], int.from_bytes(hashed[1:], signed=True)


def readers_of(number: int) -> Lock:
    """The lock of whoever reads the rows of a number."""
    return TRACE_LOCKS, number


def try_hold(connection: Connection, lock: Lock) -> bool:
    """Take a lock until `release`, or until the connection ends; False where another has it."""
    return bool(connection.exec_driver_sql("SELECT pg_try_advisory_lock(%s::int, %s::int)", lock).scalar_one())


def release(connection: Connection, lock: Lock) -> None:
    """Give such a lock back."""
    connection.exec_driver_sql("SELECT pg_advisory_unlock(%s::int, %s::int)", lock)


def hold_in_transaction(connection: Connection, lock: Lock) -> None:
    """Wait for a lock, and have it until the transaction ends."""
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s::int, %s::int)", lock)


def is_held(connection: Connection, lock: Lock) -> bool:
    """Whether anybody has a lock of this database."""
    wanted = (
        "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
        "AND classid::bigint = %s AND objid::bigint = %s)"
    )
    group, number = lock
    return bool(connection.exec_driver_sql(wanted, (group, number & 0xFFFF_FFFF)).scalar_one())
