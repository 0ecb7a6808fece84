"""Everything of note in a trace near one moment: aborts, failures, drops, freed memory, unloaded modules, ended processes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, FromClause, and_, select
from sqlalchemy.sql.elements import ColumnElement

from app import format as fmt
from app.links import ProcessRef, operation_link
from app.queries.resolution import LONG_NS
from app.queries.who import process_columns, process_ref, process_table, socket_columns, socket_ref, socket_table
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import OPERATION_KINDS, OUTCOMES, word_at

__all__ = ["KINDS", "MAX_OF_A_KIND", "AroundRow", "around"]

_abort = TRACE.tables["abort"]
_operation = TRACE.tables["operation"]
_drop = TRACE.tables["drop"]
_finding = TRACE.tables["io_finding"]
_overlap = TRACE.tables["overlap"]
_bind = TRACE.tables["bind_failure"]
_module = TRACE.tables["module"]

MAX_OF_A_KIND = 200
"""Rows of one kind; more are left out, the earliest shown."""

KINDS = ("abort", "error", "bind failure", "drop", "freed in flight", "overlap", "module unloaded", "process started", "process ended")

_WOULD_BLOCK = 0xC00000A3
_FAILED = [OUTCOMES.index(word) for word in ("failed", "rejected")]


@dataclass(frozen=True, slots=True)
class AroundRow:
    """Something that happened. `link` is the path below /t/KEY/ of the object that it happened to."""

    t_ns: int
    kind: str
    text: str
    process: ProcessRef | None
    socket: str | None
    link: str | None


def around(db: Connection, from_ns: int, to_ns: int) -> list[AroundRow]:
    """What happened in [from_ns, to_ns], in time order; of each kind at most MAX_OF_A_KIND."""
    found: list[AroundRow] = []
    for read in (_aborts, _errors, _binds, _drops, _frees, _overlaps, _unloads, _starts, _ends):
        found += read(db, from_ns, to_ns)
    return sorted(found, key=lambda row: (row.t_ns, KINDS.index(row.kind)))


def _of_sockets(
    db: Connection,
    table: FromClause,
    moment: ColumnElement[int],
    columns: Sequence[ColumnElement[Any]],
    conditions: Sequence[ColumnElement[bool]],
    row_of: Callable[[Any, ProcessRef | None, str | None], AroundRow],  # Any: a row of the columns
) -> list[AroundRow]:
    """Rows of a table that names sockets, with their sockets and processes."""
    s, p = socket_table(), process_table()
    rows: Any = db.execute(
        select(moment.label("t_ns"), *columns, *socket_columns(s), *process_columns(p))
        .select_from(
            table.outerjoin(s, and_(s.c.trace_id == THIS_TRACE, s.c.n == table.c.socket_n)).outerjoin(
                p, and_(p.c.trace_id == THIS_TRACE, p.c.n == s.c.process_n)
            )
        )
        .where(table.c.trace_id == THIS_TRACE, *conditions)
        .order_by(moment, table.c.n)
        .limit(MAX_OF_A_KIND)
    )
    return [row_of(row, process_ref(row), socket_ref(row)) for row in rows]


def _within(column: ColumnElement[int], from_ns: int, to_ns: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return column >= from_ns, column <= to_ns


def _at_socket(kind: str, text_of: Callable[[Any], str]) -> Callable[[Any, ProcessRef | None, str | None], AroundRow]:  # Any: a row
    """Rows whose object is the socket."""

    def row_of(row: Any, process: ProcessRef | None, socket: str | None) -> AroundRow:  # Any: as above
        return AroundRow(row.t_ns, kind, text_of(row), process, socket, f"sockets/{socket}" if socket else None)

    return row_of


def _aborts(db: Connection, from_ns: int, to_ns: int) -> list[AroundRow]:
    a = _abort.c

    def text(row: Any) -> str:  # Any: the columns below
        side = "by the transport" if row.initiator == "transport" else "by this machine"
        return f"connection aborted {side}, reason {row.reason}" + (f": {fmt.words(row.reason_name)}" if row.reason_name else "")

    columns = (a.reason, a.reason_name, a.initiator)
    return _of_sockets(db, _abort, a.t_ns, columns, _within(a.t_ns, from_ns, to_ns), _at_socket("abort", text))


def _errors(db: Connection, from_ns: int, to_ns: int) -> list[AroundRow]:
    o = _operation.c

    def row_of(row: Any, process: ProcessRef | None, socket: str | None) -> AroundRow:  # Any: the columns below
        kind = word_at(OPERATION_KINDS, row.kind) or ""
        link = f"sockets/{socket}/{operation_link(kind, row.buffer, row.posted_ns, row.completed_ns)}" if socket else None
        return AroundRow(row.t_ns, "error", f"{kind} failed: {fmt.status(row.status)}", process, socket, link)

    # By the post, which has an index: a failure long after its post is left to the list of failures.
    conditions = (
        *_within(o.posted_ns, from_ns - LONG_NS, to_ns),
        *_within(o.completed_ns, from_ns, to_ns),
        o.outcome.in_(_FAILED),
        o.status != _WOULD_BLOCK,
    )
    columns = (o.kind, o.status, o.buffer, o.posted_ns, o.completed_ns)
    return _of_sockets(db, _operation, o.completed_ns, columns, conditions, row_of)


def _binds(db: Connection, from_ns: int, to_ns: int) -> list[AroundRow]:
    b = _bind.c
    text = _at_socket("bind failure", lambda row: f"bind failed: {fmt.status(row.status)}")
    return _of_sockets(db, _bind, b.t_ns, (b.status,), _within(b.t_ns, from_ns, to_ns), text)


def _drops(db: Connection, from_ns: int, to_ns: int) -> list[AroundRow]:
    d = _drop.c

    def text(row: Any) -> str:  # Any: the columns below
        why = fmt.words(row.reason_name) if row.reason_name else f"reason {row.reason}"
        return f"datagram of {fmt.bytes_text(row.length)} dropped: {why}"

    return _of_sockets(db, _drop, d.t_ns, (d.reason, d.reason_name, d.length), _within(d.t_ns, from_ns, to_ns), _at_socket("drop", text))


def _frees(db: Connection, from_ns: int, to_ns: int) -> list[AroundRow]:
    f, o = _finding.c, _operation
    s, p = socket_table(), process_table()
    rows: Any = db.execute(
        select(f.t_ns, f.kind.label("what"), o.c.kind, o.c.buffer, o.c.posted_ns, o.c.completed_ns, *socket_columns(s), *process_columns(p))
        .select_from(
            _finding.join(o, and_(o.c.trace_id == THIS_TRACE, o.c.n == f.operation_n))
            .outerjoin(s, and_(s.c.trace_id == THIS_TRACE, s.c.n == f.socket_n))
            .outerjoin(p, and_(p.c.trace_id == THIS_TRACE, p.c.n == f.process_n))
        )
        .where(f.trace_id == THIS_TRACE, *_within(f.t_ns, from_ns, to_ns))
        .order_by(f.t_ns, f.n)
        .limit(MAX_OF_A_KIND)
    )
    found = []
    for row in rows:
        kind, socket = word_at(OPERATION_KINDS, row.kind) or "", socket_ref(row)
        link = f"in-flight-frees/{socket}/{operation_link(kind, row.buffer, row.posted_ns, row.completed_ns)}" if socket else None
        found.append(AroundRow(row.t_ns, "freed in flight", f"memory of a {kind}: {fmt.words(row.what)}", process_ref(row), socket, link))
    return found


def _overlaps(db: Connection, from_ns: int, to_ns: int) -> list[AroundRow]:
    v, first, second = _overlap.c, _operation.alias("first"), _operation.alias("second")
    s1, s2, p = socket_table("s1"), socket_table("s2"), process_table()
    rows: Any = db.execute(
        select(
            v.t_ns,
            v.lo,
            v.hi,
            *(
                c.label(f"{c.table.name}_{c.name}")
                for o in (first, second)
                for c in (o.c.kind, o.c.buffer, o.c.posted_ns, o.c.completed_ns)
            ),
            *socket_columns(s1, "s1"),
            *socket_columns(s2, "s2"),
            *process_columns(p),
        )
        .select_from(
            _overlap.join(first, and_(first.c.trace_id == THIS_TRACE, first.c.n == v.first_n))
            .join(second, and_(second.c.trace_id == THIS_TRACE, second.c.n == v.second_n))
            .join(s1, and_(s1.c.trace_id == THIS_TRACE, s1.c.n == first.c.socket_n))
            .join(s2, and_(s2.c.trace_id == THIS_TRACE, s2.c.n == second.c.socket_n))
            .outerjoin(p, and_(p.c.trace_id == THIS_TRACE, p.c.n == s1.c.process_n))
        )
        .where(v.trace_id == THIS_TRACE, *_within(v.t_ns, from_ns, to_ns))
        .order_by(v.t_ns, v.n)
        .limit(MAX_OF_A_KIND)
    )
    found = []
    for row in rows:
        values = row._mapping
        links, kinds = [], []
        for name, socket in (("first", socket_ref(row, "s1")), ("second", socket_ref(row, "s2"))):
            kinds.append(word_at(OPERATION_KINDS, values[f"{name}_kind"]) or "")
            buffer, posted, completed = (values[f"{name}_{column}"] for column in ("buffer", "posted_ns", "completed_ns"))
            links.append(f"{socket}/{operation_link(kinds[-1], buffer, posted, completed)}")
        text = f"a {kinds[1]} shares {fmt.bytes_text(row.hi - row.lo)} with a {kinds[0]} in flight"
        found.append(AroundRow(row.t_ns, "overlap", text, process_ref(row), socket_ref(row, "s2"), f"overlaps/{'/'.join(links)}"))
    return found


def _unloads(db: Connection, from_ns: int, to_ns: int) -> list[AroundRow]:
    m, p = _module.c, process_table()
    rows: Any = db.execute(
        select(m.unloaded_ns, m.file, *process_columns(p))
        .select_from(_module.outerjoin(p, and_(p.c.trace_id == THIS_TRACE, p.c.n == m.process_n)))
        .where(m.trace_id == THIS_TRACE, *_within(m.unloaded_ns, from_ns, to_ns))
        .order_by(m.unloaded_ns, m.n)
        .limit(MAX_OF_A_KIND)
    )
    return [_of_process(row.unloaded_ns, "module unloaded", f"{row.file} unloaded", process_ref(row)) for row in rows]


def _of_process(t_ns: int, kind: str, text: str, process: ProcessRef | None) -> AroundRow:
    return AroundRow(t_ns, kind, text, process, None, f"processes/{process.link}" if process else None)


def _starts(db: Connection, from_ns: int, to_ns: int) -> list[AroundRow]:
    return _lives(db, "start_ns", "process started", from_ns, to_ns)


def _ends(db: Connection, from_ns: int, to_ns: int) -> list[AroundRow]:
    return _lives(db, "end_ns", "process ended", from_ns, to_ns)


def _lives(db: Connection, column: str, kind: str, from_ns: int, to_ns: int) -> list[AroundRow]:
    p = process_table()
    moment = p.c[column]
    rows: Any = db.execute(
        select(moment.label("t_ns"), *process_columns(p))
        .where(p.c.trace_id == THIS_TRACE, *_within(moment, from_ns, to_ns))
        .order_by(moment, p.c.n)
        .limit(MAX_OF_A_KIND)
    )
    return [_of_process(row.t_ns, kind, kind, process_ref(row)) for row in rows]
