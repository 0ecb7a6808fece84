"""Takes what a user does not want stored out of an unfinished trace file, once the model of the whole is in it.

The models need everything (a completion may be logged in another process), so rows are taken out at the end: what stays is what
the whole trace would have, with the same times, numbers and names in links.
"""

from collections.abc import Iterator

from sqlalchemy import Connection, text

from collector.errors import NothingLeft
from collector.limits import Limits, WhichSocket, Who
from collector.model.block import Lines
from collector.store import dialects
from collector.store.tables import ROW_COLUMNS

__all__ = ["counted_rows", "limit"]

_ROWS_AT_ONCE = 50_000
_MIN, _MAX = -(1 << 63), (1 << 63) - 1
_BY_SOCKET = ("skipped", "abort", "drop", "bind_failure", "listen_event", "option", "socket_event", "io_finding")
_BY_PROCESS = ("thread", "heap", "allocation", "heap_range", "heap_counter", "heap_anomaly", "virtual_memory")
# Lives that touch the range: [begin, end] by SQL of the row.
_LIVES = {
    "socket": ("first_ns", f"CASE WHEN closed_ns IS NULL THEN {_MAX} ELSE max(last_ns, coalesce(destroyed_ns, closed_ns)) END"),
    "operation": (
        "coalesce(posted_ns, completed_ns)",
        f"CASE WHEN end_ns IS NULL AND completed_ns IS NULL THEN {_MAX} "
        f"ELSE max(coalesce(end_ns, {_MIN}), coalesce(completed_ns, {_MIN})) END",
    ),
    "heap": ("first_ns", f"coalesce(destroyed_ns, {_MAX})"),
    "allocation": ("first_ns", f"coalesce(end_ns, {_MAX})"),
    "heap_range": (f"coalesce(from_ns, {_MIN})", f"coalesce(until_ns, {_MAX})"),
    "poll": ("coalesce(posted_ns, completed_ns)", "coalesce(completed_ns, posted_ns)"),
    "transport_flow": ("first_ns", "last_ns"),
} | dict.fromkeys(
    (*_BY_SOCKET, "heap_gauge", "heap_anomaly", "raw_event", "transport_event", "catalog_change", "virtual_memory"), ("t_ns", "t_ns")
)
# Rows that are about rows of another table go with them; a NULL names none.
_BELONGS = (
    *((table, "socket_n", "socket", "n") for table in (*_BY_SOCKET, "operation", "peer")),
    ("operation_buffer", "operation_n", "operation", "n"),
    ("io_finding", "operation_n", "operation", "n"),
    ("overlap", "first_n", "operation", "n"),
    ("overlap", "second_n", "operation", "n"),
    ("resize", "allocation_n", "allocation", "n"),
    ("heap_gauge", "heap_n", "heap", "n"),
    ("transport_event", "flow_n", "transport_flow", "n"),
)
_ADDRESSES_LEFT = (
    "SELECT ip FROM address WHERE ip IS NOT NULL AND (n IN (SELECT local_n FROM socket) OR n IN (SELECT remote_n FROM socket) "
    "OR n IN (SELECT address_n FROM peer WHERE socket_n IN (SELECT n FROM socket)))"
)
# What the network stack and name resolution say, of the sockets that are left.
_NEIGHBOURS_OF_SOCKETS = (
    "DELETE FROM transport_flow WHERE coalesce(socket_n, -1) NOT IN (SELECT n FROM socket) "
    "AND n NOT IN (SELECT flow_n FROM transport_event WHERE socket_n IN (SELECT n FROM socket))",
    "DELETE FROM transport_event WHERE socket_n IS NOT NULL AND socket_n NOT IN (SELECT n FROM socket)",
    f"DELETE FROM address_name WHERE ip NOT IN ({_ADDRESSES_LEFT})",  # noqa: S608 - written here
)
_NAMES_ANOTHER = (
    ("socket", "accepted_from_n", "socket"),
    ("socket", "loopback_peer_n", "socket"),
    ("operation", "accepted_n", "socket"),
    ("listen_event", "accepted_n", "socket"),
    ("allocation", "previous_n", "allocation"),
    ("operation_buffer", "allocation_n", "allocation"),
    ("io_finding", "allocation_n", "allocation"),
    ("transport_flow", "socket_n", "socket"),
    ("transport_event", "socket_n", "socket"),
)


def limit(connection: Connection, limits: Limits) -> dict[str, int]:
    """Delete the rows outside of the limits and give the space back; returns how many rows each table has left.

    Rows whose life touches the range stay whole; references to rows that are gone become NULL. Counts of events, addresses and stacks stay.

    Raises: NothingLeft when no process matches, StoreFull, StoreError, CollectCancelled.
    """
    if connection.in_transaction():
        connection.commit()  # a finishing pass has read before
    with connection.begin():
        for statement in _statements(connection, limits):
            connection.exec_driver_sql(statement)
        counts = {table: int(connection.exec_driver_sql(f'SELECT count(*) FROM "{table}"').scalar_one()) for table in ROW_COLUMNS}  # noqa: S608 - our tables
    dialects.shrink(connection)
    return counts


def counted_rows(connection: Connection) -> Iterator[dict[str, Lines]]:
    """Rows of the tables that sums and roll-ups are made of, in pieces, in the order of their numbers."""
    for table in ("stack_ref", "socket", "operation", "allocation", "socket_event", "abort", "heap_anomaly"):
        found = connection.exec_driver_sql(f"SELECT {', '.join(ROW_COLUMNS[table])} FROM {table}")  # noqa: S608 - our names
        while rows := found.fetchmany(_ROWS_AT_ONCE):
            yield {table: [tuple(row) for row in rows]}


def _statements(connection: Connection, limits: Limits) -> Iterator[str]:
    """SQL of names and numbers of ours alone: what the user wrote was resolved to row numbers."""
    if limits.processes:
        numbers = ", ".join(str(n) for n in sorted({n for who in limits.processes for n in _matching(connection, who, limits.done)}))
        yield f"DELETE FROM process WHERE n NOT IN ({numbers})"  # noqa: S608 - row numbers
        for table in ("socket", *_BY_PROCESS):
            yield f"DELETE FROM {table} WHERE process_n IS NULL OR process_n NOT IN ({numbers})"  # noqa: S608 - see above
        yield f"DELETE FROM module WHERE process_n NOT IN ({numbers})"  # noqa: S608 - those of the kernel, NULL, stay
        yield f"DELETE FROM owner WHERE process_n IS NULL OR process_n NOT IN ({numbers})"  # noqa: S608 - see above
        yield "DELETE FROM poll WHERE owner_n IS NULL OR owner_n NOT IN (SELECT n FROM owner)"
        yield "DELETE FROM raw_event WHERE pid IS NULL OR pid NOT IN (SELECT pid FROM process WHERE pid IS NOT NULL)"
        yield from _NEIGHBOURS_OF_SOCKETS
        for table in _BY_SOCKET:
            yield f'DELETE FROM "{table}" WHERE socket_n IS NULL'  # noqa: S608 - see above
    if limits.sockets:
        numbers = ", ".join(str(n) for n in sorted({n for which in limits.sockets for n in _sockets(connection, which, limits.done)}))
        yield f"DELETE FROM socket WHERE n NOT IN ({numbers})"  # noqa: S608 - row numbers
        for table, number in (("process", "process_n"), ("owner", "owner_n")):
            yield f"DELETE FROM {table} WHERE n NOT IN (SELECT {number} FROM socket WHERE {number} IS NOT NULL)"  # noqa: S608 - see above
        for table in ("thread", "module"):  # their stacks and their code
            yield f"DELETE FROM {table} WHERE process_n NOT IN (SELECT n FROM process)"  # noqa: S608 - see above
        for table in ("poll", "raw_event", "heap_range", "heap_counter", "heap_anomaly", "heap_gauge", "virtual_memory", "catalog_change"):
            yield f"DELETE FROM {table}"  # noqa: S608 - see above
        yield from _NEIGHBOURS_OF_SOCKETS
        for table in _BY_SOCKET:
            yield f'DELETE FROM "{table}" WHERE socket_n IS NULL'  # noqa: S608 - see above
    low, high = limits.from_ns, limits.to_ns
    if low is not None or high is not None:
        for table, (begin, end) in _LIVES.items():
            outside = [f"{end} < {low}"] * (low is not None) + [f"{begin} > {high}"] * (high is not None)
            yield f'DELETE FROM "{table}" WHERE {" OR ".join(outside)}'  # noqa: S608 - numbers
    for table, column, other, key in _BELONGS:
        yield f'DELETE FROM "{table}" WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT {key} FROM {other})'  # noqa: S608 - our names
    if limits.sockets:  # of the heap the blocks alone that buffers of these sockets lie in
        behind = "SELECT allocation_n FROM operation_buffer UNION SELECT allocation_n FROM io_finding"
        yield f"DELETE FROM allocation WHERE NOT EXISTS (SELECT 1 FROM ({behind}) b WHERE b.allocation_n = allocation.n)"  # noqa: S608
        yield "DELETE FROM resize WHERE allocation_n NOT IN (SELECT n FROM allocation)"
        yield "DELETE FROM heap WHERE n NOT IN (SELECT heap_n FROM allocation)"
    for table, column, other in _NAMES_ANOTHER:
        yield (
            f'UPDATE "{table}" SET {column} = NULL WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT n FROM {other})'  # noqa: S608 - see above
        )


def _matching(connection: Connection, who: Who, done: str) -> list[int]:
    """Row numbers of the processes that a user means. Raises NothingLeft for none."""
    if who.image is not None:
        query = "SELECT n FROM process WHERE lower(image) = :image OR lower(image) LIKE :end ESCAPE '!'"
        escaped = who.image.replace("!", "!!").replace("%", "!%").replace("_", "!_")
        given: dict[str, object] = {"image": who.image, "end": f"%\\{escaped}"}
    elif who.ns is None:
        query, given = "SELECT n FROM process WHERE pid = :pid", {"pid": who.pid}
    else:
        query = f"SELECT n FROM process WHERE pid = :pid AND first_ns <= :ns AND coalesce(end_ns, {_MAX}) >= :ns"  # noqa: S608 - a number
        given = {"pid": who.pid, "ns": who.ns}
    found = [int(n) for (n,) in connection.execute(text(query), given)]
    if not found:
        named = connection.exec_driver_sql("SELECT pid, image FROM process WHERE image IS NOT NULL ORDER BY n LIMIT 8").all()
        some = ", ".join(f"{image.rsplit(chr(92), 1)[-1]} ({pid})" for pid, image in named)
        raise NothingLeft(
            f"No process of this trace is {who.text!r}, so nothing was {done}." + (f" There are, among others, {some}." if some else "")
        )
    return found


def _sockets(connection: Connection, which: WhichSocket, done: str) -> list[int]:
    """Row numbers of the sockets that a user means. Raises NothingLeft for none."""
    endpoint = which.endpoint - (1 << 64) if which.endpoint >> 63 else which.endpoint
    rows = connection.exec_driver_sql(
        f"SELECT n, coalesce(created_ns, first_ns), {_LIVES['socket'][1]} FROM socket WHERE endpoint = ? ORDER BY 2",  # noqa: S608 - ours
        (endpoint,),
    ).all()
    found = [int(n) for n, begin, end in rows if which.ns is None or begin <= which.ns <= end]
    if not found:
        there = ", ".join(f"0x{which.endpoint:x}@{begin}" for _, begin, _ in rows[:8])
        raise NothingLeft(
            f"No socket of this trace is {which.text}, so nothing was {done}."
            + (f" At this address were {there}." if there else " Its page's address has its name: 0xENDPOINT@NS.")
        )
    return found
