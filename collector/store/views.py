"""The SQL views of a trace file and of the catalog: what people, scripts and end-to-end tests read.

Columns may be added, never renamed or given another meaning. Addresses, handles and statuses are `0x…` text, links are the natural
keys of the pages, unknown is NULL.
"""

# ruff: noqa: S608 - every part of this SQL is written in this file or in a table of words

from collections.abc import Mapping

from sqlalchemy import Connection

from collector import words
from collector.store.dialects import hex_text, json_object

__all__ = ["CATALOG_VIEWS", "TRACE_VIEWS", "create_catalog_views", "create_views", "drop_views"]

AFD = "e53c6823-7bb8-44bb-90dc-3f86090d48a6"


def _word(column: str, vocabulary: tuple[str, ...] | Mapping[int, str], otherwise: str) -> str:
    """SQL for the word behind a small number; a number without a word is shown with its noun."""
    pairs = vocabulary.items() if isinstance(vocabulary, Mapping) else enumerate(vocabulary)
    cases = " ".join(f"WHEN {number} THEN '{word}'" for number, word in pairs)
    return f"CASE {column} {cases} ELSE '{otherwise} ' || {column} END"


def _one(table: str, alias: str, number: str) -> str:
    """A join to the one row of a table that a number names, if any."""
    return f"LEFT JOIN {table} {alias} ON {alias}.trace_id = t.trace_id AND {alias}.n = {number}"


def _process(alias: str) -> str:
    """SQL for the link of a row of `process`."""
    since = f"coalesce({alias}.start_ns, {alias}.first_ns)"
    return (
        f"CASE WHEN {alias}.pid IS NOT NULL THEN printf('%d@%d', {alias}.pid, {since}) "
        f"WHEN {alias}.eprocess IS NOT NULL THEN printf('0x%x@%d', {alias}.eprocess, {since}) END"
    )


def _owner(process: str, owner: str) -> str:
    """SQL for the link of a process, or of the process object while nobody knows whose it is."""
    return (
        f"coalesce({_process(process)}, CASE WHEN {owner}.eprocess IS NOT NULL "
        f"THEN printf('0x%x@%d', {owner}.eprocess, {owner}.first_ns) END)"
    )


def _socket(alias: str) -> str:
    """SQL for the link of a row of `socket`."""
    since = f"coalesce({alias}.created_ns, {alias}.first_ns)"
    return f"CASE WHEN {alias}.endpoint IS NOT NULL THEN printf('0x%x@%d', {alias}.endpoint, {since}) END"


def _allocation(allocation: str, heap: str) -> str:
    """SQL for the link of a row of `allocation`."""
    since = f"coalesce({allocation}.start_ns, {allocation}.first_ns)"
    return f"CASE WHEN {allocation}.address IS NOT NULL THEN printf('0x%x:0x%x@%d', {heap}.handle, {allocation}.address, {since}) END"


def _stack(ref: str) -> str:
    """SQL for the hash of the stack behind a reference."""
    return (
        "(SELECT k.hash FROM stack_ref r JOIN stack k ON k.trace_id = r.trace_id AND k.n = r.stack_n "
        f"WHERE r.trace_id = t.trace_id AND r.ref = {ref})"
    )


def _event_name(event: str) -> str:
    """SQL for the name of a socket event; the trace's own inventory knows it."""
    return (
        f"coalesce((SELECT c.event_name FROM event_count c WHERE c.trace_id = t.trace_id AND c.provider = '{AFD}' "
        f"AND c.event_id = {event} AND c.event_name IS NOT NULL LIMIT 1), 'event ' || {event})"
    )


_KIND = _word("t.kind", words.OPERATION_KINDS, "kind")

_SOCKET = _one("socket", "s", "t.socket_n")
_PROCESS = _one("process", "p", "t.process_n")
_HEAP = _one("heap", "h", "m.heap_n")
_OWNED = f"{_SOCKET} {_one('process', 'p', 's.process_n')} {_one('owner', 'o', 's.owner_n')}"
_PEER = _one("address", "a", "t.peer_n")

_POSTED = json_object(
    kind=_KIND,
    enter_exit="CASE WHEN t.posted_event >= 1000 THEN 0 END",
    buffer=hex_text("t.buffer"),
    buffer_length="t.posted_len",
    buffer_count="t.buffer_count",
    location="t.posted_location",
    address="a.text",
    activity=hex_text("nullif(t.activity, 0)"),
)
_COMPLETED = json_object(
    kind=_KIND,
    enter_exit="CASE WHEN t.completed_event >= 1000 THEN 1 END",
    status=hex_text("t.status"),
    buffer=hex_text("coalesce(t.completed_buffer, t.buffer)"),
    buffer_length="coalesce(t.completed_len, t.bytes)",
    location="t.completed_location",
    address="a.text",
    activity=hex_text("nullif(t.activity, 0)"),
)
_SKIPPED = json_object(
    kind="t.kind",
    buffer=hex_text("t.buffer"),
    buffer_length="t.bytes",
    status=hex_text("t.status"),
    location="t.location",
    skipped="t.reason",
)
_COMMON = json_object(enter_exit="t.enter_exit", location="t.location", status=hex_text("t.status"), address="a.text")
_OTHER = f"json_patch(coalesce(t.fields, '{{}}'), {_COMMON})"

_SOCKET_EVENTS = f"""
SELECT {_socket("s")} AS socket, {_owner("p", "o")} AS process, t.posted_ns AS t_ns, t.posted_cpu AS cpu,
       t.posted_pid AS header_pid, t.posted_tid AS tid, t.posted_event AS event_id, {_event_name("t.posted_event")} AS name,
       {_POSTED} AS fields, t.posted_seq AS seq
FROM operation t {_OWNED} {_PEER} WHERE t.posted_event IS NOT NULL
UNION ALL
SELECT {_socket("s")}, {_owner("p", "o")}, t.completed_ns, t.completed_cpu, t.completed_pid, t.completed_tid, t.completed_event,
       {_event_name("t.completed_event")}, {_COMPLETED}, t.completed_seq
FROM operation t {_OWNED} {_PEER} WHERE t.completed_event IS NOT NULL AND t.completed_seq IS NOT t.posted_seq
UNION ALL
SELECT {_socket("s")}, {_owner("p", "o")}, t.t_ns, t.cpu, t.pid, t.tid, t.event, {_event_name("t.event")}, {_SKIPPED}, NULL
FROM skipped t {_OWNED}
UNION ALL
SELECT {_socket("s")}, {_owner("p", "o")}, t.t_ns, t.cpu, t.pid, t.tid, t.event, {_event_name("t.event")}, {_OTHER}, t.seq
FROM socket_event t {_SOCKET} {_one("owner", "o", "coalesce(t.owner_n, s.owner_n)")}
     {_one("process", "p", "coalesce(s.process_n, o.process_n)")} {_one("address", "a", "t.address_n")}
"""

# A record changes live bytes and count at most once, however many blocks it touches (a destroyed heap, a moved block).
_HEAP_TIMELINE = f"""
WITH change(trace_id, process_n, seq, t_ns, bytes, count) AS (
       SELECT trace_id, process_n, first_seq, first_ns, size_at_open, 1 FROM allocation
       UNION ALL
       SELECT trace_id, process_n, end_seq, end_ns, -size, -1 FROM allocation WHERE end_seq IS NOT NULL
       UNION ALL
       SELECT r.trace_id, a.process_n, r.seq, r.t_ns, r.size - r.old_size, 0
       FROM resize r JOIN allocation a ON a.trace_id = r.trace_id AND a.n = r.allocation_n),
     step AS (
       SELECT trace_id, process_n, seq, max(t_ns) AS t_ns, sum(bytes) AS bytes, sum(count) AS count
       FROM change GROUP BY trace_id, process_n, seq HAVING sum(bytes) <> 0 OR sum(count) <> 0),
     live AS (
       SELECT trace_id, process_n, seq, t_ns, sum(bytes) OVER past AS bytes, sum(count) OVER past AS count
       FROM step WINDOW past AS (PARTITION BY trace_id, process_n ORDER BY seq))
SELECT {_process("p")} AS process, p.pid, t.t_ns, t.bytes, t.count, t.seq FROM live t {_PROCESS}
"""

TRACE_VIEWS: dict[str, str] = {
    "v_trace": """
SELECT t.key, t.name, t.state, t.start_utc, t.end_ns, t.clock, t.ticks_per_second, t.pointer_size, t.processors, t.os_build, t.records,
       t.events_lost, t.buffers_lost, t.collected_utc, t.collector_version
FROM trace t
""",
    "v_event_counts": """
SELECT t.provider, t.provider_name, t.event_id, t.opcode, t.version, t.header_kind, t.count, t.known, t.first_ns, t.last_ns,
       t.event_name, t.damaged
FROM event_count t
""",
    "v_problems": """
SELECT t.kind, t.severity, t.count, t.first_ns, t.last_ns, t.place, t.text, t.effect, t.advice FROM problem t
""",
    "v_findings": f"""
SELECT t.kind, t.severity, t.count, {_process("p")} AS process, {_socket("s")} AS socket, t.t_ns, t.title, t.text, t.certainty, t.link,
       t.code
FROM finding t {_PROCESS} {_SOCKET}
""",
    "v_processes": f"""
SELECT {_process("t")} AS process, t.pid, {hex_text("t.eprocess")} AS eprocess, t.parent_pid, t.image, t.command_line, t.start_ns, t.end_ns,
       t.start_seen, t.end_seen, t.pid_source, t.session, t.first_ns, t.exit_status, t.pointer_size
FROM process t
UNION ALL
SELECT {_owner("p", "t")}, NULL, {hex_text("t.eprocess")}, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, t.first_ns, NULL, NULL
FROM owner t {_PROCESS} WHERE t.process_n IS NULL
""",
    "v_modules": f"""
SELECT {_process("p")} AS process, {hex_text("t.base")} AS base, t.size_bytes AS size, t.file, t.loaded_ns, t.unloaded_ns, t.timestamp,
       t.pdb_name, t.pdb_guid, t.pdb_age
FROM module t {_PROCESS}
""",
    "v_sockets": f"""
SELECT {_socket("t")} AS socket, {hex_text("t.endpoint")} AS endpoint, {hex_text("coalesce(o.eprocess, p.eprocess)")} AS eprocess,
       {_owner("p", "o")} AS process, p.pid, o.pid_source, {_word("t.family", words.FAMILIES, "family")} AS family,
       {_word("t.type", words.SOCKET_TYPES, "type")} AS type, {_word("t.protocol", words.PROTOCOLS, "protocol")} AS protocol, t.create_seen,
       t.created_ns, t.closed_ns, t.destroyed_ns, t.first_ns, t.last_ns, t."end", l.text AS local, r.text AS remote, t.connections,
       t.listener, {_socket("f")} AS accepted_from, {_socket("b")} AS loopback_peer, t.bytes_sent, t.bytes_received, t.sends, t.receives,
       t.errors, {hex_text("t.last_error")} AS last_error, t.bytes_indicated, t.type_inferred, t.registered_io, t.create_tid, t.close_tid,
       {_stack("t.create_stack_ref")} AS create_stack, {_stack("t.close_stack_ref")} AS close_stack, t.accept_inferred
FROM socket t {_PROCESS} {_one("owner", "o", "t.owner_n")} {_one("address", "l", "t.local_n")} {_one("address", "r", "t.remote_n")}
     {_one("socket", "f", "t.accepted_from_n")} {_one("socket", "b", "t.loopback_peer_n")}
""",
    "v_peers": f"""
SELECT {_socket("s")} AS socket, a.text AS peer, t.bytes_sent, t.bytes_received, t.sends, t.receives, t.dropped
FROM peer t {_SOCKET} {_one("address", "a", "t.address_n")}
""",
    "v_operations": f"""
SELECT {_socket("s")} AS socket, {_owner("p", "o")} AS process, {_KIND} AS kind, t.posted_ns, t.completed_ns, t.end_ns,
       {_word("t.outcome", words.OUTCOMES, "outcome")} AS outcome, {hex_text("t.status")} AS status,
       {_word("t.match", words.MATCHES, "match")} AS match, t.bytes, {hex_text("t.buffer")} AS buffer, t.posted_len, t.buffer_count,
       {_word("t.space", words.SPACES, "space")} AS space, t.fast_path, t.posted_tid, t.completed_tid,
       coalesce(t.posted_pid, t.completed_pid) AS header_pid, t.posted_location, t.completed_location, a.text AS peer,
       {_socket("c")} AS accepted, {_stack("coalesce(t.posted_stack_ref, t.completed_stack_ref)")} AS stack,
       {_word("u.buffer_class", words.BUFFER_CLASSES, "class")} AS buffer_class, {_allocation("m", "h")} AS allocation,
       u.allocation_offset, t.posted_event, t.completed_event, t.posted_cpu, t.completed_cpu, t.completed_pid, t.buffer_inferred,
       t.completed_len
FROM operation t {_OWNED} {_PEER} {_one("socket", "c", "t.accepted_n")}
     LEFT JOIN operation_buffer u ON u.trace_id = t.trace_id AND u.operation_n = t.n
     {_one("allocation", "m", "u.allocation_n")} {_HEAP}
""",
    "v_skipped": f"""
SELECT {_socket("s")} AS socket, t.t_ns, t.kind, t.bytes, t.location, t.reason FROM skipped t {_SOCKET}
""",
    "v_aborts": f"""
SELECT {_socket("s")} AS socket, {_owner("p", "o")} AS process, t.t_ns, t.reason, t.reason_name, t.reason_certainty, t.initiator, t.during,
       t.is_primary AS "primary", t.on_listener, t.unread_bytes, {hex_text("t.last_error")} AS last_error, t.location,
       {_stack("t.stack_ref")} AS stack, t.outstanding, t.event AS event_id, t.last_disconnect_ns, t.last_traffic_ns
FROM abort t {_OWNED}
""",
    "v_overlaps": f"""
SELECT {_owner("p", "o")} AS process, t.t_ns, {hex_text("t.lo")} AS lo, {hex_text("t.hi")} AS hi, {_socket("s1")} AS first_socket,
       {_word("f.kind", words.OPERATION_KINDS, "kind")} AS first_kind, f.posted_ns AS first_posted_ns, {_socket("s2")} AS second_socket,
       {_word("g.kind", words.OPERATION_KINDS, "kind")} AS second_kind, g.posted_ns AS second_posted_ns, t.pair, t.range, t.certainty,
       t.scope, t.severity
FROM overlap t {_one("operation", "f", "t.first_n")} {_one("operation", "g", "t.second_n")} {_one("socket", "s1", "f.socket_n")}
     {_one("socket", "s2", "g.socket_n")} {_one("owner", "o", "t.owner_n")} {_one("process", "p", "coalesce(o.process_n, s1.process_n)")}
""",
    "v_drops": f"""
SELECT {_socket("s")} AS socket, t.t_ns, t.reason, t.reason_name, t.length, a.text AS source, t.reason_certainty, t.receives_outstanding,
       t.receive_buffer_bytes
FROM "drop" t {_SOCKET} {_one("address", "a", "t.source_n")}
""",
    "v_bind_failures": f"""
SELECT {_socket("s")} AS socket, t.t_ns, {hex_text("t.status")} AS status, a.text AS requested
FROM bind_failure t {_SOCKET} {_one("address", "a", "t.requested_n")}
""",
    "v_listens": f"""
SELECT {_socket("s")} AS socket, t.t_ns, t.backlog_asked, t.backlog_now, t.what, a.text AS peer, {_socket("c")} AS accepted,
       {hex_text("t.status")} AS status, t.wait_ns
FROM listen_event t {_SOCKET} {_PEER} {_one("socket", "c", "t.accepted_n")}
""",
    "v_options": f"""
SELECT {_socket("s")} AS socket, t.t_ns, t.option, t.name, t.value, {hex_text("t.status")} AS status FROM option t {_SOCKET}
""",
    "v_polls": f"""
SELECT {_owner("p", "o")} AS process, t.tid, t.posted_ns, t.completed_ns, t.handles, t.timeout_raw, {hex_text("t.error")} AS error
FROM poll t {_one("owner", "o", "t.owner_n")} {_one("process", "p", "o.process_n")}
""",
    "v_socket_events": _SOCKET_EVENTS,
    "v_heaps": f"""
SELECT {_process("p")} AS process, {hex_text("t.handle")} AS heap, t.life, {hex_text("t.flags")} AS flags, t.created_ns, t.destroyed_ns,
       t.create_seen, t.committed, t.reserved, t.free_space, t.first_ns, t.allocated
FROM heap t {_PROCESS}
""",
    "v_allocations": f"""
SELECT {_allocation("t", "h")} AS allocation, {_process("p")} AS process, p.pid, {hex_text("h.handle")} AS heap,
       {hex_text("t.address")} AS address, t.generation, t.size, t.size_at_open, t.start_ns, t.first_ns, t.end_ns,
       {_word("t.end_reason", words.END_REASONS, "reason")} AS end_reason, t.end_inferred,
       {_word("t.origin", words.ORIGINS, "origin")} AS origin, {_allocation("v", "w")} AS previous, t.source_id, t.tid, t.free_tid,
       {_stack("t.owner_stack_ref")} AS owner_stack, {_stack("t.free_stack_ref")} AS free_stack,
       {_word("t.trust", words.CERTAINTIES, "trust")} AS trust
FROM allocation t {_PROCESS} {_one("heap", "h", "t.heap_n")} {_one("allocation", "v", "t.previous_n")} {_one("heap", "w", "v.heap_n")}
""",
    "v_resizes": f"""
SELECT {_allocation("m", "h")} AS allocation, t.t_ns, t.size, t.old_size
FROM resize t {_one("allocation", "m", "t.allocation_n")} {_HEAP}
""",
    "v_heap_timeline": _HEAP_TIMELINE,
    "v_heap_counters": f"""
SELECT {_process("p")} AS process, p.pid, t.name, t.value FROM heap_counter t {_PROCESS}
""",
    "v_heap_anomalies": f"""
SELECT {_process("p")} AS process, t.kind, t.t_ns, {hex_text("t.heap")} AS heap, {hex_text("t.address")} AS address,
       {_allocation("m", "h")} AS allocation, t.tid, {_stack("t.stack_ref")} AS stack
FROM heap_anomaly t {_PROCESS} {_one("allocation", "m", "t.allocation_n")} {_HEAP}
""",
    "v_io_findings": f"""
SELECT t.kind, t.t_ns, {_process("p")} AS process, {_socket("s")} AS socket, {_word("q.kind", words.OPERATION_KINDS, "kind")}
       AS operation_kind, q.posted_ns AS operation_posted_ns, {_allocation("m", "h")} AS allocation, t.reason, t.by_bytes, t.certainty,
       {_stack("t.free_stack_ref")} AS free_stack
FROM io_finding t {_PROCESS} {_SOCKET} {_one("operation", "q", "t.operation_n")} {_one("allocation", "m", "t.allocation_n")} {_HEAP}
""",
    "v_stacks": f"""
SELECT k.hash AS stack, k.depth, t.frame, {hex_text("t.address")} AS address, t.module, t.offset, t.symbol, k.is_complete
FROM stack_frame t JOIN stack k ON k.trace_id = t.trace_id AND k.n = t.stack_n
""",
    "v_transport_flows": f"""
SELECT {_word("t.source", words.TRANSPORT_SOURCES, "source")} AS source, CASE t.protocol WHEN 6 THEN 'tcp' ELSE 'udp' END AS protocol,
       t.pid, t.local, t.remote, t.first_ns, t.last_ns, t.sends, t.bytes_sent, t.receives, t.bytes_received, t.retransmits,
       t.bytes_retransmitted, t.timeouts, t.rtt_us, t.min_rtt_us, t.max_rtt_us, {_socket("s")} AS socket, t.match, t.sockets
FROM transport_flow t {_SOCKET}
""",
    "v_transport_events": f"""
SELECT {_socket("s")} AS socket, t.t_ns, {_word("t.deed", words.TRANSPORT_DEEDS, "deed")} AS deed,
       {_word("f.source", words.TRANSPORT_SOURCES, "source")} AS source, t.event AS event_id, t.pid, {hex_text("t.status")} AS status,
       t.state, t.count, t.bytes, f.local, f.remote
FROM transport_event t JOIN transport_flow f ON f.trace_id = t.trace_id AND f.n = t.flow_n
     LEFT JOIN socket s ON s.trace_id = t.trace_id AND s.n = coalesce(t.socket_n, f.socket_n)
""",
    "v_address_names": "SELECT address, name, source, pid, first_ns, last_ns, answers FROM address_name",
    "v_catalog_changes": "SELECT t_ns, what, name, catalog_bits, installer, provider, entry, pid FROM catalog_change",
    "v_virtual_memory": f"""
SELECT {_process("p")} AS process, t.t_ns, t.tid, CASE WHEN t.is_free THEN 'free' ELSE 'alloc' END AS what,
       {hex_text("t.base")} AS base, t.size_bytes, {hex_text("t.flags")} AS flags
FROM virtual_memory t {_PROCESS}
""",
}
"""Name → SELECT, for a trace file."""

CATALOG_VIEWS = {"v_notes": "SELECT key, object, t_ns, author, text, created_utc FROM note"}


def create_views(connection: Connection) -> None:
    """Create all views of a trace file."""
    _create(connection, TRACE_VIEWS)


def create_catalog_views(connection: Connection) -> None:
    """Create all views of the catalog."""
    _create(connection, CATALOG_VIEWS)


def drop_views(connection: Connection) -> None:
    """Drop every view: a migration changes tables beneath them, and the current ones are created afterwards."""
    for name in connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'view'").scalars().all():
        connection.exec_driver_sql(f'DROP VIEW "{name}"')


def _create(connection: Connection, views: Mapping[str, str]) -> None:
    for name, select in views.items():
        connection.exec_driver_sql(f"CREATE VIEW {name} AS {select.strip()}")
