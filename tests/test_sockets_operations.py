"""Requests from post to completion: matching rules in their order, outcomes, ends and bytes (winsock-semantics 4, 5, 10)."""

from typing import Unpack

import pytest

from tests.build import ENTER, EXIT, afd, documented
from tests.build.afd import Where, Who
from tests.build.events import ENDPOINT, Event
from tests.socket_model import Model, model

CANCELLED, WOULD_BLOCK, RESET, TRUNCATED = 0xC000_0120, 0xC000_00A3, 0xC000_020D, 0x8000_0005
USER = 0x1D2_A446_0000
KERNEL = 0xFFFF_9A0C_3000_0100
REQUEST = 0xFFFF_9A0C_4100_0A20


def pairs(m: Model) -> list[tuple[object, ...]]:
    """Number, match, posted and completed in µs of each operation."""
    rows = m.rows("operation", "n", "match", "posted_ns", "completed_ns")
    return [(n, match, *(None if t is None else t // 1000 for t in times)) for n, match, *times in rows]


# ---------------------------------------------------------------------------------------------------- matching, modern


def test_an_activity_finds_its_request_out_of_order_and_with_another_buffer() -> None:
    m = model(
        afd.receive(at_us=1, buffer=KERNEL, activity=REQUEST),
        afd.receive(at_us=2, buffer=KERNEL + 512, activity=REQUEST + 64),
        afd.receive(at_us=3, enter_exit=EXIT, buffer=KERNEL + 512, activity=REQUEST + 64, pid=0, tid=0),
        afd.receive(at_us=4, enter_exit=EXIT, buffer=KERNEL + 64, activity=REQUEST, pid=0, tid=0),
    )

    assert pairs(m) == [(1, "activity", 1, 4), (2, "activity", 2, 3)]
    assert m.rows("operation", "completed_buffer") == [(KERNEL + 64 - (1 << 64),), (None,)]


def test_an_activity_that_is_the_endpoint_says_nothing() -> None:
    m = model(
        afd.receive(at_us=1, buffer=USER, activity=ENDPOINT, is_fast=False),
        afd.receive(at_us=2, enter_exit=EXIT, buffer=USER + 1, activity=ENDPOINT, is_fast=False),
    )
    assert pairs(m) == [(1, None, 1, None), (2, "none", None, 2)]


def test_a_fast_exit_ends_the_newest_request_of_its_thread_with_its_buffer() -> None:
    m = model(
        afd.send(at_us=1, tid=1),
        afd.send(at_us=2, tid=2),
        afd.send(at_us=3, tid=1),
        afd.send(at_us=4, tid=2),
        afd.send(at_us=5, tid=1, enter_exit=EXIT),
    )
    assert pairs(m)[2] == (3, "thread", 3, 5)


def test_an_exit_elsewhere_ends_the_oldest_request_with_its_buffer() -> None:
    m = model(afd.send(at_us=1, tid=1), afd.send(at_us=2, tid=2), afd.send(at_us=3, tid=9, enter_exit=EXIT, is_fast=False, buffer=USER))
    assert pairs(m) == [(1, "buffer", 1, 3), (2, None, 2, None)]


def test_a_kernel_address_that_has_moved_on_ends_the_oldest_request_without_an_activity() -> None:
    m = model(
        afd.receive(at_us=1, buffer=KERNEL, activity=REQUEST),
        afd.receive(at_us=2, buffer=KERNEL + 512, is_fast=False),
        afd.receive(at_us=3, enter_exit=EXIT, buffer=KERNEL + 600, is_fast=False, tid=0),
    )
    assert pairs(m) == [(1, None, 1, None), (2, "kernel_order", 2, 3)]


def test_without_a_buffer_the_thread_decides_and_then_the_order() -> None:
    m = model(
        afd.receive(at_us=1, buffer=0, tid=1, is_fast=False),
        afd.receive(at_us=2, buffer=0, tid=2, is_fast=False),
        afd.receive(at_us=3, buffer=0, tid=2, is_fast=False),
        afd.receive(at_us=4, enter_exit=EXIT, buffer=0, tid=2, is_fast=False),
        afd.receive(at_us=5, enter_exit=EXIT, buffer=0, tid=0, is_fast=False),
    )
    assert pairs(m) == [(1, "fifo", 1, 5), (2, None, 2, None), (3, "thread", 3, 4)]


def test_another_user_address_is_another_request() -> None:
    m = model(afd.receive(at_us=1, buffer=USER), afd.receive(at_us=2, enter_exit=EXIT, buffer=USER + 64, length_bytes=70))

    assert pairs(m) == [(1, None, 1, None), (2, "none", None, 2)]
    assert m.rows("operation", "bytes", "posted_len", "outcome") == [(0, 4096, "in_flight"), (70, None, "completed")]
    assert m.problems["unmatched_completions"] == 1


def test_sends_and_receives_do_not_mix_and_neither_do_sockets() -> None:
    m = model(
        afd.send(at_us=1),
        afd.receive(at_us=2, enter_exit=EXIT, buffer=afd.BUFFER),
        afd.send(at_us=3, enter_exit=EXIT, endpoint=ENDPOINT + 0x800),
    )
    assert [match for _, match, *_ in pairs(m)] == [None, "none", "none"]


def test_forms_of_one_direction_complete_each_other() -> None:
    m = model(
        afd.receive_from(at_us=1),
        afd.receive_from(at_us=2, enter_exit=EXIT, length_bytes=120, address="192.0.2.99:53"),
        afd.receive_message(at_us=3),
        afd.receive_message(at_us=4, enter_exit=EXIT, length_bytes=80, address="[fe80::1%7]:53"),
    )
    assert m.rows("operation", "kind", "bytes", "peer") == [("recvfrom", 120, "192.0.2.99:53"), ("recvmsg", 80, "[fe80::1%7]:53")]


def test_requests_of_a_registered_queue_complete_in_their_order() -> None:
    m = model(
        *[afd.receive(at_us=t, buffer=0, activity=REQUEST, location=4163) for t in (1, 2, 3)],
        *[afd.receive(at_us=t, enter_exit=EXIT, buffer=0, activity=REQUEST, length_bytes=t, tid=0) for t in (11, 12)],
    )
    assert pairs(m) == [(1, "activity", 1, 11), (2, "activity", 2, 12), (3, None, 3, None)]


# ---------------------------------------------------------------------------------------------------- matching, documented


def test_documented_completions_find_their_buffer_first_in_first_out() -> None:
    m = model(
        documented.posted("Send", at_us=1),
        documented.posted("Send", at_us=2),
        documented.completed("Send", at_us=3),
        documented.completed("Send", at_us=4, buffer=0x99_0000),
    )
    assert pairs(m) == [(1, "buffer", 1, 3), (2, None, 2, None), (3, "none", None, 4)]


def test_a_documented_failure_ends_its_threads_newest_request_else_the_oldest() -> None:
    m = model(
        documented.posted("Recv", at_us=1, tid=5),
        documented.posted("Recv", at_us=2, tid=6),
        documented.posted("Recv", at_us=3, tid=6),
        documented.failed("Recv", at_us=4, tid=6),
        documented.failed("Recv", at_us=5, tid=0),
        documented.failed("RecvFrom", at_us=6, tid=6),
    )
    assert pairs(m) == [(1, "fifo", 1, 5), (2, None, 2, None), (3, "thread", 3, 4), (4, "none", None, 6)]


@pytest.mark.parametrize("kind", ["Send", "SendTo"])
def test_a_failed_message_send_may_end_any_send(kind: str) -> None:
    address = "192.0.2.1:53" if kind == "SendTo" else None
    m = model(documented.posted(kind, at_us=1, address=address), documented.failed("SendMsg", at_us=2, tid=0))
    assert pairs(m) == [(1, "fifo", 1, 2)]


def test_a_documented_message_send_has_no_post_and_that_is_no_gap() -> None:
    m = model(documented.completed("SendMsg", at_us=1, length_bytes=70))

    assert m.one("operation", "kind", "match", "bytes", "posted_ns") == ("sendmsg", "none", 70, None)
    assert "unmatched_completions" not in m.problems


# ---------------------------------------------------------------------------------------------------- outcomes


@pytest.mark.parametrize(
    ("status", "outcome", "bytes_"),
    [
        (0, "completed", 300),
        (TRUNCATED, "completed", 300),
        (RESET, "failed", 0),
        (WOULD_BLOCK, "failed", 0),
        (CANCELLED, "cancelled", 0),
    ],
)
def test_the_final_status_is_the_outcome_and_only_success_counts_bytes(status: int, outcome: str, bytes_: int) -> None:
    m = model(afd.receive(at_us=1), afd.receive(at_us=2, enter_exit=EXIT, length_bytes=300, status=status))

    assert m.one("operation", "outcome", "bytes", "status") == (outcome, bytes_, status)
    assert m.one("socket", "bytes_received", "receives") == (bytes_, int(outcome == "completed"))


@pytest.mark.parametrize("status", [0x8000_0001, RESET, CANCELLED])
def test_a_refused_entry_is_a_whole_operation(status: int) -> None:
    m = model(afd.opened(at_us=0), afd.receive(at_us=1, status=status, location=4001), afd.receive(at_us=2, enter_exit=EXIT))

    assert m.rows("operation", "outcome", "status", "posted_ns", "completed_ns", "match")[0] == ("rejected", status, 1_000, 1_000, None)
    assert pairs(m)[1] == (2, "none", None, 2)


def test_would_block_is_an_answer_and_no_error() -> None:
    m = model(
        afd.receive(at_us=1, buffer=0, buffer_count=0),
        afd.receive(at_us=2, enter_exit=EXIT, buffer=0, status=WOULD_BLOCK),
        afd.receive(at_us=3),
        afd.receive(at_us=4, enter_exit=EXIT, status=RESET),
    )

    assert m.one("socket", "errors", "last_error") == (1, RESET)
    assert m.rows("operation", "buffer", "space") == [(None, "none"), (afd.BUFFER, "user")]


def test_results_of_an_abort_are_not_counted_as_errors_again() -> None:
    m = model(afd.opened(at_us=0), afd.receive(at_us=1), afd.abort(at_us=2), afd.receive(at_us=3, enter_exit=EXIT, status=RESET))
    assert m.one("socket", "errors", "last_error") == (0, RESET)


def test_what_is_in_flight_ends_with_the_socket() -> None:
    m = model(afd.opened(at_us=0), afd.receive(at_us=1), afd.closed(at_us=9))
    assert m.one("operation", "outcome", "completed_ns", "end_ns") == ("ended_with_socket", None, 9_000)


def test_what_is_in_flight_when_the_trace_ends_stays_so() -> None:
    assert model(afd.receive(at_us=1)).one("operation", "outcome", "end_ns") == ("in_flight", None)


# ---------------------------------------------------------------------------------------------------- double counts, datagrams


@pytest.mark.parametrize(
    "sign", [Where(location=3024, is_fast=False), Where(location=3073, is_fast=False), Where(is_buffered=True, is_fast=False)]
)
def test_what_the_transport_finishes_later_is_kept_but_counts_nothing(sign: Where) -> None:
    m = model(
        afd.send(at_us=1, length_bytes=517),
        afd.send(at_us=2, enter_exit=EXIT, length_bytes=517, **sign),
        afd.send(at_us=3, enter_exit=EXIT, length_bytes=517),
    )

    assert pairs(m) == [(1, "thread", 1, 3)]
    assert m.one("socket", "bytes_sent") == (517,)
    assert m.one("skipped", "t_ns", "kind", "bytes", "reason") == (2_000, "send", 517, "double_count")


def test_an_entry_with_the_buffered_bit_is_a_post_like_any_other() -> None:
    assert pairs(model(afd.send(at_us=1, is_buffered=True))) == [(1, None, 1, None)]


def test_a_datagram_send_needs_no_exit() -> None:
    m = model(
        afd.send_message(at_us=1, length_bytes=40, address="192.0.2.53:53"),
        afd.send_message(at_us=2, length_bytes=44, address="192.0.2.99:53"),
        afd.send_message(at_us=3, enter_exit=EXIT, length_bytes=44, address="192.0.2.99:53"),
        afd.send_message(at_us=4, length_bytes=50, address="192.0.2.99:53"),
        afd.send_message(at_us=5, enter_exit=EXIT, length_bytes=50, status=RESET, address="192.0.2.99:53"),
    )

    assert m.rows("operation", "outcome", "bytes", "end_ns") == [("sent", 40, 1_000), ("completed", 44, 3_000), ("failed", 0, 5_000)]
    assert m.one("socket", "bytes_sent", "sends") == (84, 2)
    assert m.rows("peer", "address", "bytes_sent", "sends") == [("192.0.2.53:53", 40, 1), ("192.0.2.99:53", 44, 1)]


def test_many_datagram_sends_without_exit_are_settled_meanwhile() -> None:
    m = model([afd.send_message(at_us=t, length_bytes=10) for t in range(1, 1500)])

    assert {row["outcome"] for row in m.table("operation")} == {"sent"}
    assert m.one("socket", "bytes_sent") == (14_990,)


def test_a_connected_datagram_socket_counts_for_its_default_peer() -> None:
    m = model(
        afd.opened(at_us=0, socket_type=2),
        afd.connect(at_us=1, address="192.0.2.53:53"),
        afd.connect(at_us=2, enter_exit=EXIT),
        afd.sent(at_us=3, length_bytes=12, is_datagram=True),
    )

    assert m.one("socket", "remote", "connections") == ("192.0.2.53:53", 0)
    assert m.one("peer", "address", "bytes_sent") == ("192.0.2.53:53", 12)


def test_a_send_without_exit_counts_for_the_default_peer_of_its_time() -> None:
    m = model(
        afd.opened(at_us=0, socket_type=2),
        afd.connected(at_us=1, address="192.0.2.53:53", duration_us=1),
        afd.send_message(at_us=3, length_bytes=12),
        afd.connected(at_us=4, address="192.0.2.99:53", duration_us=1),
        afd.send_message(at_us=6, length_bytes=20),
        afd.send_message(at_us=7, length_bytes=30),
        afd.send_message(at_us=8, length_bytes=30, enter_exit=EXIT),
    )
    assert sorted(m.rows("peer", "address", "bytes_sent", "sends")) == [("192.0.2.53:53", 12, 1), ("192.0.2.99:53", 50, 2)]


def test_documented_datagrams_count_when_they_complete() -> None:
    m = model(
        documented.create(at_us=0, socket_type=2, protocol=17),
        documented.posted("SendTo", at_us=1, length_bytes=40, address="192.0.2.53:53"),
        documented.posted("SendTo", at_us=2, length_bytes=50, address="192.0.2.53:53", buffer=0x99_0000),
        documented.completed("SendTo", at_us=3, length_bytes=40),
        documented.completed("RecvFrom", at_us=4, length_bytes=80, address="192.0.2.99:53"),
    )

    assert m.one("socket", "bytes_sent", "bytes_received") == (40, 80)
    assert m.rows("peer", "address", "bytes_sent", "bytes_received") == [("192.0.2.53:53", 40, 0), ("192.0.2.99:53", 0, 80)]


# ---------------------------------------------------------------------------------------------------- whose address is it


@pytest.mark.parametrize(
    ("pointer_size", "buffer", "space"),
    [
        (8, 0, "none"),
        (8, 0xFFFF, "none"),
        (8, 0x10000, "user"),
        (8, 0x7FFF_FFFF_FFFF, "user"),
        (8, 0x8000_0000_0000, "none"),
        (8, 0xFFFF_7FFF_FFFF_FFFF, "none"),
        (8, 0xFFFF_8000_0000_0000, "kernel"),
        (8, 0xFFFF_FFFF_FFFF_FFFF, "kernel"),
        (4, 0xFFFF, "none"),
        (4, 0x7FFF_FFFF, "user"),
        (4, 0x8000_0000, "kernel"),
        (4, 0xFFFF_FFFF, "kernel"),
    ],
)
@pytest.mark.parametrize("is_fast", [True, False])
def test_magnitude_tells_the_space_whatever_the_flag_says(pointer_size: int, buffer: int, space: str, *, is_fast: bool) -> None:
    m = model(afd.send(at_us=1, buffer=buffer, is_fast=is_fast, process=0x8500_0030, endpoint=0x8600_0190), pointer_size=pointer_size)
    assert m.one("operation", "space", "fast_path") == (space, is_fast)


# ---------------------------------------------------------------------------------------------------- a fast attempt before


def slow(at_us: float, *, enter_exit: int = ENTER, length_bytes: int = 4096, **where: Unpack[Who]) -> Event:
    """A receive on the slow path: a kernel address and an ActivityId."""
    return afd.receive(at_us=at_us, enter_exit=enter_exit, length_bytes=length_bytes, buffer=KERNEL, activity=REQUEST, **where)


def test_an_attempt_without_an_answer_and_the_slow_entry_after_it_are_one_request() -> None:
    m = model(
        afd.receive(at_us=1, buffer=USER),
        slow(2),
        slow(9, enter_exit=EXIT, pid=0, tid=0),
    )

    assert pairs(m) == [(1, "activity", 1, 9)]
    assert m.one("operation", "buffer", "space", "buffer_inferred", "request_buffer", "fast_path") == (
        USER,
        "user",
        True,
        KERNEL - (1 << 64),
        False,
    )
    assert [row["t_ns"] for row in m.table("socket_event")] == [2_000]


def test_an_attempt_that_would_block_lends_its_buffer_to_the_slow_request() -> None:
    m = model(
        afd.receive(at_us=1, buffer=USER),
        afd.receive(at_us=2, enter_exit=EXIT, buffer=USER, status=WOULD_BLOCK),
        slow(3),
        slow(9, enter_exit=EXIT, pid=0, tid=0, length_bytes=70),
    )

    assert m.rows("operation", "outcome", "buffer", "buffer_inferred", "bytes") == [
        ("failed", USER, False, 0),
        ("completed", USER, True, 70),
    ]


@pytest.mark.parametrize("generation", ["modern", "documented"])
def test_a_slow_entry_that_shows_the_same_user_buffer_is_the_same_request(generation: str) -> None:
    if generation == "modern":
        events = [
            afd.receive(at_us=1, buffer=USER),
            afd.receive(at_us=2, buffer=USER, is_fast=False, activity=REQUEST),
            afd.receive(at_us=9, enter_exit=EXIT, buffer=USER, is_fast=False, activity=REQUEST, tid=0),
        ]
    else:
        events = [
            documented.posted("Recv", at_us=1, buffer=USER),
            documented.posted("Recv", at_us=2, buffer=USER, is_fast=False),
            documented.completed("Recv", at_us=9, buffer=USER, tid=0),
        ]
    m = model(events)

    assert m.one("operation", "posted_ns", "completed_ns", "outcome", "buffer", "buffer_inferred") == (
        1_000,
        9_000,
        "completed",
        USER,
        False,
    )
    assert m.table("overlap") == []


def test_documented_requests_in_flight_at_two_addresses_are_two() -> None:
    m = model(
        documented.posted("Recv", at_us=1, buffer=USER),
        documented.posted("Recv", at_us=2, buffer=KERNEL, is_fast=False),
        documented.completed("Recv", at_us=8, buffer=USER, tid=0),
        documented.completed("Recv", at_us=9, buffer=KERNEL, tid=0),
    )
    assert pairs(m) == [(1, "buffer", 1, 8), (2, "buffer", 2, 9)]


@pytest.mark.parametrize(
    "between",
    [
        [afd.receive(at_us=2, enter_exit=EXIT, buffer=USER, length_bytes=4096)],
        [afd.option(at_us=2, option=6, value=1)],
        afd.sent(at_us=2),
        [afd.receive(at_us=2, enter_exit=EXIT, buffer=USER, status=RESET)],
    ],
    ids=["succeeded", "an option set", "a send", "failed"],
)
def test_anything_else_between_makes_them_two_requests(between: list[Event]) -> None:
    m = model(afd.receive(at_us=1, buffer=USER), *between, slow(5))
    assert m.rows("operation", "buffer_inferred", "space")[-1] == (False, "kernel")


@pytest.mark.parametrize("other", [slow(2, tid=12), slow(2, length_bytes=4095), slow(2, endpoint=ENDPOINT + 0x800)])
def test_another_thread_length_or_socket_is_another_request(other: Event) -> None:
    m = model(afd.receive(at_us=1, buffer=USER), other)
    assert m.rows("operation", "buffer_inferred", "space")[-1] == (False, "kernel")


def test_an_attempt_that_another_thread_has_ended_is_over() -> None:
    m = model(
        afd.receive(at_us=1, buffer=USER),
        afd.receive(at_us=2, enter_exit=EXIT, buffer=USER, tid=0, is_fast=False),
        slow(3),
        slow(4, enter_exit=EXIT),
    )
    assert pairs(m) == [(1, "buffer", 1, 2), (2, "activity", 3, 4)]


# ---------------------------------------------------------------------------------------------------- order


def test_operations_are_numbered_by_their_first_record() -> None:
    m = model(
        afd.receive(at_us=1, buffer=USER),
        afd.send(at_us=2),
        afd.send(at_us=3, enter_exit=EXIT),
        afd.receive(at_us=4, enter_exit=EXIT, buffer=USER),
    )
    assert m.rows("operation", "n", "kind") == [(1, "recv"), (2, "send")]


# ---------------------------------------------------------------------------------------------------- one tick, two processors


@pytest.mark.parametrize("post_on", [0, 1])
@pytest.mark.parametrize(
    ("post", "completion"),
    [
        (afd.receive(at_us=5, buffer=USER), afd.receive(at_us=5, enter_exit=EXIT, buffer=USER, tid=0, length_bytes=300)),
        (afd.receive(at_us=5, activity=REQUEST), afd.receive(at_us=5, enter_exit=EXIT, activity=REQUEST, tid=0, length_bytes=300)),
        (documented.posted("Recv", at_us=5), documented.completed("Recv", at_us=5, tid=0, length_bytes=300)),
        (documented.posted("Recv", at_us=5), documented.failed("Recv", at_us=5, tid=0)),
        (afd.connect(at_us=5, address="192.0.2.1:80"), afd.connect(at_us=5, enter_exit=EXIT, tid=0)),
    ],
    ids=["buffer", "activity", "documented", "failure", "connect"],
)
def test_a_completion_at_the_tick_of_its_post_is_found_whichever_processor_comes_first(
    post: Event, completion: Event, post_on: int
) -> None:
    m = model(afd.opened(at_us=0), post, completion, afd.receive(at_us=6, buffer=USER, tid=12), on_cpu=[0, 0, post_on, 1 - post_on, 0])

    row = m.table("operation")[0]
    assert (row["posted_ns"], row["completed_ns"], row["posted_cpu"]) == (5_000, 5_000, post_on)
    assert row["match"] != "none"
    assert m.rows("operation", "outcome")[1:] == [("in_flight",)]
    assert m.table("overlap") == []
    assert "unmatched_completions" not in m.problems
    assert m.one("socket", "bytes_received") == (row["bytes"],)


def test_on_one_processor_a_completion_before_a_post_is_not_its_own() -> None:
    m = model(afd.receive(at_us=5, enter_exit=EXIT, buffer=USER), afd.receive(at_us=5, buffer=USER))
    assert pairs(m) == [(1, "none", None, 5), (2, None, 5, None)]


def test_completions_that_never_meet_a_post_are_told_once_the_clock_goes_on() -> None:
    m = model([afd.receive(at_us=5, enter_exit=EXIT, buffer=USER + i) for i in range(100)], afd.receive(at_us=6, enter_exit=EXIT))
    assert m.problems["unmatched_completions"] == len(m.table("operation")) == 101
