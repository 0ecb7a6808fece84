"""All rules that turn the model of a trace into findings."""

from collections.abc import Callable, Iterator

from sqlalchemy import Connection

from collector.model import findings_datagrams, findings_endings, findings_memory, findings_ports, findings_sockets, findings_stalls
from collector.model.finding import About, Finding, worst_first

__all__ = ["RULES", "Finding", "findings"]

RULES: tuple[Callable[[About], Iterator[Finding]], ...] = (
    findings_memory.buffer_overlaps,
    findings_memory.frees_in_flight,
    findings_memory.buffers_deregistered,
    findings_memory.heap_errors,
    findings_memory.held_growth,
    findings_endings.aborted,
    findings_endings.unread_at_close,
    findings_endings.closed_in_flight,
    findings_endings.connects_failed,
    findings_endings.stale_connections,
    findings_sockets.unclosed,
    findings_sockets.half_closed,
    findings_sockets.never_completed,
    findings_ports.ports_exhausted,
    findings_ports.ports_taken,
    findings_ports.listener_overrun,
    findings_stalls.small_write_stalls,
    findings_sockets.repeated_errors,
    findings_datagrams.datagrams_dropped,
    findings_datagrams.datagram_resets,
    findings_datagrams.receives_too_small,
)


def findings(connection: Connection, *, end_ns: int, has_losses: bool) -> list[Finding]:
    """What the programs of a trace did that is worth a look, worst first.

    The file must have its indexes: some rules look at single sockets. `has_losses` says that records were lost, so that nothing which
    rests on an absent record is certain.
    """
    about = About(connection, end_ns=end_ns, has_losses=has_losses)
    return worst_first(finding for rule in RULES for finding in rule(about))
