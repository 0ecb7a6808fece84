"""Two operations on one buffer: what is an overlap, of what kind and how certain, and what is none (winsock-semantics 6 and 7)."""

import pytest

from collector.losses import Losses
from collector.model.overlaps import MAX_PAIRS_OF_OWNER
from tests.build import ENTER, EXIT, afd, documented, system
from tests.build.events import ENDPOINT, PID, PROCESS, Event
from tests.socket_model import Model, model

USER = 0x1D2_A446_0000
KERNEL = 0xFFFF_9A0C_3000_0100
OTHER = PROCESS + 0x540
CANCELLED, RESET = 0xC000_0120, 0xC000_020D


def found(m: Model) -> list[tuple[object, ...]]:
    """First, second, pair, range and certainty of each overlap."""
    return m.rows("overlap", "first_n", "second_n", "pair", "range", "certainty")


def receive(
    at_us: float, *, buffer: int = USER, length_bytes: int = 4096, buffer_count: int = 1, tid: int = 11, endpoint: int = ENDPOINT
) -> Event:
    return afd.receive(at_us=at_us, buffer=buffer, length_bytes=length_bytes, buffer_count=buffer_count, tid=tid, endpoint=endpoint)


def received(at_us: float, *, buffer: int = USER, tid: int = 11, endpoint: int = ENDPOINT, status: int = 0) -> Event:
    return afd.receive(at_us=at_us, enter_exit=EXIT, buffer=buffer, tid=tid, endpoint=endpoint, status=status)


# ---------------------------------------------------------------------------------------------------- what is one


@pytest.mark.parametrize(
    ("first", "second", "pair", "severity"),
    [
        (afd.send, afd.send, "send->send", "low"),
        (afd.receive, afd.receive, "recv->recv", "high"),
        (afd.receive, afd.send, "recv->send", "high"),
        (afd.send, afd.receive, "send->recv", "high"),
    ],
)
def test_the_pair_says_which_came_first(first, second, pair: str, severity: str) -> None:  # type: ignore[no-untyped-def]  # builders
    m = model(first(at_us=1, buffer=USER, tid=1), second(at_us=2, buffer=USER, tid=2))
    assert m.one("overlap", "pair", "severity", "t_ns") == (pair, severity, 2_000)


@pytest.mark.parametrize(
    ("start", "length", "lo", "hi", "extent"),
    [
        (0, 4096, 0, 4096, "exact"),
        (100, 100, 100, 200, "contained"),
        (0, 100, 0, 100, "contained"),
        (-100, 8192, 0, 4096, "contained"),
        (4000, 200, 4000, 4096, "partial"),
        (-100, 101, 0, 1, "partial"),
    ],
)
def test_the_range_says_how_they_share(start: int, length: int, lo: int, hi: int, extent: str) -> None:
    m = model(receive(1), receive(2, buffer=USER + start, length_bytes=length))
    assert m.one("overlap", "lo", "hi", "range", "certainty") == (USER + lo, USER + hi, extent, "certain")


@pytest.mark.parametrize(("start", "length"), [(4096, 100), (-100, 100)])
def test_neighbours_do_not_overlap(start: int, length: int) -> None:
    assert found(model(receive(1), receive(2, buffer=USER + start, length_bytes=length))) == []


def test_a_receive_owns_all_that_was_posted_until_it_completes() -> None:
    m = model(receive(1), afd.sent(at_us=2, buffer=USER + 4000, length_bytes=10), received(9))
    assert found(m) == [(1, 2, "recv->send", "contained", "certain")]


def test_every_pair_is_one_finding() -> None:
    m = model([receive(t, tid=t) for t in (1, 2, 3, 4)])
    assert [row[:2] for row in found(m)] == [(1, 2), (1, 3), (2, 3), (1, 4), (2, 4), (3, 4)]


def test_two_sockets_of_one_process_may_share_a_buffer() -> None:
    m = model(receive(1), receive(2, endpoint=ENDPOINT + 0x800), receive(3))
    assert m.rows("overlap", "first_n", "second_n", "scope") == [(1, 2, "cross_socket"), (1, 3, "same_socket"), (2, 3, "cross_socket")]


# ---------------------------------------------------------------------------------------------------- how certain


@pytest.mark.parametrize(
    ("first_count", "second_count", "start", "certainty"),
    [(3, 1, 2000, "possible"), (3, 1, -8, "certain"), (1, 3, 2000, "certain"), (3, 3, 8, "possible"), (3, 3, 0, "certain")],
)
def test_of_a_chain_only_the_first_byte_is_known(first_count: int, second_count: int, start: int, certainty: str) -> None:
    m = model(receive(1, buffer_count=first_count), receive(2, buffer=USER + start, length_bytes=100, buffer_count=second_count))
    assert m.one("overlap", "certainty") == (certainty,)


def test_an_unknown_end_of_the_first_leaves_doubt() -> None:
    m = model(receive(1), receive(2, endpoint=ENDPOINT + 0x800), afd.create(at_us=9))
    assert found(m) == [(1, 2, "recv->recv", "exact", "possible")]


@pytest.mark.parametrize(
    ("lost_us", "certainty"), [((0, 0.5), "certain"), ((1.5, 3), "possible"), ((6, 7), "possible"), ((10, 11), "certain")]
)
def test_lost_records_during_the_first_leave_doubt(lost_us: tuple[float, float], certainty: str) -> None:
    losses = Losses([(int(lost_us[0] * 10), int(lost_us[1] * 10))])
    m = model(receive(1), receive(2, tid=12), received(9), losses=losses)
    assert m.one("overlap", "certainty") == (certainty,)


def test_a_buffer_inferred_from_an_attempt_leaves_doubt() -> None:
    m = model(
        afd.receive(at_us=1, buffer=USER),
        afd.receive(at_us=2, buffer=KERNEL, activity=77),
        afd.sent(at_us=3, buffer=USER, length_bytes=100, tid=12),
    )
    assert found(m) == [(1, 2, "recv->send", "contained", "possible")]


# ---------------------------------------------------------------------------------------------------- what is none


@pytest.mark.parametrize("status", [0, CANCELLED, RESET])
def test_reuse_after_the_end_is_fine(status: int) -> None:
    assert found(model(receive(1), received(2, status=status), receive(3))) == []


def test_reuse_after_a_refusal_is_fine() -> None:
    assert found(model(afd.opened(at_us=0), afd.receive(at_us=1, buffer=USER, status=RESET), receive(2))) == []


def test_reuse_after_the_socket_was_closed_is_fine() -> None:
    m = model(afd.opened(at_us=0), receive(1), afd.cleanup(at_us=5), receive(6, endpoint=ENDPOINT + 0x800), received(7, status=CANCELLED))
    assert found(m) == []


def test_one_address_in_two_processes_is_two_buffers() -> None:
    m = model(receive(1), afd.receive(at_us=2, buffer=USER, process=OTHER, endpoint=ENDPOINT + 0x800))
    assert found(m) == []


def test_a_process_object_used_again_is_another_process() -> None:
    m = model(
        system.process_start(at_us=0),
        receive(1),
        system.process_end(at_us=5),
        system.process_start(at_us=6),
        afd.create(at_us=7, endpoint=ENDPOINT + 0x800, process_id=PID),
        receive(8, endpoint=ENDPOINT + 0x800),
    )
    assert found(m) == []


@pytest.mark.parametrize(("buffer", "length"), [(KERNEL, 4096), (0, 4096), (0x5000, 4096), (USER, 0)])
def test_kernel_addresses_and_nothing_are_no_buffers(buffer: int, length: int) -> None:
    assert found(model(receive(1, buffer=buffer, length_bytes=length), receive(2, buffer=buffer, length_bytes=length))) == []


def test_a_completion_without_post_is_no_first() -> None:
    m = model(received(1), receive(2))
    assert found(m) == []


def test_double_counts_and_indications_are_no_operations() -> None:
    m = model(
        afd.send(at_us=1, enter_exit=EXIT, buffer=USER, location=3073, is_fast=False),
        afd.data_indication(at_us=2, buffer=USER),
        receive(3),
    )
    assert found(m) == []


# ---------------------------------------------------------------------------------------------------- datagram sends


def sendmsg(at_us: float, enter_exit: int = ENTER, *, length_bytes: int = 100, tid: int = 11) -> Event:
    return afd.send_message(at_us=at_us, enter_exit=enter_exit, buffer=USER, length_bytes=length_bytes, tid=tid, address="192.0.2.1:53")


def test_a_datagram_send_without_exit_does_not_stay_in_flight() -> None:
    assert found(model(sendmsg(1), sendmsg(2, length_bytes=50), receive(3))) == []


def test_a_datagram_send_with_an_exit_was_in_flight_until_then() -> None:
    m = model(sendmsg(1), receive(2, tid=12), sendmsg(5, EXIT), receive(6, buffer=USER, tid=13))
    assert found(m) == [(1, 2, "send->recv", "contained", "certain"), (2, 3, "recv->recv", "exact", "certain")]


def test_a_datagram_send_over_a_receive_in_flight_counts_without_exit() -> None:
    assert found(model(receive(1), sendmsg(2))) == [(1, 2, "recv->send", "contained", "certain")]


def test_a_datagram_send_closed_before_its_exit_was_in_flight_until_the_close() -> None:
    m = model(
        afd.opened(at_us=0, socket_type=2),
        sendmsg(1),
        receive(2, tid=12, endpoint=ENDPOINT + 0x800),
        afd.cleanup(at_us=5, tid=12),
        receive(6, tid=12, endpoint=ENDPOINT + 0x1000),
        sendmsg(7, EXIT),
    )
    assert found(m)[0][:3] == (1, 2, "send->recv")
    assert [row[:2] for row in found(m)] == [(1, 2), (2, 3)]


def test_a_long_pipeline_of_datagram_sends_looks_back_over_many_posts() -> None:
    sends = [sendmsg(t, tid=t) for t in range(1, 41)]
    exits = [sendmsg(t + 100, EXIT, tid=t) for t in range(1, 41)]
    assert len(found(model(sends, exits))) == 40 * 39 // 2


# ---------------------------------------------------------------------------------------------------- one tick


@pytest.mark.parametrize("order", [0, 1])
def test_a_post_at_the_very_tick_of_a_completion_is_clean(order: int) -> None:
    m = model(receive(1), received(5), receive(5, tid=12), on_cpu=[0, order, 1 - order])
    assert found(m) == []


@pytest.mark.parametrize("order", [0, 1])
def test_of_two_posts_of_one_tick_the_lower_endpoint_and_buffer_is_called_first(order: int) -> None:
    low, high = receive(5, endpoint=0xA000, length_bytes=10), receive(5, endpoint=0xB000, length_bytes=20, tid=12)
    m = model(low, high, on_cpu=[order, 1 - order])

    first, second = m.one("overlap", "first_n", "second_n")
    lengths = dict(m.rows("operation", "n", "posted_len"))
    assert (lengths[first], lengths[second]) == (10, 20)


def test_a_request_that_takes_no_time_is_no_first_but_may_be_a_second() -> None:
    assert found(model(receive(5), received(5), receive(5.0, tid=12))) == []
    m = model(receive(1), receive(5, tid=12), received(5, tid=12))
    assert found(m) == [(1, 2, "recv->recv", "exact", "certain")]


# ---------------------------------------------------------------------------------------------------- many


def test_pairs_past_the_cap_are_counted_but_not_stored() -> None:
    posts = [receive(t, tid=t) for t in range(1, 202)]
    m = model(posts)

    assert len(found(m)) == MAX_PAIRS_OF_OWNER
    assert m.problems["overlaps_capped"] == 201 * 200 // 2 - MAX_PAIRS_OF_OWNER


def test_many_ranges_of_many_sizes_are_found_through_the_index() -> None:
    posts = [receive(t, buffer=USER + t * 100, length_bytes=1 << (t % 12), tid=t) for t in range(1, 60)]
    m = model(posts)

    ranges = [(USER + t * 100, USER + t * 100 + (1 << (t % 12))) for t in range(1, 60)]
    expected = [(a + 1, b + 1) for b in range(59) for a in range(b) if ranges[a][0] < ranges[b][1] and ranges[b][0] < ranges[a][1]]
    assert [row[:2] for row in found(m)] == expected


def test_documented_posts_overlap_by_the_same_rule() -> None:
    m = model(documented.posted("Send", at_us=1), documented.posted("Send", at_us=2), documented.completed("Send", at_us=3))
    assert found(m) == [(1, 2, "send->send", "exact", "certain")]
