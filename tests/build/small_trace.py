"""One small trace, filled by hand, that has a row of everything that a page can show."""

from pathlib import Path

from collector.store.engine import TraceFolder
from tests.build.database import built_database

__all__ = ["CLIENT", "HOSTILE", "KEY", "SMALL", "path_of", "small_folder"]

KEY = "0123456789ab"
HOSTILE = "<script>alert(1)</script>.exe"
CLIENT = 0xFFFF9A0C_2A001010
MS = 1_000_000
S = 1_000_000_000
AFD = "e53c6823-7bb8-44bb-90dc-3f86090d48a6"
HEAP = "222962ab-6180-4b88-a825-346b75f2a24a"
RESET, WOULD_BLOCK, OVERFLOW = 0xC000020D, 0xC00000A3, 0x80000005


def kernel(address: int) -> int:
    """A kernel address as the database holds it."""
    return address - (1 << 64)


def _count(event_id: int, name: str, number: int) -> dict[str, object]:
    return {
        "provider": AFD,
        "provider_name": "Microsoft-Windows-Winsock-AFD",
        "event_id": event_id,
        "opcode": 0,
        "version": 0,
        "header_kind": "event",
        "event_name": name,
        "count": number,
        "known": True,
        "first_ns": 0,
        "last_ns": 50 * S,
    }


_AFD_EVENTS = {
    1000: "AfdCreate", 1001: "AfdClose", 1002: "AfdCleanup", 1003: "AfdSend", 1004: "AfdReceive", 1006: "AfdReceiveFrom",
    1018: "AfdConnect",
    1024: "AfdAccept", 1030: "AfdBind", 1032: "AfdAbort", 1033: "AfdDatagramDrop", 1035: "AfdSetOption", 1037: "AfdListen",
    3001: "ConnectIndication", 3003: "DataIndication", 3006: "DisconnectIndication", 30: "SelectPollPosted",
}  # fmt: skip

SMALL: dict[str, list[dict[str, object]]] = {
    "event_count": [
        *(_count(event_id, name, 10 + event_id % 7) for event_id, name in _AFD_EVENTS.items()),
        {"provider": HEAP, "provider_name": "heap", "opcode": 0x21, "header_kind": "perfinfo", "event_name": "HeapAlloc", "count": 3,
         "known": True},
        {"provider": "11111111-2222-3333-4444-555555555555", "event_id": 7, "header_kind": "event", "count": 12, "first_ns": 0,
         "last_ns": S},
    ],
    "problem": [
        {"kind": "lost_events", "severity": "data_loss", "count": 3, "first_ns": 2 * S, "last_ns": 3 * S,
         "text": "The session lost 3 events.",
         "effect": "Operations may lack their completion.", "advice": "Record again with larger buffers."},
        {"kind": "unknown_events", "severity": "note", "count": 12, "text": "12 events are not known to this program.",
         "place": "buffer 4"},
    ],
    "process": [
        {"pid": 4242, "eprocess": kernel(0xFFFF9A0C_11223080), "image": "client.exe", "command_line": "client.exe --now", "start_ns": 0,
         "first_ns": 0,
         "start_seen": True, "pid_source": "kernel", "session": 1, "parent_pid": 700},
        {"pid": 900, "image": HOSTILE, "command_line": "=cmd|' /C calc'!A0", "first_ns": 5 * MS, "end_ns": 50 * S, "end_seen": True,
         "pid_source": "create", "exit_status": 0},
        {"eprocess": kernel(0xFFFF9A0C_99999080), "first_ns": 7 * MS},
        {"pid": 4242, "image": "later.exe", "start_ns": 55 * S, "first_ns": 55 * S, "start_seen": True, "pid_source": "kernel"},
    ],
    "owner": [
        {"eprocess": kernel(0xFFFF9A0C_11223080), "process_n": 1, "pid_source": "kernel", "contradictions": 2, "first_ns": 0},
        {"eprocess": kernel(0xFFFF9A0C_22223080), "process_n": 2, "pid_source": "create", "first_ns": 5 * MS},
    ],
    "thread": [{"process_n": 1, "tid": 11, "stack_low": 0x50_0000, "stack_high": 0x60_0000, "name": "worker"}],
    "module": [
        {"process_n": 1, "base": 0x7FF6_0000_0000, "size_bytes": 0x10000, "file": "C:\\app\\client.exe"},
        {"process_n": 1, "base": 0x7FFA_0000_0000, "size_bytes": 0x200000, "file": "C:\\Windows\\System32\\ntdll.dll", "loaded_ns": MS},
    ],
    "address": [
        {"text": "192.0.2.10:50123", "family": 2, "ip": bytes(10) + b"\xff\xff\xc0\x00\x02\x0a", "port": 50123},
        {"text": "198.51.100.7:443", "family": 2, "ip": bytes(10) + b"\xff\xff\xc6\x33\x64\x07", "port": 443},
        {"text": "[2001:db8::1]:53", "family": 23, "ip": bytes.fromhex("20010db8000000000000000000000001"), "port": 53},
        {"text": "0.0.0.0:8080", "family": 2, "ip": bytes(10) + b"\xff\xff\0\0\0\0", "port": 8080},
    ],
    "socket": [
        {"endpoint": kernel(CLIENT), "owner_n": 1, "process_n": 1, "family": 2, "type": 1, "protocol": 6, "create_seen": True,
         "created_ns": 10 * MS,
         "closed_ns": 40 * S, "destroyed_ns": 40 * S + MS, "first_ns": 10 * MS, "last_ns": 40 * S + MS, "end": "closed", "local_n": 1,
         "remote_n": 2,
         "connections": 1, "bytes_sent": 12_400_000, "bytes_received": 4096, "sends": 3, "receives": 2, "errors": 1, "last_error": RESET},
        {"endpoint": kernel(0xFFFF9A0C_2A002020), "owner_n": 2, "process_n": 2, "family": 23, "type": 2, "protocol": 17,
         "first_ns": 20 * MS,
         "last_ns": 30 * S, "end": "open_at_end", "local_n": 3, "bytes_received": 500, "receives": 2, "errors": 1, "last_error": OVERFLOW},
        {"endpoint": kernel(0xFFFF9A0C_2A003030), "owner_n": 2, "process_n": 2, "family": 2, "type": 1, "protocol": 6, "create_seen": True,
         "created_ns": 30 * MS, "first_ns": 30 * MS, "last_ns": 59 * S, "end": "open_at_end", "local_n": 4, "listener": True},
        {"endpoint": kernel(0xFFFF9A0C_2A004040), "family": 2, "type": 1, "protocol": 6, "first_ns": 40 * MS, "last_ns": 41 * MS,
         "end": "closed",
         "closed_ns": 41 * MS, "create_seen": True, "created_ns": 40 * MS},
        {"endpoint": kernel(CLIENT), "owner_n": 1, "process_n": 1, "family": 2, "type": 1, "protocol": 6, "create_seen": True,
         "created_ns": 45 * S,
         "first_ns": 45 * S, "last_ns": 46 * S, "end": "open_at_end", "remote_n": 2, "connections": 1, "loopback_peer_n": 6},
        {"endpoint": kernel(0xFFFF9A0C_2A006060), "owner_n": 2, "process_n": 2, "family": 2, "type": 1, "protocol": 6, "create_seen": True,
         "created_ns": 45 * S, "first_ns": 45 * S, "last_ns": 46 * S, "end": "open_at_end", "local_n": 4, "remote_n": 1, "connections": 1,
         "accepted_from_n": 3, "loopback_peer_n": 5},
    ],
    "peer": [{"socket_n": 2, "address_n": 3, "bytes_received": 500, "receives": 2, "dropped": 1}],
    "operation": [
        {"socket_n": 1, "kind": 0, "outcome": 0, "match": 5, "status": 0, "posted_ns": 11 * MS, "completed_ns": 31 * MS, "end_ns": 31 * MS,
         "posted_event": 1018, "completed_event": 1018, "posted_tid": 11, "posted_pid": 4242, "posted_seq": 5, "completed_seq": 9,
         "peer_n": 2},
        {"socket_n": 1, "kind": 2, "outcome": 0, "match": 3, "bytes": 1000, "status": 0, "buffer": 0x1F0000, "posted_len": 1000,
         "buffer_count": 1,
         "space": 1, "fast_path": True, "posted_ns": S, "completed_ns": 2 * S, "end_ns": 2 * S, "posted_event": 1003,
         "completed_event": 1003,
         "posted_tid": 11, "posted_pid": 4242, "completed_tid": 11, "posted_seq": 20, "completed_seq": 30, "posted_stack_ref": 1},
        {"socket_n": 1, "kind": 3, "outcome": 0, "match": 3, "bytes": 4096, "status": 0, "buffer": 0x1F0100, "posted_len": 4096,
         "buffer_count": 1,
         "space": 1, "fast_path": True, "posted_ns": S + 500 * MS, "completed_ns": 3 * S, "end_ns": 3 * S, "posted_event": 1004,
         "completed_event": 1004, "posted_tid": 12, "posted_pid": 4, "completed_tid": 12, "posted_seq": 21, "completed_seq": 31},
        {"socket_n": 1, "kind": 3, "outcome": 1, "match": 3, "status": RESET, "buffer": 0x1F0100, "posted_len": 4096, "buffer_count": 1,
         "space": 1,
         "posted_ns": 4 * S, "completed_ns": 39 * S, "end_ns": 39 * S, "posted_event": 1004, "completed_event": 1004, "posted_tid": 12,
         "posted_pid": 4242, "posted_seq": 40, "completed_seq": 60},
        {"socket_n": 1, "kind": 3, "outcome": 1, "status": WOULD_BLOCK, "posted_len": 100, "posted_ns": 4 * S, "completed_ns": 4 * S,
         "end_ns": 4 * S,
         "posted_event": 1004, "completed_event": 1004, "posted_seq": 41, "completed_seq": 42, "posted_tid": 12, "posted_pid": 4242},
        {"socket_n": 2, "kind": 5, "outcome": 1, "match": 2, "bytes": 500, "status": OVERFLOW, "buffer": kernel(0xFFFF9A0C_30000100),
         "posted_len": 500, "buffer_count": 1, "space": 2, "posted_ns": 5 * S, "completed_ns": 6 * S, "end_ns": 6 * S, "posted_event": 1006,
         "completed_event": 1006, "posted_tid": 33, "posted_pid": 900, "peer_n": 3, "posted_seq": 50, "completed_seq": 51},
        {"socket_n": 2, "kind": 5, "outcome": 8, "posted_len": 2000, "posted_ns": 7 * S, "posted_event": 1006, "posted_tid": 33,
         "posted_pid": 900,
         "posted_seq": 52},
        {"socket_n": 5, "kind": 2, "outcome": 0, "bytes": 10, "status": 0, "completed_ns": 45 * S + MS, "end_ns": 45 * S + MS,
         "completed_event": 1003,
         "completed_tid": 11, "completed_seq": 70},
    ],
    "operation_buffer": [{"operation_n": 3, "buffer_class": 3, "allocation_n": 1, "allocation_offset": 0x100}],
    "skipped": [{"socket_n": 1, "t_ns": 2 * S + MS, "kind": "send", "event": 1003, "bytes": 1000, "location": 3073,
    "reason": "double_count", "pid": 0}],
    "abort": [
        {"socket_n": 1, "t_ns": 39 * S, "event": 1032, "reason": 4, "reason_name": "transport_disconnect", "reason_certainty": "possible",
         "initiator": "transport", "during": "running", "is_primary": True, "unread_bytes": 1460, "outstanding": 1, "last_error": RESET,
         "last_traffic_ns": 3 * S, "location": 8000, "stack_ref": 2},
        {"socket_n": 3, "t_ns": 41 * S, "event": 1032, "reason": 77, "initiator": "afd", "during": "close", "on_listener": True},
    ],
    "overlap": [
        {"owner_n": 1, "first_n": 2, "second_n": 3, "t_ns": S + 500 * MS, "lo": 0x1F0100, "hi": 0x1F03E8, "pair": "send->recv",
         "range": "partial",
         "certainty": "certain", "scope": "same_socket", "severity": "high"},
    ],
    "io_finding": [
        {"kind": "freed_in_flight", "t_ns": 2 * S, "process_n": 1, "socket_n": 1, "operation_n": 3, "allocation_n": 1, "reason": "freed",
         "certainty": "certain", "free_stack_ref": 2},
    ],
    "drop": [
        {"socket_n": 2, "t_ns": 8 * S, "reason": 2, "reason_name": "no_buffer_space", "reason_certainty": "certain", "length": 1200,
         "source_n": 3,
         "receives_outstanding": 0, "receive_buffer_bytes": 65536},
    ],
    "bind_failure": [{"socket_n": 4, "t_ns": 40 * MS, "status": 0xC0000209, "requested_n": 4}],
    "listen_event": [
        {"socket_n": 3, "t_ns": 31 * MS, "what": "listen", "backlog_asked": 5},
        {"socket_n": 3, "t_ns": 45 * S, "what": "indication", "backlog_now": 4, "peer_n": 1},
        {"socket_n": 3, "t_ns": 45 * S + MS, "what": "accepted", "accepted_n": 6, "wait_ns": MS},
    ],
    "option": [{"socket_n": 2, "t_ns": 21 * MS, "option": 6, "name": "SO_RCVBUF", "value": 65536}],
    "poll": [{"owner_n": 2, "tid": 33, "posted_ns": 9 * S, "completed_ns": 10 * S, "handles": 3, "timeout_raw": -10_000_000, "error": 0}],
    "socket_event": [
        {"socket_n": 1, "owner_n": 1, "t_ns": 10 * MS, "seq": 1, "cpu": 0, "pid": 4242, "tid": 11, "event": 1000, "enter_exit": 0,
         "location": 1006,
         "status": 0, "fields": '{"family": 2}'},
        {"socket_n": 1, "owner_n": 1, "t_ns": 39 * S, "seq": 61, "cpu": 1, "pid": 0, "tid": 0, "event": 1032, "enter_exit": 3,
         "location": 8000,
         "fields": '{"reason": 4}'},
        {"socket_n": 1, "owner_n": 1, "t_ns": 40 * S, "seq": 62, "cpu": 1, "pid": 4242, "tid": 11, "event": 1002, "enter_exit": 0},
    ],
    "raw_event": [{"t_ns": 12 * S, "provider": AFD, "event_id": 9999, "opcode": 0, "version": 3, "pid": 4, "tid": 5, "place": "buffer 4",
    "why": "unknown"}],
    "heap": [{"process_n": 1, "handle": 0x1E0000, "life": 1, "first_ns": 0, "committed": 1 << 20, "reserved": 1 << 21}],
    "allocation": [
        {"process_n": 1, "heap_n": 1, "address": 0x1F0000, "generation": 1, "size": 8192, "size_at_open": 8192, "start_ns": 100 * MS,
         "first_ns": 100 * MS, "end_ns": 2 * S, "end_reason": 0, "tid": 11, "owner_stack_ref": 1, "free_stack_ref": 2, "first_seq": 15,
         "end_seq": 29},
        {"process_n": 1, "heap_n": 1, "address": 0x1F8000, "generation": 1, "size": 64, "size_at_open": 64, "start_ns": 200 * MS,
         "first_ns": 200 * MS,
         "tid": 11, "owner_stack_ref": 1, "trust": 0, "first_seq": 16},
        {"process_n": 1, "heap_n": 1, "address": 0x400000, "generation": 1, "size": 3 << 20, "size_at_open": 3 << 20, "start_ns": 300 * MS,
         "first_ns": 300 * MS, "owner_stack_ref": 2, "trust": 1, "first_seq": 17},
    ],
    "heap_counter": [
        {"process_n": 1, "name": "bytes_allocated", "value": 3_154_000},
        {"process_n": 1, "name": "peak_bytes", "value": 3_153_984},
    ],
    "stack": [{"hash": "aaaabbbbccccdddd", "depth": 2, "is_complete": True}, {"hash": "1111222233334444", "depth": 1}],
    "stack_frame": [
        {"stack_n": 1, "frame": 0, "address": 0x7FFA_0000_1000, "module": "C:\\Windows\\System32\\ntdll.dll", "offset": 0x1000},
        {"stack_n": 1, "frame": 1, "address": 0x7FF6_0000_2000, "module": "C:\\app\\client.exe", "offset": 0x2000, "symbol": "send_all"},
        {"stack_n": 2, "frame": 0, "address": 0x7FF6_0000_3000},
    ],
    "stack_ref": [{"ref": 1, "stack_n": 1}, {"ref": 2, "stack_n": 2}],
    "finding": [
        {"kind": "repeated_errors", "severity": "low", "count": 4, "title": "An error repeats", "text": "recv failed 4 times.",
         "certainty": "certain"},
        {"kind": "freed_in_flight", "severity": "high", "count": 1, "process_n": 1, "socket_n": 1, "t_ns": 2 * S,
         "title": "A buffer was freed in flight",
         "text": "client.exe freed 8,192 bytes while a receive was using them.", "certainty": "certain", "link": "in-flight-frees",
         "code": "Q11"},
    ],
}  # fmt: skip


def small_folder(root: Path) -> TraceFolder:
    """A folder with the small trace."""
    return built_database(root, SMALL, key=KEY, name="small.etl")


_OBJECTS = {
    "process": "4242@0", "socket": "0xffff9a0c2a001010@10000000", "operation": "recv:0x1f0100@1500000000", "heap": "0x1e0000@0",
    "address": "0x1f0100", "stack": "aaaabbbbccccdddd", "at": "0", "trace_key": KEY, "first_socket": "0xffff9a0c2a001010@10000000",
    "first": "send:0x1f0000@1000000000", "second_socket": "0xffff9a0c2a001010@10000000", "second": "recv:0x1f0100@1500000000",
}  # fmt: skip


def path_of(route: str) -> str:
    """The path of a page, such as `/t/{trace_key}/sockets/{socket}`, for things of the small trace. Raises KeyError for unknown parts."""
    return route.replace("{heap}:{address}", "0x1e0000:0x1f0000@100000000").format(**_OBJECTS)
