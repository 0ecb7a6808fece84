"""The forms in which a table leaves: CSV, JSON lines, Parquet. Rows are written as they come, so memory follows a piece of them."""

import csv
import importlib.util
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import IO, Any, Protocol, Self

from collector.errors import StoreError
from collector.plain import inert_cell

__all__ = ["FORMS", "Kind", "Named", "TableForm", "check_form", "write_form"]

Cells = Sequence[object]

_SAFE_INTEGER = (1 << 53) - 1


class Kind(Enum):
    """What a column holds; each may be unknown."""

    NUMBER = "number"
    """A whole number of 64 bits, signed."""
    FLAG = "flag"
    """0 or 1."""
    TEXT = "text"
    """Addresses, handles and statuses are text as well: 0x…"""


@dataclass(frozen=True, slots=True)
class Named:
    """A column of a table."""

    name: str
    kind: Kind


class TableForm(Protocol):
    """A table being written; a context manager that ends the file, but does not close what it was given."""

    def write(self, rows: Sequence[Cells]) -> None:
        """Append rows in the order of the columns. Raises OSError, StoreError."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class _Csv:
    """As the pages give it: a head, lines that end in CR LF, unknown as nothing, formulas made inert, flags as 0 and 1."""

    def __init__(self, columns: Sequence[Named], file: IO[bytes]) -> None:
        self._text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
        self._writer = csv.writer(self._text, lineterminator="\r\n")
        self._writer.writerow([column.name for column in columns])
        self._is_text = [column.kind is Kind.TEXT for column in columns]

    def write(self, rows: Sequence[Cells]) -> None:
        is_text = self._is_text
        # 2 µs a row of 30 columns
        self._writer.writerows(
            [inert_cell(str(cell)) if text and cell is not None else cell for cell, text in zip(row, is_text, strict=True)] for row in rows
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._text.detach()  # flushes; the file stays open


class _JsonLines:
    """An object a line, as the JSON of the pages: numbers that a double cannot hold are text, flags are true and false."""

    def __init__(self, columns: Sequence[Named], file: IO[bytes]) -> None:
        self._file = file
        self._names = [column.name for column in columns]
        self._convert: list[Callable[[Any], object] | None] = [_JSON[column.kind] for column in columns]  # Any: a cell
        self._encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

    def write(self, rows: Sequence[Cells]) -> None:
        lines = []
        for row in rows:  # 10 µs a row of 30 columns
            cells = [cell if convert is None or cell is None else convert(cell) for cell, convert in zip(row, self._convert, strict=True)]
            lines.append(self._encode(dict(zip(self._names, cells, strict=True))))
        if lines:
            self._file.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """A line ends with its row; there is nothing to end."""


def _exact(number: int) -> object:
    return number if -_SAFE_INTEGER <= number <= _SAFE_INTEGER else str(number)


_JSON: dict[Kind, Callable[[Any], object] | None] = {Kind.NUMBER: _exact, Kind.FLAG: bool, Kind.TEXT: None}  # Any: a cell


class _Parquet:
    """Columns of int64, bool and string, in groups of the rows that are written at once, compressed with zstd."""

    def __init__(self, columns: Sequence[Named], file: IO[bytes]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._arrow = pa
        types = {Kind.NUMBER: pa.int64(), Kind.FLAG: pa.bool_(), Kind.TEXT: pa.string()}
        self._kinds = [column.kind for column in columns]
        self._schema = pa.schema([(column.name, types[column.kind]) for column in columns])
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, rows: Sequence[Cells]) -> None:
        if not rows:
            return
        arrays = []
        for cells, kind, field in zip(zip(*rows, strict=True), self._kinds, self._schema, strict=True):
            values = [None if cell is None else bool(cell) for cell in cells] if kind is Kind.FLAG else list(cells)
            try:
                arrays.append(self._arrow.array(values, field.type))
            except (self._arrow.ArrowInvalid, self._arrow.ArrowTypeError, OverflowError) as error:
                raise StoreError(
                    f"Column {field.name} has a value that Parquet cannot keep exactly ({error}). Nothing was exported."
                ) from error
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self._writer.close()
        else:  # the file is thrown away; without this the writer would try to end it whenever it is collected
            self._writer.is_open = False


_MAKERS: dict[str, Callable[[Sequence[Named], IO[bytes]], TableForm]] = {"csv": _Csv, "jsonl": _JsonLines, "parquet": _Parquet}

FORMS = tuple(_MAKERS)
"""What a form is called, on the command line and at the end of a file's name."""


def check_form(form: str) -> None:
    """Raises StoreError for a form whose library is not installed."""
    if form == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise StoreError(
            'Parquet needs the package pyarrow, which is not installed: pip install "sockscope[parquet]". CSV and JSON do not.'
        )


def write_form(form: str, columns: Sequence[Named], file: IO[bytes]) -> TableForm:
    """Begin a table in a form of FORMS; the caller closes the file."""
    return _MAKERS[form](columns, file)
