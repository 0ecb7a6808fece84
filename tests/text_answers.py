"""What a text of a trace must answer as the trace does, and a small trace to write as one."""

import contextlib
from pathlib import Path

from hypothesis import strategies as st

from collector.errors import TraceError
from collector.packages import traces_in
from collector.pipeline import import_trace
from collector.store.engine import TraceFolder
from tests.build import Trace, afd, heap, system
from tests.build.imported import Imported

__all__ = ["SAME", "a_trace", "answers", "answers_damage", "collected"]

SAME = {
    "v_sockets": "socket, process, family, type, created_ns, closed_ns, destroyed_ns, end, local, remote, bytes_sent, bytes_received, "
    "sends, receives, errors, last_error",
    "v_operations": "socket, process, kind, posted_ns, completed_ns, end_ns, outcome, status, match, bytes, buffer, posted_len, "
    "buffer_count, posted_tid, completed_tid, header_pid, posted_location, completed_location, peer, buffer_class, "
    "allocation, allocation_offset",
    "v_aborts": "socket, process, t_ns, reason, initiator, during, unread_bytes",
    "v_overlaps": "process, t_ns, lo, hi, first_socket, first_posted_ns, second_socket, second_posted_ns, certainty, severity",
    "v_drops": "socket, t_ns, reason, length",
    "v_processes": "process, pid, parent_pid, image, command_line, start_ns, end_ns",
    "v_io_findings": "kind, t_ns, process, socket, operation_kind, allocation, certainty",
    "v_allocations": "allocation, process, heap, address, size, start_ns, end_ns, end_reason",
}  # fmt: skip


def collected(path: Path, folder: Path) -> Imported:
    """Collect the only trace that a file is or has."""
    traces = TraceFolder(folder / "database")
    (source,) = list(traces_in(path))
    with source:
        report = import_trace(source, traces)
    return Imported(traces.trace_path(report.key), traces, report)


def answers(found: Imported) -> dict[str, list[str]]:
    return {view: sorted(map(repr, found.rows(f"SELECT {columns} FROM {view}"))) for view, columns in SAME.items()}


def answers_damage(path: Path, content: bytes, data: st.DataObject) -> None:
    """Write a text to a path with some of its bytes drawn anew, and see that it is a trace of records then, or refused in words."""
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(damaged)
    with contextlib.suppress(TraceError):
        report = collected(path, path.parent).report
        assert report.counts["records"] >= 1


def a_trace(pointer_size: int = 8) -> Trace:
    return Trace(pointer_size=pointer_size).cpu(
        0,
        system.process_start(at_us=1),
        afd.opened(at_us=10),
        afd.connected(at_us=50),
        afd.sent(at_us=100, length_bytes=512, duration_us=240),
        heap.alloc(at_us=400),
    )
