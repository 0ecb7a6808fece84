"""Cuts a part out of the copy of a finished trace: the rows that stay are the whole's, and all that is said of them in sums is said anew.

What `collect` does for a part on its way to the file, this does afterwards, so that both give the same; and what nothing in the part
speaks of any more, such as addresses and call stacks of other sockets, leaves the file, since it may be given away.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, Table, delete, func, insert, select, update

from collector.errors import Severity, StoreError
from collector.limits import Limits
from collector.model.counting import Counting
from collector.model.finding import Finding
from collector.model.findings import findings
from collector.model.heap_resizes import resizes_with_heap
from collector.model.rows import Rows, rows_of
from collector.model.socket_sums import socket_sums
from collector.problems import STORED_IN_PART
from collector.store import dialects
from collector.store.limiting import counted_rows, limit
from collector.store.tables import CATALOG, ROW_COLUMNS, TRACE

__all__ = ["SUMS", "cut"]

SUMS = (
    "socket_rollup", "heap_rollup", "heap_class", "heap_stack", "stack_sum", "stack_use", "operation_sum", "failure", "process_sum",
    "remote_sum", "listener_sum",
)  # fmt: skip
"""Tables that are made of others."""

_ADVICE = "Whoever exported this part has the whole; links stay the same but for the trace's key."
_ADDRESSES = ("local_n", "remote_n", "peer_n", "address_n", "source_n", "requested_n")
"""What columns that name a row of `address` are called."""

_WIDTHS = {table: len(columns) for table, columns in ROW_COLUMNS.items()}


def cut(path: Path, limits: Limits, should_cancel: Callable[[], bool]) -> None:
    """Leave in a trace's file, in place, what is within the limits; its key gets their suffix.

    Raises NothingLeft when that is nothing, StoreFull, StoreError, CollectCancelled; then the file is to be thrown away.
    """
    engine = dialects.bulk_engine(path, should_cancel=should_cancel)
    try:
        with engine.connect() as connection:
            _cut(connection, limits, path)
    finally:
        engine.dispose()


def _cut(connection: Connection, limits: Limits, path: Path) -> None:
    t = TRACE.tables
    found = connection.execute(select(t["trace"].c.end_ns, t["trace"].c.key)).first()
    if found is None:
        raise StoreError("This file holds no trace.")
    first_ns = connection.execute(select(func.min(t["event_count"].c.first_ns))).scalar() or 0
    last_ns = connection.execute(select(func.max(t["event_count"].c.last_ns))).scalar() or 0
    limits.check(min(0, first_ns), max(found.end_ns or 0, last_ns))
    connection.commit()
    with connection.begin():
        for name in (*SUMS, "finding"):
            connection.execute(delete(t[name]))
    limit(connection, limits)
    put = dialects.inserter(connection, _WIDTHS, path)
    with Counting() as counted:
        for rows in chain(counted_rows(connection), resizes_with_heap(connection)):
            counted.take(rows)
        for rows in chain(counted.finish(first_ns=first_ns), socket_sums(connection)):
            put(rows)
    is_limited = t["problem"].c.severity.in_((Severity.DATA_LOSS, Severity.DAMAGE))
    has_losses = connection.execute(select(func.count()).select_from(t["problem"]).where(is_limited)).scalar_one() > 0
    put(_finding_rows(findings(connection, end_ns=found.end_ns or 0, has_losses=has_losses)))
    connection.commit()
    with connection.begin():
        _forget_the_rest(connection)
        _say_so(connection, limits, found.key + limits.suffix)
    dialects.shrink(connection)
    with connection.begin():
        dialects.settle(connection)


def _finding_rows(found: list[Finding]) -> Rows:
    columns = {one.name: [getattr(finding, one.name) for finding in found] for one in fields(Finding)}
    return {"finding": rows_of("finding", {"n": range(1, len(found) + 1), **columns}, count=len(found))}


def _forget_the_rest(connection: Connection) -> None:
    """Take out addresses, stacks and notes that no row which stays speaks of."""
    t = TRACE.tables
    used = [column for table in t.values() for column in table.c if column.name in _ADDRESSES]
    _keep(connection, t["address"], "n", used)
    connection.exec_driver_sql(
        "DELETE FROM address_name WHERE ip NOT IN (SELECT ip FROM address WHERE ip IS NOT NULL UNION SELECT local_ip FROM transport_flow "
        "WHERE local_ip IS NOT NULL UNION SELECT remote_ip FROM transport_flow WHERE remote_ip IS NOT NULL)"
    )
    refs = [column for table in t.values() for column in table.c if column.name.endswith("stack_ref")]
    _keep(connection, t["stack_ref"], "ref", refs)
    _keep(connection, t["stack"], "n", [t["stack_ref"].c.stack_n])
    _keep(connection, t["stack_frame"], "stack_n", [t["stack_ref"].c.stack_n])
    note = CATALOG.tables["note"]
    things = {
        str(thing)
        for view, name in (("v_sockets", "socket"), ("v_processes", "process"))
        for thing in connection.exec_driver_sql(f"SELECT {name} FROM {view}").scalars()  # noqa: S608 - names of ours
    }
    for n, about in connection.execute(select(note.c.n, note.c.object)).all():
        if about and not things.intersection(about.split("/")):
            connection.execute(delete(note).where(note.c.n == n))


def _keep(connection: Connection, table: Table, key: str, used: Sequence[Column[Any]]) -> None:  # Any: numbers or hashes
    """Delete the rows of a table whose number stands in none of some columns, of any type."""
    parts = (f'SELECT "{c.name}" FROM "{c.table.name}" WHERE "{c.name}" IS NOT NULL' for c in used)  # noqa: S608 - our names
    named = " UNION ".join(parts)
    connection.exec_driver_sql(f'DELETE FROM "{table.name}" WHERE "{key}" NOT IN ({named})')  # noqa: S608 - see above


def _say_so(connection: Connection, limits: Limits, key: str) -> None:
    """The key of the part, its name, and a line on its page of trust."""
    t = TRACE.tables
    name = connection.execute(select(t["trace"].c.name)).scalar_one()
    connection.execute(update(t["trace"]).values(key=key, name=f"{name} ({limits.words})"))
    connection.execute(update(CATALOG.tables["note"]).values(key=key))
    kind, problem = STORED_IN_PART, t["problem"]
    n = connection.execute(select(func.coalesce(func.max(problem.c.n), 0))).scalar_one() + 1
    said = {"kind": kind.name, "severity": kind.severity, "count": 1, "text": kind.text.format(what=limits.words), "effect": kind.effect}
    connection.execute(insert(problem).values(trace_id=1, n=n, advice=_ADVICE, **said))
