"""Threads: their process, life, user stack and name."""

import struct
from uuid import UUID

from collector.decoder import Decoder
from collector.events.system import PROCESS, THREAD
from collector.model.processes import Processes
from collector.model.rows import count_of, unfolded
from collector.model.threads import ThreadStack
from collector.store.tables import ROW_COLUMNS
from tests.raw_events import CLOCK, Record, raw_events

GAME, MAIL = 5232, 7012
START, END, DC_START, DC_END, NAME = 1, 2, 3, 4, 0x48
HIGH, LOW = 0xA00000, 0x9F8000


def thread(opcode: int, pid: int, tid: int, ticks: int, *, high: int = HIGH, low: int = LOW, name: str = "") -> Record:
    """A thread event of version 4; its header names another thread, as that of a start does."""
    payload = struct.pack("<II7QIbBBB", pid, tid, 0, 0, high, low, 0, 0, 0, 0, 8, 5, 2, 0) + name.encode("utf-16-le") + b"\0\0"
    return Record(THREAD, payload, opcode=opcode, version=4, ticks=ticks, pid=4, tid=8)


def named(pid: int, tid: int, ticks: int, name: str) -> Record:
    return Record(THREAD, struct.pack("<II", pid, tid) + name.encode("utf-16-le") + b"\0\0", opcode=NAME, version=2, ticks=ticks)


def model(*windows: tuple[Record, ...]) -> Processes:
    processes, decoder, providers, seq = Processes(CLOCK), Decoder(), list[UUID](), 0
    for records in windows:
        raw = raw_events(records, first_seq=seq, providers=providers)
        processes.advance(decoder.decode(raw, CLOCK))
        seq += len(raw)
    return processes


def rows(processes: Processes, *columns: str) -> list[tuple[object, ...]]:
    names = ROW_COLUMNS["thread"]
    return [tuple(row[names.index(column)] for column in columns) for row in unfolded(processes.finish()["thread"])]


def test_a_start_and_an_end_delimit_a_thread() -> None:
    processes = model((thread(START, GAME, 12, 10), thread(END, GAME, 12, 50)))

    assert processes.thread_stacks(0) == [ThreadStack(12, LOW, HIGH, 1000, 5000)]
    assert rows(processes, "n", "process_n", "tid", "start_ns", "end_ns", "stack_low", "stack_high", "name") == [
        (0, 0, 12, 1000, 5000, LOW, HIGH, None)
    ]


def test_a_thread_id_is_used_again() -> None:
    processes = model((thread(START, GAME, 12, 10), thread(END, GAME, 12, 50)), (thread(START, MAIL, 12, 60, high=0xB00000, low=0xAF0000),))

    assert rows(processes, "process_n", "start_ns", "end_ns", "stack_high") == [(0, 1000, 5000, HIGH), (1, 6000, None, 0xB00000)]


def test_a_thread_of_the_rundowns_was_there_all_along() -> None:
    processes = model((thread(DC_START, GAME, 12, 10),), (thread(DC_END, GAME, 12, 90), thread(DC_END, GAME, 16, 91)))

    assert rows(processes, "tid", "start_ns", "end_ns") == [(12, None, None), (16, None, None)]


def test_a_start_over_an_open_thread_is_another_one() -> None:
    processes = model((thread(START, GAME, 12, 10), thread(START, GAME, 12, 60)))

    assert rows(processes, "tid", "start_ns", "end_ns") == [(12, 1000, None), (12, 6000, None)]


def test_a_stack_grows_downwards() -> None:
    """The rundown at the end knows how far down it went."""
    processes = model((thread(START, GAME, 12, 10), thread(DC_END, GAME, 12, 90, low=0x900000)))

    assert rows(processes, "stack_low", "stack_high") == [(0x900000, HIGH)]


def test_another_top_is_another_stack() -> None:
    processes = model((thread(START, GAME, 12, 10), thread(DC_END, GAME, 12, 90, high=0xC00000, low=0xBF0000)))

    assert rows(processes, "stack_low", "stack_high") == [(0xBF0000, 0xC00000)]


def test_threads_of_the_kernel_have_no_user_stack() -> None:
    processes = model((thread(DC_START, 4, 12, 10, high=0, low=0),))

    assert processes.thread_stacks(0) == []
    assert rows(processes, "process_n", "stack_low", "stack_high") == [(0, None, None)]


def test_names_come_with_the_thread_or_later() -> None:
    processes = model(
        (thread(START, GAME, 12, 10, name="io"), thread(START, GAME, 16, 20), named(GAME, 16, 30, "render"), named(GAME, 20, 40, "audio"))
    )

    assert rows(processes, "tid", "name") == [(12, "io"), (16, "render"), (20, "audio")]


def test_the_last_thread_may_end_behind_its_process() -> None:
    dead = struct.pack("<QIIIi", 0, GAME, 4, 1, 0) + bytes(4) + b"g\0" + bytes(2)
    processes = model((thread(START, GAME, 12, 10), Record(PROCESS, dead, opcode=2, version=2, ticks=50), thread(END, GAME, 12, 51)))

    assert rows(processes, "process_n", "end_ns") == [(0, 5100)]
    assert count_of(processes.finish()["process"]) == 1


def test_a_process_that_threads_alone_name_is_known_from_the_kernel() -> None:
    found = unfolded(model((thread(DC_END, GAME, 12, 90),)).finish()["process"])

    columns = ROW_COLUMNS["process"]
    assert [(row[columns.index("pid")], row[columns.index("pid_source")], row[columns.index("first_ns")]) for row in found] == [
        (GAME, "kernel", 0)
    ]


def test_ids_stand_the_other_way_round_in_version_0() -> None:
    processes = model((Record(THREAD, struct.pack("<II", 12, GAME), opcode=START, version=0, ticks=10),))

    assert processes.pid_of(0) == GAME
    assert rows(processes, "tid", "stack_low") == [(12, None)]
