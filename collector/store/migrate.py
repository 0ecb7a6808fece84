"""Brings databases of older versions up to date, by the history in `migrations/`.

Alembic is imported only when there is something to do: it costs more than the rest of a start.
"""

import os
import shutil
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from collector.errors import StoreError, StoreTooNew
from collector.store import dialects
from collector.store.engine import TraceFolder, stored_version
from collector.store.tables import CATALOG_VERSION, TRACE_VERSION
from collector.store.views import create_catalog_views, create_views, drop_views

if TYPE_CHECKING:
    from alembic.config import Config

__all__ = ["history", "migrations_path", "upgrade", "upgrade_catalog", "upgrade_trace"]


def migrations_path() -> Path:
    """The folder of the history: inside the installed package, or beside it in a checkout. Raises StoreError when it is missing."""
    package = Path(str(files("collector")))
    for path in (package / "migrations", package.parent / "migrations"):
        if (path / "env.py").is_file():
            return path
    raise StoreError("The history of the database (migrations) is missing from this installation. Install sockscope again.")


def history() -> "Config":
    """Alembic's settings for the history; both branches are in it."""
    from alembic.config import Config

    config = Config()
    path = migrations_path()
    config.set_main_option("script_location", str(path).replace("%", "%%"))
    config.set_main_option("version_locations", os.pathsep.join(str(path / b).replace("%", "%%") for b in ("catalog", "traces")))
    config.set_main_option("path_separator", "os")
    return config


def upgrade(engine: Engine, revision: str) -> None:
    """Run the steps from a database's own revision to `revision`, in one transaction. Views are dropped and not created again."""
    from alembic import command

    config = history()
    with engine.begin() as connection:
        drop_views(connection)
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def _upgrade(engine: Engine, revision: str, path: Path) -> None:
    """`upgrade`, and StoreError with the path where a step does not fit what is there."""
    try:
        upgrade(engine, revision)
    except SQLAlchemyError as error:
        why = getattr(error, "orig", None) or f"{type(error).__name__}: {error}"
        raise StoreError(
            f"{path}: this database cannot be brought up to date ({why}). Collect its traces again into another folder."
        ) from error


def upgrade_catalog(engine: Engine, path: Path) -> None:
    """Bring an older catalog up to date in place. Raises StoreTooNew, StoreError."""
    _refuse_newer(stored_version(engine, path), CATALOG_VERSION, path)
    _upgrade(engine, CATALOG_VERSION, path)
    with engine.begin() as connection:
        create_catalog_views(connection)


def upgrade_trace(folder: TraceFolder, key: str) -> bool:
    """Bring an older trace up to date, on a copy that takes its place; returns whether there was something to do.

    Raises StoreTooNew, StoreError, StoreFull.
    """
    path, part = folder.trace_path(key), folder.part_path(key)
    found = stored_version(dialects.reading_engine(path, limit_seconds=60), path)
    if found == TRACE_VERSION:
        return False
    _refuse_newer(found, TRACE_VERSION, path)
    try:
        shutil.copyfile(path, part)
        engine = dialects.writing_engine(part)
        _upgrade(engine, TRACE_VERSION, path)
        with engine.begin() as connection:
            create_views(connection)
        engine.dispose()
        os.replace(part, path)  # noqa: PTH105 - one atomic step, the same on all systems
    except OSError as error:
        raise StoreError(f"{path}: this trace cannot be brought up to date ({error.strerror}).") from error
    finally:
        part.unlink(missing_ok=True)
    return True


def _refuse_newer(found: str | None, wanted: str, path: Path) -> None:
    if found is not None and found > wanted:
        raise StoreTooNew(f"{path}: made by a newer version of sockscope (version {found}, this program knows {wanted}). Update sockscope.")
