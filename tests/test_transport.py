"""Connections as the network stack saw them: sums, what happened to them, and which socket each is."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from collector.model.transport_keys import KEY_BYTES, grouped
from collector.readers import ReaderKind
from collector.readers.etl import EtlReader, is_etl
from collector.words import TRANSPORT_DEEDS, TRANSPORT_SOURCES
from tests.build import Trace, afd
from tests.build.events import ENDPOINT, Event, event
from tests.build.imported import Imported, ImportTrace
from tests.build.network import LOCAL, REMOTE, TCB, kernel_tcp, kernel_udp, stack, state_change, summary
from tests.build.system import process_rundown

LOCAL_6, REMOTE_6 = "[2001:db8::5]:50001", "[2001:db8::10]:443"
RESET = 0xC000_020D
FLOW = "select source, pid, sends, bytes_sent, receives, bytes_received, retransmits, socket_n, match from transport_flow order by n"


def client(at_us: float = 10, *, endpoint: int = ENDPOINT, local: str | None = LOCAL, remote: str = REMOTE) -> list[Event]:
    """A socket that is made, bound where its own address is known, and connected; it stays open."""
    bound = [] if local is None else [afd.bind(at_us=at_us + 2, endpoint=endpoint, address=local, enter_exit=1)]
    return [
        *afd.opened(at_us=at_us, endpoint=endpoint),
        *bound,
        *afd.connected(at_us=at_us + 3, endpoint=endpoint, address=remote, duration_us=5),
    ]


def built(*events: Event | list[Event]) -> Trace:
    return Trace().cpu(0, process_rundown()).cpu(0, *events)


def deeds(db: Imported) -> list[tuple[int, str]]:
    """What happened, in time order."""
    rows = db.rows("select t_ns, deed from transport_event order by n")
    return [(t_ns, TRANSPORT_DEEDS[deed]) for t_ns, deed in rows]


# ---------------------------------------------------------------------------------------------------- sums


@pytest.mark.parametrize(("provider", "source"), [("TcpIp", 0), ("KernelNetworkTcp", 2)])
@pytest.mark.parametrize(("local", "remote"), [(LOCAL, REMOTE), (LOCAL_6, REMOTE_6)])
def test_data_of_a_connection_is_summed_and_what_lasts_is_kept(
    import_trace: ImportTrace, provider: str, source: int, local: str, remote: str
) -> None:
    def logged(what: str, at_us: float, size: int = 0) -> Event:
        return kernel_tcp(what, at_us=at_us, size=size, local=local, remote=remote, provider=provider)

    db = import_trace(
        built(
            client(local=local, remote=remote),
            logged("Connect", 15),
            [logged("Send", 20 + i, 100 + i) for i in range(3)],
            logged("Receive", 30, 7),
            logged("Copy", 31, 7),
            logged("Retransmit", 40, 102),
            logged("Disconnect", 50),
        )
    )

    assert db.rows(FLOW) == [(source, 4120, 3, 303, 1, 7, 1, 1, "exact")]
    assert deeds(db) == [(15_000, "connect"), (40_000, "retransmit"), (50_000, "disconnect")]
    assert db.rows("select event, bytes from transport_event where deed = 3") == [(30 if local == LOCAL_6 else 14, 102)]
    assert db.rows("select first_ns, last_ns, sockets from transport_flow") == [(15_000, 50_000, 1)]


def test_both_ends_of_a_local_connection_are_two(import_trace: ImportTrace) -> None:
    here, there = "127.0.0.1:50001", "127.0.0.1:8080"
    db = import_trace(
        built(
            kernel_tcp("Send", at_us=10, local=here, remote=there, size=5),
            kernel_tcp("Receive", at_us=11, local=there, remote=here, size=5),
        )
    )

    assert db.rows("select local_port, remote_port, bytes_sent, bytes_received from transport_flow order by n") == [
        (50_001, 8080, 5, 0),
        (8080, 50_001, 0, 5),
    ]


def test_datagrams_are_summed_by_their_local_end(import_trace: ImportTrace) -> None:
    own, group = "10.0.0.5:5353", "224.0.0.251:5353"
    db = import_trace(
        built(
            afd.opened(at_us=1, socket_type=2),
            afd.bind(at_us=3, address="0.0.0.0:5353", enter_exit=1, is_datagram=True),
            kernel_udp("Send", at_us=10, source=own, destination="192.0.2.1:53", size=30),
            kernel_udp("Send", at_us=11, source=own, destination="192.0.2.2:53", size=40),
            kernel_udp("Receive", at_us=12, source="192.0.2.9:5353", destination=group, size=50),
        )
    )

    assert db.rows(FLOW) == [
        (1, 4120, 2, 70, 0, 0, 0, 1, "inferred"),
        (1, 4120, 0, 0, 1, 50, 0, 1, "inferred"),
    ]


def test_what_the_stack_counts_at_the_end_of_a_connection(import_trace: ImportTrace) -> None:
    db = import_trace(
        built(
            client(),
            summary(
                at_us=90, data_bytes_out=5_000, data_segments_out=4, data_bytes_in=10, data_segments_in=1, bytes_retrans=1_460, timeouts=2,
                rtt_us=23_000, min_rtt_us=20_000, max_rtt_us=91_000,
            ),
        )
    )  # fmt: skip

    assert db.rows(FLOW) == [(3, None, 4, 5_000, 1, 10, 0, 1, "exact")]
    assert db.rows("select bytes_retransmitted, timeouts, rtt_us, min_rtt_us, max_rtt_us from transport_flow") == [
        (1_460, 2, 23_000, 20_000, 91_000)
    ]
    assert deeds(db) == [(90_000, "summary")]


def test_a_round_trip_time_that_was_never_measured_is_unknown(import_trace: ImportTrace) -> None:
    db = import_trace(built(summary(at_us=90)))
    assert db.rows("select rtt_us, min_rtt_us, max_rtt_us, bytes_retransmitted from transport_flow") == [(None, None, None, 0)]


# ---------------------------------------------------------------------------------------------------- what happened


def test_resets_retransmits_and_timeouts_of_the_stack(import_trace: ImportTrace) -> None:
    db = import_trace(
        built(
            client(),
            stack("TcpRequestConnect", at_us=13, new_state=2),
            stack("TcpConnectTcbComplete", at_us=14, process_id=4120),
            stack("TcpDataTransferRestransmit", at_us=30, new_state=4, rexmit_count=1),
            stack("TcpDataTransferRestransmit", at_us=40, new_state=4, rexmit_count=2),
            stack("TcpConnectionTerminatedRcvdRst", at_us=50, new_state=0),
            stack("TcpAbortTcbRequest", at_us=60, status=RESET, process_id=4120),
        )
    )

    assert db.rows(FLOW) == [(3, 4120, 0, 0, 0, 0, 2, 1, "exact")]
    assert deeds(db) == [
        (13_000, "connect requested"),
        (14_000, "connected"),
        (30_000, "retransmit"),
        (40_000, "retransmit"),
        (50_000, "reset received"),
        (60_000, "abort requested"),
    ]
    assert db.rows("select event, pid, status, state, count from transport_event where t_ns in (40000, 60000)") == [
        (1187, None, None, 4, 2),
        (1039, 4120, RESET, None, None),
    ]


def test_a_state_change_is_of_the_connection_that_its_object_was_last_named_for(import_trace: ImportTrace) -> None:
    other = "10.0.0.5:50002"
    db = import_trace(
        built(
            state_change(at_us=5, old=0, new=2),  # nothing has named it yet
            stack("TcpRequestConnect", at_us=10),
            state_change(at_us=11, old=2, new=4),
            stack("TcpRequestConnect", at_us=20, local=other),  # the object serves another connection now
            state_change(at_us=21, old=2, new=4),
            state_change(at_us=22, old=2, new=4, tcb=TCB + 0x1000),  # nobody has named it
        )
    )

    rows = db.rows("select e.t_ns, f.local_port, e.state from transport_event e join transport_flow f on f.n = e.flow_n where deed = 25")
    assert rows == [(11_000, 50_001, 4), (21_000, 50_002, 4)]


# ---------------------------------------------------------------------------------------------------- which socket


def test_a_socket_without_an_address_of_its_own_is_inferred_by_process_and_time(import_trace: ImportTrace) -> None:
    db = import_trace(built(client(local=None), kernel_tcp("Connect", at_us=15), kernel_tcp("Send", at_us=16, size=9)))
    assert db.rows("select socket_n, match from transport_flow") == [(1, "inferred")]


def test_two_sockets_that_fit_leave_it_unknown(import_trace: ImportTrace) -> None:
    db = import_trace(
        built(
            client(local=None),
            client(12, endpoint=ENDPOINT + 0x1000, local=None),
            kernel_tcp("Connect", at_us=25),
            kernel_tcp("Send", at_us=26),
        )
    )
    assert db.rows("select socket_n, match, sockets from transport_flow") == [(None, None, 0)]


def test_another_process_with_the_same_peer_is_another_connection(import_trace: ImportTrace) -> None:
    db = import_trace(built(client(local=None), kernel_tcp("Connect", at_us=15, pid=77)))
    assert db.rows("select socket_n from transport_flow") == [(None,)]


def test_an_accepted_socket_knows_the_listeners_address_alone(import_trace: ImportTrace) -> None:
    accepted = ENDPOINT + 0x1000
    db = import_trace(
        built(
            afd.opened(at_us=1),
            afd.bind(at_us=3, address="0.0.0.0:443", enter_exit=1),
            afd.listen(at_us=4),
            afd.listen(at_us=5, enter_exit=1),
            afd.accept_ex(at_us=20, enter_exit=1, accepted=accepted, address="203.0.113.5:61000"),
            kernel_tcp("Accept", at_us=15, local="10.0.0.5:443", remote="203.0.113.5:61000"),
            kernel_tcp("Receive", at_us=25, local="10.0.0.5:443", remote="203.0.113.5:61000", size=11),
        )
    )

    assert db.rows("select s.endpoint - ?, f.match from transport_flow f join socket s on s.n = f.socket_n", accepted - (1 << 64)) == [
        (0, "inferred")
    ]


def test_addresses_used_again_are_told_apart_by_time(import_trace: ImportTrace) -> None:
    second = ENDPOINT + 0x1000
    db = import_trace(
        built(
            client(),
            kernel_tcp("Connect", at_us=15),
            kernel_tcp("Retransmit", at_us=30, size=1),
            afd.closed(at_us=50),
            client(1_000_000, endpoint=second),
            kernel_tcp("Connect", at_us=1_000_005),
            kernel_tcp("Retransmit", at_us=1_000_030, size=2),
        )
    )

    assert db.rows("select sockets, socket_n, match, retransmits from transport_flow") == [(2, None, None, 2)]
    assert db.rows("select t_ns, socket_n from transport_event order by n") == [
        (15_000, 1),
        (30_000, 1),
        (1_000_005_000, 2),
        (1_000_030_000, 2),
    ]


def test_a_connection_long_after_a_socket_is_not_that_socket(import_trace: ImportTrace) -> None:
    db = import_trace(built(client(), afd.closed(at_us=50), kernel_tcp("Connect", at_us=900_000_000)))
    assert db.rows("select socket_n from transport_flow") == [(None,)]


def test_figures_of_sockets_do_not_change(import_trace: ImportTrace) -> None:
    plain: list[Event | list[Event]] = [client(), afd.sent(at_us=30), afd.abort(at_us=50)]
    beside: list[Event | list[Event]] = [kernel_tcp("Send", at_us=31, size=99_999), stack("TcpConnectionTerminatedRcvdRst", at_us=49)]
    asked = "select socket, process, bytes_sent, sends, errors, end from v_sockets"

    with_them, without = import_trace(built(*plain, *beside)), import_trace(built(*plain))

    assert with_them.rows(asked) == without.rows(asked)
    assert with_them.rows("select * from v_aborts") == without.rows("select * from v_aborts")


# ---------------------------------------------------------------------------------------------------- hostile


@pytest.mark.parametrize("address", [b"", b"\x02", b"\x02\x00\x01\xbb", b"\x63\x00" + bytes(14), b"\x17\x00" + bytes(10), bytes(128)])
def test_addresses_of_odd_families_and_lengths_are_no_connection(import_trace: ImportTrace, address: bytes) -> None:
    db = import_trace(built(stack("TcpDataTransferRestransmit", at_us=30, remote=address), stack("TcpRequestConnect", at_us=40)))
    assert deeds(db) == [(40_000, "connect requested")]


def test_port_0_joins_with_nothing(import_trace: ImportTrace) -> None:
    db = import_trace(
        built(
            client(local="10.0.0.5:0", remote="192.0.2.10:0"),
            kernel_tcp("Send", at_us=20, local="10.0.0.5:0", remote="192.0.2.10:0", size=3),
        )
    )
    assert db.rows("select socket_n, bytes_sent from transport_flow") == [(None, 3)]


def test_a_payload_that_is_too_short_is_counted_and_breaks_nothing(import_trace: ImportTrace) -> None:
    whole = kernel_tcp("Send", at_us=20, size=3)
    cut = Event(name="TcpIpSend", at_us=21, values=whole.values, header=whole.header, cut=30)
    db = import_trace(built(client(), whole, cut))

    assert db.rows("select bytes_sent from transport_flow") == [(3,)]
    assert db.rows("select kind, severity, count from problem where kind in ('helpers_unread', 'damaged_events')") == [
        ("helpers_unread", "note", 1)
    ]
    assert db.rows("select count(*) from raw_event") == [(0,)]


def test_a_version_whose_layout_is_not_known_is_only_counted(import_trace: ImportTrace) -> None:
    trace = built(client())
    (record,) = kernel_tcp("Send", at_us=20, size=3).records(8, trace.clock)
    db = import_trace(trace.cpu(0, replace(record, version=1)))

    assert db.rows("select count(*) from transport_flow") == [(0,)]
    assert db.rows("select known from event_count where opcode = 10 and provider like '9a280ac0%'") == [(0,)]


def test_many_connections_are_held_in_pieces_that_add_up(import_trace: ImportTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.model.transport.Transport.__init__.__defaults__", (3,), raising=False)
    trace = built(client(), [kernel_tcp("Send", at_us=20 + i, local=f"10.0.0.5:{50_001 + i % 9}", size=10) for i in range(900)])

    db = import_trace(trace)

    assert db.one("select sum(bytes_sent) from transport_flow") == 9_000
    assert db.one("select sum(bytes_sent) from transport_flow where local_port = 50001") == 1_000
    assert db.one("select count(distinct socket_n) from transport_flow where socket_n is not null") == 1


def test_the_size_of_the_windows_changes_nothing(import_trace: ImportTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = ("Connect", "Send", "Receive", "Retransmit", "Disconnect", "Accept")
    named = ("TcpRequestConnect", "TcpDataTransferRestransmit", "TcpConnectionTerminatedRcvdRst", "TcpAbortTcbRequest")
    trace = built(client())
    for i in range(3_000):
        local, at = f"10.0.0.5:{50_001 + i % 7}", 30 + 3 * i
        trace.cpu(i % 3, kernel_tcp(kernel[i % 6], at_us=at, local=local, size=i, pid=4120 + i % 2))
        trace.cpu(i % 3, stack(named[i % 4], at_us=at + 1, local=local, tcb=TCB + i % 5))
        trace.cpu(i % 3, state_change(at_us=at + 2, old=1, new=i % 9, tcb=TCB + i % 6))
        trace.cpu(i % 3, event("DnsQueryCompleted", at_us=at, query_name=f"h{i % 40}.example", query_results=f"10.0.0.{i % 30}"))
    trace.with_session(processors=3)
    views = ("v_transport_flows", "v_transport_events", "v_address_names")

    def rows(db: Imported) -> list[list[tuple[object, ...]]]:
        return [sorted(db.rows(f"select * from {view}"), key=repr) for view in views]

    whole = rows(import_trace(trace))
    monkeypatch.setattr("collector.readers.READERS", (ReaderKind(is_etl, partial(EtlReader, window_buffers=1)),))

    again = rows(import_trace(trace))
    assert [set(one) ^ set(other) for one, other in zip(again, whole, strict=True)] == [set(), set(), set()]
    assert again == whole
    assert [len(found) > 20 for found in whole] == [False, True, True]
    assert len(whole[0]) == 14


def test_keys_whose_hashes_meet_are_still_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.model.transport_keys._SPREAD", np.zeros(5, dtype=np.uint64))  # all hashes are 0
    keys = np.zeros((4, KEY_BYTES), dtype=np.uint8)
    keys[:, 3] = (1, 2, 1, 3)

    first, number = grouped(keys)

    assert first.tolist() == [0, 1, 3]
    assert number.tolist() == [0, 1, 0, 2]


def test_the_words_of_sources_are_names_that_the_inventory_has() -> None:
    from collector.provider_names import WELL_KNOWN

    assert set(TRANSPORT_SOURCES) <= set(WELL_KNOWN.values())


@pytest.mark.shared
def test_connections_of_a_public_trace(import_trace: ImportTrace, shared_dir: Path) -> None:
    """Sends and receives of the kernel's version 2, IPv4 and IPv6."""
    db = import_trace(shared_dir / "traces" / "real" / "net.4.5.2.x64.etl")

    assert db.rows("select source, sum(sends), sum(receives) from transport_flow group by source") == [(0, 240, 250), (1, 7, 29)]
    assert db.rows("select local_port, remote_port, sends, bytes_sent from transport_flow where source = 0 order by n limit 1") == [
        (64_025, 445, 60, 2_891_718)
    ]
    assert db.rows("select distinct remote from v_transport_flows where source = 'TcpIp'") == [("[2001:4898:e0:81:7cb9:ab:cd5:e6af]:445",)]
