"""Process instances: one life of a process id, with what its sockets and heaps did."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, func, or_, select

from app import format as fmt
from app.filters import Conditions, Filter, parse_bytes, parse_count, parse_text, yes_no
from app.links import ProcessLink, process_link
from app.paging import Asked, Position, Sort, count_up_to, fetch
from app.queries.who import life_filters
from collector.store.tables import THIS_TRACE, TRACE

__all__ = [
    "FILTERS",
    "SORTS",
    "ModuleRow",
    "OwnerRow",
    "ProcessRow",
    "find_process",
    "modules",
    "nearest_processes",
    "owners",
    "processes_number",
    "processes_page",
    "top_processes",
]

process = TRACE.tables["process"]
_counter = TRACE.tables["heap_counter"]
_module = TRACE.tables["module"]
_owner = TRACE.tables["owner"]

MAX_MODULES = 500

_totals = TRACE.tables["process_sum"]
_peak = _counter.alias("peak")
_allocated = _counter.alias("allocated")

_sockets = func.coalesce(_totals.c.sockets, 0)
_sent = func.coalesce(_totals.c.bytes_sent, 0)
_received = func.coalesce(_totals.c.bytes_received, 0)
_errors = func.coalesce(_totals.c.errors + _totals.c.failed_binds, 0)


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One instance of a process in the list: `errors` counts failed operations and failed binds. Heap numbers are None where its heap was
    not traced."""

    process: str
    pid: int | None
    eprocess: fmt.Address | None
    image: str | None
    command_line: str | None
    parent_pid: int | None
    session: int | None
    start_ns: int | None
    first_ns: int
    end_ns: int | None
    exit_status: fmt.Status | None
    pid_source: str | None
    sockets: int
    bytes_sent: int
    bytes_received: int
    errors: int
    peak_bytes: int | None
    bytes_allocated: int | None

    @property
    def name(self) -> str:
        """How a heading names it."""
        known = self.image or (f"process object {self.eprocess}" if self.pid is None else "process")
        return known if self.pid is None else f"{known} {self.pid}"


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """An image loaded into a process."""

    file: str
    base: fmt.Address
    size_bytes: int
    loaded_ns: int | None
    unloaded_ns: int | None
    pdb_name: str | None


@dataclass(frozen=True, slots=True)
class OwnerRow:
    """A process object as the socket records name it."""

    eprocess: fmt.Address
    pid_source: str | None
    contradictions: int
    first_ns: int


FILTERS = (
    Filter(
        "name",
        parse_text,
        lambda v: process.c.image.icontains(v, autoescape=True),
        "whose image has “{}”",
        "Image",
        hint="part of the name",
    ),
    Filter("pid", parse_count, lambda v: process.c.pid == v, "with id {}", "Process id"),
    Filter(
        "command", parse_text, lambda v: process.c.command_line.icontains(v, autoescape=True), "whose command line has “{}”", "Command line"
    ),
    Filter(
        "has_sockets",
        yes_no,
        lambda v: _sockets > 0 if v else _sockets == 0,
        "{} sockets",
        "Sockets",
        show=lambda v: "with" if v else "without",
        choices=(("yes", "with"), ("no", "without")),
    ),
    Filter(
        "has_heap",
        yes_no,
        lambda v: _allocated.c.value.is_not(None) if v else _allocated.c.value.is_(None),
        "{} traced heap",
        "Heap",
        show=lambda v: "with a" if v else "without a",
        choices=(("yes", "traced"), ("no", "not traced")),
    ),
    Filter(
        "min_bytes", parse_bytes, lambda v: _sent + _received >= v, "that moved {} or more", "Bytes from", show=fmt.bytes_text, hint="1 MiB"
    ),
    Filter("min_errors", parse_count, lambda v: _errors >= v, "with {} errors or more", "Errors from"),
    Filter("min_heap", parse_bytes, lambda v: _peak.c.value >= v, "whose heap reached {}", "Heap from", show=fmt.bytes_text, hint="10 MiB"),
    *life_filters(func.coalesce(process.c.start_ns, process.c.first_ns), process.c.end_ns),
)

_MOMENT = (process.c.first_ns,)

SORTS = (
    Sort("first_ns", process.c.first_ns, is_time=True),
    Sort("image", process.c.image),
    Sort("pid", process.c.pid),
    Sort("parent_pid", process.c.parent_pid),
    Sort("end_ns", process.c.end_ns),
    Sort("sockets", _sockets, falls=True),
    Sort("bytes_sent", _sent, falls=True),
    Sort("bytes_received", _received, falls=True),
    Sort("errors", _errors, falls=True),
    Sort("peak_bytes", _peak.c.value, falls=True),
    Sort("bytes_allocated", _allocated.c.value, falls=True),
)

_COLUMNS = (
    "pid",
    "eprocess",
    "image",
    "command_line",
    "parent_pid",
    "session",
    "start_ns",
    "first_ns",
    "end_ns",
    "exit_status",
    "pid_source",
)


def _counted(alias: Any, name: str) -> Any:  # Any: an alias of the counters, a join condition
    return and_(alias.c.trace_id == THIS_TRACE, alias.c.process_n == process.c.n, alias.c.name == name)


_ROWS: Select[Any] = select(  # Any: the columns of ProcessRow
    *(process.c[name] for name in _COLUMNS),
    _sockets.label("sockets"),
    _sent.label("bytes_sent"),
    _received.label("bytes_received"),
    _errors.label("errors"),
    _peak.c.value.label("peak_bytes"),
    _allocated.c.value.label("bytes_allocated"),
).select_from(
    process.outerjoin(_totals, and_(_totals.c.trace_id == THIS_TRACE, _totals.c.process_n == process.c.n))
    .outerjoin(_peak, _counted(_peak, "peak_bytes"))
    .outerjoin(_allocated, _counted(_allocated, "bytes_allocated"))
)


def _row(row: Row[Any]) -> ProcessRow:  # Any: as above
    values = {name: value for name, value in row._mapping.items() if not name.startswith("_") and name not in ("eprocess", "exit_status")}
    return ProcessRow(
        process=process_link(row.pid, row.eprocess, row.start_ns, row.first_ns),
        eprocess=fmt.to_address(row.eprocess),
        exit_status=fmt.to_status(row.exit_status),
        **{name: value for name, value in values.items() if name != "n"},
    )


def processes_page(db: Connection, asked: Asked) -> tuple[list[ProcessRow], Position | None]:
    """One page of the processes, and where the next begins."""
    found = fetch(db, _ROWS, table=process, moment=_MOMENT, asked=asked)
    return [_row(row) for row in found.rows], found.next


def processes_number(db: Connection, where: Conditions) -> int | None:
    """How many processes there are, as `count_up_to`."""
    return count_up_to(db, _ROWS, table=process, moment=_MOMENT, where=where)


def top_processes(db: Connection, *, limit: int) -> list[ProcessRow]:
    """Those that did the most: by bytes moved by sockets, then by bytes allocated."""
    rows = _ROWS.where(process.c.trace_id == THIS_TRACE, or_(_sockets > 0, _allocated.c.value.is_not(None)))
    moved = _sent + _received
    return [_row(row) for row in db.execute(rows.order_by(moved.desc(), _allocated.c.value.desc().nulls_last(), process.c.n).limit(limit))]


def find_process(db: Connection, link: ProcessLink) -> tuple[int, ProcessRow] | None:
    """The instance whose life contains the link's time (without one the last), with its number; None when there is none."""
    is_it = process.c.pid == link.pid if link.pid is not None else process.c.eprocess == fmt.stored_address(link.eprocess or 0)
    start = func.coalesce(process.c.start_ns, process.c.first_ns)
    rows = _ROWS.add_columns(process.c.n).where(process.c.trace_id == THIS_TRACE, is_it)
    if link.ns is not None:
        rows = rows.where(
            or_(start <= link.ns, process.c.first_ns <= link.ns), or_(process.c.end_ns.is_(None), process.c.end_ns >= link.ns)
        )
    found = db.execute(rows.order_by(start.desc(), process.c.n.desc()).limit(1)).first()
    return None if found is None else (found.n, _row(found))


def nearest_processes(db: Connection, link: ProcessLink, *, limit: int = 3) -> list[ProcessRow]:
    """Instances of the same id, those nearest in time first."""
    is_it = process.c.pid == link.pid if link.pid is not None else process.c.eprocess == fmt.stored_address(link.eprocess or 0)
    rows = (
        _ROWS.where(process.c.trace_id == THIS_TRACE, is_it)
        .order_by(func.abs(process.c.first_ns - (link.ns or 0)), process.c.n)
        .limit(limit)
    )
    return [_row(row) for row in db.execute(rows)]


def modules(db: Connection, process_n: int) -> list[ModuleRow]:
    """Images of a process by address."""
    rows = db.execute(
        select(*(_module.c[name] for name in ModuleRow.__dataclass_fields__))
        .where(_module.c.trace_id == THIS_TRACE, _module.c.process_n == process_n)
        .order_by(_module.c.base, _module.c.n)
        .limit(MAX_MODULES)
    )
    return [
        ModuleRow(row.file, fmt.Address(row.base & (1 << 64) - 1), row.size_bytes, row.loaded_ns, row.unloaded_ns, row.pdb_name)
        for row in rows
    ]


def owners(db: Connection, process_n: int) -> list[OwnerRow]:
    """Process objects that the socket records name for a process, and how its id was learned."""
    rows = db.execute(
        select(_owner.c.eprocess, _owner.c.pid_source, _owner.c.contradictions, _owner.c.first_ns)
        .where(_owner.c.trace_id == THIS_TRACE, _owner.c.process_n == process_n)
        .order_by(_owner.c.n)
    )
    return [OwnerRow(fmt.Address(row.eprocess & (1 << 64) - 1), row.pid_source, row.contradictions, row.first_ns) for row in rows]
