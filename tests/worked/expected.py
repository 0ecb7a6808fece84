"""Rows that a worked trace must lead to, in the spelling of the SQL views."""

from collections.abc import Sequence

from tests.build.imported import Imported

__all__ = [
    "Row",
    "frames_of",
    "live_by_stack",
    "ns",
    "operation",
    "operations",
    "overlap",
    "overlaps",
    "socket",
    "socket_link",
    "sockets",
]

Row = tuple[object, ...]
NS = 1000
"""Nanoseconds of a microsecond."""


def ns(us: float | None) -> int | None:
    return None if us is None else round(us * NS)


def hexed(number: int | None) -> str | None:
    return None if number is None else f"{number:#x}"


def socket_link(endpoint: int, first_us: float) -> str:
    return f"{endpoint:#x}@{ns(first_us)}"


# ---------------------------------------------------------------------------------------------------- sockets


def socket(
    endpoint: int,
    process: int,
    pid: int | None,
    *,
    kind: str = "stream",
    created_us: float | None = None,
    closed_us: float | None = None,
    destroyed_us: float | None = None,
    end: str = "open_at_end",
    local: str | None = None,
    remote: str | None = None,
    connections: int = 0,
    sent: int = 0,
    received: int = 0,
) -> Row:
    times = (ns(created_us), ns(closed_us), ns(destroyed_us))
    return (
        hexed(endpoint),
        hexed(process),
        pid,
        kind,
        int(created_us is not None),
        *times,
        end,
        local,
        remote,
        connections,
        sent,
        received,
    )


def sockets(db: Imported) -> list[Row]:
    """All sockets in order of their first record."""
    return db.rows(
        "select endpoint, eprocess, pid, type, create_seen, created_ns, closed_ns, destroyed_ns, end, local, remote, connections,"
        " bytes_sent, bytes_received from v_sockets order by first_ns, endpoint"
    )


def operation(
    link: str,
    kind: str,
    posted_us: float | None,
    completed_us: float | None,
    *,
    outcome: str = "completed",
    status: int | None = 0,
    match: str | None = "buffer",
    size: int | None = 0,
    buffer: int | None = None,
    length: int | None = None,
    space: str | None = None,
) -> Row:
    return (link, kind, ns(posted_us), ns(completed_us), outcome, hexed(status), match, size, hexed(buffer), length, space)


def operations(db: Imported) -> list[Row]:
    """All operations in order of their first record."""
    return db.rows(
        "select socket, kind, posted_ns, completed_ns, outcome, status, match, bytes, buffer, posted_len, space from v_operations"
        " order by coalesce(posted_ns, completed_ns)"
    )


def overlap(
    first_us: float,
    second_us: float,
    lo: int,
    hi: int,
    pair: str,
    extent: str,
    certainty: str,
    scope: str = "same_socket",
    severity: str = "high",
) -> Row:
    return (ns(second_us), hexed(lo), hexed(hi), ns(first_us), ns(second_us), pair, extent, certainty, scope, severity)


def overlaps(db: Imported) -> list[Row]:
    return db.rows(
        "select t_ns, lo, hi, first_posted_ns, second_posted_ns, pair, range, certainty, scope, severity from v_overlaps"
        " order by first_posted_ns, second_posted_ns"
    )


# ---------------------------------------------------------------------------------------------------- heap


def frames_of(db: Imported, stack: str | None) -> tuple[int, ...] | None:
    """Addresses of a stack, innermost first."""
    if stack is None:
        return None
    return tuple(int(address, 16) for (address,) in db.rows("select address from v_stacks where stack = ? order by frame", stack))


def live_by_stack(db: Imported, at_ns: int) -> dict[tuple[int, ...] | None, int]:
    """Bytes that live right after a moment, by the stack that owns them at the end of their lives."""
    rows = db.rows(
        "select owner_stack, sum(coalesce((select size from v_resizes r where r.allocation = a.allocation and t_ns <= :at"
        " order by t_ns desc limit 1), size_at_open)) from v_allocations a"
        " where coalesce(start_ns, first_ns) <= :at and (end_ns is null or end_ns > :at) group by owner_stack".replace(":at", str(at_ns))
    )
    return {frames_of(db, stack): size for stack, size in rows}


def as_rows(rows: Sequence[Sequence[object]]) -> list[Row]:
    return [tuple(row) for row in rows]
