"""The tables of a PostgreSQL server, made from those of `tables`: the catalog, and each trace table in parts, one part a trace.

Everything is in a schema of its own, so that a database can hold other things too. A trace table is a parent, `PARTITION BY LIST
(trace_id)`, and a trace's rows are in a partition of it that is named by the table and the trace's number: `operation_17`. The number
is new each time that a trace is stored; `trace_load` says which one is a key's. A trace without rows of a table has no partition of it.
Text is compared by its bytes, as SQLite compares it.
"""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Connection, Identity, Index, Integer, MetaData, Sequence, String, Table, Text, text
from sqlalchemy.schema import CreateIndex, CreateSchema, CreateSequence, CreateTable
from sqlalchemy.types import TypeEngine

from collector.store.tables import CATALOG, CATALOG_VERSION, TRACE, TRACE_VERSION

__all__ = [
    "SCHEMA",
    "SERVER_CATALOG",
    "SERVER_TRACE",
    "create_schema",
    "indexes_of",
    "partition_name",
    "revision",
    "trace_load",
    "trace_number",
]

SCHEMA = "sockscope"
"""The schema that everything is in; connections have it as their search path, so that statements do not name it."""

_BYTEWISE = "C"


def _server_type(column: Column[Any]) -> TypeEngine[Any]:  # Any: a column of any type
    if isinstance(column.type, Integer):
        return BigInteger()
    if isinstance(column.type, Text):
        return Text(collation=_BYTEWISE)
    return column.type


def indexes_of(table: Table) -> list[Index]:
    """A table's indexes in a fixed order."""
    return sorted(table.indexes, key=lambda index: str(index.name))


def _adapted(source: MetaData, *, is_split: bool) -> MetaData:
    """Copies of all tables with the types of the server; `is_split` makes them parents of partitions.

    Their indexes have NULL first, as statements ask for it, since SQLite has it so: else none would give rows in their order.
    """
    found = MetaData(naming_convention=source.naming_convention)
    for table in source.sorted_tables:
        copy = table.to_metadata(found)
        for column in copy.columns:
            column.type = _server_type(column)
        for index in indexes_of(copy):
            copy.indexes.remove(index)
            where = index.dialect_options["postgresql"]["where"]
            Index(index.name, *(c.nulls_first() if c.nullable else c for c in index.columns), postgresql_where=where, _table=copy)
        if is_split:
            copy.dialect_options["postgresql"]["partition_by"] = "LIST (trace_id)"
    return found


SERVER_CATALOG = _adapted(CATALOG, is_split=False)
SERVER_TRACE = _adapted(TRACE, is_split=True)

_number = SERVER_CATALOG.tables["note"].c.n
_number.server_default = _number.identity = Identity(always=False)

trace_number = Sequence("trace_number", metadata=SERVER_CATALOG, data_type=Integer)
"""Numbers of traces; 31 bits, as many as a lock can name."""

trace_load = Table(
    "trace_load",
    SERVER_CATALOG,
    Column("number", BigInteger, primary_key=True, autoincrement=False, comment="trace_id of the rows"),
    Column("key", Text(collation=_BYTEWISE), nullable=False),
    Column("is_current", Boolean(create_constraint=False), nullable=False, comment="false: replaced or deleted, its partitions may go"),
    Column("size_bytes", BigInteger, nullable=False, comment="of its partitions and their indexes"),
    Index("ix_trace_load_key", "key", unique=True, postgresql_where=text("is_current")),
    comment="Which number each trace has.",
)

revision = Table(
    "alembic_version",
    SERVER_CATALOG,
    Column("version_num", String(32), primary_key=True),
    comment="Versions of the catalog and of the tables of traces, as Alembic reads them.",
)


def partition_name(table: str, number: int) -> str:
    """Name of the table that holds a trace's rows of a trace table."""
    return f"{table}_{number}"


def create_schema(connection: Connection) -> None:
    """Create everything in an empty database, in the caller's transaction."""
    connection.execute(CreateSchema(SCHEMA, if_not_exists=True))
    connection.execute(CreateSequence(trace_number))
    for metadata in (SERVER_CATALOG, SERVER_TRACE):
        for table in metadata.sorted_tables:
            connection.execute(CreateTable(table))
            for index in indexes_of(table):
                connection.execute(CreateIndex(index))
    connection.execute(revision.insert(), [{"version_num": version} for version in (CATALOG_VERSION, TRACE_VERSION)])
