"""A trace as NumPy arrays, for questions that no page asks: what `import collector` gives."""

import contextlib
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from collector.errors import PackageError, StoreError
from collector.export.forms import Kind
from collector.export.views import columns_of, hex_columns, opened
from collector.limits import Limits, parse_moment, parse_who
from collector.packages import traces_in
from collector.pipeline import import_trace
from collector.stages import never
from collector.store.engine import TraceFolder
from collector.store.views import TRACE_VIEWS

__all__ = ["ReadTrace", "Table", "open_trace", "read_trace"]

Array: TypeAlias = NDArray[Any]  # Any: int64, uint64, bool or object, as the column has it

_ROWS_AT_ONCE = 20_000


class Table(Mapping[str, Array]):
    """Columns of equal length by their names.

    Whole numbers are masked int64 arrays, addresses, handles and statuses masked uint64 ones, flags masked bool ones, masked where the
    trace does not tell. Texts are arrays of str, None where unknown. `len` is the number of columns, `count` that of rows.
    """

    def __init__(self, name: str, columns: dict[str, Array], count: int) -> None:
        self.name, self.count = name, count
        self._columns = columns

    def __getitem__(self, column: str) -> Array:
        try:
            return self._columns[column]
        except KeyError:
            raise KeyError(f"{self.name} has no column {column!r}. It has {', '.join(self._columns)}.") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.count:,} rows of {', '.join(self._columns)}>"

    def where(self, chosen: NDArray[np.bool_]) -> "Table":
        """The rows for which a condition holds; where it is masked it does not.

        Args:
            chosen: bool, shape (count,), as comparisons of columns give it.
        """
        kept = np.ma.filled(chosen, False).astype(bool)
        if kept.shape != (self.count,):
            raise ValueError(f"the condition has the shape {kept.shape}, {self.name} has {self.count:,} rows")
        return Table(self.name, {name: column[kept] for name, column in self._columns.items()}, int(kept.sum()))

    def structured(self) -> NDArray[np.void]:
        """The rows as a structured array. What a number or flag does not tell is 0; field `NAME_known` beside such a column says where.

        Texts are fields of object.
        """
        fields: list[tuple[str, Any]] = []  # Any: a dtype
        values: dict[str, Array] = {}
        for name, column in self._columns.items():
            fields.append((name, column.dtype))
            if isinstance(column, np.ma.MaskedArray):
                values[name] = column.filled(0)
                if np.ma.is_masked(column):
                    fields.append((f"{name}_known", np.bool_))
                    values[f"{name}_known"] = ~np.ma.getmaskarray(column)
            else:
                values[name] = column
        rows = np.zeros(self.count, dtype=fields)
        for name, column in values.items():
            rows[name] = column
        return rows


class ReadTrace(Mapping[str, Table]):
    """A trace that was read: its tables by their names, each loaded when it is first asked for.

    A context manager; without `close` what it takes on disk is given back when it is no longer used, or when the program ends.
    """

    def __init__(self, path: Path, place: Path | None = None) -> None:
        """`path` is the file of a collected trace, `place` a folder that is removed with it."""
        self.path = path
        self._engine = opened(path, never)
        self._loaded: dict[str, Table] = {}
        self._finalizer = weakref.finalize(self, shutil.rmtree, place, ignore_errors=True) if place is not None else None

    def __enter__(self) -> "ReadTrace":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back what it takes on disk; tables that were loaded stay usable."""
        self._engine.dispose()
        if self._finalizer is not None:
            self._finalizer()

    def __getitem__(self, table: str) -> Table:
        if table not in self._loaded:
            self._loaded[table] = self.table(table)
        return self._loaded[table]

    def __iter__(self) -> Iterator[str]:
        return (view.removeprefix("v_") for view in TRACE_VIEWS)

    def __len__(self) -> int:
        return len(TRACE_VIEWS)

    def __contains__(self, table: object) -> bool:
        return isinstance(table, str) and f"v_{table}" in TRACE_VIEWS

    def __repr__(self) -> str:
        return f"<trace {self.key}: {self.path.name}>"

    @property
    def key(self) -> str:
        """The key under which the dashboard has this trace; the same file has the same key everywhere."""
        key: str = self.table("trace", columns=("key",))["key"][0]
        return key

    @property
    def is_limited(self) -> bool:
        """Whether records were lost or damaged, so that counts may be too low; table `problems` says how."""
        severities = self.table("problems", columns=("severity",))["severity"]
        return any(severity in ("data_loss", "damage") for severity in severities)

    def table(self, name: str, columns: Sequence[str] | None = None) -> Table:
        """One table, or some of its columns, read anew; with none of them it has its `count` alone.

        Raises KeyError for names that there are not, StoreError.
        """
        view = f"v_{name}"
        if view not in TRACE_VIEWS:
            raise KeyError(f"there is no table {name!r}. There are {', '.join(self)}.")
        with self._engine.connect() as connection:
            kinds = {column.name: column.kind for column in columns_of(connection, view)}
            wanted = list(kinds) if columns is None else list(dict.fromkeys(columns))
            if strange := [column for column in wanted if column not in kinds]:
                raise KeyError(f"{name} has no column {strange[0]!r}. It has {', '.join(kinds)}.")
            if not wanted:
                return Table(name, {}, int(connection.exec_driver_sql(f"SELECT count(*) FROM {view}").scalar_one()))  # noqa: S608 - ours
            return _table(connection, name, view, {column: kinds[column] for column in wanted})


def read_trace(
    path: Path | str,
    *,
    inside: str | None = None,
    processes: Sequence[str | int] | str | int = (),
    from_time: str | int | None = None,
    to_time: str | int | None = None,
    scratch: Path | str | None = None,
) -> ReadTrace:
    """Decode a trace file: an .etl file, a package with one inside, or any other form that `sockscope collect` takes.

    Nothing is stored in the database of the dashboard. What was decoded lies in a temporary file of about the size of the trace.

    Args:
        inside: which trace of a package that has several: the end of its name there.
        processes: only these, or this one, by id, `PID@NS` or image name.
        from_time: only what lasts until then or later: ns since time 0, or text such as `12.5s`.
        to_time: only what begins then or earlier.
        scratch: folder for the temporary file; without it the system's.

    Raises: TraceError, and its kinds by what is wrong: SourceError, FormatError, NothingLeft, StoreFull. ValueError for a time or a process
    that cannot be read, or a range that runs backward.
    """
    wanted = (processes,) if isinstance(processes, str | int) else processes
    limits = Limits(tuple(parse_who(str(one)) for one in wanted), _moment(from_time), _moment(to_time))
    if limits.from_ns is not None and limits.to_ns is not None and limits.from_ns > limits.to_ns:
        raise ValueError("to_time is before from_time; give a range that runs forward.")
    try:
        place = Path(tempfile.mkdtemp(prefix="sockscope-", dir=scratch))
    except OSError as error:
        raise StoreError(f"{scratch or tempfile.gettempdir()}: nothing can be written there ({error.strerror}).") from error
    try:
        return ReadTrace(_collected(Path(path), inside, limits, place), place)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def open_trace(path: Path | str) -> ReadTrace:
    """Open the file of a trace that was collected or exported: `traces/KEY.db` of a database, or what `sockscope export` wrote.

    Raises: StoreError for what is none; StoreTooOld, StoreTooNew by its version.
    """
    path = Path(path)
    if not path.is_file():
        raise StoreError(f"{path}: there is no such file. Name the file of a collected trace; read_trace takes recordings.")
    return ReadTrace(path)


def _collected(path: Path, inside: str | None, limits: Limits, place: Path) -> Path:
    """Collect the one trace of a file that is meant; returns the file that it became."""
    folder = TraceFolder(place / "decoded")

    def refuse(sentence: str) -> None:
        raise PackageError(sentence)

    found: list[str] = []
    key = None
    with contextlib.closing(traces_in(str(path), place=place, should_cancel=never, on_fault=refuse)) as sources:
        for source in sources:
            name = source.name.partition(" (in ")[0]
            with source:
                found.append(name)
                if inside is not None and not name.endswith(inside):
                    continue
                if key is not None:
                    raise PackageError(f"{path}: there are several traces in it: {', '.join(found)}, … Say which with inside=….")
                key = import_trace(source, folder, limits=limits).key
    if key is None:
        raise PackageError(f"{path}: no trace in it is called {inside!r}. There are {', '.join(found)}.")
    return folder.trace_path(key)


def _moment(time: str | int | None) -> int | None:
    return None if time is None else parse_moment(str(time))


def _table(connection: Connection, name: str, view: str, kinds: Mapping[str, Kind]) -> Table:
    names = ", ".join(f'"{column}"' for column in kinds)
    found = connection.exec_driver_sql(f"SELECT {names} FROM {view}")  # noqa: S608 - names of ours
    hexes = hex_columns(view)
    cell_kinds = {column: None if column in hexes else kind for column, kind in kinds.items()}
    parts: dict[str, list[Array]] = {column: [] for column in kinds}
    known: dict[str, dict[str, str]] = {column: {} for column in kinds}
    count = 0
    while rows := found.fetchmany(_ROWS_AT_ONCE):
        count += len(rows)
        for (column, kind), cells in zip(cell_kinds.items(), zip(*rows, strict=True), strict=True):
            parts[column].append(_array(cells, kind, known[column]))
    columns = {}
    for column, kind in cell_kinds.items():
        pieces = parts[column] or [_array((), kind, {})]
        columns[column] = pieces[0] if len(pieces) == 1 else _joined(pieces)
    return Table(name, columns, count)


def _array(cells: Sequence[Any], kind: Kind | None, known: dict[str, str]) -> Array:  # Any: a cell of any kind
    """Cells of a column as an array, `kind` None for text that is a number; equal texts are one object."""
    if kind is Kind.TEXT:
        texts = np.empty(len(cells), dtype=object)
        texts[:] = [None if cell is None else known.setdefault(cell, cell) for cell in cells]
        return texts
    masked = np.fromiter((cell is None for cell in cells), dtype=bool, count=len(cells))
    if kind is None:
        numbers: Array = np.fromiter((0 if cell is None else int(cell, 16) for cell in cells), dtype=np.uint64, count=len(cells))
    else:
        dtype = np.bool_ if kind is Kind.FLAG else np.int64
        numbers = np.fromiter((0 if cell is None else cell for cell in cells), dtype=dtype, count=len(cells))
    return np.ma.MaskedArray(numbers, mask=masked)


def _joined(pieces: Sequence[Array]) -> Array:
    if not isinstance(pieces[0], np.ma.MaskedArray):
        return np.concatenate(pieces)
    numbers = np.concatenate([np.ma.getdata(piece) for piece in pieces])
    return np.ma.MaskedArray(numbers, mask=np.concatenate([np.ma.getmaskarray(piece) for piece in pieces]))
