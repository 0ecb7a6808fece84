"""Connects, accepts, listeners and local connections (winsock-semantics 3.8, 3.10, 9)."""

from dataclasses import replace

import pytest

from collector.etlwriter.payloads import Values
from tests.build import EXIT, afd, documented
from tests.build.events import ENDPOINT, PROCESS, Event
from tests.socket_model import Model, model

LISTENER, ACCEPTED = ENDPOINT, ENDPOINT + 0x1000
REFUSED, CANCELLED = 0xC000_0236, 0xC000_0120
CLIENT = "203.0.113.5:61000"


def connection(m: Model) -> tuple[object, ...]:
    """Local and remote address and the number of connections of the only socket."""
    return m.one("socket", "local", "remote", "connections")


# ---------------------------------------------------------------------------------------------------- connect


def test_a_connect_is_an_operation_and_gives_the_remote_address() -> None:
    m = model(afd.opened(at_us=0), afd.connected(at_us=1, address="192.0.2.10:8080", duration_us=9))

    assert connection(m) == (None, "192.0.2.10:8080", 1)
    assert m.one("operation", "kind", "outcome", "match", "posted_ns", "completed_ns", "space", "posted_len") == (
        "connect",
        "completed",
        "fifo",
        1_000,
        10_000,
        None,
        None,
    )


def test_a_connect_that_fails_makes_no_connection() -> None:
    m = model(afd.connect(at_us=1, address="192.0.2.10:80"), afd.connect(at_us=9, enter_exit=EXIT, status=REFUSED))

    assert connection(m) == (None, "192.0.2.10:80", 0)
    assert m.one("operation", "outcome", "status") == ("failed", REFUSED)
    assert m.one("socket", "errors", "last_error") == (1, REFUSED)


def test_a_connect_refused_at_its_entry_is_rejected() -> None:
    m = model(afd.opened(at_us=0), afd.connect(at_us=1, status=0xC000_000D, location=5001))
    assert m.one("operation", "kind", "outcome") == ("connect", "rejected")


def test_a_progress_report_is_no_second_connect() -> None:
    m = model(afd.connect(at_us=1, address="192.0.2.10:80"), afd.connect(at_us=2, location=5021), afd.connect(at_us=9, enter_exit=EXIT))

    assert m.rows("operation", "kind", "completed_ns") == [("connect", 9_000)]
    assert len(m.table("socket_event")) == 1


def test_documented_connects_complete_in_their_order() -> None:
    m = model(
        documented.create(at_us=0),
        documented.bind(at_us=1, address="10.0.0.1:50000"),
        documented.connect(at_us=2, address="[2001:db8::1]:443"),
        documented.connect_completed(at_us=9, pid=0, tid=0),
    )
    assert connection(m) == ("10.0.0.1:50000", "[2001:db8::1]:443", 1)


def test_a_documented_connect_of_a_datagram_socket_needs_no_completion() -> None:
    m = model(documented.create(at_us=0, socket_type=2), documented.connect(at_us=1, address="192.0.2.1:53"))

    assert connection(m) == (None, "192.0.2.1:53", 0)
    assert m.one("operation", "outcome", "match", "completed_ns", "end_ns") == ("completed", None, None, 1_000)


def test_a_documented_connect_of_a_datagram_socket_is_one_operation_with_its_completion() -> None:
    m = model(
        documented.create(at_us=0, socket_type=2),
        documented.connect(at_us=1, address="192.0.2.1:53"),
        documented.connect(at_us=2, address="192.0.2.2:53"),
        documented.connect_completed(at_us=3, pid=0, tid=0),
        documented.connect(at_us=4, address="192.0.2.3:53"),
        documented.close(at_us=9),
    )

    assert connection(m) == (None, "192.0.2.3:53", 0)
    assert m.rows("operation", "outcome", "posted_ns", "completed_ns", "end_ns") == [
        ("completed", 1_000, None, 1_000),
        ("completed", 2_000, 3_000, 3_000),
        ("completed", 4_000, None, 4_000),
    ]


def test_a_second_connection_starts_its_own_count_of_unread_bytes() -> None:
    m = model(
        afd.opened(at_us=0),
        afd.connected(at_us=1, address="192.0.2.1:80"),
        afd.data_indication(at_us=12, length_bytes=100),
        afd.disconnect(at_us=13),
        afd.connect_ex(at_us=14, address="192.0.2.2:80"),
        afd.connect_ex(at_us=15, enter_exit=EXIT),
        afd.data_indication(at_us=16, length_bytes=30),
        afd.abort(at_us=17, reason=7),
    )

    assert connection(m) == (None, "192.0.2.2:80", 2)
    assert m.one("abort", "unread_bytes", "last_disconnect_ns") == (30, None)


# ---------------------------------------------------------------------------------------------------- bind


def test_the_exit_of_a_bind_has_the_address_that_was_given() -> None:
    m = model(afd.opened(at_us=0), afd.bind(at_us=1), afd.bind(at_us=2, enter_exit=EXIT, address="0.0.0.0:50123"))

    assert connection(m)[0] == "0.0.0.0:50123"
    assert m.table("bind_failure") == []


def test_failed_binds_are_listed_with_what_was_asked_for() -> None:
    m = model(
        afd.opened(at_us=0),
        afd.bind(at_us=1, address="0.0.0.0:80"),
        afd.bind(at_us=2, enter_exit=EXIT, address=None, status=0xC000_0209),
        documented.bind_failed(at_us=3, error=0xC000_0043),
    )

    assert m.rows("bind_failure", "t_ns", "status", "requested") == [(2_000, 0xC000_0209, "0.0.0.0:80"), (3_000, 0xC000_0043, "0.0.0.0:80")]
    assert connection(m)[0] is None


# ---------------------------------------------------------------------------------------------------- accept


def listener() -> list[Event]:
    """A listener at port 8443."""
    return [
        *afd.opened(at_us=0),
        afd.bind(at_us=2, enter_exit=EXIT, address="0.0.0.0:8443"),
        afd.listen(at_us=3, backlog=200),
    ]


def test_an_accepted_socket_is_tied_to_its_listener() -> None:
    m = model(
        listener(),
        afd.opened(at_us=6, endpoint=ACCEPTED),
        afd.accept_ex(at_us=8),
        afd.connect_indication(at_us=50, address=CLIENT),
        afd.accept_ex(at_us=53, enter_exit=EXIT, accepted=ACCEPTED, address=CLIENT, backlog=2, pid=0),
    )

    assert m.rows("socket", "listener", "local", "remote", "connections", "accepted_from_n", "accept_inferred") == [
        (True, "0.0.0.0:8443", None, 0, None, False),
        (False, "0.0.0.0:8443", CLIENT, 1, 1, False),
    ]
    assert m.one("operation", "socket_n", "kind", "outcome", "posted_ns", "completed_ns", "accepted_n", "peer") == (
        1,
        "accept",
        "completed",
        8_000,
        53_000,
        2,
        CLIENT,
    )
    assert m.rows("listen_event", "what", "backlog_asked", "backlog_now", "peer", "accepted_n", "wait_ns") == [
        ("listen", 200, None, None, None, None),
        ("accept_posted", None, None, None, None, None),
        ("indication", None, 0, CLIENT, None, None),
        ("accepted", None, 2, CLIENT, 2, 3_000),
    ]


def test_an_accepted_socket_without_create_is_opened() -> None:
    m = model(afd.accept_ex(at_us=8), afd.accept_ex(at_us=9, enter_exit=EXIT, accepted=ACCEPTED, address=CLIENT))
    assert m.rows("socket", "create_seen", "remote", "connections") == [(False, None, 0), (False, CLIENT, 1)]


def test_a_socket_accepted_at_the_address_of_one_that_is_gone_is_another_one() -> None:
    m = model(
        afd.opened(at_us=0, endpoint=ACCEPTED),
        afd.closed(at_us=2, endpoint=ACCEPTED),
        afd.accept_ex(at_us=8),
        afd.accept_ex(at_us=9, enter_exit=EXIT, accepted=ACCEPTED, address=CLIENT),
    )
    assert m.rows("socket", "endpoint", "create_seen", "remote", "connections", "end") == [
        (ACCEPTED - (1 << 64), True, None, 0, "closed"),
        (LISTENER - (1 << 64), False, None, 0, "open_at_end"),
        (ACCEPTED - (1 << 64), False, CLIENT, 1, "open_at_end"),
    ]


def test_a_socket_accepted_again_without_a_close_has_a_connection_of_its_own_each_time() -> None:
    other = "203.0.113.6:61001"
    m = model(
        listener(),
        afd.opened(at_us=6, endpoint=ACCEPTED),
        afd.accept_ex(at_us=8),
        afd.accept_ex(at_us=9, enter_exit=EXIT, accepted=ACCEPTED, address=CLIENT),
        afd.data_indication(at_us=10, endpoint=ACCEPTED, length_bytes=100),
        afd.abort(at_us=11, endpoint=ACCEPTED, reason=2),
        afd.abort(at_us=12, endpoint=ACCEPTED, reason=4),
        afd.accept_ex(at_us=20),
        afd.accept_ex(at_us=21, enter_exit=EXIT, accepted=ACCEPTED, address=other),
        afd.data_indication(at_us=22, endpoint=ACCEPTED, length_bytes=30),
        afd.cleanup(at_us=30, endpoint=ACCEPTED),
        afd.abort(at_us=31, endpoint=ACCEPTED, reason=7),
    )

    assert m.rows("socket", "remote", "connections", "accepted_from_n")[1:] == [(other, 2, 1)]
    assert m.rows("abort", "is_primary", "during", "unread_bytes") == [
        (True, "running", None),
        (False, "running", None),
        (True, "close", 30),
    ]


def test_a_blocking_accept_waits_first_and_accepts_then() -> None:
    m = model(
        listener(),
        afd.wait_for_listen(at_us=10),
        afd.connect_indication(at_us=20, address=CLIENT),
        afd.wait_for_listen(at_us=21, enter_exit=EXIT),
        afd.opened(at_us=22, endpoint=ACCEPTED),
        afd.accept(at_us=24),
        afd.accept(at_us=25, enter_exit=EXIT, accepted=ACCEPTED, address=CLIENT),
    )

    assert m.rows("operation", "kind", "posted_ns", "completed_ns") == [("accept", 24_000, 25_000)]
    assert [row[0] for row in m.rows("listen_event", "what")] == ["listen", "accept_posted", "indication", "accept_posted", "accepted"]


def test_failed_accepts_belong_to_the_listener() -> None:
    m = model(
        afd.accept_ex(at_us=8),
        afd.accept_ex(at_us=9, enter_exit=EXIT, status=CANCELLED),
        afd.accept_ex(at_us=10, status=0xC000_000D),
        documented.failed("Accept", at_us=11, error=REFUSED),
    )

    assert m.rows("operation", "socket_n", "outcome") == [(1, "cancelled"), (1, "rejected"), (1, "failed")]
    assert [(r["what"], r["status"]) for r in m.table("listen_event")][1:] == [
        ("accept_failed", CANCELLED),
        ("accept_failed", 0xC000_000D),
        ("accept_failed", REFUSED),
    ]


def test_an_accept_that_would_block_has_not_failed() -> None:
    would_block = 0xC000_00A3
    m = model(
        listener(),
        afd.wait_for_listen(at_us=10),
        afd.wait_for_listen(at_us=11, enter_exit=EXIT, status=would_block),
        afd.accept(at_us=12),
        afd.accept(at_us=13, enter_exit=EXIT, status=would_block),
        documented.failed("Accept", at_us=14, error=would_block),
        afd.accept_ex(at_us=15, status=would_block),
    )

    assert [row["what"] for row in m.table("listen_event")] == ["listen", "accept_posted", "accept_posted"]
    assert m.one("socket", "errors", "last_error") == (0, None)
    assert [outcome for (outcome,) in m.rows("operation", "outcome")] == ["failed", "failed", "rejected"]


def test_the_exit_of_a_listen_alone_makes_a_listener() -> None:
    m = model(afd.listen(at_us=1, enter_exit=EXIT, backlog=5), afd.listen(at_us=2, endpoint=ACCEPTED), afd.listen(at_us=3, enter_exit=EXIT))

    assert m.rows("socket", "listener") == [(True,), (True,)]
    assert m.rows("listen_event", "socket_n", "what", "backlog_asked") == [(1, "listen", 5), (2, "listen", 200)]


def test_a_refused_connection_request_does_not_wait() -> None:
    m = model(afd.connect_indication(at_us=5, address=None, status=0xC000_009A))
    assert m.one("listen_event", "what", "status", "backlog_now") == ("indication", 0xC000_009A, None)


def test_a_listener_pauses_and_goes_on() -> None:
    values: Values = {"enter_exit": 0, "location": 0, "process": PROCESS, "endpoint": ENDPOINT}
    pause, resume = (
        Event(name="AfdAcceptPause", at_us=at_us, values={**values, "pause_un_pause": what, "tl_backlog_count": 7})
        for at_us, what in ((1, 1), (2, 0))
    )
    m = model(pause, resume)
    assert m.rows("listen_event", "what", "backlog_now") == [("pause", 7), ("unpause", 7)]


def test_a_documented_accept_on_the_accepted_socket_finds_its_listener_by_the_peer() -> None:
    m = model(
        documented.create(at_us=0),
        documented.connect_indicated(at_us=5, address=CLIENT),
        documented.create(at_us=6, endpoint=ACCEPTED),
        documented.accepted(at_us=9, endpoint=ACCEPTED, address=CLIENT),
    )

    assert m.rows("socket", "listener", "local", "remote", "connections", "accepted_from_n", "accept_inferred") == [
        (True, None, None, 0, None, False),
        (False, None, CLIENT, 1, 1, True),
    ]
    assert m.rows("listen_event", "what", "accepted_n", "wait_ns") == [("indication", None, None), ("accepted", 2, 4_000)]


def test_a_documented_accept_on_the_listener_is_followed_by_its_socket() -> None:
    m = model(
        documented.create(at_us=0),
        documented.connect_indicated(at_us=5, address=CLIENT),
        documented.accepted(at_us=6, address=CLIENT),
        documented.create(at_us=7, endpoint=0xA000),
        documented.connect(at_us=8, endpoint=0xA000, address="192.0.2.1:80"),
        documented.create(at_us=9, endpoint=0xB000),
        documented.posted("Recv", at_us=10, endpoint=0xB000),
        documented.connect(at_us=11, endpoint=0xB000, address="192.0.2.9:80"),
    )

    assert m.rows("socket", "endpoint", "remote", "accepted_from_n", "accept_inferred")[1:] == [
        (0xA000, "192.0.2.1:80", None, False),
        (0xB000, "192.0.2.9:80", 1, True),
    ]


def test_a_socket_that_only_seemed_accepted_hands_the_accept_on_to_the_one_made_after_it() -> None:
    m = model(
        documented.create(at_us=0),
        documented.connect_indicated(at_us=5, address=CLIENT),
        documented.accepted(at_us=6, address=CLIENT),
        documented.create(at_us=7, endpoint=0xA000, socket_type=2, protocol=17),
        documented.create(at_us=8, endpoint=0xB000),
        documented.create(at_us=9, endpoint=0xC000),
        documented.create(at_us=10, endpoint=0xD000),
        documented.connect(at_us=11, endpoint=0xC000, address="192.0.2.2:80"),
        documented.posted("Recv", at_us=12, endpoint=0xD000),
        documented.bind(at_us=13, endpoint=0xB000, address="10.0.0.1:50000"),
        documented.connect(at_us=14, endpoint=0xB000, address="192.0.2.1:80"),
        documented.create(at_us=20, endpoint=0xE000),
    )

    assert m.rows("socket", "endpoint", "remote", "connections", "accepted_from_n", "accept_inferred")[1:] == [
        (0xA000, None, 0, None, False),
        (0xB000, "192.0.2.1:80", 0, None, False),
        (0xC000, "192.0.2.2:80", 0, None, False),
        (0xD000, CLIENT, 1, 1, True),
        (0xE000, None, 0, None, False),
    ]


# ---------------------------------------------------------------------------------------------------- both ends in one trace


def ends(*, server_local: str, client_local: str, server_address: str, client_address: str, closes_us: float = 90) -> Model:
    """A client at 0xC000 that connects, and the socket 0xA000 that a listener accepts for it."""
    return model(
        afd.opened(at_us=0),
        afd.bind(at_us=2, enter_exit=EXIT, address=server_local),
        afd.opened(at_us=4, endpoint=0xC000),
        afd.bind(at_us=6, endpoint=0xC000, enter_exit=EXIT, address=client_local),
        afd.connect(at_us=8, endpoint=0xC000, address=server_address),
        afd.opened(at_us=10, endpoint=0xA000),
        afd.accept_ex(at_us=12, enter_exit=EXIT, accepted=0xA000, address=client_address),
        afd.connect(at_us=14, endpoint=0xC000, enter_exit=EXIT),
        afd.closed(at_us=closes_us, endpoint=0xC000),
    )


def peers(m: Model) -> list[tuple[object, ...]]:
    return m.rows("socket", "endpoint", "loopback_peer_n")[1:]


LOCAL, REMOTE = "127.0.0.1:49701", "127.0.0.1:49702"


@pytest.mark.parametrize("server_local", [LOCAL, "0.0.0.0:49701"])
@pytest.mark.parametrize("client_local", [REMOTE, "0.0.0.0:49702"])
def test_mirrored_addresses_are_both_ends_of_one_connection(server_local: str, client_local: str) -> None:
    m = ends(server_local=server_local, client_local=client_local, server_address=LOCAL, client_address=REMOTE)
    assert peers(m) == [(0xC000, 3), (0xA000, 2)]


@pytest.mark.parametrize(
    ("server_address", "client_address", "closes_us"),
    [(LOCAL, "127.0.0.2:49702", 90), (LOCAL, "127.0.0.1:49703", 90), (LOCAL, REMOTE, 9)],
    ids=["another address", "another port", "lives that do not meet"],
)
def test_other_connections_are_not_mirrored(server_address: str, client_address: str, closes_us: float) -> None:
    m = ends(server_local=LOCAL, client_local=REMOTE, server_address=server_address, client_address=client_address, closes_us=closes_us)
    if closes_us == 9:
        assert peers(m)[0] == (0xC000, None)
    else:
        assert peers(m) == [(0xC000, None), (0xA000, None)]


def test_ports_used_again_pair_with_the_connection_of_their_time() -> None:
    first: list[Event] = [
        *afd.opened(at_us=4, endpoint=0xC000),
        afd.bind(at_us=6, endpoint=0xC000, enter_exit=EXIT, address=REMOTE),
        *afd.connected(at_us=7, endpoint=0xC000, address=LOCAL),
        *afd.opened(at_us=10, endpoint=0xA000),
        afd.accept_ex(at_us=12, enter_exit=EXIT, accepted=0xA000, address=REMOTE),
        *afd.closed(at_us=20, endpoint=0xC000),
        *afd.closed(at_us=24, endpoint=0xA000),
    ]
    second = [replace(e, at_us=e.at_us + 100) for e in first]
    m = model(afd.opened(at_us=0), afd.bind(at_us=2, enter_exit=EXIT, address=LOCAL), first, second)

    assert m.rows("socket", "n", "loopback_peer_n")[1:] == [(2, 3), (3, 2), (4, 5), (5, 4)]


def test_documented_ends_mirror_through_the_address_of_the_listener() -> None:
    m = model(
        documented.create(at_us=0),
        documented.bind(at_us=1, address=LOCAL),
        documented.create(at_us=2, endpoint=0xC000),
        documented.bind(at_us=3, endpoint=0xC000, address=REMOTE),
        documented.connect(at_us=4, endpoint=0xC000, address=LOCAL),
        documented.connect_indicated(at_us=5, address=REMOTE),
        documented.create(at_us=6, endpoint=0xA000),
        documented.accepted(at_us=7, endpoint=0xA000, address=REMOTE),
    )
    assert peers(m) == [(0xC000, 3), (0xA000, 2)]
