"""One record in the list of all records, whatever table it is in, and what its event is called."""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from app import format as fmt
from app.links import ProcessRef
from app.recording import AFD
from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["EventRow", "event_names"]

_count = TRACE.tables["event_count"]


@dataclass(frozen=True, slots=True)
class EventRow:
    """One record. `what` says which part it plays; `operation` is a link below the socket; `fields` are the rest as JSON."""

    t_ns: int
    event_id: int | None
    name: str | None
    what: str
    socket: str | None
    process: ProcessRef | None
    operation: str | None
    bytes: int | None
    buffer: fmt.Address | None
    status: fmt.Status | None
    address: str | None
    location: int | None
    tid: int | None
    header_pid: int | None
    cpu: int | None
    fields: str | None


def event_names(db: Connection) -> dict[int, str]:
    """Names of the Winsock provider's events by id, as this trace's inventory knows them."""
    rows = db.execute(
        select(_count.c.event_id, _count.c.event_name).where(
            _count.c.trace_id == THIS_TRACE, _count.c.provider == AFD, _count.c.event_name.is_not(None)
        )
    )
    return {row.event_id: row.event_name for row in rows}
