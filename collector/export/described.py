"""What the views and their columns hold, in words: from the comments of the tables behind them, and here for what no table has."""

from collector.store.tables import TRACE
from collector.store.views import CATALOG_VIEWS, TRACE_VIEWS

__all__ = ["column_words", "table_words"]

_BEHIND = {
    "bind_failures": "bind_failure", "listens": "listen_event", "processes": "process", "stacks": "stack_frame",
    "heap_anomalies": "heap_anomaly", "heap_timeline": "", "socket_events": "socket_event", "transport_flows": "transport_flow",
    "virtual_memory": "virtual_memory",
}  # fmt: skip
"""The table behind a view, where it is not the name without its last letter."""

_TABLES = {
    "operations": "What was asked of sockets: sends, receives, connects, accepts and others, from posted to completed.",
    "sockets": "The life of each socket.",
    "allocations": "The life of each heap block.",
    "overlaps": "Buffers that were handed to a second operation while a first still used them.",
    "processes": "The processes; also process objects of which nobody knows whose they are.",
    "stacks": "Call stacks, one row a frame; the innermost is frame 0.",
    "heap_timeline": "Live bytes and blocks of each process, one row a change.",
    "socket_events": "Every record of the socket provider, in one list.",
    "notes": "What people wrote about this trace.",
}

_MOMENT = "ns since the trace began"
_COLUMNS = {
    "socket": "the socket: address of its endpoint and the moment when it was created or first seen",
    "accepted": "the socket that an accept made",
    "accepted_from": "the listening socket that accepted it",
    "loopback_peer": "the other end, where that is in the trace as well",
    "first_socket": "socket of the operation that had the buffer first",
    "second_socket": "socket of the operation that was handed it as well",
    "process": "the process: its id and the moment when it began or was first seen",
    "allocation": "the heap block: heap, address and the moment when it began or was first seen",
    "previous": "the block that it was before a reallocation",
    "allocation_offset": "bytes from the beginning of the heap block to the buffer",
    "stack": "the call stack, by the hash of its frames",
    "create_stack": "calls that created it", "close_stack": "calls that closed it", "owner_stack": "calls that allocated it",
    "free_stack": "calls that released it",
    "endpoint": "address of the kernel's object behind the socket", "eprocess": "address of the kernel's process object",
    "family": "address family", "type": "stream, datagram, …", "protocol": "TCP, UDP, …",
    "create_seen": "1 where its creation is in the trace", "listener": "1 where it listens",
    "registered_io": "1 where it uses registered I/O",
    "local": "its own address and port", "remote": "address and port of the other end", "peer": "address and port of the other end",
    "connections": "how often it was connected", "sends": "sends that were completed", "receives": "receives that were completed",
    "bytes_sent": "bytes that completed sends say", "bytes_received": "bytes that completed receives say",
    "errors": "operations that failed or were rejected", "last_error": "NTSTATUS of the last of these",
    "create_tid": "thread that created it", "close_tid": "thread that closed it",
    "kind": "what it is", "outcome": "how it ended; in_flight: not before the trace did", "status": "NTSTATUS",
    "match": "how its two records were found to belong together", "bytes": "bytes", "buffer": "address of its buffer",
    "posted_len": "bytes of its buffer", "buffer_count": "number of its buffers", "space": "whose address that is: user or kernel",
    "fast_path": "1 where it was completed at once, without a request", "posted_tid": "thread that posted it",
    "completed_tid": "thread in which it completed", "header_pid": "process id in the record's header; need not be the owner's",
    "posted_location": "place in the driver, by its number", "completed_location": "place in the driver, by its number",
    "location": "place in the driver, by its number", "posted_event": "id of its first record", "completed_event": "id of its last record",
    "posted_cpu": "processor of its first record", "completed_cpu": "processor of its last record",
    "completed_pid": "process id in the header of its last record", "buffer_class": "what memory its buffer was in",
    "lo": "first address of the shared bytes", "hi": "address behind the shared bytes", "first_kind": "what the first operation was",
    "second_kind": "what the second operation was", "first_posted_ns": f"when the first operation was posted; {_MOMENT}",
    "second_posted_ns": f"when the second operation was posted; {_MOMENT}", "pair": "what the two did with the buffer",
    "range": "how the two ranges lie to each other", "scope": "of one socket, one process or several",
    "certainty": "certain or possible", "severity": "how much it matters",
    "pid": "process id", "tid": "thread id", "free_tid": "thread that released it", "heap": "the heap's handle", "address": "address",
    "generation": "how many blocks were at this address before", "size": "bytes", "size_at_open": "bytes when it began",
    "end_reason": "what ended it", "end_inferred": "1 where its end is concluded from another record", "origin": "what it began as",
    "trust": "certain, or possible where records were lost", "image": "name of its program", "command_line": "its command line",
    "parent_pid": "process id of its parent", "start_seen": "1 where its start is in the trace", "end_seen": "1 where its end is",
    "exit_status": "what it ended with", "pointer_size": "bytes of an address: 4 or 8",
    "pid_source": "how the process is known", "session": "terminal session", "name": "name", "count": "how many", "text": "in words",
    "file": "path", "base": "address where it is loaded", "module": "file of the code", "symbol": "function, where symbol files named it",
    "offset": "bytes from the module's base", "frame": "0 is the innermost", "depth": "number of frames",
    "is_complete": "1 where no frame lacks",
    "fields": "JSON", "event_id": "id of the record", "cpu": "processor", "value": "value", "reason": "number of the reason",
    "seq": "place in the order of all records", "operation_posted_ns": f"when the operation was posted; {_MOMENT}",
    "operation_kind": "what the operation was", "source_id": "allocator that reported it",
}  # fmt: skip


def table_words(view: str) -> str:
    """What a view holds; `view` without its `v_`."""
    behind = TRACE.tables.get(_behind(view))
    return _TABLES.get(view) or (behind.comment if behind is not None and behind.comment else "")


def column_words(view: str, column: str) -> str:
    """What a column of a view holds; empty where its name says it."""
    assert f"v_{view}" in TRACE_VIEWS or f"v_{view}" in CATALOG_VIEWS
    behind = TRACE.tables.get(_behind(view))
    comment = behind.c[column].comment if behind is not None and column in behind.c else None
    if comment and not comment.startswith("words."):  # those are numbers in the table; the view has the words
        return comment.replace("ns since time 0", _MOMENT)
    return _COLUMNS.get(column) or (_MOMENT if column.endswith("_ns") else "")


def _behind(view: str) -> str:
    return _BEHIND.get(view, view.removesuffix("s"))
