"""All socket events of a window as one table: order, missing fields, and layouts that a trace describes in its own way."""

import json
from dataclasses import replace

import numpy as np

from collector.decoder import Decoder
from collector.model.addresses import Addresses
from collector.model.afd_table import KERNEL_SPACE, USER_SPACE, Event, PidSource, afd_counts, afd_table
from collector.schema import Column, DecodedBatch, EventColumns, Ragged
from tests.build import EXIT, afd, documented
from tests.build import events as built
from tests.raw_events import CLOCK, raw_events
from tests.socket_model import record_of


def decoded(*events: built.Event) -> DecodedBatch:
    """One window of these events."""
    return Decoder().decode(raw_events([record_of(event) for event in events]), CLOCK)


def table(batch: DecodedBatch) -> list[Event]:
    found = afd_table(batch, Addresses(), np.full(len(batch.raw), -1, dtype=np.int64))
    return [] if found is None else list(found.events())


def with_fields(batch: DecodedBatch, event_name: str, **fields: Column) -> DecodedBatch:
    """The same window with other columns for one event."""
    columns = batch.events[event_name]
    changed = EventColumns(event_name, columns.rows, {**columns.fields, **fields}, columns.missing)
    return replace(batch, events={**batch.events, event_name: changed})


def test_events_of_all_layouts_come_in_time_order() -> None:
    batch = decoded(
        afd.send(at_us=1),
        documented.posted("Recv", at_us=2),
        afd.send(at_us=3, enter_exit=EXIT),
        documented.close(at_us=4),
        afd.abort(at_us=5),
    )

    assert [(e.seq, e.id, e.ticks) for e in table(batch)] == [(0, 1003, 10), (1, 19, 20), (2, 1003, 30), (3, 13, 40), (4, 1032, 50)]
    assert afd_counts(batch) == {1003: 2, 19: 1, 13: 1, 1032: 1}


def test_fields_that_an_event_does_not_have_are_none() -> None:
    modern, old = table(decoded(afd.send(at_us=1, location=3047), documented.disconnect_indicated(at_us=2)))

    assert (modern.enter_exit, modern.location, modern.has_status, modern.buffer_count) == (0, 3047, True, 1)
    assert (old.enter_exit, old.location, old.buffer_count, old.has_status) == (None, None, None, False)
    assert (old.status, old.buffer, old.address) == (0, 0, 0)


def test_addresses_are_signed_numbers() -> None:
    (event,) = table(decoded(afd.send(at_us=1, buffer=afd.KERNEL_BUFFER)))

    assert event.process == built.PROCESS - (1 << 64)
    assert (event.buffer, event.space) == (afd.KERNEL_BUFFER - (1 << 64), KERNEL_SPACE)


def test_a_record_says_by_what_it_names_its_process() -> None:
    batch = decoded(afd.create(at_us=1), afd.send(at_us=2, location=3047), afd.send(at_us=3), documented.posted("Send", at_us=4))
    assert [e.source for e in table(batch)] == [PidSource.CREATE, PidSource.LOCATION, PidSource.NONE, PidSource.HEADER]


def test_one_address_has_one_number_in_every_spelling() -> None:
    batch = decoded(
        afd.connect(at_us=1, address="192.0.2.1:80"),
        documented.connect(at_us=2, address="192.0.2.1:80"),
        documented.connect(at_us=3, address="[2001:db8::1]:80"),
        afd.connect(at_us=4, address="[2001:db8::1]:80"),
        afd.connect(at_us=5),
    )
    assert [e.address for e in table(batch)] == [1, 1, 2, 2, 0]


def test_a_layout_with_fields_of_other_types_is_no_reason_to_stop() -> None:
    plain = decoded(afd.send(at_us=1), afd.connect(at_us=2, address="192.0.2.1:80"))
    strange = with_fields(plain, "AfdSend", endpoint=["a"], buffer=np.zeros((1, 16), dtype=np.uint8), status=np.array([1.5]))
    strange = with_fields(strange, "AfdConnectWithAddress", address=["b"], address_len=["c"])

    send, connect = table(strange)
    assert (send.endpoint, send.buffer, send.has_status, send.length) == (0, 0, False, 512)
    assert connect.address == 0


def test_fields_of_any_type_are_written_out() -> None:
    batch = with_fields(
        decoded(documented.close(at_us=1), documented.close(at_us=2)),
        "SocketClose",
        name=['say "hi"', ""],
        share=np.array([0.5, np.nan]),
        id=np.zeros((2, 2), dtype=np.uint8),
        is_on=np.array([True, False]),
        at=Ragged(np.array([1, 255], dtype=np.uint64), np.array([0, 2, 2])),
    )

    assert [json.loads(e.fields or "") for e in table(batch)] == [
        {"name": 'say "hi"', "share": 0.5, "id": "0000", "is_on": True, "at": ["0x1", "0xff"]},
        {"name": "", "share": None, "id": "0000", "is_on": False, "at": []},
    ]


def test_a_window_without_socket_events_has_none() -> None:
    batch = Decoder().decode(raw_events([]), CLOCK)
    assert table(batch) == []
    assert afd_counts(batch) == {}


def test_the_fast_flag_comes_from_the_keyword_or_the_field() -> None:
    events = table(
        decoded(
            afd.send(at_us=1, is_fast=True),
            afd.send(at_us=2, is_fast=False, buffer=afd.BUFFER),
            documented.posted("Send", at_us=3, is_fast=True),
            documented.posted("Send", at_us=4, is_fast=False),
        )
    )
    assert [e.fast for e in events] == [True, False, True, False]
    assert {e.space for e in events} == {USER_SPACE}
