"""Drops the rows of traces that were replaced or deleted: whole partitions, which takes no longer for many rows than for few.

A partition is taken off while others read (DETACH CONCURRENTLY), one process at a time; Citus cannot do that and waits for them. What
somebody still reads stays for the next sweep, and so does what a sweep that was ended had begun.
"""

from sqlalchemy import Connection, delete, select

from collector.store.distributing import is_distributed
from collector.store.server_locks import SWEEPING, readers_of, release, try_hold
from collector.store.server_tables import SCHEMA, SERVER_TRACE, partition_name, trace_load

__all__ = ["sweep"]


def sweep(connection: Connection) -> int:
    """Drop what no key has any more, by a connection without transactions; gives how many numbers are gone."""
    waiting = list(connection.execute(select(trace_load.c.number).where(~trace_load.c.is_current).order_by(trace_load.c.number)).scalars())
    if not waiting or not try_hold(connection, SWEEPING):
        return 0
    gone = 0
    try:
        for number in waiting:
            if not try_hold(connection, readers_of(number)):
                continue
            try:
                _drop(connection, number)
                connection.execute(delete(trace_load).where(trace_load.c.number == number))
                gone += 1
            finally:
                release(connection, readers_of(number))
    finally:
        release(connection, SWEEPING)
    return gone


def _drop(connection: Connection, number: int) -> None:
    """Take the partitions of a number off their tables, then drop them all at once."""
    names = [partition_name(table.name, number) for table in SERVER_TRACE.sorted_tables]
    there = connection.exec_driver_sql(
        "SELECT c.relname, p.relname AS parent, i.inhdetachpending FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace "
        "LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent "
        "WHERE s.nspname = %s AND c.relkind = 'r' AND c.relname = ANY(%s)",
        (SCHEMA, names),
    ).all()
    waits = is_distributed(connection)
    for part, parent, is_pending in there:
        if parent is not None:
            how = "" if waits else "FINALIZE" if is_pending else "CONCURRENTLY"
            connection.exec_driver_sql(f'ALTER TABLE "{parent}" DETACH PARTITION "{part}" {how}')
    if there:
        parts = ", ".join(f'"{row.relname}"' for row in there)
        connection.exec_driver_sql(f"DROP TABLE {parts}")
