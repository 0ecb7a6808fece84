"""Aborts, drops, options, polls, registered I/O, the list of records, and problems (winsock-semantics 8, 11 to 16)."""

import json

import pytest

from collector.store.tables import ROW_COLUMNS
from tests.build import EXIT, afd, documented, system
from tests.build.events import ENDPOINT, PROCESS, Event
from tests.socket_model import Model, model

RESET, WOULD_BLOCK = 0xC000_020D, 0xC000_00A3


# ---------------------------------------------------------------------------------------------------- aborts


def client() -> list[Event]:
    """A connected socket."""
    return [*afd.opened(at_us=0), *afd.connected(at_us=2, duration_us=1)]


def abort(m: Model, *columns: str) -> tuple[object, ...]:
    return m.rows("abort", *columns)[-1]


@pytest.mark.parametrize(
    ("record", "initiator"),
    [
        (afd.abort(at_us=9, reason=7), "afd"),
        (afd.abort(at_us=9, reason=4), "transport"),
        (afd.abort(at_us=9, reason=18), "transport"),
        (afd.abort(at_us=9, reason=15, enter_exit=3), "transport"),
        (documented.aborted(at_us=9, reason=4, by_transport=False), "afd"),
        (documented.aborted(at_us=9, reason=7, by_transport=True), "transport"),
    ],
)
def test_the_event_or_the_reason_says_who_aborted(record: Event, initiator: str) -> None:
    assert abort(model(client(), record), "initiator") == (initiator,)


@pytest.mark.parametrize(
    ("reason", "name", "certainty"),
    [(7, "pending_data_at_disconnect", "certain"), (4, "transport_disconnect", "possible"), (77, None, None), (0xC000_020D, None, None)],
)
def test_a_reason_has_a_name_and_how_sure_it_is(reason: int, name: str | None, certainty: str | None) -> None:
    m = model(client(), afd.abort(at_us=9, reason=reason))
    assert abort(m, "reason", "reason_name", "reason_certainty") == (reason, name, certainty)


@pytest.mark.parametrize(("at_us", "during"), [(9, "running"), (10, "close"), (11, "close"), (30, "close")])
def test_an_abort_at_or_after_the_close_is_part_of_closing(at_us: float, during: str) -> None:
    events = [*client(), *afd.closed(at_us=10), afd.abort(at_us=at_us, reason=7)]
    m = model(sorted(events, key=lambda e: e.at_us))
    assert abort(m, "during") == (during,)


def test_unread_bytes_are_what_arrived_and_was_not_received() -> None:
    m = model(
        client(), afd.data_indication(at_us=5, length_bytes=1460), afd.received(at_us=6, got_bytes=1000), afd.abort(at_us=9, reason=7)
    )
    assert abort(m, "unread_bytes") == (460,)


def test_without_indications_unread_bytes_are_unknown() -> None:
    assert abort(model(client(), afd.abort(at_us=9, reason=7)), "unread_bytes") == (None,)


def test_the_first_abort_of_a_connection_is_the_cause() -> None:
    m = model(client(), afd.abort(at_us=9, reason=4), afd.abort(at_us=10, reason=14))
    assert m.rows("abort", "is_primary") == [(True,), (False,)]


def test_an_abort_says_what_went_before() -> None:
    m = model(
        client(),
        afd.receive(at_us=5, tid=20),
        afd.send(at_us=6),
        afd.send(at_us=7, enter_exit=EXIT, status=RESET),
        afd.disconnect(at_us=8),
        afd.abort(at_us=9, reason=4, location=8016, tid=33),
    )
    assert abort(m, "outstanding", "last_error", "last_disconnect_ns", "last_traffic_ns", "location", "tid") == (
        1,
        RESET,
        8_000,
        None,
        8016,
        33,
    )


def test_an_abort_on_a_listener_is_another_connections() -> None:
    m = model(afd.opened(at_us=0), afd.listen(at_us=2), afd.abort(at_us=9, reason=5), afd.abort(at_us=10, reason=9))

    assert m.rows("abort", "on_listener", "is_primary", "during") == [(True, True, "running")] * 2
    assert m.one("socket", "end") == ("open_at_end",)


# ---------------------------------------------------------------------------------------------------- drops and options


def test_a_drop_knows_the_reason_the_receives_in_flight_and_the_buffer_size() -> None:
    m = model(
        afd.opened(at_us=0, socket_type=2),
        afd.option(at_us=2, option=6, value=65536),
        afd.receive_from(at_us=3, buffer=afd.BUFFER),
        afd.receive_from(at_us=4, buffer=afd.BUFFER + 8192, tid=12),
        afd.drop(at_us=5, reason=2, length_bytes=900),
        documented.dropped(at_us=6, reason=2, length_bytes=99),
        afd.drop(at_us=7, reason=99),
    )

    assert m.rows("drop", "reason_name", "reason_certainty", "length", "source", "receives_outstanding", "receive_buffer_bytes") == [
        ("no_buffer_space", "certain", 900, "198.51.100.200:9999", 2, 65536),
        ("no_buffer_space", "possible", 99, "198.51.100.200:9999", 2, 65536),
        (None, None, 900, "198.51.100.200:9999", 2, 65536),
    ]
    assert m.one("peer", "address", "dropped", "bytes_received") == ("198.51.100.200:9999", 3, 0)


def test_options_are_listed_with_their_names() -> None:
    m = model(afd.option(at_us=1, option=7, value=0), documented.option(at_us=2, option=3, value=5))
    assert m.rows("option", "option", "name", "value", "status") == [(7, "SO_SNDBUF", 0, 0), (3, None, 5, None)]


# ---------------------------------------------------------------------------------------------------- polls


def test_polls_match_by_process_and_thread() -> None:
    m = model(
        documented.select(at_us=1, tid=5, handle_count=3, timeout=-150000),
        documented.select(at_us=2, tid=6),
        documented.selected(at_us=3, tid=6, error=0x102),
        documented.selected(at_us=4, tid=5),
        documented.selected(at_us=5, tid=5),
        documented.select(at_us=6, tid=7),
        documented.select(at_us=7, tid=7),
    )

    assert sorted(m.rows("poll", "tid", "posted_ns", "completed_ns", "handles", "timeout_raw", "error"), key=str) == sorted(
        [
            (6, 2_000, 3_000, 1, -1, 0x102),
            (5, 1_000, 4_000, 3, -150000, 0),
            (5, None, 5_000, None, None, 0),
            (7, 6_000, None, 1, -1, None),
            (7, 7_000, None, 1, -1, None),
        ],
        key=str,
    )
    assert m.table("operation") == []


# ---------------------------------------------------------------------------------------------------- registered I/O


def queue(name: str, at_us: float, **values: int) -> Event:
    """A record of registered I/O."""
    return Event(name=name, at_us=at_us, values=values)


def test_a_request_queue_marks_its_socket() -> None:
    state = 0xFFFF_9A0C_5000_0800
    sizes = dict.fromkeys(
        (
            *("registration_domain", "send_entry_count", "send_user_address", "send_system_address", "send_buffer_size"),
            *("receive_entry_count", "receive_user_address", "receive_system_address", "receive_buffer_size"),
            *("send_cq_index", "receive_cq_index", "status"),
        ),
        0,
    )
    ends = dict.fromkeys(("receive_queue_start", "receive_queue_end", "send_queue_start", "send_queue_end"), 0)
    m = model(
        afd.opened(at_us=0, socket_type=2),
        queue("AfdRioCreateRqPair", 2, endpoint=ENDPOINT, rio_state=state, **sizes),
        queue("AfdRioDeregisterBuffer", 3, buffer=0xFFFF_9A0C_5000_0C00, references=2),
        queue("AfdRioCloseRioState", 4, rio_state=state, **ends),
        queue("AfdRioCleanupRioState", 5, rio_state=state),
        queue("AfdRioCleanupRioState", 6, rio_state=state),
    )

    assert m.one("socket", "registered_io") == (True,)
    assert m.rows("socket_event", "event", "socket_n")[2:] == [(4006, 1), (4011, None), (4007, 1), (4008, 1), (4008, None)]
    assert json.loads(m.rows("socket_event", "fields")[3][0]) == {"buffer": "0xffff9a0c50000c00", "references": 2}


# ---------------------------------------------------------------------------------------------------- the list of records


def test_every_record_has_exactly_one_place() -> None:
    events = [
        *client(),
        *afd.sent(at_us=10),
        afd.send(at_us=12, enter_exit=EXIT, location=3073),
        afd.send(at_us=13, enter_exit=4),
        afd.receive(at_us=14, status=RESET),
        afd.data_indication(at_us=15),
        afd.send_backlog(at_us=16, backlog_bytes=1 << 16),
        documented.select(at_us=17),
        documented.data_indicated(at_us=18),
        *afd.closed(at_us=20),
    ]
    m = model(events)

    operations = [seq for row in m.rows("operation", "posted_seq", "completed_seq") for seq in set(row) if seq is not None]
    others = [row["seq"] for row in m.table("socket_event")]
    assert sorted(operations + others) == sorted(set(range(len(events))) - {6})
    assert [row["t_ns"] for row in m.table("skipped")] == [12_000]


def test_fields_without_a_column_are_kept_as_json() -> None:
    m = model(documented.create(at_us=0), afd.send_backlog(at_us=1, backlog_bytes=65536))

    assert [json.loads(row["fields"]) for row in m.table("socket_event")] == [
        {"address_family": 2, "socket_type": 1, "protocol": 6, "user_mode_pid": 4120},
        {"send_backlog": 65536},
    ]
    assert m.rows("socket_event", "event", "enter_exit", "location", "status") == [(1, None, None, None), (3007, 3, 0, None)]


def test_rows_have_the_columns_of_their_tables() -> None:
    m = model(
        client(),
        afd.sent(at_us=10),
        afd.send(at_us=11, tid=12),
        afd.send(at_us=12, tid=13),
        afd.listen(at_us=13),
        afd.bind(at_us=14, enter_exit=EXIT, status=RESET),
        afd.abort(at_us=15),
        afd.drop(at_us=16),
        afd.option(at_us=17, option=1, value=1),
        afd.send(at_us=18, enter_exit=EXIT, location=3024),
        documented.select(at_us=19),
        system.process_rundown(at_us=20),
    )

    expected = {"owner", "address", "socket", "peer", "operation", "skipped", "abort", "overlap", "drop", "bind_failure", "listen_event"}
    assert expected | {"option", "poll", "socket_event"} <= set(m.tables)
    for table in m.tables:
        for row in m.table(table):
            assert set(ROW_COLUMNS[table]) <= set(row)


# ---------------------------------------------------------------------------------------------------- problems


def test_absent_events_are_named_with_what_they_would_tell() -> None:
    m = model(client())
    assert m.problems["absent_socket_events"] > 0
    assert "absent_socket_events" not in model(documented.create(at_us=0)).problems


def test_a_clean_documented_trace_has_no_problem() -> None:
    m = model(
        system.process_start(at_us=0),
        documented.create(at_us=1),
        documented.posted("Send", at_us=2),
        documented.completed("Send", at_us=3),
        documented.close(at_us=4),
    )
    assert m.problems == {}


def test_a_process_object_is_not_a_process_id() -> None:
    m = model(afd.send(at_us=1, pid=0))
    assert m.one("owner", "eprocess", "process_n") == (PROCESS - (1 << 64), None)
