"""Spreads the tables of a PostgreSQL server over a Citus cluster: each trace is on one of its servers, whole.

The tables of traces are distributed on the number of the trace, all in one co-location group, so that the rows of a trace lie together
in every table and a statement that names the trace is answered by one server. The tables of the catalog are on every server. Locks are
the coordinator's, and so `trace_load`, which is read together with them, stays there alone.

From what Citus' documentation, sources and list of changes say; no test runs Citus itself (docs/scale.md).
"""

from dataclasses import dataclass

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from collector.errors import StoreDamaged, StoreError
from collector.store.server_tables import SCHEMA
from collector.store.tables import CATALOG, TRACE

__all__ = ["Distributed", "distribute", "is_distributed", "one_after_another"]

OLDEST_CITUS = 12
"""Its list of changes last speaks of columns that number their rows (`note.n`) in 11.3 and 12.0; older versions were not looked into."""

_FIRST = "trace"
"""The trace table that the others are co-located with."""


@dataclass(frozen=True, slots=True)
class Distributed:
    """What one call changed: how many tables of traces, and how many of the catalog; and over how many shards the former are."""

    traces: int
    catalog: int
    shards: int


def is_distributed(connection: Connection) -> bool:
    """Whether the tables of traces are spread over a cluster."""
    if connection.exec_driver_sql("SELECT to_regclass('pg_catalog.pg_dist_partition') IS NULL").scalar_one():
        return False
    return _FIRST in _known(connection)


def one_after_another(connection: Connection) -> None:
    """Let a transaction that changes tables of both kinds use one connection to each server, as Citus demands."""
    connection.exec_driver_sql("SET LOCAL citus.multi_shard_modify_mode TO 'sequential'")


def distribute(connection: Connection, title: str, shards: int | None) -> Distributed:
    """Distribute what is not yet, in the caller's transaction. `shards`: None for as many as servers that hold rows.

    Raises StoreError where the database has no Citus or one that is too old, and what Citus refuses.
    """
    version = connection.exec_driver_sql("SELECT extversion FROM pg_extension WHERE extname = 'citus'").scalar()
    if version is None:
        raise StoreError(
            f"{title}: the extension citus is not in this database, so there is nothing to distribute over. "
            "Install Citus on every server of the cluster, and then run in this database: CREATE EXTENSION citus"
        )
    if int(str(version).partition(".")[0]) < OLDEST_CITUS:
        raise StoreError(f"{title}: this is Citus {version}; {OLDEST_CITUS} or newer is needed. Nothing was distributed.")
    known = _known(connection)
    if _FIRST not in known:
        shards = shards or _servers(connection)
    one_after_another(connection)
    catalog = [table.name for table in CATALOG.sorted_tables if table.name not in known]  # what others refer to comes first
    for name in catalog:
        _ask(connection, title, name, "SELECT create_reference_table(%s)")
    traces = [name for name in TRACE.tables if name not in known]
    for name in sorted(traces, key=lambda name: (name != _FIRST, name)):
        if name == _FIRST:
            _ask(
                connection,
                title,
                name,
                "SELECT create_distributed_table(%s, 'trace_id', colocate_with => 'none', shard_count => %s)",
                shards,
            )
        else:
            _ask(connection, title, name, "SELECT create_distributed_table(%s, 'trace_id', colocate_with => %s)", f"{SCHEMA}.{_FIRST}")
    return Distributed(len(traces), len(catalog), _shards(connection))


def _ask(connection: Connection, title: str, name: str, call: str, *values: object) -> None:
    """Call a function of Citus with a table. Its errors have no code of their own and read like damage."""
    try:
        connection.exec_driver_sql(call, (f"{SCHEMA}.{name}", *values))
    except (StoreDamaged, DBAPIError) as error:
        said = str(error.__cause__ if isinstance(error, StoreDamaged) else error.orig).partition("\n")[0]
        raise StoreError(f"{title}: Citus does not distribute the table {name} ({said}). Nothing was distributed.") from error


def _known(connection: Connection) -> set[str]:
    """Our tables that Citus knows."""
    wanted = (
        "SELECT c.relname FROM pg_dist_partition d JOIN pg_class c ON c.oid = d.logicalrelid "
        "JOIN pg_namespace s ON s.oid = c.relnamespace WHERE s.nspname = %s"
    )
    return set(connection.exec_driver_sql(wanted, (SCHEMA,)).scalars())


def _servers(connection: Connection) -> int:
    """How many servers of the cluster hold rows; one at least."""
    wanted = "SELECT greatest(1, count(*)) FROM pg_dist_node WHERE isactive AND shouldhaveshards AND noderole = 'primary'"
    return int(connection.exec_driver_sql(wanted).scalar_one())


def _shards(connection: Connection) -> int:
    wanted = "SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = %s::regclass"
    return int(connection.exec_driver_sql(wanted, (f"{SCHEMA}.{_FIRST}",)).scalar_one())
