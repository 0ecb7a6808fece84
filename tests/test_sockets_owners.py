"""Whose socket it is: the ranked sources of a process id, reuse of process objects, contradictions (winsock-semantics 2)."""

from tests.build import EXIT, afd, documented, system
from tests.build.events import PID, PROCESS, Event
from tests.socket_model import Model, model

OTHER = PROCESS + 0x540


def owners(m: Model) -> list[tuple[object, ...]]:
    """Process id, source and contradictions of each owner."""
    pids = {row["n"]: row["pid"] for row in m.table("process")}
    return [(pids.get(row["process_n"]), row["pid_source"], row["contradictions"]) for row in m.table("owner")]


def pids(m: Model) -> list[object]:
    """Process id of each socket."""
    known = {row["n"]: row["pid"] for row in m.table("process")}
    return [known.get(row["process_n"]) for row in m.table("socket")]


def test_a_create_names_the_process_whatever_its_header_says() -> None:
    m = model(afd.create(at_us=1, pid=4, process_id=900))

    assert owners(m) == [(900, "create", 0)]


def test_completions_name_nobody() -> None:
    m = model(afd.received(at_us=1, pid=0, location=4114), afd.abort(at_us=5, pid=4, location=8016))

    assert owners(m) == [(None, None, 0)]
    assert m.problems["unknown_owners"] == 1


def test_a_reliable_location_names_the_process_of_earlier_records_too() -> None:
    m = model(
        afd.receive_message(at_us=1, enter_exit=EXIT, pid=0, location=4052),
        afd.send_message(at_us=2, pid=3344, location=3100),
    )

    assert owners(m) == [(3344, "location", 0)]
    assert pids(m) == [3344]
    assert m.problems["inferred_owners"] == 1


def test_a_close_in_the_system_process_says_nothing() -> None:
    m = model(afd.close(at_us=1, pid=4, location=2000))
    assert owners(m) == [(None, None, 0)]

    m = model(afd.close(at_us=1, pid=900, location=2000))
    assert owners(m) == [(900, "location", 0)]


def test_documented_calls_name_their_caller_and_completions_do_not() -> None:
    m = model(documented.completed("Recv", at_us=1, pid=77))
    assert owners(m) == [(None, None, 0)]

    m = model(documented.posted("Recv", at_us=1, pid=77))
    assert owners(m) == [(77, "header", 0)]


def test_a_handle_used_by_another_process_changes_no_owner_and_is_counted() -> None:
    m = model(
        afd.create(at_us=1, process_id=900),
        afd.send(at_us=2, pid=901, location=3047),
        afd.send(at_us=3, pid=901, location=3047),
        afd.send(at_us=4, pid=902, location=3018),  # not a reliable location
    )

    assert owners(m) == [(900, "create", 2)]
    assert [row["posted_pid"] for row in m.table("operation")] == [901, 901, 902]
    assert m.problems["contradicted_owners"] == 2


def test_a_create_of_another_process_id_begins_a_new_owner_and_old_sockets_stay() -> None:
    m = model(
        afd.create(at_us=1, endpoint=0xA000, process_id=900),
        afd.create(at_us=2, endpoint=0xB000, process_id=901),
        afd.send(at_us=3, endpoint=0xA000, pid=0),
    )

    assert owners(m) == [(900, "create", 0), (901, "create", 0)]
    assert m.rows("socket", "endpoint", "owner_n") == [(0xA000, 1), (0xB000, 2)]


def test_the_kernels_own_events_are_the_best_source() -> None:
    m = model(system.process_start(at_us=0, pid=900), afd.create(at_us=1, process_id=901), afd.send(at_us=2, pid=902, location=3047))

    assert owners(m) == [(900, "kernel", 2)]


def test_a_rundown_at_the_end_names_the_process_too() -> None:
    m = model(afd.send(at_us=1, pid=0), system.process_rundown(at_us=9, at_end=True, pid=900))

    assert owners(m) == [(900, "kernel", 0)]
    assert pids(m) == [900]


def two_lives() -> list[Event]:
    """A process ends, and the next one gets its process id and its process object."""
    return [
        system.process_start(at_us=0, pid=900),
        afd.create(at_us=10, endpoint=0xA000, process_id=900),
        system.process_end(at_us=20, pid=900),
        afd.receive(at_us=25, endpoint=0xA000, enter_exit=EXIT, pid=4, location=4114),
        afd.close(at_us=26, endpoint=0xA000, pid=4),
        system.process_start(at_us=30, pid=900),
        afd.create(at_us=40, endpoint=0xB000, process_id=900),
        afd.create(at_us=41, endpoint=0xA000, process_id=900),
    ]


def test_a_process_object_used_again_is_another_owner_and_late_records_stay_with_the_first() -> None:
    m = model(two_lives())

    first, second = (row["n"] for row in m.table("process"))
    assert m.rows("owner", "process_n", "pid_source") == [(first, "kernel"), (second, "kernel")]
    assert m.rows("socket", "endpoint", "process_n", "end") == [
        (0xA000, first, "closed"),
        (0xB000, second, "open_at_end"),
        (0xA000, second, "open_at_end"),
    ]


def test_without_kernel_events_all_records_of_a_process_object_are_one_process() -> None:
    events = [e for e in two_lives() if not e.name.startswith("Process")]
    assert owners(model(events)) == [(900, "create", 0)]


def test_a_process_that_ends_without_closing_ends_its_sockets_and_requests() -> None:
    m = model(
        system.process_start(at_us=0),
        afd.create(at_us=1),
        afd.receive(at_us=2),
        system.process_end(at_us=50),
        afd.create(at_us=60, endpoint=0xB000, process=OTHER, process_id=PID + 4),
    )

    assert m.rows("socket", "end") == [("ended_by_exit",), ("open_at_end",)]
    assert m.one("operation", "outcome", "end_ns") == ("ended_by_exit", 50_000)


def test_a_poll_belongs_to_a_process_without_a_socket() -> None:
    m = model(documented.select(at_us=1, pid=77, handle_count=3), documented.selected(at_us=9, pid=0))

    assert owners(m) == [(77, "header", 0)]
    assert m.table("socket") == []


def test_a_header_without_a_process_names_nobody() -> None:
    assert owners(model(afd.send(at_us=1, pid=0xFFFF_FFFF, location=3047))) == [(None, None, 0)]
