"""Sums over all sockets, made once over the finished file, so that no page has to read all of them."""

from collections.abc import Iterator

from sqlalchemy import ColumnElement, Connection, Integer, and_, case, func, select, type_coerce

from collector.model.rows import Row, Rows
from collector.store.evidence import dynamic_ports_held, failed_at_listener
from collector.store.tables import address, bind_failure, listen_event, socket

__all__ = ["socket_sums"]


def socket_sums(connection: Connection) -> Iterator[Rows]:
    """Rows of `process_sum`, `remote_sum` and `listener_sum`, of the sockets in the file."""
    yield {"process_sum": list(_by_process(connection))}
    yield {"remote_sum": list(_by_remote(connection))}
    yield {"listener_sum": list(_by_listener(connection))}


def _number(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return type_coerce(func.sum(case((condition, 1), else_=0)), Integer)


def _by_process(connection: Connection) -> Iterator[Row]:
    s, local, failed = socket.c, address.alias("local"), bind_failure.c
    binds = select(s.process_n, func.count()).join_from(bind_failure, socket, and_(s.trace_id == 1, s.n == failed.socket_n))
    failures = {row[0]: row[1] for row in connection.execute(binds.where(failed.trace_id == 1).group_by(s.process_n))}
    peaks = {row[0]: (row[1], row[2]) for row in connection.execute(dynamic_ports_held())}
    rows = connection.execute(
        select(s.process_n, func.count(), func.sum(s.bytes_sent), func.sum(s.bytes_received), func.sum(s.errors))
        .add_columns(_number(s.closed_ns.is_(None)), _number(s.create_seen.is_(False)), func.count(local.c.port.distinct()))
        .add_columns(func.min(s.first_ns), func.max(s.first_ns))
        .select_from(socket.outerjoin(local, and_(local.c.trace_id == 1, local.c.n == s.local_n)))
        .where(s.trace_id == 1)
        .group_by(s.process_n)
    )
    for n, (process, *sums) in enumerate(rows, 1):
        yield (n, process, *sums[:4], failures.get(process, 0), *sums[4:], *peaks.get(process, (0, None)))


def _by_remote(connection: Connection) -> Iterator[Row]:
    s, remote = socket.c, address.alias("remote")
    text = func.min(remote.c.text)
    rows = connection.execute(
        select(s.process_n, text, func.count(), _number(s.closed_ns.is_(None)), _number(s.closed_ns.is_not(None)))
        .add_columns(func.min(s.first_ns), func.max(s.first_ns), func.sum(s.bytes_sent), func.sum(s.bytes_received))
        .select_from(socket.join(remote, and_(remote.c.trace_id == 1, remote.c.n == s.remote_n)))
        .where(s.trace_id == 1, s.accepted_from_n.is_(None))
        .group_by(s.process_n, remote.c.ip)
        .order_by(func.count().desc(), text)
    )
    for n, row in enumerate(rows, 1):
        yield (n, *row)


def _by_listener(connection: Connection) -> Iterator[Row]:
    e = listen_event.c
    rows = connection.execute(
        select(e.socket_n, func.max(e.backlog_asked), func.max(e.backlog_now))
        .add_columns(*(_number(e.what == what) for what in ("indication", "accepted")))
        .add_columns(_number(failed_at_listener()), _number(e.what == "pause"), func.max(e.wait_ns), func.avg(e.wait_ns))
        .where(e.trace_id == 1)
        .group_by(e.socket_n)
    )
    for *sums, mean in rows:
        yield (*sums, None if mean is None else int(mean))
