"""Process instances: their begin and end, whose records are whose, and what is asked of them later."""

import struct
from collections.abc import Iterable
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.clock import Clock, ClockKind
from collector.decoder import Decoder
from collector.events.afd import AFD
from collector.events.heap import HEAP
from collector.events.system import PROCESS
from collector.model.processes import ProcessEnd, Processes
from collector.model.rows import Row, unfolded
from collector.schema import DecodedBatch
from collector.store.tables import ROW_COLUMNS
from tests.raw_events import CLOCK, Record, raw_events

START, END, DC_START, DC_END, DEFUNCT = 1, 2, 3, 4, 39
E1, E2 = 0xFFFF9A0C11223080, 0xFFFF9A0C44556080
GAME, MAIL = 5232, 7012


def process(
    opcode: int,
    pid: int,
    ticks: int,
    *,
    eprocess: int = E1,
    parent: int = 644,
    session: int = 1,
    exit_status: int = 259,
    flags: int = 0,
    image: str = "game.exe",
    command: str = "game.exe -x",
    exit_filetime: int | None = None,
) -> Record:
    """A process event of version 4 of a 64-bit kernel, of version 5 with an exit time. Its header names another process, as rundowns do."""
    payload = struct.pack("<QIIIiQI", eprocess, pid, parent, session, exit_status, 0, flags) + bytes(4)
    payload += image.encode() + b"\0" + command.encode("utf-16-le") + b"\0\0" + bytes(4)
    version = 4
    if exit_filetime is not None:
        payload, version = payload + struct.pack("<q", exit_filetime), 5
    return Record(PROCESS, payload, opcode=opcode, version=version, ticks=ticks, pid=4, tid=0)


def heap_free(pid: int, ticks: int, *, pointer_size: int = 8) -> Record:
    width = "Q" if pointer_size == 8 else "I"
    return Record(HEAP, struct.pack(f"<2{width}I", 1, 2, 3), opcode=0x24, version=2, ticks=ticks, pid=pid, pointer_size=pointer_size)


def socket_close(pid: int, ticks: int) -> Record:
    return Record(AFD, bytes(28), event_id=1001, ticks=ticks, pid=pid)


class Traced:
    """Feeds windows to a model and asks it for the instances of all headers of heap and socket events."""

    def __init__(self, clock: Clock = CLOCK) -> None:
        self.processes = Processes(clock)
        self.ends: list[ProcessEnd] = []
        self._decoder, self._providers = Decoder(), list[UUID]()
        self._clock = clock
        self._seq = 0

    def window(self, *records: Record) -> list[int]:
        raw = raw_events(records, first_seq=self._seq, providers=self._providers)
        self._seq += len(raw)
        batch = self._decoder.decode(raw, self._clock)
        assert batch.damaged.size == 0
        assert self.processes.advance(batch) == {}
        owners = self._owners(batch)
        self.ends += self.processes.ends_in(batch)
        return owners

    def _owners(self, batch: DecodedBatch) -> list[int]:
        found: dict[int, int] = {}
        for name in ("HeapFree", "AfdClose"):
            columns = batch.get(name)
            if columns is not None:
                numbers = self.processes.of_pids(batch.raw.pid[columns.rows], batch, columns.rows)
                found |= dict(zip(columns.rows.tolist(), numbers.tolist(), strict=True))
        return [found[row] for row in sorted(found)]

    def rows(self, *columns: str) -> list[tuple[object, ...]]:
        return list(picked(unfolded(self.processes.finish()["process"]), columns))


def picked(rows: Iterable[Row], columns: tuple[str, ...], table: str = "process") -> Iterable[tuple[object, ...]]:
    at = [ROW_COLUMNS[table].index(column) for column in columns]
    return (tuple(row[i] for i in at) for row in rows)


# ---------------------------------------------------------------------------------------------------- without kernel events


def test_without_kernel_events_there_is_one_instance_per_id() -> None:
    trace = Traced()

    assert trace.window(heap_free(GAME, 10), heap_free(MAIL, 20), heap_free(GAME, 30)) == [0, 1, 0]
    assert trace.window(heap_free(MAIL, 40), heap_free(GAME, 50)) == [1, 0]
    assert trace.ends == []
    assert trace.rows("n", "pid", "first_ns", "start_ns", "end_ns", "start_seen", "end_seen", "pid_source") == [
        (0, GAME, 1000, None, None, False, False, "heap"),
        (1, MAIL, 2000, None, None, False, False, "heap"),
    ]


def test_numbers_follow_the_first_sight_within_a_window_by_process_id() -> None:
    trace = Traced()

    assert trace.window(heap_free(9, 10), heap_free(5, 20)) == [1, 0]
    assert trace.rows("pid") == [(5,), (9,)]


def test_a_header_without_a_process_has_no_instance() -> None:
    trace = Traced()

    assert trace.window(heap_free(-1, 10), heap_free(GAME, 20), heap_free(-1, 30)) == [-1, 0, -1]
    assert trace.processes.pid_of(-1) is None
    assert trace.processes.pid_of(0) == GAME


def test_ids_beyond_16_bits_are_kept_apart() -> None:
    trace = Traced()

    assert trace.window(heap_free(65536 + 8, 10), heap_free(8, 20), heap_free(0xFFFFFFFC, 30), heap_free(8, 40)) == [1, 0, 2, 0]


def test_the_best_source_is_kept() -> None:
    trace = Traced()
    trace.window(heap_free(GAME, 10), socket_close(MAIL, 20))

    assert trace.processes.of_pid(GAME, 5, 500, "create") == 0
    assert trace.processes.of_pid(MAIL, 6, 600, "location") == 1
    assert trace.processes.of_pid(MAIL, 7, 700, "heap") == 1
    assert trace.rows("pid_source") == [("create",), ("location",)]


def test_the_first_sight_moves_back_when_an_earlier_record_is_asked_for_later() -> None:
    """Each model asks for its own records: the later ones may come first."""
    trace = Traced()
    trace.window(socket_close(GAME, 10), heap_free(GAME, 20))

    assert trace.rows("pid", "first_ns") == [(GAME, 1000)]


@pytest.mark.parametrize(("sizes", "expected"), [((8, 8), 8), ((8, 4), 4), ((4, 8), 4)])
def test_32_bit_heap_records_make_a_32_bit_process(sizes: tuple[int, int], expected: int) -> None:
    """The 64-bit system layer of a 32-bit process writes some records of 8-byte pointers."""
    trace = Traced()
    for i, size in enumerate(sizes):
        trace.window(heap_free(GAME, 10 * i + 10, pointer_size=size))

    assert trace.rows("pointer_size") == [(expected,)]


# ---------------------------------------------------------------------------------------------------- starts and ends


def test_a_start_and_an_end_delimit_an_instance() -> None:
    trace = Traced()

    owners = trace.window(
        process(START, GAME, 100, parent=MAIL, session=2),
        heap_free(GAME, 150),
        process(END, GAME, 200, exit_status=-1073741819),
        process(START, GAME, 300, eprocess=E2, image="mail.exe", command=""),
        heap_free(GAME, 350),
    )

    assert owners == [0, 1]
    assert trace.ends == [ProcessEnd(0, 2, 200, 20_000)]
    assert trace.rows(
        "pid", "eprocess", "parent_pid", "image", "command_line", "start_ns", "end_ns", "first_ns", "session", "exit_status"
    ) == [
        (GAME, E1 - (1 << 64), MAIL, "game.exe", "game.exe -x", 10_000, 20_000, 10_000, 2, 0xC0000005),
        (GAME, E2 - (1 << 64), 644, "mail.exe", None, 30_000, None, 30_000, 1, None),
    ]


def test_the_id_of_a_rundown_is_that_of_its_payload() -> None:
    trace = Traced()
    trace.window(process(DC_START, GAME, 10))

    assert trace.rows("pid", "pid_source", "start_ns", "start_seen", "first_ns") == [(GAME, "kernel", None, False, 1000)]


def test_an_instance_that_only_the_last_rundown_names_ran_all_along() -> None:
    trace = Traced()
    owners = trace.window(heap_free(GAME, 50))
    trace.window(process(DC_END, GAME, 900), process(DC_END, MAIL, 910, eprocess=E2, image="mail.exe"))

    assert owners == [0]
    assert trace.rows("n", "pid", "image", "start_ns", "end_ns", "end_seen", "first_ns") == [
        (0, GAME, "game.exe", None, None, False, 5000),
        (1, MAIL, "mail.exe", None, None, False, 0),
    ]
    assert trace.ends == []


def test_rundowns_of_a_known_instance_add_nothing_new() -> None:
    trace = Traced()
    trace.window(process(DC_START, GAME, 10), process(DC_START, GAME, 20), process(DC_END, GAME, 90))

    assert trace.rows("n", "first_ns") == [(0, 1000)]


def test_a_start_over_an_open_instance_ends_that_one_without_a_known_end() -> None:
    trace = Traced()

    owners = trace.window(heap_free(GAME, 50), process(START, GAME, 100), heap_free(GAME, 150))

    assert owners == [1, 0]
    assert trace.ends == [ProcessEnd(1, 1, 100, 10_000, is_seen=False)]
    assert trace.rows("n", "start_ns", "end_ns", "end_seen", "first_ns") == [(0, 10_000, None, False, 10_000), (1, None, None, False, 5000)]


def test_a_start_in_a_later_window_ends_an_open_instance_too() -> None:
    trace = Traced()
    trace.window(process(START, GAME, 50))

    owners = trace.window(heap_free(GAME, 90), process(START, GAME, 100, eprocess=E2), heap_free(GAME, 150))

    assert owners == [0, 1]
    assert trace.ends == [ProcessEnd(0, 2, 100, 10_000, is_seen=False)]


def test_a_process_that_dies_at_once_has_both_ends_in_one_window() -> None:
    trace = Traced()
    trace.window(process(START, GAME, 100), process(END, GAME, 101), process(START, GAME, 102), process(END, GAME, 103))

    assert [(end.process_n, end.ns) for end in trace.ends] == [(0, 10_100), (1, 10_300)]
    assert trace.rows("start_ns", "end_ns") == [(10_000, 10_100), (10_200, 10_300)]


def test_an_end_without_a_start_closes_an_instance_from_before_the_trace() -> None:
    trace = Traced()

    owners = trace.window(heap_free(GAME, 50), process(END, GAME, 100), heap_free(MAIL, 150))

    assert owners == [0, 1]
    assert trace.rows("pid", "start_ns", "end_ns", "first_ns", "start_seen", "end_seen") == [
        (GAME, None, 10_000, 5000, False, True),
        (MAIL, None, None, 15_000, False, False),
    ]


def test_an_end_told_twice_ends_once() -> None:
    trace = Traced()
    trace.window(process(START, GAME, 10), process(END, GAME, 20), process(END, GAME, 30))

    assert trace.ends == [ProcessEnd(0, 1, 20, 2000)]
    assert trace.rows("n", "end_ns") == [(0, 2000)]


def test_a_rundown_of_the_dead_is_no_new_life() -> None:
    trace = Traced()
    trace.window(process(START, GAME, 10), process(END, GAME, 20), process(DC_END, GAME, 90))

    assert trace.rows("n", "start_ns", "end_ns") == [(0, 1000, 2000)]


def test_a_rundown_with_another_object_is_another_process() -> None:
    """The end of one and the start of the next were lost."""
    trace = Traced()
    trace.window(process(START, GAME, 10), process(DC_END, GAME, 90, eprocess=E2, image="mail.exe"))

    assert trace.ends == [ProcessEnd(0, 1, 90, 9000, is_seen=False)]
    assert trace.rows("n", "image", "end_ns", "end_seen") == [(0, "game.exe", None, False), (1, "mail.exe", None, False)]


def test_links_of_two_instances_never_collide() -> None:
    trace = Traced()
    trace.window(process(DC_END, GAME, 10), process(DC_END, GAME, 20, eprocess=E2), process(END, GAME, 30), process(START, GAME, 40))

    named = trace.rows("pid", "first_ns")
    assert len(set(named)) == len(named)


# ---------------------------------------------------------------------------------------------------- ties and late records


def test_a_record_at_the_tick_of_the_end_belongs_to_the_instance_that_ends() -> None:
    trace = Traced()

    assert trace.window(process(START, GAME, 50), process(END, GAME, 100), heap_free(GAME, 100)) == [0]


def test_a_record_at_the_tick_of_the_start_belongs_to_the_instance_that_starts() -> None:
    trace = Traced()

    assert trace.window(heap_free(GAME, 99), heap_free(GAME, 100), process(START, GAME, 100)) == [1, 0]


def test_an_end_and_a_start_at_one_tick_part_at_the_start() -> None:
    trace = Traced()

    owners = trace.window(
        process(START, GAME, 50),
        process(END, GAME, 100),
        heap_free(GAME, 100),
        process(START, GAME, 100, eprocess=E2),
        heap_free(GAME, 100),
    )

    assert owners == [0, 1]


def test_a_heap_record_after_the_end_is_of_another_instance() -> None:
    """A dead process calls no allocator: the start of the next one was lost."""
    trace = Traced()

    assert trace.window(process(START, GAME, 50), process(END, GAME, 100), heap_free(GAME, 101), heap_free(GAME, 200)) == [1, 1]
    assert trace.rows("n", "start_ns", "first_ns") == [(0, 5000, 5000), (1, None, 10_100)]


def test_a_socket_record_after_the_end_is_late() -> None:
    """The kernel closes the handles of a process behind its end event."""
    trace = Traced()

    owners = trace.window(
        process(START, GAME, 50), process(END, GAME, 100), socket_close(GAME, 101), process(START, GAME, 300), socket_close(GAME, 310)
    )

    assert owners == [0, 1]
    assert trace.processes.of_pid(GAME, 2, 10_100, "location") == 0
    assert trace.processes.of_pid(GAME, 2, 10_100, "create") == 2  # only a living process creates a socket


def test_records_of_a_window_are_parted_by_the_starts_and_ends_in_it() -> None:
    trace = Traced()
    records = []
    for i in range(6):
        records += [process(START, GAME, 100 * i + 10, eprocess=E1 + 64 * i), *(heap_free(GAME, 100 * i + 20 + k) for k in range(3))]
        records += [process(END, GAME, 100 * i + 90, eprocess=E1 + 64 * i)]

    assert trace.window(*records) == [n for n in range(6) for _ in range(3)]


# ---------------------------------------------------------------------------------------------------- process objects


def test_an_object_names_its_process_before_and_after_the_rundown() -> None:
    trace = Traced()
    trace.window(heap_free(GAME, 10))
    assert trace.processes.by_eprocess(E1, 0) is None

    trace.window(process(DC_START, GAME, 50))

    assert trace.processes.by_eprocess(E1, 0) == 0
    assert trace.processes.by_eprocess(E1, 99) == 0
    assert trace.processes.by_eprocess(E2, 99) is None


def test_an_object_is_used_again_by_the_next_process() -> None:
    trace = Traced()
    trace.window(process(START, GAME, 10), process(END, GAME, 20), heap_free(MAIL, 30), process(START, MAIL, 40), heap_free(MAIL, 50))

    assert trace.processes.by_eprocess(E1, 0) == 0
    assert trace.processes.by_eprocess(E1, 2) == 0  # late events of its sockets
    assert trace.processes.by_eprocess(E1, 3) == 1
    assert trace.processes.by_eprocess(E1, 4) == 1


def test_an_object_has_no_known_process_before_a_start() -> None:
    trace = Traced()
    trace.window(heap_free(MAIL, 5), process(START, GAME, 10))

    assert trace.processes.by_eprocess(E1, 0) is None


def test_the_last_rundown_tells_about_all_of_the_trace() -> None:
    trace = Traced()
    trace.window(heap_free(GAME, 10))
    assert trace.processes.by_eprocess(E1, 0) is None

    trace.window(process(DC_END, GAME, 900))

    assert trace.processes.by_eprocess_late(E1, 0) == 0


def test_of_two_holders_of_an_object_the_one_that_lived_then_is_meant() -> None:
    trace = Traced()
    trace.window(process(START, GAME, 10), process(END, GAME, 20), heap_free(8, 30), process(DC_END, MAIL, 90))

    assert trace.processes.by_eprocess_late(E1, 0) == 0
    assert trace.processes.by_eprocess_late(E1, 2) == 1


def test_a_defunct_process_is_known_by_its_object_alone() -> None:
    """It ended before the trace; its id may belong to another one by now."""
    trace = Traced(Clock(ClockKind.QPC, 0, 10_000_000, 133_855_542_000_000_000))
    owners = trace.window(
        process(DC_START, GAME, 10),
        process(DEFUNCT, GAME, 11, eprocess=E2, image="old.exe", exit_status=1, exit_filetime=133_855_541_990_000_000),
        heap_free(GAME, 20),
    )

    assert owners == [0]
    assert trace.processes.by_eprocess(E2, 0) == 1
    assert trace.processes.by_eprocess(E2, 2) == 1
    assert trace.ends == []  # nothing that was seen ends here
    assert trace.rows("n", "pid", "image", "end_ns", "exit_status", "pid_source") == [
        (0, GAME, "game.exe", None, None, "kernel"),
        (1, GAME, "old.exe", -1_000_000_000, 1, "kernel"),
    ]


def test_a_process_that_is_found_dead_ended_unseen() -> None:
    trace = Traced()
    trace.window(process(START, GAME, 10), process(DEFUNCT, GAME, 50, exit_status=3), process(DC_END, GAME, 60))

    assert trace.ends == [ProcessEnd(0, 1, 50, 5000, is_seen=False)]
    assert trace.rows("n", "end_ns", "end_seen", "exit_status") == [(0, None, False, 3)]


@pytest.mark.parametrize(("flags", "expected"), [(0, 8), (2, 4), (1, 8), (3, 4)])
def test_the_flags_tell_the_pointer_size(flags: int, expected: int) -> None:
    trace = Traced()
    trace.window(process(DC_START, GAME, 10, flags=flags), heap_free(GAME, 20))

    assert trace.rows("pointer_size") == [(expected,)]


def test_old_versions_leave_open_what_they_do_not_say() -> None:
    payload = struct.pack("<QQ", GAME, 644) + bytes(4) + b"old.exe\0"
    trace = Traced()
    trace.window(Record(PROCESS, payload, opcode=START, version=0, ticks=10))

    assert trace.rows("pid", "parent_pid", "image", "eprocess", "session", "command_line", "pointer_size") == [
        (GAME, 644, "old.exe", None, None, None, None)
    ]


# ---------------------------------------------------------------------------------------------------- properties


_DEEDS = st.lists(
    st.tuples(
        st.sampled_from([START, END, DC_START, DC_END, DEFUNCT, 0, -1]),
        st.sampled_from([4, 8, 12]),
        st.integers(0, 3),
        st.sampled_from([E1, E2]),
    ),
    max_size=40,
)


def _records(deeds: list[tuple[int, int, int, int]]) -> list[Record]:
    ticks, records = 0, []
    for opcode, pid, step, eprocess in deeds:
        ticks += step
        records.append(
            heap_free(pid, ticks)
            if opcode == 0
            else socket_close(pid, ticks)
            if opcode < 0
            else process(opcode, pid, ticks, eprocess=eprocess)
        )
    return records


@given(_DEEDS)
@settings(max_examples=200, deadline=None)
def test_whatever_the_kernel_tells_instances_stay_apart(deeds: list[tuple[int, int, int, int]]) -> None:
    """Each id has at most one open instance, lives of an id do not overlap, none ends twice or before it starts, links are unique."""
    trace = Traced()
    for record in _records([(opcode, pid, step + 1, eprocess) for opcode, pid, step, eprocess in deeds]):
        trace.window(record)

    rows = trace.rows("pid", "first_ns", "start_ns", "end_ns", "start_seen", "end_seen")
    ended = [end.process_n for end in trace.ends]
    assert len(set(ended)) == len(ended)
    assert len({(pid, first) for pid, first, *_ in rows}) == len(rows)
    for pid, first, start, end, start_seen, end_seen in rows:
        assert pid in (4, 8, 12)
        assert (start is not None) == start_seen
        assert not end_seen or end is not None
        assert start is None or start == first
        assert not (isinstance(start, int) and isinstance(end, int)) or start <= end


@given(_DEEDS, st.integers(1, 8))
@settings(max_examples=150, deadline=None)
def test_one_by_one_or_at_once_the_same_records_have_the_same_process(deeds: list[tuple[int, int, int, int]], size: int) -> None:
    """Windows of any size part the records alike. Numbers may differ, and so may ties at a window's edge: here all ticks differ."""
    records = _records([(max(opcode, 0), pid, step + 1, eprocess) for opcode, pid, step, eprocess in deeds])
    one, many = Traced(), Traced()

    whole = one.window(*records)
    parts = [owner for at in range(0, len(records), size) for owner in many.window(*records[at : at + size])]

    pairs = set(zip(whole, parts, strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    assert len(one.rows("n")) == len(many.rows("n"))
    assert [end.ticks for end in one.ends] == [end.ticks for end in many.ends]


def test_a_window_of_many_rows_is_quick() -> None:
    """Grouped by process, not row by row: 100,000 rows of 300 processes."""
    pids = np.repeat(np.arange(1, 301) * 4, 334)[:100_000]
    raw = raw_events([heap_free(4, 1)] * 1)
    for name in ("ticks", "pid", "tid", "offset", "payload", "payload_size", "cpu", "kind", "pointer_size", "provider"):
        setattr(raw, name, np.repeat(getattr(raw, name), pids.size))
    for name in ("event_id", "opcode", "version", "level", "keyword", "activity", "extended", "buffer", "buffer_offset"):
        setattr(raw, name, np.repeat(getattr(raw, name), pids.size))
    raw.pid = np.random.default_rng(7).permutation(pids)
    batch = Decoder().decode(raw, CLOCK)
    processes = Processes(CLOCK)
    processes.advance(batch)

    found = processes.of_pids(raw.pid, batch, np.arange(pids.size))

    assert found.tolist() == (raw.pid // 4 - 1).tolist()
