"""When a socket begins and ends, and to which life of an endpoint a record belongs (winsock-semantics 3)."""

import pytest

from tests.build import EXIT, afd, documented
from tests.build.events import ENDPOINT, PROCESS, Event, event
from tests.socket_model import Model, model

OTHER = PROCESS + 0x540
FAILED = 0xC000_009A


def lives(m: Model) -> list[tuple[object, ...]]:
    """Created, closed and destroyed in µs, and the end of each socket."""
    return [
        tuple(None if t is None else t // 1000 for t in row[:3]) + row[3:]
        for row in m.rows("socket", "created_ns", "closed_ns", "destroyed_ns", "end")
    ]


def test_a_socket_is_closed_when_cleanup_begins_and_destroyed_when_close_ends() -> None:
    assert lives(model(afd.opened(at_us=1), afd.closed(at_us=10))) == [(1, 10, 13, "closed")]


def test_without_cleanup_events_the_close_tells_when_it_was_closed() -> None:
    m = model(afd.opened(at_us=1), afd.close(at_us=10), afd.close(at_us=12, enter_exit=EXIT))
    assert lives(m) == [(1, 10, 12, "closed")]


def test_a_socket_with_cleanup_alone_is_closing_when_the_trace_ends() -> None:
    assert lives(model(afd.opened(at_us=1), afd.cleanup(at_us=10))) == [(1, 10, None, "closing_at_end")]


def test_an_open_socket_is_open_at_the_end() -> None:
    assert lives(model(afd.opened(at_us=1))) == [(1, None, None, "open_at_end")]


def test_documented_close_ends_and_cleanup_after_it_only_confirms() -> None:
    assert lives(model(documented.create(at_us=1), documented.close(at_us=5), documented.cleanup(at_us=7))) == [(1, 5, 7, "closed")]


def test_documented_cleanup_alone_ends_nothing() -> None:
    m = model(documented.create(at_us=1), documented.cleanup(at_us=5), documented.posted("Send", at_us=6))
    assert lives(m) == [(1, None, None, "open_at_end")]


@pytest.mark.parametrize(
    "record",
    [afd.create(at_us=1, status=FAILED), afd.create(at_us=1, endpoint=0), afd.create(at_us=1, endpoint=0, status=FAILED, enter_exit=EXIT)],
)
def test_a_create_that_fails_or_names_no_endpoint_makes_no_socket(record: Event) -> None:
    m = model(record)

    assert m.table("socket") == []
    assert len(m.table("socket_event")) == 1


def test_a_create_whose_exit_fails_made_no_socket() -> None:
    m = model(afd.create(at_us=1), afd.create(at_us=2, enter_exit=EXIT, status=FAILED), afd.opened(at_us=5))

    assert m.rows("socket", "created_ns", "end") == [(5_000, "open_at_end")]


def test_a_failed_create_undoes_no_socket_that_has_done_something() -> None:
    m = model(afd.opened(at_us=1), afd.sent(at_us=3), afd.create(at_us=9, enter_exit=EXIT, status=FAILED))

    assert lives(m) == [(1, None, None, "open_at_end")]
    assert m.one("operation", "socket_n") == (1,)


def test_the_first_record_of_an_endpoint_opens_a_socket_with_unknown_start() -> None:
    m = model(afd.send(at_us=7))

    assert m.one("socket", "create_seen", "created_ns", "first_ns", "type", "type_inferred") == (False, None, 7_000, 1, True)
    assert m.problems["sockets_without_create"] == 1


def test_keywords_tell_datagram_sockets() -> None:
    assert model(afd.send_to(at_us=1)).one("socket", "type", "type_inferred") == (2, True)


def test_the_exit_of_a_create_alone_tells_what_kind_of_socket_it_is() -> None:
    m = model(afd.create(at_us=1, enter_exit=EXIT))
    assert m.one("socket", "family", "type", "protocol", "type_inferred", "create_seen", "created_ns") == (2, 1, 6, False, False, None)


def test_late_records_belong_to_the_socket_that_has_ended() -> None:
    m = model(
        afd.opened(at_us=1),
        afd.receive(at_us=5),
        afd.closed(at_us=10),
        afd.receive(at_us=20, enter_exit=EXIT, status=0xC000_0120, pid=4),
        afd.abort(at_us=21, reason=7),
        afd.data_indication(at_us=22),
    )

    assert lives(m) == [(1, 10, 13, "closed")]
    assert m.one("socket", "last_ns", "bytes_indicated") == (22_000, 1460)
    assert m.one("operation", "outcome", "completed_ns", "end_ns") == ("cancelled", 20_000, 10_000)
    assert m.one("abort", "during") == ("close",)


def test_a_late_record_of_another_process_finds_its_own_socket() -> None:
    m = model(
        afd.opened(at_us=1),
        afd.closed(at_us=10),
        afd.opened(at_us=20, process=OTHER, pid=5000),
        afd.abort(at_us=30),
    )

    assert m.rows("socket", "n", "last_ns") == [(1, 30_000), (2, 21_000)]
    assert m.one("abort", "socket_n") == (1,)


def test_a_late_record_of_an_unknown_process_does_not_end_the_socket_that_is_open() -> None:
    m = model(afd.opened(at_us=1), afd.abort(at_us=5, process=OTHER), afd.send(at_us=6))

    assert m.rows("socket", "n", "end") == [(1, "open_at_end"), (2, "open_at_end")]
    assert m.one("operation", "socket_n") == (1,)


@pytest.mark.parametrize(
    "start",
    [
        afd.bind(at_us=50),
        afd.connect(at_us=50, address="192.0.2.1:80"),
        afd.send(at_us=50),
        afd.accept_ex(at_us=50),
        afd.listen(at_us=50),
        documented.posted("Recv", at_us=50),
    ],
    ids=lambda event: event.name,
)
def test_what_only_a_living_socket_can_do_begins_a_new_life(start: Event) -> None:
    m = model(afd.opened(at_us=1), afd.closed(at_us=10), start)

    assert lives(m) == [(1, 10, 13, "closed"), (None, None, None, "open_at_end")]


def test_a_create_on_an_open_socket_supersedes_it() -> None:
    m = model(afd.opened(at_us=1), afd.send(at_us=5), afd.create(at_us=9))

    assert lives(m) == [(1, None, None, "superseded"), (9, None, None, "open_at_end")]
    assert m.one("operation", "outcome", "end_ns") == ("unknown_end", 9_000)
    assert m.problems["sockets_superseded"] == 1


def test_a_start_by_another_process_supersedes_too() -> None:
    m = model(afd.opened(at_us=1), afd.send(at_us=9, process=OTHER))
    assert lives(m) == [(1, None, None, "superseded"), (None, None, None, "open_at_end")]


def test_an_endpoint_is_used_again_within_a_microsecond() -> None:
    m = model(afd.opened(at_us=1, socket_type=2), afd.closed(at_us=10), afd.create(at_us=13.1))

    assert m.rows("socket", "endpoint", "type", "created_ns") == [(ENDPOINT - (1 << 64), 2, 1_000), (ENDPOINT - (1 << 64), 1, 13_100)]


def test_a_documented_create_after_a_disconnect_is_a_further_connection() -> None:
    m = model(
        documented.create(at_us=1),
        documented.connect(at_us=2, address="192.0.2.1:80"),
        documented.connect_completed(at_us=3),
        documented.data_indicated(at_us=4, length_bytes=100),
        documented.disconnect_indicated(at_us=5),
        documented.create(at_us=6),
        documented.connect(at_us=7, address="192.0.2.2:80"),
        documented.connect_completed(at_us=8),
        documented.aborted(at_us=9, reason=7),
    )

    assert m.one("socket", "created_ns", "connections", "remote", "end") == (1_000, 2, "192.0.2.2:80", "open_at_end")
    assert m.one("abort", "unread_bytes") == (0,)


def test_a_documented_create_of_another_type_supersedes_even_after_a_disconnect() -> None:
    m = model(documented.create(at_us=1), documented.disconnect_indicated(at_us=5), documented.create(at_us=6, socket_type=2))
    assert lives(m) == [(1, None, None, "superseded"), (6, None, None, "open_at_end")]


def test_at_one_tick_a_post_on_another_processor_belongs_to_the_socket_that_closes() -> None:
    post, close = afd.send(at_us=10), afd.cleanup(at_us=10)
    early = model(afd.opened(at_us=1), post, close, on_cpu=[0, 0, 0, 1])
    late = model(afd.opened(at_us=1), post, close, on_cpu=[0, 0, 1, 0])

    for m in (early, late):
        assert lives(m) == [(1, 10, None, "closing_at_end")]
        assert m.one("operation", "outcome", "end_ns") == ("ended_with_socket", 10_000)


def test_who_made_and_who_closed_a_socket_is_kept() -> None:
    m = model(afd.opened(at_us=1, tid=21), afd.closed(at_us=10, tid=22))
    assert m.one("socket", "create_tid", "close_tid") == (21, 22)


def test_names_resolved_by_a_process_are_kept_on_its_endpoint_zero() -> None:
    m = model(afd.opened(at_us=1), *[_tracker(at_us=5), _tracker(at_us=6)])

    assert m.rows("socket", "endpoint", "create_seen", "type") == [(ENDPOINT - (1 << 64), True, 1), (0, False, None)]


def _tracker(*, at_us: float) -> Event:
    return event("AfdNrtCreate", at_us=at_us, name_resolution_handle=1, process=PROCESS, status=0)


def test_late_records_find_their_socket_in_the_archive() -> None:
    other = ENDPOINT + 0x800
    events = [
        *afd.opened(at_us=1, socket_type=2),
        afd.drop(at_us=5),
        *afd.closed(at_us=10),
        *afd.opened(at_us=20, process=OTHER, pid=5000),
        *afd.opened(at_us=21, endpoint=other),
        *afd.closed(at_us=30, endpoint=other),
        afd.drop(at_us=40),
        afd.data_indication(at_us=41, endpoint=other),
        *afd.opened(at_us=50, endpoint=other),
    ]
    archived, plain = model(events, kept=0), model(events)

    assert archived.tables == plain.tables
    assert archived.rows("socket", "n", "last_ns", "bytes_indicated") == [(1, 40_000, 0), (2, 21_000, 0), (3, 41_000, 1460), (4, 51_000, 0)]
    assert archived.one("peer", "socket_n", "dropped") == (1, 2)


# ------------------------------------------------------------ an address used again before its end is told


def test_the_last_sign_of_a_socket_ends_no_newer_one_at_its_address() -> None:
    """The memory of an endpoint is free before the exit of its close is written."""
    m = model(
        afd.opened(at_us=1),
        afd.cleanup(at_us=10),
        afd.close(at_us=12),
        afd.create(at_us=12.5),
        afd.close(at_us=13, enter_exit=EXIT),
        afd.connected(at_us=15, duration_us=1),
        afd.closed(at_us=20),
    )

    assert lives(m) == [(1, 10, 13, "closed"), (12, 20, 23, "closed")]
    assert m.rows("socket", "connections", "last_ns") == [(0, 13_000), (1, 23_000)]


def test_a_documented_confirmation_after_the_address_is_used_again_shuts_nothing_down() -> None:
    m = model(
        documented.create(at_us=1),
        documented.close(at_us=5),
        documented.create(at_us=6),
        documented.cleanup(at_us=7),
        documented.create(at_us=9),
    )
    assert lives(m) == [(1, 5, 7, "closed"), (6, None, None, "superseded"), (9, None, None, "open_at_end")]


@pytest.mark.parametrize("kept", [10_000, 0])
def test_late_records_go_past_a_newer_life_that_has_begun_nothing(kept: int) -> None:
    m = model(
        afd.opened(at_us=1),
        afd.connected(at_us=3, duration_us=1),
        afd.receive(at_us=5),
        afd.receive(at_us=6, activity=0x41000A20, length_bytes=100),
        afd.cleanup(at_us=10),
        afd.create(at_us=12),
        afd.receive(at_us=13, enter_exit=EXIT, status=0xC000_0120, tid=0, is_fast=False, buffer=afd.BUFFER),
        afd.receive(at_us=14, enter_exit=EXIT, status=0xC000_0120, tid=0, activity=0x41000A20),
        afd.abort(at_us=15, reason=7),
        afd.data_indication(at_us=16),
        afd.connected(at_us=20, duration_us=1),
        afd.abort(at_us=30, reason=4),
        kept=kept,
    )

    assert m.rows("operation", "socket_n", "outcome", "completed_ns", "end_ns")[1:3] == [
        (1, "cancelled", 13_000, 10_000),
        (1, "cancelled", 14_000, 10_000),
    ]
    assert m.rows("abort", "socket_n", "during", "is_primary") == [(1, "close", True), (2, "running", True)]
    assert m.rows("socket", "bytes_indicated") == [(1460,), (0,)]


def test_a_documented_failure_after_the_address_is_used_again_ends_the_request_of_the_old_socket() -> None:
    m = model(
        documented.create(at_us=1),
        documented.posted("Recv", at_us=2),
        documented.posted("Send", at_us=3),
        documented.close(at_us=5),
        documented.create(at_us=6),
        documented.failed("Recv", at_us=7, tid=0),
        documented.completed("Send", at_us=8),
    )

    assert m.rows("operation", "socket_n", "outcome", "match") == [(1, "failed", "fifo"), (1, "completed", "buffer")]
    assert "unmatched_completions" not in m.problems


def test_a_socket_with_no_more_than_the_exit_of_its_close_is_closing_from_then_on() -> None:
    m = model(afd.send(at_us=1), afd.close(at_us=9, enter_exit=EXIT), afd.abort(at_us=10, reason=7))

    assert lives(m) == [(None, None, 9, "closed")]
    assert m.one("abort", "during") == ("close",)


# ---------------------------------------------------------------------------------------------------- one tick, two processors


@pytest.mark.parametrize("create_on", [0, 1])
def test_a_create_at_the_tick_of_the_first_call_is_of_the_same_socket(create_on: int) -> None:
    m = model(afd.create(at_us=5), afd.bind(at_us=5), on_cpu=[create_on, 1 - create_on])
    assert lives(m) == [(5, None, None, "open_at_end")]


@pytest.mark.parametrize("cleanup_on", [0, 1])
def test_cleanup_and_close_at_one_tick_are_one_end(cleanup_on: int) -> None:
    cleanup, close = afd.cleanup(at_us=5), afd.close(at_us=5, enter_exit=EXIT)
    m = model(afd.opened(at_us=1), cleanup, close, on_cpu=[0, 0, cleanup_on, 1 - cleanup_on])
    assert lives(m) == [(1, 5, 5, "closed")]
