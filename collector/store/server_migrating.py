"""Changes of the tables of a PostgreSQL server: brought up to date by the history in `migrations/`, and opened to a role that reads.

Whoever calls has a transaction that holds the lock of such changes.
"""

from sqlalchemy import Connection, select

from collector.errors import StoreTooNew
from collector.store.migrate import history
from collector.store.server_tables import SCHEMA, revision
from collector.store.tables import CATALOG_VERSION, TRACE_VERSION

__all__ = ["grant_reading", "upgrade_server"]

_GRANTS = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "GRANT INSERT, UPDATE, DELETE ON {schema}.note TO {role}",
    "GRANT UPDATE (label) ON {schema}.trace_entry TO {role}",
)
"""A partition needs no grant of its own: it is read through its table."""


def upgrade_server(connection: Connection, title: str) -> bool:
    """Run the steps from the versions of the tables to those of this program; returns whether there were any. Raises StoreTooNew."""
    from alembic import command

    found = set(connection.execute(select(revision.c.version_num)).scalars())
    wanted = (CATALOG_VERSION, TRACE_VERSION)
    for branch in wanted:
        newer = sorted(version for version in found if version[0] == branch[0] and version > branch)
        if newer:
            raise StoreTooNew(
                f"{title}: made by a newer version of sockscope (version {newer[0]}, this program knows {branch}). Update sockscope."
            )
    if found == set(wanted):
        return False
    config = history()
    config.attributes["connection"] = connection
    for version in wanted:
        command.upgrade(config, version)
    return True


def grant_reading(connection: Connection, role: str) -> None:
    """Let a role read everything, and write notes and labels."""
    quoted = connection.dialect.identifier_preparer.quote_identifier(role)
    for grant in _GRANTS:
        connection.exec_driver_sql(grant.format(schema=SCHEMA, role=quoted).replace("%", "%%"))
