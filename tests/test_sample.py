"""The sample trace shows what its list of scenes says, in the views that everybody can ask."""

import re
from pathlib import Path

import pytest

from collector.sample import SCENES, Scene, write_sample
from tests.build.imported import Imported

MB = 1 << 20
SECOND = 10**9

SOCKETS = "v_sockets s join v_processes p on p.process = s.process"
OPERATIONS = "v_operations o join v_sockets s on s.socket = o.socket join v_processes p on p.process = s.process"


def test_the_sample_is_the_same_every_time_and_small(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []

    records = write_sample(tmp_path / "one.etl", lambda done, total: steps.append((done, total)))
    write_sample(tmp_path / "two.etl")

    assert (tmp_path / "one.etl").read_bytes() == (tmp_path / "two.etl").read_bytes()
    assert (tmp_path / "one.etl").stat().st_size < 4 * MB
    assert 5_000 < records < 21_000
    assert steps[0] == (0, records)
    assert steps[-1] == (records, records)


def test_nothing_is_lost_damaged_or_unknown(sample: Imported) -> None:
    assert sample.rows("select kind, severity, count from v_problems order by kind") == [
        ("free_unknown", "note", 18),
        ("sockets_without_create", "note", 1),
    ]
    others = "provider_name <> 'EventTrace' and provider_name not like 'KernelTraceControl%'"
    assert sample.rows(f"select provider_name, event_id, opcode from v_event_counts where not known and {others}") == []
    assert not sample.report.is_limited
    assert sample.rows("select substr(start_utc, 1, 19), end_ns, clock, pointer_size, processors from v_trace") == [
        ("2025-06-03T09:30:00", 60 * SECOND, "qpc", 8, 4)
    ]


def test_programs_are_known_with_their_images_and_symbol_files(sample: Imported) -> None:
    rows = sample.rows("select image, pid, start_ns, end_ns from v_processes where start_seen or end_seen order by start_ns")
    assert [(image, pid, start) for image, pid, start, _ in rows] == [
        ("portstorm.exe", 8412, 34 * SECOND),
        ("notes.exe", 8412, 52 * SECOND),
    ]
    assert 46 * SECOND < rows[0][3] < 46.1 * SECOND
    files = sample.rows("select file, pdb_name from v_modules m join v_processes p on p.process = m.process where p.image = 'ledger.exe'")
    assert ("ledger.exe", "ledger.pdb") in {(file.rsplit("\\", 1)[1], pdb) for file, pdb in files}
    assert all(pdb for _, pdb in files)


def test_every_scene_names_a_program_of_the_trace(sample: Imported) -> None:
    images = {image for (image,) in sample.rows("select image from v_processes")}
    assert {scene.program for scene in SCENES} <= images
    assert len({scene.name for scene in SCENES}) == len(SCENES)


@pytest.mark.parametrize("scene", [scene for scene in SCENES if re.fullmatch(r"[\d.]+:\d+", scene.where)], ids=lambda scene: scene.name)
def test_scenes_happen_at_their_peer_and_time(sample: Imported, scene: Scene) -> None:
    count = sample.one(
        f"select count(*) from {SOCKETS} where p.image = ?1 and s.last_ns >= ?2 and (remote = ?3 or local = ?3 or exists"
        " (select 1 from v_peers where v_peers.socket = s.socket and peer = ?3))",
        scene.program,
        int(scene.at_s * SECOND),
        scene.where,
    )
    assert count >= 1


# ---------------------------------------------------------------------------------------------------- connections


def test_sends_counted_twice_are_kept_apart(sample: Imported) -> None:
    assert sample.one("select count(*) from v_skipped where reason = 'double_count' and location = 3073") > 200
    (sent,) = sample.rows(
        f"select sum(o.bytes), s.bytes_sent from {OPERATIONS} where o.kind = 'send' and s.local = '127.0.0.1:49820' group by s.socket"
    )
    assert sent[0] == sent[1] > 0


def test_both_ends_of_the_local_connection_find_each_other(sample: Imported) -> None:
    (client,) = sample.rows("select socket, loopback_peer, bytes_sent, bytes_received from v_sockets where local = '127.0.0.1:49820'")
    (server,) = sample.rows("select socket, loopback_peer, bytes_sent, bytes_received from v_sockets where remote = '127.0.0.1:49820'")
    assert (client[0], client[1]) == (server[1], server[0])
    assert client[2:] == (server[3], server[2])


def test_connections_end_in_many_ways(sample: Imported) -> None:
    rows = sample.rows(
        'select a.reason, a.initiator, a.during, a.on_listener, coalesce(a.unread_bytes, 0), count(*) from v_aborts a where "primary"'
        " group by 1, 2, 3, 4, 5 order by 1, 5"
    )
    assert rows == [
        (2, "afd", "running", 0, 0, 1),
        (3, "afd", "running", 0, rows[1][4], 1),
        (4, "transport", "running", 0, 0, 1),
        (7, "afd", "close", 0, 0, 90),
        (7, "afd", "close", 0, 1920, 1),
        (9, "afd", "running", 1, 0, rows[5][5]),
        (15, "afd", "running", 0, 0, 1),
        (19, "afd", "running", 0, 0, 3),
    ]
    assert sample.rows(
        "select status, s.remote from v_operations o join v_sockets s on s.socket = o.socket where kind = 'connect' and outcome = 'failed'"
        " order by s.remote"
    ) == [("0xc000023d", "192.0.2.10:443"), ("0xc0000236", "192.0.2.8:443"), ("0xc00000b5", "192.0.2.9:443")]


def test_a_reset_meets_a_receive_in_flight(sample: Imported) -> None:
    (row,) = sample.rows(
        "select o.kind, o.outcome, o.status, o.posted_ns < a.t_ns and a.t_ns < o.completed_ns from v_aborts a"
        " join v_operations o on o.socket = a.socket and o.kind = 'recv' where a.reason = 4"
    )
    assert row == ("recv", "failed", "0xc000020d", 1)


def test_forgotten_sockets_stay_open(sample: Imported) -> None:
    where = "remote = '198.51.100.33:443' and end = 'open_at_end' and closed_ns is null"
    assert sample.one(f"select count(*) from v_sockets where {where}") == 26
    ended = "(select 1 from v_socket_events e where e.socket = v_sockets.socket and e.name = 'AfdDisconnect')"
    assert sample.one(f"select count(*) from v_sockets where {where} and exists {ended}") == 9
    assert sample.one("select count(*) from v_operations where outcome = 'in_flight' and kind = 'recv'") == 17


def test_the_backlog_fills_and_connections_are_refused(sample: Imported) -> None:
    listener = sample.one("select socket from v_sockets where local = '0.0.0.0:8443' and listener")
    during = "socket = ? and t_ns between 28000000000 and 32500000000"
    assert sample.one(f"select max(backlog_now) from v_listens where {during}", listener) == 7
    assert sample.one(f"select count(*) from v_aborts where {during} and on_listener and reason = 9", listener) >= 4
    assert sample.one("select backlog_asked from v_listens where socket = ? and backlog_asked is not null limit 1", listener) == 8
    accepted = sample.one("select count(*) from v_sockets where accepted_from = ? and remote is not null", listener)
    assert accepted == sample.one(
        "select count(*) from v_operations where kind = 'accept' and accepted is not null and socket = ?", listener
    )
    assert accepted > 100


def test_ports_run_out(sample: Imported) -> None:
    rows = sample.rows("select status, count(*), min(t_ns) >= 34000000000 from v_bind_failures group by status order by status")
    assert rows == [("0xc0000043", 1, 1), ("0xc0000209", 40, 1), ("0xc000020a", 3, 1)]
    open_then = "created_ns < 46000000000 and closed_ns >= 46000000000"
    assert sample.one(f"select count(*) from {SOCKETS} where p.image = 'portstorm.exe' and {open_then}") == 90


def test_the_process_id_used_again_is_another_process(sample: Imported) -> None:
    rows = sample.rows(f"select p.image, count(*) from {SOCKETS} where s.pid = 8412 group by 1 order by 1")
    assert [image for image, _ in rows] == ["notes.exe", "portstorm.exe"]
    assert rows[0][1] == 1


# ---------------------------------------------------------------------------------------------------- datagrams, slow paths


def test_datagrams_are_dropped_while_nobody_reads(sample: Imported) -> None:
    rows = sample.rows("select reason, count(*) >= 3, min(t_ns), max(t_ns) from v_drops group by reason order by reason")
    assert [row[:2] for row in rows] == [(1, 1), (2, 1)]
    assert 18 * SECOND <= rows[1][2] < rows[1][3] < 20 * SECOND
    assert sample.rows("select name, value from v_options where name = 'SO_RCVBUF'") == [("SO_RCVBUF", 8192)]
    stalled = "o.kind = 'recvfrom' and o.posted_ns between 18000200000 and 19900000000"
    assert sample.one(f"select count(*) from {OPERATIONS} where p.image = 'skyrace.exe' and {stalled}") == 0


def test_three_receives_are_too_small(sample: Imported) -> None:
    rows = sample.rows("select posted_len, bytes, outcome from v_operations where status = '0x80000005'")
    assert rows == [(256, 256, "completed")] * 3


def test_the_name_service_has_a_socket_from_before_the_trace(sample: Imported) -> None:
    (socket,) = sample.rows(f"select s.socket, s.create_seen, s.type from {SOCKETS} where p.image = 'svchost.exe'")
    assert socket[1:] == (0, "dgram")
    peers = sample.rows("select peer from v_peers where socket = ? order by peer", socket[0])
    assert peers == [("192.0.2.53:53",), ("[2001:db8::53]:53",), ("[fe80::1%7]:53",)]
    assert sample.one("select count(*) from v_operations where socket = ? and status = '0xc000020d'", socket[0]) == 1


def test_small_sends_stall(sample: Imported) -> None:
    rows = sample.rows(
        f"select o.bytes, (o.completed_ns - o.posted_ns) / 1000000 from {OPERATIONS}"
        " where s.remote = '203.0.113.11:5222' and o.kind = 'send'"
    )
    stalls = [ms for size, ms in rows if size == 28]
    assert len(stalls) == 24
    assert all(195 <= ms <= 206 for ms in stalls)
    assert all(ms == 0 for size, ms in rows if size == 4)


def test_calls_that_would_block_and_polls(sample: Imported) -> None:
    assert sample.one("select count(*) from v_operations where status = '0xc00000a3' and outcome = 'failed' and bytes = 0") > 50
    polls = sample.rows("select handles, timeout_raw, completed_ns is not null from v_polls")
    assert len(polls) > 50
    assert {row[:2] for row in polls} == {(3, -5_000_000)}
    assert sum(not completed for *_, completed in polls) <= 1


def test_requests_that_wait_show_the_kernel_and_end_anywhere(sample: Imported) -> None:
    waited = "match = 'activity' and space = 'kernel'"
    assert sample.one(f"select count(*) from v_operations where {waited}") > 300
    strangers = (
        f"select count(*) from {OPERATIONS} join v_socket_events e on e.socket = o.socket and e.t_ns = o.completed_ns"
        " where o.match = 'activity' and e.header_pid <> s.pid"
    )
    assert sample.one(strangers) > 200


def test_sends_of_registered_io_have_no_buffer(sample: Imported) -> None:
    rows = sample.rows(
        f"select o.space, o.bytes, o.outcome, o.match from {OPERATIONS} where s.remote = '192.0.2.99:4317' and o.kind = 'send'"
    )
    assert rows == [("none", 1400, "completed", "activity")] * 6
    events = {name for (name,) in sample.rows("select name from v_socket_events where name like 'AfdRio%'")}
    assert {"AfdRioCreateRqPair", "AfdRioRegisterBuffer", "AfdRioDeregisterBuffer"} <= events


# ---------------------------------------------------------------------------------------------------- buffers


def test_buffers_are_used_twice(sample: Imported) -> None:
    rows = sample.rows("select t_ns / 1000000000, pair, range, certainty, scope from v_overlaps order by t_ns, scope")
    assert rows == [
        (21, "send->recv", "partial", "certain", "cross_socket"),
        (24, "send->send", "exact", "certain", "cross_socket"),
        (24, "send->send", "contained", "certain", "cross_socket"),
        (24, "send->send", "contained", "certain", "same_socket"),
        (27, "recv->send", "contained", "certain", "same_socket"),
    ]


def test_blocks_are_freed_under_the_system(sample: Imported) -> None:
    rows = sample.rows("select kind, t_ns / 1000000000, operation_kind, reason, by_bytes, certainty from v_io_findings order by t_ns")
    assert rows == [
        ("freed_in_flight", 33, "recv", "freed", None, "certain"),
        ("reused_in_flight", 34, "recv", None, None, "certain"),
        ("overruns_block", 36, "recv", None, 512, "certain"),
        ("posted_after_free", 39, "send", "freed", None, "certain"),
        ("shrunk_in_flight", 41, "recv", None, 14_336, "certain"),
    ]


def test_buffers_lie_in_every_kind_of_memory(sample: Imported) -> None:
    classes = {name for (name,) in sample.rows("select distinct buffer_class from v_operations where buffer_class is not null")}
    assert {"heap", "heap_chained", "heap_overrun", "freed_block", "stack", "image"} <= classes


# ---------------------------------------------------------------------------------------------------- heap


def heap_of(db: Imported, image: str) -> dict[str, int]:
    return dict(db.rows("select name, value from v_heap_counters c join v_processes p on p.process = c.process where p.image = ?", image))


def test_two_call_sites_leak_and_a_third_keeps_its_list(sample: Imported) -> None:
    rows = sample.rows(
        "select size, count(*), count(distinct owner_stack), min(trust) from v_allocations a join v_processes p on p.process = a.process"
        " where p.image = 'ledger.exe' and a.end_ns is null and size in (96, 4096) group by size order by size"
    )
    assert [(size, stacks, trust) for size, _, stacks, trust in rows] == [(96, 1, "certain"), (4096, 1, "certain")]
    assert rows[0][1] > 350
    assert 25 < rows[1][1] < 35


def test_the_report_is_the_peak(sample: Imported) -> None:
    counters = heap_of(sample, "ledger.exe")
    assert 31 * SECOND < counters["peak_ns"] < 33 * SECOND
    assert counters["peak_bytes"] > 6 * MB
    live = "p.image = 'ledger.exe' and a.end_ns is null"
    held = sample.one(f"select sum(size) from v_allocations a join v_processes p on p.process = a.process where {live}")
    assert counters["bytes_allocated"] - counters["bytes_freed"] == held


def test_mistakes_with_the_heap_are_found(sample: Imported) -> None:
    rows = sample.rows(
        "select kind, count(*) from v_heap_anomalies a join v_processes p on p.process = a.process where p.image = 'ledger.exe' group by 1"
    )
    assert rows == [("double_free", 1), ("free_never_allocated", 1), ("free_unknown", 18), ("free_wrong_heap", 1)]
    assert sample.one("select count(*) from v_allocations where end_reason = 'heap_destroyed'") == 12


def test_blocks_move_when_they_grow_and_live_shortly(sample: Imported) -> None:
    assert sample.one("select count(*) from v_allocations where end_reason = 'realloc_moved' and origin = 'realloc_move'") > 40
    assert sample.one("select count(*) from v_allocations where end_ns - start_ns < 100000") > 400
    assert sample.one("select max(generation) from v_allocations") > 10


def test_a_process_of_32_bits_has_a_heap(sample: Imported) -> None:
    counters = heap_of(sample, "oldscan.exe")
    assert counters["allocs"] == counters["frees"] > 100
    (address,) = sample.rows(
        "select max(length(address)) from v_allocations a join v_processes p on p.process = a.process where p.pid = 3980"
    )
    assert address == (8,)


def test_stacks_are_found_by_their_keys(sample: Imported) -> None:
    """Each call site of the service is one stack, although a key stood for several of them."""
    assert sample.one("select count from v_event_counts where opcode = 35 and provider = 'def2fe46-7bd6-4b80-bd94-f57fe20d0ce3'") > 20
    rows = sample.rows(
        "select a.size, s.module, count(distinct a.owner_stack) from v_allocations a join v_processes p on p.process = a.process"
        " join v_stacks s on s.stack = a.owner_stack and s.frame = 4 where p.image = 'ledger.exe' and a.size in (96, 4096, 65536)"
        " and a.end_reason is not 'realloc_moved' and origin = 'alloc' group by 1, 2 order by 1"
    )
    assert [(size, module.rsplit("\\", 1)[-1]) for size, module, _ in rows] == [
        (96, "ledger.exe"),
        (4096, "ledger.exe"),
        (65536, "ledger.exe"),
    ]
    without = "owner_stack is null and p.image = 'ledger.exe'"
    assert sample.one(f"select count(*) from v_allocations a join v_processes p on p.process = a.process where {without}") == 0
