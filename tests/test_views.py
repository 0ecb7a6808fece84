"""The SQL views: the columns that readers may rely on, words for small numbers, links, and what is put together in SQL."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from collector.store.engine import TraceFolder
from collector.store.views import CATALOG_VIEWS, TRACE_VIEWS
from tests.build.database import BUILT_KEY, built_database

# The contract with scripts and end-to-end tests: columns may be added, never renamed or removed.
CONTRACT = {
    "v_trace": "key name state start_utc end_ns clock ticks_per_second pointer_size processors os_build records events_lost "
    "buffers_lost collected_utc collector_version",
    "v_event_counts": "provider provider_name event_id opcode version header_kind count known first_ns last_ns",
    "v_problems": "kind severity count first_ns last_ns place text effect advice",
    "v_findings": "kind severity count process socket t_ns title text certainty link code",
    "v_processes": "process pid eprocess parent_pid image command_line start_ns end_ns start_seen end_seen pid_source session",
    "v_modules": "process base size file loaded_ns unloaded_ns timestamp pdb_name pdb_guid pdb_age",
    "v_sockets": "socket endpoint eprocess process pid pid_source family type protocol create_seen created_ns closed_ns "
    "destroyed_ns first_ns last_ns end local remote connections listener accepted_from loopback_peer bytes_sent "
    "bytes_received sends receives errors last_error",
    "v_peers": "socket peer bytes_sent bytes_received sends receives dropped",
    "v_operations": "socket process kind posted_ns completed_ns end_ns outcome status match bytes buffer posted_len buffer_count "
    "space fast_path posted_tid completed_tid header_pid posted_location completed_location peer accepted stack "
    "buffer_class allocation allocation_offset",
    "v_skipped": "socket t_ns kind bytes location reason",
    "v_aborts": "socket process t_ns reason reason_name reason_certainty initiator during primary on_listener unread_bytes "
    "last_error location stack",
    "v_overlaps": "process t_ns lo hi first_socket first_kind first_posted_ns second_socket second_kind second_posted_ns pair "
    "range certainty scope severity",
    "v_drops": "socket t_ns reason reason_name length source",
    "v_bind_failures": "socket t_ns status",
    "v_listens": "socket t_ns backlog_asked backlog_now what",
    "v_options": "socket t_ns option name value status",
    "v_polls": "process tid posted_ns completed_ns handles timeout_raw error",
    "v_socket_events": "socket process t_ns cpu header_pid tid event_id name fields",
    "v_heaps": "process heap life flags created_ns destroyed_ns create_seen committed reserved free_space",
    "v_allocations": "allocation process pid heap address generation size size_at_open start_ns first_ns end_ns end_reason "
    "end_inferred origin previous source_id tid free_tid owner_stack free_stack trust",
    "v_resizes": "allocation t_ns size",
    "v_heap_timeline": "process pid t_ns bytes count",
    "v_heap_counters": "process pid name value",
    "v_heap_anomalies": "process kind t_ns heap address allocation tid",
    "v_io_findings": "kind t_ns process socket operation_kind operation_posted_ns allocation reason by_bytes certainty free_stack",
    "v_stacks": "stack depth frame address module offset symbol",
    "v_transport_flows": "source protocol pid local remote first_ns last_ns sends bytes_sent receives bytes_received retransmits "
    "bytes_retransmitted timeouts rtt_us min_rtt_us max_rtt_us socket match sockets",
    "v_transport_events": "socket t_ns deed source event_id pid status state count bytes local remote",
    "v_address_names": "address name source pid first_ns last_ns answers",
    "v_catalog_changes": "t_ns what name catalog_bits installer provider entry pid",
    "v_virtual_memory": "process t_ns tid what base size_bytes flags",
    "v_notes": "key object t_ns author text created_utc",
}

KERNEL = -0x66F3_EEDD_CF80  # 0xffff990c11223080 as two's complement


def rows(folder: TraceFolder, sql: str) -> list[tuple[Any, ...]]:  # Any: cells of any type
    with closing(sqlite3.connect(folder.trace_path(BUILT_KEY))) as db:
        return db.execute(sql).fetchall()


def test_every_view_of_the_contract_has_its_columns(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {})
    for path, views in ((folder.trace_path(BUILT_KEY), TRACE_VIEWS), (folder.catalog_path, CATALOG_VIEWS)):
        with closing(sqlite3.connect(path)) as db:
            for view in views:
                columns = [d[0] for d in db.execute(f'SELECT * FROM "{view}"').description]
                assert columns[: len(CONTRACT[view].split())] == CONTRACT[view].split(), view
    assert set(TRACE_VIEWS) | set(CATALOG_VIEWS) == set(CONTRACT)


PROCESSES: list[dict[str, object]] = [
    {"n": 0, "pid": 4120, "eprocess": KERNEL, "start_ns": None, "first_ns": 50},
    {"n": 1, "pid": 4120, "eprocess": 0x8000, "start_ns": 900, "first_ns": 900},
    {"n": 2, "pid": None, "eprocess": 0x9000, "first_ns": 7},
]
OWNERS: list[dict[str, object]] = [
    {"n": 1, "eprocess": KERNEL, "process_n": 0, "pid_source": "create", "first_ns": 50},
    {"n": 2, "eprocess": KERNEL + 64, "process_n": None, "first_ns": 60},
]
SOCKETS: list[dict[str, object]] = [
    {
        "n": 1,
        "endpoint": KERNEL,
        "owner_n": 1,
        "process_n": 0,
        "family": 2,
        "type": 1,
        "protocol": 6,
        "create_seen": True,
        "created_ns": 100,
        "first_ns": 100,
        "last_ns": 500,
        "end": "closed",
        "local_n": 1,
        "remote_n": 2,
        "last_error": 0xC000020D,
        "create_stack_ref": 5,
    },
    {
        "n": 2,
        "endpoint": 0x20,
        "owner_n": 2,
        "family": 23,
        "type": 2,
        "protocol": 17,
        "first_ns": 110,
        "end": "open_at_end",
        "accepted_from_n": 1,
    },
    {
        "n": 3,
        "endpoint": 0x30,
        "owner_n": 1,
        "process_n": 0,
        "family": 17,
        "protocol": 41,
        "first_ns": 120,
        "end": "superseded",
        "loopback_peer_n": 2,
    },
]
ADDRESSES: list[dict[str, object]] = [{"text": "10.0.0.1:50000"}, {"text": "[fe80::1%7]:53"}]
STACKS: dict[str, list[dict[str, object]]] = {"stack": [{"n": 9, "hash": "abc123", "depth": 2}], "stack_ref": [{"ref": 5, "stack_n": 9}]}


def test_processes_are_named_by_pid_and_time_or_by_their_object(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {"process": PROCESSES, "owner": OWNERS})

    assert rows(folder, "SELECT process, pid, eprocess FROM v_processes ORDER BY first_ns") == [
        ("0x9000@7", None, "0x9000"),
        ("4120@50", 4120, "0xffff990c11223080"),
        ("0xffff990c112230c0@60", None, "0xffff990c112230c0"),  # an owner that nobody named
        ("4120@900", 4120, "0x8000"),
    ]


def test_sockets_have_links_words_and_addresses(tmp_path: Path) -> None:
    folder = built_database(tmp_path, {"process": PROCESSES, "owner": OWNERS, "socket": SOCKETS, "address": ADDRESSES, **STACKS})

    assert rows(
        folder,
        "SELECT socket, endpoint, eprocess, process, pid, pid_source, family, type, protocol, local, remote, accepted_from, loopback_peer, "
        "last_error, create_stack FROM v_sockets ORDER BY first_ns",
    ) == [
        (
            "0xffff990c11223080@100",
            "0xffff990c11223080",
            "0xffff990c11223080",
            "4120@50",
            4120,
            "create",
            "ipv4",
            "stream",
            "tcp",
            "10.0.0.1:50000",
            "[fe80::1%7]:53",
            None,
            None,
            "0xc000020d",
            "abc123",
        ),
        (
            "0x20@110",
            "0x20",
            "0xffff990c112230c0",
            "0xffff990c112230c0@60",
            None,
            None,
            "ipv6",
            "dgram",
            "udp",
            None,
            None,
            "0xffff990c11223080@100",
            None,
            None,
            None,
        ),
        (
            "0x30@120",
            "0x30",
            "0xffff990c11223080",
            "4120@50",
            4120,
            "create",
            "family 17",
            None,
            "protocol 41",
            None,
            None,
            None,
            "0x20@110",
            None,
            None,
        ),
    ]


def test_operations_speak_in_words_and_lead_to_their_memory(tmp_path: Path) -> None:
    operation: dict[str, object] = {
        "n": 4,
        "socket_n": 1,
        "kind": 3,
        "outcome": 0,
        "match": 2,
        "bytes": 100,
        "status": 0,
        "buffer": 0x2010,
        "posted_len": 4096,
        "buffer_count": 1,
        "space": 1,
        "fast_path": True,
        "posted_ns": 200,
        "completed_ns": 300,
        "end_ns": 300,
        "peer_n": 2,
        "posted_tid": 11,
        "posted_pid": 4,
        "completed_pid": 0,
        "posted_stack_ref": 5,
    }
    folder = built_database(
        tmp_path,
        {
            "process": PROCESSES,
            "owner": OWNERS,
            "socket": SOCKETS,
            "address": ADDRESSES,
            "operation": [operation, {"n": 5, "socket_n": 2}],
            "operation_buffer": [{"operation_n": 4, "buffer_class": 3, "allocation_n": 1, "allocation_offset": 16}],
            "heap": [{"n": 1, "handle": 0x1000}],
            "allocation": [{"n": 1, "heap_n": 1, "address": 0x2000, "start_ns": 150, "first_ns": 150}],
            **STACKS,
        },
    )

    assert rows(
        folder,
        "SELECT socket, process, kind, outcome, status, match, buffer, space, header_pid, peer, stack, buffer_class, allocation, "
        "allocation_offset FROM v_operations ORDER BY posted_ns DESC",
    ) == [
        (
            "0xffff990c11223080@100",
            "4120@50",
            "recv",
            "completed",
            "0x0",
            "thread",
            "0x2010",
            "user",
            4,
            "[fe80::1%7]:53",
            "abc123",
            "heap",
            "0x1000:0x2000@150",
            16,
        ),
        ("0x20@110", "0xffff990c112230c0@60", "connect", "completed", None, None, None, None, None, None, None, None, None, None),
    ]


def test_all_records_of_a_socket_are_one_list(tmp_path: Path) -> None:
    counts: list[dict[str, object]] = [
        {"provider": "e53c6823-7bb8-44bb-90dc-3f86090d48a6", "event_id": 1003, "event_name": "AfdSend", "header_kind": "EVENT64"}
    ]
    operations: list[dict[str, object]] = [
        {
            "socket_n": 1,
            "kind": 2,
            "outcome": 0,
            "bytes": 70,
            "buffer": 0x5000,
            "posted_len": 70,
            "posted_ns": 200,
            "completed_ns": 300,
            "status": 0,
            "posted_event": 1003,
            "completed_event": 1003,
            "posted_seq": 7,
            "completed_seq": 9,
            "posted_location": 3047,
        },
        {
            "socket_n": 1,
            "kind": 2,
            "outcome": 3,
            "status": 0xC000020D,
            "posted_ns": 310,
            "completed_ns": 310,
            "posted_event": 1003,
            "completed_event": 1003,
            "posted_seq": 10,
            "completed_seq": 10,
        },  # rejected: post and completion are one record
    ]
    skipped: list[dict[str, object]] = [
        {"socket_n": 1, "t_ns": 250, "kind": "send", "event": 1003, "bytes": 70, "reason": "double_count", "location": 3073}
    ]
    other: list[dict[str, object]] = [
        {"socket_n": 1, "owner_n": 1, "t_ns": 100, "seq": 1, "event": 1000, "enter_exit": 0, "status": 0, "fields": '{"protocol": 6}'}
    ]
    folder = built_database(
        tmp_path,
        {
            "process": PROCESSES,
            "owner": OWNERS,
            "socket": SOCKETS,
            "operation": operations,
            "skipped": skipped,
            "socket_event": other,
            "event_count": counts,
        },
    )

    found = rows(folder, "SELECT t_ns, event_id, name, fields, process FROM v_socket_events ORDER BY t_ns")
    assert [(t, event, name, json.loads(fields)) for t, event, name, fields, _ in found] == [
        (100, 1000, "event 1000", {"protocol": 6, "enter_exit": 0, "status": "0x0"}),
        (200, 1003, "AfdSend", {"kind": "send", "enter_exit": 0, "buffer": "0x5000", "buffer_length": 70, "location": 3047}),
        (250, 1003, "AfdSend", {"kind": "send", "buffer_length": 70, "location": 3073, "skipped": "double_count"}),
        (300, 1003, "AfdSend", {"kind": "send", "enter_exit": 1, "status": "0x0", "buffer": "0x5000", "buffer_length": 70}),
        (310, 1003, "AfdSend", {"kind": "send", "enter_exit": 0}),
    ]
    assert {process for *_, process in found} == {"4120@50"}


@pytest.mark.parametrize("same_record", [False, True])
def test_the_heap_timeline_has_one_row_a_record(tmp_path: Path, same_record: bool) -> None:
    """A standalone reallocation ends one block and opens another in one record; in two records there is a moment between."""
    second = 3 if same_record else 4
    blocks: list[dict[str, object]] = [
        {
            "process_n": 0,
            "heap_n": 1,
            "address": 1,
            "size": 60,
            "size_at_open": 40,
            "first_ns": 10,
            "first_seq": 1,
            "end_ns": 30,
            "end_seq": 3,
        },
        {"process_n": 0, "heap_n": 1, "address": 2, "size": 5, "size_at_open": 5, "first_ns": 30, "first_seq": second},
        {"process_n": 1, "heap_n": 1, "address": 3, "size": 0, "size_at_open": 0, "first_ns": 40, "first_seq": 5},
    ]
    folder = built_database(
        tmp_path,
        {
            "process": PROCESSES,
            "heap": [{"n": 1, "handle": 0x1000}],
            "allocation": blocks,
            "resize": [{"allocation_n": 1, "t_ns": 20, "seq": 2, "size": 60, "old_size": 40}],
        },
    )

    timeline = rows(folder, "SELECT t_ns, bytes, count FROM v_heap_timeline WHERE process = '4120@50' ORDER BY seq")
    between = [] if same_record else [(30, 0, 0)]
    assert timeline == [(10, 40, 1), (20, 60, 1), *between, (30, 5, 1)]
    assert rows(folder, "SELECT process, t_ns, bytes, count FROM v_heap_timeline WHERE process = '4120@900'") == [("4120@900", 40, 0, 1)]


def test_allocations_name_their_end_origin_and_forerunner(tmp_path: Path) -> None:
    blocks: list[dict[str, object]] = [
        {
            "process_n": 0,
            "heap_n": 1,
            "address": 0x10,
            "start_ns": 5,
            "first_ns": 5,
            "end_ns": 9,
            "end_reason": 1,
            "end_seq": 3,
            "origin": 0,
        },
        {
            "process_n": 0,
            "heap_n": 1,
            "address": 0x20,
            "start_ns": None,
            "first_ns": 9,
            "origin": 3,
            "previous_n": 1,
            "trust": 1,
            "owner_stack_ref": 5,
        },
    ]
    folder = built_database(tmp_path, {"process": PROCESSES, "heap": [{"n": 1, "handle": 0x1000}], "allocation": blocks, **STACKS})

    assert rows(
        folder, "SELECT allocation, heap, end_reason, origin, previous, owner_stack, trust FROM v_allocations ORDER BY first_ns"
    ) == [
        ("0x1000:0x10@5", "0x1000", "realloc_moved", "alloc", None, None, None),
        ("0x1000:0x20@9", "0x1000", None, "adopted", "0x1000:0x10@5", "abc123", "possible"),
    ]


def test_aborts_overlaps_and_listens_point_at_their_sockets(tmp_path: Path) -> None:
    operations: list[dict[str, object]] = [
        {"n": 1, "socket_n": 1, "kind": 2, "posted_ns": 10},
        {"n": 2, "socket_n": 3, "kind": 3, "posted_ns": 20},
    ]
    folder = built_database(
        tmp_path,
        {
            "process": PROCESSES,
            "owner": OWNERS,
            "socket": SOCKETS,
            "address": ADDRESSES,
            "operation": operations,
            "abort": [{"socket_n": 1, "t_ns": 90, "reason": 4, "initiator": "transport", "is_primary": True}],
            "overlap": [{"owner_n": 1, "first_n": 1, "second_n": 2, "t_ns": 20, "lo": 0x1000, "hi": 0x1010, "pair": "send->recv"}],
            "drop": [{"socket_n": 2, "t_ns": 1, "reason": 2, "source_n": 2}],
            "bind_failure": [{"socket_n": None, "t_ns": 2, "status": 0xC0000209}],
            "listen_event": [{"socket_n": 1, "t_ns": 3, "what": "accepted", "accepted_n": 2, "peer_n": 2}],
            "poll": [{"owner_n": 2, "tid": 4, "posted_ns": 1}],
        },
    )

    assert rows(folder, 'SELECT socket, process, "primary", on_listener, unread_bytes FROM v_aborts') == [
        ("0xffff990c11223080@100", "4120@50", 1, 0, None)
    ]
    assert rows(folder, "SELECT process, lo, hi, first_socket, first_kind, second_socket, second_kind FROM v_overlaps") == [
        ("4120@50", "0x1000", "0x1010", "0xffff990c11223080@100", "send", "0x30@120", "recv")
    ]
    assert rows(folder, "SELECT socket, source FROM v_drops") == [("0x20@110", "[fe80::1%7]:53")]
    assert rows(folder, "SELECT socket, status FROM v_bind_failures") == [(None, "0xc0000209")]
    assert rows(folder, "SELECT what, accepted, peer FROM v_listens") == [("accepted", "0x20@110", "[fe80::1%7]:53")]
    assert rows(folder, "SELECT process FROM v_polls") == [("0xffff990c112230c0@60",)]
