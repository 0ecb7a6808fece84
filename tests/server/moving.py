"""A folder's traces on a server: each placed as its collector places it, and the catalog row by row."""

import shutil
from collections.abc import Collection

from sqlalchemy import insert, select

from collector.store.engine import TraceFolder
from collector.store.server import TraceServer
from collector.store.server_tables import SERVER_CATALOG
from collector.store.tables import CATALOG

__all__ = ["move"]


def move(folder: TraceFolder, server: TraceServer, keys: Collection[str] | None = None) -> None:
    """Put all traces of a folder, or some, on a server that has none, with their notes."""
    keys = folder.trace_keys() if keys is None else keys
    server.make()
    for key in keys:
        with server.collecting(key, "busy"):
            shutil.copyfile(folder.trace_path(key), server.part_path(key))
            server.place(key)
    with folder.catalog().connect() as here, server.catalog(write=True).begin() as there:
        for table in CATALOG.sorted_tables:
            rows = [dict(row._mapping) for row in here.execute(select(table).where(table.c.key.in_(keys)))]
            if rows:
                there.execute(insert(SERVER_CATALOG.tables[table.name]), rows)
