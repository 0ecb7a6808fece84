"""The views of a trace file, read row by row into another form."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy import Connection, Engine

from collector.errors import CollectCancelled
from collector.export.forms import Kind, Named, check_form, write_form
from collector.store import dialects
from collector.store.copying import Change, brings_notes, placed, prepared
from collector.store.engine import check_version
from collector.store.stores import TraceStore
from collector.store.tables import TRACE_VERSION
from collector.store.views import CATALOG_VIEWS, TRACE_VIEWS

__all__ = ["VIEWS", "columns_of", "export_views", "hex_columns", "opened"]

VIEWS = (*TRACE_VIEWS, *CATALOG_VIEWS)
"""All that can leave as a table."""

_ROWS_AT_ONCE = 20_000
_HEX_COLUMN = re.compile(r"""printf\('0x%x', (?:(?!END).)*\) END\s+AS "?(\w+)""")  # as dialects.hex_text writes it
_COMPUTED_NUMBERS = frozenset(("t_ns", "bytes", "count", "header_pid"))  # SQLite tells no type of an expression


def export_views(
    folder: TraceStore,
    key: str,
    views: Sequence[str],
    form: str,
    target: Path,
    should_cancel: Callable[[], bool],
    *changes: Change,
) -> dict[str, int]:
    """Write views of a finished trace in a form; returns how many rows each has.

    One view becomes the file `target`, several become files of a new folder of that name. Nothing is there until all is; memory follows a
    piece of the rows. Raises StoreFull, StoreError, StoreTooOld, StoreTooNew, CollectCancelled, and what the changes raise.
    """
    check_form(form)
    numbers = {}
    with prepared(folder, key, should_cancel, *changes) as source, placed(target, is_folder=len(views) > 1) as part:
        engine = opened(source, should_cancel)
        for view in views:
            path = part / f"{view}.{form}" if len(views) > 1 else part
            in_catalog = view in CATALOG_VIEWS and not brings_notes(folder, *changes)
            with (folder.catalog() if in_catalog else engine).connect() as connection:
                numbers[view] = _write(connection, view, form, path, should_cancel, key=key if in_catalog else None)
    return numbers


def opened(path: Path, should_cancel: Callable[[], bool]) -> Engine:
    """Connections that only read one trace's file, as long as it takes. Raises StoreTooOld, StoreTooNew, StoreError."""
    engine = dialects.reading_engine(path, limit_seconds=0, should_cancel=should_cancel)
    check_version(engine, path, TRACE_VERSION)
    return engine


def columns_of(connection: Connection, view: str) -> list[Named]:
    """The columns of a view with what they hold, by the types of the columns behind them."""
    found = connection.exec_driver_sql(f"PRAGMA table_info({view})")
    return [Named(name, _kind(name, declared)) for _, name, declared, *_ in found]


def hex_columns(view: str) -> frozenset[str]:
    """The columns of a view of a trace that are `0x…` text of one number: addresses, handles, statuses."""
    return frozenset(_HEX_COLUMN.findall(TRACE_VIEWS[view]))


def _write(connection: Connection, view: str, form: str, target: Path, should_cancel: Callable[[], bool], *, key: str | None) -> int:
    """All rows of a view of VIEWS, or those of one trace, into a new file; returns their number."""
    assert view in VIEWS  # names of ours alone reach the statement
    columns = columns_of(connection, view)
    names = ", ".join(f'"{column.name}"' for column in columns)
    chosen, given = (" WHERE key = ?", (key,)) if key is not None else ("", ())
    found = connection.exec_driver_sql(f"SELECT {names} FROM {view}{chosen}", given)  # noqa: S608 - see above
    number = 0
    with target.open("xb") as file, write_form(form, columns, file) as table:
        while rows := found.fetchmany(_ROWS_AT_ONCE):
            if should_cancel():
                raise CollectCancelled("Cancelled. Nothing was exported.")
            table.write(rows)
            number += len(rows)
    return number


def _kind(name: str, declared: str) -> Kind:
    if declared == "BOOLEAN":
        return Kind.FLAG
    is_number = declared in ("INTEGER", "BIGINT") or (not declared and name in _COMPUTED_NUMBERS)
    return Kind.NUMBER if is_number else Kind.TEXT
