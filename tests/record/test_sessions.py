"""What Windows is told when sessions are started, changed and stopped, byte for byte, and what its answers become."""

from collections.abc import Callable

import pytest

from collector.errors import RecordError
from collector.events.afd import AFD
from collector.events.heap import HEAP
from collector.record.buffers import Buffers
from collector.record.calls import MissingLibrary
from collector.record.constants import HeapEvent
from collector.record.plan import SessionPlan
from collector.record.sessions import (
    Session,
    change_heap,
    running,
    start_heap,
    start_kernel,
    start_winsock,
    stop_named,
)
from tests.record.played import Played

FILE = r"C:\traces\größe\😀.etl"
PIECES = r"C:\traces\größe\😀-%d.etl"
PLAN = SessionPlan("sockscope-x", FILE, Buffers(1024, 64, 256), flush_s=5)


def test_a_winsock_session_is_started_and_its_provider_enabled(played: Played) -> None:
    session = start_winsock(played.windows, PLAN, level=5, keywords=0)

    start, enable = played.calls
    assert start.text("name") == "sockscope-x"
    fields = start.properties
    assert fields.Wnode.BufferSize == len(start.data("properties")) == 120 + 2048 + 2048
    assert (fields.LoggerNameOffset, fields.LogFileNameOffset) == (120, 120 + 2048)
    assert start.file == FILE
    assert start.data("properties")[120 : 120 + 2048] == bytes(2048)  # the name is Windows's to write
    assert bytes(fields.Wnode.Guid) == bytes(16)
    assert (fields.Wnode.Flags, fields.Wnode.ClientContext) == (0x20000, 1)
    assert (fields.BufferSize, fields.MinimumBuffers, fields.MaximumBuffers, fields.FlushTimer) == (1024, 64, 256, 5)
    assert (fields.LogFileMode, fields.MaximumFileSize, fields.EnableFlags) == (1, 0, 0)
    assert enable.data("provider") == AFD.bytes_le
    assert [enable.arguments[k] for k in ("handle", "code", "level", "any", "all", "timeout")] == [session.handle, 1, 5, 0, 0, 0]
    assert enable.data("parameters") == (2).to_bytes(4, "little") + bytes(44)


def test_a_kernel_session_is_a_system_logger_with_a_guid_of_its_own(played: Played) -> None:
    start_kernel(played.windows, PLAN)
    start_kernel(played.windows, SessionPlan("sockscope-y", FILE, PLAN.buffers))

    first, second = (call.properties for call in played.calls)
    assert (first.LogFileMode, first.EnableFlags, first.Wnode.ClientContext) == (0x02000001, 7, 1)
    assert bytes(16) != bytes(first.Wnode.Guid) != bytes(second.Wnode.Guid)


@pytest.mark.parametrize(
    ("plan", "mode"),
    [
        (SessionPlan("s", FILE, PLAN.buffers), 0x1),
        (SessionPlan("s", FILE, PLAN.buffers, is_circular=True, size_limit_mb=512), 0x2),
        (SessionPlan("s", PIECES, PLAN.buffers, is_rotating=True, size_limit_mb=512), 0x8),
        (SessionPlan("s", None, PLAN.buffers, is_real_time=True), 0x100),
        (SessionPlan("s", FILE, PLAN.buffers, is_real_time=True), 0x101),
    ],
)
def test_the_mode_says_where_events_go(played: Played, plan: SessionPlan, mode: int) -> None:
    start_winsock(played.windows, plan, level=5, keywords=0)

    fields = played.calls[0].properties
    assert (fields.LogFileMode, fields.MaximumFileSize) == (mode, plan.size_limit_mb)
    assert fields.LogFileNameOffset == (0 if plan.file is None else 2168)


@pytest.mark.parametrize(
    "plan",
    [
        SessionPlan("s", None, PLAN.buffers),
        SessionPlan("s", FILE, PLAN.buffers, is_circular=True),
        SessionPlan("s", PIECES, PLAN.buffers, is_rotating=True),
        SessionPlan("s", FILE, PLAN.buffers, is_rotating=True, size_limit_mb=512),
        SessionPlan("s", None, PLAN.buffers, is_rotating=True, size_limit_mb=512, is_real_time=True),
    ],
    ids=["nowhere", "endless circle", "new files of no size", "new files of one name", "new files without a name"],
)
def test_plans_that_windows_would_refuse_are_refused_before(played: Played, plan: SessionPlan) -> None:
    with pytest.raises(ValueError, match="needs a"):
        start_winsock(played.windows, plan, level=5, keywords=0)
    assert not played.windows._bound


def test_a_heap_session_names_processes_and_stacks(played: Played) -> None:
    session = start_heap(played.windows, PLAN, [1234, 0xFFFFFFF0], [HeapEvent.ALLOC, HeapEvent.FREE])

    (start,) = played.calls
    assert start.numbers("pids") == [1234, 0xFFFFFFF0]
    assert start.arguments["pid_count"] == 2
    assert start.data("stack_ids") == HEAP.bytes_le + b"\x21" + bytes(7) + HEAP.bytes_le + b"\x24" + bytes(7)
    assert start.arguments["stack_id_count"] == 2
    assert start.properties.EnableFlags == 0
    assert session.handle not in (0, 0xDEADDEADDEADDEAD)
    assert session.stop() is not None
    assert played.running == 0


def test_no_stacks_are_no_array(played: Played) -> None:
    start_heap(played.windows, PLAN, [1], [])
    (start,) = played.calls
    assert "stack_ids" not in start.arguments  # a null pointer
    assert start.arguments["stack_id_count"] == 0


def test_a_handle_of_all_ones_is_a_handle(played: Played) -> None:
    """Sessions are invalid at 0; INVALID_HANDLE_VALUE means nothing here."""
    played.give_handle(0xFFFF_FFFF_FFFF_FFFF)
    session = start_heap(played.windows, PLAN, [1], [])
    assert session.query() is not None
    assert played.calls[-1].arguments["handle"] == 0xFFFF_FFFF_FFFF_FFFF


def test_a_handle_of_zero_is_none_and_nothing_is_left(played: Played) -> None:
    played.give_handle(0)
    with pytest.raises(RecordError, match="succeeded but gave no handle"):
        start_heap(played.windows, PLAN, [1], [])
    assert played.order == ["StartHeapTrace sockscope-x", "ControlTraceW stop sockscope-x"]
    assert played.running == 0


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (183, "one heap session runs at a time"),
        (1004, "does not accept the kernel flags"),
        (8, "fewer or smaller"),
        (14, "fewer or smaller"),
        (5, "Run as administrator"),
        (1314, "privilege"),
        (1450, "too many sessions"),
        (87, "still runs"),
        (161, "another session writes this file"),
        (112, "disk is too full"),
        (777, "net helpmsg 777"),
    ],
)
def test_errors_of_a_heap_session_say_what_to_do(played: Played, code: int, words: str) -> None:
    """Whatever it returned, the handle that it left behind is never used."""
    played.answer("StartHeapTrace", code)
    with pytest.raises(RecordError) as error:
        start_heap(played.windows, PLAN, [1], [HeapEvent.ALLOC])
    assert words in str(error.value)
    assert "sockscope-x" in str(error.value)
    assert (error.value.call, error.value.code) == ("StartHeapTrace", code)
    assert [call.name for call in played.calls if call.name != "QueryAllTracesW"] == ["StartHeapTrace"]


def test_the_session_in_the_way_is_among_those_that_are_named(played: Played) -> None:
    start_heap(played.windows, SessionPlan("HeapSession", FILE, PLAN.buffers), [1], [])
    start_kernel(played.windows, SessionPlan("NT Kernel Logger", FILE, PLAN.buffers))
    with pytest.raises(RecordError, match=r"Sessions that run: HeapSession, NT Kernel Logger\.$"):
        start_heap(played.windows, PLAN, [1], [])
    assert played.running == 2  # they are others': none is stopped
    played.answer("QueryAllTracesW", 5)
    with pytest.raises(RecordError, match=r"\(183\)\.$"):
        start_heap(played.windows, PLAN, [1], [])


def test_a_provider_that_cannot_be_enabled_leaves_no_session(played: Played) -> None:
    played.answer("EnableTraceEx2", 1450)
    with pytest.raises(RecordError, match="too many have this provider on"):
        start_winsock(played.windows, PLAN, level=5, keywords=0)
    assert played.order[-1] == "ControlTraceW stop sockscope-x"
    assert played.running == 0


def test_a_change_names_all_processes_and_has_no_handle(played: Played) -> None:
    start_heap(played.windows, PLAN, [1], [HeapEvent.ALLOC])
    change_heap(played.windows, "sockscope-x", [1, 2], [HeapEvent.CREATE])

    change = played.calls[-1]
    assert change.name == "UpdateHeapTrace"
    assert "handle" not in change.arguments
    assert change.numbers("pids") == [1, 2]
    assert change.data("stack_ids")[16] == 0x20
    assert change.text("name") == "sockscope-x"
    fields = change.properties
    assert (fields.LogFileNameOffset, fields.LoggerNameOffset) == (0, 120)
    assert (fields.MaximumBuffers, fields.FlushTimer, fields.LogFileMode) == (256, 5, 1)  # as they are


def test_a_change_leaves_real_time_as_it_is(played: Played) -> None:
    start_heap(played.windows, SessionPlan("sockscope-x", None, PLAN.buffers, is_real_time=True), [1], [HeapEvent.ALLOC])
    change_heap(played.windows, "sockscope-x", [2], [])
    fields = played.calls[-1].properties
    assert (fields.LogFileMode, fields.LogFileNameOffset) == (0x100, 0)


def test_a_change_of_nothing_is_told(played: Played) -> None:
    with pytest.raises(RecordError, match="No session sockscope-x runs"):
        change_heap(played.windows, "sockscope-x", [1], [])
    start_heap(played.windows, PLAN, [1], [])
    played.answer("UpdateHeapTrace", 5)
    with pytest.raises(RecordError, match="Run as administrator"):
        change_heap(played.windows, "sockscope-x", [1], [])


def test_a_query_tells_what_windows_made_of_the_sizes(played: Played) -> None:
    session = start_winsock(played.windows, SessionPlan("s", FILE, Buffers(64, 2, 4)), level=5, keywords=0)
    played.lose(events=3, buffers=2, real_time=1)
    counters = session.query()
    assert counters is not None
    assert (counters.name, counters.file) == ("s", FILE)
    assert (counters.buffer_kb, counters.buffers, counters.free_buffers, counters.buffers_written) == (64, 8, 4, 7)
    assert (counters.events_lost, counters.log_buffers_lost, counters.real_time_buffers_lost) == (3, 2, 1)


def test_234_on_a_stop_is_a_stop_and_4201_was_none(played: Played) -> None:
    session = start_winsock(played.windows, PLAN, level=5, keywords=0)
    played.answer("Stop", 234)
    assert session.stop() is not None
    assert played.running == 0
    assert session.stop() is None
    assert stop_named(played.windows, "sockscope-x") is None
    assert session.query() is None


def test_a_stop_goes_by_the_name(played: Played) -> None:
    start_winsock(played.windows, PLAN, level=5, keywords=0).stop()
    stop = played.calls[-1]
    assert (stop.arguments["handle"], stop.text("name"), stop.arguments["control"]) == (0, "sockscope-x", 1)
    assert (stop.properties.LoggerNameOffset, stop.properties.LogFileNameOffset) == (120, 2168)  # room for both answers


@pytest.mark.parametrize(
    ("ask", "control"), [(Session.query, "Query"), (Session.flush, "Flush"), (Session.stop, "Stop")], ids=["query", "flush", "stop"]
)
def test_a_refusal_is_told(played: Played, ask: Callable[[Session], object], control: str) -> None:
    session = start_winsock(played.windows, PLAN, level=5, keywords=0)
    played.answer(control, 5)
    with pytest.raises(RecordError, match=r"sockscope-x .*ERROR_ACCESS_DENIED \(5\)"):
        ask(session)


def test_all_sessions_are_listed_however_many(played: Played) -> None:
    for number in range(40):
        start_kernel(played.windows, SessionPlan(f"s{number}", FILE, PLAN.buffers))
    assert [counters.name for counters in running(played.windows)] == [f"s{number}" for number in range(40)]
    played.answer("QueryAllTracesW", 5)
    with pytest.raises(RecordError, match="cannot be listed"):
        running(played.windows)


def test_without_the_toolkit_nothing_is_asked(played: Played) -> None:
    played.windows.paths.pop("KernelTraceControl")
    with pytest.raises(MissingLibrary):
        start_heap(played.windows, PLAN, [1], [])
    assert played.running == 0


@pytest.mark.parametrize(("kb", "least", "most"), [(3, 2, 2), (16385, 2, 2), (64, 1, 4), (64, 5, 4), (64, 2, 65537)])
def test_sizes_that_are_not_possible(kb: int, least: int, most: int) -> None:
    with pytest.raises(ValueError, match="not possible"):
        Buffers(kb, least, most)


def test_sizes_in_words_and_the_next_ones() -> None:
    assert Buffers(1024, 64, 256).words == "64 to 256 buffers of 1,024 KB (64 to 256 MB of memory that cannot be paged out)"
    assert Buffers(4, 2, 2).words == "2 buffers of 4 KB (1 MB of memory that cannot be paged out)"
    assert Buffers(64, 2, 4).enlarged() == Buffers(256, 4, 8)
    assert Buffers(1024, 128, 128).enlarged() == Buffers(1024, 256, 256)
    assert Buffers(16384, 2, 65536).enlarged() == Buffers(16384, 4, 65536)
    assert "taken from all other programs" in Buffers(1024, 2, 1025).advice
    assert Buffers(1024, 2, 1024).advice == ""
