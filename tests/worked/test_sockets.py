"""Ten worked traces of sockets, from the records of the driver to the rows of the views.

The numbers are those of the socket model's notes; times are microseconds since the start of the trace.
"""

from tests.build import ENTER, EXIT, Event, Trace, afd, documented
from tests.build.afd import Who
from tests.build.imported import ImportTrace
from tests.worked.expected import operation, operations, overlap, overlaps, socket, socket_link, sockets

MODERN = 0xFFFF_9A0C_1122_3080
"""Process object of process 4120, thread 11: the default of the builders of modern events."""
OLD = 0xFFFF_FA80_04C3_B060
"""Process object of process 900, thread 5, which logs documented events."""
RESET, CANCELLED, WOULD_BLOCK = 0xC000_020D, 0xC000_0120, 0xC000_00A3


def old(endpoint: int, *, pid: int = 900, tid: int = 5) -> Who:
    """An endpoint of the process that logs documented events."""
    return Who(endpoint=endpoint, process=OLD, pid=pid, tid=tid)


def idle(endpoint: int) -> Who:
    """An endpoint of the modern process, seen from the idle thread."""
    return Who(endpoint=endpoint, pid=0, tid=0)


def old_client(endpoint: int, address: str, *, connected_us: float, pid: int = 900, tid: int = 5) -> list[Event]:
    """A socket that is created at 10 and connects from 30 on; `pid` and `tid` are those of the connect's end."""
    return [
        documented.create(at_us=10, **old(endpoint)),
        documented.connect(at_us=30, address=address, **old(endpoint)),
        documented.connect_completed(at_us=connected_us, **old(endpoint, pid=pid, tid=tid)),
    ]


def modern_client(endpoint: int, address: str) -> list[Event]:
    """A socket that is created at 10 and connects from 50 to 60."""
    where = Who(endpoint=endpoint)
    return [
        afd.create(at_us=10, **where),
        afd.create(at_us=20, enter_exit=EXIT, **where),
        afd.connect(at_us=50, address=address, location=5023, **where),
        afd.connect(at_us=60, enter_exit=EXIT, endpoint=endpoint, pid=4, tid=0),
    ]


def test_t01_a_transport_completion_is_not_a_second_send(import_trace: ImportTrace) -> None:
    """Fast path in the calling thread, a receive that would block, and a send reported twice."""
    tcp = 0xFFFF_9A0C_2A00_1010
    trace = (
        Trace()
        .cpu(
            0,
            afd.create(at_us=100),
            afd.create(at_us=110, enter_exit=EXIT),
            afd.bind(at_us=150, address="0.0.0.0:0"),
            afd.bind(at_us=163, enter_exit=EXIT, address="0.0.0.0:50123"),
            afd.connect_ex(at_us=200, address="93.184.216.34:443", location=5031),
            afd.connect_ex(at_us=20_200, enter_exit=EXIT, **idle(tcp)),
            afd.send(at_us=20_300, length_bytes=517, buffer=0x1D2_A446_0000, location=3047),
            afd.send(at_us=20_304, enter_exit=EXIT, length_bytes=517, buffer=0x1D2_A446_0000, location=3051),
            afd.receive(at_us=21_000, length_bytes=4096, buffer=0, buffer_count=0, location=4115),
            afd.receive(at_us=21_002, enter_exit=EXIT, length_bytes=4096, buffer=0, buffer_count=0, status=WOULD_BLOCK, location=4116),
            afd.receive(at_us=40_200, length_bytes=4096, buffer=0x1D2_A447_0000, location=4115),
            afd.receive(at_us=40_204, enter_exit=EXIT, length_bytes=1460, buffer=0x1D2_A447_0000, location=4116),
            afd.cleanup(at_us=50_000),
            afd.cleanup(at_us=50_005, enter_exit=EXIT),
            afd.close(at_us=50_010),
            afd.close(at_us=50_015, enter_exit=EXIT),
        )
        .cpu(
            1,
            afd.send(
                at_us=20_900,
                enter_exit=EXIT,
                length_bytes=517,
                buffer=0xFFFF_9A0C_3000_0100,
                location=3073,
                is_fast=False,
                is_buffered=True,
                **idle(tcp),
            ),
            afd.data_indication(at_us=40_100, length_bytes=1460, **idle(tcp)),
        )
    )

    db = import_trace(trace)

    assert sockets(db) == [
        socket(
            tcp,
            MODERN,
            4120,
            created_us=100,
            closed_us=50_000,
            destroyed_us=50_015,
            end="closed",
            local="0.0.0.0:50123",
            remote="93.184.216.34:443",
            connections=1,
            sent=517,
            received=1460,
        )
    ]
    s1 = socket_link(tcp, 100)
    assert operations(db) == [
        operation(s1, "connect", 200, 20_200, match="fifo"),
        operation(s1, "send", 20_300, 20_304, match="thread", size=517, buffer=0x1D2_A446_0000, length=517, space="user"),
        operation(s1, "recv", 21_000, 21_002, match="thread", outcome="failed", status=WOULD_BLOCK, length=4096, space="none"),
        operation(s1, "recv", 40_200, 40_204, match="thread", size=1460, buffer=0x1D2_A447_0000, length=4096, space="user"),
    ]
    assert db.rows("select socket, t_ns, bytes, location, reason from v_skipped") == [(s1, 20_900_000, 517, 3073, "double_count")]
    assert db.one("select count(*) from v_aborts") == 0
    assert overlaps(db) == []


def test_t02_equal_buffers_complete_in_the_order_of_their_posts(import_trace: ImportTrace) -> None:
    tcp, buffer = 0xFFFF_FA80_05A1_E010, 0x2A_0000
    trace = Trace().cpu(
        0,
        old_client(tcp, "192.0.2.10:8080", connected_us=900, pid=0, tid=0),
        documented.posted("Send", at_us=1000, length_bytes=1000, buffer=buffer, **old(tcp)),
        documented.posted("Send", at_us=1200, length_bytes=1000, buffer=buffer, **old(tcp, tid=6)),
        [documented.completed("Send", at_us=t, length_bytes=1000, buffer=buffer, **old(tcp, pid=0, tid=0)) for t in (1500, 1600)],
        documented.posted("Send", at_us=1700, length_bytes=1000, buffer=buffer, **old(tcp)),
        documented.completed("Send", at_us=1800, length_bytes=1000, buffer=buffer, **old(tcp, pid=0, tid=0)),
        documented.close(at_us=2000, **old(tcp)),
        documented.cleanup(at_us=2010, **old(tcp)),
    )

    db = import_trace(trace)

    assert sockets(db) == [
        socket(
            tcp,
            OLD,
            900,
            created_us=10,
            closed_us=2000,
            destroyed_us=2010,
            end="closed",
            remote="192.0.2.10:8080",
            connections=1,
            sent=3000,
        )
    ]
    s1 = socket_link(tcp, 10)
    assert operations(db) == [
        operation(s1, "connect", 30, 900, match="fifo"),
        *(
            operation(s1, "send", posted, completed, size=1000, buffer=buffer, length=1000, space="user")
            for posted, completed in ((1000, 1500), (1200, 1600), (1700, 1800))
        ),
    ]
    assert overlaps(db) == [overlap(1000, 1200, buffer, buffer + 1000, "send->send", "exact", "certain", severity="low")]


def test_t03_a_receive_owns_its_whole_length_until_it_completes(import_trace: ImportTrace) -> None:
    tcp = 0xFFFF_FA80_05A1_F010
    trace = Trace().cpu(
        0,
        old_client(tcp, "192.0.2.11:9000", connected_us=40),
        documented.posted("Recv", at_us=100, length_bytes=4096, buffer=0x30_0000, **old(tcp)),
        documented.posted("Send", at_us=250, length_bytes=200, buffer=0x30_0FA0, **old(tcp, tid=6)),
        documented.completed("Send", at_us=260, length_bytes=200, buffer=0x30_0FA0, **old(tcp, tid=6)),
        documented.completed("Recv", at_us=400, length_bytes=100, buffer=0x30_0000, **old(tcp, pid=0, tid=0)),
        documented.posted("Send", at_us=500, length_bytes=64, buffer=0x30_0000, **old(tcp, tid=6)),
        documented.completed("Send", at_us=510, length_bytes=64, buffer=0x30_0000, **old(tcp, tid=6)),
    )

    db = import_trace(trace)

    assert sockets(db) == [socket(tcp, OLD, 900, created_us=10, remote="192.0.2.11:9000", connections=1, sent=264, received=100)]
    s1 = socket_link(tcp, 10)
    assert operations(db) == [
        operation(s1, "connect", 30, 40, match="fifo"),
        operation(s1, "recv", 100, 400, size=100, buffer=0x30_0000, length=4096, space="user"),
        operation(s1, "send", 250, 260, size=200, buffer=0x30_0FA0, length=200, space="user"),
        operation(s1, "send", 500, 510, size=64, buffer=0x30_0000, length=64, space="user"),
    ]
    assert overlaps(db) == [overlap(100, 250, 0x30_0FA0, 0x30_1000, "recv->send", "partial", "certain")]


def test_t04_of_many_buffers_only_the_first_start_is_certain(import_trace: ImportTrace) -> None:
    tcp = 0xFFFF_FA80_05A2_0010
    receives = ((110, 210, 0x40_07D0, 100), (120, 220, 0x3F_FFF8, 16), (130, 230, 0x40_1000, 16))
    trace = (
        Trace()
        .cpu(0, documented.create(at_us=10, **old(tcp)))
        .cpu(0, documented.posted("Send", at_us=100, length_bytes=3000, buffer=0x40_0000, buffer_count=3, **old(tcp)))
        .cpu(0, [documented.posted("Recv", at_us=t, length_bytes=size, buffer=buffer, **old(tcp)) for t, _, buffer, size in receives])
        .cpu(1, documented.completed("Send", at_us=200, length_bytes=3000, buffer=0x40_0000, **old(tcp, pid=0, tid=0)))
        .cpu(1, [documented.completed("Recv", at_us=t, length_bytes=n, buffer=b, **old(tcp, pid=0, tid=0)) for _, t, b, n in receives])
    )

    db = import_trace(trace)

    assert sockets(db) == [socket(tcp, OLD, 900, created_us=10, sent=3000, received=132)]
    s1 = socket_link(tcp, 10)
    assert operations(db) == [
        operation(s1, "send", 100, 200, size=3000, buffer=0x40_0000, length=3000, space="user"),
        *(operation(s1, "recv", t, done, size=size, buffer=b, length=size, space="user") for t, done, b, size in receives),
    ]
    assert overlaps(db) == [
        overlap(100, 110, 0x40_07D0, 0x40_0834, "send->recv", "contained", "possible"),
        overlap(100, 120, 0x40_0000, 0x40_0008, "send->recv", "partial", "certain"),
    ]


def test_t05_requests_that_wait_are_matched_by_their_activity(import_trace: ImportTrace) -> None:
    """Kernel addresses, completions out of order, an activity used again, a cancelled receive."""
    tcp, one, other = 0xFFFF_9A0C_2A00_2010, 0xFFFF_9A0C_4100_0A20, 0xFFFF_9A0C_4100_0C40
    first, second = 0xFFFF_9A0C_3000_0100, 0xFFFF_9A0C_3000_0300
    at = Who(endpoint=tcp)
    trace = Trace().cpu(
        0,
        modern_client(tcp, "198.51.100.7:5000"),
        afd.receive(at_us=100, length_bytes=2048, buffer=first, activity=one, location=4106, **at),
        afd.receive(at_us=110, length_bytes=2048, buffer=second, activity=other, location=4106, **at),
        afd.receive(at_us=300, enter_exit=EXIT, length_bytes=700, buffer=second, activity=other, location=4114, **idle(tcp)),
        afd.receive(
            at_us=320, enter_exit=EXIT, length_bytes=2048, buffer=first + 0x40, activity=one, location=4123, endpoint=tcp, pid=7788, tid=2
        ),
        afd.receive(at_us=400, length_bytes=512, buffer=first, activity=one, location=4106, **at),
        afd.receive(at_us=500, enter_exit=EXIT, length_bytes=0, buffer=first, activity=one, status=CANCELLED, location=4114, **idle(tcp)),
        afd.cleanup(at_us=510, **at),
        afd.cleanup(at_us=515, enter_exit=EXIT, **at),
        afd.close(at_us=520, **at),
        afd.close(at_us=525, enter_exit=EXIT, **at),
    )

    db = import_trace(trace)

    assert sockets(db) == [
        socket(
            tcp,
            MODERN,
            4120,
            created_us=10,
            closed_us=510,
            destroyed_us=525,
            end="closed",
            remote="198.51.100.7:5000",
            connections=1,
            received=2748,
        )
    ]
    s1 = socket_link(tcp, 10)
    assert operations(db) == [
        operation(s1, "connect", 50, 60, match="fifo"),
        operation(s1, "recv", 100, 320, match="activity", size=2048, buffer=first, length=2048, space="kernel"),
        operation(s1, "recv", 110, 300, match="activity", size=700, buffer=second, length=2048, space="kernel"),
        operation(s1, "recv", 400, 500, match="activity", outcome="cancelled", status=CANCELLED, buffer=first, length=512, space="kernel"),
    ]
    assert overlaps(db) == []


def test_t06_closing_with_unread_data_aborts(import_trace: ImportTrace) -> None:
    tcp = 0xFFFF_9A0C_2A00_3010
    at = Who(endpoint=tcp)
    trace = Trace().cpu(
        0,
        modern_client(tcp, "198.51.100.8:6000"),
        afd.data_indication(at_us=900, length_bytes=1460, **idle(tcp)),
        afd.receive(at_us=1000, length_bytes=1000, buffer=0x1D2_A448_0000, location=4115, **at),
        afd.receive(at_us=1004, enter_exit=EXIT, length_bytes=1000, buffer=0x1D2_A448_0000, location=4116, **at),
        afd.cleanup(at_us=2000, **at),
        afd.abort(at_us=2003, reason=7, location=8000, **at),
        afd.cleanup(at_us=2010, enter_exit=EXIT, **at),
        afd.close(at_us=2015, **at),
        afd.close(at_us=2020, enter_exit=EXIT, **at),
    )

    db = import_trace(trace)

    assert sockets(db) == [
        socket(
            tcp,
            MODERN,
            4120,
            created_us=10,
            closed_us=2000,
            destroyed_us=2020,
            end="closed",
            remote="198.51.100.8:6000",
            connections=1,
            received=1000,
        )
    ]
    s1 = socket_link(tcp, 10)
    assert operations(db) == [
        operation(s1, "connect", 50, 60, match="fifo"),
        operation(s1, "recv", 1000, 1004, match="thread", size=1000, buffer=0x1D2_A448_0000, length=1000, space="user"),
    ]
    assert db.rows('select socket, t_ns, reason, initiator, during, "primary", on_listener, unread_bytes from v_aborts') == [
        (s1, 2_003_000, 7, "afd", "close", 1, 0, 460)
    ]


def test_t07_a_reset_fails_what_is_in_flight(import_trace: ImportTrace) -> None:
    """Failures name no buffer: on the posting thread they end its newest operation of the kind, elsewhere the oldest."""
    tcp = 0xFFFF_FA80_05A2_1010
    worker = old(tcp, tid=7)
    trace = Trace().cpu(
        0,
        old_client(tcp, "192.0.2.12:25", connected_us=400, pid=0, tid=0),
        documented.posted("Recv", at_us=500, length_bytes=512, buffer=0x50_0000, **old(tcp)),
        documented.posted("Send", at_us=700, length_bytes=300, buffer=0x51_0000, **worker),
        documented.completed("Send", at_us=720, length_bytes=300, buffer=0x51_0000, **worker),
        documented.aborted(at_us=3000, reason=4, **old(tcp, pid=0, tid=0)),
        documented.failed("Recv", at_us=3001, error=RESET, **old(tcp, pid=0, tid=0)),
        documented.posted("Send", at_us=3100, length_bytes=300, buffer=0x51_0000, **worker),
        documented.failed("Send", at_us=3102, error=RESET, **worker),
        documented.close(at_us=3200, **old(tcp)),
        documented.cleanup(at_us=3205, **old(tcp)),
    )

    db = import_trace(trace)

    assert sockets(db) == [
        socket(
            tcp,
            OLD,
            900,
            created_us=10,
            closed_us=3200,
            destroyed_us=3205,
            end="closed",
            remote="192.0.2.12:25",
            connections=1,
            sent=300,
        )
    ]
    s1 = socket_link(tcp, 10)
    assert operations(db) == [
        operation(s1, "connect", 30, 400, match="fifo"),
        operation(s1, "recv", 500, 3001, match="fifo", outcome="failed", status=RESET, buffer=0x50_0000, length=512, space="user"),
        operation(s1, "send", 700, 720, size=300, buffer=0x51_0000, length=300, space="user"),
        operation(s1, "send", 3100, 3102, match="thread", outcome="failed", status=RESET, buffer=0x51_0000, length=300, space="user"),
    ]
    assert db.rows('select socket, t_ns, reason, initiator, during, "primary", on_listener, coalesce(unread_bytes, 0) from v_aborts') == [
        (s1, 3_000_000, 4, "transport", "running", 1, 0, 0)
    ]


def test_t08_an_accepted_socket_has_the_address_of_its_listener(import_trace: ImportTrace) -> None:
    listener, accepted = 0xFFFF_9A0C_2A00_4010, 0xFFFF_9A0C_2A00_5010
    peer = "203.0.113.5:61000"
    at, on = Who(endpoint=listener), Who(endpoint=accepted, tid=12)
    trace = Trace().cpu(
        0,
        [afd.create(at_us=10 + 10 * i, enter_exit=i, **at) for i in (ENTER, EXIT)],
        [afd.bind(at_us=30 + 5 * i, enter_exit=i, address="0.0.0.0:8443", **at) for i in (ENTER, EXIT)],
        afd.listen(at_us=40, backlog=200, **at),
        [afd.create(at_us=60 + 10 * i, enter_exit=i, endpoint=accepted) for i in (ENTER, EXIT)],
        afd.accept_ex(at_us=80, **at),
        afd.connect_indication(at_us=5000, address=peer, location=6500, **idle(listener)),
        afd.accept_ex(at_us=5010, enter_exit=EXIT, accepted=accepted, address=peer, **idle(listener)),
        afd.receive(at_us=5100, length_bytes=8192, buffer=0x1D2_A449_0000, location=4115, **on),
        afd.receive(at_us=5103, enter_exit=EXIT, length_bytes=240, buffer=0x1D2_A449_0000, location=4116, **on),
        afd.cleanup(at_us=6000, **on),
        afd.cleanup(at_us=6005, enter_exit=EXIT, **on),
        afd.close(at_us=6010, **on),
        afd.close(at_us=6015, enter_exit=EXIT, **on),
    )

    db = import_trace(trace)

    assert sockets(db) == [
        socket(listener, MODERN, 4120, created_us=10, local="0.0.0.0:8443"),
        socket(
            accepted,
            MODERN,
            4120,
            created_us=60,
            closed_us=6000,
            destroyed_us=6015,
            end="closed",
            local="0.0.0.0:8443",
            remote=peer,
            connections=1,
            received=240,
        ),
    ]
    s1, s2 = socket_link(listener, 10), socket_link(accepted, 60)
    assert operations(db) == [
        operation(s1, "accept", 80, 5010, match="fifo"),
        operation(s2, "recv", 5100, 5103, match="thread", size=240, buffer=0x1D2_A449_0000, length=8192, space="user"),
    ]
    assert db.rows("select accepted from v_operations where kind = 'accept'") == [(s2,)]
    assert db.rows("select socket, accepted_from from v_sockets where accepted_from is not null") == [(s2, s1)]


def test_t09_a_datagram_socket_older_than_the_trace(import_trace: ImportTrace) -> None:
    """Its process id is learned later and holds from the beginning; a send without an exit is sent, not in flight."""
    udp, process = 0xFFFF_9A0C_2A00_6010, 0xFFFF_9A0C_1122_4080
    resolver, other, stray = "192.0.2.53:53", "192.0.2.99:53", "198.51.100.200:9999"
    query, answer = 0x55_D001_0000, 0x55_D002_0000
    by = Who(endpoint=udp, process=process, pid=3344, tid=21)
    system = Who(endpoint=udp, process=process, pid=0, tid=3)
    trace = (
        Trace()
        .cpu(
            0,
            afd.send_message(at_us=200, length_bytes=40, buffer=query, address=resolver, location=3100, **by),
            afd.send_message(at_us=300, length_bytes=44, buffer=query, address=other, location=3100, **by),
            afd.send_message(at_us=303, enter_exit=EXIT, length_bytes=44, buffer=query, address=other, location=3200, **by),
            afd.receive_from(at_us=400, length_bytes=1500, buffer=answer, location=4200, **by),
            afd.receive_from(at_us=401, enter_exit=EXIT, length_bytes=120, buffer=answer, address=other, location=4201, **by),
        )
        .cpu(
            1,
            afd.receive_message(  # its post was before the trace
                at_us=100,
                enter_exit=EXIT,
                length_bytes=80,
                buffer=0xFFFF_9A0C_3000_1100,
                address=resolver,
                location=4052,
                is_fast=False,
                **system,
            ),
            afd.drop(at_us=500, reason=2, length_bytes=900, address=stray, **system),
        )
    )

    db = import_trace(trace)

    assert sockets(db) == [socket(udp, process, 3344, kind="dgram", sent=84, received=200)]
    s1 = socket_link(udp, 100)
    assert operations(db) == [
        operation(s1, "recvmsg", None, 100, match="none", size=80, buffer=0xFFFF_9A0C_3000_1100, space="kernel"),
        operation(s1, "sendmsg", 200, None, match=None, outcome="sent", status=None, size=40, buffer=query, length=40, space="user"),
        operation(s1, "sendmsg", 300, 303, match="thread", size=44, buffer=query, length=44, space="user"),
        operation(s1, "recvfrom", 400, 401, match="thread", size=120, buffer=answer, length=1500, space="user"),
    ]
    assert overlaps(db) == []
    assert db.rows("select socket, peer, bytes_sent, bytes_received, dropped from v_peers order by peer") == [
        (s1, resolver, 40, 80, 0),
        (s1, other, 44, 120, 0),
        (s1, stray, 0, 0, 1),
    ]
    assert db.rows("select socket, t_ns, reason, length, source from v_drops") == [(s1, 500_000, 2, 900, stray)]


def test_t10_an_endpoint_used_again_is_another_socket(import_trace: ImportTrace) -> None:
    """A session without event 1002; failed binds of two kinds."""
    shared, other = 0xFFFF_9A0C_2A00_7010, 0xFFFF_9A0C_2A00_8010
    scanner = Who(endpoint=shared, process=0xFFFF_9A0C_1122_5080, pid=6868, tid=31)
    neighbour = Who(endpoint=other, process=0xFFFF_9A0C_1122_6080, pid=7000, tid=41)
    trace = Trace().cpu(
        0,
        afd.create(at_us=100, socket_type=2, **scanner),
        afd.close(at_us=150, is_datagram=True, **scanner),
        afd.close(at_us=152, enter_exit=EXIT, is_datagram=True, **scanner),
        afd.create(at_us=160, **scanner),
        afd.bind(at_us=170, address="0.0.0.0:0", **scanner),
        afd.bind(at_us=175, enter_exit=EXIT, address=None, status=0xC000_0209, location=0, **scanner),
        afd.close(at_us=180, **scanner),
        afd.close(at_us=182, enter_exit=EXIT, **scanner),
        afd.create(at_us=400, **neighbour),
        afd.bind(at_us=410, enter_exit=EXIT, address=None, status=0xC000_0043, location=0, **neighbour),
    )

    db = import_trace(trace)

    assert sockets(db) == [
        socket(shared, scanner["process"], 6868, kind="dgram", created_us=100, closed_us=150, destroyed_us=152, end="closed"),
        socket(shared, scanner["process"], 6868, created_us=160, closed_us=180, destroyed_us=182, end="closed"),
        socket(other, neighbour["process"], 7000, created_us=400),
    ]
    assert operations(db) == []
    assert db.rows("select socket, t_ns, status from v_bind_failures order by t_ns") == [
        (socket_link(shared, 160), 175_000, "0xc0000209"),
        (socket_link(other, 400), 410_000, "0xc0000043"),
    ]
