"""Groups of operations that belong to one socket each: what the socket, its process and its peer are called."""

from typing import Any

from sqlalchemy import FromClause, Select, Subquery, and_, select

from app.queries.who import process_columns, process_table, socket_columns, socket_table
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["MOST_SOCKETS", "SMALL_BYTES", "with_names", "with_references"]

SMALL_BYTES = 1_460
"""A send of at most one segment."""
MOST_SOCKETS = 500
"""How many sockets are looked at, those with the most sends."""


def with_names(groups: Subquery) -> Select[Any]:  # Any: the columns of the groups, and two texts
    """The groups of `socket_n` with the name of their process and the text of their peer, by which they can be ordered."""
    s, p, remote = socket_table("named_socket"), process_table("named_process"), TRACE.tables["address"].alias("named_remote")
    return select(groups, p.c.image.label("process"), remote.c.text.label("remote")).select_from(
        groups.outerjoin(s, and_(s.c.trace_id == THIS_TRACE, s.c.n == groups.c.socket_n))
        .outerjoin(p, and_(p.c.trace_id == THIS_TRACE, p.c.n == s.c.process_n))
        .outerjoin(remote, and_(remote.c.trace_id == THIS_TRACE, remote.c.n == s.c.remote_n))
    )


def with_references(chosen: Subquery, s: FromClause, p: FromClause) -> Select[Any]:  # Any: as above
    """The groups of a page with what `socket_ref` and `process_ref` read."""
    return select(chosen, *socket_columns(s), *process_columns(p)).select_from(
        chosen.join(s, and_(s.c.trace_id == THIS_TRACE, s.c.n == chosen.c.socket_n)).outerjoin(
            p, and_(p.c.trace_id == THIS_TRACE, p.c.n == s.c.process_n)
        )
    )
